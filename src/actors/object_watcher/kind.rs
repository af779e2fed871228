//! What a parent has to know of the kind of objects that it tends.

use std::sync::Arc;

use actix::{Actor, Context, Handler};

use super::{ObjectSeen, PeersRebuilt};
use crate::actors::Env;
use crate::actors::lifecycle::{GiveWay, Obituary, StopListener};
use crate::actors::message::{Observe, Who};
use crate::actors::observation::Observation;
use crate::telemetry::Metrics;
use domain::objects::kept::Kept;
use domain::ports::pipeline::Objects;

/// A kind of objects. Each object has an actor of its own.
pub trait Tended: Unpin + 'static {
    type Object: Kept;
    /// Where the messages of its actor go.
    type Peers: Clone + Send + Unpin + 'static;
    type Child: Actor<Context = Context<Self::Child>>
        + Handler<ObjectSeen<Self::Object>>
        + Handler<PeersRebuilt<Self::Peers>>
        + Handler<GiveWay>
        + Handler<Observe>;

    /// The kind's name, for people.
    const NAME: &'static str;

    /// The metric label of a child.
    const CHILD: &'static str;

    /// The objects, one for each API group and namespace.
    fn objects(&self) -> &[Arc<dyn Objects<Self::Object>>];

    /// The actor of an object as it was just seen; `objects` are those of its group.
    fn child(
        &self,
        env: Env,
        objects: Arc<dyn Objects<Self::Object>>,
        peers: Self::Peers,
        object: Self::Object,
        stop_listener: StopListener,
        obituary: Obituary,
    ) -> Self::Child;

    /// The name of a child.
    fn who(id: <Self::Object as Kept>::Id) -> Who;

    /// The object whose actor this is, if it is one of these.
    fn id_of(who: Who) -> Option<<Self::Object as Kept>::Id>;

    /// So many have an actor.
    fn count(metrics: &Metrics, count: usize);

    /// What is wrong, as it is shown.
    fn shown(troubles: Vec<String>) -> Observation;
}
