//! A cluster that is restored from the backup made at the beginning, with the ledger in it, and what its processes know then.

use domain::id::Seq;
use domain::record::Record;
use domain::rollout::{Event, Rollout};
use domain::testing::identity;

use crate::hashed::Hashed;
use crate::mutants::Mutant;
use crate::world::{State, Worker, World};

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
        Rollout::resume(identity(), self.policy.clone(), state.floor, record).remembering(known, Seq(0))
    }

    /// The backup was made at the beginning. Whoever lives lists again and reads the ledger anew; what is under way meets with
    /// the older ledger when it writes.
    pub fn restore(&self, next: &mut State) {
        next.left.restores -= 1;
        next.at = 0;
        next.floor = Seq(0);
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
            next.workers[w].machine = Some(Hashed::new(self.resume(next, w)));
            self.step(next, w, Event::Missed);
        }
    }
}
