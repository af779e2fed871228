//! Stories of environments beside each other: dev, then eu and us, then prod after both.

use super::*;

fn diamond(advance: Advance) -> Spec {
    let mut spec = spec(false);
    spec.advance = advance;
    spec.environments = ["dev", "eu", "us", "prod"].map(|name| environment(name, &[name], false)).to_vec();
    let after = |names: &[&str]| names.iter().map(|name| Environment((*name).to_owned())).collect();
    spec.environments[1].after = after(&["dev"]);
    spec.environments[2].after = after(&["dev"]);
    spec.environments[3].after = after(&["eu", "us"]);
    spec
}

/// Everything is at revision 1, and written down.
fn story(spec: Spec) -> Story {
    let mut story = Story::new(spec);
    for name in ["dev", "eu", "us", "prod"] {
        story.show(name, at("1"));
    }
    story.pass(MINUTE);
    story
}

fn started(story: &Story) -> Vec<&str> {
    let started = story.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStarted);
    started.map(|(_, message)| message.as_str()).collect()
}

/// What a notice says that the environment is to run, it runs.
fn deploy(story: &mut Story, name: &str, revision: &str) {
    assert!(started(story).contains(&format!("{revision} is promoted to {name}").as_str()), "{:?}", started(story));
    story.show(name, at(revision));
    story.pass(MINUTE);
}

#[test]
fn branches_move_on_beside_each_other() {
    let mut story = story(diamond(Advance::Latest));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    assert_eq!(started(&story), ["2 is promoted to eu", "2 is promoted to us"]);
    story.show("us", unready("2"));
    deploy(&mut story, "eu", "2");
    assert_eq!(started(&story).len(), 2);
    let waits = |story: &mut Story| story.view().environments[3].waits.clone();
    assert_eq!(waits(&mut story).as_deref(), Some("us: us/web is not ready: 1 of 2 pods available"));
    story.show("us", at("2"));
    story.pass(MINUTE);
    assert_eq!(started(&story)[2..], ["2 is promoted to prod"]);
}

#[test]
fn all_before_those_before_it_must_be_at_the_revision_too() {
    let mut story = story(diamond(Advance::Latest));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    story.show("dev", at("3"));
    story.pass(MINUTE);
    story.show("us", at("2"));
    story.pass(MINUTE);
    assert_eq!(story.count(Kind::PromotionStarted), 4, "{:?}", started(&story));
    assert_eq!(story.view().environments[3].waits.as_deref(), Some("eu is at 2, and dev at 3"));
}

#[test]
fn one_branch_that_cannot_be_read_holds_up_what_follows_it_and_nothing_beside_it() {
    let mut story = story(diamond(Advance::Latest));
    story.show("us", Sight::Unknown("no answer".to_owned()));
    for revision in ["2", "3"] {
        story.show("dev", at(revision));
        story.pass(MINUTE);
        deploy(&mut story, "eu", revision);
    }
    assert_eq!(started(&story), ["2 is promoted to eu", "3 is promoted to eu"]);
    story.show("us", at("1"));
    story.pass(MINUTE);
    deploy(&mut story, "us", "3");
    assert_eq!(started(&story)[2..], ["3 is promoted to us", "3 is promoted to prod"]);
}

/// Eu is always ahead of us, so that the two are never at one revision at one time.
#[test]
fn step_by_step_what_has_passed_each_branch_moves_on_though_they_never_agree() {
    let mut story = story(diamond(Advance::Stepwise));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    for revision in 3..20 {
        story.show("dev", at(&revision.to_string()));
        story.pass(MINUTE);
        // Its rollout takes until the next revision is in eu.
        story.show("us", unready(&(revision - 1).to_string()));
        deploy(&mut story, "eu", &revision.to_string());
        story.show("us", at(&(revision - 1).to_string()));
        story.pass(MINUTE);
        deploy(&mut story, "prod", &(revision - 1).to_string());
    }
}

#[test]
fn what_one_branch_went_back_from_is_not_promoted() {
    let mut story = story(diamond(Advance::Stepwise));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    let view = story.view().environments.remove(3);
    assert_eq!((view.waits, view.next.as_str()), (None, "it moves when another revision has passed eu and us"));
    story.show("eu", at("1"));
    story.pass(MINUTE);
    deploy(&mut story, "us", "2");
    assert_eq!(started(&story), ["2 is promoted to eu", "2 is promoted to us"]);
}

#[test]
fn an_open_promotion_ends_when_one_of_those_before_it_went_elsewhere() {
    let mut spec = diamond(Advance::Latest);
    spec.environments[3].promotion = by_request().environments[1].promotion.clone();
    let mut story = story(spec);
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    deploy(&mut story, "us", "2");
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    story.asked.clear();
    story.show("us", at("1"));
    story.pass(MINUTE);
    let [Effect::Withdraw(_, Some(7), why)] = &story.asked[..] else { panic!("{:?}", story.asked) };
    assert_eq!(why, "us is at another revision now");
}

