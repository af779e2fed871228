//! An answer belongs to what was asked: what another spec asked says nothing about this one.

use super::*;
use crate::pipeline::options::MergeMethod;
use kernel::names::workload_name::WorkloadName;

fn change_spec(story: &mut Story, change: impl FnOnce(&mut Spec)) {
    story.change(|object| {
        object.generation += 1;
        if let Ok(spec) = &mut object.spec {
            change(spec);
        }
    });
}

pub(super) fn approve(story: &mut Story) {
    let ticket = story.ticket();
    assert!(ticket.is_some(), "no question is open");
    story.change(|object| object.answers.approve = ticket);
}

fn open() -> Opening {
    Opening { open: true, changes_after: None, words: String::new() }
}

fn freeze() -> Freeze {
    Freeze { from: 0, to: 3600, reason: "incident 42".to_owned() }
}

fn repository(spec: &mut Spec) -> &mut Repository {
    match spec.environments[1].promotion.as_mut().map(|how| &mut how.strategy) {
        Some(Strategy::PullRequest(repository, _)) => repository,
        _ => panic!("no pull request"),
    }
}

#[test]
fn a_freeze_counts_from_the_moment_it_is_in_the_spec() {
    let mut gated = spec(true);
    gated.environments[1].gates.freezes = vec![Freeze { from: 0, to: 1, reason: "long ago".to_owned() }];
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    let topic = story.topic();
    story.feed(Event::Answered(prod(), Answer::CalendarRead(topic, open())));
    story.asked.clear();
    change_spec(&mut story, |spec| spec.environments[1].gates.freezes = vec![freeze()]);
    approve(&mut story);
    assert_eq!(story.phase(), Some(Phase::Waiting), "it starts inside the freeze");
    assert!(matches!(&story.asked[..], [Effect::Ask(_, Ask::Calendar(..))]), "{:?}", story.asked);
    story.feed(Event::Answered(prod(), Answer::CalendarRead(topic, open())));
    assert_eq!(story.phase(), Some(Phase::Waiting), "an answer that was on its way");
}

#[test]
fn a_freeze_that_is_taken_out_holds_nothing_up() {
    let mut gated = spec(false);
    gated.environments[1].gates.freezes = vec![freeze(), freeze()];
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    story.feed(Event::Answered(prod(), Answer::CalendarRead(story.topic(), Opening { open: false, ..open() })));
    story.asked.clear();
    change_spec(&mut story, |spec| spec.environments[1].gates.freezes = vec![freeze()]);
    assert!(matches!(&story.asked[..], [Effect::Ask(_, Ask::Calendar(..))]), "{:?}", story.asked);
}

#[test]
fn the_yes_of_one_service_is_not_the_yes_of_another() {
    let source = |url: &str| Some(VerdictSource { url: url.to_owned(), secret: None, timeout: MINUTE });
    let mut gated = spec(true);
    gated.environments[1].gates.verdict = source("https://old.example.com");
    let mut story = Story::new(gated);
    story.show("staging", at("2"));
    story.feed(Event::Answered(prod(), Answer::VerdictGiven(story.topic(), open())));
    story.asked.clear();
    change_spec(&mut story, |spec| spec.environments[1].gates.verdict = source("https://new.example.com"));
    approve(&mut story);
    assert_eq!(story.phase(), Some(Phase::Waiting), "the new service was not asked");
    assert!(matches!(&story.asked[..], [Effect::Ask(_, Ask::Verdict(..))]), "{:?}", story.asked);
}

#[test]
fn a_fresh_look_at_other_targets_starts_nothing() {
    let mut story = Story::new(spec(false));
    story.holds_rechecks = true;
    story.show("staging", at("2"));
    let Some(Effect::Recheck(name, seq, targets)) = story.asked.pop() else { panic!("{:?}", story.asked) };
    change_spec(&mut story, |spec| spec.environments[0].targets.push(target("prod-a")));
    change_spec(&mut story, |spec| spec.environments[0].targets.truncate(1));
    let fresh = targets.into_iter().map(|target| (target.clone(), story.truth[&target].clone())).collect();
    story.feed(Event::Rechecked(name, seq, fresh));
    assert_eq!(story.phase(), Some(Phase::Waiting));
    assert!(matches!(&story.asked[..], [.., Effect::Recheck(..)]), "{:?}", story.asked);
}

