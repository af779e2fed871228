//! Jobs that cannot run: they are taken back for what is wanted next, if nothing of them has run (decision 62).

use super::*;

impl Stage {
    /// The pod of the present Job, as the watch shows it now: where it is, and whether it applies.
    fn shows(&mut self, place: Place, applies: Option<StepState>) {
        let ended = StepState::Ended(0, String::new(), String::new());
        let steps = vec![
            Step { kind: StepKind::Source, state: ended },
            Step { kind: StepKind::Apply, state: applies.unwrap_or(StepState::Waiting) },
        ];
        let (job, alive) = (self.job().uid, place != Place::Ended);
        let waits = alive.then(|| "ErrImagePull".to_owned());
        let pod = Pod { name: "pod".to_owned(), job: job.clone(), place, alive, waits, steps, ..Pod::default() };
        self.pods.insert(job, vec![pod.clone()].into_iter().filter(|pod| pod.alive).collect());
        self.feed(Event::PodSeen(Box::new(pod)));
    }

    /// The controller has no pod of the present Job any more, and has counted so many.
    fn rests(&mut self, ended: u32) {
        let job = self.job();
        self.pods.remove(&job.uid);
        let pods = Pods { ended, at_rest: true, ..Pods::default() };
        let job = Job { pods, version: self.next_version(), ..job };
        self.jobs.insert(job.name.clone(), job.clone());
        self.feed(Event::JobSeen(Box::new(job)));
        self.pass(Duration::from_secs(10));
    }

    /// Something keeps the controller from making the pod.
    fn has_no_pod(&mut self) {
        let job = Job { pods: Pods::default(), version: self.next_version(), ..self.job() };
        self.jobs.insert(job.name.clone(), job.clone());
        self.feed(Event::JobSeen(Box::new(job)));
    }

    fn corrected(&mut self) {
        self.edit(|object| object.spec.as_mut().expect("a spec").runner.image = "tool:2".to_owned());
    }
}

#[test]
fn a_job_that_cannot_run_gives_way_to_a_corrected_spec_and_to_a_newer_commit() {
    for by_commit in [false, true] {
        let mut stage = staged(Approving::Auto);
        stage.shows(Place::Node, None);
        if by_commit {
            stage.push(B);
        } else {
            stage.corrected();
        }
        assert!(stage.job().withdrawn && stage.job().suspended, "by commit: {by_commit}");
        stage.pass(Duration::from_mins(5));
        assert_eq!(stage.started.len(), 1, "its pod has not ended");
        stage.shows(Place::Ended, None);
        stage.rests(1);
        assert_eq!((stage.started.len(), stage.jobs.len(), stage.run().attempt.seq), (2, 1, RunSeq(2)));
        let outcomes: Vec<Phase> = stage.stored.status.history.iter().map(|ended| ended.outcome).collect();
        assert_eq!(outcomes, [Phase::Superseded], "by commit: {by_commit}");
    }
}

#[test]
fn a_job_whose_pod_was_never_made_is_taken_back_at_once() {
    let mut stage = staged(Approving::Auto);
    stage.has_no_pod();
    stage.corrected();
    assert!(stage.job().withdrawn);
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.started.len(), 1, "the controller may still make one");
    stage.rests(0);
    assert_eq!((stage.started.len(), stage.run().attempt.seq), (2, RunSeq(2)));
}

#[test]
fn what_may_have_run_before_it_was_taken_back_is_repeated_only_after_a_yes() {
    let killed = StepState::Ended(143, String::new(), String::new());
    for (last, counted) in [(Some((Place::Ended, Some(killed))), 1), (None, 1), (Some((Place::Node, None)), 1)] {
        let mut stage = staged(Approving::Auto);
        stage.shows(Place::Node, None);
        stage.corrected();
        if let Some((place, applies)) = last.clone() {
            stage.shows(place, applies);
        }
        stage.feed(Event::PodGone("pod".to_owned()));
        stage.rests(counted);
        stage.pass(Duration::from_hours(3));
        assert_eq!((stage.started.len(), stage.run().phase), (1, Phase::Failed), "{last:?}");
    }
}

