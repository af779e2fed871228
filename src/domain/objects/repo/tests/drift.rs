//! Looks at drift: what was applied is planned again at times.

mod when;

use super::*;
use crate::repo::spec::{DriftLooks, OnDrift};
use crate::repo::status::Seen;

const EVERY: Duration = Duration::from_hours(6);

fn looking(approval: Approving, then: OnDrift) -> Spec {
    Spec { drift: Some(DriftLooks { every: EVERY, then }), ..spec(approval) }
}

/// A Repo that has applied A, and looks for drift.
fn applied(then: OnDrift) -> Stage {
    let mut stage = Stage::new(looking(Approving::Auto, then));
    stage.pass(Duration::from_secs(5));
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Succeeded, 1));
    stage
}

impl Stage {
    fn is_looking(&self) -> bool {
        self.stored.status.look().is_some_and(|look| look.phase == Phase::Started)
    }

    /// Time passes until a look runs, two times between two looks at most.
    fn until_look(&mut self) {
        for _ in 0..2 * 6 * 12 {
            if self.is_looking() {
                return;
            }
            self.pass(Duration::from_mins(5));
        }
        panic!("nothing looks: {:?}", self.drifted());
    }

    /// The next look ends, with this plan; `0` changes nothing.
    fn look_finds(&mut self, fingerprint: &str) {
        self.until_look();
        self.plans(fingerprint);
        self.pass(Duration::from_secs(5));
    }

    fn drifted(&self) -> (Option<bool>, &str, &str) {
        let one = self.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Drifted).expect("Drifted");
        (one.holds, one.reason.as_str(), one.message.as_str())
    }

    fn told_of(&self, kind: Kind) -> Vec<&str> {
        self.told.iter().filter(|(told, _)| *told == kind).map(|(_, message)| message.as_str()).collect()
    }

    /// How many Jobs of this action were started.
    fn begun(&self, action: Action) -> usize {
        let of = |name: &&String| self.actions.get(*name) == Some(&action);
        self.started.iter().filter(of).count()
    }

    fn respecify(&mut self, change: impl FnOnce(&mut Spec)) {
        self.edit(|object| change(object.spec.as_mut().expect("a spec")));
        self.pass(Duration::from_secs(2));
    }
}

#[test]
fn what_was_applied_is_planned_at_times_and_stays_applied() {
    let mut stage = applied(OnDrift::Tell);
    assert_eq!((stage.drifted().0, stage.drifted().1), (None, "NotLooked"));
    stage.pass(Duration::from_hours(2));
    assert_eq!(stage.started.len(), 1, "not at once");
    stage.until_look();
    let job = stage.job();
    assert_eq!(
        (job.attempt.action, job.attempt.seq, job.revision.as_str()),
        (Action::Drift, stage.run().attempt.seq, A)
    );
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Succeeded, (Some(true), "Applied")));
    stage.plans("0");
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.drifted().0, stage.drifted().1), (Some(false), "InSync"));
    let began = stage.begun(Action::Drift);
    for _ in 0..24 * 12 * 2 {
        stage.pass(Duration::from_mins(5));
        if stage.is_looking() {
            stage.plans("0");
        }
    }
    let looks = stage.begun(Action::Drift) - began;
    assert!((7..=9).contains(&looks), "{looks} looks in two days");
    assert_eq!((stage.begun(Action::Apply), stage.told()), (1, vec!["run.started", "run.completed"]));
    assert!(!stage.watching, "nothing is watched at rest");
    assert_eq!(stage.jobs.len(), 1, "ended looks are removed, and what was applied is kept");
    stage.respecify(|spec| spec.drift = None);
    stage.pass(Duration::from_hours(30));
    assert_eq!(stage.begun(Action::Drift), began + looks, "nothing looks any more");
    assert!(!stage.stored.status.conditions.iter().any(|one| one.kind == ConditionKind::Drifted));
}

