//! A revision that a person chose: older than what is there, or one that was nowhere before.

use super::*;
use crate::pipeline::choosing::{Choosing, Refusal, choosing, nothing_untaken};
use crate::pipeline::view::view;

impl Story {
    /// What a person is asked who chooses this for prod.
    fn choosing(&self, revision: &str) -> Result<Choosing, Refusal> {
        choosing(&self.object, &prod(), &Revision(revision.to_owned()))
    }

    /// Ann chooses it, and says yes.
    pub(super) fn choose(&mut self, revision: &str) {
        let choosing = self.choosing(revision).expect("it may be chosen");
        self.change(|object| {
            object.answers.promote = Some(choosing.written);
            (object.answers.approve, object.answers.by) = (Some(choosing.ticket), Some("ann".to_owned()));
        });
    }

    /// All of prod runs it, and is ready.
    fn deploy(&mut self, revision: &str) {
        for namespace in ["prod-a", "prod-b"] {
            self.show(namespace, at(revision));
        }
    }

    /// What prod's newest promotion is of.
    fn newest(&self) -> (&str, Phase) {
        let known = self.object.status.environment(&prod()).and_then(|known| known.promotion.as_ref());
        let known = known.expect("a promotion");
        (known.revision.0.as_str(), known.phase)
    }

    fn waits(&self) -> String {
        let view = view(&self.object, &self.object.status, None);
        view.environments[1].waits.clone().unwrap_or_default()
    }

    fn started(&self) -> Vec<&str> {
        let started = self.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStarted);
        started.map(|(_, message)| message.as_str()).collect()
    }
}

/// Staging and prod went from 1 to 2.
fn moved_on(spec: Spec) -> Story {
    let mut story = Story::new(spec);
    story.show("staging", at("2"));
    story.deploy("2");
    story.pass(MINUTE);
    assert_eq!(story.newest(), ("2", Phase::Completed));
    story.told.clear();
    story
}

#[test]
fn an_older_one_goes_back_and_stays_until_something_newer_comes() {
    let mut story = moved_on(spec(false));
    let relation = |story: &Story, revision| story.choosing(revision).map(|choosing| choosing.relation);
    assert_eq!(relation(&story, "1").as_deref(), Ok("goes back from 2"));
    assert_eq!(relation(&story, "1.4.2").as_deref(), Ok("staging was not seen at it"));
    story.choose("1");
    assert_eq!(story.started(), ["1 is promoted to prod, chosen by ann: goes back from 2"]);
    story.deploy("1");
    story.pass(Duration::from_hours(5));
    assert_eq!((story.newest(), story.started().len()), (("1", Phase::Completed), 1));
    assert_eq!(story.waits(), "ann chose 1 over 2: it is promoted only after a yes");
    assert_eq!((story.condition("Left"), story.count(Kind::PromotionStalled)), (None, 0), "nothing is amiss");
    story.machine = Pipeline::new(0, story.object.clone());
    story.feed(Event::PeersRestarted);
    story.show_all();
    story.pass(Duration::from_hours(5));
    assert_eq!(story.started().len(), 1, "nor in another life, though the yes is still on the object");
    story.show("staging", at("3"));
    story.deploy("3");
    story.pass(MINUTE);
    assert_eq!(story.newest(), ("3", Phase::Completed), "what is newer goes on as usual");
    story.show("staging", at("2"));
    assert_eq!(story.newest(), ("2", Phase::Landed), "and so does all after it");
}

#[test]
fn what_it_was_chosen_over_is_promoted_after_a_yes() {
    let mut story = moved_on(spec(false));
    story.choose("1");
    story.deploy("1");
    story.pass(MINUTE);
    let ticket = story.ticket();
    assert!(ticket.is_some(), "it is asked about");
    story.change(|object| object.answers.approve = ticket);
    assert_eq!(story.newest(), ("2", Phase::Landed));
    let history = &story.object.status.history;
    let chosen: Vec<_> = history.iter().map(|ended| (ended.revision.0.as_str(), ended.chosen.as_deref())).collect();
    assert_eq!(chosen, [("2", None), ("1", Some("goes back from 2"))]);
    let view = view(&story.object, &story.object.status, None);
    assert_eq!(view.history[0].chosen.as_deref(), Some("chosen by ann: goes back from 2"));
}

