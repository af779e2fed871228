//! Carrying a started promotion out: its notice, or its pull request until that is merged or closed.
//!
//! A pull request belongs to its environment's branch: a promotion that takes another's place rewrites the request, and a request
//! that nothing follows is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::asked::Topic;
use crate::pipeline::open_request::ELSEWHERE;
use crate::pipeline::options::{self, Lacks, RequestOptions};
use crate::pipeline::promote::Pending;
use crate::pipeline::proposal::{Order, Proposed, Repository, Request, RequestState};
use crate::pipeline::spec::{EnvironmentSpec, PromotionSpec, Strategy};
use crate::pipeline::status::{CLOSING_MAX, EnvironmentStatus, OpenRequest, Phase, Promotion, Question};
use crate::pipeline::{Effect, Pipeline};
use kernel::call::Call;
use kernel::id::{Environment, promotion_id};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// How often an open request is looked at in its first hour.
const LOOK_SOON: Duration = Duration::from_mins(2);

/// How often it is looked at later, and how often a lasting failure is tried again.
const LOOK_LATER: Duration = Duration::from_mins(10);

/// How long a request is new.
const NEW_FOR_MS: i64 = 60 * 60 * 1000;

/// The calls to forges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Proposals {
    /// One of each kind for an environment.
    calls: BTreeMap<Environment, Calls>,
    /// The Secrets whose changes are followed.
    followed: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Calls {
    /// The order that the calls are about.
    topic: Topic,
    propose: Call,
    look: Call,
    withdraw: Call,
    /// The branch holds commits of others, in words.
    foreign: Option<String>,
    /// Why the open request is not made anew on a base that has changed.
    held: Option<String>,
    /// The lasting failure that was reported.
    told: Option<String>,
    /// The Secret with which a call failed for good the last time: another content may end that.
    refused: Option<String>,
}

impl Proposals {
    /// The calls about this order. What was asked about an earlier one is forgotten.
    fn about(&mut self, order: &Order) -> &mut Calls {
        let calls = self.calls.entry(order.environment.clone()).or_default();
        let topic = order.topic();
        if calls.topic != topic {
            *calls = Calls { topic, withdraw: std::mem::take(&mut calls.withdraw), ..Calls::default() };
        }
        calls
    }

    /// The same for an answer: one about another order says nothing of these calls.
    fn answer(&mut self, order: &Order) -> Option<&mut Calls> {
        self.calls.get_mut(&order.environment).filter(|calls| calls.topic == order.topic())
    }

    /// Peers may have forgotten our questions.
    pub(super) fn restart(&mut self) {
        self.calls.clear();
    }

    /// Runs all waiting calls now: a look was requested.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        for calls in self.calls.values_mut() {
            [&mut calls.propose, &mut calls.look, &mut calls.withdraw].into_iter().for_each(|call| call.hurry(now));
        }
    }

    /// A Secret is there, is another one, or is gone: what it was refused with is tried at once.
    pub(super) fn secret_changed(&mut self, now: Timestamp, name: &str) {
        for calls in self.calls.values_mut().filter(|calls| calls.refused.as_deref() == Some(name)) {
            [&mut calls.propose, &mut calls.withdraw].into_iter().for_each(|call| call.hurry(now));
        }
    }

    /// The Secrets that are to be followed, if they are others than before.
    pub(super) fn follow_secrets(&mut self) -> Option<BTreeSet<String>> {
        let wanted: BTreeSet<String> = self.calls.values().filter_map(|calls| calls.refused.clone()).collect();
        let is_new = wanted != self.followed;
        self.followed.clone_from(&wanted);
        is_new.then_some(wanted)
    }

    pub(super) fn look_failed(&mut self, order: &Order, again: impl FnOnce(u32) -> Timestamp, why: String) {
        if let Some(calls) = self.answer(order) {
            calls.look.failed(again, why);
        }
    }

    /// The promotion has ended. Only its request may have to be closed.
    pub(super) fn rest(&mut self, environment: &Environment) {
        if let Some(calls) = self.calls.get_mut(environment) {
            *calls = Calls { withdraw: std::mem::take(&mut calls.withdraw), ..Calls::default() };
        }
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        for Calls { propose, look, withdraw, .. } in self.calls.values_mut() {
            [propose, look, withdraw].into_iter().for_each(|call| call.wake(now));
        }
    }

    /// When a forge is asked again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.calls
            .values()
            .flat_map(|calls| [&calls.propose, &calls.look, &calls.withdraw])
            .filter_map(Call::deadline)
            .min()
    }
}

