//! Pauses after failures: a failure pauses only its own subject (decision 60).
//!
//! | seen | paused |
//! |---|---|
//! | no connection, or none over TLS | the host, unless a repository of it has answered lately |
//! | 401 | the host, for these credentials |
//! | 429, and 403 that is about pace | the same, for as long as the host asks |
//! | other 5xx, no whole answer in time, an answer that makes no sense | the repository, for these credentials |
//!
//! Calls without credentials are known by their namespace, so no tenant makes another one wait. A pause is longer each
//! time, and an answer ends it. A refusal that only a person can end causes no pause: the person wants to see the
//! effect.
//!
//! Not for the order of calls; that is `keeper`.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::machine::Timestamp;

use crate::limits::REST_MAX;

/// First and longest pause of a host that cannot be reached.
const HOST_RESTS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// The same of a repository that fails, and of a host for credentials that it refuses.
const SHORT_RESTS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// How long an answer proves a host well: each Repo looks once a minute if its owner does not say otherwise.
const WELL_FOR: Duration = Duration::from_secs(60);

/// Things that are remembered; more than there are Repos and Pipelines. Those whose failures are longest ago are forgotten.
const KNOWN_MAX: usize = 10_000;

/// How long failures count after a pause.
const MEMORY: Duration = Duration::from_secs(3600);

/// The subject of a call, by the parts that can fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whom {
    /// The host, with its port if it has one.
    pub(crate) host: String,
    /// The repository, by its URL.
    pub(crate) repository: String,
    pub(crate) key: Key,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// With credentials. The number stands for them, and says nothing of them.
    Credentials(u64),
    /// Without, from this namespace.
    Namespace(String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Host(String),
    Key(String, Key),
    Repository(String, Key),
}

/// What a call found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing about the host.
    #[default]
    Nothing,
    /// It answered; the content of the answer is a person's matter.
    Answers,
    /// There is no connection to it, for this reason.
    Unreachable(String),
    /// It refuses the credentials.
    Unauthorized(String),
    /// It asked to be left alone for this time.
    AsksForRest(String, Duration),
    /// The repository fails, for this reason, and may have asked for this time.
    Fails(String, Option<Duration>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) what: String,
    pub(crate) why: String,
    /// For how long still.
    pub(crate) left: Duration,
}

#[derive(Clone, Debug)]
struct Rest {
    /// How often it failed in a row.
    failures: u32,
    since: Timestamp,
    until: Timestamp,
    /// The server asked for it.
    asked: bool,
    why: String,
}

#[derive(Default)]
pub(crate) struct Rests {
    parts: BTreeMap<Part, Rest>,
    /// When hosts answered last.
    answered: BTreeMap<String, Timestamp>,
}

impl Rests {
    /// The pause that applies to this now.
    pub(crate) fn of(&self, now: Timestamp, whom: &Whom) -> Option<Resting> {
        let resting = |part: Part| {
            let rest = self.parts.get(&part).filter(|rest| now < rest.until)?;
            Some(Resting { what: part.words(), why: rest.why.clone(), left: rest.until.since(now) })
        };
        whom.parts().into_iter().find_map(resting)
    }

    /// The hosts that cannot be reached, in words.
    pub(crate) fn hosts(&self, now: Timestamp) -> Vec<String> {
        let words = |(part, rest): (&Part, &Rest)| match part {
            Part::Host(host) if now < rest.until => {
                let left = rest.until.since(now).as_secs();
                Some(format!("git host {host} is paused for {left} s, then asked again: {}", rest.why))
            }
            Part::Host(_) | Part::Key(..) | Part::Repository(..) => None,
        };
        self.parts.iter().filter_map(words).collect()
    }

    /// A call that began at `begun` ended so.
    pub(crate) fn ended(&mut self, now: Timestamp, begun: Timestamp, whom: &Whom, outcome: Outcome) {
        let [host, key, repository] = whom.parts();
        let answers = matches!(
            outcome,
            Outcome::Answers | Outcome::Unauthorized(_) | Outcome::AsksForRest(..) | Outcome::Fails(..)
        );
        if answers {
            self.answers(now, &whom.host);
            self.parts.remove(&host);
        }
        match outcome {
            Outcome::Nothing => {}
            Outcome::Answers => {
                self.parts.remove(&repository);
                if self.parts.get(&key).is_some_and(|rest| !rest.asked || rest.until <= now) {
                    self.parts.remove(&key);
                }
            }
            Outcome::Unreachable(why) => {
                let is_well = self.answered.get(&whom.host).is_some_and(|at| now.since(*at) < WELL_FOR);
                match is_well {
                    true => self.fails(now, begun, repository, SHORT_RESTS, why),
                    false => self.fails(now, begun, host, HOST_RESTS, why),
                }
            }
            Outcome::Unauthorized(why) => {
                // Without credentials it is this repository that needs some.
                let part = if matches!(whom.key, Key::Credentials(_)) { key } else { repository };
                self.fails(now, begun, part, SHORT_RESTS, why);
            }
            Outcome::AsksForRest(why, rest) => self.asks(now, key, rest, why),
            Outcome::Fails(why, Some(rest)) => self.asks(now, repository, rest, why),
            Outcome::Fails(why, None) => self.fails(now, begun, repository, SHORT_RESTS, why),
        }
    }

