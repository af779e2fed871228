//! What the actors have to know of a kind of objects: its ports, and what is done for it alone.

use std::collections::BTreeSet;

use actix::{Context, Recipient};

use super::ObjectActor;
use crate::actors::Env;
use crate::actors::lifecycle::StopListener;
use crate::actors::message::{Died, Observe, Who};
use crate::actors::observation::Observation;
use crate::telemetry::Metrics;
use kernel::machine::Machine;
use kernel::remark::Remark;
use kernel::replica::kind_lifecycle::Part;
use objects::history::Entry;
use objects::kept::{Object, OwnKind};
use objects::owned::OwnMachine;
use objects::ports::KindPorts;

/// An object of a kind.
pub type ObjectOf<T> = Object<<T as Tended>::Machine>;

/// The name of an object of a kind.
pub type IdOf<T> = <<T as Tended>::Machine as OwnKind>::Id;

/// The status of an object of a kind.
pub type StatusOf<T> = <<T as Tended>::Machine as OwnKind>::Status;

/// A kind of objects, as the ports that it needs. Each object has an actor of its own; their parent is the watch of the objects, and
/// its parent is the kind's supervisor.
pub trait Tended: Clone + Unpin + 'static {
    /// The machine of an object.
    type Machine: OwnMachine + Send + Unpin;
    /// The addresses of what is built beside the watch, for all objects.
    type Beside: Clone + Send + Unpin + 'static;
    /// What the actor of an object keeps for its kind.
    type Extra: Unpin + 'static;

    /// The kind's name, for people: `Pipeline`.
    const NAME: &'static str;

    /// The objects, for people: `Pipelines`.
    const PLURAL: &'static str;

    /// The metric label of an object's actor, and the table of its configuration: `pipeline`.
    const CHILD: &'static str;

    /// The failure of a question whether the kind is served.
    const FIND: &'static str;

    /// What does not happen while the status cannot be kept: `nothing is promoted`.
    const HALTED: &'static str;

    /// What a person does whose cluster has the kind, and no right of ours to it.
    const RIGHTS: &'static str;

    /// The watch of the objects.
    const WATCH: Part;

    /// What is built beside the watch, if anything.
    const BESIDE: Option<Part> = None;

    /// All places are in one API group: it is served in all of them, or in none.
    const ONE_GROUP: bool;

    fn ports(&self) -> &KindPorts<Self::Machine>;

    /// The same, with these places alone.
    fn within(self, places: &BTreeSet<usize>) -> Self;

    /// What is wrong with the kind as a whole, beside the API server.
    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Builds what is beside the watch, and says where it is observed. Its death is reported to `died`.
    fn beside(
        &self,
        env: &Env,
        stop_listener: StopListener,
        died: Recipient<Died>,
    ) -> (Self::Beside, Option<Recipient<Observe>>);

    /// The machine of an object as it was just seen.
    fn machine(env: &Env, epoch_ms: i64, object: ObjectOf<Self>) -> Self::Machine;

    /// What a new actor keeps for its kind.
    fn extra(metrics: &Metrics) -> Self::Extra;

    /// Performs an effect, which is counted first.
    fn perform(actor: &mut ObjectActor<Self>, effect: <Self::Machine as Machine>::Effect, ctx: &mut Ctx<Self>);

    /// An actor was rebuilt and has forgotten what it was asked.
    fn peers_rebuilt(actor: &mut ObjectActor<Self>, ctx: &mut Ctx<Self>);

    /// The actor of an object ends.
    fn leave(_actor: &mut ObjectActor<Self>, _ctx: &mut Ctx<Self>) {}

    /// A write of the status has ended. If it was carried out whole, the status was the first of these before, and is the second.
    fn stored(actor: &mut ObjectActor<Self>, change: Option<(&StatusOf<Self>, &StatusOf<Self>)>);

    /// What is said of a written object whose status was `before`.
    fn remarks(written: &ObjectOf<Self>, before: &StatusOf<Self>) -> Vec<Remark>;

    /// What has happened by a write, whose status was `before`, at this time.
    fn news(written: &ObjectOf<Self>, before: &StatusOf<Self>, at_ms: i64) -> Vec<Entry>;

    /// What a status still says of what has happened.
    fn remembered(status: &StatusOf<Self>) -> Vec<Entry>;

    /// An object as it is shown, and what is wrong.
    fn shown(machine: Option<&Self::Machine>, troubles: Vec<String>) -> Observation;

    /// The object's name without its namespace.
    fn name(id: &IdOf<Self>) -> &str;

    /// The name of an object's actor.
    fn who(id: IdOf<Self>) -> Who;

    /// The object whose actor this is, if it is one of these.
    fn id_of(who: Who) -> Option<IdOf<Self>>;

    /// So many have an actor.
    fn count(metrics: &Metrics, count: usize);
}

/// The context of an object's actor.
pub type Ctx<T> = Context<ObjectActor<T>>;
