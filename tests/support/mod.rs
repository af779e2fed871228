//! What several test binaries share: peers that are other people's programs.
//!
//! A binary uses what it needs; the rest of this is dead code to it.
#![allow(dead_code, reason = "see above")]

pub mod moto;
pub mod redis;
