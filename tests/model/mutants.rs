//! Ways to break the protocol, each applied to the world around the machine, and each caught by a named property. They
//! prove that the properties have teeth.

use kernel::id::Reference;
use kernel::machine::Timestamp;
use notices::notice::Notice;
use purge::purges::purge::Order;
use purge::records::record::{Edge, Outcome, Record};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The fresh look before a vote is answered from the watch.
    NoRecheck,
    /// The ledger takes every write.
    NoCompareAndSet,
    /// Every call has a reference of its own.
    RandomReference,
    /// The reference is named after the version.
    ReferenceOfTag,
    /// A write counts as durable when it is sent.
    ActsOnDraft,
    /// The fresh look before a failure is answered from the watch.
    NoSecondLook,
    /// The counts of an older generation are believed.
    ObservedGenerationIgnored,
    /// Votes are dropped when another version comes.
    VoteWithdrawn,
    /// Every other generation begins the waits at the barrier anew.
    GenerationRestartsClocks,
    /// Nobody looks whether old pods still serve.
    OldPodsIgnored,
    /// Nobody sees that a pod was ready before its version was left.
    ServedUnseen,
    /// A notice gets the time at which it is told.
    NoticeRestamped,
    /// A request counts for the rollout it came with and no other.
    RequestForgotten,
    /// That all others are on record is forgotten with each life.
    ListedForgotten,
    /// After a restore, the process knows only what the ledger does.
    ForgetsWhatItKnew,
    /// A part of the ledger that is gone reads as one that was never there.
    LossReadsAsEmpty,
    /// The edge is settled although a part of it could not be purged.
    PartSettles,
    /// A purge that cannot be made is reported as complete.
    ImpossibleForDone,
}

impl Mutant {
    pub fn stored(self, record: &Record) -> Record {
        let mut record = record.clone();
        if self == Self::VoteWithdrawn {
            let seq = record.seq;
            record.votes.retain(|vote| vote.seq == seq);
        }
        if self == Self::RequestForgotten {
            record.request = None;
        }
        let partly = record.history.last().is_some_and(|closed| closed.outcome == Outcome::Partly);
        if self == Self::PartSettles && partly && !record.is_in_flight() {
            (record.settled, record.edge) = (None, Edge::Settled);
        }
        record
    }

    pub fn told(self, notice: &Notice, now: Timestamp) -> Notice {
        let mut notice = notice.clone();
        if self == Self::NoticeRestamped {
            notice.at_ms = i64::try_from(now.as_millis()).unwrap_or(0) + 1;
        }
        notice
    }

    pub fn references(self, order: &mut Order, count: usize, version: &str) {
        match self {
            Self::RandomReference => order.reference = Reference(format!("random-{count}")),
            Self::ReferenceOfTag => order.reference = Reference(format!("{}-{version}", order.subject)),
            _ => {}
        }
    }
}

mod caught {
    use std::collections::BTreeSet;

    use kernel::promise::Promise;
    use purge::workloads::workload::{Asks, Tuning, Workload};
    use stateright::{Checker, HasDiscoveries, Model};

    use super::Mutant;
    use crate::edge::mended;
    use crate::rollout::{behind_the_barrier, quick, rolled_back, sight, world};
    use crate::world::{Faults, World};

    /// Some search of the mutant breaks the named property.
    fn breaks(mutant: Mutant, world: World, promise: Promise) {
        // Breadth first: what a mutant repeats for ever does not keep the search from what it breaks.
        let world = World { mutant: Some(mutant), ..world };
        let caught = HasDiscoveries::AllOf(BTreeSet::from([promise.words()]));
        let checker = world.checker().threads(2).finish_when(caught).spawn_bfs().join();
        assert!(checker.discovery(promise.words()).is_some(), "{mutant:?} was not caught by {promise:?}");
    }

