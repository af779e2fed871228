//! The props on the stage: the objects that people apply, and the receiver's notices.

use std::io;

use serde_json::{Value, json};

use super::{GIT, NAMESPACE};
use sandbox::world::World;

/// What the receiver subscribes to.
const EVENTS: [&str; 5] = ["run.started", "run.waiting", "run.completed", "run.failed", "repo.faulty"];

/// A Repo, as a person applies it.
pub(super) fn repo(name: &str, approval: &str) -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo",
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {
            "url": format!("https://{GIT}/{}", repository(name)),
            "approval": approval,
            // Every Job stays, to be counted.
            "keep": {"succeeded": 50, "failed": 50},
        },
    })
}

/// Where its repository is on the git host.
pub(super) fn repository(name: &str) -> String {
    format!("{NAMESPACE}/{name}.git")
}

/// Subscribes the receiver to notices of runs.
pub(super) fn subscribe(world: &World) -> io::Result<()> {
    world.subscribe(&json!([{
        "name": "told", "url": format!("{}/told", world.hook.url()), "method": "POST", "headers": {}, "format": "json",
        "workloads": [format!("{NAMESPACE}/*")], "events": EVENTS,
    }]))
}

/// A notice that the receiver got.
pub(super) struct Told {
    /// The same for a repeated delivery.
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) revision: String,
    pub(super) skipped: Vec<String>,
    pub(super) message: String,
}

/// The receiver's notices, in order.
pub(super) fn told(world: &World) -> Vec<Told> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let read = |request: &sandbox::http::Request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let skipped = body.pointer("/data/skipped").and_then(Value::as_array);
        Told {
            id: request.header("webhook-id").unwrap_or_default().to_owned(),
            kind: text(body.get("type")),
            revision: text(body.pointer("/data/revision")),
            skipped: skipped.into_iter().flatten().map(|one| text(Some(one))).collect(),
            message: text(body.pointer("/data/message")),
        }
    };
    world.receiver.received().iter().map(|call| read(&call.request)).collect()
}
