//! The look at what one purge has left at the edge.
//!
//! ```text
//!                 all pages are known                       looked at once more
//!  Looking ──┬──────────────────────────▶ Later (fresh) ────┬───────────────────▶ Done ──▶ ends
//!    ▲       ├── neither fresh nor helped ──────────────────│──────────────────────▲
//!    │       └── stale, and a further purge may help ──▶ Again ◀──── stale ─────┘  │
//!    └────────────── it is complete ─────────────────────────┴── it cannot be made ┘
//!  Waiting, where one more is wanted in any case: its time comes ──▶ Again
//!  a newer purge contains it, or it is forgotten: ends, and says nothing
//! ```
//!
//! Holds:
//!
//! - Each look is booked durably before it is made, so that restarts make no page be asked more than [`crate::tally::PAGE_REQUESTS_MAX`] times.
//! - Nothing is told, and no further purge asked for, before what it rests on is durable.
//! - At most [`Stored::again_max`] further purges, each after the former was complete.
//! - A life that has not seen a purge ordered takes nothing for stale by its age. What it was told by the life before it is how long ago
//!   the purge was complete, at least: so *renewed* stays sound.
//!
//! Not for what an answer shows, nor for how often anything may be asked: that is [`crate::turns`].

mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::machine::{Machine, Timestamp};
use kernel::names::paths::PathSet;

pub use self::stored::{AGAIN_MAX, Again, Phase, Stored};
use crate::age::{Span, signed};
use crate::asked::{Answers, PATHS_MAX, Page, Question, QuestionId};
use crate::marker::Marker;
use crate::tally::{Found, Judge, Tally};
use crate::verdict::{Follows, Told, Verdict, blind, can_be_helped, verdict, worst};

/// Pages of one purge: 8 hosts with 4 paths each.
pub const PAGES_MAX: usize = 8 * PATHS_MAX;

/// From the order of a purge to the first look, in milliseconds. What that look leaves at the edge must be seen to be newer than the
/// order, and an age may be off by two seconds.
const FIRST_AFTER_MS: i64 = 3_000;

/// How long an answer is waited for. 32 rollouts of 32 pages take 512 s at two requests a second, and each of them may be led on twice.
const ANSWER_WAIT: Duration = Duration::from_secs(30 * 60);

/// What is late, in seconds. A look waits a little for others at any time.
const LATE_S: u32 = 10;

/// Between which instants of this life a purge was ordered, as far as it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ordered {
    /// It had not been yet.
    pub after: Option<Timestamp>,
    /// It had been.
    pub by: Option<Timestamp>,
}

/// By a call of this life's own, begun at that instant.
impl From<Option<Timestamp>> for Ordered {
    fn from(called: Option<Timestamp>) -> Self {
        Self { after: called, by: called }
    }
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    stored: Stored,
    span: Span,
    /// The number of the newest form that is durable.
    kept: u32,
    /// Questions by their page, with when they were asked; `None` until their booking is durable.
    asking: BTreeMap<u8, Asking>,
    /// This life has acted upon the phase.
    acted: bool,
    told: Option<(u8, Found, Follows)>,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asking {
    id: QuestionId,
    booked: u8,
    since: Option<Timestamp>,
}

/// The events of a look.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The form of this number, or a later one, is durable.
    Kept(u32),
    /// A question was answered.
    Answered(QuestionId, Box<Answers>),
    /// A further purge, of this round, is complete. It was ordered in this life at that instant; `None`: in another.
    AgainCompleted(u8, Option<Timestamp>),
    /// It cannot be made.
    AgainFailed(u8),
    /// A newer purge contains what was purged.
    Overtaken,
    /// A person wants no more of it.
    Forgotten,
    /// Whoever was asked was rebuilt and has forgotten it.
    PeersRestarted,
}

/// The effects of a look.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Make this durable, and say so with its number.
    Keep(Box<Stored>),
    Ask(Box<Question>),
    /// Purge the same paths once more, as this round: 1 is the second purge. The verdict is its evidence.
    PurgeAgain(u8, Box<Verdict>),
    Tell(Box<Verdict>),
    /// Nothing is left to do: it may be dropped, and what is stored of it.
    End,
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Keep(_) => "keep",
            Self::Ask(_) => "ask",
            Self::PurgeAgain(..) => "purge_again",
            Self::Tell(_) => "tell",
            Self::End => "end",
        }
    }
}

