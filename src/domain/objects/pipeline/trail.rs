//! The revisions at which the environments before one were done: since when the newest has been good, and which one has
//! passed.
//!
//! ```text
//! another revision is done      the newest now, and its soak begins. One that was there before: those after it are forgotten
//! another revision is said      the soak is broken
//! not ready                     broken if that lasts for longer than the gate tolerates
//! unknown                       nothing
//! good for as long as the soak  the newest has passed: step by step it may move on, though the environment before has moved on
//! ```
//!
//! Not for what is made of it: that is `candidate`.

use serde::{Deserialize, Serialize};

use crate::asked::Topic;
use crate::form::{At, Filled, In};
use kernel::id::Revision;

/// Revisions that are kept in order. Going back by more than these is taken for going on.
const REVISIONS_MAX: usize = 20;

/// What the environments before one have been done at.
// Times are milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trail {
    /// Names the targets that were looked at.
    // Other targets have other trails.
    pub of: Topic,
    /// Oldest first; the last one is the newest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = REVISIONS_MAX)))]
    pub revisions: Vec<Revision>,
    /// Since when the newest is good without a break: its soak.
    #[serde(rename = "since", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub since_ms: Option<i64>,
    /// Since when it is not ready.
    #[serde(rename = "unreadySince", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub unready_since_ms: Option<i64>,
    /// The verdict was open since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agreed: bool,
    /// The one that may move on, under advance: Stepwise.
    // It was good for as long as the soak.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "In::<Filled>")]
    pub passed: Option<Revision>,
    /// Others that may.
    // Kept where several environments are just before one: it gets what has passed them all, at different times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = REVISIONS_MAX)))]
    pub passed_before: Vec<Revision>,
}

impl Trail {
    /// The one that is done now, or was last.
    pub fn newest(&self) -> Option<&Revision> {
        self.revisions.last()
    }

    /// Whether the environments before went from `earlier` to `later`.
    pub fn is_before(&self, earlier: &Revision, later: &Revision) -> bool {
        let place = |revision| self.revisions.iter().position(|one| one == revision);
        place(earlier).zip(place(later)).is_some_and(|(earlier, later)| earlier < later)
    }

    /// Whether a revision may move on.
    pub fn has_passed(&self, revision: &Revision) -> bool {
        self.passed.iter().chain(&self.passed_before).any(|passed| passed == revision)
    }

    /// Those that may move on, newest first.
    pub(super) fn passing(&self) -> impl Iterator<Item = &Revision> {
        self.revisions.iter().rev().filter(|revision| self.has_passed(revision))
    }

    /// How long a revision must still be good before it may move on.
    pub(super) fn left_ms(&self, revision: &Revision, now_ms: i64, soak_ms: i64) -> u64 {
        match self.newest() {
            _ if self.has_passed(revision) => 0,
            Some(newest) if newest == revision => self.soak_left_ms(now_ms, soak_ms),
            Some(_) | None => u64::try_from(soak_ms).unwrap_or_default(),
        }
    }

    /// How long the newest must still be good. The clock of an earlier life may have been ahead of ours.
    pub fn soak_left_ms(&self, now_ms: i64, soak_ms: i64) -> u64 {
        let since = self.since_ms.unwrap_or(i64::MAX);
        let left = since.saturating_add(soak_ms).saturating_sub(now_ms).min(soak_ms);
        u64::try_from(left).unwrap_or_default()
    }

    /// It is done now. `held` is not forgotten while there is something else to forget.
    pub(super) fn is_done(
        &mut self,
        revision: &Revision,
        now_ms: i64,
        tolerates_ms: i64,
        held: impl Fn(&Revision) -> bool,
    ) {
        let unready = self.unready_since_ms.take();
        if self.newest() != Some(revision) {
            match self.revisions.iter().position(|one| one == revision) {
                Some(place) => self.revisions.truncate(place + 1),
                None => self.revisions.push(revision.clone()),
            }
            while self.revisions.len() > REVISIONS_MAX {
                // The newest is what the others are still to get.
                let place = self.revisions.iter().take(REVISIONS_MAX).position(|one| !held(one)).unwrap_or_default();
                self.revisions.remove(place);
            }
            self.passed_before.retain(|passed| passed != revision);
            self.passed.take_if(|passed| !self.revisions.contains(passed));
            self.passed_before.retain(|passed| self.revisions.contains(passed));
            self.broke(Some(now_ms));
        } else if self.since_ms.is_none() || unready.is_some_and(|since| now_ms.saturating_sub(since) > tolerates_ms) {
            self.unpass(revision);
            self.broke(Some(now_ms));
        }
    }

    /// A revision may move on; `keeps`: beside those that may already.
    pub(super) fn pass(&mut self, revision: &Revision, keeps: bool) {
        if !self.has_passed(revision) {
            let earlier = self.passed.replace(revision.clone());
            self.passed_before.extend(earlier.filter(|_| keeps));
        }
    }

    /// Only the newest that may move on is remembered.
    pub(super) fn pass_one(&mut self) {
        if !self.passed_before.is_empty() {
            let newest = self.passing().next().cloned();
            self.passed = newest;
            self.passed_before.clear();
        }
    }

    fn unpass(&mut self, revision: &Revision) {
        self.passed.take_if(|passed| passed == revision);
        self.passed_before.retain(|passed| passed != revision);
    }

    /// The soak of the newest is broken, or begins.
    pub(super) fn broke(&mut self, since_ms: Option<i64>) {
        self.since_ms = since_ms;
        self.agreed = false;
    }

    /// Notes the other system's verdict on a revision. A no after a yes breaks the soak.
    pub(super) fn heard(&mut self, revision: &Revision, open: bool, now_ms: i64) {
        if open {
            self.agreed |= self.newest() == Some(revision);
        } else if std::mem::take(&mut self.agreed) {
            self.unpass(revision);
            self.broke(self.since_ms.map(|_| now_ms));
        }
    }
}
