//! Whether Pipelines, or Repos, are attended to: while this replica works, their kind is served, and their actors do not crash again and
//! again.
//!
//! ```text
//! Asking ── served ──▶ Working ── other groups are served, or a part crashed too often ──▶ Ending ──▶ Working, Resting or Off
//!   │ ▲                   ▲
//!   ▼ │ 5 min             │ 5 min
//!   Off                Resting
//! ```
//!
//! 1. What happens here never ends the process: purges do not pay for promotions or runs.
//! 2. Nothing is built while anything lives that was built before.
//!
//! Not for one object, nor for one cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::budget::Budget;
use crate::call::Call;
use crate::machine::{Machine, Timestamp};
use crate::retry;

/// How often we ask whether the kind is served: a person who applies the CRD sees Pipelines move within this time.
pub const ASK_EVERY: Duration = Duration::from_secs(300);

/// The pause of all parts after one crashed too often (decision 16).
pub const REST: Duration = Duration::from_secs(300);

/// A part that exists once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The readers of clusters.
    Clusters,
    /// The watch of Pipelines.
    Pipelines,
    /// The watch of Repos.
    Repos,
}

impl Part {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::Pipelines => "pipelines",
            Self::Repos => "repos",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// These groups serve the kind, by their numbers. Answers [`Effect::Ask`].
    Served(BTreeSet<usize>),
    /// That could not be found out, for this reason. Answers [`Effect::Ask`].
    AskFailed(String),
    Crashed(Part),
    /// All actors have ended. Answers [`Effect::End`].
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask which groups serve the kind.
    Ask,
    /// Build all parts for these groups. No answer.
    Build(BTreeSet<usize>),
    /// Build a part that crashed. No answer.
    Rebuild(Part),
    /// End all parts. Answered by [`Event::Ended`].
    End,
    /// Say that no group serves the kind, so nothing is done; said once. No answer.
    TellAbsent,
    /// Report that this part crashed too often, and that all parts are paused for so long. No answer.
    TellResting(Part, Duration),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Off,
    Working(BTreeSet<usize>),
    Ending,
    Resting(Timestamp),
}

/// The machine. See the module's text. Nothing happens before the first tick.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KindLifecycle {
    /// The objects, for people: `Pipelines`.
    of: &'static str,
    state: State,
    /// The kinds that are served, as last reported.
    served: Option<BTreeSet<usize>>,
    asking: Call,
    budgets: BTreeMap<Part, Budget>,
    rest_until: Option<Timestamp>,
    told_absent: bool,
}

impl KindLifecycle {
    /// That of these objects, of which nothing is known: `Pipelines`.
    pub fn new(of: &'static str) -> Self {
        let (asking, budgets) = (Call::due(Timestamp::default()), BTreeMap::new());
        Self { of, state: State::Off, served: None, asking, budgets, rest_until: None, told_absent: false }
    }

    /// Why nothing is done for Pipelines, if it is because of us or of the API server; in words.
    pub fn trouble(&self) -> Option<String> {
        match &self.state {
            State::Resting(_) => Some(format!(
                "{} rest for five minutes, because their actors crashed too often; the log says why",
                self.of
            )),
            State::Off | State::Working(_) | State::Ending => {
                let why = self.asking.reason()?;
                Some(format!("it is not known whether the API server has {}: {why}", self.of))
            }
        }
    }

    /// Whether the API server was asked, and does not have the kind.
    pub fn is_absent(&self) -> bool {
        self.served.as_ref().is_some_and(BTreeSet::is_empty)
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.asking.deadline().is_some_and(|at| at <= now) {
            self.asking.asked();
            effects.push(Effect::Ask);
        }
        if matches!(self.state, State::Resting(until) if until <= now) {
            self.state = State::Off;
        }
        let served = self.served.clone().unwrap_or_default();
        match &self.state {
            State::Off if !served.is_empty() => {
                self.state = State::Working(served.clone());
                effects.push(Effect::Build(served));
            }
            State::Working(built) if *built != served => {
                self.state = State::Ending;
                effects.push(Effect::End);
            }
            State::Off | State::Working(_) | State::Ending | State::Resting(_) => {}
        }
        effects
    }
}

