//! Loopback stand-ins for the systems allclear talks to: for `demo`, tests and benches.
//!
//! They keep the rules of the real systems that our promises depend on, and can break on demand. They are no proof
//! about the real systems: the adapter tests compare them with independent peers where there is one.
#![allow(
    clippy::disallowed_methods,
    reason = "these stand for other people's servers, which have a clock of their own and end with the world they are in"
)]
#![allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "objects and counts are of the stand-ins' own making; reading a JSON value by index never panics"
)]

pub mod board;
pub mod cloudfront;
pub mod edge;
pub mod forge;
pub mod git;
pub mod group;
pub mod http;
pub mod kubernetes;
pub mod proxy;
pub mod receiver;
pub mod redis_server;
pub mod world;
