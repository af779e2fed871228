//! How promotions end that go on no more: those before went elsewhere, the spec has no place for them, or something took theirs.
//!
//! Not for what begins and goes on; that is `promote`.

use crate::pipeline::set;
use crate::pipeline::spec::Spec;
use crate::pipeline::status::{Ended, EnvironmentStatus, Phase};
use crate::pipeline::{Effect, Pipeline};
use crate::status::HISTORY_MAX;
use kernel::id::{Environment, Revision};
use kernel::machine::Timestamp;
use notices::notice::Kind;

/// Whether an open promotion is to end because an environment before it went elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// A fresh look was asked for.
    Asked,
    Yes,
}

impl Pipeline {
    /// Where those before an environment agree on no revision: ends what was begun, if one of them went elsewhere. Returns true while a
    /// fresh look is asked for that.
    pub(super) fn leave_with_those_before(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        name: &Environment,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let elsewhere = self.elsewhere(spec, index);
        let open = self.own.status.draft.environment(name).and_then(EnvironmentStatus::open);
        let open = open.map(|open| (open.revision.clone(), open.phase));
        let left = elsewhere.iter().find(|(_, at)| open.as_ref().is_some_and(|(revision, _)| revision != at));
        if let Some((before, at)) = left {
            match self.leaving(now, spec, index, at, effects) {
                Leaving::Asked => return true,
                Leaving::Yes if open.is_some_and(|(_, phase)| phase != Phase::Landed) => {
                    self.withdraw(now, name, &format!("{before} is at another revision now"));
                }
                Leaving::Yes | Leaving::No => {}
            }
        }
        elsewhere.iter().for_each(|(_, at)| self.drop_question(name, at));
        false
    }

    /// Whether the open promotion of an environment is to end, since one before it is settled at another revision. Before one
    /// ends that was started, a fresh look must say so, too: a watch may lag behind what another life has seen.
    pub(super) fn leaving(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        elsewhere: &Revision,
        effects: &mut Vec<Effect>,
    ) -> Leaving {
        let Some(environment) = spec.environments.get(index) else { return Leaving::No };
        let name = &environment.name;
        let open = self.own.status.draft.environment(name).and_then(EnvironmentStatus::open);
        let Some(promotion) = open.filter(|promotion| promotion.revision != *elsewhere) else { return Leaving::No };
        let (seq, phase) = (promotion.seq, promotion.phase);
        if !matches!(phase, Phase::Started | Phase::Proposed) || self.keeper.agreed(name, seq) {
            return Leaving::Yes;
        }
        effects.extend(self.recheck(now, spec, index, name, seq));
        Leaving::Asked
    }

    /// Withdraws a promotion, with a notice if it was announced or a person was asked.
    pub(super) fn withdraw(&mut self, now: Timestamp, name: &Environment, why: &str) {
        let Some(known) = self.own.status.draft.environment(name) else { return };
        let Some(promotion) = known.open() else { return };
        if promotion.phase != Phase::Waiting || known.waiting.is_some() || promotion.chosen.is_some() {
            let message = format!("{} is not promoted to {name} any more: {why}", promotion.revision);
            self.announce(now, Kind::PromotionWithdrawn, name, &message);
        }
        self.end(now, name, Phase::Withdrawn, why);
    }

    /// Ends the open promotion of an environment.
    pub(super) fn end(&mut self, now: Timestamp, name: &Environment, outcome: Phase, why: &str) {
        let at_ms = self.own.wall_ms(now);
        let draft = &mut self.own.status.draft;
        let Some(known) = draft.environments.get_mut(name) else { return };
        let Some(promotion) = known.promotion.as_mut().filter(|promotion| promotion.phase.is_open()) else { return };
        promotion.phase = outcome;
        why.clone_into(&mut promotion.message);
        known.waiting = None;
        draft.history.push(Ended {
            environment: name.clone(),
            seq: promotion.seq,
            revision: promotion.revision.clone(),
            outcome,
            by: promotion.approval.as_ref().and_then(|approval| approval.by.clone()),
            chosen: promotion.chosen.clone(),
            rollback: promotion.rollback,
            at_ms,
        });
        let surplus = draft.history.len().saturating_sub(HISTORY_MAX);
        draft.history.drain(..surplus);
        self.proposals.rest(name);
        if outcome == Phase::Completed {
            let message = format!("{name}: {why}");
            self.announce(now, Kind::PromotionCompleted, name, &message);
        }
    }

    /// Environments that the spec no longer has, or that are first now: nothing is promoted into them.
    pub(super) fn drop_strays(&mut self, now: Timestamp, spec: &Spec) {
        let names: Vec<Environment> = self.own.status.draft.environments.keys().cloned().collect();
        for name in names {
            let own = spec.environments.iter().find(|environment| environment.name == name);
            match own {
                Some(own) if own.is_first() => {
                    self.take_choice(now, spec, &name, None);
                    self.withdraw(now, &name, "it is the first environment now");
                }
                // A set of other apps can never be there again.
                Some(_) => {
                    let open = self.own.status.draft.environment(&name).and_then(EnvironmentStatus::open);
                    let is_set = |revision| spec.apps.is_empty() || set::parts(&spec.apps, revision).is_some();
                    if open.is_some_and(|open| !is_set(&open.revision)) {
                        self.withdraw(now, &name, "its spec has other apps now");
                    }
                }
                None => {
                    self.take_choice(now, spec, &name, None);
                    self.withdraw(now, &name, "the Pipeline has no such environment any more");
                    let known = self.own.status.draft.environments.get_mut(&name);
                    known.into_iter().for_each(|known| known.targets.clear());
                }
            }
        }
    }
}
