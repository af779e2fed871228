//! Objects that a run needs before its apply starts.

use super::*;
use crate::apps::app::{AppKind, ClusterKey, Look, NoRevision, Present};

/// Another Repo, which says which spec its controller has acted on.
fn network() -> TargetKey {
    TargetKey::new(ClusterKey::Here, AppKind::new("allclear.dev/v1alpha1", "Repo"), "platform", "network")
}

fn look(unready: Option<&str>) -> Look {
    let present = Present {
        uid: "u".to_owned(),
        unready: unready.map(str::to_owned),
        revision: Err(NoRevision::Unusable("it has no revision".to_owned())),
    };
    Look { present, twice: false }
}

/// A Repo that needs [`network`].
fn needing(approval: Approving) -> Stage {
    let mut spec = spec(approval);
    spec.gates.needs = vec![network()];
    Stage::new(spec)
}

fn waits(stage: &Stage) -> String {
    assert_eq!(stage.ready(), (Some(false), "GateClosed"));
    stage.run().message.clone()
}

#[test]
fn an_apply_waits_until_what_it_needs_is_there_and_ready() {
    let mut stage = needing(Approving::Auto);
    stage.pass(Duration::from_secs(5));
    assert_eq!(waits(&stage), "needs Repo platform/network: it does not exist");
    stage.needs.insert(network(), Ok(look(Some("Ready is False: RunFailed"))));
    stage.pass(Duration::from_mins(1));
    assert_eq!(waits(&stage), "needs Repo platform/network: Ready is False: RunFailed");
    stage.needs.insert(network(), Err("no right".to_owned()));
    stage.pass(Duration::from_mins(2));
    assert_eq!(waits(&stage), "needs Repo platform/network: it cannot be read: failed to read: no right");
    let (writes, reads) = (stage.writes, stage.reads);
    stage.pass(Duration::from_mins(10));
    assert_eq!(stage.writes, writes, "the same again is not written");
    assert!((10..=40).contains(&(stage.reads - reads)), "{} reads in ten minutes", stage.reads - reads);
    assert_eq!(stage.started.len(), 0);
    stage.needs.insert(network(), Ok(look(None)));
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Started, 1));
    stage.applies();
    stage.pass(Duration::from_mins(1));
    let reads = stage.reads;
    stage.pass(Duration::from_hours(5));
    assert_eq!(stage.reads, reads, "a Repo at rest asks nothing");
}

#[test]
fn what_was_ready_a_while_ago_lets_nothing_start() {
    let mut spec = spec(Approving::Auto);
    spec.gates.needs = vec![network()];
    spec.gates.freezes = vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
    let mut stage = Stage::new(spec);
    stage.needs.insert(network(), Ok(look(None)));
    stage.pass(Duration::from_mins(1));
    assert_eq!(
        (waits(&stage).as_str(), stage.reads),
        ("a freeze: fair", 1),
        "no need to look often while it is frozen"
    );
    stage.needs.insert(network(), Ok(look(Some("it is suspended"))));
    stage.edit(|object| object.spec.as_mut().expect("a spec").gates.freezes.clear());
    stage.pass(Duration::from_secs(5));
    assert_eq!(waits(&stage), "needs Repo platform/network: it is suspended");
    assert_eq!(stage.started.len(), 0);
}

#[test]
fn what_does_not_say_what_it_has_acted_on_is_seen_ready_twice() {
    let mut stage = needing(Approving::Auto);
    stage.needs.insert(network(), Ok(Look { twice: true, ..look(None) }));
    stage.pass(Duration::from_secs(9));
    assert!(waits(&stage).contains("it was seen ready once"), "{}", waits(&stage));
    stage.pass(Duration::from_secs(30));
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_plan_waits_for_nothing_and_no_yes_opens_what_a_run_needs() {
    let mut stage = needing(Approving::Plan);
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.job().attempt.action, Action::Plan, "a plan changes nothing");
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let ticket = stage.ticket();
    stage.edit(|object| {
        object.answers.approve = Some(ticket.clone());
        object.answers.overrides = Some(ticket);
        object.spec.as_mut().expect("a spec").gates.freezes =
            vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
    });
    stage.pass(Duration::from_mins(1));
    assert_eq!(waits(&stage), "needs Repo platform/network: it does not exist", "the freeze alone is overridden");
    stage.needs.insert(network(), Ok(look(None)));
    stage.pass(Duration::from_mins(1));
    assert_eq!(stage.started.len(), 2);
}

#[test]
fn a_poke_looks_at_what_is_needed_at_once() {
    let mut stage = needing(Approving::Auto);
    stage.pass(Duration::from_secs(5));
    stage.needs.insert(network(), Ok(look(None)));
    stage.edit(|object| object.answers.poked = Some("now".to_owned()));
    stage.pass(Duration::ZERO);
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn an_answer_about_the_freezes_of_an_earlier_spec_opens_nothing() {
    let freeze = |reason: &str| vec![Freeze { from: 0, to: i64::MAX, reason: reason.to_owned() }];
    let mut frozen = spec(Approving::Auto);
    frozen.gates.freezes = freeze("fair");
    let mut stage = Stage::new(frozen);
    stage.held = vec!["read_calendar"];
    stage.pass(Duration::from_secs(5));
    let open = || Opening { open: true, changes_after: None, words: String::new() };
    let asked = |stage: &mut Stage| match stage.kept.pop() {
        Some(Effect::Ask(Ask::Calendar(topic, ..))) => topic,
        other => panic!("not asked: {other:?}"),
    };
    let before = asked(&mut stage);
    stage.edit(|object| object.spec.as_mut().expect("a spec").gates.freezes = freeze("incident"));
    stage.feed(Event::Answered(Answer::CalendarRead(before, open())));
    stage.pass(Duration::from_mins(1));
    assert_eq!(stage.started.len(), 0);
    let now = asked(&mut stage);
    stage.feed(Event::Answered(Answer::CalendarRead(now, open())));
    assert_eq!(stage.started.len(), 1);
}
