//! Carries purges out, and reports how they go.

use actix::prelude::SendError;
use actix::{AsyncContext, Context};

use super::Invalidator;
use crate::actors::message::PurgeReported;
use crate::actors::shell::{Drives, Shell};
use crate::telemetry::log_created;
use ::purge::ports::{CdnError, Invalidation, InvalidationStatus};
use ::purge::purges::catalog::{self, Catalog};
use ::purge::purges::purge::{self, CdnErrorClass, Order, Progress, Purger};
use kernel::id::{InvalidationId, Reference, Subject};
use kernel::names::distribution::DistributionId;
use kernel::refusal::Cause;

impl Drives<Purger> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Purger>> {
        Some(&mut self.purges)
    }

    fn perform(&mut self, effect: purge::Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("purge", effect.name());
        match effect {
            purge::Effect::Create(order) => self.create(order, ctx),
            purge::Effect::Poll(reference, distribution, id) => self.poll(reference, distribution, id, ctx),
            purge::Effect::Search(reference, distribution) => self.search(reference, distribution, ctx),
            purge::Effect::Report(subject, reference, progress) => self.report(subject, reference, progress, ctx),
        }
    }
}

impl Invalidator {
    fn create(&mut self, order: Order, ctx: &mut Context<Self>) {
        let cdn = self.env.ports.cdn.clone();
        let clock = self.env.ports.clock.clone();
        let metrics = self.env.metrics.clone();
        let (reference, place) = (order.reference.clone(), order.distribution.clone());
        let call = async move {
            let from = clock.now();
            metrics.edge.sent(order.subject.namespace(), &order.distribution, order.paths.len());
            let created = cdn.create(&order.distribution, &order.reference, &order.paths).await;
            metrics.took("create_invalidation", clock.now().since(from));
            if let Ok(Invalidation { id, .. }) = &created {
                log_created(&order, id);
            }
            created
        };
        self.ask_cdn(ctx, call, (Cause::CreateInvalidation, place), move |created| match created {
            Ok(Invalidation { id, created_ms, .. }) => purge::Event::Created(reference, id, created_ms),
            Err(error) => purge::Event::CreateFailed(reference, error.class, error.message),
        });
    }

    fn poll(
        &mut self,
        reference: Reference,
        distribution: DistributionId,
        id: InvalidationId,
        ctx: &mut Context<Self>,
    ) {
        let cdn = self.env.ports.cdn.clone();
        let place = distribution.clone();
        let (clock, metrics) = (self.env.ports.clock.clone(), self.env.metrics.clone());
        let call = async move {
            let status = cdn.status(&distribution, &id).await;
            if matches!(status, Ok(InvalidationStatus::Completed)) {
                metrics.edge.purged(&distribution, clock.wall_ms());
            }
            status
        };
        self.ask_cdn(ctx, call, (Cause::GetInvalidation, place), move |status| match status {
            Ok(InvalidationStatus::Completed) => purge::Event::Completed(reference),
            Ok(InvalidationStatus::InProgress) => purge::Event::StillInProgress(reference),
            Err(error) => purge::Event::PollFailed(reference, error.class, error.message),
        });
    }

    fn search(&mut self, reference: Reference, distribution: DistributionId, ctx: &mut Context<Self>) {
        let cdn = self.env.ports.cdn.clone();
        let (wanted, place) = (reference.clone(), distribution.clone());
        let call = async move { cdn.find(&distribution, &wanted).await };
        self.ask_cdn(ctx, call, (Cause::ListInvalidations, place), move |found| match found {
            Ok(found) => purge::Event::Searched(reference, found),
            Err(error) => purge::Event::SearchFailed(reference, error.message),
        });
    }

    /// Calls CloudFront, notes a refusal, and feeds the answer to the machine of purges; the catalog hears of failures. Needs `right`
    /// at `place`.
    fn ask_cdn<T: 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        call: impl Future<Output = Result<T, CdnError>> + 'static,
        (right, place): (Cause, DistributionId),
        event: impl FnOnce(Result<T, CdnError>) -> purge::Event + 'static,
    ) {
        let call = actix::fut::wrap_future::<_, Self>(call);
        let right = right.on(&place);
        ctx.spawn(actix::ActorFutureExt::map(call, move |answer, actor, ctx| {
            actor.note(right, place.as_str(), answer.as_ref().err());
            if let Err(error) = &answer {
                Drives::<Catalog>::feed(actor, catalog::Event::Refused(place, error.class), ctx);
            }
            Drives::<Purger>::feed(actor, event(answer), ctx);
            actor.show_pace();
        }));
    }

    /// Lets the metrics know how fast it goes.
    pub(super) fn show_pace(&self) {
        self.env.metrics.edge.pace(self.purges.machine().rate(self.purges.now()).thousandths());
    }

    fn note(&mut self, right: Cause, place: &str, error: Option<&CdnError>) {
        let operation = right.name();
        self.trouble = error.map(ToString::to_string);
        let said = self.env.heard_of_cdn(right, place, error);
        if let Some(error) = error {
            match error.class {
                CdnErrorClass::Throttled | CdnErrorClass::TooManyInProgress => {
                    tracing::info!(%error, operation, "CloudFront throttled the request; trying again");
                }
                _ if said => {}
                _ => tracing::warn!(%error, operation, "CloudFront did not do what it was asked"),
            }
        }
    }

    fn report(&mut self, subject: Subject, reference: Reference, progress: Progress, ctx: &mut Context<Self>) {
        if let Progress::Spent(id) = &progress {
            tracing::warn!(
                subject = subject.to_string(),
                invalidation = id.0,
                "CloudFront has an invalidation under the reference of this purge that is older than its vote: the ledger was restored \
                 from a backup, and gave a number out again; the purge is made under another reference"
            );
        }
        let Some(recipient) = self.reports.get(&subject) else { return };
        match recipient.try_send(PurgeReported(reference, progress)) {
            Ok(()) => {}
            Err(SendError::Full(PurgeReported(reference, progress))) => {
                self.env.metrics.overflow("rollout");
                Drives::<Purger>::feed(self, purge::Event::Unheard(subject, reference, progress), ctx);
            }
            // A rebuilt rollout orders again and gets its reports again.
            Err(SendError::Closed(_)) => drop(self.reports.remove(&subject)),
        }
    }
}
