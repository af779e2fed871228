//! Stories of promotions that move on, of the notices at their end, and of those that wait for a person.

use super::*;

/// Staging, test and prod-a in one line, each after the one before.
fn line(soak: Duration) -> Spec {
    let mut spec = spec(false);
    spec.advance = Advance::Stepwise;
    spec.environments = in_line(vec![
        environment("staging", &["staging"], false),
        environment("prod", &["prod-a"], false),
        environment("last", &["prod-b"], false),
    ]);
    spec.environments[1].gates.soak = soak;
    spec
}

fn started(story: &Story) -> Vec<&str> {
    let started = story.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStarted);
    started.map(|(_, message)| message.as_str()).collect()
}

#[test]
fn a_promotion_that_the_head_takes_back_is_told_as_withdrawn() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    story.asked.clear();
    story.show("staging", at("1"));
    assert_eq!((story.phase(), story.count(Kind::PromotionWithdrawn)), (Some(Phase::Withdrawn), 1), "{:?}", story.told);
    let [Effect::Withdraw(_, Some(7), why)] = &story.asked[..] else { panic!("{:?}", story.asked) };
    assert_eq!(why, "prod is to be at 1 now, and has it");
}

#[test]
fn a_notification_that_the_head_takes_back_is_told_as_withdrawn() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.show("staging", at("1"));
    story.pass(MINUTE);
    assert_eq!((story.phase(), story.count(Kind::PromotionWithdrawn)), (Some(Phase::Withdrawn), 1), "{:?}", story.told);
}

#[test]
fn a_notification_says_that_somebody_is_to_deploy_it() {
    let mut story = Story::new(spec(false));
    story.show("staging", at("2"));
    story.pass(MINUTE);
    assert_eq!(story.condition("RollingOut"), Some("waits for somebody to deploy 2 in prod"));
}

#[test]
fn a_soak_outlasts_a_pod_that_is_evicted() {
    let mut soaking = spec(false);
    soaking.environments[1].gates.soak = Duration::from_mins(30);
    soaking.environments[1].gates.soak_tolerates = spec::SOAK_TOLERATES;
    let mut story = Story::new(soaking);
    story.show("staging", at("2"));
    for _ in 0..7 {
        story.pass(Duration::from_mins(4));
        story.show("staging", unready("2"));
        story.pass(MINUTE);
        story.show("staging", at("2"));
    }
    assert_eq!(story.phase(), Some(Phase::Landed));
}

#[test]
fn a_revision_that_has_soaked_moves_on_though_its_environment_has_moved_on() {
    let mut closed = line(Duration::from_mins(30));
    closed.suspended = Some("release week".to_owned());
    let mut story = Story::new(closed);
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(31));
    story.show("staging", at("3"));
    story.pass(MINUTE);
    story.change(|object| {
        object.generation += 1;
        object.spec = Ok(line(Duration::from_mins(30)));
    });
    assert_eq!(started(&story), ["2 is promoted to prod"]);
    story.show("prod-a", at("2"));
    story.pass(Duration::from_mins(30));
    assert_eq!(started(&story), ["2 is promoted to prod", "2 is promoted to last", "3 is promoted to prod"]);
}

#[test]
fn a_head_that_never_rests_leaves_no_environment_behind() {
    let mut story = Story::new(line(Duration::ZERO));
    let mut shown = String::new();
    for revision in 2..40 {
        story.show("staging", at(&revision.to_string()));
        story.pass(MINUTE);
        // Its rollout in prod takes longer than the next revision does to come.
        let told =
            started(&story).into_iter().filter_map(|message| message.strip_suffix(" is promoted to prod")).next_back();
        let told = told.expect("a promotion").to_owned();
        story.show("prod-a", if told == shown { at(&told) } else { unready(&told) });
        shown = told;
        let mut last = started(&story).into_iter().filter_map(|message| message.strip_suffix(" is promoted to last"));
        if let Some(last) = last.next_back().map(str::to_owned) {
            story.show("prod-b", at(&last));
        }
    }
    let last = started(&story).into_iter().filter(|message| message.ends_with("to last")).count();
    assert!(last > 10, "{last} of 38: {:?}", started(&story));
}

