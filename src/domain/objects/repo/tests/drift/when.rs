//! When a look is made, gives way, or is followed by a run: closed gates, a person who stops it, commits that never rest, old findings.

use super::*;

#[test]
fn while_gates_are_closed_no_run_begins_for_drift_so_the_spec_and_the_newest_look_decide() {
    let frozen = || {
        let mut stage = applied(OnDrift::Apply);
        stage.respecify(|spec| {
            spec.gates.freezes = vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
        });
        stage.look_finds("1");
        assert_eq!((stage.run().phase, stage.drifted().0), (Phase::Succeeded, Some(true)));
        stage
    };
    let thaw = |spec: &mut Spec| spec.gates.freezes.clear();
    let (mut told, mut mended, mut left) = (frozen(), frozen(), frozen());
    told.respecify(|spec| spec.drift = Some(DriftLooks { every: EVERY, then: OnDrift::Tell }));
    mended.look_finds("0");
    left.look_finds("1");
    for stage in [&mut told, &mut mended, &mut left] {
        stage.respecify(thaw);
        stage.pass(Duration::from_mins(5));
    }
    assert_eq!([&told, &mended, &left].map(|stage| stage.begun(Action::Apply)), [1, 1, 2]);
}

#[test]
fn what_was_found_long_ago_is_not_applied_before_it_is_looked_at_again() {
    let mut stage = applied(OnDrift::Tell);
    stage.look_finds("1");
    for _ in 0..48 * 12 {
        stage.pass(Duration::from_mins(5));
        if stage.is_looking() {
            stage.fails(StepKind::Plan, 1, "no credentials");
        }
    }
    stage.respecify(|spec| spec.drift = Some(DriftLooks { every: EVERY, then: OnDrift::Apply }));
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.drifted().0, stage.begun(Action::Apply)), (Some(true), 1));
    stage.look_finds("2");
    assert_eq!(stage.begun(Action::Apply), 2);
}

#[test]
fn the_drift_that_a_run_is_begun_for_is_durable_before_it() {
    let mut stage = applied(OnDrift::Apply);
    stage.until_look();
    stage.held = vec!["store"];
    stage.plans("1");
    let kept = std::mem::take(&mut stage.kept);
    stage.held.clear();
    let stores: Vec<_> = kept
        .iter()
        .filter_map(|effect| match effect {
            Effect::Object(Own::Store(status, _)) => {
                Some((status.run.as_ref()?.attempt.seq, status.drift.as_ref()?.seen.as_ref()?.plan.is_some()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(stores, [(RunSeq(1), true)], "it is counted by this write");
    for effect in kept {
        if let Some(answer) = stage.answer(effect) {
            stage.feed(answer);
        }
    }
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().attempt.seq, stage.begun(Action::Apply)), (RunSeq(2), 2));
}

#[test]
fn a_look_gives_way_to_a_commit_that_concerns_it_and_not_to_one_that_is_compared() {
    for alike in [true, false] {
        let mut stage = applied(OnDrift::Tell);
        stage.respecify(|spec| spec.source.watched = Some(Vec::new()));
        stage.alike = Err(unresolved("no answer"));
        stage.until_look();
        let job = Job { pods: Pods::default(), version: "98".to_owned(), ..stage.job() };
        stage.jobs.insert(job.name.clone(), job.clone());
        stage.feed(Event::JobSeen(Box::new(job)));
        stage.push(B);
        assert!(!stage.job().withdrawn && stage.ready().1 == "Comparing", "{:?}", stage.ready());
        stage.alike = Ok(if alike { &[A, B] } else { &[] });
        stage.pass(Duration::from_mins(2));
        assert_eq!(stage.job().withdrawn, !alike);
    }
}

#[test]
fn what_could_not_be_looked_at_is_looked_at_at_once_after_a_change_or_a_poke() {
    for poke in [true, false] {
        let mut stage = applied(OnDrift::Tell);
        stage.until_look();
        for _ in 0..3 {
            stage.fails(StepKind::Plan, 1, "no credentials");
            stage.until_look();
        }
        stage.fails(StepKind::Plan, 1, "no credentials");
        stage.pass(Duration::from_mins(2));
        assert_eq!((stage.drifted().1, stage.begun(Action::Drift)), ("LookFailed", 4), "it rests");
        if poke {
            stage.edit(|object| object.answers.poked = Some("now".to_owned()));
            stage.pass(Duration::from_secs(5));
        } else {
            stage.respecify(|spec| spec.runner.image = "tool:2".to_owned());
        }
        assert_eq!(stage.begun(Action::Drift), 5, "poke: {poke}");
        stage.fails(StepKind::Plan, 1, "no credentials");
        stage.pass(Duration::from_secs(5));
        let count =
            stage.stored.status.drift.as_ref().and_then(|drift| drift.missed.as_ref()).map(|missed| missed.count);
        assert_eq!(count, Some(if poke { 5 } else { 1 }));
    }
}

#[test]
fn what_was_told_under_other_settings_is_told_to_be_gone() {
    let mut stage = applied(OnDrift::Tell);
    stage.look_finds("1");
    stage.respecify(|spec| spec.runner.image = "tool:2".to_owned());
    stage.look_finds("0");
    assert_eq!((stage.drifted().0, stage.told_of(Kind::RepoInSync).len()), (Some(false), 1));
}

#[test]
fn while_a_person_stops_it_looks_are_not_late() {
    let mut stage = applied(OnDrift::Tell);
    stage.until_look();
    stage.fails(StepKind::Plan, 1, "no credentials");
    stage.pass(Duration::from_secs(5));
    stage.respecify(|spec| spec.suspended = Some("audit".to_owned()));
    stage.pass(Duration::from_hours(30));
    assert_eq!(stage.told_of(Kind::RunStalled).len(), 0);
}
