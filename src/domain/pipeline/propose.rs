//! Carrying a started promotion out: its notice, or its pull request until that is merged or closed.
//!
//! A pull request belongs to its environment's branch: a promotion that takes another's place rewrites the request, and a request
//! that nothing follows is closed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::call::Call;
use crate::id::{Environment, PromotionSeq, promotion_id};
use crate::machine::Timestamp;
use crate::notice::Kind;
use crate::pipeline::promote::Pending;
use crate::pipeline::proposal::{Order, Proposed, Repository, Request, RequestState};
use crate::pipeline::spec::{EnvironmentSpec, PromotionSpec, Spec, Strategy};
use crate::pipeline::status::{EnvironmentStatus, OpenRequest, Phase, Promotion, Question};
use crate::pipeline::{Effect, Pipeline};

/// How often an open request is looked at in its first hour.
const LOOK_SOON: Duration = Duration::from_mins(2);

/// How often it is looked at later, and how often a lasting failure is tried again.
const LOOK_LATER: Duration = Duration::from_mins(10);

/// How long a request is new.
const NEW_FOR_MS: i64 = 60 * 60 * 1000;

/// What is asked of forges, one call of each kind for an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Proposals(BTreeMap<Environment, Calls>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Calls {
    /// The promotion that the calls are about.
    seq: PromotionSeq,
    propose: Call,
    look: Call,
    withdraw: Call,
    /// The branch holds commits of others, in words.
    foreign: Option<String>,
    /// A lasting failure that was told.
    told: Option<String>,
}

impl Proposals {
    /// The calls about this promotion. What was asked about an earlier one is forgotten.
    fn about(&mut self, environment: &Environment, seq: PromotionSeq) -> &mut Calls {
        let calls = self.0.entry(environment.clone()).or_default();
        if calls.seq != seq {
            *calls = Calls { seq, withdraw: std::mem::take(&mut calls.withdraw), ..Calls::default() };
        }
        calls
    }

    /// The same for an answer: one about another promotion says nothing of these calls.
    fn answer(&mut self, environment: &Environment, seq: PromotionSeq) -> Option<&mut Calls> {
        self.0.get_mut(environment).filter(|calls| calls.seq == seq)
    }

    /// What was asked may have been forgotten.
    pub(super) fn restart(&mut self) {
        self.0.clear();
    }

