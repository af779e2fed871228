//! What the deployment watcher cannot do, in words: each is logged when it begins, and shown for as long as it lasts.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::id::WorkloadId;
use crate::domain::machine::Timestamp;
use crate::ports::{PortError, Retry};

/// How long a watch may be down before we are blind: what happened before is learnt a moment later, and an API server that
/// is replaced is back by then. A watch that is refused is blind at once.
pub const BLIND_AFTER: Duration = Duration::from_secs(30);

/// How often what only a person can end is said again.
pub const SAID_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// How often it is logged of one workload that it cannot be read, for changing reasons.
const UNREADABLE_SAID_EVERY: Duration = Duration::from_secs(60);

/// Owners who are told within [`TOLD_WITHIN`] that there is no room for their workloads: a namespace may have thousands of them, and
/// each telling is an Event and a delivery for every hook. The log and the status have all.
const TOLD_MAX: usize = 10;

/// See [`TOLD_MAX`].
const TOLD_WITHIN: Duration = Duration::from_secs(60);

/// A watch that is down.
struct Down {
    since: Timestamp,
    refused: bool,
    why: String,
    /// When it was last said as an error.
    said: Option<Timestamp>,
}

/// The troubles of one watcher.
#[derive(Default)]
pub struct Troubles {
    /// Scopes whose watch is down: since when, whether only a person can end it, and why.
    watches: BTreeMap<Option<String>, Down>,
    baselines: Option<String>,
    listed: Option<String>,
    /// Workloads that cannot be recorded, why, and when that was last said; until they can be.
    unreadable: BTreeMap<WorkloadId, (String, Timestamp)>,
    /// Workloads without a record for which the ledger has no room, and why.
    unstored: BTreeMap<WorkloadId, String>,
    /// When owners of such were told of late.
    told: Vec<Timestamp>,
}

impl Troubles {
    /// The watch of a scope was interrupted.
    pub fn watch_failed(&mut self, now: Timestamp, scope: Option<String>, error: &PortError) {
        let refused = error.retry == Retry::Never;
        let first = Down { since: now, refused, why: String::new(), said: None };
        let begins = !self.watches.contains_key(&scope);
        let down = self.watches.entry(scope).or_insert(first);
        down.refused = refused;
        down.why = error.to_string();
        if refused {
            if down.said.is_none_or(|said| now.since(said) >= SAID_AGAIN_AFTER) {
                down.said = Some(now);
                tracing::error!(%error, "the watch of workloads is refused; nothing is noticed until somebody has ended that");
            }
        } else if begins {
            tracing::warn!(%error, "the watch of workloads was interrupted; starting it again");
        } else {
            tracing::debug!(%error, "the watch of workloads is still interrupted");
        }
    }

    /// The listing of a scope came to its end, or its watch goes on.
    pub fn watch_works(&mut self, now: Timestamp, scope: &Option<String>) {
        if let Some(down) = self.watches.remove(scope) {
            tracing::info!(for_s = now.since(down.since).as_secs(), "the watch of workloads works again");
        }
    }

    /// Why changes of workloads are not noticed, if they are not.
    pub fn blind(&self, now: Timestamp) -> Option<String> {
        let blind = |down: &&Down| down.refused || now.since(down.since) >= BLIND_AFTER;
        let down = self.watches.values().find(blind)?;
        Some(format!("changes of workloads are not noticed for {} s: {}", now.since(down.since).as_secs(), down.why))
    }

    /// How the last writing of baselines ended: with what failed, or with `None` if nothing did.
    pub fn baselines_written(&mut self, failed: Option<String>) {
        if let (Some(why), None) = (&failed, &self.baselines) {
            tracing::warn!(why, "could not write the records of workloads seen for the first time; trying again");
        }
        self.baselines = failed;
    }

    /// How the last attempt ended to remember which namespaces are listed.
    pub fn listed_noted(&mut self, failed: Option<String>) {
        if let (Some(why), None) = (&failed, &self.listed) {
            tracing::warn!(why, "could not store which namespaces are listed; trying again");
        }
        self.listed = failed;
    }