#[test]
fn a_yes_to_a_lock_is_spent_by_a_job_that_may_have_run_before_it_was_taken_back() {
    // How many of its pods have ended, how often an apply is repeated, and what follows.
    let cases = [(0, 0, (3, Phase::Started, 2)), (1, 0, (2, Phase::Failed, 1)), (1, 1, (3, Phase::Started, 1))];
    for (ended, limit, expected) in cases {
        let mut spec = spec(Approving::Auto);
        spec.retry.limit = limit;
        let mut stage = Stage::new(spec);
        stage.pass(Duration::from_secs(5));
        stage.meets(StepKind::Plan, "a-1", "ann@laptop-2");
        let ticket = stage.stored.status.lock.clone().expect("a question").ticket;
        stage.approve(&ticket);
        stage.has_no_pod();
        // Another commit is wanted, and then the same again.
        for (head, poked) in [(B, "1"), (A, "2")] {
            stage.head = Ok(head);
            stage.edit(|object| object.answers.poked = Some(poked.to_owned()));
            stage.pass(Duration::from_secs(1));
        }
        assert!(stage.job().withdrawn);
        stage.rests(ended);
        stage.pass(Duration::from_hours(1));
        assert_eq!((stage.started.len(), stage.run().phase, stage.unlocks.len()), expected, "{ended} pods, {limit}");
    }
}

/// Nothing about a Job whose image is missed changes any more: no watch would ever show it again.
#[test]
fn a_job_whose_start_is_answered_after_the_watch_showed_more_is_taken_back() {
    let mut stage = staged(Approving::Auto);
    let answer = stage.job();
    let newer = Job { version: stage.next_version(), ..answer.clone() };
    stage.jobs.insert(newer.name.clone(), newer.clone());
    stage.feed(Event::JobSeen(Box::new(newer)));
    stage.feed(Event::StartAnswered(answer.name.clone(), Start::Done(Box::new(answer))));
    stage.shows(Place::Node, None);
    stage.corrected();
    assert!(!stage.job().withdrawn, "it is not what was seen last");
    stage.pass(Duration::from_secs(10));
    assert!(stage.job().withdrawn);
}

/// As a controller does that counts the pod of a suspended Job as failed.
#[test]
fn a_job_that_fails_because_it_was_taken_back_is_no_failure() {
    let mut stage = staged(Approving::Auto);
    stage.shows(Place::Node, None);
    stage.corrected();
    stage.shows(Place::Ended, None);
    let end = Some(End::Failed("BackoffLimitExceeded".to_owned(), String::new()));
    let failed = Job { end, pods: Pods { ended: 1, ..Pods::default() }, version: stage.next_version(), ..stage.job() };
    stage.jobs.insert(failed.name.clone(), failed.clone());
    stage.feed(Event::JobSeen(Box::new(failed)));
    stage.pass(Duration::from_secs(10));
    assert_eq!((stage.started.len(), stage.run().attempt.seq), (2, RunSeq(2)));
    assert!(!stage.told().contains(&"run.failed"));
}

#[test]
fn a_job_that_runs_something_is_left_alone_whatever_is_wanted() {
    let mut stage = staged(Approving::Auto);
    stage.shows(Place::Node, Some(StepState::Running));
    stage.corrected();
    stage.push(B);
    assert!(!stage.job().withdrawn && !stage.job().suspended);
}

#[test]
fn a_job_that_a_person_deletes_needs_no_yes_if_nothing_of_it_ran() {
    for (place, starts) in [(Place::Nowhere, 2), (Place::Node, 1)] {
        let mut stage = staged(Approving::Auto);
        stage.shows(place, None);
        let job = stage.job();
        stage.jobs.remove(&job.name);
        stage.pods.clear();
        stage.feed(Event::PodGone("pod".to_owned()));
        stage.feed(Event::JobGone(job.name));
        stage.pass(Duration::from_mins(2));
        assert_eq!(stage.started.len(), starts, "{place:?}: {}", stage.run().message);
    }
}

#[test]
fn a_pod_of_an_earlier_repo_of_this_name_holds_the_first_run() {
    let mut stage = Stage::new(spec(Approving::Auto));
    let left = Pod { name: "left".to_owned(), job: "earlier".to_owned(), alive: true, ..Pod::default() };
    stage.pods.insert("earlier".to_owned(), vec![left]);
    stage.pass(Duration::from_mins(5));
    assert_eq!(stage.started.len(), 0);
    assert!(stage.run().message.contains("pod left of an earlier run has not ended"), "{}", stage.run().message);
    stage.feed(Event::PodGone("left".to_owned()));
    assert_eq!(stage.started.len(), 1);
}

// Faults: RF10
#[test]
fn what_a_started_job_does_is_said_from_its_pod() {
    let message = |stage: &mut Stage| {
        stage.pass(Duration::from_secs(3));
        stage.run().message.clone()
    };
    let mut stage = staged(Approving::Auto);
    stage.has_no_pod();
    assert_eq!(message(&mut stage), "its Job is started, and has no pod yet");
    stage.pass(Duration::from_secs(15));
    assert!(message(&mut stage).starts_with("its Job has no pod: a quota"), "{}", stage.run().message);
    stage.shows(Place::Node, None);
    assert_eq!(message(&mut stage), "its Job waits: ErrImagePull");
}
