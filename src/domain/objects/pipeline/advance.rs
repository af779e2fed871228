//! The conductor: what follows from the present facts, in the order of a promotion's life. Called after every event and tick; does
//! nothing when nothing has changed.

use std::time::Duration;

use crate::apps::app::{Sight, TargetKey};
use crate::pipeline::freezes::Freezes;
use crate::pipeline::places;
use crate::pipeline::promote::Pending;
use crate::pipeline::spec::Spec;
use crate::pipeline::{Effect, Pipeline};
use kernel::machine::Timestamp;

/// How long leaves may take to answer after a start, before a notice says that they do not. Users of
/// pipelines.weave.works wait no longer for a condition.
const STARTING: Duration = Duration::from_secs(10);

impl Pipeline {
    pub(super) fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        self.started.get_or_insert(now);
        self.keeper.wake(now);
        self.proposals.wake(now);
        let mut effects = Vec::from_iter(self.own.begin(now).map(Effect::Object));
        if !self.own.gone {
            effects.extend(self.follow());
            let judged = match self.own.object.spec.clone() {
                Ok(spec) => {
                    places::see_places(&spec, &self.own.status.draft, &mut self.sights);
                    self.judge(now, &spec, &mut effects)
                }
                Err(why) => {
                    self.own.tell_faulty(now, &format!("its spec cannot be used: {why}"));
                    Vec::new()
                }
            };
            self.show(now, &judged);
            effects.extend(self.proposals.follow_secrets().map(Effect::FollowSecrets));
        }
        effects.extend(self.own.rest(now).into_iter().map(Effect::Object));
        effects
    }

    /// Judges every environment that comes after another, and returns what each waits for.
    fn judge(&mut self, now: Timestamp, spec: &Spec, effects: &mut Vec<Effect>) -> Vec<Option<Pending>> {
        self.drop_strays(now, spec);
        effects.extend(self.ask_edges(now, spec));
        let mut judged = Vec::new();
        for (index, environment) in spec.environments.iter().enumerate() {
            let is_first = environment.is_first();
            judged.push(if is_first { None } else { self.attend(now, spec, environment, index, effects) });
        }
        self.close_requests(now, effects);
        judged
    }

    /// Asks for the targets that the spec has now, if they are others than before.
    fn follow(&mut self) -> Option<Effect> {
        let mut wanted: Vec<TargetKey> = self.own.spec().into_iter().flat_map(Spec::targets).cloned().collect();
        wanted.sort();
        wanted.dedup();
        if self.following.as_ref() == Some(&wanted) {
            return None;
        }
        self.sights.retain(|target, _| wanted.binary_search(target).is_ok());
        if wanted.is_empty() {
            // Nobody tells one that follows nothing.
            self.freezes = Freezes::default();
        }
        self.following = Some(wanted.clone());
        Some(Effect::Follow(wanted))
    }

    /// Whether targets that an earlier life knew may just not have been looked at yet: what it wrote about them stands.
    pub(super) fn is_starting(&mut self, now: Timestamp) -> bool {
        let until = self.started.unwrap_or(now).after(STARTING);
        let is_known = |target| matches!(self.sights.get(target), Some(Sight::Absent | Sight::Present(_)));
        let starting = now < until && self.own.spec().is_some_and(|spec| !spec.targets().all(is_known));
        if starting {
            self.own.wake_at(until);
        }
        starting
    }
}
