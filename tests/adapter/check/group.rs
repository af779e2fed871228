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
async fn a_group_whose_templates_count_hears_of_a_better_choice() {
    let mut world = World::start().await;
    world.sections.insert("version", "of = \"template\"".to_owned());
    let change = |beat: &mut Heartbeat| {
        beat.settings.insert("version.of".to_owned(), "template".to_owned());
        beat.boot = "y".to_owned();
    };
    world.beat("eu-2", change).await;
    world.warns("group-configuration", "set version.of = \"annotation KEY\"").await;
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

impl World {
    /// A further server in the configuration, which our ledger knows to have answered once, or not.
    async fn third_server(&mut self, redis: &Redis, has_answered: bool) {
        let listed = format!("remotes = [\"{}\", ", redis.url());
        self.sections.entry("group").and_modify(|keys| *keys = keys.replace("remotes = [", &listed));
        let known = self.redis.iter().chain(has_answered.then_some(redis));
        let answered = known.map(|redis| format!("127.0.0.1:{}", redis.port())).collect();
        let pin = Pin { members: members(), of: 3, answered, ..Pin::default() };
        let clients = connect(&self.kubernetes()).await.unwrap();
        let ledger = KubernetesLedger::new(clients.request, "allclear");
        let before = ledger.open().await.unwrap().pin;
        assert!(ledger.store_pin(&pin, before.as_ref()).await.unwrap());
    }
}

#[tokio::test]
async fn a_server_that_never_said_who_it_is_holds_the_group() {
    let mut world = World::start().await;
    // It answers, takes all our commands, and still cannot say which server it is: something else has the key of its name.
    let third = Redis::start_with(&["--rename-command", "INFO", ""]);
    third.command::<()>(&["RPUSH", "allclear:{default}:server", "of another program"]);
    world.third_server(&third, false).await;
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), ["group-servers"], "{report}");
    said(&report, "group-servers", &format!("127.0.0.1:{} has never answered", third.port()));
    said(&report, "group-members", "agreed on");
}

#[tokio::test]
async fn a_server_that_is_away_holds_the_group_only_if_it_never_answered() {
    for (has_answered, failed) in [(false, &["redis-connect", "group-servers"][..]), (true, &["redis-connect"][..])] {
        let mut world = World::start().await;
        let mut third = Redis::start();
        world.third_server(&third, has_answered).await;
        third.kill();
        let report = world.report().await;
        assert_eq!(marked(&report, Mark::Failed), failed, "{report}");
    }
}

#[tokio::test]
async fn a_member_that_signs_with_another_key_is_named() {
    const KEYS: [&str; 2] = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];
    let mut world = World::start().await;
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), KEYS[0]).unwrap();
    let keyed = format!("key_file = \"{}\"", key.path().display());
    world.sections.entry("group").and_modify(|all| *all = all.replace("unsigned = true", &keyed));
    let origin = world.origin().await;
    world.redis.iter().for_each(|redis| redis.command::<()>(&["FLUSHALL"]));
    world.signed_beat("eu-1", Some(KEYS[0]), |beat| beat.origin = origin.clone()).await;
    world.signed_beat("eu-2", Some(KEYS[1]), |_| {}).await;
    world.fails("group-key", "eu-2").await;
    world.signed_beat("eu-2", None, |_| {}).await;
    world.fails("group-key", "eu-2").await;
    world.signed_beat("eu-2", Some(KEYS[0]), |_| {}).await;
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Failed), [""; 0], "{report}");
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
