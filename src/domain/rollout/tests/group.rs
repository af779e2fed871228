//! One member of a group, by what the others have published.

use super::*;
use crate::group::{Known, NumberedView, Told, View};
use crate::id::{Component, Vector};
use crate::policy::Agreement;
use crate::record::{Published, Vote};

const TIMEOUT: Duration = Duration::from_secs(1_800);

fn known(origin: &str, record: Record) -> Option<Known> {
    Some(Known { origin: origin.into(), current: true, alive: true, published: record.into(), told: Told::default() })
}

/// `eu-1` with a rollout of `b` that is complete, in a group with these other members.
struct Member {
    machine: Rollout,
    now: Timestamp,
    view: View,
    told: Vec<(Kind, String)>,
}

impl Member {
    fn with(others: &[(&str, Option<Known>)]) -> Self {
        Self::under(Agreement { timeout: TIMEOUT, ..Agreement::default() }, others)
    }

    fn under(group: Agreement, others: &[(&str, Option<Known>)]) -> Self {
        let record = Record { change: Change::Changed, closed: Seq(1), ..at("b", 2) };
        let identity = Identity { grouped: true, ..identity() };
        let policy = Policy { group, ..Policy::default() };
        let machine = Rollout::resume(identity, policy, Seq(0), Some(record));
        let members = others.iter().map(|(member, known)| ((*member).into(), known.clone())).collect();
        let view = View { members, ..View::default() };
        let mut member = Self { machine, now: Timestamp::from_millis(0), view, told: Vec::new() };
        member.step(Event::Seen(Box::new(complete("b", 2))));
        member
    }

    fn step(&mut self, event: Event) {
        let effects = self.machine.step(self.now, event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Store(_) => self.step(Event::Stored),
                Effect::Publish(record) => {
                    self.view.members.insert("eu-1".into(), known("ledger", *record));
                    self.look();
                }
                Effect::Tell(notice) => {
                    self.told.push((notice.kind, notice.message.clone()));
                    self.step(Event::Told(notice.id));
                }
                _ => {}
            }
        }
    }

    /// What the group knows is reported.
    fn look(&mut self) {
        self.step(Event::ViewChanged(NumberedView { number: 0, view: self.view.clone() }));
    }

    /// Lets time pass; fails where a deadline does not move.
    fn pass(&mut self, time: Duration) {
        let end = self.now.after(time);
        let mut ticks = 0;
        while let Some(next) = self.machine.next_deadline().filter(|next| *next <= end) {
            ticks += 1;
            assert!(ticks < 1_000, "a deadline of the past, again and again: {next:?} at {:?}", self.now);
            self.now = self.now.max(next);
            let effects = self.machine.tick(self.now);
            self.perform(effects);
        }
        self.now = end;
    }

    fn told(&self, kind: Kind) -> Vec<&str> {
        self.told.iter().filter(|(told, _)| *told == kind).map(|(_, message)| message.as_str()).collect()
    }
}

/// A record of a workload that has come to rest at this version.
fn at(tag: &str, seq: u64) -> Record {
    Record { uid: "uid-1".into(), version: version(tag), ..Record::first(Seq(seq)) }
}

/// A member that waits for votes, as we do.
fn awaiting(tag: &str) -> Option<Known> {
    reporting(tag, false)
}

/// The same, and whether it has reported its wait.
fn reporting(tag: &str, stalled: bool) -> Option<Known> {
    known("other", Record { change: Change::Changed, closed: Seq(1), stalled, ..at(tag, 2) })
}

#[test]
fn a_hold_in_the_middle_of_a_wait_is_told_when_the_wait_is_over() {
    let mut member = Member::with(&[("eu-2", known("other", at("a", 1)))]);
    member.pass(Duration::from_secs(90));
    member.view.hold = Some("two clusters of the group are called eu-2".to_owned());
    member.look();
    member.pass(TIMEOUT);
    let told = member.told(Kind::GroupStalled);
    assert!(told.len() == 1 && told[0].contains("held up: two clusters"), "{told:?}");
}

