//! Questions to people, and what keeps an apply back.

use super::*;

// Faults: RF9
#[test]
fn a_plan_is_applied_after_a_yes_to_it_and_to_no_other() {
    let mut stage = staged(Approving::Plan);
    assert_eq!(stage.job().attempt.action, Action::Plan);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Planned, (Some(false), "WaitingForApproval")));
    let first = stage.ticket();
    stage.approve(&first);
    assert_eq!((stage.job().attempt.action, stage.started.len()), (Action::Apply, 2));
    let differs = said(&Message::Differs(planned("2")));
    stage.fails(StepKind::Verify, PLAN_DIFFERS, &differs);
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.run().phase, Phase::Planned, "the old yes is void");
    assert_ne!(stage.ticket(), first);
    stage.approve(&first);
    assert_eq!(stage.started.len(), 2);
    stage.pass(Duration::from_secs(2));
    let said_why = format!("the yes to ticket {first} was to an earlier question");
    assert!(stage.run().message.ends_with(&said_why), "{}", stage.run().message);
    let second = stage.ticket();
    stage.approve(&second);
    let back = said(&Message::Differs(planned("1")));
    stage.fails(StepKind::Verify, PLAN_DIFFERS, &back);
    stage.pass(Duration::from_secs(2));
    stage.approve(&first);
    assert_eq!(
        (stage.run().phase, stage.started.len()),
        (Phase::Planned, 3),
        "nor does it count when the plan comes back"
    );
    let third = stage.ticket();
    stage.approve(&third);
    stage.applies();
    stage.pass(Duration::from_secs(2));
    assert_eq!(stage.run().phase, Phase::Succeeded);
    assert_eq!(stage.told.iter().filter(|(kind, _)| *kind == Kind::RunWaiting).count(), 3);
    assert!(stage.told.iter().any(|(_, message)| message.contains("2 to add, 1 to change, 0 to destroy")));
}

#[test]
fn a_plan_that_changes_nothing_needs_no_yes_and_a_newer_commit_voids_a_question() {
    let mut stage = staged(Approving::Plan);
    stage.plans("0");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Succeeded, 1));
    stage.push(B);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let old = stage.ticket();
    stage.push(C);
    stage.approve(&old);
    assert_eq!((stage.run().revision.as_str(), stage.job().attempt.action), (C, Action::Plan));
    assert_eq!(stage.run().skipped, [B.parse().expect("a commit's id")]);
}

// Faults: RF14
#[test]
fn a_changed_runner_voids_a_yes_and_starts_no_run_of_what_was_applied() {
    let mut stage = staged(Approving::Revision);
    stage.pass(Duration::from_secs(2));
    let ticket = stage.ticket();
    stage.edit(|object| object.spec.as_mut().expect("a spec").runner.image = "tool:2".to_owned());
    stage.pass(Duration::from_secs(2));
    stage.approve(&ticket);
    assert_eq!(stage.started.len(), 0);
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.applies();
    stage.edit(|object| object.spec.as_mut().expect("a spec").runner.image = "tool:3".to_owned());
    stage.pass(Duration::from_hours(1));
    assert_eq!(stage.started.len(), 1);
    stage.edit(|object| object.spec.as_mut().expect("a spec").source.path = "other".to_owned());
    stage.pass(Duration::from_mins(2));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!(stage.started.len(), 2, "another folder is other work");
}

#[test]
fn a_run_whose_job_was_never_made_is_stopped_and_goes_on() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.held = vec!["make_job"];
    stage.pass(Duration::from_secs(5));
    let name = stage.run().job.as_ref().expect("a name").name.clone();
    stage.kept.clear();
    stage.held.clear();
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = Some("holiday".to_owned()));
    stage.feed(Event::MakeFailed(name, "exceeded quota".to_owned(), false));
    stage.pass(Duration::from_hours(2));
    assert_eq!((stage.jobs.len(), stage.ready()), (0, (Some(false), "Suspended")));
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = None);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.run().attempt.seq, stage.started.len()), (RunSeq(1), 1));
}

