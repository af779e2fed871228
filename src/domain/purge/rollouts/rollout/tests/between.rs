//! Caches between: no vote before they were asked for what it is about, or their bound was told.

use std::sync::Arc;

use super::*;
use crate::caches::Cache;
use crate::caches::asking::{Answer, Answers, Endpoint};
use crate::testing::cache;

/// Two caches with different hosts and bounds: `inner` has everything for a minute, `outer` another host for ten seconds.
fn with_caches() -> Policy {
    let outer = Cache {
        hosts: ["shop.example.com".parse().unwrap()].into(),
        timeout: Duration::from_secs(10),
        ..cache("outer")
    };
    Policy { caches: vec![Arc::new(cache("inner")), Arc::new(outer)], ..without_barrier(OnRollback::default()) }
}

/// Both caches have every host.
fn with_two() -> Policy {
    let policy = with_caches();
    let outer = Cache { hosts: BTreeSet::new(), ..(*policy.caches[1]).clone() };
    Policy { caches: vec![policy.caches[0].clone(), Arc::new(outer)], ..policy }
}

fn pod(name: &str) -> Endpoint {
    Endpoint { name: name.to_owned(), address: format!("{name}:80"), uid: format!("uid-{name}") }
}

fn cleared(names: &[&str]) -> Vec<(Endpoint, Answer)> {
    names.iter().map(|name| (pod(name), Answer::Cleared)).collect()
}

fn before(names: &[&str]) -> Vec<(Endpoint, Answer)> {
    names.iter().map(|name| (pod(name), Answer::Before)).collect()
}

fn failed(names: &[&str]) -> Vec<(Endpoint, Answer)> {
    names.iter().map(|name| (pod(name), Answer::Failed("no connection".to_owned()))).collect()
}

impl Story {
    /// A rollout to `b` whose site is found, and whose caches do not answer by themselves.
    fn at_caches(policy: Policy) -> Self {
        let mut story = Self::under(policy, complete("a", 1));
        story.held.insert("ask_cache");
        story.see(complete("b", 2));
        story
    }

    fn questions(&self) -> Vec<(Before, CacheQuestion)> {
        let asked = self.effects.iter();
        let asked =
            asked.filter_map(|effect| if let Effect::AskCache(of, asked) = effect { Some((of, asked)) } else { None });
        asked.map(|(of, question)| (of.clone(), (**question).clone())).collect()
    }

    /// The last question to a cache.
    fn question(&self, cache: &str) -> (Before, CacheQuestion) {
        self.questions().into_iter().rev().find(|(_, question)| question.cache.name == cache).unwrap()
    }

    fn answer(&mut self, cache: &str, parts: &[Vec<(Endpoint, Answer)>]) {
        let (of, question) = self.question(cache);
        let answers = Answers { endpoints: parts.iter().flatten().cloned().collect(), unready: 0 };
        self.step(Event::CacheAnswered(of, question.back(), Ok(answers)));
    }

    /// What becomes of a cache whose two pods answer at once.
    fn clear(&mut self, cache: &str) {
        self.answer(cache, &[cleared(&["1", "2"])]);
        self.answer(cache, &[before(&["1", "2"])]);
    }

    fn rechecks(&self) -> usize {
        self.effects.iter().filter(|effect| effect.name() == "recheck").count()
    }

    fn is_voted(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Store(record) if !record.votes.is_empty()))
    }
}

#[test]
fn the_vote_waits_until_every_cache_that_has_pages_of_it_has_answered() {
    let mut story = Story::at_caches(with_caches());
    let (of, question) = story.question("inner");
    assert!(matches!(of, Before::Vote(..)));
    let asked: Vec<String> = question.requests.iter().map(|one| format!("{}{}", one.host, one.target)).collect();
    assert_eq!(asked, ["www.example.com/*"]);
    assert_eq!(story.questions().len(), 1, "the other cache has none of its hosts");
    story.answer("inner", &[cleared(&["1", "2"])]);
    assert_eq!((story.rechecks(), story.is_voted()), (0, false), "one may have joined meanwhile");
    story.answer("inner", &[before(&["1", "2"])]);
    assert_eq!((story.rechecks(), story.is_voted(), story.last()), (1, true, Some(&Outcome::Purged)));
    assert_eq!(story.told(Kind::WorkloadFaulty), 0);
}

#[test]
fn a_workload_without_caches_waits_for_nothing_and_asks_nothing() {
    let names = |policy: Policy| {
        let mut story = Story::under(policy, complete("a", 1));
        story.see(complete("b", 2));
        story.effects.iter().map(Effect::name).collect::<Vec<_>>()
    };
    let elsewhere = Cache { hosts: ["shop.example.com".parse().unwrap()].into(), ..cache("inner") };
    let elsewhere = Policy { caches: vec![Arc::new(elsewhere)], ..with_caches() };
    let plain = names(without_barrier(OnRollback::default()));
    assert_eq!(names(elsewhere), plain);
    assert!(!plain.contains(&"ask_cache"));
}

