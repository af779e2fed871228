//! What a group of one writes between the end of the barrier and its purge: one record, with the vote and all that it purges.

use super::*;
use crate::testing::distributions;

impl Story {
    /// The records it had written since `from`.
    fn stores(&self, from: usize) -> Vec<&Record> {
        let stored = |effect: &'_ Effect| matches!(effect, Effect::Store(_));
        let stores = self.effects[from..].iter().filter(|effect| stored(effect));
        stores.filter_map(|effect| if let Effect::Store(record) = effect { Some(&**record) } else { None }).collect()
    }

    /// Where the settling ends, with these answers outstanding. Returns how many effects there were before.
    fn settled_without(held: &[&'static str]) -> (Self, usize) {
        let mut story = Self::under(Policy::default(), complete("a", 1));
        story.see(half("b", 2));
        story.see(complete("b", 2));
        story.held.extend(held);
        story.pass(Policy::default().barrier.settle - Duration::from_millis(1));
        let before = story.effects.len();
        story.pass(Duration::from_millis(1));
        (story, before)
    }

    fn vector(&self) -> Vector {
        let asked = |effect: &Effect| match effect {
            Effect::Recheck(vector) | Effect::Match(vector, _) => Some(vector.clone()),
            _ => None,
        };
        self.effects.iter().rev().find_map(asked).unwrap()
    }
}

#[test]
fn what_was_settled_voted_for_and_found_is_one_write_and_the_purge_comes_right_after_it() {
    let (story, before) = Story::settled_without(&["purge"]);
    let stores = story.stores(before);
    let voted = stores.first().unwrap();
    assert_eq!((stores.len(), &voted.phase, voted.votes.len()), (1, &Phase::Complete, 1));
    let purges: BTreeSet<&Reference> = voted.votes[0].purges.listed.values().map(|purge| &purge.reference).collect();
    assert_eq!((purges.len(), purges), (1, story.purges()));
    let names: Vec<&str> = story.effects[before..].iter().map(Effect::name).collect();
    let place = |name: &str| names.iter().position(|effect| *effect == name).unwrap();
    assert!(place("store") < place("purge"), "{names:?}");
}

#[test]
fn an_answer_that_does_not_come_holds_a_write_for_a_second() {
    for held in ["find_site", "recheck"] {
        let (mut story, before) = Story::settled_without(&[held]);
        story.pass(Duration::from_millis(999));
        assert_eq!(story.stores(before), [] as [&Record; 0], "{held}");
        story.pass(Duration::from_millis(1));
        assert_eq!((&story.record().phase, story.record().votes.len()), (&Phase::Complete, 0), "{held}");
    }
    let (mut story, _) = Story::settled_without(&["match"]);
    story.pass(Duration::from_secs(1));
    assert_eq!((story.record().votes.len(), story.purges().len()), (1, 0), "voted for, and not known what to purge");
    let Some(Effect::Match(vector, plan)) = story.effects.iter().rev().find(|e| e.name() == "match").cloned() else {
        panic!("nothing was looked for")
    };
    let found = answers(&Effect::Match(vector, plan), story.cluster.as_ref());
    story.held.clear();
    found.into_iter().for_each(|event| story.step(event));
    assert_eq!((story.purges().len(), story.last()), (1, Some(&Outcome::Purged)));
}

#[test]
fn an_answer_that_says_no_lets_the_write_go_at_once() {
    let refused = |vector: Vector| {
        let why = "forbidden".to_owned();
        [
            ("find_site", Event::SiteFailed(why.clone())),
            ("recheck", Event::RecheckFailed(why.clone())),
            ("recheck", Event::Rechecked(vector.clone(), Some(Box::new(half("b", 3))))),
            ("recheck", Event::Rechecked(vector.clone(), Some(Box::new(complete("c", 3))))),
            ("match", Event::MatchFailed(vector, why)),
        ]
    };
    for case in 0..5 {
        let held = ["find_site", "recheck", "recheck", "recheck", "match"][case];
        let (mut story, before) = Story::settled_without(&[held]);
        let vector = if held == "find_site" { Vector::default() } else { story.vector() };
        let event = refused(vector)[case].1.clone();
        story.step(event.clone());
        assert!(!story.stores(before).is_empty(), "{event:?}");
        assert_eq!(story.purges().len(), 0, "{event:?}");
    }
}

#[test]
fn a_life_that_ends_before_the_write_begins_with_the_settling_again_and_purges_once() {
    for held in ["find_site", "recheck", "match", "store"] {
        let (story, _) = Story::settled_without(&[held]);
        let machine = Rollout::resume(identity(), Policy::default(), Seq(0), story.machine.durable().cloned());
        let mut next = Story { machine, held: BTreeSet::new(), effects: Vec::new(), ..story };
        next.see(complete("b", 2));
        assert_eq!(next.purges().len(), 0, "{held}: it settles");
        next.pass(Policy::default().barrier.settle);
        assert_eq!((next.purges().len(), next.last()), (1, Some(&Outcome::Purged)), "{held}");
    }
}

#[test]
fn where_no_distribution_serves_the_hosts_the_vote_is_stored_before_that_is_its_end() {
    let (mut story, before) = Story::settled_without(&["match"]);
    let Some(Effect::Match(vector, plan)) = story.effects.last().cloned() else { panic!("nothing was looked for") };
    story.step(Event::Matched(vector, plan, Found::default()));
    let stores = story.stores(before);
    let ends: Vec<Option<&Outcome>> =
        stores.iter().map(|record| record.history.last().map(|closed| &closed.outcome)).take(2).collect();
    assert_eq!((stores[0].votes.len(), ends), (1, vec![None, Some(&Outcome::NoDistribution)]));
    assert_eq!(story.effects.iter().filter(|effect| effect.name() == "match").count(), 1, "asked once");
    assert_eq!((story.last(), story.purges().len()), (Some(&Outcome::NoDistribution), 0));
}

#[test]
fn an_answer_about_a_vote_that_another_worker_has_replaced_is_not_taken_for_one_about_its_own() {
    let (mut story, _) = Story::settled_without(&["match"]);
    let Some(Effect::Match(vector, early)) = story.effects.last().cloned() else { panic!("nothing was looked for") };
    story.held.insert("store");
    story.pass(Duration::from_secs(1));
    let written =
        story.effects.iter().rev().find_map(|e| if let Effect::Store(record) = e { Some(record) } else { None });
    let mut theirs = written.unwrap().clone();
    theirs.votes[0].plan.hosts.insert("shop.example.com".parse().unwrap());
    story.held.remove("store");
    story.step(Event::Conflicted(Some(theirs), Seq(0).into()));
    story.step(Event::Matched(vector, early, distributions().into()));
    assert_eq!(story.purges().len(), 0, "it does not know the second host");
    let Some(Effect::Match(vector, plan)) = story.effects.last().cloned() else { panic!("it is not asked again") };
    assert_eq!(plan.hosts.len(), 2);
    let both = BTreeSet::from(["E1EXAMPLE", "E2EXAMPLE"].map(|id| id.parse().unwrap()));
    story.held.remove("match");
    story.step(Event::Matched(vector, plan, both.into()));
    story.pass(Duration::from_secs(10));
    assert_eq!(story.purges().len(), 2);
}

#[test]
fn while_the_vote_is_held_nobody_is_said_to_be_waited_for() {
    let (story, _) = Story::settled_without(&["match"]);
    assert!(!story.state().contains("has not voted"), "{}", story.state());
}

// Faults: A5
#[test]
fn a_reference_that_was_used_before_the_ledger_was_set_back_is_replaced_once() {
    let (mut story, _) = Story::settled_without(&["purge"]);
    let order = |story: &Story| match story.effects.iter().rev().find(|effect| effect.name() == "purge") {
        Some(Effect::Purge(order)) => (**order).clone(),
        _ => panic!("nothing was ordered"),
    };
    let first = order(&story);
    assert!(first.voted_at.is_some(), "its invalidation cannot be older than that");
    story.step(Event::Purged(first.reference.clone(), Progress::Spent("IOLD".into())));
    let second = order(&story);
    assert_eq!((story.purges().len(), &second.paths, second.voted_at), (2, &first.paths, None));
    assert_eq!(
        story.record().votes[0].purges.listed.values().next().unwrap().reference,
        second.reference,
        "stored first"
    );
    story.step(Event::Purged(second.reference.clone(), Progress::Created("INEW".into())));
    story.step(Event::Purged(second.reference, Progress::Completed(None)));
    assert_eq!(story.last(), Some(&Outcome::Purged));
    let ended = story.effects.iter().rev().find_map(|effect| match effect {
        Effect::Tell(notice) if notice.kind == Kind::PurgeCompleted => Some(notice.about.mentions()?.purges.clone()),
        _ => None,
    });
    assert_eq!(ended.unwrap()[0].invalidation.as_ref().map(|id| id.0.as_str()), Some("INEW"));
}
