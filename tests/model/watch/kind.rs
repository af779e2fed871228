//! A kind of objects that is as small as can be: an object is a version, and so is its record.

use std::fmt;

use kernel::floor::State;
use kernel::id::{ObjectId, Seq};
use kernel::watches::watch::{Attention, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub usize);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "toy/shop/{}", self.0)
    }
}

impl ObjectId for Id {
    fn namespace(&self) -> &str {
        "shop"
    }

    fn display_name(&self) -> String {
        format!("shop/{}", self.0)
    }
}

/// An object as it is at a place of its script. Of two sights, that of the higher place is the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sight {
    pub id: Id,
    pub place: usize,
    pub version: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub seq: Seq,
    pub revision: u64,
    pub version: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    New,
    AtRest,
    Open,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Toy;

impl Kind for Toy {
    type Id = Id;
    type Sight = Sight;
    type Record = Record;
    type Arrival = Arrival;

    const AT_REST: Arrival = Arrival::AtRest;
    const NEW: Arrival = Arrival::New;
    const OPEN: Arrival = Arrival::Open;

    fn id(sight: &Sight) -> &Id {
        &sight.id
    }

    fn attention(&self, record: Option<&Record>, sight: &Sight, is_listed: bool) -> Attention<Self> {
        match record {
            Some(record) if record.version == sight.version => Attention::Idle,
            None if !is_listed => {
                Attention::Baseline(Box::new(Record { seq: Seq(0), revision: 1, version: sight.version }))
            }
            Some(_) | None => Attention::Child(Arrival::New),
        }
    }

    fn unusable(&self, _: Option<&Record>, _: &Sight) -> Option<String> {
        None
    }

    fn state(record: &Record) -> State {
        (record.seq, record.revision)
    }
}
