//! Our records that a board holds in a newer state than we know of (`StateRegressed`).
//!
//! Another process of ours may have written it; then the ledger has it too. If it does not, the ledger was set back, and we
//! may already have voted under the next numbers: the workload is held until an operator adopts it (fault A5).
//!
//! `allclear ledger adopt` stores a baseline counted above the copy. A later rollout with a higher number is no cure: the
//! numbers and votes between the two are unknown here. It would also overwrite the copy, which is the proof, so the workload's
//! rollout writes the finding into the record, and only an adoption or the record's removal ends the hold.
//!
//! In a group without a key, anyone with access to the board may have written the copy, so it proves nothing and holds
//! nothing. We report it and count later rollouts above it, so that other members notice them and no number is used twice.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::records::record::Record;
use crate::rollouts::rollout::adoption::{self, lacks};
use kernel::floor::Floor;
use kernel::id::{Seq, WorkloadId};
use kernel::machine::Timestamp;

/// Workloads that are compared at a time. A ledger that was set back as a whole has more; we find each one when we post
/// it.
const COMPARED_MAX: usize = 50;

/// How long we ignore copies that prove nothing after we counted above one. A forger who writes copies in a loop makes us
/// write the ledger no more often than this.
const LET_BE_FOR: Duration = Duration::from_secs(60);

/// How far ahead of ours a number may be for us to count above it. Honest ones are a few ahead; without this bound a forger
/// could soon exhaust the numbers.
const COUNTED_MAX: u64 = 1 << 32;

/// Why a workload is held whose record was in a part of the ledger that is gone.
const LOST: &str = "StateRegressed: a part of our ledger was lost, and the record of this workload with it, so what was voted for it \
                    is not known; a later rollout does not end this: if it is right, run allclear ledger adopt";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Regression {
    seq: Seq,
    revision: u64,
    /// The ledger is being asked.
    asked: bool,
    ledger: Ledger,
    /// Only a member can have written the copy, or an earlier life found it.
    proven: bool,
    /// Another workload of ours had the number under this name (decision 55): nothing is lost.
    explained: bool,
}

impl Regression {
    /// Whether the ledger was asked, and had less.
    fn is_compared(&self) -> bool {
        self.ledger != Ledger::Unasked
    }
}

/// Our ledger's state of a record when it was read because of a newer copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ledger {
    /// It was not asked yet.
    Unasked,
    /// An older state. From then on the workload is held.
    Behind(Seq, u64),
    /// None, or a state we no longer know. From then on the workload is held.
    Without,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Regressions {
    all: BTreeMap<WorkloadId, Regression>,
    doubts: bool,
    /// The workloads counted above a copy that proves nothing, and when.
    counted: BTreeMap<WorkloadId, Timestamp>,
}

impl Regressions {
    /// Nothing yet. Without a key, copies are no `proof`.
    pub(super) fn new(proof: bool) -> Self {
        Self { doubts: !proof, ..Self::default() }
    }

    /// A board has this state of a record of ours. Returns whether to ask the ledger.
    pub(super) fn found(&mut self, now: Timestamp, workload: &WorkloadId, seq: Seq, revision: u64) -> bool {
        self.counted.retain(|_, at| now.since(*at) < LET_BE_FOR);
        let is_held = self.all.get(workload).is_some_and(|regression| regression.proven);
        if self.doubts && (is_held || self.counted.contains_key(workload)) {
            return false;
        }
        let (asked, ledger, proven, explained) = (false, Ledger::Unasked, !self.doubts, false);
        let found = Regression { seq, revision, asked, ledger, proven, explained };
        let regression = self.all.entry(workload.clone()).or_insert_with(|| found.clone());
        if (seq, revision) > (regression.seq, regression.revision) {
            if regression.explained {
                *regression = found;
            }
            (regression.seq, regression.revision) = (seq, revision);
        }
        !std::mem::replace(&mut regression.asked, true)
    }