#[test]
fn drift_is_told_once_until_it_is_another_or_gone() {
    let mut stage = applied(OnDrift::Tell);
    for fingerprint in ["1", "1"] {
        stage.look_finds(fingerprint);
        let (holds, reason, message) = stage.drifted();
        assert_eq!((holds, reason), (Some(true), "Drifted"));
        assert!(message.contains("2 to add, 1 to change, 0 to destroy, since 1970-01-01T"), "{message}");
        assert!(
            message.ends_with(&format!("; kubectl logs -n platform job/{} -c plan", stage.drift_job())),
            "{message}"
        );
        stage.pass(Duration::from_mins(2));
        assert_eq!(stage.jobs.len(), 2, "the Job whose log is named is kept");
    }
    let [told] = stage.told_of(Kind::RepoDrifted)[..] else { panic!("{:?}", stage.told) };
    assert!(told.starts_with("aaaaaaaaaaaa was applied") && told.contains("2 to add, 1 to change"), "{told}");
    stage.crash();
    stage.look_finds("1");
    assert_eq!(stage.told_of(Kind::RepoDrifted).len(), 1, "nor by the next life");
    stage.look_finds("2");
    assert_eq!(stage.told_of(Kind::RepoDrifted).len(), 2);
    stage.look_finds("0");
    assert_eq!((stage.drifted().0, stage.told_of(Kind::RepoInSync).len()), (Some(false), 1));
    stage.look_finds("0");
    assert_eq!(stage.told_of(Kind::RepoInSync).len(), 1);
    stage.look_finds("2");
    assert_eq!(stage.told_of(Kind::RepoDrifted).len(), 3, "it is back");
    assert_eq!((stage.begun(Action::Apply), stage.ready()), (1, (Some(true), "Applied")));
}

impl Stage {
    fn drift_job(&self) -> String {
        let seen = self.stored.status.drift.as_ref().and_then(|drift| drift.seen.clone());
        let Some(Seen { plan: Some(plan), .. }) = seen else { panic!("nothing has drifted") };
        plan.job
    }
}

#[test]
fn what_a_look_finds_is_nothing_to_another_commit_or_other_settings() {
    let mut stage = applied(OnDrift::Tell);
    stage.until_look();
    stage.respecify(|spec| spec.runner.image = "tool:2".to_owned());
    stage.plans("1");
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.drifted().1, stage.told_of(Kind::RepoDrifted).len()), ("NotLooked", 0), "of other settings");
    stage.look_finds("1");
    assert_eq!(stage.drifted().0, Some(true));
    stage.respecify(|spec| spec.runner.image = "tool:3".to_owned());
    assert_eq!((stage.drifted().0, stage.drifted().1), (None, "NotLooked"));
    stage.until_look();
    stage.push(B);
    stage.push(C);
    assert_eq!((stage.run().revision.as_str(), stage.ready()), (A, (None, "Running")), "a plan that runs ends first");
    let next = stage.stored.status.next.clone().expect("the next commit");
    assert_eq!((next.revision.as_str(), next.skipped.len()), (C, 1));
    let shown = view::view(&stage.stored, &stage.stored.status);
    assert_eq!(shown.next, format!("when the look at drift has ended, {C} is run"));
    stage.plans("1");
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().revision.as_str(), stage.run().phase, stage.run().skipped.len()), (C, Phase::Started, 1));
    assert_eq!(stage.told_of(Kind::RepoDrifted).len(), 1);
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.drifted().1, "NotLooked");
}

#[test]
fn a_look_of_which_nothing_runs_gives_way_at_once() {
    for by_commit in [false, true] {
        let mut stage = applied(OnDrift::Tell);
        stage.held = vec!["make_job"];
        for _ in 0..12 * 12 {
            stage.pass(Duration::from_mins(5));
        }
        assert!(stage.stored.status.look().is_some(), "it waits for its Job");
        stage.held.clear();
        if by_commit {
            stage.push(B);
            assert_eq!((stage.run().revision.as_str(), stage.run().phase), (B, Phase::Started));
        } else {
            let ticket = stage.again().expect("its commit is applied");
            stage.approve(&ticket);
            stage.pass(Duration::from_secs(5));
            assert_eq!((stage.run().attempt.seq, stage.run().phase), (RunSeq(2), Phase::Started));
        }
        assert_eq!((stage.stored.status.look(), stage.begun(Action::Drift)), (None, 0));
    }
}

