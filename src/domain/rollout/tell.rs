//! Telling: what is durable and not told yet, and the little that is told without being durable.
//!
//! Loose notices are in no record: those that it has no room for, and those about waits. The former are told once the write
//! without them has happened, and a crash before that loses them; the others are told by the next life. Not for what is told; that
//! is decided where it happens.

use std::collections::BTreeMap;

use crate::domain::call::Call;
use crate::domain::id::NoticeId;
use crate::domain::machine::Timestamp;
use crate::domain::notice::Notice;
use crate::domain::rollout::{Effect, Rollout};

/// What is being told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Telling {
    calls: BTreeMap<NoticeId, Call>,
    /// Notices that are told without being in the record.
    loose: BTreeMap<NoticeId, Notice>,
}

impl Telling {
    /// Tells these notices and the loose ones, as far as they are not being told.
    pub(super) fn tell<'a>(&'a mut self, now: Timestamp, notices: impl Iterator<Item = &'a Notice>) -> Vec<Effect> {
        self.calls.values_mut().for_each(|call| call.wake(now));
        let mut effects = Vec::new();
        for notice in notices.chain(self.loose.values()) {
            let call = self.calls.entry(notice.id.clone()).or_default();
            if call.is_due(now) {
                call.asked();
                effects.push(Effect::Tell(Box::new(notice.clone())));
            }
        }
        effects
    }

    /// Tells a notice without a record that has it.
    pub(super) fn add(&mut self, notice: Notice) {
        self.loose.entry(notice.id.clone()).or_insert(notice);
    }

    /// It was told, or is on its way in a durable outbox.
    pub(super) fn told(&mut self, id: &NoticeId) {
        self.calls.remove(id);
        self.loose.remove(id);
    }

    /// It was not, for this reason.
    pub(super) fn failed(&mut self, id: &NoticeId, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.failed(again, why);
        }
    }

    /// Whether all loose notices were told.
    pub(super) fn is_done(&self) -> bool {
        self.loose.is_empty()
    }

    /// Those that are not told yet.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }
}

impl Rollout {
    /// Tells what is durable and not yet told, and what is loose.
    pub(super) fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let still = |notice: &&Notice| self.record.draft.as_ref().is_some_and(|draft| draft.untold.contains(notice));
        let durable = self.record.durable.iter().flat_map(|durable| &durable.untold).filter(still);
        self.telling.tell(now, durable)
    }
}
