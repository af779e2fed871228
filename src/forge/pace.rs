//! Whose turn it is at a forge, and when one is left alone.
//!
//! - One call a repository, [`CALLS_MAX`] in all; those of promotions that have not failed go first.
//! - A host that asks for rest, or has little left of what it allows us, gets it from all promotions.
//! - A repository that fails rests as a whole, a little longer each time.
//!
//! A call that comes while there is rest fails at once, without a request: its promotion comes again when the rest is over.
//! Failures that last are no reason to rest: whoever mends one wants to see it.
//!
//! Not for what is asked of a forge, nor for when a promotion tries again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::ports::{PortError, Retry};
use http::HeaderMap;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits;

/// Calls at the same time. Each holds the trees of its repository, up to 256 MiB of them by the git client's bounds.
const CALLS_MAX: usize = 4;

/// First and longest rest of a repository that fails.
const REST_FIRST: Duration = Duration::from_secs(2);
const REST_LONGEST: Duration = Duration::from_secs(60);

/// Promotions and places that are remembered; more than a cluster has Pipelines.
const KNOWN_MAX: usize = 10_000;

/// The turns and rests of all hosts.
#[derive(Default)]
pub(crate) struct Pace {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    line: Line,
    /// Hosts, and repositories, that rest until then.
    rests: BTreeMap<String, Instant>,
    /// How often repositories failed in a row.
    failures: BTreeMap<String, u32>,
    /// Promotions whose last call failed.
    failed: BTreeSet<String>,
}

/// Who waits and who is served.
#[derive(Debug, Default, PartialEq, Eq)]
struct Line {
    /// Repositories with a call under way.
    served: BTreeSet<String>,
    /// Repositories of calls that wait, by their turn.
    waiting: BTreeMap<Turn, String>,
    arrivals: u64,
}

/// A place in the line: fresh calls before repeated ones, each in the order of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_repeated: bool,
    number: u64,
}

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand<'a> {
    pub(crate) promotion: &'a str,
    pub(crate) repository: &'a str,
    pub(crate) host: &'a str,
}

/// A call that is served. Its repository is free again when this is dropped.
pub(crate) struct Served<'a> {
    pace: &'a Pace,
    repository: &'a str,
}

/// A call that waits; dropped, it leaves the line.
struct Waiting<'a> {
    pace: &'a Pace,
    turn: Turn,
}

