//! Clusters in which apps are looked at, by kubeconfigs in Secrets: a second stand-in is the leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allclear::adapters::kubernetes::kubeconfig::Origin;
use allclear::adapters::kubernetes::leaf::Clusters;
use allclear::adapters::needs::Needed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use futures_util::future::poll_immediate;
use kernel::unreadable::Unreadable;
use objects::apps::app::{AppKind, ClusterKey, LeafId, LeafKind, TargetKey};
use objects::apps::leaf::{Collection, News};
use objects::ports::pipeline::{Leaf, Leaves, Link};
use objects::ports::repo::Needs;
use purge::ports::{Flow, PortError};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use super::{Bench, PATIENCE, brisk};

fn eu(kind: LeafKind) -> ClusterKey {
    ClusterKey::Leaf(LeafId { kind, namespace: "shop".to_owned(), name: "eu-1".to_owned() })
}

fn target(api_version: &str, kind: &str, name: &str) -> TargetKey {
    let app = AppKind::new(api_version, kind);
    let cluster = eu(LeafKind::Secret);
    TargetKey::new(cluster, app, "prod", name)
}

fn collection(target: &TargetKey, namespace: Option<&str>) -> Collection {
    let AppKind { api_version, kind, .. } = target.app.clone();
    Collection { api_version, kind, namespace: namespace.map(str::to_owned) }
}

fn secret(name: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": name},
        "data": {"value": STANDARD.encode(kubeconfig)},
    })
}

fn a_stateful_set(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "prod", "name": name},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "db", "image": image}]}}},
        "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "currentRevision": "a", "updateRevision": "a",
        },
    })
}

async fn next<T>(flow: &mut Flow<T>) -> T {
    tokio::time::timeout(PATIENCE, flow.next()).await.expect("it is said in time").expect("it is said for ever")
}

async fn up(flow: &mut Flow<Link>) -> Arc<dyn Leaf> {
    match next(flow).await {
        Link::Up(leaf) => leaf,
        Link::Down(error) => panic!("{error}"),
    }
}

async fn down(flow: &mut Flow<Link>) -> String {
    match next(flow).await {
        Link::Up(_) => panic!("it is up"),
        Link::Down(error) => error.to_string(),
    }
}

/// What a watch says until it says this.
async fn until(flow: &mut Flow<News>, end: impl Fn(&News) -> bool) -> Vec<News> {
    let mut said = Vec::new();
    while !said.last().is_some_and(&end) {
        said.push(next(flow).await);
        assert!(said.len() < 200, "waited in vain; the last was {:?}", said.last());
    }
    said
}

/// The revisions that were seen, by name.
fn seen(said: &[News]) -> Vec<(String, String)> {
    let looks = said.iter().flat_map(|news| if let News::Seen(looks) = news { &looks[..] } else { &[] });
    let brief = |(target, look): &(TargetKey, Result<objects::apps::app::Look, Unreadable>)| {
        let revision = |look: &objects::apps::app::Look| match &look.present.revision {
            Ok(revision) => revision.0.clone(),
            Err(why) => why.to_string(),
        };
        (target.name.clone(), look.as_ref().map_or_else(ToString::to_string, revision))
    };
    looks.map(brief).collect()
}

/// This cluster, and a leaf whose kubeconfig is in it.
async fn start() -> (Bench, Bench, Clusters) {
    let (here, leaf) = (Bench::start().await, Bench::start().await);
    here.api.apply(secret("eu-1", &leaf.api.kubeconfig(&leaf.server))).unwrap();
    let clusters = Clusters::new(here.clients.clone(), brisk(), Origin::StandIn);
    (here, leaf, clusters)
}

