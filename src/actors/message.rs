//! The protocol between the actors, on one page. It names no actor. Elsewhere are `PeersRestarted`, beside the directory it carries;
//! moves of traffic (`traffic`); looks at the edge (`looks`); and what the actors of Pipelines and of Repos send only each other (`promoting::message`, `tending`).

use std::collections::BTreeSet;

use actix::{Message, Recipient};

use crate::actors::observation::Observation;
use kernel::id::{Kind, Origin, PipelineId, Reference, RepoId, Seq, Subject, WorkloadId};
use kernel::names::selector::LabelSelector;
use kernel::replica::duty::Singleton;
use kernel::replica::kind_lifecycle::Part;
use kernel::watches::watch;
use notices::delivery::{NotTaken, Resend};
use notices::notice::Notice;
use objects::apps::app::ClusterKey;
use purge::agreement::group::NumberedView;
use purge::bounds::plan::Plan;
use purge::purges::catalog::{Found, NotFound};
use purge::purges::purge::{Order, Progress};
use purge::records::record::{Record, Records};
use purge::workloads::readiness::Pods;
use purge::workloads::workload::Workload;

/// Watcher → rollout: the workload was seen, or (`None`) is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Sighted(pub Option<Box<Workload>>);

/// Watcher, rollout, cluster group → root: the ledger of this origin no longer exists. Repeated whenever a write or a reading shows it.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct LedgerLost(pub Origin);

/// Rollout → group: this is durable now. The answer is the group's records; the follower gets them again whenever they change.
#[derive(Message)]
#[rtype(result = "NumberedView")]
pub struct Publish {
    pub workload: WorkloadId,
    pub record: Box<Record>,
    /// The rollout that asks.
    pub follower: Follower,
}

/// A rollout, as the group knows it.
#[derive(Clone)]
pub struct Follower {
    pub view_reported: Recipient<ViewReported>,
    /// Where the group asks how the rollout stands.
    pub observe: Recipient<Observe>,
}

/// Group → rollout: the group's records, or what holds them up, changed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ViewReported(pub NumberedView);

/// Rollout → group: the cluster does not have the workload, and no longer votes for any rollout of it up to this `seq`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Absent(pub WorkloadId, pub Seq);

/// Group → root → watcher: another member waits for our part in a rollout of this workload; start one, even if we do not have it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Wanted(pub WorkloadId);

/// Watcher → group: these records are durable now, and no rollout waits for the group's.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Show(pub Records);

/// Watcher → group: these kinds of workloads are followed. Repeated with each sweep, for a group that was rebuilt.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Follows(pub BTreeSet<Kind>);

/// Rollout → group: the record is removed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Forget {
    pub workload: WorkloadId,
    /// The last `seq` of its record. A workload that is created again gets a higher one.
    pub seq: Seq,
    /// The last revision of its record.
    pub revision: u64,
}

/// Which distributions serve a plan, or why that is unknown; `None` if the invalidator was rebuilt meanwhile.
pub type Matched = Option<Result<Found, NotFound>>;

/// Rollout → invalidator: which distributions serve this plan?
#[derive(Message)]
#[rtype(result = "Matched")]
pub struct MatchPlan {
    /// The workload's.
    pub namespace: String,
    pub plan: Box<Plan>,
    /// By a listing that begins from now on.
    pub newer: bool,
}

/// Watcher → invalidator: its owner wants the refused purges of this workload to be tried now.
#[derive(Message)]
#[rtype(result = "()")]
pub struct RetryPurges(pub WorkloadId);

/// Rollout → invalidator: carry this out, and report.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PlaceOrder {
    pub order: Box<Order>,
    /// Where reports of its progress go.
    pub report_to: Recipient<PurgeReported>,
}

#[derive(Message)]
#[rtype(result = "()")]
pub struct PurgeReported(pub Reference, pub Progress);

/// Rollout → webhook: deliver this. `Ok` once every delivery of it is durable.
#[derive(Message)]
#[rtype(result = "Result<(), NotTaken>")]
pub struct TellNotice(pub Box<Notice>);

/// Rollout → pod watcher: report the pods of this version.
#[derive(Message)]
#[rtype(result = "()")]
pub struct FollowPods {
    /// Which workload asks; a second request of the same one replaces the first.
    pub workload: WorkloadId,
    /// Which pods are its own.
    pub selector: LabelSelector,
    /// Which of them count.
    pub version: kernel::names::image::Version,
    /// Where the reports go.
    pub report_to: Recipient<PodsReported>,
}

/// Pod watcher → rollout: how its pods are, or that they cannot be seen for a time.
#[derive(Message)]
#[rtype(result = "()")]
pub struct PodsReported(pub Option<Pods>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// One of those that exist once.
    Singleton(Singleton),
    /// The rollout of this workload.
    Rollout(WorkloadId),
    /// A part of what Pipelines need.
    Part(Part),
    /// The actor of this Pipeline.
    Pipeline(PipelineId),
    /// The actor of this Repo.
    Repo(RepoId),
    /// The reader of this cluster.
    Cluster(ClusterKey),
}

impl Who {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Singleton(singleton) => singleton.name(),
            Self::Rollout(_) => "rollout",
            Self::Part(part) => part.name(),
            Self::Pipeline(_) => "pipeline",
            Self::Repo(_) => "repo",
            Self::Cluster(_) => "leaf",
        }
    }
}

/// How an actor ended. Those that exist once end in no other way than `Crashed` and `Drained`.
pub type End = watch::End<Record>;

/// Child → parent, when the child is dropped.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Died {
    pub who: Who,
    pub end: End,
}

/// Watchers → webhooks: the owner of the subject asks for deliveries again. May be repeated.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ResendDeliveries(pub Subject, pub Resend);

/// To those that write records, and to root: stop taking work, finish the writes under way, end.
#[derive(Message, Clone, Copy)]
#[rtype(result = "()")]
pub struct Drain;

/// To any actor: show yourself.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Observation")]
pub struct Observe;