impl Pace {
    /// Waits for the turn of an errand.
    ///
    /// # Errors
    /// Passing: its host or its repository rests, and for how long.
    pub(crate) async fn turn<'a>(&'a self, errand: Errand<'a>, attempted: &str) -> Result<Served<'a>, PortError> {
        self.check(errand, attempted)?;
        let waiting = {
            let mut state = self.lock();
            let is_repeated = state.failed.contains(errand.promotion);
            Waiting { pace: self, turn: state.line.join(errand.repository, is_repeated) }
        };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // What changes between the look and the wait is noticed, too.
            changed.as_mut().enable();
            if self.lock().line.serve(waiting.turn) {
                break;
            }
            changed.await;
        }
        drop(waiting);
        let served = Served { pace: self, repository: errand.repository };
        // It may have failed for the one before.
        self.check(errand, attempted)?;
        Ok(served)
    }

    /// Remembers how a call ended.
    pub(crate) fn ended(&self, errand: Errand<'_>, error: Option<&PortError>) {
        self.lock().ended(Instant::now(), errand, error);
    }

    /// Reads in an answer what its host still allows. A tenth is left to others with the same token.
    pub(crate) fn heed(&self, host: &str, headers: &HeaderMap) {
        if let Some(rest) = limits::running_out(headers) {
            self.lock().rest(host, Instant::now() + rest);
        }
    }

    fn check(&self, errand: Errand<'_>, attempted: &str) -> Result<(), PortError> {
        let rests = self.lock().resting(Instant::now(), errand);
        rests.map_or(Ok(()), |(what, left)| {
            let why = format!("its {what} is left alone for {} s more, after it refused or failed", left.as_secs() + 1);
            Err(PortError { retry: Retry::After(left), ..PortError::passing(attempted, why) })
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ended(&mut self, now: Instant, errand: Errand<'_>, error: Option<&PortError>) {
        let Some(error) = error else {
            self.failed.remove(errand.promotion);
            self.failures.remove(errand.repository);
            return;
        };
        remember(&mut self.failed, errand.promotion);
        match error.retry {
            Retry::After(rest) => self.rest(errand.host, now + rest),
            Retry::Later => {
                if self.failures.len() >= KNOWN_MAX {
                    self.failures.clear();
                }
                let failures = self.failures.entry(errand.repository.to_owned()).or_default();
                let rest = REST_FIRST.saturating_mul(2_u32.saturating_pow(*failures));
                *failures = failures.saturating_add(1);
                self.rest(errand.repository, now + rest.min(REST_LONGEST));
            }
            Retry::Never => {}
        }
    }

    /// What of an errand rests, and how much longer.
    fn resting(&self, now: Instant, errand: Errand<'_>) -> Option<(&'static str, Duration)> {
        let places = [("host", errand.host), ("repository", errand.repository)];
        places.into_iter().find_map(|(what, name)| {
            let left = self.rests.get(name)?.saturating_duration_since(now);
            (!left.is_zero()).then_some((what, left))
        })
    }

    fn rest(&mut self, name: &str, until: Instant) {
        if self.rests.len() >= KNOWN_MAX {
            self.rests.clear();
        }
        let rest = self.rests.entry(name.to_owned()).or_insert(until);
        *rest = until.max(*rest);
    }
}

impl Line {
    fn join(&mut self, repository: &str, is_repeated: bool) -> Turn {
        self.arrivals += 1;
        let turn = Turn { is_repeated, number: self.arrivals };
        self.waiting.insert(turn, repository.to_owned());
        turn
    }

    /// Serves this turn if there is room for it and for all that can go before it.
    fn serve(&mut self, turn: Turn) -> bool {
        let mut busy: BTreeSet<&str> = self.served.iter().map(String::as_str).collect();
        for (waiting, repository) in &self.waiting {
            if busy.len() >= CALLS_MAX {
                return false;
            }
            if busy.insert(repository) && *waiting == turn {
                let repository = repository.clone();
                return self.served.insert(repository);
            }
        }
        false
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pace.lock().line.waiting.remove(&self.turn);
        self.pace.changed.notify_waiters();
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.pace.lock().line.served.remove(self.repository);
        self.pace.changed.notify_waiters();
    }
}

fn remember(known: &mut BTreeSet<String>, promotion: &str) {
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(promotion.to_owned());
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const WHAT: &str = "failed to try";

    fn errand<'a>(promotion: &'a str, repository: &'a str) -> Errand<'a> {
        Errand { promotion, repository, host: "git.example.com" }
    }

    /// Who of the line is served now, by number of arrival.
    fn served(line: &mut Line, turns: &[Turn]) -> Vec<u64> {
        let now: Vec<Turn> = turns.iter().filter(|turn| line.serve(**turn)).copied().collect();
        for turn in &now {
            line.waiting.remove(turn);
        }
        now.iter().map(|turn| turn.number).collect()
    }

    #[test]
    fn one_call_a_repository_four_in_all_and_fresh_ones_first() {
        let mut line = Line::default();
        let calls = [("a", true), ("a", false), ("b", true), ("c", false), ("d", false), ("e", false), ("a", false)];
        let turns: Vec<Turn> = calls.iter().map(|(repository, repeated)| line.join(repository, *repeated)).collect();
        assert_eq!(served(&mut line, &turns), [2, 4, 5, 6], "the fresh ones, and one of a");
        assert_eq!(served(&mut line, &turns), Vec::<u64>::new());
        line.served.remove("a");
        assert_eq!(served(&mut line, &turns), [7], "fresh before repeated");
        line.served.remove("c");
        assert_eq!(served(&mut line, &turns), [3], "the first has to wait for its repository");
        line.served.remove("a");
        assert_eq!(served(&mut line, &turns), [1]);
    }

    #[tokio::test]
    async fn a_call_waits_for_its_repository_and_leaves_the_line_when_it_is_given_up() {
        let pace = Pace::default();
        let first = pace.turn(errand("1", "a"), WHAT).await.expect("free");
        assert!(pace.turn(errand("2", "a"), WHAT).now_or_never().is_none());
        assert_eq!(pace.lock().line.waiting, BTreeMap::new());
        let (next, ()) = tokio::join!(pace.turn(errand("3", "a"), WHAT), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        drop(next);
        assert_eq!(pace.lock().line, Line { arrivals: 3, ..Line::default() });
    }

    #[test]
    fn a_host_that_asks_for_rest_has_it_from_all_and_a_repository_that_fails_for_itself() {
        let (mut state, start) = (State::default(), Instant::now());
        let seconds = Duration::from_secs;
        let patience = PortError { retry: Retry::After(seconds(30)), ..PortError::passing("", "") };
        state.ended(start, errand("1", "a"), Some(&patience));
        assert_eq!(state.resting(start, errand("2", "b")), Some(("host", seconds(30))));
        assert_eq!(state.resting(start + seconds(30), errand("2", "b")), None);

        let mut now = start + seconds(30);
        for rest in [2, 4, 8, 16, 32, 60, 60] {
            state.ended(now, errand("1", "a"), Some(&PortError::passing("", "")));
            assert_eq!(state.resting(now, errand("1", "a")), Some(("repository", seconds(rest))));
            assert_eq!(state.resting(now, errand("2", "b")), None, "another repository");
            now += seconds(rest);
        }
        state.ended(now, errand("1", "a"), None);
        state.ended(now, errand("1", "a"), Some(&PortError::lasting("", "")));
        assert_eq!(state.resting(now, errand("1", "a")), None, "what lasts is no reason to rest");
        state.ended(now, errand("1", "a"), Some(&PortError::passing("", "")));
        assert_eq!(state.resting(now, errand("1", "a")), Some(("repository", seconds(2))), "success counts anew");
    }

    #[tokio::test]
    async fn a_host_with_little_left_is_left_alone_until_it_counts_anew() {
        let headers = |left: &str| {
            let headers = [
                ("date", "Sun, 22 Nov 2026 18:00:00 GMT"),
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", left),
                ("x-ratelimit-reset", "1795371000"),
            ];
            headers.iter().map(|(name, value)| (name.parse().expect("name"), value.parse().expect("value"))).collect()
        };
        let pace = Pace::default();
        pace.heed("git.example.com", &headers("500"));
        assert!(pace.turn(errand("1", "a"), WHAT).await.is_ok());
        pace.heed("git.example.com", &headers("499"));
        let (what, left) = pace.lock().resting(Instant::now(), errand("1", "a")).expect("rest");
        assert!(what == "host" && (600..=601).contains(&left.as_secs()), "{left:?}");
    }
}
