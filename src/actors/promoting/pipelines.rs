//! The watch of Pipelines, and the parent of their actors: performs what `domain::watch` decides. Of two objects of one name the one
//! of the earlier API group counts (`domain::pipeline::groups`).

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, ResponseFuture, StreamHandler};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::actors::lifecycle::{Obituary, StopListener, StopSignal};
use crate::actors::message::{Died, End, Observe, Who};
use crate::actors::observation::{Observation, PromotingSeen};
use crate::actors::promoting::message::{ObjectSeen, Peers, PeersRebuilt};
use crate::actors::promoting::pipeline::PipelineActor;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use domain::id::{ObjectId, PipelineId};
use domain::listed::Listed;
use domain::lives::Lives;
use domain::pipeline::groups::{Groups, Said};
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
    groups: Groups,
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
        self.env.metrics.pipelines(self.children.len());
    }

    fn said(&mut self, said: Said, ctx: &mut Context<Self>) {
        let event = match said {
            Said::Seen(object) => {
                self.crowded = self.children.len() >= PIPELINES_MAX && !self.children.contains_key(&object.id);
                if self.crowded {
                    return;
                }
                Event::Seen(object)
            }
            Said::Gone(id) => Event::Gone(id),
            Said::Unreadable(id, why) => {
                self.env.metrics.failure("decode_pipeline");
                tracing::warn!(pipeline = %id.display_name(), why, "a Pipeline cannot be read; what was read of it before holds");
                return;
            }
            Said::Hidden(id) => {
                let pipeline = id.display_name();
                tracing::warn!(pipeline, "a Pipeline does not count, because another API group has one of this name");
                return;
            }
        };
        self.feed(event, ctx);
    }

    /// What is wrong with the objects and their watches, in words.
    fn troubles(&self) -> Vec<String> {
        let group = |number: usize| self.promoting.objects.get(number).map_or("", |objects| objects.group());
        let watches = self
            .groups
            .troubles()
            .map(|(number, why)| format!("Pipelines of {} are not watched: {why}", group(number)));
        let unreadable = self.groups.unreadable().map(|(_, id, why)| format!("{id} cannot be read: {why}"));
        let hidden = self.groups.hidden().map(|(number, id)| {
            format!(
                "{id} of {} does not count: an earlier group has one of this name. Delete one of them",
                group(number)
            )
        });
        let alone = self.shell.machine().nursery().left_alone();
        let alone = alone.map(|(id, why)| format!("{id} is left alone for a while: {why}"));
        let crowded = self.crowded.then(|| {
            format!(
                "there are more than {PIPELINES_MAX} Pipelines; the others are not attended to. Use a second allclear"
            )
        });
        watches.chain(unreadable).chain(hidden).chain(alone).chain(crowded).collect()
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

impl StreamHandler<Sighted> for Pipelines {
    fn handle(&mut self, Sighted(number, sight): Sighted, ctx: &mut Self::Context) {
        if let ObjectSight::Trouble(error) = &sight {
            self.env.metrics.failure("watch_pipelines");
            tracing::warn!(%error, "the watch of Pipelines was interrupted; starting it again");
        }
        for said in self.groups.hear(number, sight) {
            self.said(said, ctx);
        }
    }

    /// A watch never ends by itself; without one, this actor has to be rebuilt.
    fn finished(&mut self, ctx: &mut Self::Context) {
        ctx.stop();
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

impl Handler<Observe> for Pipelines {
    type Result = ResponseFuture<Observation>;

    fn handle(&mut self, observe: Observe, _ctx: &mut Self::Context) -> Self::Result {
        let children: Vec<_> =
            self.children.values().map(|child| child.send(observe).timeout(OBSERVE_WITHIN)).collect();
        let own = PromotingSeen { troubles: self.troubles(), ..PromotingSeen::default() };
        Box::pin(async move {
            let mut all = Observation { promoting: Some(own), ..Observation::default() };
            join_all(children).await.into_iter().flatten().for_each(|seen| all.absorb(seen));
            all
        })
    }
}
