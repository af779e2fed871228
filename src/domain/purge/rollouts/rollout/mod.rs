//! One workload's rollout, from the sight of a change to the last notice: the machine that owns its record.
//!
//! ```text
//!             version or UID changed                  predicate holds              all votes
//! (idle) ───────────────────────────▶ Rolling ───────────────────────▶ Complete ──▶ vote ──▶ decided ──▶ purges ──▶ closed
//!    ▲                                │  │ ▲                               re-check,                    each created,
//!    │        deadline, timeout       │  │ └─ a newer version, any time      site                       completed, sent
//!    └──── closed ◀── Failed ◀────────┘  │
//!                        └─ completes after all: a new rollout, `Recovered`
//! ```
//!
//! Two copies of the record are held: `durable`, what the ledger is known to contain, and `draft`, what it should. Facts move
//! the draft; only what is durable is acted upon (GA-1). So a crash anywhere resumes from the ledger and fresh facts, and the
//! same decisions follow. Invariants kept here: GA-1, GA-2, GA-3, GA-4 (re-check), GA-5 and GA-8.
//!
//! Its state is in rooms that own their fields: our record (`write`), the sights of the workload (`sight`) and of its
//! pods (`served`), the clock (`clock`), the barrier (`barrier`), what the group knows (`ballot`), the hosts (`site`),
//! what this life does for its purges (`purges`) and the notices (`tell`). Which purges a vote has, how far they are, and
//! how the rollout ends by them, its record knows ([`VotePurges`](crate::records::record::VotePurges)).
//!
//! What it does is in stages, which do not call each other: `observe`, `barrier`, `between`, `vote`, `group_timeout`, `execute`,
//! `progress`, `owed` and `close`. The conductor, `advance`, calls them in order.
//!
//! Not for deciding what the group agrees on (`group`), nor for how a purge is carried out (`purge`).

pub mod adoption;
mod advance;
mod ballot;
mod barrier;
mod between;
mod clearing;
mod clock;
mod close;
mod cover;
mod execute;
mod group_timeout;
mod matching;
mod named;
mod news;
mod observe;
mod owed;
mod passed;
mod progress;
mod promises;
mod proving;
mod purges;
mod regress;
mod request;
mod served;
mod sight;
mod site;
mod tell;
mod traced;
mod vote;
mod voted;
mod waits;
mod withdrawn;
mod words;
mod write;

use std::collections::BTreeSet;

use crate::agreement::group::NumberedView;
use crate::bounds::plan::Plan;
use crate::bounds::policy::Policy;
use crate::caches::asking::{Answers as CacheAnswers, Question as CacheQuestion};
use crate::purges::catalog::Found;
use crate::purges::purge::{Order, Progress};
use crate::records::record::{Change, Leads, Moved, Phase, Record};
use crate::rollouts::rollout::ballot::Ballot;
use crate::rollouts::rollout::barrier::Barrier;
use crate::rollouts::rollout::clock::Stopwatch;
use crate::rollouts::rollout::purges::Purges;
use crate::rollouts::rollout::served::Served;
use crate::rollouts::rollout::sight::{Sight, Sighting};
use crate::rollouts::rollout::site::Site;
use crate::rollouts::rollout::words::short;
use crate::rollouts::rollout::write::OwnRecord;
use crate::site::Age;
use crate::workloads::readiness::Pods;
use crate::workloads::serving::OldPods;
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::floor::Floor;
use kernel::id::{Member, NoticeId, Origin, Reference, Seq, Vector, WorkloadId, group_rollout_id};
use kernel::machine::{Machine, Timestamp};
use kernel::names::host::Host;
use kernel::{promise::Promise, retry};
use notices::notice::Notice;
use notices::telling::Telling;
use proof::asked::{Answers, Question, QuestionId};

pub use clearing::Before;
pub use clock::timeout;
pub use news::{Attention, Preview, as_it_runs, attention, baseline, faults, news, preview, unusable};
pub use promises::may_follow;
pub use sight::Arrival;
pub use site::FoundSite;
pub use voted::{Ended, Voted};
pub use waits::{Attended, Unloaded, Wait};
pub use words::{MemberSummary, Past, PurgeSummary, Stage, Summary, closed};

/// The workload of the rollout, and its cluster. Constant for the machine's life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub workload: WorkloadId,
    pub member: Member,
    /// The group it belongs to; a single cluster is a group of one.
    pub group: String,
    /// Whether the group has other members.
    pub grouped: bool,
    /// The ledger that counts.
    pub origin: Origin,
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch. Only printed.
    pub epoch_ms: i64,
    /// Whether records keep the times of stations, because traces are exported. Nothing is decided by them.
    pub keeps_times: bool,
}

