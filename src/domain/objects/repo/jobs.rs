//! The Jobs of a Repo, as far as they are known, and the calls about the one that matters now.
//!
//! A watch may be older than an answer of our own: a Job that was started or has ended is never taken for one that was
//! not.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::repo::job::{Job, Made, Pod, Start};
use crate::repo::witness::Witness;
use kernel::call::Call;
use kernel::machine::Timestamp;

/// How long we leave another's Job alone that has a name of ours, before we try again: a person has to remove it.
const TAKEN_PAUSE: Duration = Duration::from_mins(1);

/// The pause after a Job was refused for its content: a person has to correct it, or the policy that refuses it.
const LASTING_PAUSE: Duration = Duration::from_mins(10);

/// How soon pods are looked at again that are about to end.
const ENDING_PAUSE: Duration = Duration::from_secs(2);

/// The Jobs of a Repo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Jobs {
    watching: bool,
    /// The watch is still that of another object of this name.
    misdirected: bool,
    /// By name; `None` until they were listed.
    known: Option<BTreeMap<String, Job>>,
    /// Why they are not watched.
    trouble: Option<String>,
    /// Pods, as the same watch shows them.
    pub(super) witness: Witness,
    present: Present,
    /// The Job that is being removed.
    removing: Option<String>,
    pub(super) remove: Call,
}

/// The Job that matters now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Present {
    name: String,
    pub(super) make: Call,
    pub(super) start: Call,
    pub(super) withdraw: Call,
    pub(super) look: Call,
    pub(super) pods: Call,
    /// Its name is another's.
    pub(super) taken: bool,
    /// A fresh look did not find it.
    pub(super) absent: bool,
    /// Its known state is out of date: it is read again before any action.
    pub(super) outdated: bool,
    /// Its pods after its end, with none alive.
    read: Option<Vec<Pod>>,
    /// The Job whose pods are read: another Job may have its name by now.
    pods_of: String,
}

impl Jobs {
    /// Whether a watch is under way, also that of another object of this name.
    pub(super) const fn is_watching(&self) -> bool {
        self.watching || self.misdirected
    }

    /// Whether they are to be watched from now on; says so if that is another thing than before.
    pub(super) fn watch(&mut self, wanted: bool) -> Option<bool> {
        if self.watching == wanted && !self.misdirected {
            return None;
        }
        (self.watching, self.misdirected) = (wanted, false);
        if !wanted {
            (self.known, self.trouble) = (None, None);
            self.witness.forget();
        }
        Some(wanted)
    }

    /// The object of this name is another one now: its Jobs are others, too.
    pub(super) fn belong_to_another(&mut self, was_watching: bool) {
        self.misdirected = was_watching;
    }

    /// All that there are; `None` until they were listed.
    pub(super) const fn known(&self) -> Option<&BTreeMap<String, Job>> {
        self.known.as_ref()
    }

    /// Why they cannot be listed.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The Job of this name and the calls about it. What was asked about another is forgotten.
    pub(super) fn focus(&mut self, name: &str) -> (Option<Job>, &mut Present) {
        if self.present.name != name {
            self.present = Present { name: name.to_owned(), ..Present::default() };
        }
        (self.known.as_ref().and_then(|known| known.get(name)).cloned(), &mut self.present)
    }

    pub(super) fn listed(&mut self, all: Vec<Job>) {
        if !self.watching {
            return;
        }
        let before = self.known.take().unwrap_or_default();
        self.known = Some(BTreeMap::new());
        for job in all {
            let newer = before.get(&job.name).filter(|known| is_stale(known, &job)).cloned();
            self.seen(newer.unwrap_or(job));
        }
        self.trouble = None;
    }

    pub(super) fn seen(&mut self, job: Job) {
        let Some(known) = &mut self.known else { return };
        if known.get(&job.name).is_some_and(|known| is_stale(known, &job)) {
            return;
        }
        if self.present.name == job.name {
            self.present.absent = false;
        }
        known.insert(job.name.clone(), job);
    }

    pub(super) fn pods_listed(&mut self, all: Vec<Pod>) {
        if self.watching {
            self.witness.listed(all);
        }
    }

    pub(super) fn gone(&mut self, name: &str) {
        if let Some(known) = &mut self.known {
            known.remove(name);
        }
    }

    pub(super) fn unseen(&mut self, why: String) {
        self.trouble = Some(why);
    }

    fn present(&mut self, name: &str) -> Option<&mut Present> {
        Some(&mut self.present).filter(|present| present.name == name)
    }

    pub(super) fn made(&mut self, now: Timestamp, name: &str, made: Made) {
        match made {
            Made::Ours(job) => {
                if let Some(present) = self.present(name) {
                    present.make.answered();
                    present.taken = false;
                }
                self.seen(*job);
            }
            Made::Taken => {
                if let Some(present) = self.present(name) {
                    present.taken = true;
                    present.make.answered_until(now.after(TAKEN_PAUSE));
                }
            }
        }
    }

    /// A failure that only a person can mend is tried rarely; another spec makes another Job, which is tried at once.
    pub(super) fn make_failed(
        &mut self,
        now: Timestamp,
        name: &str,
        again: impl FnOnce(u32) -> Timestamp,
        why: String,
        lasting: bool,
    ) {
        if let Some(present) = self.present(name) {
            present.make.failed(|failures| if lasting { now.after(LASTING_PAUSE) } else { again(failures) }, why);
        }
    }

