//! Our status in two copies, and making the newer one durable: one write at a time, each a compare-and-set on the object's version.
//!
//! Not for the draft's content; the other parts decide that.

use std::time::Duration;

use crate::call::Call;
use crate::machine::Timestamp;
use crate::pipeline::spec::Object;
use crate::pipeline::status::{Phase, Status};
use crate::pipeline::{Effect, Pipeline};

/// How long a change that is only for people may wait for another one to travel with.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// How long after an older status was seen we look for ourselves: a watch may lag behind our own writes.
const DOUBT_AFTER: Duration = Duration::from_secs(2);

/// Fresh looks in a row that must show an older status before we believe that the object was restored from a backup.
const OLDER_LOOKS: u8 = 2;

/// Our status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnStatus {
    /// What the object is known to hold. Only this is acted upon (PL-1).
    pub(super) durable: Status,
    /// What it should hold.
    pub(super) draft: Status,
    /// The object does not keep what we write: its CRD has no room for it.
    pub(super) pruned: bool,
    /// It may have room by now: what it did not keep is written once more.
    again: bool,
    /// The version of the object that `durable` was read from.
    version: String,
    writing: Option<Box<Status>>,
    call: Call,
    /// Since when the draft differs from the durable status in what is for people only.
    unshown_since: Option<Timestamp>,
}

impl OwnStatus {
    /// As the object holds it.
    pub(super) fn resumed(status: Status, version: String) -> Self {
        Self {
            draft: status.clone(),
            durable: status,
            pruned: false,
            again: false,
            version,
            writing: None,
            call: Call::default(),
            unshown_since: None,
        }
    }

    /// Starts the write that makes the draft durable, if one is needed and none is under way. A write with an unknown outcome is
    /// repeated unchanged, so that its answer means what it says.
    pub(super) fn flush(&mut self, now: Timestamp) -> Option<Effect> {
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
            self.draft.serial = self.durable.serial.saturating_add(1);
            self.writing = Some(Box::new(self.draft.clone()));
        }
        self.call.asked();
        Some(Effect::Store(self.writing.clone()?, self.version.clone()))
    }

    /// Whether what is decided now is written at once.
    pub(super) fn is_free(&self, now: Timestamp) -> bool {
        self.writing.is_none() && self.call.is_due(now)
    }

    /// The write under way happened.
    pub(super) fn stored(&mut self, version: String, whole: bool) {
        self.call.answered();
        if self.writing.is_some() {
            self.pruned = !whole;
        }
        self.landed(version);
    }

    /// What was written is what the object holds.
    fn landed(&mut self, version: String) {
        let Some(written) = self.writing.take() else { return };
        self.durable = *written;
        self.draft.serial = self.durable.serial;
        self.version = version;
    }

    /// The write under way has an unknown outcome, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.call.failed(again, why);
    }

    /// Another writer was first, and its status holds. An answer that is still to come is about a write that we have given up.
    fn adopt(&mut self, status: Status, version: String) {
        let call = std::mem::take(&mut self.call);
        *self = Self { call, pruned: self.pruned, ..Self::resumed(status, version) };
        self.call.outdate();
    }

    /// The object changed, its status did not: the draft stands.
    fn rebase(&mut self, version: String) {
        self.version = version;
        if !self.call.is_asked() {
            self.writing = None;
        }
    }

    /// Whether this is what the write under way makes of the object.
    fn is_written(&self, status: &Status) -> bool {
        self.writing.as_deref() == Some(status)
    }

    /// Somebody asks: a write that rests after a failure is made at once, and one that was not kept is made again.
    fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
        self.again = self.pruned;
    }

    /// Ends a rest that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }

    /// When to write again, or what is for people only.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let shown = self.unshown_since.filter(|_| self.writing.is_none()).map(|since| since.after(SHOW_AFTER));
        self.call.deadline().or(shown.filter(|_| self.call.is_idle()))
    }
}

impl Pipeline {
    /// Why its status cannot be written, while that is so.
    pub fn trouble(&self) -> Option<&str> {
        self.status.call.reason()
    }

