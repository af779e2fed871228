//! A revision moves from environment to environment: what a `Pipeline` decides.
//!
//! ```text
//!                   gates open, a yes if it is manual, a fresh look agrees
//!   Waiting ──────────────────────────▶ Started ──▶ Proposed ── merged ──▶ Landed ── done at R ──▶ Completed
//!      │                                  ├── sent, or nothing to change ──▶▲
//!      ├──▶ Superseded ◀── another candidate,──┤                            (the environment gets there by other means)
//!      │                   or a person's choice│
//!      └──▶ Withdrawn  ◀── the environment before it went elsewhere         Proposed ── closed by a person ──▶ Abandoned
//! ```
//!
//! Everything is judged anew after each event, from what the targets say now ([`judge`]) and from what is remembered ([`status`]):
//! nothing is decided from the difference of two sights. Two copies of the status are held: `durable`, what the object is known to
//! contain, and `draft`, what it should. Only what is durable is acted upon (PL-1).
//!
//! It does: `promote` (what each environment needs), `ending` (how that ends early), `choice` (what a person chose for one), `gates` (may a promotion start), `freezes` (of the cluster), `ask`
//! (questions to people), `rollback` (back by itself), `propose` (pull requests), `tell` (notices), `show` (conditions) and `write`. `view` puts it into words. The
//! conductor is `advance`.
//!
//! Not for reading clusters (`leaf`, `app`), nor for how a pull request is made (the crate `forge`).

mod advance;
mod ask;
pub mod callers;
mod candidate;
pub mod choice;
pub mod choosing;
mod ending;
pub mod freezes;
mod gates;
pub mod graph;
pub mod judge;
pub mod marker;
mod open_request;
pub mod options;
pub mod past;
pub mod places;
mod promises;
mod promote;
pub mod proposal;
mod propose;
pub mod remark;
mod rollback;
pub mod set;
mod show;
pub mod spec;
pub mod status;
mod tell;
pub mod trail;
pub mod view;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use crate::apps::app::{Sight, TargetKey};
use crate::asked::{Answer, Ask, Topic};
use crate::kept::OwnKind;
use crate::owned::{self, OwnMachine, Owned};
use crate::pipeline::freezes::Freezes;
use crate::pipeline::gates::Gatekeeper;
use crate::pipeline::judge::{Obstacle, Sights, Stale};
use crate::pipeline::proposal::{Order, Proposed, RequestState};
use crate::pipeline::propose::Proposals;
use crate::pipeline::spec::{EnvironmentSpec, Object, Spec};
use crate::pipeline::status::Status;
use kernel::id::{Environment, PipelineId, PromotionSeq, Subject};
use kernel::machine::{Machine, Timestamp};
use kernel::promise::Promise;
use notices::notice::Kind;

pub use promises::may_follow;

/// The machine of one object. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pipeline {
    own: Owned<Self>,
    /// When this machine learnt something for the first time.
    started: Option<Timestamp>,
    sights: Sights,
    /// What is known of the freezes of the cluster, while its targets are followed.
    freezes: Freezes,
    /// The targets of the last request to follow.
    following: Option<Vec<TargetKey>>,
    keeper: Gatekeeper,
    proposals: Proposals,
    /// Since when targets that are watched are not ready, as far as this life has seen.
    stuck: BTreeMap<TargetKey, Timestamp>,
    /// A webhook takes its promotions by notification.
    heard: bool,
}

/// The events of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Of the object's life.
    Object(owned::Event<Pipeline>),
    /// The present states of targets.
    Reported(Vec<(TargetKey, Sight)>),
    /// What is known of the freezes of the cluster: said after [`Effect::Follow`], and whenever it changes.
    Frozen(Freezes),
    /// An [`Effect::Recheck`] was answered.
    Rechecked(Environment, PromotionSeq, Vec<(TargetKey, Sight)>),
    /// It was not, for this reason.
    RecheckFailed(Environment, PromotionSeq, String),
    /// An [`Effect::Ask`] was answered.
    Answered(Environment, Answer),
    /// An [`Effect::SeeEdge`] was answered: whether the edge is purged, or why not.
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
    /// Peers restarted and may have forgotten our questions.
    PeersRestarted,
}

/// The effects of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Done for the object.
    Object(owned::Effect<Pipeline>),
    /// Report what these targets say, now and whenever it changes, and the freezes of the cluster. Replaces the earlier set; without
    /// any, nothing is reported.
    Follow(Vec<TargetKey>),
    /// Read these targets afresh.
    Recheck(Environment, PromotionSeq, Vec<TargetKey>),
    /// Ask those who judge a gate of an environment.
    Ask(Environment, Ask),
    /// Say whether the edge of an environment is purged for what it is settled at.
    SeeEdge(Environment, Topic),
    /// Make the pull request of a promotion, or find it.
    Propose(Box<Order>),
    /// Say how the pull request of this number stands.
    LookAtProposal(Box<Order>, u64),
    /// Close the pull request of this number, or the one that may exist, for this reason.
    Withdraw(Box<Order>, Option<u64>, String),
    /// Say what becomes of these Secrets, now and whenever one changes. Replaces the earlier set.
    FollowSecrets(BTreeSet<String>),
}

