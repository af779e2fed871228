//! A member that is a version ahead of the others.

use super::*;
use crate::agreement::group::{Fate, fate};
use crate::records::record::{Brief, Edge, PASSED_MAX, VotePurges};
use crate::records::record_codec::form;

/// `eu-1`, which has completed `b` while `eu-2` was at `a`, and goes on to `c`.
fn ahead() -> Member {
    let mut member = Member::with(&[("eu-2", known("other", at("a", 1)))]);
    let record = Record { settled: Some(version("a")), ..member.record().clone() };
    member.begins_with(record);
    member.step(Event::Seen(Box::new(half("c", 3))));
    member
}

impl Member {
    fn record(&self) -> &Record {
        self.machine.durable().unwrap()
    }

    /// A life with this record in its ledger.
    fn begins_with(&mut self, record: Record) {
        self.machine =
            Rollout::resume(Identity { grouped: true, ..identity() }, Policy::default(), Seq(0), Some(record));
    }

    fn passed(&self) -> Vec<u64> {
        self.record().passed.iter().map(|passed| passed.seq.0).collect()
    }

    /// `eu-2` publishes this.
    fn other(&mut self, record: Record) {
        self.view.members.insert("eu-2".into(), known("other", record));
        self.look();
    }

    /// `eu-2` comes to this version.
    fn follows(&mut self, tag: &str, seq: u64) {
        self.other(Record { change: Change::Changed, closed: Seq(seq - 1), ..at(tag, seq) });
    }
}

/// The vector of these numbers.
fn numbers(own: u64, other: u64) -> Vector {
    let component = |origin: &str, seq| Component::bare(origin.into(), Seq(seq));
    Vector([("eu-1".into(), component("ledger", own)), ("eu-2".into(), component("other", other))].into())
}

#[test]
fn what_it_has_completed_is_kept_for_the_others_and_voted_for_when_they_come_to_it() {
    let mut member = ahead();
    assert_eq!((member.record().seq, member.passed()), (Seq(3), vec![2]));
    assert_eq!(member.told(Kind::RolloutSuperseded), [""; 0], "it has not ended");
    assert!(member.record().seeks() && form(member.record()) == 3);
    let line = "rollout 2 (web: b): complete here before another version took its place; purged when the others have completed it";
    assert_eq!(member.machine.summary(member.now).unwrap().past.older, [line]);

    member.follows("b", 2);
    let (vector, _) = member.recheck.clone().expect("both have completed b");
    assert_eq!(vector, numbers(2, 2));
    assert_eq!(fate(&member.view, &vector), Fate::Open(["eu-1".into(), "eu-2".into()].into()));
    member.step(Event::Rechecked(vector.clone(), Some(Box::new(half("c", 3)))));
    let vote = member.record().votes.first().expect("c need not be complete").clone();
    assert_eq!(
        (vote.seq, &vote.version, vote.cast.change, vote.purges.overtaken),
        (Seq(2), &version("b"), Change::Changed, true)
    );
    assert_eq!(vote.plan.hosts.len(), 1, "the present site");
    assert_eq!(vote.change_words, "web: a → b");
    assert_eq!(member.passed(), [2], "should the vector die, another one may come");
    assert_eq!(member.record().phase, Phase::Rolling);
}

#[test]
fn a_look_that_shows_what_ran_before_confirms_nothing_and_drops_it() {
    let mut member = ahead();
    member.follows("b", 2);
    let (vector, _) = member.recheck.clone().expect("both have completed b");
    member.step(Event::Rechecked(vector.clone(), Some(Box::new(complete("a", 4)))));
    assert_eq!((member.record().votes.len(), member.passed()), (0, Vec::new()));
    assert_eq!(member.told(Kind::RolloutSuperseded).len(), 2, "b and c");
    let gone = "it moved on to another version before it voted".to_owned();
    assert_eq!(fate(&member.view, &vector), Fate::Dead("eu-1".into(), gone));
    assert_eq!(
        member.record().history.first().map(|closed| (closed.seq, &closed.outcome)),
        Some((Seq(2), &Outcome::Superseded))
    );
    // And again c: what is dropped does not come back.
    member.step(Event::Seen(Box::new(half("c", 5))));
    assert_eq!(member.passed(), Vec::<u64>::new());
}