#[test]
fn a_job_that_is_refused_for_what_is_in_it_is_tried_again_when_that_is_corrected() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.held = vec!["make_job"];
    stage.pass(Duration::from_secs(5));
    let refused = |stage: &mut Stage| {
        let name = stage.run().job.as_ref().expect("a name").name.clone();
        stage.feed(Event::MakeFailed(name, "volumes[3].name: Required value".to_owned(), true));
    };
    refused(&mut stage);
    stage.pass(Duration::from_mins(9));
    assert_eq!(stage.kept.len(), 1, "it is not asked for over and over");
    stage.pass(Duration::from_mins(2));
    assert_eq!(stage.kept.len(), 2);
    refused(&mut stage);
    stage.held.clear();
    stage.edit(|object| object.spec.as_mut().expect("a spec").runner.image = "tool:2".to_owned());
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_closed_gate_holds_an_apply_and_a_suspended_repo_starts_nothing() {
    let mut spec = spec(Approving::Auto);
    spec.gates.freezes = vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.ready()), (0, (Some(false), "GateClosed")));
    stage.edit(|object| {
        let spec = object.spec.as_mut().expect("a spec");
        spec.gates.freezes.clear();
        spec.suspended = Some("holiday".to_owned());
    });
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.ready()), (0, (Some(false), "Suspended")));
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = None);
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.started.len(), 1);
}

#[test]
fn a_ticket_names_the_run_its_attempt_its_plan_and_its_settings() {
    let mut stage = staged(Approving::Plan);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let asked = stage.run().clone();
    let changed = |change: fn(&mut Run)| {
        let mut run = asked.clone();
        change(&mut run);
        run
    };
    // A backup may bring a number back: then the plan alone is another one.
    let planned = changed(|run| run.plan.as_mut().expect("a plan").fingerprint = "2".repeat(64));
    let runs = [
        asked.clone(),
        planned,
        changed(|run| run.attempt.number += 1),
        changed(|run| run.attempt.seq = run.attempt.seq.next()),
        changed(|run| run.terms.settings = "others".to_owned()),
    ];
    let tickets = runs.iter().map(|run| ask::ticket("uid-1", run, status::Question::Plan));
    let others =
        [ask::ticket("uid-2", &asked, status::Question::Plan), ask::ticket("uid-1", &asked, status::Question::Again)];
    assert_eq!(tickets.chain(others).collect::<BTreeSet<_>>().len(), 7);
    assert_eq!(stage.ticket(), ask::ticket("uid-1", &asked, status::Question::Plan));
}

#[test]
fn a_stopped_repo_begins_no_run_and_orders_no_job() {
    let mut spec = spec(Approving::Auto);
    spec.gates.freezes = vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_mins(1));
    stage.edit(|object| {
        let spec = object.spec.as_mut().expect("a spec");
        spec.gates.freezes.clear();
        spec.suspended = Some("holiday".to_owned());
    });
    stage.pass(Duration::from_hours(1));
    assert_eq!(stage.run().phase, Phase::Waiting, "its gate is open, and it is not ordered");
    stage.push(B);
    assert_eq!((stage.run().attempt.seq, stage.run().revision.as_str()), (RunSeq(1), A), "B has no run yet");
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = None);
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().revision.as_str(), stage.started.len()), (B, 1));
}

#[test]
fn another_commit_answers_the_question_of_a_run_that_failed() {
    let mut stage = staged(Approving::Auto);
    stage.fails(StepKind::Apply, 1, "Error: denied");
    assert!(stage.stored.status.waiting.is_some());

    stage.push(B);
    assert_eq!((stage.run().revision.as_str(), stage.run().phase), (B, Phase::Started));
    assert_eq!(stage.stored.status.waiting, None, "a yes to it would do nothing");

    let mut stage = staged(Approving::Auto);
    stage.fails(StepKind::Apply, 1, "Error: denied");
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = Some("for the fair".to_owned()));
    assert!(stage.stored.status.waiting.is_some(), "the failed commit may be run again, suspended or not");
    stage.push(B);
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.stored.status.waiting, None, "B is next, once it is resumed");
}
