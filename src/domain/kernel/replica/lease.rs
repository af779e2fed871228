//! Which of several replicas in one cluster works, and which stand by.
//!
//! For economy only. Every write is a compare-and-set and every purge has a reference that follows from what was decided,
//! so two replicas that work at once purge nothing twice; they only do the same work twice. That is why every doubt is
//! settled in favour of working: a leader that cannot renew goes on until it *sees* another's name, and one that is denied
//! the lease works without it.
//!
//! A holder counts as gone when its lease has not changed for [`LEASE_FOR`] on the watcher's own clock. The times in the
//! object are text here: no clock of two machines is compared (GA-8). This is client-go's rule too
//! (<https://pkg.go.dev/k8s.io/client-go/tools/leaderelection>).
//!
//! Not for what follows from leading: that is decided by `crate::replica::duty`.

use std::fmt;
use std::time::Duration;

use crate::call::Call;
use crate::machine::{Machine, Timestamp};

/// How long a lease that does not change is respected: client-go's default for controllers.
pub const LEASE_FOR: Duration = Duration::from_secs(15);

/// How often the holder renews: two renewals may be lost and the third still comes in time.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How often who stands by looks, and how soon a failed call is tried again.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How soon we repeat a call that a person has to allow first.
const DENIED_LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long the first answer is waited for before work begins without one. A start is late by this at most.
const START_WITHIN: Duration = Duration::from_secs(10);

/// How long the end of a life waits for the answer to a write that is under way: what is given back must not come back by it.
pub const RESIGNS_WITHIN: Duration = Duration::from_millis(500);

/// How long who stands by goes without an answer before it works all the same: four leases, so that an API server that
/// restarts does not wake all of them.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// One life of one replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The pod: no two have one name at the same time.
    pub pod: String,
    /// This life of its process.
    pub boot: String,
}

impl fmt::Display for Replica {
    /// As the holder is named in the lease.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.pod, self.boot)
    }
}

impl Replica {
    /// Whether `holder` is another life of the same pod.
    fn is_life_of(&self, holder: &str) -> bool {
        holder.rsplit_once('_').is_some_and(|(pod, boot)| pod == self.pod && boot != self.boot)
    }
}

/// The lease as it was read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The holder; empty if it is free.
    pub holder: String,
    /// When it was renewed, by the holder's clock: only ever compared for being another text.
    pub renewed: String,
    /// Since when its holder holds it, by the holder's clock, for people.
    pub acquired: String,
    /// How often it changed hands, for people.
    pub transitions: u64,
    /// The version of the object, for compare-and-set.
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The lease was read; `None` if there is none.
    Looked(Option<Claim>),
    /// The lease was written and is ours; `None` if another replica wrote first.
    Taken(Option<Claim>),
    Failed {
        why: String,
        /// Trying again does not help before a person changes something.
        lasting: bool,
    },
    /// This life ends in order.
    Resigned,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Look,
    /// Write our name into it, if it is still this one; `None`: if there is none.
    Take(Option<Claim>),
    /// Take our name out of it, if it is there. It was this one when we last saw it.
    Release(Option<Claim>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stance {
    /// Nothing is known yet.
    Undecided,
    /// We work; `held`: with our name in the lease.
    Leading {
        held: bool,
    },
    StandingBy,
    /// It is over, but for the answer to a write that may put our name into the lease.
    Resigning,
    Resigned,
}

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    us: Replica,
    stance: Stance,
    /// The lease as last seen, and since when it has not changed.
    seen: Option<(Claim, Timestamp)>,
    call: Call,
    /// The call under way writes; otherwise it reads.
    writes: bool,
    /// Since when no call has been answered.
    silent_since: Timestamp,
}

impl Election {
    /// The election as `us` enters it. Nothing happens before the first tick.
    pub fn new(us: Replica, now: Timestamp) -> Self {
        let stance = Stance::Undecided;
        Self { us, stance, seen: None, call: Call::due(now), writes: false, silent_since: now }
    }

    pub fn leads(&self) -> bool {
        matches!(self.stance, Stance::Leading { .. })
    }

    /// The replica that works instead of us, while we stand by.
    pub fn leader(&self) -> Option<&str> {
        let holder = self.seen.as_ref().map_or("another replica", |(claim, _)| &claim.holder);
        (self.stance == Stance::StandingBy).then_some(holder)
    }

    /// The trouble with the lease, in words, if any.
    pub fn trouble(&self) -> Option<String> {
        let why = self.call.last_reason()?;
        Some(match self.stance {
            Stance::Leading { held: false } => format!(
                "working without the lease: {why}. A second replica would do the same work again, which is safe and wasteful"
            ),
            Stance::Leading { held: true } => {
                format!("the lease cannot be renewed, another replica may begin to work: {why}")
            }
            Stance::Undecided | Stance::StandingBy | Stance::Resigning | Stance::Resigned => why.to_owned(),
        })
    }

