//! One workload's rollout, from the sight of a change to the last notice told: the machine that owns its record.
//!
//! ```text
//!             version or UID changed                  predicate holds              everybody's vote
//! (idle) ───────────────────────────▶ Rolling ───────────────────────▶ Complete ──▶ vote ──▶ decided ──▶ purges ──▶ closed
//!    ▲                                │  │ ▲                               re-check,                    each created,
//!    │        deadline, timeout       │  │ └─ a newer version, any time      site                       completed, told
//!    └──── closed ◀── Failed ◀────────┘  │
//!                        └─ completes after all: a new rollout, `Recovered`
//! ```
//!
//! Two copies of the record are held: `durable`, what the ledger is known to contain, and `draft`, what it should. Facts move
//! the draft; only what is durable is acted upon (GA-1). So a crash anywhere resumes from the ledger and fresh facts, and the
//! same decisions follow. Invariants kept here: GA-1, GA-2, GA-3, GA-4 (re-check), GA-5 and GA-8.
//!
//! Not for deciding what the group agrees on (`group`), nor for how a purge is carried out (`purge`).

mod agree;
mod ask;
mod finish;
mod observe;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::distribution::DistributionId;
use crate::domain::group::{Plan, View};
use crate::domain::host::Host;
use crate::domain::id::{Member, NoticeId, Origin, Reference, Seq, Vector, WorkloadId};
use crate::domain::machine::{Machine, Timestamp, millis};
use crate::domain::notice::Notice;
use crate::domain::policy::Policy;
use crate::domain::purge::{Order, Progress};
use crate::domain::readiness::Pods;
use crate::domain::record::Record;
use crate::domain::rollout::ask::Ask;
use crate::domain::workload::Workload;

pub use observe::{Attention, attention, baseline};
pub use words::{MemberSummary, PurgeSummary, Stage, Summary, duration};

/// Whose rollout it is, and where. Constant for the machine's life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The workload.
    pub workload: WorkloadId,
    /// This member.
    pub member: Member,
    /// The group it belongs to; a single cluster is a group of one.
    pub group: String,
    /// The ledger that counts.
    pub origin: Origin,
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch. Only ever printed.
    pub epoch_ms: i64,
}

/// How long a change that only tidies the record may wait for another one to travel with.
const TIDY_AFTER: Duration = Duration::from_secs(1);

/// How often the elapsed part of the rollout timeout is stored: a restart forgets at most this much of it.
const ELAPSED_STORED_EVERY: Duration = Duration::from_secs(60);

/// What is known of the workload itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Sight {
    /// Nothing yet.
    #[default]
    Unknown,
    /// The newest sight.
    Seen(Box<Workload>),
    /// A watch says that it is gone; to be confirmed by a fresh look.
    Missing,
    /// A fresh look says so too.
    Gone,
}

/// The hosts of a workload, found in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundSite {
    /// Its hosts.
    pub hosts: BTreeSet<Host>,
    /// Load balancer names of Ingresses that name no host.
    pub origins: BTreeSet<String>,
}

/// A missed progress deadline seen once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Suspicion {
    since: Timestamp,
    last_update: String,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollout {
    identity: Identity,
    policy: Policy,
    /// No `seq` at or below this may be used: an earlier record of the workload may have had them (decision 2).
    floor: Seq,
    durable: Option<Record>,
    draft: Option<Record>,
    /// The write under way; `Some(None)` is a removal.
    storing: Option<Option<Record>>,
    store: Ask,
    /// Since when the draft differs from the durable record in tidiness only.
    untidy_since: Option<Timestamp>,
    sight: Sight,
    look: Ask,
    pods: Option<Pods>,
    /// Since when the rollout's clock runs; `None` while it stands still.
    running_since: Option<Timestamp>,
    suspicion: Option<Suspicion>,
    /// The records of all members, as the group actor last told them; our own is in it once it was published.
    view: View,
    site: Option<FoundSite>,
    site_ask: Ask,
    recheck: Ask,
    matching: BTreeMap<Vector, Ask>,
    ordered: BTreeSet<Reference>,
    telling: BTreeMap<NoticeId, Ask>,
    ended: bool,
}

