use kernel::id::CommitId;
use objects::repo::held::{HeldLock, HolderKind};
use objects::repo::lock::LockId;
use objects::repo::reported::{Change, Listed, Report, Said};
use objects::repo::status::{
    Condition, ConditionKind, Counts, Drift, Ended, Head, JobRef, Missed, Next, Plan, Question, Seen, Unchanged,
    Waiting,
};
use objects::status::{Approval, Late};
use serde_json::json;

use super::super::super::tests::stored::REPOS;
use super::super::{Installation, object};
use super::*;

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().expect("a commit's id")
}

/// A status with something in every field.
fn full() -> Status {
    let notice = json!({
        "id": "n-1", "kind": "promotion.started", "at_ms": 5, "workload": "pipeline/shop/web", "seq": 4, "rollout": "p-1",
        "change": "prod: 1.2 → 1.3", "message": "it begins", "promotion": {"environment": "prod", "revision": "1.3"},
    });
    let run = Run {
        attempt: Attempt { seq: RunSeq(4), action: Action::Plan, number: 2 },
        revision: commit("a"),
        terms: Terms { work: "w".to_owned(), settings: "s".to_owned() },
        phase: Phase::Planned,
        job: Some(JobRef { name: "infra-0123456789ab".to_owned(), uid: Some("j-1".to_owned()) }),
        plan: Some(Plan {
            fingerprint: "f".to_owned(),
            counts: Some(Counts { add: 1, change: 0, destroy: 3 }),
            job: "infra-0123456789ab".to_owned(),
        }),
        approval: Some(Approval { by: Some("jane".to_owned()), ticket: "t".to_owned(), at_ms: 1, overrides: true }),
        failing: Failing { before: 1, applies: 2, not_before_ms: Some(1_700_000_000_999) },
        started_ms: Some(1_700_000_001_000),
        ended_ms: Some(1_700_000_002_000),
        skipped: vec![commit("b")],
        message: "waits".to_owned(),
    };
    Status {
        serial: 12,
        observed_generation: 3,
        head: Some(Head { revision: commit("c"), name: "refs/heads/main".to_owned(), seen_ms: 1_700_000_000_123 }),
        next: Some(Next { revision: commit("c"), since_ms: -5, skipped: vec![commit("d")] }),
        run: Some(run),
        unchanged: None,
        drift: None,
        report: None,
        destroy: None,
        seq: RunSeq(4),
        waiting: Some(Waiting { question: Question::Plan, ticket: "0123456789ab".to_owned(), since_ms: 9 }),
        lock: None,
        late: Some(Late { since_ms: 7, told: true }),
        history: vec![Ended {
            seq: RunSeq(3),
            revision: commit("e"),
            outcome: Phase::Lost,
            by: Some("jane".to_owned()),
            skipped: vec![commit("f")],
            work: String::new(),
            at_ms: 1_699_999_999_999,
        }],
        untold: vec![serde_json::from_value(notice).unwrap()],
        conditions: vec![
            Condition {
                kind: ConditionKind::Ready,
                holds: None,
                reason: "Running".to_owned(),
                message: "infra runs".to_owned(),
                since_ms: 1_700_000_000_001,
            },
            Condition {
                kind: ConditionKind::Stalled,
                holds: Some(true),
                reason: "RunFailed".to_owned(),
                message: "somebody must look".to_owned(),
                since_ms: 1,
            },
        ],
    }
}

fn unchanged() -> Unchanged {
    Unchanged {
        revision: commit("c"),
        since: commit("a"),
        seq: RunSeq(4),
        paths: "p".to_owned(),
        at_ms: 1_700_000_000_124,
    }
}

/// A lock about which a person was asked and said yes, with something in every field.
fn lock() -> HeldLock {
    HeldLock {
        seq: RunSeq(4),
        id: LockId::new("5d9a5d1e-0d3f").expect("an id"),
        who: Some("root@infra-0123456789ab-x7k2p".to_owned()),
        since_ms: Some(1_700_000_000_000),
        holder: HolderKind::Ended,
        job: Some("infra-0123456789ab".to_owned()),
        met: 2,
        ticket: "ba9876543210".to_owned(),
        asked_ms: 1_700_000_000_007,
        approval: Some(Approval { by: None, ticket: "ba9876543210".to_owned(), at_ms: 8, overrides: false }),
        attempt: Some(3),
    }
}

