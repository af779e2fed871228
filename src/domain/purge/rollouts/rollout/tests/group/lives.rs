//! A member whose ledger was lost, and a copy from before that, which comes late.

use super::*;
use crate::records::record::Brief;

/// The other member under this ledger: it has completed `b` as this number, and waits for votes.
fn under(ledger: &str, seq: u64) -> Option<Known> {
    known(ledger, Record { change: Change::Changed, closed: Seq(0), ..at("b", seq) })
}

/// What is voted for next by a member with this record that sees the other one so.
fn next(record: &Record, other: Option<Known>) -> Option<Vector> {
    let mut member = Member::with(&[]);
    let identity = Identity { grouped: true, ..identity() };
    member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(record.clone()));
    member.recheck = None;
    let us = known("ledger", record.clone());
    member.view.members.extend([("eu-1".into(), us), ("eu-2".into(), other)]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member.look();
    member.pass(Duration::from_secs(5));
    member.recheck.map(|(vector, _)| vector)
}

/// Goal: GA-5. Votes for two ledgers of a member were cast, closed and dropped. Then a copy comes in which the first of them is still
/// open: it is not voted for again, for nobody would wait for that vote.
#[test]
fn a_vote_for_a_ledger_that_was_voted_for_before_is_not_cast_again() {
    let mut record = Member::with(&[]).machine.durable().unwrap().clone();
    let (present, old) = (|| under("new", 1), || under("lost", 7));
    let first = next(&record, present()).expect("it is to be voted for");
    record.remember_last(Some(Brief::of(&first)));
    assert_eq!(next(&record, present()), None);
    let second = next(&record, old()).expect("a member that was restored looks so, too");
    record.remember_last(Some(Brief::of(&second)));
    assert_eq!((next(&record, present()), next(&record, old())), (None, None));
    assert!(next(&record, under("new", 2)).is_some(), "it went on");
    let forgot = Record { lives: Brief::default(), ..record };
    assert_eq!(next(&forgot, present()), Some(first), "as a release did that did not remember it");
}