/// What can happen to a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch showed the workload.
    Seen(Box<Workload>),
    /// A watch showed that it is gone.
    Missed,
    /// A [`Effect::Look`] was answered: `None` if the workload does not exist.
    Looked(Option<Box<Workload>>),
    /// It was not.
    LookFailed,
    /// The rollout's pods changed.
    PodsSeen(Pods),
    /// The write under way is durable.
    Stored,
    /// Somebody else wrote first; this is what the ledger holds.
    Conflicted(Option<Box<Record>>),
    /// It is not known whether the write happened.
    StoreFailed,
    /// The group's records changed.
    ViewChanged(View),
    /// An [`Effect::FindSite`] was answered.
    SiteFound(FoundSite),
    /// It was not.
    SiteFailed,
    /// An [`Effect::Recheck`] was answered.
    Rechecked(Vector, Option<Box<Workload>>),
    /// It was not.
    RecheckFailed,
    /// An [`Effect::Match`] was answered.
    Matched(Vector, BTreeSet<DistributionId>),
    /// It was not, for this reason.
    MatchFailed(Vector, String),
    /// A purge made progress.
    Purged(Reference, Progress),
    /// A notice was told, or is on its way in a durable outbox.
    Told(NoticeId),
    /// It was not.
    TellFailed(NoticeId),
    /// An actor that was asked something was rebuilt and has forgotten it.
    PeersRestarted,
}

/// What a rollout wants done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write the record.
    Store(Box<Record>),
    /// Remove the record of this revision.
    Remove(u64),
    /// Show the durable record to the group.
    Publish(Box<Record>),
    /// Read the workload afresh.
    Look,
    /// Find out by which hosts the workload is reached.
    FindSite(Box<Workload>),
    /// Read the workload afresh, after all members were seen complete (GA-4).
    Recheck(Vector),
    /// Find the distributions of a decided plan.
    Match(Vector, Box<Plan>),
    /// Carry out a purge, or go on with it.
    Purge(Box<Order>),
    /// Tell a notice.
    Tell(Box<Notice>),
    /// Nothing is left to do: the machine may be dropped.
    End,
}

impl Effect {
    /// The metric label.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store(_) => "store",
            Self::Remove(_) => "remove",
            Self::Publish(_) => "publish",
            Self::Look => "look",
            Self::FindSite(_) => "find_site",
            Self::Recheck(_) => "recheck",
            Self::Match(..) => "match",
            Self::Purge(_) => "purge",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}

impl Rollout {
    /// The machine of a workload whose record the ledger holds in this state. `floor` matters only if there is none.
    pub fn resume(identity: Identity, policy: Policy, floor: Seq, record: Option<Record>) -> Self {
        Self {
            identity,
            policy,
            floor,
            durable: record.clone(),
            draft: record,
            storing: None,
            store: Ask::default(),
            untidy_since: None,
            sight: Sight::Unknown,
            look: Ask::default(),
            pods: None,
            running_since: None,
            suspicion: None,
            view: View::new(),
            site: None,
            site_ask: Ask::default(),
            recheck: Ask::default(),
            matching: BTreeMap::new(),
            ordered: BTreeSet::new(),
            telling: BTreeMap::new(),
            ended: false,
        }
    }

    /// What the ledger is known to hold.
    pub fn durable(&self) -> Option<&Record> {
        self.durable.as_ref()
    }

    /// The version whose pods matter: that of the rollout in flight.
    pub fn version(&self) -> Option<&crate::domain::image::Version> {
        self.draft.as_ref().map(|record| &record.version)
    }

    /// The newest sight of the workload.
    pub fn workload(&self) -> Option<&Workload> {
        match &self.sight {
            Sight::Seen(workload) => Some(workload),
            Sight::Unknown | Sight::Missing | Sight::Gone => None,
        }
    }

    fn key(&self) -> String {
        self.identity.workload.to_string()
    }

