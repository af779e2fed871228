//! Watches the workloads of this cluster, and keeps a rollout actor for every one that needs attention.
//!
//! Not for any decision; see `kernel::watches::watch`.

mod browsing;
mod children;
mod ledger;
mod show;
mod traffic;
mod troubles;

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, StreamHandler};

use crate::actors::directory::{Directory, PeersRestarted};
use crate::actors::lifecycle::{Obituary, StopListener, StopSignal};
use crate::actors::message::Sighted;
use crate::actors::pod_watcher::PodWatcher;
use crate::actors::rollout::RolloutActor;
use crate::actors::shell::{Drives, Shell};
use crate::actors::traffic_watcher::TrafficWatcher;
use crate::actors::{Env, MAILBOX_MAX};
use crate::telemetry::AtRest;
use kernel::id::{Origin, WorkloadId};
use kernel::watches::lives::Lives;
use kernel::watches::watch::{Effect, Event, Troubles, Watch};
use notices::delivery::{Requests, Resends};
use purge::deployments::Deployments;
use purge::ports::{LedgerContents, Sight};
use purge::rollouts::rollout::Summary;

/// How often we check the children: a full mailbox can lose a death notice, and a full child a sight.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The actor. See the module's text.
pub struct DeploymentWatcher {
    env: Env,
    directory: Directory,
    stop_listener: StopListener,
    obituary: Obituary,
    stop_signal: StopSignal,
    origin: Origin,
    shell: Shell<Watch<Deployments>>,
    children: BTreeMap<WorkloadId, Addr<RolloutActor>>,
    pods: BTreeMap<String, Addr<PodWatcher>>,
    troubles: Troubles<WorkloadId>,
    resends: Resends<WorkloadId>,
    /// Owners who want refused purges to be tried now, by the times that they gave.
    retries: Requests<WorkloadId, String>,
    recent: Vec<Summary>,
    unwell: AtRest,
    /// `None` where traffic is not followed.
    traffic: Option<Addr<TrafficWatcher>>,
}

impl DeploymentWatcher {
    /// A watcher that starts from the ledger's content and from how earlier lives ended.
    pub fn new(
        env: Env,
        directory: Directory,
        ledgered: LedgerContents,
        lives: Lives,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let LedgerContents { origin, records, unreadable, pin: _, listed, layout: _, life: _, set_back } = ledgered;
        let kind = Deployments { policy: env.settings.policy.clone() };
        let unwell = env.metrics.standing.unwell();
        Self {
            shell: Shell::new(Watch::new(kind, records, unreadable, listed, lives).set_back(set_back.records), &env),
            env,
            directory,
            stop_signal: StopSignal::under(stop_listener.clone()),
            stop_listener,
            obituary,
            origin,
            children: BTreeMap::new(),
            pods: BTreeMap::new(),
            troubles: Troubles::default(),
            resends: Resends::default(),
            retries: Requests::default(),
            recent: Vec::new(),
            unwell,
            traffic: None,
        }
    }

    fn watch(&self) -> &Watch<Deployments> {
        self.shell.machine()
    }
}

impl Actor for DeploymentWatcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        ctx.add_stream(self.env.ports.cluster.watch());
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
        self.follow_traffic(ctx);
    }
}

impl Drives<Watch<Deployments>> for DeploymentWatcher {
    fn shell(&mut self) -> Option<&mut Shell<Watch<Deployments>>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect<Deployments>, ctx: &mut Context<Self>) {
        match effect {
            Effect::Start(start) => self.start(*start, ctx),
            Effect::Pass(id, sight) => {
                if !self.reach(&id, Sighted(sight)) {
                    self.feed(Event::PassedInVain(id), ctx);
                }
            }
            Effect::Direct(id) => {
                if !self.reach(&id, PeersRestarted(self.directory.clone())) {
                    self.feed(Event::DirectedInVain(id), ctx);
                }
            }
            Effect::WriteBaselines(found, above) => self.write_baselines(found, above, ctx),
            Effect::NoteListed(scopes) => self.note_listed(scopes, ctx),
            Effect::NoteLife(note) => self.note_life(note, ctx),
            Effect::ReadLedger => self.read_ledger(ctx),
            Effect::TellRebuilt(id) => {
                tracing::error!(workload = %id.display_name(), "the rollout's actor crashed; it is rebuilt from the ledger");
            }
            Effect::TellLeftAlone(id, why, wait) => self.tell_left_alone(&id, &why, wait, ctx),
            Effect::TellTried(id) => {
                tracing::warn!(workload = %id.display_name(), "a workload that may have ended allclear abruptly is tried again, alone");
            }
        }
    }
}

impl StreamHandler<Sight> for DeploymentWatcher {
    fn handle(&mut self, sight: Sight, ctx: &mut Self::Context) {
        match sight {
            Sight::Restarted { scope } => {
                self.env.metrics.standing.relist();
                self.feed(Event::Relisting(scope), ctx);
            }
            Sight::Seen(workload) => {
                self.note_requests(&workload.id, &workload.tuning.asks);
                match self.watch().unusable(&workload) {
                    Some(why) => self.leave_out(&workload.id, why),
                    None => self.troubles.readable(&workload.id),
                }
                self.feed(Event::Seen(workload), ctx);
            }
            Sight::Unreadable(id, why) => {
                self.env.metrics.failure("decode_workload");
                self.leave_out(&id, why.to_string());
                self.feed(Event::Unreadable(id), ctx);
            }
            Sight::Gone(id) => {
                self.resends.gone(&id);
                self.retries.gone(&id);
                self.troubles.readable(&id);
                self.troubles.stored(&id);
                self.feed(Event::Gone(id), ctx);
            }
            Sight::Synced { scope, all } => {
                self.env.complaints.answered(self.shell.now());
                self.watch_works(&scope, all);
                self.feed(Event::Listed(scope, all), ctx);
                self.look_for_baselines();
                self.count();
            }
            Sight::Trouble { scope, error } => {
                self.watch_failed(scope, &error);
                self.count();
            }
            Sight::Refused { scope, error, all } => self.refused(scope, &error, all, ctx),
            Sight::SetBack { from, to } => {
                self.was_set_back(&from, &to);
                self.feed(Event::SetBack, ctx);
            }
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
