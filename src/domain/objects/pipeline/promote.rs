//! The next step of each environment, judged anew from the sights and the status.
//!
//! ```text
//! a person chose a revision          that one goes on, whatever those before it are at (`choice`)
//! what it has does not hold          it goes back, where the spec says so (`rollback`)
//! no candidate                       one just before it went elsewhere: withdraw. Else wait for the first thing that is not so
//! a promotion of another revision    superseded, then go on
//! it is settled at R                 landed, and when it is done completed
//! a target unknown or absent         wait: nothing is promoted over it
//! a target says R                    it is arriving: landed, wait
//! it was done at R before, or a      ask a person (PL-4)
//!   person closed the request of R,
//!   or chose another one over R
//! else                               a promotion of R: go on with it, or begin it
//! ```

use crate::pipeline::ending::Leaving;
use crate::pipeline::gates::Gate;
use crate::pipeline::judge::{self, Obstacle, What};
use crate::pipeline::spec::{EnvironmentSpec, PromotionSpec, Spec};
use crate::pipeline::status::{Cause, EnvironmentStatus, Phase, Promotion, Question};
use crate::pipeline::{Effect, Pipeline};
use crate::status::{Approval, Late};
use kernel::id::{Environment, PromotionSeq, Revision};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// Who goes back by itself, where a person is named otherwise.
pub(super) const BY: &str = "allclear";

/// The wait of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    /// The environments before it are not all done at one revision.
    Before(Obstacle),
    /// A target of its own cannot be read, or is not there.
    Unseen(Obstacle),
    Gates(Vec<Gate>),
    /// A fresh look has not agreed yet.
    Recheck(Option<String>),
    /// A person is asked.
    Person(Question),
    /// It stays at what a person chose: in words.
    Held(String),
    /// The pull request is being made, or that fails.
    Proposing(Option<String>),
    /// The pull request is open, and may be held.
    Proposed(String, Option<String>),
    /// It was started, and the notice is on its way.
    Telling,
    /// Its notice was sent or its request merged, and no target is at the revision yet.
    Deploying(Environment, Revision),
    /// It is on its way, and not done: the first thing that is not so.
    Arriving(Obstacle),
}

/// What a promotion begins with.
pub(super) struct Beginning {
    pub(super) revision: Revision,
    pub(super) from: Option<Revision>,
    /// A yes that was given before it began.
    pub(super) approval: Option<Approval>,
    /// It was chosen: how it relates to what is there.
    pub(super) chosen: Option<String>,
    /// By nobody: the environment goes back by itself, for this.
    pub(super) rollback: Option<Cause>,
}

impl Pending {
    /// Whether this ends by itself at a time that is known.
    pub(super) fn is_planned(&self) -> bool {
        matches!(self, Self::Gates(closed) if closed.iter().all(Gate::is_planned))
    }
}

impl Pipeline {
    /// Judges one environment, and forgets what was asked about gates that it does not stand before.
    pub(super) fn attend(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        environment: &EnvironmentSpec,
        index: usize,
        effects: &mut Vec<Effect>,
    ) -> Option<Pending> {
        let pending = self.promote(now, spec, index, effects);
        let keeps = match &pending {
            Some(Pending::Gates(_) | Pending::Recheck(_)) => true,
            // The edge is asked for with the fresh look, whose answer still counts.
            Some(Pending::Before(obstacle)) => obstacle.what == What::EdgeUnseen,
            _ => false,
        };
        if !keeps {
            self.keeper.rest_gates(&environment.name);
        }
        self.mind_stall(now, environment, pending.as_ref());
        pending
    }

