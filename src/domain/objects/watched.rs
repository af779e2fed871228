//! Objects of ours, as a watch knows them: each has a child for as long as it exists, and remembers what matters in its own status.

use std::convert::Infallible;
use std::marker::PhantomData;

use crate::kept::Kept;
use kernel::floor::State;
use kernel::watches::watch::{Attention, Kind};

/// The kind. A child of it is the actor of one object. The ledger holds nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Objects<T>(PhantomData<T>);

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Kept> Kind for Objects<T> {
    type Id = T::Id;
    type Sight = T;
    type Record = Infallible;
    type Arrival = ();

    const AT_REST: () = ();
    const NEW: () = ();
    const OPEN: () = ();

    fn id(object: &T) -> &T::Id {
        object.id()
    }

    fn attention(&self, record: Option<&Infallible>, _: &T, _: bool) -> Attention<Self> {
        match record {
            Some(record) => match *record {},
            None => Attention::Child(()),
        }
    }

    fn unusable(&self, _: Option<&Infallible>, _: &T) -> Option<String> {
        None
    }

    fn state(record: &Infallible) -> State {
        match *record {}
    }
}
