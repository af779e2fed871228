//! A kind that the operator declares and the real program: it is followed once it may be listed, held by what its status lacks, and purged
//! once when its expression holds.

use sandbox::kubernetes::{Forbidden, Kind};
use serde_json::{Value, json};

use crate::kinds::{purged, record};
use crate::scene::{NAMESPACE, Scene, image};
use purge::records::record::Outcome;

const NAME: &str = "clones";
const HOST: &str = "clones.example.com";
const DISTRIBUTION: &str = "E2CLONES";
const WORD: &str = "clonesets.apps.kruise.io";

const CONFIG: &str = r#"
[[workloads.custom]]
api = "apps.kruise.io/v1alpha1"
kind = "CloneSet"
template = "/spec/template"
selector = "/spec/selector"
hash_label = "controller-revision-hash"
complete = "self.status.updatedReadyReplicas == self.spec.replicas && self.status.replicas == self.spec.replicas"
failed = "has(self.status.phase) && self.status.phase == 'Failed'"
"#;

fn clone_set(tag: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": NAME},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {"containers": [{"name": NAME, "image": image(tag)}]},
            },
        },
    })
}

/// What its controller says of its newest spec.
fn say(scene: &Scene, ready: u32) {
    let object = scene.world.kubernetes.get(Kind::CloneSet, NAMESPACE, NAME).expect("it is there");
    let observed = &object["metadata"]["generation"];
    let status = json!({"observedGeneration": observed, "replicas": 2, "updatedReadyReplicas": ready});
    scene.world.kubernetes.patch(Kind::CloneSet, NAMESPACE, NAME, &json!({"status": status})).expect("it is taken");
}

async fn until_it_says(scene: &Scene, words: &str) {
    let says = async |scene: &Scene| scene.process().state().await.to_string().contains(words);
    scene.wait_until(words, says).await;
}

/// Goal: no purge before the expression holds, one after it; a kind that may not be listed is said once and followed later.
/// Method: a CloneSet of which the test is the controller.
// Faults: W9
#[tokio::test]
async fn a_kind_that_is_declared_is_followed_once_it_may_be_listed_and_purged_once_and_not_before_its_expression_holds()
{
    // What the program writes of it is read here, too.
    purge::testing::declared("apps.kruise.io");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    std::fs::write(&path, CONFIG).expect("it can be written");
    let mut scene = Scene::new().await;
    scene.world.kubernetes.expose(NAMESPACE, NAME, HOST).expect("the cluster takes it");
    scene.add_distribution(DISTRIBUTION, HOST);
    scene.world.kubernetes.set_installed("apps.kruise.io", true);
    for verb in ["get", "list", "watch"] {
        scene.world.kubernetes.forbid(Forbidden::everywhere(verb, "apps.kruise.io", "clonesets"));
    }
    scene.launch(&["run", "--config", path.to_str().expect("it is text")]);
    scene.wait_until_started().await;
    let left_out = "workloads of this kind are not followed, for want of a right";
    scene.wait_until("it is left out", async |scene| scene.process().said(left_out)).await;

    scene.world.kubernetes.allow_all();
    scene.apply(clone_set("1.0"));
    say(&scene, 2);
    scene.wait_until("it has a baseline", async |scene| record(scene, WORD, NAME).is_some()).await;

    scene.apply(clone_set("1.1"));
    until_it_says(&scene, "its controller has not acted on generation 2 yet").await;
    say(&scene, 1);
    until_it_says(&scene, "not yet: self.status.updatedReadyReplicas == self.spec.replicas").await;
    assert_eq!(purged(&scene, DISTRIBUTION), 0, "its expression does not hold");
    say(&scene, 2);
    let is_over = async |scene: &Scene| {
        let closed = record(scene, WORD, NAME).filter(|record| !record.is_open());
        closed.and_then(|record| record.history.last().map(|last| last.outcome.clone())) == Some(Outcome::Purged)
    };
    scene.wait_until("it is purged", is_over).await;
    assert_eq!(scene.purged(), [DISTRIBUTION], "once, and nothing else");

    let events = scene.world.kubernetes.list(Kind::Event, NAMESPACE);
    let about = |event: &&Value| event["regarding"]["kind"] == "CloneSet" && event["regarding"]["name"] == NAME;
    let about: Vec<&Value> = events.iter().filter(about).collect();
    assert!(about.iter().any(|event| event["reason"] == "RolloutCompleted"), "{events:?}");
    assert!(about.iter().all(|event| event["regarding"]["apiVersion"] == "apps.kruise.io/v1alpha1"), "{about:?}");

    // Another configuration: its record is passed over, and kept.
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    let kept = record(&scene, WORD, NAME);
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!(record(&scene, WORD, NAME), kept);
}