    /// Judges one environment, and returns what it waits for.
    fn promote(&mut self, now: Timestamp, spec: &Spec, index: usize, effects: &mut Vec<Effect>) -> Option<Pending> {
        let environment = spec.environments.get(index)?;
        let name = &environment.name;
        let Some(how) = &environment.promotion else {
            self.take_choice(now, spec, name, None);
            self.withdraw(now, name, "nothing is promoted into it any more");
            self.own.status.draft.environments.get_mut(name).into_iter().for_each(|known| known.watch = None);
            return None;
        };
        self.leave_repository(now, name, how.repository());
        let candidate = self.candidate(now, spec, index);
        if self.take_choice(now, spec, name, candidate.as_ref().ok()) {
            return Some(self.rechecking(name));
        }
        self.roll_back(now, environment, candidate.as_ref().ok(), effects);
        if let Some(chosen) = self.stands(now, environment, candidate.as_ref().ok()) {
            return self.pursue_choice(now, spec, index, how, &chosen, effects);
        }
        let revision = match candidate {
            Ok(revision) => revision,
            Err(obstacle) => {
                let is_asked = self.leave_with_those_before(now, spec, index, name, effects);
                return Some(if is_asked { self.rechecking(name) } else { Pending::Before(obstacle) });
            }
        };
        match self.leaving(now, spec, index, &revision, effects) {
            Leaving::Asked => return Some(self.rechecking(name)),
            Leaving::Yes if judge::settled(environment, &self.sights) == Ok(&revision) => {
                self.withdraw(now, name, &format!("{name} is to be at {revision} now, and has it"));
            }
            Leaving::Yes => self.end(now, name, Phase::Superseded, &format!("{revision} took its place")),
            Leaving::No => {}
        }
        self.pursue(now, spec, index, how, &revision, effects)
    }

    /// Gets an environment to what those before it are at.
    fn pursue(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        how: &PromotionSpec,
        revision: &Revision,
        effects: &mut Vec<Effect>,
    ) -> Option<Pending> {
        let environment = spec.environments.get(index)?;
        let name = &environment.name;
        self.drop_question(name, revision);
        if judge::settled(environment, &self.sights) == Ok(revision) {
            return self.arrived(now, environment, revision);
        }
        if let Some(obstacle) = judge::unseen(environment, &self.sights) {
            return Some(Pending::Unseen(obstacle));
        }
        if judge::is_arriving(environment, revision, &self.sights) {
            self.land(name);
            return judge::settled(environment, &self.sights).err().map(Pending::Arriving);
        }
        let known = self.own.status.draft.environments.entry(name.clone()).or_default();
        if known.open().is_none() {
            let held = known.held(revision);
            let question = if held.is_some() { Some(Question::Left) } else { known.asks_again(revision) };
            if let Some(question) = question
                && !self.may_repeat(now, name, revision, question)
            {
                return Some(held.map_or(Pending::Person(question), Pending::Held));
            }
            self.begin_next(now, spec, index, revision);
        }
        self.go_on(now, spec, index, how, effects)
    }

    /// Drops a question about another revision.
    pub(super) fn drop_question(&mut self, name: &Environment, revision: &Revision) {
        if let Some(known) = self.own.status.draft.environments.get_mut(name) {
            known.waiting.take_if(|waiting| waiting.revision != *revision);
        }
    }

    fn rechecking(&self, name: &Environment) -> Pending {
        Pending::Recheck(self.keeper.disagreement(name).map(str::to_owned))
    }

    /// Every target is ready at the revision.
    pub(super) fn arrived(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        revision: &Revision,
    ) -> Option<Pending> {
        let name = &environment.name;
        self.land(name);
        if let Err(obstacle) = judge::done(environment, &self.sights, self.keeper.edges()) {
            return Some(Pending::Arriving(obstacle));
        }
        let is_open = self.own.status.draft.environment(name).is_some_and(|known| known.open().is_some());
        if is_open {
            self.end(now, name, Phase::Completed, &format!("every target is ready at {revision}"));
        }
        let known = self.own.status.draft.environments.entry(name.clone()).or_default();
        known.reached = Some(revision.clone());
        known.waiting = None;
        known.done_at(revision);
        None
    }

    /// The environment is getting there, however that came.
    pub(super) fn land(&mut self, name: &Environment) {
        let Some(known) = self.own.status.draft.environments.get_mut(name) else { return };
        known.waiting = None;
        if let Some(promotion) = known.promotion.as_mut().filter(|promotion| promotion.phase.is_open()) {
            promotion.phase = Phase::Landed;
            self.proposals.rest(name);
        }
    }

    /// Whether a person allowed to promote once more what an environment has had; asks otherwise.
    fn may_repeat(&mut self, now: Timestamp, name: &Environment, revision: &Revision, question: Question) -> bool {
        let seq = self.own.status.draft.environment(name).map(|known| known.seq).unwrap_or_default();
        self.answered(now, name, seq, revision, question, "").is_some()
    }

