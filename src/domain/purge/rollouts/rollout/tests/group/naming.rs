//! What a workload goes by in its group (decision 55).

use super::*;
use crate::agreement::group::Naming;
use crate::bounds::tenants::{Allowance, Tenants};
use crate::rollouts::rollout::ballot;
use kernel::id::WorkloadId;
use kernel::names::group_name::GroupName;

fn store() -> WorkloadId {
    WorkloadId::deployment("shop", "store")
}

/// `web` at `b`, which asks to be called otherwise.
fn called(name: &str) -> Box<Workload> {
    let workload = complete("b", 2);
    let tuning = Tuning { group_name: Some(GroupName::parse(name).unwrap()), ..workload.tuning };
    Box::new(Workload { tuning, ..workload })
}

#[test]
fn another_name_is_no_change_of_version_and_has_a_number_of_its_own() {
    let mut member = Member::with(&[("eu-2", known("other", at("b", 9)))]);
    let vector = member.recheck.clone().expect("both are complete").0;
    member.step(Event::Seen(called("store")));
    let record = member.machine.durable().unwrap().clone();
    assert_eq!((record.seq, record.change, record.phase.clone()), (Seq(4), Change::Changed, Phase::Complete));
    assert_eq!(record.name_in_group(&web()), &store());
    assert_eq!((record.last.as_ref(), crate::records::record_codec::form(&record)), (None, 3));
    member.step(Event::Rechecked(vector, Some(called("store"))));
    assert_eq!(member.machine.durable().unwrap().votes, [], "that was by the other name");
    member.pass(Duration::from_secs(60));
    let (vector, _) = member.recheck.clone().expect("it votes by the new one");
    member.step(Event::Rechecked(vector.clone(), Some(called("store"))));
    assert_eq!(member.machine.durable().unwrap().votes[0].name, Some(store()));
    assert_eq!(member.machine.group_rollout(&vector), group_rollout_id("default", &store(), &vector));
    // At rest it is none either.
    let mut at_rest = Member::with(&[]);
    let identity = Identity { grouped: true, ..identity() };
    at_rest.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(at("b", 2)));
    at_rest.step(Event::Seen(called("store")));
    let record = at_rest.machine.durable().unwrap();
    assert_eq!((record.seq, record.closed, record.change), (Seq(4), Seq(4), Change::Baseline));
    assert!(!record.seeks());
}

#[test]
fn open_votes_end_under_the_name_they_were_cast_for_and_none_is_cast_meanwhile() {
    let others = [("eu-2", voted("other", "")), ("us-1", voted("third", ""))];
    let mut member = after_voting(Some(PurgeState::Wanted), &others);
    member.step(Event::Seen(called("store")));
    member.pass(Duration::from_secs(120));
    let record = member.machine.durable().unwrap().clone();
    assert_eq!((record.seq, record.name_in_group(&web())), (Seq(2), &web()));
    let vote = vote_of(&THREE, Some(PurgeState::Wanted));
    let reference = &vote.purges.listed.values().next().unwrap().reference;
    assert!(!member.orders.is_empty() && member.orders.iter().all(|order| order.reference == *reference));
    let record = record.clone();
    let words = member.machine.name_in_words(&record).unwrap();
    assert_eq!(words, "it is known in the group as shop/web, and as shop/store once its open votes have ended");
    assert!(!member.machine.may_vote_by_name(&record));
    // All have closed it.
    let closed = |mut known: Option<Known>| {
        let Published::Record(record) = &mut known.as_mut().unwrap().published else { panic!("a record") };
        record.votes[0].closed = Some(Outcome::Dead);
        known
    };
    let mut record = record;
    record.votes[0].closed = Some(Outcome::NoSite);
    let identity = Identity { grouped: true, ..identity() };
    member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(record));
    for (name, known) in others {
        member.view.members.insert(name.into(), closed(known));
    }
    member.step(Event::Seen(called("store")));
    let record = member.machine.durable().unwrap();
    assert_eq!((record.votes.len(), record.seq, record.name_in_group(&web())), (0, Seq(4), &store()));
}

#[test]
fn a_vote_for_a_name_that_another_workload_has_is_dead_and_no_other_is_cast() {
    let us = known("third", Record { change: Change::Changed, closed: Seq(1), ..at("b", 2) });
    let mut member = after_voting(None, &[("eu-2", voted("other", "")), ("us-1", us)]);
    let why = "its name in the group, shop/web, is that of another workload of this cluster".to_owned();
    member.step(Event::Seen(called("store")));
    assert_eq!(member.machine.durable().unwrap().votes.len(), 1);
    member.view = View { hold: Some(why.clone()), naming: Naming::Refused(why.clone()), ..View::default() };
    // The broker gives nothing of the group to one that is refused.
    let view = NumberedView { number: 9, view: member.view.clone() };
    member.step(Event::ViewChanged(view));
    member.pass(Duration::from_secs(60));
    let record = member.machine.durable().unwrap();
    assert_eq!(record.history.last().map(|closed| &closed.outcome), Some(&Outcome::Dead));
    assert!(member.told(Kind::PurgeFailed)[0].contains(&why), "{:?}", member.told);
    assert!(member.machine.summary(member.now).unwrap().state.contains(&why));
}

#[test]
fn a_name_of_another_namespace_is_a_fault_unless_the_operator_allows_it() {
    let wanted = called("store/web");
    let mut policy = Policy::default();
    assert_eq!(ballot::wanted_name(&wanted, &policy), None);
    let faults: Vec<String> = faults(&wanted, &policy).collect();
    assert!(faults[0].contains("the operator can allow it by group_names in tenants.allow"), "{faults:?}");
    let allowance = |namespaces: &str, names: &str| Allowance {
        namespaces: [namespaces.to_owned()].into(),
        group_names: [names.to_owned()].into(),
        ..Allowance::default()
    };
    for (allowed, taken) in [(allowance("other", "store"), false), (allowance("sho*", "sto*"), true)] {
        policy.tenants = Tenants { allowed: vec![allowed], ..Tenants::default() };
        assert_eq!(ballot::wanted_name(&wanted, &policy).is_some(), taken);
    }
}
