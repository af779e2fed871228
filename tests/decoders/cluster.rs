//! What an API server answers: objects of workloads, lists however they are cut, watches, refusals.

use std::collections::BTreeMap;
use std::sync::Arc;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::kubernetes::kubeconfig::Origin;
use allclear::adapters::kubernetes::leaf::Clusters;
use allclear::adapters::kubernetes::objects::Repos;
use allclear::adapters::kubernetes::secrets::KubernetesSecrets;
use allclear::adapters::kubernetes::{Cluster, KubernetesLease, Scope, cluster_uid, workload_decoder};
use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use kernel::id::{Kind, WorkloadId};
use kernel::names::destination::Purpose;
use kernel::names::image::VersionOf;
use kernel::replica::lease::Replica;
use objects::apps::app::{AppKind, ClusterKey, LeafId, LeafKind};
use objects::apps::ready;
use objects::ports::pipeline::{Leaves, Link};
use objects::ports::{Objects, Secrets};
use purge::ports::{ClusterView, Lease, PortError, Sight};
use serde_json::Value;

use crate::api::{self, Answer};
use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[
    target("deployment", workload),
    target("deployment_list", deployment_list),
    target("pod_list", pod_list),
    target("pod_watch", pod_watch),
    target("deployment_watch", deployment_watch),
    target("refusal", refusal),
    target("endpoint_slices", endpoint_slices),
    target("kinds", kinds),
    target("secret", secret),
    target("lease", lease),
    target("namespace", namespace),
    target("leaf_kubeconfig", leaf_kubeconfig),
    target("app", app),
];

/// Bytes of an error of the API server in words.
const ERROR_BYTES_MAX: usize = 8 * 1024;

fn cluster(answer: impl Fn(&http::Uri) -> Answer + Send + Sync + 'static) -> Cluster {
    Cluster::new(&api::clients(answer), Scope::All, api::tempo()).following([Kind::Deployment].into())
}

/// What is refused is refused in some words, and not in many.
fn spoken(words: &str) -> bool {
    assert!(!words.is_empty() && words.len() <= ERROR_BYTES_MAX, "{} bytes", words.len());
    false
}

/// The same bytes as a workload of each kind.
fn workload(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let read = Kind::ALL.map(|kind| {
        let decode = workload_decoder(kind, &VersionOf::Images);
        let Ok(workload) = decode(&text) else { return false };
        assert_eq!(decode(&text).as_ref(), Ok(&workload));
        // The same object by other bytes: what is told twice, or is no number for a tree, is left out.
        if let Ok(value) = serde_json::from_str::<Value>(&text)
            && value.to_string().len() == compact(&text)
        {
            assert_eq!(decode(&value.to_string()).as_ref(), Ok(&workload));
        }
        assert!(format!("{workload:?}").len() <= 64 * 1024 + 16 * bytes.len());
        true
    });
    read.contains(&true)
}

/// Bytes of a JSON document without the blanks between its parts.
fn compact(json: &str) -> usize {
    let (mut in_string, mut escaped, mut length) = (false, false, 0);
    for byte in json.bytes() {
        length += usize::from(in_string || !byte.is_ascii_whitespace());
        if byte == b'"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && byte == b'\\' && !escaped;
    }
    length
}

/// A list as a start reads it, page by page and piece by piece.
fn deployment_list(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let watched = api::however_cut(|cut| {
        let bytes = bytes.clone();
        let answer = move |uri: &http::Uri| match uri.query().unwrap_or_default().contains("watch=") {
            true => Answer::lines(b"", cut),
            false => Answer::cut(&bytes, cut),
        };
        api::run(async move { api::first(cluster(answer).watch()).await })
    });
    watched.iter().any(|sight| sight.starts_with("Seen"))
}

/// A list that is taken apart while it comes in.
fn pod_list(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let read = api::however_cut(|cut| {
        let bytes = bytes.clone();
        let read = async move { cluster(move |_| Answer::cut(&bytes, cut)).pods("shop").await };
        api::run(read).map_err(|error| error.to_string())
    });
    match read {
        Ok(pods) => {
            assert!(pods.len() <= bytes.len());
            !pods.is_empty()
        }
        Err(words) => spoken(&words),
    }
}

