//! Where the messages to the singletons go. It names messages and no actor, so the actors that hold it need not know each
//! other.

use actix::{Message, Recipient};

use crate::actors::looks::{AskEdge, LeaveEdge};
use crate::actors::message::{
    Absent, Follows, Forget, LedgerLost, MatchPlan, PlaceOrder, Publish, ResendDeliveries, RetryPurges, Show,
    TellNotice,
};
use kernel::id::Origin;

/// Where each message goes, by its name.
#[derive(Clone)]
pub struct Directory {
    /// To the group's broker.
    pub publish: Recipient<Publish>,
    /// To the group's broker.
    pub show: Recipient<Show>,
    /// To the group's broker.
    pub absent: Recipient<Absent>,
    /// To the group's broker.
    pub follows: Recipient<Follows>,
    /// To the group's broker.
    pub forget: Recipient<Forget>,
    pub match_plan: Recipient<MatchPlan>,
    pub place_order: Recipient<PlaceOrder>,
    pub retry: Recipient<RetryPurges>,
    pub edge: Edge,
    pub outbox: Outbox,
    pub ledger_lost: Recipient<LedgerLost>,
}

/// To the sender of webhooks.
#[derive(Clone)]
pub struct Outbox {
    pub tell: Recipient<TellNotice>,
    pub resend: Recipient<ResendDeliveries>,
}

/// To the invalidator, of looks at the edge.
#[derive(Clone)]
pub struct Edge {
    pub ask: Recipient<AskEdge>,
    pub leave: Recipient<LeaveEdge>,
}

impl Directory {
    /// See [`report_lost`].
    pub fn report_lost(&self, origin: &Origin) {
        report_lost(&self.ledger_lost, origin);
    }
}

/// Tells root that the ledger of this origin no longer exists. The message may be lost: the next write finds out again.
pub fn report_lost(root: &Recipient<LedgerLost>, origin: &Origin) {
    let _ = root.try_send(LedgerLost(origin.clone()));
}

/// Root → watcher → rollout: a singleton was rebuilt and has forgotten what it was asked. This is the new directory.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct PeersRestarted(pub Directory);
