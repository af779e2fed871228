//! Attempts to deliver webhooks, as spans of their rollout's trace. The rollout's own spans come from its machine.

use crate::actors::Env;
use kernel::id::Subject;
use kernel::trace::{Fact, Fault, Span, Stage};
use notices::delivery::{Delivery, Reply};

impl Env {
    /// Notes an attempt that has just ended, if its delivery belongs to a trace.
    pub(crate) fn trace_attempt(&self, (delivery, attempt): (&Delivery, u32), reply: &Reply, began_ms: i64) {
        let Subject::Workload(workload) = &delivery.subject else { return };
        if !self.metrics.traces.is_on() || delivery.trace.is_empty() {
            return;
        }
        // After a request to send it again, attempts are counted from 1 anew.
        let detail = format!("{}/{}/{attempt}", delivery.id, delivery.asked.as_deref().unwrap_or_default());
        let times = (began_ms, self.ports.clock.wall_ms());
        let span =
            Span::new(&delivery.trace, workload, (Stage::Webhook, &self.settings.member, detail.as_str()), times);
        let described = |span: Span| {
            let status = status(reply).map(|status| ("http.response.status_code", Fact::Number(status.into())));
            // The first attempt is no resend, and has no such attribute.
            let again = attempt.checked_sub(1).filter(|again| *again > 0);
            let again = again.map(|again| ("http.request.resend_count", Fact::Number(again.into())));
            let named = span
                .with("allclear.webhook", Fact::Text(delivery.hook.clone()))
                .with("allclear.notice", Fact::Text(delivery.kind.name().to_owned()));
            let facts = status.into_iter().chain(again);
            facts.fold(named, |span, (name, fact)| span.with(name, fact)).failed(fault(reply))
        };
        self.metrics.traces.note(span.map(described));
    }
}

const fn status(reply: &Reply) -> Option<u16> {
    match reply {
        Reply::Delivered { status } | Reply::Refused { status, .. } => Some(*status),
        Reply::Gone => Some(410),
        Reply::Failed { .. } | Reply::Blocked { .. } | Reply::UnknownHook => None,
    }
}

fn fault(reply: &Reply) -> Option<Fault> {
    let kind = match reply {
        Reply::Delivered { .. } => return None,
        Reply::Refused { .. } => "refused",
        Reply::Gone => "gone",
        Reply::Failed { .. } => "no-answer",
        Reply::Blocked { .. } => "blocked",
        Reply::UnknownHook => "unknown-hook",
    };
    Some(Fault { kind, message: reply.to_string() })
}
