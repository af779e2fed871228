//! A Repo that is deleted, and whose spec asks whether what it applied is destroyed.

mod between;

use super::*;
use crate::repo::spec::DestroySteps;
use crate::repo::view::view;

impl Stage {
    /// The finalizer is written.
    pub(super) fn hold(&mut self, held: bool) -> Event {
        self.stored.finalizers.ours = held;
        self.stored.version = self.next_version();
        Event::Held
    }

    /// What a watch shows after that: an object that nothing keeps is gone.
    pub(super) fn shown(&self) -> Event {
        if self.stored.deleting && !self.stored.finalizers.ours {
            return Event::Object(Life::Looked(None));
        }
        Event::Object(Life::Seen(Box::new(self.stored.clone())))
    }

    fn delete(&mut self) {
        self.edit(|object| object.deleting = true);
        self.pass(Duration::from_secs(3));
    }

    fn is_gone(&self) -> bool {
        self.stored.deleting && !self.stored.finalizers.ours
    }

    fn destroy(&self) -> &Run {
        self.stored.status.destroy.as_ref().expect("a destroy")
    }

    fn keep(&mut self) {
        self.edit(|object| object.answers.keep = Some(object.uid.clone()));
        self.pass(Duration::from_secs(3));
    }

    /// What each Job that was started is for, in their order.
    fn acted(&self) -> Vec<Action> {
        self.started.iter().map(|name| self.actions[name]).collect()
    }

    fn ready_words(&self) -> &str {
        let ready = self.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Ready).expect("Ready");
        &ready.message
    }
}

fn asking(approval: Approving) -> Spec {
    let mut spec = spec(approval);
    let words = |word: &str| vec![word.to_owned()];
    spec.runner.destroy = Some(DestroySteps { plan: words("plan-destroy"), destroy: words("destroy") });
    spec
}

/// A Repo that asks on deletion, and has applied A.
fn applied() -> Stage {
    let mut stage = Stage::new(asking(Approving::Auto));
    stage.pass(Duration::from_secs(5));
    stage.applies();
    stage.pass(Duration::from_secs(5));
    stage
}

/// The same, deleted, and its destroy planned.
fn asked() -> Stage {
    let mut stage = applied();
    stage.delete();
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    stage
}

#[test]
fn a_repo_that_asks_is_held_and_one_that_does_not_is_not() {
    let mut stage = applied();
    assert!(stage.stored.finalizers.ours);
    stage.edit(|object| object.spec.as_mut().expect("a spec").runner.destroy = None);
    assert!(!stage.stored.finalizers.ours, "Keep takes it back");
    let mut other = staged(Approving::Auto);
    other.pass(Duration::from_mins(5));
    assert!(!other.stored.finalizers.ours);
    // What cannot be read says neither.
    let mut stage = applied();
    stage.edit(|object| object.spec = Err("unreadable".to_owned()));
    stage.pass(Duration::from_mins(5));
    assert!(stage.stored.finalizers.ours);
}

#[test]
fn what_was_applied_is_destroyed_after_a_yes_to_its_plan_and_then_the_repo_goes() {
    let mut stage = asked();
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan]);
    assert_eq!((stage.destroy().phase, stage.ready()), (Phase::Planned, (Some(false), "WaitingForApproval")));
    assert!(stage.ready_words().contains("2 to add, 1 to change, 0 to destroy"), "{}", stage.ready_words());
    assert_eq!((stage.run().phase, stage.destroy().revision.as_str()), (Phase::Succeeded, A));
    stage.pass(Duration::from_mins(50));
    assert_eq!(stage.started.len(), 2, "nothing follows without a yes");
    let ticket = stage.ticket();
    stage.approve(&ticket);
    assert_eq!(stage.acted().last(), Some(&Action::Destroy));
    stage.pass(Duration::from_mins(10));
    assert!(!stage.is_gone(), "its Job has not ended");
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
    assert_eq!(stage.destroy().phase, Phase::Succeeded);
    let told = stage.told();
    assert_eq!(told.last(), Some(&"run.completed"));
    assert_eq!(told.iter().filter(|kind| **kind == "run.waiting").count(), 1);
    assert_eq!(stage.run().revision.as_str(), A, "what was applied stays what was applied");
}

