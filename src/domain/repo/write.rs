//! The known state of the object, and the status that follows.
//!
//! Not for how the status is written; that is `own_status`.

use crate::kernel::machine::Timestamp;
use crate::objects::own_status::{Belief, Remembered};
use crate::repo::Repo;
use crate::repo::spec::Object;
use crate::repo::status::{Phase, Run, Status};

impl Remembered for Status {
    fn serial(&self) -> u64 {
        self.serial
    }

    fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn decisive(&self) -> Self {
        let mut decisive = Self { serial: 0, observed_generation: 0, conditions: Vec::new(), ..self.clone() };
        if let Some(run) = &mut decisive.run {
            run.message.clear();
        }
        decisive
    }
}

impl Repo {
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
        let is_listed_again = same.is_some() && object.version == self.object.version;
        self.take(now, object);
        if is_listed_again {
            self.status.listed_again();
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
    }

    fn believe(&mut self, now: Timestamp, object: Object, belief: Belief) {
        match belief {
            Belief::Stale => {}
            Belief::Fresh => self.take(now, object),
            Belief::Restored => self.restored(now, object),
        }
    }

    /// Takes over what the object says, and what it remembers if that is not what we wrote.
    fn take(&mut self, now: Timestamp, object: Object) {
        self.gone = false;
        if object.uid != self.object.uid {
            let (epoch_ms, telling) = (self.time.epoch_ms, std::mem::take(&mut self.telling));
            let was_watching = self.jobs.is_watching();
            *self = Self { telling, ..Self::new(epoch_ms, object) };
            self.jobs.belong_to_another(was_watching);
            return;
        }
        if self.status.take(object.status.clone(), object.version.clone()) {
            self.keeper.restart();
        }
        let source = |object: &Object| object.spec.as_ref().ok().map(|spec| spec.source.clone());
        if source(&object) != source(&self.object) {
            self.looking.is_elsewhere(now);
        }
        // Also where a write was refused because of the poke: no watch shows it as news after that.
        let is_poked = object.answers.poked != self.object.answers.poked;
        self.object = object;
        if is_poked {
            self.status.hurry(now);
            self.looking.hurry(now);
            self.keeper.hurry(now);
            self.jobs.hurry(now);
        }
    }

    /// The object was restored from a backup. It remembers less than we do: no number that we saw is given out again (RP-2), no answer
    /// to an earlier question counts, and a run that we saw is no news. Its Job is looked for; where that is gone, what it did is not
    /// known.
    fn restored(&mut self, now: Timestamp, object: Object) {
        let lost = self.status.give_up();
        self.take(now, object);
        let known = &mut self.status.draft;
        let is_behind = known.seq < lost.seq;
        known.seq = known.seq.max(lost.seq);
        known.waiting = None;
        let is_unstarted = |run: &Run| matches!(run.phase, Phase::Waiting | Phase::Starting | Phase::Planned);
        if is_behind && lost.run.as_ref().is_some_and(|run| !is_unstarted(run)) {
            (known.run, known.head, known.next) = (lost.run, lost.head, lost.next);
            known.history = lost.history;
        } else if let Some(run) = known.run.as_mut().filter(|run| is_behind && is_unstarted(run)) {
            run.phase = Phase::Superseded;
            "the Repo was restored from a backup".clone_into(&mut run.message);
        }
        // An earlier watch may receive no events of the present Jobs.
        let was_watching = self.jobs.is_watching();
        self.jobs.belong_to_another(was_watching);
        self.tell_faulty(
            now,
            "its status is older than what was written: it was restored from a backup, or edited. Open questions were asked anew",
        );
    }
}
