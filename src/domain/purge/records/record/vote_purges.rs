//! The purges of a decided vector, as one member's vote keeps them: which there are, how far each is, and what follows for the
//! rollout. The other parts of a rollout ask here, and name no state of a purge themselves.
//!
//! A record has room for some dozens of purges, and a site may have ten thousand distributions. So a vote lists those that are
//! on their way, the first ones and some that failed. Of the others it knows how many there are, and how far it has come: they
//! are listed in the order of their ids. Each member lists for itself. If another member has finished a purge and no longer lists
//! it, we order it again under the same reference, and CloudFront answers with the existing invalidation.
//!
//! Not for which distributions there are, nor for when a purge is ordered; that is `rollout`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::records::record::{Outcome, Purge, PurgeState};
use kernel::id::{InvalidationId, NoticeId, Reference};
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;

/// Purges that are named in a notice or in the history; of the others only how many there are. Two members that tell the
/// same end name the same ones, the first by id, so these never leave the list of a vote.
pub const PURGES_NAMED_MAX: usize = 20;

/// Purges of one vote on their way at a time. At half a creation a second, and completion within 25 s to a minute, no more than
/// thirty ever are; at about 150 bytes each they take 5 KB of the record.
pub const PURGES_OPEN_MAX: usize = 32;

/// Purges that failed and are listed with their reasons, besides those that are listed anyway. One list of them is what a person
/// reads; with reasons of 200 characters they take 3 KB of the record.
pub const FAILURES_LISTED_MAX: usize = 10;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VotePurges {
    /// Those that are listed, as far as this member knows.
    #[serde(rename = "g", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub listed: BTreeMap<DistributionId, Purge>,
    /// The others; `None` while all are listed.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
    /// The completion timeout passed at least once.
    #[serde(rename = "t", default, skip_serializing_if = "is_default")]
    pub stalled: bool,
    /// Every notice written about the vote, so that what happens again in another life is not announced twice in other words.
    #[serde(rename = "n", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub noticed: BTreeSet<NoticeId>,
    /// Another version has completed or may have been served here since the vote was cast: the edge may hold that one when the
    /// purges are done.
    #[serde(rename = "k", default, skip_serializing_if = "is_default")]
    pub overtaken: bool,
    /// When the first of them became owed, in milliseconds since the Unix epoch by this member's clock; 0 if none did.
    #[serde(rename = "w", default, skip_serializing_if = "is_default")]
    pub owed_ms: i64,
}

/// The purges of a vector that its vote does not list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unlisted {
    /// Every distribution up to this one is listed, or counted as one of those that are done with.
    #[serde(rename = "t")]
    pub through: DistributionId,
    /// Done with, and purged.
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