#[test]
fn a_no_destroys_nothing_whenever_it_comes() {
    let mut stage = asked();
    stage.keep();
    assert!(stage.is_gone());
    let mut stage = asked();
    stage.edit(|object| object.spec.as_mut().expect("a spec").runner.destroy = None);
    assert!(stage.is_gone(), "so does onDelete: Keep");
    // A no to another object of this name is none.
    let mut stage = asked();
    stage.edit(|object| object.answers.keep = Some("uid-0".to_owned()));
    stage.pass(Duration::from_mins(1));
    assert!(!stage.is_gone());
    // Before the plan ran, and after a yes.
    let mut stage = applied();
    stage.delete();
    stage.keep();
    assert!(!stage.is_gone(), "its Job runs: it ends first");
    stage.plans("1");
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
    let mut stage = asked();
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.keep();
    assert!(!stage.is_gone(), "what has begun ends first");
    stage.fails(StepKind::Apply, 1, "boom");
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
    assert!(stage.acted().iter().filter(|action| **action == Action::Destroy).count() == 1);
}

#[test]
fn an_old_yes_never_destroys_and_a_plan_that_differs_is_asked_about_anew() {
    let mut stage = Stage::new(asking(Approving::Plan));
    stage.pass(Duration::from_secs(5));
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    let to_apply = stage.ticket();
    stage.approve(&to_apply);
    stage.applies();
    stage.pass(Duration::from_secs(3));
    stage.delete();
    stage.plans("1");
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.destroy().phase, Phase::Planned, "the same fingerprint, and another question");
    let first = stage.ticket();
    assert_ne!(first, to_apply);
    stage.approve(&first);
    stage.fails(StepKind::Verify, PLAN_DIFFERS, &said(&Message::Differs(planned("2"))));
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.destroy().phase, Phase::Planned);
    assert_ne!(stage.ticket(), first);
    let destroys = |stage: &Stage| stage.acted().into_iter().filter(|action| *action == Action::Destroy).count();
    assert_eq!(destroys(&stage), 1);
    stage.approve(&first);
    assert_eq!(destroys(&stage), 1);
    let second = stage.ticket();
    stage.approve(&second);
    assert_eq!(destroys(&stage), 2);
}

#[test]
fn a_destroy_that_failed_says_so_and_is_planned_again_after_a_yes_only() {
    let mut stage = asked();
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.fails(StepKind::Apply, 1, "bucket not empty");
    stage.pass(Duration::from_hours(5));
    assert_eq!((stage.destroy().phase, stage.ready()), (Phase::Failed, (Some(false), "DestroyFailed")));
    assert!(stage.ready_words().contains("bucket not empty"), "{}", stage.ready_words());
    assert_eq!(stage.started.len(), 3, "it never loops");
    assert_eq!(stage.stored.status.conditions[1].reason, "DestroyFailed");
    stage.approve(&ticket);
    assert_eq!(stage.started.len(), 3);
    let again = stage.ticket();
    stage.approve(&again);
    assert_eq!(stage.acted().last(), Some(&Action::DestroyPlan));
    stage.plans("2");
    stage.pass(Duration::from_secs(3));
    let second = stage.ticket();
    stage.approve(&second);
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
}

#[test]
fn a_plan_that_cannot_be_made_is_made_again_and_one_that_finds_nothing_lets_the_repo_go() {
    let mut stage = applied();
    stage.delete();
    stage.fails(StepKind::Prepare, 1, "no route");
    stage.pass(Duration::from_secs(10));
    assert_eq!(stage.ready(), (Some(false), "DestroyFailed"));
    assert!(stage.ready_words().contains("Nothing was destroyed"), "{}", stage.ready_words());
    stage.pass(Duration::from_secs(40));
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan, Action::DestroyPlan]);
    stage.plans("0");
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
}

#[test]
fn where_nothing_was_applied_nobody_is_asked_and_where_it_may_have_been_somebody_is() {
    let mut stage = Stage::new(asking(Approving::Plan));
    stage.pass(Duration::from_secs(5));
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    stage.delete();
    assert!(stage.is_gone(), "a plan applies nothing");
    // The apply had begun and failed, and another commit took its place before it ran.
    let mut spec = asking(Approving::Auto);
    spec.retry.limit = 3;
    let mut stage = Stage::new(spec);
    stage.pass(Duration::from_secs(5));
    stage.fails(StepKind::Apply, 1, "boom");
    stage.held = vec!["make_job"];
    stage.push(B);
    stage.held.clear();
    stage.kept.clear();
    assert_eq!((stage.run().revision.as_str(), stage.run().failing.applies), (B, 0));
    stage.delete();
    assert!(!stage.is_gone());
}

