//! The promises that a Repo checks on its own effects.

use crate::owned::{self, OwnMachine};
use crate::repo::status::{Ended, Phase, Run, Status};
use crate::repo::unlock::unlocks;
use crate::repo::{Effect, Repo};
use kernel::promise::Promise;

/// The promises that an effect would break.
pub(super) fn broken_by(repo: &Repo, effect: &Effect) -> Vec<Promise> {
    let durable = repo.durable();
    let is = |name: &str, uid: Option<&str>, phase: Phase| {
        [durable.run.as_ref(), durable.look(), durable.destroy.as_ref()].into_iter().flatten().any(|run| {
            run.phase == phase
                && run.job.as_ref().is_some_and(|job| job.name == name && (uid.is_none() || job.uid.as_deref() == uid))
        })
    };
    let broken = |holds: bool, promise| if holds { Vec::new() } else { vec![promise] };
    match effect {
        Effect::Object(owned::Effect::Store(status, _)) => may_follow(durable, status),
        Effect::Make(order) => {
            let is_agreed = order.unlock.as_ref() == unlocks(durable, order.attempt);
            broken(is(&order.name, None, Phase::Starting) && is_agreed, Promise::JobsDurable)
        }
        Effect::Start(job) => {
            let is_durable = is(&job.name, Some(job.uid.as_str()), Phase::Started);
            let mut all = broken(is_durable, Promise::JobsDurable);
            all.extend(broken(!job.marked && job.suspended, Promise::StartedOnce));
            all
        }
        // Nothing of it has run, by what was seen; what its pods say later decides.
        Effect::Withdraw(job) => broken(
            is(&job.name, Some(job.uid.as_str()), Phase::Started) && job.marked != job.suspended,
            Promise::LeftAlone,
        ),
        // What may run is removed only once its end is recorded.
        Effect::Remove(name, uid) => broken(
            !is(name, Some(uid.as_str()), Phase::Started) && !is(name, None, Phase::Starting),
            Promise::LeftAlone,
        ),
        // What may run ends first, and what became of it is recorded.
        Effect::Hold(held) => {
            broken(*held || durable.present().is_none_or(|run| run.phase != Phase::Started), Promise::LeftAlone)
        }
        Effect::Object(owned::Effect::Look | owned::Effect::Tell(_) | owned::Effect::End)
        | Effect::Resolve(_)
        | Effect::Compare(_)
        | Effect::WatchJobs(_)
        | Effect::LookAtJob(_)
        | Effect::ReadPods(..)
        | Effect::Ask(_)
        | Effect::SeeNeeds(_)
        | Effect::Report(_) => Vec::new(),
    }
}

/// The promises that a status breaks if it follows on `before` in one object.
pub fn may_follow(before: &Status, after: &Status) -> Vec<Promise> {
    let mut broken = Vec::new();
    if after.seq < before.seq {
        broken.push(Promise::RunSeqsRise);
    }
    if let (Some(was), Some(is)) = (&before.run, &after.run)
        && !run_may_follow(was, is, &after.history)
    {
        broken.push(Promise::RunsInOrder);
    }
    if let (Some(was), Some(is)) = (&before.destroy, &after.destroy)
        && !destroy_may_follow(was, is)
    {
        broken.push(Promise::RunsInOrder);
    }
    if let (Some(was), Some(is)) = (before.look(), after.look())
        && !look_may_follow(was, is)
    {
        broken.push(Promise::RunsInOrder);
    }
    broken
}

/// A look follows on another one that is over, which has none beside it in one write.
fn look_may_follow(was: &Run, is: &Run) -> bool {
    if was.attempt == is.attempt {
        return was.revision == is.revision && is.phase.may_follow(was.phase);
    }
    was.phase != Phase::Started && is.attempt > was.attempt
}

/// A destroy follows on another one of which nothing runs.
fn destroy_may_follow(was: &Run, is: &Run) -> bool {
    if was.attempt.seq == is.attempt.seq {
        return was.revision == is.revision
            && is.attempt.number >= was.attempt.number
            && is.phase.may_follow(was.phase);
    }
    was.phase != Phase::Started && is.attempt.seq > was.attempt.seq
}

fn run_may_follow(was: &Run, is: &Run, history: &[Ended]) -> bool {
    let (old, new) = ((was.attempt.seq, was.attempt.number), (is.attempt.seq, is.attempt.number));
    if new.0 != old.0 {
        // What may run is never left behind: its end is recorded, or what was found runs after it.
        let has_ended = history.iter().any(|ended| ended.seq == old.0 && ended.outcome != Phase::Superseded);
        return new.0 > old.0 && (was.phase != Phase::Started || has_ended || is.phase == Phase::Started);
    }
    // A Job that was found although the status did not know it.
    let is_found = new.1 > old.1 && is.phase == Phase::Started;
    new.1 >= old.1 && was.revision == is.revision && (is_found || is.phase.may_follow(was.phase))
}

impl Phase {
    /// Whether it may follow on `before` in one run.
    pub const fn may_follow(self, before: Self) -> bool {
        match before {
            Self::Waiting => matches!(self, Self::Waiting | Self::Starting | Self::Superseded),
            Self::Starting => matches!(self, Self::Starting | Self::Started | Self::Superseded),
            Self::Started => {
                matches!(
                    self,
                    Self::Started | Self::Waiting | Self::Planned | Self::Succeeded | Self::Failed | Self::Lost
                )
            }
            Self::Planned => matches!(self, Self::Planned | Self::Waiting | Self::Starting | Self::Superseded),
            // After a yes something else may take its place before that is written.
            Self::Failed => matches!(self, Self::Failed | Self::Waiting | Self::Starting | Self::Superseded),
            Self::Lost => matches!(self, Self::Lost | Self::Waiting | Self::Starting | Self::Superseded),
            Self::Succeeded => matches!(self, Self::Succeeded),
            Self::Superseded => matches!(self, Self::Superseded),
        }
    }
}