    fn crashing(versions: &[(&str, i64)]) -> World {
        World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(quick(versions)) }
    }

    fn early(script: Vec<Option<Workload>>) -> World {
        World { faults: Faults { early: 2, ..Faults::default() }, ..world(script) }
    }

    #[test]
    fn a_vote_without_a_fresh_look() {
        breaks(Mutant::NoRecheck, crashing(&[("b", 2)]), Promise::CompleteTogether);
    }

    #[test]
    fn a_ledger_without_compare_and_set() {
        let world = World { workers: 2, ..crashing(&[("b", 2)]) };
        breaks(Mutant::NoCompareAndSet, world, Promise::VotesStay);
    }

    #[test]
    fn a_random_reference() {
        breaks(Mutant::RandomReference, crashing(&[("b", 2)]), Promise::CreatedOnce);
    }

    #[test]
    fn a_reference_named_after_the_tag() {
        let world = world(quick(&[("b", 2), ("a", 3), ("b", 4)]));
        breaks(Mutant::ReferenceOfTag, world, Promise::EdgeAgrees);
    }

    #[test]
    fn acting_on_a_draft() {
        breaks(Mutant::ActsOnDraft, crashing(&[("b", 2)]), Promise::DurableFirst);
    }

    #[test]
    fn a_failure_without_a_fresh_look() {
        let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 1), sight("b", 2, true, 2)];
        breaks(Mutant::NoSecondLook, early(script), Promise::FailedAfterALook);
    }

    #[test]
    fn counts_of_an_older_generation() {
        let world = crashing(&[("b", 2)]);
        breaks(Mutant::ObservedGenerationIgnored, world, Promise::CompleteTogether);
    }

    #[test]
    fn a_vote_that_is_withdrawn() {
        let world = world(quick(&[("b", 2), ("a", 3)]));
        breaks(Mutant::VoteWithdrawn, world, Promise::VotesStay);
    }

    #[test]
    fn a_vote_while_an_old_pod_serves() {
        let faults = Faults { early: 2, ..Faults::default() };
        let world = World { faults, ..behind_the_barrier(true) };
        breaks(Mutant::OldPodsIgnored, world, Promise::OldPodsFirst);
    }

    #[test]
    fn a_served_version_that_nobody_saw() {
        breaks(Mutant::ServedUnseen, rolled_back(true), Promise::EdgeAgrees);
    }

    #[test]
    fn a_request_that_is_forgotten_with_its_rollout() {
        let tuning =
            Tuning { asks: Asks { requested_at: Some("1".to_owned()), ..Asks::default() }, ..Tuning::default() };
        let asking = |workload: Option<Workload>| workload.map(|w| Workload { tuning: tuning.clone(), ..w });
        let script = vec![sight("a", 1, true, 2), asking(sight("b", 2, true, 1)), asking(sight("a", 3, true, 2))];
        let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(script) };
        breaks(Mutant::RequestForgotten, world, Promise::RequestsPurged);
    }

    #[test]
    fn forgetting_that_all_others_are_on_record() {
        let world = World { record: None, ..world(vec![None, sight("a", 1, true, 2)]) };
        breaks(Mutant::ListedForgotten, world, Promise::EdgeAgrees);
    }

    #[test]
    fn a_notice_that_is_stamped_when_it_is_told() {
        breaks(Mutant::NoticeRestamped, crashing(&[("b", 2)]), Promise::NoticesKeepBytes);
    }

    #[test]
    fn a_part_that_settles_the_whole_edge() {
        breaks(Mutant::PartSettles, mended(), Promise::SettledAsAWhole);
    }

    #[test]
    fn a_purge_that_is_impossible_and_reported_as_complete() {
        breaks(Mutant::ImpossibleForDone, mended(), Promise::ToldOfAWholeEdge);
    }

    #[test]
    fn a_process_that_forgets_what_it_knew() {
        let world = World { faults: Faults { restores: 1, ..Faults::default() }, ..world(quick(&[("b", 2)])) };
        breaks(Mutant::ForgetsWhatItKnew, world, Promise::EdgeAgrees);
    }

    #[test]
    fn a_lost_part_of_the_ledger_that_reads_as_empty() {
        let world = World { faults: Faults { losses: 1, ..Faults::default() }, ..world(quick(&[("b", 2), ("c", 3)])) };
        breaks(Mutant::LossReadsAsEmpty, world, Promise::NumbersMeanOne);
    }
}
