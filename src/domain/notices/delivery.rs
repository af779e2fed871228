//! Webhooks on their way: what is sent, how it was taken, and (in [`Outbox`]) when it is tried again.
//!
//! A delivery is one notice for one hook. It is in the ledger before it is sent and until it was delivered, so no crash
//! loses one; a crash between the receiver's answer and the ledger's repeats it, with the same id and the same bytes.
//! Not for how a body looks or how it is signed; that is `adapters::webhook`.

mod delivered;
mod entry;
mod errand;
mod hook_queue;
mod index;
mod outbox;
mod resend;
mod settings;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::notice::{self, Notice};
use kernel::id::{NoticeId, Subject, delivery_id};
use kernel::machine::millis;
use kernel::retry::jitter;

pub use errand::{Errand, Errands, NotTaken, Publication};
pub use outbox::Outbox;
pub use resend::{InvalidResend, RESEND_MAX, Requests, Resend, Resends};
pub use settings::{Limits, Overflow, Settings};

/// Upper bound of a stored body, in bytes. Sixteen of the largest fit into one Kubernetes object, which etcd limits to
/// 1.5 MiB (<https://etcd.io/docs/v3.6/dev-guide/limit/>).
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// How long is waited before each attempt, from the end of the one before: 75 h 35 min in all, so a receiver that broke
/// on a Friday evening may be mended on Monday. The schedule that Standard Webhooks recommends
/// (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>, "Deliverability and
/// reliability"); a hook may have its own.
pub const SCHEDULE: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// One notice for one hook.
///
/// Neither address nor header nor parameter of the hook is in it: they may hold credentials, and this is stored where
/// anyone who may read the ledger can read it. They are filled in from the configuration at every attempt, which also means
/// that a mended address or a renewed token serves what is already waiting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Delivery {
    /// `H(notice, hook)`, the same for every attempt and in every member.
    pub id: String,
    /// The notice. It is the `webhook-id` a receiver recognises a repetition by.
    pub notice: NoticeId,
    /// The kind of the notice.
    pub kind: notice::Kind,
    /// Its subject. Ledgers have it under the name from when only workloads had notices.
    #[serde(rename = "workload")]
    pub subject: Subject,
    /// The hook, by the name the configuration has for it.
    pub hook: String,
    pub content: Content,
    /// Attempts made so far.
    #[serde(default)]
    pub attempts: u32,
    /// When the notice's transition was, in wall-clock milliseconds since the Unix epoch; for people, and to tell the oldest.
    pub created_ms: i64,
    /// Whether it is still tried.
    #[serde(default)]
    pub state: State,
    /// How the last attempt failed, in words; empty before one has. A dead letter's own reason is in its state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trouble: String,
    /// The time of the last [`Resend`] that it met, as that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The trace that attempts belong to, where traces are exported; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace: String,
}

/// The content of a delivery.
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
    /// A dead letter: kept, and sent again only on request.
    Dead {
        /// Why it was given up.
        reason: String,
    },
}

impl Delivery {
    /// A delivery of `notice` to `hook` that was never tried.
    pub fn new(notice: &Notice, hook: &str, content: Content) -> Self {
        Self {
            id: delivery_id(&notice.id, hook),
            notice: notice.id.clone(),
            kind: notice.kind,
            subject: notice.about.subject(),
            hook: hook.to_owned(),
            content,
            attempts: 0,
            created_ms: notice.at_ms,
            state: State::Pending,
            trouble: String::new(),
            asked: None,
            trace: String::new(),
        }
    }

    /// The same as a part of its rollout's trace. What a member of a group tells of its own cluster before the group has agreed
    /// belongs to no trace, because the group's is not known yet.
    #[must_use]
    pub fn traced(self, notice: &Notice, grouped: bool) -> Self {
        let is_known = !grouped || notice.kind.is_of_group();
        let trace = if is_known { notice.rollout.clone() } else { String::new() };
        Self { trace, ..self }
    }

    /// Whether it is a dead letter.
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. })
    }

    /// About how much memory and ledger it takes, in bytes.
    pub fn size_bytes(&self) -> usize {
        /// Ids, names of fields, numbers and a reason: about 300 as JSON, and as much again for the indices in memory.
        const FIXED_BYTES: usize = 600;
        let content = match &self.content {
            Content::Parameters => 0,
            Content::Json(body) => body.len(),
        };
        FIXED_BYTES + content + self.hook.len()
    }

    /// The wait before the next attempt under `schedule`, with up to a tenth of jitter on top so that what failed together
    /// does not return together; `None` when there are to be no more attempts.
    pub fn wait(&self, schedule: &[Duration]) -> Option<Duration> {
        let wait = schedule.get(usize::try_from(self.attempts).ok()?)?;
        let spread = millis(*wait) / 10;
        Some(wait.saturating_add(Duration::from_millis(jitter(&self.id, self.attempts) % (spread + 1))))
    }
}