    /// Begins a promotion of what those before are at.
    fn begin_next(&mut self, now: Timestamp, spec: &Spec, index: usize, revision: &Revision) {
        let Some(environment) = spec.environments.get(index) else { return };
        let returns = environment.rollback.is_some() && self.goes_back(spec, index, revision);
        let from = judge::said(environment, &self.sights).cloned();
        let now_ms = self.own.wall_ms(now);
        let answer = self.own.object.answers.clone();
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        // A yes to "once more" is a yes to this promotion, and takes the place of an earlier choice.
        let approval = known.waiting.take().filter(|waiting| answer.approve(&waiting.ticket));
        let approval = approval.map(|waiting| super::ask::approval(&answer, waiting.ticket, now_ms));
        // The others stay held until the environment is done at it.
        known.chosen.as_mut().into_iter().for_each(|chosen| chosen.over.retain(|one| one != revision));
        self.begin(
            &environment.name,
            Beginning { revision: revision.clone(), from, approval, chosen: None, rollback: None },
        );
        let begun =
            self.own.status.draft.environments.get_mut(&environment.name).and_then(|known| known.promotion.as_mut());
        begun.into_iter().for_each(|begun| begun.returns = returns);
    }

    /// Begins a promotion. It has a new number, so no answer to an earlier question counts for it.
    pub(super) fn begin(&mut self, name: &Environment, beginning: Beginning) -> PromotionSeq {
        let Beginning { revision, from, approval, chosen, rollback } = beginning;
        let known = self.own.status.draft.environments.entry(name.clone()).or_default();
        known.waiting = None;
        known.seq = known.seq.next();
        known.promotion = Some(Promotion {
            seq: known.seq,
            revision,
            from,
            phase: Phase::Waiting,
            started_ms: None,
            approval,
            returns: false,
            chosen,
            rollback,
            message: String::new(),
        });
        known.seq
    }

    /// Goes on with the open promotion, as far as its phase allows.
    pub(super) fn go_on(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        how: &PromotionSpec,
        effects: &mut Vec<Effect>,
    ) -> Option<Pending> {
        let environment = spec.environments.get(index)?;
        let name = &environment.name;
        let promotion = self.own.status.draft.environment(name)?.open()?.clone();
        match promotion.phase {
            Phase::Waiting => self.approach(now, spec, index, &promotion, effects),
            Phase::Started | Phase::Proposed => Some(self.carry_out(now, environment, how, &promotion, effects)),
            Phase::Landed | Phase::Completed | Phase::Superseded | Phase::Withdrawn | Phase::Abandoned => {
                let obstacle = judge::settled(environment, &self.sights).err();
                let deploying = || Pending::Deploying(name.clone(), promotion.revision.clone());
                Some(obstacle.map_or_else(deploying, Pending::Arriving))
            }
        }
    }

    /// Starts a promotion, if its gates are open and a fresh look agrees.
    fn approach(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        promotion: &Promotion,
        effects: &mut Vec<Effect>,
    ) -> Option<Pending> {
        let environment = spec.environments.get(index)?;
        let (name, seq) = (&environment.name, promotion.seq);
        let promotion = self.ask_approval(now, environment, seq)?;
        let closed = self.closed_gates(now, spec, index, &promotion, effects);
        for gate in &closed {
            if let Gate::Soak(until) = gate {
                self.own.wake_at(*until);
            }
        }
        if !closed.is_empty() {
            return Some(Pending::Gates(closed));
        }
        if self.own.object.deleting {
            return Some(Pending::Recheck(Some("nothing starts in a Pipeline that is being deleted".to_owned())));
        }
        if self.own.status.pruned {
            return Some(Pending::Recheck(Some("nothing starts while its status cannot be kept".to_owned())));
        }
        if !self.keeper.agreed(name, seq) {
            effects.extend(self.recheck(now, spec, index, name, seq));
            return Some(self.rechecking(name));
        }
        if !self.own.status.is_free(now) {
            // What is decided now would be sent later, when it may be wrong.
            return Some(Pending::Recheck(self.own.status.trouble().map(str::to_owned)));
        }
        self.start(now, environment, seq);
        Some(Pending::Telling)
    }

