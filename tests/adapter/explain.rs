//! `explain` through the real adapters, against our stand-ins of the API server and of CloudFront.

use std::sync::Arc;

use allclear::adapters::cloudfront::Timeouts;
use allclear::adapters::kubernetes::{Cluster, Scope, Tempo};
use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use allclear::cli::answer::{Outcome, Output};
use allclear::cli::explain::explain;
use allclear::looking::whose::Whose;
use allclear::looking::{About, Question, Sources};
use kernel::id::WorkloadId;
use purge::bounds::policy::Policy;
use purge::purges::accounts::Accounts;
use purge::records::record_codec::decode;
use sandbox::cloudfront::{self as stand_in, CloudFrontStandIn, Distribution};
use sandbox::http::Server;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use crate::cloudfront::adapter;
use crate::served;

/// A cluster with `shop/web` behind `www.example.com`, and an account with a distribution for it.
struct World {
    api: KubernetesStandIn,
    server: Server,
    account: Arc<CloudFrontStandIn>,
    // Serves as long as it lives.
    _edge: Server,
    sources: Sources,
}

impl World {
    async fn start() -> Self {
        let api = KubernetesStandIn::new(StandInOptions::default());
        for namespace in ["shop", "allclear"] {
            api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).unwrap();
        }
        api.seed("shop", "web", "shop/web:1.2.3", 2).unwrap();
        api.expose("shop", "web", "www.example.com").unwrap();
        let server = api.start().await.unwrap();
        let clients = served::clients(&api, &server).await;

        let account = Arc::new(CloudFrontStandIn::new(stand_in::Options::default()));
        account.add_distribution(Distribution::new("E1").alias("www.example.com"));
        let edge = Server::start(account.clone()).await.unwrap();
        let cdn = adapter(&edge.url(), "AKIDONE", Timeouts::default()).await;
        let sources = Sources {
            cluster: Arc::new(Cluster::new(&clients, Scope::All, Tempo::default())),
            ledger: Arc::new(KubernetesLedger::new(clients.request.clone(), "allclear")),
            cdn: Arc::new(cdn),
            accounts: Accounts::default(),
            group: None,
            installation: None,
            desk: None,
            repos: None,
            own_namespace: "shop".to_owned(),
            ledger_place: "namespace allclear".to_owned(),
            us: About { member: "self".to_owned(), group: "default".to_owned(), dry_run: false },
            policy: Policy::default(),
            whose: Whose::Itself,
        };
        Self { api, server, account, _edge: edge, sources }
    }

    async fn ask(&self, name: Option<&str>, output: Output) -> Outcome {
        let question = Question { namespace: None, name: name.map(str::to_owned) };
        explain(&self.sources, &question, output).await
    }

    async fn json(&self, name: &str) -> Value {
        let outcome = self.ask(Some(name), Output::Json).await;
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        serde_json::from_str(&outcome.out).unwrap()
    }

    /// Answers all requests for this resource with 403.
    fn forbid(&self, resource: &'static str) {
        served::forbid(&self.server, "not for you", move |request| request.path.contains(resource));
    }
}

fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

#[tokio::test]
async fn a_workload_is_explained_from_the_cluster_and_the_account_and_nothing_is_written() {
    let world = World::start().await;
    let before = world.api.writes();
    let answer = world.json("web").await;
    assert_eq!(answer["deployment"]["images"]["web"], "shop/web:1.2.3");
    assert_eq!(answer["site"]["hosts"]["www.example.com"][0], "Ingress shop/web rule");
    assert_eq!(answer["distributions"]["matched"][0]["why"][0], "alias www.example.com");
    assert_eq!(answer["would"], "/* of E1");
    let missing = answer["record"]["missing"].as_str().unwrap();
    assert!(missing.starts_with("there is no ledger in namespace allclear; ledger.namespace"), "{missing}");
    assert_eq!(world.api.writes(), before);
    assert!(world.api.list(Kind::ConfigMap, "allclear").is_empty());
}

#[tokio::test]
async fn the_record_is_read_from_the_ledger_of_the_running_allclear() {
    let world = World::start().await;
    let uid = world.api.get(Kind::Deployment, "shop", "web").unwrap()["metadata"]["uid"].clone();
    let json = json!({
        "r": 1, "u": uid, "s": 7, "v": {"web": "shop/web:1.2.3"}, "c": "changed", "k": 7,
        "h": [{"s": 7, "c": "web: 1.2.2 → 1.2.3", "o": "purged", "p": [["E1", "I1"]]}],
    });
    world.sources.ledger.open().await.unwrap();
    world.sources.ledger.store(&web(), &decode(json.to_string().as_bytes()).unwrap()).await.unwrap();

    let answer = world.json("web").await;
    assert_eq!(answer["state"], "web: 1.2.2 → 1.2.3: purged (E1 by I1)");
    assert_eq!(answer["record"]["last_purge"], "web: 1.2.2 → 1.2.3: purged (E1 by I1)");
    let listing = world.ask(None, Output::Table).await;
    assert_eq!(listing.code, 0, "{}", listing.out);
    assert!(listing.out.contains("shop       web   1.2.3    complete"), "{}", listing.out);
}

#[tokio::test]
async fn pods_say_why_a_rollout_waits() {
    let world = World::start().await;
    let waiting = json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
    world
        .api
        .put(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "shop", "name": "web-x4", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "shop/web:1.2.3"}]},
            "status": waiting,
        }))
        .unwrap();
    let status = json!({"status": {"updatedReplicas": 1, "availableReplicas": 1}});
    world.api.patch(Kind::Deployment, "shop", "web", &status).unwrap();
    let answer = world.json("web").await;
    let words = answer["deployment"]["waits_for"].as_str().unwrap();
    assert!(words.ends_with("; web-x4: ImagePullBackOff"), "{words}");
}

#[tokio::test]
async fn missing_permissions_and_an_unwilling_account_hide_nothing_else() {
    let world = World::start().await;
    world.forbid("/ingresses");
    world.account.deny(true);
    let answer = world.json("web").await;
    assert_eq!(answer["deployment"]["images"]["web"], "shop/web:1.2.3");
    assert_eq!(answer["paths"]["items"][0], "/*");
    let missing = |part: &str| answer[part]["missing"].as_str().unwrap().to_owned();
    let unread = answer["site"]["unread"][0].as_str().unwrap();
    assert!(unread.contains("ingresses") && answer["would"].is_null(), "{answer:#}");
    assert!(missing("distributions").contains("distributions"), "{}", missing("distributions"));
}

#[tokio::test]
async fn a_slip_of_the_pen_is_corrected() {
    let world = World::start().await;
    let outcome = world.ask(Some("wbe"), Output::Table).await;
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.err, "error: there is no Deployment wbe in namespace shop; did you mean shop/web?\n");
}

#[tokio::test]
async fn a_missing_right_is_to_be_given_to_whoever_asked() {
    let world = World::start().await;
    let message = "pods is forbidden: User \"jane\" cannot list resource \"pods\"";
    served::forbid(&world.server, message, |request| request.path.ends_with("/pods"));
    world.api.set_image("shop", "web", "web", "shop/web:1.2.4").unwrap();
    let seen = world.json("web").await.to_string();
    assert!(seen.contains("allow the user jane to list pods in shop"), "{seen}");
    assert!(!seen.contains("our service account"), "{seen}");
}
