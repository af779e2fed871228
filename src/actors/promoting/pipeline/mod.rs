//! The actor of one Pipeline: performs what `domain::pipeline` decides, and owns the object's status.

mod calls;
mod looks;
mod mail;
mod secrets;
mod shown;

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, ActorContext, Context, SpawnHandle};

use crate::actors::lifecycle::{Obituary, StopListener};
use crate::actors::message::End;
use crate::actors::promoting::message::Peers;
use crate::actors::promoting::pipeline::looks::Looks;
use crate::actors::promoting::pipeline::shown::Counted;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use domain::kernel::id::Subject;
use domain::notices::delivery::Errands;
use domain::notices::notice::Kind;
use domain::pipeline::spec::Object;
use domain::pipeline::{Effect, Pipeline};
use domain::ports::pipeline::{Objects, Promoting};

/// The actor. See the module's text.
pub struct PipelineActor {
    env: Env,
    promoting: Promoting,
    objects: Arc<dyn Objects<Object>>,
    peers: Peers,
    stop_listener: StopListener,
    obituary: Obituary,
    shell: Shell<Pipeline>,
    errands: Errands,
    looks: Looks,
    counted: Counted,
    followed: BTreeMap<String, SpawnHandle>,
}

impl PipelineActor {
    /// The actor of an object as it was just seen; `objects` are those of its group.
    pub fn new(
        env: Env,
        promoting: Promoting,
        objects: Arc<dyn Objects<Object>>,
        peers: Peers,
        object: Object,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let clock = &env.ports.clock;
        let heard = env.ports.notifier.hears(&Subject::Pipeline(object.id.clone()), Kind::PromotionStarted);
        let epoch_ms = clock.wall_ms().saturating_sub_unsigned(clock.now().as_millis());
        Self {
            shell: Shell::new(Pipeline::new(epoch_ms, object).heard(heard), &env),
            counted: Counted::new(&env.metrics),
            env,
            promoting,
            objects,
            peers,
            stop_listener,
            obituary,
            errands: Errands::default(),
            looks: Looks::default(),
            followed: BTreeMap::new(),
        }
    }

    /// Ends, and leaves the clusters: nothing of it is lost that its status does not say.
    fn end(&mut self, ctx: &mut Context<Self>) {
        self.follow(Vec::new(), ctx);
        self.obituary.end = End::Finished(None);
        ctx.stop();
    }
}

impl Actor for PipelineActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
    }
}

impl Drives<Pipeline> for PipelineActor {
    fn shell(&mut self) -> Option<&mut Shell<Pipeline>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("pipeline", effect.name());
        match effect {
            Effect::Store(status, version) => self.store(*status, version, ctx),
            Effect::Follow(targets) => self.follow(targets, ctx),
            Effect::Look => self.look(ctx),
            Effect::Recheck(environment, seq, targets) => self.look_afresh(environment, seq, targets, ctx),
            Effect::ReadCalendar(environment, topic, windows, freezes) => {
                self.read_calendar(environment, topic, windows, freezes, ctx);
            }
            Effect::AskVerdict(environment, question) => self.ask_verdict(environment, *question, ctx),
            Effect::SeeEdge(environment, topic) => self.see_edge(environment, topic, ctx),
            Effect::Propose(order) => self.propose(order, ctx),
            Effect::LookAtProposal(order, number) => self.look_at_proposal(order, number, ctx),
            Effect::Withdraw(order, number, why) => self.withdraw(order, number, why, ctx),
            Effect::FollowSecrets(names) => self.follow_secrets(&names, ctx),
            Effect::Tell(notice) => self.tell(notice, ctx),
            Effect::End => self.end(ctx),
        }
    }
}
