//! The two sentences about an environment: what it waits for, and what comes next.

use std::time::Duration;

use super::{EnvironmentView, promotion, question, request, revisions, targets, unsettled};
use crate::gates::{host, window};
use crate::pipeline::judge::{self, Edges, Obstacle, Sights, Stale, What};
use crate::pipeline::show::{PRUNED, UNHEARD};
use crate::pipeline::spec::{Advance, EnvironmentSpec, Object, Rollback, Spec, Strategy, names};
use crate::pipeline::status::{ConditionKind, EnvironmentStatus, Phase, Promotion, Question, Status};
use kernel::id::ObjectId;
use kernel::machine::millis;
use kernel::text;

/// The gate that is a person's.
pub(super) const YES: &str = "after a person's yes";

/// Everything that sentences are made from.
pub(super) struct Scene<'a> {
    pub(super) object: &'a Object,
    pub(super) spec: &'a Spec,
    pub(super) status: &'a Status,
    pub(super) sights: &'a Sights,
}

impl Scene<'_> {
    /// The environment at this place.
    pub(super) fn environment(&self, index: usize) -> Option<EnvironmentView> {
        let spec = self.spec.environments.get(index)?;
        let nothing = EnvironmentStatus::default();
        let known = self.status.environment(&spec.name).unwrap_or(&nothing);
        let obstacle = self.obstacle(spec, index);
        let waits = self.waits(spec, known, obstacle.as_ref());
        let shown_before = index.checked_sub(1).and_then(|before| self.spec.environments.get(before));
        let is_line = spec.after.iter().eq(shown_before.map(|before| &before.name));
        Some(EnvironmentView {
            name: spec.name.clone(),
            after: if is_line { Vec::new() } else { spec.after.clone() },
            revisions: revisions(spec, self.sights),
            unsettled: unsettled(spec, self.sights),
            next: self.next(spec, known, index, waits.as_deref(), obstacle.as_ref()),
            waits,
            gates: if spec.is_first() {
                edge(spec).into_iter().collect()
            } else {
                gates(spec, self.status.holds(ConditionKind::Unheard))
            },
            promotion: known.promotion.as_ref().map(|one| promotion(one, soak_ends_ms(spec, known, one))),
            question: question(known),
            request: request(known),
            targets: targets(spec, self.sights),
        })
    }

    /// The first thing that is not as it must be, for a revision to move on into the environment or to be done in it.
    fn obstacle(&self, environment: &EnvironmentSpec, index: usize) -> Option<Obstacle> {
        if environment.is_first() || environment.promotion.is_none() {
            return None;
        }
        let edges = self.edges();
        match judge::candidate(self.spec, index, self.sights, &edges) {
            // Step by step those before it need not agree, and it has what it is to have.
            Err(Obstacle { what: What::Behind(..), .. }) if self.is_between(environment) => None,
            Err(obstacle) => Some(obstacle),
            Ok(revision) => match judge::done(environment, self.sights, &edges) {
                Err(obstacle) => Some(obstacle),
                Ok(at) if at == revision => None,
                Ok(at) => {
                    let before = environment.after.first().cloned().unwrap_or_default();
                    let what = What::Behind(at.clone(), before, revision.clone());
                    Some(Obstacle { environment: environment.name.clone(), what })
                }
            },
        }
    }

    fn is_between(&self, environment: &EnvironmentSpec) -> bool {
        let reached = self.status.environment(&environment.name).and_then(|known| known.reached.as_ref());
        let has_it = reached.is_some() && judge::settled(environment, self.sights).ok() == reached;
        self.spec.advance == Advance::Stepwise && has_it
    }

    /// The machine's last state of each edge. It reports only one that it waits for.
    fn edges(&self) -> Edges {
        let asked = self.spec.environments.iter().filter(|environment| environment.purged.is_some());
        let said = |environment: &EnvironmentSpec| {
            let topic = judge::edge_topic(environment, judge::settled(environment, self.sights).ok()?);
            let after = |what| {
                let words = Obstacle { environment: environment.name.clone(), what }.to_string();
                self.said().find_map(|message| rest(message, &words).map(str::to_owned))
            };
            let unseen = after(What::EdgeUnseen).is_some();
            let fresh = after(What::EdgeStale(String::new())).map_or(Ok(()), |why| Err(Stale(why)));
            (!unseen).then(|| (environment.name.clone(), (topic, fresh)))
        };
        asked.filter_map(said).collect()
    }

    /// Every sentence of the status about what waits.
    fn said(&self) -> impl Iterator<Item = &str> {
        let conditions = self.status.conditions.iter().map(|condition| condition.message.as_str());
        let open = self.status.environments.values().filter_map(EnvironmentStatus::open);
        conditions.chain(open.map(|promotion| promotion.message.as_str()))
    }

    /// Why nothing is kept, if that is so: then nothing is promoted, whatever else holds.
    fn pruned(&self) -> Option<&str> {
        let conditions = &self.status.conditions;
        let pruned = conditions.iter().find(|condition| condition.reason == PRUNED && condition.holds == Some(true));
        pruned.map(|condition| condition.message.as_str())
    }

    fn waits(
        &self,
        environment: &EnvironmentSpec,
        known: &EnvironmentStatus,
        obstacle: Option<&Obstacle>,
    ) -> Option<String> {
        if environment.is_first() || environment.promotion.is_none() {
            return None;
        }
        if let Some(pruned) = self.pruned() {
            return Some(pruned.to_owned());
        }
        if let Some(open) = known.open() {
            let unsaid = open.message.is_empty();
            return Some(if unsaid { "it was begun, and is being judged".to_owned() } else { open.message.clone() });
        }
        if self.sights.is_empty() {
            return Some("its targets were not looked at yet".to_owned());
        }
        known.asked().or_else(|| obstacle.map(Obstacle::to_string))
    }

    fn next(
        &self,
        environment: &EnvironmentSpec,
        known: &EnvironmentStatus,
        index: usize,
        waits: Option<&str>,
        obstacle: Option<&Obstacle>,
    ) -> String {
        if environment.is_first() {
            return self.first(environment);
        }
        let Some(how) = &environment.promotion else {
            return "nothing is promoted into it: it has no `promotion`, and is only observed".to_owned();
        };
        if self.pruned().is_some() {
            return format!(
                "it goes on by itself after that; `allclear pipeline poke {}` looks at once",
                self.object.id.display_name()
            );
        }
        if let Some(waiting) = &known.waiting {
            return self.answer(environment, known.held(&waiting.revision).is_some(), waiting.question);
        }
        let strategy = &how.strategy;
        match known.open() {
            Some(open) if open.phase == Phase::Waiting => {
                // What those before it are at is no obstacle to what a person chose.
                self.start(environment, strategy, obstacle.filter(|_| open.chosen.is_none()))
            }
            Some(open) => follow(environment, known, strategy, open),
            None if waits.is_none() => match self.spec.before(index).as_slice() {
                [before] => format!("it moves when {} settles at another revision", before.name),
                before if self.spec.advance == Advance::Stepwise => {
                    format!("it moves when another revision has passed {}", names(before.iter().copied()))
                }
                before => format!("it moves when {} settle at another revision", names(before.iter().copied())),
            },
            None => mend(obstacle).unwrap_or_else(|| match self.resume(environment) {
                Some(how) => format!("no promotion starts before the line is resumed: {how}"),
                None => "a promotion into it begins by itself when that holds".to_owned(),
            }),
        }
    }

    fn first(&self, environment: &EnvironmentSpec) -> String {
        match names(self.spec.following(&environment.name)) {
            after if after.is_empty() => "there is no environment after it".to_owned(),
            after => format!("a revision that is ready on every target here moves on to {after}"),
        }
    }

    fn answer(&self, environment: &EnvironmentSpec, is_held: bool, question: Question) -> String {
        let command = format!("allclear pipeline approve {} {}", self.object.id.display_name(), environment.name);
        match question {
            Question::Approval => format!("it starts after a yes, when its other gates are open: `{command}`"),
            Question::Left if is_held => format!("what is newer goes on by itself; this one after a yes: `{command}`"),
            Question::Again | Question::Left => format!("nothing happens without a yes: `{command}`"),
            Question::Overwrite => format!("remove the branch, or say yes to replacing it: `{command}`"),
        }
    }

    /// The step after a waiting promotion.
    fn start(&self, environment: &EnvironmentSpec, strategy: &Strategy, obstacle: Option<&Obstacle>) -> String {
        if let Some(how) = self.resume(environment) {
            return format!("it starts after the line is resumed: {how}");
        }
        let what = match strategy {
            Strategy::Notification => "hooks are told to promote it",
            Strategy::PullRequest(..) => "its pull request is opened",
        };
        mend(obstacle.filter(|obstacle| obstacle.environment != environment.name || obstacle.what.is_unknown()))
            .unwrap_or_else(|| format!("when that holds, {what}"))
    }

    /// How the line is resumed, if a person stopped it.
    fn resume(&self, environment: &EnvironmentSpec) -> Option<String> {
        if self.spec.suspended.is_some() {
            return Some(format!(
                "`allclear pipeline resume {}`, or `suspend: false` where its spec says it",
                self.object.id.display_name()
            ));
        }
        environment.suspended.then(|| format!("`suspend: false` for {} in its spec", environment.name))
    }
}