    /// This workload is left out, and why.
    pub fn unreadable(&mut self, now: Timestamp, id: &WorkloadId, why: String) {
        let before = self.unreadable.get(id);
        if before.is_some_and(|(known, _)| *known == why) {
            return;
        }
        // Its owner may change it many times a second.
        let said = before.map(|(_, said)| *said).filter(|said| now.since(*said) < UNREADABLE_SAID_EVERY);
        if said.is_none() {
            tracing::warn!(workload = %id.spoken(), why, "a workload cannot be read and is left out");
        }
        self.unreadable.insert(id.clone(), (why, said.unwrap_or(now)));
    }

    /// It can be read, or is gone.
    pub fn readable(&mut self, id: &WorkloadId) {
        self.unreadable.remove(id);
    }

    /// The ledger has no room for the record of this workload, and why. Says whether its owner is to be told: once, and some a minute
    /// of all of them.
    pub fn unstored(&mut self, now: Timestamp, id: &WorkloadId, why: String) -> bool {
        let known = self.unstored.insert(id.clone(), why).is_some();
        self.told.retain(|at| now.since(*at) < TOLD_WITHIN);
        let tells = !known && self.told.len() < TOLD_MAX;
        self.told.extend(tells.then_some(now));
        tells
    }

    /// It was stored, or is gone. Says whether it could not be before.
    pub fn stored(&mut self, id: &WorkloadId) -> bool {
        self.unstored.remove(id).is_some()
    }

    /// All of them, a sentence each: also what is said of the lives before this one, and of the workloads that are left alone.
    pub fn words<'a>(
        &'a self,
        lives: Option<String>,
        left_alone: impl Iterator<Item = (&'a WorkloadId, &'a str)>,
    ) -> impl Iterator<Item = String> {
        let baselines = self.baselines.iter().map(|why| format!("cannot write first records: {why}"));
        let listed = self.listed.iter().map(|why| format!("cannot store which namespaces are listed: {why}"));
        let unreadable = self.unreadable.iter().map(|(id, (why, _))| format!("{} cannot be read: {why}", id.spoken()));
        let left_alone = left_alone.map(|(id, why)| format!("{} is left alone: {why}", id.spoken()));
        let first = self.unstored.iter().next();
        let others = self.unstored.len().saturating_sub(1);
        let unstored = first.map(|(id, why)| {
            format!("the records of {} and {others} others have no room in the ledger: {why}", id.spoken())
        });
        let watches = self.watches.values().map(|down| down.why.clone());
        watches.chain(baselines).chain(listed).chain(lives).chain(unreadable).chain(left_alone).chain(unstored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_lasts_until_its_own_cause_is_gone() {
        let web = WorkloadId::deployment("shop", "web");
        let mut troubles = Troubles::default();
        troubles.baselines_written(Some("failed to write: forbidden".into()));
        troubles.unreadable(Timestamp::default(), &web, "image: \"WEB\" is not an image".into());
        troubles.watch_works(Timestamp::default(), &None);
        assert_eq!(troubles.words(None, [].into_iter()).count(), 2);
        troubles.baselines_written(None);
        troubles.readable(&web);
        assert_eq!(troubles.words(None, [].into_iter()).next(), None);
    }

    #[test]
    fn a_watch_that_is_refused_is_blind_at_once_and_one_that_is_down_after_a_while() {
        let at = |seconds: u64| Timestamp::from_millis(seconds * 1_000);
        let shop = Some("shop".to_owned());
        let mut troubles = Troubles::default();
        troubles.watch_failed(at(0), None, &PortError::passing("failed to watch", "no answer"));
        troubles.watch_failed(at(29), None, &PortError::passing("failed to watch", "still none"));
        assert_eq!(troubles.blind(at(29)), None);
        assert!(troubles.blind(at(30)).unwrap().ends_with("for 30 s: failed to watch: still none"));
        troubles.watch_failed(at(40), shop.clone(), &PortError::lasting("failed to watch", "forbidden"));
        troubles.watch_works(at(41), &None);
        assert!(troubles.blind(at(41)).unwrap().contains("forbidden"), "another scope's watch ends nothing");
        troubles.watch_works(at(50), &shop);
        assert_eq!(troubles.blind(at(500)), None);
    }
}
