//! Looking for other ledgers with a person's credentials, through the real adapter: our stand-in of the API server, which can
//! be told to forbid.

use std::collections::BTreeSet;

use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::adapters::ledger::kubernetes::find::{Ledgers, ledgers};
use purge::ports::Ledger;
use sandbox::http::Request;
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use crate::kubernetes::Bench;
use crate::served;

impl Bench {
    fn config_map(&self, namespace: &str, name: &str, labels: &Value) {
        let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"layout": "1"}});
        self.api.apply(map).unwrap();
    }

    fn forbid(&self, matches: fn(&Request) -> bool) {
        served::forbid(&self.server, "not for you", matches);
    }

    async fn look(&self, likely: &[&str]) -> Ledgers {
        ledgers(&self.clients.request, named(likely)).await.unwrap()
    }
}

fn named(namespaces: &[&str]) -> BTreeSet<String> {
    namespaces.iter().map(|name| (*name).to_owned()).collect()
}

fn ours() -> Value {
    json!({"app.kubernetes.io/managed-by": "allclear", "allclear.dev/part": "ledger"})
}

#[tokio::test]
async fn ledgers_are_found_by_name_and_by_label_and_nothing_else_is() {
    let bench = Bench::start().await;
    assert_eq!(bench.look(&[]).await, Ledgers::default());
    bench.config_map("tools", "allclear-ledger", &json!({}));
    bench.config_map("infra", "allclear-ledger-of-tomorrow", &ours());
    // Shards, deliveries and other people's objects are no ledgers.
    let shard = json!({"app.kubernetes.io/managed-by": "allclear", "allclear.dev/part": "shard"});
    bench.config_map("shop", "allclear-ledger-07", &shard);
    bench.config_map("blog", "settings", &json!({"allclear.dev/part": "ledger"}));
    let found = Ledgers { namespaces: named(&["infra", "tools"]), partial: false };
    assert_eq!(bench.look(&[]).await, found);
    assert!(bench.server.seen().iter().all(|seen| seen.method == "GET"), "looking writes nothing");
}

// Faults: X2
#[tokio::test]
async fn whoever_may_not_look_everywhere_looks_where_he_may() {
    let bench = Bench::start().await;
    for namespace in ["tools", "secret"] {
        bench.config_map(namespace, "allclear-ledger", &ours());
    }
    bench.forbid(|request| request.path == "/api/v1/configmaps");
    let all = Ledgers { namespaces: named(&["secret", "tools"]), partial: false };
    assert_eq!(bench.look(&[]).await, all, "namespace by namespace");
    bench.forbid(|request| request.path.starts_with("/api/v1/namespaces/secret/"));
    let some = Ledgers { namespaces: named(&["tools"]), partial: true };
    assert_eq!(bench.look(&[]).await, some);
    bench.forbid(|request| request.path == "/api/v1/namespaces");
    assert_eq!(bench.look(&[]).await, Ledgers { namespaces: named(&[]), partial: true });
    assert_eq!(bench.look(&["tools", "secret"]).await, some, "those that are likely are looked into all the same");
}

#[tokio::test]
async fn a_ledger_that_has_no_labels_is_given_them_when_it_is_opened_and_stays_the_same_ledger() {
    let bench = Bench::start().await;
    bench.config_map("tools", "allclear-ledger", &json!({"team": "edge"}));
    let uid = || bench.api.get(Kind::ConfigMap, "tools", "allclear-ledger").unwrap()["metadata"]["uid"].clone();
    let before = uid();
    let ledger = KubernetesLedger::new(bench.clients.request.clone(), "tools");
    assert_eq!(json!(ledger.open().await.unwrap().origin.0), before);
    let labels = bench.api.get(Kind::ConfigMap, "tools", "allclear-ledger").unwrap()["metadata"]["labels"].clone();
    let all = json!({"app.kubernetes.io/managed-by": "allclear", "allclear.dev/part": "ledger", "team": "edge"});
    assert_eq!((labels, uid()), (all, before));
    let writes = bench.api.writes();
    ledger.open().await.unwrap();
    assert_eq!(bench.api.writes(), writes, "once is enough");

    // Somebody who may read and not write still gets to see what is in it.
    bench.config_map("infra", "allclear-ledger", &json!({}));
    bench.forbid(|request| request.method == "PUT");
    KubernetesLedger::new(bench.clients.request.clone(), "infra").open().await.unwrap();
}