#[test]
fn a_look_that_cannot_be_made_is_made_again_later_and_told_once_if_that_lasts() {
    let mut stage = applied(OnDrift::Apply);
    let mut failed = 0;
    for _ in 0..24 * 12 {
        stage.pass(Duration::from_mins(5));
        if stage.is_looking() {
            stage.fails(StepKind::Plan, 1, "no credentials");
            failed += 1;
            stage.pass(Duration::from_secs(5));
            assert_eq!((stage.drifted().0, stage.drifted().1, stage.ready().1), (None, "LookFailed", "Applied"));
        }
    }
    assert!((6..=10).contains(&failed), "{failed}");
    assert!(
        stage.drifted().2.contains("step plan ended with code 1: no credentials; kubectl logs"),
        "{:?}",
        stage.drifted()
    );
    let [told] = stage.told_of(Kind::RunStalled)[..] else { panic!("{:?}", stage.told) };
    assert!(told.starts_with("nothing could be looked at for drift for 60 minutes: step plan"), "{told}");
    assert!(stage.jobs.len() <= 2, "the newest log is kept: {:?}", stage.jobs.keys());
    assert_eq!((stage.told_of(Kind::RepoDrifted).len(), stage.begun(Action::Apply)), (0, 1));
    stage.look_finds("0");
    assert_eq!((stage.drifted().0, stage.told_of(Kind::RunStalled).len()), (Some(false), 1));
    stage.look_finds("1");
    stage.applies();
    stage.look_finds("0");
    stage.until_look();
    let job = stage.job();
    stage.jobs.remove(&job.name);
    stage.feed(Event::JobGone(job.name));
    stage.pass(Duration::from_secs(5));
    assert_eq!(stage.drifted().1, "LookFailed", "what is lost is looked at again, and asks nobody");
    assert_eq!((stage.run().phase, stage.stored.status.waiting.as_ref()), (Phase::Succeeded, None));
}

#[test]
fn drift_is_applied_once_and_not_over_and_over_when_it_comes_back() {
    let mut stage = applied(OnDrift::Apply);
    stage.look_finds("1");
    let began = stage.run().started_ms.expect("its Job is ordered");
    assert_eq!(
        (stage.run().attempt.seq, stage.run().phase, stage.begun(Action::Apply)),
        (RunSeq(2), Phase::Started, 2)
    );
    assert!(
        stage.told_of(Kind::RepoDrifted)[0].ends_with("; it is run once more, as approval and gates say"),
        "{:?}",
        stage.told
    );
    stage.crash();
    stage.applies();
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.drifted().1), (Phase::Succeeded, "NotLooked"));
    let (mut began, mut bounded) = (began, 0);
    for _ in 0..12 {
        stage.look_finds("1");
        if stage.run().phase == Phase::Succeeded {
            bounded += 1;
            let told = stage.told_of(Kind::RepoDrifted).last().copied().expect("it is told");
            assert!(told.contains("; a run for drift began at 1970-01-"), "{told}");
            assert!(told.contains(": not once more before 1970-01-"), "{told}");
            stage.crash();
        }
        while stage.run().phase != Phase::Started {
            stage.pass(Duration::from_mins(1));
        }
        let begins = stage.run().started_ms.expect("its Job is ordered");
        assert!(begins - began >= 6 * 60 * 60 * 1_000, "not before the time between two looks has passed");
        began = begins;
        stage.applies();
        stage.pass(Duration::from_secs(5));
    }
    assert_eq!((stage.begun(Action::Apply), stage.begun(Action::Drift)), (2 + 12, 1 + 12));
    assert!(bounded > 0);
}

