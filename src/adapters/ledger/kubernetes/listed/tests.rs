//! What a start costs the ledger's own object, against a stand-in of the API that counts.

use std::sync::Arc;

use sandbox::http::{Action, Fault, Server, When};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options};
use serde_json::json;

use super::*;
use crate::adapters::ledger::kubernetes::META_NAME;
use kernel::id::{Seq, WorkloadId};
use purge::ports::Ledger;
use purge::records::record::{Record, Records};

const NAMESPACE: &str = "allclear";

struct Cluster {
    api: KubernetesStandIn,
    server: Server,
}

impl Cluster {
    async fn start() -> Self {
        let api = KubernetesStandIn::new(Options::default());
        api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).unwrap();
        let server = api.start().await.unwrap();
        Self { api, server }
    }

    async fn opened(&self) -> KubernetesLedger {
        let mut config = kube::Config::new(self.server.url().parse().unwrap());
        config.default_retry = false;
        let ledger = KubernetesLedger::new(kube::Client::try_from(config).unwrap(), NAMESPACE);
        ledger.open().await.unwrap();
        ledger
    }

    /// The shards that the ledger's own object counts, and how many of these are the objects that there are.
    fn counted(&self) -> (usize, usize) {
        let maps = self.api.list(Kind::ConfigMap, NAMESPACE);
        let meta = maps.iter().find(|map| map["metadata"]["name"] == META_NAME).unwrap();
        let entry: Entry = serde_json::from_str(meta["data"][LISTED_KEY].as_str().unwrap()).unwrap();
        let is_there = |(index, uid): &(&usize, &String)| {
            let shard = maps.iter().find(|map| map["metadata"]["name"] == shard_name(**index));
            shard.is_some_and(|shard| shard["metadata"]["uid"].as_str().unwrap().starts_with(uid.as_str()))
        };
        (entry.shards.len(), entry.shards.iter().filter(is_there).count())
    }
}

/// First records of so many workloads of this name.
fn found(name: &str, count: usize) -> Records {
    let id = |number| WorkloadId::deployment("shop", format!("{name}-{number}"));
    (0..count).map(|number| (id(number), Arc::new(Record { revision: 1, ..Record::first(Seq(1)) }))).collect()
}

fn scope(name: &str) -> BTreeSet<Scope> {
    BTreeSet::from([Scope::of(Some(name))])
}

/// Goal: shards that are created at one moment are noted together, and each before its records count as stored. Method: a ledger that has
/// a listed scope already, which is what makes it note shards, takes the first records of 2,000 workloads.
#[tokio::test]
async fn the_shards_of_one_moment_are_noted_by_few_writes() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store_listed(&scope("blog")).await.unwrap();
    let before = cluster.api.writes();
    assert!(ledger.store_all(&found("web", 2_000)).await.is_empty());
    let writes = cluster.api.writes() - before;
    assert_eq!(cluster.counted(), (SHARDS, SHARDS), "all are noted by now");
    assert!(writes <= 100 - 3, "{writes} writes of 64 shards and of the object that counts them");
}

/// Goal: journals that begin at one moment, as where every shard is written at once, are noted together, and no note overwrites another.
#[tokio::test]
async fn the_journals_of_one_moment_are_noted_by_few_writes() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store_listed(&scope("blog")).await.unwrap();
    let before = cluster.api.writes();
    let begun: Vec<ConfigMap> = (0..SHARDS)
        .map(|index| {
            let name = format!("{}-j1", shard_name(index));
            serde_json::from_value(json!({"metadata": {"name": name, "uid": format!("{index:08}-b97c")}})).unwrap()
        })
        .collect();
    let notes = futures_util::future::join_all(begun.iter().map(|map| ledger.note_beside(map, "3"))).await;
    assert!(notes.iter().all(Result::is_ok), "{notes:?}");
    let meta =
        cluster.api.list(Kind::ConfigMap, NAMESPACE).into_iter().find(|map| map["metadata"]["name"] == META_NAME);
    let meta: ConfigMap = serde_json::from_value(meta.unwrap()).unwrap();
    assert_eq!(known(&meta).moved, begun.iter().map(|map| (map.metadata.name.clone().unwrap(), brief(map))).collect());
    assert_eq!(meta.data.unwrap()[LAYOUT_KEY], "3");
    let writes = cluster.api.writes() - before;
    assert!(writes <= 3, "{writes} writes of the object that counts them");
}

/// Goal: what is written at a start, each for itself, is written at once: no writer of this process takes a turn from another.
#[tokio::test]
async fn writers_of_the_ledgers_own_object_do_not_refuse_each_other() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    let names: Vec<_> = (0..8).map(|number| format!("shop-{number}")).collect();
    let scopes: Vec<_> = names.iter().map(|name| scope(name)).collect();
    let stored = futures_util::future::join_all(scopes.iter().map(|scopes| ledger.store_listed(scopes))).await;
    assert!(stored.iter().all(Result::is_ok), "{stored:?}");
    let listed = ledger.open().await.unwrap().listed;
    assert!(names.iter().all(|name| listed.has(&Scope::of(Some(name)))), "{listed:?}");
}

#[tokio::test]
async fn a_shard_that_could_not_be_noted_is_noted_with_the_next_one() {
    let cluster = Cluster::start().await;
    let ledger = cluster.opened().await;
    ledger.store_listed(&scope("blog")).await.unwrap();
    let fault = Fault::once(When::Before, Action::Cut);
    let is_note = |request: &sandbox::http::Request| {
        request.method == http::Method::PUT && request.path.ends_with(&format!("/{META_NAME}"))
    };
    cluster.server.inject(fault.matching(is_note));
    let all = found("web", 3);
    let [first, second] = ["web-1", "web-2"].map(|name| WorkloadId::deployment("shop", name));
    ledger.store(&first, &all[&first]).await.unwrap();
    assert_eq!(cluster.counted(), (0, 0), "it is stored all the same");
    ledger.store(&second, &all[&second]).await.unwrap();
    assert_eq!(cluster.counted(), (2, 2));
}

#[tokio::test]
async fn a_restart_without_news_writes_nothing() {
    let cluster = Cluster::start().await;
    let settings = |timeout: &str, at_ms: u64| {
        json!({"version": "1", "at_ms": at_ms, "settings": {"rollout.timeout": timeout}}).to_string()
    };
    let ledger = cluster.opened().await;
    ledger.store_in_force(&settings("1m", 1)).await.unwrap();
    ledger.store_listed(&scope("shop")).await.unwrap();
    let before = cluster.api.writes();
    let next = cluster.opened().await;
    next.store_in_force(&settings("1m", 2)).await.unwrap();
    next.store_listed(&scope("shop")).await.unwrap();
    assert_eq!(cluster.api.writes(), before);
    next.store_in_force(&settings("2m", 3)).await.unwrap();
    assert_eq!(next.in_force().await.unwrap(), Some(settings("2m", 3)));
}
