//! What is there: listings, and the children of what asks for one.

pub mod listed;
pub mod lives;
pub mod watch;
