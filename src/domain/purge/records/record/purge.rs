//! One purge of a decided vector, as a record remembers it.

use serde::{Deserialize, Serialize};

use kernel::id::{InvalidationId, Reference};
use kernel::names::distribution::DistributionId;
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
    /// CloudFront reports it completed.
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

    /// Whether nothing was made of it yet, and its rollout waits for that.
    pub fn is_wanted(&self) -> bool {
        self.state == PurgeState::Wanted
    }

    /// Whether it is to be made, now or late.
    pub const fn is_unmade(&self) -> bool {
        matches!(self.state, PurgeState::Wanted | PurgeState::Owed(_))
    }

    /// Whether no invalidation is known that would renew the edge.
    pub const fn is_missing(&self) -> bool {
        self.is_unmade() && self.invalidation.is_none()
    }

    /// Whether it is not made because of a bound.
    pub const fn is_left_out(&self) -> bool {
        matches!(self.state, PurgeState::Beyond(_))
    }

    pub fn create(&mut self, id: InvalidationId) {
        (self.state, self.invalidation) = (PurgeState::Created, Some(id));
    }

    pub fn cover(&mut self, by: Reference, invalidation: Option<InvalidationId>) {
        (self.state, self.invalidation) = (PurgeState::Covered(by), invalidation);
    }

    pub fn complete(&mut self) {
        self.state = PurgeState::Completed;
    }

    pub fn leave_to_other(&mut self) {
        self.state = PurgeState::DoneByOther;
    }

    pub fn give_up(&mut self, why: &str) {
        self.state = PurgeState::Impossible(why.to_owned());
    }

    /// It cannot be made yet, for this reason, and its rollout does not wait for it any more.
    pub fn owe(&mut self, why: &str) {
        self.state = PurgeState::Owed(why.to_owned());
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

    /// Its invalidation, if that is one of CloudFront and not of a rehearsal.
    pub fn made(&self) -> Option<&InvalidationId> {
        self.invalidation.as_ref().filter(|id| !id.is_of_dry_run())
    }

    /// How far it is, in words; `retried` says when one that is owed is tried again.
    pub fn words(&self, distribution: &DistributionId, retried: &str) -> String {
        let (made, distribution) = (self.made(), distribution.words());
        let id = made.map_or(String::new(), |id| format!(" {id}"));
        match &self.state {
            _ if made.is_none() && self.invalidation.is_some() => {
                format!("invalidation of {distribution} would be made")
            }
            PurgeState::Wanted if !self.refused.is_empty() => {
                format!("invalidation of {distribution} is not made yet: {}", self.refused)
            }
            PurgeState::Wanted => format!("invalidation of {distribution} queued"),
            PurgeState::Owed(why) => format!("invalidation of {distribution} owed: {why}; {retried}"),
            PurgeState::Created => format!("invalidation{id} of {distribution} in progress"),
            PurgeState::Covered(_) => format!("covered by a later invalidation{id} of {distribution}, in progress"),
            PurgeState::Completed => format!("invalidation{id} of {distribution} completed"),
            PurgeState::DoneByOther => format!("invalidation of {distribution} was made by another"),
            PurgeState::Impossible(why) => format!("invalidation of {distribution} impossible: {why}"),
            PurgeState::Beyond(why) => format!("{distribution} is left out: {why}"),
        }
    }

    /// True if a program that knows only the first form of a record would lose or could not read it.
    pub const fn is_new(&self) -> bool {
        self.sent.is_some() || matches!(self.state, PurgeState::Owed(_) | PurgeState::Beyond(_))
    }
}

impl PurgeState {
    /// Why it is owed, if it is.
    pub const fn owed(&self) -> Option<&str> {
        if let Self::Owed(why) = self { Some(why.as_str()) } else { None }
    }

    /// Why it is over without being known to be complete: one word, and a sentence.
    pub const fn fault(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Impossible(why) => Some(("impossible", why.as_str())),
            Self::Beyond(why) => Some(("beyond-bound", why.as_str())),
            Self::DoneByOther => Some(("done-by-other", "its reference was already used for other paths")),
            Self::Completed | Self::Wanted | Self::Owed(_) | Self::Created | Self::Covered(_) => None,
        }
    }

    /// Why it is never made, if it is not.
    pub const fn impossible(&self) -> Option<&str> {
        if let Self::Impossible(why) | Self::Beyond(why) = self { Some(why.as_str()) } else { None }
    }

    /// The progress that another member may rely on.
    pub(super) const fn progress(&self) -> u8 {
        match self {
            Self::Wanted | Self::Impossible(_) => 0,
            Self::Owed(_) => 1,
            Self::Created | Self::Covered(_) => 2,
            Self::Completed | Self::DoneByOther | Self::Beyond(_) => 3,
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
