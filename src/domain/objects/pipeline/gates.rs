//! The conditions of a promotion, beside readiness: time, other systems, other objects, and a fresh look at everything
//! it depends on.
//!
//! Other systems are asked while a promotion waits. Answers count for a bounded time: a stale one opens no gate (PL-7).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::apps::app::{Sight, TargetKey};
use crate::asked::{Answer, AskedGates, Question, Topic};
use crate::pipeline::judge::{self, Edges, Obstacle, Sights, Stale};
use crate::pipeline::places;
use crate::pipeline::spec::{Advance, EnvironmentSpec, Spec};
use crate::pipeline::status::{Phase, Promotion};
use crate::pipeline::{Effect, Pipeline};
use kernel::call::Call;
use kernel::id::{Environment, PromotionSeq};
use kernel::machine::{Timestamp, millis};

/// How often the edge is looked at while something waits for it.
const EDGE_PAUSE: Duration = Duration::from_secs(2);

/// Something that keeps a promotion from starting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// A person stopped the line.
    Suspended(String),
    /// It has not been good for long enough.
    Soak(Timestamp),
    /// It is not the time.
    Calendar(String),
    /// A freeze of the cluster is in force, or may be; `planned` if it ends by itself.
    Frozen { words: String, planned: bool },
    /// Another system has not agreed.
    Verdict(String),
    /// Another object is not ready.
    Needs(String),
    /// A person has not said yes.
    Approval,
}

impl Gate {
    /// Whether it opens by itself at a time that is known.
    pub const fn is_planned(&self) -> bool {
        matches!(self, Self::Soak(_) | Self::Calendar(_) | Self::Frozen { planned: true, .. })
    }

    /// Whether a person may open it: the times and verdicts of its own spec, never readiness, nor what the cluster forbids.
    pub const fn yields(&self) -> bool {
        matches!(self, Self::Soak(_) | Self::Calendar(_) | Self::Verdict(_))
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended(why) => write!(f, "suspended: {why}"),
            Self::Soak(_) => f.write_str("it has not been good for long enough"),
            Self::Calendar(words) | Self::Verdict(words) | Self::Needs(words) | Self::Frozen { words, .. } => {
                f.write_str(words)
            }
            Self::Approval => f.write_str("it waits for a yes"),
        }
    }
}

/// The known states of gates that others judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gatekeeper {
    doors: BTreeMap<Environment, Doors>,
    edges: Edges,
}

/// Those of one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Doors {
    asked: AskedGates,
    recheck: Call,
    /// The promotion that a fresh look agreed to start, or to end, of what was seen when it was asked for.
    agreed: Option<PromotionSeq>,
    edge: Call,
}

impl Gatekeeper {
    /// The known states of the edges.
    pub(super) const fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Peers restarted and may have forgotten our questions.
    pub(super) fn restart(&mut self) {
        self.doors.clear();
    }

    /// Asks all calendars and edges now. A verdict keeps its pace: the other system demands it.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        for doors in self.doors.values_mut() {
            doors.asked.hurry(now);
            doors.edge.hurry(now);
        }
    }

    /// Something that these rest on says something else: a fresh look that was asked for before says nothing any more.
    pub(super) fn outdate(&mut self, rests: impl Fn(&Environment) -> bool) {
        for (_, doors) in self.doors.iter_mut().filter(|(name, _)| rests(name)) {
            doors.agreed = None;
            doors.recheck.outdate();
        }
    }

    /// What others are asked about an environment.
    pub(super) fn asked(&mut self, environment: &Environment) -> &mut AskedGates {
        &mut self.doors(environment).asked
    }

    fn doors(&mut self, environment: &Environment) -> &mut Doors {
        self.doors.entry(environment.clone()).or_default()
    }

    /// Forgets what was asked about the gates of an environment that needs none. A fresh look that is on its way says nothing of what
    /// is asked later.
    pub(super) fn rest_gates(&mut self, environment: &Environment) {
        if let Some(doors) = self.doors.get_mut(environment) {
            let (edge, mut recheck) = (std::mem::take(&mut doors.edge), std::mem::take(&mut doors.recheck));
            recheck.outdate();
            let recheck = if recheck.is_asked() { recheck } else { Call::default() };
            let asked = std::mem::take(&mut doors.asked).rested();
            *doors = Doors { asked, edge, recheck, ..Doors::default() };
        }
    }

    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        environment: &Environment,
        again: impl FnOnce(u32) -> Timestamp,
        answer: Answer,
    ) {
        if let Some(doors) = self.doors.get_mut(environment) {
            doors.asked.answered(now, again, answer);
        }
    }

    /// Whether the edge of an environment is purged, in answer to this question.
    pub(super) fn edge_seen(
        &mut self,
        now: Timestamp,
        environment: &Environment,
        topic: Topic,
        fresh: Result<(), Stale>,
    ) {
        let call = &mut self.doors(environment).edge;
        if fresh.is_ok() {
            call.answered();
        } else {
            call.answered_until(now.after(EDGE_PAUSE));
        }
        self.edges.insert(environment.clone(), (topic, fresh));
    }

    /// A fresh look at what a promotion rests on agrees, or says what differs.
    fn looked_afresh(
        &mut self,
        environment: &Environment,
        seq: PromotionSeq,
        again: impl FnOnce(u32) -> Timestamp,
        found: Result<(), Obstacle>,
    ) {
        let doors = self.doors(environment);
        let counts = doors.recheck.is_asked() && !doors.recheck.is_outdated();
        match found {
            Ok(()) if counts => {
                doors.recheck.answered();
                doors.agreed = Some(seq);
            }
            Ok(()) => doors.recheck.answered(),
            Err(obstacle) => doors.recheck.failed(again, format!("a fresh look disagrees: {obstacle}")),
        }
    }

    pub(super) fn recheck_failed(
        &mut self,
        environment: &Environment,
        _seq: PromotionSeq,
        again: impl FnOnce(u32) -> Timestamp,
        why: String,
    ) {
        self.doors(environment).recheck.failed(again, why);
    }

    /// Whether a fresh look agreed to what is to become of this promotion.
    pub(super) fn agreed(&self, environment: &Environment, seq: PromotionSeq) -> bool {
        self.doors.get(environment).is_some_and(|doors| doors.agreed == Some(seq))
    }

    /// Why the fresh look has not agreed, if it was asked for.
    pub(super) fn disagreement(&self, environment: &Environment) -> Option<&str> {
        self.doors.get(environment)?.recheck.last_reason()
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        for doors in self.doors.values_mut() {
            doors.asked.wake(now);
            doors.recheck.wake(now);
            doors.edge.wake(now);
        }
    }

    /// When something must be asked again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let of = |doors: &Doors| [doors.asked.deadline(), doors.recheck.deadline(), doors.edge.deadline()];
        self.doors.values().flat_map(of).flatten().min()
    }
}

