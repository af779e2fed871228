//! The metrics of our own doors.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::labels::{ByAnswer, ThreeLabels};

/// What happens at our own doors.
#[derive(Default)]
pub struct Doors {
    connections: Family<ThreeLabels, Counter>,
    requests: Family<ByAnswer, Counter>,
}

impl Doors {
    pub(super) fn register(&self, registry: &mut Registry) {
        let Self { connections, requests } = self;
        registry.register("http_connections_closed", "Connections closed for want of places", connections.clone());
        registry.register("hook_requests", "Requests of other programs, by endpoint and answer", requests.clone());
        for door in ["probes", "page", "hooks"] {
            for bound in ["peer", "all"] {
                for closed in ["idle", "new"] {
                    drop(connections.get_or_create(&[("door", door), ("bound", bound), ("closed", closed)]));
                }
            }
        }
    }

    /// A connection to a door was closed, because its peer (`peer`) or all (`all`) had as many as they may: one that was `idle`,
    /// or, where none was, the `new` one.
    pub fn connection_closed(&self, door: &'static str, bound: &'static str, closed: &'static str) {
        self.connections.get_or_create(&[("door", door), ("bound", bound), ("closed", closed)]).inc();
    }

    /// A request of another program was answered.
    pub fn hook_request(&self, door: &'static str, code: u16) {
        self.requests.get_or_create(&ByAnswer { door, code }).inc();
    }
}
