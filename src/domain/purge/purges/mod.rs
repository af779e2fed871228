//! All purges of one account: whose turn it is, what they come to, and which distributions there are.

pub mod catalog;
pub mod purge;