impl Pipeline {
    /// Asks for the edges of environments that are settled, and not known to be purged for what they are settled at.
    pub(super) fn ask_edges(&mut self, now: Timestamp, spec: &Spec) -> Vec<Effect> {
        let mut effects = Vec::new();
        for environment in spec.environments.iter().filter(|environment| environment.purged.is_some()) {
            let Ok(revision) = judge::settled(environment, &self.sights) else {
                self.keeper.doors(&environment.name).edge.answered();
                continue;
            };
            let topic = judge::edge_topic(environment, revision);
            let is_fresh =
                self.keeper.edges.get(&environment.name).is_some_and(|(of, fresh)| *of == topic && fresh.is_ok());
            let call = &mut self.keeper.doors.entry(environment.name.clone()).or_default().edge;
            if !is_fresh && call.is_due(now) {
                call.asked();
                effects.push(Effect::SeeEdge(environment.name.clone(), topic));
            }
        }
        effects
    }

    /// The gates that are closed for a promotion into this environment; asks those who judge.
    pub(super) fn closed_gates(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        promotion: &Promotion,
        effects: &mut Vec<Effect>,
    ) -> Vec<Gate> {
        let mut closed = Vec::new();
        let Some(environment) = spec.environments.get(index) else { return closed };
        closed.extend(suspension(spec, environment).map(Gate::Suspended));
        closed.extend(self.frozen(now, spec, environment, effects));
        // A no breaks the soak.
        let is_back = promotion.rollback.is_some();
        let verdict = if is_back { None } else { self.verdict(now, environment, promotion, effects) };
        let known = self.own.status.draft.environment(&environment.name);
        if promotion.chosen.is_none() || !is_back && known.is_some_and(|known| known.soaks(&promotion.revision)) {
            closed.extend(self.soak(now, environment, promotion));
        }
        closed.extend(self.calendar(now, environment, effects));
        closed.extend(verdict);
        closed.extend(needs(environment, &self.sights));
        let overrides = promotion.approval.as_ref().is_some_and(|approval| approval.overrides);
        closed.retain(|gate| !(overrides && gate.yields()));
        let manual = environment.promotion.as_ref().is_some_and(|how| how.manual) || promotion.is_chosen();
        closed.extend((manual && promotion.approval.is_none()).then_some(Gate::Approval));
        closed
    }

    fn soak(&self, now: Timestamp, environment: &EnvironmentSpec, promotion: &Promotion) -> Option<Gate> {
        let soak = environment.gates.soak;
        let known = self.own.status.draft.environment(&environment.name).filter(|_| !soak.is_zero())?;
        let (now_ms, soak_ms) = (self.own.wall_ms(now), i64::try_from(millis(soak)).unwrap_or(i64::MAX));
        let left = known.trails().map(|trail| trail.left_ms(&promotion.revision, now_ms, soak_ms)).max()?;
        (left > 0).then(|| Gate::Soak(now.after(Duration::from_millis(left))))
    }