impl Look {
    /// A purge of `paths` is complete at `now`. Pages that it is not about are not looked at; `None` if none is left.
    pub fn begin(
        now: Timestamp,
        ordered: Ordered,
        paths: PathSet,
        pages: impl IntoIterator<Item = Page>,
        marker: Option<Marker>,
        again: Again,
    ) -> Option<Self> {
        let mut seen = BTreeSet::new();
        let pages = pages.into_iter().filter(|page| page.is_of(&paths) && seen.insert(page.clone()));
        let pages: Vec<Tally> = pages.take(PAGES_MAX).map(|page| Tally::new(page, 0)).collect();
        let stored = Stored {
            paths,
            marker,
            again_max: again.max.min(AGAIN_MAX),
            again_after_s: again.after_s.filter(|_| again.max > 0),
            round: 0,
            phase: Phase::Looking,
            elapsed_ms: 0,
            resumed: ordered.by.is_none(),
            late_s: 0,
            number: 0,
            pages,
        };
        let mut look = Self {
            stored,
            span: Span { before: None, ordered: None, after: 0 },
            kept: 0,
            asking: BTreeMap::new(),
            acted: false,
            told: None,
            ended: false,
        };
        look.begin_round(now, ordered);
        if look.stored.again_after_s.is_some() {
            look.enter(Phase::Waiting);
        }
        (!look.stored.pages.is_empty()).then_some(look)
    }

    /// Goes on in another life, with what is durable.
    pub fn resume(now: Timestamp, mut stored: Stored) -> Self {
        stored.resumed = true;
        stored.pages.truncate(PAGES_MAX);
        stored.again_max = stored.again_max.min(AGAIN_MAX);
        stored.pages.iter_mut().for_each(Tally::resume);
        let elapsed = i64::try_from(stored.elapsed_ms).unwrap_or(i64::MAX);
        let span = Span { before: None, ordered: None, after: signed(now).saturating_sub(elapsed) };
        let kept = stored.number;
        Self { stored, span, kept, asking: BTreeMap::new(), acted: false, told: None, ended: false }
    }

    /// The same, in the place of one whose form is durable, and whose requests were made.
    #[must_use]
    pub fn in_place_of(mut self, before: &Stored) -> Self {
        (self.stored.number, self.kept) = (before.number.saturating_add(1), before.number);
        for tally in &mut self.stored.pages {
            let known = before.pages.iter().find(|known| known.page == tally.page);
            tally.requests = known.map_or(0, |known| known.requests);
        }
        self
    }

    /// Whether nothing is left to do.
    pub const fn is_over(&self) -> bool {
        self.ended
    }

    /// What is to be durable. Ask after each step.
    pub const fn stored(&self) -> &Stored {
        &self.stored
    }

    fn begin_round(&mut self, now: Timestamp, ordered: Ordered) {
        self.span = Span { before: ordered.after.map(signed), ordered: ordered.by.map(signed), after: signed(now) };
        let by = self.span.ordered.unwrap_or(self.span.after);
        let wait = by.saturating_add(FIRST_AFTER_MS).saturating_sub(signed(now));
        let first_s = u32::try_from(wait.max(0).saturating_add(999) / 1_000).unwrap_or_default();
        self.stored.resumed = ordered.by.is_none();
        for tally in &mut self.stored.pages {
            *tally = Tally::new(tally.page.clone(), first_s);
        }
        self.enter(Phase::Looking);
        self.asking.clear();
    }

    /// How long ago the purge was complete, at least, in milliseconds.
    fn elapsed_ms(&self, now: Timestamp) -> u64 {
        u64::try_from(signed(now).saturating_sub(self.span.after)).unwrap_or_default()
    }

    fn elapsed_s(&self, at: Timestamp) -> u32 {
        u32::try_from(self.elapsed_ms(at) / 1_000).unwrap_or(u32::MAX)
    }

    /// The instant so many seconds after the purge.
    fn at(&self, due_s: u32) -> Timestamp {
        let at = self.span.after.saturating_add(i64::from(due_s).saturating_mul(1_000));
        Timestamp::from_millis(u64::try_from(at).unwrap_or_default())
    }

    fn enter(&mut self, phase: Phase) {
        (self.stored.phase, self.acted) = (phase, false);
    }

    fn keep(&mut self, now: Timestamp) -> Effect {
        self.stored.number = self.stored.number.saturating_add(1);
        self.stored.elapsed_ms = self.elapsed_ms(now);
        Effect::Keep(Box::new(self.stored.clone()))
    }

    fn is_kept(&self) -> bool {
        self.kept >= self.stored.number
    }

