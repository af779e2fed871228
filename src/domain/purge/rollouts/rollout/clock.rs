//! The rollout's clock: it counts the time towards a timeout, can stand still, begins anew after each hold, and survives restarts in the
//! record.

use std::time::Duration;

use crate::bounds::policy::Policy;
use crate::records::record::Record;
use crate::rollouts::rollout::Rollout;
use crate::workloads::workload::Workload;
use kernel::machine::{Timestamp, millis};
use kernel::text::duration;
use kinds::reported::GivenUp;

/// How often the elapsed part of the rollout timeout is stored: a restart forgets at most this much of it.
pub(super) const ELAPSED_STORED_EVERY: Duration = Duration::from_secs(60);

/// The time for the Deployment controller beyond a Deployment's own deadline, to report that it has passed: its report
/// and the look that confirms it take seconds, an overloaded controller up to a minute.
const DEADLINE_MARGIN: Duration = Duration::from_secs(60);

/// What a controller says of a missed deadline or an abort must be seen twice, this far apart: a stale report can survive the first status
/// write of a new generation, and the controller corrects it within one sync.
const CONFIRMED_AFTER: Duration = Duration::from_secs(2);

/// The same of Argo Rollouts' `Degraded`, which also passes by itself, as when a Service is missing for a moment.
const DEGRADED_CONFIRMED_AFTER: Duration = Duration::from_secs(10);

/// The measurements of one rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Stopwatch {
    /// Since when it runs; `None` while it stands still.
    since: Option<Timestamp>,
    /// It was seen once that its controller has given up.
    pub(super) suspicion: Option<Suspicion>,
}

/// The report of a controller that it has given up, seen once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Suspicion {
    pub(super) since: Timestamp,
    pub(super) why: GivenUp,
}

impl Suspicion {
    /// Whether the same was reported anew since, which is as good as time that passes.
    pub(super) fn is_repeated(&self, now: &GivenUp) -> bool {
        match (&self.why, now) {
            (GivenUp::DeadlineExceeded { last_update: before }, GivenUp::DeadlineExceeded { last_update: now }) => {
                before != now
            }
            (
                GivenUp::DeadlineExceeded { .. } | GivenUp::Aborted(_) | GivenUp::Degraded(_) | GivenUp::Declared(_),
                _,
            ) => false,
        }
    }

    /// When a fresh look that shows it still is believed.
    pub(super) fn is_confirmed_at(&self) -> Timestamp {
        self.since.after(match &self.why {
            GivenUp::DeadlineExceeded { .. } | GivenUp::Aborted(_) => CONFIRMED_AFTER,
            GivenUp::Degraded(_) | GivenUp::Declared(_) => DEGRADED_CONFIRMED_AFTER,
        })
    }
}

impl Stopwatch {
    /// Since when it runs; `None` while it stands still.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub(super) fn runs(&self) -> bool {
        self.since.is_some()
    }

    /// A rollout begins now.
    pub(super) fn start(&mut self, now: Timestamp) {
        *self = Self { since: Some(now), suspicion: None };
    }

    /// The time waited for this rollout since it began or was last held.
    pub(super) fn elapsed(&self, now: Timestamp, draft: Option<&Record>) -> Duration {
        let stored = draft.map_or(Duration::ZERO, Record::elapsed);
        self.since.map_or(stored, |since| stored.saturating_add(now.since(since)))
    }

    /// Moves what has elapsed into the draft, and lets it run on or stand still.
    pub(super) fn keep(&mut self, now: Timestamp, runs: bool, draft: &mut Option<Record>) {
        let elapsed = self.elapsed(now, draft.as_ref());
        draft.iter_mut().for_each(|draft| draft.elapsed_ms = millis(elapsed));
        self.since = runs.then_some(now);
    }

    /// Lets it stand still, and forgets what was suspected.
    pub(super) fn stop(&mut self, now: Timestamp, draft: &mut Option<Record>) {
        self.suspicion = None;
        if self.runs() {
            self.keep(now, false, draft);
        }
    }

    /// Lets it stand still where the draft counts from zero again.
    pub(super) fn clear(&mut self) {
        self.since = None;
    }

    /// Whether the elapsed part is to be stored.
    pub(super) fn is_store_due(&self, now: Timestamp) -> bool {
        self.since.is_some_and(|since| now.since(since) >= ELAPSED_STORED_EVERY)
    }
}

/// How much of a rollout's time has passed.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) elapsed: Duration,
    pub(super) timeout: Duration,
    /// As of now. The record is up to a minute behind ([`ELAPSED_STORED_EVERY`]), so by it at most so much is left.
    pub(super) runs_here: bool,
}

impl Clock {
    pub(super) fn left(self) -> String {
        let left = duration(self.timeout.saturating_sub(self.elapsed));
        let most = if self.runs_here { "" } else { "at most " };
        format!("{most}{left} of {} left", duration(self.timeout))
    }

    /// Words for a clock that does not run: a number that never changes would look like a running one.
    pub(super) fn stopped(self) -> String {
        if self.elapsed < Duration::from_secs(1) {
            return "the clock stands still".to_owned();
        }
        format!("the clock stands still at {} of {}", duration(self.elapsed), duration(self.timeout))
    }
}

impl Rollout {
    /// The time waited for this rollout since it began or was last held.
    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        self.stopwatch.elapsed(now, self.record.draft.as_ref())
    }

    /// How much of its time has passed by now.
    pub(super) fn clock(&self, now: Timestamp) -> Clock {
        Clock { elapsed: self.elapsed(now), timeout: self.timeout(), runs_here: true }
    }

    /// Nothing counts towards a timeout for now, and nothing waits at the barrier.
    pub(super) fn stop_clock(&mut self, now: Timestamp) {
        self.barrier.leave();
        self.stopwatch.stop(now, &mut self.record.draft);
    }

    pub(super) fn timeout(&self) -> Duration {
        timeout(self.workload(), &self.policy)
    }
}

/// How long a rollout may take: the owner's annotation, unchanged; else `rollout.timeout`, or longer if the Deployment
/// gives its pods longer.
pub fn timeout(workload: Option<&Workload>, policy: &Policy) -> Duration {
    let Some(deadlines) = workload.map(|workload| workload.tuning.deadlines) else { return policy.rollout_timeout };
    let own = deadlines.own.map(|deadline| deadline.saturating_add(DEADLINE_MARGIN));
    deadlines.rollout_timeout.unwrap_or_else(|| own.unwrap_or_default().max(policy.rollout_timeout))
}