#[test]
fn an_edge_is_fresh_for_the_workloads_that_were_asked_about() {
    let purged = |name: &str| {
        Some(Purged { workloads: vec![WorkloadName::parse(name).unwrap()], by: None, until: Until::Purged })
    };
    let mut asks = spec(true);
    asks.environments[0].purged = purged("web");
    let mut story = Story::new(asks);
    let staging = Environment("staging".to_owned());
    story.feed(Event::EdgeSeen(staging.clone(), story.topic(), Ok(())));
    story.show("staging", at("2"));
    story.feed(Event::EdgeSeen(staging, story.topic(), Ok(())));
    assert!(story.ticket().is_some(), "staging is done");
    story.asked.clear();
    change_spec(&mut story, |spec| spec.environments[0].purged = purged("api"));
    assert!(matches!(&story.asked[..], [Effect::SeeEdge(..)]), "{:?}", story.asked);
}

/// Staging is at 2, and request 7 of it is open.
fn proposed() -> Story {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    assert_eq!(story.phase(), Some(Phase::Proposed));
    story.asked.clear();
    story
}

#[test]
fn a_number_is_looked_up_in_no_other_repository_and_the_request_there_is_closed() {
    for change in [
        (|repository: &mut Repository| repository.url.push_str("-new")) as fn(&mut Repository),
        |repository| "release".clone_into(&mut repository.base),
        |repository| repository.forge = ForgeKind::GitLab,
    ] {
        let mut story = proposed();
        let before = repository(&mut by_request()).clone();
        change_spec(&mut story, |spec| change(repository(spec)));
        story.pass(5 * MINUTE);
        let looked = story.asked.iter().any(|asked| matches!(asked, Effect::LookAtProposal(..)));
        assert!(!looked, "7 is another request there");
        let closed = story.asked.iter().any(|asked| {
            matches!(asked, Effect::Withdraw(order, Some(7), _) if order.repository == before && order.seq == PromotionSeq(1))
        });
        assert!(closed, "{:?}", story.asked);
        let made = story.asked.iter().any(|asked| {
            matches!(asked, Effect::Propose(order) if order.repository != before && order.seq == PromotionSeq(2))
        });
        assert!(made, "{:?}", story.asked);
    }
}

#[test]
fn a_request_that_is_made_where_the_spec_no_longer_says_is_closed_when_that_is_known() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let order = story.order(1);
    change_spec(&mut story, |spec| repository(spec).url.push_str("-new"));
    story.feed(Event::Withdrawn(order.clone()));
    story.asked.clear();
    let request = Request {
        url: "https://git.example.com/pull/7".to_owned(),
        number: 7,
        commit: None,
        lacks: Default::default(),
    };
    story.feed(Event::Proposed(order, Proposed::Open(request)));
    assert!(matches!(&story.asked[..], [Effect::Withdraw(_, Some(7), _)]), "{:?}", story.asked);
}

#[test]
fn a_request_that_cannot_be_closed_is_told_once_and_one_that_was_never_made_is_left() {
    let mut story = proposed();
    change_spec(&mut story, |spec| spec.environments.truncate(1));
    let Some(Effect::Withdraw(order, ..)) = story.asked.pop() else { panic!("{:?}", story.asked) };
    for _ in 0..3 {
        story.feed(Event::WithdrawFailed(order.clone(), "the token is refused".to_owned(), true));
        story.pass(Duration::from_mins(10));
    }
    assert_eq!(story.count(Kind::PromotionFailed), 1, "{:?}", story.told);
    assert_eq!(story.asked.len(), 4, "{:?}", story.asked);

    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let order = story.order(1);
    change_spec(&mut story, |spec| repository(spec).url.push_str("-new"));
    story.feed(Event::WithdrawFailed(order, "no such repository".to_owned(), true));
    story.pass(MINUTE);
    let known = story.object.status.environment(&prod()).expect("prod");
    assert_eq!((&known.closing[..], story.count(Kind::PromotionFailed)), (&[][..], 0));
}

