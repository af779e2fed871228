//! A rollout of two clusters as their logs tell it, and what is wrong with it when a line is another one, is missing or comes too early.

use serde_json::{Value, json};

use super::*;

const SECOND: i64 = 1_000_000;
/// 2026-11-28T10:00:00Z.
const BEGIN: i64 = 1_795_860_000 * SECOND;

fn stamp(second: i64) -> String {
    jiff::Timestamp::from_microsecond(BEGIN + second * SECOND).unwrap().to_string()
}

/// One line: of which member, when, and what it says.
#[derive(Clone, Debug)]
struct Said(usize, i64, Value);

impl Said {
    fn text(&self) -> String {
        let mut line = self.2.clone();
        line["timestamp"] = json!(stamp(self.1));
        line["level"] = json!("INFO");
        if line["kind"].is_string() {
            line["at_ms"] = json!((BEGIN + self.1 * SECOND) / 1_000);
        }
        line.to_string()
    }
}

fn notice(member: usize, second: i64, kind: &str, seq: u64, rollout: &str, purges: &str) -> Said {
    let distributions: Vec<&str> = purges.split(',').filter_map(|pair| pair.split('=').next()).collect();
    let line = json!({
        "message": format!("{kind} in words"), "kind": kind, "workload": "shop/web", "seq": seq, "rollout": rollout,
        "change": "web: 1.0 → 1.1", "distributions": distributions.join(","), "invalidations": purges,
        "notice": format!("msg_{kind}_{rollout}_{member}"),
    });
    Said(member, second, line)
}

fn vote(member: usize, second: i64, seq: u64, rollout: &str) -> Said {
    let name = ["eu-1", "us-1"][member];
    let line = json!({
        "message": "voted for the rollout", "workload": "shop/web", "seq": seq, "rollout": rollout, "member": name,
        "members": "eu-1=5,us-1=9",
    });
    Said(member, second, line)
}

fn plain(member: usize, second: i64, message: &str) -> Said {
    Said(member, second, json!({"message": message, "version": "0.1.0"}))
}

fn ended(member: usize, second: i64, seq: u64) -> Said {
    let line = json!({"message": "the rollout has ended", "workload": "shop/web", "seq": seq, "change": "web", "outcome": "purged"});
    Said(member, second, line)
}

fn webhook(second: i64, message: &str) -> Said {
    let line = json!({"message": message, "workload": "shop/web", "hook": "chat", "kind": "purge.completed", "delivery": "msg_1"});
    Said(0, second, line)
}

/// Two members roll out, agree, and eu-1 purges.
fn good() -> Vec<Said> {
    vec![
        plain(0, 0, "started"),
        plain(1, 0, "started"),
        ended(0, 5, 4),
        notice(0, 10, "rollout.started", 5, "local-eu", ""),
        notice(1, 12, "rollout.started", 9, "local-us", ""),
        notice(0, 40, "rollout.completed", 5, "local-eu", ""),
        vote(0, 61, 5, "group"),
        notice(1, 60, "rollout.completed", 9, "local-us", ""),
        vote(1, 62, 9, "group"),
        notice(0, 63, "purge.started", 5, "group", "E1=I1"),
        notice(0, 90, "purge.completed", 5, "group", "E1=I1"),
        ended(0, 90, 5),
        ended(1, 92, 9),
        webhook(91, "webhook not delivered; trying again"),
        webhook(95, "webhook delivered"),
        plain(0, 200, "stopping"),
        plain(1, 200, "stopping"),
    ]
}

fn read(said: &[Said]) -> Logs {
    let mut logs = Logs::default();
    let files = [logs.begin("eu-1"), logs.begin("us-1")];
    for line in said {
        logs.take(files[line.0], &line.text());
    }
    logs
}

fn judged(said: &[Said]) -> Report {
    judge(&read(said), &[], &Invalidations::default())
}

/// The promises with this verdict.
fn with(report: &Report, verdict: Verdict) -> Vec<Promise> {
    report.promises.iter().filter(|judgement| judgement.verdict == verdict).map(|judgement| judgement.promise).collect()
}

fn kind_of(line: &Said) -> &str {
    line.2["kind"].as_str().unwrap_or_default()
}

/// The good run, with something done to it.
fn when(change: impl FnOnce(&mut Vec<Said>)) -> Report {
    let mut said = good();
    change(&mut said);
    judged(&said)
}

