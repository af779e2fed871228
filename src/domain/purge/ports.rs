//! The ports of the deciding half to the outside, as traits the shell provides and tests fake.
//!
//! A port never decides: it performs the call within a bound of time and reports. Every method of every port answers;
//! an adapter that could wait for ever has a time-out of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::agreement::roster::{Heartbeat, Pin};
use crate::caches::asking;
use crate::records::record::{Record, Records};
use crate::site::{Age, Gathered, RouteClaim};
use crate::workloads::beside::Beside;
use crate::workloads::readiness::Pod;
use crate::workloads::serving::Serving;
use crate::workloads::workload::Workload;
use kernel::floor::Floor;
use kernel::id::{self, InvalidationId, Member, Origin, Reference, Seq, Subject, WorkloadId};
use kernel::machine::Timestamp;
use kernel::names::account::AccountName;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kernel::names::selector::Labels;
use kernel::remark::{Remark, Remarked};
use kernel::replica::lease::{Claim, Replica};
use kernel::unreadable::Unreadable;
use kernel::watches::horizon::Mark;
use kernel::watches::listed::{Listed, Scope};
use kernel::watches::lives::LifeNote;
use notices::delivery::{Delivery, Reply};
use notices::notice::{Kind, Notice};
use proof::asked::{Answers, Question};

pub use kernel::answer::{Flow, PortError, Reason, Retry};

/// Time. The only way to it.
pub trait Clock: Send + Sync {
    /// This process's own monotonic clock.
    fn now(&self) -> Timestamp;
    /// Milliseconds since the Unix epoch, for what people and receivers read. No decision uses it but through [`objects::Calendar`].
    fn wall_ms(&self) -> i64;
}

/// Randomness. The only way to it.
pub trait Random: Send + Sync {
    /// 64 unpredictable bits, never the same twice from one of these.
    fn bits(&self) -> u64;
}

/// The news of a watch of workloads.
#[derive(Clone, Debug)]
pub enum Sight {
    /// A new listing of a scope begins: what of it is not seen before its [`Sight::Synced`] does not exist any more.
    Restarted { scope: Scope },
    /// A workload as it is now.
    Seen(Box<Workload>),
    /// An object that cannot be read as a workload; the others are not affected.
    Unreadable(WorkloadId, Unreadable),
    /// A workload was deleted.
    Gone(WorkloadId),
    /// The listing of a scope is complete. Also said when a watch that was in [`Sight::Trouble`] goes on without a new
    /// listing.
    Synced {
        scope: Scope,
        /// Everything in view has been listed at least once.
        all: bool,
    },
    /// We have no right to list a scope of a kind that may be left out, or it could not be listed for a minute from the start. It is tried
    /// again; the others go on.
    Refused {
        scope: Scope,
        error: PortError,
        /// Everything else in view has been listed at least once.
        all: bool,
    },
    /// The watch of a scope failed and is being started again, after a back-off of its own; the others go on.
    Trouble { scope: Scope, error: PortError },
    /// The whole cluster was set back: it was restored from a backup while we watched. Everything is listed again after this.
    SetBack {
        /// How far it had got.
        from: Mark,
        /// Where it is now.
        to: Mark,
    },
}

/// The news of a watch of pods.
#[derive(Clone, Debug)]
pub enum PodSight {
    /// A new listing begins.
    Restarted,
    /// A pod as it is now, with its labels for the workload's selector.
    Seen(Labels, Pod),
    /// A pod was deleted, by name.
    Gone(String),
    /// All pods have been seen at least once since [`PodSight::Restarted`].
    Synced,
    /// The watch failed and is being started again.
    Trouble(PortError),
}

