//! All purges: whose turn it is, what they come to, and which distributions there are; `accounts` where they are of several AWS accounts.

pub mod accounts;
pub mod bill;
pub mod catalog;
pub mod purge;
