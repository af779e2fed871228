//! Telling: what is durable and not told yet, and the little that is told without being durable.
//!
//! Loose notices are in no record: those that it has no room for. They are told once the write without them has happened, and a
//! crash before that loses them; the others are told by the next life. Not for what is told; that is decided where it happens.

use crate::domain::id::NoticeId;
use crate::domain::machine::Timestamp;
use crate::domain::notice::Notice;
use crate::domain::rollout::{Effect, Rollout};

impl Rollout {
    /// Tells what is durable and not yet told, and what is loose.
    pub(super) fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let still = |notice: &&Notice| self.draft.as_ref().is_some_and(|draft| draft.untold.contains(notice));
        let durable = self.durable.iter().flat_map(|durable| &durable.untold).filter(still);
        let mut effects = Vec::new();
        for notice in durable.chain(self.loose.values()) {
            let call = self.telling.entry(notice.id.clone()).or_default();
            if call.is_due(now) {
                call.asked();
                effects.push(Effect::Tell(Box::new(notice.clone())));
            }
        }
        effects
    }

    /// Tells a notice without a record that has it.
    pub(super) fn tell_loose(&mut self, notice: Notice) {
        self.loose.entry(notice.id.clone()).or_insert(notice);
    }

    pub(super) fn told(&mut self, id: &NoticeId) {
        self.telling.remove(id);
        self.loose.remove(id);
        if let Some(draft) = &mut self.draft {
            draft.untold.retain(|notice| notice.id != *id);
        }
    }
}