/// The text after these words in a sentence, which may begin with others and a colon.
fn rest<'a>(message: &'a str, words: &str) -> Option<&'a str> {
    message.strip_prefix(words).or_else(|| message.split_once(&format!(": {words}")).map(|(_, rest)| rest))
}

/// The remedy for a target that cannot be read, or is missing. Everything else mends itself.
fn mend(obstacle: Option<&Obstacle>) -> Option<String> {
    match &obstacle?.what {
        What::Unknown(target, _) => Some(format!(
            "nothing is promoted over a target that cannot be read: mend the way to {target}, or take it out of the spec"
        )),
        What::Absent(target) => {
            Some(format!("nothing is promoted over a missing target: create {target}, or take it out of the spec"))
        }
        What::Unready(..)
        | What::Unnamed(..)
        | What::Differs(..)
        | What::EdgeStale(_)
        | What::EdgeUnseen
        | What::Behind(..)
        | What::Back(..)
        | What::Moved(..) => None,
    }
}

/// The step after a started promotion.
fn follow(environment: &EnvironmentSpec, known: &EnvironmentStatus, strategy: &Strategy, open: &Promotion) -> String {
    match (open.phase, strategy, request(known)) {
        (Phase::Proposed, _, Some(request)) => {
            format!("merge {}; a closed one is made again only after a yes", request.url)
        }
        (Phase::Started | Phase::Proposed, Strategy::PullRequest(..), _) => {
            "its pull request is made, and tried again while that fails".to_owned()
        }
        (Phase::Started | Phase::Proposed, Strategy::Notification, _) => "hooks are told to promote it".to_owned(),
        _ => {
            let fresh = if environment.purged.is_some() { ", and its edge is purged" } else { "" };
            format!("it is completed when every target is ready at {}{fresh}", open.revision)
        }
    }
}

