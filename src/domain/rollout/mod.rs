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
mod barrier;
mod clock;
mod execute;
mod fates;
mod finish;
mod news;
mod observe;
mod owed;
mod patience;
mod regress;
mod served;
mod sight;
mod tell;
mod waits;
mod window;
mod words;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::catalog::Found;
use crate::domain::group::View;
use crate::domain::host::Host;
use crate::domain::id::{Member, NoticeId, Origin, Reference, Seq, Vector, WorkloadId};
use crate::domain::machine::{Machine, Timestamp};
use crate::domain::notice::Notice;
use crate::domain::paths::PathSet;
use crate::domain::plan::Plan;
use crate::domain::policy::Policy;
use crate::domain::purge::{Order, Progress};
use crate::domain::readiness::Pods;
use crate::domain::record::{Phase, Record};
use crate::domain::rollout::ask::Ask;
use crate::domain::rollout::barrier::Barrier;
use crate::domain::rollout::execute::Task;
use crate::domain::rollout::served::Served;
use crate::domain::rollout::sight::{Doubt, Sight};
use crate::domain::serving::OldPods;
use crate::domain::site::Age;
use crate::domain::workload::Workload;

pub use clock::timeout;
pub use news::{Attention, Preview, attention, baseline, faults, news, preview, unusable};
pub use sight::{Arrival, SET_BACK_AFTER};
pub use waits::{Attended, Unloaded, Wait};
pub use words::{MemberSummary, PurgeSummary, Stage, Summary, closed, duration};

/// Whose rollout it is, and where. Constant for the machine's life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The workload.
    pub workload: WorkloadId,
    /// This member.
    pub member: Member,
    /// The group it belongs to; a single cluster is a group of one.
    pub group: String,
    /// Whether the group has other members.
    pub grouped: bool,
    /// The ledger that counts.
    pub origin: Origin,
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch. Only ever printed.
    pub epoch_ms: i64,
}

