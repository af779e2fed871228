//! Watches: what is seen, in which order, and that nothing an API server does loses a change.

use std::collections::BTreeSet;
use std::time::Duration;

use allclear::adapters::kubernetes::{Scope, Tempo};
use bytes::Bytes;
use kernel::id::WorkloadId;
use purge::ports::Retry;
use sandbox::http::{Action, Fault, Reply, Request, When};
use sandbox::kubernetes::{ExpiredForm, Kind};
use serde_json::json;
use tokio::sync::mpsc;

use super::{Bench, Reader, brisk, classic, is_list, is_watch, namespaces, web};

#[tokio::test]
async fn a_listing_and_then_every_change_are_seen_in_order() {
    for tempo in [brisk(), classic()] {
        let bench = Bench::start().await;
        bench.api.deploy("shop", "api", "shop/api:1", 1).unwrap();
        bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
        let view = bench.cluster(Scope::All, tempo.clone());
        let mut reader = Reader::synced(&view).await;
        assert_eq!(reader.said, ["restarted *", "seen api", "seen web", "synced all"]);

        bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
        bench.api.deploy("blog", "cms", "cms:1", 1).unwrap();
        bench.api.delete(Kind::Deployment, "shop", "api").unwrap();
        reader.forget();
        reader.until("the last change is seen", |reader| reader.said("gone api")).await;
        assert_eq!(reader.said, ["seen web", "seen cms", "gone api"]);
        assert_eq!(reader.version(&web()).as_deref(), Some("web shop/web:2"));
        let streamed = !bench.seen(|seen| seen.query.contains_key("sendInitialEvents")).is_empty();
        assert_eq!(streamed, tempo.streaming);
    }
}

#[tokio::test]
async fn a_server_without_streaming_lists_is_listed_and_not_asked_again() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    bench.refuse(422, u32::MAX, |request| request.query.contains_key("sendInitialEvents"));
    let view = bench.view();
    for _ in 0..2 {
        let reader = Reader::synced(&view).await;
        assert_eq!(reader.said, ["restarted *", "seen web", "synced all"]);
    }
    assert_eq!(bench.seen(|seen| seen.query.contains_key("sendInitialEvents")).len(), 1);
}

// Faults: W2
/// A change, a deletion and a creation all happen while nobody watches, and the history of them is thrown away.
#[tokio::test]
async fn changes_behind_an_expired_version_are_found_by_listing_again() {
    for form in [ExpiredForm::Event, ExpiredForm::Http] {
        for tempo in [brisk(), classic()] {
            let bench = Bench::start().await;
            bench.api.set_expired_form(form);
            bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
            bench.api.deploy("shop", "old", "shop/old:1", 1).unwrap();
            let view = bench.cluster(Scope::All, tempo);
            let mut reader = Reader::synced(&view).await;
            reader.forget();

            bench.refuse(503, u32::MAX, is_watch);
            bench.api.close_watches();
            // A watch that is closed may still hand on what happened before it ends.
            reader.until("it is cut off", |reader| reader.said("trouble")).await;
            bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
            bench.api.delete(Kind::Deployment, "shop", "old").unwrap();
            bench.api.deploy("shop", "new", "shop/new:1", 1).unwrap();
            bench.api.compact();
            bench.server.clear_faults();
            reader.until("all is listed again", |reader| reader.said("restarted *")).await;
            reader.forget();
            reader.until("the listing is complete", |reader| reader.said("synced all")).await;
            let names: Vec<&str> = reader.known.keys().map(|id| id.name.as_str()).collect();
            assert_eq!(names, ["new", "web"]);
            assert_eq!(reader.version(&web()).as_deref(), Some("web shop/web:2"));
        }
    }
}

// Faults: W2
#[tokio::test]
async fn a_watch_that_expires_while_open_is_listed_again() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let view = bench.view();
    let mut reader = Reader::synced(&view).await;
    reader.forget();
    bench.api.expire_watches();
    reader.until("all is listed again", |reader| reader.said("synced all")).await;
    assert_eq!(reader.said, ["restarted *", "seen web", "synced all"]);
}

