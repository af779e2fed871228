//! Carries purges out, and reports how they go.

use actix::prelude::SendError;
use actix::{AsyncContext, Context};

use super::Invalidator;
use crate::actors::message::PurgeReported;
use crate::actors::shell::{Drives, Shell};
use crate::telemetry::log_created;
use ::purge::ports::{CdnError, Invalidation, InvalidationStatus};
use ::purge::purges::accounts::{Catalogs, Purgers, listing, purging};
use ::purge::purges::catalog;
use ::purge::purges::purge::{self, CdnErrorClass, Found, Order, Progress};
use kernel::id::{InvalidationId, Reference, Subject};
use kernel::names::account::AccountName;
use kernel::names::distribution::DistributionId;
use kernel::refusal::Cause;

impl Drives<Purgers> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Purgers>> {
        Some(&mut self.purges)
    }

    fn perform(&mut self, (account, effect): purging::Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("purge", effect.name());
        match effect {
            purge::Effect::Create(order) => self.create(account, order, ctx),
            purge::Effect::Poll(reference, distribution, id) => {
                self.poll((account, distribution), reference, id, ctx);
            }
            purge::Effect::Search(reference, distribution) => self.search((account, distribution), reference, ctx),
            purge::Effect::Report(subject, reference, progress) => {
                self.report(account, (subject, reference, progress), ctx);
            }
        }
    }
}

/// A distribution and its account.
type Place = (AccountName, DistributionId);

impl Invalidator {
    fn create(&mut self, account: AccountName, order: Order, ctx: &mut Context<Self>) {
        let cdn = self.cdn(&account);
        let clock = self.env.ports.clock.clone();
        let metrics = self.env.metrics.clone();
        let (reference, place) = (order.reference.clone(), (account, order.distribution.clone()));
        let paths = order.paths.len();
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
        self.ask_cdn(
            ctx,
            call,
            (Cause::CreateInvalidation, place),
            move |actor, account, created, ctx| match created {
                Ok(Invalidation { id, created_ms, .. }) => {
                    actor.accepted(account, (&id, paths, created_ms), ctx);
                    purge::Event::Created(reference, id, created_ms)
                }
                Err(error) => purge::Event::CreateFailed(reference, error.class, error.message),
            },
        );
    }

    fn poll(&mut self, place: Place, reference: Reference, id: InvalidationId, ctx: &mut Context<Self>) {
        let (cdn, distribution) = (self.cdn(&place.0), place.1.clone());
        let (clock, metrics) = (self.env.ports.clock.clone(), self.env.metrics.clone());
        let call = async move {
            let status = cdn.status(&distribution, &id).await;
            if matches!(status, Ok(InvalidationStatus::Completed)) {
                metrics.edge.purged(&distribution, clock.wall_ms());
            }
            status
        };
        self.ask_cdn(ctx, call, (Cause::GetInvalidation, place), move |_, _, status, _| match status {
            Ok(InvalidationStatus::Completed) => purge::Event::Completed(reference),
            Ok(InvalidationStatus::InProgress) => purge::Event::StillInProgress(reference),
            Err(error) => purge::Event::PollFailed(reference, error.class, error.message),
        });
    }

    fn search(&mut self, place: Place, reference: Reference, ctx: &mut Context<Self>) {
        let cdn = self.cdn(&place.0);
        let (wanted, distribution) = (reference.clone(), place.1.clone());
        let call = async move { cdn.find(&distribution, &wanted).await };
        self.ask_cdn(ctx, call, (Cause::ListInvalidations, place), move |actor, account, found, ctx| match found {
            Ok(found) => {
                if let Some(Found { invalidation, sent, created_ms }) = &found {
                    actor.accepted(account, (invalidation, sent.len(), *created_ms), ctx);
                }
                purge::Event::Searched(reference, found)
            }
            Err(error) => purge::Event::SearchFailed(reference, error.message),
        });
    }

    /// Calls CloudFront, notes a refusal, and feeds the answer to the machine of purges; the catalog hears of failures. Needs `right`
    /// at `place`.
    fn ask_cdn<T: 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        call: impl Future<Output = Result<T, CdnError>> + 'static,
        (right, (account, place)): (Cause, Place),
        event: impl FnOnce(&mut Self, &AccountName, Result<T, CdnError>, &mut Context<Self>) -> purge::Event + 'static,
    ) {
        let call = actix::fut::wrap_future::<_, Self>(call);
        let right = right.on(&place);
        ctx.spawn(actix::ActorFutureExt::map(call, move |answer, actor, ctx| {
            actor.note(right, (&account, &place), answer.as_ref().err());
            if let Err(error) = &answer {
                let refused = catalog::Event::Refused(place, error.class);
                Drives::<Catalogs>::feed(actor, listing::Event::Of(account.clone(), refused), ctx);
            }
            let event = event(actor, &account, answer, ctx);
            Drives::<Purgers>::feed(actor, purging::Event::Of(account, event), ctx);
            actor.show_pace();
        }));
    }

    /// Lets the metrics know how fast it goes.
    pub(super) fn show_pace(&self) {
        self.env.metrics.edge.pace(self.purges.machine().rate(self.purges.now()).thousandths());
    }

    fn note(&mut self, right: Cause, (account, place): (&AccountName, &DistributionId), error: Option<&CdnError>) {
        let operation = right.name();
        match error {
            Some(error) => drop(self.trouble.insert(account.clone(), error.to_string())),
            None => drop(self.trouble.remove(account)),
        }
        let said = self.heard_of_cdn(account, right, place.as_str(), error);
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

    fn report(
        &mut self,
        account: AccountName,
        (subject, reference, progress): (Subject, Reference, Progress),
        ctx: &mut Context<Self>,
    ) {
        if let Progress::Covered { .. } = &progress {
            self.saved(&account, &reference, ctx);
        }
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
                let unheard = purge::Event::Unheard(subject, reference, progress);
                Drives::<Purgers>::feed(self, purging::Event::Of(account, unheard), ctx);
            }
            // A rebuilt rollout orders again and gets its reports again.
            Err(SendError::Closed(_)) => drop(self.reports.remove(&subject)),
        }
    }
}