/// The hosts of a workload, found in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundSite {
    /// Its hosts.
    pub hosts: BTreeSet<Host>,
    /// Load balancer names, of rules that name no host.
    pub origins: BTreeSet<String>,
    /// Names that lead elsewhere, though a wildcard among the hosts covers them or the load balancers are asked for them.
    pub except: BTreeSet<Host>,
    /// Of these hosts, no more than these paths.
    pub narrow: BTreeMap<Host, PathSet>,
    /// What it is reached by that is not its namespace's own, and why, in words; the first few.
    pub refused: Vec<String>,
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
    /// No `seq` at or below this may be given out again: this life has seen it used, and the ledger has forgotten it.
    spent: Seq,
    /// A state of the record that the ledger has lost; kept in the record of a group's member.
    lost: Option<(Seq, u64)>,
    durable: Option<Record>,
    draft: Option<Record>,
    /// What it is taken for while it has no record.
    arrival: Arrival,
    /// The write under way; `Some(None)` is a removal.
    storing: Option<Option<Record>>,
    store: Ask,
    /// Since when the draft differs from the durable record in tidiness only.
    untidy_since: Option<Timestamp>,
    sight: Sight,
    /// An older generation than the newest known was shown.
    doubt: Option<Doubt>,
    look: Ask,
    pods: Option<Pods>,
    served: Served,
    /// Since when the rollout's clock runs; `None` while it stands still.
    running_since: Option<Timestamp>,
    suspicion: Option<Suspicion>,
    /// Until when what cannot be used about the workload is not noted again. The machine stays as long, to remember it.
    faults_rest: Option<Timestamp>,
    barrier: Option<Barrier>,
    old_pods: Ask,
    /// The records of all members, as the group actor last told them; our own is in it once it was published.
    view: View,
    /// Whether the durable record was shown to the group in this life.
    published: bool,
    site: Option<FoundSite>,
    /// How old the facts may be from which the site is found. Fresh after nothing was found in recent ones: a rollout is not
    /// closed for want of hosts by what was known before it.
    site_age: Age,
    site_ask: Ask,
    /// The rollout whose site was asked for: an answer about another one says nothing about this one's hosts.
    site_of: Seq,
    recheck: Ask,
    /// When this life drafted its votes; see [`Order::voted_at`].
    voted_at: BTreeMap<Vector, Timestamp>,
    matching: BTreeMap<Vector, Ask>,
    ordered: BTreeSet<Reference>,
    telling: BTreeMap<NoticeId, Ask>,
    /// Notices that the write under way has no room for.
    shed: Vec<Notice>,
    /// Notices that are told without being in the record.
    loose: BTreeMap<NoticeId, Notice>,
    /// When it is this member's turn to do what each member could do; `None` once it is.
    turns: BTreeMap<(Vector, Task), Option<Timestamp>>,
    /// When this life came to know that a vector is decided.
    decided_at: BTreeMap<Vector, Timestamp>,
    /// When a purge that is denied becomes owed (`None`: now), and why it is.
    owed_at: BTreeMap<Reference, (Option<Timestamp>, String)>,
    /// When that something is owed is told again.
    remind_at: BTreeMap<Vector, Timestamp>,
    /// The other members were told that the workload does not exist here.
    told_absent: bool,
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
    /// It was not, for this reason.
    LookFailed(String),
    /// The rollout's pods changed.
    PodsSeen(Pods),
    /// For a time the rollout's pods could not be seen.
    PodsUnseen,
    /// Whether Services publish the rollout's pods before they are ready.
    ServicesSeen {
        /// One does.
        publish_unready: bool,
    },
    /// An [`Effect::FindOldPods`] was answered.
    OldPodsFound(OldPods),
    /// It was not, for this reason.
    OldPodsUnseen(String),
    /// The write under way is durable.
    Stored,
    /// Somebody else wrote first; this is what the ledger holds, and the floor a new record must start above.
    Conflicted(Option<Box<Record>>, Seq),
    /// It is not known whether the write happened, for this reason.
    StoreFailed(String),
    /// The group's records changed.
    ViewChanged(View),
    /// An [`Effect::FindSite`] was answered.
    SiteFound(FoundSite),
    /// It was not, for this reason.
    SiteFailed(String),
    /// An [`Effect::Recheck`] was answered.
    Rechecked(Vector, Option<Box<Workload>>),
    /// It was not, for this reason.
    RecheckFailed(String),
    /// An [`Effect::Match`] was answered.
    Matched(Vector, Found),
    /// It was not, for this reason.
    MatchFailed(Vector, String),
    /// A purge made progress.
    Purged(Reference, Progress),
    /// A notice was told, or is on its way in a durable outbox.
    Told(NoticeId),
    /// It was not, for this reason.
    TellFailed(NoticeId, String),
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
    /// Tell the group that the cluster does not have the workload, and never votes for a rollout of it up to this one.
    Absent(Seq),
    /// Read the workload afresh.
    Look,
    /// Read afresh which pods of an earlier template may still answer.
    FindOldPods(Box<Workload>),
    /// Find out by which hosts the workload is reached.
    FindSite(Box<Workload>, Age),
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
            Self::Absent(_) => "absent",
            Self::Look => "look",
            Self::FindOldPods(_) => "find_old_pods",
            Self::FindSite(..) => "find_site",
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
            served: Served::resumed(&policy, record.as_ref()),
            identity,
            policy,
            floor,
            spent: Seq::default(),
            lost: None,
            arrival: if record.is_some() { Arrival::New } else { Arrival::Open },
            durable: record.clone(),
            draft: record,
            storing: None,
            store: Ask::default(),
            untidy_since: None,
            sight: Sight::Unknown,
            doubt: None,
            look: Ask::default(),
            pods: None,
            running_since: None,
            suspicion: None,
            faults_rest: None,
            barrier: None,
            old_pods: Ask::default(),
            view: View::default(),
            published: false,
            site: None,
            site_age: Age::Recent,
            site_ask: Ask::default(),
            site_of: Seq::default(),
            recheck: Ask::default(),
            voted_at: BTreeMap::new(),
            matching: BTreeMap::new(),
            ordered: BTreeSet::new(),
            telling: BTreeMap::new(),
            shed: Vec::new(),
            loose: BTreeMap::new(),
            turns: BTreeMap::new(),
            decided_at: BTreeMap::new(),
            owed_at: BTreeMap::new(),
            remind_at: BTreeMap::new(),
            told_absent: false,
            ended: false,
        }
    }

    /// Says what the workload is taken for if it has no record; [`Arrival::Open`] otherwise.
    #[must_use]
    pub fn arriving(mut self, arrival: Arrival) -> Self {
        if self.durable.is_none() {
            self.arrival = arrival;
        }
        self
    }

    /// What the ledger is known to hold.
    pub fn durable(&self) -> Option<&Record> {
        self.durable.as_ref()
    }

    /// The rollout in flight, whose pods are to be watched, and its version. It need not be durable: what its pods did before
    /// they are watched, nobody sees.
    pub fn rolling(&self) -> Option<(Seq, &crate::domain::image::Version)> {
        let rolling = self.draft.as_ref().filter(|record| record.phase == Phase::Rolling);
        rolling.map(|record| (record.seq, &record.version))
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

    /// Everything that follows from the present facts, in the order of a rollout's life. Called after every event and tick;
    /// does nothing when nothing has changed.
    fn advance(&mut self, now: Timestamp, fresh: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.wake(now);
        effects.extend(self.publish());
        effects.extend(self.observe(now, fresh));
        effects.extend(self.agree(now));
        effects.extend(self.tell(now));
        effects.extend(self.flush(now));
        self.ended = self.is_over();
        if self.ended {
            effects.push(Effect::End);
        }
        effects
    }

    /// Ends every rest that is over, so that no deadline stays in the past.
    fn wake(&mut self, now: Timestamp) {
        let asks = [&mut self.store, &mut self.look, &mut self.old_pods, &mut self.site_ask, &mut self.recheck];
        for ask in asks.into_iter().chain(self.matching.values_mut()).chain(self.telling.values_mut()) {
            ask.wake(now);
        }
        self.faults_rest = self.faults_rest.filter(|until| *until > now);
        self.turns.values_mut().for_each(|turn| *turn = turn.filter(|at| *at > now));
        self.wake_owed(now);
    }

    /// Shows the durable record to the group once in every life; afterwards, every write does.
    fn publish(&mut self) -> Option<Effect> {
        if self.published {
            return None;
        }
        self.published = true;
        self.durable.clone().map(|record| Effect::Publish(Box::new(record)))
    }

    /// Whether the machine has nothing to wait for any more.
    fn is_over(&self) -> bool {
        let quiet = self.loose.is_empty()
            && self.storing.is_none()
            && self.draft == self.durable
            && !self.look.is_asked()
            && self.faults_rest.is_none()
            && self.doubt.is_none();
        let nothing_wanted = match &self.sight {
            Sight::Unknown | Sight::Missing => false,
            Sight::Gone => self.durable.is_none(),
            Sight::Seen(workload) => {
                let listed = self.arrival == Arrival::New;
                matches!(attention(self.durable.as_ref(), workload, listed, &self.policy), Attention::Idle)
            }
        };
        quiet && nothing_wanted && !self.is_wanted_by_others()
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
            Event::Seen(workload) => self.watched(Some(workload)),
            Event::Missed => self.watched(None),
            Event::Looked(workload) => fresh = self.looked(now, workload),
            Event::LookFailed(why) => self.look.failed(now, &key, &why),
            Event::PodsSeen(pods) => {
                self.nudge();
                self.note_pods(&pods);
                self.pods = Some(pods);
            }
            Event::PodsUnseen => self.note_blindness(),
            Event::ServicesSeen { publish_unready } => self.note_services(publish_unready),
            Event::OldPodsFound(found) => self.old_pods_found(now, found),
            Event::OldPodsUnseen(why) => self.old_pods_unseen(now, &why),
            Event::Stored => effects = self.stored(),
            Event::Conflicted(current, floor) => {
                effects = self.conflicted(now, current.map(|record| *record), floor);
            }
            Event::StoreFailed(why) => self.store.failed(now, &key, &why),
            Event::ViewChanged(view) => self.view_changed(view),
            Event::SiteFound(site) => {
                self.site_ask.answered();
                self.site = self.draft.as_ref().filter(|draft| draft.seq == self.site_of).map(|_| site);
                self.doubt_empty_site();
            }
            Event::SiteFailed(why) => self.site_ask.failed(now, &key, &why),
            Event::Rechecked(vector, workload) => self.rechecked(now, &vector, workload),
            Event::RecheckFailed(why) => {
                // By the next time, its hosts may be others.
                self.site = None;
                self.recheck.failed(now, &key, &why);
            }
            Event::Matched(vector, found) => self.matched(now, &vector, &found),
            Event::MatchFailed(vector, why) => self.match_failed(now, &vector, &why),
            Event::Purged(reference, progress) => self.purged(now, &reference, progress),
            Event::Told(id) => self.told(&id),
            Event::TellFailed(id, why) => {
                self.telling.get_mut(&id).into_iter().for_each(|ask| ask.failed(now, &key, &why));
            }
            Event::PeersRestarted => {
                self.matching.clear();
                self.ordered.clear();
                self.view.number = 0;
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
        let asks = [&self.store, &self.look, &self.old_pods, &self.site_ask, &self.recheck];
        let asks =
            asks.into_iter().chain(self.matching.values()).chain(self.telling.values()).filter_map(Ask::deadline);
        let own = [
            self.tidy_deadline(),
            self.turn_deadline(),
            self.patience_deadline(),
            self.barrier_deadline(),
            self.doubt_deadline(),
            self.owed_deadline(),
            self.faults_rest,
        ];
        let own = own.into_iter().flatten();
        asks.chain(own).chain(self.rolling_deadlines()).min()
    }
}

#[cfg(test)]
mod tests;