impl Identity {
    /// Whether there is no other member.
    fn is_alone(&self) -> bool {
        !self.grouped
    }

    fn wall_ms(&self, now: Timestamp) -> i64 {
        self.epoch_ms.saturating_add_unsigned(now.as_millis())
    }

    /// The time that a record keeps of what happens now; 0 where it keeps none.
    fn time_kept(&self, now: Timestamp) -> i64 {
        if self.keeps_times { self.wall_ms(now) } else { 0 }
    }

    /// Whether the rollout of our record is the one that a vector means.
    fn is_of(&self, record: &Record, vector: &Vector) -> bool {
        vector.component(&self.member) == Some(&record.component(&self.origin))
    }

    /// The name of the rollout of our record, before a vote says in which vector it is.
    fn own_rollout(&self, record: &Record) -> String {
        let vector = Vector::of_one(self.member.clone(), record.component(&self.origin));
        group_rollout_id(&self.group, record.name_in_group(&self.workload), &vector)
    }
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rollout {
    identity: Identity,
    policy: Policy,
    record: OwnRecord,
    sighting: Sighting,
    served: Served,
    stopwatch: Stopwatch,
    barrier: Barrier,
    ballot: Ballot,
    site: Site,
    purges: Purges,
    telling: Telling,
    ended: bool,
}

/// The events of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch showed the workload.
    Seen(Box<Workload>),
    /// A watch showed that it is gone.
    Missed,
    /// Traffic moved to it; this leads to it now.
    Moved(Moved, Leads),
    /// A [`Effect::Look`] was answered: `None` if the workload does not exist.
    Looked(Option<Box<Workload>>),
    /// It was not, for this reason.
    LookFailed(String),
    /// The rollout's pods changed.
    PodsSeen(Pods),
    /// For a time the rollout's pods could not be seen.
    PodsUnseen,
    /// Whether Services publish the rollout's pods before they are ready.
    ServicesSeen { publish_unready: bool },
    /// An [`Effect::FindOldPods`] was answered.
    OldPodsFound(OldPods),
    /// It was not, for this reason.
    OldPodsUnseen(String),
    /// The write under way is durable.
    Stored,
    /// Another writer was first; this is what the ledger holds, and the floor a new record must start above.
    Conflicted(Option<Box<Record>>, Floor),
    /// The write has an unknown outcome, for this reason.
    StoreFailed(String),
    /// The group's records changed.
    ViewChanged(NumberedView),
    /// An [`Effect::FindSite`] was answered.
    SiteFound(FoundSite),
    /// It was not, for this reason.
    SiteFailed(String),
    /// An [`Effect::Recheck`] was answered.
    Rechecked(Vector, Option<Box<Workload>>),
    /// It was not, for this reason.
    RecheckFailed(String),
    /// The question of this number to this cache, of an [`Effect::AskCache`], was answered; or not, for this reason.
    CacheAnswered(Before, (String, u32), Result<CacheAnswers, String>),
    /// An [`Effect::Match`] or [`Effect::Compare`] about this plan was answered.
    Matched(Vector, Box<Plan>, Found),
    /// It was not, for this reason.
    MatchFailed(Vector, String),
    /// A purge made progress.
    Purged(Reference, Progress),
    /// An [`Effect::AskEdge`] about the purge of this reference was answered.
    EdgeAnswered(Reference, QuestionId, Box<Answers>),
    /// A notice was delivered, or is in a durable outbox.
    Told(NoticeId),
    /// It was not, for this reason.
    TellFailed(NoticeId, String),
    /// An actor that was asked something was rebuilt and has forgotten it.
    PeersRestarted,
}

/// The effects of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
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
    /// Find the hosts of the workload, from facts of this age; `None`: its annotation names them. And see what became of the hosts that
    /// it had.
    FindSite(Box<Workload>, Option<Age>, BTreeSet<Host>),
    /// Read the workload afresh, after all members were seen complete (GA-4).
    Recheck(Vector),
    /// Ask the endpoints of a cache to let go of what is to be purged.
    AskCache(Before, Box<CacheQuestion>),
    /// Find the distributions of a decided plan.
    Match(Vector, Box<Plan>),
    /// Find by a newer listing the distributions of a plan whose purges are ordered. Answered as [`Effect::Match`] is.
    Compare(Vector, Box<Plan>),
    /// Carry out a purge, or go on with it.
    Purge(Box<Order>),
    /// Ask the edge what it has since the purge of this reference.
    AskEdge(Reference, Box<Question>),
    /// What was to be asked since that purge is not wanted any more.
    LeaveEdge(Reference),
    Tell(Box<Notice>),
    /// Nothing is left to do: the machine may be dropped.
    End,
}

