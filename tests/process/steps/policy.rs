//! The recipe for a policy on the plan, as docs/repo.md has it: the real `sh`, with stand-ins for `terraform` and `conftest`.

use serde_json::Value;

use super::*;

/// Keeps to conftest's exit code (1 where a rule denies) and to its folder of policies: each line of `policy/deny` is a text that no
/// plan may have.
const CONFTEST: &str = r#"#!/bin/sh
set -eu
[ "$1" = test ] && [ "$2" = --no-color ] && [ "$3" = --policy ] || exit 2
if denied=$(grep -o -f "$4/deny" "$5"); then printf 'FAIL - %s - main - denied: %s\n' "$5" "$denied"; exit 1; fi
"#;

/// The steps of the page's example.
fn recipe() -> Steps {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/repo.md")).expect("the page");
    let (_, section) = page.split_once("## A policy on the plan\n").expect("its section");
    let (_, example) = section.split_once("```yaml\n").expect("an example");
    let (example, _) = example.split_once("```\n").expect("its end");
    let mut spec: Value = serde_saphyr::from_str(example).expect("YAML");
    spec["url"] = json!(URL);
    steps_of(spec)
}

fn scene_with_conftest(scene: &Scene) {
    let conftest = scene.folder.path().join("bin/conftest");
    fs::write(&conftest, CONFTEST).expect("written");
    fs::set_permissions(conftest, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// A pod whose commit is fetched and prepared, with the policy of the repository.
fn prepared<'a>(scene: &'a Scene, name: &str, infra: &str) -> Pod<'a> {
    let files = [("infra.tf", infra.as_bytes()), ("policy/deny", b"queue".as_slice())];
    let revision = scene.host.commit(REPOSITORY, "main", &files).expect("a commit");
    let pod = scene.pod(name);
    assert_eq!(pod.source(&revision, &[]).0, 0);
    assert_eq!(pod.user(&preset().prepare).0, 0);
    pod
}

#[tokio::test]
async fn a_plan_that_a_policy_refuses_is_never_reported_and_one_that_passes_is_what_is_applied() {
    let scene = Scene::new().await;
    scene_with_conftest(&scene);
    let steps = recipe();
    let good = prepared(&scene, "good", "bucket one\n");
    let (code, words) = good.user(&steps.plan);
    assert_eq!(code, 0, "{words}");
    let planned = good.report();
    assert_eq!(planned.counts, Some(Counts { add: 1, change: 0, destroy: 0 }));
    assert_eq!(good.verify(&planned.fingerprint).0, 0);
    assert_eq!(good.user(&steps.apply).0, 0);
    assert_eq!(fs::read_to_string(scene.state()).expect("a state"), "bucket one\n");

    let bad = prepared(&scene, "bad", "bucket one\nqueue two\n");
    assert_eq!(bad.user(&steps.plan).0, 1, "the pod ends here, before anybody is asked");
    assert_eq!(fs::read_to_string(scene.state()).expect("a state"), "bucket one\n");

    let broken = prepared(&scene, "broken", "bucket three\n");
    fs::create_dir(scene.folder.path().join("state.lock")).expect("held by another");
    assert_eq!(broken.user(&steps.plan), (1, "Error: Error acquiring the state lock\n".to_owned()));
    assert!(!broken.root.join("out/plan.json").exists());
}

#[tokio::test]
async fn the_recipe_hands_the_signal_on() {
    let scene = Scene::new().await;
    scene_with_conftest(&scene);
    let pod = prepared(&scene, "pod", "bucket one\n");
    let mut planning = pod.command(&recipe().plan).env("SLOW", "1").spawn().expect("it runs");
    let state = scene.state().display().to_string();
    assert!(comes_true(async || Path::new(&format!("{state}.slow")).exists()).await, "it never planned");
    let told = Command::new("kill").args(["-TERM", &planning.id().to_string()]).status().expect("it runs");
    assert!(told.success());
    assert_eq!(planning.wait().expect("it ends").code(), Some(1), "as terraform ended");
    assert!(!Path::new(&format!("{state}.lock")).exists());
}
