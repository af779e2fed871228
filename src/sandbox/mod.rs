//! Loopback stand-ins for the systems allclear talks to: for `demo`, tests and benches.
//!
//! They keep the rules of the real systems that our promises rest on, and can be told to break. They are no proof about
//! the real systems: the adapter tests compare them with independent peers where there is one.

pub mod cloudfront;
pub mod http;
pub mod kubernetes;
pub mod life;
pub mod receiver;
pub mod world;