    /// The ledger holds this record, or none and this floor. Returns whether it knows of the board's state; for a workload
    /// already held, whether the state was adopted.
    pub(super) fn compare(&mut self, workload: &WorkloadId, record: Option<&Record>, floor: Floor) -> bool {
        let known = self.settle(workload, record, floor);
        if let Some(regression) = self.all.get_mut(workload) {
            regression.asked = false;
            if regression.ledger == Ledger::Unasked {
                regression.ledger =
                    record.map_or(Ledger::Without, |record| Ledger::Behind(record.seq, record.revision));
            }
        }
        known
    }

    /// One of our actors stored this. It may have been overwritten since, so a missing field proves no loss.
    pub(super) fn stored(&mut self, now: Timestamp, workload: &WorkloadId, record: &Record) {
        if let Some((seq, revision)) = record.set_back {
            // An earlier life found it. The copy that it compared with is no longer known.
            let (asked, ledger, proven, explained) = (false, Ledger::Without, true, false);
            let noted = Regression { seq, revision, asked, ledger, proven, explained };
            let regression = self.all.entry(workload.clone()).or_insert_with(|| noted.clone());
            if !regression.proven {
                *regression = noted;
            }
        }
        let doubted = self.above(workload).is_some();
        if self.settle(workload, Some(record), Floor::default()) && doubted {
            self.counted.insert(workload.clone(), now);
        }
    }

    /// Resolves what this record, or this floor without a record, settles. Returns whether nothing is left.
    fn settle(&mut self, workload: &WorkloadId, record: Option<&Record>, floor: Floor) -> bool {
        let Some(regression) = self.all.get(workload) else { return true };
        let reaches = match (record, regression.ledger) {
            // Where there is none and the floor is as high, it was removed, unless a loss has set that floor.
            (None, _) => !lacks(None, floor, (regression.seq, regression.revision)),
            (Some(record), Ledger::Unasked) => (record.seq, record.revision) >= (regression.seq, regression.revision),
            (Some(record), _) if !regression.proven => record.seq > regression.seq,
            (Some(record), Ledger::Behind(..) | Ledger::Without) => adoption::ends(record, regression.seq),
        };
        if reaches {
            self.all.remove(workload);
        }
        reaches
    }

    /// Other workloads of ours had numbers up to this one under the name. A copy that is not above it is theirs: it holds nothing, and
    /// later numbers go above it.
    pub(super) fn explain(&mut self, workload: &WorkloadId, highest: Seq) {
        let found = self.all.get_mut(workload).filter(|found| found.ledger == Ledger::Unasked && found.seq <= highest);
        if let Some(found) = found {
            (found.proven, found.explained) = (false, true);
        }
    }

    /// Whether a workload is to be counted above what others of ours had under its name.
    pub(super) fn is_explained(&self, workload: &WorkloadId) -> bool {
        self.all.get(workload).is_some_and(|found| found.explained)
    }

    /// Drops a finding: it is about another workload of ours.
    pub(super) fn forget(&mut self, workload: &WorkloadId) {
        self.all.remove(workload);
        self.counted.remove(workload);
    }

    /// Whether a board has something newer, as far as is known.
    pub(super) fn contains(&self, workload: &WorkloadId) -> bool {
        self.all.contains_key(workload)
    }

    /// The ledger could not be asked.
    pub(super) fn failed(&mut self, workload: &WorkloadId) {
        self.all.get_mut(workload).into_iter().for_each(|regression| regression.asked = false);
    }

    /// The next ones to ask the ledger about; marks them as asked.
    pub(super) fn ask_again(&mut self) -> Vec<WorkloadId> {
        let waiting = self.all.iter_mut().filter(|(_, regression)| !regression.asked).take(COMPARED_MAX);
        waiting
            .map(|(workload, regression)| {
                regression.asked = true;
                workload.clone()
            })
            .collect()
    }

    /// Why a workload is held.
    pub(super) fn hold(&self, workload: &WorkloadId) -> Option<String> {
        let Regression { seq, revision, ledger, .. } = self.all.get(workload).filter(|regression| regression.proven)?;
        let here = match ledger {
            Ledger::Unasked => return None,
            // The ledger's own finding: no copy has such a revision.
            Ledger::Without if *revision == 0 => {
                return Some(LOST.to_owned());
            }
            Ledger::Behind(seq, revision) => format!("had only rollout {seq} (revision {revision})"),
            Ledger::Without => "had less".to_owned(),
        };
        Some(format!(
            "StateRegressed: the group has seen rollout {seq} (revision {revision}) of this workload's record when our ledger \
             {here}, so it was set back; a later rollout does not end this: if it is right, run allclear ledger adopt"
        ))
    }

