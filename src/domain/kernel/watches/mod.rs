//! Listings of objects, and the children of those that need one.

pub mod listed;
pub mod lives;
pub mod watch;