#[test]
fn a_run_for_drift_asks_and_waits_as_every_run_does() {
    let mut planned = Stage::new(looking(Approving::Plan, OnDrift::Apply));
    planned.pass(Duration::from_secs(5));
    planned.plans("1");
    planned.pass(Duration::from_secs(2));
    planned.approve(&planned.ticket());
    planned.applies();
    planned.look_finds("2");
    assert_eq!((planned.job().attempt.action, planned.drifted().0), (Action::Plan, Some(true)));
    planned.plans("2");
    planned.pass(Duration::from_hours(20));
    assert_eq!((planned.run().phase, planned.begun(Action::Apply)), (Phase::Planned, 1), "a person is asked");
    let mut commit = Stage::new(looking(Approving::Revision, OnDrift::Apply));
    commit.pass(Duration::from_secs(5));
    commit.approve(&commit.ticket());
    commit.applies();
    commit.look_finds("2");
    assert_eq!((commit.ready().1, commit.begun(Action::Apply)), ("WaitingForApproval", 1));
    let mut frozen = applied(OnDrift::Apply);
    frozen.respecify(|spec| {
        spec.gates.freezes = vec![Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() }];
    });
    frozen.look_finds("2");
    frozen.pass(Duration::from_hours(1));
    assert_eq!((frozen.ready().1, frozen.begun(Action::Apply)), ("Applied", 1));
    assert!(frozen.drifted().2.contains("; no run begins for it yet: a freeze: fair"), "{:?}", frozen.drifted());
    for waits in [&planned, &commit] {
        assert_eq!((waits.drifted().0, waits.drifted().1), (Some(true), "Drifted"), "until something is applied");
    }
}

#[test]
fn while_a_person_stops_it_nothing_looks_and_what_looks_goes_on() {
    let mut stage = applied(OnDrift::Apply);
    stage.until_look();
    stage.respecify(|spec| spec.suspended = Some("audit".to_owned()));
    stage.plans("1");
    stage.pass(Duration::from_hours(30));
    assert_eq!((stage.drifted().0, stage.begun(Action::Drift), stage.begun(Action::Apply)), (Some(true), 1, 1));
    stage.respecify(|spec| spec.suspended = None);
    assert_eq!((stage.begun(Action::Drift), stage.begun(Action::Apply)), (1, 1), "that was found before");
    stage.look_finds("1");
    assert_eq!((stage.begun(Action::Drift), stage.begun(Action::Apply)), (2, 2), "then a look comes first");
}

#[test]
fn a_look_whose_job_was_suspended_by_hand_is_left_to_a_person_and_told() {
    let mut stage = applied(OnDrift::Tell);
    stage.until_look();
    let job = Job { suspended: true, version: "99".to_owned(), ..stage.job() };
    stage.jobs.insert(job.name.clone(), job.clone());
    stage.feed(Event::JobSeen(Box::new(job)));
    stage.pass(Duration::from_hours(2));
    let stalled = stage.stored.status.conditions.iter().find(|one| one.kind == ConditionKind::Stalled);
    assert_eq!(stalled.map(|one| one.reason.as_str()), Some("JobSuspended"));
    assert_eq!((stage.told_of(Kind::RunStalled).len(), stage.ready()), (1, (Some(true), "Applied")));
}

// Faults: RF15
#[test]
fn a_look_that_its_status_does_not_know_is_no_run_and_is_waited_for() {
    let mut stage = applied(OnDrift::Apply);
    stage.look_finds("0");
    stage.until_look();
    let job = stage.job();
    stage.stored.status.drift = None;
    stage.crash();
    stage.push(B);
    assert_eq!(
        (stage.run().attempt.action, stage.run().revision.as_str(), stage.run().phase),
        (Action::Apply, B, Phase::Waiting)
    );
    let ended =
        Job { end: Some(End::Complete), pods: Pods { ended: 1, ..Pods::default() }, version: "99".to_owned(), ..job };
    stage.jobs.insert(ended.name.clone(), ended.clone());
    stage.feed(Event::JobSeen(Box::new(ended)));
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().revision.as_str(), stage.run().phase), (B, Phase::Started));
}

