//! Calls: how many at a time, how long, and that each is answered once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::super::serve::{Answered, CALLS_MAX, UNREAD_MAX};
use super::super::tools::Asked;
use super::{Client, call, found, modern};

/// The namespace that a status is asked for.
fn namespace(asked: Asked) -> String {
    match asked {
        Asked::Status { namespace } => namespace.unwrap_or_default(),
        other => panic!("{other:?} was not asked"),
    }
}

fn status(id: impl Into<Value>, namespace: &str) -> Value {
    call(id, "status", json!({ "namespace": namespace }))
}

fn cancel(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id.into() } })
}

#[tokio::test]
async fn an_answer_is_the_text_and_the_value_and_hides_nothing() {
    let answered = found("web\u{202e}\u{e0041}\nis well\n", json!({ "a\u{200b}": ["b\u{7}", 1, null, "two\nlines"] }));
    let (mut client, served) = Client::new(async |_| answered.clone());
    let asked = async {
        let answer = client.asks(&status(1, "shop")).await;
        client.lines = None;
        answer
    };
    let result = tokio::join!(asked, served).0["result"].clone();
    assert_eq!(result["content"], json!([{ "type": "text", "text": "web\\u{202e}\\u{e0041}\nis well" }]));
    assert_eq!(result["structuredContent"], json!({ "a\\u{200b}": ["b\\u{7}", 1, null, "two\nlines"] }));
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(false), &json!("complete")));
}