    fn answered(&mut self, now: Timestamp, id: QuestionId, answers: &Answers) {
        let Some(asking) = self.asking.get(&id.page).filter(|asking| asking.id == id && asking.since.is_some()) else {
            // Of another round or another life, or answered before.
            return;
        };
        let booked = asking.booked;
        self.asking.remove(&id.page);
        let at_s = self.elapsed_s(answers.edge.hops.first().map_or(now, |first| first.started));
        let judge = Judge { paths: &self.stored.paths, marker: self.stored.marker.as_ref(), span: self.span };
        let Some(tally) = self.stored.pages.get_mut(usize::from(id.page)) else { return };
        let late_s = at_s.saturating_sub(tally.due_s.unwrap_or(at_s));
        self.stored.late_s = self.stored.late_s.max(if late_s > LATE_S { late_s } else { 0 });
        tally.absorb(judge, answers, at_s, booked);
    }

    /// Asks again what was not answered: whoever was asked has lost it, or there are too many others.
    fn ask_lost_again(&mut self, now: Timestamp) {
        let is_lost = |asking: &Asking| asking.since.is_some_and(|since| since.after(ANSWER_WAIT) <= now);
        self.asking.values_mut().filter(|asking| is_lost(asking)).for_each(|asking| asking.since = None);
    }

    /// Whether each page is known, and nothing followed from it yet.
    fn is_known(&self) -> bool {
        let is_looking = matches!(self.stored.phase, Phase::Looking | Phase::Later);
        is_looking && self.asking.is_empty() && self.stored.pages.iter().all(|page| page.due_s.is_none())
    }

    /// When the purge that is made in any case is due.
    fn blind_at(&self) -> Option<Timestamp> {
        let after_s = self.stored.again_after_s.filter(|_| self.stored.phase == Phase::Waiting && self.is_kept())?;
        Some(self.at(after_s))
    }

    /// Goes on to what follows, once all pages are known.
    fn judge(&mut self, now: Timestamp) -> Option<Effect> {
        if self.blind_at().is_some_and(|at| at <= now) {
            self.enter(Phase::Again);
            return Some(self.keep(now));
        }
        if !self.is_known() {
            return None;
        }
        let found = worst(&self.stored.pages)?;
        let first = self.stored.phase == Phase::Looking;
        let phase = match self.follows(found) {
            Follows::Again => Phase::Again,
            // Each page is, or a stale one would be told by now.
            Follows::Nothing
                if first && self.stored.pages.iter_mut().fold(false, |any, page| page.once_more() | any) =>
            {
                Phase::Later
            }
            Follows::Nothing | Follows::Spent | Follows::Helpless => Phase::Done,
        };
        self.enter(phase);
        Some(self.keep(now))
    }

