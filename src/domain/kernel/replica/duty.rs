//! Whether this replica works: when it opens the ledger, rebuilds what crashed, stands down, begins anew and ends.
//!
//! ```text
//! Idle ── we lead ──▶ Opening ── opened ──▶ Working ──┬── ledger lost ──▶ Clearing ── ended ──▶ Opening
//!  ▲                     │                     │      └── watcher crashed: opened again, and built beside the rest
//!  │                     └── another leads ────┤
//!  └──── ended ──── StandingDown ◀─────────────┘   (from Clearing too)
//!
//! any ── dismissed ──▶ Draining ── ended ──▶ the lease is given back ──▶ stop
//! ```
//!
//! 1. Nothing is opened, built or rebuilt unless this replica leads, nor after it was dismissed.
//! 2. Nothing is built from one ledger while anything lives that was built from another.
//! 3. An end is never cut short, neither by an opening nor by another end.
//! 4. The lease is given back, and the process stops, only after all that was built has ended.
//! 5. A replica that leads works, or is on its way there.
//!
//! Without an election this replica always leads. Not for who leads; that is [`lease`].

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::id::Origin;
use crate::machine::{Machine, Timestamp};
use crate::replica::lease::{self, Election};

/// An actor that exists once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Singleton {
    /// The watcher of workloads.
    Watcher,
    Group,
    Invalidator,
    /// The sender of webhooks.
    Webhook,
}

impl Singleton {
    /// All of them, in the order in which they are looked over.
    pub const ALL: [Self; 4] = [Self::Group, Self::Invalidator, Self::Webhook, Self::Watcher];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Watcher => "deployment_watcher",
            Self::Group => "cluster_group",
            Self::Invalidator => "invalidator",
            Self::Webhook => "webhook",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A call about the lease was answered.
    Lease(lease::Event),
    /// The ledger of this origin is open.
    Opened(Origin),
    /// The ledger of this origin no longer exists.
    LedgerLost(Origin),
    /// A singleton died by itself.
    Crashed(Singleton),
    /// All actors have ended: the answer to [`Effect::End`] and [`Effect::Abandon`].
    Ended,
    /// The process must end.
    Dismissed,
    /// The lease was given back, or could not be: the answer to [`lease::Effect::Release`].
    Released,
}

