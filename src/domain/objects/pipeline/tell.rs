//! The notices of a Pipeline: they are part of its status until the outbox has them.

use crate::pipeline::Pipeline;
use crate::pipeline::spec::or_none;
use kernel::id::{Environment, NoticeId, PromotionSeq, Seq, promotion_id};
use kernel::machine::Timestamp;
use notices::notice::{About, Kind, Notice, PromotionFact};

impl Pipeline {
    /// The id of a notice about a promotion; `detail` tells apart several of one kind.
    pub(super) fn id_of(&self, kind: Kind, name: &Environment, seq: PromotionSeq, detail: &str) -> NoticeId {
        Notice::id_of(&promotion_id(&self.own.object.uid, name, seq), kind, detail)
    }

    /// Writes a notice about an environment's newest promotion into the draft. It is sent once that is durable.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, name: &Environment, message: &str) {
        let known = self.own.status.draft.environment(name);
        let promotion = known.and_then(|known| known.promotion.as_ref());
        let waiting = known.and_then(|known| known.waiting.as_ref());
        let seq = promotion.map(|promotion| promotion.seq).unwrap_or_default();
        let revision = waiting.map(|waiting| &waiting.revision).or(promotion.map(|promotion| &promotion.revision));
        let from = promotion.and_then(|promotion| promotion.from.as_ref());
        let detail = match kind {
            // Each question, wait and cause is announced once.
            Kind::PromotionWaiting => waiting.map(|waiting| waiting.ticket.clone()).unwrap_or_default(),
            Kind::PromotionStalled => {
                known.and_then(|known| known.behind).map(|behind| behind.since_ms.to_string()).unwrap_or_default()
            }
            _ => message.to_owned(),
        };
        let detail =
            if kind == Kind::PromotionStarted || kind == Kind::PromotionCompleted { String::new() } else { detail };
        let fact = PromotionFact {
            environment: name.clone(),
            revision: revision.cloned(),
            from: from.cloned(),
            ticket: waiting.map(|waiting| waiting.ticket.clone()),
            request: known.and_then(|known| known.request.as_ref()).map(|request| request.url.clone()),
        };
        let notice = Notice {
            seq: Seq(seq.0),
            change: format!("{} → {}", or_none(from), or_none(revision)),
            about: About::Pipeline(self.own.object.id.clone(), Some(fact)),
            ..self.own.notice(now, kind, self.id_of(kind, name, seq, &detail), &self.own.object.uid, message)
        };
        self.own.announce(notice);
    }
}
