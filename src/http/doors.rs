//! The doors: probes and metrics on the pod's address, the page on loopback, and, where configured, requests of other programs.
//!
//! Each is a server of its own, with its own thread and places: whatever is connected to the page can take none of the
//! kubelet's. What the doors show, and to whom it is none of their business, is in `mod.rs`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::net::TcpStream;
use actix_rt::task::JoinHandle;
use actix_web::dev::{Server, ServerHandle};
use actix_web::{App, HttpServer, web};

use super::guests::{Bounds, Guests};
use crate::telemetry::Metrics;

/// How long open connections are waited for at the end, in seconds; what is asked here is answered in milliseconds.
const STOP_WITHIN_SECONDS: u64 = 1;

/// Connections that actix may hold beyond the bound of a door: those that are closed and whose task has not run since.
/// While there are more, the next ones wait in the backlog of the system, for the millisecond that takes.
const CLOSING_MAX: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `/livez`, `/readyz` and `/metrics`, and nothing that names a workload.
    Probes,
    Page,
    /// Requests of other programs, which lead to marks on objects (`hooks`).
    Hooks,
}

impl Door {
    /// The label of metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::Probes => "probes",
            Self::Page => "page",
            Self::Hooks => "hooks",
        }
    }

    /// The key of its address, and the variable.
    const fn setting(self) -> &'static str {
        match self {
            Self::Probes => "http.listen (ALLCLEAR__HTTP__LISTEN)",
            Self::Page => "http.page (ALLCLEAR__HTTP__PAGE)",
            Self::Hooks => "hooks.listen (ALLCLEAR__HOOKS__LISTEN)",
        }
    }

    /// At a few kilobytes for each connection this bounds what strangers can make us hold to about a megabyte.
    const fn bounds(self) -> Bounds {
        match self {
            // A kubelet has two probes under way at most and closes each connection; two Prometheus servers keep one
            // each. Where addresses are translated, several of these share one.
            Self::Probes => Bounds { all: 64, peer: 8 },
            // By port-forward all come from 127.0.0.1: ten browsers with six connections each.
            Self::Page => Bounds { all: 128, peer: 64 },
            // Two replicas of an Ingress controller keep some connections each; all others open one for a request. Each may send a
            // body of 256 KiB: 16 MiB in all.
            Self::Hooks => Bounds { all: 64, peer: 32 },
        }
    }

    /// How long an idle connection is kept.
    const fn keep_alive(self) -> Duration {
        match self {
            // A kubelet's next probe is on a new connection, and a Prometheus server that finds its own closed opens
            // another.
            Self::Probes => Duration::from_secs(5),
            // One refresh of the page comes every two seconds.
            Self::Page => Duration::from_secs(15),
            // An Ingress controller keeps its connections for the next request.
            Self::Hooks => Duration::from_secs(30),
        }
    }

    /// How long a client may take to send the head of a request.
    const fn request_within(self) -> Duration {
        match self {
            // Half of what the probes of deploy/base wait in all.
            Self::Probes => Duration::from_millis(2_500),
            Self::Page | Self::Hooks => Duration::from_secs(5),
        }
    }
}

/// Where the doors are.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Of [`Door::Probes`]: the pod's.
    pub probes: SocketAddr,
    /// Of [`Door::Page`]: loopback.
    pub page: SocketAddr,
    /// Of [`Door::Hooks`]; `None`: it is not there.
    pub hooks: Option<SocketAddr>,
}

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}: {cause}; set {} to a free address", .door.setting())]
pub struct ListenError {
    pub door: Door,
    pub address: SocketAddr,
    pub cause: io::Error,
}

pub(super) struct Open {
    pub address: SocketAddr,
    handle: ServerHandle,
    server: JoinHandle<io::Result<()>>,
}

/// A door that has its address and accepts no connection yet.
pub(super) struct Bound {
    address: SocketAddr,
    run: Box<dyn FnOnce() -> Server>,
}

/// Takes the address of a door, at which `answering` says how requests are answered.
pub(super) fn bind(
    door: Door,
    address: SocketAddr,
    metrics: Arc<Metrics>,
    answering: impl Fn(&mut web::ServiceConfig) + Clone + Send + 'static,
) -> Result<Bound, ListenError> {
    let bounds = door.bounds();
    let guests = Guests::new(door.name(), bounds, metrics);
    let server = HttpServer::new(move || App::new().app_data(web::Data::new(door)).configure(&answering))
        .on_connect(move |io, data| {
            if let Some(guest) = io.downcast_ref::<TcpStream>().and_then(|stream| guests.enter(stream)) {
                data.insert(guest);
            }
        })
        .workers(1)
        .max_connections(bounds.all + CLOSING_MAX)
        .keep_alive(door.keep_alive())
        .client_request_timeout(door.request_within())
        .shutdown_timeout(STOP_WITHIN_SECONDS)
        .disable_signals()
        .bind(address)
        .map_err(|cause| ListenError { door, address, cause })?;
    let address = server.addrs().first().copied().unwrap_or(address);
    Ok(Bound { address, run: Box::new(move || server.run()) })
}

impl Bound {
    pub fn open(self) -> Open {
        let server = (self.run)();
        let handle = server.handle();
        #[expect(clippy::disallowed_methods, reason = "not detached: `Open::close` awaits its end")]
        let server = actix_rt::spawn(server);
        Open { address: self.address, handle, server }
    }
}

impl Open {
    /// Stops listening, lets the requests under way end, and ends.
    pub async fn close(self) {
        let Self { address, handle, server } = self;
        handle.stop(true).await;
        match server.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%address, %error, "the http server ended badly"),
            Err(error) => tracing::warn!(%address, %error, "the http server crashed"),
        }
    }
}
