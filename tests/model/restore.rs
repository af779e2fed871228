//! A cluster that is restored from the backup made at the beginning, with the ledger in it, and what its processes know then; and a
//! ledger of which a part is lost while none of them runs.

use kernel::floor::Floor;
use kernel::id::Seq;
use purge::records::record::Record;
use purge::rollouts::rollout::{Arrival, Event, Rollout};
use purge::testing::identity;

use crate::hashed::Hashed;
use crate::mutants::Mutant;
use crate::world::{Part, State, Worker, World};

/// How far above what was in use numbers go on.
const LOST_STEP: u64 = 1_000;

impl State {
    /// Whether there was a loss, and the record, or that there is none, may be older than what was done.
    fn is_behind(&self) -> bool {
        self.floor.is_behind(self.ledger.as_deref().map_or(Seq(0), |record| record.seq))
    }
}

impl World {
    /// A process that has read the ledger.
    pub fn newborn(&self, record: Option<&Record>) -> Worker {
        let known = record.filter(|_| self.faults.restores > 0).cloned().map(Hashed::new);
        Worker { known, ..Worker::default() }
    }

    /// A machine, as a process that knows what it knows makes it.
    pub fn resume(&self, state: &State, w: usize) -> Rollout {
        let record = state.ledger.as_deref().cloned();
        let known = state.workers[w].known.as_deref().filter(|_| self.mutant != Some(Mutant::ForgetsWhatItKnew));
        let machine = Rollout::resume(identity(), self.policy.clone(), state.floor, record);
        machine.remembering(known, Seq(0)).bereft(state.is_behind())
    }

    /// A process begins. It looks into a record that may be older than what was done for it.
    pub fn begin(&self, next: &mut State, w: usize) {
        next.workers[w] = self.newborn(next.ledger.as_deref());
        next.workers[w].compares = next.ledger.is_some() && next.is_behind();
        self.compare(next, w);
    }

    /// As the ledger does when it finds that a part of it is gone: what is left counts as set back, above all that was in use.
    pub fn lose(&self, next: &mut State, part: Part) {
        next.left.losses -= 1;
        next.ledger = self.record.clone().filter(|_| part == Part::Journal).map(Hashed::new);
        if self.mutant != Some(Mutant::LossReadsAsEmpty) {
            let lost = Seq(next.past.meaning.keys().max().map_or(0, |seq| seq.0) + LOST_STEP);
            next.floor = Floor { seq: lost, lost };
        }
        // What was still to be told went with the record.
        next.remember(|past| past.notices.retain(|_, (_, told)| *told));
        for w in 0..next.workers.len() {
            self.begin(next, w);
        }
    }

    /// The backup was made at the beginning. Whoever lives lists again and reads the ledger anew; what is under way meets with
    /// the older ledger when it writes.
    pub fn restore(&self, next: &mut State) {
        next.left.restores -= 1;
        next.at = 0;
        next.floor = Floor::default();
        next.ledger = self.record.clone().map(Hashed::new);
        let runs = self.script[0].as_ref().and_then(|workload| workload.version.clone().ok());
        next.remember(|past| {
            for (version, moved) in past.edges.values_mut() {
                *moved |= runs.as_ref() != Some(version);
            }
        });
        for w in 0..next.workers.len() {
            next.workers[w].cursor = None;
            next.workers[w].compares = true;
            self.compare(next, w);
        }
    }

    /// Has a machine look into what a restore has left, once none is at work.
    pub fn compare(&self, next: &mut State, w: usize) {
        if next.workers[w].machine.is_none() && next.workers[w].compares {
            next.workers[w].compares = false;
            next.workers[w].machine = Some(Hashed::new(self.resume(next, w).arriving(Arrival::New)));
            self.step(next, w, Event::Missed);
        }
    }
}
