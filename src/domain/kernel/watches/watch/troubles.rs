//! The troubles of a watch, in words, while they last; and when they are reported.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::id::ObjectId;
use crate::machine::Timestamp;
use crate::refusal::{Refused, SAID_AGAIN_AFTER};
use crate::watches::listed::Scope;
use crate::watches::view::View;

/// How long a watch may be down before we count as blind. A shorter gap delays changes by a moment only; an API server
/// that is replaced is back by then. A watch that is refused is blind as soon as that counts.
const BLIND_AFTER: Duration = Duration::from_secs(30);

/// How often we log that one workload cannot be read, for changing reasons.
const UNREADABLE_SAID_EVERY: Duration = Duration::from_secs(60);

/// Most notices within [`TOLD_WITHIN`] that the ledger has no room for a workload. A namespace may have thousands of workloads,
/// and each notice is an Event and a delivery for every hook. The log and the status have all.
const TOLD_MAX: usize = 10;

/// See [`TOLD_MAX`].
const TOLD_WITHIN: Duration = Duration::from_secs(60);

/// A watch that is down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Down {
    since: Timestamp,
    /// It is refused, and that counts ([`Refused::counts`]).
    refused: bool,
    why: String,
    /// When it was last logged as an error.
    said: Option<Timestamp>,
}

/// How loudly the failure of a watch is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loud {
    /// Only a person can end it.
    Error,
    /// It has just begun, and may pass.
    Warning,
    /// It was logged before.
    Quiet,
}

/// The troubles of one watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Troubles<I> {
    /// Scopes whose watch is down: since when, whether only a person can end it, and why.
    watches: BTreeMap<Scope, Down>,
    view: View,
    baselines: Option<String>,
    listed: Option<String>,
    /// Workloads that cannot be recorded, why, and when that was last said; until they can be.
    unreadable: BTreeMap<I, (String, Timestamp)>,
    /// Workloads without a record for which the ledger has no room, and why.
    unstored: BTreeMap<I, String>,
    /// When the latest notices about them were sent.
    told: Vec<Timestamp>,
}

impl<I> Default for Troubles<I> {
    fn default() -> Self {
        Self {
            watches: BTreeMap::new(),
            view: View::default(),
            baselines: None,
            listed: None,
            unreadable: BTreeMap::new(),
            unstored: BTreeMap::new(),
            told: Vec::new(),
        }
    }
}

impl<I: ObjectId> Troubles<I> {
    /// The watch of a scope was interrupted, and why; `refused`: what was not accepted, where only a person can end that. `answered`
    /// is when the API server last answered anything. Returns how to log it: when it begins, and a refusal that counts daily.
    pub fn watch_failed(
        &mut self,
        now: Timestamp,
        scope: Scope,
        refused: Option<Refused>,
        answered: Option<Timestamp>,
        why: String,
    ) -> Loud {
        let begins = !self.watches.contains_key(&scope);
        let unsaid = Down { since: now, refused: false, why: String::new(), said: None };
        let down = self.watches.entry(scope).or_insert(unsaid);
        let answered = answered.is_some_and(|at| at >= down.since);
        down.refused = refused.is_some_and(|refused| refused.counts(now.since(down.since), answered));
        down.why = why;
        if down.refused && down.said.is_none_or(|said| now.since(said) >= SAID_AGAIN_AFTER) {
            down.said = Some(now);
            return Loud::Error;
        }
        if begins { Loud::Warning } else { Loud::Quiet }
    }

    /// A scope is not followed, for want of a right: it is not blind, for nothing more is expected of it. `all`: each scope was listed,
    /// or is left out. Returns whether that is news.
    pub fn left_out(&mut self, scope: &Scope, why: String, all: bool) -> bool {
        self.watches.remove(scope);
        self.view.leave_out(scope, why, all)
    }

    /// The listing of a scope is complete, or its watch goes on. Returns for how long it was down, if it was.
    pub fn watch_works(&mut self, now: Timestamp, scope: &Scope, all: bool) -> Option<Duration> {
        self.view.listed(scope, all);
        self.watches.remove(scope).map(|down| now.since(down.since))
    }

    /// What is looked at.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Why changes of workloads are not noticed, if they are not.
    pub fn blind(&self, now: Timestamp) -> Option<String> {
        let blind = |down: &&Down| down.refused || now.since(down.since) >= BLIND_AFTER;
        let down = self.watches.values().find(blind)?;
        Some(format!("changes of workloads are not noticed for {} s: {}", now.since(down.since).as_secs(), down.why))
    }

    /// How the last writing of baselines ended: what failed, or `None`. Returns whether that is news.
    pub fn baselines_written(&mut self, failed: Option<String>) -> bool {
        let is_news = failed.is_some() && self.baselines.is_none();
        self.baselines = failed;
        is_news
    }

    /// How the last attempt to note the listed scopes ended. Returns whether a failure is news.
    pub fn listed_noted(&mut self, failed: Option<String>) -> bool {
        let is_news = failed.is_some() && self.listed.is_none();
        self.listed = failed;
        is_news
    }

