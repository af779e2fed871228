//! Watches what routes requests to the workloads of this cluster, and has those asked to purge that traffic moved to.
//!
//! The records are its parent's: it reads and writes them there, and a crash costs no more than a look at each namespace. Not for any
//! decision; see `purge::traffic`.

mod asking;

use std::collections::BTreeSet;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Recipient, StreamHandler, WrapFuture,
};

use crate::actors::lifecycle::StopListener;
use crate::actors::rollout::hosts;
use crate::actors::shell::{Drives, Shell};
use crate::actors::traffic::{AskToPurge, KeepLeads, MoveTaken, Remembered, Rerouted, RolloutEnded};
use crate::actors::{Env, MAILBOX_MAX};
use kernel::id::WorkloadId;
use kernel::refusal::Refused;
use purge::ports::{PortError, RoutingSight};
use purge::traffic::{Effect, Event, Look, Traffic};

/// The actor. See the module's text.
pub struct TrafficWatcher {
    env: Env,
    stop_listener: StopListener,
    parent: Parent,
    shell: Shell<Traffic>,
    /// Kinds whose watch is interrupted.
    interrupted: BTreeSet<&'static str>,
    /// Workloads that are about to be asked.
    asking: BTreeSet<WorkloadId>,
    /// To be looked at first.
    begin_with: Vec<String>,
}

/// Where it reaches the keeper of the records.
pub struct Parent {
    pub remembered: Recipient<Remembered>,
    pub keep: Recipient<KeepLeads>,
    pub ask: Recipient<AskToPurge>,
}

impl TrafficWatcher {
    /// One that looks at these namespaces at its start: traffic may have moved while nobody watched.
    pub fn new(env: Env, stop_listener: StopListener, parent: Parent, begin_with: Vec<String>) -> Self {
        let shell = Shell::new(Traffic::new(env.settings.policy.version.same_digest_is_same), &env);
        Self { env, stop_listener, parent, shell, interrupted: BTreeSet::new(), asking: BTreeSet::new(), begin_with }
    }

    fn look(&mut self, namespace: String, ctx: &mut Context<Self>) {
        let (cluster, remembered) = (self.env.ports.cluster.clone(), self.parent.remembered.clone());
        let looking = async move {
            let look = hosts::look(&*cluster, namespace.clone()).await?;
            let records = remembered.send(Remembered { namespace }).await;
            Ok((look, records.map_err(|error| PortError::passing("failed to read the records", error))?))
        };
        ctx.spawn(looking.into_actor(self).map(|looked: Result<(Look, _), PortError>, actor, ctx| {
            let event = looked.map(|(look, (records, in_flight))| {
                let known = actor.shell.machine().known(&look, &records, &in_flight);
                Event::Looked(look.into(), known)
            });
            let event = event.unwrap_or_else(|error| {
                actor.env.metrics.failure("read_traffic");
                tracing::warn!(%error, "could not read what leads to workloads; trying again");
                Event::LookFailed
            });
            actor.feed(event, ctx);
        }));
    }

    /// Said once for each kind, until it works again.
    fn interrupted(&mut self, kind: &'static str, error: &PortError) {
        self.env.metrics.failure("watch_routing");
        match error.refused() {
            _ if !self.interrupted.insert(kind) => {
                tracing::debug!(kind, %error, "the watch of what routes is still interrupted");
            }
            Some(Refused::Right | Refused::Caller) => {
                tracing::warn!(kind, %error, "traffic that moves by this kind is not noticed, for want of a right");
            }
            Some(Refused::Request) | None => {
                tracing::warn!(kind, %error, "the watch of what routes was interrupted; starting it again");
            }
        }
    }
}

impl Actor for TrafficWatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        ctx.add_stream(self.env.ports.cluster.watch_routing());
        for namespace in std::mem::take(&mut self.begin_with) {
            self.feed(Event::Changed(namespace), ctx);
        }
    }
}

impl Drives<Traffic> for TrafficWatcher {
    fn shell(&mut self) -> Option<&mut Shell<Traffic>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Look(namespace) => self.look(namespace, ctx),
            Effect::Ask(workload, moved, leads) => self.ask_once_moved(AskToPurge { workload, moved, leads }, ctx),
            Effect::Keep(all) => {
                let keeping = self.parent.keep.send(KeepLeads(all));
                ctx.spawn(keeping.into_actor(self).map(|kept, actor, ctx| {
                    // Without an answer it is asked again.
                    kept.into_iter().for_each(|kept| actor.feed(Event::Kept(kept), ctx));
                }));
            }
        }
    }
}

impl StreamHandler<RoutingSight> for TrafficWatcher {
    fn handle(&mut self, sight: RoutingSight, ctx: &mut Self::Context) {
        match sight {
            RoutingSight::Changed { namespace } => self.feed(Event::Changed(namespace), ctx),
            RoutingSight::Synced { kind } => drop(self.interrupted.remove(kind)),
            RoutingSight::Trouble { kind, error } => self.interrupted(kind, &error),
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Handler<Rerouted> for TrafficWatcher {
    type Result = ();

    fn handle(&mut self, Rerouted(namespaces): Rerouted, ctx: &mut Self::Context) {
        namespaces.into_iter().for_each(|namespace| self.feed(Event::Changed(namespace), ctx));
    }
}

impl Handler<MoveTaken> for TrafficWatcher {
    type Result = ();

    fn handle(&mut self, MoveTaken(workload, token): MoveTaken, ctx: &mut Self::Context) {
        self.feed(Event::Taken(workload, token), ctx);
    }
}

impl Handler<RolloutEnded> for TrafficWatcher {
    type Result = ();

    fn handle(&mut self, RolloutEnded { workload, moved, departed }: RolloutEnded, ctx: &mut Self::Context) {
        let event = match departed {
            Some(was) => Event::Departed(workload, was),
            None => Event::Ended(workload, moved),
        };
        self.feed(event, ctx);
    }
}
