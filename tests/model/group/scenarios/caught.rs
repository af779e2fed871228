//! Some search of each mutant breaks the named property.
use stateright::{Checker, HasDiscoveries, Model};

use super::*;
use crate::group::mutants::Mutant;

fn breaks(mutant: Mutant, world: World, promise: Promise) {
    let world = World { mutant: Some(mutant), ..world };
    let caught = HasDiscoveries::AllOf(BTreeSet::from([promise.words()]));
    let checker = world.checker().threads(2).finish_when(caught).spawn_bfs().join();
    eprintln!("{mutant:?}: {} states", checker.unique_state_count());
    assert!(checker.discovery(promise.words()).is_some(), "{mutant:?} was not caught by {promise:?}");
}

#[test]
fn a_vote_without_a_fresh_look() {
    let world = clusters(&[a_to_b_to_a(), a_to_b()]);
    breaks(Mutant::NoRecheck, world, Promise::CompleteTogether);
}

#[test]
fn facts_in_the_place_of_votes() {
    let world = clusters(&[a_to_b_to_a(), a_to_b()]);
    breaks(Mutant::FactsForVotes, world, Promise::CompleteTogether);
}

#[test]
fn a_ledger_without_compare_and_set() {
    let world = World { workers: 2, ..swift(&[at_once(), at_once()]) };
    breaks(Mutant::NoCompareAndSet, world, Promise::VotesStay);
}

#[test]
fn a_random_reference() {
    let world = clusters(&[a_to_b(), a_to_b()]);
    breaks(Mutant::RandomReference, world, Promise::CreatedOnce);
}

#[test]
fn a_new_reference_for_a_vote_of_the_release_before() {
    let world = upgraded(&[at_once(), stays_at("b")], &[vec![BEFORE, "c2"], vec![BEFORE, "c2"]]);
    breaks(Mutant::NewReferenceForOldVote, world, Promise::CreatedOnce);
}

#[test]
fn a_reference_named_after_the_tag() {
    let back = vec![sight("a", 1, true, 2), sight("b", 2, true, 2), sight("a", 3, true, 2), sight("b", 4, true, 2)];
    let world = swift(&[back, stays_at("b")]);
    breaks(Mutant::ReferenceOfTag, world, Promise::EdgeAgrees);
}

#[test]
fn a_member_that_withdraws_after_it_has_voted() {
    let world = World {
        policy: skipping(),
        faults: Faults { impatience: 1, ..Faults::default() },
        ..clusters(&[a_to_b(), a_to_b()])
    };
    breaks(Mutant::WithdrawsAfterVoting, world, Promise::VotesStay);
}

#[test]
fn what_was_served_and_is_forgotten() {
    breaks(Mutant::ServedForgotten, served_in_one(stays_at("a")), Promise::EdgeAgrees);
}

#[test]
fn hosts_that_count_for_nothing_beside_a_name() {
    breaks(Mutant::HostsForgotten, named_in_one(), Promise::NoneLeftOut);
}

#[test]
fn a_name_of_the_version_that_is_older_than_the_images() {
    let mut world = by_tag_and_by_digest([Some("1"), Some("2")]);
    world.members[1].script.truncate(1);
    breaks(Mutant::OldGroupVersion, world, Promise::SameCode);
}

#[test]
fn a_vote_that_is_dropped_before_the_others_know() {
    let world = clusters(&[a_to_b(), a_to_b()]);
    breaks(Mutant::DropsAtOnce, world, Promise::VotesStay);
}

#[test]
fn being_off_without_a_number_of_its_own() {
    breaks(Mutant::OffWithoutNumber, one_is_switched_off(), Promise::NothingLeftOpen);
}

#[test]
fn what_was_switched_on_again_and_is_nothing_new() {
    breaks(Mutant::SwitchedOnUnnoticed, switched_on_again(), Promise::EdgeAgrees);
}

#[test]
fn a_hold_that_freezes_what_was_made() {
    breaks(Mutant::HoldFreezes, held(), Promise::MadeIsFollowed);
}

#[test]
fn a_cluster_ahead_that_keeps_nothing() {
    breaks(Mutant::NothingKept, ahead::delivered(&["abc", "ab"]), Promise::AheadWaitsForNone);
}

#[test]
fn a_cluster_ahead_that_goes_back_and_votes_for_what_it_left() {
    breaks(Mutant::KeptAfterAReturn, ahead::delivered(&["abca", "ab"]), Promise::CompleteTogether);
}