    pub(super) fn start_answered(&mut self, name: &str, start: Start) {
        if let Some(present) = self.present(name) {
            present.start.answered();
            present.outdated = start == Start::Refused;
        }
        if let Start::Done(job) = start {
            self.seen(*job);
        }
    }

    pub(super) fn start_failed(&mut self, name: &str, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(present) = self.present(name) {
            present.start.failed(again, why);
        }
    }

    pub(super) fn looked(&mut self, name: &str, job: Option<Job>) {
        if let Some(present) = self.present(name) {
            present.look.answered();
            present.outdated = false;
            present.absent = job.is_none();
        }
        match job {
            Some(job) => {
                // Fresher than whatever a watch has shown: another Job of this name, too.
                if self.known.as_ref().and_then(|known| known.get(name)).is_some_and(|known| known.uid != job.uid) {
                    self.gone(name);
                }
                self.seen(job);
            }
            None => self.gone(name),
        }
    }

    pub(super) fn withdrawn(&mut self, name: &str, again: impl FnOnce(u32) -> Timestamp, answer: Start) {
        let Some(present) = self.present(name) else { return };
        match answer {
            Start::Done(job) => {
                present.withdraw.answered();
                self.seen(*job);
            }
            // What is known of it may be older than what a watch has shown: the answer to its start can come after that.
            Start::Refused => {
                present.outdated = true;
                present.withdraw.repeat(again);
            }
        }
    }

    pub(super) fn withdraw_failed(&mut self, name: &str, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(present) = self.present(name) {
            present.withdraw.failed(again, why);
        }
    }

    pub(super) fn look_failed(&mut self, name: &str, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(present) = self.present(name) {
            present.look.failed(again, why);
        }
    }

    fn present_of(&mut self, uid: &str) -> Option<&mut Present> {
        Some(&mut self.present).filter(|present| present.pods_of == uid)
    }

    pub(super) fn pods_read(&mut self, now: Timestamp, uid: &str, pods: Vec<Pod>) {
        let Some(present) = self.present_of(uid) else { return };
        present.pods.answered_until(now.after(ENDING_PAUSE));
        present.read = Some(pods).filter(|pods| pods.iter().all(|pod| !pod.alive));
    }

    pub(super) fn pods_failed(&mut self, uid: &str, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(present) = self.present_of(uid) {
            present.pods.failed(again, why);
        }
    }

    /// Whether a removal has not been answered.
    pub(super) const fn is_removing(&self) -> bool {
        self.removing.is_some()
    }

    /// The Job that is removed now, if none is under way.
    pub(super) fn begin_removal(&mut self, now: Timestamp, name: &str) -> bool {
        self.remove.wake(now);
        if !self.remove.is_due(now) {
            return false;
        }
        self.removing = Some(name.to_owned());
        self.remove.asked();
        true
    }

    pub(super) fn removed(&mut self, name: &str) {
        if self.removing.as_deref() == Some(name) {
            self.removing = None;
            self.remove.answered();
        }
        self.gone(name);
    }

    pub(super) fn remove_failed(&mut self, name: &str, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if self.removing.as_deref() == Some(name) {
            self.remove.failed(again, why);
        }
    }

    /// Runs all paused calls now.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        let Present { make, start, withdraw, look, pods, .. } = &mut self.present;
        [make, start, withdraw, look, pods, &mut self.remove].into_iter().for_each(|call| call.hurry(now));
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let Present { make, start, withdraw, look, pods, .. } = &mut self.present;
        [make, start, withdraw, look, pods, &mut self.remove].into_iter().for_each(|call| call.wake(now));
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let Present { make, start, withdraw, look, pods, .. } = &self.present;
        [make, start, withdraw, look, pods, &self.remove].into_iter().filter_map(Call::deadline).min()
    }
}

impl Present {
    /// Whether it is to be looked at now, because what is known of it is out of date; then it is being looked at.
    pub(super) fn begin_look_afresh(&mut self, now: Timestamp) -> bool {
        let begins = self.outdated && self.look.is_due(now);
        if begins {
            self.look.asked();
        }
        begins
    }

    /// Whether the pods of the Job of this UID are to be read now, after its end; then they are being read.
    pub(super) fn begin_pods(&mut self, now: Timestamp, uid: &str) -> bool {
        if self.pods_of != uid {
            (self.pods, self.read) = (Call::default(), None);
            uid.clone_into(&mut self.pods_of);
        }
        if !self.pods.is_due(now) {
            return false;
        }
        self.pods.asked();
        true
    }

    /// Its pods, as they were after its end, with none alive.
    pub(super) fn last_pods(&self, uid: &str) -> Option<&[Pod]> {
        self.read.as_deref().filter(|_| self.pods_of == uid)
    }
}

/// Whether a sight of a Job is older than what is known of it.
fn is_stale(known: &Job, seen: &Job) -> bool {
    let is_undone = (known.marked && !seen.marked)
        || (known.withdrawn && !seen.withdrawn)
        || (known.end.is_some() && seen.end.is_none());
    known.uid == seen.uid && is_undone
}