/// All that is known of a report to a forge.
fn report() -> Report {
    Report {
        said: Some(Said { revision: commit("c"), hash: "0f".repeat(32), requests: 2, at_ms: 1_700_000_003_000 }),
        changes: Some(Listed {
            job: "infra-0".to_owned(),
            listed: vec![Change { action: "create".to_owned(), address: "a.b[\"c\"]".to_owned() }],
            more: 7,
        }),
    }
}

/// All that is known of drift, with a look under way.
fn drift() -> Drift {
    let run = full().run.expect("a run");
    let attempt = Attempt { seq: RunSeq(4), action: Action::Drift, number: 7 };
    let look = Run {
        attempt,
        phase: Phase::Started,
        plan: None,
        approval: None,
        failing: Failing::default(),
        ended_ms: None,
        skipped: Vec::new(),
        ..run.clone()
    };
    Drift {
        look: Some(look),
        looks: 7,
        seen: Some(Seen {
            seq: RunSeq(4),
            settings: "s".to_owned(),
            plan: run.plan,
            since_ms: 1_700_000_000_000,
            at_ms: 1_700_000_000_005,
        }),
        missed: Some(Missed {
            count: 2,
            at_ms: 1_700_000_000_009,
            settings: "s".to_owned(),
            job: "infra-0".to_owned(),
            message: "no credentials".to_owned(),
        }),
        late: Some(Late { since_ms: 1_700_000_000_007, told: true }),
        applied_ms: Some(1_700_000_000_001),
    }
}

fn repo(status: &Value) -> Result<Object, String> {
    let object_json = json!({
        "metadata": {"namespace": "platform", "name": "infra", "uid": "u-1", "resourceVersion": "1"},
        "spec": {"url": "https://git.example.com/platform/infra"},
        "status": status,
    });
    object(&object_json.to_string(), &Installation::default())
}

fn json_of(status: &Status) -> Value {
    let object = repo(&Value::Null).unwrap();
    written(&Object { status: status.clone(), ..object }).unwrap()
}

#[test]
fn what_was_written_is_read_again_as_it_was() {
    let full = full();
    let mut more: Vec<Status> = Phase::ALL.map(|phase| with_phase(&full, phase)).into();
    let without_counts = |run: Run| Run { plan: run.plan.map(|plan| Plan { counts: None, ..plan }), ..run };
    more.push(Status { run: full.run.clone().map(without_counts), ..full.clone() });
    more.push(Status { unchanged: Some(unchanged()), ..full.clone() });
    more.push(Status { drift: Some(drift()), ..full.clone() });
    more.push(Status { drift: Some(Drift { looks: 3, ..Drift::default() }), ..full.clone() });
    more.push(Status { lock: Some(lock()), ..full.clone() });
    let unnamed = HeldLock { who: None, since_ms: None, job: None, approval: None, attempt: None, ..lock() };
    more.push(Status { lock: Some(unnamed), ..full.clone() });
    more.push(Status { report: Some(report()), ..full.clone() });
    more.push(Status { report: Some(Report { said: None, ..report() }), ..full.clone() });
    more.push(Status { run: None, ..full });
    more.push(Status { observed_generation: -1, ..Status::default() });
    for status in more {
        assert_eq!(read(Some(&json_of(&status).to_string())), Ok(status));
    }
    for none in [None, Some("null"), Some("{}")] {
        assert_eq!(read(none), Ok(Status { observed_generation: -1, ..Status::default() }));
    }
}

fn with_phase(status: &Status, phase: Phase) -> Status {
    Status { run: status.run.clone().map(|run| Run { phase, ..run }), ..status.clone() }
}

#[test]
fn a_commit_that_was_passed_over_stands_beside_the_run_in_a_form_that_stays() {
    let json = json_of(&Status { unchanged: Some(unchanged()), ..full() });
    let (c, a) = ("c".repeat(40), "a".repeat(40));
    let expected = json!({"revision": c, "since": a, "seq": 4, "paths": "p", "at": "2023-11-14T22:13:20.124Z"});
    assert_eq!(json["unchanged"], expected);
    assert_eq!(json["gitSHA"], json!(a), "what was applied");
}

