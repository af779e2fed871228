//! The actor of the account: carries purges out and knows the distributions. Decides nothing; see `domain::purge` and
//! `domain::catalog`.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::prelude::SendError;
use actix::{Actor, AsyncContext, Context, Handler, MessageResult, Recipient, ResponseFuture};
use tokio::sync::oneshot;

use crate::actors::lifecycle::{Collar, Obituary};
use crate::actors::message::{MatchPlan, Matched, Observe, PlaceOrder, PurgeReported};
use crate::actors::observation::{Observation, PurgeSeen};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{MAILBOX_MAX, Surroundings};
use crate::domain::catalog::{self, Catalog};
use crate::domain::distribution::DistributionId;
use crate::domain::id::{InvalidationId, Reference, Subject};
use crate::domain::purge::{self, CdnErrorClass, Order, Purger};
use crate::domain::refusal::Cause;
use crate::ports::{CdnError, InvalidationStatus};

/// When a report is repeated to a rollout whose mailbox was full.
const REPORT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The actor. See the module's text.
pub struct Invalidator {
    surroundings: Surroundings,
    collar: Collar,
    /// Sent to root when this ends.
    _obituary: Obituary,
    purges: Shell<Purger>,
    catalog: Shell<Catalog>,
    /// Who asked which question.
    questions: BTreeMap<catalog::Token, oneshot::Sender<Result<catalog::Found, String>>>,
    asked: catalog::Token,
    /// Where the one that orders is told: one recipient for each, kept while it lives.
    reports: BTreeMap<Subject, Recipient<PurgeReported>>,
    /// The last thing CloudFront said no to, until it says yes again.
    trouble: Option<String>,
}

impl Invalidator {
    /// An actor with nothing on its way.
    pub fn new(surroundings: Surroundings, collar: Collar, obituary: Obituary) -> Self {
        Self {
            purges: Shell::new(Purger::new(surroundings.settings.pace.clone()), &surroundings),
            catalog: Shell::new(Catalog::new(surroundings.settings.freshness.clone()), &surroundings),
            collar,
            _obituary: obituary,
            questions: BTreeMap::new(),
            asked: 0,
            reports: BTreeMap::new(),
            trouble: None,
            surroundings,
        }
    }

    fn create(&mut self, order: Order, ctx: &mut Context<Self>) {
        let cdn = self.surroundings.ports.cdn.clone();
        let clock = self.surroundings.ports.clock.clone();
        let metrics = self.surroundings.metrics.clone();
        let (reference, place) = (order.reference.clone(), order.distribution.to_string());
        let call = async move {
            let from = clock.now();
            metrics.sent_paths(order.subject.namespace(), order.paths.len());
            let created = cdn.create(&order.distribution, &order.reference, &order.paths).await;
            metrics.took("create_invalidation", clock.now().since(from));
            created
        };
        self.ask_cdn(ctx, call, (Cause::CreateInvalidation, place), move |created| match created {
            Ok(invalidation) => purge::Event::Created(reference, invalidation.id),
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
        let cdn = self.surroundings.ports.cdn.clone();
        let place = distribution.to_string();
        let call = async move { cdn.status(&distribution, &id).await };
        self.ask_cdn(ctx, call, (Cause::GetInvalidation, place), move |status| match status {
            Ok(InvalidationStatus::Completed) => purge::Event::Completed(reference),
            Ok(InvalidationStatus::InProgress) => purge::Event::StillInProgress(reference),
            Err(error) => purge::Event::PollFailed(reference, error.class, error.message),
        });
    }

    fn search(&mut self, reference: Reference, distribution: DistributionId, ctx: &mut Context<Self>) {
        let cdn = self.surroundings.ports.cdn.clone();
        let (wanted, place) = (reference.clone(), distribution.to_string());
        let call = async move { cdn.find(&distribution, &wanted).await };
        self.ask_cdn(ctx, call, (Cause::ListInvalidations, place), move |found| match found {
            Ok(found) => purge::Event::Searched(reference, found),
            Err(error) => purge::Event::SearchFailed(reference, error.message),
        });
    }

    /// Asks CloudFront, notes what it says no to, and feeds the answer to the machine of purges. Needs `right` at `place`.
    fn ask_cdn<T: 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        call: impl Future<Output = Result<T, CdnError>> + 'static,
        (right, place): (Cause, String),
        event: impl FnOnce(Result<T, CdnError>) -> purge::Event + 'static,
    ) {
        let call = actix::fut::wrap_future::<_, Self>(call);
        ctx.spawn(actix::ActorFutureExt::map(call, move |answer, actor, ctx| {
            actor.note(right, &place, answer.as_ref().err());
            Drives::<Purger>::feed(actor, event(answer), ctx);
        }));
    }

    fn note(&mut self, right: Cause, place: &str, error: Option<&CdnError>) {
        let operation = right.name();
        self.trouble = error.map(ToString::to_string);
        let said = self.surroundings.complaints.heard_of_cdn(self.purges.now(), right, place, error);
        if let Some(error) = error {
            self.surroundings.metrics.failure(operation);
            match error.class {
                CdnErrorClass::Throttled | CdnErrorClass::TooManyInProgress => {
                    tracing::info!(%error, operation, "CloudFront asked for patience; trying again");
                }
                _ if said => {}
                _ => tracing::warn!(%error, operation, "CloudFront did not do what it was asked"),
            }
        }
    }

    fn report(&mut self, subject: Subject, reported: PurgeReported, ctx: &mut Context<Self>) {
        let Some(recipient) = self.reports.get(&subject) else { return };
        match recipient.try_send(reported) {
            Ok(()) => {}
            // Nobody else would tell it again: the end of a purge is forgotten here once it was reported.
            Err(SendError::Full(reported)) => {
                self.surroundings.metrics.overflow("rollout");
                ctx.run_later(REPORT_AGAIN_AFTER, move |actor, ctx| actor.report(subject, reported, ctx));
            }
            // A rollout that was rebuilt orders again and is told again.
            Err(SendError::Closed(_)) => drop(self.reports.remove(&subject)),
        }
    }
}

impl Actor for Invalidator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.collar.clone().bind(self, ctx);
        Drives::<Catalog>::feed(self, catalog::Event::Begun, ctx);
    }
}