/// Lines of a watch after an empty list.
fn watched(uri: &http::Uri, bytes: &Bytes, cut: usize) -> Answer {
    match uri.query().unwrap_or_default().contains("watch=") {
        true => Answer::lines(bytes, cut),
        false => Answer::empty(),
    }
}

fn pod_watch(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let said = api::however_cut(|cut| {
        let bytes = bytes.clone();
        api::run(async move { api::first(cluster(move |uri| watched(uri, &bytes, cut)).watch_pods("shop")).await })
    });
    assert!(said.first().is_some_and(|said| said == "Restarted"), "{said:?}");
    said.iter().any(|said| said.starts_with("Seen"))
}

fn deployment_watch(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').count();
    api::run(async move {
        let cluster = cluster(move |uri| watched(uri, &bytes, usize::MAX));
        let mut flow = cluster.watch();
        let (mut seen, mut is_read) = (0, false);
        while let Ok(Some(sight)) = tokio::time::timeout(std::time::Duration::from_secs(1), flow.next()).await {
            // What begins again comes again; within one listing a line is one sight at most.
            match sight {
                Sight::Restarted { .. } => seen = 0,
                Sight::Trouble { .. } | Sight::SetBack { .. } => break,
                Sight::Seen { .. } => {
                    seen += 1;
                    is_read = true;
                }
                _ => seen += 1,
            }
            assert!(seen <= lines + 1, "{seen} sights from {lines} lines");
        }
        is_read
    })
}

/// Three digits of a status and a body: a `Status`, or the page of a proxy.
fn refusal(bytes: &[u8]) -> bool {
    let (status, body) = bytes.split_at(bytes.len().min(3));
    let Ok(status) = StatusCode::from_bytes(status) else { return false };
    let body = Bytes::copy_from_slice(body);
    let read = api::however_cut(|cut| {
        let answer = Answer { status, ..Answer::cut(&body, cut) };
        let answer = std::sync::Mutex::new(Some(answer));
        let cluster = async move {
            let next = move |_: &http::Uri| answer.lock().unwrap().take().unwrap_or_else(Answer::missing);
            cluster(next).workload(&WorkloadId::deployment("shop", "web")).await
        };
        api::run(cluster).map_err(|error| (error.retry, error.denied, error.to_string()))
    });
    match read {
        Ok(found) => {
            assert!(found.is_none() || status.is_success());
            false
        }
        Err((_, denied, words)) => {
            assert!(words.contains("shop") && words.len() <= ERROR_BYTES_MAX, "{} bytes", words.len());
            assert!(!denied || !status.is_success());
            !status.is_success()
        }
    }
}

fn endpoint_slices(bytes: &[u8]) -> bool {
    const POD: &str = r#"{"items":[{"metadata":{"name":"web-1","namespace":"shop","deletionTimestamp":"2026-11-23T10:00:00Z",
        "labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]},"status":{"phase":"Running"}}]}"#;
    const WORKLOAD: &str = r#"{"metadata":{"namespace":"shop","name":"web","uid":"u"},"spec":{"selector":
        {"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":
        [{"name":"web","image":"web:1"}]}}}}"#;
    let workload = workload_decoder(Kind::Deployment, &VersionOf::Images)(WORKLOAD).unwrap();
    let bytes = Bytes::copy_from_slice(bytes);
    api::run(async move {
        let length = bytes.len();
        let cluster = cluster(move |uri| match uri.path().ends_with("/pods") {
            true => Answer::whole(POD),
            false => Answer::whole(bytes.clone()),
        });
        match cluster.serving(&workload).await {
            Ok(serving) => {
                assert!(serving.pods.len() == 1 && serving.endpoints.len() <= length);
                !serving.endpoints.is_empty()
            }
            Err(error) => spoken(&error.to_string()),
        }
    })
}

/// Which kinds a server says that it has.
fn kinds(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let named = text(&bytes).contains("repos");
    api::run(async move {
        let clients = api::clients(move |_| Answer::whole(bytes.clone()));
        let repos = Repos::new(&clients, None, api::tempo(), Default::default());
        match repos.are_served().await {
            Ok(served) => {
                assert!(!served || named, "served, and not named");
                served
            }
            Err(error) => spoken(&error.to_string()),
        }
    })
}