#[test]
fn a_look_whose_pod_cannot_run_is_taken_back_for_the_next_commit() {
    let mut stage = applied(OnDrift::Tell);
    stage.until_look();
    let job = Job { pods: Pods::default(), version: "98".to_owned(), ..stage.job() };
    stage.jobs.insert(job.name.clone(), job.clone());
    stage.feed(Event::JobSeen(Box::new(job)));
    stage.push(B);
    assert!(stage.job().withdrawn, "no pod of it was made");
    let job = Job { pods: Pods { at_rest: true, ..Pods::default() }, version: "99".to_owned(), ..stage.job() };
    stage.jobs.insert(job.name.clone(), job.clone());
    stage.feed(Event::JobSeen(Box::new(job)));
    stage.pass(Duration::from_secs(10));
    assert_eq!(
        (stage.run().revision.as_str(), stage.run().phase, stage.stored.status.look()),
        (B, Phase::Started, None)
    );
    assert_eq!(stage.stored.status.drift.as_ref().and_then(|drift| drift.missed.clone()), None, "it did not fail");
}

// Faults: RF1
#[test]
fn whenever_it_dies_a_look_is_one_job_and_its_drift_one_run() {
    for held in ["store", "make_job", "start_job", "watch_jobs", "read_pods", "remove_job", "tell"] {
        for act in [false, true] {
            let mut stage = applied(OnDrift::Apply);
            stage.held = vec![held];
            for _ in 0..12 * 12 {
                if stage.is_looking() && stage.begun(Action::Drift) > 0 {
                    stage.plans("1");
                }
                stage.pass(Duration::from_mins(5));
            }
            let kept = std::mem::take(&mut stage.kept);
            if act {
                kept.into_iter().for_each(|effect| drop(stage.answer(effect)));
            }
            stage.held.clear();
            stage.crash();
            for _ in 0..30 * 12 {
                match stage.is_looking() {
                    true if stage.begun(Action::Apply) > 1 => stage.plans("0"),
                    true => stage.plans("1"),
                    false if stage.run().phase == Phase::Started => stage.applies(),
                    false => {}
                }
                stage.pass(Duration::from_mins(5));
            }
            let distinct: BTreeSet<_> = stage.started.iter().collect();
            assert_eq!(distinct.len(), stage.started.len(), "{held}, {act}: a Job was started twice");
            assert_eq!(stage.begun(Action::Apply), 2, "{held}, {act}: {:?}", stage.drifted());
            assert_eq!((stage.run().phase, stage.drifted().0), (Phase::Succeeded, Some(false)), "{held}, {act}");
        }
    }
}

#[test]
fn five_hundred_repos_that_start_together_do_not_look_together() {
    let mut looks: BTreeMap<u64, usize> = BTreeMap::new();
    let status = applied(OnDrift::Tell).stored.status;
    for number in 0..500 {
        let spec = Spec { interval: Duration::from_hours(24), ..looking(Approving::Auto, OnDrift::Tell) };
        let mut stage = Stage::new(spec);
        stage.stored.uid = format!("uid-{number}");
        stage.stored.status = status.clone();
        // It was applied a week ago, and the process begins now.
        stage.now = Timestamp::from_millis(7 * 24 * 60 * 60 * 1_000);
        let start = stage.now;
        stage.repo = Repo::new(1_000_000, stage.stored.clone());
        let effects = stage.repo.tick(stage.now);
        stage.perform(effects);
        while !stage.is_looking() {
            stage.pass(Duration::from_mins(15));
            assert!(stage.now < start.after(2 * EVERY), "uid-{number}");
        }
        *looks.entry(stage.now.since(start).as_secs() / 3_600).or_default() += 1;
    }
    assert!(looks.values().all(|count| *count < 140) && looks.len() >= 6, "{looks:?}");
}
