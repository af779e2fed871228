//! The barrier between a rollout that is complete by its counts and one that is complete for us.
//!
//! ```text
//! predicate holds ──▶ Draining ──no old pod serves──▶ Settling ──rollout.settle──▶ Complete
//!                        │  ◀──an old pod serves again────┘                           ▲
//!                        └──────────── rollout.drain_timeout ──────────────────▶ notice
//! ```
//!
//! Only another version, or an old pod that serves again, begins both anew. Counts and generations do not: while they say that
//! something is missing the decision waits, and the clocks go on ([`Held`]). [`GIVES_UP_AFTER`] both bounds it takes what there is, and
//! reports that: a writer that never stops must not keep a purge from being made (decision 49). Neither wait counts
//! towards the rollout timeout. The record needs no field for a passed bound: the phase is Complete then, and neither a
//! re-check nor a restart goes back behind it.
//!
//! Old pods are looked for at once, when the watch of pods shows that something has changed, and every [`LOOK_EVERY`]. Only a
//! fresh reading ends the wait: a watch may be late. Not for which pods are old; see [`crate::workloads::serving`].

use std::time::Duration;

use crate::bounds::policy::{AtBarrier, Policy};
use crate::records::record::Phase;
use crate::rollouts::rollout::served::move_edge;
use crate::rollouts::rollout::words::{AFTER_SETTLING, AFTER_THE_BARRIER, NEW_AND_AVAILABLE, settling, short, then};
use crate::rollouts::rollout::{Effect, Rollout};
use crate::workloads::beside::BESIDE_CURE;
use crate::workloads::readiness::{self, Held, Pods};
use crate::workloads::serving::OldPods;
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::id::Seq;
use kernel::machine::Timestamp;
use kernel::names::image::Version;
use kernel::text;
use kinds::reported::{Standing, Wait};
use notices::notice::Kind;

/// How often old pods are looked for while nothing is seen to change: pods end within 30 s by default, so this costs few
/// readings and delays a purge by a second on average, and only where an endpoint stops serving long before its pod ends.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How soon old pods are looked for again after the watch has shown that the last one is not ready any more: EndpointSlices follow
/// some ten milliseconds later. Each next look takes twice as long to come, up to [`LOOK_EVERY`]: eight for each time.
const LOOK_SOON: Duration = Duration::from_millis(10);

/// How much longer than `rollout.drain_timeout` and `rollout.settle` a rollout waits for a sight of what was wanted, once there was
/// one: a minute of a controller that lags, or of pods that an autoscaler adds (decision 49).
const GIVES_UP_AFTER: Duration = Duration::from_secs(60);

/// The barrier, and the looks for old pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Barrier {
    stood: Option<Stood>,
    waiting: Option<Waiting>,
    look: Call,
    /// The last rollout that came through because no old pod served.
    quiet: Option<Seq>,
    /// The version that an aborted update went back to is asked for.
    running: Option<Running>,
}

/// The version that runs, which only its pods know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Running {
    /// When they are looked at again.
    again: Option<Timestamp>,
    version: Option<Version>,
}

/// A rollout whose predicate has held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stood {
    /// Which rollout it is.
    seq: Seq,
    /// Since when, as far as this life knows.
    since: Timestamp,
    /// How long the rollout had taken then.
    took: Duration,
    held: Held,
}

/// A rollout that waits at the barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    /// Since when old pods are waited for.
    since: Timestamp,
    /// When old pods are looked for again although nothing was seen to change.
    again: Option<Timestamp>,
    /// How long after the next look the one after it follows; `None`: as usual.
    pace: Option<Duration>,
    /// Something was seen to change while a look was under way.
    nudged: bool,
    /// The old pods that the last look found.
    found: Option<OldPods>,
    /// Since when no old pod serves.
    quiet_since: Option<Timestamp>,
    /// When it may go on, or goes on without what is missing.
    next: Option<Timestamp>,
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
        let AtBarrier { settle, drain_timeout } = policy.barrier;
        Self { settle, drain: drain_timeout }
    }

    /// How long after the predicate has held it goes on with what there is.
    const fn all(self) -> Duration {
        self.drain.saturating_add(self.settle).saturating_add(GIVES_UP_AFTER)
    }
}

/// The next step of a rollout at the barrier.
pub(super) enum Pass {
    Wait,
    /// Look for old pods.
    Look,
    /// No old pod served for long enough.
    Quiet,
    Late(Duration),
}

impl Waiting {
    const fn new(since: Timestamp) -> Self {
        Self { since, again: None, pace: None, nudged: false, found: None, quiet_since: None, next: None }
    }

