//! The one list of what allclear promises: each invariant with the id that ARCHITECTURE.md gives it.
//!
//! The searches in `tests/model` check all of them from outside, with full knowledge of what happened. [`broken_by`] checks those
//! that one record and one effect can decide. The searches call it at every step, and so does production, which counts each
//! broken promise and logs it as an error.

use std::fmt;

use crate::notice::{Kind, Notice};
use crate::purge::Order;
use crate::record::{Phase, Record, Vote};
use crate::rollout::Effect;

/// The enum, the list of all, and each one's id and sentence, from one table.
macro_rules! promises {
    ($($promise:ident, $id:literal, $says:literal;)*) => {
        /// Something that is always true, or that becomes true in the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Promise {
            $(#[doc = concat!($id, ": ", $says, ".")] $promise,)*
        }

        impl Promise {
            /// Every promise, in the order of their ids.
            pub const ALL: &[Promise] = &[$(Self::$promise),*];

            /// For example `GA-2`.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$promise => $id),* }
            }

            /// The id and what is promised: `GA-2: numbers never decrease`.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$promise => concat!($id, ": ", $says)),* }
            }
        }
    };
}

promises! {
    DurableFirst, "GA-1", "only what is durable is acted upon";
    NumbersRise, "GA-2", "numbers never decrease";
    NumbersMeanOne, "GA-2", "a number means one rollout";
    PhasesInOrder, "GA-3", "phases have one order";
    VotesStay, "GA-5", "a vote stays until its vector is closed";
    SameDigests, "GA-9", "members with other digests are not purged together";
    VotesAreAChain, "GA-10", "a member's votes are a chain";
    CreatedOnce, "SAFE-1", "one creation per vector and distribution";
    CompleteTogether, "SAFE-2/3", "all members were complete at one instant before the purge";
    NothingForFailed, "SAFE-4", "nothing for a failed, withdrawn or superseded rollout";
    SettledAsAWhole, "SAFE-5", "an edge is settled only when all of it is";
    FailedAfterALook, "WAIT-1", "a rollout fails only after a fresh look";
    OldPodsFirst, "WAIT-2", "a vote waits for the last old pod, or for the bound";
    DeadlinesAhead, "WAIT-3", "no deadline is in the past";
    OneEnd, "TELL-1", "a vector ends in one way for all";
    NoticesKeepBytes, "TELL-2", "a notice keeps its bytes";
    ToldOfAWholeEdge, "TELL-3", "purge.completed is told of a whole edge";
    NothingLeftOpen, "LIVE-1", "nothing is left open";
    AllTold, "LIVE-1", "every notice was told";
    AboutWhatRuns, "LIVE-1", "the record is about what runs";
    EdgeAgrees, "LIVE-2", "the edge agrees with what completed last";
    NoneLeftOut, "LIVE-2", "a purge leaves out no distribution";
    RequestsPurged, "LIVE-3", "a request is purged";
    OrderlyBegin, "LEAD-1", "nothing begins unless this replica leads and was not dismissed";
    LedgersApart, "LEAD-2", "what was built from one ledger never meets what was built from another";
    WholeEnds, "LEAD-3", "an end is never cut short";
    LeaseLast, "LEAD-4", "the lease is given back, and the process stops, after all has ended";
    NoNeedlessRebuild, "LEAD-5", "nothing is rebuilt that lives";
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The promises that an effect of a rollout would break, judged by the record the ledger is known to hold.
///
/// Only those that this record can decide. No single cluster can know, for example, whether a purge is the only one of
/// its vector.
pub fn broken_by(durable: Option<&Record>, effect: &Effect) -> Vec<Promise> {
    let keeps = |kept: bool, promise: Promise| (!kept).then_some(promise);
    let broken = match effect {
        Effect::Store(record) => return durable.map(|held| broken_by_write(held, record)).unwrap_or_default(),
        Effect::Publish(record) => keeps(durable == Some(&**record), Promise::DurableFirst),
        Effect::Purge(order) => keeps(durable.is_some_and(|held| is_on_record(held, order)), Promise::DurableFirst),
        Effect::Tell(notice) => durable.map_or(Some(Promise::DurableFirst), |held| broken_by_telling(held, notice)),
        Effect::Remove(_) => keeps(durable.is_some(), Promise::DurableFirst),
        Effect::Look
        | Effect::FindOldPods(_)
        | Effect::FindSite(..)
        | Effect::Recheck(_)
        | Effect::Match(..)
        | Effect::Absent(_)
        | Effect::End => None,
    };
    broken.into_iter().collect()
}

/// Whether a record may change from one phase to the other under one number.
pub fn may_follow(old: &Phase, new: &Phase) -> bool {
    old == new || matches!((old, new), (Phase::Rolling, _) | (Phase::Complete, Phase::Withdrawn))
}

fn broken_by_write(held: &Record, record: &Record) -> Vec<Promise> {
    let is_kept = |vote: &Vote| {
        let seq = vote.seq;
        record.all_kept().any(|kept| kept.seq == seq) || record.history.iter().any(|closed| closed.seq == seq)
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

/// We order a purge only after its reference is on record, and also the paths to send, where they differ from those
/// voted for.
fn is_on_record(held: &Record, order: &Order) -> bool {
    held.all_kept().any(|vote| {
        vote.purges.get(&order.distribution).is_some_and(|purge| {
            purge.reference == order.reference && purge.sent.as_ref().is_none_or(|sent| *sent == order.paths)
        })
    })
}

/// The notice of a stuck rollout comes from memory, because the ledger itself may be what cannot be written.
fn broken_by_telling(held: &Record, notice: &Notice) -> Option<Promise> {
    match held.untold.iter().find(|untold| untold.id == notice.id) {
        Some(untold) => (untold != notice).then_some(Promise::NoticesKeepBytes),
        None => (notice.kind != Kind::RolloutStuck).then_some(Promise::DurableFirst),
    }
}