#[test]
fn a_request_of_an_environment_that_is_taken_out_is_closed() {
    let mut story = proposed();
    change_spec(&mut story, |spec| spec.environments.truncate(1));
    assert!(
        matches!(&story.asked[..], [Effect::Follow(_), Effect::Withdraw(order, Some(7), _)] if order.seq == PromotionSeq(1)),
        "{:?}",
        story.asked
    );
}

#[test]
fn a_yes_replaces_the_commits_that_it_was_asked_about_and_no_others() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    story.feed(Event::Proposed(story.order(1), Proposed::Foreign("0a1b by bob: mine".to_owned())));
    let old = story.ticket();
    story.feed(Event::ProposeFailed(story.order(1), "no answer".to_owned(), false));
    story.feed(Event::Proposed(story.order(1), Proposed::Foreign("2c3d by eve: hers".to_owned())));
    story.asked.clear();
    story.change(|object| object.answers.approve = old);
    assert!(!story.asked.iter().any(|asked| matches!(asked, Effect::Propose(_))), "{:?}", story.asked);
}

fn lacking(what: &[(&str, &str)]) -> Lacks {
    what.iter().map(|(what, why)| ((*what).to_owned(), (*why).to_owned())).collect()
}

#[test]
fn what_a_request_lacks_is_said_and_tried_at_each_look_until_it_is_there() {
    let mut story = Story::new(by_request());
    story.show("staging", at("2"));
    let lacks = lacking(&[("eve", "no member"), ("labels", "no right")]);
    let request = Request { url: "https://git.example.com/pull/7".to_owned(), number: 7, commit: None, lacks };
    story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
    let said = |story: &Story| story.condition("PullRequestOpen").map(str::to_owned).unwrap_or_default();
    assert!(said(&story).contains("it lacks eve: no member; labels: no right"), "{}", said(&story));
    let look = |story: &mut Story| {
        story.asked.clear();
        story.pass(Duration::from_mins(2));
        let [Effect::LookAtProposal(order, 7)] = &story.asked[..] else { panic!("{:?}", story.asked) };
        order.clone()
    };
    let first = look(&mut story);
    assert_eq!(first.lacks.len(), 2);
    // A look that tried nothing, as while git does not answer, says nothing of what it lacks.
    story.feed(Event::ProposalSeen(first, RequestState::Open));
    let second = look(&mut story);
    assert_eq!(second.lacks.len(), 2);
    story.feed(Event::ProposalSeen(second, RequestState::Lacks(lacking(&[("eve", "no access")]))));
    assert!(said(&story).contains("no access") && !said(&story).contains("labels"), "{}", said(&story));
    let third = look(&mut story);
    story.feed(Event::ProposalSeen(third, RequestState::Lacks(Lacks::new())));
    assert!(!said(&story).contains("it lacks"), "{}", said(&story));
    let fourth = look(&mut story);
    assert_eq!(fourth.lacks, Lacks::new(), "it is wanted no more");
}

/// Nobody wants what the forge may merge any more, so it does not stay open until the next one may start.
#[test]
fn a_request_that_its_forge_may_merge_does_not_wait_to_be_taken_over() {
    for merges in [false, true] {
        let mut spec = by_request();
        spec.environments[1].gates.soak = Duration::from_mins(30);
        if let Some(Strategy::PullRequest(_, options)) =
            spec.environments[1].promotion.as_mut().map(|how| &mut how.strategy)
        {
            options.auto_merge = merges.then_some(MergeMethod::Merge);
        }
        let mut story = Story::new(spec);
        story.show("staging", at("2"));
        story.pass(31 * MINUTE);
        let request = Request { url: String::new(), number: 7, commit: None, lacks: Lacks::new() };
        story.feed(Event::Proposed(story.order(1), Proposed::Open(request)));
        story.asked.clear();
        story.show("staging", at("3"));
        story.pass(MINUTE);
        let closed = story.asked.iter().any(|asked| matches!(asked, Effect::Withdraw(_, Some(7), _)));
        assert_eq!(closed, merges, "{:?}", story.asked);
    }
}
