//! The endpoints for other programs, and the real program: two replicas, of which the one that stands by takes the request and the other
//! one acts (fault row PF22).

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;
use serde_json::{Value, json};
use sha2::Sha256;
use support::process::Process;

use crate::leader::until;
use crate::scene::{NAME, Scene, image};

const STAGING: &str = "staging";
const PROD: &str = "prod";
const NAMESPACE: &str = "shop";
const PATH: &str = "/approval/shop/web/prod/1.1";

/// A key, and what is left of it in base64: neither may be in a log.
const KEY: &str = "a-key-that-no-log-may-show";

/// Everything at 1.0 in staging and in prod, and a Pipeline that asks before prod.
async fn scene() -> Scene {
    let world = World::new(Timings::IMMEDIATE, None).await.expect("loopback is there");
    world.kubernetes.set_installed("allclear.dev", true);
    for namespace in [STAGING, PROD] {
        world.kubernetes.seed(namespace, NAME, &image("1.0"), 3).expect("the cluster takes it");
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": NAMESPACE, "name": "hooks"},
        "data": {"hmac-key": BASE64.encode(format!("{KEY}\n"))},
    });
    let pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "environments": [
                {"name": STAGING, "targets": [{"namespace": STAGING}]},
                {"name": PROD, "targets": [{"namespace": PROD}]},
            ],
            "promotion": {"manual": true, "strategy": {"notification": {}, "secretRef": {"name": "hooks"}}},
        },
    });
    for object in [secret, pipeline] {
        world.kubernetes.apply(object).expect("the cluster takes it");
    }
    Scene::of(world)
}

fn replica(scene: &Scene, pod: &str) -> Process {
    let mut environment = scene.environment.clone();
    environment.insert("POD_NAME".to_owned(), pod.to_owned());
    environment.insert("ALLCLEAR__LEADER__LEASE".to_owned(), "true".to_owned());
    environment.insert("ALLCLEAR__HOOKS__LISTEN".to_owned(), "127.0.0.1:0".to_owned());
    Process::start(&["run"], environment)
}

/// Where a replica takes requests.
fn hooks(replica: &Process) -> SocketAddr {
    let log = replica.log();
    let line = log.iter().find(|line| line.contains(r#""message":"started""#)).expect("it has started");
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    line["hooks"].as_str().expect("it says where").parse().expect("an address")
}

fn prod(scene: &Scene) -> Value {
    let object = scene.world.kubernetes.get(Kind::Pipeline, NAMESPACE, NAME).expect("it is there");
    object["status"]["environments"][PROD].clone()
}

/// One request, to be sent as often as somebody likes.
struct Signed {
    body: String,
    headers: [(&'static str, String); 3],
}

fn signed(ticket: &str) -> Signed {
    let body = json!({"ticket": ticket, "by": "anna"}).to_string();
    let at = Timestamp::now().as_second().to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).expect("any key");
    mac.update(format!("msg_1.{at}.{body}").as_bytes());
    let signature = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
    Signed {
        body,
        headers: [("webhook-id", "msg_1".to_owned()), ("webhook-timestamp", at), ("webhook-signature", signature)],
    }
}

async fn send(to: SocketAddr, path: &str, request: &Signed) -> u16 {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(40)).build().expect("a client");
    let mut post = client.post(format!("http://{to}{path}")).body(request.body.clone());
    for (name, value) in &request.headers {
        post = post.header(*name, value);
    }
    post.send().await.expect("an answer").status().as_u16()
}

fn ticket(scene: &Scene) -> Option<String> {
    prod(scene)["waitingApproval"]["ticket"].as_str().map(str::to_owned)
}

fn phase(scene: &Scene) -> Value {
    prod(scene)["promotion"]["phase"].clone()
}

fn set(scene: &Scene, namespace: &str, tag: &str) {
    scene.world.kubernetes.set_image(namespace, NAME, NAME, &image(tag)).expect("the cluster takes it");
}

// Faults: PF22
#[tokio::test]
async fn a_yes_to_the_replica_that_stands_by_moves_prod_once_and_is_nothing_later() {
    let scene = scene().await;
    let first = replica(&scene, "first");
    until("first works", &[&first], async || first.state().await["synced"] == true).await;
    let second = replica(&scene, "second");
    let stands_by =
        async || second.state().await["standing_by"].as_str().is_some_and(|leader| leader.starts_with("first_"));
    until("second stands by", &[&first, &second], stands_by).await;
    let both = [&first, &second];
    until("the Pipeline is judged", &both, async || prod(&scene)["targets"][0]["ready"] == true).await;

    set(&scene, STAGING, "1.1");
    until("a person is asked", &both, async || ticket(&scene).is_some()).await;
    let asked = ticket(&scene).expect("it is asked");
    let to = hooks(&second);
    let yes = signed(&asked);
    assert_eq!(send(to, PATH, &signed("0123456789ab")).await, 422, "another ticket");
    assert_eq!(phase(&scene), "Waiting");
    // 204: it was told. There is no pull request to point to.
    assert_eq!(send(to, PATH, &yes).await, 204, "{}\n{}", first.tail(), second.tail());
    assert_eq!(prod(&scene)["promotion"]["approval"]["by"], "anna, with the key of Secret hooks");
    assert_eq!(send(to, PATH, &yes).await, 200, "the same again");
    set(&scene, PROD, "1.1");
    until("prod is at 1.1", &both, async || phase(&scene) == "Completed").await;

    // There and back again: 1.1 comes once more, and what was signed for it before is nothing.
    for (tag, namespaces) in [("1.2", &[STAGING][..]), ("1.0", &[PROD])] {
        namespaces.iter().for_each(|namespace| set(&scene, namespace, tag));
    }
    until("1.2 is asked about", &both, async || prod(&scene)["waitingApproval"]["revision"] == "1.2").await;
    assert_eq!(send(to, PATH, &yes).await, 422, "the revision has moved on");
    assert_eq!(send(to, "/approval/shop/web/prod/1.2", &yes).await, 422, "the ticket is another question's");
    set(&scene, STAGING, "1.1");
    let asks_again =
        async || prod(&scene)["waitingApproval"]["revision"] == "1.1" && ticket(&scene).as_ref() != Some(&asked);
    until("1.1 is asked about again", &both, asks_again).await;
    let before = scene.world.kubernetes.get(Kind::Pipeline, NAMESPACE, NAME).expect("it is there")["metadata"].clone();
    assert_eq!(send(to, PATH, &yes).await, 422, "the same revision, another question");
    let after = scene.world.kubernetes.get(Kind::Pipeline, NAMESPACE, NAME).expect("it is there")["metadata"].clone();
    assert_eq!(before["annotations"], after["annotations"]);
    // What was written last may not be read yet.
    let told = async || {
        let said = second.log();
        let refused = said.iter().filter(|line| line.contains("a request was refused")).count();
        refused >= 4 && said.iter().any(|line| line.contains("a request said yes"))
    };
    until("all refusals are in the log", &both, told).await;
    let said = second.log();
    let shown = [KEY.to_owned(), BASE64.encode(KEY), yes.headers[2].1.clone()];
    let leaks =
        first.log().into_iter().chain(said).filter(|line| shown.iter().any(|secret| line.contains(secret.as_str())));
    assert_eq!(leaks.count(), 0);
}