impl Pipeline {
    /// Does what a started promotion needs, once it is durable.
    pub(super) fn carry_out(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        how: &PromotionSpec,
        promotion: &Promotion,
        effects: &mut Vec<Effect>,
    ) -> Pending {
        let name = &environment.name;
        let repository = how.repository();
        if let Some(known) = self.own.status.draft.environments.get_mut(name)
            && let Some(repository) = repository
        {
            known.expect_request(promotion.seq, repository);
        }
        let is_durable = self.own.status.durable.environment(name).is_some_and(|durable| {
            let started = durable.open().is_some_and(|open| open.seq == promotion.seq && open.phase >= Phase::Started);
            started && repository.is_none_or(|repository| durable.expects(promotion.seq, repository))
        });
        let Some(repository) = repository else {
            let told = self.id_of(Kind::PromotionStarted, name, promotion.seq, "");
            if is_durable && !self.own.status.draft.untold.iter().any(|notice| notice.id == told) {
                self.land(name);
                return Pending::Deploying(name.clone(), promotion.revision.clone());
            }
            return Pending::Telling;
        };
        if !is_durable {
            return Pending::Telling;
        }
        let order = self.order(name, promotion, repository);
        if promotion.phase == Phase::Proposed {
            self.watch_request(now, name, order, effects)
        } else {
            self.propose(now, name, order, effects)
        }
    }

    /// What is wanted of the requests into this environment beside what they set.
    fn options(&self, name: &Environment) -> Option<&RequestOptions> {
        let own = self.own.spec()?.environments.iter().find(|environment| environment.name == *name)?;
        match &own.promotion.as_ref()?.strategy {
            Strategy::PullRequest(_, options) => Some(options),
            Strategy::Notification => None,
        }
    }

    /// Where promotions into this environment are proposed, if they are.
    fn repository(&self, name: &Environment) -> Option<&Repository> {
        let own = self.own.spec()?.environments.iter().find(|environment| environment.name == *name)?;
        own.promotion.as_ref()?.repository()
    }

    fn order(&self, name: &Environment, promotion: &Promotion, repository: &Repository) -> Order {
        Order {
            id: promotion_id(&self.own.object.uid, name, promotion.seq),
            pipeline: self.own.object.id.clone(),
            environment: name.clone(),
            seq: promotion.seq,
            from: promotion.from.clone(),
            revision: promotion.revision.clone(),
            apps: self.own.spec().map(|spec| spec.apps.clone()).unwrap_or_default(),
            repository: repository.clone(),
            started_at: promotion.started_ms.unwrap_or_default() / 1000,
            approved_by: promotion.approval.as_ref().and_then(|approval| approval.by.clone()),
            chosen: promotion.choice(),
            options: self.options(name).cloned().unwrap_or_default(),
            lacks: Lacks::new(),
            overwrite: false,
        }
    }

    /// Makes the request, or asks a person first where the branch is not ours.
    fn propose(&mut self, now: Timestamp, name: &Environment, mut order: Order, effects: &mut Vec<Effect>) -> Pending {
        if let Some(foreign) = self.proposals.about(&order).foreign.clone() {
            let (seq, revision) = (order.seq, order.revision.clone());
            // A yes is to what was on the branch, and where.
            let detail = format!("{} {foreign}", order.repository.url);
            if self.answered(now, name, seq, &revision, Question::Overwrite, &detail).is_none() {
                return Pending::Person(Question::Overwrite);
            }
            order.overwrite = true;
        }
        let calls = self.proposals.about(&order);
        if calls.propose.is_due(now) {
            calls.propose.asked();
            effects.push(Effect::Propose(Box::new(order)));
        }
        Pending::Proposing(calls.propose.last_reason().map(str::to_owned))
    }

    /// Looks at an open request now and then.
    fn watch_request(
        &mut self,
        now: Timestamp,
        name: &Environment,
        mut order: Order,
        effects: &mut Vec<Effect>,
    ) -> Pending {
        let request = self.own.status.draft.environment(name).and_then(|known| known.request.clone());
        let Some((number, request)) = request.and_then(|request| Some((request.number?, request))) else {
            return Pending::Proposing(None);
        };
        let lacks = options::words(&request.lacks);
        order.lacks = request.lacks;
        let Calls { look, held, .. } = self.proposals.about(&order);
        let held = held.clone().or(lacks);
        if look.is_due(now) {
            look.asked();
            effects.push(Effect::LookAtProposal(Box::new(order), number));
        }
        Pending::Proposed(request.url, held)
    }