impl From<owned::Event<Pipeline>> for Event {
    fn from(event: owned::Event<Pipeline>) -> Self {
        Self::Object(event)
    }
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Object(effect) => effect.name(),
            Self::Follow(_) => "follow",
            Self::Recheck(..) => "recheck",
            Self::Ask(_, ask) => ask.name(),
            Self::SeeEdge(..) => "see_edge",
            Self::Propose(_) => "propose",
            Self::LookAtProposal(..) => "look_at_proposal",
            Self::Withdraw(..) => "withdraw",
            Self::FollowSecrets(_) => "follow_secrets",
        }
    }
}

impl Pipeline {
    /// The machine of an object as it was just seen.
    pub fn new(epoch_ms: i64, object: Object) -> Self {
        Self::of(Owned::new(epoch_ms, object))
    }

    /// One that knows nothing but its object.
    fn of(own: Owned<Self>) -> Self {
        Self {
            own,
            started: None,
            sights: Sights::new(),
            freezes: Freezes::default(),
            following: None,
            keeper: Gatekeeper::default(),
            proposals: Proposals::default(),
            stuck: BTreeMap::new(),
            heard: true,
        }
    }

    /// The same, which says whether a webhook takes its promotions by notification.
    #[must_use]
    pub fn heard(self, heard: bool) -> Self {
        Self { heard, ..self }
    }

    /// The states of its targets.
    pub const fn sights(&self) -> &Sights {
        &self.sights
    }

    /// Why a revision does not move on into an environment, if it is to; for people.
    pub fn obstacle(&self, environment: &Environment) -> Option<Obstacle> {
        let spec = self.own.spec()?;
        let index = spec.environments.iter().position(|one| one.name == *environment)?;
        judge::candidate(spec, index, &self.sights, self.keeper.edges()).err()
    }

    fn reported(&mut self, sights: Vec<(TargetKey, Sight)>) {
        let known = |(target, sight): &(TargetKey, Sight)| self.sights.get(target) == Some(sight);
        let news: Vec<_> = sights.into_iter().filter(|news| !known(news)).collect();
        let spec = self.own.object.spec.as_ref().ok();
        // What is beside an environment says nothing of it.
        let says_else = |one: &EnvironmentSpec| one.members().any(|own| news.iter().any(|(target, _)| target == own));
        self.keeper.outdate(|name| {
            let place = spec.and_then(|spec| spec.environments.iter().position(|one| one.name == *name));
            let rests = spec.zip(place).map(|(spec, place)| (spec.rests_on(place), spec.environments.get(place)));
            rests.is_none_or(|(before, own)| before.into_iter().chain(own).any(says_else))
        });
        self.sights.extend(news);
    }
}

impl OwnKind for Pipeline {
    type Id = PipelineId;
    type Spec = Spec;
    type Status = Status;

    const FAULTY: Kind = Kind::PipelineFaulty;

    fn subject(id: PipelineId) -> Subject {
        Subject::Pipeline(id)
    }
}

impl OwnMachine for Pipeline {
    fn own(&self) -> &Owned<Self> {
        &self.own
    }
}

impl Machine for Pipeline {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let again = self.own.again(now);
        match event {
            Event::Object(event) => {
                for news in self.own.step(now, event) {
                    self.learn(now, news);
                }
            }
            Event::Reported(sights) => self.reported(sights),
            Event::Frozen(freezes) => self.frozen_anew(freezes),
            Event::Rechecked(environment, seq, sights) => self.rechecked(now, &environment, seq, sights),
            Event::RecheckFailed(environment, seq, why) => self.keeper.recheck_failed(&environment, seq, &again, why),
            Event::Answered(environment, answer) => self.keeper.answered(now, &environment, &again, answer),
            Event::EdgeSeen(environment, topic, fresh) => self.keeper.edge_seen(now, &environment, topic, fresh),
            Event::Proposed(order, outcome) => self.proposed(now, &order, outcome),
            Event::ProposeFailed(order, why, lasting) => self.propose_failed(now, &order, why, lasting),
            Event::ProposalSeen(order, state) => self.proposal_seen(now, &order, state),
            Event::ProposalUnseen(order, why) => self.proposals.look_failed(&order, &again, why),
            Event::Withdrawn(order) => self.request_closed(&order),
            Event::WithdrawFailed(order, why, lasting) => self.withdraw_failed(now, &order, &why, lasting),
            Event::SecretChanged(name) => self.proposals.secret_changed(now, &name),
            Event::PeersRestarted => {
                self.following = None;
                self.freezes = Freezes::default();
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
        self.own.next_deadline([self.keeper.deadline(), self.proposals.deadline()])
    }
}

#[cfg(test)]
mod tests;
