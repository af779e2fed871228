//! A workload that its owner has taken out by `enabled: "false"`, as the other members of a group see it (decision 53).
//!
//! ```text
//! followed ── switched off ──▶ off, under a number of its own ── switched on ──▶ a rollout, under the next number
//! ```
//!
//! The others leave a member out while it says that it is off. So being off has a number, as being absent has: no vote is cast for
//! a number at or below it any more, what was voted for with such a number and without us is dead, and a vector without us never
//! has the number of one with us. A record that a group asks for is made where there is none yet, so that there is one to publish.
//!
//! Alone no member waits: the clock of a rollout in flight stands still, and it goes on where it was.

use crate::records::record::{Change, Outcome, Phase, Record, Times};
use crate::rollouts::rollout::close::End;
use crate::rollouts::rollout::news::baseline;
use crate::rollouts::rollout::{Rollout, Served, naming};
use crate::workloads::workload::Workload;
use kernel::machine::Timestamp;
use notices::notice::Kind;

impl Rollout {
    /// How a rollout ends that is switched off before it was voted for.
    pub(super) fn ends_by_switch(&self) -> Option<End> {
        let draft = self.record.draft.as_ref().filter(|draft| !self.identity.is_alone() && !is_off(draft))?;
        let in_flight = draft.seq > draft.closed && draft.is_in_flight();
        in_flight.then(|| End::plainly(Kind::PurgeSkipped, Outcome::SwitchedOff))
    }

    /// Its owner has switched it off.
    pub(super) fn switch_off(&mut self, workload: &Workload) {
        let (alone, spent) =
            (self.identity.is_alone(), self.record.floor.seq.max(self.record.spent).max(self.record.floor.lost));
        let Some(draft) = &mut self.record.draft else {
            if !alone && !workload.deleting {
                let version = workload.version.clone().unwrap_or_default();
                let group_name = naming::wanted(workload, &self.policy);
                self.record.draft = Some(Record { off: true, group_name, ..baseline(workload, &version, spent) });
            }
            return;
        };
        if alone || is_off(draft) {
            draft.off = true;
            return;
        }
        draft.seq = draft.seq.max(spent).next();
        draft.off = true;
        (draft.change, draft.phase) = (Change::Baseline, Phase::Complete);
        draft.closed = draft.seq;
        (draft.elapsed_ms, draft.stalled) = (0, false);
        draft.times = Times::default();
        self.stopwatch.clear();
        self.site.forget();
        self.served = Served::default();
    }

    /// Its owner has switched it on again, and its version cannot be read: the group waits for it from now on.
    pub(super) fn switch_on_unread(&mut self, now: Timestamp, workload: &Workload) {
        let off = self.record.draft.as_ref().filter(|draft| !self.identity.is_alone() && is_off(draft));
        if let Some(version) = off.map(|draft| draft.version.clone()) {
            self.begin(now, workload, &version, Change::Changed);
        }
    }
}

/// Whether the record has the number of being off.
fn is_off(record: &Record) -> bool {
    record.off && record.change == Change::Baseline && record.closed >= record.seq
}