    /// Takes in a sight. One of the same object with an older generation comes from a lagging API server and is ignored.
    fn see(&mut self, workload: Box<Workload>) {
        let newest = match &self.sight {
            Sight::Seen(seen) if seen.uid == workload.uid => seen.generation,
            Sight::Seen(_) | Sight::Unknown | Sight::Missing | Sight::Gone => i64::MIN,
        };
        let recorded = self.draft.as_ref().filter(|record| record.uid == workload.uid);
        if workload.generation >= newest.max(recorded.map_or(i64::MIN, |record| record.generation)) {
            self.sight = Sight::Seen(workload);
        }
    }

    /// Everything that follows from the present facts, in the order of a rollout's life. Called after every event and tick;
    /// does nothing when nothing has changed.
    fn advance(&mut self, now: Timestamp, fresh: bool) -> Vec<Effect> {
        if self.ended {
            return Vec::new();
        }
        let mut effects = Vec::new();
        effects.extend(self.observe(now, fresh));
        effects.extend(self.agree(now));
        effects.extend(self.tell(now));
        effects.extend(self.flush(now));
        if self.is_over() {
            self.ended = true;
            effects.push(Effect::End);
        }
        effects
    }

    /// Starts the write that makes the draft durable, if one is needed and none is under way. A write of which it is not
    /// known whether it happened is repeated as it was, so that its answer means what it says.
    fn flush(&mut self, now: Timestamp) -> Option<Effect> {
        if !self.store.is_due(now) {
            return None;
        }
        if self.storing.is_none() {
            if self.draft == self.durable {
                self.untidy_since = None;
                return None;
            }
            if self.only_tidies() && !self.is_quiet() {
                let since = *self.untidy_since.get_or_insert(now);
                if now < since.after(TIDY_AFTER) {
                    return None;
                }
            }
            self.untidy_since = None;
            let revision = self.durable.as_ref().map_or(0, |record| record.revision).saturating_add(1);
            self.storing = Some(self.draft.as_mut().map(|draft| {
                draft.revision = revision;
                draft.clone()
            }));
        }
        self.store.asked();
        match (self.storing.as_ref()?, &self.durable) {
            (Some(record), _) => Some(Effect::Store(Box::new(record.clone()))),
            (None, durable) => Some(Effect::Remove(durable.as_ref()?.revision)),
        }
    }

    /// Whether the draft differs only in what no decision of another life depends on.
    fn only_tidies(&self) -> bool {
        let (Some(draft), Some(durable)) = (&self.draft, &self.durable) else { return false };
        let mut tidied = durable.clone();
        tidied.elapsed_ms = draft.elapsed_ms;
        if draft.untold.iter().all(|notice| durable.untold.contains(notice)) {
            tidied.untold.clone_from(&draft.untold);
        }
        tidied == *draft
    }

    /// Whether nothing but tidying is left, so there is nothing to wait for.
    fn is_quiet(&self) -> bool {
        self.draft.as_ref().is_none_or(|record| !record.is_open())
    }

    /// The write under way happened.
    fn stored(&mut self) -> Vec<Effect> {
        let Some(stored) = self.storing.take() else { return Vec::new() };
        self.store.answered();
        self.durable = stored;
        match (&mut self.draft, &self.durable) {
            (Some(draft), Some(durable)) => {
                draft.revision = durable.revision;
                vec![Effect::Publish(Box::new(durable.clone()))]
            }
            (Some(_), None) | (None, _) => Vec::new(),
        }
    }

    /// Somebody else wrote: what they wrote holds, and the facts are looked at again in its light.
    fn conflicted(&mut self, now: Timestamp, current: Option<Record>) -> Vec<Effect> {
        if self.storing.take().is_none() {
            return Vec::new();
        }
        let key = self.key();
        self.store.failed(now, &key);
        self.durable.clone_from(&current);
        self.draft = current;
        self.running_since = None;
        self.matching.clear();
        self.ordered.clear();
        self.durable.iter().map(|record| Effect::Publish(Box::new(record.clone()))).collect()
    }

