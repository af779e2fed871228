//! Listings of objects, whether their cluster was set back, and the children of those that need one.

pub mod horizon;
pub mod listed;
pub mod lives;
pub mod view;
pub mod watch;
