//! The promises that a rollout can judge by itself: by the record that the ledger is known to hold, and one effect.

use crate::purges::purge::Order;
use crate::records::record::{HISTORY_MAX, Phase, Record, Vote};
use crate::rollouts::rollout::{Effect, proving};
use kernel::promise::Promise;
use notices::notice::{Kind, Notice};

/// The promises that an effect of a rollout would break, judged by the record the ledger is known to hold.
///
/// Only those that this record can decide. No single cluster can know, for example, whether a purge is the only one of its
/// vector.
pub(super) fn broken_by(durable: Option<&Record>, effect: &Effect) -> Vec<Promise> {
    let keeps = |kept: bool, promise: Promise| (!kept).then_some(promise);
    let broken = match effect {
        Effect::Store(record) => return durable.map(|held| broken_by_write(held, record)).unwrap_or_default(),
        Effect::Publish(record) => keeps(durable == Some(&**record), Promise::DurableFirst),
        Effect::Purge(order) => {
            let is_on_record = |held| is_on_record(held, order) || proving::is_on_record(held, order);
            keeps(durable.is_some_and(is_on_record), Promise::DurableFirst)
        }
        // Its booking bounds how often a page is asked.
        Effect::AskEdge(of, question) => {
            let is_booked =
                |held: &Record| held.looks.get(of).is_some_and(|proving| proving.look.has_booked(question.id));
            keeps(durable.is_some_and(is_booked), Promise::DurableFirst)
        }
        Effect::Tell(notice) => broken_by_telling(durable, notice),
        Effect::Remove(_) => keeps(durable.is_some(), Promise::DurableFirst),
        Effect::Look
        | Effect::FindOldPods(_)
        | Effect::FindSite(..)
        | Effect::Recheck(_)
        | Effect::AskCache(..)
        | Effect::Match(..)
        | Effect::Compare(..)
        | Effect::Absent(_)
        | Effect::LeaveEdge(_)
        | Effect::End => None,
    };
    broken.into_iter().collect()
}

/// Whether a record may change from one phase to the other under one number.
pub fn may_follow(old: &Phase, new: &Phase) -> bool {
    old == new || matches!((old, new), (Phase::Rolling, _) | (Phase::Complete, Phase::Withdrawn))
}

fn broken_by_write(held: &Record, record: &Record) -> Vec<Promise> {
    // A draft that could not be written for long may have closed more rollouts than a history remembers.
    let is_forgotten =
        |seq| record.history.len() >= HISTORY_MAX && record.history.iter().all(|closed| closed.seq > seq);
    let is_kept = |vote: &Vote| {
        let is_closed = record.history.iter().any(|closed| closed.seq == vote.seq);
        record.all_kept().any(|kept| kept.seq == vote.seq) || is_closed || is_forgotten(vote.seq)
    };
    let same_bytes = |notice: &Notice| held.untold.iter().all(|earlier| earlier.id != notice.id || earlier == notice);
    let judged = [
        (record.seq >= held.seq, Promise::NumbersRise),
        (record.seq != held.seq || may_follow(&held.phase, &record.phase), Promise::PhasesInOrder),
        (held.votes.iter().filter(|vote| vote.closed.is_none()).all(is_kept), Promise::VotesStay),
        (record.untold.iter().all(same_bytes), Promise::NoticesKeepBytes),
    ];
    judged.into_iter().filter(|(kept, _)| !kept).map(|(_, promise)| promise).collect()
}

/// We order a purge only after its reference is on record, and also the paths to send, where they differ from those voted for.
fn is_on_record(held: &Record, order: &Order) -> bool {
    held.all_kept().any(|vote| {
        vote.purges.listed.get(&order.distribution).is_some_and(|purge| {
            purge.reference == order.reference && purge.sent.as_ref().is_none_or(|sent| *sent == order.paths)
        })
    })
}

/// The notice of a stuck rollout comes from memory, because the ledger itself may be what cannot be written, the first record
/// included.
fn broken_by_telling(held: Option<&Record>, notice: &Notice) -> Option<Promise> {
    match held.and_then(|held| held.untold.iter().find(|untold| untold.id == notice.id)) {
        Some(untold) => (untold != notice).then_some(Promise::NoticesKeepBytes),
        None => (notice.kind != Kind::RolloutStuck).then_some(Promise::DurableFirst),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rollouts::rollout::news::baseline;
    use crate::testing::{settled, version};
    use kernel::id::Seq;

    fn record(seq: u64) -> Record {
        let version = version("1");
        baseline(&settled(version.clone(), 1, 2), &version, Seq(seq))
    }

    #[test]
    fn a_record_is_published_and_removed_only_if_it_is_durable() {
        let durable = record(3);
        let publish = |record: Record| Effect::Publish(Box::new(record));
        assert_eq!(broken_by(Some(&durable), &publish(durable.clone())), []);
        assert_eq!(broken_by(Some(&durable), &publish(record(4))), [Promise::DurableFirst]);
        assert_eq!(broken_by(None, &Effect::Remove(1)), [Promise::DurableFirst]);
    }

    #[test]
    fn before_the_first_record_is_stored_only_that_it_is_stuck_is_told() {
        let mut loading =
            crate::rollouts::rollout::Unloaded::new(crate::testing::web(), "ledger".into(), Default::default());
        let hour = Duration::from_secs(3_600);
        let stuck = loading.failed(kernel::machine::Timestamp::default().after(hour), 0, "no").1.expect("a notice");
        let other = Notice { kind: Kind::RolloutStarted, ..stuck.clone() };
        assert_eq!(broken_by(None, &Effect::Tell(Box::new(stuck))), []);
        assert_eq!(broken_by(None, &Effect::Tell(Box::new(other))), [Promise::DurableFirst]);
    }

    #[test]
    fn a_write_that_counts_back_or_turns_a_phase_back_is_caught() {
        let durable = Record { phase: Phase::Complete, ..record(3) };
        let store = |record: Record| broken_by(Some(&durable), &Effect::Store(Box::new(record)));
        assert_eq!(store(record(2)), [Promise::NumbersRise]);
        assert_eq!(store(Record { phase: Phase::Rolling, ..record(3) }), [Promise::PhasesInOrder]);
        assert_eq!(store(Record { phase: Phase::Rolling, ..record(4) }), []);
    }
}
