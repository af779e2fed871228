//! Commands as people and CI jobs run them: the program itself, beside a running controller.

use std::process::Output;
use std::time::Duration;

use sandbox::kubernetes::{Kind, Timings};
use support::process::program;
use tokio::process::Command;

use crate::group::field::Field;
use crate::scene::{NAME, NAMESPACE, Scene};

/// Runs a command to its end.
pub async fn allclear(scene: &Scene, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env_clear().envs(&scene.environment).kill_on_drop(true);
    let ended = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    ended.expect("a command ends").expect("the program is there")
}

/// The exit code, standard output and standard error.
pub fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn a_wait_behind_an_apply_ends_after_the_purge_of_what_was_applied() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let (code, out, _) = said(&allclear(&scene, &["wait", "shop/web"]).await);
    assert_eq!((code, scene.purged().len()), (0, 0), "at rest there is nothing to wait for: {out}");
    scene.freeze();
    scene.roll_out("1.1");
    let (code, out, err) = said(&allclear(&scene, &["wait", "shop/web", "--timeout", "1s"]).await);
    assert_eq!((code, out.as_str()), (3, ""), "it does not answer by the record of 1.0: {err}");
    assert!(err.starts_with("shop/web: "), "it says what it waits for: {err}");
    scene.thaw();
    let (code, out, err) = said(&allclear(&scene, &["wait", "shop/web", "--timeout", "50s"]).await);
    assert_eq!((code, scene.purged().len()), (0, 1), "{err}");
    assert!(out.starts_with("shop/web is purged at web: 1.1: ") && out.contains("purged ("), "{out}");
}

#[tokio::test]
async fn the_status_names_the_old_pod_that_holds_up_a_purge() {
    let mut scene = Scene::new().await;
    scene.world.kubernetes.set_timings(Timings { pod_gone: Duration::from_secs(3600), ..Timings::IMMEDIATE });
    scene.start().await;
    scene.roll_out("1.1");
    let waits = async |scene: &Scene| scene.waits_for().await.contains("still serve");
    scene.wait_until("it waits for old pods", waits).await;
    let (_, out, err) = said(&allclear(&scene, &["status"]).await);
    let pods = scene.world.kubernetes.list(Kind::Pod, NAMESPACE);
    let names: Vec<&str> = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    assert!(out.contains("still serve") && names.iter().any(|name| out.contains(name)), "{names:?}\n{out}\n{err}");
    // The page explains it in the process itself, on the stack of one of its own threads.
    let page = scene.process().get("/workloads/shop/web").await;
    let explains = |text: &str| names.iter().any(|name| text.contains(name)) && text.contains("Distributions");
    assert!(page.as_ref().is_some_and(|(status, text)| *status == 200 && explains(text)), "{page:?}");
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
    assert!(scene.purged().len() <= 1, "1.2 at most");
}

