//! Notices to people, and their delivery.

pub mod delivery;
pub mod notice;
pub(crate) mod telling;