// Faults: W4
/// A change and its reversal, both unseen: the generation gives them away.
#[tokio::test]
async fn a_hidden_change_and_its_reversal_show_in_the_generation() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let view = bench.view();
    let mut reader = Reader::synced(&view).await;
    let before = reader.known[&web()].generation;
    bench.refuse(503, 1, is_watch);
    bench.api.close_watches();
    bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
    bench.api.set_image("shop", "web", "web", "shop/web:1").unwrap();
    bench.api.compact();
    reader.until("the reversal is seen", |reader| reader.known[&web()].generation == before + 2).await;
    assert_eq!(reader.version(&web()).as_deref(), Some("web shop/web:1"));
}

// Faults: W1
/// W1: however a watch ends, it goes on from where it was. Each way of ending happens once before a change.
#[tokio::test]
async fn a_watch_that_ends_is_resumed_without_listing_again() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:0", 1).unwrap();
    let view = bench.view();
    let mut reader = Reader::synced(&view).await;
    reader.forget();
    let torn = r#"{"type":"MODIFIED","object":{"metadata":{"names"#;
    let whole = format!("{torn}\n");
    let endings = [
        None,
        Some(Action::Cut),
        Some(Action::Answer(Reply::full(200, "application/json", torn))),
        Some(Action::Answer(Reply::full(200, "application/json", whole))),
        Some(Action::Answer(Reply::empty(500))),
    ];
    for (number, ending) in endings.into_iter().enumerate() {
        if let Some(action) = ending {
            bench.server.inject(Fault::once(When::Before, action).matching(is_watch));
        }
        bench.api.close_watches();
        let image = format!("shop/web:{}", number + 1);
        bench.api.set_image("shop", "web", "web", &image).unwrap();
        let wanted = Some(format!("web {image}"));
        reader.until(&image, |reader| reader.version(&web()) == wanted).await;
    }
    assert!(!reader.said("restarted *"), "{:?}", reader.said);
}

// Faults: W6
/// W6: the other side is gone without a word. A second connection tells.
#[tokio::test]
async fn a_silent_watch_is_given_up() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let (silent, chunks) = mpsc::channel::<Bytes>(1);
    let stream = Reply::stream(200, "application/json", chunks);
    let resumed = |request: &Request| is_watch(request) && !request.query.contains_key("sendInitialEvents");
    bench.server.inject(Fault::once(When::Before, Action::Answer(stream)).matching(resumed));
    let view = bench.cluster(Scope::All, Tempo { idle: Duration::from_millis(200), ..classic() });
    let mut reader = Reader::synced(&view).await;
    bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
    reader.until("the change is seen", |reader| reader.version(&web()).as_deref() == Some("web shop/web:2")).await;
    assert_eq!(reader.count("restarted *"), 1);
    drop(silent);
}

#[tokio::test]
async fn a_listing_that_fails_is_tried_again_and_says_so() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    bench.refuse(500, 3, |_| true);
    let view = bench.view();
    let reader = Reader::synced(&view).await;
    assert_eq!(reader.said, ["trouble", "trouble", "trouble", "restarted *", "seen web", "synced all"]);
    assert_eq!(reader.troubles[0].retry, Retry::Later);
}

#[tokio::test]
async fn an_overloaded_server_is_left_alone_for_as_long_as_it_asks() {
    let bench = Bench::start().await;
    let answer =
        Reply::full(429, "text/plain", "Too many requests, please try again later.").header("Retry-After", "1");
    bench.server.inject(Fault::once(When::Before, Action::Answer(answer)));
    let view = bench.view();
    let reader = Reader::synced(&view).await;
    assert_eq!(reader.troubles[0].retry, Retry::After(Duration::from_secs(1)));
    let seen = bench.server.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(1), "{:?}", seen[1].at - seen[0].at);
}

// Faults: A1
/// A1: never a hot loop. The real tempo, so that the test is about the real numbers.
#[tokio::test]
async fn a_failing_server_gets_about_one_request_a_second() {
    let bench = Bench::start().await;
    bench.refuse(503, u32::MAX, |_| true);
    let view = bench.cluster(Scope::All, Tempo::default());
    let mut reader = Reader::of(&view);
    reader.until("it failed twice", |reader| reader.count("trouble") == 2).await;
    let seen = bench.server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(800), "{:?}", seen[1].at - seen[0].at);
}