/// No error repeats what is in a Secret.
fn secret(bytes: &[u8]) -> bool {
    const SECRET: &str = "aHVudGVyMg";
    let bytes = Bytes::copy_from_slice(bytes);
    api::run(async move {
        let length = bytes.len();
        let clients = api::clients(move |_| Answer::whole(bytes.clone()));
        match KubernetesSecrets::new(&clients, BTreeMap::new()).read("shop", "keys", Purpose::Compared).await {
            Ok(keys) => {
                let bytes: usize = keys.iter().map(|(key, value)| key.len() + value.len()).sum();
                assert!(bytes <= length, "{bytes} bytes from {length}");
                !keys.is_empty()
            }
            Err(error) => {
                let words = error.to_string();
                assert!(!words.contains(SECRET), "{words}");
                spoken(&words)
            }
        }
    })
}

fn lease(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let length = bytes.len();
    api::run(async move {
        let clients = api::clients(move |_| Answer::whole(bytes.clone()));
        let us = Replica { pod: "allclear-1".to_owned(), boot: "b1".to_owned() };
        let lease = KubernetesLease::new(clients.request.clone(), "allclear", us, Arc::new(SystemClock::default()));
        let (one, other) = (lease.look().await, lease.look().await);
        let words = |error: PortError| error.to_string();
        let (one, other) = (one.map_err(words), other.map_err(words));
        assert_eq!(one, other);
        let Ok(Some(claim)) = one else { return false };
        let kept = [&claim.holder, &claim.renewed, &claim.acquired, &claim.version].map(String::len);
        assert!(kept.iter().sum::<usize>() <= length, "{kept:?} bytes from {length}");
        !claim.holder.is_empty()
    })
}

fn namespace(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let length = bytes.len();
    api::run(async move {
        let clients = api::clients(move |_| Answer::whole(bytes.clone()));
        match cluster_uid(&clients).await {
            Ok(uid) => {
                assert!(uid.len() <= length, "{uid:?} from {length} bytes");
                !uid.is_empty()
            }
            Err(error) => spoken(&error.to_string()),
        }
    })
}

/// The way to another cluster: a GitopsCluster, or the Secret with a kubeconfig. Whatever it says, something is said of it.
fn leaf_kubeconfig(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let mut is_up = false;
    for kind in [LeafKind::Secret, LeafKind::GitopsCluster] {
        let bytes = bytes.clone();
        is_up |= api::run(async move {
            let clients = api::clients(move |uri| match uri.query().unwrap_or_default().contains("watch=") {
                true => Answer::lines(b"", 1),
                false => Answer::whole(bytes.clone()),
            });
            let clusters = Clusters::new(clients, api::tempo(), Origin::Others);
            let leaf = LeafId { kind, namespace: "shop".to_owned(), name: "eu-1".to_owned() };
            let mut links = clusters.link(&ClusterKey::Leaf(leaf));
            let link = tokio::time::timeout(std::time::Duration::from_secs(300), links.next()).await;
            match link {
                Ok(Some(Link::Up(_))) => true,
                Ok(Some(Link::Down(error))) => spoken(&error.to_string()),
                Ok(None) | Err(_) => false,
            }
        });
    }
    is_up
}

/// An object of any kind that Pipelines look at: Argo CD's and Flux's, workloads, others.
fn app(bytes: &[u8]) -> bool {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else { return false };
    let said = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut app = AppKind::new(said("apiVersion"), said("kind"));
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let mut is_read = false;
    for _ in 0..2 {
        let (one, other) = (ready::look(&app, name, &object), ready::look(&app, name, &object));
        assert_eq!(one, other);
        match one {
            Ok(look) => {
                let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
                assert_eq!(Some(look.present.uid.as_str()), uid);
                assert!(look.present.unready.is_none_or(|why| !why.is_empty() && why.len() <= ERROR_BYTES_MAX));
                is_read = true;
            }
            Err(why) => _ = spoken(&why.to_string()),
        }
        // Once more, with the places that a Pipeline may name.
        app.revision_at = Some("/status/sync/revision".to_owned());
        app.ready_at = Some("/status/health/status".to_owned());
    }
    is_read
}