    fn start(&mut self, now: Timestamp, environment: &EnvironmentSpec, seq: PromotionSeq) {
        let now_ms = self.own.wall_ms(now);
        let name = &environment.name;
        let Some(known) = self.own.status.draft.environments.get_mut(name) else { return };
        known.waiting = None;
        // We are replacing its revision, so `reached` no longer holds.
        known.reached = None;
        let Some(promotion) = known.promotion.as_mut().filter(|promotion| promotion.seq == seq) else { return };
        if promotion.chosen.is_none() {
            // A person may have opened its soak.
            let keeps = !known.further_trails.is_empty();
            let trails = known.trail.iter_mut().chain(&mut known.further_trails);
            trails.for_each(|trail| trail.pass(&promotion.revision, keeps));
        }
        promotion.phase = Phase::Started;
        promotion.started_ms = Some(now_ms);
        let started = promotion.clone();
        let chosen = promotion.choice().map(|words| format!(", {words}")).unwrap_or_default();
        let message = format!("{} is promoted to {}{chosen}", promotion.revision, environment.name);
        if let Some(repository) = environment.promotion.as_ref().and_then(PromotionSpec::repository) {
            known.expect_request(seq, repository);
        }
        self.watch_from_start(environment, &started);
        self.announce(now, Kind::PromotionStarted, name, &message);
    }

    /// Notes since when an environment is not where it is to be, and tells once that this takes long.
    fn mind_stall(&mut self, now: Timestamp, environment: &EnvironmentSpec, pending: Option<&Pending>) {
        if self.is_starting(now) {
            return;
        }
        let now_ms = self.own.wall_ms(now);
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        // Where a person wants it, it is not late.
        let wanted = known.chosen.as_ref().map(|chosen| &chosen.revision);
        let is_there = judge::said(environment, &self.sights).is_some_and(|said| Some(said) == wanted);
        let Some(pending) = pending.filter(|pending| !(is_there && matches!(pending, Pending::Held(_)))) else {
            known.behind = None;
            return;
        };
        let behind = known.behind.get_or_insert(Late { since_ms: now_ms, told: false });
        if behind.told || pending.is_planned() {
            return;
        }
        let limit = i64::try_from(environment.stalled_after.as_millis()).unwrap_or(i64::MAX);
        let left = behind.since_ms.saturating_add(limit).saturating_sub(now_ms).min(limit);
        match u64::try_from(left) {
            Ok(left) if left > 0 => self.own.wake_at(now.after(std::time::Duration::from_millis(left))),
            _ => {
                behind.told = true;
                let message = format!("{} waits: {pending}", environment.name);
                self.announce(now, Kind::PromotionStalled, &environment.name, &message);
            }
        }
    }
}

impl EnvironmentStatus {
    /// The question for a person before this revision is promoted to it again (PL-4).
    pub(super) fn asks_again(&self, revision: &Revision) -> Option<Question> {
        let back = self.promotion.as_ref().filter(|promotion| promotion.rollback.is_some());
        if back.is_some_and(|back| back.from.as_ref() == Some(revision)) {
            return Some(Question::Left);
        }
        let newest = self.promotion.as_ref().filter(|promotion| promotion.revision == *revision);
        match newest.map(|promotion| promotion.phase) {
            Some(Phase::Abandoned) => Some(Question::Again),
            Some(Phase::Completed) => Some(Question::Left),
            _ => (self.reached.as_ref() == Some(revision)).then_some(Question::Left),
        }
    }
}

impl std::fmt::Display for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Before(obstacle) | Self::Unseen(obstacle) | Self::Arriving(obstacle) => obstacle.fmt(f),
            Self::Gates(closed) => {
                let words: Vec<String> = closed.iter().map(Gate::to_string).collect();
                f.write_str(&words.join("; "))
            }
            Self::Recheck(None) => f.write_str("the targets before it are read once more"),
            Self::Recheck(Some(why)) => write!(f, "the targets before it are read once more: {why}"),
            Self::Person(question) => f.write_str(question.words()),
            Self::Held(words) => f.write_str(words),
            Self::Proposing(None) => f.write_str("its pull request is being made"),
            Self::Proposing(Some(why)) => write!(f, "its pull request cannot be made: {why}"),
            Self::Proposed(url, None) => write!(f, "its pull request is open: {url}"),
            Self::Proposed(url, Some(why)) => write!(f, "its pull request is open: {url}; {why}"),
            Self::Telling => f.write_str("it is started"),
            Self::Deploying(name, revision) => write!(f, "waits for somebody to deploy {revision} in {name}"),
        }
    }
}
