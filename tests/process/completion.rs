//! Completion as shells and kubectl ask for it: the program itself, against the stand-in of the API server.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandbox::http::{Action, Fault, When};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};
use support::process::program;
use tokio::process::Command;

use crate::commands::{allclear, said};
use crate::scene::Scene;

/// The words that the program answers for a line whose last word is being typed, without what they are, and the number behind them.
async fn words(scene: &Scene, line: &[&str]) -> (Vec<String>, String) {
    let arguments: Vec<&str> = ["__complete"].into_iter().chain(line.iter().copied()).collect();
    let (code, out, err) = said(&allclear(scene, &arguments).await);
    assert_eq!((code, err.as_str()), (0, ""), "nothing may get into the line of a person");
    let mut lines: Vec<String> =
        out.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    let directive = lines.pop().expect("a directive");
    (lines, directive)
}

async fn scene() -> Scene {
    let scene = Scene::new().await;
    scene.add_workload("worker");
    scene.world.kubernetes.seed("default", "gate", "gate:1", 1).expect("the cluster takes it");
    for namespace in ["shop", "shipping", "default"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        scene.world.kubernetes.apply(object).expect("the cluster takes it");
    }
    scene
}

#[tokio::test]
async fn names_of_the_cluster_are_offered_where_commands_take_them() {
    let scene = scene().await;
    assert_eq!(
        words(&scene, &["explain", "sh"]).await,
        (vec!["shipping/".to_owned(), "shop/".to_owned()], ":6".to_owned())
    );
    assert_eq!(words(&scene, &["wait", "shop/w"]).await.0, ["shop/web", "shop/worker"]);
    scene.apply(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {}}));
    assert_eq!(words(&scene, &["explain", "shop/d"]).await.0, ["shop/db"], "of any kind");
    assert_eq!(words(&scene, &["purge", "-n", "shop", "we"]).await, (vec!["web".to_owned()], ":4".to_owned()));
    assert_eq!(words(&scene, &["history", "deployment/g"]).await.0, ["deployment/gate"], "of the context's namespace");
    assert_eq!(words(&scene, &["status", "--namespace=shi"]).await.0, ["shipping"]);
    assert_eq!(words(&scene, &["webhook", "test", ""]).await.0, ["web"], "the receivers of the configuration");
    assert_eq!(words(&scene, &["webhook", "resend", "shop/web", "--ev"]).await.0, ["--event"]);
    assert_eq!(
        words(&scene, &["pipeline", "poke", ""]).await,
        (vec![], ":4".to_owned()),
        "the cluster has no such kind"
    );
    assert_eq!(words(&scene, &["run", "--config", ""]).await.1, ":0", "files are the shell's");
}

#[tokio::test]
async fn pipelines_and_repos_are_offered_with_their_namespaces() {
    let scene = scene().await;
    scene.world.kubernetes.set_installed("allclear.dev", true);
    let pipeline = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "metadata": {"namespace": "shop", "name": "line"},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [{"name": "staging", "targets": [{"namespace": "shop"}]}, {"name": "prod", "targets": [{"namespace": "shop"}]}],
        },
    });
    scene.world.kubernetes.apply(pipeline).expect("the cluster takes it");
    assert_eq!(words(&scene, &["pipeline", "poke", "s"]).await.0, ["shop/line"]);
    assert_eq!(words(&scene, &["explain", "pipeline/s"]).await.0, ["pipeline/shop/line"]);
    assert_eq!(words(&scene, &["pipeline", "approve", "shop/line", "p"]).await.0, ["prod"]);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_costs_a_second_and_no_word() {
    let scene = scene().await;
    scene.world.api.inject(Fault::once(When::Before, Action::Hold).times(u32::MAX));
    let began = Instant::now();
    assert_eq!(words(&scene, &["explain", "sh"]).await, (vec![], ":4".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// A shell types what all words begin with, so a part of them must not look like all.
#[tokio::test]
async fn of_ten_thousand_workloads_a_bounded_part_is_shown_and_says_that_there_are_more() {
    let scene = scene().await;
    for number in 0..10_000 {
        scene.world.kubernetes.seed("big", &format!("app-{number:05}"), "app:1", 0).expect("the cluster takes it");
    }
    let began = Instant::now();
    let (many, _) = words(&scene, &["explain", "big/a"]).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(many.len() <= 2_001 && many.contains(&"big/a".to_owned()), "{} {:?}", many.len(), many.first());
    assert!(scene.world.kubernetes.list(Kind::Deployment, "big").len() == 10_000);
}

/// As bash calls the function of the script: words split at `=`, the last one being typed.
#[tokio::test]
async fn the_script_of_bash_offers_the_same() {
    let mut scene = scene().await;
    // As `aws eks update-kubeconfig` names its contexts; bash takes each ':' for a word.
    let theirs = std::fs::read_to_string(scene.world.kubeconfig()).expect("a kubeconfig");
    let folder = tempfile::tempdir().expect("a folder");
    let ours = folder.path().join("kubeconfig");
    let mut config: Value = serde_json::from_str(&theirs).expect("it is written as JSON");
    let context = config["current-context"].as_str().expect("a context").to_owned();
    let name = json!("arn:aws:eks:eu-west-1:1:cluster/prod");
    let contexts = config["contexts"].as_array_mut().expect("contexts");
    contexts.iter_mut().filter(|one| one["name"] == context).for_each(|one| one["name"] = name.clone());
    config["current-context"] = name;
    std::fs::write(&ours, config.to_string()).expect("it can be written");
    scene.set("KUBECONFIG", &ours.to_string_lossy());
    let script = r#"
        source <("$1" completion bash)
        complete_line() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _allclear "$1"
            printf '%s ' "${COMPREPLY[@]}"; echo
        }
        complete_line "$1" explain shop/w
        complete_line "$1" status --namespace = sh
        complete_line "$1" webhook re
        complete_line "$1" status --context arn : aws : eks : eu-west-1 : 1 : cluster/p
        complete_line "$1" status --context = arn : aws : eks : eu-west-1 : 1 : cluster/p
        complete_line "$1" --context arn : aws : eks : eu-west-1 : 1 : cluster/prod explain shop/w
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).arg(program()).env_clear().envs(&scene.environment);
    bash.env("PATH", std::env::var("PATH").unwrap_or_default()).kill_on_drop(true).stdin(Stdio::null());
    let ended = tokio::time::timeout(Duration::from_secs(30), bash.output()).await.expect("it ends");
    let (code, out, err) = said(&ended.expect("bash is there"));
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (
            0,
            "shop/web shop/worker \nshipping shop \nresend \ncluster/prod \ncluster/prod \nshop/web shop/worker \n",
            ""
        )
    );
}

/// kubectl calls `kubectl_complete-NAME` with the words behind the plugin's name.
#[tokio::test]
async fn as_a_plugin_of_kubectl_a_symlink_is_enough() {
    let scene = scene().await;
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("kubectl_complete-allclear");
    std::os::unix::fs::symlink(program(), &link).expect("a symlink");
    let mut command = Command::new(link);
    command.args(["explain", "shop/we"]).env_clear().envs(&scene.environment).kill_on_drop(true);
    let (code, out, err) = said(&command.output().await.expect("it runs"));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "shop/web\n:4\n", ""));
}
