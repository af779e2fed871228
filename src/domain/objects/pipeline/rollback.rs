//! Going back by itself: what an environment was promoted to does not hold what its spec asks of it, for a while after it got there.
//!
//! ```text
//! a promotion starts, and the environment is ready at what it has    that is what it may go back to; what is promoted is watched
//! a target is at what is promoted                                    the time of the watch begins
//! such a target is not ready for as long as `stalledAfter`           Stalled: a promotion of what it had begins, once
//! the other system says no, asked since then                         Verdict: the same
//! what it was to go back from is ready after all, or gone            that promotion ends, if nothing was done yet
//! ```
//!
//! Never from what a person chose or said a second yes to, nor to what a person chose another one over. What it went back from is
//! promoted again only after a yes, like what a person chose another one over (`choice`).
//!
//! Not for how the promotion back is carried out: it is one like the others.

use std::time::Duration;

use crate::asked::Question;
use crate::pipeline::ask::ticket;
use crate::pipeline::judge::{self, Obstacle};
use crate::pipeline::promote::{BY, Beginning};
use crate::pipeline::spec::EnvironmentSpec;
use crate::pipeline::status::{Cause, Choice, EnvironmentStatus, OVER_MAX, Phase, Promotion, Question as Asks, Watch};
use crate::pipeline::{Effect, Pipeline};
use kernel::id::{Environment, Revision};
use kernel::machine::Timestamp;
use kernel::text;
use notices::notice::Kind;

/// How much of a time is left that began at `since_ms`; `None` if nothing is.
fn left(since_ms: i64, now_ms: i64, all: Duration) -> Option<Duration> {
    let gone = u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or_default();
    all.checked_sub(Duration::from_millis(gone)).filter(|left| !left.is_zero())
}

impl Pipeline {
    /// What is watched of a promotion that starts. One back is watched by nobody: what it went back from is held from then on.
    pub(super) fn watch_from_start(&mut self, environment: &EnvironmentSpec, promotion: &Promotion) {
        let had = judge::settled(environment, &self.sights).ok().cloned();
        let uid = self.own.object.uid.clone();
        let Some(known) = self.own.status.draft.environments.get_mut(&environment.name) else { return };
        // What never got ready is nothing to go back to; what was there before it may be.
        let earlier = known.watch.take().map(|watch| watch.had);
        if promotion.rollback.is_some() {
            known.went_back(promotion);
        }
        let is_watched = promotion.chosen.is_none() && !promotion.returns;
        let Some(rollback) = environment.rollback.as_ref().filter(|_| is_watched) else { return };
        let asked = ticket(&uid, &environment.name, promotion.seq, &promotion.revision, Asks::Approval, "");
        if promotion.approval.as_ref().is_some_and(|yes| yes.ticket != asked) {
            // A person wants it though it was there and left.
            return;
        }
        let overrides = promotion.approval.as_ref().is_some_and(|yes| yes.overrides);
        let on = rollback.on.iter().copied().filter(|cause| !(overrides && *cause == Cause::Verdict));
        let on: Vec<Cause> = on.collect();
        let had = had.or(earlier).filter(|had| *had != promotion.revision && !known.holds(had));
        known.watch = had.filter(|_| !on.is_empty()).map(|had| Watch {
            seq: promotion.seq,
            revision: promotion.revision.clone(),
            had,
            arrived_ms: None,
            on,
        });
    }

    /// Watches what an environment was promoted to, begins the way back from it if that is due, and ends one that is needed no more.
    pub(super) fn roll_back(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        candidate: Option<&Revision>,
        effects: &mut Vec<Effect>,
    ) {
        let name = &environment.name;
        self.stay_after_all(now, environment);
        let watch = self.own.status.draft.environments.get_mut(name).and_then(|known| known.watch.take());
        let watch = watch.and_then(|watch| self.watched(now, environment, watch));
        let Some(mut watch) = watch else {
            self.keeper.asked(name).forget_deployed();
            self.stuck.retain(|target, _| !environment.targets.contains(target));
            return;
        };
        let cause = self.stalls(now, environment, &watch).map(|words| (Cause::Stalled, words));
        let cause =
            cause.or_else(|| self.turned(now, environment, &watch, effects).map(|words| (Cause::Verdict, words)));
        let known = self.own.status.draft.environment(name);
        let open = known.and_then(EnvironmentStatus::open);
        let manual = environment.promotion.as_ref().is_some_and(|how| how.manual);
        let is_newer = |one: &Revision| *one != watch.revision && *one != watch.had;
        // What a person chose or said yes to, and what goes back already, goes on. Where a person is asked, it is about what is newer.
        let is_free = open.is_none_or(|open| {
            open.chosen.is_none() && !(is_newer(&open.revision) && (manual || open.approval.is_some()))
        });
        let is_free = is_free
            && !candidate.is_some_and(|one| manual && is_newer(one) && !known.is_some_and(|known| known.holds(one)));
        let is_seen = judge::unseen(environment, &self.sights).is_none();
        let may_begin = is_free && is_seen && !self.own.object.deleting && !self.own.status.pruned;
        if let Some((cause, words)) = cause.filter(|_| may_begin) {
            // Once for each cause.
            watch.on.retain(|on| *on != cause);
            self.begin_back(now, name, &watch, cause, &words);
        }
        if let Some(known) = self.own.status.draft.environments.get_mut(name) {
            known.watch = Some(watch);
        }
    }

