//! What several clusters agree on before anything is purged, and how they tell each other.

pub mod board;
pub mod group;
pub mod roster;
pub mod tally;
