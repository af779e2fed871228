//! What counts as a change beside the images of containers, and the real program: a pod template, an annotation, the image of a volume.

use serde_json::{Value, json};

use crate::scene::{LEDGER_NAMESPACE, NAME, NAMESPACE, Scene, image};
use sandbox::kubernetes::Kind;

fn change(scene: &Scene, change: &Value) {
    scene.world.kubernetes.patch(Kind::Deployment, NAMESPACE, NAME, change).expect("the cluster takes it");
}

#[tokio::test]
async fn a_restart_is_purged_once_where_the_template_counts_and_its_values_are_told_to_nobody() {
    let mut scene = Scene::new().await;
    scene.set("ALLCLEAR__VERSION__OF", "template");
    scene.start().await;
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-27T08:00:00Z"});
    let env = json!([{"name": NAME, "image": image("1.0"), "env": [{"name": "KEY", "value": "hunter2"}]}]);
    change(
        &scene,
        &json!({"spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"containers": env}}}}),
    );
    scene.wait_until_over(2).await;
    // Neither replicas nor a restart of the program is a change of the template.
    change(&scene, &json!({"spec": {"replicas": 4}}));
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(3).await;
    assert_eq!(scene.purged().len(), 2, "{:?}", scene.purged());
    let told = scene.events_of(NAME);
    let by_path = "pod template: annotations[kubectl.kubernetes.io/restartedAt], containers[web].env";
    assert!(told.iter().any(|note| note.contains(by_path)), "{told:?}");
    for kind in [Kind::Event, Kind::ConfigMap] {
        for namespace in [NAMESPACE, LEDGER_NAMESPACE] {
            let kept = scene.world.kubernetes.list(kind, namespace);
            assert!(!format!("{kept:?}").contains("hunter2"), "{kept:?}");
        }
    }
}

#[tokio::test]
async fn an_annotation_that_its_owner_chose_and_the_image_of_a_volume_are_purged_once_each() {
    let mut scene = Scene::new().await;
    let volumes = |tag: &str| json!([{"name": "content", "image": {"reference": image(tag)}}]);
    let annotations =
        |site: &str| json!({"allclear.dev/change": "annotation example.com/site", "example.com/site": site});
    change(
        &scene,
        &json!({"metadata": {"annotations": annotations("1")}, "spec": {"template": {"spec": {"volumes": volumes("1.0")}}}}),
    );
    scene.wait_until("it is rolled out", async |scene| scene.is_rolled_out(2)).await;
    scene.start().await;
    change(&scene, &json!({"metadata": {"annotations": annotations("2")}}));
    scene.wait_until_over(2).await;
    change(&scene, &json!({"spec": {"template": {"spec": {"volumes": volumes("1.1")}}}}));
    scene.wait_until_over(3).await;
    assert_eq!(scene.purged().len(), 2, "{:?}", scene.purged());
    let told = scene.events_of(NAME);
    for expected in ["example.com/site: 1 → 2", "volume:content: 1.0 → 1.1"] {
        assert!(told.iter().any(|note| note.contains(expected)), "{expected}: {told:?}");
    }
}
