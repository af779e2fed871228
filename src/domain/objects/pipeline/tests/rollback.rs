//! Stories of environments that go back by themselves.

use super::answers::approve;
use super::*;
use crate::pipeline::spec::Rollback;
use crate::pipeline::status::Cause;

fn going_back(on: &[Cause]) -> Spec {
    let mut spec = spec(false);
    spec.environments[1].stalled_after = Duration::from_mins(10);
    spec.environments[1].rollback = Some(Rollback { on: on.to_vec(), within: Duration::from_mins(30) });
    if on.contains(&Cause::Verdict) {
        spec.environments[1].gates.verdict = Some(VerdictSource {
            url: "https://verdict.example.com".to_owned(),
            secret: None,
            timeout: Duration::from_secs(10),
        });
    }
    spec
}

fn started(story: &Story) -> Vec<&str> {
    let started = story.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStarted);
    started.map(|(_, message)| message.as_str()).collect()
}

/// Both targets of prod.
fn prod_shows(story: &mut Story, sight: &Sight) {
    story.show("prod-a", sight.clone());
    story.show("prod-b", sight.clone());
}

/// Staging has 2, and a notice says that prod is to run it.
fn at_two(spec: Spec) -> Story {
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    assert_eq!(started(&story), ["2 is promoted to prod"]);
    story
}

#[test]
fn what_is_not_ready_in_time_is_taken_back_once_and_not_promoted_again_by_itself() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(9));
    assert_eq!(started(&story).len(), 1);
    story.pass(MINUTE);
    let words = "goes back from 2 by itself: not ready for 10m: prod: prod-a/web is not ready: 1 of 2 pods available";
    assert_eq!(started(&story)[1..], [format!("1 is promoted to prod, {words}")]);
    assert_eq!(story.count(Kind::PromotionWithdrawn), 1, "{:?}", story.told);
    prod_shows(&mut story, &at("1"));
    story.pass(Duration::from_hours(3));
    assert_eq!((story.phase(), started(&story).len()), (Some(Phase::Completed), 2));
    let words = "it was to go back to 1 by itself: 2 is promoted only after a yes";
    assert_eq!(story.view().environments[1].waits.as_deref(), Some(words));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    assert_eq!(started(&story)[2..], ["3 is promoted to prod"], "what is newer goes on");
}

#[test]
fn what_is_ready_in_time_stays_also_where_it_fails_later() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(9));
    prod_shows(&mut story, &at("2"));
    story.pass(Duration::from_mins(5));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story).len(), 1);
}

#[test]
fn nobody_goes_back_from_what_was_not_deployed_or_cannot_be_seen() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story).len(), 1, "nobody has deployed it");
    let mut story = at_two(going_back(&[Cause::Stalled]));
    story.show("prod-a", unready("2"));
    story.show("prod-b", Sight::Unknown("no answer".to_owned()));
    story.pass(Duration::from_mins(29));
    assert_eq!(started(&story).len(), 1);
    story.pass(Duration::from_mins(2));
    story.show("prod-b", unready("2"));
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story).len(), 1, "its time to go back is over");
}

#[test]
fn nobody_goes_back_from_what_is_not_there_any_more_or_over_what_is_missing() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    prod_shows(&mut story, &unready("1"));
    story.pass(Duration::from_mins(20));
    assert_eq!(story.count(Kind::PromotionWithdrawn), 0, "{:?}", story.told);
    let mut story = at_two(going_back(&[Cause::Stalled]));
    story.show("prod-a", unready("2"));
    story.show("prod-b", Sight::Absent);
    story.pass(Duration::from_mins(20));
    assert_eq!(story.count(Kind::PromotionWithdrawn), 0, "{:?}", story.told);
}

#[test]
fn a_way_back_that_waits_for_a_yes_ends_when_what_is_there_is_ready_after_all() {
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    approve(&mut story);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    assert_eq!((story.phase(), started(&story).len()), (Some(Phase::Waiting), 1));
    prod_shows(&mut story, &at("2"));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.ticket()), (Some(Phase::Withdrawn), None));
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story).len(), 1, "{:?}", story.told);
    assert_eq!(story.view().environments[1].waits, None);
}