#[tokio::test]
async fn a_purge_by_hand_is_of_the_paths_it_names_and_is_in_the_history_with_its_time() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let dry = ["purge", "shop/web", "--paths", "/a,/b/*", "--dry-run"];
    let (code, out, err) = said(&allclear(&scene, &dry).await);
    assert!(code == 0 && out.starts_with("shop/web: would purge /a /b/* of E2PROCESS"), "{out} {err}");
    assert!(!out.contains("earlier change"), "{out}");
    let refused = ["purge", "shop/web", "--paths", "a"];
    let (code, _, err) = said(&allclear(&scene, &refused).await);
    assert!(code == 2 && err.starts_with("error: --paths: ") && err.contains("starts with /"), "{code} {err}");
    let deployment = || scene.world.kubernetes.get(Kind::Deployment, "shop", NAME).unwrap();
    assert_eq!(deployment()["metadata"]["annotations"]["allclear.dev/requested-at"], serde_json::Value::Null);

    let wanted = ["purge", "shop/web", "--paths", "/a,/b/*", "--wait", "--timeout", "50s"];
    let (code, out, err) = said(&allclear(&scene, &wanted).await);
    assert!(code == 0 && out.contains("shop/web is purged at web: 1.0"), "{out} {err}");
    let usual = ["purge", "shop/web", "--wait", "--timeout", "50s"];
    let (code, out, err) = said(&allclear(&scene, &usual).await);
    assert_eq!(code, 0, "{out} {err}");
    let annotations = deployment()["metadata"]["annotations"].clone();
    assert_eq!(annotations["allclear.dev/requested-paths"], serde_json::Value::Null, "those were of another request");
    let purged: Vec<Vec<String>> = scene.world.cloudfront.invalidations().into_iter().map(|made| made.paths).collect();
    assert_eq!(purged, [vec!["/a".to_owned(), "/b/*".to_owned()], vec!["/*".to_owned()]]);

    let (code, out, err) = said(&allclear(&scene, &["history", "shop/web", "-o", "json"]).await);
    assert_eq!(code, 0, "{err}");
    let history: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(history["rollouts"].as_array().map(Vec::len), Some(2), "{history:#}");
    let at = history["rollouts"][0]["purges"][0]["at"].as_str().unwrap_or_default();
    assert!(at.starts_with("20") && at.contains('T'), "{history:#}");

    let page = scene.process().address("page").expect("it says where its page is");
    let server = format!("http://{page}");
    let (code, out, err) = said(&allclear(&scene, &["version", "--server", &server]).await);
    let ours = env!("CARGO_PKG_VERSION");
    assert_eq!((code, out), (0, format!("client: {ours}\nserver: {ours} (by its status page)\n")), "{err}");
}

/// The members that were asked nothing vote for what the one that was asked names.
#[tokio::test]
async fn a_group_purges_once_the_paths_that_one_of_its_members_was_asked_for() {
    let field = Field::new().await;
    for (at, paths) in [(1, "/a,/b/*"), (2, "/c")] {
        let (code, out, err) =
            said(&allclear(&field[at], &["purge", "shop/web", "--paths", paths, "--wait", "--timeout", "50s"]).await);
        assert!(code == 0 && out.contains("shop/web is purged"), "{at}: {out} {err}");
    }
    let purged: Vec<Vec<String>> = field.purges().into_iter().map(|made| made.paths).collect();
    assert_eq!(purged, [vec!["/a".to_owned(), "/b/*".to_owned()], vec!["/c".to_owned()]]);
}

#[tokio::test]
async fn a_reader_that_stops_early_is_no_failure() {
    let mut scene = Scene::new().await;
    scene.start().await;
    for arguments in [&["crds"][..], &["--help"], &["explain"], &["completion", "bash"], &["explain", "-w"]] {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().envs(&scene.environment).kill_on_drop(true);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        drop(child.stdout.take());
        let ended = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output()).await;
        let (code, _, err) = said(&ended.expect("it ends").expect("it ran"));
        assert!(code == 0 && !err.contains("panicked"), "{arguments:?}: {code} {err}");
    }
}

#[tokio::test]
async fn a_watched_explanation_is_said_again_when_it_changes_and_ctrl_c_ends_it_in_order() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut scene = Scene::new().await;
    scene.start().await;
    let mut command = Command::new(program());
    command.args(["explain", "shop/web", "--watch"]).env_clear().envs(&scene.environment).kill_on_drop(true);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the program is there");
    let mut lines = BufReader::new(child.stdout.take().expect("its standard output is ours")).lines();
    let mut reads = async |words: &str| {
        let read = async {
            while let Some(line) = lines.next_line().await.expect("it can be read") {
                if line.contains(words) {
                    return true;
                }
            }
            false
        };
        tokio::time::timeout(Duration::from_secs(40), read).await == Ok(true)
    };
    assert!(reads("web:1.0").await);
    scene.roll_out("1.1");
    assert!(reads("web:1.1").await, "it is said again");
    let id = child.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.expect("kill is there").success());
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
    assert!(status.expect("it ends").expect("it ran").success());
}
