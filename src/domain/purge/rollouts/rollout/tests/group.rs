//! One member of a group, by what the others have published.

mod passed;

use super::*;
use crate::agreement::group::{Known, NumberedView, Told, View};
use crate::bounds::policy::Agreement;
use crate::records::record::{Published, Purge, PurgeState, Vote};
use crate::testing::{unreadable_image, web};
use crate::workloads::workload::Tuning;
use kernel::id::{Component, Vector, purge_reference};
use proof::asked::Question;

mod lives;
mod looking;
mod naming;

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
    /// The last vector that was to be confirmed by a fresh look, and when.
    recheck: Option<(Vector, Timestamp)>,
    orders: Vec<Order>,
    asked: Vec<(Reference, Box<Question>)>,
    /// How often a newer listing was asked for.
    compared: usize,
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
        let at_second_0 = Timestamp::from_millis(0);
        let mut member = Self {
            machine,
            now: at_second_0,
            view,
            told: Vec::new(),
            recheck: None,
            orders: Vec::new(),
            asked: Vec::new(),
            compared: 0,
        };
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
                Effect::Purge(order) => self.orders.push(*order),
                Effect::AskEdge(of, question) => self.asked.push((of, question)),
                Effect::Recheck(vector) => self.recheck = Some((vector, self.now)),
                Effect::Compare(vector, plan) => {
                    self.compared += 1;
                    let found = BTreeSet::from(["E1EXAMPLE".parse().unwrap()]);
                    self.step(Event::Matched(vector, plan, found.into()));
                }
                Effect::FindSite(..) => {
                    let answer = answers(&effect, None);
                    answer.into_iter().for_each(|event| self.step(event));
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
fn a_stalled_wait_says_of_a_member_that_it_does_not_follow_the_kind_and_is_told_once() {
    let mut member = Member::with(&[("eu-2", None)]);
    let why = "does not follow StatefulSets: it has no right to list them";
    member.view.unfollowed.insert("eu-2".into(), why.to_owned());
    member.look();
    member.pass(3 * TIMEOUT);
    let told = member.told(Kind::GroupStalled);
    assert!(told.len() == 1 && told[0].contains(&format!("waiting for eu-2, which {why}; still waiting")), "{told:?}");
    assert_eq!(member.machine.durable().unwrap().votes, [], "nothing is agreed on without it");
}

#[test]
fn nobody_gives_up_while_nothing_may_be_judged() {
    let policy =
        Agreement { timeout: TIMEOUT, at_timeout: crate::bounds::policy::AtTimeout::Skip, ..Agreement::default() };
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
    // A member that waits for another version waits for something else.
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
        assert!(state.contains("waiting for eu-2, which last reported that it lacks the workload"), "{state}");
    }
}

// Faults: A4
#[test]
fn whoever_waits_to_see_an_end_known_sees_it_though_a_later_vote_was_for_a_ledger_that_is_lost() {
    let vector = |other: &str, seq| {
        let component = |origin: &str, seq| Component::bare(origin.into(), Seq(seq));
        Vector([("eu-1".into(), component("ledger", 2)), ("eu-2".into(), component(other, seq))].into())
    };
    let last_is = |closed: &str, of: &str| {
        let mut member = Member::with(&[]);
        let rest = Record {
            revision: 2,
            closed: Seq(2),
            last: Some(crate::records::record::Brief::of(&vector("other", 2))),
            ..member.machine.durable().unwrap().clone()
        };
        let identity = Identity { grouped: true, ..identity() };
        member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(rest.clone()));
        member.step(Event::Seen(Box::new(complete("b", 2))));
        member.view.members.insert("eu-1".into(), known("ledger", rest));
        // The other member has lost its ledger since, and keeps a vote under its new one.
        let vote = serde_json::json!({"v": vector(of, 1), "s": 1, "i": version("b"), "c": "changed", "p": ["/*"], "z": closed});
        let theirs = Record { votes: vec![serde_json::from_value(vote).unwrap()], closed: Seq(1), ..at("b", 1) };
        member.view.members.insert("eu-2".into(), known("new", theirs));
        member.look();
        member.pass(Duration::from_secs(60));
        member.machine.durable().unwrap().last.clone().unwrap()
    };
    let brief = |other, seq| crate::records::record::Brief::of(&vector(other, seq));
    assert_eq!(last_is("purged", "new"), brief("new", 1), "we have voted for it, as everybody has for what is purged");
    assert_eq!(last_is("dead", "new"), brief("other", 2), "for what is dead we need not have voted");
    assert_eq!(last_is("purged", "older"), brief("other", 2), "of two that are lost, none is known to be the later");
}

