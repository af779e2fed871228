//! The status of an object of ours in two copies, and making the newer one durable: one write at a time, each a compare-and-set on the
//! object's version. And whether a sight of the object is believed: a watch may lag behind our own writes, and a backup is older than
//! they are.
//!
//! Not for the draft's content, nor for what is decided by it: that is the object's machine.

use std::time::Duration;

use crate::kept::Remembered;
use kernel::call::Call;
use kernel::machine::Timestamp;

/// How long a change that is only for people may wait for another one to travel with.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// How long after an older status was seen we look for ourselves: a watch may lag behind our own writes.
const DOUBT_AFTER: Duration = Duration::from_secs(2);

/// Fresh looks in a row that must show an older status before we believe that the object was restored from a backup.
const OLDER_LOOKS: u8 = 2;

/// The meaning of a sight of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// Older than what we wrote: it is passed over.
    Stale,
    /// As it is now.
    Fresh,
    /// As it is now, and older than what we wrote: it was restored from a backup, or edited.
    Restored,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnStatus<S> {
    /// The status that the object is known to hold. Only this is acted upon.
    pub(crate) durable: S,
    /// The status that it should hold.
    pub(crate) draft: S,
    /// The object does not keep what we write: its CRD has no room for it.
    pub(crate) pruned: bool,
    /// The CRD may have been updated: write the dropped fields again.
    again: bool,
    /// The version of the object that `durable` was read from.
    version: String,
    writing: Option<Box<S>>,
    call: Call,
    /// Since when the draft differs from the durable status in what is for people only.
    unshown_since: Option<Timestamp>,
    /// A look of our own.
    look: Call,
    /// Looks in a row that showed an older status than ours.
    older: u8,
}

impl<S: Remembered> OwnStatus<S> {
    /// As the object holds it.
    pub(crate) fn resumed(status: S, version: String) -> Self {
        Self {
            draft: status.clone(),
            durable: status,
            pruned: false,
            again: false,
            version,
            writing: None,
            call: Call::default(),
            unshown_since: None,
            look: Call::default(),
            older: 0,
        }
    }

    /// Starts the write that makes the draft durable, if one is needed and none is under way: the status, and the version over which
    /// it goes. A write with an unknown outcome is repeated unchanged, so that its answer means what it says.
    pub(crate) fn flush(&mut self, now: Timestamp) -> Option<(Box<S>, String)> {
        if !self.call.is_due(now) {
            return None;
        }
        if self.writing.is_none() {
            if self.draft == self.durable && !self.again {
                self.unshown_since = None;
                return None;
            }
            if self.draft.decisive() == self.durable.decisive() && !self.again {
                let since = *self.unshown_since.get_or_insert(now);
                if now < since.after(SHOW_AFTER) {
                    return None;
                }
            }
            self.unshown_since = None;
            self.again = false;
            self.draft.set_serial(self.durable.serial().saturating_add(1));
            self.writing = Some(Box::new(self.draft.clone()));
        }
        self.call.asked();
        Some((self.writing.clone()?, self.version.clone()))
    }

    /// True if a decision made now would be written immediately.
    pub(crate) fn is_free(&self, now: Timestamp) -> bool {
        self.writing.is_none() && self.call.is_due(now)
    }

    /// Why the write under way failed the last time, while it is being made again.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }

    /// The write under way happened.
    pub(crate) fn stored(&mut self, version: String, whole: bool) {
        self.call.answered();
        if self.writing.is_some() {
            self.pruned = !whole;
        }
        self.landed(version);
    }

    /// The object holds the written status.
    fn landed(&mut self, version: String) {
        let Some(written) = self.writing.take() else { return };
        self.durable = *written;
        self.draft.set_serial(self.durable.serial());
        self.version = version;
    }

