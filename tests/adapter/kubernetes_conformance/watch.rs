//! Watches: where they start, what they say, how they end; and kube's own watcher on top of them.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::WatchEvent;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use serde_json::{Value, json};

use super::support::{Api, Check, checks, version};
use sandbox::kubernetes::{ExpiredForm, KubernetesStandIn, Options};

pub const CHECKS: &[(&str, Check)] = checks![
    a_watch_tells_every_change_after_its_version,
    a_watch_without_a_version_starts_with_what_is_there,
    a_streaming_list_marks_its_end,
    a_watch_tells_who_enters_and_leaves_the_selector,
    a_watch_of_one_name_hears_of_nothing_else,
    a_watch_ends_when_it_said,
    a_removal_has_a_version_of_its_own,
    a_watch_from_a_version_of_the_future_is_told_nothing,
    a_list_without_a_version_shows_that_the_cluster_was_restored_on_demand,
    a_watch_from_a_forgotten_version_is_expired_on_demand,
    an_open_watch_survives_a_compaction_on_demand,
    kubes_watcher_lists_then_watches,
    kubes_watcher_streams_its_list,
    kubes_watcher_lists_again_after_410_on_demand,
];

async fn a_watch_tells_every_change_after_its_version(api: Api) {
    let before = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    api.merge(&path, &json!({"data": {"v": "2"}})).await.unwrap();
    let query = format!("{}&resourceVersion={}", api.mine(), version(&before));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    assert_eq!(events.next_change().await, "MODIFIED a=2");
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    api.merge(&path, &json!({"data": {"v": "2"}})).await.unwrap();
    api.merge(&path, &json!({"data": {"v": "3"}})).await.unwrap();
    api.delete(&path).await.unwrap();
    let expected = ["ADDED b=1", "MODIFIED a=3", "DELETED a=3"];
    for event in expected {
        assert_eq!(events.next_change().await, event, "a write without change is no event");
    }
}

async fn a_watch_without_a_version_starts_with_what_is_there(api: Api) {
    api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    for start in ["", "&resourceVersion=0"] {
        let mut events = api.watch(&api.path("configmaps"), &format!("{}{start}", api.mine())).await.unwrap();
        assert_eq!(events.next_change().await, "ADDED a=1");
    }
    let mut everywhere = api.watch("/api/v1/configmaps", &api.mine()).await.unwrap();
    assert_eq!(everywhere.next_change().await, "ADDED a=1");
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    assert_eq!(everywhere.next_change().await, "ADDED b=1");
}

async fn a_streaming_list_marks_its_end(api: Api) {
    for name in ["a", "b"] {
        api.post(&api.path("configmaps"), &api.config_map(name, "1")).await.unwrap();
    }
    let query =
        format!("{}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", api.mine());
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    let mut first = vec![events.next_change().await, events.next_change().await];
    first.sort();
    assert_eq!(first, ["ADDED a=1", "ADDED b=1"]);
    assert_eq!(events.next_change().await, "END OF LIST");
    api.post(&api.path("configmaps"), &api.config_map("c", "1")).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED c=1");
}

async fn a_watch_tells_who_enters_and_leaves_the_selector(api: Api) {
    let made = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    let query = format!("{},on&resourceVersion={}", api.mine(), version(&made));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    let label = |on: Value, value: &str| json!({"metadata": {"labels": {"on": on}}, "data": {"v": value}});
    api.merge(&path, &label(json!(null), "2")).await.unwrap();
    api.merge(&path, &label(json!("x"), "3")).await.unwrap();
    api.merge(&path, &label(json!("y"), "4")).await.unwrap();
    let left = api.merge(&path, &label(json!(null), "5")).await.unwrap();
    api.delete(&path).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED a=3");
    assert_eq!(events.next_change().await, "MODIFIED a=4");
    let WatchEvent::Deleted(gone) = events.next_raw().await.unwrap() else { panic!("it left the selector") };
    assert_eq!(gone["data"]["v"], "4", "it is shown as it was when it was last selected");
    assert_eq!(version(&gone), version(&left), "under the version of the change");
}