#[test]
fn going_back_to_what_was_gone_past_drops_what_came_after_it() {
    let mut member = ahead();
    member.pass(Duration::from_secs(1));
    member.step(Event::Seen(Box::new(complete("c", 3))));
    member.step(Event::OldPodsFound(Default::default()));
    member.pass(Duration::from_secs(10));
    assert_eq!((member.record().seq, member.record().phase.clone()), (Seq(3), Phase::Complete));
    member.step(Event::Seen(Box::new(half("d", 4))));
    assert_eq!(member.passed(), [2, 3]);
    member.step(Event::Seen(Box::new(half("c", 5))));
    assert_eq!(member.passed(), [2], "c is what runs, and d was never complete");
    member.step(Event::Seen(Box::new(half("b", 6))));
    assert_eq!((member.passed(), member.told(Kind::RolloutSuperseded).len()), (Vec::new(), 4));
}

#[test]
fn no_more_than_eight_are_kept_and_the_oldest_is_told_as_overtaken() {
    let mut member = ahead();
    let many = (0..PASSED_MAX).map(|n| {
        let tag = format!("x{n}");
        let old = Record { change: Change::Changed, closed: Seq(0), ..at(&tag, u64::try_from(n).unwrap() + 10) };
        old.kept_beside(&version("c"), true).remove(0)
    });
    let full = Record { passed: many.collect(), phase: Phase::Complete, seq: Seq(30), ..member.record().clone() };
    member.begins_with(full);
    member.step(Event::Seen(Box::new(half("d", 40))));
    assert_eq!(member.passed(), [11, 12, 13, 14, 15, 16, 17, 30]);
    assert_eq!(member.told(Kind::RolloutSuperseded), ["not purged: another version took its place first"]);
}

#[test]
fn a_vote_for_a_later_one_ends_those_before() {
    let mut member = ahead();
    let complete_c = Record { phase: Phase::Complete, ..member.record().clone() };
    member.begins_with(complete_c);
    member.step(Event::Seen(Box::new(complete("c", 3))));
    member.follows("c", 2);
    let (vector, _) = member.recheck.clone().expect("both are at c");
    assert_eq!(vector, numbers(3, 2));
    member.step(Event::Rechecked(vector, Some(Box::new(complete("c", 3)))));
    assert_eq!((member.record().votes.len(), member.passed()), (1, Vec::new()));
    assert_eq!(member.told(Kind::RolloutSuperseded).len(), 1);
    assert!(!member.record().votes[0].purges.overtaken);
}

#[test]
fn the_purge_of_what_was_gone_past_leaves_the_edge_moved_and_the_newest_open() {
    let mut member = ahead();
    member.follows("b", 2);
    let (vector, _) = member.recheck.clone().unwrap();
    member.step(Event::Rechecked(vector.clone(), Some(Box::new(half("c", 3)))));
    let last = Some(Brief::of(&vector));
    let mut theirs = member.record().votes[0].clone();
    theirs.purges.overtaken = false;
    let at_b = || Record { change: Change::Changed, closed: Seq(1), last: last.clone(), ..at("b", 2) };
    let purged = |purge: Purge| {
        let listed = BTreeMap::from([("E1EXAMPLE".parse().unwrap(), purge)]);
        Vote { purges: VotePurges { listed, ..theirs.purges.clone() }, ..theirs.clone() }
    };
    let found = purged(Purge::wanted("r".into()));
    member.other(Record { votes: vec![found], ..at_b() });
    let ours = member.record().votes[0].purges.listed.values().next().expect("it takes over what was found").clone();
    let done = purged(Purge { state: PurgeState::Completed, ..ours });
    let made = Vote { closed: Some(Outcome::Purged), ..done };
    member.other(Record { closed: Seq(2), votes: vec![made], ..at_b() });
    member.pass(Duration::from_secs(60));
    let record = member.record();
    assert_eq!(record.history.last().map(|closed| (closed.seq, &closed.outcome)), Some((Seq(2), &Outcome::Purged)));
    assert_eq!((record.closed, record.seq, record.passed.len()), (Seq(2), Seq(3), 0));
    assert_eq!((record.settled.clone(), record.edge), (Some(version("b")), Edge::Moved));
}