/// The news of the watches of what routes: Services, Ingresses and routes.
#[derive(Clone, Debug)]
pub enum RoutingSight {
    /// What it selects, leads to, or takes is other than before, or it is new or gone, in this namespace.
    Changed { namespace: String },
    /// Everything of this kind has been seen at least once.
    Synced { kind: &'static str },
    /// The watch of a kind failed and is being started again; the others go on. A kind that the cluster does not have is no trouble.
    Trouble { kind: &'static str, error: PortError },
}

/// The workloads of a namespace.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// The kinds that could be listed: of others it is not known what is there.
    pub kinds: BTreeSet<id::Kind>,
    pub workloads: Vec<Workload>,
    /// Those that are there and cannot be read.
    pub unread: BTreeSet<WorkloadId>,
}

/// The cluster, as far as it is read.
#[async_trait]
pub trait ClusterView: Send + Sync {
    /// Watches all workloads in scope, for ever.
    fn watch(&self) -> Flow<Sight>;
    /// Watches all that routes in scope, for ever.
    fn watch_routing(&self) -> Flow<RoutingSight>;
    /// Watches the pods of one namespace, for ever.
    fn watch_pods(&self, namespace: &str) -> Flow<PodSight>;
    /// Reads one workload afresh, not from any cache of ours or of the API server; `None` if it does not exist. An error where it is of
    /// a kind or a namespace that is not looked at: the caller takes `None` for absent.
    async fn workload(&self, id: &WorkloadId) -> Result<Option<Workload>, PortError>;
    /// Reads the workloads of one namespace once, of every kind that is followed and may be listed.
    async fn workloads(&self, namespace: &str) -> Result<Present, PortError>;
    /// The Services of one namespace with an endpoint that serves and is a pod that they do not select any more.
    async fn lagging(&self, namespace: &str) -> Result<BTreeSet<String>, PortError>;
    /// Reads the pods of one namespace once, with their labels.
    async fn pods(&self, namespace: &str) -> Result<Vec<(Labels, Pod)>, PortError>;
    /// Reads the pods of a workload afresh, not from any cache, and which of them Services send requests to.
    async fn serving(&self, workload: &Workload) -> Result<Serving, PortError>;
    /// Reads afresh which pods of other workloads get requests by the Services that lead to this one. Which those are may be some seconds
    /// old.
    async fn beside(&self, workload: &Workload) -> Result<Vec<Beside>, PortError>;
    /// Whether a Service that selects the workload's pods publishes their addresses before they are ready.
    async fn publishes_unready(&self, workload: &Workload) -> Result<bool, PortError>;
    /// Reads what may route to the workloads of one namespace, and what others take of it. Omissions are listed in it.
    async fn site_facts(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError>;
    /// The same for a person, whose rights are not allclear's: a kind that may not be listed hides no other, and is named in
    /// [`Gathered::unread`]. No decision rests on it.
    async fn site_facts_in_part(&self, namespace: &str, age: Age) -> Result<Arc<Gathered>, PortError> {
        self.site_facts(namespace, age).await
    }
    /// Reads which hosts and paths the Ingresses and routes of all namespaces take. An error if any of it cannot be read: whose a
    /// host is can only be judged by all of them.
    async fn route_claims(&self) -> Result<Arc<Vec<RouteClaim>>, PortError>;
}

/// Where Kubernetes Events go.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Publishes a notice as an Event on its workload. Publishing the same notice twice is one Event.
    async fn publish(&self, notice: &Notice, workload_uid: &str) -> Result<(), PortError>;

