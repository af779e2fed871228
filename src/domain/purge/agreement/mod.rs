//! Agreement of several clusters before a purge, and the messages for it.

pub mod board;
pub mod group;
pub mod roster;
pub mod tally;