#[test]
fn nobody_gives_up_while_nothing_may_be_judged() {
    let policy = Agreement { timeout: TIMEOUT, at_timeout: crate::policy::AtTimeout::Skip, ..Agreement::default() };
    let mut member = Member::under(policy, &[("eu-2", known("other", at("a", 1)))]);
    member.view.hold = Some("the servers are being asked".to_owned());
    member.look();
    member.pass(2 * TIMEOUT);
    assert_eq!(member.machine.durable().unwrap().phase, Phase::Complete);
    assert_eq!(member.told(Kind::GroupStalled).len(), 1);
}

#[test]
fn a_wait_is_told_once_by_whoever_comes_first_and_by_the_next_where_that_one_is_gone() {
    let stays = known("third", at("a", 1));
    // The same wait, also reported by the other member, or by no other.
    for (stalled, times) in [(true, 0), (false, 1)] {
        let mut member = Member::with(&[("eu-2", reporting("b", stalled)), ("us-1", stays.clone())]);
        member.pass(TIMEOUT + Duration::from_secs(60));
        assert_eq!(member.told(Kind::GroupStalled).len(), times);
        assert!(member.machine.durable().unwrap().stalled);
    }
    // Who waits for another version waits for something else.
    let mut member = Member::with(&[("eu-2", reporting("c", true))]);
    member.pass(TIMEOUT + Duration::from_secs(60));
    assert_eq!(member.told(Kind::GroupStalled).len(), 1);
}

#[test]
fn a_member_at_rest_says_why_it_cannot_vote() {
    let mut member = Member::with(&[("eu-2", awaiting("b"))]);
    let rest =
        Record { revision: 2, change: Change::Baseline, closed: Seq(2), ..member.machine.durable().unwrap().clone() };
    let identity = Identity { grouped: true, ..identity() };
    member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(rest));
    member.step(Event::Seen(Box::new(half("b", 2))));
    let state = member.machine.summary(member.now).unwrap().state;
    assert!(state.starts_with("was complete; now"), "{state}");
}

#[test]
fn whoever_is_left_out_must_say_so_now() {
    let policy = Agreement { absent_left_out: true, ..Agreement::default() };
    let absent = Known { published: Published::Absent(Seq(3)), ..known("other", at("a", 3)).unwrap() };
    let known = |change: fn(&mut Known)| {
        let mut known = absent.clone();
        change(&mut known);
        Member::under(policy.clone(), &[("eu-2", Some(known))])
            .machine
            .summary(Timestamp::from_millis(0))
            .unwrap()
            .state
    };
    assert!(!known(|_| {}).contains("eu-2"), "{}", known(|_| {}));
    for state in [known(|known| known.alive = false), known(|known| known.current = false)] {
        assert!(
            state.contains("waiting for eu-2, which did not have the workload when it was last heard from"),
            "{state}"
        );
    }
}

#[test]
fn a_vote_for_fewer_members_has_another_number() {
    let component = |origin: &str, seq| Component::bare(origin.into(), Seq(seq));
    let wide = Vector([("eu-1".into(), component("ledger", 2)), ("eu-2".into(), component("other", 2))].into());
    let mut member = Member::with(&[]);
    let mut record = member.machine.durable().unwrap().clone();
    record.last = Some(crate::record::Brief::of(&wide));
    let vote = serde_json::json!({"v": wide, "s": 2, "i": version("b"), "c": "changed", "p": ["/*"]});
    record.votes = vec![Vote { ..serde_json::from_value(vote).unwrap() }];
    let identity = Identity { grouped: true, ..identity() };
    member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(record));
    // The other one was forgotten.
    member.view = View::default();
    member.step(Event::Seen(Box::new(complete("b", 2))));
    let record = member.machine.durable().unwrap();
    assert_eq!(record.history.last().map(|closed| &closed.outcome), Some(&Outcome::Dead));
    assert_eq!((record.seq, record.phase.clone(), record.closed), (Seq(3), Phase::Complete, Seq(1)));
}
