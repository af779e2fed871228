//! What is shown of webhooks: the receivers, and what is on its way to them. Not for how that is worded; the actor does it.

use serde::{Deserialize, Serialize};

use kernel::id::Subject;
use notices::delivery::{Delivery, State};

/// One delivery on its way.
#[derive(Clone, Debug, Serialize)]
pub struct DeliverySeen {
    pub id: String,
    /// The hook, by name.
    pub hook: String,
    /// What it is about. The API has it under the name from when only workloads had notices.
    #[serde(rename = "workload")]
    pub subject: Subject,
    /// The kind of its notice.
    pub kind: &'static str,
    pub attempts: u32,
    /// It is a dead letter: not tried again before a person asks for it.
    pub given_up: bool,
    /// How far it is, in words.
    pub state: String,
}

/// One receiver of webhooks, without its address and without what it gets: both may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverSeen {
    pub name: String,
    /// The kinds of notices that it receives.
    pub events: Vec<String>,
    /// The workloads whose notices it receives, as the configuration writes them.
    pub workloads: Vec<String>,
    /// How the last attempt ended; `None` before the first one since this allclear works.
    #[serde(default)]
    pub last: Option<LastSeen>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeen {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub words: String,
}

impl DeliverySeen {
    /// The delivery, with its progress in `state`.
    pub fn new(delivery: &Delivery, state: String) -> Self {
        Self {
            id: delivery.id.clone(),
            hook: delivery.hook.clone(),
            subject: delivery.subject.clone(),
            kind: delivery.kind.name(),
            attempts: delivery.attempts,
            given_up: matches!(delivery.state, State::Dead { .. }),
            state,
        }
    }
}
