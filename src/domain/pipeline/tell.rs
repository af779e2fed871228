//! The notices of a Pipeline: they are part of its status until the outbox has them.

use crate::kernel::id::{Environment, NoticeId, PromotionSeq, Seq, Subject, promotion_id};
use crate::kernel::machine::Timestamp;
use crate::notices::notice::{Kind, Notice, PromotionFact};
use crate::objects::status::UNTOLD_MAX;
use crate::pipeline::spec::or_none;
use crate::pipeline::{Effect, Pipeline};

impl Pipeline {
    /// Sends the durable notices that were not sent yet, and the loose ones.
    pub(super) fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let draft = &self.status.draft.untold;
        let durable = self.status.durable.untold.iter().filter(|notice| draft.contains(notice));
        self.telling.tell(now, durable).into_iter().map(|notice| Effect::Tell(Box::new(notice))).collect()
    }

    /// The id of a notice about a promotion; `detail` tells apart several of one kind.
    pub(super) fn id_of(&self, kind: Kind, name: &Environment, seq: PromotionSeq, detail: &str) -> NoticeId {
        Notice::id_of(&promotion_id(&self.object.uid, name, seq), kind, detail)
    }

    /// Writes a notice about an environment's newest promotion into the draft. It is sent once that is durable.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, name: &Environment, message: &str) {
        let known = self.status.draft.environment(name);
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
        let notice = Notice {
            seq: Seq(seq.0),
            change: format!("{} → {}", or_none(from), or_none(revision)),
            promotion: Some(PromotionFact {
                environment: name.clone(),
                revision: revision.cloned(),
                from: from.cloned(),
                ticket: waiting.map(|waiting| waiting.ticket.clone()),
                request: known.and_then(|known| known.request.as_ref()).map(|request| request.url.clone()),
            }),
            ..self.notice(now, kind, self.id_of(kind, name, seq, &detail), message)
        };
        self.add(notice);
    }

    /// Announces a fault of the object. Each cause is announced once in a life.
    pub(super) fn tell_faulty(&mut self, now: Timestamp, why: &str) {
        if self.faulty.as_deref() == Some(why) {
            return;
        }
        self.faulty = Some(why.to_owned());
        let id = Notice::id_of(&self.object.uid, Kind::PipelineFaulty, &format!("{}/{why}", self.object.generation));
        let notice = self.notice(now, Kind::PipelineFaulty, id, why);
        self.telling.add(notice);
    }

    fn notice(&self, now: Timestamp, kind: Kind, id: NoticeId, message: &str) -> Notice {
        let promotion = self.object.uid.clone();
        Notice {
            id,
            kind,
            at_ms: self.wall_ms(now),
            subject: Subject::Pipeline(self.object.id.clone()),
            seq: Seq::default(),
            rollout: promotion,
            change: String::new(),
            message: message.to_owned(),
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
            promotion: None,
            run: None,
        }
    }

    /// Adds a notice to the draft. Beyond the bound the oldest are sent without being durable: nothing waits for them.
    fn add(&mut self, notice: Notice) {
        let untold = &mut self.status.draft.untold;
        if untold.iter().any(|known| known.id == notice.id) {
            return;
        }
        untold.push(notice);
        while untold.len() > UNTOLD_MAX {
            self.telling.add(untold.remove(0));
        }
    }
}