    /// Somebody asked for a look: nothing waits for its next time.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        for calls in self.0.values_mut() {
            [&mut calls.propose, &mut calls.look, &mut calls.withdraw].into_iter().for_each(|call| call.hurry(now));
        }
    }

    pub(super) fn look_failed(
        &mut self,
        environment: &Environment,
        seq: PromotionSeq,
        again: impl FnOnce(u32) -> Timestamp,
        why: String,
    ) {
        if let Some(calls) = self.answer(environment, seq) {
            calls.look.failed(again, why);
        }
    }

    pub(super) fn withdraw_failed(
        &mut self,
        environment: &Environment,
        again: impl FnOnce(u32) -> Timestamp,
        why: String,
    ) {
        if let Some(calls) = self.0.get_mut(environment) {
            calls.withdraw.failed(again, why);
        }
    }

    /// The promotion has ended. Only its request may have to be closed.
    pub(super) fn rest(&mut self, environment: &Environment) {
        if let Some(calls) = self.0.get_mut(environment) {
            *calls = Calls { seq: calls.seq, withdraw: std::mem::take(&mut calls.withdraw), ..Calls::default() };
        }
    }

    /// Ends every rest that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        for Calls { propose, look, withdraw, .. } in self.0.values_mut() {
            [propose, look, withdraw].into_iter().for_each(|call| call.wake(now));
        }
    }

    /// When a forge is asked again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.0
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
        let is_durable = self
            .status
            .durable
            .environment(name)
            .and_then(EnvironmentStatus::open)
            .is_some_and(|durable| durable.seq == promotion.seq && durable.phase >= Phase::Started);
        match &how.strategy {
            Strategy::Notification => {
                let told = self.id_of(Kind::PromotionStarted, name, promotion.seq, "");
                if is_durable && !self.status.draft.untold.iter().any(|notice| notice.id == told) {
                    self.land(name);
                    return Pending::Arriving(None);
                }
                Pending::Telling
            }
            Strategy::PullRequest(_) if !is_durable => Pending::Telling,
            Strategy::PullRequest(repository) => {
                let order = self.order(name, promotion, repository);
                if promotion.phase == Phase::Proposed {
                    self.watch_request(now, name, order, effects)
                } else {
                    self.propose(now, name, order, effects)
                }
            }
        }
    }

    /// Whether promotions into this environment are pull requests.
    pub(super) fn proposes(&self, name: &Environment) -> bool {
        let environments = self.spec().into_iter().flat_map(|spec| &spec.environments);
        let how = environments.filter(|environment| environment.name == *name).find_map(|one| one.promotion.as_ref());
        how.is_some_and(|how| matches!(how.strategy, Strategy::PullRequest(_)))
    }

    fn order(&self, name: &Environment, promotion: &Promotion, repository: &Repository) -> Order {
        Order {
            id: promotion_id(&self.object.uid, name, promotion.seq),
            pipeline: self.object.id.clone(),
            environment: name.clone(),
            seq: promotion.seq,
            from: promotion.from.clone(),
            revision: promotion.revision.clone(),
            repository: repository.clone(),
            started_at: promotion.started_ms.unwrap_or_default() / 1000,
            approved_by: promotion.approval.as_ref().and_then(|approval| approval.by.clone()),
            gates: Vec::new(),
            overwrite: false,
        }
    }

    /// Makes the request, or asks a person first where the branch is not ours.
    fn propose(&mut self, now: Timestamp, name: &Environment, mut order: Order, effects: &mut Vec<Effect>) -> Pending {
        let calls = self.proposals.about(name, order.seq);
        if calls.foreign.is_some() {
            let (seq, revision) = (order.seq, order.revision.clone());
            if self.answered(now, name, seq, &revision, Question::Overwrite).is_none() {
                return Pending::Person(Question::Overwrite);
            }
            order.overwrite = true;
        }
        let calls = self.proposals.about(name, order.seq);
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
        order: Order,
        effects: &mut Vec<Effect>,
    ) -> Pending {
        let request = self.status.draft.environment(name).and_then(|known| known.request.clone());
        let Some((number, request)) = request.and_then(|request| Some((request.number?, request))) else {
            return Pending::Proposing(None);
        };
        let look = &mut self.proposals.about(name, order.seq).look;
        if look.is_due(now) {
            look.asked();
            effects.push(Effect::LookAtProposal(Box::new(order), number));
        }
        Pending::Proposed(request.url)
    }

    /// What became of an order.
    pub(super) fn proposed(&mut self, now: Timestamp, name: &Environment, seq: PromotionSeq, outcome: Proposed) {
        if let Some(calls) = self.proposals.answer(name, seq) {
            calls.propose.answered();
            calls.look = Call::due(now.after(LOOK_SOON));
        }
        let at = |Request { url, number, commit }| Some(OpenRequest { seq, number: Some(number), url, commit });
        let Some(known) = self.status.draft.environments.get_mut(name) else { return };
        let open = known.promotion.as_mut().filter(|promotion| promotion.seq == seq && promotion.phase.is_open());
        let Some(promotion) = open else {
            // It ended meanwhile. Its request is remembered, to be rewritten or closed.
            if let Proposed::Open(request) = outcome
                && known.request.as_ref().is_none_or(|known| known.seq == seq)
            {
                known.request = at(request);
            }
            return;
        };
        match outcome {
            Proposed::Open(request) => {
                known.request = at(request);
                known.waiting = None;
                promotion.phase = promotion.phase.max(Phase::Proposed);
            }
            Proposed::NothingToChange => self.land(name),
            Proposed::Merged(_) => self.merged(name),
            Proposed::Closed(request) => {
                known.request = at(request);
                self.abandoned(now, name);
            }
            Proposed::Outdated(newer) => {
                // Another life of this object went further. Its numbers are not given out again.
                known.seq = known.seq.max(newer);
                self.end(now, name, Phase::Superseded, &format!("its branch holds promotion {newer} already"));
            }
            Proposed::Foreign(words) => self.proposals.about(name, seq).foreign = Some(words),
        }
    }

    pub(super) fn propose_failed(
        &mut self,
        now: Timestamp,
        name: &Environment,
        seq: PromotionSeq,
        why: &str,
        lasting: bool,
    ) {
        let again = self.again(now);
        let Some(calls) = self.proposals.answer(name, seq) else { return };
        if !lasting {
            return calls.propose.failed(again, why);
        }
        calls.propose.failed(|_| now.after(LOOK_LATER), why);
        if calls.told.as_deref() != Some(why) {
            calls.told = Some(why.to_owned());
            let message = format!("its pull request cannot be made: {why}");
            self.announce(now, Kind::PromotionFailed, name, &message);
        }
    }

    /// How the open request stands.
    pub(super) fn proposal_seen(&mut self, now: Timestamp, name: &Environment, seq: PromotionSeq, state: RequestState) {
        let now_ms = self.wall_ms(now);
        let known = self.status.draft.environment(name);
        let Some(promotion) = known.and_then(EnvironmentStatus::open).filter(|promotion| promotion.seq == seq) else {
            return;
        };
        let is_new = now_ms.saturating_sub(promotion.started_ms.unwrap_or_default()) < NEW_FOR_MS;
        let next = now.after(if is_new { LOOK_SOON } else { LOOK_LATER });
        if let Some(calls) = self.proposals.answer(name, seq) {
            calls.look.answered_until(next);
        }
        match state {
            RequestState::Open => {}
            RequestState::Merged => self.merged(name),
            RequestState::Closed => self.abandoned(now, name),
        }
    }

    fn merged(&mut self, name: &Environment) {
        self.land(name);
        if let Some(known) = self.status.draft.environments.get_mut(name) {
            known.request = None;
        }
    }

    /// A person closed the request.
    fn abandoned(&mut self, now: Timestamp, name: &Environment) {
        let Some(known) = self.status.draft.environments.get_mut(name) else { return };
        let request = known.request.take();
        let number = request.and_then(|request| request.number).map_or_else(String::new, |number| format!(" {number}"));
        let why = format!("a person closed its pull request{number}");
        self.announce(now, Kind::PromotionFailed, name, &why);
        self.end(now, name, Phase::Abandoned, &why);
    }

    /// Closes requests that nothing follows.
    pub(super) fn close_requests(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) {
        let names: Vec<Environment> = self.status.draft.environments.keys().cloned().collect();
        for name in names {
            let Some(known) = self.status.durable.environment(&name) else { continue };
            let (Some(request), Some(promotion)) = (&known.request, &known.promotion) else { continue };
            let follows = promotion.phase < Phase::Landed;
            let same = self.status.draft.environment(&name).is_some_and(|draft| draft.request == known.request);
            if follows || !same {
                continue;
            }
            let (request, promotion) = (request.clone(), promotion.clone());
            let how = spec.environments.iter().find(|environment| environment.name == name);
            let Some(Strategy::PullRequest(repository)) =
                how.and_then(|how| how.promotion.as_ref()).map(|how| &how.strategy)
            else {
                if request.number.is_some() {
                    let url = &request.url;
                    let message = format!("pull request {url} is left open: the spec no longer says how to close it");
                    self.announce(now, Kind::PromotionWithdrawn, &name, &message);
                }
                self.request_closed(&name, request.seq);
                continue;
            };
            let order = self.order(&name, &promotion, repository);
            let withdraw = &mut self.proposals.about(&name, promotion.seq).withdraw;
            if withdraw.is_due(now) {
                withdraw.asked();
                let order = Order { seq: request.seq, id: promotion_id(&self.object.uid, &name, request.seq), ..order };
                effects.push(Effect::Withdraw(Box::new(order), request.number, promotion.message));
            }
        }
    }

    /// The request of this promotion is closed.
    pub(super) fn request_closed(&mut self, name: &Environment, seq: PromotionSeq) {
        let Some(known) = self.status.draft.environments.get_mut(name) else { return };
        known.request.take_if(|request| request.seq == seq);
        if let Some(calls) = self.proposals.0.get_mut(name) {
            calls.withdraw.answered();
        }
    }
}
