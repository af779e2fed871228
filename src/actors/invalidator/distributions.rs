//! Reads the accounts' distributions, and answers which of them serve a plan.

use std::collections::BTreeSet;

use actix::{AsyncContext, Context};

use super::Invalidator;
use crate::actors::shell::{Drives, Shell};
use kernel::names::account::AccountName;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::refusal::Cause;
use proof::asked::Question;
use purge::purges::accounts::{Catalogs, listing};
use purge::purges::catalog;

impl Drives<Catalogs> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Catalogs>> {
        Some(&mut self.catalog)
    }

    fn perform(&mut self, effect: listing::Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("catalog", effect.name());
        match effect {
            listing::Effect::Answer(token, answer) => {
                if let Some(question) = self.questions.remove(&token) {
                    // The rollout that asked may have ended meanwhile.
                    let _ = question.send(answer);
                }
            }
            listing::Effect::Of(account, effect) => match effect {
                catalog::Effect::List => self.list(account, ctx),
                catalog::Effect::ListDistributionTenants(of) => self.list_distribution_tenants(account, of, ctx),
                catalog::Effect::FindDistributionTenant(domain) => self.find_distribution_tenant(account, domain, ctx),
                catalog::Effect::ReadTags(id) => self.read_tags(account, id, ctx),
                catalog::Effect::Sample(id, question) => self.sample(account, id, question, ctx),
                // Its own machine has put it with the others.
                catalog::Effect::Answer(..) => {}
            },
        }
    }
}

impl Invalidator {
    fn list(&mut self, account: AccountName, ctx: &mut Context<Self>) {
        let cdn = self.cdn(&account);
        let call = async move { cdn.distributions().await };
        self.ask_account(ctx, call, move |actor, listed| {
            let said = actor.heard_of_cdn(&account, Cause::ListDistributions, "", listed.as_ref().err());
            if let (Err(error), false) = (&listed, said) {
                tracing::warn!(%error, "could not list the distributions");
            }
            (
                account,
                match listed {
                    Ok(listing) => catalog::Event::Listed(listing),
                    Err(error) => catalog::Event::ListFailed(error.message),
                },
            )
        });
    }

    fn list_distribution_tenants(
        &mut self,
        account: AccountName,
        of: BTreeSet<DistributionId>,
        ctx: &mut Context<Self>,
    ) {
        let cdn = self.cdn(&account);
        let call = async move { cdn.distribution_tenants(&of).await };
        self.ask_account(ctx, call, move |actor, listed| {
            let said = actor.heard_of_cdn(&account, Cause::ListDistributionTenants, "", listed.as_ref().err());
            if let (Err(error), false) = (&listed, said) {
                tracing::warn!(%error, "could not list the distribution tenants");
            }
            let listed = listed.map_err(|error| (error.class, error.message));
            (account, catalog::Event::DistributionTenantsListed(listed))
        });
    }

    fn find_distribution_tenant(&mut self, account: AccountName, domain: Host, ctx: &mut Context<Self>) {
        let (cdn, asked) = (self.cdn(&account), domain.clone());
        let call = async move { cdn.distribution_tenant(&asked).await };
        self.ask_account(ctx, call, move |actor, found| {
            actor.heard_of_cdn(&account, Cause::FindDistributionTenant, "", found.as_ref().err());
            let found = found.map_err(|error| (error.class, error.message));
            (account, catalog::Event::DistributionTenantFound(domain, found))
        });
    }

    fn read_tags(&mut self, account: AccountName, id: DistributionId, ctx: &mut Context<Self>) {
        let (cdn, asked) = (self.cdn(&account), id.clone());
        let call = async move { cdn.cache_tag_header(&asked).await };
        self.ask_account(ctx, call, move |actor, read| {
            actor.heard_of_cdn(&account, Cause::ReadTags, id.as_str(), read.as_ref().err());
            (account, catalog::Event::TagsRead(id, read.map_err(|error| (error.class, error.message))))
        });
    }

    fn sample(&mut self, account: AccountName, id: DistributionId, question: Box<Question>, ctx: &mut Context<Self>) {
        let edge = self.env.ports.edge.clone();
        let call = async move {
            let answers = edge.ask(None, &question).await;
            (question, answers)
        };
        self.ask_account(ctx, call, move |actor, (question, answers)| {
            actor.env.metrics.edge.asked(answers.edge.failure.is_some());
            (account, catalog::Event::Sampled(id, question, Box::new(answers)))
        });
    }

    /// Makes a call for the catalog of an account, and feeds it what follows from the answer. Orders that waited for a listing go on.
    fn ask_account<T: 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        call: impl Future<Output = T> + 'static,
        event: impl FnOnce(&mut Self, T) -> (AccountName, catalog::Event) + 'static,
    ) {
        let call = actix::fut::wrap_future::<_, Self>(call);
        ctx.spawn(actix::ActorFutureExt::map(call, move |answer, actor, ctx| {
            let (account, event) = event(actor, answer);
            Drives::<Catalogs>::feed(actor, listing::Event::Of(account, event), ctx);
            actor.env.metrics.standing.unlisted(actor.catalog.machine().is_failing());
            actor.place(ctx);
        }));
    }
}
