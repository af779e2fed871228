//! The states of a vector's purges, and the purges that its vote does not list one by one.
//!
//! A record has room for some dozens of purges, and a site may have ten thousand distributions. So a vote lists those that are
//! on their way, the first ones and some that failed. Of the others it knows how many there are, and how far it has come: they
//! are listed in the order of their ids. Not for which are listed next; that is `rollout`.

use serde::{Deserialize, Serialize};

use crate::records::record::{Outcome, PurgeState, Vote};
use kernel::names::distribution::DistributionId;

/// Purges that are named in a notice or in the history; of the others only how many there are. Two members that tell the
/// same end name the same ones, the first by id, so these never leave the list of a vote.
pub const PURGES_NAMED_MAX: usize = 20;

/// Purges of one vote on their way at a time. At half a creation a second, and completion within 25 s to a minute, no more than
/// thirty ever are; at about 150 bytes each they take 5 KB of the record.
pub const PURGES_OPEN_MAX: usize = 32;

/// Purges that failed and are listed with their reasons, besides those that are listed anyway. One list of them is what a person
/// reads; with reasons of 200 characters they take 3 KB of the record.
pub const FAILURES_LISTED_MAX: usize = 10;

/// The purges of a vector that its vote does not list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unlisted {
    /// Every distribution up to this one is listed, or counted as one of those that are done with.
    #[serde(rename = "t")]
    pub through: DistributionId,
    /// Done with, and fresh.
    #[serde(rename = "c", default)]
    pub completed: usize,
    /// Done with by another; their completion is not known.
    #[serde(rename = "u", default)]
    pub unknown: usize,
    /// Done with, and impossible.
    #[serde(rename = "f", default)]
    pub impossible: usize,
    /// Not begun: they come after the last one.
    #[serde(rename = "w", default)]
    pub waiting: usize,
}

/// The purges of a vote in numbers, listed or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub completed: usize,
    /// Made by another; their completion is not known.
    pub unknown: usize,
    /// Impossible, or left out.
    pub impossible: usize,
    /// Owed: tried again after the end of the rollout.
    pub owed: usize,
    /// On their way, or waiting for that.
    pub open: usize,
}

impl Count {
    pub const fn all(&self) -> usize {
        self.completed + self.unknown + self.impossible + self.owed + self.open
    }
}

impl Vote {
    /// Its purges in numbers.
    pub fn count(&self) -> Count {
        let mut count = self.unlisted.as_ref().map_or(Count::default(), |unlisted| Count {
            completed: unlisted.completed,
            unknown: unlisted.unknown,
            impossible: unlisted.impossible,
            owed: 0,
            open: unlisted.waiting,
        });
        for purge in self.purges.values() {
            *match purge.state {
                PurgeState::Completed => &mut count.completed,
                PurgeState::DoneByOther => &mut count.unknown,
                PurgeState::Impossible(_) | PurgeState::Beyond(_) => &mut count.impossible,
                PurgeState::Owed(_) => &mut count.owed,
                PurgeState::Wanted | PurgeState::Created | PurgeState::Covered(_) => &mut count.open,
            } += 1;
        }
        count
    }

    /// Whether its distributions were found out, all or some: it was decided.
    pub fn is_listed(&self) -> bool {
        !self.purges.is_empty() || self.unlisted.is_some()
    }

    /// Whether its distributions are to be found out: none is known yet, or there are more, and half of the places are free or
    /// nothing is on its way.
    pub fn wants_match(&self) -> bool {
        let places = self.places();
        let idle = || self.purges.values().all(|purge| purge.state.ends_rollout());
        let short = places >= PURGES_OPEN_MAX / 2 || (places > 0 && idle());
        self.purges.is_empty() || self.unlisted.as_ref().is_some_and(|unlisted| unlisted.waiting > 0 && short)
    }

    /// Whether its rollout has ended, and purges of it have not. One that was set back owes nothing: its workload is purged anew.
    pub fn owes(&self) -> bool {
        let ended = self.closed.as_ref().is_some_and(|outcome| *outcome != Outcome::SetBack);
        ended && (!self.is_begun() || self.purges.values().any(|purge| !purge.state.is_final()))
    }

    /// Whether each of its distributions is listed, or done with.
    pub fn is_begun(&self) -> bool {
        self.unlisted.as_ref().is_none_or(|unlisted| unlisted.waiting == 0)
    }

    /// Leaves what is not begun to a newer vote: nothing more is known of it here.
    pub fn leave_rest(&mut self) {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.unknown += std::mem::take(&mut unlisted.waiting);
        }
    }

    /// How many more of its purges may be on their way. One that is owed keeps its place until it is made.
    pub fn places(&self) -> usize {
        PURGES_OPEN_MAX.saturating_sub(self.purges.values().filter(|purge| !purge.state.is_final()).count())
    }

    /// Whether its rollout waits for none of its purges any more. Where so many are owed that no other has a place, those that
    /// have not begun are not waited for.
    pub fn is_carried_out(&self) -> bool {
        self.purges.values().all(|purge| purge.state.ends_rollout()) && !self.wants_match()
    }

    /// Takes off the list what is done with, where not all can be on it.
    pub fn fold(&mut self) {
        let Some(unlisted) = &mut self.unlisted else { return };
        let mut listed = 0;
        let mut failures = 0;
        self.purges.retain(|_, purge| {
            listed += 1;
            if listed <= PURGES_NAMED_MAX || !purge.state.is_final() {
                return true;
            }
            let fresh = purge.state == PurgeState::Completed;
            failures += usize::from(!fresh);
            if !fresh && failures <= FAILURES_LISTED_MAX {
                return true;
            }
            match purge.state {
                PurgeState::Completed => unlisted.completed += 1,
                PurgeState::DoneByOther => unlisted.unknown += 1,
                PurgeState::Impossible(_) | PurgeState::Beyond(_) => unlisted.impossible += 1,
                // Not final, so they stay.
                PurgeState::Owed(_) | PurgeState::Wanted | PurgeState::Created | PurgeState::Covered(_) => return true,
            }
            false
        });
    }
}
