//! Which revision is to be in an environment next, by what those before it are done at, and what its trail remembers of that.
//!
//! Not for what may start: that is `gates`.

use std::time::Duration;

use crate::pipeline::Pipeline;
use crate::pipeline::judge::{self, Obstacle, What};
use crate::pipeline::spec::{Advance, EnvironmentSpec, Spec};
use crate::pipeline::status::{EnvironmentStatus, Phase, Promotion};
use crate::pipeline::trail::Trail;
use kernel::id::{Environment, Revision};
use kernel::machine::{Timestamp, millis};

impl Pipeline {
    /// The revision that is to be in the environment at `index`. Under `Latest` that at which all before it are done. Step by step it
    /// is the newest that has passed those before and is newer than what the environment has, though they have moved on; and what is on
    /// its way arrives first, so that the next environment sees it.
    pub(super) fn candidate(&mut self, now: Timestamp, spec: &Spec, index: usize) -> Result<Revision, Obstacle> {
        let found = judge::candidate(spec, index, &self.sights, self.keeper.edges()).cloned();
        let Some(environment) = spec.environments.get(index) else { return found };
        self.note(now, spec, index, environment);
        let Some(known) = self.own.status.draft.environment(&environment.name) else { return found };
        if spec.advance != Advance::Stepwise {
            return found;
        }
        if let Some((revision, until)) = self.arriving(environment, known).filter(|(_, until)| now < *until) {
            let revision = revision.clone();
            self.own.wake_at(until);
            return Ok(revision);
        }
        let before = spec.before(index);
        let Some(passed) = self.passed(spec, environment, known, &before) else { return found };
        let is_open = known.open().is_some_and(|open| open.revision == *passed);
        let has = judge::said(environment, &self.sights);
        let has_it = !is_open && has == Some(passed);
        // Where several are just before it, one may have gone on: what it has is still what it is to have.
        let is_between = before.len() > 1 && found.as_ref().is_err_and(|one| matches!(one.what, What::Behind(..)));
        if has_it && !is_between || has.is_some_and(|has| known.is_before(passed, has)) {
            return found;
        }
        let stands = |before: &&EnvironmentSpec| match judge::settled(before, &self.sights) {
            Ok(at) if at == passed => judge::done(before, &self.sights, self.keeper.edges()).map(|_| ()),
            Ok(_) | Err(_) => judge::stands(before, passed, known, &self.sights),
        };
        before.iter().try_for_each(stands).map(|()| passed.clone())
    }