    /// The watch as it is by what is seen now, while it lasts.
    fn watched(&mut self, now: Timestamp, environment: &EnvironmentSpec, mut watch: Watch) -> Option<Watch> {
        let rollback = environment.rollback.as_ref()?;
        let newest = self.own.status.draft.environment(&environment.name).and_then(|known| known.promotion.as_ref());
        let ended = newest.filter(|one| one.seq == watch.seq).map(|one| one.phase);
        let settled = judge::settled(environment, &self.sights).ok();
        let is_elsewhere = settled.is_some_and(|at| *at != watch.had && *at != watch.revision);
        if watch.arrived_ms.is_none() && (is_elsewhere || matches!(ended, Some(Phase::Withdrawn | Phase::Abandoned))) {
            // It did not get there, and whatever puts it there later is not this promotion.
            return None;
        }
        watch.on.retain(|cause| rollback.on.contains(cause));
        let now_ms = self.own.wall_ms(now);
        if judge::is_arriving(environment, &watch.revision, &self.sights) {
            watch.arrived_ms.get_or_insert(now_ms);
        } else if watch.arrived_ms.is_some() && judge::unseen(environment, &self.sights).is_none() {
            return None;
        }
        if settled == Some(&watch.revision) {
            watch.on.retain(|cause| *cause != Cause::Stalled);
        }
        if let Some(arrived_ms) = watch.arrived_ms {
            self.own.wake_at(now.after(left(arrived_ms, now_ms, rollback.within)?));
        }
        (!watch.on.is_empty()).then_some(watch)
    }

    /// What keeps a target that has what was promoted from being ready, for as long as that may take. Only what was seen counts: each
    /// has its own time, which begins anew where it was ready, could not be read, or nobody looked.
    fn stalls(&mut self, now: Timestamp, environment: &EnvironmentSpec, watch: &Watch) -> Option<String> {
        let limit = environment.stalled_after;
        let mut stalled = None;
        for target in &environment.targets {
            let what = judge::stuck(target, &watch.revision, &self.sights);
            let Some(what) = what.filter(|_| watch.on.contains(&Cause::Stalled)) else {
                self.stuck.remove(target);
                continue;
            };
            let until = self.stuck.entry(target.clone()).or_insert(now).after(limit);
            if now < until {
                self.own.wake_at(until);
            } else {
                stalled = stalled.or(Some(Obstacle { environment: environment.name.clone(), what }));
            }
        }
        stalled.map(|obstacle| format!("not ready for {}: {obstacle}", text::duration(limit)))
    }

    /// The no of the other system to what the environment has, asked since it has that.
    fn turned(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        watch: &Watch,
        effects: &mut Vec<Effect>,
    ) -> Option<String> {
        watch.arrived_ms.filter(|_| watch.on.contains(&Cause::Verdict))?;
        let question = Question {
            source: environment.gates.verdict.clone()?,
            seq: watch.seq.0,
            revision: watch.revision.clone(),
            from: Some(watch.had.clone()),
        };
        let name = &environment.name;
        self.keeper.asked(name).deployed(now, question, |ask| effects.push(Effect::Ask(name.clone(), ask)))
    }

    fn begin_back(&mut self, now: Timestamp, name: &Environment, watch: &Watch, cause: Cause, words: &str) {
        let Watch { revision: bad, had, .. } = watch;
        let why = format!("{name} is to go back to {had}: {words}");
        self.announce(now, Kind::PromotionWithdrawn, name, &format!("{bad} does not hold in {name}, and {why}"));
        self.end(now, name, Phase::Withdrawn, &why);
        let beginning = Beginning {
            revision: had.clone(),
            from: Some(bad.clone()),
            approval: None,
            chosen: Some(format!("goes back from {bad} by itself: {words}")),
            rollback: Some(cause),
        };
        self.begin(name, beginning);
        // Its wait begins now.
        self.own.status.draft.environments.get_mut(name).into_iter().for_each(|known| known.behind = None);
    }

    /// Ends a way back that has not started and is needed no more.
    fn stay_after_all(&mut self, now: Timestamp, environment: &EnvironmentSpec) {
        let name = &environment.name;
        let open = self.own.status.draft.environment(name).and_then(EnvironmentStatus::open);
        let Some(back) = open.filter(|open| open.rollback.is_some() && open.phase == Phase::Waiting) else { return };
        let why = if environment.rollback.is_none() {
            "its spec does not ask for that any more".to_owned()
        } else {
            match judge::stays(environment, back, &self.sights) {
                Some(why) => why,
                None => return,
            }
        };
        self.withdraw(now, name, &why);
    }
}

impl EnvironmentStatus {
    /// It goes back by itself: what it goes back from is promoted again only after a yes.
    fn went_back(&mut self, back: &Promotion) {
        let earlier = self.chosen.take();
        // Answers about choices name the last one, and this is none.
        let seq = earlier.as_ref().map_or(back.seq, |chosen| chosen.seq);
        let mut over = earlier.map(|chosen| chosen.over).unwrap_or_default();
        over.retain(|one| Some(one) != back.from.as_ref() && *one != back.revision);
        over.extend(back.from.clone());
        over.drain(..over.len().saturating_sub(OVER_MAX));
        self.chosen = Some(Choice { seq, revision: back.revision.clone(), by: Some(BY.to_owned()), over });
    }
}