    /// Publishes a remark on an object of ours, at this time of the wall's clock.
    async fn remark(&self, remark: &Remark, on: &Remarked, at_ms: i64) -> Result<(), PortError>;
}

/// A compare-and-set that was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first; this is what the ledger holds now.
    #[error("the record was changed by another writer")]
    Conflict(Option<Box<Record>>),
    /// The ledger works, and has no room for this record. It stays so until there is less in it, or the record is smaller.
    #[error(transparent)]
    NoRoom(PortError),
    /// The ledger could not be asked, or it is not known whether it did it.
    #[error(transparent)]
    Unavailable(#[from] PortError),
    /// The ledger that was opened does not exist any more. Nothing can be written before [`Ledger::open`] is called again,
    /// which starts a new one under another origin: all that was built from the old one is to be thrown away first.
    #[error(transparent)]
    Lost(PortError),
}

/// The ledger's own state could not be read, or not be stored: the members of the group, the scopes that are listed,
/// the last life.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PinError {
    /// The ledger could not be asked, or it is not known whether it did it.
    #[error(transparent)]
    Unavailable(#[from] PortError),
    /// The ledger that was opened does not exist any more; see [`StoreError::Lost`].
    #[error(transparent)]
    Lost(PortError),
}

/// Everything a ledger holds.
#[derive(Clone, Debug, Default)]
pub struct LedgerContents {
    /// The identity of the ledger; another one means that an earlier ledger was lost.
    pub origin: Origin,
    pub records: Records,
    /// Records that are there and cannot be read (a newer program's, or damaged), with the reason. They are left alone:
    /// storing one of these workloads fails until a person has mended its record.
    pub unreadable: BTreeMap<WorkloadId, String>,
    /// The members of the group as they were agreed on; `None` before that, or where it cannot be read.
    pub pin: Option<Pin>,
    /// The scopes whose workloads are all on record.
    pub listed: Listed,
    /// The form that it is stored in, by the name that it has there; empty where there is only one.
    pub layout: String,
    /// The note of the life of the program before this one; `None` where it left none that can be read.
    pub life: Option<LifeNote>,
    /// The lost part of it.
    pub set_back: SetBack,
}

/// The part of a ledger that is known to be lost (decision 48).
#[derive(Clone, Debug, Default)]
pub struct SetBack {
    /// The objects, each with what is wrong with it, in words: `allclear-ledger-07 is gone`. Not those of which a ledger has taken note.
    pub lost: BTreeSet<String>,
    /// Records that may be older than what was done for them.
    pub records: BTreeSet<WorkloadId>,
}

impl SetBack {
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.records.is_empty()
    }
}

/// Where a member keeps its records: durable, compare-and-set, one writer cluster (GA-1).
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Opens the ledger, creating it if there is none, and reads everything.
    async fn open(&self) -> Result<LedgerContents, PortError>;
    /// Reads everything without changing anything; `None` if there is no ledger. For commands that only look.
    async fn peek(&self) -> Result<Option<LedgerContents>, PortError>;
    /// Reads one record, not from a cache.
    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError>;
    /// Stores `record` if the ledger still holds revision `record.revision - 1` of it (none, for revision 1). Storing what
    /// is already there succeeds, so a lost answer may simply be tried again. Writes of one moment may travel together.
    /// A new record must start above [`Ledger::floor`]; one that does not is refused as a conflict with nothing. The first number
    /// above a loss comes with another revision: see [`Floor::follows`].
    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError>;
    /// Stores many records in few writes, each as [`Ledger::store`] would; returns those that failed. For the baselines of
    /// a first start: 10,000 records cost one write for each shard.
    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError>;
    /// Removes a record of this revision and raises the floor below which no `seq` of its shard may start (decision 2).
    /// Removing what is not there succeeds.
    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError>;
    /// The number that a new record of this workload starts *above*.
    async fn floor(&self, workload: &WorkloadId) -> Result<Floor, PortError>;
    /// Leaves a number that another workload had under this name behind as a floor, so that no later record of the name begins at or
    /// below it. Where a record of the name is there, nothing happens.
    async fn leave_number(&self, name: &WorkloadId, seq: Seq) -> Result<(), StoreError> {
        match self.store(name, &Record::first(seq)).await {
            Ok(()) => self.remove(name, 1).await,
            Err(StoreError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
    /// The members of the group as they were agreed on, not from a cache; `None` before that.
    async fn pin(&self) -> Result<Option<Pin>, PinError>;
    /// Stores who the members are, if the ledger still holds `over`. Says whether it holds `pin` now; storing what is already
    /// there succeeds.
    async fn store_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError>;
    /// Remembers, for as long as the ledger lives, that every workload of these scopes is on record. Said after the last of
    /// them was written.
    async fn store_listed(&self, scopes: &BTreeSet<Scope>) -> Result<(), PinError>;
    /// Stores what this life leaves for the next, in place of what is there; with `over`, only in place of that.
    async fn store_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError>;
    /// The settings in force, as a running controller left them for commands; `None` where none did, or where a ledger keeps none.
    async fn in_force(&self) -> Result<Option<String>, PortError> {
        Ok(None)
    }
    /// Leaves the settings in force, in place of what is there. Nothing of the ledger depends on them.
    async fn store_in_force(&self, _: &str) -> Result<(), PinError> {
        Ok(())
    }
    /// The paths of this month, as they were left; `None` where none were, or where a ledger keeps none.
    async fn bill(&self) -> Result<Option<String>, PortError> {
        Ok(None)
    }
    /// Leaves the paths of this month, in place of what is there. Nothing of the ledger depends on them.
    async fn store_bill(&self, _: &str) -> Result<(), PinError> {
        Ok(())
    }
    /// All deliveries that are not finished, dead letters included.
    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError>;
    /// Stores a delivery, replacing an earlier state of the same id.
    async fn store_delivery(&self, delivery: &Delivery) -> Result<(), PortError>;
    /// Forgets a delivery; forgetting an unknown one succeeds.
    async fn remove_delivery(&self, id: &str) -> Result<(), PortError>;
}

/// The lease by which replicas of one cluster agree who works. Nothing but economy depends on it.
#[async_trait]
pub trait Lease: Send + Sync {
    fn replica(&self) -> &Replica;
    /// Reads it, not from a cache; `None` if there is none.
    async fn look(&self) -> Result<Option<Claim>, PortError>;
    /// Makes it ours, or renews it, if it is still `over` (`None`: if there is none). `None` if another replica wrote
    /// first.
    async fn take(&self, over: Option<&Claim>) -> Result<Option<Claim>, PortError>;
    /// Gives it back if it is ours, so that another takes it at once. It was `over` when it was last seen.
    async fn release(&self, over: Option<&Claim>) -> Result<(), PortError>;
}

/// An invalidation as CloudFront tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalidation {
    pub id: InvalidationId,
    /// Whether the edge has carried it out.
    pub status: InvalidationStatus,
    /// When CloudFront created it, by its clock, in milliseconds since the Unix epoch, where it says so.
    pub created_ms: Option<i64>,
}

/// CloudFront's status of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidationStatus {
    InProgress,
    Completed,
}

