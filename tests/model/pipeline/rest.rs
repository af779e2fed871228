//! How a world comes to rest, and what holds then.

use super::action::Action;
use super::outside::PullRequest;
use super::world::{Change, Faults, State, World, environment};

/// Steps in which everything comes to rest.
const STEPS: usize = 200;

impl State {
    /// Whether every environment runs what staging does.
    pub fn is_everywhere(&self, world: &World) -> bool {
        self.head + 1 == world.head.len() && (1..world.size()).all(|env| self.truth[env] == self.truth[0])
    }

    pub fn come_to_rest(&mut self, world: &World) {
        for _ in 0..STEPS {
            let mut steady = Vec::new();
            self.waits = 0;
            self.steady(world, &mut steady);
            let Some(next) = steady.first() else { break };
            self.take(world, *next);
        }
        self.waits = 0;
    }

    /// Everything happens that happens by itself.
    pub fn rest(&mut self, world: &World) {
        self.left = Faults::default();
        self.come_to_rest(&World { faults: Faults { waits: 1, ..Faults::default() }, ..world.clone() });
    }

    /// Whether, without further faults, what staging runs gets everywhere, or a person was asked where it does not.
    pub fn settles(&self, world: &World) -> bool {
        let mut steady = Vec::new();
        self.steady(world, &mut steady);
        if steady.iter().any(|action| !matches!(action, Action::Wait(_) | Action::Merge(_))) {
            // The state after it is judged.
            return true;
        }
        // A request that nobody wants any more is not left open for a person to merge.
        let is_new = self.object.changed && world.change == Change::Repository;
        let wanted = |request: &PullRequest| {
            let known = self.object.status.environment(&environment(request.env));
            let follows = known.and_then(|known| known.open()).is_some_and(|open| open.seq == request.seq);
            follows && request.is_new == is_new
        };
        if self.late.is_empty() && !self.requests.iter().filter(|request| request.is_open()).all(wanted) {
            return false;
        }
        let mut end = self.clone();
        end.rest(world);
        if !end.past.all_taken() {
            return false;
        }
        if end.object.changed && world.change == Change::Gone {
            return true;
        }
        if world.is_frozen(end.object.changed) {
            // Nothing may start, so what has not started stays.
            return true;
        }
        let is_on_its_way = |env: usize| {
            let known = end.object.status.environment(&environment(env)).and_then(|known| known.open());
            known.is_some_and(|open| end.past.is_wish(&open.approval))
        };
        if (1..world.size()).any(is_on_its_way) {
            return false;
        }
        let behind = (1..world.size()).find(|env| end.truth[*env] != end.truth[0]);
        // What is set back while it is on its way does not arrive: that is told, and more nobody can do.
        let told = |env| {
            let known = end.object.status.environment(&environment(env));
            world.faults.rolled_back > 0 && known.and_then(|known| known.behind).is_some_and(|behind| behind.told)
        };
        behind.is_none_or(|env| end.question(env).is_some() || told(env))
    }
}