#[test]
fn a_fix_that_comes_while_the_way_back_waits_takes_its_place() {
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    approve(&mut story);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    approve(&mut story);
    assert_eq!(started(&story)[1..], ["3 is promoted to prod"]);
}

#[test]
fn what_a_person_chose_is_never_taken_back() {
    let mut story = Story::new(going_back(&[Cause::Stalled]));
    story.choose("9");
    prod_shows(&mut story, &unready("9"));
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story).len(), 1, "{:?}", started(&story));
}

fn opening(open: bool) -> Opening {
    Opening { open, changes_after: None, words: "error rate 12 %".to_owned() }
}

#[test]
fn a_verdict_that_turns_while_it_is_watched_takes_back_what_is_there() {
    let mut story = Story::new(going_back(&[Cause::Verdict]));
    story.show("staging", at("2"));
    story.pass(MINUTE);
    let answer = |story: &mut Story, open| {
        let topic = story.topic();
        story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(open))));
    };
    answer(&mut story, true);
    assert_eq!(started(&story), ["2 is promoted to prod"]);
    story.asked.clear();
    prod_shows(&mut story, &at("2"));
    answer(&mut story, true);
    assert_eq!((story.phase(), started(&story).len()), (Some(Phase::Completed), 1));
    story.asked.clear();
    story.pass(Duration::from_mins(6));
    answer(&mut story, false);
    assert_eq!(started(&story)[1..], ["1 is promoted to prod, goes back from 2 by itself: error rate 12 %"]);
    prod_shows(&mut story, &at("1"));
    story.asked.clear();
    story.pass(Duration::from_hours(1));
    assert_eq!((started(&story).len(), story.asked.len()), (2, 0), "nobody asks about what it went back to");
}

#[test]
fn a_verdict_counts_only_while_it_is_watched_and_none_is_no_no() {
    let mut story = Story::new(going_back(&[Cause::Verdict]));
    story.show("staging", at("2"));
    story.pass(MINUTE);
    let topic = story.topic();
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(true))));
    prod_shows(&mut story, &at("2"));
    for _ in 0..7 {
        story.asked.clear();
        story.pass(Duration::from_mins(5));
        if !story.asked.is_empty() {
            let failed = Answer::VerdictFailed(topic, "502".to_owned(), Duration::ZERO);
            story.feed(Event::Answered(prod(), failed));
        }
    }
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(false))));
    story.pass(Duration::from_hours(1));
    assert_eq!(started(&story).len(), 1);
}

#[test]
fn what_never_got_ready_is_nothing_to_go_back_to() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(5));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    prod_shows(&mut story, &unready("3"));
    story.pass(Duration::from_mins(11));
    let last = started(&story).last().map(|message| (*message).to_owned());
    assert!(
        last.as_deref().is_some_and(|message| message.starts_with("1 is promoted to prod, goes back from 3")),
        "{last:?}"
    );
}

#[test]
fn what_a_person_put_there_while_it_waited_is_what_it_goes_back_to() {
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    prod_shows(&mut story, &at("1.1"));
    approve(&mut story);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    let known =
        story.object.status.environment(&prod()).and_then(EnvironmentStatus::open).cloned().expect("a way back");
    assert_eq!((known.revision.0.as_str(), known.phase), ("1.1", Phase::Waiting));
}

#[test]
fn a_way_back_ends_when_somebody_has_put_something_else_there() {
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    approve(&mut story);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    prod_shows(&mut story, &at("5"));
    story.pass(MINUTE);
    assert_eq!(story.phase(), Some(Phase::Withdrawn), "{:?}", story.told);
}

#[test]
fn it_goes_back_also_while_those_before_it_are_not_ready_and_while_something_newer_may_not_start() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    story.show("staging", unready("3"));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    assert_eq!(started(&story).len(), 2, "{:?}", story.told);
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].gates.soak = Duration::from_hours(1);
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(Duration::from_hours(1));
    prod_shows(&mut story, &unready("2"));
    story.show("staging", at("3"));
    story.pass(Duration::from_mins(11));
    assert!(started(&story)[1].starts_with("1 is promoted to prod, goes back from 2"), "{:?}", story.told);
    prod_shows(&mut story, &at("1"));
    story.pass(Duration::from_hours(1));
    assert_eq!(started(&story)[2..], ["3 is promoted to prod"]);
}

