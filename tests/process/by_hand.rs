//! The program started by a person, outside a pod: nothing purges by accident, and nobody begins a second ledger unknowingly.

use std::collections::BTreeMap;

use serde_json::json;
use support::process::{PATIENCE, Process};

use crate::scene::{NAME, Scene};

/// Runs the program to its end, which must come by itself: its exit code and all it said.
async fn refused(scene: &Scene, arguments: &[&str], environment: &BTreeMap<String, String>) -> (Option<i32>, String) {
    let writes = scene.world.kubernetes.writes();
    let mut process = Process::start(arguments, environment.clone());
    let status = process.ended(PATIENCE).await.expect("it ends by itself");
    assert_eq!(scene.world.kubernetes.writes(), writes, "nothing was written");
    assert!(scene.world.cloudfront.invalidations().is_empty(), "nothing was purged");
    (status.code(), process.log().join("\n"))
}

/// There is a ledger of another installation in the namespace `allclear`.
fn install_another(scene: &Scene) {
    let metadata = json!({"name": "allclear-ledger", "namespace": "allclear"});
    let ledger = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"layout": "1"}});
    scene.world.kubernetes.apply(ledger).expect("the cluster takes it");
}

// Faults: X2
#[tokio::test]
async fn without_a_command_it_shows_its_commands_and_touches_nothing() {
    let scene = Scene::new().await;
    let (code, log) = refused(&scene, &[], &scene.environment).await;
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("Usage: allclear") && log.contains("explain") && log.contains("demo"), "{log}");
    assert!(scene.world.api.seen().is_empty(), "{log}");
}

// Faults: X2
#[tokio::test]
async fn a_controller_run_by_hand_must_be_told_which_cluster_and_which_ledger() {
    let scene = Scene::new().await;
    // Only the default kubeconfig leads to the cluster, as on the machine of somebody who works with it every day.
    let home = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(home.path().join(".kube")).expect("it is empty");
    std::fs::copy(scene.world.kubeconfig(), home.path().join(".kube/config")).expect("the kubeconfig is there");
    let mut environment = scene.environment.clone();
    environment.remove("KUBECONFIG");
    environment.insert("HOME".to_owned(), home.path().display().to_string());
    let (code, log) = refused(&scene, &["run"], &environment).await;
    assert!(code == Some(2) && log.contains("--context") && !log.contains("--ledger-namespace or"), "{code:?} {log}");

    let mut environment = scene.environment.clone();
    environment.remove("ALLCLEAR__LEDGER__NAMESPACE");
    let (code, log) = refused(&scene, &["run"], &environment).await;
    assert!(code == Some(2) && log.contains("--ledger-namespace") && !log.contains("--context"), "{code:?} {log}");
    assert!(scene.world.api.seen().is_empty(), "nothing was asked either");
}

// Faults: X2
#[tokio::test]
async fn a_second_ledger_in_one_cluster_is_begun_only_by_whoever_means_it() {
    let mut scene = Scene::new().await;
    install_another(&scene);
    let (code, log) = refused(&scene, &["run"], &scene.environment).await;
    assert_eq!(code, Some(2), "{log}");
    for words in ["in namespace allclear", "two ledgers purge twice", "--second-ledger"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    scene.launch(&["run", "--second-ledger"]);
    scene.wait_until_started().await;
    assert!(scene.process().said("is purged twice"), "{}", scene.process().tail());
    assert!(scene.record_of(NAME).is_some());
}

#[tokio::test]
async fn a_dry_run_by_hand_needs_none_of_this() {
    let mut scene = Scene::new().await;
    install_another(&scene);
    scene.environment.remove("ALLCLEAR__LEDGER__NAMESPACE");
    scene.launch(&["run", "--dry-run"]);
    let ready = async |scene: &Scene| scene.is_synced().await;
    scene.wait_until("it watches", ready).await;
    // At rest nothing happens, and who tries it wants an answer.
    let (process, answer) = (scene.process(), "looked at what it follows");
    assert!(process.said(answer) && process.said("began a dry run"), "{}", process.tail());
    assert!(!process.said("found what is in the way"), "{}", process.tail());
}

#[tokio::test]
async fn a_kubeconfig_that_is_missing_is_named() {
    let scene = Scene::new().await;
    let mut environment = scene.environment.clone();
    environment.insert("KUBECONFIG".to_owned(), "/missing/by-variable".to_owned());
    for (arguments, path) in [
        (&["explain"][..], "/missing/by-variable"),
        (&["run"], "/missing/by-variable"),
        (&["--kubeconfig", "/missing/by-flag", "status"], "/missing/by-flag"),
    ] {
        let (code, log) = refused(&scene, arguments, &environment).await;
        assert!(code == Some(1) && log.contains(path), "{arguments:?}: {log}");
    }
}