    /// Why an old pod may still serve.
    fn hindrance(&self, look: &Call) -> String {
        match (look.reason(), &self.found) {
            (Some(reason), _) => format!("cannot see whether old pods still serve: {reason}"),
            (None, Some(found)) => found.to_string(),
            (None, None) => "it is not known yet whether old pods still serve".to_owned(),
        }
    }

    /// Whether it is worth looking for old pods. One that stays may serve again; one that is gone does not come back.
    fn wants_look(&self, now: Timestamp) -> bool {
        let stays = self.quiet_since.is_none() || self.found.as_ref().is_some_and(OldPods::may_serve_again);
        stays && self.again.is_none_or(|at| at <= now)
    }
}

impl Barrier {
    /// The predicate of the rollout `seq` holds, or held already.
    pub(super) fn stands(&mut self, now: Timestamp, seq: Seq, took: Duration, workload: &Workload) {
        if !self.has_stood(seq) {
            self.leave();
            self.stood = Some(Stood { seq, since: now, took, held: Held::of(workload) });
        }
    }

    /// Whether the predicate of the rollout `seq` has held.
    pub(super) fn has_stood(&self, seq: Seq) -> bool {
        self.stood.as_ref().is_some_and(|stood| stood.seq == seq)
    }

    /// The unmet condition of a rollout whose predicate has held.
    pub(super) fn lacks(&self, now: Timestamp, workload: &Workload, policy: &Policy) -> Option<Wait> {
        let held = self.stood.as_ref()?.held;
        held.misses(workload, policy.zero_is_complete, self.gives_up(now, policy))
    }

    /// Whether a rollout whose predicate has held goes on with what there is.
    pub(super) fn gives_up(&self, now: Timestamp, policy: &Policy) -> bool {
        self.stood.as_ref().is_some_and(|stood| now.since(stood.since) >= Bounds::of(policy).all())
    }

    /// Whether a rollout whose predicate has held misses nothing now only because it has waited for so long.
    fn is_short(&self, workload: &Workload, policy: &Policy) -> bool {
        let held = self.stood.as_ref().map(|stood| stood.held);
        held.is_some_and(|held| held.misses(workload, policy.zero_is_complete, false).is_some())
    }

    /// The rollout whose predicate has held comes to the barrier, or is there still. `decides`: nothing is missing now; `short`: or
    /// something is, and it is not waited for any longer.
    fn pass(&mut self, now: Timestamp, bounds: Bounds, decides: bool, short: bool) -> Pass {
        let Some(Stood { seq, since: stood_since, .. }) = self.stood else { return Pass::Wait };
        let waiting = self.waiting.get_or_insert_with(|| Waiting::new(now));
        if bounds.drain.is_zero() {
            waiting.quiet_since.get_or_insert(waiting.since);
        }
        let ends = waiting.quiet_since.map_or(waiting.since.after(bounds.drain), |since| since.after(bounds.settle));
        let gives_up = stood_since.after(bounds.all());
        waiting.next = [ends, gives_up].into_iter().filter(|at| *at > now).min();
        let (quiet, ended) = (waiting.quiet_since.is_some() && !short, ends <= now && !short);
        if decides && (ended || gives_up <= now) {
            self.quiet = Some(seq).filter(|_| quiet && ended);
            return match self.quiet {
                Some(_) => Pass::Quiet,
                None if ended => Pass::Late(bounds.drain),
                None => Pass::Late(bounds.all()),
            };
        }
        if self.look.is_due(now) && waiting.wants_look(now) {
            self.look.asked();
            (waiting.again, waiting.nudged) = (None, false);
            return Pass::Look;
        }
        Pass::Wait
    }

    /// Whether the rollout `seq` came through because no old pod served.
    pub(super) fn was_quiet(&self, seq: Seq) -> bool {
        self.quiet == Some(seq)
    }

    /// What serves another version beside the pods that were waited for.
    fn beside(&self) -> Option<&str> {
        self.waiting.as_ref()?.found.as_ref()?.beside()
    }

    /// A look for old pods was answered.
    pub(super) fn looked(&mut self, now: Timestamp, found: OldPods) {
        // An answer to a question about another version says nothing about now.
        let current = self.look.is_asked() && !self.look.is_outdated();
        self.look.answered();
        if let Some(running) = self.running.as_mut().filter(|_| current) {
            running.version = found.runs().cloned();
            running.again = Some(now.after(LOOK_EVERY));
            return;
        }
        let Some(waiting) = self.waiting.as_mut().filter(|_| current) else { return };
        if found.is_none() {
            waiting.quiet_since.get_or_insert(now);
        } else if waiting.quiet_since.take().is_some() {
            waiting.since = now;
        }
        if waiting.nudged {
            waiting.again = None;
        } else {
            let pace = waiting.pace.take().filter(|pace| *pace < LOOK_EVERY && !found.is_none());
            waiting.pace = pace.map(|pace| pace.saturating_mul(2));
            waiting.again = Some(now.after(pace.unwrap_or(LOOK_EVERY)));
        }
        waiting.found = Some(found);
    }

