//! What the actors show of themselves. The status page, the API, commands and tests read the same thing.

mod webhooks;

use serde::{Deserialize, Serialize};

use kernel::id::{Reference, WorkloadId};
use kernel::names::distribution::DistributionId;
use objects::pipeline::view::View;
use objects::repo::view as repo;
use purge::agreement::tally::Tally;
use purge::broker::Seen;
use purge::rollouts::part::PartsSeen;
use purge::rollouts::rollout::Summary;
use purge::rollouts::unwell::Unwell;

pub use webhooks::{DeliverySeen, LastSeen, ReceiverSeen};

/// What an actor shows of itself; the status page, the API and tests read the same thing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Observation {
    /// Whether the workloads of the cluster have been listed since the start.
    pub synced: bool,
    /// Why changes of workloads are not noticed at present; `None` if they are.
    pub blind: Option<String>,
    /// The replica that works while this one stands by.
    pub standing_by: Option<String>,
    /// What is wrong with the outside, in words; empty when nothing is.
    pub troubles: Vec<String>,
    /// Workloads with a record.
    pub workloads: usize,
    pub rollouts: Vec<Summary>,
    /// Rollouts that ended lately, newest first.
    pub recent: Vec<Summary>,
    /// Workloads in quarantine: their actor crashed too often, or wrote its record over and over.
    pub quarantined: Vec<WorkloadId>,
    /// Workloads whose newest rollout did not end well.
    pub unwell: Vec<Unwell>,
    /// Purges on their way.
    pub purges: Vec<PurgeSeen>,
    /// Distributions known, and for how many seconds; `None` before the first listing.
    pub distributions: Option<(usize, u64)>,
    /// What was purged this month in each AWS account, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bill: Vec<String>,
    /// Rollouts that wait for a listing of the distributions.
    pub asking: usize,
    /// Webhook deliveries on their way, and dead letters.
    pub deliveries: Vec<DeliverySeen>,
    /// The receivers of webhooks.
    pub receivers: Vec<ReceiverSeen>,
    /// How the members of the group stand towards the workloads that are in flight; empty while alone.
    pub tallies: Vec<Tally>,
    /// The part of each member in the same workloads, and in those whose rollout has ended here lately; empty while alone.
    pub parts: Vec<PartsSeen>,
    /// The group; `None` while alone. In the API its name is next to it, as `group`.
    #[serde(rename = "agreement")]
    pub group: Option<Seen>,
    /// Promoting; `None` while nothing here looks at Pipelines: the feature is off, its kind is absent, or another replica leads.
    pub promoting: Option<PromotingSeen>,
    /// Running commits; `None` while nothing here looks at Repos.
    pub running: Option<RunningSeen>,
}

/// What is run for commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningSeen {
    pub repos: Vec<repo::View>,
    /// What is wrong with Repos as a whole, in words. Purging does not depend on it.
    pub troubles: Vec<String>,
}

/// What is promoted, and the clusters that are looked at for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotingSeen {
    pub pipelines: Vec<View>,
    /// Every cluster in use; this one is among them.
    pub leaves: Vec<LeafSeen>,
    /// What is wrong with promoting as a whole, in words. Purging does not depend on it.
    pub troubles: Vec<String>,
}

/// A cluster whose apps are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafSeen {
    /// The way people say it: `this cluster`, or `Secret/shop/eu-1`.
    pub name: String,
    /// Watches that are open.
    pub watches: usize,
    /// What is wrong with it, in words.
    pub troubles: Vec<String>,
}

/// One purge on its way.
#[derive(Clone, Debug, Serialize)]
pub struct PurgeSeen {
    pub reference: Reference,
    pub distribution: DistributionId,
    /// How far it is, in words.
    pub state: String,
}

impl Observation {
    /// Adds what another actor shows.
    pub fn absorb(&mut self, other: Self) {
        let Self {
            synced,
            blind,
            standing_by,
            troubles,
            workloads,
            rollouts,
            recent,
            quarantined,
            unwell,
            purges,
            distributions,
            bill,
            asking,
            deliveries,
            receivers,
            tallies,
            parts,
            group,
            promoting,
            running,
        } = other;
        self.synced |= synced;
        self.blind = self.blind.take().or(blind);
        self.standing_by = self.standing_by.take().or(standing_by);
        self.troubles.extend(troubles);
        self.workloads += workloads;
        self.rollouts.extend(rollouts);
        self.recent.extend(recent);
        self.quarantined.extend(quarantined);
        self.unwell.extend(unwell);
        self.purges.extend(purges);
        self.distributions = self.distributions.or(distributions);
        self.bill.extend(bill);
        self.asking += asking;
        self.deliveries.extend(deliveries);
        self.receivers.extend(receivers);
        self.tallies.extend(tallies);
        self.parts.extend(parts);
        self.group = self.group.take().or(group);
        if let Some(promoting) = promoting {
            self.promoting.get_or_insert_default().absorb(promoting);
        }
        if let Some(RunningSeen { repos, troubles }) = running {
            let all = self.running.get_or_insert_default();
            all.repos.extend(repos);
            all.repos.sort_by(|a, b| a.id.cmp(&b.id));
            all.troubles.extend(troubles);
        }
    }
}

impl PromotingSeen {
    /// Adds what another actor shows.
    pub fn absorb(&mut self, other: Self) {
        let Self { pipelines, leaves, troubles } = other;
        self.pipelines.extend(pipelines);
        self.pipelines.sort_by(|a, b| a.id.cmp(&b.id));
        self.leaves.extend(leaves);
        self.leaves.sort_by(|a, b| a.name.cmp(&b.name));
        self.troubles.extend(troubles);
    }
}
