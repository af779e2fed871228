use std::time::Duration;

use super::*;
use crate::apps::app::{AppKind, ClusterKey, TargetKey};
use crate::gates::{VerdictSource, Window};
use crate::kept::{Answers, Finalizers};
use crate::repo::lock::{Holder, Lock};
use crate::repo::spec::{Approving, DriftLooks, Gates, Keep, OnDrift, Retry, Runner, Source, Spec, Wanted};
use crate::repo::status::{Attempt, Condition, Counts, Failing, Head, JobRef, Next, Phase, Question, Terms, Unchanged};
use crate::status::Approval;

fn commit(letter: char) -> CommitId {
    letter.to_string().repeat(40).parse().expect("a commit's id")
}

fn spec() -> Spec {
    Spec {
        source: Source {
            url: "https://git.example.com/platform/infra.git".to_owned(),
            wanted: Wanted::Branch("main".to_owned()),
            path: "envs/prod".to_owned(),
            ..Source::default()
        },
        interval: Duration::from_mins(1),
        approval: Approving::Plan,
        runner: Runner::default(),
        workspace: None,
        retry: Retry { limit: 2, backoff: Duration::from_mins(1) },
        gates: Gates::default(),
        suspended: None,
        keep: Keep::default(),
        stalled_after: Duration::from_hours(1),
        drift: None,
        report: None,
    }
}