impl Rollout {
    /// The machine of a workload whose record the ledger holds in this state.
    pub fn resume(identity: Identity, policy: Policy, floor: impl Into<Floor>, record: Option<Record>) -> Self {
        Self {
            served: Served::resumed(&policy, record.as_ref()),
            purges: Purges::resumed(record.as_ref()),
            identity,
            policy,
            sighting: Sighting::new(record.is_some()),
            record: OwnRecord::resumed(floor.into(), record),
            stopwatch: Stopwatch::default(),
            barrier: Barrier::default(),
            ballot: Ballot::default(),
            site: Site::default(),
            telling: Telling::default(),
            ended: false,
        }
    }

    /// Sets what the workload is taken for if it has no record; [`Arrival::Open`] otherwise.
    #[must_use]
    pub fn arriving(mut self, arrival: Arrival) -> Self {
        if self.record.durable.is_none() {
            self.sighting.arrival = arrival;
        }
        self
    }

    /// The record that the ledger is known to hold.
    pub fn durable(&self) -> Option<&Record> {
        self.record.durable.as_ref()
    }

    /// The rollout in flight, whose pods are to be watched, and its version. It need not be durable: we never see what its
    /// pods did before the watch began.
    pub fn rolling(&self) -> Option<(Seq, &kernel::names::image::Version)> {
        let rolling = self.record.draft.as_ref().filter(|record| record.phase == Phase::Rolling);
        rolling.map(|record| (record.seq, &record.version))
    }

    /// The newest sight of the workload.
    pub fn workload(&self) -> Option<&Workload> {
        self.sighting.workload()
    }