    /// Tells what is durable and not yet told.
    fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let Some(durable) = &self.durable else { return Vec::new() };
        let still = |notice: &&Notice| self.draft.as_ref().is_some_and(|draft| draft.untold.contains(notice));
        let mut effects = Vec::new();
        for notice in durable.untold.iter().filter(still) {
            let ask = self.telling.entry(notice.id.clone()).or_default();
            if ask.is_due(now) {
                ask.asked();
                effects.push(Effect::Tell(Box::new(notice.clone())));
            }
        }
        effects
    }

    fn told(&mut self, id: &NoticeId) {
        self.telling.remove(id);
        if let Some(draft) = &mut self.draft {
            draft.untold.retain(|notice| notice.id != *id);
        }
    }

    /// Whether the machine has nothing to wait for any more.
    fn is_over(&self) -> bool {
        let quiet = self.storing.is_none() && self.draft == self.durable && !self.look.is_asked();
        let nothing_wanted = match &self.sight {
            Sight::Unknown | Sight::Missing => false,
            Sight::Gone => self.durable.is_none(),
            Sight::Seen(workload) => {
                matches!(attention(self.durable.as_ref(), workload, &self.policy), Attention::Idle)
            }
        };
        quiet && nothing_wanted
    }

    /// The time waited for this rollout so far, not counting pauses.
    fn elapsed(&self, now: Timestamp) -> Duration {
        let stored = self.draft.as_ref().map_or(Duration::ZERO, Record::elapsed);
        self.running_since.map_or(stored, |since| stored.saturating_add(now.since(since)))
    }

    /// Moves what has elapsed into the draft, and lets the clock run on or stand still.
    fn keep_time(&mut self, now: Timestamp, runs: bool) {
        let elapsed = self.elapsed(now);
        if let Some(draft) = &mut self.draft {
            draft.elapsed_ms = millis(elapsed);
        }
        self.running_since = runs.then_some(now);
    }

    fn timeout(&self) -> Duration {
        self.workload().and_then(|workload| workload.tuning.rollout_timeout).unwrap_or(self.policy.rollout_timeout)
    }
}

impl Machine for Rollout {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let key = self.key();
        let mut effects = Vec::new();
        let mut fresh = false;
        match event {
            Event::Seen(workload) => self.see(workload),
            Event::Missed => self.sight = if self.sight == Sight::Gone { Sight::Gone } else { Sight::Missing },
            Event::Looked(workload) => {
                self.look.answered();
                fresh = true;
                match workload {
                    Some(workload) => self.see(workload),
                    None => self.sight = Sight::Gone,
                }
            }
            Event::LookFailed => self.look.failed(now, &key),
            Event::PodsSeen(pods) => self.pods = Some(pods),
            Event::Stored => effects = self.stored(),
            Event::Conflicted(current) => effects = self.conflicted(now, current.map(|record| *record)),
            Event::StoreFailed => self.store.failed(now, &key),
            Event::ViewChanged(view) => self.view = view,
            Event::SiteFound(site) => {
                self.site_ask.answered();
                self.site = Some(site);
            }
            Event::SiteFailed => self.site_ask.failed(now, &key),
            Event::Rechecked(vector, workload) => self.rechecked(now, &vector, workload),
            Event::RecheckFailed => self.recheck.failed(now, &key),
            Event::Matched(vector, distributions) => self.matched(now, &vector, &distributions),
            Event::MatchFailed(vector, why) => self.match_failed(now, &vector, &why),
            Event::Purged(reference, progress) => self.purged(now, &reference, progress),
            Event::Told(id) => self.told(&id),
            Event::TellFailed(id) => {
                if let Some(ask) = self.telling.get_mut(&id) {
                    ask.failed(now, &key);
                }
            }
            Event::PeersRestarted => {
                self.matching.clear();
                self.ordered.clear();
            }
        }
        effects.extend(self.advance(now, fresh));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now, false)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.ended {
            return None;
        }
        let asks = [&self.store, &self.look, &self.site_ask, &self.recheck];
        let asks =
            asks.into_iter().chain(self.matching.values()).chain(self.telling.values()).filter_map(Ask::deadline);
        let tidy = self.untidy_since.map(|since| since.after(TIDY_AFTER));
        asks.chain(tidy).chain(self.rolling_deadlines()).min()
    }
}