    /// This object is left out, and why. Returns whether to log it now: its owner may change it many times a second.
    pub fn unreadable(&mut self, now: Timestamp, id: &I, why: String) -> bool {
        let before = self.unreadable.get(id);
        if before.is_some_and(|(known, _)| *known == why) {
            return false;
        }
        let said = before.map(|(_, said)| *said).filter(|said| now.since(*said) < UNREADABLE_SAID_EVERY);
        self.unreadable.insert(id.clone(), (why, said.unwrap_or(now)));
        said.is_none()
    }

    /// It can be read, or is gone.
    pub fn readable(&mut self, id: &I) {
        self.unreadable.remove(id);
    }

    /// The ledger has no room for the record of this workload, and why. Returns whether to send a notice: once for each workload,
    /// and [`TOLD_MAX`] a minute for all of them.
    pub fn unstored(&mut self, now: Timestamp, id: &I, why: String) -> bool {
        let known = self.unstored.insert(id.clone(), why).is_some();
        self.told.retain(|at| now.since(*at) < TOLD_WITHIN);
        let tells = !known && self.told.len() < TOLD_MAX;
        self.told.extend(tells.then_some(now));
        tells
    }

    /// It was stored, or is gone. Returns whether storing it had failed before.
    pub fn stored(&mut self, id: &I) -> bool {
        self.unstored.remove(id).is_some()
    }

    /// All of them, a sentence each, together with those of earlier lives and of workloads in quarantine.
    pub fn words<'a>(
        &'a self,
        lives: Option<String>,
        left_alone: impl Iterator<Item = (&'a I, &'a str)>,
    ) -> impl Iterator<Item = String> {
        let baselines = self.baselines.iter().map(|why| format!("cannot write first records: {why}"));
        let listed = self.listed.iter().map(|why| format!("cannot store which namespaces are listed: {why}"));
        let unreadable =
            self.unreadable.iter().map(|(id, (why, _))| format!("{} cannot be read: {why}", id.display_name()));
        let left_alone = left_alone.map(|(id, why)| format!("{} is left alone: {why}", id.display_name()));
        let first = self.unstored.iter().next();
        let others = self.unstored.len().saturating_sub(1);
        let unstored = first.map(|(id, why)| {
            format!("the records of {} and {others} others have no room in the ledger: {why}", id.display_name())
        });
        let watches = self.watches.values().map(|down| down.why.clone());
        watches.chain(baselines).chain(listed).chain(lives).chain(unreadable).chain(left_alone).chain(unstored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WorkloadId;

    #[test]
    fn a_trouble_lasts_until_its_own_cause_is_gone() {
        let web = WorkloadId::deployment("shop", "web");
        let mut troubles = Troubles::default();
        troubles.baselines_written(Some("failed to write: forbidden".into()));
        troubles.unreadable(Timestamp::default(), &web, "image: \"WEB\" is not an image".into());
        assert_eq!(troubles.watch_works(Timestamp::default(), &Scope::of(None), true), None);
        assert_eq!(troubles.words(None, [].into_iter()).count(), 2);
        troubles.baselines_written(None);
        troubles.readable(&web);
        assert_eq!(troubles.words(None, [].into_iter()).next(), None);
    }

    // Faults: A7
    #[test]
    fn a_watch_that_is_refused_is_blind_when_that_counts_and_one_that_is_down_after_a_while() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let (all, shop) = (Scope::of(None), Scope::of(Some("shop")));
        let mut troubles = Troubles::<WorkloadId>::default();
        let down = |troubles: &mut Troubles<WorkloadId>, at, why: &str| {
            troubles.watch_failed(at, Scope::of(None), None, None, why.into())
        };
        assert_eq!(down(&mut troubles, at(0), "no answer"), Loud::Warning);
        assert_eq!(down(&mut troubles, at(29), "still none"), Loud::Quiet);
        assert_eq!(troubles.blind(at(29)), None);
        assert!(troubles.blind(at(30)).unwrap().ends_with("for 30 s: still none"));
        let refused = |troubles: &mut Troubles<WorkloadId>, seconds, answered: u64| {
            let (scope, why) = (Scope::of(Some("shop")), "forbidden".to_owned());
            troubles.watch_failed(at(seconds), scope, Some(Refused::Right), Some(at(answered)), why)
        };
        assert_eq!(refused(&mut troubles, 40, 39), Loud::Warning, "an API server that has just started");
        assert_eq!(troubles.watch_works(at(41), &all, false), Some(Duration::from_secs(41)));
        assert_eq!(refused(&mut troubles, 50, 39), Loud::Quiet);
        assert_eq!(troubles.blind(at(50)), None);
        assert_eq!(refused(&mut troubles, 51, 45), Loud::Error, "something else was answered");
        assert!(troubles.blind(at(51)).unwrap().contains("forbidden"));
        assert_eq!(refused(&mut troubles, 60, 45), Loud::Quiet);
        assert_eq!(refused(&mut troubles, 100_000, 45), Loud::Error, "another day");
        troubles.watch_works(at(100_001), &shop, false);
        assert_eq!(troubles.blind(at(200_000)), None);
        assert_eq!(down(&mut troubles, at(200_000), "no answer"), Loud::Warning);
        assert!(troubles.blind(at(200_030)).is_some());
        assert!(troubles.left_out(&all, "forbidden".to_owned(), true), "it is news");
        assert_eq!(troubles.blind(at(200_030)), None, "nothing more is expected of it");
    }
}
