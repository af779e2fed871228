//! What of a look is durable.

use kernel::names::paths::PathSet;
use serde::{Deserialize, Serialize};

use crate::asked::QuestionId;
use crate::marker::Marker;
use crate::tally::Tally;

/// Further purges that may be made by themselves after one.
pub const AGAIN_MAX: u8 = 3;

/// The further purges that may follow from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Again {
    /// How many; at most [`AGAIN_MAX`].
    pub max: u8,
    /// The first of them is made so long after the purge, in seconds, whatever is there. Until then nothing is looked at. A life
    /// that begins meanwhile waits anew.
    pub after_s: Option<u32>,
}

impl Again {
    /// So many at most, each on evidence.
    pub const fn up_to(max: u8) -> Self {
        Self { max, after_s: None }
    }
}

/// Which part of the work it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    #[serde(rename = "l")]
    Looking,
    /// A further purge is made in any case, after a time.
    #[serde(rename = "w")]
    Waiting,
    /// What was fresh is looked at once more.
    #[serde(rename = "m")]
    Later,
    /// A further purge is on its way.
    #[serde(rename = "a")]
    Again,
    #[serde(rename = "d")]
    Done,
}

impl Phase {
    /// Whether something follows from it as soon as it is durable.
    pub(super) const fn acts(self) -> bool {
        matches!(self, Self::Later | Self::Again | Self::Done)
    }
}

/// What of it is durable: no instants, for those mean nothing to another life.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stored {
    /// What was purged.
    #[serde(rename = "p")]
    pub paths: PathSet,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<Marker>,
    #[serde(rename = "x", default)]
    pub again_max: u8,
    /// See [`Again::after_s`]; gone once that is done.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub again_after_s: Option<u32>,
    /// Further purges that were complete.
    #[serde(rename = "r", default)]
    pub round: u8,
    #[serde(rename = "s")]
    pub phase: Phase,
    /// How long ago the purge was complete when this was written, at least.
    #[serde(rename = "e", default)]
    pub elapsed_ms: u64,
    /// Another life began to count that.
    #[serde(rename = "b", default, skip_serializing_if = "is_false")]
    pub resumed: bool,
    /// How late the latest look was.
    #[serde(rename = "t", default)]
    pub late_s: u32,
    /// Grows with each form that is to be written.
    #[serde(rename = "n")]
    pub number: u32,
    #[serde(rename = "g")]
    pub pages: Vec<Tally>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Stored {
    /// What a further purge sends. What tags did not reach, paths do; and where those are not about each page that is looked at, everything.
    pub fn paths_of_again(&self) -> PathSet {
        let paths = self.paths.without_tags();
        let all = self.pages.iter().all(|tally| tally.page.is_of(&paths));
        if all { paths } else { PathSet::default() }
    }

    /// Whether a question may be asked by it.
    pub fn has_booked(&self, id: QuestionId) -> bool {
        let booked = self.pages.get(usize::from(id.page)).is_some_and(|tally| tally.looks >= id.look);
        self.round == id.round && booked
    }
}
