//! A writer that never rests: an operator, a GitOps tool or an autoscaler that changes the Deployment again and again, each time
//! before and after its controller has acted on it. What completed is purged all the same, within a bound (decision 49).

use std::time::Duration;

use kernel::machine::Timestamp;
use kernel::promise::Promise;
use kinds::reported::{Replicas, Standing};
use purge::rollouts::rollout::Rollout;
use purge::workloads::workload::Workload;
use stateright::Property;

use crate::hashed::Hashed;
use crate::mutants::Mutant;
use crate::past::content;
use crate::rollout::{behind_the_barrier, sight, world};
use crate::world::{State, World};

/// When the script moves on: nobody rests until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restless {
    /// From one write to the next; each is two places of the script.
    pub every: Duration,
    /// The place before the first write.
    pub from: usize,
}

impl World {
    /// When the script may move on, if it can.
    pub fn moves_at(&self, state: &State) -> Option<Timestamp> {
        let next = Some(state.at + 1).filter(|next| *next < self.script.len())?;
        let writes = self.restless.map_or((Duration::ZERO, 0), |restless| {
            let written = u32::try_from(next.saturating_sub(restless.from).div_ceil(2)).unwrap_or(u32::MAX);
            (restless.every, written)
        });
        Some(Timestamp::from_millis(0).after(writes.0 * writes.1))
    }

    /// The property of these searches, whose scripts are longer than every bound.
    pub fn is_live() -> Property<Self> {
        Property::always(Promise::PurgedBesideWriters.words(), |world, state: &State| {
            world.restless.is_none() || state.at + 1 < world.script.len() || !state.cdn.is_empty()
        })
    }

    /// The script has moved on: what runs is complete now, or it is another version and was not complete yet.
    pub fn note_stood(&self, next: &mut State) {
        let Some(workload) = self.script[next.at].as_ref().filter(|_| self.restless.is_some()) else { return };
        let Ok(version) = &workload.version else { return };
        let complete = workload.standing(self.policy.zero_is_complete) == Standing::Complete;
        let same = next.past.stood.as_ref() == Some(&content(version));
        let stood = (complete || same).then(|| content(version));
        next.remember(|past| past.stood = stood);
    }

    /// Whether the version of a workload was complete, and no other one has run since.
    pub fn has_stood(&self, state: &State, workload: &Workload) -> bool {
        workload.version.as_ref().is_ok_and(|version| state.past.stood.as_ref() == Some(&content(version)))
    }

    /// The mutant begins every clock of a rollout anew when it sees another generation.
    pub fn restart_clocks(&self, next: &mut State, w: usize, sight: Option<&Workload>) {
        let machine =
            next.workers[w].machine.as_deref().filter(|_| self.mutant == Some(Mutant::GenerationRestartsClocks));
        let known = machine.filter(|machine| machine.rolling().is_some()).and_then(Rollout::workload);
        let (Some(known), Some(sight)) = (known, sight) else { return };
        if sight.generation > known.generation {
            next.workers[w].machine = Some(Hashed::new(self.resume(next, w)));
        }
    }
}

/// `b` is complete, and then written so many times: `seen` is what the controller makes of each generation.
pub fn written(every: Duration, times: i64, seen: impl Fn(i64) -> Option<Workload>) -> World {
    let mut script = vec![sight("a", 1, true, 2), sight("b", 2, true, 2)];
    for generation in 3..3 + times {
        let observed_generation = generation - 1;
        script.push(seen(generation).map(|workload| Workload { observed_generation, ..workload }));
        script.push(seen(generation));
    }
    let World { policy, .. } = behind_the_barrier(true);
    World { policy, restless: Some(Restless { every, from: 1 }), ..world(script) }
}

/// Faster than `rollout.settle`.
pub fn hurried() -> World {
    written(Duration::from_millis(900), 9, |generation| sight("b", generation, true, 2))
}

mod searches {
    use super::*;
    use crate::rollout::search;
    use crate::world::Faults;

    #[test]
    fn generations_faster_than_the_settling_keep_nothing_from_being_purged() {
        let faults = Faults { crashes: 1, ..Faults::default() };
        search("restless", World { faults, ..hurried() }, &["ends purged"], 528);
    }

    #[test]
    fn nor_while_an_old_pod_serves() {
        let world = World { serving: (1..7).collect(), ..hurried() };
        search("restless, draining", world, &["ends purged"], 89);
    }

    #[test]
    fn nor_where_the_controller_never_comes_up_to_it() {
        let lags = |generation| sight("b", generation, true, 2).map(|w| Workload { observed_generation: 2, ..w });
        search("restless, lagging", written(Duration::from_secs(10), 8, lags), &["ends purged"], 86);
    }

    #[test]
    fn nor_where_two_writers_fight_for_the_number_of_pods() {
        let more = Replicas { desired: 5, total: 5, updated: 5, ready: 2, available: 2 };
        let fight = move |generation: i64| {
            let calm = sight("b", generation, true, 2);
            if generation % 2 == 0 { calm } else { calm.map(|workload| Workload { replicas: more, ..workload }) }
        };
        search("restless, scaled", written(Duration::from_millis(900), 9, fight), &["ends purged"], 92);
    }

    #[test]
    fn a_generation_that_restarts_the_clocks_is_caught() {
        use stateright::{Checker, HasDiscoveries, Model};
        let world = World { mutant: Some(Mutant::GenerationRestartsClocks), ..hurried() };
        let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(checker.discovery(Promise::PurgedBesideWriters.words()).is_some(), "the mutant was not caught");
    }
}