#[test]
fn what_runs_ends_first_and_nothing_new_is_applied() {
    let mut stage = applied();
    stage.push(B);
    assert_eq!(stage.started.len(), 2);
    stage.delete();
    stage.push(C);
    assert_eq!(stage.started.len(), 2, "B is applied, and C is not");
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.acted().last(), stage.destroy().revision.as_str()), (Some(&Action::DestroyPlan), B));
    stage.pass(Duration::from_hours(2));
    assert_eq!(stage.started.len(), 3);
    // A plan that waits for a yes is not waited for.
    let mut stage = Stage::new(asking(Approving::Plan));
    stage.pass(Duration::from_secs(5));
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.applies();
    stage.push(B);
    stage.plans("2");
    stage.pass(Duration::from_secs(3));
    let to_b = stage.ticket();
    stage.delete();
    stage.approve(&to_b);
    stage.pass(Duration::from_secs(3));
    assert_eq!((stage.run().phase, stage.destroy().revision.as_str()), (Phase::Superseded, A));
    assert_eq!(stage.acted().last(), Some(&Action::DestroyPlan));
}

#[test]
fn a_restart_at_any_point_neither_repeats_nor_loses_it() {
    let mut stage = applied();
    stage.crash();
    stage.delete();
    stage.crash();
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan]);
    stage.plans("1");
    stage.crash();
    let ticket = stage.ticket();
    stage.crash();
    assert_eq!(stage.ticket(), ticket);
    stage.approve(&ticket);
    stage.crash();
    assert_eq!(stage.acted(), [Action::Apply, Action::DestroyPlan, Action::Destroy]);
    stage.held = vec!["let_go"];
    stage.applies();
    stage.crash();
    assert!(!stage.is_gone());
    stage.held.clear();
    stage.crash();
    assert!(stage.is_gone());
    assert_eq!(stage.started.len(), 3);
    assert_eq!(stage.told().iter().filter(|kind| **kind == "run.waiting").count(), 1);
}

#[test]
fn gates_hold_a_destroy_and_not_its_plan_and_other_settings_need_another_yes() {
    let mut spec = asking(Approving::Auto);
    let freeze = Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() };
    let mut stage = Stage::new(spec.clone());
    stage.pass(Duration::from_secs(5));
    stage.applies();
    stage.pass(Duration::from_secs(5));
    spec.gates.freezes = vec![freeze];
    stage.edit(|object| object.spec = Ok(spec));
    stage.delete();
    assert_eq!(stage.acted().last(), Some(&Action::DestroyPlan));
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    let ticket = stage.ticket();
    stage.approve(&ticket);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.ready()), (2, (Some(false), "GateClosed")));
    stage.edit(|object| {
        let spec = object.spec.as_mut().expect("a spec");
        spec.gates.freezes.clear();
        spec.runner.destroy.as_mut().expect("steps").destroy.push("--force".to_owned());
    });
    stage.pass(Duration::from_secs(3));
    assert_eq!(stage.acted().last(), Some(&Action::DestroyPlan), "the yes was to another command");
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    assert_ne!(stage.ticket(), ticket);
}

#[test]
fn what_is_not_clear_is_not_destroyed_and_what_holds_it_up_is_said() {
    let mut stage = applied();
    stage.edit(|object| {
        object.spec.as_mut().expect("a spec").workspace = Some("other".to_owned());
        object.deleting = true;
    });
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.ready()), (1, (Some(false), "Destroying")));
    assert!(stage.ready_words().contains("put them back"), "{}", stage.ready_words());
    stage.edit(|object| object.spec.as_mut().expect("a spec").workspace = None);
    stage.pass(Duration::from_secs(3));
    assert_eq!(stage.started.len(), 2);
    // Kubernetes deletes its Jobs: one that is made now would go with them.
    let mut stage = applied();
    stage.edit(|object| object.finalizers.cascading = true);
    stage.delete();
    assert_eq!(stage.started.len(), 1);
    stage.edit(|object| object.finalizers.cascading = false);
    stage.pass(Duration::from_secs(3));
    assert_eq!(stage.started.len(), 2);
    // In a namespace that is being deleted nothing can be made.
    let mut stage = applied();
    stage.held = vec!["make_job"];
    stage.delete();
    let name = stage.destroy().job.as_ref().expect("a name").name.clone();
    let why = "unable to create new content in namespace platform because it is being terminated";
    stage.feed(Event::MakeFailed(name, why.to_owned(), false));
    stage.pass(Duration::from_mins(70));
    assert_eq!(stage.ready(), (Some(false), "DestroyFailed"));
    let words = stage.ready_words();
    assert!(words.contains(why) && words.contains("allclear repo keep platform/infra"), "{words}");
    assert!(stage.told().contains(&"run.stalled"));
    stage.keep();
    assert!(stage.is_gone());
}

