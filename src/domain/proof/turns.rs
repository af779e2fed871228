//! When a question may be asked: two a second in all, one a second of one host, 32 rollouts at once, in turns among namespaces.
//!
//! One for each process. What waits here waits durably elsewhere: each look is in a record, and asks again in another life.
//!
//! Not for what is asked, nor for when it is wanted; that is [`crate::look`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kernel::id::{Reference, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::names::host::Host;
use kernel::shares;

use crate::asked::{Question, QuestionId, WAIT_MAX};

/// Between two requests to any host: two a second. Nobody's CDN notices that, and 32 rollouts of one page are asked within 16 s.
const APART: Duration = Duration::from_millis(500);

/// Between two requests to one host.
const HOST_APART: Duration = Duration::from_secs(1);

/// Rollouts that are asked about at once.
pub const ROLLOUTS_MAX: usize = 32;

/// How long one keeps its place and asks nothing, while others wait: longer than between two looks of the first minute.
const IDLE_MAX: Duration = Duration::from_secs(45);

/// Which look asks: of which workload, at which purge.
pub type Asker = (WorkloadId, Reference);

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turns {
    waiting: BTreeMap<Asker, BTreeMap<QuestionId, Question>>,
    /// Those that have a place. A look keeps it until it ends, another namespace has fewer, or it is idle and others wait.
    places: BTreeSet<Asker>,
    /// The looks there are, with when each asked last.
    askers: BTreeMap<Asker, Timestamp>,
    /// Some came or left since the places were shared.
    is_new: bool,
    /// When any host may be asked next.
    next: Timestamp,
    /// When a host may be asked next.
    hosts: BTreeMap<Host, Timestamp>,
    /// The namespaces by when they had their last turn, counted.
    turns: BTreeMap<String, u64>,
    count: u64,
}

/// The events of turns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A look asks.
    Wanted(Asker, Box<Question>),
    /// A question was answered, with so many requests to the host.
    Answered(Host, u8),
    /// A look has ended, or its actor has: what it waits for is not asked.
    Left(Asker),
}

/// The effect of turns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask now.
    Ask(Asker, Box<Question>),
}

impl Effect {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ask(..) => "ask",
        }
    }
}

impl Turns {
    /// How many questions wait.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(BTreeMap::len).sum()
    }

    /// The namespace that has waited longest comes first, and in it the earliest look.
    fn first(&self, now: Timestamp) -> Option<(Asker, QuestionId)> {
        let free = |question: &Question| self.free_at(question.page.host()) <= now;
        let placed = self.places.iter().filter_map(|asker| Some((asker, self.waiting.get(asker)?)));
        let ready = placed.filter_map(|(asker, own)| {
            let (id, _) = own.iter().find(|(_, question)| free(question))?;
            let turn = self.turns.get(&asker.0.namespace).copied().unwrap_or_default();
            Some(((turn, (id.look, id.page)), (asker.clone(), *id)))
        });
        ready.min().map(|(_, first)| first)
    }

    fn free_at(&self, host: &Host) -> Timestamp {
        self.hosts.get(host).copied().unwrap_or_default()
    }

    /// Sharing goes through all of them. Where they are many, once for each question, and not for each that comes.
    fn share_soon(&mut self) {
        self.is_new = self.askers.len() > ROLLOUTS_MAX;
        if !self.is_new {
            self.share();
        }
    }

    fn share(&mut self) {
        let claims = self.askers.keys().map(|asker| (asker.0.namespace.as_str(), asker.clone()));
        self.places = shares::in_turn(ROLLOUTS_MAX, claims, |asker| self.places.contains(asker));
        let askers = &self.askers;
        self.turns.retain(|namespace, _| askers.keys().any(|(workload, _)| workload.namespace == *namespace));
    }

    /// When a place of one that is idle is free for one that waits for a place.
    fn idle_at(&self) -> Option<Timestamp> {
        self.waiting.keys().find(|asker| !self.places.contains(asker))?;
        let idle = self.places.iter().filter(|asker| !self.waiting.contains_key(asker));
        idle.filter_map(|asker| Some(self.askers.get(asker)?.after(IDLE_MAX))).min()
    }

    /// Asks what may be asked now.
    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.idle_at().is_some_and(|at| at <= now) {
            let waiting = &self.waiting;
            self.askers.retain(|asker, last| waiting.contains_key(asker) || last.after(IDLE_MAX) > now);
            self.share();
        }
        if self.next <= now && std::mem::take(&mut self.is_new) {
            self.share();
        }
        self.hosts.retain(|_, free| *free > now);
        let mut effects = Vec::new();
        while self.next <= now {
            let Some((asker, id)) = self.first(now) else { break };
            let Some(own) = self.waiting.get_mut(&asker) else { break };
            let Some(question) = own.remove(&id) else { break };
            if own.is_empty() {
                self.waiting.remove(&asker);
            }
            self.count = self.count.saturating_add(1);
            self.turns.insert(asker.0.namespace.clone(), self.count);
            self.next = now.after(APART);
            // Until it is answered, it may be led on.
            self.hosts.insert(question.page.host().clone(), now.after(WAIT_MAX));
            effects.push(Effect::Ask(asker, Box::new(question)));
        }
        effects
    }
}

impl Machine for Turns {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Wanted(asker, question) => {
                let own = self.waiting.entry(asker.clone()).or_default();
                // A page is asked about once at a time: what its look has given up is of no use to it.
                own.retain(|id, _| id.page != question.id.page);
                own.insert(question.id, *question);
                if self.askers.insert(asker, now).is_none() {
                    self.share_soon();
                }
            }
            Event::Answered(host, requests) => {
                // Those that it was led on by have used their part of the time of all.
                let more = u32::from(requests.saturating_sub(1));
                self.next = self.next.max(now).after(APART.saturating_mul(more));
                self.hosts.insert(host, now.after(HOST_APART.saturating_mul(u32::from(requests.max(1)))));
            }
            Event::Left(asker) => {
                self.waiting.remove(&asker);
                if self.askers.remove(&asker).is_some() {
                    self.share_soon();
                }
            }
        }
        self.advance(now)
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let placed = self.places.iter().filter_map(|asker| self.waiting.get(asker));
        let free = placed.flat_map(BTreeMap::values).map(|question| self.free_at(question.page.host()));
        let share = (self.is_new && !self.waiting.is_empty()).then_some(self.next);
        free.min().map(|free| free.max(self.next)).into_iter().chain(share).chain(self.idle_at()).min()
    }
}