#[test]
fn what_was_ready_once_does_not_stall_though_those_before_it_hide_that() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    story.show("staging", unready("2"));
    prod_shows(&mut story, &at("2"));
    story.pass(Duration::from_mins(9));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(15));
    assert_eq!(started(&story).len(), 1, "{:?}", story.told);
}

#[test]
fn what_a_person_said_a_second_yes_to_stays() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    prod_shows(&mut story, &at("1"));
    story.pass(MINUTE);
    approve(&mut story);
    assert_eq!(started(&story)[2..], ["2 is promoted to prod"]);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_hours(1));
    assert_eq!(started(&story).len(), 3);
}

#[test]
fn a_verdict_that_a_person_opened_takes_nothing_back() {
    let mut spec = going_back(&[Cause::Verdict]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    let topic = story.topic();
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(false))));
    let ticket = story.ticket();
    story.change(|object| (object.answers.overrides, object.answers.approve) = (ticket.clone(), ticket));
    assert_eq!(started(&story), ["2 is promoted to prod"]);
    story.asked.clear();
    prod_shows(&mut story, &at("2"));
    story.pass(Duration::from_mins(20));
    assert_eq!((started(&story).len(), story.asked.len()), (1, 0));
}

#[test]
fn an_answer_from_before_it_was_there_takes_nothing_back() {
    let mut story = Story::new(going_back(&[Cause::Verdict]));
    story.show("staging", at("2"));
    story.pass(MINUTE);
    let before = story.topic();
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(before, opening(true))));
    prod_shows(&mut story, &at("2"));
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(before, opening(false))));
    assert_eq!(started(&story).len(), 1);
    assert_ne!(story.topic(), before);
}

#[test]
fn a_way_back_ends_with_its_switch() {
    let mut spec = going_back(&[Cause::Stalled]);
    let mut story = at_two(spec.clone());
    spec.suspended = Some("release week".to_owned());
    story.change(|object| {
        object.generation += 1;
        object.spec = Ok(spec.clone());
    });
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(11));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    spec.environments[1].rollback = None;
    story.change(|object| {
        object.generation += 1;
        object.spec = Ok(spec);
    });
    assert_eq!((story.phase(), started(&story).len()), (Some(Phase::Withdrawn), 1));
}

#[test]
fn a_yes_to_what_is_newer_is_not_lost_to_a_way_back() {
    let mut spec = going_back(&[Cause::Stalled]);
    spec.environments[1].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    spec.environments[1].gates.soak = Duration::from_mins(20);
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(20));
    approve(&mut story);
    prod_shows(&mut story, &unready("2"));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    approve(&mut story);
    story.pass(Duration::from_mins(20));
    assert_eq!(
        (started(&story)[1..].to_vec(), story.count(Kind::PromotionWithdrawn)),
        (vec!["3 is promoted to prod"], 0)
    );
}

#[test]
fn each_target_has_its_own_time_to_get_ready() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    story.show("prod-a", at("2"));
    story.pass(Duration::from_mins(11));
    story.show("prod-b", unready("2"));
    story.pass(Duration::from_mins(9));
    assert_eq!(started(&story).len(), 1, "{:?}", story.told);
    story.pass(MINUTE);
    assert_eq!(started(&story).len(), 2, "{:?}", story.told);
}

#[test]
fn nobody_goes_back_from_what_somebody_put_there_after_its_promotion_ended() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &at("1.5"));
    story.pass(MINUTE);
    prod_shows(&mut story, &unready("2"));
    story.pass(Duration::from_mins(20));
    assert_eq!(story.count(Kind::PromotionWithdrawn), 0, "{:?}", story.told);
}

#[test]
fn nobody_goes_back_forward() {
    let mut story = at_two(going_back(&[Cause::Stalled]));
    prod_shows(&mut story, &at("2"));
    story.pass(MINUTE);
    story.show("staging", at("1"));
    story.pass(MINUTE);
    assert_eq!(started(&story)[1..], ["1 is promoted to prod"]);
    prod_shows(&mut story, &unready("1"));
    story.pass(Duration::from_mins(20));
    assert_eq!(started(&story).len(), 2, "{:?}", story.told);
}
