//! The order of calls to git hosts and forges: looks of Repos and promotions of Pipelines alike, with one queue and one
//! set of pauses after failures ([`rests`](crate::rests)).
//!
//! - A place that is free goes to the namespace that holds the fewest, to what has not failed before what has, and then to whoever
//!   came first.
//! - No namespace holds all places, neither in all nor at one host, so calls that hang leave one to the others.
//! - Promotions have one call a repository: each would be in the other's way.
//!
//! A call that comes while there is rest fails at once, without a request: whoever wants it comes again when the rest is over.
//!
//! Not for what is asked of a host, nor for when it is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::machine::Timestamp;
use purge::ports::Clock;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::rests::{Key, Outcome, Resting, Rests, Whom};

/// What a call is for. Each kind has places of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// A look at refs: small, and many.
    Look,
    /// A comparison of two commits: it holds 40 MiB at most, where the server sends more than is asked for.
    Comparison,
    /// The report of a run: a few small exchanges.
    Report,
    /// A promotion. Each holds the trees of its repository, up to 256 MiB by the bounds of the git client.
    Promotion,
}

impl Purpose {
    /// Places in all. 1,000 Repos at a minute are 17 looks a second.
    const fn places(self) -> usize {
        match self {
            Self::Look => 16,
            Self::Comparison | Self::Report | Self::Promotion => 3,
        }
    }

    /// Those of one namespace.
    const fn places_of_one(self) -> usize {
        match self {
            Self::Look => 12,
            Self::Comparison | Self::Report | Self::Promotion => 2,
        }
    }

    /// Those at one host, and of these those of one namespace.
    const fn places_at_host(self) -> (usize, usize) {
        match self {
            Self::Look => (4, 3),
            Self::Comparison | Self::Report | Self::Promotion => (3, 2),
        }
    }
}

/// Things that failed last time and are remembered; more than a cluster has Pipelines and Repos.
const FAILED_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Errand {
    pub(crate) purpose: Purpose,
    pub(crate) namespace: String,
    /// The promotion or the Repo that wants it: what failed goes behind what has not.
    pub(crate) subject: String,
    pub(crate) whom: Whom,
}

/// Why there is no turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Its host, credentials or repository is paused.
    Rests(Resting),
    /// No place became free in time: the holders of the places, in words.
    Busy(String),
}

/// The queue and the pauses of all hosts.
pub struct Keeper {
    clock: Arc<dyn Clock>,
    /// Makes numbers of credentials, others in each process.
    numbers: RandomState,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    line: Line,
    rests: Rests,
    failed: BTreeSet<(Purpose, String)>,
}

/// A turn. Its place is free again when this is dropped.
pub(crate) struct Turn {
    keeper: Arc<Keeper>,
    number: u64,
    errand: Errand,
    begun: Timestamp,
}

/// The waiting and the served calls, by number of arrival.
#[derive(Default)]
struct Line {
    served: BTreeMap<u64, Errand>,
    waiting: BTreeMap<u64, Waiting>,
    arrivals: u64,
}

struct Waiting {
    errand: Errand,
    has_failed: bool,
    wake: oneshot::Sender<Turn>,
}

