//! What containers of Jobs do: the words between the stand-in kubelet and a test, or the demo.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::kubernetes::object::{items, text};

/// A container that is about to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRun {
    /// Where its pod is.
    pub namespace: String,
    /// The name of its Job.
    pub job: String,
    /// The name of its pod.
    pub pod: String,
    pub container: String,
    pub image: String,
    /// `command` and `args`, with what the kubelet makes of `$$`. References to variables stay as they are.
    pub command: Vec<String>,
    /// Its variables, as far as they have plain values.
    pub env: BTreeMap<String, String>,
    /// Where it runs; empty for the image's own directory.
    pub working_dir: String,
}

/// How a container ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    pub code: i32,
    /// What the kubelet says of it; empty: what follows from the code.
    pub reason: String,
    /// What it wrote to its termination message.
    pub message: String,
}

impl End {
    pub fn with(code: i32) -> Self {
        Self { code, ..Self::default() }
    }

    pub fn out_of_memory() -> Self {
        Self { code: 137, reason: "OOMKilled".to_owned(), message: String::new() }
    }

    /// The same, with this termination message.
    #[must_use]
    pub fn saying(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// What the kubelet says of it.
    pub(super) fn reason(&self) -> &str {
        match (self.reason.as_str(), self.code) {
            ("", 0) => "Completed",
            ("", _) => "Error",
            (reason, _) => reason,
        }
    }
}

/// What becomes of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs, and ends like this after this time.
    Ends(Duration, End),
    /// It runs until its end is set: [`KubernetesStandIn::finish`](crate::kubernetes::KubernetesStandIn::finish).
    Holds,
    /// It does not start, for this reason and with this message, until another script is set.
    Waits(String, String),
}

/// Decides what becomes of a container. It is asked once, when the container is to start, and while nothing of the store is locked.
/// It may read and write objects; it must not drive the controllers.
#[derive(Clone)]
pub struct Script(pub(super) Arc<dyn Fn(&ContainerRun) -> Outcome + Send + Sync>);

impl Script {
    pub fn new(script: impl Fn(&ContainerRun) -> Outcome + Send + Sync + 'static) -> Self {
        Self(Arc::new(script))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

/// Reads a container of a pod.
pub(super) fn container_run(pod: &Value, job: &str, container: &Value) -> ContainerRun {
    let word = |word: &Value| unescaped(word.as_str().unwrap_or_default());
    let variable = |entry: &Value| Some((text(entry, "/name").to_owned(), unescaped(entry.get("value")?.as_str()?)));
    ContainerRun {
        namespace: text(pod, "/metadata/namespace").to_owned(),
        job: job.to_owned(),
        pod: text(pod, "/metadata/name").to_owned(),
        container: text(container, "/name").to_owned(),
        image: text(container, "/image").to_owned(),
        command: ["/command", "/args"].into_iter().flat_map(|list| items(container, list)).map(word).collect(),
        env: items(container, "/env").iter().filter_map(variable).collect(),
        working_dir: text(container, "/workingDir").to_owned(),
    }
}

fn unescaped(word: &str) -> String {
    word.replace("$$", "$")
}