#[tokio::test]
async fn what_fails_says_why_and_has_no_value() {
    let (mut client, served) = Client::new(async |_| Answered::Failed("error: no cluster\n".to_owned()));
    let asked = async {
        let answer = client.asks(&status(1, "shop")).await;
        client.lines = None;
        answer
    };
    let result = tokio::join!(asked, served).0["result"].clone();
    assert_eq!(result["content"][0]["text"], "error: no cluster");
    assert_eq!((&result["isError"], &result["structuredContent"]), (&json!(true), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_few_are_answered_at_a_time_some_wait_and_one_more_is_refused() {
    let (now, most, go) = (Cell::new(0), Cell::new(0), Notify::new());
    let (mut client, served) = Client::new(async |_| {
        now.set(now.get() + 1);
        most.set(most.get().max(now.get()));
        go.notified().await;
        now.set(now.get() - 1);
        found("", json!({}))
    });
    let asked = async {
        for id in 0..CALLS_MAX {
            client.says(&status(id, "shop")).await;
        }
        let refused = client.asks(&status("one more", "shop")).await;
        assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!("one more"), &json!(true)));
        // What needs no place is answered all the same.
        let discovered = client.asks(&modern("d", "server/discover", json!({}))).await;
        assert_eq!(discovered["id"], "d");
        let mut ids = Vec::new();
        for _ in 0..CALLS_MAX {
            go.notify_one();
            ids.push(client.hears().await.expect("it is answered")["id"].as_u64());
        }
        ids.sort();
        assert_eq!(ids, (0..CALLS_MAX as u64).map(Some).collect::<Vec<_>>());
        assert_eq!(client.ids().await, Vec::<Value>::new());
    };
    tokio::join!(asked, served);
    assert_eq!((now.get(), most.get()), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_while_it_is_made_is_not_answered_when_it_would_end() {
    let (mut client, served) = Client::new(async |_| {
        sleep(Duration::from_secs(1)).await;
        found("", json!({}))
    });
    let asked = async {
        client.says(&status(1, "shop")).await;
        sleep(Duration::from_millis(500)).await;
        client.says(&cancel(1)).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(client.ids().await, Vec::<Value>::new());
    };
    tokio::join!(asked, served);
}

/// Goal: a client that ends its input and reads nothing is left at once. Method: it has room for one answer, and asks for several.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_is_seen_while_nothing_is_read() {
    let (mut client, served) = Client::that_takes(1, async |_| found("", json!({})));
    let begun = Instant::now();
    let asked = async {
        for id in 0..9 {
            client.says(&status(id, "shop")).await;
        }
        client.lines = None;
    };
    tokio::join!(asked, served);
    assert_eq!(begun.elapsed().as_secs(), 5, "as long as calls may go on after the last line");
    assert_eq!(client.hears().await.map(|answer| answer["id"].clone()), Some(json!(0)), "what fitted was answered");
    assert_eq!(client.hears().await, None);
}

/// Goal: who asks on and reads nothing fills no memory, and loses nothing by it. Method: it asks for more than may wait, and reads then.
#[tokio::test(start_paused = true)]
async fn lines_wait_while_many_answers_are_unread_and_each_is_answered_in_the_end() {
    let (mut client, served) = Client::that_takes(1, async |_| found("", json!({})));
    let all = 3 * UNREAD_MAX;
    let asked = async {
        for id in 0..all {
            client.says(&modern(id, "server/discover", json!({}))).await;
        }
        sleep(Duration::from_secs(60)).await;
        let lines = client.lines.as_ref().expect("it goes on");
        let waiting = lines.max_capacity() - lines.capacity();
        assert_eq!(all - waiting, UNREAD_MAX + 1, "those that wait, and the one that is on its way");
        assert_eq!(client.ids().await.len(), all);
    };
    tokio::join!(asked, served);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_not_answered_and_what_is_asked_twice_is_answered_once() {
    let began = RefCell::new(Vec::new());
    let (mut client, served) = Client::new(async |asked| {
        let name = namespace(asked);
        began.borrow_mut().push(name.clone());
        match name.as_str() {
            "never" => pending().await,
            _ => sleep(Duration::from_secs(1)).await,
        }
        found("", json!({ "of": name }))
    });
    let asked = async {
        client.says(&status(1, "never")).await;
        client.says(&status("1", "first")).await;
        client.says(&status("1", "second")).await;
        client.says(&json!({ "id": "1" })).await;
        client.says(&cancel("other")).await;
        client.says(&cancel(1)).await;
        let answer = client.hears().await.expect("it is answered");
        assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["of"]), (&json!("1"), &json!("first")));
        // A name is free once its call is answered or taken back, and a cancellation that comes late does nothing.
        client.says(&cancel("1")).await;
        client.says(&status(1, "third")).await;
        client.says(&status("1", "fourth")).await;
        let mut ids = client.ids().await;
        ids.sort_by_key(Value::to_string);
        assert_eq!(ids, [json!("1"), json!(1)]);
    };
    tokio::join!(asked, served);
    assert_eq!(*began.borrow(), ["never", "first", "third", "fourth"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_answer_fails_after_a_minute_and_its_neighbour_does_not() {
    let (mut client, served) = Client::new(async |asked| match namespace(asked).as_str() {
        "never" => pending().await,
        _ => found("", json!({})),
    });
    let began = Instant::now();
    let asked = async {
        client.says(&status(1, "never")).await;
        assert_eq!(client.asks(&status(2, "shop")).await["id"], 2);
        assert_eq!(began.elapsed(), Duration::ZERO);
        let late = client.hears().await.expect("it is answered");
        assert_eq!((&late["id"], &late["result"]["isError"]), (&json!(1), &json!(true)));
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        client.lines = None;
    };
    tokio::join!(asked, served);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_input_what_is_under_way_has_a_few_seconds() {
    for (takes, ids, ends) in [(0, vec![json!(1)], 0), (3, vec![json!(1)], 3), (7, vec![json!(1)], 5)] {
        let (mut client, served) = Client::new(async |_| {
            sleep(Duration::from_secs(takes)).await;
            found("", json!({}))
        });
        let began = Instant::now();
        client.says(&status(1, "shop")).await;
        let (heard, ()) = tokio::join!(client.ids(), served);
        assert_eq!((heard, began.elapsed()), (ids, Duration::from_secs(ends)), "{takes}");
    }
}

#[tokio::test]
async fn who_takes_no_answers_is_served_no_more() {
    let (mut client, served) = Client::new(async |_| found("", json!({})));
    client.says(&status(1, "shop")).await;
    client.answers.close();
    // The input goes on.
    served.await;
}

/// Messages that are almost right, and bytes that are not.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![
        Just(json!(1)),
        Just(json!("1")),
        Just(json!(2)),
        Just(json!(null)),
        Just(json!(1.5)),
        any::<i64>().prop_map(Value::from)
    ];
    let method = prop_oneof![
        Just("tools/call"),
        Just("tools/list"),
        Just("initialize"),
        Just("ping"),
        Just("server/discover"),
        Just("notifications/cancelled"),
        Just("other"),
    ];
    let params = prop_oneof![
        Just(json!({ "name": "status" })),
        Just(json!({ "name": "status", "arguments": { "namespace": "shop" } })),
        Just(json!({ "name": "explain", "arguments": { "host": 7 } })),
        Just(json!({ "protocolVersion": "2025-06-18" })),
        Just(json!({ "requestId": 1 })),
        Just(json!([])),
    ];
    let message =
        (id, method, params, any::<[bool; 3]>()).prop_map(|(id, method, params, [is_modern, has_id, is_cut])| {
            let mut message = if is_modern && params.is_object() {
                modern(id, method, params)
            } else {
                json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
            };
            if !has_id {
                message.as_object_mut().expect("it is one").remove("id");
            }
            let mut bytes = message.to_string().into_bytes();
            if is_cut {
                bytes.truncate(bytes.len() / 2);
            }
            bytes
        });
    prop_oneof![4 => message, 1 => prop::collection::vec(any::<u8>().prop_filter("one line", |byte| *byte != b'\n'), 0..64)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Every call takes a moment, so they overlap. An id is answered at most as often as it was used, and each use that
    /// nothing takes back and that overlaps with no other is answered.
    #[test]
    fn whatever_is_sent_each_request_is_answered_once(lines in prop::collection::vec(line(), 0..24), apart in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (mut used, mut cancels) = (BTreeMap::<String, usize>::new(), false);
        for line in &lines {
            let Ok(Value::Object(message)) = serde_json::from_slice(line) else { continue };
            match message.get("id") {
                Some(id) if id.is_i64() || id.is_string() => *used.entry(id.to_string()).or_default() += 1,
                Some(_) => {}
                None => cancels |= message["method"] == "notifications/cancelled",
            }
        }
        let mut answered = BTreeMap::<String, usize>::new();
        runtime.block_on(async {
            let (mut client, served) = Client::new(async |_| {
                sleep(Duration::from_millis(10)).await;
                found("", json!({}))
            });
            let asked = async {
                for line in &lines {
                    client.says_bytes(line).await;
                    if apart {
                        sleep(Duration::from_millis(20)).await;
                    }
                }
                for id in client.ids().await {
                    *answered.entry(id.to_string()).or_default() += 1;
                }
            };
            tokio::join!(asked, served);
        });
        answered.remove("null");
        for (id, times) in &used {
            let answers = answered.remove(id).unwrap_or_default();
            prop_assert!(answers <= *times, "{id} was answered {answers} times, and used {times} times");
            if apart || (*times == 1 && !cancels) {
                prop_assert_eq!(answers, *times, "{}", id);
            }
        }
        prop_assert_eq!(answered, BTreeMap::new(), "nothing else is answered");
    }
}