    /// It was not, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if self.look.is_asked() {
            self.look.failed(again, why);
        }
    }

    /// The version that an aborted update went back to, as far as its pods were seen.
    pub(super) fn running(&self) -> Option<&Version> {
        self.running.as_ref()?.version.as_ref()
    }

    /// Whether pods are to be looked at for it now. Until it is known they are looked at again and again.
    pub(super) fn asks_what_runs(&mut self, now: Timestamp) -> bool {
        let running = self.running.get_or_insert_default();
        let due = running.version.is_none() && running.again.is_none_or(|at| at <= now) && self.look.is_due(now);
        if due {
            self.look.asked();
        }
        due
    }

    /// Why it is not known what runs, if it cannot be seen.
    pub(super) fn cannot_see(&self) -> Option<&str> {
        self.running.as_ref().and_then(|_| self.look.reason())
    }

    /// It is not asked for any longer what runs.
    pub(super) fn ask_no_more(&mut self) {
        if self.running.take().is_some() {
            self.look.outdate();
        }
    }

    /// Another version, or none that can be judged.
    pub(super) fn leave(&mut self) {
        self.waiting = None;
        self.look.outdate();
    }
}

impl Barrier {
    /// Other pods are on their way out than `before`, or others of them are ready: it is worth looking now.
    pub(super) fn nudge(&mut self, before: Option<&Pods>, pods: &Pods) {
        let going = |pods: &Pods| (pods.leaving, pods.leaving_ready);
        let Some(waiting) = self.waiting.as_mut().filter(|_| before.map(going) != Some(going(pods))) else { return };
        (waiting.again, waiting.nudged) = (None, true);
        if pods.leaving_ready == 0 {
            waiting.pace = Some(LOOK_SOON);
        }
    }

    /// The wait of a rollout at the barrier, in words. `missing` has the words for its unmet condition.
    fn words(
        &self,
        now: Timestamp,
        workload: &Workload,
        policy: &Policy,
        missing: impl FnOnce(&Wait) -> String,
    ) -> Option<(String, &'static str)> {
        let (stood, waiting) = (self.stood.as_ref()?, self.waiting.as_ref()?);
        let bounds = Bounds::of(policy);
        let ago = text::duration(now.since(stood.since));
        let has = match (workload.standing(policy.zero_is_complete), self.lacks(now, workload, policy)) {
            (Standing::Complete, _) => NEW_AND_AVAILABLE.to_owned(),
            (_, None) => format!(
                "every pod was new and available {ago} ago, and pods wanted since then are not waited for ({} of {})",
                workload.replicas.available, workload.replicas.desired
            ),
            (_, Some(wait)) => format!("every pod was new and available {ago} ago; now {}", missing(&wait)),
        };
        let waits = match waiting.quiet_since {
            Some(since) if now.since(since) >= bounds.settle => "no old pod serves any more".to_owned(),
            Some(_) => settling(policy),
            None => {
                let waited = text::duration(now.since(waiting.since));
                let hindrance = waiting.hindrance(&self.look);
                format!("{hindrance}, {waited} of {} at most", text::duration(bounds.drain))
            }
        };
        let next = if waiting.quiet_since.is_some() { AFTER_SETTLING } else { AFTER_THE_BARRIER };
        Some((format!("{has}; {waits}"), next))
    }

    /// Why it goes on although it has not waited for all: what is missing when the bound passes.
    fn late(&self, now: Timestamp, workload: &Workload, policy: &Policy) -> String {
        let missing = match workload.standing(policy.zero_is_complete) {
            Standing::Waiting(wait) => Some(wait.to_string()),
            Standing::Complete | Standing::GivenUp(_) => None,
        };
        let old = self.waiting.as_ref().and_then(|waiting| match waiting.quiet_since {
            None => Some(waiting.hindrance(&self.look)),
            Some(since) if now.since(since) >= policy.barrier.settle => None,
            Some(since) => {
                let quiet = text::duration(now.since(since));
                Some(format!("an old pod served until {quiet} ago"))
            }
        });
        missing.into_iter().chain(old).collect::<Vec<_>>().join("; ")
    }

