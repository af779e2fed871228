//! The number of the rules by which votes are cast and judged, so that releases with different rules can live in one group.
//!
//! Members whose numbers differ wait for each other by name, as under any other difference of configuration: the number is
//! among the settings that must be equal (`roster`). Each vote carries the number it was cast under. Its vector is judged,
//! planned and named by that number, also after an upgrade and alone. A release finishes votes of its own number and of those
//! before.
//!
//! A new number is needed where two members that read the same votes would come to different vectors, plans or references.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a set of rules.
///
/// | number | what it says |
/// |---|---|
/// | 1 | the first one, up to the release of 2026-11-21 |
/// | 2 | decisions 28 to 33: digests between members, named distributions beside the hosts of other members |
/// | 3 | decisions 48 to 56: a nonce with each number, images compared by the last segment of their repository, members that went past, members that were left out by their owner |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules(u32);

impl Rules {
    /// Those of votes that name no number.
    pub const FIRST: Self = Self(1);

    /// Those of the release before this one.
    pub const SECOND: Self = Self(2);

    /// Those that this program votes by.
    pub const CURRENT: Self = Self(3);
}

/// Votes of the first release name no number.
impl Default for Rules {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
