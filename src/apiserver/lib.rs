//! The API server of one cluster, for all who ask it something: what there is to connect to, one request, a list, a watch.
//!
//! What is read is handed on as bytes, or object by object through a decoder of the caller's.
//!
//! Not for what objects mean.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

mod call;
mod connect;
mod discovery;
mod failure;
mod lines;
mod list;
mod manner;
mod pace;
mod pieces;
mod proxy;
mod reach;
mod server;
mod text;
mod watch;

use std::time::Duration;

pub use call::{Answer, Api, CallError};
pub use connect::{Clients, Error as ConnectError, Options, connect, connect_in_pod, connect_judged};
pub use failure::{Collection, NAMESPACES, Resource, unusable};
pub use list::LIST_BYTES_MAX;
pub use reach::{Reach, proofs};
pub use server::ServerSays;
pub use text::{Decoder, Name, Reading, is_object_name};
pub use watch::{Look, Tempo, Watches};

/// The target of our log lines. A level alone, as most have in `log.level`, is about targets that begin with `allclear`.
const LINES: &str = "allclear::apiserver";

/// Longest wait for an answer to a single request.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Most bytes of one object. The API server refuses requests above 3 MiB; controllers add to the status afterwards.
const OBJECT_BYTES_MAX: usize = 16 * 1024 * 1024;
