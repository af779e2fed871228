//! StatefulSets and DaemonSets and the real program: each rollout of one is purged once, and a kind that may not be listed holds up no other.

use std::time::Duration;

use sandbox::kubernetes::{Forbidden, Kind};
use serde_json::{Value, json};

use crate::group::field::Field;
use crate::group::oracles::words;
use crate::scene::{DISTRIBUTION, LEDGER_NAMESPACE, NAMESPACE, Scene, image};
use purge::records::record::{Outcome, Record};
use purge::records::record_codec::decode;

/// What is followed beside the Deployment: kind, name and distribution of each.
pub const OTHERS: [(Kind, &str, &str, &str); 2] =
    [(Kind::StatefulSet, "StatefulSet", "db", "E2STATEFUL"), (Kind::DaemonSet, "DaemonSet", "agent", "E2DAEMON")];

/// A world in which each of them serves a host of its own, settled.
pub async fn scene() -> Scene {
    let scene = Scene::new().await;
    furnish(&scene).await;
    scene
}

/// Adds them to a world.
async fn furnish(scene: &Scene) {
    for (_, kind, name, distribution) in OTHERS {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": name, "image": image("1.0")}]},
                },
            },
        });
        if kind == "StatefulSet" {
            object["spec"]["replicas"] = json!(3);
            object["spec"]["serviceName"] = json!(name);
        }
        scene.apply(object);
        let host = format!("{name}.example.com");
        scene.world.kubernetes.expose(NAMESPACE, name, &host).expect("the cluster takes it");
        scene.add_distribution(distribution, &host);
    }
    scene.wait_until("all of it is settled", async |scene| OTHERS.iter().all(|other| is_complete(scene, other))).await;
}

fn is_complete(scene: &Scene, (kind, _, name, _): &(Kind, &str, &str, &str)) -> bool {
    let status = scene.world.kubernetes.get(*kind, NAMESPACE, name).map(|object| object["status"].clone());
    let status = status.unwrap_or_default();
    status["updatedReplicas"] == 3 && status["availableReplicas"] == 3
        || status["updatedNumberScheduled"] == 2 && status["numberAvailable"] == 2
}