    /// Credentials have this little left of what their host allows them: they are left alone until it counts anew.
    pub(crate) fn spare(&mut self, now: Timestamp, whom: &Whom, rest: Duration) {
        let [_, key, _] = whom.parts();
        self.asks(now, key, rest, "less than a tenth is left of what it allows us".to_owned());
    }

    /// Calls that were under way together are one failure.
    fn fails(
        &mut self,
        now: Timestamp,
        begun: Timestamp,
        part: Part,
        (first, longest): (Duration, Duration),
        why: String,
    ) {
        let before = self.parts.get(&part).filter(|rest| now.since(rest.until) < MEMORY);
        if before.is_some_and(|rest| begun <= rest.since) {
            return;
        }
        let failures = before.map_or(0, |rest| rest.failures);
        let rest = first.saturating_mul(2_u32.saturating_pow(failures)).min(longest);
        let rest = Rest { failures: failures.saturating_add(1), since: now, until: now.after(rest), asked: false, why };
        self.put(now, part, rest);
    }

    fn asks(&mut self, now: Timestamp, part: Part, rest: Duration, why: String) {
        let until = now.after(rest.min(REST_MAX));
        if self.parts.get(&part).is_none_or(|before| before.until < until) {
            self.put(now, part, Rest { failures: 0, since: now, until, asked: true, why });
        }
    }

    fn put(&mut self, now: Timestamp, part: Part, rest: Rest) {
        if self.parts.len() >= KNOWN_MAX {
            self.parts.retain(|_, rest| now < rest.until);
        }
        if self.parts.len() >= KNOWN_MAX
            && let Some(oldest) = self.parts.iter().min_by_key(|(_, rest)| rest.since).map(|(part, _)| part.clone())
        {
            self.parts.remove(&oldest);
        }
        self.parts.insert(part, rest);
    }

    fn answers(&mut self, now: Timestamp, host: &str) {
        if self.answered.len() >= KNOWN_MAX {
            self.answered.retain(|_, at| now.since(*at) < WELL_FOR);
        }
        if self.answered.len() < KNOWN_MAX {
            self.answered.insert(host.to_owned(), now);
        }
    }
}

impl Whom {
    /// The host, the host for these credentials, and the repository for them.
    fn parts(&self) -> [Part; 3] {
        let Self { host, repository, key } = self;
        [
            Part::Host(host.clone()),
            Part::Key(host.clone(), key.clone()),
            Part::Repository(repository.clone(), key.clone()),
        ]
    }
}

