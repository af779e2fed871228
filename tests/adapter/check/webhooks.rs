//! Receivers that cannot be called. One whose certificate is not trusted is in `redis`, beside the server that shows it.

use super::*;

impl World {
    fn hook(&mut self, url: &str) {
        self.hooks = json!([{"name": "web", "url": url, "method": "POST"}]);
    }
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_named() {
    let mut world = World::start().await;
    world.hook("http://hooks.invalid/x");
    let report = world.fails("webhook-name", "the name could not be resolved").await;
    said(&report, "webhook-answer", "not tried: webhook-name");
}

#[tokio::test]
async fn a_private_address_is_refused_by_our_own_guard() {
    let mut world = World::start().await;
    world.sections.insert("webhooks", "file = \"hooks.json\"\nallow_private = false".to_owned());
    let report = world.fails("webhook-allowed", "webhooks.allow_private = true").await;
    said(&report, "webhook-name", "yes");
}

#[tokio::test]
async fn a_receiver_that_is_away_is_named() {
    let mut world = World::start().await;
    world.hook("http://127.0.0.1:9/x");
    world.fails("webhook-answer", "no connection").await;
}

#[tokio::test]
async fn a_receiver_is_asked_for_its_root_without_anything_of_the_hook() {
    let world = World::start().await;
    world.report().await;
    let seen = world.receiver.seen();
    assert!(seen.iter().all(|seen| seen.method == "HEAD" && seen.path == "/" && seen.query.is_empty()), "{seen:?}");
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn a_configuration_that_gives_a_credential_away_is_known() {
    let mut world = World::start().await;
    world.hooks[0]["headers"] = json!({"Authorization": "Bearer hunter2"});
    let report = world.warns("configuration", "sends credentials without TLS").await;
    assert!(!report.to_string().contains("hunter2"), "{report}");
}
