//! Webhooks on their way: what is sent, how it was taken, and (in [`outbox`]) when it is tried again.
//!
//! A delivery is one notice for one hook. It is in the ledger before it is sent and until it was delivered, so no crash
//! loses one; a crash between the receiver's answer and the ledger's repeats it, with the same id and the same bytes.
//! Not for how a body looks or how it is signed; that is `adapters::webhook`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::id::{NoticeId, WorkloadId, delivery_id};
use crate::domain::notice::{self, Notice};

/// Upper bound of a stored body, in bytes. Sixteen of the largest fit into one Kubernetes object, which etcd limits to
/// 1.5 MiB (<https://etcd.io/docs/v3.6/dev-guide/limit/>).
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// One notice for one hook.
///
/// Neither address nor header nor parameter of the hook is in it: they may hold credentials, and this is stored where
/// whoever may read the ledger can read it. They are filled in from the configuration at every attempt, which also means
/// that a mended address or a renewed token serves what is already waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Delivery {
    /// `H(notice, hook)`, the same for every attempt and whoever computes it.
    pub id: String,
    /// The notice. It is the `webhook-id` a receiver recognises a repetition by.
    pub notice: NoticeId,
    /// What the notice tells.
    pub kind: notice::Kind,
    /// Which workload it is about.
    pub workload: WorkloadId,
    /// The hook, by the name the configuration has for it.
    pub hook: String,
    /// What is sent.
    pub content: Content,
    /// Attempts made so far.
    #[serde(default)]
    pub attempts: u32,
    /// When it was made, in wall-clock milliseconds since the Unix epoch; for people, and to tell the oldest.
    pub created_ms: i64,
    /// Whether it is still tried.
    #[serde(default)]
    pub state: State,
}

/// What a delivery says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The hook's own parameters and nothing else: the form of the old program.
    Parameters,
    /// A JSON document, made once; at most [`BODY_BYTES_MAX`].
    Json(String),
}

/// Whether a delivery is still tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It will be sent, or sent again.
    #[default]
    Pending,
    /// A dead letter: kept, and sent again only when somebody asks.
    Dead {
        /// Why it was given up.
        reason: String,
    },
}

impl Delivery {
    /// A delivery of `notice` to `hook` that was never tried.
    pub fn new(notice: &Notice, hook: &str, content: Content, created_ms: i64) -> Self {
        Self {
            id: delivery_id(&notice.id, hook),
            notice: notice.id.clone(),
            kind: notice.kind,
            workload: notice.workload.clone(),
            hook: hook.to_owned(),
            content,
            attempts: 0,
            created_ms,
            state: State::Pending,
        }
    }

    /// Whether it is a dead letter.
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// About how much memory and ledger it takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        /// Ids, names of fields and numbers: 300 as JSON, measured, and as much again in memory.
        const FIXED_BYTES: usize = 600;
        let content = match &self.content {
            Content::Parameters => 0,
            Content::Json(body) => body.len(),
        };
        let reason = match &self.state {
            State::Pending => 0,
            State::Dead { reason } => reason.len(),
        };
        FIXED_BYTES + content + reason + self.hook.len()
    }
}

/// How a receiver took one attempt. Reasons are words for people and hold no secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// 2xx: done.
    Delivered {
        /// The status.
        status: u16,
    },
    /// Any other answer, redirects included: they are not followed.
    Refused {
        /// The status.
        status: u16,
        /// How long the receiver asks to be left alone, from a 429 or a 503.
        retry_after: Option<Duration>,
    },
    /// 410: the receiver wants nothing more, so the hook is disabled.
    Gone,
    /// No answer: timeout, connection, TLS.
    Failed {
        /// Why.
        reason: String,
    },
    /// The address may not be talked to. Trying again would not help until somebody changes it.
    Blocked {
        /// Why.
        reason: String,
    },
    /// The configuration has no hook of this name any more.
    UnknownHook,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered { status } => write!(f, "delivered, answered {status}"),
            Self::Refused { status, .. } if (300..400).contains(status) => {
                write!(f, "answered {status}, and redirects are not followed")
            }
            Self::Refused { status, .. } => write!(f, "answered {status}"),
            Self::Gone => f.write_str("answered 410: the receiver is gone"),
            Self::Failed { reason } | Self::Blocked { reason } => f.write_str(reason),
            Self::UnknownHook => f.write_str("the configuration has no such hook any more"),
        }
    }
}