impl Part {
    fn words(&self) -> String {
        match self {
            Self::Host(host) => host.clone(),
            Self::Key(host, Key::Credentials(_)) => format!("{host}, for these credentials,"),
            Self::Key(host, Key::Namespace(namespace)) => format!("{host}, without credentials from {namespace},"),
            Self::Repository(..) => "the repository".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn whom(repository: &str, key: &str) -> Whom {
        let key = Key::Credentials(key.bytes().map(u64::from).sum());
        Whom { host: "git.example.com".to_owned(), repository: repository.to_owned(), key }
    }

    fn left(rests: &Rests, now: u64, whom: &Whom) -> Option<u64> {
        rests.of(at(now), whom).map(|resting| resting.left.as_secs())
    }

    fn unreachable() -> Outcome {
        Outcome::Unreachable("connection refused".to_owned())
    }

    fn fails() -> Outcome {
        Outcome::Fails("it answers 500".to_owned(), None)
    }

    #[test]
    fn a_host_that_cannot_be_reached_rests_longer_each_time_for_all_until_it_answers() {
        let (mut rests, ours, theirs) = (Rests::default(), whom("a", "k"), whom("b", "l"));
        let mut now = 0;
        for rest in [30, 60, 120, 240, 480, 600, 600] {
            rests.ended(at(now), at(now), &ours, unreachable());
            assert_eq!(left(&rests, now, &theirs), Some(rest));
            let elsewhere = Whom { host: "other.example.com".to_owned(), ..theirs.clone() };
            assert_eq!(left(&rests, now, &elsewhere), None);
            now += rest;
        }
        assert_eq!(left(&rests, now, &theirs), None);
        rests.ended(at(now), at(now), &theirs, fails());
        assert_eq!((left(&rests, now, &theirs), left(&rests, now, &ours)), (Some(2), None), "it has answered");
        assert_eq!(rests.hosts(at(now)), [""; 0]);
    }

    #[test]
    fn a_host_that_answered_within_a_minute_is_well() {
        let (mut rests, ours, theirs) = (Rests::default(), whom("a", "k"), whom("b", "l"));
        rests.ended(at(0), at(0), &theirs, Outcome::Answers);
        rests.ended(at(59), at(58), &ours, unreachable());
        assert_eq!((left(&rests, 59, &ours), left(&rests, 59, &theirs)), (Some(2), None));
        rests.ended(at(61), at(61), &ours, unreachable());
        assert_eq!(left(&rests, 61, &theirs), Some(30));
    }

    #[test]
    fn what_fails_together_is_one_failure() {
        let (mut rests, ours) = (Rests::default(), whom("a", "k"));
        for begun in [0, 1, 2] {
            rests.ended(at(3), at(begun), &ours, unreachable());
        }
        assert_eq!(left(&rests, 3, &ours), Some(30));
        rests.ended(at(40), at(33), &ours, unreachable());
        assert_eq!(left(&rests, 40, &ours), Some(60));
    }

    #[test]
    fn a_failure_rests_only_what_it_is_about() {
        let (ours, sibling, stranger) = (whom("a", "k"), whom("b", "k"), whom("a", "l"));
        let asks = |seconds| Outcome::AsksForRest("it answers 429".to_owned(), Duration::from_secs(seconds));
        let cases: [(Outcome, [Option<u64>; 3]); 6] = [
            (Outcome::Nothing, [None, None, None]),
            (Outcome::Unauthorized("it answers 401".to_owned()), [Some(2), Some(2), None]),
            (asks(100), [Some(100), Some(100), None]),
            (asks(3600), [Some(600), Some(600), None]),
            (fails(), [Some(2), None, None]),
            (Outcome::Fails("it answers 503".to_owned(), Some(Duration::from_secs(90))), [Some(90), None, None]),
        ];
        for (outcome, expected) in cases {
            let mut rests = Rests::default();
            rests.ended(at(0), at(0), &ours, outcome.clone());
            assert_eq!([&ours, &sibling, &stranger].map(|whom| left(&rests, 0, whom)), expected, "{outcome:?}");
        }
    }

    #[test]
    fn a_repository_that_wants_credentials_and_is_given_none_rests_alone() {
        let (mut rests, key) = (Rests::default(), Key::Namespace("shop".to_owned()));
        let [ours, sibling] = ["a", "b"].map(|name| Whom { key: key.clone(), ..whom(name, "") });
        rests.ended(at(0), at(0), &ours, Outcome::Unauthorized("it answers 401".to_owned()));
        assert_eq!((left(&rests, 0, &ours), left(&rests, 0, &sibling)), (Some(2), None));
    }

    #[test]
    fn what_was_asked_for_is_kept_though_another_call_is_answered() {
        let (mut rests, ours) = (Rests::default(), whom("a", "k"));
        let asks = |seconds| Outcome::AsksForRest("it answers 429".to_owned(), Duration::from_secs(seconds));
        rests.ended(at(0), at(0), &ours, asks(100));
        rests.ended(at(1), at(0), &ours, Outcome::Answers);
        rests.ended(at(1), at(0), &ours, asks(5));
        assert_eq!(left(&rests, 1, &ours), Some(99), "the longer one counts");
        rests.ended(at(100), at(100), &ours, Outcome::Answers);
        assert_eq!((left(&rests, 100, &ours), rests.parts.len()), (None, 0));
    }

    #[test]
    fn no_more_is_remembered_than_there_is_room_for() {
        let mut rests = Rests::default();
        for number in 0..KNOWN_MAX + 10 {
            let of = |name: &str| format!("{name}-{number}");
            let key = Key::Namespace(of("namespace"));
            let whom = Whom { host: of("host"), repository: of("repository"), key };
            rests.ended(at(0), at(0), &whom, Outcome::Unauthorized("it answers 401".to_owned()));
        }
        assert_eq!((rests.parts.len(), rests.answered.len()), (KNOWN_MAX, KNOWN_MAX));
    }
}