#[test]
fn a_good_run_holds_every_promise() {
    let report = judged(&good());
    assert_eq!(with(&report, Verdict::Held), Promise::ALL, "{report:#?}");
    let [change] = report.changes.as_slice() else { panic!("{:#?}", report.changes) };
    assert_eq!(change.members, [("eu-1".to_owned(), 5), ("us-1".to_owned(), 9)].into());
    let times = [change.seen, change.complete, change.purged, change.ended]
        .map(|at| (at.unwrap().as_microsecond() - BEGIN) / SECOND);
    assert_eq!((times, change.end), ([10, 60, 63, 90], Some(End::Purged)));
    assert_eq!(change.purges, [("E1".to_owned(), vec!["I1".to_owned()])].into());
}

#[test]
fn what_a_runtime_writes_before_a_line_is_passed_over() {
    let mut logs = Logs::default();
    let files = [logs.begin("eu-1"), logs.begin("us-1")];
    for line in good() {
        let before = ["2026-11-28T10:00:00.1Z stderr F ", "[pod/allclear-7d/allclear] "][line.0];
        logs.take(files[line.0], &format!("{before}{}", line.text()));
    }
    let report = judge(&logs, &[], &Invalidations::default());
    assert_eq!(report.verdict(), Verdict::Held, "{report:#?}");
}

/// What is done to the good run, and the promise that it breaks.
#[test]
fn a_broken_promise_is_named() {
    type Change = fn(&mut Vec<Said>);
    let cases: [(&str, &[Promise], Change); 12] = [
        ("a second invalidation", &[Promise::Once], |said| {
            said.push(notice(1, 64, "purge.started", 5, "group", "E1=I2"));
        }),
        ("a third, with evidence for one", &[Promise::Once], |said| {
            said.push(notice(0, 100, "purge.repeated", 5, "group", "E1=I2"));
            said.push(notice(1, 110, "purge.started", 5, "group", "E1=I3"));
        }),
        ("purged before the other voted", &[Promise::Complete], |said| {
            said.iter_mut().filter(|line| line.0 == 0 && kind_of(line) == "purge.started").for_each(|line| line.1 = 50);
        }),
        ("the other never voted", &[Promise::Complete], |said| {
            said.retain(|line| line.0 == 0 || line.2["members"].is_null());
            said.push(vote(1, 2, 8, "before"));
        }),
        ("voted before it was complete", &[Promise::Complete], |said| {
            said.iter_mut()
                .filter(|line| line.0 == 1 && kind_of(line) == "rollout.completed")
                .for_each(|line| line.1 = 63);
        }),
        ("voted, and never complete", &[Promise::Complete], |said| {
            said.retain(|line| !(line.0 == 1 && kind_of(line) == "rollout.completed"));
        }),
        ("voted for what had failed", &[Promise::Complete, Promise::Told], |said| {
            said.push(notice(1, 61, "rollout.failed", 9, "local-us", ""));
        }),
        ("voted, and then silent for two days", &[Promise::Kept], |said| {
            said.retain(|line| line.1 < 63);
            said.push(plain(1, 2 * 86_400, "still here"));
        }),
        ("two ends", &[Promise::Told], |said| said.push(notice(1, 95, "purge.skipped", 5, "group", ""))),
        ("its own word", &[Promise::Told], |said| {
            said.push(Said(0, 70, json!({"message": "allclear has broken a promise", "promise": "TELL-1: one end"})));
        }),
        ("a key", &[Promise::Secret], |said| said.push(plain(0, 70, "used AKIAIOSFODNN7EXAMPLE"))),
        ("a password", &[Promise::Secret], |said| {
            said.push(plain(1, 70, "redis://allclear:hunter2@redis:6379 refused"));
        }),
    ];
    for (name, promises, change) in cases {
        let report = when(change);
        assert_eq!(with(&report, Verdict::Broken), promises, "{name}: {report:#?}");
        let evidence: Vec<&Evidence> = report.promises.iter().flat_map(|judgement| &judgement.evidence).collect();
        assert!(evidence.iter().all(|one| one.place.contains("-1:")), "{name}: {evidence:#?}");
        assert!(evidence.iter().all(|one| !one.words.contains("hunter2") && !one.words.contains("AKIA")), "{name}");
    }
}

