//! What a destroy has to do with the other ways of a Repo.

use super::*;

#[test]
fn what_was_only_planned_is_nothing_that_could_be_destroyed() {
    let mut stage = staged(Approving::Never);
    for (fingerprint, next) in [("1", Some(B)), ("2", None)] {
        stage.plans(fingerprint);
        stage.pass(Duration::from_secs(2));
        next.into_iter().for_each(|next| stage.push(next));
    }
    stage.edit(|object| object.spec = Ok(asking(Approving::Plan)));
    stage.plans("3");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.ready(), stage.stored.status.history.len()), ((Some(false), "WaitingForApproval"), 2));
    stage.delete();
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone(), "{}", stage.ready_words());
    assert_eq!(stage.acted(), [Action::Plan; 3]);
}

/// Of two plans that were made, one changed nothing: an apply needs a plan that can be said yes to.
#[test]
fn a_plan_of_nothing_is_no_plan_that_can_be_applied_after_a_yes() {
    let mut stage = staged(Approving::Plan);
    stage.edit(|object| {
        let spec = object.spec.as_mut().expect("a spec");
        (spec.approval, spec.suspended) = (Approving::Never, Some("stop".to_owned()));
    });
    stage.plans("0");
    stage.pass(Duration::from_secs(5));
    stage.edit(|object| object.spec = Ok(spec(Approving::Plan)));
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.acted(), [Action::Plan; 2], "it is planned again");
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!(stage.job().attempt.action, Action::Apply);
}

#[test]
fn a_repo_that_was_restored_to_before_its_deletion_destroys_nothing_and_goes_on() {
    let mut stage = asked();
    let ticket = stage.ticket();
    stage.edit(|object| object.deleting = false);
    stage.approve(&ticket);
    stage.pass(Duration::from_mins(5));
    assert_eq!((&stage.stored.status.destroy, &stage.stored.status.waiting), (&None, &None));
    let writes = stage.writes;
    stage.pass(Duration::from_hours(2));
    assert_eq!(stage.writes, writes, "it is at rest");
    stage.push(B);
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.run().revision.as_str()), (Phase::Succeeded, B));
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan, Action::Apply]);
}

#[test]
fn a_destroy_that_failed_is_not_planned_again_in_another_workspace() {
    let mut stage = asked();
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.fails(StepKind::Apply, 1, "bucket not empty");
    stage.pass(Duration::from_secs(5));
    let ticket = stage.ticket();
    stage.edit(|object| object.spec.as_mut().expect("a spec").workspace = Some("other".to_owned()));
    stage.approve(&ticket);
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.started.len(), 3);
    assert!(stage.ready_words().contains("put them back"), "{}", stage.ready_words());
    stage.edit(|object| object.spec.as_mut().expect("a spec").workspace = None);
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.acted().last(), Some(&Action::DestroyPlan), "the yes was to the destroy of this one");
}

#[test]
fn what_follows_on_a_plan_of_nothing_waits_for_a_spec_that_can_be_used() {
    let mut stage = staged(Approving::Never);
    stage.edit(|object| object.spec = Err("unreadable".to_owned()));
    stage.plans("0");
    stage.pass(Duration::from_secs(5));
    assert_ne!(stage.run().phase, Phase::Succeeded);
    stage.edit(|object| object.spec = Ok(spec(Approving::Never)));
    stage.pass(Duration::from_secs(5));
    stage.plans("0");
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Planned, (Some(true), "Planned")));
}

/// What was asked before is void: nothing is applied any more.
#[test]
fn what_was_asked_before_the_deletion_is_not_asked_any_more_also_where_the_destroy_is_held_up() {
    let mut stage = Stage::new(asking(Approving::Plan));
    stage.pass(Duration::from_secs(5));
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.applies();
    stage.pass(Duration::from_secs(2));
    stage.push(B);
    stage.plans("2");
    stage.pass(Duration::from_secs(2));
    assert!(stage.stored.status.waiting.is_some());
    stage.edit(|object| {
        object.deleting = true;
        object.spec.as_mut().expect("a spec").suspended = Some("stop".to_owned());
    });
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.ready(), &stage.stored.status.waiting), ((Some(false), "Suspended"), &None));
}

#[test]
fn what_was_applied_is_not_run_once_more_in_a_repo_that_is_being_deleted() {
    let mut stage = applied();
    let again = |stage: &Stage| view(&stage.stored, &stage.stored.status).run.and_then(|run| run.again);
    assert!(again(&stage).is_some());
    stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = Some("stop".to_owned()));
    stage.delete();
    assert_eq!((again(&stage), stage.ready()), (None, (Some(false), "Suspended")));
}

/// A yes makes a run that failed begin anew: what it had applied by then is there.
#[test]
fn what_failed_and_is_to_be_run_again_is_asked_about_when_its_repo_is_deleted() {
    let mut stage = Stage::new(asking(Approving::Auto));
    stage.pass(Duration::from_secs(5));
    stage.fails(StepKind::Apply, 1, "half of it is there");
    stage.pass(Duration::from_secs(2));
    stage.held = vec!["make_job"];
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Starting, 1));
    stage.held.clear();
    stage.delete();
    stage.pass(Duration::from_mins(5));
    assert!(!stage.is_gone(), "something may be there");
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan]);
}