#[test]
fn without_the_right_to_hold_it_the_repo_says_so() {
    let mut stage = Stage::new(asking(Approving::Auto));
    stage.held = vec!["hold"];
    stage.pass(Duration::from_secs(5));
    stage.feed(Event::HoldFailed("forbidden".to_owned()));
    stage.applies();
    stage.pass(Duration::from_mins(1));
    let stalled = stage.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Stalled);
    let stalled = stalled.expect("Stalled");
    assert!(stalled.reason == "NotHeld" && stalled.message.contains("forbidden"), "{stalled:?}");
    assert_eq!(stage.ready().0, Some(true));
    stage.held.clear();
    stage.kept.clear();
    stage.edit(|object| object.answers.poked = Some("now".to_owned()));
    stage.feed(Event::Held);
    stage.pass(Duration::from_mins(1));
    assert!(stage.stored.finalizers.ours);
    assert!(!stage.stored.status.conditions.iter().any(|one| one.reason == "NotHeld"));
}

#[test]
fn a_job_that_never_ran_does_not_keep_a_repo_and_a_lost_destroy_asks() {
    let mut stage = asked();
    let ticket = stage.ticket();
    stage.approve(&ticket);
    let job = stage.job();
    stage.jobs.remove(&job.name);
    stage.feed(Event::JobGone(job.name));
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.destroy().phase, stage.ready()), (Phase::Lost, (Some(false), "DestroyFailed")));
    assert_eq!(stage.started.len(), 3);
    let shown = view(&stage.stored, &stage.stored.status);
    let question = shown.question.expect("a question");
    assert_eq!(question.kind, "DestroyAgain");
    assert!(shown.next.contains("allclear repo keep platform/infra"), "{}", shown.next);
}

#[test]
fn what_was_made_and_not_started_is_not_started_after_a_no_or_the_deletion() {
    // An apply whose Job was made, and not started, when its Repo was deleted.
    let mut stage = applied();
    stage.held = vec!["start_job"];
    stage.push(B);
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Started, 1));
    let (name, job) = stage.kept.iter().find_map(start).expect("a start");
    stage.kept.clear();
    stage.delete();
    let late = stage.answer(Effect::Start(Box::new(job)));
    assert_eq!(late, Some(Event::StartAnswered(name, Start::Refused)), "it was taken back before its start arrived");
    stage.held.clear();
    let (name, _) = stage.kept.iter().find_map(start).expect("the start of a plan");
    stage.kept.clear();
    stage.feed(Event::StartFailed(name, "no answer".to_owned()));
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.acted()), (Phase::Superseded, vec![Action::Apply, Action::DestroyPlan]));
    // The same of a destroy, and a no: that start was carried out, so what runs ends first.
    stage.plans("1");
    stage.pass(Duration::from_secs(3));
    stage.held = vec!["start_job"];
    let ticket = stage.ticket();
    stage.approve(&ticket);
    let (name, job) = stage.kept.iter().find_map(start).expect("a start");
    stage.kept.clear();
    let _ = stage.answer(Effect::Start(Box::new(job)));
    stage.keep();
    stage.held.clear();
    stage.feed(Event::StartFailed(name, "no answer".to_owned()));
    stage.pass(Duration::from_secs(5));
    assert!(!stage.is_gone());
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert!(stage.is_gone());
}

fn start(effect: &Effect) -> Option<(String, Job)> {
    match effect {
        Effect::Start(job) => Some((job.name.clone(), (**job).clone())),
        _ => None,
    }
}