    /// Takes in the outcome of an order.
    pub(super) fn proposed(&mut self, now: Timestamp, order: &Order, outcome: Proposed) {
        if let Some(calls) = self.proposals.answer(order) {
            calls.propose.answered();
            calls.refused = None;
            calls.look = Call::due(now.after(LOOK_SOON));
        }
        let (name, seq) = (&order.environment, order.seq);
        let Some(known) = self.own.status.draft.environments.get_mut(name) else { return };
        let at = |Request { url, number, commit, lacks }| OpenRequest {
            seq,
            number: Some(number),
            url,
            commit,
            lacks,
            repository: Some(order.repository.clone()),
        };
        if !known.is_carried_out_by(order) {
            // It ended meanwhile. Its request is remembered, to be rewritten or closed.
            if let Proposed::Open(request) = outcome {
                known.remember(at(request));
            }
            return;
        }
        match outcome {
            Proposed::Open(request) => {
                known.request = Some(at(request));
                known.waiting = None;
                if let Some(promotion) = &mut known.promotion {
                    promotion.phase = promotion.phase.max(Phase::Proposed);
                }
            }
            Proposed::NothingToChange => {
                known.request.take_if(|request| request.number.is_none());
                self.land(name);
            }
            Proposed::Merged(_) => self.merged(name),
            Proposed::Closed(request) => {
                known.request = Some(at(request));
                self.abandoned(now, name);
            }
            Proposed::Outdated(newer) => {
                // Another life of this object went further. Its numbers are not given out again.
                known.seq = known.seq.max(newer);
                self.end(now, name, Phase::Superseded, &format!("its branch holds promotion {newer} already"));
            }
            Proposed::Foreign(words) => self.proposals.about(order).foreign = Some(words),
        }
    }

    pub(super) fn propose_failed(&mut self, now: Timestamp, order: &Order, why: String, lasting: bool) {
        let again = self.own.again(now);
        let Some(calls) = self.proposals.answer(order) else { return };
        if !lasting {
            return calls.propose.failed(again, why);
        }
        calls.propose.failed(|_| now.after(LOOK_LATER), why.as_str());
        calls.refused.clone_from(&order.repository.secret);
        if calls.told.as_ref() != Some(&why) {
            calls.told = Some(why.clone());
            let message = format!("its pull request cannot be made: {why}");
            self.announce(now, Kind::PromotionFailed, &order.environment, &message);
        }
    }

    /// How the open request stands.
    pub(super) fn proposal_seen(&mut self, now: Timestamp, order: &Order, state: RequestState) {
        let now_ms = self.own.wall_ms(now);
        let name = &order.environment;
        let known = self.own.status.draft.environment(name).filter(|known| known.is_carried_out_by(order));
        let Some(promotion) = known.and_then(EnvironmentStatus::open) else { return };
        let is_new = now_ms.saturating_sub(promotion.started_ms.unwrap_or_default()) < NEW_FOR_MS;
        let next = now.after(if is_new { LOOK_SOON } else { LOOK_LATER });
        if let Some(calls) = self.proposals.answer(order) {
            calls.look.answered_until(next);
            calls.held = None;
        }
        match state {
            RequestState::Open => {}
            RequestState::Lacks(lacks) => {
                let known = self.own.status.draft.environments.get_mut(name);
                known
                    .and_then(|known| known.request.as_mut())
                    .into_iter()
                    .for_each(|request| request.lacks = lacks.clone());
            }
            RequestState::Held(why) => self.proposals.about(order).held = Some(why),
            RequestState::Merged => self.merged(name),
            RequestState::Closed => self.abandoned(now, name),
        }
    }

    fn merged(&mut self, name: &Environment) {
        self.land(name);
        if let Some(known) = self.own.status.draft.environments.get_mut(name) {
            known.request = None;
        }
    }

    /// A person closed the request.
    fn abandoned(&mut self, now: Timestamp, name: &Environment) {
        let Some(known) = self.own.status.draft.environments.get_mut(name) else { return };
        let request = known.request.take();
        let number = request.and_then(|request| request.number).map_or_else(String::new, |number| format!(" {number}"));
        let why = format!("a person closed its pull request{number}");
        self.announce(now, Kind::PromotionFailed, name, &why);
        self.end(now, name, Phase::Abandoned, &why);
    }