async fn a_watch_of_one_name_hears_of_nothing_else(api: Api) {
    let query = format!("fieldSelector=metadata.name%3D{}", api.name("b"));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    for name in ["a", "b", "c"] {
        api.post(&api.path("configmaps"), &api.config_map(name, "1")).await.unwrap();
    }
    api.delete(&format!("{}/{}", api.path("configmaps"), api.name("b"))).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED b=1");
    assert_eq!(events.next_change().await, "DELETED b=1");
}

async fn a_watch_ends_when_it_said(api: Api) {
    let query = format!("{}&timeoutSeconds=1", api.mine());
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    assert_eq!(events.next_change().await, "END");
}

async fn a_watch_from_a_version_of_the_future_is_told_nothing(api: Api) {
    let now = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let future = version(&now).parse::<u64>().unwrap() + 1_000_000_000;
    let query = format!("{}&resourceVersion={future}&allowWatchBookmarks=true&timeoutSeconds=2", api.mine());
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    assert_eq!(events.next_change().await, "END");
}

async fn a_list_without_a_version_shows_that_the_cluster_was_restored_on_demand(outer: Api) {
    // In a cluster of its own: the other checks are not to go back in time.
    let cluster = KubernetesStandIn::new(Options::default());
    let server = cluster.start().await.unwrap();
    let api = Api::of_kubeconfig(&cluster.kubeconfig(&server)).await;
    let api = Api { namespace: "default".to_owned(), check: outer.check, ..api };
    let (all, one) = (api.path("configmaps"), format!("{}?limit=1", api.path("configmaps")));
    let backup = cluster.backup();
    for name in ["a", "b"] {
        api.post(&all, &api.config_map(name, "1")).await.unwrap();
    }
    let reached = version(&api.get(&one).await.unwrap()).parse::<u64>().unwrap();
    cluster.restore(&backup);
    let query = format!("resourceVersion={reached}&timeoutSeconds=1");
    let mut future = api.watch(&all, &query).await.unwrap();
    let now = api.post(&all, &api.config_map("c", "1")).await.unwrap();
    assert!(version(&api.get(&one).await.unwrap()).parse::<u64>().unwrap() < reached);
    assert_eq!(future.next_change().await, "END");
    let mut present = api.watch(&all, &format!("resourceVersion={}", version(&now))).await.unwrap();
    api.post(&all, &api.config_map("d", "1")).await.unwrap();
    assert_eq!(present.next_change().await, "ADDED d=1");
    server.stop().await;
}

async fn a_removal_has_a_version_of_its_own(api: Api) {
    let made = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let query = format!("{}&resourceVersion={}", api.mine(), version(&made));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    api.delete(&format!("{}/{}", api.path("configmaps"), api.name("a"))).await.unwrap();
    let WatchEvent::Deleted(gone) = events.next_raw().await.unwrap() else { panic!("it was deleted") };
    let number = |object| version(object).parse::<u64>().unwrap();
    assert!(number(&gone) > number(&made));
    assert_eq!((&gone["kind"], &gone["metadata"]["uid"]), (&json!("ConfigMap"), &made["metadata"]["uid"]));
    let query = format!("{}&resourceVersion={}", api.mine(), version(&gone));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED b=1", "the removal is not told again");
}

async fn a_watch_from_a_forgotten_version_is_expired_on_demand(api: Api) {
    let old = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    api.stand_in().compact();
    let query = format!("{}&resourceVersion={}", api.mine(), version(&old));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    assert_eq!((events.next().await, events.next().await), ("ERROR 410 Expired".to_owned(), "END".to_owned()));
    api.stand_in().set_expired_form(ExpiredForm::Http);
    let status = api.watch(&api.path("configmaps"), &query).await.err().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    api.stand_in().set_expired_form(ExpiredForm::Event);
}