// Faults: P6
#[test]
fn a_pod_that_joins_is_asked_and_one_that_leaves_is_not_waited_for() {
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[cleared(&["1"]), failed(&["2"])]);
    story.pass(Duration::from_secs(1));
    assert_eq!(story.question("inner").1.cleared, [pod("1")].into());
    story.answer("inner", &[before(&["1"]), cleared(&["3"])]);
    assert!(!story.is_voted());
    story.answer("inner", &[before(&["1", "3"])]);
    assert!(story.is_voted());
}

#[test]
fn one_that_comes_back_is_asked_again() {
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[cleared(&["1", "2"])]);
    story.answer("inner", &[before(&["1"]), cleared(&["3"])]);
    assert_eq!(story.question("inner").1.cleared, [pod("1"), pod("3")].into());
}

// Faults: P5
#[test]
fn one_that_never_answers_is_told_by_name_at_the_bound_and_the_vote_goes_on() {
    let mut story = Story::at_caches(with_two());
    story.clear("inner");
    for _ in 0..4 {
        story.answer("outer", &[cleared(&["1"]), failed(&["2"])]);
        story.pass(Duration::from_secs(2));
    }
    assert!(!story.is_voted());
    story.answer("outer", &[before(&["1"]), failed(&["2"])]);
    assert!(story.state().contains("outer (shop/outer:80): 2 no connection"), "{}", story.state());
    story.pass(Duration::from_secs(2));
    assert_eq!((story.is_voted(), story.told(Kind::WorkloadFaulty)), (true, 1));
    let told = story.effects.iter().find_map(|effect| match effect {
        Effect::Tell(notice) if notice.kind == Kind::WorkloadFaulty => Some(notice.message.clone()),
        _ => None,
    });
    assert!(told.unwrap().contains("outer (shop/outer:80): 2 no connection"));
    assert!(!story.questions().iter().any(|(_, question)| question.number == 0));
}

#[test]
fn one_whose_answer_never_comes_is_left_as_well() {
    let mut story = Story::at_caches(with_caches());
    story.pass(Duration::from_secs(64));
    assert!(!story.is_voted());
    story.pass(Duration::from_secs(1));
    assert_eq!((story.is_voted(), story.told(Kind::WorkloadFaulty)), (true, 1));
}

#[test]
fn an_answer_to_an_earlier_question_is_none() {
    let mut story = Story::at_caches(with_caches());
    let (of, first) = story.question("inner");
    story.answer("inner", &[cleared(&["1"]), failed(&["2"])]);
    story.pass(Duration::from_secs(1));
    let all = Answers { endpoints: before(&["1", "2"]).into_iter().collect(), unready: 0 };
    story.step(Event::CacheAnswered(of, first.back(), Ok(all)));
    assert!(!story.is_voted());
}

#[test]
fn another_version_is_asked_for_anew() {
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[cleared(&["1", "2"])]);
    let (of, old) = story.question("inner");
    story.see(complete("c", 3));
    let (newer, question) = story.question("inner");
    assert!(of != newer && question.cleared.is_empty());
    let all = Answers { endpoints: before(&["1", "2"]).into_iter().collect(), unready: 0 };
    story.step(Event::CacheAnswered(of, old.back(), Ok(all)));
    assert!(!story.is_voted());
    story.clear("inner");
    assert!(story.is_voted());
}

// Whoever never rests must not keep a vote from being cast: the bound is one for all that is asked between two votes.
#[test]
fn versions_that_never_rest_keep_no_vote_from_being_cast() {
    let mut story = Story::at_caches(with_caches());
    for generation in 3..30 {
        if story.is_voted() {
            assert!(generation > 8, "a minute is not over");
            return;
        }
        story.answer("inner", &[failed(&["1"])]);
        story.pass(Duration::from_secs(9));
        story.see(complete(&format!("v{generation}"), generation));
    }
    panic!("no vote was ever cast");
}

#[test]
fn a_request_that_joins_meanwhile_is_asked_for_too() {
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[cleared(&["1", "2"])]);
    let mut asks = complete("b", 2);
    asks.tuning.asks.requested_at = Some("now".to_owned());
    story.see(asks);
    assert!(story.question("inner").1.cleared.is_empty(), "what was let go of before the request may be there again");
}

// Faults: P6
#[test]
fn a_restart_asks_again_and_the_record_has_no_word_of_it() {
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[cleared(&["1", "2"])]);
    story.pass(Duration::from_secs(2));
    let record = story.record().clone();
    let mut again = Story::resumed(with_caches(), record);
    again.held.insert("ask_cache");
    again.cluster = Some(complete("b", 2));
    again.see(complete("b", 2));
    assert!(again.question("inner").1.cleared.is_empty());
    again.clear("inner");
    assert!(again.is_voted());
}

