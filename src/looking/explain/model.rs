//! What `explain` answers, before it is text: the same structure is printed for people and, as JSON, for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::looking::Section;
use crate::looking::layout::Tone;
use crate::looking::whose::Whose;
use kernel::id::{Kind, WorkloadId};
use purge::agreement::tally::Tally;
use purge::rollouts::rollout::{PurgeSummary, Stage};

/// Everything about one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub workload: WorkloadId,
    /// How it is, in one sentence.
    pub state: String,
    #[serde(skip)]
    pub tone: Tone,
    /// What happens next, in one sentence.
    pub next: String,
    /// Why none of this happens by itself, or why that is unknown: no replica works, or that could not be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// What a purge would hit as things are, in one sentence; `None` where that is not known.
    pub would: Option<String>,
    /// The object in the cluster.
    pub deployment: Section<DeploymentSeen>,
    /// What allclear knows of it; `None` if there is no record.
    pub record: Section<Option<RecordSeen>>,
    /// How the members of the group stand towards it; `None` while alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Section<GroupSeen>>,
    /// The hosts it is reached by.
    pub site: Section<SiteSeen>,
    /// The distributions that serve them.
    pub distributions: Section<DistributionsSeen>,
    pub paths: Section<PathsSeen>,
    /// Whether the edge is looked at after its purges, and how.
    pub proof: Section<ProofSeen>,
    /// Webhooks on their way and dead letters.
    pub webhooks: Section<Vec<WebhookSeen>>,
    /// What cannot be used about it: bad annotations, mostly.
    pub conditions: Vec<String>,
    /// The source of the settings.
    pub settings: Whose,
}

/// The object in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeploymentSeen {
    /// Its kind, where that is not the one in the name of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<Kind>,
    /// The image of each container, init containers as `init:name`.
    pub images: Section<BTreeMap<String, String>>,
    pub desired: u32,
    pub total: u32,
    /// Pods of the newest template.
    pub updated: u32,
    /// Pods that have been ready long enough.
    pub available: u32,
    /// What the rollout waits for; `None` when every pod is of the newest template and available.
    pub waits_for: Option<String>,
    /// Why the pods themselves could not be asked, where they would have had something to say.
    pub pods_missing: Option<String>,
    /// Its owner has taken it out, by `allclear.dev/enabled: "false"`.
    pub disabled: bool,
}

/// What allclear knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordSeen {
    /// The number of its newest rollout.
    pub rollout: u64,
    /// `rolling`, `complete`, `failed` or `withdrawn`.
    pub phase: &'static str,
    /// Where it is on its way.
    pub stage: Stage,
    /// The images it was recorded with.
    pub version: String,
    /// The last change of version in words.
    pub change: String,
    /// The version the edge was last made to agree with, where that is known.
    pub settled: Option<String>,
    /// The purges of open votes.
    pub purges: Vec<PurgeSummary>,
    /// A purge that was asked for, and is made with this rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    pub votes: usize,
    /// The last rollout that was purged, in words.
    pub last_purge: Option<String>,
    /// How the last rollouts ended, newest first.
    pub history: Vec<String>,
}

/// How the members of the group stand towards it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupSeen {
    /// Each member's part, by its record as published.
    pub tally: Tally,
    /// Boards that could not be asked, and why.
    pub troubles: Vec<String>,
}

/// The hosts it is reached by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteSeen {
    /// Each host, with where it came from, in words.
    pub hosts: BTreeMap<String, Vec<String>>,
    /// Load balancers that lead to it without naming a host.
    pub load_balancers: Vec<String>,
    /// What looked like a host and is none.
    pub rejected: Vec<Rejected>,
    /// Why some of what routes could not be read; hosts of it are not here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Caches between that are asked before a purge of these hosts, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
}

/// What looked like a host and is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Where it was found.
    pub place: String,
    /// Why it was left out.
    pub why: String,
}

/// The distributions that serve it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DistributionsSeen {
    /// Its owner named them by annotation, so its hosts do not matter.
    pub named: bool,
    /// Those that are purged.
    pub matched: Vec<DistributionSeen>,
    /// Those beyond a bound that all workloads have, and which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<DistributionSeen>,
    /// Those that would match if they were not disabled, staging or for distribution tenants only.
    pub skipped: Vec<DistributionSeen>,
    /// Hosts and load balancers no distribution serves.
    pub unmatched: Vec<String>,
    /// Distributions in the account; `None` if it was not necessary, or not possible, to list them.
    pub listed: Option<usize>,
    /// Not all that may name its hosts could be read, so there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_part: bool,
    /// The AWS accounts that could not be listed, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
    /// Why the distribution tenants are not known, so that there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DistributionSeen {
    pub id: String,
    /// The AWS account that it is in, where accounts are configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Its own domain name, where known.
    pub domain: Option<String>,
    /// Why it matches, or why it does not, in words.
    pub why: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathsSeen {
    /// Paths, and cache tags with a leading `#`.
    pub items: Vec<String>,
    /// Where they are from: `annotation` or `configuration`.
    pub from: &'static str,
    /// Whether the paths that routes send to it are among them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_routes: bool,
    /// The hosts of which routes send it less than all; where these are what is purged, all of its hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RoutedSeen>,
}

/// What routes send to it of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoutedSeen {
    pub host: String,
    /// No others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Why it may be all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

/// Whether the edge is looked at after a purge, and how. Each `…from` is `annotation` or `configuration`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProofSeen {
    pub enabled: bool,
    pub from: &'static str,
    /// `None` where nobody looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<LookSeen>,
}

/// How the edge is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LookSeen {
    /// Of each host.
    pub paths: Vec<String>,
    pub paths_from: &'static str,
    /// By which answers are compared with those of new pods; `None`: by their age alone. Always an annotation.
    pub marker: Option<String>,
    /// Further purges that may follow; always of the configuration.
    pub again_max: u8,
    /// The first of them is made so long after the purge in any case.
    pub again_after_s: Option<u32>,
}

/// One webhook on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookSeen {
    pub id: String,
    pub hook: String,
    pub kind: &'static str,
    pub attempts: u32,
    /// Why it was given up; `None` while it is still tried.
    pub given_up: Option<String>,
}
