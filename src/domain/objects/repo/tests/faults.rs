//! Crashes, hands that meddle, backups, and git that does not answer.

use super::*;

// Faults: RF4
#[test]
fn a_job_that_vanished_or_was_suspended_is_left_to_a_person() {
    let mut stage = staged(Approving::Auto);
    let job = stage.job();
    let held = Job { suspended: true, version: "99".to_owned(), ..job.clone() };
    stage.jobs.insert(job.name.clone(), held.clone());
    stage.feed(Event::JobSeen(Box::new(held)));
    stage.pass(Duration::from_hours(2));
    assert_eq!(stage.started.len(), 1);
    assert!(stage.told().contains(&"run.stalled"));
    stage.jobs.remove(&job.name);
    let pod = Pod { name: "pod".to_owned(), alive: true, ..Pod::default() };
    stage.pods.insert(job.uid.clone(), vec![pod]);
    stage.feed(Event::JobGone(job.name.clone()));
    stage.push(B);
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Started, 1), "a pod of it still runs");
    stage.pods.clear();
    stage.pass(Duration::from_mins(1));
    assert_eq!(stage.run().revision.as_str(), B, "then the next commit is run");
    assert!(stage.told().contains(&"run.failed"));
    assert_eq!(stage.stored.status.history.first().map(|ended| ended.outcome), Some(Phase::Lost));
}

#[test]
fn a_look_says_when_it_was_due_however_late_it_is_made() {
    let mut stage = staged(Approving::Auto);
    let due = stage.repo.looking.deadline().expect("the next look");
    stage.held = vec!["resolve"];
    stage.now = due.after(Duration::from_secs(7));
    let effects = stage.repo.tick(stage.now);
    stage.perform(effects);
    assert_eq!(stage.kept, [Effect::Resolve(due)]);
}

// Faults: RF1, RF3
#[test]
fn whenever_it_dies_there_is_one_started_job() {
    for held in ["store", "make_job", "start_job", "watch_jobs", "read_pods", "remove_job", "resolve", "tell"] {
        for act in [false, true] {
            let mut stage = Stage::new(spec(Approving::Auto));
            stage.held = vec![held];
            stage.pass(Duration::from_secs(5));
            if stage.run_is(Phase::Started) {
                stage.applies();
            }
            stage.pass(Duration::from_secs(5));
            let kept = std::mem::take(&mut stage.kept);
            if act {
                for effect in kept {
                    let _lost = stage.answer(effect);
                }
            }
            stage.held.clear();
            stage.crash();
            if stage.run_is(Phase::Started) {
                stage.applies();
            }
            stage.pass(Duration::from_mins(2));
            assert_eq!((stage.run().phase, stage.started.len()), (Phase::Succeeded, 1), "{held}, {act}");
        }
    }
}

// Faults: RF15
#[test]
fn a_status_from_a_backup_starts_nothing_twice() {
    let mut stage = staged(Approving::Auto);
    stage.applies();
    stage.pass(Duration::from_secs(2));
    let backup = stage.stored.status.clone();
    stage.push(B);
    assert_eq!(stage.started.len(), 2);
    stage.stored.status = backup;
    stage.stored.version = stage.next_version();
    stage.crash();
    assert_eq!((stage.run().revision.as_str(), stage.run().phase), (B, Phase::Started));
    stage.applies();
    stage.pass(Duration::from_mins(3));
    assert_eq!((stage.started.len(), stage.run().phase), (2, Phase::Succeeded));
    assert!(stage.told().contains(&"repo.faulty"));
}

#[test]
fn git_that_does_not_answer_is_shown_and_asked_more_rarely() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.head = Err("no route");
    stage.pass(Duration::from_mins(10));
    assert_eq!((stage.ready(), stage.started.len()), ((Some(false), "GitFailed"), 0));
    stage.pass(Duration::from_hours(1));
    assert!(stage.told().contains(&"repo.faulty"), "a wait longer than stalledAfter is told");
    stage.head = Ok(A);
    stage.pass(Duration::from_mins(31));
    assert_eq!(stage.started.len(), 1);
}

impl Stage {
    fn run_is(&self, phase: Phase) -> bool {
        let run = self.stored.status.run.as_ref();
        run.is_some_and(|run| run.phase == phase) && self.started.len() == 1 && self.job().end.is_none()
    }
}

