//! Taking a workload as it is, after the ledger was set back (`StateRegressed`): a baseline whose number is above every one
//! that was ever counted, so that no vector, and with it no purge reference, repeats.
//!
//! It forgets no vote (GA-5): the votes of every copy stay, until the group has closed them.

use crate::agreement::board::Posting;
use crate::records::record::{Change, Edge, HISTORY_MAX, Published, Record, Vote};
use crate::rollouts::rollout::news::baseline;
use crate::workloads::workload::Workload;
use kernel::floor::{Floor, State};
use kernel::id::{Nonce, Seq};
use kernel::names::image::Version;

/// The state that a ledger has to reach to hold what a copy shows. The number of an absent workload is all it has.
pub fn state(posting: &Posting) -> State {
    match posting {
        Posting::Show(Published::Absent(seq)) => (*seq, 0),
        Posting::Show(Published::Record(_)) | Posting::Forget(..) => posting.state(),
    }
}

/// Whether the ledger, which holds `record` and otherwise this `floor`, has lost what a copy shows.
pub fn has_regressed(record: Option<&Record>, floor: Floor, copy: &Posting) -> bool {
    match copy {
        Posting::Show(Published::Record(_)) => lacks(record, floor, state(copy)),
        // There is nothing to lose of a workload without a record.
        Posting::Show(Published::Absent(_)) | Posting::Forget(..) => lacks(record, floor.seq.into(), state(copy)),
    }
}

/// Whether the ledger, which holds `record` and otherwise this `floor`, does not reach a state it had before.
pub fn lacks(record: Option<&Record>, floor: Floor, there: State) -> bool {
    match record {
        Some(record) => (record.seq, record.revision) < there,
        // Where a part of the ledger was lost, a floor does not say that a record was removed. Without a revision it is none.
        None => (there.1 > 0 && floor.is_behind(there.0)) || Record::above(floor.seq).0 < there.0,
    }
}

/// Whether a record of the ledger is one that was adopted above this lost number. Whoever finds a set-back notes it with its next write,
/// so a baseline above it without that note is a person's word.
pub fn ends(record: &Record, lost: Seq) -> bool {
    record.change == Change::Baseline && record.set_back.is_none() && record.seq > lost
}

/// The record to be stored in place of `current`: `workload`, if the cluster has it, as it is, counted above everything in
/// the ledger (`floor`) and in the copies, with a nonce of its own.
pub fn adopt(
    workload: Option<(&Workload, &Version)>,
    current: Option<&Record>,
    floor: Floor,
    copies: &[Posting],
    nonce: Nonce,
) -> Record {
    let shown = copies.iter().filter_map(|copy| match copy {
        Posting::Show(published) => published.record(),
        Posting::Forget(..) => None,
    });
    let mut known: Vec<&Record> = shown.chain(current).collect();
    known.sort_by_key(|record| std::cmp::Reverse((record.seq, record.revision)));
    let noted = current.and_then(|record| record.set_back).map(|(seq, _)| seq);
    let ours = current.map(|record| record.seq).into_iter().chain(noted).chain([floor.seq, floor.lost]);
    let highest = copies.iter().map(|copy| state(copy).0).chain(ours).max();
    let below = highest.unwrap_or_default();
    let newest = known.first().copied();
    let mut record = match (workload, newest) {
        (Some((workload, version)), _) => baseline(workload, version, below),
        (None, Some(newest)) => Record { untold: Vec::new(), set_back: None, passed: Vec::new(), ..newest.clone() },
        // Only that it was removed is known. What the cluster does not have, the controller removes.
        (None, None) => Record::first(below),
    };
    record.start_above(below.into());
    record.revision = floor.follows(Record::state_of(current), record.seq).saturating_add(1);
    record.nonce = nonce;
    record.votes = votes(&known);
    if let Some(newest) = newest {
        record.history.clone_from(&newest.history);
        record.history.truncate(HISTORY_MAX);
        record.last.clone_from(&newest.last);
        record.lives.clone_from(&newest.lives);
        record.untold.clone_from(&newest.untold);
        (record.settled, record.edge) = if newest.version == record.version {
            (newest.settled.clone(), newest.edge)
        } else {
            (None, Edge::Unknown)
        };
    }
    record
}