    fn looked(&mut self, now: Timestamp, claim: Option<Claim>) -> Vec<Effect> {
        let Some(claim) = claim else {
            self.seen = None;
            return self.take(None);
        };
        let earlier = self.seen.take();
        let is_first = earlier.is_none();
        let unchanged = earlier.filter(|(known, _)| known.holder == claim.holder && known.renewed == claim.renewed);
        let has_changed = !is_first && unchanged.is_none();
        let since = unchanged.map_or(now, |(_, since)| since);
        self.seen = Some((claim.clone(), since));
        if claim.holder.is_empty() || claim.holder == self.us.to_string() {
            return self.take(Some(claim));
        }
        let is_stale = now.since(since) >= LEASE_FOR;
        match self.stance {
            // A container that was restarted in its pod need not wait for itself. This holds for the first look only: two
            // processes with one name would otherwise keep taking the lease from each other.
            Stance::Undecided if is_first && self.us.is_life_of(&claim.holder) => return self.take(Some(claim)),
            Stance::Undecided | Stance::StandingBy | Stance::Leading { held: false } if is_stale => {
                return self.take(Some(claim));
            }
            // The holder may be long dead; it gets a chance to show that it lives.
            Stance::Leading { held: false } if !has_changed => {}
            Stance::Undecided | Stance::StandingBy | Stance::Leading { .. } => self.stance = Stance::StandingBy,
            Stance::Resigning | Stance::Resigned => return Vec::new(),
        }
        self.call.answered_until(now.after(LOOK_EVERY).min(since.after(LEASE_FOR)));
        Vec::new()
    }

    fn taken(&mut self, now: Timestamp, claim: Option<Claim>) {
        match claim {
            Some(claim) => {
                self.seen = Some((claim, now));
                self.stance = Stance::Leading { held: true };
                self.call.answered_until(now.after(RENEW_EVERY));
            }
            // Another replica was faster, and is looked at.
            None => {
                self.seen = None;
                self.call.answered_until(now);
            }
        }
    }

    fn failed(&mut self, now: Timestamp, why: String, lasting: bool) {
        self.call.failed(|_| now.after(if lasting { DENIED_LOOK_EVERY } else { LOOK_EVERY }), why);
        // Only who found the lease free, or stale, writes.
        if lasting && (self.stance == Stance::Undecided || self.stance == Stance::StandingBy && self.writes) {
            self.stance = Stance::Leading { held: false };
        }
    }

    fn take(&mut self, over: Option<Claim>) -> Vec<Effect> {
        self.call.asked();
        self.writes = true;
        vec![Effect::Take(over)]
    }

    /// Whether the end of this life waits for the answer to a write.
    pub fn is_resigning(&self) -> bool {
        self.stance == Stance::Resigning
    }

    /// This life ends. What is written now may have put our name into the lease: nothing is given back before it is answered.
    fn resign(&mut self, now: Timestamp) -> Vec<Effect> {
        let held = self.stance == Stance::Leading { held: true };
        if self.call.is_asked() && self.writes {
            (self.stance, self.silent_since) = (Stance::Resigning, now);
            return Vec::new();
        }
        self.stance = Stance::Resigned;
        if held { self.release() } else { Vec::new() }
    }

    fn release(&mut self) -> Vec<Effect> {
        self.stance = Stance::Resigned;
        vec![Effect::Release(self.seen.take().map(|(claim, _)| claim))]
    }

    /// When the patience with an unanswered call ends.
    fn patience_ends(&self) -> Option<Timestamp> {
        match self.stance {
            Stance::Undecided => Some(self.silent_since.after(START_WITHIN)),
            Stance::StandingBy => Some(self.silent_since.after(SILENCE_MAX)),
            Stance::Resigning => Some(self.silent_since.after(RESIGNS_WITHIN)),
            Stance::Leading { .. } | Stance::Resigned => None,
        }
    }
}

impl Machine for Election {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        if event == Event::Resigned {
            return self.resign(now);
        }
        if self.stance == Stance::Resigned || !self.call.is_asked() {
            return Vec::new();
        }
        if self.stance == Stance::Resigning {
            if let Event::Taken(Some(claim)) = event {
                self.seen = Some((claim, now));
            }
            return self.release();
        }
        if let Event::Looked(_) | Event::Taken(_) = event {
            self.silent_since = now;
            self.call.answered();
        }
        match event {
            Event::Looked(claim) => return self.looked(now, claim),
            Event::Taken(claim) => self.taken(now, claim),
            Event::Failed { why, lasting } => self.failed(now, why, lasting),
            Event::Resigned => {}
        }
        Vec::new()
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.patience_ends().is_some_and(|end| now >= end) {
            if self.stance == Stance::Resigning {
                return self.release();
            }
            self.stance = Stance::Leading { held: false };
            self.call.overdue("the API server does not answer");
        }
        if self.stance == Stance::Resigned || !self.call.is_due(now) {
            return Vec::new();
        }
        let held = self.seen.as_ref().filter(|_| self.stance == Stance::Leading { held: true });
        if let Some((claim, _)) = held {
            // Without a look before it: the write fails if another replica wrote.
            let over = claim.clone();
            return self.take(Some(over));
        }
        self.call.asked();
        self.writes = false;
        vec![Effect::Look]
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        if self.stance == Stance::Resigned {
            return None;
        }
        self.call.deadline().into_iter().chain(self.patience_ends()).min()
    }
}

#[cfg(test)]
mod tests;