/// A failed call to the CDN.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CdnError {
    /// Its class, which decides the reaction.
    pub class: CdnErrorClass,
    /// The attempted action and the other side's answer; never a credential.
    pub message: String,
}

pub use crate::purges::purge::{CdnErrorClass, Found};

/// The content delivery network.
#[async_trait]
pub trait Cdn: Send + Sync {
    /// The account of this name; `None` where it is one account, without a name.
    fn account(&self, _: &AccountName) -> Option<Arc<dyn Cdn>> {
        None
    }
    /// The names of its accounts; empty where it is one, without a name.
    fn accounts(&self) -> Vec<AccountName> {
        Vec::new()
    }
    /// All distributions, all pages.
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError>;
    /// The distribution tenants of these distributions, all pages. Not called where no distribution is for distribution tenants only, so
    /// that an account without any needs no right to it.
    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError>;
    /// The distribution tenant that has this domain, if there is one.
    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError>;
    /// The header in which answers of a distribution carry their cache tags; `None` where tags are switched off. The listing does not tell.
    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError>;
    /// Creates an invalidation. The same reference with the same paths returns the earlier one.
    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError>;
    /// How far an invalidation is.
    async fn status(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<InvalidationStatus, CdnError>;
    /// When an invalidation was created, in milliseconds since the Unix epoch; `None` where that is not known. For people.
    async fn created_ms(&self, _: &DistributionId, _: &InvalidationId) -> Result<Option<i64>, CdnError> {
        Ok(None)
    }
    /// Looks for a reference among the recent invalidations of a distribution, and for what was sent under it.
    async fn find(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError>;
}

/// The edge, as visitors see it.
#[async_trait]
pub trait EdgeSight: Send + Sync {
    /// Asks one question, and new pods of the workload where both say so, within [`WAIT_MAX`](proof::asked::WAIT_MAX). What goes wrong is
    /// in a reply, in words.
    async fn ask(&self, workload: Option<&WorkloadId>, question: &Question) -> Answers;
}

/// Caches between the pods and the CDN, at their endpoints.
#[async_trait]
pub trait Caches: Send + Sync {
    /// Asks every endpoint of a cache that serves now, but for those that have answered before, within the question's time. `of`: for
    /// whose purge. Every endpoint that serves is in the answer; an error where it is not known which do.
    async fn ask(&self, of: &WorkloadId, question: &asking::Question) -> Result<asking::Answers, PortError>;
}

/// Where webhooks are sent from. Knows the hooks by name; the machine never sees a URL or a secret.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// The deliveries a notice causes: one for each hook that subscribes to it, body included. Empty for most.
    fn deliveries(&self, notice: &Notice) -> Vec<Delivery>;
    /// Whether any hook subscribes to notices of this kind about this subject.
    fn hears(&self, subject: &Subject, kind: Kind) -> bool;
    /// Sends one delivery once and reports how the receiver took it.
    async fn send(&self, delivery: &Delivery) -> Reply;
    /// Every receiver, in the order of the configuration.
    fn receivers(&self) -> Vec<Receiver>;
}

/// One receiver of notices, as anyone may see it: its address and what it is sent may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    pub name: String,
    /// The kinds of notices that it receives.
    pub events: Vec<Kind>,
    /// The workloads, Pipelines and Repos whose notices it receives, as the configuration writes them.
    pub workloads: Vec<String>,
}