/// How a receiver took one attempt. Reasons are words for people and hold no secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// 2xx: done.
    Delivered { status: u16 },
    /// Any other answer, redirects included: they are not followed.
    Refused {
        status: u16,
        /// How long the receiver asks to be left alone, from a 429 or a 503.
        retry_after: Option<Duration>,
    },
    /// 410: the receiver wants nothing more, so the hook is disabled.
    Gone,
    /// No answer: timeout, connection, TLS.
    Failed { reason: String },
    /// The address may not be talked to. Trying again does not help until the configuration changes.
    Blocked { reason: String },
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

/// The events of the [`Outbox`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The ledger was read: this is what an earlier life left behind, dead letters included.
    Restored(Vec<Delivery>),
    /// A notice arrived, to be sent by these deliveries; there may be none. May be repeated until it was accepted.
    Told {
        notice: NoticeId,
        /// One for each hook that subscribes to it.
        deliveries: Vec<Delivery>,
    },
    /// The ledger has stored a delivery.
    Stored {
        id: String,
        /// By which write, as the effect had it: the answer of another one ends nothing.
        write: u64,
    },
    /// The ledger has not stored a delivery, or does not know.
    StoreFailed {
        id: String,
        /// By which write, as the effect had it: the answer of another one ends nothing.
        write: u64,
    },
    /// An attempt has ended.
    Answered {
        id: String,
        /// Which attempt, as [`Effect::Send`] had it: the answer of an earlier one ends nothing.
        attempt: u32,
        reply: Reply,
    },
    /// The ledger has forgotten a delivery.
    Removed {
        id: String,
        /// By which write, as the effect had it: the answer of another one ends nothing.
        write: u64,
    },
    /// The ledger has not forgotten a delivery, or does not know.
    RemoveFailed {
        id: String,
        /// By which write, as the effect had it: the answer of another one ends nothing.
        write: u64,
    },
    /// The owner of the subject asks to send dead letters about it after all, or waiting deliveries now. Enables their hooks. The same request
    /// may come often.
    Resend { subject: Subject, request: Resend },
}

/// The effects of the [`Outbox`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Store a delivery in the ledger, over an earlier state of it. Answer: `Stored` or `StoreFailed`, with the same write.
    Store {
        delivery: Delivery,
        /// The number of this write among all.
        write: u64,
    },
    /// Send a delivery once. Answer: `Answered`, with the same attempt.
    Send {
        delivery: Delivery,
        /// The number of this attempt, from 1.
        attempt: u32,
    },
    /// Forget a delivery. Answer: `Removed` or `RemoveFailed`, with the same write.
    Remove {
        id: String,
        /// The number of this write among all.
        write: u64,
    },
    /// All deliveries of the notice are durable: the rollout may forget it. No answer.
    Accepted(NoticeId),
    /// There is no room for some delivery of the notice: the rollout keeps it and tells it again later. No answer.
    Postponed(NoticeId),
    /// Say so in log and metrics. No answer.
    Report(Report),
}

impl Effect {
    /// The name in logs, metrics and failpoints.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store { .. } => "store_delivery",
            Self::Send { .. } => "send_delivery",
            Self::Remove { .. } => "remove_delivery",
            Self::Accepted(_) => "accept_notice",
            Self::Postponed(_) => "postpone_notice",
            Self::Report(_) => "report_delivery",
        }
    }
}

/// Something an operator may want to know about one delivery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    pub id: String,
    pub hook: String,
    pub kind: notice::Kind,
    pub subject: Subject,
    pub attempts: u32,
    pub outcome: Outcome,
}

/// The outcome of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The receiver has it.
    Delivered { status: u16 },
    /// It will be tried again.
    Retrying { after: Duration, reason: String },
    /// It was given up and is kept as a dead letter.
    Dead { reason: String },
    /// Its hook wants nothing more; all its deliveries are dead letters until a person resends one or we restart.
    HookDisabled { reason: String },
    /// It was forgotten undelivered, because the outbox is bounded.
    Dropped { reason: String },
    /// There is no room for it now.
    Postponed { reason: String },
    /// A person asked for it again, so it is sent now.
    Resent,
}

impl Outcome {
    /// The names of all, for metrics.
    pub const NAMES: [&'static str; 7] =
        ["delivered", "retrying", "dead", "hook_disabled", "dropped", "postponed", "resent"];

    /// The name in logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Retrying { .. } => "retrying",
            Self::Dead { .. } => "dead",
            Self::HookDisabled { .. } => "hook_disabled",
            Self::Dropped { .. } => "dropped",
            Self::Postponed { .. } => "postponed",
            Self::Resent => "resent",
        }
    }
}

#[cfg(test)]
mod tests;