#[test]
fn a_cache_without_pods_has_nothing_and_one_whose_pods_are_not_ready_may() {
    let mut story = Story::at_caches(with_caches());
    let answered = |story: &mut Story, unready| {
        let (of, question) = story.question("inner");
        let answers = Answers { unready, ..Answers::default() };
        story.step(Event::CacheAnswered(of, question.back(), Ok(answers)));
    };
    answered(&mut story, 2);
    assert!(!story.is_voted());
    story.pass(Duration::from_secs(1));
    answered(&mut story, 0);
    assert!(story.is_voted());
}

// Faults: P5
#[test]
fn endpoints_that_cannot_be_read_are_not_none() {
    let mut story = Story::at_caches(with_caches());
    let (of, question) = story.question("inner");
    story.step(Event::CacheAnswered(of, question.back(), Err("the Service is missing".to_owned())));
    assert!(!story.is_voted() && story.state().contains("the Service is missing"), "{}", story.state());
}

#[test]
fn a_site_that_was_found_long_ago_is_found_once_more() {
    let sites = |story: &Story| story.effects.iter().filter(|effect| effect.name() == "find_site").count();
    let mut story = Story::at_caches(with_caches());
    story.answer("inner", &[failed(&["1"])]);
    story.pass(Duration::from_secs(6));
    assert_eq!(sites(&story), 1);
    story.clear("inner");
    assert_eq!((sites(&story), story.is_voted()), (2, true));
}

#[test]
fn what_a_cache_cannot_be_asked_for_is_told_and_not_waited_for() {
    let purges = Cache { method: crate::caches::Method::Purge, ..cache("inner") };
    let story = Story::at_caches(Policy { caches: vec![Arc::new(purges)], ..with_caches() });
    assert_eq!((story.is_voted(), story.told(Kind::WorkloadFaulty), story.questions().len()), (true, 1, 0));
}

/// A rollout to `b` whose further purge waits for a cache, and how many questions were asked before.
fn at_a_further_purge() -> (proving::Site, usize) {
    let policy = Policy { caches: with_caches().caches, ..proving::policy(1) };
    let mut site = proving::Site::under(policy, None, 1);
    site.story.held.remove("ask_cache");
    site.roll("b", 2);
    site.story.held.insert("ask_cache");
    let before = site.story.questions().len();
    for _ in 0..20 {
        if site.story.questions().len() > before {
            break;
        }
        site.run(5);
    }
    (site, before)
}

#[test]
fn what_is_left_before_a_further_purge_is_told_and_is_no_remark_on_the_present_rollout() {
    let (mut site, _) = at_a_further_purge();
    site.run(70);
    assert_eq!((site.story.purges().len(), site.story.told(Kind::WorkloadFaulty)), (2, 1));
    assert!(!site.story.record().remark.contains("went on without caches"));
}

#[test]
fn before_a_further_purge_caches_are_asked_again() {
    let (mut site, before) = at_a_further_purge();
    let (of, question) = site.story.question("inner");
    assert!(matches!(of, Before::Again(_)) && question.cleared.is_empty(), "{of:?}");
    assert_eq!(site.story.purges().len(), 1);
    site.story.clear("inner");
    assert_eq!(site.story.purges().len(), 2);
    site.run(30);
    assert_eq!(site.story.questions().len(), before + 2, "it is asked no more");
}

#[test]
fn what_begins_after_the_bound_is_asked_once_all_the_same() {
    let mut story = Story::at_caches(with_caches());
    for _ in 0..11 {
        story.answer("inner", &[failed(&["1"])]);
        story.pass(Duration::from_secs(5));
    }
    story.pass(Duration::from_secs(7));
    assert!(!story.is_voted(), "the last answer is still waited for");
    story.see(half("c", 3));
    let before = story.questions().len();
    story.see(complete("c", 4));
    assert_eq!((story.questions().len(), story.is_voted()), (before + 1, false));
    story.answer("inner", &[failed(&["1"])]);
    assert!(story.is_voted());
}

#[test]
fn after_a_vote_the_next_one_has_the_whole_bound() {
    let mut story = Story::at_caches(with_caches());
    for _ in 0..5 {
        story.answer("inner", &[failed(&["1"])]);
        story.pass(Duration::from_secs(10));
    }
    story.clear("inner");
    assert!(story.is_voted());
    story.see(complete("c", 3));
    let since = story.questions().len();
    story.answer("inner", &[failed(&["1"])]);
    story.pass(Duration::from_secs(30));
    assert!(story.questions().len() > since);
    assert_eq!(story.record().votes.len() + story.record().history.len(), 1, "the second is not voted for yet");
}

#[test]
fn who_answers_after_the_bound_has_answered() {
    let mut story = Story::at_caches(with_caches());
    story.pass(Duration::from_secs(61));
    assert!(!story.is_voted(), "the answer is still waited for");
    story.answer("inner", &[cleared(&["1", "2"])]);
    assert_eq!((story.is_voted(), story.told(Kind::WorkloadFaulty)), (true, 0));
}