#[test]
fn a_hotfix_passes_by_the_environment_before_and_its_soak_and_by_no_other_gate() {
    let mut gated = spec(false);
    gated.environments[1].gates.soak = Duration::from_mins(30);
    gated.environments[1].gates.freezes = vec![Freeze { from: 0, to: 1, reason: "the sale".to_owned() }];
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    let gates = |story: &Story, revision| story.choosing(revision).expect("a choice").gates;
    assert_eq!(gates(&story, "1.5.1"), ["freeze: the sale"], "what is nowhere soaks nowhere");
    assert_eq!(gates(&story, "2"), ["soak 30m", "freeze: the sale"], "what soaks there goes on soaking");
    story.choose("1.5.1");
    assert_eq!(story.newest(), ("1.5.1", Phase::Waiting));
    let opening = |open| Opening { open, changes_after: None, words: "closed for the sale".to_owned() };
    story.feed(Event::Answered(prod(), Answer::CalendarRead(story.topic(), opening(false))));
    story.show("staging", unready("2"));
    story.pass(MINUTE);
    assert_eq!(story.waits(), "closed for the sale");
    let brief = view(&story.object, &story.object.status, None).environments[1].promotion.clone();
    let words = brief.and_then(|promotion| promotion.chosen);
    assert_eq!(words.as_deref(), Some("chosen by ann: staging was not seen at it"));
    story.show("prod-a", Sight::Unknown("no answer".to_owned()));
    story.pass(5 * MINUTE);
    assert_eq!(story.newest().1, Phase::Waiting, "nothing is promoted over what is unknown");
    story.show("prod-a", at("1"));
    story.feed(Event::Answered(prod(), Answer::CalendarRead(story.topic(), opening(true))));
    assert_eq!((story.newest(), story.started().len()), (("1.5.1", Phase::Landed), 1));
}

#[test]
fn what_soaks_in_staging_is_not_hurried_by_choosing_it_unless_its_gates_are_opened() {
    let mut gated = spec(false);
    gated.environments[1].gates.soak = Duration::from_mins(30);
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    let overridden = |object: &mut Object| object.answers.overrides.clone_from(&object.answers.approve);
    story.choose("2");
    story.pass(Duration::from_mins(20));
    assert_eq!(story.newest(), ("2", Phase::Waiting));
    assert!(matches!(story.choosing("2"), Err(Refusal::Chosen(..))), "said twice, it is one");
    story.choose("1.5.1");
    story.change(overridden);
    assert_eq!(story.newest().0, "1.5.1");
    story.show("staging", at("4"));
    story.deploy("1.5.1");
    story.pass(MINUTE);
    let choosing = story.choosing("4").expect("a choice");
    story.change(|object| {
        object.answers.promote = Some(choosing.written);
        (object.answers.approve, object.answers.overrides) = (None, Some(choosing.ticket));
    });
    assert_eq!(story.newest(), ("4", Phase::Landed), "a soak is opened with its ticket");
}

#[test]
fn a_rollout_that_is_half_done_is_taken_back() {
    let mut story = moved_on(spec(false));
    story.show("staging", at("3"));
    story.show("prod-a", at("3"));
    assert_eq!(story.newest(), ("3", Phase::Landed));
    story.told.clear();
    story.choose("2");
    assert_eq!(story.started(), ["2 is promoted to prod, chosen by ann: staging was at it"], "prod-b is at 2 still");
    story.deploy("2");
    story.pass(MINUTE);
    assert_eq!((story.newest(), story.count(Kind::PromotionCompleted)), (("2", Phase::Completed), 1));
    story.pass(Duration::from_hours(3));
    assert_eq!(story.newest().0, "2");
}