/// Every vote of any copy once, in the newest form.
fn votes(known: &[&Record]) -> Vec<Vote> {
    let mut votes: Vec<Vote> = Vec::new();
    for vote in known.iter().flat_map(|record| &record.votes) {
        if !votes.iter().any(|kept| kept.vector == vote.vector) {
            votes.push(vote.clone());
        }
    }
    votes.sort_by_key(|vote| vote.seq);
    votes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::Phase;
    use crate::testing::{settled, version};
    use kernel::id::{Component, Vector};

    fn workload() -> Workload {
        Workload { uid: "u".into(), ..settled(version("3"), 4, 1) }
    }

    fn record(seq: u64, revision: u64, tag: &str) -> Record {
        Record { revision, uid: "u".into(), version: version(tag), ..Record::first(Seq(seq)) }
    }

    fn vote(seq: u64) -> Vote {
        let vector = Vector::of_one("a".into(), Component::bare("o".into(), Seq(seq)));
        let json = serde_json::json!({"v": vector, "s": seq, "i": version("2"), "p": ["/*"]});
        serde_json::from_value(json).unwrap()
    }

    fn absent(seq: u64) -> Posting {
        Posting::Show(Published::Absent(Seq(seq)))
    }

    #[test]
    fn the_number_is_above_the_ledgers_and_every_copys_and_the_revision_follows_the_ledgers() {
        let current = record(3, 40, "1");
        let copies = [record(7, 2, "2").into(), Posting::Forget(Seq(9), 1), absent(8)];
        let now = workload();
        let seen = version("3");
        let adopted = adopt(Some((&now, &seen)), Some(&current), Seq(5).into(), &copies, Nonce(7));
        assert_eq!((adopted.seq, adopted.closed, adopted.revision, adopted.nonce), (Seq(11), Seq(11), 41, Nonce(7)));
        assert_eq!((adopted.version, adopted.change, adopted.phase), (version("3"), Change::Baseline, Phase::Complete));
        assert_eq!(adopted.edge, Edge::Unknown, "another version than the newest copy's: the edge may hold anything");
        let fresh = adopt(Some((&now, &seen)), None, Seq(5).into(), &[], Nonce(8));
        assert_eq!((fresh.seq, fresh.revision), (Seq(7), 1));
    }

    #[test]
    fn no_vote_of_any_copy_is_forgotten() {
        let mut current = record(3, 40, "1");
        current.votes = vec![vote(3)];
        let mut copy = record(7, 2, "2");
        copy.votes = vec![vote(3), vote(7)];
        let adopted = adopt(None, Some(&current), Seq(0).into(), &[copy.into()], Nonce(9));
        assert_eq!(adopted.votes.iter().map(|vote| vote.seq.0).collect::<Vec<_>>(), [3, 7]);
        assert_eq!((adopted.seq, adopted.revision), (Seq(9), 41));
    }

    #[test]
    fn a_ledger_has_lost_what_a_copy_shows_and_it_and_its_floor_do_not_reach() {
        let current = record(3, 40, "1");
        assert!(has_regressed(Some(&current), Seq(0).into(), &record(3, 41, "1").into()));
        assert!(!has_regressed(Some(&current), Seq(0).into(), &record(3, 40, "1").into()));
        assert!(has_regressed(None, Seq(8).into(), &Posting::Forget(Seq(10), 1)));
        assert!(!has_regressed(None, Seq(9).into(), &absent(9)));
        // Where a part of the ledger was lost, no floor says that it was removed, and of one that was there is nothing to lose.
        let floor = Floor { seq: Seq(90), lost: Seq(90) };
        assert!(has_regressed(None, floor, &record(3, 41, "1").into()));
        assert!(!has_regressed(None, floor, &absent(9)) && !has_regressed(None, floor, &Posting::Forget(Seq(9), 4)));
        // A workload that came after it was absent has a record of its own.
        assert!(!has_regressed(Some(&record(10, 1, "1")), Seq(0).into(), &absent(9)));
    }
}
