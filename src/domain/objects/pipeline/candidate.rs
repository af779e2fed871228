//! Which revision is to be in an environment next, by what those before it are done at, and what its trail remembers of that.
//!
//! Not for what may start: that is `gates`.

use std::time::Duration;

use crate::asked::Topic;
use crate::pipeline::Pipeline;
use crate::pipeline::judge::{self, Obstacle};
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
        self.note(now, spec, index, environment, &found);
        let (Some(known), Some(before)) =
            (self.own.status.draft.environment(&environment.name), spec.rests_on(index).last())
        else {
            return found;
        };
        let Some(trail) = known.trail.as_ref().filter(|_| spec.advance == Advance::Stepwise) else { return found };
        if let Some((revision, until)) = self.arriving(environment, known).filter(|(_, until)| now < *until) {
            let revision = revision.clone();
            self.own.wake_at(until);
            return Ok(revision);
        }
        let Some(passed) = trail.passed.as_ref() else { return found };
        let is_open = known.open().is_some_and(|open| open.revision == *passed);
        let has = judge::said(environment, &self.sights);
        if !is_open && has == Some(passed) || has.is_some_and(|has| trail.is_before(passed, has)) {
            return found;
        }
        match judge::settled(before, &self.sights) {
            Ok(at) if at == passed => found,
            Ok(_) | Err(_) => judge::stands(before, passed, trail, &self.sights).map(|()| passed.clone()),
        }
    }

    /// The revision on its way into an environment, and until when the next one waits for it.
    fn arriving<'a>(
        &self,
        environment: &EnvironmentSpec,
        known: &'a EnvironmentStatus,
    ) -> Option<(&'a Revision, Timestamp)> {
        let open = known.open().filter(|open| open.phase == Phase::Landed)?;
        known.trail.as_ref().filter(|trail| trail.revisions.contains(&open.revision))?;
        let until_ms = open.started_ms?.saturating_add(signed(millis(environment.stalled_after)));
        Some((&open.revision, self.timestamp(until_ms)))
    }

    /// Notes what those before are done at, and whether it has soaked.
    fn note(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        environment: &EnvironmentSpec,
        found: &Result<Revision, Obstacle>,
    ) {
        let now_ms = self.own.wall_ms(now);
        let gates = &environment.gates;
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        if spec.advance == Advance::Latest && gates.soak.is_zero() {
            known.trail = None;
            return;
        }
        let before = spec.rests_on(index);
        let looked_at: Vec<_> = before.iter().map(|before| (&before.targets, &before.purged)).collect();
        let of = Topic::of(&looked_at);
        let trail = known.trail.take().filter(|trail| trail.of == of);
        let mut trail = trail.unwrap_or_else(|| Trail { of, ..Trail::default() });
        match found {
            Ok(revision) => trail.is_done(revision, now_ms, signed(millis(gates.soak_tolerates))),
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
        if spec.advance == Advance::Stepwise && found.is_ok() {
            match trail.soak_left_ms(now_ms, signed(millis(gates.soak))) {
                0 => trail.passed = trail.newest().cloned(),
                left => self.own.wake_at(now.after(Duration::from_millis(left))),
            }
        }
        let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
        known.trail = Some(trail);
    }

    /// Notes the other system's verdict on a waiting promotion.
    pub(super) fn note_verdict(&mut self, now: Timestamp, name: &Environment, promotion: &Promotion, open: bool) {
        let now_ms = self.own.wall_ms(now);
        let known = self.own.status.draft.environments.get_mut(name);
        if let Some(trail) = known.and_then(|known| known.trail.as_mut()) {
            trail.heard(&promotion.revision, open, now_ms);
        }
    }

    /// Whether an environment that is settled at another revision has left this one for good: step by step, only by going back.
    pub(super) fn went_elsewhere(&self, spec: &Spec, name: &Environment, at: &Revision) -> bool {
        let known = self.own.status.draft.environment(name);
        let (Some(open), Some(trail)) =
            (known.and_then(EnvironmentStatus::open), known.and_then(|known| known.trail.as_ref()))
        else {
            return true;
        };
        let is_known = trail.revisions.contains(&open.revision);
        spec.advance == Advance::Latest || !is_known || trail.is_before(at, &open.revision)
    }

    fn timestamp(&self, wall_ms: i64) -> Timestamp {
        Timestamp::from_millis(u64::try_from(wall_ms.saturating_sub(self.own.epoch_ms)).unwrap_or_default())
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
