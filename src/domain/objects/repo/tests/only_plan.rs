//! Repos that plan and never apply.

use super::*;

impl Stage {
    /// The actions of all Jobs that were started.
    fn done(&self) -> BTreeSet<Action> {
        self.actions.values().copied().collect()
    }

    fn reconsider(&mut self, change: impl FnOnce(&mut Spec)) {
        self.edit(|object| {
            change(object.spec.as_mut().expect("a spec"));
            object.generation += 1;
        });
        self.pass(Duration::from_mins(2));
    }
}

fn only_planned(fingerprint: &str) -> Stage {
    let mut stage = staged(Approving::Never);
    stage.plans(fingerprint);
    stage.pass(Duration::from_secs(2));
    stage
}

#[test]
fn each_commit_is_planned_once_and_none_is_applied() {
    let mut stage = only_planned("1");
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Planned, (Some(true), "Planned")));
    assert!(
        stage.run().message.starts_with("an apply of aaaaaaaaaaaa would change 2 to add, 1 to change, 0 to destroy")
    );
    assert_eq!(stage.stored.status.waiting, None, "nobody is asked");
    let writes = stage.writes;
    stage.pass(Duration::from_hours(5));
    stage.crash();
    stage.pass(Duration::from_hours(5));
    assert_eq!((stage.started.len(), stage.writes, stage.watching), (1, writes, false), "it is at rest");
    stage.push(B);
    stage.plans("0");
    stage.pass(Duration::from_secs(2));
    assert_eq!(
        (stage.run().phase, stage.ready(), stage.run().plan.as_ref()),
        (Phase::Planned, (Some(true), "Planned"), None)
    );
    let outcomes = stage.stored.status.history.iter().map(|ended| (ended.revision.as_str(), ended.outcome));
    assert_eq!(outcomes.collect::<Vec<_>>(), [(A, Phase::Planned), (B, Phase::Planned)]);
    assert_eq!(stage.run().skipped, [], "what was planned was not skipped");
    assert_eq!(stage.told(), ["run.started", "run.planned"].repeat(2));
    assert_eq!(stage.done(), [Action::Plan].into());
}

#[test]
fn no_yes_makes_it_apply_and_one_that_nobody_asked_for_has_it_planned_anew() {
    let mut stage = only_planned("1");
    let run = stage.run().clone();
    for question in [status::Question::Plan, status::Question::Revision] {
        stage.approve(&ask::ticket("uid-1", &run, question));
        stage.pass(Duration::from_mins(5));
    }
    assert_eq!((stage.started.len(), stage.run().attempt.seq), (1, run.attempt.seq));
    let again = stage.again().expect("it may be planned anew");
    stage.approve(&again);
    stage.plans("2");
    stage.pass(Duration::from_mins(5));
    assert_eq!((stage.started.len(), stage.done()), (2, [Action::Plan].into()));
    assert_eq!((stage.run().phase, stage.run().approval.as_ref()), (Phase::Planned, None));
    stage.fails(StepKind::Plan, 1, "boom");
    stage.pass(Duration::from_hours(1));
    assert_eq!(stage.done(), [Action::Plan].into());
}

#[test]
fn what_was_only_planned_is_judged_anew_as_soon_as_it_may_be_applied() {
    for fingerprint in ["0", "1"] {
        let mut stage = only_planned(fingerprint);
        stage.reconsider(|spec| spec.approval = Approving::Plan);
        assert_eq!((stage.started.len(), stage.job().attempt.action), (2, Action::Plan));
        stage.plans("1");
        stage.pass(Duration::from_secs(2));
        let ticket = stage.ticket();
        stage.reconsider(|spec| spec.approval = Approving::Never);
        stage.approve(&ticket);
        stage.plans("1");
        stage.pass(Duration::from_mins(2));
        assert_eq!((stage.done(), stage.ready()), ([Action::Plan].into(), (Some(true), "Planned")));
        stage.reconsider(|spec| spec.approval = Approving::Auto);
        assert_eq!((stage.run().revision.as_str(), stage.job().attempt.action), (A, Action::Apply));
    }
}

