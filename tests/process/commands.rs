//! Commands as people and CI jobs run them: the program itself, beside a running controller.

use std::process::Output;
use std::time::Duration;

use support::process::program;
use tokio::process::Command;

use crate::scene::{NAME, Scene};

/// Runs a command to its end.
async fn allclear(scene: &Scene, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env_clear().envs(&scene.environment).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    ended.expect("a command ends").expect("the program is there")
}

/// The exit code, standard output and standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_wait_behind_an_apply_ends_after_the_purge_of_what_was_applied() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let (code, out, _) = said(&allclear(&scene, &["wait", "shop/web"]).await);
    assert_eq!((code, scene.purged().len()), (0, 0), "at rest there is nothing to wait for: {out}");
    scene.roll_out("1.1");
    let (code, out, err) = said(&allclear(&scene, &["wait", "shop/web", "--timeout", "50s"]).await);
    assert_eq!(code, 0, "{err}");
    assert_eq!(scene.purged().len(), 1, "it did not answer by the record of 1.0: {out}");
    assert!(out.starts_with("shop/web is purged at web: 1.1: ") && out.contains("purged ("), "{out}");
    assert!(err.starts_with("shop/web: "), "it says what it waits for: {err}");
}

#[tokio::test]
async fn a_wait_that_nothing_can_fulfil_says_why_and_ends() {
    let mut scene = Scene::new().await;
    let (code, _, err) = said(&allclear(&scene, &["wait", "shop/web"]).await);
    assert!(code == 1 && err.contains("there is no ledger in namespace default"), "{code} {err}");
    scene.start().await;
    let (code, _, err) = said(&allclear(&scene, &["wait", "shop/wen"]).await);
    assert!(code == 1 && err.contains("did you mean shop/web?"), "{code} {err}");
    scene.freeze();
    scene.roll_out("1.1");
    let late = ["wait", "shop/web", "--for", "complete", "--timeout", "1s"];
    let (code, out, err) = said(&allclear(&scene, &late).await);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("shop/web is not complete after 1s: "), "{err}");
    let overtaken = ["wait", "shop/web", "--timeout", "50s"];
    let (ended, ()) = tokio::join!(allclear(&scene, &overtaken), async {
        scene.wait_until("the rollout is followed", async |scene| !scene.waits_for().await.is_empty()).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        scene.roll_out("1.2");
    });
    let (code, _, err) = said(&ended);
    assert!(code == 1 && err.contains("another version took its place: web: 1.1 → 1.2"), "{code} {err}");
    scene.add_workload("hostless");
    scene.thaw();
    scene.wait_until("it is recorded", async |scene| scene.record_of("hostless").is_some()).await;
    scene.set_image("hostless", &crate::scene::image("1.1"));
    let (code, _, err) = said(&allclear(&scene, &["wait", "shop/hostless", "--timeout", "50s"]).await);
    assert!(code == 1 && err.contains("--for settled"), "{code} {err}");
    let (code, out, err) = said(&allclear(&scene, &["wait", "shop/hostless", "--for", "settled"]).await);
    assert!(code == 0 && out.contains("is settled at hostless: 1.1"), "{out} {err}");
    assert_eq!(scene.purged().len(), usize::from(scene.is_over(NAME, 3)), "1.2 at most");
}
