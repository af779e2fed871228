//! The barrier between a rollout that is complete by its counts and one that is complete for us.
//!
//! ```text
//! predicate holds ──▶ Draining ──no old pod serves──▶ Settling ──rollout.settle──▶ Complete
//!                        └──────────── rollout.drain_timeout ───────────────────────▶ Complete, and told
//! ```
//!
//! A broken predicate begins both anew. Neither counts towards the rollout timeout. That the bound passed needs no field of
//! its own in the record: the phase is Complete then, and neither a re-check nor a restart goes back behind it.
//!
//! Old pods are looked for at once, when the watch of pods shows that something has changed, and every [`LOOK_EVERY`]. Only a
//! fresh reading ends the wait: a watch may be late. Not for which pods are old; see [`crate::domain::serving`].

use std::time::Duration;

use crate::domain::call::Call;
use crate::domain::id::Seq;
use crate::domain::machine::Timestamp;
use crate::domain::notice::Kind;
use crate::domain::record::Phase;
use crate::domain::rollout::finish::short;
use crate::domain::rollout::{Effect, Rollout, words};
use crate::domain::serving::OldPods;
use crate::domain::workload::Workload;

/// How often old pods are looked for while nothing is seen to change: pods end within 30 s by default, so this costs few
/// readings and delays a purge by a second on average, and only where an endpoint stops serving long before its pod ends.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A rollout that waits at the barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Barrier {
    /// Which rollout it is about.
    seq: Seq,
    /// Since when the predicate holds.
    since: Timestamp,
    /// When old pods are looked for again although nothing was seen to change.
    again: Option<Timestamp>,
    /// What the last look found.
    found: Option<OldPods>,
    /// Since when no old pod serves.
    quiet_since: Option<Timestamp>,
}

/// What a rollout at the barrier does now.
enum Pass {
    Wait,
    Look,
    /// No old pod served for long enough.
    Quiet,
    /// The bound passed, and this is what it was waited for.
    Late(String),
}

impl Barrier {
    fn new(seq: Seq, now: Timestamp) -> Self {
        Self { seq, since: now, again: None, found: None, quiet_since: None }
    }

    fn pass(&mut self, now: Timestamp, settle: Duration, drain_timeout: Duration, look: &Call) -> Pass {
        if drain_timeout.is_zero() {
            self.quiet_since.get_or_insert(self.since);
        }
        match self.quiet_since {
            Some(since) if now.since(since) >= settle => Pass::Quiet,
            Some(_) => Pass::Wait,
            None if now.since(self.since) >= drain_timeout => Pass::Late(self.hindrance(look)),
            None if look.is_due(now) && self.again.is_none_or(|at| at <= now) => Pass::Look,
            None => Pass::Wait,
        }
    }

    /// Why it is not known that no old pod serves.
    fn hindrance(&self, look: &Call) -> String {
        match (look.reason(), &self.found) {
            (Some(reason), _) => format!("cannot see whether old pods still serve: {reason}"),
            (None, Some(found)) => found.to_string(),
            (None, None) => "it is not known yet whether old pods still serve".to_owned(),
        }
    }

    fn deadline(&self, settle: Duration, drain_timeout: Duration) -> Timestamp {
        match self.quiet_since {
            Some(since) => since.after(settle),
            None => self.again.map_or(self.since.after(drain_timeout), |at| at.min(self.since.after(drain_timeout))),
        }
    }
}

impl Rollout {
    /// Holds a rollout whose predicate holds until no old pod serves any more, and then completes it.
    pub(super) fn hold(&mut self, now: Timestamp, workload: &Workload) -> Option<Effect> {
        let seq = self.record.draft.as_ref()?.seq;
        self.suspicion = None;
        if self.running_since.is_some() {
            self.keep_time(now, false);
        }
        let (settle, drain_timeout) = (self.policy.settle, self.policy.drain_timeout);
        if self.barrier.as_ref().is_none_or(|barrier| barrier.seq != seq) {
            self.leave_barrier();
        }
        let barrier = self.barrier.get_or_insert_with(|| Barrier::new(seq, now));
        match barrier.pass(now, settle, drain_timeout, &self.old_pods) {
            Pass::Wait => None,
            Pass::Look => {
                self.old_pods.asked();
                barrier.again = None;
                Some(Effect::FindOldPods(Box::new(workload.clone())))
            }
            Pass::Quiet => {
                self.complete(now, "");
                None
            }
            Pass::Late(why) => {
                let bound = words::duration(drain_timeout);
                self.complete(now, &format!("; not waited for any longer than {bound}: {why}"));
                let message = format!(
                    "{why}, {bound} after all pods were new and available; what an old pod answers from now on may bring \
                     the old version back to the edge. Let pods end sooner, or raise rollout.drain_timeout"
                );
                self.announce(now, Kind::WorkloadFaulty, message);
                None
            }
        }
    }

    /// A look for old pods was answered.
    pub(super) fn old_pods_found(&mut self, now: Timestamp, found: OldPods) {
        // One that was asked for before the predicate held again says nothing of now.
        let current = self.old_pods.is_asked() && !self.old_pods.is_outdated();
        self.old_pods.answered();
        let Some(barrier) = self.barrier.as_mut().filter(|_| current) else { return };
        if found.is_none() {
            barrier.quiet_since.get_or_insert(now);
        } else {
            barrier.again = Some(now.after(LOOK_EVERY));
        }
        barrier.found = Some(found);
    }

    /// It was not, for this reason.
    pub(super) fn old_pods_unseen(&mut self, now: Timestamp, why: &str) {
        if self.old_pods.is_asked() {
            self.old_pods.failed(self.again(now), short(why));
        }
    }

    /// The predicate does not hold any more, or nothing can be said of it.
    pub(super) fn leave_barrier(&mut self) {
        self.barrier = None;
        self.old_pods.outdate();
    }

    /// Something about the pods has changed, so it is worth looking now.
    pub(super) fn nudge(&mut self) {
        self.barrier.iter_mut().for_each(|barrier| barrier.again = None);
    }

    /// What a rollout at the barrier waits for, in words.
    pub(super) fn barrier_in_words(&self, now: Timestamp) -> Option<String> {
        let barrier = self.barrier.as_ref()?;
        let (settle, bound) = (self.policy.settle, self.policy.drain_timeout);
        let waits = match barrier.quiet_since {
            Some(_) => format!("no old pod serves any more; settling for {}", words::duration(settle)),
            None => {
                let waited = words::duration(now.since(barrier.since));
                format!("{}, {waited} of {} at most", barrier.hindrance(&self.old_pods), words::duration(bound))
            }
        };
        Some(format!("every pod is new and available; {waits}"))
    }

    /// When a rollout at the barrier next needs attention without any event.
    pub(super) fn barrier_deadline(&self) -> Option<Timestamp> {
        let draft = self.record.draft.as_ref().filter(|draft| draft.phase == Phase::Rolling)?;
        let barrier = self.barrier.as_ref().filter(|barrier| barrier.seq == draft.seq)?;
        self.workload().map(|_| barrier.deadline(self.policy.settle, self.policy.drain_timeout))
    }
}
