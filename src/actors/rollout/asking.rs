//! What a rollout reads of the cluster, and what it asks of caches in it. A failure is counted, logged, and handed to the machine in words; the machine decides
//! when to read again.

use std::collections::BTreeSet;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{RolloutActor, hosts};
use crate::actors::Env;
use crate::actors::shell::Drives;
use kernel::id::Vector;
use kernel::names::host::Host;
use purge::caches::asking::Question;
use purge::ports::{ClusterView, PortError};
use purge::rollouts::rollout::{Before, Event};
use purge::site::Age;
use purge::workloads::beside::{another_version, unseen};
use purge::workloads::serving::{OldPods, old_pods};
use purge::workloads::workload::Workload;

/// Adds what serves another version beside a workload none of whose old pods serves any more. Where that cannot be seen, the words say so.
async fn with_beside(
    cluster: &dyn ClusterView,
    found: Result<OldPods, PortError>,
    workload: &Workload,
    digests: bool,
) -> Result<OldPods, PortError> {
    let found = found?;
    if !found.is_none() {
        return Ok(found);
    }
    let beside = match cluster.beside(workload).await {
        Ok(beside) => another_version(&beside, workload, digests),
        Err(error) => Some(unseen(&error)),
    };
    Ok(found.with_beside(beside))
}

impl RolloutActor {
    fn read<T: 'static>(
        &mut self,
        operation: &'static str,
        reading: impl Future<Output = Result<T, PortError>> + 'static,
        event: impl FnOnce(Result<T, PortError>) -> Event + 'static,
        ctx: &mut Context<Self>,
    ) {
        let failed = self.failed(operation);
        self.ask(ctx, reading, move |answer| event(answer.inspect_err(failed)));
    }

    /// Counts and logs a failure.
    fn failed(&self, operation: &'static str) -> impl FnOnce(&PortError) + 'static {
        let (metrics, workload) = (self.env.metrics.clone(), self.start.workload.display_name());
        move |error| {
            metrics.failure(operation);
            tracing::warn!(workload, operation, %error, "could not read the cluster; trying again");
        }
    }

    pub(super) fn look(&mut self, recheck: Option<Vector>, ctx: &mut Context<Self>) {
        let (cluster, workload) = (self.env.ports.cluster.clone(), self.start.workload.clone());
        let seen = async move { cluster.workload(&workload).await };
        let event = move |seen: Result<Option<Workload>, PortError>| match (seen, recheck) {
            (Ok(seen), None) => Event::Looked(seen.map(Box::new)),
            (Ok(seen), Some(vector)) => Event::Rechecked(vector, seen.map(Box::new)),
            (Err(why), None) => Event::LookFailed(why.to_string()),
            (Err(why), Some(_)) => Event::RecheckFailed(why.to_string()),
        };
        self.read("read_workload", seen, event, ctx);
    }

    pub(super) fn find_old_pods(&mut self, workload: Box<Workload>, ctx: &mut Context<Self>) {
        let (cluster, failed) = (self.env.ports.cluster.clone(), self.failed("read_serving"));
        self.read_ahead(&workload, ctx);
        let digests = self.env.settings.policy.version.same_digest_is_same;
        let seen = async move {
            let found = cluster.serving(&workload).await.map(|seen| old_pods(&seen, &workload));
            (with_beside(&*cluster, found, &workload, digests).await, workload)
        };
        ctx.spawn(seen.into_actor(self).map(|(found, workload), actor, ctx| {
            let found = found.inspect_err(failed);
            if found.as_ref().is_ok_and(OldPods::is_none) {
                actor.read_ahead(&workload, ctx);
            }
            actor.feed(found.map_or_else(|why| Event::OldPodsUnseen(why.to_string()), Event::OldPodsFound), ctx);
        }));
    }

    /// What leads to the workload is looked up once no old pod serves, in facts that may be a few seconds old. Reading them takes
    /// several calls, which fit into the look at the old pods, or into `rollout.settle`. All rollouts of a namespace share them, and
    /// whether that went well is seen then.
    fn read_ahead(&self, workload: &Workload, ctx: &mut Context<Self>) {
        if !self.env.settings.policy.tenants.need_no_search(workload) {
            let (cluster, namespace) = (self.env.ports.cluster.clone(), workload.id.namespace.clone());
            let facts = async move { drop(cluster.site_facts(&namespace, Age::Recent).await) };
            ctx.spawn(facts.into_actor(self));
        }
    }

    pub(super) fn find_site(
        &mut self,
        workload: Box<Workload>,
        age: Option<Age>,
        had: BTreeSet<Host>,
        ctx: &mut Context<Self>,
    ) {
        let (cluster, policy) = (self.env.ports.cluster.clone(), &self.env.settings.policy);
        let routes = policy.extent_of(&workload).wants_routes();
        let wanted = hosts::Wanted { tenants: policy.tenants.clone(), routes };
        let found = async move { hosts::find(&*cluster, workload, age, had, wanted).await };
        let event =
            |found: Result<_, PortError>| found.map_or_else(|why| Event::SiteFailed(why.to_string()), Event::SiteFound);
        self.read("read_site", found, event, ctx);
    }

    pub(super) fn ask_cache(&mut self, of: Before, question: Box<Question>, ctx: &mut Context<Self>) {
        let (Env { ports, metrics, .. }, workload) = (self.env.clone(), self.start.workload.clone());
        let (back, failed) = (question.back(), self.failed("ask_cache"));
        let cache = back.0.clone();
        let asked = async move { ports.caches.ask(&workload, &question).await };
        self.ask(ctx, asked, move |answers| {
            let answers = answers.inspect_err(failed).map_err(|why| why.to_string());
            metrics.edge.caches.asked(&cache, answers.as_ref().ok());
            Event::CacheAnswered(of, back, answers)
        });
    }

    pub(super) fn see_services(&mut self, workload: Workload, ctx: &mut Context<Self>) {
        let Env { ports, metrics, .. } = self.env.clone();
        let seen = async move { ports.cluster.publishes_unready(&workload).await };
        self.ask(ctx, seen, move |seen| match seen {
            Ok(publish_unready) => Event::ServicesSeen { publish_unready },
            Err(error) => {
                metrics.failure("read_services");
                tracing::debug!(%error, "could not read the Services of a workload");
                Event::PodsUnseen
            }
        });
    }
}
