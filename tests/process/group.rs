//! Several clusters behind one CDN: what one process cannot show.

mod api;
pub mod field;
mod kills;
mod members;
pub mod oracles;
mod outcomes;
mod partitions;
mod redis;
mod skew;
mod table;
mod timeline;
mod watches;
