//! The parent of the readers of clusters: performs what `objects::apps::clusters` decides. In `freezes`, it tells all Pipelines of the
//! freezes of this cluster.

mod freezes;
mod show;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler};

use crate::actors::lifecycle::{GiveWay, Obituary, StopListener, StopSignal};
use crate::actors::message::{Died, End, Who};
use crate::actors::promoting::leaf::LeafActor;
use crate::actors::promoting::message::{Follow, LookAt, Looked, Owner, Reported};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX, send_even_if_full};
use kernel::id::PipelineId;
use objects::apps::app::ClusterKey;
use objects::apps::clusters::{self, Effect, Event};
use objects::pipeline::freezes::Fleet;
use objects::ports::pipeline::{FreezeBook, Leaves};

/// How often we check the children: a full mailbox can lose a death notice.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The actor. See the module's text.
pub struct Clusters {
    env: Env,
    leaves: Arc<dyn Leaves>,
    stop_listener: StopListener,
    stop_signal: StopSignal,
    /// Sent to the parent when this ends.
    _obituary: Obituary,
    shell: Shell<clusters::Clusters>,
    owners: BTreeMap<PipelineId, Owner>,
    children: BTreeMap<ClusterKey, Addr<LeafActor>>,
    freeze_book: Arc<dyn FreezeBook>,
    fleet: Fleet,
}

impl Clusters {
    /// A parent without children.
    pub fn new(
        env: Env,
        leaves: Arc<dyn Leaves>,
        freeze_book: Arc<dyn FreezeBook>,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        Self {
            shell: Shell::new(clusters::Clusters::default(), &env),
            env,
            leaves,
            stop_signal: StopSignal::under(stop_listener.clone()),
            stop_listener,
            _obituary: obituary,
            owners: BTreeMap::new(),
            children: BTreeMap::new(),
            freeze_book,
            fleet: Fleet::default(),
        }
    }

    fn start(&mut self, cluster: ClusterKey, ctx: &Context<Self>) {
        let obituary = Obituary::new(ctx.address().recipient(), Who::Cluster(cluster.clone()));
        let flow = self.leaves.link(&cluster);
        let leaf = LeafActor::new(self.env.clone(), cluster.clone(), flow, self.stop_signal.listener(), obituary);
        self.children.insert(cluster, leaf.start());
    }

    /// A child may be dead; the notice may also be about an earlier child.
    fn died(&mut self, cluster: ClusterKey, end: &End, ctx: &mut Context<Self>) {
        if self.children.get(&cluster).is_none_or(|child| child.connected()) {
            return;
        }
        self.children.remove(&cluster);
        let event = match end {
            End::Finished(_) => Event::Ended(cluster),
            End::Crashed | End::Overdrawn | End::Drained => {
                self.env.metrics.restart("leaf");
                Event::Crashed(cluster)
            }
        };
        self.feed(event, ctx);
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let dead = self.children.iter().filter(|(_, child)| !child.connected()).map(|(cluster, _)| cluster.clone());
        for cluster in dead.collect::<Vec<_>>() {
            self.died(cluster, &End::Crashed, ctx);
        }
    }
}

impl Actor for Clusters {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.watch_freezes(ctx);
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl Drives<clusters::Clusters> for Clusters {
    fn shell(&mut self) -> Option<&mut Shell<clusters::Clusters>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Start(cluster) => self.start(cluster, ctx),
            Effect::Stop(cluster) => {
                if let Some(child) = self.children.remove(&cluster) {
                    send_even_if_full(&child.recipient(), GiveWay);
                }
            }
            Effect::Want(cluster, owner, targets) => {
                let (Some(child), Some(owner)) = (self.children.get(&cluster), self.owners.get(&owner)) else { return };
                send_even_if_full(&child.clone().recipient(), Follow { owner: owner.clone(), targets });
            }
            Effect::LookFor(cluster, owner, ticket, targets) => {
                let Some(child) = self.children.get(&cluster) else { return };
                send_even_if_full(&child.clone().recipient(), LookAt { owner, ticket, targets });
            }
            Effect::Report(owner, sights) => {
                let Some(owner) = self.owners.get(&owner) else { return };
                send_even_if_full(&owner.reported, Reported(sights));
            }
            Effect::Looked(owner, ticket, sights) => {
                let Some(owner) = self.owners.get(&owner) else { return };
                send_even_if_full(&owner.looked, Looked(ticket, sights));
            }
            Effect::TellCrashed(cluster, None) => {
                tracing::error!(cluster = %cluster.display_name(), "the reader of a cluster crashed; it is rebuilt");
            }
            Effect::TellCrashed(cluster, Some(rest)) => {
                let for_s = rest.as_secs();
                tracing::error!(
                    cluster = %cluster.display_name(), for_s,
                    "the reader of a cluster crashed too often; the cluster is left alone, and its targets are unknown"
                );
            }
        }
    }
}

impl Handler<Follow> for Clusters {
    type Result = ();

    fn handle(&mut self, Follow { owner, targets }: Follow, ctx: &mut Self::Context) {
        let (id, is_last) = (owner.id.clone(), targets.is_empty());
        self.tell_freezes(&owner);
        self.owners.insert(id.clone(), owner);
        self.feed(Event::Wanted(id.clone(), targets), ctx);
        if is_last {
            self.owners.remove(&id);
        }
    }
}

impl Handler<LookAt> for Clusters {
    type Result = ();

    fn handle(&mut self, LookAt { owner, ticket, targets }: LookAt, ctx: &mut Self::Context) {
        self.feed(Event::LookedFor(owner, ticket, targets), ctx);
    }
}

impl Handler<Died> for Clusters {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        if let Who::Cluster(cluster) = who {
            self.died(cluster, &end, ctx);
        }
    }
}
