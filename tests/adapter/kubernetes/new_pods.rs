//! New pods that are asked what is right: found by the API, and asked at their own addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::edge_look::EdgeLook;
use allclear::adapters::edge_sight::EdgeAndPods;
use allclear::adapters::http::{Egress, NoLookup, Settings};
use proof::asked::{Answers, Body, Page, Question, QuestionId, REQUESTS_MAX, Reply};
use purge::ports::EdgeSight;
use sandbox::kubernetes::{Kind, Timings};
use serde_json::{Value, json};

use super::{Bench, web};
use crate::edge_look::{Peer, ok};

/// Old pods take this long to end.
const GRACE: Duration = Duration::from_secs(30);

/// A pod that answers this.
async fn serving(version: &'static str) -> Peer {
    Peer::start(move |_| ok("", version)).await
}

/// A new version of `web`, whose new pods are these and whose old ones have not ended.
async fn rolled_out(new: &[&Peer]) -> Bench {
    let bench = Bench::start().await;
    bench.api.set_timings(Timings { pod_gone: GRACE, ..Timings::IMMEDIATE });
    let replicas = new.len().try_into().unwrap();
    bench.api.deploy("shop", "web", "shop/web:1", replicas).unwrap();
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    target(&bench, &json!("web"));
    bench.api.settle();
    bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
    bench.api.settle();
    let mut new = new.iter();
    for mut pod in bench.api.list(Kind::Pod, "shop") {
        // Nobody listens where the old ones are.
        let is_old = !pod["metadata"]["deletionTimestamp"].is_null();
        let address = if is_old { SocketAddr::from(([127, 0, 0, 1], 1)) } else { new.next().unwrap().address };
        place(&mut pod, address);
        bench.api.put(pod).unwrap();
    }
    assert!(new.next().is_none(), "as many pods");
    bench
}

fn place(pod: &mut Value, address: SocketAddr) {
    pod["status"]["podIP"] = json!(address.ip().to_string());
    pod["status"]["podIPs"] = json!([{"ip": address.ip().to_string()}]);
    pod["spec"]["containers"][0]["ports"] = json!([{"name": "web", "containerPort": address.port()}]);
}

/// What the Service leads to.
fn target(bench: &Bench, target: &Value) {
    let ports = json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": target}]}});
    bench.api.patch(Kind::Service, "shop", "web", &ports).unwrap();
}

/// What the edge and the pods answer.
async fn ask(bench: &Bench, edge: &Peer, asks_pods: bool) -> Answers {
    ask_by(bench, edge, asks_pods, EdgeAndPods::among_stand_ins).await
}

async fn ask_by(bench: &Bench, edge: &Peer, asks_pods: bool, by: fn(EdgeAndPods) -> EdgeAndPods) -> Answers {
    let settings = Settings { lookup: Arc::new(NoLookup), ..Settings::new(Egress { allow_private: false }) };
    let look = EdgeLook::new(&settings, [], Arc::new(SystemClock::default())).unwrap();
    let look = look.with_stand_ins(BTreeMap::from([("www.example.com".to_owned(), edge.address)]));
    let question = Question {
        id: QuestionId { round: 0, page: 0, look: 1 },
        page: Page::try_from("www.example.com/".to_owned()).unwrap(),
        requests_max: REQUESTS_MAX,
        wants_body: true,
        marker_header: None,
        asks_pods,
    };
    by(EdgeAndPods::new(look, Arc::new(bench.view()))).ask(Some(&web()), &question).await
}

fn bodies(replies: &[Reply]) -> Vec<String> {
    let body = |reply: &Reply| match reply.hops.as_slice() {
        [hop] => match &hop.body {
            Body::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        },
        _ => reply.failure.clone().unwrap(),
    };
    replies.iter().map(body).collect()
}

#[tokio::test]
async fn two_new_pods_are_asked_at_their_addresses_through_the_service_of_their_workload() {
    let (edge, one, other) = (serving("old").await, serving("new").await, serving("new").await);
    let bench = rolled_out(&[&one, &other]).await;
    let answers = ask(&bench, &edge, true).await;
    assert_eq!((bodies(&[answers.edge]), bodies(&answers.pods)), (vec!["old".to_owned()], vec!["new".to_owned(); 2]));
    assert_eq!((one.heads().len(), other.heads().len()), (1, 1), "each of them once");
    assert!(one.heads()[0].contains("\r\nhost: www.example.com\r\n"));
    let before = bench.seen(|_| true).len();
    assert!(ask(&bench, &edge, false).await.pods.is_empty());
    assert_eq!(bench.seen(|_| true).len(), before, "whoever does not ask for pods costs the API server nothing");
}

#[tokio::test]
async fn a_pod_that_says_that_it_is_on_this_machine_is_not_asked() {
    let (edge, one) = (serving("old").await, serving("new").await);
    let bench = rolled_out(&[&one]).await;
    let answers = ask_by(&bench, &edge, true, |sight| sight).await;
    let why = "the address of a new pod, 127.0.0.1, is an address of this machine itself";
    assert!(bodies(&answers.pods).iter().all(|said| said.contains(why)), "{answers:?}");
    assert_eq!((bodies(&[answers.edge]), one.heads().len()), (vec!["old".to_owned()], 0));
}

#[tokio::test]
async fn a_new_pod_that_is_there_alone_is_asked_twice() {
    let (edge, alone) = (serving("old").await, serving("new").await);
    let bench = rolled_out(&[&alone]).await;
    assert_eq!(bodies(&ask(&bench, &edge, true).await.pods), ["new", "new"]);
    assert_eq!(alone.heads().len(), 2);
}

// Faults: P2
#[tokio::test]
async fn where_pods_cannot_be_asked_their_answers_say_why_and_the_edge_is_asked_all_the_same() {
    let (edge, alone) = (serving("old").await, serving("new").await);
    let bench = rolled_out(&[&alone]).await;
    let why = async || {
        let answers = ask(&bench, &edge, true).await;
        assert_eq!(bodies(&[answers.edge]), ["old"]);
        let [one, other] = bodies(&answers.pods).try_into().unwrap();
        assert_eq!(one, other);
        one
    };
    target(&bench, &json!("admin"));
    assert!(why().await.starts_with("no TCP port of Service web leads to a new pod"), "{}", why().await);
    bench.api.patch(Kind::Service, "shop", "web", &json!({"spec": {"selector": {"app": "blog"}}})).unwrap();
    assert_eq!(why().await, "no Service of its namespace selects its new pods");
    bench.refuse(403, 1, |request| request.path.ends_with("/services"));
    assert!(why().await.starts_with("failed to list services in shop"), "{}", why().await);
    bench.refuse(403, 1, |request| request.path.ends_with("/pods"));
    assert!(why().await.starts_with("failed to list pods in shop"));
    bench.api.delete(Kind::Deployment, "shop", "web").unwrap();
    assert_eq!(why().await, "shop/web is gone");
    assert_eq!(alone.heads(), [""; 0], "nothing was guessed");
}
