//! The watch of Pipelines, and the parent of their actors: performs what `domain::watch` decides. Of two objects of one name the one
//! of the earlier API group counts (`domain::groups`).

mod hearing;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler};
use futures_util::StreamExt;

use crate::actors::lifecycle::{Obituary, StopListener, StopSignal};
use crate::actors::message::{Died, End, Who};
use crate::actors::promoting::message::{ObjectSeen, Peers, PeersRebuilt};
use crate::actors::promoting::pipeline::PipelineActor;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use domain::groups::Groups;
use domain::id::{ObjectId, PipelineId};
use domain::listed::Listed;
use domain::lives::Lives;
use domain::pipeline::spec::Object;
use domain::ports::pipeline::{ObjectSight, Promoting};
use domain::watch::{self, Effect, Event, Watch};

/// How often we check the children: a full mailbox can lose a death notice, and a full child a sight.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a Pipeline may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_millis(500);

/// Pipelines that are attended to at a time. Each costs about 12 KiB.
const PIPELINES_MAX: usize = 2_000;

/// What the watch of the group of this number said.
struct Sighted(usize, ObjectSight<Object>);

/// The actor. See the module's text.
pub struct Pipelines {
    env: Env,
    promoting: Promoting,
    peers: Peers,
    stop_listener: StopListener,
    stop_signal: StopSignal,
    /// Sent to the parent when this ends.
    _obituary: Obituary,
    groups: Groups<Object>,
    shell: Shell<Watch<watch::Pipelines>>,
    children: BTreeMap<PipelineId, Addr<PipelineActor>>,
    /// Pipelines for which there is no room.
    crowded: bool,
}

impl Pipelines {
    /// A watch that knows nothing yet, of the groups in `promoting`.
    pub fn new(env: Env, promoting: Promoting, peers: Peers, stop_listener: StopListener, obituary: Obituary) -> Self {
        // Nothing of a Pipeline is in the ledger: which of them ended us abruptly is not remembered either.
        let lives = Lives::begin(None, env.ports.clock.now());
        let watch = Watch::new(watch::Pipelines, BTreeMap::new(), BTreeMap::new(), Listed::default(), lives);
        Self {
            shell: Shell::new(watch, &env),
            env,
            groups: Groups::new(promoting.objects.len()),
            promoting,
            peers,
            stop_signal: StopSignal::under(stop_listener.clone()),
            stop_listener,
            _obituary: obituary,
            children: BTreeMap::new(),
            crowded: false,
        }
    }

    fn start(&mut self, id: PipelineId, latest: Option<Box<Object>>, ctx: &mut Context<Self>) {
        let group = self.groups.of(&id).and_then(|number| self.promoting.objects.get(number)).cloned();
        let (Some(object), Some(objects)) = (latest, group) else {
            // It went while it waited for its turn.
            return self.feed(Event::Died(id, watch::End::Finished(None)), ctx);
        };
        let obituary = Obituary::new(ctx.address().recipient(), Who::Pipeline(id.clone()));
        let (env, promoting, peers) = (self.env.clone(), self.promoting.clone(), self.peers.clone());
        let listener = self.stop_signal.listener();
        self.children
            .insert(id, PipelineActor::new(env, promoting, objects, peers, *object, listener, obituary).start());
        self.count();
    }

    /// A child may be dead; the notice may also be about an earlier child.
    fn died(&mut self, id: PipelineId, end: &End, ctx: &mut Context<Self>) {
        if self.children.get(&id).is_none_or(|child| child.connected()) {
            return;
        }
        self.children.remove(&id);
        let end = match end {
            End::Finished(_) => watch::End::Finished(None),
            End::Drained => watch::End::Drained,
            End::Overdrawn => watch::End::Overdrawn,
            End::Crashed => {
                self.env.metrics.restart("pipeline");
                watch::End::Crashed
            }
        };
        self.feed(Event::Died(id, end), ctx);
        self.count();
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let dead = self.children.iter().filter(|(_, child)| !child.connected()).map(|(id, _)| id.clone());
        for id in dead.collect::<Vec<_>>() {
            self.died(id, &End::Crashed, ctx);
        }
        self.feed(Event::Swept, ctx);
    }

    fn count(&self) {
        self.env.metrics.promotions.pipelines(self.children.len());
    }
}

impl Actor for Pipelines {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        for (number, objects) in self.promoting.objects.iter().enumerate() {
            ctx.add_stream(objects.watch().map(move |sight| Sighted(number, sight)));
        }
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl Drives<Watch<watch::Pipelines>> for Pipelines {
    fn shell(&mut self) -> Option<&mut Shell<Watch<watch::Pipelines>>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect<watch::Pipelines>, ctx: &mut Context<Self>) {
        match effect {
            Effect::Start(start) => self.start(start.id, start.case.latest, ctx),
            Effect::Pass(id, object) => {
                if self.children.get(&id).is_none_or(|child| child.try_send(ObjectSeen(object)).is_err()) {
                    self.feed(Event::PassedInVain(id), ctx);
                }
            }
            Effect::Direct(id) => {
                if self.children.get(&id).is_none_or(|child| child.try_send(PeersRebuilt(self.peers.clone())).is_err())
                {
                    self.feed(Event::DirectedInVain(id), ctx);
                }
            }
            Effect::TellRebuilt(id) => {
                tracing::error!(pipeline = %id.display_name(), "the Pipeline's actor crashed; it is rebuilt from its status");
            }
            Effect::TellLeftAlone(id, why, wait) => {
                let for_s = wait.map(|wait| wait.as_secs());
                tracing::error!(pipeline = %id.display_name(), for_s, why, "a Pipeline is left alone; nothing of it was lost");
            }
            // Notes are for the next life, and the next life finds everything in the objects.
            Effect::NoteLife(_) => self.feed(Event::LifeNoted(true), ctx),
            Effect::TellTried(_) | Effect::WriteBaselines(..) | Effect::NoteListed(_) | Effect::ReadLedger => {}
        }
    }
}

impl Handler<Died> for Pipelines {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        if let Who::Pipeline(id) = who {
            self.died(id, &end, ctx);
        }
    }
}

impl Handler<PeersRebuilt> for Pipelines {
    type Result = ();

    fn handle(&mut self, PeersRebuilt(peers): PeersRebuilt, ctx: &mut Self::Context) {
        self.peers = peers;
        self.feed(Event::PeersRebuilt, ctx);
    }
}