    /// The write under way has an unknown outcome, for this reason.
    pub(crate) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.call.failed(again, why);
    }

    /// Runs a write that waits after a failure now, and repeats one whose fields were dropped.
    pub(crate) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
        self.again = self.pruned;
    }

    /// A relist showed a version we have. The API server ends watches when the CRD changes: retry the dropped fields.
    pub(crate) fn listed_again(&mut self) {
        self.again |= self.pruned;
    }

    /// Ends a pause that is over.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }

    /// When to write again, or to write what is for people only, or to look.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let shown = self.unshown_since.filter(|_| self.writing.is_none()).map(|since| since.after(SHOW_AFTER));
        let written = self.call.deadline().or(shown.filter(|_| self.call.is_idle()));
        written.into_iter().chain(self.look.deadline()).min()
    }

    /// A watch showed this object: its status, if it still is the same object.
    pub(crate) fn seen(&mut self, now: Timestamp, status: Option<&S>) -> Belief {
        if !status.is_some_and(|status| self.is_older(status)) {
            return Belief::Fresh;
        }
        if !self.is_looking() {
            self.look = Call::due(now.after(DOUBT_AFTER));
        }
        Belief::Stale
    }

    /// The object was read afresh.
    pub(crate) fn looked(&mut self, now: Timestamp, status: Option<&S>) -> Belief {
        self.look.answered();
        self.judged(now, status)
    }

    /// A write was refused, because this is the object now.
    pub(crate) fn conflicted(&mut self, now: Timestamp, status: Option<&S>) -> Belief {
        self.call.answered();
        if !status.is_some_and(|status| self.is_written(status)) {
            self.writing = None;
        }
        self.judged(now, status)
    }

    /// A fresh look that shows an older status is believed if it is the second in a row.
    fn judged(&mut self, now: Timestamp, status: Option<&S>) -> Belief {
        if !status.is_some_and(|status| self.is_older(status)) {
            self.older = 0;
            return Belief::Fresh;
        }
        self.older = self.older.saturating_add(1);
        if self.older < OLDER_LOOKS {
            self.look = Call::due(now.after(DOUBT_AFTER));
            return Belief::Stale;
        }
        self.older = 0;
        Belief::Restored
    }

    /// Takes over what the object holds, and the draft with it if that is not what we wrote: then this says so.
    #[must_use]
    pub(crate) fn take(&mut self, status: S, version: String) -> bool {
        if self.is_written(&status) {
            // A watch may be faster than the answer: all of it is there.
            self.pruned = false;
            self.landed(version);
            return false;
        }
        if self.pruned || status == self.durable {
            self.rebase(version);
            return false;
        }
        // An answer that is still to come is about a write that we have given up.
        let (call, look) = (std::mem::take(&mut self.call), std::mem::take(&mut self.look));
        *self = Self { call, look, pruned: self.pruned, older: self.older, ..Self::resumed(status, version) };
        self.call.outdate();
        true
    }

    /// The object was restored from a backup: what was written before counts for nothing any more. Returns it.
    pub(crate) fn give_up(&mut self) -> S {
        self.pruned = false;
        std::mem::take(&mut self.durable)
    }

    /// The object changed, its status did not: the draft stands.
    fn rebase(&mut self, version: String) {
        self.version = version;
        if !self.call.is_asked() {
            self.writing = None;
        }
    }

    /// Drops decisions that are not durable: they were made on an object that has changed since.
    pub(crate) fn decide_anew(&mut self) {
        if self.writing.is_none() {
            self.draft = self.durable.clone();
        }
    }

    /// True if this is the status that the pending write would leave.
    fn is_written(&self, status: &S) -> bool {
        self.writing.as_deref() == Some(status)
    }

    fn is_older(&self, status: &S) -> bool {
        !self.pruned && !self.is_written(status) && status.serial() < self.durable.serial()
    }

    /// The object may be gone, or another one: we look for ourselves at once.
    pub(crate) fn look_now(&mut self, now: Timestamp) {
        self.look = Call::due(now);
    }

    /// Whether a look is to be made now; then it is under way.
    pub(crate) fn begin_look(&mut self, now: Timestamp) -> bool {
        let is_due = self.look.deadline().is_some_and(|at| at <= now);
        if is_due {
            self.look.asked();
        }
        is_due
    }

    /// The look under way was not answered, for this reason.
    pub(crate) fn look_failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: String) {
        self.look.failed(again, why);
    }

    /// Whether a look at the object is on its way, or due.
    pub(crate) fn is_looking(&self) -> bool {
        self.look != Call::default()
    }
}