#[test]
fn an_apply_that_was_ordered_before_is_not_made_also_where_no_commit_is_known() {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.held = vec!["make_job"];
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.run().attempt.action), (Phase::Starting, Action::Apply));
    stage.held.clear();
    stage.head = Err("no route");
    stage.stored.status.head = None;
    stage.stored.spec = Ok(spec(Approving::Never));
    stage.crash();
    stage.pass(Duration::from_hours(1));
    assert_eq!((stage.jobs.len(), stage.started.len()), (0, 0));
    stage.head = Ok(A);
    stage.pass(Duration::from_hours(1));
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.done(), stage.ready()), ([Action::Plan].into(), (Some(true), "Planned")));
}

#[test]
fn what_was_applied_before_stays_applied_until_the_next_commit() {
    let mut stage = staged(Approving::Auto);
    stage.applies();
    stage.reconsider(|spec| spec.approval = Approving::Never);
    assert_eq!((stage.started.len(), stage.ready()), (1, (Some(true), "Applied")));
    stage.push(B);
    stage.plans("1");
    stage.pass(Duration::from_secs(2));
    assert_eq!((stage.run().phase, stage.ready()), (Phase::Planned, (Some(true), "Planned")));
    // What is compared and looked at is what was applied, and this was not.
    stage.reconsider(|spec| spec.source.watched = Some(Vec::new()));
    stage.alike = Ok(&[B, C]);
    stage.push(C);
    assert_eq!((stage.compared, stage.started.len()), (0, 3));
}

/// An apply whose Job was made; its start is refused for as long as people think about it. With the name of that Job.
fn made() -> (Stage, String) {
    let mut stage = Stage::new(spec(Approving::Auto));
    stage.held = vec!["start_job"];
    stage.pass(Duration::from_secs(5));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Started, 0));
    let name = stage.job().name;
    stage.held.clear();
    (stage, name)
}

#[test]
fn a_job_that_was_made_is_not_started_where_nothing_or_nothing_without_a_yes_may_be_applied() {
    for approval in [Approving::Never, Approving::Plan] {
        let (mut stage, name) = made();
        stage.edit(|object| object.spec.as_mut().expect("a spec").approval = approval);
        stage.feed(Event::StartFailed(name.clone(), "no quota".to_owned()));
        stage.pass(Duration::from_hours(1));
        assert_eq!((stage.done(), stage.jobs.contains_key(&name)), ([Action::Plan].into(), false), "{approval:?}");
    }
    // Also where no commit is known.
    let (mut stage, _) = made();
    stage.head = Err("no route");
    stage.stored.status.head = None;
    stage.stored.spec = Ok(spec(Approving::Never));
    stage.crash();
    stage.pass(Duration::from_hours(1));
    assert_eq!((stage.run().phase, stage.started.len()), (Phase::Waiting, 0));
}

#[test]
fn a_job_that_was_made_is_taken_back_while_a_person_stops_it_and_its_gates_are_judged_anew() {
    let freeze = Freeze { from: 0, to: i64::MAX, reason: "fair".to_owned() };
    for (freezes, done, ready) in [(vec![], 1, (None, "Running")), (vec![freeze], 0, (Some(false), "GateClosed"))] {
        let (mut stage, name) = made();
        stage.edit(|object| object.spec.as_mut().expect("a spec").suspended = Some("stop".to_owned()));
        stage.feed(Event::StartFailed(name, "no quota".to_owned()));
        stage.pass(Duration::from_hours(1));
        assert_eq!((stage.started.len(), stage.ready()), (0, (Some(false), "Suspended")));
        stage.edit(|object| {
            let spec = object.spec.as_mut().expect("a spec");
            (spec.suspended, spec.gates.freezes) = (None, freezes);
        });
        stage.pass(Duration::from_secs(5));
        assert_eq!((stage.started.len(), stage.ready()), (done, ready));
    }
}

/// A gap of the watch while it was taken back says nothing about a Job that never had a pod.
#[test]
fn a_job_that_was_never_started_is_no_apply_that_may_have_begun() {
    let (mut stage, name) = made();
    let job = stage.job();
    let pod = Pod { name: "pod".to_owned(), job: job.uid, place: Place::Node, alive: true, ..Pod::default() };
    stage.feed(Event::PodSeen(Box::new(pod)));
    stage.feed(Event::PodGone("pod".to_owned()));
    stage.edit(|object| object.spec.as_mut().expect("a spec").approval = Approving::Never);
    stage.feed(Event::StartFailed(name, "no quota".to_owned()));
    stage.pass(Duration::from_hours(1));
    assert_eq!((stage.done(), stage.told().contains(&"run.failed")), ([Action::Plan].into(), false));
}