impl Drives<Purger> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Purger>> {
        Some(&mut self.purges)
    }

    fn perform(&mut self, effect: purge::Effect, ctx: &mut Context<Self>) {
        self.surroundings.metrics.effect("purge", effect.name());
        match effect {
            purge::Effect::Create(order) => self.create(order, ctx),
            purge::Effect::Poll(reference, distribution, id) => self.poll(reference, distribution, id, ctx),
            purge::Effect::Search(reference, distribution) => self.search(reference, distribution, ctx),
            purge::Effect::Report(subject, reference, progress) => {
                self.report(subject, PurgeReported(reference, progress), ctx);
            }
        }
    }
}

impl Drives<Catalog> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Catalog>> {
        Some(&mut self.catalog)
    }

    fn perform(&mut self, effect: catalog::Effect, ctx: &mut Context<Self>) {
        self.surroundings.metrics.effect("catalog", effect.name());
        match effect {
            catalog::Effect::List => {
                let cdn = self.surroundings.ports.cdn.clone();
                let surroundings = self.surroundings.clone();
                let clock = surroundings.ports.clock.clone();
                Drives::<Catalog>::ask(self, ctx, async move { cdn.distributions().await }, move |listed| {
                    let (complaints, right) = (&surroundings.complaints, Cause::ListDistributions);
                    let said = complaints.heard_of_cdn(clock.now(), right, "", listed.as_ref().err());
                    match listed {
                        Ok(listing) => catalog::Event::Listed(listing),
                        Err(error) => {
                            surroundings.metrics.failure(right.name());
                            if !said {
                                tracing::warn!(%error, "could not list the distributions");
                            }
                            catalog::Event::ListFailed(error.message)
                        }
                    }
                });
            }
            catalog::Effect::ReadTags(id) => {
                let (cdn, surroundings) = (self.surroundings.ports.cdn.clone(), self.surroundings.clone());
                let call = async move {
                    let read = cdn.has_cache_tags(&id).await;
                    (id, read)
                };
                Drives::<Catalog>::ask(self, ctx, call, move |(id, read)| {
                    let (now, right, error) = (surroundings.ports.clock.now(), Cause::ReadTags, read.as_ref().err());
                    surroundings.complaints.heard_of_cdn(now, right, id.as_str(), error);
                    if error.is_some() {
                        surroundings.metrics.failure(right.name());
                    }
                    catalog::Event::TagsRead(id, read.map_err(|error| (error.class, error.message)))
                });
            }
            catalog::Effect::Answer(token, answer) => {
                if let Some(question) = self.questions.remove(&token) {
                    // The rollout that asked may have ended meanwhile.
                    let _ = question.send(answer);
                }
            }
        }
    }
}

impl Handler<MatchPlan> for Invalidator {
    type Result = ResponseFuture<Matched>;

    fn handle(&mut self, MatchPlan(plan): MatchPlan, ctx: &mut Self::Context) -> Self::Result {
        let (question, answer) = oneshot::channel();
        self.asked = self.asked.wrapping_add(1);
        self.questions.insert(self.asked, question);
        Drives::<Catalog>::feed(self, catalog::Event::Asked(self.asked, *plan), ctx);
        Box::pin(async move { answer.await.ok() })
    }
}

impl Handler<PlaceOrder> for Invalidator {
    type Result = ();

    fn handle(&mut self, PlaceOrder { order, report_to }: PlaceOrder, ctx: &mut Self::Context) {
        self.reports.retain(|_, recipient| recipient.connected());
        self.reports.insert(order.subject.clone(), report_to);
        Drives::<Purger>::feed(self, purge::Event::Ordered(*order), ctx);
    }
}

impl Handler<Observe> for Invalidator {
    type Result = MessageResult<Observe>;

    fn handle(&mut self, _: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let now = self.purges.now();
        let seen = self.purges.machine().describe(now).into_iter();
        let purges =
            seen.map(|(reference, distribution, state)| PurgeSeen { reference, distribution, state }).collect();
        let catalog = self.catalog.machine();
        let denied = |why| format!("cache tags count as switched off, and paths are purged instead: {why}");
        let listing = catalog.failure().map(str::to_owned).into_iter().chain(catalog.tags_denied().map(denied));
        MessageResult(Observation {
            purges,
            distributions: self.catalog.machine().known(now).map(|(count, age)| (count, age.as_secs())),
            troubles: self.trouble.iter().cloned().chain(listing).collect(),
            ..Observation::default()
        })
    }
}
