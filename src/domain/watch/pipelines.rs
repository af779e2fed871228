//! Pipelines, as a watch knows them: each has a child for as long as it exists, and remembers what matters in its own status.

use std::convert::Infallible;

use crate::adoption::State;
use crate::id::PipelineId;
use crate::pipeline::spec::Object;
use crate::watch::{Attention, Kind};

/// The kind. A child of it is the actor of one Pipeline. The ledger holds nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pipelines;

impl Kind for Pipelines {
    type Id = PipelineId;
    type Sight = Object;
    type Record = Infallible;
    type Arrival = ();

    const AT_REST: () = ();
    const NEW: () = ();
    const OPEN: () = ();

    fn id(object: &Object) -> &PipelineId {
        &object.id
    }

    fn attention(&self, record: Option<&Infallible>, _: &Object, _: bool) -> Attention<Self> {
        match record {
            Some(record) => match *record {},
            None => Attention::Child(()),
        }
    }

    fn unusable(_: Option<&Infallible>, _: &Object) -> Option<String> {
        None
    }

    fn state(record: &Infallible) -> State {
        match *record {}
    }
}