pub use crate::agreement::board::{
    AGAIN_MAX, Cursor, Heard, Interest, News, PASSING_TTL, POSTINGS_MAX, Posted, Posting,
};
pub use crate::agreement::roster::BEAT_TTL;

/// One Redis through which the members' records travel, bounded in time and size. It is never the memory: what is on it may
/// be lost, stale or wiped at any moment. Calls may overlap, except that those that write must not overlap each other.
#[async_trait]
pub trait Board: Send + Sync {
    /// Host and port, for people.
    fn name(&self) -> &str;
    /// Which server answers there: two boards of one identity are one server (decision 6). Another one after each restart of
    /// the server.
    async fn identity(&self) -> Result<String, PortError>;
    /// Brings the copies of our records up to date, in few round trips, and wakes the listeners. Harmless when late or
    /// repeated: only a newer state ever replaces a copy, unless the copy has a wrong MAC. Answers in the order of the
    /// postings, at most [`POSTINGS_MAX`] of them. If it fails, some may have been taken.
    ///
    /// `origin` is our ledger's, by definition the current one: copies from an earlier ledger give way to a record of this
    /// one. A removal leaves them alone. What is removed, and what is `Absent`, is forgotten there after [`PASSING_TTL`].
    async fn post(&self, origin: &Origin, postings: &[(WorkloadId, Posting)]) -> Result<Vec<Posted>, PortError>;
    /// Leaves our beat, for [`BEAT_TTL`], and returns the one of our name that was there before, if it can be believed. Wakes
    /// the listeners if it [`Heartbeat::is_news`].
    async fn beat(&self, beat: &Heartbeat) -> Result<Option<Heartbeat>, PortError>;
    /// Reads what is new since `from`, of all members.
    async fn read(&self, from: &Cursor) -> Result<News, PortError> {
        self.read_of(from, &Interest::default()).await
    }
    /// Reads what is new since `from`, as far as it is of interest. Bounded in bytes before it is in memory.
    async fn read_of(&self, from: &Cursor, interest: &Interest) -> Result<News, PortError>;
    /// Why the server takes no writes now, by its own word, if that is so: it is a replica, or full. For those that only look;
    /// a writer finds out by writing.
    async fn refuses(&self) -> Result<Option<String>, PortError>;
    /// Removes everything that a member has left there, its records and its beat; says how many records there were. For one
    /// that was forgotten.
    async fn forget(&self, member: &Member) -> Result<usize, PortError>;
    /// Signals a possible change, whenever another member posts and after each connecting; for ever, connecting
    /// again by itself. Lossy; many posts of one moment make one signal.
    fn wake_ups(&self) -> Flow<()>;
}