    /// When a call that failed now is made again.
    fn again(&self, now: Timestamp) -> impl Fn(u32) -> Timestamp + use<> {
        retry::SERVICE.from(now, &self.identity.workload.to_string())
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    fn wake(&mut self, now: Timestamp) {
        self.barrier.wake(now);
        self.ballot.recheck.wake(now);
        self.ballot.caches.wake(now);
        self.record.wake(now);
        self.sighting.wake(now);
        self.site.wake(now);
        self.purges.wake(now);
    }

    /// The write under way happened.
    fn stored(&mut self) -> Option<Effect> {
        if !self.record.is_writing() {
            return None;
        }
        self.record.stored().into_iter().for_each(|notice| self.telling.add(notice));
        let shown = self.record.durable.as_ref().filter(|_| self.record.draft.is_some());
        shown.map(|record| Effect::Publish(Box::new(record.clone())))
    }

    /// An actor that was asked something was rebuilt and has forgotten it.
    fn ask_again(&mut self, now: Timestamp) -> Vec<Effect> {
        self.purges.restart();
        self.ballot.restart();
        self.ask_edge_again(now)
    }

    /// Another writer was first: its record holds, and we judge the facts again by it.
    fn conflicted(&mut self, now: Timestamp, current: Option<Record>, floor: Floor) -> Option<Effect> {
        if !self.record.is_writing() {
            return None;
        }
        if let Some(known) = self.record.conflicted(current, floor, self.again(now)) {
            self.compare(&known);
        }
        self.served.resume(&self.policy, self.record.draft.as_ref());
        self.stopwatch = Stopwatch::default();
        self.purges.begin_anew(self.record.draft.as_ref());
        self.record.durable.as_ref().map(|record| Effect::Publish(Box::new(record.clone())))
    }

    /// A watch showed the workload, or that it is gone.
    fn watched(&mut self, workload: Option<Box<Workload>>) {
        if self.sighting.watched(workload, self.record.draft.as_ref()) {
            self.ballot.recheck.outdate();
        }
    }

    /// Gives the rollout `seq`, if it is the present one, a new number, so that the group can agree on another vector
    /// with it.
    pub(super) fn bump_seq(&mut self, seq: Seq) {
        let OwnRecord { draft, nonces, .. } = &mut self.record;
        let Some(draft) = draft.as_mut().filter(|draft| draft.seq == seq) else { return };
        let at_rest = draft.change == Change::Baseline || draft.closed >= draft.seq;
        draft.raise(draft.seq.next(), nonces);
        if at_rest {
            draft.closed = draft.seq;
        }
        draft.elapsed_ms = 0;
        draft.stalled = false;
        if draft.phase != Phase::Rolling {
            self.stopwatch.clear();
        }
        self.site.forget();
    }

    /// Whether the machine has nothing to wait for any more.
    fn is_over(&self) -> bool {
        let quiet = self.telling.is_done() && self.record.is_settled() && self.sighting.is_settled();
        let nothing_wanted = match &self.sighting.sight {
            Sight::Unknown | Sight::Missing => false,
            Sight::Gone => self.record.durable.is_none(),
            Sight::Seen(workload) => {
                let listed = self.sighting.arrival == Arrival::New;
                matches!(attention(self.record.durable.as_ref(), workload, listed, &self.policy), Attention::Idle)
            }
        };
        quiet && nothing_wanted && !self.is_wanted_by_others() && !self.wants_site_of_failure()
    }
}

impl Machine for Rollout {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let again = self.again(now);
        let mut effects = Vec::new();
        let mut fresh = false;
        match event {
            Event::Seen(workload) => self.watched(Some(workload)),
            Event::Missed => self.watched(None),
            Event::Moved(moved, leads) => {
                if self.record.draft.as_ref().and_then(|draft| draft.moved.as_ref()).is_none_or(|last| !last.is(&moved))
                {
                    // Hosts that were found before are not those that are to be purged.
                    self.site.forget();
                    self.ballot.recheck.outdate();
                }
                self.sighting.move_here(moved, leads);
            }
            Event::Looked(workload) => {
                fresh = self.sighting.looked(now, workload, &mut self.record.draft, &again);
            }
            Event::LookFailed(why) => self.sighting.failed(&again, short(&why)),
            Event::PodsSeen(pods) => {
                self.barrier.nudge(self.served.pods(), &pods);
                self.served.note_pods(pods);
            }
            Event::PodsUnseen => self.served.note_blindness(),
            Event::ServicesSeen { publish_unready } => self.served.note_services(publish_unready),
            Event::OldPodsFound(found) => self.barrier.looked(now, found),
            Event::OldPodsUnseen(why) => self.barrier.failed(&again, short(&why)),
            Event::Stored => effects.extend(self.stored()),
            Event::Conflicted(current, floor) => {
                effects.extend(self.conflicted(now, current.map(|record| *record), floor));
            }
            Event::StoreFailed(why) => self.record.failed(&again, short(&why)),
            Event::ViewChanged(view) => {
                self.ballot.changed(view, &self.identity.member, self.record.durable.as_ref());
            }
            Event::SiteFound(site) => self.site_found(now, site),
            Event::SiteFailed(why) => self.site.failed(&again, short(&why)),
            Event::Rechecked(vector, workload) => self.rechecked(now, &vector, workload),
            Event::RecheckFailed(why) => {
                self.site.forget();
                self.ballot.recheck.failed(&again, short(&why));
            }
            Event::CacheAnswered(of, (cache, number), answers) => {
                self.ballot.caches.answered(now, &of, &cache, (number, answers));
            }
            Event::Matched(vector, plan, found) => {
                if let Some(end) = self.matched(now, &vector, &plan, &found) {
                    self.end_vote(now, &vector, end);
                }
            }
            Event::MatchFailed(vector, why) => self.match_failed(now, &vector, &why),
            Event::Purged(reference, progress) => effects.extend(self.heard_of(now, &reference, progress)),
            Event::EdgeAnswered(of, id, answers) => effects.extend(self.edge_answered(now, &of, id, answers)),
            Event::Told(id) => {
                self.telling.told(&id);
                self.record.draft.iter_mut().for_each(|draft| draft.untold.retain(|notice| notice.id != id));
            }
            Event::TellFailed(id, why) => self.telling.failed(&id, &again, short(&why)),
            Event::PeersRestarted => effects.extend(self.ask_again(now)),
        }
        effects.extend(self.advance(now, fresh));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now, false)
    }

    fn breaks(&self, effect: &Effect) -> Vec<Promise> {
        match effect {
            // The record had no room for it, and what it is about is durable.
            Effect::Tell(notice) if self.telling.is_loose(notice) => Vec::new(),
            _ => promises::broken_by(self.durable(), effect),
        }
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.ended {
            return None;
        }
        let calls = [self.site.call(), &self.ballot.recheck].into_iter().chain(self.telling.calls());
        let own = [
            self.record.deadline(),
            self.sighting.deadline(),
            self.purges.deadline(self.record.draft.as_ref()),
            self.group_deadline(),
            self.barrier_deadline(),
            self.ballot.caches.deadline(),
        ];
        let own = own.into_iter().flatten();
        calls.filter_map(Call::deadline).chain(own).chain(self.rolling_deadlines()).min()
    }
}

#[cfg(test)]
mod tests;
