//! Fuzz targets: every decoder of bytes that others wrote, and what must hold of it whatever they wrote.
//!
//! A target calls what production calls, with the transport replaced and nothing else. "No panic" alone would be weak, so each
//! also holds its decoder to a second thing: what was read can be written and read again; two ways to the same answer agree; what
//! is kept is no larger than it may be.
//!
//! [`TARGETS`] is the one list. `fuzz/` runs each under libFuzzer, `run/main.rs` all of them on a stable toolchain, where memory
//! and time of each input are bounded too. The corpus is in `fuzz/corpus`, a folder for each target.
//!
//! Not for what decoded values mean; that is the tests of those who use them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "these are tests: what goes wrong in one shall fail it"
)]

mod answers;
mod api;
mod boards;
mod cluster;
mod config;
mod forges;
mod git;
mod hooks;
mod ledger;
mod objects;
mod plans;
mod shown;
mod site;
mod texts;

/// A decoder and what must hold of it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: that of its corpus, and of its program under `fuzz/`.
    pub name: &'static str,
    /// Panics where something does not hold of these bytes. True where they were accepted for what they should be: a target whose
    /// good inputs are refused would look at nothing.
    pub check: fn(&[u8]) -> bool,
}

pub const TARGETS: [&[Target]; 13] = [
    texts::TARGETS,
    plans::TARGETS,
    config::TARGETS,
    boards::TARGETS,
    ledger::TARGETS,
    cluster::TARGETS,
    site::TARGETS,
    objects::TARGETS,
    git::TARGETS,
    forges::TARGETS,
    answers::TARGETS,
    hooks::TARGETS,
    shown::TARGETS,
];

/// All targets, one after the other.
pub fn targets() -> impl Iterator<Item = Target> {
    TARGETS.into_iter().flatten().copied()
}

/// Runs one target: the whole of a program under `fuzz/`.
pub fn check(name: &str, bytes: &[u8]) -> bool {
    let target = targets().find(|target| target.name == name).expect("a target of that name");
    (target.check)(bytes)
}

const fn target(name: &'static str, check: fn(&[u8]) -> bool) -> Target {
    Target { name, check }
}

/// The bytes as text: what is not UTF-8 is replaced, as our readers of answers do.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