#[test]
fn a_wait_that_took_too_long_ends_with_a_choice_and_that_one_may_take_too_long_itself() {
    let mut story = moved_on(spec(false));
    story.show("staging", at("3"));
    story.pass(Duration::from_hours(2));
    assert!(story.condition("WaitingTooLong").is_some() && story.count(Kind::PromotionStalled) == 1);
    story.choose("1");
    assert_eq!(story.condition("WaitingTooLong"), None);
    story.pass(Duration::from_hours(2));
    assert_eq!(story.count(Kind::PromotionStalled), 2, "nobody deploys it");
    story.deploy("1");
    story.pass(Duration::from_hours(2));
    assert!(story.waits().starts_with("ann chose 1 over 3"), "{}", story.waits());
    assert_eq!((story.condition("WaitingTooLong"), story.count(Kind::PromotionStalled)), (None, 2));
}

#[test]
fn what_is_newer_waits_for_a_choice_on_its_way_and_not_for_ever() {
    let mut story = moved_on(spec(false));
    story.choose("1");
    story.show("staging", at("3"));
    story.pass(Duration::from_mins(50));
    assert_eq!(story.newest(), ("1", Phase::Landed), "it arrives first");
    story.pass(Duration::from_mins(20));
    assert_eq!(story.newest(), ("3", Phase::Landed), "it never did");
    let mut story = moved_on(spec(false));
    story.choose("1");
    story.show("staging", at("3"));
    story.deploy("1");
    assert_eq!(story.newest(), ("3", Phase::Landed), "right after it");
}

#[test]
fn a_request_for_what_was_chosen_is_not_taken_for_merged_and_says_what_it_is() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let request = |number| Request {
        url: format!("https://git.example.com/pull/{number}"),
        number,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request(7))));
    story.asked.clear();
    // Prod is at 1, and a request for 2 is open.
    story.choose("1");
    let Some(Effect::Propose(order)) = story.asked.last() else { panic!("{:?}", story.asked) };
    assert_eq!((order.seq, order.revision.0.as_str()), (PromotionSeq(2), "1"), "the request is rewritten");
    assert_eq!(order.chosen.as_deref(), Some("chosen by ann: prod is at it"));
    let order = order.clone();
    story.feed(Event::Proposed(order, Proposed::NothingToChange));
    story.pass(MINUTE);
    assert_eq!(story.newest(), ("1", Phase::Completed));
    let is_closed = |asked: &Effect| matches!(asked, Effect::Withdraw(_, Some(7), _));
    assert!(story.asked.iter().any(is_closed), "{:?}", story.asked);
    assert!(story.waits().starts_with("ann chose 1 over 2"), "{}", story.waits());
    story.choose("1.9");
    let Some(Effect::Propose(order)) = story.asked.last().cloned() else { panic!("{:?}", story.asked) };
    story.feed(Event::Proposed(order.clone(), Proposed::Open(request(8))));
    story.feed(Event::ProposalSeen(order, RequestState::Closed));
    story.pass(MINUTE);
    assert_eq!(story.newest(), ("1.9", Phase::Abandoned));
    assert!(story.waits().starts_with("ann chose 1.9 over 2"), "nothing moves by itself: {}", story.waits());
}