/// A4: rights are taken away and given back while we run.
#[tokio::test]
async fn a_watch_goes_on_when_a_right_is_given_back() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let view = bench.cluster(namespaces(&["shop"]), brisk());
    let mut reader = Reader::synced(&view).await;
    reader.forget();
    bench.refuse(403, u32::MAX, |_| true);
    bench.api.close_watches();
    reader.until("trouble is told", |reader| reader.said("trouble")).await;
    let error = &reader.troubles[0];
    assert_eq!(error.retry, Retry::Never);
    assert_eq!(
        error.to_string(),
        "failed to watch deployments.apps in shop: refused by the test; \
         allow the owner of these credentials to watch deployments.apps in shop"
    );
    bench.server.clear_faults();
    reader.until("the trouble is over", |reader| reader.said("synced all")).await;
}

/// What is told goes into a log and into a status, where other words are news each time.
#[tokio::test]
async fn a_right_that_is_missing_is_told_in_the_same_words_each_time() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    bench.refuse(403, u32::MAX, |_| true);
    let view = bench.view();
    let mut reader = Reader::of(&view);
    reader.until("it was told four times", |reader| reader.count("trouble") == 4).await;
    let words: BTreeSet<String> = reader.troubles.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words.first().is_some_and(|words| words.contains("to list deployments.apps")), "{words:?}");
    // Who may list and not watch sees at least what a list shows.
    bench.server.clear_faults();
    bench.refuse(403, u32::MAX, is_watch);
    reader.until("the list is read", |reader| reader.said("seen web")).await;
}

/// A5: after a restore from a backup the API server never reaches our version; it refuses it without saying 410.
#[tokio::test]
async fn a_version_the_server_never_reaches_is_given_up() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let view = bench.cluster(Scope::All, classic());
    let mut reader = Reader::synced(&view).await;
    reader.forget();
    bench.refuse(504, 12, is_watch);
    bench.api.close_watches();
    reader.until("all is listed again", |reader| reader.said("restarted *")).await;
    reader.forget();
    reader.until("the listing is complete", |reader| reader.said("synced all")).await;
}

// Faults: W3
/// W3: history is compacted faster than pages are read.
#[tokio::test]
async fn a_list_whose_pages_expire_is_read_in_one() {
    let bench = Bench::start().await;
    for number in 0..5 {
        bench.api.deploy("shop", &format!("web-{number}"), "shop/web:1", 1).unwrap();
    }
    bench.refuse(410, u32::MAX, |request| request.query.contains_key("continue"));
    let view = bench.cluster(Scope::All, Tempo { page: 2, ..classic() });
    let reader = Reader::synced(&view).await;
    assert_eq!(reader.known.len(), 5);
    assert_eq!(reader.count("restarted *"), 2);
}

#[tokio::test]
async fn a_list_of_several_pages_is_one_listing() {
    let bench = Bench::start().await;
    for number in 0..5 {
        bench.api.deploy("shop", &format!("web-{number}"), "shop/web:1", 1).unwrap();
    }
    let view = bench.cluster(Scope::All, Tempo { page: 2, ..classic() });
    let reader = Reader::synced(&view).await;
    assert_eq!(reader.known.len(), 5);
    assert_eq!(reader.count("restarted *"), 1);
}

// Faults: W7
/// W7, in a listing and in a watch.
#[tokio::test]
async fn a_broken_object_is_told_and_the_others_go_on() {
    for tempo in [brisk(), classic()] {
        let bench = Bench::start().await;
        let mut broken = bench.api.deploy("shop", "broken", "shop/broken:1", 1).unwrap();
        bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
        broken["status"] = json!({"replicas": "many"});
        bench.api.put(broken.clone()).unwrap();
        let id = WorkloadId::deployment("shop", "broken");
        let view = bench.cluster(Scope::All, tempo);
        let mut reader = Reader::synced(&view).await;
        assert!(reader.unreadable[&id].contains(".status.replicas is not a whole number"), "{:?}", reader.unreadable);
        assert!(reader.known.contains_key(&web()));

        reader.forget();
        broken["spec"] = json!(null);
        bench.api.put(broken.clone()).unwrap();
        bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
        reader.until("both are told", |reader| reader.said("unreadable broken") && reader.said("seen web")).await;
        broken["spec"] = bench.api.get(Kind::Deployment, "shop", "web").unwrap()["spec"].clone();
        broken["status"] = json!({"conditions": null, "new": {"field": [1]}});
        bench.api.put(broken).unwrap();
        reader.until("it can be read again", |reader| reader.unreadable.is_empty()).await;
        assert_eq!(reader.count("trouble"), 0);
    }
}