#[test]
fn a_poke_while_git_is_asked_is_followed_by_another_look() {
    for fails in [false, true] {
        let mut stage = staged(Approving::Auto);
        stage.applies();
        stage.held = vec!["resolve"];
        stage.edit(|object| object.answers.poked = Some("1".to_owned()));
        assert_eq!(stage.kept.len(), 1, "git is asked");
        // Git has answered, the answer is on its way, and then a person pushes and pokes.
        stage.head = Ok(B);
        stage.edit(|object| object.answers.poked = Some("2".to_owned()));
        stage.held.clear();
        stage.feed(match fails {
            false => Event::Resolved(found(A)),
            true => Event::ResolveFailed(Unresolved {
                why: "cut".to_owned(),
                lasting: false,
                busy: false,
                rest: Duration::ZERO,
            }),
        });
        stage.pass(Duration::from_secs(1));
        assert_eq!(stage.run().revision.as_str(), B, "fails: {fails}");
    }
}

#[test]
fn an_attempt_has_ended_before_its_run_is_left_for_a_newer_commit() {
    let mut stage = staged(Approving::Auto);
    stage.push(B);
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().revision.as_str(), stage.started.len()), (B, 2));
    assert_eq!(stage.run().skipped, [A.parse().expect("a commit's id")]);
}

#[test]
fn a_job_whose_name_another_one_has_by_now_is_lost() {
    let mut stage = staged(Approving::Auto);
    let other = Job { uid: "other".to_owned(), marked: false, suspended: true, ..stage.job() };
    stage.jobs.insert(other.name.clone(), other.clone());
    stage.feed(Event::JobSeen(Box::new(other)));
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Lost, 1));
}

#[test]
fn a_poke_counts_that_a_refused_write_shows_first() {
    let mut stage = staged(Approving::Auto);
    stage.applies();
    stage.pass(Duration::from_secs(2));
    stage.head = Ok(B);
    stage.stored.answers.poked = Some("1".to_owned());
    stage.stored.version = stage.next_version();
    let refused = Event::Object(Life::Conflicted(Box::new(stage.stored.clone())));
    stage.feed(refused);
    assert_eq!(stage.started.len(), 2);
}

/// The list of pods may lag behind the Job, which counts the terminating ones.
#[test]
fn a_job_whose_pod_is_still_ending_by_its_own_count_has_not_ended() {
    let mut stage = staged(Approving::Auto);
    let (job, end) = (stage.job(), Some(End::Failed("PodFailurePolicy".to_owned(), String::new())));
    let step = Step { kind: StepKind::Apply, state: StepState::Ended(143, String::new(), String::new()) };
    let pod = Pod { name: "pod".to_owned(), place: Place::Ended, steps: vec![step], ..Pod::default() };
    stage.pods.insert(job.uid.clone(), vec![pod]);
    for (pods, over) in [((1, 0), false), ((0, 1), false), ((0, 0), true)] {
        let (active, terminating) = pods;
        let version = stage.next_version();
        let seen =
            Job { end: end.clone(), pods: Pods { active, terminating, ..Pods::default() }, version, ..job.clone() };
        stage.jobs.insert(job.name.clone(), seen.clone());
        stage.feed(Event::JobSeen(Box::new(seen)));
        stage.pass(Duration::from_mins(2));
        assert_eq!(stage.run().phase == Phase::Failed, over, "{pods:?}");
    }
}

/// A Job of ours that the status does not know.
fn earlier(stage: &mut Stage, seq: u64, runs: bool) -> Job {
    let job = Job {
        name: "infra-earlier".to_owned(),
        uid: "earlier".to_owned(),
        version: stage.next_version(),
        owner: Some("uid-1".to_owned()),
        attempt: status::Attempt { seq: RunSeq(seq), number: 1, action: Action::Apply },
        revision: C.parse().expect("a commit's id"),
        marked: runs,
        withdrawn: false,
        suspended: !runs,
        deleting: false,
        pods: Pods { active: u32::from(runs), ..Pods::default() },
        end: None,
    };
    stage.jobs.insert(job.name.clone(), job.clone());
    job
}

#[test]
fn a_started_job_of_an_earlier_run_holds_the_next_one_until_it_has_ended() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.stored.status.seq = RunSeq(5);
    stage.repo = Repo::new(1_000_000, stage.stored.clone());
    let job = earlier(&mut stage, 1, true);
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Waiting, 0), "{}", stage.run().message);
    let ended = Job { end: Some(End::Complete), pods: Pods::default(), version: "99".to_owned(), ..job };
    stage.jobs.insert(ended.name.clone(), ended.clone());
    stage.feed(Event::JobSeen(Box::new(ended)));
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().attempt.seq, stage.started.len()), (RunSeq(6), 1));
}

#[test]
fn numbers_begin_above_those_of_the_jobs_that_there_are() {
    let mut stage = Stage::new(spec(Approving::Auto));
    earlier(&mut stage, 7, false);
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().attempt.seq, stage.started.len()), (RunSeq(8), 1));
}