    fn calendar(&mut self, now: Timestamp, environment: &EnvironmentSpec, effects: &mut Vec<Effect>) -> Option<Gate> {
        let (name, gates) = (&environment.name, &environment.gates);
        if gates.windows.is_empty() && gates.freezes.is_empty() {
            return None;
        }
        let asked = &mut self.keeper.doors(name).asked;
        let ask = |ask| effects.push(Effect::Ask(name.clone(), ask));
        asked.calendar(now, &gates.windows, &gates.freezes, ask).map(Gate::Calendar)
    }

    fn verdict(
        &mut self,
        now: Timestamp,
        environment: &EnvironmentSpec,
        promotion: &Promotion,
        effects: &mut Vec<Effect>,
    ) -> Option<Gate> {
        let name = &environment.name;
        let question = Question {
            source: environment.gates.verdict.clone()?,
            seq: promotion.seq.0,
            revision: promotion.revision.clone(),
            from: promotion.from.clone(),
        };
        let asked = &mut self.keeper.doors(name).asked;
        let closed = asked.verdict(now, question, |ask| effects.push(Effect::Ask(name.clone(), ask)));
        if let Some(open) = asked.agrees() {
            self.note_verdict(now, name, promotion, open);
        }
        closed.map(Gate::Verdict)
    }

    /// Looks afresh at everything that a promotion rests on: after all of it was seen as it must be, before it starts (PL-2); after it
    /// was seen elsewhere, before it ends (PL-6).
    pub(super) fn recheck(
        &mut self,
        now: Timestamp,
        spec: &Spec,
        index: usize,
        environment: &Environment,
        seq: PromotionSeq,
    ) -> Option<Effect> {
        let doors = self.keeper.doors(environment);
        if !doors.recheck.is_due(now) {
            return None;
        }
        doors.recheck.asked();
        let known = self.own.status.draft.environment(environment).and_then(|known| known.promotion.as_ref());
        // What a person chose starts by the state of its own environment alone; before it ends, those before are looked at, too.
        let is_chosen = known.is_some_and(|promotion| promotion.chosen.is_some() && promotion.phase == Phase::Waiting);
        let before = if is_chosen { Vec::new() } else { spec.rests_on(index) };
        let read = before.iter().copied().chain(spec.environments.get(index));
        let targets = read.flat_map(EnvironmentSpec::members).cloned().collect();
        // An edge that was purged a moment ago is asked for once more, too.
        self.keeper.edges.retain(|name, _| !before.iter().any(|before| before.name == *name));
        Some(Effect::Recheck(environment.clone(), seq, targets))
    }

    pub(super) fn rechecked(
        &mut self,
        now: Timestamp,
        environment: &Environment,
        seq: PromotionSeq,
        fresh: Vec<(TargetKey, Sight)>,
    ) {
        let mut fresh: Sights = fresh.into_iter().collect();
        let again = self.own.again(now);
        let Ok(spec) = &self.own.object.spec else { return };
        places::see_places(spec, &self.own.status.draft, &mut fresh);
        let Some(index) = spec.environments.iter().position(|one| one.name == *environment) else { return };
        let known = self.own.status.draft.environment(environment);
        let trails = known.filter(|_| spec.advance == Advance::Stepwise);
        let promotion = known.and_then(|known| known.open());
        let Some(promotion) = promotion.filter(|promotion| promotion.seq == seq) else {
            self.keeper.doors(environment).recheck.answered();
            return self.keeper.rest_gates(environment);
        };
        let found = match promotion.phase {
            Phase::Waiting if promotion.rollback.is_some() => judge::goes_back(spec, index, promotion, &fresh),
            Phase::Waiting if promotion.chosen.is_some() => judge::all_seen(spec, index, &fresh),
            Phase::Waiting => judge::confirms(spec, index, &promotion.revision, &self.sights, trails, &fresh),
            _ => {
                // Those that went elsewhere must have left it; where it is superseded, all of them.
                let elsewhere = self.elsewhere(spec, index);
                let went = |one: &&EnvironmentSpec| {
                    elsewhere.iter().any(|(name, at)| *name == one.name && *at != promotion.revision)
                };
                let all = spec.before(index);
                let gone: Vec<_> = all.iter().copied().filter(went).collect();
                judge::has_left(if gone.is_empty() { &all } else { &gone }, &promotion.revision, &fresh)
            }
        };
        self.keeper.looked_afresh(environment, seq, again, found);
    }
}

/// Why nothing new starts, if that is so.
fn suspension(spec: &Spec, environment: &EnvironmentSpec) -> Option<String> {
    let own = environment.suspended.then(|| "the spec says so for this environment".to_owned());
    spec.suspended.clone().or(own)
}

/// The first of the objects it needs that is not ready.
fn needs(environment: &EnvironmentSpec, sights: &Sights) -> Option<Gate> {
    environment.gates.needs.iter().find_map(|need| need.holds_up(sights.get(need))).map(Gate::Needs)
}
