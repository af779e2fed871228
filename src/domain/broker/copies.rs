//! The newest copy of every record of the other members.
//!
//! Boards are read one by one, so copies come late, twice and in any order. Within one ledger the later `seq` counts, and of
//! one `seq` the later revision. Of a member's ledgers only one counts: that of its newest beat, before any beat the first
//! that was heard of.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::board::Heard;
use crate::domain::id::{Member, Origin, Seq, WorkloadId};
use crate::domain::record::Record;

/// What is known of one member's record of one workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Copy {
    seq: Seq,
    revision: u64,
    /// `None` once it was removed.
    record: Option<Box<Record>>,
    /// The boards that have shown this state. One that has not, and shows no record, is only behind.
    boards: BTreeSet<usize>,
}

/// All copies. See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Copies {
    copies: BTreeMap<WorkloadId, BTreeMap<Member, Copy>>,
    ledgers: BTreeMap<Member, Origin>,
    seeking: BTreeSet<WorkloadId>,
}

impl Copies {
    /// Takes in what a board shows; says whether anything has changed by it.
    pub(super) fn hear(&mut self, board: usize, heard: Heard) -> bool {
        let Heard { member, workload, origin, record } = heard;
        if *self.ledgers.entry(member.clone()).or_insert_with(|| origin.clone()) != origin {
            return false;
        }
        let members = self.copies.entry(workload.clone()).or_default();
        let changed = match (members.get_mut(&member), record) {
            (None, None) => false,
            (Some(copy), None) => {
                let removed = copy.record.is_some() && copy.boards.contains(&board);
                if removed {
                    copy.record = None;
                    copy.boards.clear();
                }
                removed
            }
            (Some(copy), Some(record)) if (record.seq, record.revision) < (copy.seq, copy.revision) => false,
            (Some(copy), Some(record)) if copy.record.as_ref() == Some(&record) => {
                copy.boards.insert(board);
                false
            }
            (_, Some(record)) => {
                let (seq, revision) = (record.seq, record.revision);
                let copy = Copy { seq, revision, record: Some(record), boards: BTreeSet::from([board]) };
                members.insert(member, copy);
                true
            }
        };
        if changed {
            self.note_seeking(&workload);
        }
        changed
    }

    /// From now on the records of this ledger count. Says whether others did before: those are forgotten, and this member's
    /// have to be read from the beginning.
    pub(super) fn count(&mut self, member: &Member, origin: &Origin) -> bool {
        let before = self.ledgers.insert(member.clone(), origin.clone());
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

    /// One member's record of a workload, and its ledger.
    pub(super) fn of(&self, workload: &WorkloadId, member: &Member) -> Option<(&Origin, &Record)> {
        let record = self.copies.get(workload)?.get(member)?.record.as_deref()?;
        Some((self.ledgers.get(member)?, record))
    }

    /// The workloads in which some other member waits for the rest of the group.
    pub(super) fn seeking(&self) -> &BTreeSet<WorkloadId> {
        &self.seeking
    }

    fn note_seeking(&mut self, workload: &WorkloadId) {
        let records = self.copies.get(workload).into_iter().flat_map(BTreeMap::values);
        let seeks = records.filter_map(|copy| copy.record.as_deref()).any(seeks);
        if seeks {
            self.seeking.insert(workload.clone());
        } else {
            self.seeking.remove(workload);
        }
    }
}

/// Whether the owner of this record waits for the others' votes, or for them to take notice of its own.
fn seeks(record: &Record) -> bool {
    record.awaits_vote() || !record.votes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Change;
    use crate::domain::record_codec::decode;

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn heard(origin: &str, state: Option<(u64, u64)>) -> Heard {
        let record = |(seq, revision)| {
            let text = format!(r#"{{"r":{revision},"u":"u","s":{seq},"v":{{"web":"shop/web:1.2"}}}}"#);
            Box::new(decode(text.as_bytes()).unwrap())
        };
        Heard { member: "eu-2".into(), workload: web(), origin: origin.into(), record: state.map(record) }
    }

    fn shown(copies: &Copies) -> Option<(u64, u64)> {
        copies.of(&web(), &"eu-2".into()).map(|(_, record)| (record.seq.0, record.revision))
    }

    #[test]
    fn the_later_seq_counts_and_then_the_later_revision() {
        let mut copies = Copies::default();
        for (state, expected) in [((2, 5), (2, 5)), ((2, 4), (2, 5)), ((1, 9), (2, 5)), ((3, 1), (3, 1))] {
            copies.hear(0, heard("a", Some(state)));
            assert_eq!(shown(&copies), Some(expected));
        }
        assert!(!copies.hear(1, heard("a", Some((3, 1)))), "the same from another board is no news");
    }

    #[test]
    fn a_board_that_is_behind_removes_nothing() {
        let mut copies = Copies::default();
        copies.hear(0, heard("a", Some((2, 1))));
        assert!(!copies.hear(1, heard("a", None)));
        assert!(copies.hear(0, heard("a", None)));
        assert_eq!(shown(&copies), None);
        // What was removed does not rise again from the board that has not heard of it, unless it is what counts there.
        assert!(!copies.hear(1, heard("a", Some((1, 9)))));
        assert!(copies.hear(1, heard("a", Some((3, 1)))));
    }

    #[test]
    fn only_one_ledger_of_a_member_counts() {
        let mut copies = Copies::default();
        copies.hear(0, heard("old", Some((7, 1))));
        assert!(!copies.hear(0, heard("new", Some((1, 1)))), "nobody has said yet that it counts");
        assert!(copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), None);
        assert!(copies.hear(0, heard("new", Some((1, 1)))));
        assert!(!copies.hear(0, heard("old", Some((8, 1)))));
        assert!(!copies.count(&"eu-2".into(), &"new".into()));
        assert_eq!(shown(&copies), Some((1, 1)));
    }

    #[test]
    fn a_workload_is_sought_while_a_record_waits_for_the_others() {
        let mut copies = Copies::default();
        let mut waiting = heard("a", Some((2, 1)));
        waiting.record.as_mut().unwrap().change = Change::Changed;
        copies.hear(0, waiting);
        assert!(copies.seeking().contains(&web()));
        copies.hear(0, heard("a", Some((3, 1))));
        assert!(copies.seeking().is_empty());
    }
}