pub fn roll_out(scene: &Scene, kind: Kind, name: &str, tag: &str) {
    let containers = json!([{"name": name, "image": image(tag)}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    scene.world.kubernetes.patch(kind, NAMESPACE, name, &change).expect("the cluster takes it");
}

pub fn record(scene: &Scene, kind: &str, name: &str) -> Option<Record> {
    let key = format!("{}.{NAMESPACE}.{name}", kind.to_lowercase());
    let maps: Vec<Value> = scene.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
    let texts = maps.iter().filter_map(|map| map["data"][&key].as_str());
    texts.map(|text| decode(text.as_bytes()).expect("it can be read")).max_by_key(|record| record.revision)
}

/// How often each distribution was purged.
pub fn purged(scene: &Scene, distribution: &str) -> usize {
    scene.purged().iter().filter(|purged| *purged == distribution).count()
}

#[tokio::test]
async fn a_rollout_of_each_kind_is_purged_once_and_after_a_restart_not_again() {
    let mut scene = scene().await;
    scene.start().await;
    let known = async |scene: &Scene| OTHERS.iter().all(|(_, kind, name, _)| record(scene, kind, name).is_some());
    scene.wait_until("each has a baseline", known).await;
    assert_eq!(scene.purged(), [""; 0], "a first listing changes nothing");
    for (kind, _, name, _) in OTHERS {
        roll_out(&scene, kind, name, "1.1");
    }
    scene.roll_out("1.1");
    let over = async |scene: &Scene| {
        let closed = |(_, kind, name, _): &(Kind, &str, &str, &str)| {
            let record = record(scene, kind, name);
            record.is_some_and(|record| {
                !record.is_open() && record.history.last().map(|last| &last.outcome) == Some(&Outcome::Purged)
            })
        };
        OTHERS.iter().all(closed)
    };
    scene.wait_until("each is purged", over).await;
    scene.wait_until_over(2).await;
    for distribution in [DISTRIBUTION, OTHERS[0].3, OTHERS[1].3] {
        assert_eq!(purged(&scene, distribution), 1, "{distribution}");
    }
    let events = scene.world.kubernetes.list(Kind::Event, NAMESPACE);
    for (_, kind, name, _) in OTHERS {
        let about = |event: &&Value| event["regarding"]["kind"] == kind && event["regarding"]["name"] == name;
        assert!(events.iter().filter(about).any(|event| event["reason"] == "RolloutCompleted"), "{kind}: {events:?}");
    }
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    scene.start().await;
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    assert_eq!(scene.purged().len(), 4, "{:?}", scene.purged());
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_holds_up_no_other_and_is_followed_once_it_may() {
    let mut scene = scene().await;
    for verb in ["get", "list", "watch"] {
        scene.world.kubernetes.forbid(Forbidden::everywhere(verb, "apps", "statefulsets"));
    }
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    roll_out(&scene, Kind::DaemonSet, "agent", "1.1");
    scene.wait_until("the DaemonSet is purged", async |scene| purged(scene, OTHERS[1].3) == 1).await;
    let state = scene.process().state().await;
    assert_eq!((&state["blind"], &state["troubles"]), (&Value::Null, &json!([])), "nothing is wrong: {state}");
    assert!(record(&scene, "StatefulSet", "db").is_none());
    scene.world.kubernetes.allow_all();
    let known = async |scene: &Scene| record(scene, "StatefulSet", "db").is_some();
    scene.wait_until("its first listing is a baseline", known).await;
    assert_eq!(purged(&scene, OTHERS[0].3), 0);
}

#[tokio::test]
async fn a_kind_whose_right_is_taken_away_or_that_is_switched_off_is_left_out_and_the_others_go_on() {
    let mut scene = scene().await;
    scene.start().await;
    let known = async |scene: &Scene| OTHERS.iter().all(|(_, kind, name, _)| record(scene, kind, name).is_some());
    scene.wait_until("each has a baseline", known).await;
    for verb in ["get", "list", "watch"] {
        scene.world.kubernetes.forbid(Forbidden::everywhere(verb, "apps", "statefulsets"));
    }
    scene.world.kubernetes.expire_watches();
    let page = format!("/workloads/{NAMESPACE}/statefulset/db");
    let shows = async |scene: &Scene, words: &str| {
        scene.process().get(&page).await.is_some_and(|(_, text)| text.contains(words))
    };
    scene.wait_until("its record is not looked at", async |scene| shows(scene, "not looked at: ").await).await;
    roll_out(&scene, Kind::DaemonSet, "agent", "1.1");
    scene.wait_until("the DaemonSet is purged", async |scene| purged(scene, OTHERS[1].3) == 1).await;
    let state = scene.process().state().await;
    assert_eq!((&state["blind"], &state["troubles"]), (&Value::Null, &json!([])), "nothing is wrong: {state}");
    assert!(scene.process().said("are not followed any more, for want of a right"));

    scene.world.kubernetes.allow_all();
    scene.wait_until("it is looked at again", async |scene| !shows(scene, "not looked at: ").await).await;
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    scene.set("ALLCLEAR__WORKLOADS__KINDS", "deployment,daemonset");
    scene.start().await;
    scene.wait_until("it is off", async |scene| shows(scene, "not followed (workloads.kinds)").await).await;
    assert!(known(&scene).await, "its record stays");
}

/// Goal: a member that may not list a kind is never gone past, for its cluster may serve the version before; the other says why it waits.
/// Method: of two members one lacks the right while both roll a StatefulSet out; then it gets it.
#[tokio::test]
async fn a_group_waits_for_a_member_that_may_not_list_a_kind_and_says_why() {
    let mut field = Field::of(2, Some(Duration::from_millis(150)), &[]).await;
    for member in &field.members {
        furnish(member).await;
    }
    for verb in ["get", "list", "watch"] {
        field[1].world.kubernetes.forbid(Forbidden::everywhere(verb, "apps", "statefulsets"));
    }
    field.start().await;
    let (kind, word, name, distribution) = OTHERS[0];
    field.wait_until("it has a baseline", async |field| record(&field[0], word, name).is_some()).await;
    field.members.iter().for_each(|member| roll_out(member, kind, name, "1.1"));
    let why = "does not follow StatefulSets: it cannot list them: it has no right to (apply deploy/base/cluster-role.yaml there)";
    field.wait_until("it says why it waits", async |field| words(field, 0).await.contains(why)).await;
    let waits =
        async |field: &Field| purged(&field[0], distribution) == 0 && !words(field, 1).await.contains("shop/db");
    field.holds_for(Duration::from_secs(3), "nothing is purged, and the other does not begin", waits).await;
    field[1].world.kubernetes.allow_all();
    field.wait_until("it is purged when both follow it", async |field| purged(&field[0], distribution) == 1).await;
    assert!(!words(&field, 0).await.contains("does not follow"));
}