    /// Ends every pause that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.look.wake(now);
        if let Some(running) = &mut self.running {
            running.again = running.again.filter(|at| *at > now);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.again = waiting.again.filter(|at| *at > now);
            waiting.next = waiting.next.filter(|at| *at > now);
        }
    }

    /// When old pods may be looked for again after a failure or, while the rollout `seq` waits here, something is due.
    fn deadline(&self, seq: Option<Seq>) -> Option<Timestamp> {
        let waiting = self.waiting.as_ref().filter(|_| seq.is_some_and(|seq| self.has_stood(seq)));
        let look = |waiting: &Waiting| waiting.again.filter(|at| waiting.wants_look(*at));
        let due = waiting.into_iter().flat_map(|waiting| [waiting.next, look(waiting)]).flatten();
        let running = self.running.as_ref().filter(|running| running.version.is_none() && self.look.is_idle());
        due.chain(running.and_then(|running| running.again)).chain(self.look.deadline()).min()
    }
}

impl Rollout {
    /// Holds a rollout whose predicate has held until no old pod serves any more, and then completes it. `decides`: nothing of what
    /// it had then is missing now.
    pub(super) fn hold(&mut self, now: Timestamp, workload: &Workload, decides: bool) -> Option<Effect> {
        let seq = self.record.draft.as_ref()?.seq;
        if decides {
            self.stopwatch.stop(now, &mut self.record.draft);
            self.barrier.stands(now, seq, self.elapsed(now), workload);
        }
        let bounds = Bounds::of(&self.policy);
        let overdue = self.barrier.is_short(workload, &self.policy);
        match self.barrier.pass(now, bounds, decides, overdue) {
            Pass::Wait => {}
            Pass::Look => return Some(Effect::FindOldPods(Box::new(workload.clone()))),
            Pass::Quiet => self.complete(now, workload, ""),
            Pass::Late(bound) => {
                let why = self.barrier.late(now, workload, &self.policy);
                let after = text::duration(bound);
                let beside = self.barrier.beside().map_or_else(String::new, |words| format!("; {}", short(words)));
                self.complete(now, workload, &format!("; not waited for any longer than {after}: {why}"));
                if let Some(draft) = &mut self.record.draft {
                    draft.remark = format!("went on after {after}{}{beside}", then(short(&why)));
                }
                let what = if bound == bounds.drain {
                    "what an old pod answers from now on may bring the old version back to the edge. Let pods end sooner, or \
                     raise rollout.drain_timeout"
                } else {
                    "it goes on with the pods there are. See whether something changes the workload over and over (its \
                     managedFields name the writers), and whether its controller lags"
                };
                let message = format!("{why}, {after} after all pods were new and available; {what}");
                self.announce(now, Kind::WorkloadFaulty, message);
            }
        }
        None
    }

    /// The wait is over; `remark` names what was still missing.
    fn complete(&mut self, now: Timestamp, workload: &Workload, remark: &str) {
        let beside = self.barrier.beside().map(str::to_owned);
        self.stop_clock(now);
        let Some(Stood { took, held, .. }) = self.barrier.stood else { return };
        // A life that began just now cannot say how long it took.
        let after = if took.as_secs() == 0 { String::new() } else { format!(" after {}", text::duration(took)) };
        let with = beside.as_ref().map_or_else(String::new, |words| format!("; {words}; {BESIDE_CURE}"));
        let wanted = workload.replicas.desired;
        let more = if wanted == held.wanted { String::new() } else { format!("; {wanted} are wanted now") };
        let Some(draft) = &mut self.record.draft else { return };
        draft.phase = Phase::Complete;
        beside.iter().for_each(|words| short(words).clone_into(&mut draft.remark));
        draft.times.completed_ms = self.identity.time_kept(now);
        move_edge(draft, self.policy.version.same_digest_is_same);
        self.announce(
            now,
            Kind::RolloutCompleted,
            format!("all {} pods available{after}{more}{remark}{with}", held.wanted),
        );
    }

    /// A rollout at the barrier in words.
    pub(super) fn words_at_the_barrier(&self, now: Timestamp) -> Option<(String, &'static str)> {
        let missing = |wait: &Wait| match wait {
            // Its clock stands still; this has a bound of its own.
            Wait::NotObserved { .. } => {
                format!("{wait}, waited for {} at most", text::duration(Bounds::of(&self.policy).all()))
            }
            wait if !wait.counts() => wait.to_string(),
            wait => format!("{}, {}", readiness::words(wait, self.served.pods()), self.clock(now).left()),
        };
        self.barrier.words(now, self.workload()?, &self.policy, missing)
    }

    /// When a rollout at the barrier next needs attention without any event.
    pub(super) fn barrier_deadline(&self) -> Option<Timestamp> {
        let draft = self.record.draft.as_ref().filter(|draft| draft.phase == Phase::Rolling);
        let seq = draft.filter(|_| self.workload().is_some()).map(|draft| draft.seq);
        self.barrier.deadline(seq)
    }
}
