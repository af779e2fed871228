//! The answers of every port: a stream, or an error from outside.
//!
//! Not for when something is tried again; that is the caller's.

use std::fmt;
use std::time::Duration;

use futures_core::Stream;

use crate::refusal::Refused;

/// A stream owned by its reader; dropping it ends the work behind it.
pub type Flow<T> = std::pin::Pin<Box<dyn Stream<Item = T> + Send>>;

/// Whether trying again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It can, after a back-off of the caller's choice.
    Later,
    /// It can, but not before this much time has passed: the other side said so.
    After(Duration),
    /// It cannot, as things are: a person must change something first (rights, credentials, the request).
    Never,
}

/// Why a Redis fails, as far as there are names for it; most are its own. They are labels of metrics, so the set is closed.
const REASONS: [&str; 19] = [
    "timeout",
    "refused",
    "connection",
    "certificate",
    "OOM",
    "LOADING",
    "READONLY",
    "NOAUTH",
    "WRONGPASS",
    "WRONGTYPE",
    "NOPERM",
    "MISCONF",
    "BUSY",
    "MASTERDOWN",
    "MOVED",
    "CLUSTERDOWN",
    "NOREPLICAS",
    "NOSCRIPT",
    "RESP3",
];

/// One of a closed set of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(u8);

impl Reason {
    /// The reason of this name; `None` if it is not one of the set.
    pub fn of(name: &str) -> Option<Self> {
        REASONS.iter().position(|known| *known == name).and_then(|at| u8::try_from(at).ok()).map(Self)
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        REASONS.into_iter()
    }

    pub fn name(self) -> &'static str {
        REASONS.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// An error from outside, in words, and whether trying again can help. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{attempted}: {cause}")]
pub struct PortError {
    /// The attempted action: "failed to list deployments in shop".
    pub attempted: String,
    /// Why it failed, in the words of the other side where they help.
    pub cause: String,
    /// Whether trying again can help.
    pub retry: Retry,
    /// The other side knows what we want and does not let us: a right is missing, or credentials are.
    pub denied: bool,
    /// It is who asks that is not accepted, whatever was asked for.
    pub unknown_caller: bool,
    /// The reason by its name, where it is one of a closed set.
    pub reason: Option<Reason>,
}

impl PortError {
    /// A failure that may pass by itself.
    pub fn passing(attempted: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self {
            attempted: attempted.into(),
            cause: cause.to_string(),
            retry: Retry::Later,
            denied: false,
            unknown_caller: false,
            reason: None,
        }
    }

    /// A failure that a person has to do something about.
    pub fn lasting(attempted: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self { retry: Retry::Never, ..Self::passing(attempted, cause) }
    }

    /// The refused part, if something was refused.
    pub fn refused(&self) -> Option<Refused> {
        match self.retry {
            _ if self.denied && self.unknown_caller => Some(Refused::Caller),
            _ if self.denied => Some(Refused::Right),
            Retry::Never => Some(Refused::Request),
            Retry::Later | Retry::After(_) => None,
        }
    }

    /// A failure that only a person with the rights can end.
    pub fn denied(attempted: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self { denied: true, ..Self::lasting(attempted, cause) }
    }

    /// The same, with the name of its reason.
    #[must_use]
    pub fn because(self, reason: Option<Reason>) -> Self {
        Self { reason, ..self }
    }
}
