//! The watch of the objects of one of our kinds, and the parent of their actors: performs what `kernel::watches::watch` decides. Of two objects
//! of one name the one of the earlier API group counts (`objects::groups`).

mod hearing;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler};
use futures_util::StreamExt;

use crate::actors::lifecycle::{Obituary, StopListener, StopSignal};
use crate::actors::message::{Died, End};
use crate::actors::object::{IdOf, ObjectActor, ObjectOf, ObjectSeen, Peers, PeersRebuilt, Tended};
use crate::actors::shell::{Drives, Shell};
use crate::actors::{Env, MAILBOX_MAX};
use kernel::shares::Places;
use kernel::watches::listed::Listed;
use kernel::watches::lives::Lives;
use kernel::watches::watch::{self, Effect, Event, Watch};
use notices::delivery::{InvalidResend, Resends};
use objects::groups::Groups;
use objects::kept::{Kept, ObjectSight};
use objects::watched::Objects;

/// How often we check the children: a full mailbox can lose a death notice, and a full child a sight.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// How long a child may take to show itself before the answer goes without it.
const OBSERVE_WITHIN: Duration = Duration::from_millis(500);

/// Objects of one kind that are attended to at a time, by turns of their namespaces. A Repo at rest costs 18 KiB (`make scale`).
const OBJECTS_MAX: usize = 2_000;

/// What the watch of the place of this number said.
struct Sighted<T: Kept>(usize, ObjectSight<T>);

/// The actor. See the module's text.
pub struct ObjectWatcher<T: Tended> {
    env: Env,
    tended: T,
    peers: Peers<T::Beside>,
    stop_listener: StopListener,
    stop_signal: StopSignal,
    /// Sent to the parent when this ends.
    _obituary: Obituary,
    groups: Groups<ObjectOf<T>>,
    shell: Shell<Watch<Objects<ObjectOf<T>>>>,
    children: BTreeMap<IdOf<T>, Addr<ObjectActor<T>>>,
    places: Places<IdOf<T>>,
    resends: Resends<IdOf<T>>,
    /// Requests to send again that cannot be read.
    misread: BTreeMap<IdOf<T>, InvalidResend>,
}

impl<T: Tended> ObjectWatcher<T> {
    /// A watch that knows nothing yet.
    pub fn new(env: Env, tended: T, peers: Peers<T::Beside>, stop_listener: StopListener, obituary: Obituary) -> Self {
        // These objects are not in the ledger, so crash suspects are not recorded.
        let lives = Lives::begin(None, env.ports.clock.now());
        let watch = Watch::new(Objects::default(), BTreeMap::new(), BTreeMap::new(), Listed::default(), lives);
        Self {
            shell: Shell::new(watch, &env),
            env,
            groups: Groups::new(tended.ports().objects.len()),
            tended,
            peers,
            stop_signal: StopSignal::under(stop_listener.clone()),
            stop_listener,
            _obituary: obituary,
            children: BTreeMap::new(),
            places: Places::new(OBJECTS_MAX),
            resends: Resends::default(),
            misread: BTreeMap::new(),
        }
    }

    fn start(&mut self, id: IdOf<T>, latest: Option<Box<ObjectOf<T>>>, ctx: &mut Context<Self>) {
        let group = self.groups.of(&id).and_then(|number| self.tended.ports().objects.get(number)).cloned();
        let (Some(object), Some(objects)) = (latest, group) else {
            // It went while it waited for its turn.
            return self.feed(Event::Died(id, watch::End::Finished(None)), ctx);
        };
        let obituary = Obituary::new(ctx.address().recipient(), T::who(id.clone()));
        let (env, peers, listener) = (self.env.clone(), self.peers.clone(), self.stop_signal.listener());
        let child = ObjectActor::new(env, self.tended.clone(), objects, peers, *object, listener, obituary);
        self.children.insert(id, child.start());
        T::count(&self.env.metrics, self.children.len());
    }

    /// A child may be dead; the notice may also be about an earlier child.
    fn died(&mut self, id: IdOf<T>, end: &End, ctx: &mut Context<Self>) {
        if self.children.get(&id).is_none_or(|child| child.connected()) {
            return;
        }
        self.children.remove(&id);
        let end = match end {
            End::Finished(_) => watch::End::Finished(None),
            End::Drained => watch::End::Drained,
            End::Overdrawn => watch::End::Overdrawn,
            End::Crashed => {
                self.env.metrics.restart(T::CHILD);
                watch::End::Crashed
            }
        };
        self.feed(Event::Died(id, end), ctx);
        T::count(&self.env.metrics, self.children.len());
    }

    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let dead = self.children.iter().filter(|(_, child)| !child.connected()).map(|(id, _)| id.clone());
        for id in dead.collect::<Vec<_>>() {
            self.died(id, &End::Crashed, ctx);
        }
        self.feed(Event::Swept, ctx);
        self.hand_over_requests();
        if let Some(next) = self.places.next() {
            self.take_in(next, ctx);
        }
    }
}

impl<T: Tended> Actor for ObjectWatcher<T> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_MAX);
        self.stop_listener.clone().bind(self, ctx);
        for (number, objects) in self.tended.ports().objects.iter().enumerate() {
            ctx.add_stream(objects.watch().map(move |sight| Sighted(number, sight)));
        }
        ctx.run_interval(SWEEP_EVERY, Self::sweep);
    }
}

impl<T: Tended> Drives<Watch<Objects<ObjectOf<T>>>> for ObjectWatcher<T> {
    fn shell(&mut self) -> Option<&mut Shell<Watch<Objects<ObjectOf<T>>>>> {
        Some(&mut self.shell)
    }

    fn perform(&mut self, effect: Effect<Objects<ObjectOf<T>>>, ctx: &mut Context<Self>) {
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
                tracing::error!(object = %id, "an actor crashed; it is rebuilt from the status of its {}", T::NAME);
            }
            Effect::TellLeftAlone(id, why, wait) => {
                let for_s = wait.map(|wait| wait.as_secs());
                tracing::error!(object = %id, for_s, why, "a {} is left alone; nothing of it was lost", T::NAME);
            }
            // Notes are for the next life, and the next life finds everything in the objects.
            Effect::NoteLife(_) => self.feed(Event::LifeNoted(true), ctx),
            Effect::TellTried(_) | Effect::WriteBaselines(..) | Effect::NoteListed(_) | Effect::ReadLedger => {}
        }
    }
}

impl<T: Tended> Handler<Died> for ObjectWatcher<T> {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        if let Some(id) = T::id_of(who) {
            self.died(id, &end, ctx);
        }
    }
}

impl<T: Tended> Handler<PeersRebuilt<T::Beside>> for ObjectWatcher<T> {
    type Result = ();

    fn handle(&mut self, PeersRebuilt(peers): PeersRebuilt<T::Beside>, ctx: &mut Self::Context) {
        self.peers = peers;
        self.resends.rebuilt();
        self.feed(Event::PeersRebuilt, ctx);
    }
}
