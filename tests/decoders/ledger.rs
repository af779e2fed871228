//! A ledger in ConfigMaps, as whoever may write ConfigMaps there has left it: records in shards and journals, deliveries, the pin,
//! life notes.

use allclear::adapters::ledger::kubernetes::KubernetesLedger;
use bytes::Bytes;
use http::Uri;
use purge::ports::Ledger;
use purge::records::record::Record;
use serde_json::{Value, json};

use crate::api::{self, Answer};
use crate::{Target, target};

pub const TARGETS: &[Target] = &[target("ledger", ledger)];

/// Records that are read once more, one by one.
const LOADED: usize = 3;

/// The ConfigMaps of a list that a request asks for; the bytes themselves where they are no list.
fn answer(uri: &Uri, list: Option<&Value>, bytes: &Bytes) -> Answer {
    let items = list.and_then(|list| list.get("items")).and_then(Value::as_array);
    let Some(items) = items else { return Answer::whole(bytes.clone()) };
    let name = uri.path().rsplit('/').next().unwrap_or_default();
    if name != "configmaps" {
        let found = items.iter().find(|item| item.pointer("/metadata/name").and_then(Value::as_str) == Some(name));
        return found.map_or_else(Answer::missing, |item| Answer::whole(item.to_string()));
    }
    let query = uri.query().unwrap_or_default();
    let part = |item: &&Value| {
        let part = item.pointer("/metadata/labels/allclear.dev~1part").and_then(Value::as_str);
        part.is_some_and(|part| query.contains(&format!("part%3D{part}")) || query.contains(&format!("part={part}")))
    };
    let items: Vec<&Value> = items.iter().filter(part).collect();
    Answer::whole(json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}).to_string())
}

fn ledger(bytes: &[u8]) -> bool {
    let list: Option<Value> = serde_json::from_slice(bytes).ok();
    let bytes = Bytes::copy_from_slice(bytes);
    api::run(async {
        let length = bytes.len();
        let clients = api::clients(move |uri| answer(uri, list.as_ref(), &bytes));
        let open = || KubernetesLedger::new(clients.request.clone(), "allclear");
        let ledger = open();
        let contents = match ledger.peek().await {
            Ok(Some(contents)) => contents,
            Ok(None) => return false,
            Err(error) => {
                assert!(error.to_string().len() <= 4_096, "{} bytes", error.to_string().len());
                return false;
            }
        };
        let again = open().peek().await.unwrap().unwrap();
        assert_eq!(format!("{contents:?}"), format!("{again:?}"));
        assert!(contents.records.len() + contents.unreadable.len() <= length, "more records than bytes");
        for (workload, record) in contents.records.iter().take(LOADED) {
            let loaded = open().load(workload).await;
            assert_eq!(loaded.as_ref().ok(), Some(&Some(Record::clone(record))), "{workload}: {loaded:?}");
        }
        if let Ok(deliveries) = ledger.deliveries().await {
            assert!(deliveries.len() <= length);
        }
        !contents.records.is_empty() && contents.unreadable.is_empty()
    })
}
