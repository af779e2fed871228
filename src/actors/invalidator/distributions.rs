//! Reads the account's distributions, and answers which of them serve a plan.

use std::collections::BTreeSet;

use actix::Context;

use super::Invalidator;
use crate::actors::shell::{Drives, Shell};
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::refusal::Cause;
use proof::asked::Question;
use purge::purges::catalog::{self, Catalog};

impl Drives<Catalog> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Catalog>> {
        Some(&mut self.catalog)
    }

    fn perform(&mut self, effect: catalog::Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("catalog", effect.name());
        match effect {
            catalog::Effect::List => self.list(ctx),
            catalog::Effect::ListDistributionTenants(of) => self.list_distribution_tenants(of, ctx),
            catalog::Effect::FindDistributionTenant(domain) => self.find_distribution_tenant(domain, ctx),
            catalog::Effect::ReadTags(id) => self.read_tags(id, ctx),
            catalog::Effect::Sample(id, question) => self.sample(id, question, ctx),
            catalog::Effect::Answer(token, answer) => {
                if let Some(question) = self.questions.remove(&token) {
                    // The rollout that asked may have ended meanwhile.
                    let _ = question.send(answer);
                }
            }
        }
    }
}

impl Invalidator {
    fn list(&mut self, ctx: &mut Context<Self>) {
        let env = self.env.clone();
        let cdn = env.ports.cdn.clone();
        Drives::<Catalog>::ask(self, ctx, async move { cdn.distributions().await }, move |listed| {
            env.metrics.standing.unlisted(listed.is_err());
            let said = env.heard_of_cdn(Cause::ListDistributions, "", listed.as_ref().err());
            match listed {
                Ok(listing) => catalog::Event::Listed(listing),
                Err(error) => {
                    if !said {
                        tracing::warn!(%error, "could not list the distributions");
                    }
                    catalog::Event::ListFailed(error.message)
                }
            }
        });
    }

    fn list_distribution_tenants(&mut self, of: BTreeSet<DistributionId>, ctx: &mut Context<Self>) {
        let env = self.env.clone();
        let cdn = env.ports.cdn.clone();
        Drives::<Catalog>::ask(self, ctx, async move { cdn.distribution_tenants(&of).await }, move |listed| {
            let said = env.heard_of_cdn(Cause::ListDistributionTenants, "", listed.as_ref().err());
            if let Some(error) = listed.as_ref().err().filter(|_| !said) {
                tracing::warn!(%error, "could not list the distribution tenants");
            }
            catalog::Event::DistributionTenantsListed(listed.map_err(|error| (error.class, error.message)))
        });
    }

    fn find_distribution_tenant(&mut self, domain: Host, ctx: &mut Context<Self>) {
        let env = self.env.clone();
        let (cdn, asked) = (env.ports.cdn.clone(), domain.clone());
        Drives::<Catalog>::ask(self, ctx, async move { cdn.distribution_tenant(&asked).await }, move |found| {
            env.heard_of_cdn(Cause::FindDistributionTenant, "", found.as_ref().err());
            catalog::Event::DistributionTenantFound(domain, found.map_err(|error| (error.class, error.message)))
        });
    }

    fn read_tags(&mut self, id: DistributionId, ctx: &mut Context<Self>) {
        let (env, asked) = (self.env.clone(), id.clone());
        let cdn = env.ports.cdn.clone();
        Drives::<Catalog>::ask(self, ctx, async move { cdn.cache_tag_header(&asked).await }, move |read| {
            env.heard_of_cdn(Cause::ReadTags, id.as_str(), read.as_ref().err());
            catalog::Event::TagsRead(id, read.map_err(|error| (error.class, error.message)))
        });
    }

    fn sample(&mut self, id: DistributionId, question: Box<Question>, ctx: &mut Context<Self>) {
        let edge = self.env.ports.edge.clone();
        let metrics = self.env.metrics.clone();
        let call = async move {
            let answers = edge.ask(None, &question).await;
            (question, answers)
        };
        Drives::<Catalog>::ask(self, ctx, call, move |(question, answers)| {
            metrics.edge.asked(answers.edge.failure.is_some());
            catalog::Event::Sampled(id, question, Box::new(answers))
        });
    }
}