    /// The revision that moves on of those that have passed all before an environment: the newest. Before that, the newest that another
    /// environment has been done at, or is on its way to, if something comes after both: each would else go on with others, and that would never get one.
    fn passed<'a>(
        &self,
        spec: &Spec,
        environment: &EnvironmentSpec,
        known: &'a EnvironmentStatus,
        before: &[&EnvironmentSpec],
    ) -> Option<&'a Revision> {
        let passed = known.passed(before);
        let newest = *passed.first()?;
        let Some(has) = judge::said(environment, &self.sights) else { return Some(newest) };
        let status = &self.own.status.draft;
        let is_met = |one: &Revision| {
            spec.beside(&environment.name).any(|(after, beside)| {
                let trail = status.environment(&after.name).and_then(|after| after.trail_of(beside));
                let known = status.environment(&beside.name).filter(|known| known.behind.is_none_or(|late| !late.told));
                let open = known.and_then(EnvironmentStatus::open).filter(|open| open.phase != Phase::Waiting);
                let has = known.is_some() && trail.is_some_and(|trail| trail.revisions.contains(one));
                has || open.is_some_and(|open| open.revision == *one)
            })
        };
        let is_asked = |one: &Revision| known.holds(one) || known.asks_again(one).is_some();
        let place = passed.iter().position(|one| known.is_before(has, one) && is_met(one) && !is_asked(one));
        let started = known.open().filter(|open| open.phase != Phase::Waiting);
        let is_past =
            |place: usize| passed.iter().take(place).any(|one| started.is_some_and(|open| open.revision == **one));
        // What is on its way already does not go back to one that is older.
        place.filter(|place| !is_past(*place)).and_then(|place| passed.get(place).copied()).or(Some(newest))
    }

    /// The revision on its way into an environment, and until when the next one waits for it.
    fn arriving<'a>(
        &self,
        environment: &EnvironmentSpec,
        known: &'a EnvironmentStatus,
    ) -> Option<(&'a Revision, Timestamp)> {
        let open = known.open().filter(|open| open.phase == Phase::Landed)?;
        known.trail.as_ref()?;
        if !known.trails().all(|trail| trail.revisions.contains(&open.revision)) {
            return None;
        }
        let until_ms = open.started_ms?.saturating_add(signed(millis(environment.stalled_after)));
        Some((&open.revision, self.timestamp(until_ms)))
    }

    /// Notes what those before are done at, and whether it has soaked: of all together, or step by step of each.
    fn note(&mut self, now: Timestamp, spec: &Spec, index: usize, environment: &EnvironmentSpec) {
        let together = match spec.advance {
            Advance::Latest if environment.gates.soak.is_zero() => Vec::new(),
            Advance::Latest => vec![spec.ancestors(index)],
            Advance::Stepwise => spec.before(index).into_iter().map(|one| vec![one]).collect(),
        };
        let several = together.len() > 1;
        let keeps = several || spec.advance == Advance::Stepwise && spec.beside(&environment.name).next().is_some();
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        let open = known.open().map(|open| open.revision.clone());
        let has = judge::said(environment, &self.sights).cloned();
        let earlier: Vec<Trail> = known.trail.take().into_iter().chain(known.further_trails.drain(..)).collect();
        let mut trails = together.iter().map(|before| {
            let of = judge::trail_topic(before);
            let trail = earlier.iter().find(|trail| trail.of == of).cloned();
            let mut trail = trail.unwrap_or_else(|| Trail { of, ..Trail::default() });
            if !keeps {
                trail.pass_one();
            }
            let beside = |one: &Revision| earlier.iter().any(|other| other.of != of && other.revisions.contains(one));
            let is_over =
                |one: &Revision| has.as_ref().is_some_and(|has| earlier.iter().any(|of| of.is_before(one, has)));
            let held = |one: &Revision| several && (beside(one) && !is_over(one) || open.as_ref() == Some(one));
            self.noted(now, (spec.advance, keeps), environment, before, trail, held)
        });
        let (trail, further): (_, Vec<Trail>) = (trails.next(), trails.collect());
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        (known.trail, known.further_trails) = (trail, further);
    }

    fn noted(
        &mut self,
        now: Timestamp,
        (advance, keeps): (Advance, bool),
        environment: &EnvironmentSpec,
        before: &[&EnvironmentSpec],
        mut trail: Trail,
        held: impl Fn(&Revision) -> bool,
    ) -> Trail {
        let (now_ms, gates) = (self.own.wall_ms(now), &environment.gates);
        let found = judge::agreed(before, &self.sights, self.keeper.edges());
        match &found {
            Ok(revision) => trail.is_done(revision, now_ms, signed(millis(gates.soak_tolerates)), held),
            Err(obstacle) if obstacle.what.is_unknown() => {}
            Err(_) => {
                let has = judge::said(environment, &self.sights);
                let mut said = before.iter().flat_map(|before| judge::revisions(before, &self.sights));
                if said.any(|said| trail.newest() != Some(said)) {
                    trail.broke(None);
                }
                if has.is_none() || has != trail.newest() {
                    trail.unready_since_ms.get_or_insert(now_ms);
                }
            }
        }
        if let (Advance::Stepwise, Ok(newest)) = (advance, found) {
            match trail.soak_left_ms(now_ms, signed(millis(gates.soak))) {
                0 => trail.pass(newest, keeps),
                left => self.own.wake_at(now.after(Duration::from_millis(left))),
            }
        }
        trail
    }

    /// Notes the other system's verdict on a waiting promotion.
    pub(super) fn note_verdict(&mut self, now: Timestamp, name: &Environment, promotion: &Promotion, open: bool) {
        let now_ms = self.own.wall_ms(now);
        let known = self.own.status.draft.environments.get_mut(name);
        let trails = known.into_iter().flat_map(EnvironmentStatus::trails_mut);
        trails.for_each(|trail| trail.heard(&promotion.revision, open, now_ms));
    }

    /// Those just before an environment that are settled at a revision, if that is not the one on its way into it, for good: step by step,
    /// only by going back.
    pub(super) fn elsewhere(&self, spec: &Spec, index: usize) -> Vec<(Environment, Revision)> {
        let own = spec.environments.get(index);
        let known = own.and_then(|own| self.own.status.draft.environment(&own.name));
        let open = known.and_then(EnvironmentStatus::open);
        let is_join = spec.before(index).len() > 1;
        let is_for_good = |before: &EnvironmentSpec, at: &Revision| {
            let (Some(open), Some(trail)) = (open, known.and_then(|known| known.trail_of(before))) else { return true };
            let is_known = trail.revisions.contains(&open.revision);
            // It went on before that had passed, and nobody acted on it.
            let is_past = is_join && open.phase == Phase::Waiting && is_known && !trail.has_passed(&open.revision);
            spec.advance == Advance::Latest || !is_known || is_past || trail.is_before(at, &open.revision)
        };
        let settled = spec.before(index).into_iter().filter_map(|before| {
            let at = judge::settled(before, &self.sights).ok().filter(|at| is_for_good(before, at))?;
            Some((before.name.clone(), at.clone()))
        });
        settled.collect()
    }

    fn timestamp(&self, wall_ms: i64) -> Timestamp {
        Timestamp::from_millis(u64::try_from(wall_ms.saturating_sub(self.own.epoch_ms)).unwrap_or_default())
    }
}

impl EnvironmentStatus {
    /// What those before it have been done at: all together, or step by step each.
    pub(super) fn trails(&self) -> impl Iterator<Item = &Trail> {
        self.trail.iter().chain(&self.further_trails)
    }

    pub(super) fn trails_mut(&mut self) -> impl Iterator<Item = &mut Trail> {
        self.trail.iter_mut().chain(&mut self.further_trails)
    }

    /// That of one alone.
    pub(super) fn trail_of(&self, before: &EnvironmentSpec) -> Option<&Trail> {
        let of = judge::trail_topic(&[before]);
        self.trails().find(|trail| trail.of == of)
    }

    /// Whether one of those before it went from `earlier` to `later`.
    pub(super) fn is_before(&self, earlier: &Revision, later: &Revision) -> bool {
        self.trails().any(|trail| trail.is_before(earlier, later))
    }

    /// The revisions that have passed each of these, newest first.
    fn passed(&self, before: &[&EnvironmentSpec]) -> Vec<&Revision> {
        let trails: Option<Vec<&Trail>> = before.iter().map(|one| self.trail_of(one)).collect();
        let trails = trails.unwrap_or_default();
        let Some((first, others)) = trails.split_first() else { return Vec::new() };
        first.passing().filter(|revision| others.iter().all(|trail| trail.has_passed(revision))).collect()
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