async fn an_open_watch_survives_a_compaction_on_demand(api: Api) {
    let made = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let query = format!("{}&resourceVersion={}", api.mine(), version(&made));
    let mut events = api.watch(&api.path("configmaps"), &query).await.unwrap();
    api.post(&api.path("configmaps"), &api.config_map("b", "1")).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED b=1");
    // A write of another kind: the watch has not heard of its version, and has missed nothing.
    api.post(&api.path("deployments"), &api.deployment("other")).await.unwrap();
    api.stand_in().compact();
    api.post(&api.path("configmaps"), &api.config_map("c", "1")).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED c=1");
    api.stand_in().expire_watches();
    assert_eq!((events.next().await, events.next().await), ("ERROR 410 Expired".to_owned(), "END".to_owned()));
}

type Watched = Pin<Box<dyn Stream<Item = watcher::Result<Event<ConfigMap>>> + Send>>;

fn watched(api: &Api, strategy: InitialListStrategy) -> Watched {
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(api.client.clone(), &api.namespace);
    let config = watcher::Config {
        initial_list_strategy: strategy,
        page_size: Some(1),
        ..watcher::Config::default().labels(&format!("check={}", api.check))
    };
    Box::pin(watcher::watcher(maps, config))
}

/// The next event in short. Errors are skipped: kube retries at the next poll, which is what is checked.
async fn next(events: &mut Watched) -> String {
    loop {
        let short = |map: &ConfigMap| {
            let name = map.metadata.name.as_deref().unwrap_or_default();
            name.rsplit('-').next().unwrap_or_default().to_owned()
        };
        return match events.next().await {
            Some(Ok(Event::Init)) => "init".to_owned(),
            Some(Ok(Event::InitApply(map))) => format!("init {}", short(&map)),
            Some(Ok(Event::InitDone)) => "done".to_owned(),
            Some(Ok(Event::Apply(map))) => format!("apply {}", short(&map)),
            Some(Ok(Event::Delete(map))) => format!("delete {}", short(&map)),
            Some(Err(_)) => continue,
            None => "end".to_owned(),
        };
    }
}

async fn follow(api: &Api, strategy: InitialListStrategy) {
    for name in ["a", "b"] {
        api.post(&api.path("configmaps"), &api.config_map(name, "1")).await.unwrap();
    }
    let mut events = watched(api, strategy);
    assert_eq!(next(&mut events).await, "init");
    let mut initial = vec![next(&mut events).await, next(&mut events).await];
    initial.sort();
    assert_eq!(initial, ["init a", "init b"]);
    assert_eq!(next(&mut events).await, "done");
    api.post(&api.path("configmaps"), &api.config_map("c", "1")).await.unwrap();
    assert_eq!(next(&mut events).await, "apply c");
    api.delete(&format!("{}/{}", api.path("configmaps"), api.name("a"))).await.unwrap();
    assert_eq!(next(&mut events).await, "delete a");
}

async fn kubes_watcher_lists_then_watches(api: Api) {
    follow(&api, InitialListStrategy::ListWatch).await;
}

async fn kubes_watcher_streams_its_list(api: Api) {
    follow(&api, InitialListStrategy::StreamingList).await;
}

async fn kubes_watcher_lists_again_after_410_on_demand(api: Api) {
    api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    for strategy in [InitialListStrategy::ListWatch, InitialListStrategy::StreamingList] {
        let mut events = watched(&api, strategy);
        for expected in ["init", "init a", "done"] {
            assert_eq!(next(&mut events).await, expected);
        }
        // Lets kube open the watch. Where it has not got that far yet, it opens one from a forgotten version: it meets
        // a 410 either way.
        let waiting = tokio::time::timeout(Duration::from_millis(200), next(&mut events)).await;
        assert!(waiting.is_err(), "nothing happens until something is written: {waiting:?}");
        let unseen = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "unseen-"}});
        api.post(&api.path("configmaps"), &unseen).await.unwrap();
        api.stand_in().expire_watches();
        for expected in ["init", "init a", "done"] {
            assert_eq!(next(&mut events).await, expected);
        }
    }
}
