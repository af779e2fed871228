//! What the commands say while no replica works, and whose settings they speak of.

use std::time::Duration;

use allclear::adapters::kubernetes::installation::Installation;
use allclear::cli::wait::{EXIT_LATE, Wait, wait};
use allclear::looking::whose::Whose;
use purge::rollouts::goal::Goal;

use super::*;

impl World {
    /// Alone, and with an eye on the installation, of which nothing runs.
    async fn idle() -> Self {
        let mut world = Self::start().await;
        let options = Options { kubeconfig: Some(world.kubeconfig.path().to_owned()), ..Options::default() };
        let clients = connect(&options).await.unwrap();
        world.sources.group = None;
        world.sources.installation = Some(Installation::new(&clients.request, "allclear"));
        world
    }
}

const IDLE: &str = "no replica works: there is no Deployment of it in namespace allclear";

#[tokio::test]
async fn nothing_is_all_clear_while_no_replica_works() {
    let world = World::idle().await;
    world.ledger_has(record(2, 1, "2", &json!("complete"), 2)).await;
    let status = world.status(Output::Table).await;
    let text = flat(&status);
    assert!(text.contains(IDLE) && !text.contains("all clear"), "{}", status.out);
    assert_eq!(status.code, 0, "all that was asked was read");
    let explained = explain(&world.sources, &World::question(Some("web")), Output::Table).await;
    let text = flat(&explained);
    assert!(text.contains(&format!("Controller {IDLE}")), "{}", explained.out);
    assert!(text.contains("Next nothing, until a replica works. Then: "), "{}", explained.out);
    let of_host = explain(&world.sources, &World::question(Some("www.example.com")), Output::Table).await;
    assert!(flat(&of_host).contains("State nothing is purged until a replica works. Then: "), "{}", of_host.out);
}

#[tokio::test]
async fn a_wait_says_at_once_that_no_replica_works() {
    let mut world = World::idle().await;
    world.ledger_has(record(2, 1, "2", &json!("rolling"), 1)).await;
    let mut said = Vec::new();
    let bounds = Wait { goal: Goal::Purged, at_most: Duration::from_secs(1) };
    world.sources.whose = Whose::Own("none was left".to_owned());
    let outcome =
        wait(&world.sources, &World::question(Some("web")), bounds, &mut |line| said.push(line.to_owned())).await;
    assert!(said.iter().any(|line| line.contains(IDLE)), "{said:?}");
    assert!(said[0].starts_with("settings: those of this command, which may not be the controller's"), "{said:?}");
    assert!(outcome.code == EXIT_LATE && outcome.err.contains(IDLE), "{outcome:?}");
}

#[tokio::test]
async fn answers_say_whose_settings_they_speak_of() {
    let mut world = World::idle().await;
    world.sources.whose = Whose::Controllers { version: "0.1.0".to_owned(), at_ms: 0, left_out: Vec::new() };
    let words = "Settings those of allclear 0.1.0, as it left them at 1970-01-01 00:00:00Z";
    let status = world.status(Output::Table).await;
    let explained = explain(&world.sources, &World::question(Some("web")), Output::Table).await;
    for outcome in [status, explained] {
        assert!(flat(&outcome).contains(words), "{}", outcome.out);
    }
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_said_to_be_none() {
    let world = World::idle().await;
    let question = |name: Option<&str>| Question { namespace: Some("nope".to_owned()), ..World::question(name) };
    let listed = explain(&world.sources, &question(None), Output::Table).await;
    assert!(listed.code == 1 && listed.out.contains("there is no namespace nope"), "{listed:?}");
    let one = explain(&world.sources, &question(Some("web")), Output::Table).await;
    assert!(one.code == 1 && one.err.contains("there is no namespace nope"), "{one:?}");
}
