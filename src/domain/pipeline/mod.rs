//! A revision moves from environment to environment: what a `Pipeline` decides.
//!
//! ```text
//!                   gates open, a yes if it is manual, a fresh look agrees
//!   Waiting ──────────────────────────▶ Started ──▶ Proposed ── merged ──▶ Landed ── done at R ──▶ Completed
//!      │                                  ├── sent, or nothing to change ──▶▲
//!      ├──▶ Superseded ◀── another candidate ──┤                            (the environment gets there by other means)
//!      └──▶ Withdrawn  ◀── the environment before it went elsewhere         Proposed ── closed by a person ──▶ Abandoned
//! ```
//!
//! Everything is judged anew after each event, from what the targets say now ([`judge`]) and from what is remembered ([`status`]):
//! nothing is decided from the difference of two sights. Two copies of the status are held: `durable`, what the object is known to
//! contain, and `draft`, what it should. Only what is durable is acted upon (PL-1).
//!
//! It does: `promote` (what each environment needs), `gates` (may a promotion start), `ask` (questions to people), `propose` (pull
//! requests), `tell` (notices), `show` (conditions) and `write`. `view` puts it into words. The conductor is `advance`.
//!
//! Not for reading clusters (`leaf`, `app`), nor for how a pull request is made (the crate `forge`).

mod advance;
mod ask;
pub mod callers;
mod candidate;
mod gates;
pub mod judge;
pub mod marker;
mod promises;
mod promote;
pub mod proposal;
mod propose;
pub mod remark;
mod show;
pub mod spec;
pub mod status;
mod tell;
pub mod trail;
pub mod view;
mod write;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::apps::app::{Sight, TargetKey};
use crate::kernel::call::Call;
use crate::kernel::id::{Environment, NoticeId, PromotionSeq, Revision};
use crate::kernel::machine::{Machine, Timestamp};
use crate::kernel::promise::Promise;
use crate::kernel::retry;
use crate::notices::notice::Notice;
use crate::notices::telling::Telling;
use crate::objects::asked::{Opening, Topic};
use crate::objects::gates::{Freeze, VerdictSource, Window};
use crate::objects::own_status::OwnStatus;
use crate::pipeline::gates::Gatekeeper;
use crate::pipeline::judge::{Obstacle, Sights, Stale};
use crate::pipeline::proposal::{Order, Proposed, RequestState};
use crate::pipeline::propose::Proposals;
use crate::pipeline::spec::{Object, Spec};
use crate::pipeline::status::Status;

pub use promises::may_follow;

/// The machine of one object. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pipeline {
    time: Time,
    /// The newest sight of the object, without its status.
    object: Object,
    status: OwnStatus<Status>,
    sights: Sights,
    /// The targets of the last request to follow.
    following: Option<Vec<TargetKey>>,
    keeper: Gatekeeper,
    proposals: Proposals,
    telling: Telling,
    /// A webhook takes its promotions by notification.
    heard: bool,
    gone: bool,
    /// The reported fault of the object.
    faulty: Option<String>,
    ended: bool,
}

/// Its clock state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Time {
    /// The wall clock at timestamp zero, in milliseconds since the Unix epoch.
    epoch_ms: i64,
    /// When this machine learnt something for the first time.
    started: Option<Timestamp>,
    /// When something will have changed without an event.
    alarm: Option<Timestamp>,
}