#[test]
fn a_look_at_drift_stands_beside_what_was_applied_in_a_form_that_stays() {
    let full = full();
    let json = json_of(&Status { drift: Some(drift()), ..full.clone() });
    let expected = json!({
        "look": {
            "seq": 4, "attempt": 7, "action": "drift", "revision": "a".repeat(40), "work": "w", "settings": "s",
            "phase": "Started", "job": {"name": "infra-0123456789ab", "uid": "j-1"},
            "startedAt": "2023-11-14T22:13:21Z", "message": "waits",
        },
        "looks": 7,
        "seen": {
            "seq": 4, "settings": "s", "plan": {"fingerprint": "f", "add": 1, "change": 0, "destroy": 3, "job": "infra-0123456789ab"},
            "since": "2023-11-14T22:13:20Z", "at": "2023-11-14T22:13:20.005Z",
        },
        "missed": {"count": 2, "at": "2023-11-14T22:13:20.009Z", "settings": "s", "job": "infra-0", "message": "no credentials"},
        "late": {"since": "2023-11-14T22:13:20.007Z", "told": true},
        "appliedAt": "2023-11-14T22:13:20.001Z",
    });
    assert_eq!(json["drift"], expected);
    // A release before it passes over the field, and reads what it knows.
    let mut without = json.clone();
    without.as_object_mut().unwrap().remove("drift");
    assert_eq!(read(Some(&without.to_string())), Ok(full.clone()));
    assert_eq!((&json["run"], &json["runJobName"]), (&without["run"], &json!("infra-0123456789ab")));
}

#[test]
fn a_lock_that_is_asked_about_stands_beside_the_run_in_a_form_that_stays() {
    let full = full();
    let json = json_of(&Status { lock: Some(lock()), ..full.clone() });
    let expected = json!({
        "seq": 4, "id": "5d9a5d1e-0d3f", "who": "root@infra-0123456789ab-x7k2p", "since": "2023-11-14T22:13:20Z",
        "holder": "Ended", "job": "infra-0123456789ab", "met": 2, "ticket": "ba9876543210",
        "askedAt": "2023-11-14T22:13:20.007Z", "approval": {"ticket": "ba9876543210", "at": "1970-01-01T00:00:00.008Z"},
        "attempt": 3,
    });
    assert_eq!(json["lock"], expected);
    // A release before it passes over the field, and reads what it knows.
    let mut without = json.clone();
    without.as_object_mut().unwrap().remove("lock");
    assert_eq!(read(Some(&without.to_string())), Ok(full));
    assert_eq!(json["run"], without["run"]);
    let mut flag = json;
    flag["lock"]["id"] = json!("-lock=false");
    let why = repo(&flag).unwrap_err();
    assert!(why.contains("lock.id: \"-lock=false\" is no id of a lock"), "{why}");
}

#[test]
fn a_destroy_stands_beside_what_was_applied_in_a_form_that_stays() {
    let run = full().run.expect("a run");
    let attempt = Attempt { seq: RunSeq(5), action: Action::Destroy, number: 2 };
    let destroy = Run { attempt, phase: Phase::Started, skipped: Vec::new(), ..run };
    let waiting = Waiting { question: Question::Destroy, ticket: "0123456789ab".to_owned(), since_ms: 9 };
    let mut status = Status { destroy: Some(destroy), waiting: Some(waiting), ..full() };
    status.history[0].work = "w".to_owned();
    let json = json_of(&status);
    assert_eq!(repo(&json).unwrap().status, status);
    assert_eq!((&json["destroy"]["action"], &json["destroy"]["seq"]), (&json!("destroy"), &json!(5)));
    assert_eq!((&json["waitingApproval"]["for"], &json["history"][0]["work"]), (&json!("Destroy"), &json!("w")));
    assert_eq!(json["run"], json_of(&full())["run"], "a release before it reads the run as it was");
}

#[test]
fn what_a_forge_was_told_stands_in_a_form_that_stays() {
    let json = json_of(&Status { report: Some(report()), ..full() });
    let expected = json!({
        "said": {
            "revision": "c".repeat(40), "hash": "0f".repeat(32), "requests": 2, "at": "2023-11-14T22:13:23Z",
        },
        "changes": {"job": "infra-0", "listed": [{"action": "create", "address": "a.b[\"c\"]"}], "more": 7},
    });
    assert_eq!(json["report"], expected);
}