#[tokio::test]
async fn what_targets_name_is_watched_and_read_in_another_cluster() {
    let (_here, other, clusters) = start().await;
    other.api.apply(a_stateful_set("db", "db:16")).unwrap();
    other.api.apply(a_stateful_set("else", "else:1")).unwrap();
    let leaf = up(&mut clusters.link(&eu(LeafKind::Secret))).await;
    let db = target("apps/v1", "StatefulSet", "db");
    leaf.want(&BTreeSet::from([db.clone()]));
    let mut watch = leaf.watch(&collection(&db, Some("prod")));
    let said = until(&mut watch, |news| *news == News::Synced).await;
    assert_eq!((&said[0], seen(&said)), (&News::Restarted, vec![("db".to_owned(), "16".to_owned())]));
    other.api.apply(a_stateful_set("else", "else:2")).unwrap();
    other.api.apply(a_stateful_set("db", "db:17")).unwrap();
    let said = until(&mut watch, |news| seen(std::slice::from_ref(news)) == [("db".to_owned(), "17".to_owned())]).await;
    assert!(said.iter().all(|news| matches!(news, News::Seen(_))), "{said:?}");
    let look = leaf.read(&db).await.unwrap().expect("it is there");
    assert_eq!(look.present.unready.as_deref(), Some("its controller has not acted on generation 2 yet"));
    other.api.delete(Kind::StatefulSet, "prod", "db").unwrap();
    until(&mut watch, |news| *news == News::Gone { namespace: "prod".to_owned(), name: "db".to_owned() }).await;
    assert_eq!(leaf.read(&db).await.unwrap(), None);
    assert!(other.server.seen().iter().all(|seen| seen.method == "GET"), "a leaf is only read");
}

/// What `objects::apps::leaf` counts on: a target is late only if it was wanted after it was heard that a listing begins.
#[tokio::test]
async fn all_that_is_wanted_when_a_listing_is_heard_to_begin_is_decoded_from_it() {
    let (_here, other, clusters) = start().await;
    ["db", "queue"].iter().for_each(|name| drop(other.api.apply(a_stateful_set(name, "some:16")).unwrap()));
    let leaf = up(&mut clusters.link(&eu(LeafKind::Secret))).await;
    let [db, queue] = ["db", "queue"].map(|name| target("apps/v1", "StatefulSet", name));
    let asked = || {
        let seen = other.server.seen();
        seen.iter().filter(|seen| seen.path.ends_with("/namespaces/prod/statefulsets")).count()
    };
    // Asked for, and not heard of: an answer that was faster than the look at the server says nothing here.
    let mut watch = loop {
        leaf.want(&BTreeSet::from([db.clone()]));
        let (before, mut watch) = (asked(), leaf.watch(&collection(&db, Some("prod"))));
        let mut is_early = false;
        while asked() == before && !is_early {
            is_early = poll_immediate(watch.next()).await.is_some();
            tokio::task::yield_now().await;
        }
        if !is_early {
            break watch;
        }
    };
    leaf.want(&BTreeSet::from([db, queue]));
    let said = until(&mut watch, |news| *news == News::Synced).await;
    assert_eq!((&said[0], seen(&said).len()), (&News::Restarted, 2), "{said:?}");
}