#[test]
fn another_object_a_switch_and_an_end_of_the_workload_drop_all() {
    let mut member = ahead();
    member.step(Event::Seen(Box::new(Workload { uid: "uid-2".into(), ..half("d", 1) })));
    assert_eq!(member.passed(), Vec::<u64>::new());
    let mut member = ahead();
    let mut off = half("c", 3);
    off.tuning.disabled = true;
    member.step(Event::Seen(Box::new(off)));
    assert_eq!((member.passed(), member.told(Kind::PurgeSkipped).len()), (Vec::new(), 2), "b and c");
    let mut member = ahead();
    member.step(Event::Missed);
    member.step(Event::Looked(None));
    assert_eq!((member.passed(), member.told(Kind::RolloutFailed).len()), (Vec::new(), 2), "b and c");
}

#[test]
fn alone_nothing_is_kept() {
    let kept = ahead().record().clone();
    let mut story = Story::begin(complete("a", 1));
    story.machine = Rollout::resume(identity(), without_barrier(OnRollback::default()), Seq(0), Some(kept));
    story.see(half("c", 3));
    assert_eq!(story.record().passed, []);
}

#[test]
fn whoever_waits_is_told_of_who_keeps_it_waiting() {
    let member = ahead();
    let tally = crate::agreement::tally::tally(&web(), &member.view, &"eu-1".into(), &Agreement::default());
    let line = "rollout 2 (web: b): complete here before another version took its place; waiting for eu-2, which is at web: a, complete";
    assert_eq!(tally.older, [line]);
    let theirs = crate::agreement::tally::tally(&web(), &member.view, &"eu-2".into(), &Agreement::default());
    assert_eq!(theirs.blocks.as_deref(), Some("eu-1 waits for this cluster, since it is at web: a, complete"));
}

const TWO: [(&str, &str); 2] = [("eu-1", "ledger"), ("eu-2", "other")];

#[test]
fn a_vote_of_a_member_that_has_gone_back_since_is_joined() {
    let mut member = Member::with(&[("eu-2", known("other", at("a", 3)))]);
    assert_eq!(member.recheck, None);
    member.other(Record { votes: vec![vote_of(&TWO, None)], config: "another".into(), ..at("a", 3) });
    let (vector, _) = member.recheck.clone().expect("it never takes that back");
    assert_eq!(vector, numbers(2, 2));
    member.step(Event::Rechecked(vector, Some(Box::new(complete("b", 2)))));
    assert_eq!(member.record().votes.len(), 1);
    // What was voted for under another configuration would come to nothing.
    let mut member = Member::with(&[("eu-2", known("other", at("a", 3)))]);
    let mut vote = vote_of(&TWO, None);
    vote.cast.config = "another".into();
    member.other(Record { votes: vec![vote], ..at("a", 3) });
    assert_eq!(member.recheck, None);
}

#[test]
fn votes_under_two_configurations_are_cast_anew_with_another_number_of_whoever_can_have_one() {
    let vote = vote_of(&TWO, None);
    let last = Some(Brief::of(&vote.vector));
    let b = ahead().record().passed.clone();
    let other = Record { passed: b, last: last.clone(), ..at("c", 3) };
    let mut member = Member::with(&[("eu-2", known("other", other))]);
    let voted = Record { votes: vec![vote], last, ..member.record().clone() };
    member.begins_with(voted);
    member.recheck = None;
    member.step(Event::Seen(Box::new(complete("b", 2))));
    let ended = member.record().history.last().map(|closed| (closed.seq, &closed.outcome));
    assert_eq!((ended, member.record().seq), (Some((Seq(2), &Outcome::Dead)), Seq(3)));
    assert_eq!(member.recheck.map(|(vector, _)| vector), Some(numbers(3, 2)));
}