#[test]
fn those_who_read_the_fields_of_the_program_before_ours_still_can() {
    let json = json_of(&full());
    assert_eq!((&json["gitSHA"], &json["runJobName"]), (&json!("a".repeat(40)), &json!("infra-0123456789ab")));
    assert_eq!(json["shortRevision"], "aaaaaaaaaaaa");
    for (phase, stored) in Phase::ALL.into_iter().zip(REPOS.lines()) {
        assert_eq!(json_of(&with_phase(&full(), phase)).to_string(), stored, "and those of ours");
    }
    for (phase, name) in [
        (Phase::Waiting, "New"),
        (Phase::Starting, "Pending"),
        (Phase::Planned, "Pending"),
        (Phase::Started, "Running"),
        (Phase::Succeeded, "Completed"),
        (Phase::Failed, "Failed"),
        (Phase::Lost, "Failed"),
    ] {
        assert_eq!(json_of(&with_phase(&full(), phase))["runStatus"], name);
    }
    let seen = json_of(&Status { run: None, ..full() });
    assert_eq!((&seen["runStatus"], &seen["gitSHA"]), (&json!("New"), &json!("c".repeat(40))));
    assert_eq!(json_of(&Status::default()).get("runStatus"), None);
}

#[test]
fn a_status_of_the_program_before_ours_counts_as_run() {
    let earlier = |status: &str| {
        let status = json!({"runStatus": status, "gitSHA": "a".repeat(40), "runJobName": "infra-x"});
        repo(&status).unwrap().status
    };
    for (status, phase, message) in [
        ("Completed", Phase::Succeeded, "the program before allclear ran it (Job infra-x)"),
        ("Running", Phase::Succeeded, "the program before allclear was running it, and it counts as run (Job infra-x)"),
        ("Failed", Phase::Failed, "the program before allclear ran it, and it failed (Job infra-x)"),
    ] {
        let read = earlier(status);
        let run = read.run.expect(status);
        assert_eq!((run.phase, &run.revision, run.message.as_str()), (phase, &commit("a"), message));
        assert_eq!((run.attempt.seq, &run.terms, &run.job), (RunSeq(0), &Terms::default(), &None));
        assert_eq!((read.serial, read.seq, read.observed_generation), (0, RunSeq(0), -1));
    }
    for status in ["New", "Pending", ""] {
        assert_eq!(earlier(status).run, None, "{status}");
    }
    // Without its commit nothing is known, and running it once more would be a guess.
    let why = repo(&json!({"runStatus": "Running"})).unwrap_err();
    assert!(why.contains("gitSHA: \"\" is no commit's id") && why.contains("--subresource=status"), "{why}");
}

#[test]
fn a_status_that_is_not_ours_is_refused_in_words() {
    let broken = |pointer: &str, value: Value| {
        let mut json = json_of(&full());
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[field] = value;
        repo(&json).expect_err(pointer)
    };
    for (pointer, value, expected) in [
        ("/serial", json!(-1), "serial: -1 is negative"),
        ("/serial", json!(i64::MAX), "serial: 9223372036854775807, and nothing was counted so far"),
        ("/seq", json!(-1), "seq: -1 is negative"),
        ("/run/seq", json!(-1), "run: seq: -1 is negative"),
        ("/run/attempt", json!(1_i64 << 40), "run: attempt: 1099511627776, and nothing was counted so far"),
        ("/run/phase", json!("Dancing"), "\"Dancing\" is no phase of a run"),
        ("/run/action", json!("undo"), "\"undo\" is no action"),
        ("/run/revision", json!("main"), "run.revision: \"main\" is no commit's id"),
        ("/run/revision", json!("--upload-pack=sh"), "is no commit's id"),
        ("/run/skipped", json!(["x"]), "run.skipped: \"x\" is no commit's id"),
        ("/run/startedAt", json!("yesterday"), "run.startedAt: \"yesterday\" is no time"),
        ("/run/plan/add", json!(-1), "run.plan: -1 is negative"),
        ("/next/revision", json!(""), "next.revision"),
        ("/head/revision", json!("HEAD"), "head.revision"),
        ("/waitingApproval/for", json!("Fun"), "is no question"),
        ("/untold", json!([{}]), "untold: missing field"),
        ("/conditions", json!("none"), "invalid type"),
    ] {
        let why = broken(pointer, value);
        assert!(why.contains(expected) && why.contains("then the newest commit is run once more"), "{expected}: {why}");
    }
}
