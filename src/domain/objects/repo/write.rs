//! What follows from a change of the object, and what of its status decisions rest on.
//!
//! Not for how the status is written; that is `own_status`.

use crate::kept::Remembered;
use crate::owned::News;
use crate::repo::Repo;
use crate::repo::destroy::restored_destroy;
use crate::repo::status::{Drift, Phase, Run, Status};
use kernel::machine::Timestamp;
use notices::notice::Notice;

impl Remembered for Status {
    fn serial(&self) -> u64 {
        self.serial
    }

    fn set_serial(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn decisive(&self) -> Self {
        let mut decisive = Self { serial: 0, observed_generation: 0, conditions: Vec::new(), ..self.clone() };
        let look = decisive.drift.as_mut().and_then(|drift| drift.look.as_mut());
        for run in decisive.run.as_mut().into_iter().chain(look).chain(decisive.destroy.as_mut()) {
            run.message.clear();
        }
        decisive
    }

    fn untold(&self) -> &[Notice] {
        &self.untold
    }

    fn untold_mut(&mut self) -> &mut Vec<Notice> {
        &mut self.untold
    }
}

impl Repo {
    /// What a change of the object means to what is looked for, asked and run. A draft stands when a write was refused: what it decided
    /// rests on commits and Jobs.
    pub(super) fn learn(&mut self, now: Timestamp, news: News<Self>) {
        match news {
            News::Another => {
                let was_watching = self.jobs.is_watching();
                *self = Self::of(self.own.clone());
                self.jobs.belong_to_another(was_watching);
            }
            News::Rewritten => self.keeper.restart(),
            News::Respecified(before) => {
                if before.ok().map(|spec| spec.source).as_ref() != self.own.spec().map(|spec| &spec.source) {
                    self.looking.is_elsewhere(now);
                }
            }
            News::Poked => {
                self.looking.hurry(now);
                self.weighing.hurry(now);
                self.reporting.hurry(now);
                self.keeper.hurry(now);
                self.jobs.hurry(now);
                self.finalizing.call.hurry(now);
                self.hurry_look();
            }
            News::Restored(lost) => self.restored(*lost),
            News::Refused => {}
        }
    }

    /// The object was restored from a backup. It remembers less than we do: no number that we saw is given out again (RP-2), no answer
    /// to an earlier question counts, and a run that we saw is no news. Its Job is looked for; where that is gone, what it did is not
    /// known.
    fn restored(&mut self, lost: Status) {
        let known = &mut self.own.status.draft;
        let is_behind = known.seq < lost.seq;
        known.seq = known.seq.max(lost.seq);
        (known.waiting, known.lock) = (None, None);
        // What a look has found may be older than what was run since; its number is not given out again.
        let looks = [&known.drift, &lost.drift].into_iter().flatten().map(|drift| drift.looks).max();
        known.drift = looks.map(|looks| Drift { looks, ..Drift::default() });
        known.destroy = restored_destroy(known.destroy.take(), lost.destroy);
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
    }
}
