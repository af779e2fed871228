//! What people are told, and how it reaches them.

pub mod delivery;
pub mod notice;
pub(crate) mod telling;