#[test]
fn each_choice_has_an_end_in_words() {
    // There already, by the time that it is seen.
    let mut story = moved_on(spec(false));
    let choosing = story.choosing("1").expect("a choice");
    for namespace in ["prod-a", "prod-b"] {
        story.truth.insert(target(namespace), at("1"));
    }
    story.show_all();
    story.change(|object| {
        object.answers.promote = Some(choosing.written);
        object.answers.approve = Some(choosing.ticket);
    });
    assert_eq!(story.started(), ["1 is promoted to prod, chosen by a person who gave no name: prod is at it"]);
    assert_eq!(story.newest(), ("1", Phase::Completed));
    assert!(matches!(story.choosing("1"), Err(Refusal::There(..))));
    // The environment went while it was said.
    let mut story = moved_on(spec(false));
    let choosing = story.choosing("1").expect("a choice");
    story.change(|object| {
        object.answers.promote = Some(choosing.written);
        object.answers.approve = Some(choosing.ticket);
        object.spec.as_mut().expect("a spec").environments.truncate(1);
    });
    let gone = "1 is not promoted to prod any more: the Pipeline has no such environment any more";
    assert_eq!(story.told, [(Kind::PromotionWithdrawn, gone.to_owned())]);
    story.change(|object| object.spec = Ok(spec(false)));
    story.show_all();
    story.pass(Duration::from_hours(2));
    assert_eq!(story.started().len(), 0, "nor does it begin when the environment is there again");
    // Another choice took its place.
    let mut story = moved_on(spec(false));
    story.choose("1");
    story.choose("1.5");
    let history: Vec<_> =
        story.object.status.history.iter().map(|ended| (ended.revision.0.as_str(), ended.outcome)).collect();
    assert_eq!(history, [("2", Phase::Completed), ("1", Phase::Superseded)]);
    assert_eq!(story.newest(), ("1.5", Phase::Landed));
}

#[test]
fn what_cannot_be_chosen_says_why() {
    let mut story = moved_on(spec(false));
    let said = |story: &Story, name: &str, revision: &str| {
        let name = Environment(name.to_owned());
        choosing(&story.object, &name, &Revision(revision.to_owned())).map(drop).unwrap_err().to_string()
    };
    for (name, revision, words) in [
        ("live", "1", "shop/web has no environment \"live\"; it has staging, prod"),
        ("staging", "1", "staging is the first environment of shop/web, and nothing is promoted into it: deploy"),
        ("prod", "2", "prod of shop/web is at 2 already, and nothing else is on its way there"),
        ("prod", "1 2", "\"1 2\" cannot be a revision of prod-a/web: it has blanks"),
        ("prod", "", "\"\" cannot be a revision of prod-a/web: it is empty"),
        ("prod", "-1", "no image has such a tag or digest: "),
        ("prod", "sha256:12", "no image has such a tag or digest: "),
    ] {
        let told = said(&story, name, revision);
        assert!(told.contains(words), "{told}");
    }
    let digest = format!("sha256:{}", "a".repeat(64));
    assert!(story.choosing(&digest).is_ok() && story.choosing(&format!("1.4@{digest}")).is_ok());
    let suspend = |why: Option<&str>| {
        let why = why.map(str::to_owned);
        move |object: &mut Object| object.spec.as_mut().expect("a spec").suspended = why
    };
    story.change(suspend(Some("audit")));
    assert_eq!(
        said(&story, "prod", "1"),
        "shop/web is stopped: audit. Let it go on first, by `allclear pipeline resume shop/web`"
    );
    story.change(suspend(None));
    story.change(|object| object.spec.as_mut().expect("a spec").environments[1].promotion = None);
    assert!(said(&story, "prod", "1").contains("it has no `promotion`, and is only observed"));
    story.change(|object| object.spec = Err("no such zone".to_owned()));
    assert!(said(&story, "prod", "1").contains("cannot be used: no such zone"));
}

#[test]
fn a_stopped_line_loses_no_choice_and_an_answer_wipes_out_none() {
    let mut story = moved_on(spec(false));
    let choosing = story.choosing("1").expect("a choice");
    story.change(|object| {
        object.answers.promote = Some(choosing.written);
        object.answers.approve = Some(choosing.ticket);
        object.spec.as_mut().expect("a spec").suspended = Some("audit".to_owned());
    });
    assert_eq!((story.newest(), story.condition("Suspended")), (("1", Phase::Waiting), Some("suspended: audit")));
    story.change(|object| object.spec.as_mut().expect("a spec").suspended = None);
    assert_eq!(story.newest(), ("1", Phase::Landed));
    // One that nobody has taken in yet.
    let next = story.choosing("1.5").expect("a choice");
    story.object.answers.promote = Some(next.written);
    story.object.answers.approve = Some(next.ticket);
    assert!(nothing_untaken(&story.object, None).is_err() && nothing_untaken(&story.object, Some(&prod())).is_ok());
    story.change(|_| {});
    assert_eq!(nothing_untaken(&story.object, None), Ok(()));
}