impl Machine for KindLifecycle {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Served(groups) => {
                self.asking.answered_until(now.after(ASK_EVERY));
                if groups.is_empty() && !self.told_absent {
                    effects.push(Effect::TellAbsent);
                }
                self.told_absent = groups.is_empty();
                self.served = Some(groups);
            }
            Event::AskFailed(why) => self.asking.failed(retry::SERVICE.from(now, self.of), why),
            Event::Crashed(part) if matches!(self.state, State::Working(_)) => {
                if self.budgets.entry(part).or_default().spend(now) {
                    effects.push(Effect::Rebuild(part));
                } else {
                    effects.extend([Effect::TellResting(part, REST), Effect::End]);
                    self.state = State::Ending;
                    self.rest_until = Some(now.after(REST));
                }
            }
            Event::Crashed(_) => {}
            Event::Ended => {
                if self.state == State::Ending {
                    self.state = self.rest_until.take().map_or(State::Off, State::Resting);
                }
            }
        }
        effects.extend(self.advance(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.advance(now)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let rest = match self.state {
            State::Resting(until) => Some(until),
            State::Off | State::Working(_) | State::Ending => None,
        };
        rest.into_iter().chain(self.asking.deadline()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn groups(numbers: &[usize]) -> BTreeSet<usize> {
        numbers.iter().copied().collect()
    }

    fn working() -> KindLifecycle {
        let mut feature = KindLifecycle::new("Pipelines");
        assert_eq!(feature.tick(at(0)), [Effect::Ask]);
        assert_eq!(feature.step(at(1), Event::Served(groups(&[0]))), [Effect::Build(groups(&[0]))]);
        feature
    }

    #[test]
    fn a_cluster_without_the_kind_is_asked_every_five_minutes_and_told_of_once() {
        let mut feature = KindLifecycle::new("Pipelines");
        feature.tick(at(0));
        assert_eq!(feature.step(at(1), Event::Served(groups(&[]))), [Effect::TellAbsent]);
        assert_eq!(feature.next_deadline(), Some(at(301)));
        assert_eq!(feature.tick(at(301)), [Effect::Ask]);
        assert_eq!(feature.step(at(302), Event::Served(groups(&[]))), []);
        feature.tick(at(602));
        assert_eq!(feature.step(at(603), Event::Served(groups(&[0]))), [Effect::Build(groups(&[0]))]);
        assert!(feature.trouble().is_none() && !feature.is_absent());
    }

    #[test]
    fn another_set_of_groups_is_built_only_after_the_earlier_has_ended() {
        let mut feature = working();
        assert_eq!(feature.step(at(2), Event::Served(groups(&[0, 1]))), [Effect::End]);
        assert_eq!(feature.step(at(3), Event::Crashed(Part::Pipelines)), []);
        assert_eq!(feature.step(at(4), Event::Ended), [Effect::Build(groups(&[0, 1]))]);
        assert_eq!(feature.step(at(5), Event::Served(groups(&[]))), [Effect::TellAbsent, Effect::End]);
        assert_eq!(feature.step(at(6), Event::Ended), []);
    }

    #[test]
    fn a_failed_question_ends_nothing_and_is_repeated() {
        let mut feature = working();
        feature.tick(at(301));
        assert_eq!(feature.step(at(302), Event::AskFailed("no route".to_owned())), []);
        assert!(feature.trouble().unwrap().ends_with("no route"));
        let again = feature.next_deadline().unwrap();
        assert!(again <= at(303));
        assert_eq!(feature.tick(again), [Effect::Ask]);
        assert_eq!(feature.step(again, Event::Served(groups(&[0]))), []);
        assert_eq!(feature.trouble(), None);
    }

    #[test]
    fn a_part_that_crashes_too_often_brings_a_rest_and_never_an_end_for_good() {
        let mut feature = working();
        for second in 2..=6 {
            assert_eq!(feature.step(at(second), Event::Crashed(Part::Clusters)), [Effect::Rebuild(Part::Clusters)]);
        }
        let last = feature.step(at(7), Event::Crashed(Part::Clusters));
        assert_eq!(last, [Effect::TellResting(Part::Clusters, REST), Effect::End]);
        assert_eq!(feature.step(at(8), Event::Ended), []);
        assert!(feature.trouble().unwrap().contains("crashed"));
        let asked = feature.next_deadline().unwrap();
        assert_eq!(feature.tick(asked), [Effect::Ask]);
        assert_eq!(feature.step(asked, Event::Served(groups(&[0]))), []);
        assert_eq!(feature.tick(at(307)), [Effect::Build(groups(&[0]))]);
    }
}
