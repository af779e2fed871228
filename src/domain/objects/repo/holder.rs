//! Who holds the lock of a state, as far as we see: a pod of a Job of ours, or somebody else.

use crate::repo::Repo;
use crate::repo::job::{self, StepKind};
use crate::repo::lock::{Holder, Lock};
use crate::repo::status::{Action, Attempt};
use crate::repo::unlock;
use kernel::id::RunSeq;

/// So many runs back an own Job is known by its name after it is gone …
const RUNS_BACK: u64 = 8;
/// … and so many attempts of each.
const ATTEMPTS_MAX: u32 = 16;

impl Repo {
    /// Whose lock is in the way of this step, and the cure: what answers the question about it, where it is one.
    pub(super) fn words_of_lock(&self, step: StepKind, lock: &Lock) -> String {
        let is_asked = unlock::precedes(step) && self.own.status.draft.look().is_none() && self.asks_about_locks();
        let asked = is_asked.then(|| unlock::command(&self.own.object.id));
        lock.words(&self.holder(lock), asked.as_deref())
    }

    pub(super) fn holder(&self, lock: &Lock) -> Holder {
        let (Some(name), Some(known)) = (lock.job(), self.jobs.known()) else { return Holder::Other };
        match known.get(name) {
            Some(job) if job.is_over() => Holder::Ended(name.to_owned()),
            Some(_) => Holder::Runs(name.to_owned()),
            None if self.has_named(name) => Holder::Gone(name.to_owned()),
            None => Holder::Other,
        }
    }

    /// Whether this is the name of a Job of one of its newest runs. The UID is in it, so no other Repo's Job has it.
    fn has_named(&self, name: &str) -> bool {
        let object = &self.own.object;
        let Some(newest) = self.own.status.draft.newest().map(|run| run.attempt.seq.0) else { return false };
        let mut seqs = newest.saturating_sub(RUNS_BACK)..=newest;
        seqs.any(|seq| {
            Action::ALL.into_iter().any(|action| {
                let mut numbers = 1..=ATTEMPTS_MAX;
                numbers.any(|number| {
                    job::name(&object.id, &object.uid, Attempt { seq: RunSeq(seq), action, number }) == name
                })
            })
        })
    }
}
