//! The barrier between a rollout that is complete by its counts and one that is complete for us.
//!
//! ```text
//! predicate holds ──▶ Draining ──no old pod serves──▶ Settling ──rollout.settle──▶ Complete
//!                        └──────────── rollout.drain_timeout ───────────────────────▶ Complete, and told
//! ```
//!
//! If the predicate stops holding, both begin anew. Neither counts towards the rollout timeout. The record needs no field
//! for the passed bound: the phase is Complete then, and neither a re-check nor a restart goes back behind it.
//!
//! Old pods are looked for at once, when the watch of pods shows that something has changed, and every [`LOOK_EVERY`]. Only a
//! fresh reading ends the wait: a watch may be late. Not for which pods are old; see [`crate::serving`].

use std::time::Duration;

use crate::call::Call;
use crate::id::Seq;
use crate::machine::Timestamp;
use crate::notice::Kind;
use crate::policy::Policy;
use crate::record::Phase;
use crate::rollout::served::move_edge;
use crate::rollout::{Effect, Rollout, words};
use crate::serving::OldPods;
use crate::workload::Workload;

/// How often old pods are looked for while nothing is seen to change: pods end within 30 s by default, so this costs few
/// readings and delays a purge by a second on average, and only where an endpoint stops serving long before its pod ends.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The barrier, and the looks for old pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Barrier {
    waiting: Option<Waiting>,
    look: Call,
    /// The last rollout that came through because no old pod served.
    quiet: Option<Seq>,
}

/// A rollout that waits at the barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
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

/// How long a rollout waits at the barrier.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// After no old pod serves any more.
    settle: Duration,
    /// For old pods at most.
    drain: Duration,
}

impl Bounds {
    /// As the policy has them.
    pub(super) const fn of(policy: &Policy) -> Self {
        Self { settle: policy.settle, drain: policy.drain_timeout }
    }
}

/// What a rollout at the barrier does now.
pub(super) enum Pass {
    Wait,
    /// Look for old pods.
    Look,
    /// No old pod served for long enough.
    Quiet,
    /// The bound passed; this is what the rollout still waited for.
    Late(String),
}

impl Waiting {
    /// Why an old pod may still serve.
    fn hindrance(&self, look: &Call) -> String {
        match (look.reason(), &self.found) {
            (Some(reason), _) => format!("cannot see whether old pods still serve: {reason}"),
            (None, Some(found)) => found.to_string(),
            (None, None) => "it is not known yet whether old pods still serve".to_owned(),
        }
    }
}

impl Barrier {
    /// The rollout `seq` comes to the barrier, or is there still.
    pub(super) fn pass(&mut self, now: Timestamp, seq: Seq, bounds: Bounds) -> Pass {
        if self.waiting.as_ref().is_none_or(|waiting| waiting.seq != seq) {
            self.leave();
        }
        let fresh = || Waiting { seq, since: now, again: None, found: None, quiet_since: None };
        let waiting = self.waiting.get_or_insert_with(fresh);
        if bounds.drain.is_zero() {
            waiting.quiet_since.get_or_insert(waiting.since);
        }
        match waiting.quiet_since {
            Some(since) if now.since(since) >= bounds.settle => {
                self.quiet = Some(seq);
                Pass::Quiet
            }
            Some(_) => Pass::Wait,
            None if now.since(waiting.since) >= bounds.drain => {
                self.quiet = None;
                Pass::Late(waiting.hindrance(&self.look))
            }
            None if self.look.is_due(now) && waiting.again.is_none_or(|at| at <= now) => {
                self.look.asked();
                waiting.again = None;
                Pass::Look
            }
            None => Pass::Wait,
        }
    }

    /// Whether the rollout `seq` came through because no old pod served.
    pub(super) fn was_quiet(&self, seq: Seq) -> bool {
        self.quiet == Some(seq)
    }

