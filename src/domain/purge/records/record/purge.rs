//! One purge of a decided vector, as a record remembers it.

use serde::{Deserialize, Serialize};

use kernel::id::{InvalidationId, Reference};
use kernel::names::paths::PathSet;

/// One purge of a decided vector.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Purge {
    #[serde(rename = "r")]
    pub reference: Reference,
    #[serde(rename = "s")]
    pub state: PurgeState,
    /// CloudFront's id, once known; of the covering invalidation if it was covered.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub invalidation: Option<InvalidationId>,
    /// The paths really sent, where they differ from the vote's. Chosen by its creator, durable before the call, and
    /// never part of the reference (decision 41).
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<PathSet>,
    /// Why it could not be made yet, in short, while it is wanted.
    #[serde(rename = "e", default, skip_serializing_if = "String::is_empty")]
    pub refused: String,
}

/// How far a purge is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PurgeState {
    Wanted,
    /// It cannot be made yet, for this reason, and is tried again; its rollout has ended without it (decision 29).
    Owed(String),
    /// CloudFront has accepted it.
    Created,
    /// A later one, which contains its paths, was created instead.
    Covered(Reference),
    /// The edge is fresh.
    Completed,
    /// The reference was used with other paths; the purge exists, its completion is unknown (decision 17).
    DoneByOther,
    /// It cannot be made: the distribution is gone, or CloudFront refuses the request itself.
    Impossible(String),
    /// It is not made, because it lies beyond a bound of its namespace (decision 39).
    Beyond(String),
}

impl Purge {
    /// One to be created, of what was voted for.
    pub const fn wanted(reference: Reference) -> Self {
        Self { reference, state: PurgeState::Wanted, invalidation: None, sent: None, refused: String::new() }
    }

    /// An attempt failed, for this reason. Of one that is owed it is why from now on.
    pub fn note_refused(&mut self, why: &str) {
        match &mut self.state {
            PurgeState::Owed(known) => why.clone_into(known),
            PurgeState::Wanted => why.clone_into(&mut self.refused),
            PurgeState::Created
            | PurgeState::Covered(_)
            | PurgeState::Completed
            | PurgeState::DoneByOther
            | PurgeState::Impossible(_)
            | PurgeState::Beyond(_) => {}
        }
    }

    /// Whether the other one sends the same under the same reference.
    pub fn is_sent_as(&self, other: &Self) -> bool {
        (&self.reference, &self.sent) == (&other.reference, &other.sent)
    }

    /// True if a program that knows only the first form of a record would lose or could not read it.
    pub const fn is_new(&self) -> bool {
        self.sent.is_some() || matches!(self.state, PurgeState::Owed(_) | PurgeState::Beyond(_))
    }
}

impl PurgeState {
    /// Why it is owed, if it is.
    pub const fn owed(&self) -> Option<&str> {
        match self {
            Self::Owed(why) => Some(why.as_str()),
            Self::Wanted
            | Self::Created
            | Self::Covered(_)
            | Self::Completed
            | Self::DoneByOther
            | Self::Impossible(_)
            | Self::Beyond(_) => None,
        }
    }

    /// Nothing more will happen to it.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Completed | Self::DoneByOther | Self::Impossible(_) | Self::Beyond(_) => true,
            Self::Wanted | Self::Owed(_) | Self::Created | Self::Covered(_) => false,
        }
    }

    /// Its rollout does not wait for it any more.
    pub const fn ends_rollout(&self) -> bool {
        self.is_final() || matches!(self, Self::Owed(_))
    }
}
