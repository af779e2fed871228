//! What follows from a change of the object, and what of its status decisions rest on.
//!
//! Not for how the status is written; that is `own_status`.

use crate::kept::Remembered;
use crate::owned::News;
use crate::pipeline::Pipeline;
use crate::pipeline::status::{Choice, Phase, Status};
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

    fn untold(&self) -> &[Notice] {
        &self.untold
    }

    fn untold_mut(&mut self) -> &mut Vec<Notice> {
        &mut self.untold
    }
}

impl Pipeline {
    /// What a change of the object means to what is asked and decided.
    pub(super) fn learn(&mut self, now: Timestamp, news: News<Self>) {
        match news {
            News::Another => *self = Self::of(self.own.clone()).heard(self.heard),
            News::Rewritten => {
                self.keeper.restart();
                self.proposals.restart();
            }
            News::Respecified(_) => {
                // A fresh look was at what another spec rests on, and gates were those of another spec.
                self.keeper.outdate(|_| true);
                self.own.decide_anew();
            }
            News::Poked => {
                self.keeper.hurry(now);
                self.proposals.hurry(now);
            }
            News::Restored(lost) => self.restored(*lost),
            News::Refused => self.own.decide_anew(),
        }
    }

    /// The object was restored from a backup. It remembers less than we do: no number that we saw is given out again (PL-3), and no
    /// answer to an earlier question counts.
    fn restored(&mut self, lost: Status) {
        for (name, lost) in lost.environments {
            let Some(known) = self.own.status.draft.environments.get_mut(&name) else {
                let known = self.own.status.draft.environments.entry(name).or_default();
                (known.seq, known.chosen) = (lost.seq, lost.chosen);
                continue;
            };
            let is_behind = known.seq < lost.seq;
            let chosen = |of: &Option<Choice>| of.as_ref().map(|chosen| chosen.seq);
            if chosen(&known.chosen) < chosen(&lost.chosen) {
                known.chosen = lost.chosen;
            }
            known.seq = known.seq.max(lost.seq);
            known.waiting = None;
            (known.trail, known.further_trails, known.watch) = (None, Vec::new(), None);
            let Some(promotion) = known.promotion.as_mut().filter(|promotion| promotion.phase.is_open()) else {
                continue;
            };
            let is_held = known.chosen.as_ref().is_some_and(|chosen| chosen.over.contains(&promotion.revision));
            if promotion.phase == Phase::Waiting && is_held {
                promotion.phase = Phase::Superseded;
                "a person chose another revision, which the backup does not have".clone_into(&mut promotion.message);
            } else if promotion.phase == Phase::Waiting {
                known.seq = known.seq.next();
                promotion.seq = known.seq;
                promotion.approval = None;
            } else if is_behind {
                promotion.phase = Phase::Superseded;
                "the Pipeline was restored from a backup".clone_into(&mut promotion.message);
            }
        }
    }
}
