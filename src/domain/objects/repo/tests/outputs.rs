//! Runs whose outputs go to a Secret.

use super::*;
use crate::repo::outputs::Outputs;

fn publishing(approval: Approving, limit: u32) -> Stage {
    let mut spec = spec(approval);
    spec.runner.outputs = Some(Outputs { secret: "outputs".to_owned(), names: vec!["vpc_id".to_owned()] });
    spec.runner.steps.output = vec!["output".to_owned()];
    spec.retry.limit = limit;
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(2));
    stage
}

/// The present Job applies, and its last step does not.
fn keeps_them(stage: &mut Stage, why: &str) {
    let steps = [(StepKind::Apply, 0, "3 added"), (StepKind::Output, 0, ""), (StepKind::Publish, 1, why)];
    stage.job_ends(End::Failed("PodFailurePolicy".to_owned(), String::new()), &steps);
    stage.pass(Duration::from_secs(2));
}

#[test]
fn a_run_with_outputs_says_that_they_were_written() {
    let mut stage = publishing(Approving::Auto, 0);
    let steps = [(StepKind::Apply, 0, "3 added."), (StepKind::Publish, 0, "1 output was written to Secret outputs")];
    stage.job_ends(End::Complete, &steps);
    stage.pass(Duration::from_secs(2));
    let (message, job) = (stage.run().message.clone(), stage.job().name);
    assert_eq!(stage.run().phase, Phase::Succeeded);
    let said = "3 added; 1 output was written to Secret outputs; kubectl logs -n platform job/";
    assert_eq!(message, format!("{said}{job} -c apply"));
}

#[test]
fn an_apply_whose_outputs_were_not_written_is_said_to_be_that_and_waits_for_a_person() {
    let mut stage = publishing(Approving::Auto, 0);
    let job = stage.job().name;
    keeps_them(&mut stage, "there is no Secret outputs");
    let run = stage.run().clone();
    let said = "applied, but its outputs were not written: step publish ended with code 1: there is no Secret outputs";
    assert_eq!(run.message, format!("{said}; kubectl logs -n platform job/{job} -c publish"));
    assert_eq!((run.phase, stage.ready()), (Phase::Failed, (Some(false), "RunFailed")));
    stage.pass(Duration::from_hours(3));
    assert_eq!(stage.started.len(), 1, "nothing is applied again by itself");
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!((stage.started.len(), stage.job().attempt.action), (2, Action::Apply));
}

#[test]
fn an_apply_whose_outputs_were_not_written_is_repeated_as_often_as_the_spec_says() {
    let mut stage = publishing(Approving::Auto, 1);
    keeps_them(&mut stage, "busy");
    assert_eq!((stage.run().phase, stage.run().failing.applies), (Phase::Waiting, 1));
    stage.pass(Duration::from_mins(2));
    assert_eq!(stage.started.len(), 2);
    keeps_them(&mut stage, "busy");
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Failed, 2));
}

#[test]
fn what_failed_in_the_apply_or_before_is_not_said_to_be_applied() {
    for (step, code, begun) in [(StepKind::Apply, 1, true), (StepKind::Source, 1, false)] {
        let mut stage = publishing(Approving::Auto, 0);
        stage.fails(step, code, "");
        stage.pass(Duration::from_secs(2));
        assert!(!stage.run().message.contains("applied, but"), "{}", stage.run().message);
        assert_eq!(stage.run().phase == Phase::Failed, begun, "{step:?}");
    }
}

/// A Job that is cut off, as by its deadline: it is only said to lack outputs if some were to be written, and were not.
#[test]
fn a_job_that_is_cut_off_is_said_to_have_applied_only_where_the_apply_ended_well_and_its_outputs_did_not() {
    let [apply, publish] = [StepKind::Apply, StepKind::Publish];
    let cases = [
        (vec![(apply, 0, ""), (publish, 137, "")], true),
        (vec![(apply, 137, ""), (publish, 137, "")], false),
        (vec![(apply, 0, ""), (publish, 0, "")], false),
        (vec![(apply, 0, "")], false),
    ];
    for (steps, said) in cases {
        let mut stage = publishing(Approving::Auto, 0);
        stage.job_ends(End::Failed("DeadlineExceeded".to_owned(), String::new()), &steps);
        stage.pass(Duration::from_secs(2));
        let (message, phase) = (stage.run().message.clone(), stage.run().phase);
        let words = if said { "applied, but its outputs were not written: it took longer" } else { "it took longer" };
        assert!(message.starts_with(words) && phase == Phase::Failed, "{steps:?}: {message}");
    }
}

#[test]
fn a_plan_that_changes_nothing_is_followed_by_an_apply_of_nothing_that_writes_the_outputs_without_a_yes() {
    let mut stage = publishing(Approving::Plan, 0);
    stage.plans("0");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.job().attempt.action, stage.started.len()), (Action::Apply, 2));
    let held_to = stage.run().plan.as_ref().map(|plan| plan.fingerprint.clone());
    assert_eq!(held_to, Some(planned("0").fingerprint));
    assert!(stage.run().approval.is_none() && stage.stored.status.waiting.is_none());
    // Something drifted meanwhile: that needs a yes.
    let differs = said(&Message::Differs(planned("1")));
    stage.fails(StepKind::Verify, PLAN_DIFFERS, &differs);
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Planned, 2));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.job_ends(End::Complete, &[(StepKind::Apply, 0, ""), (StepKind::Publish, 0, "")]);
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Succeeded, 3));
}

#[test]
fn an_answer_of_a_spec_without_outputs_stays_one_and_other_outputs_are_other_settings() {
    let plain = spec(Approving::Plan);
    let mut one = plain.clone();
    one.runner.outputs = Some(Outputs { secret: "outputs".to_owned(), names: vec!["vpc_id".to_owned()] });
    let mut two = one.clone();
    two.runner.outputs = Some(Outputs { secret: "outputs".to_owned(), names: vec!["endpoint".to_owned()] });
    let mut commanded = plain.clone();
    commanded.runner.steps.output = vec!["output".to_owned()];
    assert_eq!(commanded.settings(), plain.settings(), "what never runs decides nothing");
    let all: BTreeSet<String> = [&plain, &one, &two].map(Spec::settings).into();
    assert_eq!(all.len(), 3);
    assert_eq!(one.work(), plain.work(), "nothing is applied again for outputs alone");
}
