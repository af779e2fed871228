//! Commits that change nothing of what concerns a Repo.

use super::*;
use crate::repo::status::{Attempt, Unchanged};

fn watching(paths: &[&str]) -> Spec {
    let mut spec = spec(Approving::Auto);
    spec.source.path = "infra".to_owned();
    spec.source.watched = Some(paths.iter().map(|path| (*path).to_owned()).collect());
    spec
}

/// A Repo that has applied A, and a git host to which these commits are alike.
fn applied(alike: &'static [&'static str]) -> Stage {
    let mut stage = Stage::new(watching(&[]));
    stage.alike = Ok(alike);
    stage.pass(Duration::from_secs(5));
    stage.applies();
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.run().phase, stage.compared), (Phase::Succeeded, 0), "the first one is run unasked");
    stage
}

impl Stage {
    fn message(&self) -> String {
        let ready = self.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Ready).expect("Ready");
        ready.message.clone()
    }

    fn unchanged(&self) -> Option<(&str, &str)> {
        let Unchanged { revision, since, .. } = self.stored.status.unchanged.as_ref()?;
        Some((revision.as_str(), since.as_str()))
    }

    fn edit_spec(&mut self, change: impl FnOnce(&mut Spec)) {
        self.edit(|object| change(object.spec.as_mut().expect("a spec")));
        self.pass(Duration::from_mins(2));
    }
}

fn failing(lasting: bool) -> Unresolved {
    Unresolved { why: "no folders".to_owned(), lasting, busy: false, rest: Duration::ZERO }
}

#[test]
fn a_commit_that_changes_nothing_here_is_recorded_and_not_run_also_by_the_next_life() {
    let mut stage = applied(&[A, B]);
    stage.push(B);
    assert_eq!((stage.started.len(), stage.ready(), stage.unchanged()), (1, (Some(true), "Unchanged"), Some((B, A))));
    assert_eq!(stage.message(), "bbbbbbbbbbbb changes nothing under infra since aaaaaaaaaaaa, which was applied");
    let (writes, compared) = (stage.writes, stage.compared);
    assert!(!stage.watching && compared == 1, "no Job is looked at for it");
    stage.crash();
    stage.pass(Duration::from_hours(2));
    assert_eq!((stage.started.len(), stage.writes, stage.compared), (1, writes, compared), "it is remembered");
    stage.push(A);
    assert_eq!((stage.started.len(), stage.ready()), (1, (Some(true), "Applied")), "back to what was applied");
}

#[test]
fn the_base_is_what_was_applied_and_never_the_head_before() {
    let mut stage = applied(&[A, C]);
    stage.held = vec!["compare"];
    stage.push(B);
    assert_eq!((stage.ready(), stage.compared), ((None, "Comparing"), 0));
    stage.push(C);
    stage.held.clear();
    let kept = std::mem::take(&mut stage.kept);
    stage.perform(kept);
    stage.pass(Duration::from_mins(2));
    assert_eq!((stage.started.len(), stage.unchanged()), (1, Some((C, A))), "the answer about B is none about C");
    assert_eq!(stage.stored.status.next, None);
    stage.push(B);
    stage.applies();
    stage.push(C);
    assert_eq!((stage.started.len(), stage.run().revision.as_str()), (3, C), "it differs from B, which is applied now");
}

#[test]
fn a_commit_that_was_passed_by_while_it_was_compared_is_named_as_skipped() {
    let mut stage = applied(&[]);
    stage.held = vec!["compare"];
    stage.push(B);
    stage.push(C);
    stage.held.clear();
    let kept = std::mem::take(&mut stage.kept);
    stage.perform(kept);
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().revision.as_str(), stage.run().skipped.len()), (C, 1));
}

#[test]
fn without_a_commit_that_was_applied_as_it_would_be_now_nothing_is_passed_over() {
    let mut failed = Stage::new(watching(&[]));
    failed.alike = Ok(&[A, B]);
    failed.pass(Duration::from_secs(5));
    failed.fails(StepKind::Apply, 1, "");
    failed.push(B);
    assert_eq!((failed.started.len(), failed.compared), (2, 0), "nobody knows what the one before has changed");
    let mut other = applied(&[A, B]);
    other.edit_spec(|spec| spec.runner.image = "tool:2".to_owned());
    assert_eq!(other.started.len(), 1);
    other.push(B);
    assert_eq!((other.started.len(), other.compared), (2, 0), "another image was never applied");
    let mut every = applied(&[A, B]);
    every.edit_spec(|spec| spec.source.watched = None);
    every.push(B);
    assert_eq!((every.started.len(), every.compared), (2, 0), "each commit concerns it");
}