    /// The object was seen by a watch, which may lag behind our own writes.
    pub(super) fn seen(&mut self, now: Timestamp, object: Object) {
        if object.uid == self.object.uid && self.is_older(&object) {
            if !self.is_looking() {
                self.doubt.look = Call::due(now.after(DOUBT_AFTER));
            }
            return;
        }
        let is_poked = object.uid == self.object.uid && object.answers.poked != self.object.answers.poked;
        // A listing that shows again what is known: it follows a change of the CRD, whose watches the API server ends.
        let is_listed_again = object.uid == self.object.uid && object.version == self.object.version;
        self.take(object);
        self.status.again |= is_listed_again && self.status.pruned;
        if is_poked {
            self.status.hurry(now);
            self.keeper.hurry(now);
            self.proposals.hurry(now);
        }
    }

    /// The object was read afresh.
    pub(super) fn looked(&mut self, now: Timestamp, object: Option<Object>) {
        self.doubt.look.answered();
        let Some(object) = object else {
            self.doubt.gone = true;
            return;
        };
        if object.uid != self.object.uid || !self.is_older(&object) {
            self.doubt.older = 0;
            return self.take(object);
        }
        self.doubt(now, object);
    }

    /// A write was refused: this is the object now.
    pub(super) fn conflicted(&mut self, now: Timestamp, object: Object) {
        self.status.call.answered();
        if self.status.is_written(&object.status) {
            self.doubt.older = 0;
            return self.take(object);
        }
        self.status.writing = None;
        if object.uid == self.object.uid && self.is_older(&object) {
            return self.doubt(now, object);
        }
        self.doubt.older = 0;
        self.take(object);
    }

    /// A fresh look showed an older status. The second in a row is believed.
    fn doubt(&mut self, now: Timestamp, object: Object) {
        self.doubt.older = self.doubt.older.saturating_add(1);
        if self.doubt.older < OLDER_LOOKS {
            self.doubt.look = Call::due(now.after(DOUBT_AFTER));
        } else {
            self.doubt.older = 0;
            self.restored(now, object);
        }
    }

    fn is_older(&self, object: &Object) -> bool {
        !self.status.pruned && object.status.serial < self.status.durable.serial
    }

    /// Takes over what the object says, and what it remembers if that is not what we wrote.
    fn take(&mut self, object: Object) {
        self.doubt.gone = false;
        if object.uid != self.object.uid {
            let (epoch_ms, telling) = (self.time.epoch_ms, std::mem::take(&mut self.telling));
            *self = Self { telling, ..Self::new(epoch_ms, object) };
            return;
        }
        let (status, version) = (object.status.clone(), object.version.clone());
        if self.status.is_written(&status) {
            // A watch may be faster than the answer: all of it is there.
            self.status.pruned = false;
            self.status.landed(version);
        } else if self.status.pruned || status == self.status.durable {
            self.status.rebase(version);
        } else {
            self.status.adopt(status, version);
            self.keeper.restart();
            self.proposals.restart();
        }
        self.object = object;
    }

    /// The object was restored from a backup. It remembers less than we do: no number that we saw is given out again (PL-3), and no
    /// answer to an earlier question counts.
    fn restored(&mut self, now: Timestamp, object: Object) {
        let lost = std::mem::take(&mut self.status.durable);
        self.status.pruned = false;
        self.take(object);
        for (name, lost) in lost.environments {
            let Some(known) = self.status.draft.environments.get_mut(&name) else {
                self.status.draft.environments.entry(name).or_default().seq = lost.seq;
                continue;
            };
            let is_behind = known.seq < lost.seq;
            known.seq = known.seq.max(lost.seq);
            known.waiting = None;
            let Some(promotion) = known.promotion.as_mut().filter(|promotion| promotion.phase.is_open()) else {
                continue;
            };
            if promotion.phase == Phase::Waiting {
                known.seq = known.seq.next();
                promotion.seq = known.seq;
                promotion.approval = None;
            } else if is_behind {
                promotion.phase = Phase::Superseded;
                "the Pipeline was restored from a backup".clone_into(&mut promotion.message);
            }
        }
        self.tell_faulty(
            now,
            "its status is older than what was written: it was restored from a backup, or edited. Open questions were asked anew",
        );
    }
}