impl VotePurges {
    /// All of them in numbers.
    pub fn count(&self) -> Count {
        let mut count = self.unlisted.as_ref().map_or(Count::default(), |unlisted| Count {
            completed: unlisted.completed,
            unknown: unlisted.unknown,
            impossible: unlisted.impossible,
            owed: 0,
            open: unlisted.waiting,
        });
        for purge in self.listed.values() {
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

    /// How the rollout ends by them, once it waits for none any more.
    pub fn outcome(&self) -> Outcome {
        let Count { completed, unknown, impossible, owed, open } = self.count();
        match (completed + unknown > 0, owed + open > 0, impossible > 0) {
            (true, false, false) => Outcome::Purged,
            (true, false, true) => Outcome::Partly,
            (true, true, _) => Outcome::PartlyOwed,
            (false, true, _) => Outcome::Owed,
            (false, false, _) => Outcome::Impossible,
        }
    }

    /// The listed ones of which more is to come, in the order of their distributions.
    pub fn open(&self) -> impl Iterator<Item = (&DistributionId, &Purge)> {
        self.listed.iter().filter(|(_, purge)| !purge.state.is_final())
    }

    /// The listed one with this reference, and its distribution.
    pub fn under_mut(&mut self, reference: &Reference) -> Option<(&DistributionId, &mut Purge)> {
        self.listed.iter_mut().find(|(_, purge)| purge.reference == *reference)
    }

    /// Whether they were only rehearsed.
    pub fn are_of_dry_run(&self) -> bool {
        self.listed.values().filter_map(|purge| purge.invalidation.as_ref()).any(InvalidationId::is_of_dry_run)
    }

    /// Whether the distributions were found out, all or some: the vector was decided.
    pub fn are_known(&self) -> bool {
        !self.listed.is_empty() || self.unlisted.is_some()
    }

    /// Whether the distributions are to be found out: none is known yet, or there are more, and half of the places are free or
    /// nothing is on its way.
    pub fn want_match(&self) -> bool {
        let places = self.places();
        let idle = || self.listed.values().all(|purge| purge.state.ends_rollout());
        let short = places >= PURGES_OPEN_MAX / 2 || (places > 0 && idle());
        self.listed.is_empty() || self.unlisted.as_ref().is_some_and(|unlisted| unlisted.waiting > 0 && short)
    }

    /// Whether anything is left to do for them.
    pub fn are_left(&self) -> bool {
        !self.are_begun() || self.open().next().is_some()
    }

    /// Whether each distribution is listed, or done with.
    pub fn are_begun(&self) -> bool {
        self.unlisted.as_ref().is_none_or(|unlisted| unlisted.waiting == 0)
    }

    /// Leaves what is not begun to a newer vote: nothing more is known of it here.
    pub fn leave_rest(&mut self) {
        if let Some(unlisted) = &mut self.unlisted {
            unlisted.unknown += std::mem::take(&mut unlisted.waiting);
        }
    }

    /// How many more of them may be on their way. One that is owed keeps its place until it is made.
    fn places(&self) -> usize {
        PURGES_OPEN_MAX.saturating_sub(self.open().count())
    }

    /// Whether the rollout waits for none of them any more. Where so many are owed that no other has a place, those that
    /// have not begun are not waited for.
    pub fn are_carried_out(&self) -> bool {
        self.listed.values().all(|purge| purge.state.ends_rollout()) && !self.want_match()
    }

    /// Lists distributions that are not listed yet, as many as there is `room` for; at least one, to make progress.
    pub fn list(
        &mut self,
        distributions: &BTreeSet<DistributionId>,
        room: usize,
        purge: impl Fn(&DistributionId) -> Purge,
    ) {
        let listed = |distribution: &DistributionId| (distribution.clone(), purge(distribution));
        let fits = distributions.len() <= room.min(PURGES_NAMED_MAX + PURGES_OPEN_MAX);
        if self.unlisted.is_none() && fits {
            self.listed.extend(distributions.iter().map(listed));
            return;
        }
        let from = match &self.unlisted {
            Some(unlisted) => Bound::Excluded(unlisted.through.clone()),
            None => Bound::Unbounded,
        };
        let mut rest = distributions.range((from, Bound::Unbounded));
        let next: Vec<&DistributionId> = rest.by_ref().take(room.min(self.places()).max(1)).collect();
        let waiting = rest.count();
        self.listed.extend(next.iter().copied().map(listed));
        match (&mut self.unlisted, next.last()) {
            (Some(unlisted), last) => {
                unlisted.waiting = waiting;
                unlisted.through = last.copied().unwrap_or(&unlisted.through).clone();
            }
            (None, Some(last)) => {
                let through = (*last).clone();
                self.unlisted = Some(Unlisted { through, completed: 0, unknown: 0, impossible: 0, waiting });
            }
            (None, None) => {}
        }
    }

    /// Lists the first of the distributions beyond the bounds, for their reasons, and counts the others: none is purged.
    pub fn leave_out(&mut self, beyond: BTreeMap<DistributionId, String>, purge: impl Fn(&DistributionId) -> Purge) {
        let Some(through) = beyond.keys().chain(self.listed.keys()).max().cloned() else { return };
        let uncounted = beyond.len().saturating_sub(FAILURES_LISTED_MAX);
        let listed = beyond.into_iter().take(FAILURES_LISTED_MAX);
        let listed = listed.map(|(id, why)| (id.clone(), Purge { state: PurgeState::Beyond(why), ..purge(&id) }));
        self.listed.extend(listed);
        if uncounted > 0 {
            let none = Unlisted { through, completed: 0, unknown: 0, impossible: 0, waiting: 0 };
            self.unlisted.get_or_insert(none).impossible += uncounted;
        }
    }

    /// Whether this distribution is found by a later match: of a site that is purged some at a time.
    pub fn will_list(&self, distribution: &DistributionId) -> bool {
        self.unlisted.as_ref().is_some_and(|unlisted| {
            let folded = unlisted.completed + unlisted.unknown + unlisted.waiting;
            folded > 0 || *distribution > unlisted.through
        })
    }

    /// Takes over what another member knows of the same vector: which purges there are, and how far they are; but not which are
    /// impossible, because another member may have other credentials. A list and the count of what is not on it belong together: we
    /// take both over, or neither. `purge` makes ours of one of theirs.
    pub fn adopt(&mut self, theirs: &Self, purge: impl Fn(&DistributionId, &Purge) -> Purge) {
        let first = self.listed.is_empty();
        if first {
            self.unlisted.clone_from(&theirs.unlisted);
        }
        if first || (self.unlisted.is_none() && theirs.unlisted.is_none()) {
            for (distribution, made) in &theirs.listed {
                self.listed.entry(distribution.clone()).or_insert_with(|| purge(distribution, made));
            }
        }
        for (purge, made) in self.further(theirs) {
            *purge = made.clone();
        }
        self.stalled |= theirs.stalled;
    }

    /// The same for owed ones, whose votes go: the paths that they sent count, not those we would have sent. If they sent those
    /// `voted` for, that is at least what we keep here. Returns what another member has made.
    pub fn adopt_made(&mut self, theirs: &Self, voted: &PathSet) -> Vec<Reference> {
        let mut made_there = Vec::new();
        for (purge, made) in self.further(theirs) {
            let sent = made.sent.clone().unwrap_or_else(|| voted.clone());
            *purge = Purge { sent: Some(sent), ..made.clone() };
            made_there.push(purge.reference.clone());
        }
        made_there
    }

    /// The purges with which another member has come further, each beside theirs.
    fn further<'a>(&'a mut self, theirs: &'a Self) -> impl Iterator<Item = (&'a mut Purge, &'a Purge)> {
        self.listed.iter_mut().filter_map(|(distribution, purge)| {
            let made = theirs.listed.get(distribution)?;
            let further = made.reference == purge.reference && made.state.progress() > purge.state.progress();
            further.then_some((purge, made))
        })
    }

    /// Covers those that are missing by the purges of a `newer` vote that contain them. `paths` are that vote's, where they are still
    /// known. Returns what is covered now.
    pub fn cover(&mut self, newer: &Self, paths: Option<&PathSet>) -> Vec<Reference> {
        let mut covered = Vec::new();
        for (distribution, purge) in self.listed.iter_mut().filter(|(_, purge)| purge.is_missing()) {
            let Some(newer) = newer.listed.get(distribution) else { continue };
            let Some(sent) = newer.sent.as_ref().or(paths) else { continue };
            let made = matches!(newer.state, PurgeState::Completed | PurgeState::Created | PurgeState::Covered(_));
            let contained = purge.sent.as_ref().is_some_and(|owed| sent.covers(owed));
            if made && contained {
                purge.cover(newer.reference.clone(), newer.invalidation.clone());
                covered.push(purge.reference.clone());
            }
        }
        covered
    }

    /// Those that are purged, as far as is known, with their invalidations; without one, another member has made it.
    pub fn made(&self) -> impl Iterator<Item = (&DistributionId, Option<&InvalidationId>)> {
        self.listed.iter().filter_map(|(distribution, purge)| match purge.state {
            PurgeState::Completed => Some((distribution, purge.invalidation.as_ref())),
            PurgeState::DoneByOther => Some((distribution, None)),
            PurgeState::Wanted
            | PurgeState::Owed(_)
            | PurgeState::Created
            | PurgeState::Covered(_)
            | PurgeState::Impossible(_)
            | PurgeState::Beyond(_) => None,
        })
    }

    /// The first ones as the history names them, and how many more there are.
    pub fn named(&self) -> (Vec<(DistributionId, Option<InvalidationId>)>, usize) {
        let is_made = |purge: &Purge| {
            matches!(purge.state, PurgeState::Completed | PurgeState::Covered(_) | PurgeState::DoneByOther)
        };
        let (made, unmade): (Vec<_>, Vec<_>) = self.listed.iter().partition(|(_, purge)| is_made(purge));
        let unmade = unmade.into_iter().map(|(id, _)| (id.clone(), None));
        let made = made.into_iter().map(|(id, purge)| (id.clone(), purge.invalidation.clone()));
        let named: Vec<_> = unmade.chain(made).take(PURGES_NAMED_MAX).collect();
        let more = self.count().all().saturating_sub(named.len());
        (named, more)
    }

    /// Takes off the list what is done with, where not all can be on it.
    pub fn fold(&mut self) {
        let Some(unlisted) = &mut self.unlisted else { return };
        let mut listed = 0;
        let mut failures = 0;
        self.listed.retain(|_, purge| {
            listed += 1;
            if listed <= PURGES_NAMED_MAX || !purge.state.is_final() {
                return true;
            }
            let completed = purge.state == PurgeState::Completed;
            failures += usize::from(!completed);
            if !completed && failures <= FAILURES_LISTED_MAX {
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