// Faults: W7
#[tokio::test]
async fn bytes_that_are_no_utf8_cost_only_their_object() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let good = bench.api.get(Kind::Deployment, "shop", "web").unwrap().to_string();
    let bad = good.replace(r#""name":"web""#, r#""name":"bad""#).replace("shop/web:1", "shop/\u{1}:1");
    let body = format!(r#"{{"kind":"DeploymentList","metadata":{{"resourceVersion":"1"}},"items":[{bad},{good}]}}"#);
    let body: Vec<u8> = body.bytes().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
    let answer = Action::Answer(Reply::full(200, "application/json", body));
    bench.server.inject(Fault::once(When::Before, answer).matching(is_list));
    let view = bench.cluster(Scope::All, classic());
    let reader = Reader::synced(&view).await;
    assert_eq!(reader.said, ["restarted *", "unreadable bad", "seen web", "synced all"]);
}

/// W7. The API server takes no more than 3 MiB from a client.
#[tokio::test]
async fn an_object_as_large_as_any_can_be_is_read_like_the_others() {
    for tempo in [brisk(), classic()] {
        let bench = Bench::start().await;
        let mut large = bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
        large["metadata"]["annotations"] = json!({"example.com/all-of-it": "x".repeat(3 * 1024 * 1024)});
        bench.api.put(large).unwrap();
        let view = bench.cluster(Scope::All, tempo);
        let mut reader = Reader::synced(&view).await;
        bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
        reader.until("the change is seen", |reader| reader.version(&web()).as_deref() == Some("web shop/web:2")).await;
        assert_eq!(reader.count("trouble"), 0);
    }
}

/// A proxy, or a server that knows nothing of streaming lists and does not say so: the end of the list never comes, or the
/// connection breaks before it.
#[tokio::test]
async fn a_streaming_list_without_an_end_is_replaced_by_a_plain_one() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    bench.api.deploy("shop", "more", "shop/more:1", 1).unwrap();
    let web = bench.api.get(Kind::Deployment, "shop", "web").unwrap();
    let added = Bytes::from(json!({"type": "ADDED", "object": web}).to_string() + "\n");
    for keep_open in [true, false] {
        let (sender, chunks) = mpsc::channel(1);
        sender.send(added.clone()).await.unwrap();
        let endless = Action::Answer(Reply::stream(200, "application/json", chunks));
        let streaming = |request: &Request| request.query.contains_key("sendInitialEvents");
        bench.server.inject(Fault::once(When::Before, endless).matching(streaming));
        let open = keep_open.then_some(sender);
        let view = bench.cluster(Scope::All, Tempo { idle: Duration::from_millis(200), ..brisk() });
        let reader = Reader::synced(&view).await;
        assert_eq!(
            reader.said,
            ["restarted *", "seen web", "restarted *", "seen more", "seen web", "synced all"],
            "kept open: {keep_open}"
        );
        drop(open);
    }
}

#[tokio::test]
async fn several_namespaces_are_one_stream_and_a_new_listing_concerns_only_its_own() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    bench.api.deploy("blog", "cms", "cms:1", 1).unwrap();
    bench.api.deploy("other", "unseen", "other:1", 1).unwrap();
    let view = bench.cluster(namespaces(&["shop", "blog", "empty"]), brisk());
    let mut reader = Reader::synced(&view).await;
    assert_eq!(reader.known.len(), 2);
    assert_eq!(reader.said.iter().filter(|said| said.starts_with("synced")).count(), 3);
    assert_eq!(reader.said.last().map(String::as_str), Some("synced all"));

    reader.forget();
    bench.refuse(410, 1, |request| is_watch(request) && request.path.contains("/shop/"));
    bench.api.close_watches();
    bench.api.delete(Kind::Deployment, "shop", "web").unwrap();
    reader.until("shop is listed again", |reader| reader.said("restarted shop")).await;
    reader.until("the listing is complete", |reader| reader.said("synced all")).await;
    assert_eq!(reader.known.keys().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["cms"]);
    assert!(!reader.said("restarted blog") && !reader.said("trouble"), "{:?}", reader.said);
}