/// What may look like a broken promise, and is none.
#[test]
fn what_is_allowed_is_held() {
    type Change = fn(&mut Vec<Said>);
    let cases: [(&str, Change); 13] = [
        ("a line told again after a restart", |said| {
            let again: Vec<Said> = said.iter().filter(|line| kind_of(line) == "purge.started").cloned().collect();
            said.extend(again.into_iter().map(|line| Said(line.0, 120, line.2)));
        }),
        ("a further purge on evidence", |said| said.push(notice(0, 100, "purge.repeated", 5, "group", "E1=I2"))),
        ("clocks that are a second apart", |said| {
            said.iter_mut().filter(|line| line.0 == 1 && line.1 > 20 && line.1 < 100).for_each(|line| line.1 += 2);
        }),
        ("impossible at first, then made", |said| said.push(notice(0, 80, "purge.failed", 5, "group", "E1=I1"))),
        ("a member that was complete before its log began", |said| {
            said.retain(|line| !(line.0 == 1 && kind_of(line).starts_with("rollout.")));
        }),
        ("a rollout of the same number, of the week before", |said| {
            said.insert(2, notice(1, 1, "rollout.failed", 5, "older", ""));
        }),
        ("numbers that begin again, as those of a dry run do", |said| {
            said.insert(2, notice(1, 1, "rollout.started", 9, "older", ""));
            said.insert(3, notice(1, 2, "rollout.failed", 9, "older", ""));
        }),
        ("its own end is in the log of the other alone", |said| {
            said.retain(|line| !(line.0 == 1 && kind_of(line).starts_with("purge.")));
        }),
        ("no site, so nothing is told", |said| {
            said.retain(|line| !kind_of(line).starts_with("purge."));
            said.push(plain(0, 2 * 86_400, "still here"));
        }),
        ("a purge that another rollout's covers", |said| {
            said.push(notice(0, 95, "purge.started", 6, "next", "E1=I7"));
            said.push(vote(0, 94, 6, "next"));
            said.push(vote(1, 94, 10, "next"));
            said.push(notice(1, 97, "purge.completed", 5, "group", "E1=I7"));
        }),
        ("prose", |said| {
            said.push(plain(0, 70, "Basic authentication required by docker://web:1.2@sha256:0123456789abcdef"));
        }),
        ("a masked password", |said| said.push(plain(1, 70, "redis://allclear:***@redis:6379 refused"))),
        ("a vote said again by a later life", |said| said.push(vote(1, 150, 9, "group"))),
    ];
    for (name, change) in cases {
        let report = when(change);
        assert_eq!(report.verdict(), Verdict::Held, "{name}: {report:#?}");
    }
}

/// What is missing is not held.
#[test]
fn what_is_not_in_the_logs_cannot_be_told() {
    type Change = fn(&mut Vec<Said>);
    let cases: [(&str, &[Promise], Change); 7] = [
        ("no votes and no ends, as an older release logs", &[Promise::Complete, Promise::Kept], |said| {
            said.retain(|line| line.2["members"].is_null() && line.2["outcome"].is_null());
        }),
        ("no ids of invalidations", &[Promise::Once], |said| {
            said.iter_mut().for_each(|line| line.2["invalidations"] = json!(""));
        }),
        ("it ends while it waits", &[Promise::Kept], |said| said.retain(|line| line.1 < 63)),
        ("it waits for the other for days", &[Promise::Kept], |said| {
            said.retain(|line| line.1 < 45);
            said.push(plain(0, 2 * 86_400, "still here"));
        }),
        ("a later life says its vote again", &[Promise::Complete], |said| {
            said.retain(|line| line.0 == 0 || line.1 > 64);
            said.push(vote(1, 150, 9, "group"));
        }),
        ("it ends while a webhook is tried", &[Promise::Kept], |said| {
            said.retain(|line| line.2["message"] != "webhook delivered");
        }),
        ("the other's log ends before the purge", &[Promise::Complete], |said| {
            said.retain(|line| line.0 == 0 || line.1 < 50);
        }),
    ];
    for (name, promises, change) in cases {
        let report = when(change);
        assert_eq!(with(&report, Verdict::CannotBeTold), promises, "{name}: {report:#?}");
        assert_eq!(with(&report, Verdict::Broken), [], "{name}");
    }
    let mut logs = Logs::default();
    let only = logs.begin("eu-1");
    good().iter().filter(|line| line.0 == 0).for_each(|line| logs.take(only, &line.text()));
    let report = judge(&logs, &[], &Invalidations::default());
    assert_eq!(with(&report, Verdict::CannotBeTold), [Promise::Complete], "the log of us-1 was not given: {report:#?}");
    let nothing = judge(&Logs::default(), &[], &Invalidations::default());
    assert_eq!(with(&nothing, Verdict::Held), [], "nothing proves nothing");
    let mut text = Logs::default();
    let file = text.begin("eu-1");
    text.take(file, "2026-11-28T10:00:00Z  INFO allclear: started version=\"0.1.0\"");
    assert_eq!(with(&judge(&text, &[], &Invalidations::default()), Verdict::Held), [], "nor does text");
}

