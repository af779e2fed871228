//! A group of two, in which one thing does not fit.

use super::*;

#[tokio::test]
async fn a_member_with_another_configuration_is_named_with_the_setting() {
    let world = World::start().await;
    let change = |beat: &mut Heartbeat| {
        beat.settings.insert("group.timeout".to_owned(), "99m".to_owned());
        beat.boot = "y".to_owned();
    };
    world.beat("eu-2", change).await;
    let report = world.fails("group-configuration", "eu-2 has another configuration").await;
    said(&report, "group-configuration", "group.timeout");
}

#[tokio::test]
async fn a_member_that_does_not_report_is_named() {
    let world = World::start().await;
    for redis in &world.redis {
        redis.command::<()>(&["DEL", "allclear:{default}:hb:eu-2"]);
    }
    world.fails("group-beats", "eu-2 does not report").await;
}

#[tokio::test]
async fn two_clusters_of_one_name_are_named() {
    let world = World::start().await;
    world.beat("eu-1", |beat| beat.origin = "of-another".into()).await;
    world.fails("group-twins", "eu-1").await;
}

#[tokio::test]
async fn a_member_that_is_not_in_the_list_is_named() {
    let world = World::start().await;
    world.beat("eu-3", |_| {}).await;
    world.fails("group-members", "eu-3").await;
}

#[tokio::test]
async fn our_own_name_has_to_be_in_the_list() {
    let mut world = World::start().await;
    world.sections.entry("group").and_modify(|keys| *keys = keys.replace("member = \"eu-1\"\n", ""));
    let report = world.fails("group-name", "does not name this cluster").await;
    said(&report, "group-members", "not tried: group-name");
}

#[tokio::test]
async fn a_server_that_never_answered_holds_the_group() {
    let mut world = World::start().await;
    // A third one, which the pin knows of and has never heard.
    let redis = Redis::start();
    let url = redis.url();
    drop(redis);
    world
        .sections
        .entry("group")
        .and_modify(|keys| *keys = keys.replace("remotes = [", &format!("remotes = [\"{url}\", ")));
    let report = world.report().await;
    assert!(marked(&report, Mark::Failed).contains(&"redis-connect"), "{report}");
}

#[tokio::test]
async fn a_member_that_signs_with_another_key_is_named() {
    let mut world = World::start().await;
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").unwrap();
    let keys = format!("key_file = \"{}\"", key.path().display());
    world.sections.entry("group").and_modify(|all| *all = all.replace("unsigned = true", &keys));
    let report = world.report().await;
    assert!(marked(&report, Mark::Failed).contains(&"group-key"), "{report}");
    said(&report, "group-key", "eu-2");
}

#[tokio::test]
async fn members_of_different_versions_are_known() {
    let world = World::start().await;
    world.beat("eu-2", |beat| beat.version = "0.0.9".to_owned()).await;
    world.warns("group-version", "eu-2 0.0.9").await;
}

#[tokio::test]
async fn a_clock_that_is_far_off_is_reported() {
    let world = World::start().await;
    world.beat("eu-2", |beat| beat.at_ms -= 600_000).await;
    world.warns("group-clocks", "eu-2 60").await;
}
