//! What the actor of webhooks shows of itself: every receiver, and what is on its way.

use actix::{Handler, MessageResult};

use super::Webhook;
use crate::actors::message::Observe;
use crate::actors::observation::{DeliverySeen, LastSeen, Observation, ReceiverSeen};
use kernel::machine::Timestamp;
use notices::delivery::{Delivery, Outcome, Report, State};
use purge::ports::Receiver;

impl Webhook {
    /// Remembers how an attempt ended, for those who look.
    pub(super) fn note_last(&mut self, report: &Report) {
        let how = match &report.outcome {
            Outcome::Delivered { status } => format!("answered {status}"),
            Outcome::Retrying { reason, .. } => reason.clone(),
            Outcome::Dead { reason } => format!("given up: {reason}"),
            // The same end, said of the hook; or no attempt.
            Outcome::HookDisabled { .. } | Outcome::Dropped { .. } | Outcome::Postponed { .. } | Outcome::Resent => {
                return;
            }
        };
        let words = format!("{} of {}: {how}", report.kind.name(), report.subject.display_name());
        let at_ms = self.env.ports.clock.wall_ms();
        self.last.insert(report.hook.clone(), LastSeen { at_ms, words });
    }

    fn receivers(&self) -> Vec<ReceiverSeen> {
        let seen = |Receiver { name, events, workloads }: Receiver| ReceiverSeen {
            last: self.last.get(&name).cloned(),
            name,
            events: events.into_iter().map(|kind| kind.name().to_owned()).collect(),
            workloads,
        };
        self.env.ports.notifier.receivers().into_iter().map(seen).collect()
    }
}

impl Handler<Observe> for Webhook {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let now = self.outbox.now();
        let deliveries = self.outbox.machine().deliveries().map(|(delivery, due)| seen(now, delivery, due)).collect();
        let disabled = self.outbox.machine().disabled();
        let troubles = disabled.map(|(hook, why)| format!("webhook {hook} is disabled: {why}")).collect();
        MessageResult(Observation { deliveries, receivers: self.receivers(), troubles, ..Observation::default() })
    }
}

fn seen(now: Timestamp, delivery: &Delivery, due: Option<Timestamp>) -> DeliverySeen {
    let with_trouble = |state: String| match delivery.trouble.as_str() {
        "" => state,
        trouble => format!("{trouble}; {state}"),
    };
    let state = match (&delivery.state, due) {
        (State::Dead { reason }, _) => format!("given up: {reason}"),
        (State::Pending, None) => with_trouble("being sent".to_owned()),
        (State::Pending, Some(due)) => with_trouble(format!("sent in {} s", due.since(now).as_secs())),
    };
    DeliverySeen::new(delivery, state)
}
