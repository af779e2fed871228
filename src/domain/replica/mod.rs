//! Whether this replica works, and with what.

pub mod duty;
pub mod feature;
pub mod lease;
