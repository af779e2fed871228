//! The webhooks file: the old form of seed 000, and optional additions to it.
//!
//! ```json
//! {"webhooks": [{"name": "web", "url": "https://ci.example.com/purged", "method": "POST",
//!                "headers": {"Authorization": "Bearer …"}, "parameters": {"site": "web"}}]}
//! ```
//!
//! URLs, headers and parameters of a hook may all hold credentials, so none of them is ever printed in full.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::address::WebUrl;
use super::mask::Secret;

/// Everything a hook can be told in the order of a rollout's life.
pub const EVENTS: [&str; 9] = [
    "rollout.started",
    "rollout.completed",
    "rollout.failed",
    "group.stalled",
    "group.in_doubt",
    "purge.started",
    "purge.completed",
    "purge.failed",
    "purge.stalled",
];

/// What a hook is told that does not say, as the old program did.
pub const EVENT_DEFAULT: &str = "purge.completed";

/// One receiver, with every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// In the old form the name of the Deployment. Not unique: one Deployment may have several hooks.
    pub name: String,
    /// Where it is sent to.
    pub url: WebUrl,
    /// How it is sent.
    pub method: HookMethod,
    /// Sent as they are, by lower-case name. `content-type` replaces the one of `format`.
    pub headers: BTreeMap<String, Secret<String>>,
    /// Sent with every notice: in the query for GET, in the body otherwise.
    pub parameters: BTreeMap<String, Secret<String>>,
    /// Names of the events it is told, each one of [`EVENTS`]. Never empty.
    pub events: BTreeSet<String>,
    /// The workloads it is told about. Never empty.
    pub workloads: Vec<WorkloadPattern>,
    /// What the body looks like.
    pub format: HookFormat,
    /// Keys of the signature, the current one first; empty: unsigned.
    pub secrets: Vec<Secret<Vec<u8>>>,
    /// For one attempt in all, from connecting to the last byte.
    pub timeout: Duration,
    /// How long to wait before each attempt. Never empty.
    pub schedule: Vec<Duration>,
}

/// How a hook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMethod {
    /// Parameters go in the query.
    Get,
    /// Parameters go in the body, as in all that follow.
    Post,
    /// As `Post`.
    Put,
    /// As `Post`.
    Patch,
    /// As `Post`.
    Delete,
}

/// What the body of a hook looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookFormat {
    /// `application/x-www-form-urlencoded`: the parameters and nothing else, as the old program did.
    Form,
    /// `application/json`: the notice.
    Json,
}

/// Which workloads a hook is told about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadPattern {
    /// `*`
    All,
    /// `namespace/*`
    Namespace(String),
    /// `name`, in whatever namespace.
    Name(String),
    /// `namespace/name`
    Exact {
        /// The namespace.
        namespace: String,
        /// The name in it.
        name: String,
    },
}

impl WorkloadPattern {
    /// Whether the workload is meant.
    pub fn matches(&self, namespace: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(wanted) => wanted == namespace,
            Self::Name(wanted) => wanted == name,
            Self::Exact { namespace: wanted_namespace, name: wanted } => {
                wanted_namespace == namespace && wanted == name
            }
        }
    }
}
