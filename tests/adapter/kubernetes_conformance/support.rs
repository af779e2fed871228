//! What the checks talk through: raw requests with the credentials of a kubeconfig, in a throw-away namespace.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::api::WatchEvent;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use sandbox::kubernetes::KubernetesStandIn;
use serde_json::{Value, json};

use super::kinds::Kinds;

/// Longest time one check may take, in seconds: a hang is a failure. The slowest waits of a real server in here are the
/// three seconds it gives a resourceVersion from the future.
const CHECK_SECONDS_MAX: u64 = 30;

/// A check: panics when the API does not do what it says.
pub type Check = fn(Api) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wraps an async fn as a [`Check`].
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), (|api| Box::pin($name(api))) as super::support::Check)),*]
    };
}
pub(super) use checks;

/// A server, and the place in it that belongs to one check.
#[derive(Clone)]
pub struct Api {
    pub client: kube::Client,
    pub namespace: String,
    /// The name of the check: prefix of its objects and value of their label `check`.
    pub check: String,
    /// The stand-in, where it is one.
    pub stand_in: Option<KubernetesStandIn>,
}

/// How the checks went.
#[derive(Debug, Default)]
pub struct Report {
    pub passed: Vec<&'static str>,
    pub failed: Vec<(&'static str, String)>,
    pub skipped: Vec<&'static str>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} checks passed, {} failed", self.passed.len(), self.failed.len())?;
        for (name, why) in &self.failed {
            writeln!(f, "FAILED {name}: {why}")?;
        }
        self.skipped.iter().try_for_each(|name| writeln!(f, "skipped {name}: only a stand-in can be asked to"))
    }
}

/// Runs every check in a new namespace, which is deleted at the end.
pub async fn run(mut api: Api, checks: Vec<(&'static str, Check)>) -> Report {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "allclear-check-"}});
    let made = api.post("/api/v1/namespaces", &namespace).await.unwrap();
    api.namespace = made["metadata"]["name"].as_str().unwrap().to_owned();
    let kinds = Kinds::add(&api).await;
    let mut report = Report::default();
    for (name, check) in checks {
        if name.ends_with("_on_demand") && api.stand_in.is_none() {
            report.skipped.push(name);
            continue;
        }
        let api = Api { check: name.replace('_', "-"), ..api.clone() };
        let run = tokio::spawn(tokio::time::timeout(Duration::from_secs(CHECK_SECONDS_MAX), check(api)));
        match run.await {
            Ok(Ok(())) => report.passed.push(name),
            Ok(Err(_)) => report.failed.push((name, format!("not done after {CHECK_SECONDS_MAX} s"))),
            Err(panic) => {
                let panic = panic.into_panic();
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                report.failed.push((name, text.unwrap_or_default()));
            }
        }
    }
    api.delete(&format!("/api/v1/namespaces/{}", api.namespace)).await.unwrap();
    kinds.remove(&api).await;
    report
}

impl Api {
    pub async fn of_kubeconfig(text: &str) -> Api {
        let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        // The checks want the answers as they are, 504 and all.
        config.default_retry = false;
        let client = kube::Client::try_from(config).unwrap();
        Api { client, namespace: String::new(), check: String::new(), stand_in: None }
    }

    pub fn with_stand_in(self, stand_in: &KubernetesStandIn) -> Api {
        Api { stand_in: Some(stand_in.clone()), ..self }
    }

    /// The stand-in, in a check called `…_on_demand`.
    pub fn stand_in(&self) -> &KubernetesStandIn {
        self.stand_in.as_ref().expect("a check called …_on_demand runs on the stand-in only")
    }

    /// The path of a collection in the namespace.
    pub fn path(&self, plural: &str) -> String {
        let group = match plural {
            "deployments" | "replicasets" => "apis/apps/v1",
            "ingresses" => "apis/networking.k8s.io/v1",
            "jobs" => "apis/batch/v1",
            "leases" => "apis/coordination.k8s.io/v1",
            "events" => "apis/events.k8s.io/v1",
            "httproutes" => "apis/gateway.networking.k8s.io/v1",
            _ => "api/v1",
        };
        format!("/{group}/namespaces/{}/{plural}", self.namespace)
    }

    /// The name of an object of this check.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.check)
    }

    /// The query that selects the objects of this check.
    pub fn mine(&self) -> String {
        format!("labelSelector=check%3D{}", self.check)
    }

    pub fn config_map(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": self.name(name), "labels": {"check": self.check}},
            "data": {"v": value},
        })
    }

    /// A Deployment without pods, so that a controller has little to do.
    pub fn deployment(&self, name: &str) -> Value {
        let labels = json!({"check": self.check});
        let containers = json!([{"name": "web", "image": "web:1"}]);
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name(name), "labels": labels},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            },
        })
    }

    pub async fn get(&self, path: &str) -> Result<Value, Status> {
        self.send("GET", path, None, "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.send("POST", path, Some(body), "application/json").await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.send("PUT", path, Some(body), "application/json").await
    }

    pub async fn patch(&self, path: &str, form: &str, body: &Value) -> Result<Value, Status> {
        self.send("PATCH", path, Some(body), &format!("application/{form}")).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Result<Value, Status> {
        self.patch(path, "merge-patch+json", body).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.send("DELETE", path, None, "").await
    }

    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>, form: &str) -> Result<Value, Status> {
        let mut request = http::Request::builder().method(method).uri(path);
        if !form.is_empty() {
            request = request.header("content-type", form);
        }
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        match self.client.request::<Value>(request.body(body).unwrap()).await {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => Err(*status),
            Err(other) => panic!("{method} {path}: {other:?}"),
        }
    }

    /// The events of a watch of the collection at `path`; `query` without `watch`.
    pub async fn watch(&self, path: &str, query: &str) -> Result<Events, Status> {
        let uri = format!("{path}?watch=true&{query}");
        let request = http::Request::builder().method("GET").uri(uri).body(Vec::new()).unwrap();
        match self.client.request_events::<Value>(request).await {
            Ok(events) => Ok(Events(Box::pin(events))),
            Err(kube::Error::Api(status)) => Err(*status),
            Err(other) => panic!("watch {path}: {other:?}"),
        }
    }
}