#[test]
fn a_vote_for_fewer_members_has_another_number() {
    let component = |origin: &str, seq| Component::bare(origin.into(), Seq(seq));
    let wide = Vector([("eu-1".into(), component("ledger", 2)), ("eu-2".into(), component("other", 2))].into());
    let mut member = Member::with(&[]);
    let mut record = member.machine.durable().unwrap().clone();
    record.last = Some(crate::records::record::Brief::of(&wide));
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

/// `web` by a digest alone.
fn pinned() -> Version {
    let image = format!("web@sha256:{}", "b".repeat(64)).parse().unwrap();
    [(kernel::names::image::Container::Main("web".to_owned()), image)].into_iter().collect()
}

#[test]
fn what_the_owner_calls_a_version_is_read_with_the_images_and_confirmed_before_a_vote() {
    let named = |name: &str, tag, generation| {
        let workload = complete(tag, generation);
        let tuning = Tuning { group_version: Some(name.to_owned()), ..workload.tuning };
        Box::new(Workload { tuning, ..workload })
    };
    let other = Record { version: pinned(), group_version: Some("b1".to_owned()), ..at("b", 2) };
    let mut member = Member::with(&[("eu-2", known("other", other))]);
    let seq = member.machine.durable().unwrap().seq;
    assert!(member.machine.summary(member.now).unwrap().state.contains("allclear.dev/group-version"));
    member.step(Event::Seen(named("b1", "b", 2)));
    assert_eq!(member.machine.durable().unwrap().group_version.as_deref(), Some("b1"));
    assert_eq!(member.machine.durable().unwrap().seq, seq, "no change by itself");
    let (vector, _) = member.recheck.clone().expect("all are complete at b1");
    member.step(Event::Rechecked(vector.clone(), Some(named("b2", "b", 2))));
    assert_eq!(member.machine.durable().unwrap().votes, [], "it has another name by now");
    member.step(Event::Seen(named("b1", "b", 2)));
    member.pass(Duration::from_secs(60));
    let (vector, _) = member.recheck.clone().expect("it is asked again");
    member.step(Event::Rechecked(vector, Some(named("b1", "b", 2))));
    assert_eq!(member.machine.durable().unwrap().votes.len(), 1);
}

#[test]
fn switched_off_has_a_number_of_its_own_and_switched_on_is_a_rollout() {
    let mut member = Member::with(&[("eu-2", known("other", at("a", 1)))]);
    let mut out = complete("b", 2);
    out.tuning.disabled = true;
    member.step(Event::Seen(Box::new(out.clone())));
    let off = member.machine.durable().unwrap().clone();
    assert_eq!((off.seq, off.closed, off.off, off.change), (Seq(3), Seq(3), true, Change::Baseline));
    assert_eq!(off.history.last().map(|closed| (closed.seq, &closed.outcome)), Some((Seq(2), &Outcome::SwitchedOff)));
    assert_eq!(member.told(Kind::PurgeSkipped), ["not purged: its owner switched it off by allclear.dev/enabled"]);
    assert_eq!(crate::records::record_codec::form(&off), 3, "a release that does not know this end must not read it");
    assert!(!off.seeks());
    member.step(Event::Seen(Box::new(Workload { version: Err(unreadable_image()), ..out })));
    assert_eq!(member.machine.durable().unwrap().seq, Seq(3));
    let unreadable = Workload { version: Err(unreadable_image()), ..complete("b", 3) };
    member.step(Event::Seen(Box::new(unreadable)));
    let on = member.machine.durable().unwrap();
    assert_eq!((on.seq, on.off, on.change, on.phase.clone()), (Seq(4), false, Change::Changed, Phase::Rolling));
}

#[test]
fn whoever_is_off_is_left_out_only_while_it_says_so_now() {
    let off = known("other", Record { off: true, ..at("a", 3) }).unwrap();
    let state =
        |known| Member::with(&[("eu-2", Some(known))]).machine.summary(Timestamp::from_millis(0)).unwrap().state;
    assert!(!state(off.clone()).contains("eu-2"), "{}", state(off));
    for silent in [Known { alive: false, ..off.clone() }, Known { current: false, ..off.clone() }] {
        let words = state(silent);
        assert!(
            words.contains("waiting for eu-2, which last reported that allclear.dev/enabled switched it off"),
            "{words}"
        );
    }
    let before = Agreement { rules: crate::records::rules::Rules::SECOND, ..Agreement::default() };
    let member = Member::under(before, &[("eu-2", Some(off))]);
    let words = member.machine.summary(Timestamp::from_millis(0)).unwrap().state;
    assert!(words.contains("waiting for eu-2, which is at web: a"), "{words}");
}

/// Each member's vote in the vector of `b`, which has these members.
fn vote_of(members: &[(&str, &str)], purge: Option<PurgeState>) -> Vote {
    let component = |(name, origin): &(&str, &str)| {
        let component = Component::bare((*origin).into(), Seq(2));
        ((*name).into(), component)
    };
    let vector = Vector(members.iter().map(component).collect());
    let json = serde_json::json!({"v": vector, "s": 2, "i": version("b"), "c": "changed", "p": ["/*"],
        "h": ["www.example.com"], "j": 3});
    let mut vote: Vote = serde_json::from_value(json).unwrap();
    let rollout = group_rollout_id("default", &web(), &vote.vector);
    let reference = purge_reference(&rollout, "E1EXAMPLE", ["/*"]);
    if let Some(state) = purge {
        let invalidation = (state != PurgeState::Wanted).then(|| "I1".into());
        vote.purges
            .listed
            .insert("E1EXAMPLE".parse().unwrap(), Purge { state, invalidation, ..Purge::wanted(reference) });
    }
    vote
}

const THREE: [(&str, &str); 3] = [("eu-1", "ledger"), ("eu-2", "other"), ("us-1", "third")];

/// `eu-1`, which has stored its vote for all three and begins a new life, beside these.
fn after_voting(purge: Option<PurgeState>, others: &[(&str, Option<Known>)]) -> Member {
    let mut member = Member::with(&[]);
    let vote = vote_of(&THREE, purge);
    let last = Some(crate::records::record::Brief::of(&vote.vector));
    let record = Record { votes: vec![vote], last, ..member.machine.durable().unwrap().clone() };
    let identity = Identity { grouped: true, ..identity() };
    member.machine = Rollout::resume(identity, Policy::default(), Seq(0), Some(record));
    let members = others.iter().map(|(member, known)| ((*member).into(), known.clone())).collect();
    member.view = View { members, ..View::default() };
    member
}

fn voted(origin: &str, config: &str) -> Option<Known> {
    let record = Record { config: config.to_owned(), votes: vec![vote_of(&THREE, None)], ..at("b", 2) };
    known(origin, Record { change: Change::Changed, closed: Seq(1), ..record })
}

#[test]
fn what_came_to_nothing_is_no_other_end_under_a_hold() {
    let mut member = after_voting(None, &[("eu-2", voted("other", "")), ("us-1", awaiting("b"))]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member.view.hold = Some("a third cluster speaks".to_owned());
    member.look();
    member.pass(Duration::from_secs(60));
    let record = member.machine.durable().unwrap();
    assert_eq!(record.history.last().map(|closed| &closed.outcome), Some(&Outcome::Dead), "us-1 has another ledger");
    assert_eq!(record.closed, Seq(1), "its rollout goes on");
}

#[test]
fn a_hold_stops_no_purge_that_was_made_and_begins_none() {
    let others = [("eu-2", voted("other", "")), ("us-1", voted("third", ""))];
    let hold = Some("a third cluster speaks".to_owned());
    // Not even the distributions are looked for.
    let mut unlisted = after_voting(None, &others);
    unlisted.view.hold.clone_from(&hold);
    unlisted.step(Event::Seen(Box::new(complete("b", 2))));
    unlisted.pass(Duration::from_secs(60));
    assert!(unlisted.orders.is_empty() && unlisted.machine.durable().unwrap().votes[0].closed.is_none());

    for state in [PurgeState::Created, PurgeState::Wanted] {
        let mut member = after_voting(Some(state.clone()), &others);
        member.view.hold.clone_from(&hold);
        member.step(Event::Seen(Box::new(complete("b", 2))));
        member.pass(Duration::from_secs(120));
        let order = member.orders.first().cloned().expect("it goes on");
        assert_eq!(order.invalidation.is_some(), state == PurgeState::Created, "the earlier life may have sent it");
        assert_eq!(order.reference, vote_of(&THREE, Some(state)).purges.listed.values().next().unwrap().reference);
        member.step(Event::Purged(order.reference.clone(), Progress::Created("I1".into())));
        member.step(Event::Purged(order.reference, Progress::Completed(None)));
        member.pass(Duration::from_secs(120));
        let vote = &member.machine.durable().unwrap().votes[0];
        assert_eq!(vote.closed, Some(Outcome::Purged), "and the vote stays while others may need it");
        let told = "purged; distributions as listed before the hold: E1EXAMPLE by invalidation I1";
        assert_eq!(member.told(Kind::PurgeCompleted), [told], "nothing is compared under a hold");
    }
}

#[test]
fn whoever_is_forgotten_makes_no_failure_of_a_purge_that_was_made() {
    let mut member = after_voting(Some(PurgeState::Created), &[("eu-2", voted("other", ""))]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member.pass(Duration::from_secs(120));
    let order = member.orders.first().cloned().expect("it is followed");
    member.step(Event::Purged(order.reference, Progress::Completed(None)));
    member.pass(Duration::from_secs(120));
    assert_eq!(member.told(Kind::PurgeFailed), [""; 0]);
    assert_eq!(member.told(Kind::PurgeCompleted).len(), 1);

    // Another one may have made it: it counts the forgotten one still.
    let mut member = after_voting(None, &[("eu-2", voted("other", "with us-1"))]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member.pass(Duration::from_secs(120));
    assert_eq!(member.machine.durable().unwrap().votes[0].closed, None);
    let state = member.machine.summary(member.now).unwrap().state;
    assert!(state.contains("eu-2, which has voted, counts other members than this cluster"), "{state}");
    // It has; its purge is taken over with the reference that it gave.
    let Some(Some(other)) = member.view.members.get_mut(&"eu-2".into()) else { panic!("it is known") };
    let Published::Record(record) = &mut other.published else { panic!("a record") };
    let mut made = vote_of(&THREE, Some(PurgeState::Created));
    made.purges.listed.values_mut().for_each(|purge| purge.reference = "with the paths of us-1".into());
    made.cast.at_ms = 60_000;
    record.votes = vec![made];
    member.look();
    let Vote { purges, cast, .. } = &member.machine.durable().unwrap().votes[0];
    assert_eq!(cast.at_ms, 60_000, "what follows is told with the time of all votes, of which it sees two");
    let taken: Vec<_> = purges.listed.values().map(|purge| (purge.reference.0.as_str(), &purge.state)).collect();
    assert_eq!(taken, [("with the paths of us-1", &PurgeState::Created)]);

    // It has not, and will not.
    let mut member = after_voting(None, &[("eu-2", voted("other", ""))]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    assert_eq!(member.machine.durable().unwrap().history.last().map(|c| &c.outcome), Some(&Outcome::Dead));
}

/// Another member, which has closed its vote as purged; where it had no newer listing, it says so.
fn has_told(listed: &str) -> Option<Known> {
    let mut vote = vote_of(&THREE, Some(PurgeState::Completed));
    vote.closed = Some(Outcome::Purged);
    listed.clone_into(&mut vote.why);
    let detail = if listed.is_empty() { "" } else { "listed/eu-2" };
    let rollout = group_rollout_id("default", &web(), &vote.vector);
    vote.purges.noticed.insert(Notice::id_of(&rollout, Kind::PurgeCompleted, detail));
    known("other", Record { change: Change::Changed, closed: Seq(2), votes: vec![vote], ..at("b", 2) })
}

#[test]
fn an_end_that_another_member_has_told_is_not_told_again() {
    for (listed, compared) in [("", 0), ("distributions as listed 40s ago", 1)] {
        let others = [("eu-2", has_told(listed)), ("us-1", voted("third", ""))];
        let mut member = after_voting(Some(PurgeState::Created), &others);
        member.step(Event::Seen(Box::new(complete("b", 2))));
        member.pass(Duration::from_secs(120));
        assert_eq!(member.machine.durable().unwrap().votes[0].closed, Some(Outcome::Purged));
        assert_eq!(member.compared, compared, "whoever had a newer listing has compared for all: {listed}");
        assert_eq!(member.told(Kind::PurgeCompleted), [""; 0]);
    }
    // Of the two members that closed it, neither has announced it.
    let mut silent = has_told("");
    silent.as_mut().map(|known| &mut known.published).into_iter().for_each(|published| {
        let Published::Record(record) = published else { return };
        record.votes[0].purges.noticed.clear();
    });
    let mut member = after_voting(Some(PurgeState::Created), &[("eu-2", silent), ("us-1", voted("third", ""))]);
    member.step(Event::Seen(Box::new(complete("b", 2))));
    member.pass(Duration::from_secs(120));
    assert_eq!(member.told(Kind::PurgeCompleted).len(), 1);
}
