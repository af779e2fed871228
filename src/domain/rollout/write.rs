//! Making the draft durable: one write at a time, each a compare-and-set of the record before it.

use std::time::Duration;

use crate::domain::id::Seq;
use crate::domain::machine::Timestamp;
use crate::domain::record::Record;
use crate::domain::record_codec;
use crate::domain::rollout::served::Served;
use crate::domain::rollout::{Effect, Rollout};

/// How long a change that only tidies the record may wait for another one to travel with.
const TIDY_AFTER: Duration = Duration::from_secs(1);

impl Rollout {
    /// Starts the write that makes the draft durable, if one is needed and none is under way. A write of which it is not
    /// known whether it happened is repeated as it was, so that its answer means what it says.
    pub(super) fn flush(&mut self, now: Timestamp) -> Option<Effect> {
        if !self.store.is_due(now) {
            return None;
        }
        if self.storing.is_none() {
            if self.draft == self.durable {
                self.untidy_since = None;
                return None;
            }
            if self.only_tidies() && !self.is_quiet() {
                let since = *self.untidy_since.get_or_insert(now);
                if now < since.after(TIDY_AFTER) {
                    return None;
                }
            }
            self.untidy_since = None;
            let revision = self.durable.as_ref().map_or(0, |record| record.revision).saturating_add(1);
            self.storing = Some(self.draft.as_mut().map(|draft| {
                draft.revision = revision;
                self.shed = record_codec::shed(draft);
                draft.clone()
            }));
        }
        self.store.asked();
        match (self.storing.as_ref()?, &self.durable) {
            (Some(record), _) => Some(Effect::Store(Box::new(record.clone()))),
            (None, durable) => Some(Effect::Remove(durable.as_ref()?.revision)),
        }
    }

    /// Whether the draft differs only in what no decision of another life depends on.
    fn only_tidies(&self) -> bool {
        let (Some(draft), Some(durable)) = (&self.draft, &self.durable) else { return false };
        let mut tidied = durable.clone();
        tidied.elapsed_ms = draft.elapsed_ms;
        if draft.untold.iter().all(|notice| durable.untold.contains(notice)) {
            tidied.untold.clone_from(&draft.untold);
        }
        tidied == *draft
    }

    /// Whether nothing but tidying is left, so there is nothing to wait for.
    fn is_quiet(&self) -> bool {
        self.draft.as_ref().is_none_or(|record| !record.is_open())
    }

    /// The write under way happened.
    pub(super) fn stored(&mut self) -> Vec<Effect> {
        let Some(stored) = self.storing.take() else { return Vec::new() };
        self.store.answered();
        self.durable = stored;
        std::mem::take(&mut self.shed).into_iter().for_each(|notice| self.telling.add(notice));
        match (&mut self.draft, &self.durable) {
            (Some(draft), Some(durable)) => {
                draft.revision = durable.revision;
                vec![Effect::Publish(Box::new(durable.clone()))]
            }
            (Some(_), None) | (None, _) => Vec::new(),
        }
    }

    /// Somebody else wrote: what they wrote holds, and the facts are looked at again in its light.
    pub(super) fn conflicted(&mut self, now: Timestamp, current: Option<Record>, floor: Seq) -> Vec<Effect> {
        if self.storing.take().is_none() {
            return Vec::new();
        }
        self.shed.clear();
        self.store.repeat(self.again(now));
        // A record that another worker removed took its numbers with it (decision 2).
        self.floor = self.floor.max(floor);
        let known = std::mem::replace(&mut self.durable, current.clone());
        self.draft = current;
        if let Some(known) = known {
            self.compare(&known);
        }
        self.served = Served::resumed(&self.policy, self.draft.as_ref());
        self.running_since = None;
        self.suspicion = None;
        self.matching.clear();
        self.ordered.clear();
        self.voted_at.clear();
        self.turns.clear();
        self.durable.iter().map(|record| Effect::Publish(Box::new(record.clone()))).collect()
    }

    /// When a tidying that waits for company is written without.
    pub(super) fn tidy_deadline(&self) -> Option<Timestamp> {
        self.untidy_since.map(|since| since.after(TIDY_AFTER))
    }
}