    fn follows(&self, found: Found) -> Follows {
        let can_help = || self.stored.pages.iter().any(can_be_helped);
        match found {
            Found::Fresh | Found::Renewed | Found::Unknown => Follows::Nothing,
            Found::Stale if !can_help() => Follows::Helpless,
            Found::Stale if self.stored.round < self.stored.again_max => Follows::Again,
            Found::Stale => Follows::Spent,
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        if let Some(after_s) = self.stored.again_after_s {
            return Some(blind(&self.stored.pages, after_s));
        }
        let follows = self.follows(worst(&self.stored.pages)?);
        // A further purge that could not be made does not follow.
        let follows =
            if follows == Follows::Again && self.stored.phase == Phase::Done { Follows::Spent } else { follows };
        let Stored { paths, marker, round, resumed, late_s, .. } = &self.stored;
        let marker = marker.as_ref();
        verdict(&self.stored.pages, Told { round: *round, paths, marker, resumed: *resumed, late_s: *late_s, follows })
    }

    /// Does what the phase asks for, once it is durable.
    fn act(&mut self) -> Vec<Effect> {
        if self.acted || !self.is_kept() || !self.stored.phase.acts() {
            return Vec::new();
        }
        self.acted = true;
        let Some(verdict) = self.verdict() else { return Vec::new() };
        let told = Some((verdict.round, verdict.found, verdict.follows.clone()));
        let is_new = self.told != told;
        self.told = told;
        let mut effects: Vec<Effect> = is_new.then(|| Effect::Tell(Box::new(verdict.clone()))).into_iter().collect();
        match self.stored.phase {
            Phase::Looking | Phase::Waiting | Phase::Later => {}
            Phase::Again => {
                effects.push(Effect::PurgeAgain(self.stored.round.saturating_add(1), Box::new(verdict)));
            }
            Phase::Done => {
                self.ended = true;
                effects.push(Effect::End);
            }
        }
        effects
    }

    /// Books the looks that are due.
    fn book(&mut self, now: Timestamp) -> Option<Effect> {
        let is_looking = matches!(self.stored.phase, Phase::Looking | Phase::Later);
        if !is_looking || !self.is_kept() {
            return None;
        }
        let due: Vec<u8> = self.due_pages().filter(|(_, at)| *at <= now).map(|(page, _)| page).collect();
        for page in &due {
            let Some(tally) = self.stored.pages.get_mut(usize::from(*page)) else { continue };
            let booked = tally.book();
            let id = QuestionId { round: self.stored.round, page: *page, look: tally.looks };
            self.asking.insert(*page, Asking { id, booked, since: None });
        }
        (!due.is_empty()).then(|| self.keep(now))
    }

    /// The pages that are to be looked at and are not being looked at, with when.
    fn due_pages(&self) -> impl Iterator<Item = (u8, Timestamp)> {
        let numbered = (0_u8..).zip(&self.stored.pages).filter(|(page, _)| !self.asking.contains_key(page));
        numbered.filter_map(|(page, tally)| Some((page, self.at(tally.due_s?))))
    }

    /// Asks what is booked durably.
    fn ask(&mut self, now: Timestamp) -> Vec<Effect> {
        if !self.is_kept() {
            return Vec::new();
        }
        let marker = self.stored.marker.as_ref();
        let mut effects = Vec::new();
        for (page, asking) in &mut self.asking {
            let Some(tally) = self.stored.pages.get(usize::from(*page)) else { continue };
            if asking.since.is_some() {
                continue;
            }
            asking.since = Some(now);
            effects.push(Effect::Ask(Box::new(Question {
                id: asking.id,
                page: tally.page.clone(),
                requests_max: asking.booked,
                wants_body: marker.is_some_and(Marker::wants_body),
                marker_header: marker.and_then(Marker::header).map(str::to_owned),
                asks_pods: marker.is_some_and(Marker::asks_pods),
            })));
        }
        effects
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.ended {
            return Vec::new();
        }
        self.ask_lost_again(now);
        let mut effects: Vec<Effect> = self.judge(now).into_iter().collect();
        effects.extend(self.act());
        effects.extend(self.ask(now));
        effects.extend(self.book(now));
        effects
    }

    fn end(&mut self) -> Vec<Effect> {
        let ends = !std::mem::replace(&mut self.ended, true);
        ends.then_some(Effect::End).into_iter().collect()
    }
}

impl Machine for Look {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        if self.ended {
            return Vec::new();
        }
        let is_of_again =
            |look: &Self, round: u8| look.stored.phase == Phase::Again && round == look.stored.round.saturating_add(1);
        let mut effects = Vec::new();
        match event {
            Event::Kept(number) => self.kept = self.kept.max(number.min(self.stored.number)),
            Event::Answered(id, answers) => self.answered(now, id, &answers),
            Event::AgainCompleted(round, before) => {
                if is_of_again(self, round) {
                    self.stored.round = round;
                    self.stored.again_after_s = None;
                    self.stored.paths = self.stored.paths_of_again();
                    self.begin_round(now, before.into());
                    effects.push(self.keep(now));
                }
            }
            Event::AgainFailed(round) => {
                if is_of_again(self, round) {
                    let is_blind = self.stored.again_after_s.take().is_some();
                    // One on evidence would have the same number, and could not be made either.
                    self.stored.again_max = if is_blind { self.stored.round } else { self.stored.again_max };
                    self.enter(if is_blind { Phase::Looking } else { Phase::Done });
                    effects.push(self.keep(now));
                }
            }
            Event::Overtaken | Event::Forgotten => return self.end(),
            Event::PeersRestarted => self.asking.values_mut().for_each(|asking| asking.since = None),
        }
        effects.extend(self.advance(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.ended {
            return None;
        }
        // What another life has left to be done is due at once.
        let acts = self.stored.phase.acts() && !self.acted;
        if self.is_kept() && (acts || self.is_known()) {
            return Some(Timestamp::default());
        }
        let is_looking = matches!(self.stored.phase, Phase::Looking | Phase::Later) && self.is_kept();
        let due = is_looking.then(|| self.due_pages().map(|(_, at)| at).min()).flatten();
        let lost = self.asking.values().filter_map(|asking| Some(asking.since?.after(ANSWER_WAIT)));
        lost.chain(due).chain(self.blind_at()).min()
    }
}