#[test]
fn a_choice_is_not_made_by_a_yes_to_another_one_or_by_naming_it_alone() {
    let mut story = moved_on(spec(false));
    let one = story.choosing("1").expect("a choice");
    story.change(|object| object.answers.promote = Some("prod/1".to_owned()));
    story.change(|object| {
        object.answers.promote = Some("prod/1.5".to_owned());
        object.answers.approve = Some(one.ticket.clone());
    });
    story.pass(Duration::from_hours(1));
    assert_eq!((story.newest(), story.told.len()), (("2", Phase::Completed), 0));
    // From the first choice on, promotions of others do not void an answer, another choice does.
    let ticket = |story: &Story, revision| story.choosing(revision).map(|choosing| choosing.ticket);
    story.choose("1");
    story.deploy("1");
    let other = ticket(&story, "1.5");
    story.show("staging", at("3"));
    story.deploy("3");
    assert_eq!((story.newest().0, ticket(&story, "1.5")), ("3", other.clone()));
    story.choose("1");
    assert_ne!(ticket(&story, "1.5"), other);
}

#[test]
fn after_a_restore_a_choice_is_asked_about_anew_and_an_old_yes_is_nothing() {
    let mut story = moved_on(spec(false));
    let backup = story.object.clone();
    story.choose("1");
    story.deploy("1");
    story.pass(MINUTE);
    let answers = story.object.answers.clone();
    story.object = Object { version: "restored".to_owned(), answers, ..backup };
    story.see();
    story.feed(Event::Object(Life::Looked(Some(Box::new(story.object.clone())))));
    story.feed(Event::Object(Life::Looked(Some(Box::new(story.object.clone())))));
    story.pass(Duration::from_hours(2));
    assert_eq!(story.started().len(), 1, "{:?}", story.told);
    assert!(story.waits().starts_with("ann chose 1 over 2"), "{}", story.waits());
}

#[test]
fn what_an_older_release_dropped_is_not_chosen_again() {
    let mut story = moved_on(spec(false));
    story.choose("1");
    story.deploy("1");
    story.pass(MINUTE);
    let known = story.object.status.environments.get_mut(&prod()).expect("it is known");
    known.chosen = None;
    story.object.version = "older".to_owned();
    story.machine = Pipeline::new(0, story.object.clone());
    story.feed(Event::PeersRestarted);
    story.show_all();
    story.pass(Duration::from_hours(1));
    let ones = story.started().iter().filter(|message| message.starts_with("1 is promoted")).count();
    assert_eq!(ones, 1, "the yes is still on the object: {:?}", story.told);
}

#[test]
fn what_those_before_are_on_their_way_to_is_held_as_well_and_each_yes_is_to_one() {
    let mut story = moved_on(spec(false));
    story.show("staging", unready("3"));
    story.choose("1");
    story.deploy("1");
    story.pass(MINUTE);
    story.show("staging", at("3"));
    story.pass(Duration::from_hours(2));
    assert_eq!((story.newest().0, story.started().len()), ("1", 1), "{}", story.waits());
    assert!(story.waits().contains("chose 1 over 3"), "{}", story.waits());
    story.show("staging", at("2"));
    story.pass(MINUTE);
    let yes = story.ticket();
    story.change(|object| object.answers.approve = yes);
    story.show("staging", at("3"));
    story.pass(MINUTE);
    assert!(!story.started().iter().any(|message| message.starts_with("3 is")), "{:?}", story.told);
}

#[test]
fn a_choice_waits_for_no_soak_that_nobody_has_begun() {
    let mut gated = spec(false);
    gated.environments[1].gates.soak = Duration::from_mins(30);
    let mut story = Story::new(gated);
    story.show("staging", unready("2"));
    story.choose("2");
    story.pass(Duration::from_mins(5));
    assert_eq!(story.newest().0, "2");
    assert_ne!(story.newest().1, Phase::Waiting, "{}", story.waits());
}