pub struct Events(Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Value>>> + Send>>);

impl Events {
    /// The next event, in short: `ADDED name=value`, `BOOKMARK`, `END OF LIST`, `ERROR 410 Expired`, or `END`.
    pub async fn next(&mut self) -> String {
        match self.0.next().await {
            None => "END".to_owned(),
            Some(event) => describe(&event.unwrap()),
        }
    }

    /// The next event that is not a plain bookmark.
    pub async fn next_change(&mut self) -> String {
        loop {
            let event = self.next().await;
            if event != "BOOKMARK" {
                return event;
            }
        }
    }

    pub async fn next_raw(&mut self) -> Option<WatchEvent<Value>> {
        self.0.next().await.map(|event| event.unwrap())
    }
}

fn describe(event: &WatchEvent<Value>) -> String {
    let short = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let value = object["data"]["v"].as_str().unwrap_or_default();
        format!("{}={value}", name.rsplit('-').next().unwrap_or_default())
    };
    match event {
        WatchEvent::Added(object) => format!("ADDED {}", short(object)),
        WatchEvent::Modified(object) => format!("MODIFIED {}", short(object)),
        WatchEvent::Deleted(object) => format!("DELETED {}", short(object)),
        WatchEvent::Bookmark(bookmark) => {
            let ends = bookmark.metadata.annotations.get("k8s.io/initial-events-end").is_some_and(|v| v == "true");
            if ends { "END OF LIST".to_owned() } else { "BOOKMARK".to_owned() }
        }
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.reason),
    }
}

/// The resourceVersion of an object or a list.
pub fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("no resourceVersion in {object}"))
}

/// The names of a list's items, without the prefix of the check.
pub fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().rsplit('-').next().unwrap().to_owned()).collect()
}

/// Asserts code and reason of a refusal.
#[track_caller]
pub fn refused(answer: Result<Value, Status>, code: u16, reason: &str) -> Status {
    let status = answer.expect_err("the request should have been refused");
    assert_eq!((status.code, status.reason.as_str()), (code, reason), "{status:?}");
    status
}