#[test]
fn a_soak_is_that_of_each_branch() {
    let mut spec = diamond(Advance::Stepwise);
    spec.environments[3].gates.soak = Duration::from_mins(30);
    let mut story = story(spec);
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    story.pass(Duration::from_mins(28));
    deploy(&mut story, "us", "2");
    story.pass(Duration::from_mins(10));
    assert_eq!(started(&story).len(), 2, "us has been at 2 for eleven minutes");
    story.show("dev", at("3"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "3");
    story.pass(Duration::from_mins(20));
    assert_eq!(started(&story)[2..], ["3 is promoted to eu", "3 is promoted to us", "2 is promoted to prod"]);
}

/// A request for 2 into prod is open, and eu has gone on to 3.
fn proposed() -> Story {
    let mut spec = diamond(Advance::Stepwise);
    spec.environments[3].promotion = by_request().environments[1].promotion.clone();
    let mut story = story(spec);
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    deploy(&mut story, "us", "2");
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    story.show("dev", at("3"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "3");
    story.asked.clear();
    story
}

#[test]
fn what_one_branch_went_on_to_is_no_sign_that_the_other_went_back() {
    let mut story = proposed();
    // A watch lags: the fresh look finds it where it was.
    story.feed(Event::Reported(vec![(target("us"), at("1"))]));
    story.pass(MINUTE);
    story.feed(Event::Reported(vec![(target("us"), at("2"))]));
    story.pass(Duration::from_mins(5));
    assert_eq!((story.phase(), story.count(Kind::PromotionWithdrawn)), (Some(Phase::Proposed), 0), "{:?}", story.told);
}

#[test]
fn a_slow_branch_keeps_what_a_fast_one_has_had_long_ago() {
    let mut story = proposed();
    for revision in 4..40 {
        story.show("dev", at(&revision.to_string()));
        story.pass(MINUTE);
        deploy(&mut story, "eu", &revision.to_string());
    }
    assert_eq!((story.phase(), story.count(Kind::PromotionWithdrawn)), (Some(Phase::Proposed), 0), "{:?}", story.told);
    story.show("prod", at("2"));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.view().environments[3].waits.clone()), (Some(Phase::Completed), None));
}

/// Dev has another one each five minutes. What applies in eu looks each ten, and what applies in us five minutes later.
#[test]
fn branches_that_are_free_at_different_times_meet() {
    let mut story = story(diamond(Advance::Stepwise));
    let newest = |story: &Story, name: &str| {
        let suffix = format!(" is promoted to {name}");
        let mut told =
            started(story).into_iter().filter_map(|message| message.strip_suffix(&suffix).map(str::to_owned));
        told.next_back()
    };
    for minute in 0..300_u32 {
        if minute % 5 == 0 {
            story.show("dev", at(&(minute / 5 + 2).to_string()));
        }
        for (name, at_minute) in [("eu", 1), ("us", 6), ("prod", 3)] {
            if minute % 10 == at_minute
                && let Some(revision) = newest(&story, name)
            {
                story.show(name, at(&revision));
            }
        }
        story.pass(MINUTE);
    }
    let prod = started(&story).into_iter().filter(|message| message.ends_with("to prod")).count();
    assert!(prod >= 10, "{prod} in 30 rounds: {:?}", started(&story));
}

#[test]
fn what_one_branch_knows_to_be_older_is_not_newer_in_another() {
    let mut spec = diamond(Advance::Stepwise);
    spec.environments[3].suspended = true;
    let mut story = story(spec.clone());
    for revision in ["2", "3"] {
        story.show("dev", at(revision));
        story.pass(MINUTE);
        deploy(&mut story, "eu", revision);
    }
    for revision in ["3", "2"] {
        story.show("us", at(revision));
        story.pass(MINUTE);
    }
    spec.environments[3].suspended = false;
    story.change(|object| {
        object.generation += 1;
        object.spec = Ok(spec);
    });
    story.pass(MINUTE);
    assert!(!started(&story).contains(&"3 is promoted to prod"), "{:?}", started(&story));
}

#[test]
fn a_question_ends_when_a_branch_went_on_before_its_soak_was_over() {
    let mut spec = diamond(Advance::Stepwise);
    spec.environments[3].gates.soak = Duration::from_mins(30);
    spec.environments[3].promotion = Some(PromotionSpec { manual: true, strategy: Strategy::Notification });
    let mut story = story(spec);
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    deploy(&mut story, "us", "2");
    assert!(story.ticket().is_some());
    story.show("dev", at("3"));
    story.pass(Duration::from_mins(20));
    deploy(&mut story, "eu", "3");
    assert_eq!((story.phase(), story.ticket()), (Some(Phase::Withdrawn), None));
}

#[test]
fn what_a_branch_went_back_from_is_not_waited_for() {
    let mut story = story(diamond(Advance::Stepwise));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    deploy(&mut story, "us", "2");
    assert_eq!(story.phase(), Some(Phase::Landed));
    story.show("eu", at("1"));
    story.pass(MINUTE);
    let waits = story.view().environments[3].waits.clone();
    assert_ne!(waits.as_deref(), Some("waits for somebody to deploy 2 in prod"), "{:?}", story.phase());
}

#[test]
fn what_has_passed_both_and_is_there_is_no_wait() {
    let mut story = story(diamond(Advance::Stepwise));
    story.show("dev", at("2"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "2");
    deploy(&mut story, "us", "2");
    deploy(&mut story, "prod", "2");
    story.show("us", at("2"));
    story.show("dev", at("3"));
    story.pass(MINUTE);
    deploy(&mut story, "eu", "3");
    story.pass(Duration::from_hours(3));
    let stalled: Vec<_> = story
        .told
        .iter()
        .filter(|(kind, message)| *kind == Kind::PromotionStalled && message.starts_with("prod"))
        .collect();
    assert_eq!(stalled, [] as [&(Kind, String); 0]);
}
