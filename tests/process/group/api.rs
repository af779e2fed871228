//! An API server that refuses, fails, or forgets (rows A1–A5).

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::http::{Action, Fault, Reply, Request, When};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use crate::group::field::Field;
use crate::group::kills::is_store;
use crate::group::oracles::{Want, judge, words};
use crate::group::table::{Outcome, Row};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("A1", "429, 500, 503 and 504 on reads and on stores", || a1().boxed_local()),
        Row::new("A2", "a storm of 409", || a2().boxed_local()),
        Row::new("A3", "stored, and the answer lost", || a3().boxed_local()),
        Row::new("A4", "rights taken away; the ledger deleted", || a4().boxed_local()),
        Row::new("A5", "etcd restored from a backup", || a5().boxed_local()),
    ]
}

/// The namespace of the ledgers.
const LEDGER_NAMESPACE: &str = "default";

fn refusal(code: u16, reason: &str) -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason,
        "message": format!("the row says {reason}"),
    });
    Reply::full(code, "application/json", status.to_string())
}

fn refused(code: u16, reason: &str, times: u32) -> Fault {
    Fault::once(When::Before, Action::Answer(refusal(code, reason))).times(times)
}

fn is_read(request: &Request) -> bool {
    let site = ["/ingresses", "/services", "/deployments/web"];
    request.method == "GET"
        && !request.query.contains_key("watch")
        && site.iter().any(|path| request.path.contains(path))
}

async fn a1() -> Outcome {
    let field = Field::new().await;
    let busy = || Fault::once(When::Before, Action::Answer(refusal(429, "TooManyRequests").header("retry-after", "1")));
    for matches in [is_read as fn(&Request) -> bool, is_store] {
        field.inject_everywhere(busy, matches);
        for (code, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")] {
            field.inject_everywhere(|| refused(code, reason, 1), matches);
        }
    }
    let before = field[1].world.api.seen().len();
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    let requests = field[1].world.api.seen().len() - before;
    assert!(requests < 150, "{requests} requests of one member: a hot loop");
    Outcome::passed(format!("8 refusals in each member; {requests} requests of one of them in all"))
}

async fn a2() -> Outcome {
    let field = Field::new().await;
    field.inject_everywhere(|| refused(409, "Conflict", 5), is_store);
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("5 conflicts in each member; read again and stored")
}

async fn a3() -> Outcome {
    let field = Field::new().await;
    field.inject_everywhere(|| Fault::once(When::After, Action::Cut).times(3), is_store);
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    let numbers: Vec<u64> = field.records().iter().flatten().map(|record| record.seq.0).collect();
    assert_eq!(numbers, [2, 2, 2], "no number was given twice");
    Outcome::passed("3 lost answers in each member; one number each")
}

async fn a4() -> Outcome {
    let field = Field::new().await;
    field[1].world.api.inject(refused(403, "Forbidden", u32::MAX).matching(is_store));
    field.roll_out("1.1");
    let complains = async |field: &Field| {
        let complaints = field.process(1).complaints();
        complaints.iter().any(|line| ["update", "configmap", "allclear-ledger-"].iter().all(|word| line.contains(word)))
    };
    field.wait_until("it names what it may not do", complains).await;
    assert!(field.purges().is_empty(), "nothing is purged that one ledger does not say");
    field.clear_faults();
    judge(&field, Want::purged(1, 2)).await;
    let maps = field[1].world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
    for map in &maps {
        let name = map["metadata"]["name"].as_str().unwrap_or_default();
        if name.starts_with("allclear-") {
            field[1].world.kubernetes.delete(Kind::ConfigMap, LEDGER_NAMESPACE, name).expect("it is deleted");
        }
    }
    field.roll_out("1.2");
    field.wait_until("1.2 is purged all the same", async |field| field.purges().len() == 2).await;
    let loud = field.process(1).complaints().iter().any(|line| line.contains("ledger"));
    assert!(loud, "it says that its ledger is gone\n{}", field.process(1).tail());
    Outcome::passed("named verb and object, went on with the right; a deleted ledger was begun anew, and said so")
}

/// One member's ledger is what it was before the last rollout, which the others know of.
async fn a5() -> Outcome {
    // What the others know proves something only where it is signed.
    let key = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").expect("it can be written");
    let mut field = Field::with(&[("ALLCLEAR__GROUP__KEY_FILE", &key.path().display().to_string())]).await;
    let backup = ledger(&field);
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field.kill(1);
    for mut map in backup {
        map["metadata"].as_object_mut().expect("it has metadata").remove("resourceVersion");
        field[1].world.kubernetes.put(map).expect("it is restored");
    }
    field[1].launch(&["run"]);
    let says = async |field: &Field| {
        let words = words(field, 1).await;
        words.contains("StateRegressed") || field.process(1).said("StateRegressed")
    };
    field.wait_until("it says that its ledger is older than what it had told", says).await;
    field.roll_out("1.2");
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(Duration::from_secs(3), "nothing is purged until somebody says so", still).await;
    adopt(&field).await;
    field.wait_until("1.2 is purged after all", async |field| field.purges().len() == 2).await;
    Outcome::passed("held until `allclear ledger adopt`, then purged")
}

fn ledger(field: &Field) -> Vec<Value> {
    let maps = field[1].world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
    let is_ledger = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().starts_with("allclear-ledger-");
    maps.into_iter().filter(is_ledger).collect()
}

/// What an operator types.
async fn adopt(field: &Field) {
    use support::process::{PATIENCE, Process};
    let mut command = Process::start(&["ledger", "adopt", "--all", "--yes"], field[1].environment.clone());
    let status = command.ended(PATIENCE).await.expect("the command ends");
    assert!(status.success(), "allclear ledger adopt: {status}\n{}", command.tail());
}
