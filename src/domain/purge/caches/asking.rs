//! One cache that is asked for one purge, until every endpoint that serves has answered, or for as long as its bound says.
//!
//! ```text
//! Open ──ask──▶ every endpoint that serves now, but for those that answered before
//!   │ ◀── some failed: again after a pause;  some are new: again at once
//!   ├── a reading finds none that has not answered ──▶ Done
//!   └── the bound has passed ────────────────────────▶ Left, with the names of those that have not; Done, where all have
//! ```
//!
//! So one that joins meanwhile is asked, and one that leaves is not waited for. An answer belongs to its question, by number. Each cache is
//! asked by itself: what one does rests no other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::caches::Cache;
use crate::caches::demand::{Demand, Request};
use kernel::call::Call;
use kernel::machine::Timestamp;
use kernel::retry::Backoff;
use kernel::text;

/// Between two questions to one cache: a pod that restarts is back after seconds, and a vote waits for a minute.
const AGAIN: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(5) };

/// A question that begins late has so long for its answers all the same: one connection and its requests.
pub const WAIT_MIN: Duration = Duration::from_secs(5);

/// How long an answer may come after its question's own time: what is asked keeps that itself.
const GRACE: Duration = Duration::from_secs(5);

/// Endpoints that words name; the rest is counted.
const NAMED_MAX: usize = 5;

/// A pod of a cache, or what stands for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The pod's, where it is one; else its address.
    pub name: String,
    pub address: String,
    /// The pod's. A pod of the same name is another one.
    pub uid: String,
}

/// The endpoints of a cache are asked for all of this.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// No other question of one life has it.
    pub number: u32,
    pub cache: Arc<Cache>,
    pub requests: Arc<[Request]>,
    /// These have answered, and are not asked again.
    pub cleared: BTreeSet<Endpoint>,
    /// For everything.
    pub wait_max: Duration,
}

impl Question {
    /// What its answer goes back with.
    pub fn back(&self) -> (String, u32) {
        (self.cache.name.clone(), self.number)
    }
}

/// What a cache has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Answers {
    /// Each endpoint that served when the question was read.
    pub endpoints: BTreeMap<Endpoint, Answer>,
    /// Endpoints that did not.
    pub unready: usize,
}

/// What one endpoint has answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It was not asked: it is among those that have answered.
    Before,
    /// It has let go of all that it was asked for.
    Cleared,
    /// It has not, for this reason.
    Failed(String),
}

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asking {
    demand: Demand,
    state: State,
    call: Call,
    number: u32,
    cleared: BTreeSet<Endpoint>,
    failing: BTreeMap<Endpoint, String>,
    /// When something is due although no answer comes.
    timer: Option<Timestamp>,
    /// When the answer under way is waited for no longer.
    late: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Open,
    Done,
    Left,
}

impl Asking {
    pub fn new(demand: Demand) -> Self {
        // What it cannot be asked for is no reason to wait.
        let state = if demand.requests.is_empty() { State::Done } else { State::Open };
        Self {
            demand,
            state,
            call: Call::default(),
            number: 0,
            cleared: BTreeSet::new(),
            failing: BTreeMap::new(),
            timer: None,
            late: None,
        }
    }

    pub const fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Whether it is still waited for.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// The question to ask now, if there is one. The vote waits until `ends`; who begins after that asks once all the same.
    pub fn next(&mut self, now: Timestamp, ends: Timestamp, numbers: &mut u32) -> Option<Question> {
        if !self.is_open() {
            return None;
        }
        let is_late = self.late.is_some_and(|late| late <= now);
        let has_ended = ends <= now && self.number > 0 && !self.call.is_asked();
        if is_late || has_ended {
            // All that were asked have answered: only whether others joined meanwhile is not known.
            let is_done =
                !is_late && self.failing.is_empty() && self.call.last_reason().is_none() && !self.cleared.is_empty();
            self.state = if is_done { State::Done } else { State::Left };
            (self.timer, self.late) = (None, None);
            return None;
        }
        let question = self.call.is_due(now).then(|| {
            self.call.asked();
            *numbers = numbers.saturating_add(1);
            self.number = *numbers;
            let wait_max = ends.since(now).max(WAIT_MIN);
            self.late = Some(now.after(wait_max).after(GRACE));
            let Demand { cache, requests, .. } = &self.demand;
            let (cache, requests, cleared) = (cache.clone(), requests.clone(), self.cleared.clone());
            Question { number: self.number, cache, requests, cleared, wait_max }
        });
        self.timer = self.late.or(Some(ends));
        question
    }

    /// The question of this number was answered; or it could not be asked, for this reason.
    pub fn answered(&mut self, now: Timestamp, number: u32, answers: Result<Answers, String>) {
        if number != self.number || !self.call.is_asked() || !self.is_open() {
            return;
        }
        self.late = None;
        let key = &self.demand.cache.name;
        let Answers { endpoints, unready } = match answers {
            Ok(answers) => answers,
            Err(why) => {
                self.failing.clear();
                return self.call.failed(AGAIN.from(now, key), why);
            }
        };
        self.cleared.retain(|known| endpoints.contains_key(known));
        self.failing.clear();
        let mut is_new = false;
        let is_empty = endpoints.is_empty();
        for (endpoint, answer) in endpoints {
            match answer {
                Answer::Before => {}
                Answer::Cleared => is_new |= self.cleared.insert(endpoint),
                Answer::Failed(why) => drop(self.failing.insert(endpoint, why)),
            }
        }
        if !self.failing.is_empty() {
            self.call.repeat(AGAIN.from(now, key));
        } else if is_empty && unready > 0 {
            // What is not ready now may come back with what it had.
            self.call.failed(AGAIN.from(now, key), format!("none of its {unready} endpoints is ready"));
        } else {
            self.call.answered();
            if !is_new {
                self.state = State::Done;
                self.timer = None;
            }
        }
    }

    /// Ends every pause that is over, so that no deadline stays in the past.
    pub fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
        self.timer = self.timer.filter(|at| *at > now);
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        if !self.is_open() {
            return None;
        }
        self.call.deadline().into_iter().chain(self.timer).min()
    }

    /// What is still waited for, in words.
    pub fn waits(&self) -> Option<String> {
        self.is_open().then(|| format!("{}: {}", self.demand.cache, self.missing()))
    }

    /// What was not purged in it when it was not waited for any longer, in words.
    pub fn left(&self) -> Option<String> {
        match self.state {
            State::Left => Some(format!("{}: {}", self.demand.cache, self.missing())),
            State::Open | State::Done => None,
        }
    }

    fn missing(&self) -> String {
        if !self.failing.is_empty() {
            let named = self.failing.iter().take(NAMED_MAX);
            let mut words: Vec<String> = named.map(|(endpoint, why)| format!("{} {why}", endpoint.name)).collect();
            let more = self.failing.len().saturating_sub(NAMED_MAX);
            words.extend((more > 0).then(|| format!("and {more} more")));
            return words.join("; ");
        }
        match self.call.last_reason() {
            Some(why) => text::clean_words(why, 400),
            None if self.cleared.is_empty() => "it has not answered yet".to_owned(),
            None => format!("{} of its endpoints have answered, and others may have joined", self.cleared.len()),
        }
    }
}
