//! Ways to break the protocol, each applied to the world around the machine, and each caught by a named property. They
//! prove that the properties have teeth.

use allclear::domain::id::Reference;
use allclear::domain::machine::Timestamp;
use allclear::domain::notice::Notice;
use allclear::domain::purge::Order;
use allclear::domain::record::{Edge, Outcome, Record};

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

    use allclear::domain::workload::{Tuning, Workload};
    use stateright::{Checker, HasDiscoveries, Model};

    use super::Mutant;
    use crate::edge::mended;
    use crate::rollout::{behind_the_barrier, quick, rolled_back, sight, world};
    use crate::world::{Faults, World};

    /// Some search of the mutant breaks the named property.
    fn breaks(mutant: Mutant, world: World, property: &'static str) {
        let world = World { mutant: Some(mutant), ..world };
        let caught = HasDiscoveries::AllOf(BTreeSet::from([property]));
        let checker = world.checker().threads(2).finish_when(caught).spawn_dfs().join();
        assert!(checker.discovery(property).is_some(), "{mutant:?} was not caught by {property:?}");
    }

    fn crashing(versions: &[(&str, i64)]) -> World {
        World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(quick(versions)) }
    }

    fn early(script: Vec<Option<Workload>>) -> World {
        World { faults: Faults { early: 2, ..Faults::default() }, ..world(script) }
    }

    #[test]
    fn a_vote_without_a_fresh_look() {
        breaks(Mutant::NoRecheck, crashing(&[("b", 2)]), "SAFE-2/3: complete at an instant before the purge");
    }

    #[test]
    fn a_ledger_without_compare_and_set() {
        let world = World { workers: 2, ..crashing(&[("b", 2)]) };
        breaks(Mutant::NoCompareAndSet, world, "GA-5: a vote stays until its vector is closed");
    }

    #[test]
    fn a_random_reference() {
        breaks(Mutant::RandomReference, crashing(&[("b", 2)]), "SAFE-1: one creation per rollout and distribution");
    }

    #[test]
    fn a_reference_named_after_the_tag() {
        let world = world(quick(&[("b", 2), ("a", 3), ("b", 4)]));
        breaks(Mutant::ReferenceOfTag, world, "LIVE-2: the edge agrees with what completed last");
    }

    #[test]
    fn acting_on_a_draft() {
        breaks(Mutant::ActsOnDraft, crashing(&[("b", 2)]), "GA-1: only what is durable is acted upon");
    }

    #[test]
    fn a_failure_without_a_fresh_look() {
        let script = vec![sight("a", 1, true, 2), sight("b", 2, true, 1), sight("b", 2, true, 2)];
        breaks(Mutant::NoSecondLook, early(script), "a rollout fails only after a fresh look");
    }

    #[test]
    fn counts_of_an_older_generation() {
        let world = crashing(&[("b", 2)]);
        breaks(Mutant::ObservedGenerationIgnored, world, "SAFE-2/3: complete at an instant before the purge");
    }

    #[test]
    fn a_vote_that_is_withdrawn() {
        let world = world(quick(&[("b", 2), ("a", 3)]));
        breaks(Mutant::VoteWithdrawn, world, "GA-5: a vote stays until its vector is closed");
    }

    #[test]
    fn a_vote_while_an_old_pod_serves() {
        let faults = Faults { early: 2, ..Faults::default() };
        let world = World { faults, ..behind_the_barrier(true) };
        breaks(Mutant::OldPodsIgnored, world, "a vote waits for the last old pod, or for the bound");
    }

    #[test]
    fn a_served_version_that_nobody_saw() {
        breaks(Mutant::ServedUnseen, rolled_back(true), "LIVE-2: the edge agrees with what completed last");
    }

    #[test]
    fn a_request_that_is_forgotten_with_its_rollout() {
        let tuning = Tuning { requested_at: Some("1".to_owned()), ..Tuning::default() };
        let asking = |workload: Option<Workload>| workload.map(|w| Workload { tuning: tuning.clone(), ..w });
        let script = vec![sight("a", 1, true, 2), asking(sight("b", 2, true, 1)), asking(sight("a", 3, true, 2))];
        let world = World { faults: Faults { crashes: 1, ..Faults::default() }, ..world(script) };
        breaks(Mutant::RequestForgotten, world, "LIVE-3: a request is purged");
    }

    #[test]
    fn forgetting_that_all_others_are_on_record() {
        let world = World { record: None, ..world(vec![None, sight("a", 1, true, 2)]) };
        breaks(Mutant::ListedForgotten, world, "LIVE-2: the edge agrees with what completed last");
    }

    #[test]
    fn a_notice_that_is_stamped_when_it_is_told() {
        breaks(Mutant::NoticeRestamped, crashing(&[("b", 2)]), "O5: a notice keeps its bytes");
    }

    #[test]
    fn a_part_that_settles_the_whole_edge() {
        breaks(Mutant::PartSettles, mended(), "an edge is settled only when all of it is");
    }

    #[test]
    fn a_purge_that_is_impossible_and_reported_as_complete() {
        breaks(Mutant::ImpossibleForDone, mended(), "purge.completed is told of a whole edge");
    }

    #[test]
    fn a_process_that_forgets_what_it_knew() {
        let world = World { faults: Faults { restores: 1, ..Faults::default() }, ..world(quick(&[("b", 2)])) };
        breaks(Mutant::ForgetsWhatItKnew, world, "LIVE-2: the edge agrees with what completed last");
    }
}