#[test]
fn a_record_holds_for_the_paths_that_were_compared_and_for_no_others() {
    let mut stage = applied(&[A, B]);
    stage.push(B);
    stage.edit_spec(|spec| spec.runner.image = "tool:2".to_owned());
    assert_eq!((stage.started.len(), stage.ready().1), (1, "Unchanged"), "settings alone run nothing");
    stage.edit_spec(|spec| spec.runner.image = "tool:1".to_owned());
    stage.edit_spec(|spec| spec.source.watched = Some(vec!["modules".to_owned()]));
    assert_eq!((stage.started.len(), stage.compared), (1, 2), "it is asked anew");
    assert!(stage.message().contains("under infra, modules since"), "{}", stage.message());
    stage.alike = Ok(&[]);
    stage.edit_spec(|spec| spec.source.watched = Some(vec!["more".to_owned()]));
    assert_eq!((stage.started.len(), stage.run().revision.as_str(), stage.unchanged()), (2, B, None));
}

#[test]
fn what_cannot_be_told_is_asked_again_for_a_while_and_then_run() {
    let mut stage = applied(&[]);
    stage.alike = Err(failing(false));
    stage.head = Ok(B);
    stage.pass(Duration::from_mins(3));
    assert_eq!((stage.started.len(), stage.ready()), (1, (None, "Comparing")));
    assert!(stage.message().ends_with("if that lasts for 5 minutes, it is run: no folders"), "{}", stage.message());
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.run().revision.as_str()), (2, B));
    let (kind, said) = stage.told.iter().find(|(kind, _)| *kind == Kind::RepoFaulty).expect("it is told");
    assert!(said.contains("it cannot be told whether it changes anything under infra: no folders"), "{kind:?} {said}");
    assert!(stage.compared > 3 && stage.compared < 20, "{}", stage.compared);
    let mut lasting = applied(&[]);
    lasting.alike = Err(failing(true));
    lasting.push(B);
    assert_eq!((lasting.started.len(), lasting.compared), (2, 1), "it never can");
    let mut resting = applied(&[]);
    resting.alike = Err(Unresolved { rest: Duration::from_hours(1), ..failing(false) });
    resting.head = Ok(B);
    resting.pass(Duration::from_mins(8));
    assert_eq!((resting.started.len(), resting.compared), (2, 1), "a host that rests does not hold it");
}

#[test]
fn a_poke_asks_at_once_and_a_person_may_run_what_was_passed_over() {
    let mut stage = applied(&[A, B]);
    stage.alike = Err(Unresolved { rest: Duration::from_mins(4), ..failing(false) });
    stage.push(B);
    stage.alike = Ok(&[A, B]);
    stage.edit(|object| object.answers.poked = Some("now".to_owned()));
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.ready().1, stage.compared), ("Unchanged", 2));
    let ticket = stage.again().expect("it succeeded");
    stage.approve(&ticket);
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.started.len(), stage.run().revision.as_str(), stage.unchanged()), (2, B, None));
    stage.applies();
    stage.pass(Duration::from_mins(2));
    assert_eq!(stage.ready(), (Some(true), "Applied"));
}

#[test]
fn while_a_person_stops_it_nothing_is_asked() {
    let mut stage = applied(&[A, B]);
    stage.edit_spec(|spec| spec.suspended = Some("audit".to_owned()));
    stage.push(B);
    assert_eq!((stage.compared, stage.ready().1), (0, "Suspended"));
    stage.edit_spec(|spec| spec.suspended = None);
    assert_eq!((stage.compared, stage.ready().1, stage.started.len()), (1, "Unchanged", 1));
}

#[test]
fn a_head_that_never_rests_is_run_though_git_never_tells() {
    let mut stage = applied(&[]);
    stage.alike = Err(failing(false));
    stage.push(B);
    stage.push(C);
    assert_eq!((stage.started.len(), stage.ready().1), (1, "Comparing"));
    for head in [B, C].repeat(4) {
        stage.push(head);
    }
    assert_eq!(stage.started.len(), 2, "patience does not begin anew with each of them");
    let mut slow = applied(&[]);
    slow.held = vec!["compare"];
    for head in [B, C].repeat(32) {
        slow.push(head);
        // Each answer comes when another commit is wanted already.
        for effect in std::mem::take(&mut slow.kept) {
            let Effect::Compare(question) = effect else { continue };
            if question.head.as_str() == head {
                slow.kept.push(Effect::Compare(question));
            } else {
                slow.feed(Event::Compared(question, Ok(true)));
            }
        }
    }
    assert_eq!(slow.started.len(), 2, "nor for ever where each answer is too late");
}

