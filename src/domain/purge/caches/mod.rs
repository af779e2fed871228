//! Caches between the pods and the CDN, inside the cluster: whichever of them still has the old version would fill a purged edge with it
//! again. So each is asked to let go before a member votes, and before the edge is purged once more.
//!
//! ```text
//! what is purged ──demand──▶ one request for each host and path ──asking──▶ every endpoint that serves has answered
//!                                                                  │            or Cache::timeout has passed, which is told
//!                                                                  └── again for what joined meanwhile, and for what failed
//! ```
//!
//! Here are what the operator configures, what one purge asks of it, and how the answers are judged. Not for requests and endpoints, which
//! an adapter knows; nor for when, which is `crate::rollouts`'.

pub mod asking;
pub mod demand;
pub mod form;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use kernel::names::host::Host;

use form::Form;

/// One cache, as the operator describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cache {
    /// Its name in words and metrics.
    pub name: String,
    /// Whose endpoints are asked.
    pub service: Service,
    pub method: Method,
    /// The target of a request.
    pub path: Form,
    /// Beside `Host`, which is the host that is asked about unless one of these is.
    pub headers: Vec<(String, Form)>,
    /// What it has pages of; empty: of every host.
    pub hosts: BTreeSet<Host>,
    /// Statuses beside 2xx that mean done: what it answers where nothing was cached.
    pub gone: BTreeSet<u16>,
    /// It understands a path that ends in a star although its method names one page.
    pub wildcard: bool,
    /// How long a vote waits for it.
    pub timeout: Duration,
}

impl Cache {
    /// Whether one request can mean all that a star stands for.
    pub const fn takes_stars(&self) -> bool {
        self.wildcard || matches!(self.method, Method::Ban)
    }

    /// Whether an answer with this status says that nothing old is left.
    pub fn is_done(&self, status: u16) -> bool {
        (200..300).contains(&status) || self.gone.contains(&status)
    }
}

/// Its name and where it is.
impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.service)
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    pub namespace: String,
    pub name: String,
    pub port: Port,
}

/// How a port is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    Number(u16),
    Name(String),
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, port } = self;
        write!(f, "{namespace}/{name}:{port}")
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The method of a request. The first two are of no standard: caches agree on them by custom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// What matches is not served any more.
    Ban,
    /// One page goes.
    Purge,
    /// The same, at an address that means it.
    Get,
}

impl Method {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ban => "BAN",
            Self::Purge => "PURGE",
            Self::Get => "GET",
        }
    }
}