#[tokio::test]
async fn one_namespace_in_trouble_does_not_stop_the_others() {
    let bench = Bench::start().await;
    bench.api.deploy("blog", "cms", "cms:1", 1).unwrap();
    bench.refuse(403, u32::MAX, |request| request.path.contains("/secret/"));
    let view = bench.cluster(namespaces(&["blog", "secret"]), brisk());
    let mut reader = Reader::of(&view);
    reader.until("blog is synced", |reader| reader.said("synced blog") && reader.said("trouble")).await;
    bench.api.set_image("blog", "cms", "cms", "cms:2").unwrap();
    let cms = WorkloadId::deployment("blog", "cms");
    reader.until("the change is seen", |reader| reader.version(&cms).as_deref() == Some("cms cms:2")).await;
    assert!(!reader.said("synced all"));
    bench.server.clear_faults();
    reader.until("all is synced", |reader| reader.said("synced all")).await;
}

// Faults: W8
/// W8.
#[tokio::test]
async fn a_workload_made_again_under_the_same_name_has_another_uid() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let view = bench.view();
    let mut reader = Reader::synced(&view).await;
    let before = reader.known[&web()].uid.clone();
    reader.forget();
    bench.api.delete(Kind::Deployment, "shop", "web").unwrap();
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    reader.until("it is there again", |reader| reader.said("seen web")).await;
    assert_eq!(reader.said, ["gone web", "seen web"]);
    assert_ne!(reader.known[&web()].uid, before);
}

// Faults: A5
/// A5: etcd is restored from a backup under a running watch. What it goes on from is a version of the future, so it is told
/// nothing at all; two small lists prove it.
#[tokio::test]
async fn a_cluster_that_is_restored_is_noticed_and_listed_again() {
    for scope in [Scope::All, namespaces(&["blog", "shop"])] {
        let bench = Bench::start().await;
        bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
        let backup = bench.api.backup();
        bench.api.deploy("blog", "cms", "cms:1", 1).unwrap();
        for image in ["shop/web:2", "shop/web:3", "shop/web:4"] {
            bench.api.set_image("shop", "web", "web", image).unwrap();
        }
        let view = bench.cluster(scope, Tempo { prove: Some(Duration::from_millis(50)), ..brisk() });
        let mut reader = Reader::synced(&view).await;
        reader.forget();
        bench.api.restore(&backup);
        bench.api.set_image("shop", "web", "web", "shop/web:2").unwrap();
        reader.until("it is noticed", |reader| reader.said("set back")).await;
        reader.until("the present is seen", |reader| reader.version(&web()).as_deref() == Some("web shop/web:2")).await;
        reader.until("cms is gone", |reader| reader.known.len() == 1).await;
        bench.api.set_image("shop", "web", "web", "shop/web:3").unwrap();
        reader
            .until("the watch works again", |reader| reader.version(&web()).as_deref() == Some("web shop/web:3"))
            .await;
        assert_eq!(reader.said.iter().filter(|said| *said == "set back").count(), 1);
    }
}

// Faults: A5
/// One answer of a server whose cache lags, or of a proxy, is no restore.
#[tokio::test]
async fn a_single_list_that_is_behind_sets_nothing_back() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let one = |request: &Request| request.query.get("limit").is_some_and(|limit| limit == "1");
    let view = bench.cluster(Scope::All, Tempo { prove: Some(Duration::from_millis(50)), ..brisk() });
    let mut reader = Reader::synced(&view).await;
    reader.forget();
    let old = r#"{"kind":"DeploymentList","metadata":{"resourceVersion":"1"},"items":[]}"#;
    let answer = Action::Answer(Reply::full(200, "application/json", old));
    bench.server.inject(Fault::once(When::Before, answer).matching(one));
    reader.until("it is listed again", |reader| reader.said("synced all")).await;
    assert!(!reader.said("set back"), "{:?}", reader.said);
    assert_eq!(reader.version(&web()).as_deref(), Some("web shop/web:1"));
}