#[test]
fn a_clock_that_is_set_back_makes_no_attempt_wait_for_days() {
    let mut stage = staged(Approving::Auto);
    stage.fails(StepKind::Source, 1, "no route");
    stage.pass(Duration::from_secs(1));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Waiting, 1));
    let days = 3 * 24 * 60 * 60 * 1_000;
    stage.repo = Repo::new(1_000_000 - days, stage.stored.clone());
    stage.watching = false;
    stage.pass(Duration::from_mins(1));
    assert_eq!(stage.started.len(), 2, "{}", stage.run().message);
}

/// Its pod was collected, and what its steps came to with it.
#[test]
fn an_apply_that_failed_and_has_no_pod_any_more_may_have_begun() {
    let mut stage = staged(Approving::Auto);
    let end = Some(End::Failed("BackoffLimitExceeded".to_owned(), String::new()));
    let pods = Pods { ended: 1, ..Pods::default() };
    let ended = Job { end, pods, version: stage.next_version(), ..stage.job() };
    stage.jobs.insert(ended.name.clone(), ended.clone());
    stage.feed(Event::JobSeen(Box::new(ended)));
    stage.pass(Duration::from_hours(3));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Failed, 1), "{}", stage.run().message);
}

/// What is said of a pod after its node was lost is what was so before.
#[test]
fn an_apply_on_a_node_that_was_lost_may_have_begun() {
    let mut stage = staged(Approving::Auto);
    let steps = vec![Step { kind: StepKind::Apply, state: StepState::Waiting }];
    let pod = Pod { name: "pod".to_owned(), job: stage.job().uid, place: Place::Node, steps, ..Pod::default() };
    stage.pods.insert(stage.job().uid, vec![pod]);
    let end = Some(End::Failed("PodFailurePolicy".to_owned(), String::new()));
    let ended = Job { end, pods: Pods { ended: 1, ..Pods::default() }, version: stage.next_version(), ..stage.job() };
    stage.jobs.insert(ended.name.clone(), ended.clone());
    stage.feed(Event::JobSeen(Box::new(ended)));
    stage.pass(Duration::from_hours(3));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Failed, 1));
}

#[test]
fn a_job_that_is_found_is_not_begun_while_the_object_does_not_keep_its_order() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.held = vec!["make_job", "store"];
    while !stage.run_waits_for_its_job() {
        stage.pass(Duration::from_secs(1));
        stage.store_kept(true);
    }
    stage.pass(Duration::from_hours(2));
    assert!(stage.store_kept(false), "a wait this long is written, and now the CRD drops it");
    let made = stage.kept.iter().position(|effect| effect.name() == "make_job").expect("a Job was to be made");
    let made = stage.kept.remove(made);
    let made = stage.answer(made).expect("it is made");
    stage.feed(made);
    assert_eq!(stage.repo.own.status.draft.run.as_ref().map(|run| run.phase), Some(Phase::Starting));
}

impl Stage {
    fn run_waits_for_its_job(&self) -> bool {
        self.kept.iter().any(|effect| effect.name() == "make_job")
    }

    /// Carries out the write that was held back, if there is one; `whole`: the object keeps all of it.
    fn store_kept(&mut self, whole: bool) -> bool {
        let Some(at) = self.kept.iter().position(|effect| effect.name() == "store") else { return false };
        let store = self.kept.remove(at);
        let Some(Event::Object(Life::Stored { version, .. })) = self.answer(store) else { return false };
        self.feed(Event::Object(Life::Stored { version, whole }));
        true
    }
}

#[test]
fn a_commit_that_this_life_saw_applied_is_not_run_again_after_a_restore() {
    let mut stage = staged(Approving::Auto);
    stage.applies();
    stage.pass(Duration::from_secs(10));
    let (backup, jobs) = (stage.stored.status.clone(), stage.jobs.clone());
    stage.push(B);
    stage.applies();
    stage.pass(Duration::from_secs(10));
    assert_eq!((stage.run().revision.as_str(), stage.run().phase), (B, Phase::Succeeded));
    stage.jobs = jobs;
    stage.edit(|object| object.status = backup);
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.started.len(), 2, "{}", stage.run().message);
    assert_eq!(
        (stage.run().revision.as_str(), stage.run().phase, stage.run().attempt.seq),
        (B, Phase::Succeeded, RunSeq(2))
    );
    stage.push(C);
    assert_eq!((stage.started.len(), stage.run().attempt.seq), (3, RunSeq(3)));
}

#[test]
fn what_ran_when_the_cluster_was_restored_is_repeated_only_after_a_yes() {
    let mut stage = staged(Approving::Auto);
    stage.applies();
    stage.pass(Duration::from_secs(10));
    let (backup, jobs) = (stage.stored.status.clone(), stage.jobs.clone());
    stage.push(B);
    assert_eq!(stage.started.len(), 2);
    stage.jobs = jobs;
    stage.edit(|object| object.status = backup);
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.run().phase), (2, Phase::Lost), "{}", stage.run().message);
    assert!(stage.stored.status.waiting.is_some());
}