#[test]
fn what_went_back_is_not_promoted_step_by_step_either() {
    let mut closed = line(Duration::from_mins(30));
    closed.suspended = Some("release week".to_owned());
    let mut story = Story::new(closed);
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(31));
    story.show("staging", at("1"));
    story.pass(MINUTE);
    story.change(|object| {
        object.generation += 1;
        object.spec = Ok(line(Duration::from_mins(30)));
    });
    story.pass(Duration::from_hours(2));
    assert_eq!(started(&story), Vec::<&str>::new());
}

#[test]
fn a_new_pipeline_names_the_target_that_it_cannot_read_within_ten_seconds() {
    let mut story = Story::new(spec(false));
    story.object.status = Status::default();
    story.machine = Pipeline::new(0, story.object.clone());
    story.feed(Event::PeersRestarted);
    story.show("staging", at("1"));
    story.show("prod-b", Sight::Unknown("forbidden".to_owned()));
    story.pass(Duration::from_secs(11));
    let words = story.condition("TargetNotReadable").unwrap_or_default();
    assert!(words.ends_with("prod: prod-b/web cannot be read: forbidden"), "{words}");
}

#[test]
fn a_refusal_that_lasts_is_no_open_request_and_is_told_whole() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let cure = "set baseBranch to one that takes pull requests";
    let why = format!("the forge answers 422: {}; {cure}", "merge queue ".repeat(20));
    story.feed(Event::ProposeFailed(story.order(1), why, true));
    story.pass(MINUTE);
    let said = story.condition("PullRequestNotMade").unwrap_or_default();
    assert!(said.ends_with(cure), "{said}");
    let said = story.condition("PromotionFailed").unwrap_or_default();
    assert!(said.ends_with(cure), "{said}");
}

#[test]
fn a_forge_that_refuses_is_asked_again_at_once_when_the_secret_for_it_changes() {
    let mut by_secret = by_request();
    let repository = by_secret.environments[1].promotion.as_ref().and_then(PromotionSpec::repository).expect("one");
    let repository = Repository { secret: Some("forge".to_owned()), ..repository.clone() };
    by_secret.environments[1].promotion =
        Some(PromotionSpec { manual: false, strategy: Strategy::PullRequest(repository, Box::default()) });
    let mut story = Story::new(by_secret);
    story.show("staging", at("2"));
    let followed = |story: &Story| {
        let mut sets = story.asked.iter().filter_map(|effect| match effect {
            Effect::FollowSecrets(names) => Some(names.iter().cloned().collect::<Vec<_>>()),
            _ => None,
        });
        sets.next_back()
    };
    let proposals = |story: &Story| story.asked.iter().filter(|effect| matches!(effect, Effect::Propose(_))).count();
    assert_eq!(followed(&story), None);
    story.feed(Event::ProposeFailed(story.order(1), "Secret forge in shop: there is none".to_owned(), true));
    assert_eq!(followed(&story), Some(vec!["forge".to_owned()]));
    let before = proposals(&story);
    story.feed(Event::SecretChanged("other".to_owned()));
    assert_eq!(proposals(&story), before);
    story.feed(Event::SecretChanged("forge".to_owned()));
    assert_eq!(proposals(&story), before + 1);
    let request =
        Request { number: 7, url: "https://git.example.com/7".to_owned(), commit: None, lacks: Default::default() };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    assert_eq!(followed(&story), Some(Vec::new()), "it is read when it is used");
}

#[test]
fn a_verdict_that_turns_breaks_the_soak_and_one_that_was_never_open_does_not() {
    for turns in [true, false] {
        let mut soaking = spec(false);
        let source = VerdictSource { url: "https://verdict.example.com".to_owned(), secret: None, timeout: MINUTE };
        soaking.environments[1].gates =
            Gates { soak: Duration::from_mins(30), verdict: Some(source), ..Gates::default() };
        let mut story = Story::new(soaking);
        story.show("staging", at("2"));
        let opening = |open| Opening { open, changes_after: None, words: "errors rise".to_owned() };
        let topic = story.topic();
        story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(turns))));
        story.pass(Duration::from_mins(20));
        story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(false))));
        story.pass(MINUTE);
        story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(true))));
        story.pass(Duration::from_mins(9));
        story.feed(Event::Answered(prod(), Answer::VerdictGiven(topic, opening(true))));
        assert_eq!(story.phase(), Some(if turns { Phase::Waiting } else { Phase::Landed }));
    }
}
