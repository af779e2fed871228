//! The reader of one cluster: performs what `objects::apps::leaf` decides.

mod mail;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, SpawnHandle};
use futures_util::StreamExt;

use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::End;
use crate::actors::promoting::message::{Looked, Owner, Reported};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX, send_even_if_full};
use crate::telemetry::Share;
use kernel::id::PipelineId;
use objects::apps::app::{ClusterKey, TargetKey};
use objects::apps::leaf::{Collection, Effect, Event, Leaf as Machine, News, Number, Sights};
use objects::ports::pipeline::{Leaf, Link};
use purge::ports::{Flow, PortError};

/// How often reports that a full mailbox refused are sent again.
const AGAIN_EVERY: Duration = Duration::from_secs(1);

/// What a watch said.
struct Told(Number, News);

/// The actor. See the module's text.
pub struct LeafActor {
    env: Env,
    cluster: ClusterKey,
    /// The way to the cluster, until it is asked for.
    unused_flow: Option<Flow<Link>>,
    stop_listener: StopListener,
    obituary: Obituary,
    shell: Shell<Machine>,
    leaf: Option<Arc<dyn Leaf>>,
    watches: BTreeMap<Number, SpawnHandle>,
    owners: BTreeMap<PipelineId, Owner>,
    /// The newest reports that full mailboxes refused.
    unsent: BTreeMap<PipelineId, Sights>,
    /// What is wrong, as it was logged last.
    said: Option<String>,
    counted: Share,
}

impl LeafActor {
    /// A reader of which nothing is wanted yet. `flow` is the way to the cluster.
    pub fn new(
        env: Env,
        cluster: ClusterKey,
        flow: Flow<Link>,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        Self {
            shell: Shell::new(Machine::new(), &env),
            counted: env.metrics.promotions.leaves(),
            env,
            cluster,
            unused_flow: Some(flow),
            stop_listener,
            obituary,
            leaf: None,
            watches: BTreeMap::new(),
            owners: BTreeMap::new(),
            unsent: BTreeMap::new(),
            said: None,
        }
    }

    fn watch(&mut self, number: Number, of: &Collection, ctx: &mut Context<Self>) {
        let Some(leaf) = &self.leaf else { return };
        let told = leaf.watch(of).map(move |news| Told(number, news));
        self.watches.insert(number, ctx.add_stream(told));
    }

    fn read(&mut self, number: Number, target: TargetKey, ctx: &mut Context<Self>) {
        let Some(leaf) = self.leaf.clone() else { return };
        let metrics = self.env.metrics.clone();
        self.ask(ctx, async move { leaf.read(&target).await }, move |read| {
            if read.is_err() {
                metrics.failure("read_target");
            }
            Event::Read(number, read)
        });
    }

    fn report(&mut self, owner: PipelineId, sights: Sights) {
        let Some(to) = self.owners.get(&owner) else { return };
        self.unsent.remove(&owner);
        if to.reported.try_send(Reported(sights.clone())).is_err() && to.reported.connected() {
            self.env.metrics.overflow("pipeline");
            self.unsent.insert(owner, sights);
        }
    }

    fn report_again(&mut self) {
        for (owner, sights) in std::mem::take(&mut self.unsent) {
            self.report(owner, sights);
        }
    }

    fn end(&mut self, ctx: &mut Context<Self>) {
        self.obituary.end = End::Finished(None);
        ctx.stop();
    }

    /// Logs what is wrong with the cluster when that becomes something else.
    fn log(&mut self) {
        let trouble = self.shell.machine().troubles().into_iter().next();
        if trouble == self.said {
            return;
        }
        let cluster = self.cluster.display_name();
        match &trouble {
            Some(why) => tracing::warn!(cluster, why, "a cluster with targets of Pipelines cannot be read"),
            None => tracing::info!(cluster, "a cluster with targets of Pipelines can be read again"),
        }
        self.said = trouble;
    }

    fn hear(&mut self, event: Event, ctx: &mut Context<Self>) {
        self.feed(event, ctx);
        self.counted.set([self.shell.machine().standing()].into_iter());
        self.log();
    }

    fn unlink(&mut self, error: &PortError, ctx: &mut Context<Self>) {
        self.env.metrics.failure("reach_cluster");
        self.leaf = None;
        self.hear(Event::Unlinked(error.to_string()), ctx);
    }
}

impl Actor for LeafActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        ctx.run_interval(AGAIN_EVERY, |leaf, _| leaf.report_again());
    }
}

impl Drives<Machine> for LeafActor {
    fn shell(&mut self) -> Option<&mut Shell<Machine>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Connect => {
                if let Some(flow) = self.unused_flow.take() {
                    ctx.add_stream(flow);
                }
            }
            Effect::Want(targets) => self.leaf.iter().for_each(|leaf| leaf.want(&targets)),
            Effect::Watch(number, of) => self.watch(number, &of, ctx),
            Effect::Unwatch(number) => {
                if let Some(watch) = self.watches.remove(&number) {
                    ctx.cancel_future(watch);
                }
            }
            Effect::Read(number, target) => self.read(number, target, ctx),
            Effect::Report(owner, sights) => self.report(owner, sights),
            Effect::Looked(owner, ticket, sights) => {
                if let Some(owner) = self.owners.get(&owner) {
                    send_even_if_full(&owner.looked, Looked(ticket, sights));
                }
            }
            Effect::End => self.end(ctx),
        }
    }
}
