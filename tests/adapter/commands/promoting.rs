//! Pipelines in the status: beside rollouts, and in the way of none.

use expect_test::expect_file;

use super::*;

fn pipeline() -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": {"namespace": "shop", "name": "web"},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [
                {"name": "staging", "targets": [{"namespace": "staging"}]},
                {"name": "prod", "targets": [{"namespace": "prod"}]},
            ],
            "promotion": {"strategy": {"notification": {}}},
        },
        "status": {
            "serial": 1, "observedGeneration": 1, "latestRevision": "1.3",
            "environments": {
                "staging": {"targets": [{"uid": "u", "ready": true, "revision": "1.3"}]},
                "prod": {"targets": [{"error": "no answer for 30 s"}]},
            },
        },
    })
}

#[tokio::test]
async fn status_shows_every_pipeline_and_says_what_it_may_not_read_of_them() {
    let world = World::start().await;
    assert!(!world.status(Output::Table).await.out.contains("Pipelines"), "the cluster does not have the kind");
    world.api.set_installed(GROUP, true);
    world.api.apply(pipeline()).unwrap();
    let shown = world.status(Output::Table).await;
    world.printed(&shown, expect_file!["pipelines.txt"]);
    let state: Value = serde_json::from_str(&world.status(Output::Json).await.out).unwrap();
    assert_eq!(state["promoting"]["pipelines"][0]["live"], false);
    world.forbid(|request| request.path.ends_with("/pipelines"));
    let denied = world.status(Output::Table).await;
    assert!(
        denied.out.contains("  Pipelines     failed to list pipelines.allclear.dev in all namespaces"),
        "{}",
        denied.out
    );
    assert_eq!(denied.code, shown.code, "nothing else depends on it");
}

#[tokio::test]
async fn status_shows_every_repo_and_what_it_waits_for() {
    let world = World::start().await;
    world.api.set_installed(GROUP, true);
    let repo = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"namespace": "shop", "name": "infra"},
        "spec": {"url": "https://git.example.com/infra.git"},
    });
    world.api.apply(repo).unwrap();
    world.printed(&world.status(Output::Table).await, expect_file!["repos.txt"]);
    let state: Value = serde_json::from_str(&world.status(Output::Json).await.out).unwrap();
    assert_eq!(state["running"]["repos"][0]["id"], json!({"namespace": "shop", "name": "infra"}));
}
