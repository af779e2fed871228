//! The newest copy of every record of the other members.
//!
//! Boards are read one by one, so copies come late, twice and in any order. Within one ledger the later `seq` counts, and of
//! one `seq` the later revision. Of a member's ledgers only one counts: that of its newest beat, before any beat the first
//! that was heard of.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::board::{Heard, Posting};
use crate::domain::group::{Known, Told};
use crate::domain::id::{Member, Origin, Seq, WorkloadId};
use crate::domain::record::Record;

/// What is known of one member's record of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Copy {
    seq: Seq,
    revision: u64,
    /// `None` once it was removed in this state.
    record: Option<Box<Record>>,
}

/// All copies. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Copies {
    copies: BTreeMap<WorkloadId, BTreeMap<Member, Copy>>,
    ledgers: BTreeMap<Member, Origin>,
    /// Whose ledger a beat has named.
    confirmed: BTreeSet<Member>,
    seeking: BTreeSet<WorkloadId>,
}

impl Copies {
    /// Takes in what a board shows; says whether anything has changed by it.
    pub(super) fn hear(&mut self, heard: Heard) -> bool {
        let Heard { member, workload, origin, said } = heard;
        if *self.ledgers.entry(member.clone()).or_insert_with(|| origin.clone()) != origin {
            return false;
        }
        let copy = match said {
            Posting::Show(record) => Copy { seq: record.seq, revision: record.revision, record: Some(record) },
            Posting::Forget(seq, revision) => Copy { seq, revision, record: None },
        };
        let members = self.copies.entry(workload.clone()).or_default();
        // Of one state, that it was removed is the later news.
        let age = |copy: &Copy| (copy.seq, copy.revision, copy.record.is_none());
        if members.get(&member).is_some_and(|known| age(known) >= age(&copy)) {
            return false;
        }
        members.insert(member, copy);
        self.note_seeking(&workload);
        true
    }

    /// From now on the records of this ledger count. Says whether others did before: those are forgotten, and this member's
    /// have to be read from the beginning.
    pub(super) fn count(&mut self, member: &Member, origin: &Origin) -> bool {
        let before = self.ledgers.insert(member.clone(), origin.clone());
        self.confirmed.insert(member.clone());
        let switched = before.is_some_and(|before| before != *origin);
        if switched {
            let workloads: Vec<WorkloadId> = self.copies.keys().cloned().collect();
            for workload in workloads {
                if let Some(members) = self.copies.get_mut(&workload) {
                    members.remove(member);
                }
                self.note_seeking(&workload);
            }
            self.copies.retain(|_, members| !members.is_empty());
        }
        switched
    }

    /// One member's record of a workload.
    pub(super) fn of(&self, workload: &WorkloadId, member: &Member) -> Option<Known> {
        let record = self.copies.get(workload)?.get(member)?.record.as_deref()?.clone();
        let (origin, current) = (self.ledgers.get(member)?.clone(), self.confirmed.contains(member));
        Some(Known { origin, current, alive: false, record, told: Told::default() })
    }

    /// The workloads in which anybody waits for the rest of the group, also one that was forgotten.
    pub(super) fn seeking(&self) -> &BTreeSet<WorkloadId> {
        &self.seeking
    }

    /// Whether one of these members waits for the rest of the group in it.
    pub(super) fn is_sought_by(&self, workload: &WorkloadId, members: &BTreeSet<Member>) -> bool {
        let copies = self.copies.get(workload).into_iter().flatten().filter(|(member, _)| members.contains(*member));
        copies.filter_map(|(_, copy)| copy.record.as_deref()).any(Record::seeks)
    }

    fn note_seeking(&mut self, workload: &WorkloadId) {
        let records = self.copies.get(workload).into_iter().flat_map(BTreeMap::values);
        let seeks = records.filter_map(|copy| copy.record.as_deref()).any(Record::seeks);
        if seeks {
            self.seeking.insert(workload.clone());
        } else {
            self.seeking.remove(workload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Change;
    use crate::domain::record_codec::decode;

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn heard(origin: &str, said: Posting) -> Heard {
        Heard { member: "eu-2".into(), workload: web(), origin: origin.into(), said }
    }

    fn record(seq: u64, revision: u64) -> Posting {
        let text = format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#);
        Posting::Show(Box::new(decode(text.as_bytes()).unwrap()))
    }

    fn shown(copies: &Copies) -> Option<(u64, u64)> {
        copies.of(&web(), &"eu-2".into()).map(|known| (known.record.seq.0, known.record.revision))
    }

    #[test]
    fn the_later_seq_counts_and_then_the_later_revision() {
        let mut copies = Copies::default();
        for (state, expected) in [((2, 5), (2, 5)), ((2, 4), (2, 5)), ((1, 9), (2, 5)), ((3, 1), (3, 1))] {
            copies.hear(heard("a", record(state.0, state.1)));
            assert_eq!(shown(&copies), Some(expected));
        }
        assert!(!copies.hear(heard("a", record(3, 1))), "the same from another board is no news");
    }

    #[test]
    fn a_removal_that_is_late_removes_nothing_newer_and_what_was_removed_does_not_rise_again() {
        let mut copies = Copies::default();
        copies.hear(heard("a", record(2, 1)));
        assert!(!copies.hear(heard("a", Posting::Forget(Seq(1), 9))));
        assert!(copies.hear(heard("a", Posting::Forget(Seq(2), 1))));
        assert_eq!(shown(&copies), None);
        assert!(!copies.hear(heard("a", record(2, 1))), "from a board that is behind");
        assert!(copies.hear(heard("a", record(3, 1))));
    }

    #[test]
    fn only_one_ledger_of_a_member_counts() {
        let mut copies = Copies::default();
        copies.hear(heard("old", record(7, 1)));
        assert!(!copies.hear(heard("new", record(1, 1))), "nobody has said yet that it counts");
        assert!(copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), None);
        assert!(copies.hear(heard("new", record(1, 1))));
        assert!(!copies.hear(heard("old", record(8, 1))));
        assert!(!copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), Some((1, 1)));
    }

    #[test]
    fn a_workload_is_sought_while_a_record_waits_for_the_others() {
        let mut copies = Copies::default();
        let Posting::Show(mut waiting) = record(2, 1) else { panic!("a record") };
        waiting.change = Change::Changed;
        copies.hear(heard("a", Posting::Show(waiting)));
        assert!(copies.seeking().contains(&web()));
        copies.hear(heard("a", record(3, 1)));
        assert!(copies.seeking().is_empty());
    }
}