/// When the soak of a promotion ends that waits, unless a person opened it.
fn soak_ends_ms(environment: &EnvironmentSpec, known: &EnvironmentStatus, promotion: &Promotion) -> Option<i64> {
    let soak = i64::try_from(millis(environment.gates.soak)).unwrap_or(i64::MAX);
    let overrides = promotion.approval.as_ref().is_some_and(|yes| yes.overrides);
    if promotion.phase != Phase::Waiting || soak == 0 || overrides {
        return None;
    }
    let soaks = known.trails().filter(|trail| !trail.has_passed(&promotion.revision));
    let since = soaks.map(|trail| trail.since_ms.filter(|_| trail.newest() == Some(&promotion.revision)));
    // One that has not begun ends at no time that is known.
    let newest = since.collect::<Option<Vec<i64>>>()?.into_iter().max()?;
    Some(newest.saturating_add(soak))
}

/// How a revision gets into an environment, and what must hold before.
pub(super) fn gates(environment: &EnvironmentSpec, unheard: bool) -> Vec<String> {
    let mut all = Vec::new();
    let Some(how) = &environment.promotion else { return all };
    all.push(match &how.strategy {
        Strategy::Notification if unheard => UNHEARD.to_owned(),
        Strategy::Notification => "by notification".to_owned(),
        Strategy::PullRequest(repository, _) => {
            format!("by pull request into {} of {}", repository.base, repository.url)
        }
    });
    all.extend(how.manual.then(|| YES.to_owned()));
    let gates = &environment.gates;
    all.extend((gates.soak > Duration::ZERO).then(|| format!("soak {}", text::duration(gates.soak))));
    all.extend(gates.windows.iter().map(window));
    all.extend(gates.freezes.iter().map(|freeze| format!("freeze: {}", freeze.reason)));
    all.extend(gates.verdict.as_ref().map(|verdict| format!("verdict of {}", host(&verdict.url))));
    all.extend(gates.needs.iter().map(|need| format!("needs {} {}", need.app.kind, need.display_name())));
    all.extend(edge(environment));
    all.extend(environment.rollback.as_ref().map(back));
    all
}

/// When an environment goes back by itself.
fn back(rollback: &Rollback) -> String {
    let on: Vec<&str> = rollback.on.iter().map(|cause| cause.name()).collect();
    format!("goes back on {} within {}", on.join(" or "), text::duration(rollback.within))
}

fn edge(environment: &EnvironmentSpec) -> Option<String> {
    let purged = environment.purged.as_ref()?;
    let server = purged.by.as_ref().map(|by| format!(" by {}", host(&by.server))).unwrap_or_default();
    let names: Vec<String> = purged.workloads.iter().map(ToString::to_string).collect();
    Some(format!("done when the edge of {} is purged{server}", names.join(", ")))
}