/// The events of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A watch showed the object.
    Seen(Box<Object>),
    /// A watch showed that it is gone.
    Missed,
    /// An [`Effect::Look`] was answered: `None` if the object does not exist.
    Looked(Option<Box<Object>>),
    /// It was not, for this reason.
    LookFailed(String),
    /// The write under way is durable, as this version of the object. `whole`: the object holds all that was written.
    Stored {
        /// The object's new `metadata.resourceVersion`.
        version: String,
        /// The answer has all that was written.
        whole: bool,
    },
    /// Another writer was first; this is the object now.
    Conflicted(Box<Object>),
    /// The write has an unknown outcome, for this reason.
    StoreFailed(String),
    /// The present states of targets.
    Reported(Vec<(TargetKey, Sight)>),
    /// An [`Effect::Recheck`] was answered.
    Rechecked(Environment, PromotionSeq, Vec<(TargetKey, Sight)>),
    /// It was not, for this reason.
    RecheckFailed(Environment, PromotionSeq, String),
    /// An [`Effect::ReadCalendar`] was answered.
    CalendarRead(Environment, Topic, Opening),
    /// It was not, for this reason.
    CalendarFailed(Environment, Topic, String),
    /// An [`Effect::AskVerdict`] was answered.
    VerdictGiven(Environment, Topic, Opening),
    /// It was not, for this reason; not to be asked again before this time has passed.
    VerdictFailed(Environment, Topic, String, Duration),
    /// An [`Effect::SeeEdge`] was answered: whether the edge is fresh, or why not.
    EdgeSeen(Environment, Topic, Result<(), Stale>),
    /// An [`Effect::Propose`] was answered.
    Proposed(Box<Order>, Proposed),
    /// It was not, for this reason; `lasting` if only a person can mend it.
    ProposeFailed(Box<Order>, String, bool),
    /// An [`Effect::LookAtProposal`] was answered.
    ProposalSeen(Box<Order>, RequestState),
    /// It was not, for this reason.
    ProposalUnseen(Box<Order>, String),
    /// An [`Effect::Withdraw`] was carried out.
    Withdrawn(Box<Order>),
    /// It was not, for this reason; `lasting` if only a person can mend it.
    WithdrawFailed(Box<Order>, String, bool),
    /// A Secret of [`Effect::FollowSecrets`] is like this now: there, another one, or gone.
    SecretChanged(String),
    /// A notice is on its way in the durable outbox.
    Told(NoticeId),
    /// It is not, for this reason.
    TellFailed(NoticeId, String),
    /// Peers restarted and may have forgotten our questions.
    PeersRestarted,
}

/// The effects of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write the status over this version of the object.
    Store(Box<Status>, String),
    /// Report what these targets say, now and whenever it changes. Replaces the earlier set.
    Follow(Vec<TargetKey>),
    /// Read the object afresh.
    Look,
    /// Read these targets afresh.
    Recheck(Environment, PromotionSeq, Vec<TargetKey>),
    /// Say whether it is in a window and in no freeze.
    ReadCalendar(Environment, Topic, Vec<Window>, Vec<Freeze>),
    AskVerdict(Environment, Box<Question>),
    /// Say whether the edge of an environment is fresh for what it is settled at.
    SeeEdge(Environment, Topic),
    /// Make the pull request of a promotion, or find it.
    Propose(Box<Order>),
    /// Say how the pull request of this number stands.
    LookAtProposal(Box<Order>, u64),
    /// Close the pull request of this number, or the one that may exist, for this reason.
    Withdraw(Box<Order>, Option<u64>, String),
    /// Say what becomes of these Secrets, now and whenever one changes. Replaces the earlier set.
    FollowSecrets(BTreeSet<String>),
    Tell(Box<Notice>),
    /// Nothing is left to do: the machine may be dropped.
    End,
}

/// A question to another system before a promotion starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    pub source: VerdictSource,
    pub seq: PromotionSeq,
    pub revision: Revision,
    pub from: Option<Revision>,
}

impl Question {
    /// The topic of an answer to it.
    pub fn topic(&self) -> Topic {
        Topic::of(self)
    }
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Store(..) => "store",
            Self::Follow(_) => "follow",
            Self::Look => "look",
            Self::Recheck(..) => "recheck",
            Self::ReadCalendar(..) => "read_calendar",
            Self::AskVerdict(..) => "ask_verdict",
            Self::SeeEdge(..) => "see_edge",
            Self::Propose(_) => "propose",
            Self::LookAtProposal(..) => "look_at_proposal",
            Self::Withdraw(..) => "withdraw",
            Self::FollowSecrets(_) => "follow_secrets",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}

impl Pipeline {
    /// The machine of an object as it was just seen.
    pub fn new(epoch_ms: i64, object: Object) -> Self {
        Self {
            time: Time { epoch_ms, started: None, alarm: None },
            status: OwnStatus::resumed(object.status.clone(), object.version.clone()),
            object,
            sights: Sights::new(),
            following: None,
            keeper: Gatekeeper::default(),
            proposals: Proposals::default(),
            telling: Telling::default(),
            heard: true,
            gone: false,
            faulty: None,
            ended: false,
        }
    }

    /// The same, which says whether a webhook takes its promotions by notification.
    #[must_use]
    pub fn heard(self, heard: bool) -> Self {
        Self { heard, ..self }
    }

