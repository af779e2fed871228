//! The actor of one object of ours: performs what its machine decides about the object, and owns its status. What the machine decides
//! beside that its kind performs ([`Tended::perform`]).

mod calls;
mod history;
mod kind;
mod shown;

use std::sync::Arc;

use actix::{Actor, ActorContext, Context, Handler, Message};

use crate::actors::directory::Outbox;
use crate::actors::lifecycle::{GiveWay, Obituary, StopListener};
use crate::actors::message::End;
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use kernel::machine::Machine;
use notices::delivery::Errands;
use objects::history::keeping::Keeping;
use objects::kept::{Object, OwnKind};
use objects::owned::{Effect, Event, OwnMachine};
use objects::ports::Objects;

pub use kind::{Ctx, IdOf, ObjectOf, Tended};

/// Parent → child: the object was seen, or (`None`) is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ObjectSeen<K: OwnKind + Send>(pub Option<Box<Object<K>>>);

/// Parent's parent → parent → child: an actor was rebuilt and has forgotten what it was asked.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct PeersRebuilt<B: Clone + Send + 'static>(pub Peers<B>);

/// Where the messages of an object's actor go.
#[derive(Clone)]
pub struct Peers<B> {
    pub outbox: Outbox,
    /// To what is built beside the watch of the objects, for all of them.
    pub beside: B,
}

/// The actor. See the module's text.
pub struct ObjectActor<T: Tended> {
    pub env: Env,
    pub tended: T,
    pub peers: Peers<T::Beside>,
    pub shell: Shell<T::Machine>,
    /// What its kind keeps in it.
    pub extra: T::Extra,
    objects: Arc<dyn Objects<ObjectOf<T>>>,
    stop_listener: StopListener,
    obituary: Obituary,
    errands: Errands,
    keeping: Keeping,
}

impl<T: Tended> ObjectActor<T> {
    /// The actor of an object as it was just seen; `objects` are those of its place.
    pub fn new(
        env: Env,
        tended: T,
        objects: Arc<dyn Objects<ObjectOf<T>>>,
        peers: Peers<T::Beside>,
        object: ObjectOf<T>,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self {
        let clock = &env.ports.clock;
        let epoch_ms = clock.wall_ms().saturating_sub_unsigned(clock.now().as_millis());
        Self {
            shell: Shell::new(T::machine(&env, epoch_ms, object), &env),
            extra: T::extra(&env.metrics),
            env,
            tended,
            peers,
            objects,
            stop_listener,
            obituary,
            errands: Errands::default(),
            keeping: Keeping::default(),
        }
    }

    pub fn object(&self) -> &ObjectOf<T> {
        self.shell.machine().object()
    }

    pub fn id(&self) -> IdOf<T> {
        self.object().id.clone()
    }

    /// Performs what is done for an object of any kind.
    pub fn perform_own(&mut self, effect: Effect<T::Machine>, ctx: &mut Context<Self>) {
        match effect {
            Effect::Store(status, version) => self.store(*status, version, ctx),
            Effect::Look => self.look(ctx),
            Effect::Tell(notice) => self.tell(notice, ctx),
            Effect::End => self.end(ctx),
        }
    }

    /// Ends: nothing of it is lost that its status does not say.
    fn end(&mut self, ctx: &mut Context<Self>) {
        T::leave(self, ctx);
        self.obituary.end = End::Finished(None);
        ctx.stop();
    }
}

impl<T: Tended> Actor for ObjectActor<T> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        self.tick(ctx);
    }
}

impl<T: Tended> Drives<T::Machine> for ObjectActor<T> {
    fn shell(&mut self) -> Option<&mut Shell<T::Machine>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: <T::Machine as Machine>::Effect, ctx: &mut Context<Self>) {
        T::perform(self, effect, ctx);
    }

    fn ask<F>(
        &mut self,
        ctx: &mut Context<Self>,
        call: F,
        event: impl FnOnce(F::Output) -> <T::Machine as Machine>::Event + 'static,
    ) where
        F: Future + 'static,
    {
        self.call(ctx, call, move |_, output| event(output));
    }
}

impl<T: Tended> Handler<ObjectSeen<T::Machine>> for ObjectActor<T> {
    type Result = ();

    fn handle(&mut self, ObjectSeen(object): ObjectSeen<T::Machine>, ctx: &mut Self::Context) {
        self.feed(object.map_or(Event::Missed, Event::Seen).into(), ctx);
    }
}

impl<T: Tended> Handler<GiveWay> for ObjectActor<T> {
    type Result = ();

    fn handle(&mut self, GiveWay: GiveWay, ctx: &mut Self::Context) {
        self.end(ctx);
    }
}

impl<T: Tended> Handler<PeersRebuilt<T::Beside>> for ObjectActor<T> {
    type Result = ();

    fn handle(&mut self, PeersRebuilt(peers): PeersRebuilt<T::Beside>, ctx: &mut Self::Context) {
        self.peers = peers;
        T::peers_rebuilt(self, ctx);
    }
}