    /// A look for old pods was answered.
    pub(super) fn looked(&mut self, now: Timestamp, found: OldPods) {
        // An answer to a question from before the predicate held again says nothing about now.
        let current = self.look.is_asked() && !self.look.is_outdated();
        self.look.answered();
        let Some(waiting) = self.waiting.as_mut().filter(|_| current) else { return };
        if found.is_none() {
            waiting.quiet_since.get_or_insert(now);
        } else {
            waiting.again = Some(now.after(LOOK_EVERY));
        }
        waiting.found = Some(found);
    }

    /// It was not, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if self.look.is_asked() {
            self.look.failed(again, why);
        }
    }

    /// The predicate no longer holds, or cannot be judged.
    pub(super) fn leave(&mut self) {
        self.waiting = None;
        self.look.outdate();
    }

    /// Something about the pods has changed, so it is worth looking now.
    pub(super) fn nudge(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.again = None);
    }

    /// What a rollout at the barrier waits for, in words.
    pub(super) fn words(&self, now: Timestamp, bounds: Bounds) -> Option<String> {
        let waiting = self.waiting.as_ref()?;
        let waits = match waiting.quiet_since {
            Some(_) => format!("no old pod serves any more; settling for {}", words::duration(bounds.settle)),
            None => {
                let waited = words::duration(now.since(waiting.since));
                let hindrance = waiting.hindrance(&self.look);
                format!("{hindrance}, {waited} of {} at most", words::duration(bounds.drain))
            }
        };
        Some(format!("every pod is new and available; {waits}"))
    }

    /// Ends a rest that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.look.wake(now);
    }

    /// When old pods may be looked for again after a failure or, while the rollout `seq` waits here, something is due.
    pub(super) fn deadline(&self, seq: Option<Seq>, bounds: Bounds) -> Option<Timestamp> {
        let due = |waiting: &Waiting| match waiting.quiet_since {
            Some(since) => since.after(bounds.settle),
            None => {
                let end = waiting.since.after(bounds.drain);
                waiting.again.map_or(end, |at| at.min(end))
            }
        };
        let waiting = self.waiting.as_ref().filter(|waiting| Some(waiting.seq) == seq);
        waiting.map(due).into_iter().chain(self.look.deadline()).min()
    }
}

impl Rollout {
    /// Holds a rollout whose predicate holds until no old pod serves any more, and then completes it.
    pub(super) fn hold(&mut self, now: Timestamp, workload: &Workload) -> Option<Effect> {
        let seq = self.record.draft.as_ref()?.seq;
        self.stopwatch.stop(now, &mut self.record.draft);
        match self.barrier.pass(now, seq, Bounds::of(&self.policy)) {
            Pass::Wait => None,
            Pass::Look => Some(Effect::FindOldPods(Box::new(workload.clone()))),
            Pass::Quiet => {
                self.complete(now, "");
                None
            }
            Pass::Late(why) => {
                let bound = words::duration(self.policy.drain_timeout);
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

    /// The wait is over; `remark` names what was still missing.
    fn complete(&mut self, now: Timestamp, remark: &str) {
        self.stop_clock(now);
        let elapsed = self.elapsed(now);
        // A life that began just now cannot say how long it took.
        let after = if elapsed.as_secs() == 0 { String::new() } else { format!(" after {}", words::duration(elapsed)) };
        let pods = self.workload().map_or(0, |workload| workload.replicas.updated);
        let Some(draft) = &mut self.record.draft else { return };
        draft.phase = Phase::Complete;
        draft.times.completed_ms = self.identity.time_kept(now);
        move_edge(draft, self.policy.same_digest_is_same);
        self.announce(now, Kind::RolloutCompleted, format!("all {pods} pods available{after}{remark}"));
    }

    /// When a rollout at the barrier next needs attention without any event.
    pub(super) fn barrier_deadline(&self) -> Option<Timestamp> {
        let draft = self.record.draft.as_ref().filter(|draft| draft.phase == Phase::Rolling);
        let seq = draft.filter(|_| self.workload().is_some()).map(|draft| draft.seq);
        self.barrier.deadline(seq, Bounds::of(&self.policy))
    }
}