    /// The newest sight of the object. Its status may be older than [`Pipeline::durable`].
    pub const fn object(&self) -> &Object {
        &self.object
    }

    /// The status that the object is known to hold.
    pub const fn durable(&self) -> &Status {
        &self.status.durable
    }

    /// The states of its targets.
    pub const fn sights(&self) -> &Sights {
        &self.sights
    }

    /// Why a revision does not move on into an environment, if it is to; for people.
    pub fn obstacle(&self, environment: &Environment) -> Option<Obstacle> {
        let spec = self.object.spec.as_ref().ok()?;
        let index = spec.environments.iter().position(|one| one.name == *environment)?;
        judge::candidate(spec, index, &self.sights, self.keeper.edges()).err()
    }

    fn spec(&self) -> Option<&Spec> {
        self.object.spec.as_ref().ok()
    }

    fn wall_ms(&self, now: Timestamp) -> i64 {
        self.time.epoch_ms.saturating_add_unsigned(now.as_millis())
    }

    /// When a call that failed now is made again.
    fn again(&self, now: Timestamp) -> impl Fn(u32) -> Timestamp + use<> {
        retry::SERVICE.from(now, &self.object.uid)
    }

    fn reported(&mut self, sights: Vec<(TargetKey, Sight)>) {
        for (target, sight) in sights {
            if self.sights.get(&target) != Some(&sight) {
                self.keeper.outdate();
                self.sights.insert(target, sight);
            }
        }
    }
}

impl Machine for Pipeline {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let again = self.again(now);
        match event {
            Event::Seen(object) => self.seen(now, *object),
            Event::Missed => self.status.look_now(now),
            Event::Looked(object) => self.looked(now, object.map(|object| *object)),
            Event::LookFailed(why) => self.status.look_failed(&again, why),
            Event::Stored { version, whole } => self.status.stored(version, whole),
            Event::Conflicted(object) => self.conflicted(now, *object),
            Event::StoreFailed(why) => self.status.failed(&again, &why),
            Event::Reported(sights) => self.reported(sights),
            Event::Rechecked(environment, seq, sights) => self.rechecked(now, &environment, seq, sights),
            Event::RecheckFailed(environment, seq, why) => self.keeper.recheck_failed(&environment, seq, &again, why),
            Event::CalendarRead(environment, topic, opening) => {
                self.keeper.calendar_read(now, &environment, topic, opening);
            }
            Event::CalendarFailed(environment, topic, why) => {
                self.keeper.calendar_failed(&environment, topic, &again, why);
            }
            Event::VerdictGiven(environment, topic, opening) => {
                self.keeper.verdict_given(now, &environment, topic, opening);
            }
            Event::VerdictFailed(environment, topic, why, rest) => {
                self.keeper.verdict_failed(now, &environment, topic, why, rest);
            }
            Event::EdgeSeen(environment, topic, fresh) => self.keeper.edge_seen(now, &environment, topic, fresh),
            Event::Proposed(order, outcome) => self.proposed(now, &order, outcome),
            Event::ProposeFailed(order, why, lasting) => self.propose_failed(now, &order, why, lasting),
            Event::ProposalSeen(order, state) => self.proposal_seen(now, &order, state),
            Event::ProposalUnseen(order, why) => self.proposals.look_failed(&order, &again, why),
            Event::Withdrawn(order) => self.request_closed(&order),
            Event::WithdrawFailed(order, why, lasting) => self.withdraw_failed(now, &order, &why, lasting),
            Event::SecretChanged(name) => self.proposals.secret_changed(now, &name),
            Event::Told(id) => {
                self.telling.told(&id);
                self.status.draft.untold.retain(|notice| notice.id != id);
            }
            Event::TellFailed(id, why) => self.telling.failed(&id, &again, &why),
            Event::PeersRestarted => {
                self.following = None;
                self.keeper.restart();
                self.proposals.restart();
            }
        }
        self.advance(now)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn breaks(&self, effect: &Effect) -> Vec<Promise> {
        promises::broken_by(self, effect)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.ended {
            return None;
        }
        let calls = self.telling.calls().filter_map(Call::deadline);
        let own = [self.status.deadline(), self.keeper.deadline(), self.proposals.deadline(), self.time.alarm];
        calls.chain(own.into_iter().flatten()).min()
    }
}

#[cfg(test)]
mod tests;