/// The effects. An end replaces an opening that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Call about the lease.
    Lease(lease::Effect),
    /// Open the ledger, again and again until it can be. Answered by [`Event::Opened`].
    Open,
    /// Build what does not exist, from the ledger that was opened last. No answer.
    Build,
    /// Build a singleton that crashed; a watcher only comes with the next [`Effect::Build`]. No answer.
    Rebuild(Singleton),
    /// End the process: this singleton crashed more often than it may be rebuilt. No answer.
    GiveUp(Singleton),
    /// End what was built, in order: no new work, and writes under way are finished. Answered by [`Event::Ended`].
    End,
    /// The ledger is lost: end what was built from it, at once, and wait a moment. Answered by [`Event::Ended`].
    Abandon,
    /// All has ended: stop. No answer.
    Stop,
    /// Say that this replica works now. No answer.
    TellLeading,
    /// Say that another replica, of this name if it is known, works now instead of this one. No answer.
    TellTakenOver(Option<String>),
    /// Say that this replica stands by while that one leads. No answer.
    TellStandingBy(String),
    /// Say what is wrong with the lease. No answer.
    TellTrouble(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Nothing is built and nothing under way.
    Idle,
    /// The ledger is being opened; nothing is built.
    Opening,
    /// All is built from this ledger; without its watcher while the ledger is `reopening`.
    Working { origin: Origin, reopening: bool },
    /// The actors of a lost ledger are ending.
    Clearing,
    /// The actors are ending because another replica leads.
    StandingDown,
    /// All is ending for good.
    Draining,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Duty {
    /// `None`: this replica always leads.
    election: Option<Election>,
    state: State,
    budgets: BTreeMap<Singleton, Budget>,
    /// The last reports: that we lead, who leads, and the trouble with the lease.
    told_leading: bool,
    told_leader: Option<String>,
    told_trouble: Option<String>,
}

impl Duty {
    /// A replica that has done nothing yet. Nothing happens before the first tick.
    pub fn new(election: Option<Election>) -> Self {
        Self {
            election,
            state: State::Idle,
            budgets: BTreeMap::new(),
            told_leading: false,
            told_leader: None,
            told_trouble: None,
        }
    }

    /// The replica that works while this one stands by.
    pub fn standing_by(&self) -> Option<&str> {
        self.election.as_ref().and_then(Election::leader)
    }

    /// The trouble with the lease, and why no actor runs where that is not because another replica leads; in words.
    pub fn troubles(&self) -> Vec<String> {
        let unbuilt = match self.state {
            State::Working { .. } => None,
            _ if self.standing_by().is_some() => None,
            _ if self.leads() => Some("the ledger has not been opened yet"),
            _ => Some("it is not known yet whether another replica leads"),
        };
        self.trouble().into_iter().chain(unbuilt.map(str::to_owned)).collect()
    }

    fn leads(&self) -> bool {
        self.election.as_ref().is_none_or(Election::leads)
    }

    fn trouble(&self) -> Option<String> {
        self.election.as_ref().and_then(Election::trouble)
    }

    fn opened(&mut self, opened: Origin) -> Vec<Effect> {
        match &mut self.state {
            State::Opening => self.state = State::Working { origin: opened, reopening: false },
            State::Working { origin, reopening } if *reopening => {
                if *origin != opened {
                    return self.abandon();
                }
                *reopening = false;
            }
            // Something else took the place of the opening.
            State::Working { .. } | State::Idle | State::Clearing | State::StandingDown | State::Draining => {
                return Vec::new();
            }
        }
        vec![Effect::Build]
    }

    fn ledger_lost(&mut self, lost: &Origin) -> Vec<Effect> {
        match &self.state {
            State::Working { origin, .. } if origin == lost => self.abandon(),
            // What was built from an earlier one may say so late.
            State::Working { .. }
            | State::Idle
            | State::Opening
            | State::Clearing
            | State::StandingDown
            | State::Draining => Vec::new(),
        }
    }

    fn abandon(&mut self) -> Vec<Effect> {
        self.state = State::Clearing;
        vec![Effect::Abandon]
    }

    fn crashed(&mut self, now: Timestamp, who: Singleton) -> Vec<Effect> {
        let State::Working { reopening, .. } = &mut self.state else { return Vec::new() };
        let is_watcher = who == Singleton::Watcher;
        if is_watcher && *reopening {
            return Vec::new();
        }
        if !self.budgets.entry(who).or_default().spend(now) {
            return vec![Effect::GiveUp(who)];
        }
        // A watcher begins with what the ledger holds now.
        *reopening |= is_watcher;
        let open = is_watcher.then_some(Effect::Open);
        [Effect::Rebuild(who)].into_iter().chain(open).collect()
    }

    fn ended(&mut self, now: Timestamp) -> Vec<Effect> {
        match self.state {
            State::Clearing => {
                self.state = State::Opening;
                vec![Effect::Open]
            }
            State::StandingDown => {
                self.state = State::Idle;
                Vec::new()
            }
            State::Draining => {
                let released = self.elect(|election| election.step(now, lease::Event::Resigned));
                self.stop_unless(released)
            }
            State::Idle | State::Opening | State::Working { .. } => Vec::new(),
        }
    }

    fn dismissed(&mut self) -> Vec<Effect> {
        match std::mem::replace(&mut self.state, State::Draining) {
            State::Idle | State::Opening | State::Working { .. } => vec![Effect::End],
            // All is ending already.
            State::Clearing | State::StandingDown | State::Draining => Vec::new(),
        }
    }

    /// Whether the election goes on. An end in order is far shorter than a lease, and a renewal that is under way when the lease is
    /// given back would be in its way.
    fn keeps_lease(&self) -> bool {
        self.state != State::Draining || self.election.as_ref().is_some_and(Election::is_resigning)
    }

    /// Stops, unless the lease is being given back, or what is written of it is still to be answered.
    fn stop_unless(&self, released: Vec<Effect>) -> Vec<Effect> {
        let waits = self.election.as_ref().is_some_and(Election::is_resigning);
        if released.is_empty() && !waits { vec![Effect::Stop] } else { released }
    }

    fn released(&self) -> Vec<Effect> {
        (self.state == State::Draining).then_some(Effect::Stop).into_iter().collect()
    }

    fn elect(&mut self, step: impl FnOnce(&mut Election) -> Vec<lease::Effect>) -> Vec<Effect> {
        self.election.as_mut().map(step).into_iter().flatten().map(Effect::Lease).collect()
    }

    /// The effects of the present leadership.
    fn follow(&mut self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self.tell_trouble().into_iter().collect();
        if self.state == State::Draining {
            return effects;
        }
        let leads = self.leads();
        effects.extend(self.tell_leader(leads));
        match self.state {
            State::Idle if leads => {
                self.state = State::Opening;
                effects.push(Effect::Open);
            }
            State::Opening | State::Working { .. } if !leads => {
                self.state = State::StandingDown;
                effects.push(Effect::End);
            }
            State::Clearing if !leads => self.state = State::StandingDown,
            // A replica that leads again while it stands down opens the ledger when that is done.
            State::Idle
            | State::Opening
            | State::Working { .. }
            | State::Clearing
            | State::StandingDown
            | State::Draining => {}
        }
        effects
    }

    fn tell_leader(&mut self, leads: bool) -> Option<Effect> {
        let leader = self.election.as_ref()?.leader().map(str::to_owned);
        match (std::mem::replace(&mut self.told_leading, leads), leads) {
            (false, true) => Some(Effect::TellLeading),
            (true, false) => Some(Effect::TellTakenOver(leader)),
            (true, true) => None,
            (false, false) => {
                let told = std::mem::replace(&mut self.told_leader, leader.clone());
                leader.filter(|_| told != self.told_leader).map(Effect::TellStandingBy)
            }
        }
    }

    fn tell_trouble(&mut self) -> Option<Effect> {
        let trouble = self.trouble();
        let told = std::mem::replace(&mut self.told_trouble, trouble.clone());
        trouble.filter(|_| told != self.told_trouble).map(Effect::TellTrouble)
    }
}

impl Machine for Duty {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = match event {
            Event::Lease(event) => self.elect(|election| election.step(now, event)),
            Event::Opened(origin) => self.opened(origin),
            Event::LedgerLost(origin) => self.ledger_lost(&origin),
            Event::Crashed(who) => self.crashed(now, who),
            Event::Ended => self.ended(now),
            Event::Dismissed => self.dismissed(),
            Event::Released => self.released(),
        };
        effects.extend(self.follow());
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = if self.keeps_lease() { self.elect(|election| election.tick(now)) } else { Vec::new() };
        effects.extend(self.follow());
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.election.as_ref().filter(|_| self.keeps_lease()).and_then(Election::next_deadline)
    }
}

#[cfg(test)]
mod tests;