#[test]
fn a_yes_is_to_the_commit_that_was_shown_and_to_no_newer_one() {
    for approval in [Approving::Auto, Approving::Revision] {
        let mut stage = Stage::new(Spec { approval, ..watching(&[]) });
        stage.alike = Ok(&[A, B, C]);
        stage.pass(Duration::from_secs(5));
        if approval == Approving::Revision {
            stage.approve(&stage.ticket());
        }
        stage.applies();
        stage.push(A);
        let of_applied = stage.again().expect("it succeeded");
        stage.push(B);
        let of_b = stage.again().expect("it succeeded");
        stage.push(C);
        for void in [of_applied, of_b] {
            stage.approve(&void);
            stage.pass(Duration::from_mins(2));
            assert_eq!((stage.started.len(), stage.unchanged()), (1, Some((C, A))), "{approval:?}");
        }
        stage.approve(&stage.again().expect("it succeeded"));
        stage.pass(Duration::from_secs(2));
        assert_eq!((stage.started.len(), stage.run().revision.as_str()), (2, C), "{approval:?}");
    }
}

#[test]
fn want_of_a_place_is_no_failure_of_git_and_holds_it_for_an_hour_at_most() {
    let mut stage = applied(&[]);
    stage.alike = Err(Unresolved { busy: true, ..failing(false) });
    stage.head = Ok(B);
    stage.pass(Duration::from_mins(50));
    assert_eq!((stage.started.len(), stage.ready()), (1, (None, "Comparing")));
    assert!(stage.message().ends_with("if that lasts for an hour, it is run: no folders"), "{}", stage.message());
    let mut freed = applied(&[]);
    freed.alike = Err(Unresolved { busy: true, ..failing(false) });
    freed.head = Ok(B);
    freed.pass(Duration::from_mins(50));
    freed.alike = Err(failing(false));
    freed.pass(Duration::from_mins(4));
    assert_eq!(freed.started.len(), 1, "git has failed for less than 5 minutes");
    freed.pass(Duration::from_mins(3));
    assert_eq!(freed.started.len(), 2);
    stage.pass(Duration::from_mins(12));
    assert_eq!((stage.started.len(), stage.run().revision.as_str()), (2, B));
}

#[test]
fn patience_does_not_run_while_nobody_asks() {
    let suspend = |why: Option<&str>| {
        let why = why.map(str::to_owned);
        move |spec: &mut Spec| spec.suspended = why
    };
    let mut stage = applied(&[]);
    stage.alike = Err(failing(false));
    stage.push(B);
    stage.edit_spec(suspend(Some("audit")));
    stage.pass(Duration::from_mins(10));
    stage.edit_spec(suspend(None));
    assert_eq!((stage.started.len(), stage.ready().1), (1, "Comparing"));
    stage.push(A);
    stage.pass(Duration::from_mins(10));
    stage.push(B);
    assert_eq!((stage.started.len(), stage.ready().1), (1, "Comparing"), "nor while nothing is new");
    let mut untold = applied(&[A, B]);
    untold.alike = Err(failing(true));
    untold.held = vec!["watch_jobs"];
    untold.push(B);
    untold.edit_spec(suspend(Some("audit")));
    untold.alike = Ok(&[A, B]);
    untold.held.clear();
    untold.edit_spec(suspend(None));
    assert_eq!((untold.started.len(), untold.compared, untold.ready().1), (1, 2, "Unchanged"), "it is asked anew");
}

#[test]
fn a_started_job_that_the_status_does_not_know_is_found_before_a_commit_is_passed_over() {
    let mut stage = applied(&[A, B]);
    let attempt = Attempt { seq: RunSeq(5), number: 1, action: Action::Apply };
    let (name, pods) = ("found".to_owned(), Pods { active: 1, ..Pods::default() });
    let known = stage.job();
    let job = Job {
        name,
        uid: "job-found".to_owned(),
        attempt,
        revision: C.parse().expect("an id"),
        pods,
        end: None,
        ..known
    };
    stage.jobs.insert(job.name.clone(), job);
    stage.held = vec!["compare"];
    stage.push(B);
    stage.held.clear();
    let kept = std::mem::take(&mut stage.kept);
    stage.perform(kept);
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().attempt.seq, stage.run().phase, stage.unchanged()), (RunSeq(5), Phase::Started, None));
}