impl Keeper {
    /// A keeper without pauses and waiting calls.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, numbers: RandomState::new(), state: Mutex::default() })
    }

    /// The clock that pauses are measured by.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The git hosts that rest, in words.
    pub fn troubles(&self) -> Vec<String> {
        self.lock().rests.hosts(self.clock.now())
    }

    /// As whom one from this namespace comes with these credentials.
    pub(crate) fn key(&self, namespace: &str, credentials: Option<impl Hash>) -> Key {
        let known = credentials.map(|credentials| Key::Credentials(self.numbers.hash_one(credentials)));
        known.unwrap_or_else(|| Key::Namespace(namespace.to_owned()))
    }

    /// Waits for the turn of an errand, at most this long.
    pub(crate) async fn turn(self: &Arc<Self>, errand: Errand, wait_max: Duration) -> Result<Turn, NoTurn> {
        self.check(&errand.whom)?;
        let (wake, woken) = oneshot::channel();
        {
            let mut state = self.lock();
            let has_failed = state.failed.contains(&(errand.purpose, errand.subject.clone()));
            state.line.arrivals += 1;
            let number = state.line.arrivals;
            state.line.waiting.insert(number, Waiting { errand: errand.clone(), has_failed, wake });
        }
        self.serve();
        let Ok(Ok(mut turn)) = timeout(wait_max, woken).await else {
            return Err(NoTurn::Busy(self.lock().line.holders(&errand)));
        };
        // It may have failed for the one before.
        self.check(&errand.whom)?;
        turn.begun = self.clock.now();
        Ok(turn)
    }

    fn check(&self, whom: &Whom) -> Result<(), NoTurn> {
        self.lock().rests.of(self.clock.now(), whom).map_or(Ok(()), |resting| Err(NoTurn::Rests(resting)))
    }

    /// Gives the places that are free to those whose turn it is.
    fn serve(self: &Arc<Self>) {
        loop {
            let next = self.lock().line.next();
            let Some((number, Waiting { errand, wake, .. })) = next else { return };
            let turn = Turn { keeper: Arc::clone(self), number, errand, begun: self.clock.now() };
            // Whoever is gone drops it, which frees the place.
            let _gone = wake.send(turn);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Notes how the call ended. Returns the pause that applies now.
    pub(crate) fn ended(&self, succeeded: bool, outcome: Outcome) -> Option<Resting> {
        let now = self.keeper.clock.now();
        let mut state = self.keeper.lock();
        let subject = (self.errand.purpose, self.errand.subject.clone());
        if succeeded {
            state.failed.remove(&subject);
        } else if state.failed.len() < FAILED_MAX {
            state.failed.insert(subject);
        } else {
            state.failed.clear();
        }
        state.rests.ended(now, self.begun, &self.errand.whom, outcome);
        state.rests.of(now, &self.errand.whom)
    }

    /// The host allows these credentials few more calls: they are paused for this time.
    pub(crate) fn spare(&self, rest: Duration) {
        self.keeper.lock().rests.spare(self.keeper.clock.now(), &self.errand.whom, rest);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.keeper.lock().line.served.remove(&self.number);
        self.keeper.serve();
    }
}

impl Line {
    /// Takes whose turn it is out of those that wait; its place is taken.
    fn next(&mut self) -> Option<(u64, Waiting)> {
        self.waiting.retain(|_, waiting| !waiting.wake.is_closed());
        let held = Held::of(self.served.values());
        let may = self.waiting.iter().filter(|(_, Waiting { errand, .. })| held.has_room_for(errand));
        let turn = |(number, Waiting { errand, has_failed, .. }): &(&u64, &Waiting)| {
            (held.by_namespace(errand), *has_failed, **number)
        };
        let number = *may.min_by_key(turn)?.0;
        let waiting = self.waiting.remove(&number)?;
        self.served.insert(number, waiting.errand.clone());
        Some((number, waiting))
    }

    /// The holders of the places that an errand waits for, with their numbers.
    fn holders(&self, errand: &Errand) -> String {
        let at_host = self
            .served
            .values()
            .filter(|other| (other.purpose, &other.whom.host) == (errand.purpose, &errand.whom.host));
        let mut held: BTreeMap<&str, usize> = BTreeMap::new();
        at_host.for_each(|other| *held.entry(&other.namespace).or_default() += 1);
        let most = held.iter().max_by_key(|(_, number)| **number);
        let (places, _) = errand.purpose.places_at_host();
        most.map_or_else(
            || format!("all {} places are taken at other hosts", errand.purpose.places()),
            |(namespace, number)| {
                format!("namespace {namespace} holds {number} of the {places} places at {}", errand.whom.host)
            },
        )
    }
}

/// The places that are taken, counted.
#[derive(Default)]
struct Held<'a> {
    all: BTreeMap<Purpose, usize>,
    of_namespace: BTreeMap<(Purpose, &'a str), usize>,
    at_host: BTreeMap<(Purpose, &'a str), usize>,
    of_namespace_at_host: BTreeMap<(Purpose, &'a str, &'a str), usize>,
    repositories: BTreeSet<(Purpose, &'a str)>,
}

impl<'a> Held<'a> {
    fn of(served: impl Iterator<Item = &'a Errand>) -> Self {
        let mut held = Self::default();
        for Errand { purpose, namespace, whom, .. } in served {
            *held.all.entry(*purpose).or_default() += 1;
            *held.of_namespace.entry((*purpose, namespace)).or_default() += 1;
            *held.at_host.entry((*purpose, &whom.host)).or_default() += 1;
            *held.of_namespace_at_host.entry((*purpose, namespace, &whom.host)).or_default() += 1;
            held.repositories.insert((*purpose, &whom.repository));
        }
        held
    }

    fn by_namespace(&self, Errand { purpose, namespace, .. }: &Errand) -> usize {
        self.of_namespace.get(&(*purpose, namespace.as_str())).copied().unwrap_or(0)
    }

    fn has_room_for(&self, errand: &Errand) -> bool {
        let Errand { purpose, namespace, whom, .. } = errand;
        let (host, of_one_at_host) = purpose.places_at_host();
        let number = |held: Option<&usize>| held.copied().unwrap_or(0);
        number(self.all.get(purpose)) < purpose.places()
            && self.by_namespace(errand) < purpose.places_of_one()
            && number(self.at_host.get(&(*purpose, whom.host.as_str()))) < host
            && number(self.of_namespace_at_host.get(&(*purpose, namespace.as_str(), whom.host.as_str())))
                < of_one_at_host
            && (*purpose != Purpose::Promotion || !self.repositories.contains(&(*purpose, whom.repository.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    struct Stopped;

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn wall_ms(&self) -> i64 {
            0
        }
    }

    fn keeper() -> Arc<Keeper> {
        Keeper::new(Arc::new(Stopped))
    }

    fn errand(purpose: Purpose, namespace: &str, host: &str, number: usize) -> Errand {
        let key = Key::Namespace(namespace.to_owned());
        Errand {
            purpose,
            namespace: namespace.to_owned(),
            subject: format!("{namespace}/{number}"),
            whom: Whom { host: host.to_owned(), repository: format!("https://{host}/{namespace}/{number}"), key },
        }
    }

    /// Those that have a turn now, of these that want one; the others leave the line.
    async fn served(keeper: &Arc<Keeper>, errands: impl IntoIterator<Item = Errand>) -> Vec<Turn> {
        let wanted = errands.into_iter().map(|errand| keeper.turn(errand, Duration::ZERO));
        join_all(wanted).await.into_iter().filter_map(Result::ok).collect()
    }

    fn looks(namespace: &str, host: &str, count: usize) -> Vec<Errand> {
        (0..count).map(|number| errand(Purpose::Look, namespace, host, number)).collect()
    }

    #[tokio::test]
    async fn no_namespace_holds_all_places_at_a_host_or_in_all() {
        let keeper = keeper();
        let greedy = served(&keeper, looks("greedy", "a", 20)).await;
        assert_eq!(greedy.len(), 3);
        let modest = served(&keeper, looks("modest", "a", 5)).await;
        assert_eq!(modest.len(), 1, "the fourth place of that host");
        let busy = keeper.turn(errand(Purpose::Look, "late", "a", 0), Duration::ZERO).await.err();
        assert_eq!(busy, Some(NoTurn::Busy("namespace greedy holds 3 of the 4 places at a".to_owned())));
        drop((greedy, modest));
        let hosts = ["a", "b", "c", "d", "e", "f"];
        let greedy = served(&keeper, hosts.iter().flat_map(|host| looks("greedy", host, 3))).await;
        assert_eq!(greedy.len(), 12);
        let others = served(&keeper, hosts.iter().flat_map(|host| looks("modest", host, 3))).await;
        assert_eq!(others.len(), 4, "sixteen in all");
        let promotions =
            |namespace: &'static str| (0..5).map(move |number| errand(Purpose::Promotion, namespace, "a", number));
        let promoted = served(&keeper, promotions("greedy").chain(promotions("modest"))).await;
        assert_eq!(promoted.len(), 3, "they have places of their own");
        assert_eq!(promoted.iter().filter(|turn| turn.errand.namespace == "greedy").count(), 2);
    }

    #[tokio::test]
    async fn a_place_goes_to_whom_holds_the_fewest_then_to_what_has_not_failed_then_to_whom_came_first() {
        let keeper = keeper();
        let failed = served(&keeper, [errand(Purpose::Promotion, "b", "a", 7)]).await;
        failed[0].ended(false, Outcome::Nothing);
        drop(failed);
        let mut held = served(&keeper, (0..2).map(|number| errand(Purpose::Promotion, "a", "a", number))).await;
        held.extend(served(&keeper, [errand(Purpose::Promotion, "c", "a", 0)]).await);
        let wanted = [("a", 5), ("b", 7), ("b", 8), ("c", 9)];
        let mut waiting: Vec<_> = wanted
            .iter()
            .map(|(namespace, number)| {
                Box::pin(keeper.turn(errand(Purpose::Promotion, namespace, "a", *number), Duration::MAX))
            })
            .collect();
        let mut order = Vec::new();
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()), "all places are taken");
        while !waiting.is_empty() {
            held.remove(0);
            let (turn, index, _) = futures_util::future::select_all(waiting.iter_mut()).await;
            drop(waiting.remove(index));
            let turn = turn.expect("a turn");
            order.push(turn.errand.subject.clone());
            held.push(turn);
        }
        assert_eq!(order, ["b/8", "a/5", "c/9", "b/7"]);
    }

    #[tokio::test]
    async fn promotions_have_one_call_a_repository_and_whoever_gives_up_leaves_the_line() {
        let keeper = keeper();
        let one = || errand(Purpose::Promotion, "a", "a", 0);
        let first = keeper.turn(one(), Duration::ZERO).await.expect("free");
        assert!(keeper.turn(one(), Duration::MAX).now_or_never().is_none());
        let (next, ()) = tokio::join!(keeper.turn(one(), Duration::MAX), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        drop(next);
        let state = keeper.lock();
        assert!(state.line.served.is_empty() && state.line.waiting.is_empty());
    }

    #[tokio::test]
    async fn what_rests_is_refused_at_once_also_to_those_that_waited() {
        let keeper = keeper();
        let turns = served(&keeper, looks("a", "a", 3)).await;
        let waiting = keeper.turn(errand(Purpose::Look, "a", "a", 9), Duration::MAX);
        let (waited, ()) = tokio::join!(waiting, async {
            turns[0].ended(false, Outcome::Unreachable("connection refused".to_owned()));
            drop(turns);
        });
        let rests = |none: Option<NoTurn>| matches!(none, Some(NoTurn::Rests(Resting { what, .. })) if what == "a");
        assert!(rests(waited.err()));
        assert!(rests(keeper.turn(errand(Purpose::Look, "b", "a", 0), Duration::ZERO).await.err()));
        assert!(keeper.turn(errand(Purpose::Look, "b", "b", 0), Duration::ZERO).await.is_ok());
        assert_eq!(keeper.troubles(), ["git host a is paused for 30 s, then asked again: connection refused"]);
    }

    #[test]
    fn credentials_are_known_by_a_number_and_those_without_by_their_namespace() {
        let keeper = keeper();
        let with = |secret: &str| keeper.key("shop", Some(secret));
        assert!(with("one") == with("one") && with("one") != with("two"));
        assert_eq!(keeper.key("shop", None::<&str>), Key::Namespace("shop".to_owned()));
    }
}
