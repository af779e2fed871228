//! What watches and looks say of the workload itself. Sights come late, twice, and from API servers that lag; none of them may
//! bring back what is over.

use crate::domain::machine::Timestamp;
use crate::domain::readiness::rollout_under_way;
use crate::domain::rollout::{Rollout, Sight};
use crate::domain::workload::Workload;

/// What a workload without a record is taken for. The sight that started the machine decides it, and no later one: a rollout
/// that was under way may be complete by then (decision 28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// It was not seen yet. It is looked for in a scope that is not listed, so its first sight decides.
    #[default]
    Open,
    /// Found by a first listing, at rest: nothing has changed.
    Baseline,
    /// Found by a first listing, in the middle of a rollout.
    UnderWay,
    /// All others are on record: it is new, whatever its state.
    New,
}

impl Arrival {
    /// Of a workload without a record, by this sight. `listed`: all others of its scope are on record.
    pub fn of(workload: &Workload, listed: bool) -> Self {
        match (listed, rollout_under_way(workload)) {
            (true, _) => Self::New,
            (false, true) => Self::UnderWay,
            (false, false) => Self::Baseline,
        }
    }
}

impl Rollout {
    /// Takes in a sight and says so. One of the same object with an older generation comes from a lagging API server and is
    /// ignored.
    pub(super) fn see(&mut self, workload: Box<Workload>) -> bool {
        let newest = match &self.sight {
            Sight::Seen(seen) if seen.uid == workload.uid => seen.generation,
            Sight::Seen(_) | Sight::Unknown | Sight::Missing | Sight::Gone => i64::MIN,
        };
        let recorded = self.draft.as_ref().filter(|record| record.uid == workload.uid);
        let current = workload.generation >= newest.max(recorded.map_or(i64::MIN, |record| record.generation));
        if current {
            self.sight = Sight::Seen(workload);
        }
        current
    }

    /// Takes in what a watch says: a sight, or that the workload is gone. Reads made before it became another object, or
    /// none, say nothing any more, in whatever order the answers come.
    pub(super) fn watched(&mut self, workload: Option<Box<Workload>>) {
        let same = match (&self.sight, &workload) {
            (Sight::Seen(seen), Some(workload)) => seen.uid == workload.uid,
            (Sight::Missing | Sight::Gone, None) => true,
            (Sight::Unknown | Sight::Seen(_) | Sight::Missing | Sight::Gone, _) => false,
        };
        if !same {
            self.look.outdate();
            self.recheck.outdate();
        }
        if let (Sight::Seen(_), None) = (&self.sight, &workload) {
            // What comes back under its name is another one.
            self.arrival = Arrival::New;
        }
        match workload {
            Some(workload) => drop(self.see(workload)),
            None if self.sight != Sight::Gone => self.sight = Sight::Missing,
            None => {}
        }
    }

    /// Takes in the answer to a look, and says whether it was news of the present. One that was not is asked for again.
    pub(super) fn looked(&mut self, now: Timestamp, workload: Option<Box<Workload>>) -> bool {
        if !self.look.is_asked() {
            // It was asked for in an earlier life.
            return false;
        }
        if self.look.is_outdated() {
            self.look.answered();
            return false;
        }
        let current = match workload {
            Some(workload) => self.see(workload),
            None => {
                self.sight = Sight::Gone;
                self.arrival = Arrival::New;
                true
            }
        };
        if current {
            self.look.answered();
        } else {
            let key = self.key();
            self.look.repeat(now, &key);
        }
        current
    }
}