// Faults: PF5
#[tokio::test]
async fn a_kubeconfig_is_watched_by_its_name_and_followed() {
    let (here, leaf, clusters) = start().await;
    let mut link = clusters.link(&eu(LeafKind::Secret));
    up(&mut link).await;
    let asked = here.seen(|seen| seen.path.contains("/secrets"));
    assert!(!asked.is_empty());
    for seen in asked {
        assert_eq!(seen.path, "/api/v1/namespaces/shop/secrets");
        assert_eq!(seen.query.get("fieldSelector").map(String::as_str), Some("metadata.name=eu-1"));
    }
    here.api.apply(secret("eu-1", "token: s3cr3t: s3cr3t")).unwrap();
    let why = down(&mut link).await;
    assert!(
        why.starts_with("failed to use the kubeconfig of Secret/shop/eu-1: it is not valid") && !why.contains("s3cr3t"),
        "{why}"
    );
    let exec = leaf.api.kubeconfig(&leaf.server).replace("\"user\":{}", "\"user\":{\"exec\":{\"command\":\"touch\"}}");
    here.api.apply(secret("eu-1", &exec)).unwrap();
    let why = down(&mut link).await;
    assert!(why.contains("it may not contain exec"), "{why}");
    here.api.delete(Kind::Secret, "shop", "eu-1").unwrap();
    let why = down(&mut link).await;
    assert!(why.ends_with("secrets \"eu-1\" not found"), "{why}");
    here.api.apply(secret("eu-1", &leaf.api.kubeconfig(&leaf.server))).unwrap();
    up(&mut link).await;
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_said_to_be_so() {
    let here = Bench::start().await;
    let clusters = Clusters::new(here.clients.clone(), brisk(), Origin::StandIn);
    let mut link = clusters.link(&eu(LeafKind::Secret));
    assert!(down(&mut link).await.ends_with("secrets \"eu-1\" not found"));
    here.refuse(403, u32::MAX, |request| request.path.contains("/secrets"));
    let mut link = clusters.link(&eu(LeafKind::Secret));
    let why = down(&mut link).await;
    assert!(why.contains("list secrets in shop") || why.contains("watch secrets in shop"), "{why}");
}

#[tokio::test]
async fn a_gitops_cluster_leads_to_the_secret_that_it_names_once_it_is_ready() {
    let (here, leaf, clusters) = start().await;
    here.api.set_installed("gitops.weave.works", true);
    here.api.apply(secret("eu-kubeconfig", &leaf.api.kubeconfig(&leaf.server))).unwrap();
    let cluster = |spec: Value, ready: &str| {
        json!({
            "apiVersion": "gitops.weave.works/v1alpha1", "kind": "GitopsCluster",
            "metadata": {"namespace": "shop", "name": "eu-1"}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    let mut link = clusters.link(&eu(LeafKind::GitopsCluster));
    assert!(down(&mut link).await.ends_with("GitopsCluster.gitops.weave.works \"eu-1\" not found"));
    here.api.put(cluster(json!({"capiClusterRef": {"name": "eu"}}), "False")).unwrap();
    assert!(down(&mut link).await.starts_with("Target cluster 'GitopsCluster/shop/eu-1' not ready"));
    here.api.put(cluster(json!({"capiClusterRef": {"name": "eu"}}), "True")).unwrap();
    up(&mut link).await;
    here.api.put(cluster(json!({"secretRef": {"name": "gone"}}), "True")).unwrap();
    assert!(down(&mut link).await.ends_with("secrets \"gone\" not found"));
}

#[tokio::test]
async fn a_kind_is_found_by_discovery_also_when_it_comes_later_or_in_another_version() {
    let (_here, other, clusters) = start().await;
    let leaf = up(&mut clusters.link(&eu(LeafKind::Secret))).await;
    let release = target("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "web");
    leaf.want(&BTreeSet::from([release.clone()]));
    let mut watch = leaf.watch(&collection(&release, None));
    let News::Trouble(error) = next(&mut watch).await else { panic!("it is not served") };
    let words = error.to_string();
    assert!(words.starts_with("failed to find the kind HelmRelease of helm.toolkit.fluxcd.io/v2beta1"), "{words}");
    assert_eq!(leaf.read(&release).await.unwrap_err().to_string(), words);
    other.api.set_installed("helm.toolkit.fluxcd.io", true);
    let object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"namespace": "prod", "name": "web"},
        "status": {
            "observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}],
            "history": [{"version": 1, "chartVersion": "6.5.0", "status": "deployed"}],
        },
    });
    other.api.put(object).unwrap();
    let said = until(&mut watch, |news| *news == News::Synced).await;
    assert_eq!(seen(&said), [("web".to_owned(), "6.5.0".to_owned())]);
    assert_eq!(leaf.read(&release).await.unwrap().unwrap().present.unready, None);
    // And when it goes, that is said.
    other.api.set_installed("helm.toolkit.fluxcd.io", false);
    other.api.close_watches();
    let said = until(&mut watch, |news| matches!(news, News::Trouble(error) if error.to_string() == words)).await;
    assert!(said.len() < 10, "{said:?}");
}

/// A name that others have chosen may lead to this machine; kube's own connector would go there.
#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
    let (here, other, _) = start().await;
    let clusters = Clusters::new(here.clients.clone(), brisk(), Origin::Others);
    let local = format!("https://localhost:{}", other.server.address().port());
    let user = "\"user\":{\"token\":\"t\"}";
    here.api.apply(secret("eu-1", &other.api.kubeconfig_at(&local).replace("\"user\":{}", user))).unwrap();
    let leaf = up(&mut clusters.link(&eu(LeafKind::Secret))).await;
    let words = leaf.read(&target("apps/v1", "Deployment", "web")).await.unwrap_err().to_string();
    assert!(words.contains("an address of this machine itself"), "{words}");
    // A token that cannot be sent is a refusal, too, and no panic.
    let two_lines =
        other.api.kubeconfig_at("https://eu.example.com").replace("\"user\":{}", "\"user\":{\"token\":\"a\\nb\"}");
    here.api.apply(secret("eu-1", &two_lines)).unwrap();
    assert!(down(&mut clusters.link(&eu(LeafKind::Secret))).await.contains("the token has characters"));
}

/// The same clusters, as runs of Repos look at what they need.
#[tokio::test]
async fn what_a_run_needs_is_read_here_and_elsewhere_and_trouble_costs_itself_only() {
    let (here, other, clusters) = start().await;
    here.api.set_installed("allclear.dev", true);
    let applied = json!([{"type": "Ready", "status": "True", "reason": "Applied", "message": "", "lastTransitionTime": "2026-11-22T22:11:00Z"}]);
    for (name, conditions) in [("network", applied), ("new", json!([]))] {
        let spec = json!({"url": "https://git.example.com/platform/network.git"});
        let object = json!({
            "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"namespace": "prod", "name": name},
            "spec": spec, "status": {"observedGeneration": 1, "conditions": conditions},
        });
        here.api.put(object).unwrap();
    }
    other.api.apply(a_stateful_set("db", "db:16")).unwrap();
    let repo = |cluster: ClusterKey, name: &str| {
        TargetKey::new(cluster, AppKind::new("allclear.dev/v1alpha1", "Repo"), "prod", name)
    };
    let gone =
        ClusterKey::Leaf(LeafId { kind: LeafKind::Secret, namespace: "shop".to_owned(), name: "gone".to_owned() });
    let needs = [
        repo(ClusterKey::Here, "network"),
        repo(ClusterKey::Here, "new"),
        repo(ClusterKey::Here, "missing"),
        TargetKey::new(ClusterKey::Here, AppKind::new("none.example.com/v1", "None"), "prod", "x"),
        target("apps/v1", "StatefulSet", "db"),
        repo(gone, "network"),
    ];
    let needed = Needed::new(Arc::new(clusters));
    // The second time kinds are known.
    for _ in 0..2 {
        let seen: BTreeMap<TargetKey, String> = needed.see(&needs).await.into_iter().map(brief).collect();
        let said: Vec<&str> = needs.iter().map(|need| seen[need].as_str()).collect();
        assert_eq!(said[..5], ["ready", "it has no condition Ready", "absent", "an error", "ready"]);
        assert_eq!((said[5], seen.len()), ("an error", needs.len()));
    }
}

fn brief((need, read): (TargetKey, Result<Option<objects::apps::app::Look>, PortError>)) -> (TargetKey, String) {
    let words = match read {
        Ok(Some(look)) => look.present.unready.unwrap_or_else(|| "ready".to_owned()),
        Ok(None) => "absent".to_owned(),
        Err(_) => "an error".to_owned(),
    };
    (need, words)
}