    /// The state that a held workload lacks.
    pub(super) fn set_back(&self, workload: &WorkloadId) -> Option<(Seq, u64)> {
        let regression = self.all.get(workload).filter(|regression| regression.proven && regression.is_compared())?;
        Some((regression.seq, regression.revision))
    }

    /// The seq of an unproven copy; the next rollout takes a higher one.
    pub(super) fn above(&self, workload: &WorkloadId) -> Option<Seq> {
        let regression = self.all.get(workload).filter(|regression| !regression.proven)?;
        let ours = match regression.ledger {
            Ledger::Unasked => return None,
            Ledger::Behind(seq, _) => seq,
            Ledger::Without => Seq::default(),
        };
        (regression.seq.0.saturating_sub(ours.0) <= COUNTED_MAX).then_some(regression.seq)
    }

    /// The workloads whose copies on boards are newer than our records, and prove nothing.
    pub(super) fn doubted(&self) -> impl Iterator<Item = &WorkloadId> {
        let is_doubted = |found: &Regression| found.is_compared() && !found.proven && !found.explained;
        let doubted = self.all.iter().filter(move |(_, found)| is_doubted(found));
        doubted.map(|(workload, _)| workload)
    }

    /// The workloads that are held.
    pub(super) fn held(&self) -> impl Iterator<Item = &WorkloadId> {
        self.all
            .iter()
            .filter(|(_, regression)| regression.is_compared() && regression.proven)
            .map(|(workload, _)| workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::Change;
    use crate::records::record_codec::decode;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn record(seq: u64, revision: u64, change: Change) -> Record {
        let text = format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#);
        Record { change, ..decode(text.as_bytes()).unwrap() }
    }

    fn held() -> Regressions {
        let mut regressions = Regressions::default();
        assert!(regressions.found(NOW, &web(), Seq(3), 4));
        assert!(!regressions.compare(&web(), Some(&record(2, 1, Change::Changed)), Seq(0).into()));
        regressions
    }

    // Faults: A5
    #[test]
    fn a_hold_does_not_end_because_a_later_rollout_counts_past_the_copy() {
        let mut regressions = held();
        let words = regressions.hold(&web()).unwrap();
        for later in [record(3, 5, Change::Changed), record(4, 9, Change::Changed), record(9, 1, Change::Recovered)] {
            assert!(!regressions.compare(&web(), Some(&later), Seq(0).into()));
            assert_eq!(regressions.hold(&web()), Some(words.clone()), "it says what was found, and what to do");
        }
        assert!(words.contains("a later rollout does not end this"), "{words}");
    }

    // Faults: A5
    #[test]
    fn a_hold_that_an_earlier_life_wrote_down_ends_in_the_same_way() {
        let mut regressions = Regressions::default();
        let noted = Record { set_back: Some((Seq(3), 4)), ..record(9, 1, Change::Changed) };
        regressions.stored(NOW, &web(), &noted);
        assert!(regressions.hold(&web()).unwrap().contains("rollout 3 (revision 4)"));
        assert_eq!(regressions.set_back(&web()), Some((Seq(3), 4)));
        assert_eq!(regressions.ask_again(), [web()], "the ledger is asked whether it was adopted meanwhile");
        assert!(!regressions.compare(&web(), Some(&Record { change: Change::Baseline, ..noted }), Seq(0).into()));
        assert!(regressions.compare(&web(), Some(&record(10, 2, Change::Baseline)), Seq(0).into()));
        assert_eq!((regressions.hold(&web()), regressions.set_back(&web())), (None, None));
    }

    #[test]
    fn what_was_stored_before_the_other_worker_wrote_is_no_loss() {
        let mut regressions = Regressions::default();
        assert!(regressions.found(NOW, &web(), Seq(2), 7));
        // The answer to our own write is late: another worker has overwritten it.
        regressions.stored(NOW, &web(), &record(2, 6, Change::Changed));
        assert_eq!(regressions.hold(&web()), None);
        assert!(regressions.compare(&web(), Some(&record(2, 7, Change::Changed)), Seq(0).into()));
        assert!(!regressions.contains(&web()));
    }

    #[test]
    fn a_hold_ends_when_the_record_was_adopted_above_the_copy() {
        let mut regressions = held();
        assert!(
            !regressions.compare(&web(), Some(&record(3, 9, Change::Baseline)), Seq(0).into()),
            "that seq was given out before"
        );
        assert!(regressions.compare(&web(), Some(&record(4, 2, Change::Baseline)), Seq(0).into()));
        assert_eq!(regressions.hold(&web()), None);
    }

    #[test]
    fn a_hold_ends_when_the_record_was_removed_with_its_numbers() {
        let mut regressions = held();
        assert!(!regressions.compare(&web(), None, Seq(1).into()));
        assert!(regressions.compare(&web(), None, Seq(3).into()));
    }

    #[test]
    fn a_record_that_was_lost_with_its_part_of_the_ledger_holds_its_workload_in_words_of_its_own() {
        let lost = Floor { seq: Seq(90), lost: Seq(90) };
        let mut regressions = Regressions::default();
        let noted = Record { set_back: Some((Seq(90), 0)), ..record(91, 91, Change::Changed) };
        regressions.stored(NOW, &web(), &noted);
        assert_eq!(regressions.hold(&web()).unwrap(), LOST);
        assert!(!regressions.compare(&web(), Some(&noted), lost));
        assert!(regressions.clone().compare(&web(), Some(&record(92, 92, Change::Baseline)), lost), "adopted");
        assert!(regressions.compare(&web(), None, Floor { seq: Seq(91), ..lost }), "removed");

        // A copy of a record that is gone: no floor of a loss reaches it.
        assert!(regressions.found(NOW, &web(), Seq(3), 4));
        assert!(!regressions.compare(&web(), None, lost));
    }

    #[test]
    fn without_a_key_a_copy_holds_nothing_and_is_counted_above() {
        let mut regressions = Regressions::new(false);
        assert!(regressions.found(NOW, &web(), Seq(90), 4));
        assert!(!regressions.compare(&web(), Some(&record(2, 1, Change::Changed)), Seq(0).into()));
        assert_eq!(
            (regressions.hold(&web()), regressions.set_back(&web()), regressions.held().count()),
            (None, None, 0)
        );
        assert_eq!((regressions.above(&web()), regressions.doubted().count()), (Some(Seq(90)), 1));
        regressions.stored(NOW, &web(), &record(91, 2, Change::Changed));
        assert_eq!((regressions.above(&web()), regressions.doubted().count()), (None, 0));
        // A forger who goes on makes us write no more often than once a minute.
        assert!(!regressions.found(NOW.after(Duration::from_secs(59)), &web(), Seq(99), 4));
        assert!(regressions.found(NOW.after(Duration::from_secs(60)), &web(), Seq(99), 4));
    }

    #[test]
    fn without_a_key_no_copy_uses_up_the_numbers() {
        let mut regressions = Regressions::new(false);
        regressions.found(NOW, &web(), Seq(u64::MAX), 4);
        regressions.compare(&web(), Some(&record(2, 1, Change::Changed)), Seq(0).into());
        assert_eq!((regressions.above(&web()), regressions.doubted().count()), (None, 1));
    }

    #[test]
    fn without_a_key_what_a_life_of_ours_has_written_down_holds_whatever_is_forged() {
        let mut regressions = Regressions::new(false);
        let noted = Record { set_back: Some((Seq(3), 4)), ..record(9, 1, Change::Changed) };
        regressions.stored(NOW, &web(), &noted);
        assert!(!regressions.found(NOW, &web(), Seq(1_000), 4));
        assert_eq!(regressions.set_back(&web()), Some((Seq(3), 4)), "an adoption above 3 ends it");
    }
}
