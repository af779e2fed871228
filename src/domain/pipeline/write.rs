//! The known state of the object, and the status that follows.
//!
//! Not for how the status is written; that is `own_status`.

use crate::kernel::machine::Timestamp;
use crate::objects::own_status::{Belief, Remembered};
use crate::pipeline::Pipeline;
use crate::pipeline::spec::Object;
use crate::pipeline::status::{Phase, Status};

impl Remembered for Status {
    fn serial(&self) -> u64 {
        self.serial
    }

    fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn decisive(&self) -> Self {
        let mut decisive = self.clone();
        decisive.serial = 0;
        decisive.conditions.clear();
        decisive.latest = None;
        decisive.observed_generation = 0;
        for environment in decisive.environments.values_mut() {
            environment.targets.clear();
            if let Some(promotion) = &mut environment.promotion {
                promotion.message.clear();
            }
        }
        decisive
    }
}

impl Pipeline {
    /// Why its status cannot be written, while that is so.
    pub fn trouble(&self) -> Option<&str> {
        self.status.trouble()
    }

    /// The object was seen by a watch, which may lag behind our own writes.
    pub(super) fn seen(&mut self, now: Timestamp, object: Object) {
        let same = (object.uid == self.object.uid).then_some(&object.status);
        if self.status.seen(now, same) == Belief::Stale {
            return;
        }
        let is_poked = same.is_some() && object.answers.poked != self.object.answers.poked;
        let is_listed_again = same.is_some() && object.version == self.object.version;
        self.take(object);
        if is_listed_again {
            self.status.listed_again();
        }
        if is_poked {
            self.status.hurry(now);
            self.keeper.hurry(now);
            self.proposals.hurry(now);
        }
    }

    /// The object was read afresh.
    pub(super) fn looked(&mut self, now: Timestamp, object: Option<Object>) {
        let same = object.as_ref().filter(|object| object.uid == self.object.uid).map(|object| &object.status);
        let belief = self.status.looked(now, same);
        match object {
            None => self.gone = true,
            Some(object) => self.believe(now, object, belief),
        }
    }

    /// A write was refused: this is the object now.
    pub(super) fn conflicted(&mut self, now: Timestamp, object: Object) {
        let same = (object.uid == self.object.uid).then_some(&object.status);
        let belief = self.status.conflicted(now, same);
        self.believe(now, object, belief);
        self.decide_anew();
    }

    /// Decides again all that is not durable. Notices sent meanwhile stay sent.
    fn decide_anew(&mut self) {
        let untold = self.status.draft.untold.clone();
        self.status.decide_anew();
        self.status.draft.untold.retain(|notice| untold.contains(notice));
    }

    fn believe(&mut self, now: Timestamp, object: Object, belief: Belief) {
        match belief {
            Belief::Stale => {}
            Belief::Fresh => self.take(object),
            Belief::Restored => self.restored(now, object),
        }
    }

    /// Takes over what the object says, and what it remembers if that is not what we wrote.
    fn take(&mut self, object: Object) {
        self.gone = false;
        if object.uid != self.object.uid {
            let (epoch_ms, telling) = (self.time.epoch_ms, std::mem::take(&mut self.telling));
            *self = Self { telling, heard: self.heard, ..Self::new(epoch_ms, object) };
            return;
        }
        if self.status.take(object.status.clone(), object.version.clone()) {
            self.keeper.restart();
            self.proposals.restart();
        }
        if self.object.spec != object.spec {
            // A fresh look was at what another spec rests on, and gates were those of another spec.
            self.keeper.outdate();
            self.decide_anew();
        }
        self.object = object;
    }

    /// The object was restored from a backup. It remembers less than we do: no number that we saw is given out again (PL-3), and no
    /// answer to an earlier question counts.
    fn restored(&mut self, now: Timestamp, object: Object) {
        let lost = self.status.give_up();
        self.take(object);
        for (name, lost) in lost.environments {
            let Some(known) = self.status.draft.environments.get_mut(&name) else {
                self.status.draft.environments.entry(name).or_default().seq = lost.seq;
                continue;
            };
            let is_behind = known.seq < lost.seq;
            known.seq = known.seq.max(lost.seq);
            known.waiting = None;
            known.trail = None;
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