/// The same of another workload.
fn of_another(line: Said) -> Said {
    let mut line = line;
    line.2["workload"] = json!("shop/api");
    line
}

#[test]
fn others_go_on_beside_a_trouble_or_it_cannot_be_told() {
    let stuck = || of_another(notice(0, 8, "rollout.stuck", 2, "api", ""));
    let went_on = when(|said| said.push(stuck()));
    assert_eq!(went_on.verdict(), Verdict::Held, "shop/web began and ended beside it: {went_on:#?}");
    let alone = when(|said| said.push(of_another(notice(0, 120, "rollout.stuck", 2, "api", ""))));
    assert_eq!(alone.verdict(), Verdict::Held, "nothing began after it: {alone:#?}");
    let held_up = when(|said| {
        said.retain(|line| line.2["outcome"].is_null() && !kind_of(line).starts_with("purge."));
        said.push(stuck());
    });
    assert!(with(&held_up, Verdict::CannotBeTold).contains(&Promise::Apart), "{held_up:#?}");
}

#[test]
fn two_members_in_one_file_are_seen() {
    let mut logs = Logs::default();
    let file = logs.begin("all");
    good().iter().for_each(|line| logs.take(file, &line.text()));
    assert!(logs.members()[0].is_mixed);
    assert_eq!(with(&judge(&logs, &[], &Invalidations::default()), Verdict::Held), []);
}

fn replica_set(name: &str, second: i64, image: &str) -> Value {
    json!({
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": "shop", "name": name, "creationTimestamp": stamp(second),
            "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    })
}

/// Both clusters show what was deployed, whatever allclear says.
#[test]
fn the_objects_of_a_cluster_are_a_witness() {
    let seen = |items: Value, until: i64| {
        let objects = Objects::read(&json!({"kind": "List", "items": items}).to_string()).unwrap();
        let mut said = good();
        said.push(plain(0, until, "still here"));
        let report = judge(&read(&said), &[(0, objects)], &Invalidations::default());
        (with(&report, Verdict::Broken), with(&report, Verdict::CannotBeTold), report.promises[2].words.clone())
    };
    let (old, new) = (replica_set("web-1", -500, "web:1.0"), replica_set("web-2", 9, "web:1.1"));
    let (broken, untold, words) = seen(json!([old, new]), 5_000);
    assert_eq!((broken, untold), (vec![], vec![]), "{words}");
    assert!(words.ends_with("1 changes that the cluster's objects show"), "{words}");
    let missed = replica_set("web-3", 2_000, "web:1.2");
    assert_eq!(seen(json!([old, new, missed]), 5_000).1, [Promise::Kept], "a change that no rollout follows");
    assert_eq!(seen(json!([old, new, missed]), 2_100).1, [], "the log does not reach to where it had to be seen");
    let same = replica_set("web-3", 2_000, "web:1.1");
    assert_eq!(seen(json!([old, new, same]), 5_000).1, [], "other settings are no change of images");
    assert!(Objects::read("{}").is_err() && Objects::read("apiVersion: v1").is_err());
}

#[test]
fn cloudfront_is_a_witness() {
    let seen = |id: &str, reference: &str| {
        let mut invalidations = Invalidations::default();
        let one = json!({"Invalidation": {"Id": id, "CreateTime": stamp(63), "InvalidationBatch": {"CallerReference": reference}}});
        invalidations.read("E1", &one.to_string()).unwrap();
        with(&judge(&read(&good()), &[], &invalidations), Verdict::Broken)
    };
    assert_eq!(seen("I1", "allclear-0123"), []);
    assert_eq!(seen("I9", "cli-1795860000-1"), [], "a person's");
    assert_eq!(seen("I9", "allclear-4567"), [Promise::Once], "ours, and no log knows it");
    assert!(Invalidations::default().read("E1", "[]").is_err());
}

/// Whatever a line is, it is read or passed over.
#[test]
fn no_line_ends_the_audit() {
    let lines = [
        "",
        "{",
        "}",
        "{}",
        "[]",
        "null",
        "{\"timestamp\":5}",
        "{\"timestamp\":\"x\",\"seq\":-1}",
        "\u{0}{\"a\":\"\\u0000\"}",
        "{\"timestamp\":\"2026-11-28T10:00:00Z\",\"seq\":\"five\"}",
    ];
    let mut logs = Logs::default();
    let file = logs.begin("eu-1");
    lines.iter().for_each(|line| logs.take(file, line));
    logs.take(file + 1, "{}");
    assert_eq!((logs.members()[0].lines, logs.members()[0].strange), (10, 10));
}