fn object(status: Status) -> Object {
    Object {
        id: RepoId::new("platform", "infra"),
        uid: "u".to_owned(),
        generation: 1,
        version: "1".to_owned(),
        spec: Ok(spec()),
        answers: Answers::default(),
        status: Status { serial: 1, observed_generation: 1, ..status },
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

fn run(phase: Phase) -> Run {
    Run {
        attempt: Attempt { seq: RunSeq(4), number: 2, action: Action::Apply },
        revision: commit('a'),
        terms: Terms::default(),
        phase,
        job: Some(JobRef { name: "infra-0123456789ab".to_owned(), uid: None }),
        plan: Some(Plan {
            fingerprint: "f".to_owned(),
            counts: Some(Counts { add: 1, change: 2, destroy: 0 }),
            job: "infra-ba9876543210".to_owned(),
        }),
        approval: Some(Approval { by: None, ticket: "t".to_owned(), at_ms: 5, overrides: false }),
        failing: Failing::default(),
        started_ms: Some(6),
        ended_ms: None,
        skipped: vec![commit('b')],
        message: "as the machine says".to_owned(),
    }
}

fn with(phase: Phase) -> Status {
    Status { run: Some(run(phase)), ..Status::default() }
}

fn seen(object: &Object) -> View {
    view(object, &object.status)
}

fn sentences(status: Status) -> (Option<String>, String) {
    let View { waits, next, .. } = seen(&object(status));
    (waits, next)
}

fn condition(kind: ConditionKind, holds: Option<bool>, reason: &str) -> Condition {
    let message = format!("because of {reason}");
    Condition { kind, holds, reason: reason.to_owned(), message, since_ms: 3 }
}

#[test]
fn everything_about_a_run_is_shown_with_the_commands_for_its_logs() {
    let shown = seen(&object(with(Phase::Started)));
    assert_eq!(shown.source, "branch main of https://git.example.com/platform/infra.git, in envs/prod");
    let run = shown.run.unwrap();
    assert_eq!((run.seq, run.phase.as_str(), run.open, run.skipped.len()), (RunSeq(4), "Started", true, 1));
    assert_eq!(run.job.unwrap().logs.as_deref(), Some("kubectl logs -n platform job/infra-0123456789ab -c apply"));
    let plan = run.plan.unwrap();
    assert_eq!(plan.counts.as_deref(), Some("1 to add, 2 to change, 0 to destroy"));
    assert_eq!(plan.logs, "kubectl logs -n platform job/infra-ba9876543210 -c plan");
    assert_eq!(run.approved, Some((String::new(), 5)));
}

#[test]
fn a_job_that_planned_is_not_said_to_apply_while_the_apply_waits() {
    let shown = |phase, planned: bool| {
        let mut status = with(phase);
        let run = status.run.as_mut().unwrap();
        if planned {
            run.job = run.plan.as_ref().map(|plan| JobRef { name: plan.job.clone(), uid: None });
        }
        seen(&object(status)).run.unwrap().job.map(|job| (job.name, job.action))
    };
    let of = |name: &str, action: &str| Some((name.to_owned(), action.to_owned()));
    assert_eq!(shown(Phase::Waiting, true), of("infra-ba9876543210", "plan"));
    assert_eq!(shown(Phase::Waiting, false), None, "what it did is not known any more");
    assert_eq!(shown(Phase::Started, false), of("infra-0123456789ab", "apply"));
}

#[test]
fn a_log_is_shown_where_there_is_one() {
    let shown = |phase| seen(&object(with(phase))).run.unwrap().job.is_some_and(|job| job.logs.is_some());
    let with_logs: Vec<Phase> = Phase::ALL.into_iter().filter(|phase| shown(*phase)).collect();
    assert_eq!(with_logs, [Phase::Started, Phase::Planned, Phase::Succeeded, Phase::Failed]);
}

#[test]
fn each_phase_says_what_comes_next() {
    let machine = || Some("as the machine says".to_owned());
    for (phase, waits, next) in [
        (Phase::Waiting, machine(), "when that holds, its Job is made"),
        (Phase::Starting, machine(), "its Job is made, and then started"),
        (Phase::Started, machine(), "it is followed to its end"),
        (Phase::Planned, machine(), "a person is asked whether the plan may be applied"),
        (Phase::Succeeded, None, "the next commit at branch main is run when it comes"),
        (Phase::Failed, None, "it is not repeated by itself; another commit is run"),
        (Phase::Lost, None, "it is not repeated by itself; another commit is run"),
        (Phase::Superseded, None, "the commit that took its place is run"),
    ] {
        assert_eq!(sentences(with(phase)), (waits, next.to_owned()), "{phase:?}");
    }
    let resting = Failing { before: 1, not_before_ms: Some(9), ..Failing::default() };
    let resting = Status { run: Some(Run { failing: resting, ..run(Phase::Waiting) }), ..Status::default() };
    assert_eq!(sentences(resting).1, "its next Job is made then");
    let mut named = object(with(Phase::Succeeded));
    let source = Source { wanted: Wanted::Commit(commit('a')), ..spec().source };
    named.spec = Ok(Spec { source, ..spec() });
    assert_eq!(seen(&named).next, "another commit is run when spec.ref.commit names it");
    assert_eq!(sentences(Status::default()).1, "the first commit that is found is run");
    let next = Some(Next { revision: commit('c'), since_ms: 1, skipped: vec![commit('d')] });
    let (_, next) = sentences(Status { next, ..with(Phase::Started) });
    assert_eq!(next, format!("it is followed to its end, however it ends; then {} is run", commit('c')));
}

#[test]
fn a_question_names_the_command_that_answers_it() {
    let asked = |question| {
        let waiting = Some(Waiting { question, ticket: "t".to_owned(), since_ms: 1 });
        sentences(Status { waiting, ..with(Phase::Planned) }).1
    };
    for question in Question::ALL {
        assert!(asked(question).contains("`allclear repo approve platform/infra`"), "{question:?}");
    }
    assert!(asked(Question::Again).starts_with("nothing happens without a yes or another commit"));
}

#[test]
fn what_stops_it_comes_before_what_would_follow() {
    let mut stopped = object(with(Phase::Succeeded));
    stopped.spec = Ok(Spec { suspended: Some("audit".to_owned()), ..spec() });
    let shown = seen(&stopped);
    assert_eq!(shown.held.suspended.as_deref(), Some("audit"));
    assert!(shown.next.contains("`allclear repo resume platform/infra`"), "{}", shown.next);
    // What runs goes on.
    stopped.status.run = Some(run(Phase::Started));
    assert_eq!(seen(&stopped).next, "it is followed to its end; nothing new starts after it");
    stopped.spec = Err("url is empty".to_owned());
    let faulty = seen(&stopped);
    assert_eq!((faulty.held.faulty.as_deref(), faulty.source.as_str()), (Some("url is empty"), ""));
    assert!(faulty.next.starts_with("it goes on when the spec is mended"), "{}", faulty.next);
    let failing = vec![condition(ConditionKind::Ready, Some(false), "GitFailed")];
    let (waits, next) = sentences(Status { conditions: failing, ..with(Phase::Succeeded) });
    assert_eq!(waits.as_deref(), Some("because of GitFailed"));
    assert!(next.contains("`allclear repo poke platform/infra`"), "{next}");
    let pruned = vec![condition(ConditionKind::Ready, Some(false), "StatusPruned")];
    let (waits, next) = sentences(Status { conditions: pruned, ..with(Phase::Waiting) });
    assert_eq!(waits.as_deref(), Some("because of StatusPruned"));
    assert!(next.starts_with("it goes on by itself after that"), "{next}");
}

#[test]
fn what_must_hold_before_an_apply_is_named_without_what_an_address_may_hide() {
    let window = Window { days: vec![0, 4], from: 540, to: 1020, zone: "UTC".to_owned() };
    let url = "https://gate.example.com/s3cr3t".to_owned();
    let verdict = Some(VerdictSource { url, secret: None, timeout: Duration::from_secs(1) });
    let needs = vec![TargetKey::new(ClusterKey::Here, AppKind::new("apps/v1", "Deployment"), "shop", "db")];
    let gates = Gates { windows: vec![window], freezes: Vec::new(), verdict, needs };
    let mut gated = object(Status::default());
    gated.spec = Ok(Spec { gates, ..spec() });
    assert_eq!(
        seen(&gated).gates,
        [
            "after a person's yes to the plan",
            "window Mon Fri 09:00 to 17:00 UTC",
            "verdict of gate.example.com",
            "needs Deployment shop/db",
            "repeated by itself up to 2 times, first after 1m",
        ]
    );
}

#[test]
fn a_person_must_act_only_where_the_condition_says_so() {
    let of = |kind, holds| seen(&object(Status { conditions: vec![condition(kind, holds, "X")], ..Status::default() }));
    assert!(of(ConditionKind::Stalled, Some(true)).is_stalled());
    assert!(!of(ConditionKind::Stalled, Some(false)).is_stalled());
    let ready = of(ConditionKind::Ready, Some(true));
    assert!(!ready.is_stalled() && ready.ready().is_some());
}

#[test]
fn what_has_drifted_is_said_with_what_puts_it_back_and_ready_stays() {
    let seen = |holds, then: Option<OnDrift>| {
        let conditions =
            vec![condition(ConditionKind::Ready, Some(true), "Applied"), condition(ConditionKind::Drifted, holds, "X")];
        let mut object = object(Status { conditions, ..with(Phase::Succeeded) });
        let drift = then.map(|then| DriftLooks { every: Duration::from_hours(6), then });
        object.spec = Ok(Spec { drift, ..spec() });
        let View { waits, next, .. } = seen(&object);
        assert_eq!(waits, None);
        (view(&object, &object.status).has_drifted(), object.status.drift_state(), next)
    };
    let told = seen(Some(true), Some(OnDrift::Tell));
    assert_eq!((told.0, told.1), (true, Some("drifted")));
    assert!(told.2.ends_with("`allclear repo run platform/infra`"), "{}", told.2);
    assert!(seen(Some(true), Some(OnDrift::Apply)).2.starts_with("it is run once more for what has drifted"));
    for (holds, state) in [(Some(false), "in_sync"), (None, "unknown")] {
        let shown = seen(holds, Some(OnDrift::Tell));
        assert_eq!((shown.0, shown.1), (false, Some(state)));
        assert!(shown.2.starts_with("the next commit at branch main is run"), "{}", shown.2);
    }
}

#[test]
fn a_commit_that_is_unchanged_here_is_said_to_be_while_it_is_wanted_and_the_paths_are_those() {
    let head = |letter| Some(Head { revision: commit(letter), name: String::new(), seen_ms: 1 });
    let mut object = object(Status { head: head('c'), ..with(Phase::Succeeded) });
    let mut watching = spec();
    watching.source.watched = Some(["a", "b", "c", "d"].map(str::to_owned).into());
    let paths = watching.source.paths_hash();
    object.status.unchanged =
        Some(Unchanged { revision: commit('c'), since: commit('a'), seq: RunSeq(4), paths, at_ms: 2 });
    object.spec = Ok(watching);
    let seen = |object: &Object| view(object, &object.status);
    let shown = seen(&object);
    let under = "under envs/prod, a, b and 2 other paths";
    let words = format!("cccccccccccc changes nothing {under} since aaaaaaaaaaaa, which was applied");
    assert_eq!(shown.unchanged(), Some(words.as_str()));
    assert!(shown.source.ends_with(&format!(", in envs/prod; what changes nothing {under} is not run")));
    assert_eq!(
        shown.next,
        format!("the next commit at branch main that changes anything {under} is run when it comes")
    );
    for other in ['a', 'b'] {
        let moved = Object { status: Status { head: head(other), ..object.status.clone() }, ..object.clone() };
        assert_eq!(seen(&moved).unchanged(), None, "{other}");
    }
    let mut fewer = spec();
    fewer.source.watched = Some(Vec::new());
    assert_eq!(seen(&Object { spec: Ok(fewer), ..object.clone() }).unchanged(), None);
    assert_eq!(seen(&Object { spec: Ok(spec()), ..object }).unchanged(), None, "each commit concerns it");
}

fn lock() -> HeldLock {
    let lock = Lock::new(Some("a-1"), Some("ann@laptop-2"), None);
    HeldLock::asked("u", (RunSeq(4), 2), &lock, Holder::Other, 7).expect("a question")
}

#[test]
fn a_lock_in_the_way_is_a_question_until_it_is_answered_and_another_question_goes_first() {
    let failing = Failing { before: 1, not_before_ms: Some(9), ..Failing::default() };
    let resting = || Status { run: Some(Run { failing, ..run(Phase::Waiting) }), ..Status::default() };
    let asked = Status { lock: Some(lock()), ..resting() };
    let shown = seen(&object(asked.clone()));
    let question = shown.question.expect("a question");
    assert_eq!((question.kind.as_str(), &question.ticket, question.since_ms), (UNLOCK, &lock().ticket, 7));
    assert_eq!(
        question.words,
        "may a lock be taken away? ann@laptop-2 holds lock a-1 of the state since an unknown time: nothing here says whether it still runs"
    );
    let next = "its next Job is made then; after a yes it is made at once, and takes lock a-1 away: `allclear repo unlock platform/infra`";
    assert_eq!(shown.next, next);
    let failed = Waiting { ticket: "t".to_owned(), question: Question::Again, since_ms: 8 };
    let failed = seen(&object(Status { waiting: Some(failed), ..asked }));
    assert_eq!(failed.question.map(|question| question.kind).as_deref(), Some("Again"));
    let next = "`allclear repo approve platform/infra`, or `allclear repo unlock platform/infra`, which takes lock a-1 away first";
    assert!(failed.next.ends_with(next), "{}", failed.next);
    let yes = Approval { by: Some("ann".to_owned()), ticket: lock().ticket, at_ms: 9, overrides: false };
    let agreed = Status { lock: Some(HeldLock { approval: Some(yes), ..lock() }), ..with(Phase::Waiting) };
    let shown = seen(&object(agreed));
    assert_eq!(shown.question, None);
    assert_eq!(shown.next, "when that holds, its Job is made; it takes lock a-1 away, as ann has approved");
}