    /// The open promotion of an environment ends if the spec proposes elsewhere by now: its request is there, and a yes was to it.
    pub(super) fn leave_repository(&mut self, now: Timestamp, name: &Environment, repository: Option<&Repository>) {
        let Some(known) = self.own.status.draft.environment(name) else { return };
        let is_moved = |request: &OpenRequest| repository.is_none_or(|repository| !request.is_in(repository));
        let is_proposed = known.open().is_some_and(|open| matches!(open.phase, Phase::Started | Phase::Proposed));
        if is_proposed && known.request.as_ref().is_some_and(is_moved) {
            self.end(now, name, Phase::Superseded, ELSEWHERE);
        }
    }

    /// Sets requests that nothing follows apart, and closes them once that is durable.
    pub(super) fn close_requests(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let names: Vec<Environment> = self.own.status.draft.environments.keys().cloned().collect();
        for name in names {
            let repository = self.repository(&name).cloned();
            let merges = self.options(&name).is_some_and(|options| options.auto_merge.is_some());
            let Some(known) = self.own.status.draft.environments.get_mut(&name) else { continue };
            known.part(repository.as_ref(), merges);
            let Some((request, why)) = known.closing.first().cloned() else { continue };
            let durable = self.own.status.durable.environment(&name);
            let Some(promotion) = known.promotion.clone().filter(|_| {
                durable.is_some_and(|durable| durable.closing.first().is_some_and(|(first, _)| *first == request))
            }) else {
                continue;
            };
            let is_surplus = known.closing.len() > CLOSING_MAX;
            let Some(repository) = request.repository.clone().or(repository).filter(|_| !is_surplus) else {
                let why = if is_surplus { "too many others wait for that" } else { "the spec no longer says where" };
                let message = format!("pull request {} is not closed: {why}", request.url);
                self.announce(now, Kind::PromotionFailed, &name, &message);
                self.closed(&name, &request);
                continue;
            };
            let withdraw = &mut self.proposals.calls.entry(name.clone()).or_default().withdraw;
            if withdraw.is_due(now) {
                withdraw.asked();
                let id = promotion_id(&self.own.object.uid, &name, request.seq);
                let order = Order { seq: request.seq, id, ..self.order(&name, &promotion, &repository) };
                effects.push(Effect::Withdraw(Box::new(order), request.number, why));
            }
        }
    }

    /// The request of this order is closed, or was never made.
    pub(super) fn request_closed(&mut self, order: &Order) {
        let known = self.own.status.draft.environment(&order.environment);
        let of = |(request, _): &&(OpenRequest, String)| request.seq == order.seq && request.is_in(&order.repository);
        if let Some((request, _)) = known.and_then(|known| known.closing.iter().find(of)).cloned() {
            self.closed(&order.environment, &request);
        }
    }

    fn closed(&mut self, name: &Environment, request: &OpenRequest) {
        if let Some(known) = self.own.status.draft.environments.get_mut(name) {
            known.closing.retain(|(closing, _)| closing != request);
        }
        if let Some(calls) = self.proposals.calls.get_mut(name) {
            calls.withdraw.answered();
            calls.refused = None;
        }
    }

    /// The request of this order was not closed.
    pub(super) fn withdraw_failed(&mut self, now: Timestamp, order: &Order, why: &str, lasting: bool) {
        let name = &order.environment;
        let again = self.own.again(now);
        let known = self.own.status.draft.environment(name).and_then(|known| known.closing.first().cloned());
        let Some(calls) = self.proposals.calls.get_mut(name) else { return };
        let Some((request, _)) = known.filter(|_| lasting) else { return calls.withdraw.failed(again, why) };
        if request.number.is_none() {
            // No answer ever confirmed it, and after a lasting failure none is made.
            return self.closed(name, &request);
        }
        let is_told = calls.withdraw.last_reason() == Some(why);
        calls.withdraw.failed(|_| now.after(LOOK_LATER), why);
        calls.refused.clone_from(&order.repository.secret);
        if !is_told {
            let message = format!("pull request {} cannot be closed: {why}", request.url);
            self.announce(now, Kind::PromotionFailed, name, &message);
        }
    }
}
