//! What a member sees of its cluster is late, cut, repeated, stale or unreadable (rows W1–W8).

use std::time::Duration;

use futures_util::FutureExt;
use sandbox::http::{Action, Fault, Reply, When};
use sandbox::kubernetes::Kind;
use serde_json::json;
use support::process::PATIENCE;

use crate::group::field::Field;
use crate::group::oracles::{Want, judge};
use crate::group::table::{Outcome, Row};
use crate::scene::{NAME, NAMESPACE, image};

pub fn rows() -> Vec<Row> {
    vec![
        Row::new("W1", "every connection to every API server cut, again and again", || w1().boxed_local()),
        Row::new("W2", "410 in the stream, and on resuming", || w2().boxed_local()),
        Row::new("W3", "410 on every page of a list", || w3().boxed_local()),
        Row::new("W4", "A→B→A and A→B→A→B that no watch shows", || w4().boxed_local()),
        Row::new("W5", "an API server that answers from the past", || w5().boxed_local()),
        Row::new("W6", "a watch that is half open: no bytes, no end", || w6().boxed_local()),
        Row::new("W7", "objects and lines nobody can read", || w7().boxed_local()),
        Row::new("W8", "deleted and made again in the middle of a rollout", || w8().boxed_local()),
    ]
}

async fn w1() -> Outcome {
    let field = Field::new().await;
    field.roll_out("1.1");
    let cuts = 12;
    for _ in 0..cuts {
        for at in 0..field.members.len() {
            field.web.api(at).reset_once().await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed(format!("{cuts} cuts of every connection"))
}

async fn w2() -> Outcome {
    let field = Field::new().await;
    let expire = || field.members.iter().for_each(|member| member.world.kubernetes.expire_watches());
    expire();
    field.roll_out("1.1");
    expire();
    judge(&field, Want::purged(1, 2)).await;
    field.members.iter().for_each(|member| {
        member.world.kubernetes.close_watches();
        member.roll_out("1.2");
        member.world.kubernetes.compact();
    });
    judge(&field, Want::purged(2, 3)).await;
    Outcome::passed("found by listing again, twice")
}

/// The streaming list is refused, so it lists by pages, and no page but the first can be had.
async fn w3() -> Outcome {
    let mut field = Field::prepare().await;
    let gone = || {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
            "message": "The provided continue parameter is too old",
        });
        Fault::once(When::Before, Action::Answer(Reply::full(410, "application/json", status.to_string())))
            .times(u32::MAX)
    };
    let invalid = || {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        });
        Fault::once(When::Before, Action::Answer(Reply::full(422, "application/json", status.to_string())))
            .times(u32::MAX)
    };
    // More than one page of 500.
    for number in 0..510 {
        field[1].world.kubernetes.seed(NAMESPACE, &format!("filler-{number}"), &image("1.0"), 1).expect("it takes it");
    }
    field[1].world.api.inject(gone().matching(|request| request.query.contains_key("continue")));
    field[1].world.api.inject(invalid().matching(|request| request.query.contains_key("sendInitialEvents")));
    field.start().await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("fell back to a list without pages")
}

async fn w4() -> Outcome {
    let field = Field::new().await;
    for member in &field.members {
        member.world.kubernetes.compact();
        member.world.kubernetes.close_watches();
        member.roll_out("1.1");
        member.roll_out("1.0");
        member.world.kubernetes.compact();
    }
    let still = async |field: &Field| field.purges().is_empty();
    field.holds_for(Duration::from_secs(2), "a version that never ran is not purged", still).await;
    for member in &field.members {
        member.world.kubernetes.close_watches();
        member.roll_out("1.1");
        member.roll_out("1.0");
        member.roll_out("1.1");
        member.world.kubernetes.compact();
    }
    let seq = |field: &Field| field.records().iter().flatten().map(|record| record.seq.0).max().unwrap_or_default();
    let seen = async |field: &Field| seq(field) > 1 && !field.purges().is_empty();
    field.wait_until("1.1 is purged", seen).await;
    let last = field.records().iter().flatten().map(|record| record.seq.0).min().unwrap_or_default();
    judge(&field, Want::purged(1, last)).await;
    Outcome::passed("hidden A→B→A: no purge; hidden A→B→A→B: one")
}

/// The answer to the re-check before the vote is that of a replica which has not heard of the rollout; the watch is not.
async fn w5() -> Outcome {
    let field = Field::new().await;
    let old = field[1].world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME).expect("it is there").to_string();
    let times = 3;
    for _ in 0..times {
        let stale = Action::Answer(Reply::full(200, "application/json", old.clone()));
        let looks =
            |request: &sandbox::http::Request| request.method == "GET" && request.path.ends_with("/deployments/web");
        field[1].world.api.inject(Fault::once(When::Before, stale).matching(looks));
    }
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    Outcome::Partly(format!(
        "{times} stale answers to the re-check cost time only; a watch that goes back in time: not run"
    ))
}

/// The program gives a silent watch 100 s; this row takes as long.
async fn w6() -> Outcome {
    const WITHIN: Duration = Duration::from_secs(140);
    let field = Field::new().await;
    field.web.api(1).strand();
    field.roll_out("1.1");
    let began = std::time::Instant::now();
    while field.purges().is_empty() {
        assert!(began.elapsed() < WITHIN, "it still waits for a watch that is dead\n{}", field.tell().await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed(format!("noticed after {:.0} s", began.elapsed().as_secs_f64()))
}

async fn w7() -> Outcome {
    let field = Field::new().await;
    let deployment = |name: &str, status: serde_json::Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": 1, "surprise": {"new": [1, 2]}, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": "not an image:::"}]},
            }},
            "status": status,
        })
    };
    let odd = [
        deployment("no-status", serde_json::Value::Null),
        deployment("null-conditions", json!({"conditions": null, "replicas": null})),
        deployment("wrong-types", json!({"replicas": "three", "conditions": {"a": 1}})),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "no-spec", "namespace": NAMESPACE}}),
    ];
    for object in odd {
        field[1].world.kubernetes.put(object).expect("it is stored as it is");
    }
    // A watch whose line is cut in the middle, with a byte that is no text.
    let torn =
        Reply::full(200, "application/json", b"{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Depl\xff\n{\"ty".to_vec());
    let watches =
        |request: &sandbox::http::Request| request.query.contains_key("watch") && request.path.contains("deployments");
    field[1].world.api.inject(Fault::once(When::Before, Action::Answer(torn)).matching(watches));
    field[1].world.kubernetes.close_watches();
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    Outcome::Partly("four unreadable objects and a torn line; an object of 3 MiB: not run".to_owned())
}

async fn w8() -> Outcome {
    let mut field = Field::new().await;
    field[1].freeze();
    field.roll_out("1.1");
    field
        .wait_until("the rollout is seen", async |field| field[1].record().is_some_and(|record| record.seq.0 == 2))
        .await;
    let cluster = field[1].world.kubernetes.clone();
    cluster.delete(Kind::Deployment, NAMESPACE, NAME).expect("it is deleted");
    field.wait_until("it is gone", async |field| field[1].record().is_none_or(|record| record.uid.is_empty())).await;
    cluster.deploy(NAMESPACE, NAME, &image("1.1"), 3).expect("it is made again");
    field[1].thaw();
    let made = tokio::time::timeout(PATIENCE, async {
        while field.purges().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(made.await.is_ok(), "nothing was purged\n{}", field.tell().await);
    judge(&field, Want::purged(1, 2)).await;
    Outcome::passed("a new object is a new number; one purge")
}
