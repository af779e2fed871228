//! Whether this replica works, and with what.

pub mod duty;
pub mod kind_lifecycle;
pub mod lease;
