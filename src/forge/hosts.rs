//! Which git hosts rest. A host that fails is left alone as a whole, longer each time, and then one look at a time finds out
//! whether it is back. Looks at other hosts are not concerned.
//!
//! ```text
//!            failed                     time passes           a probe is answered
//!  works ──────────────▶ rests 30 s … 10 min ─────▶ probed ────────────────────────▶ works
//!            asked for rest                ▲           │ it fails
//!                                          └───────────┘
//! ```
//!
//! What is said of one repository alone (a wrong password, no such ref) is an answer: its host works.
//!
//! Not for how many connections there are, nor for when a Repo looks again; that is `heads` and the machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::machine::Timestamp;
use tokio::sync::Semaphore;

/// First and longest rest of a host that fails.
const REST_FIRST: Duration = Duration::from_secs(30);
const REST_LONGEST: Duration = Duration::from_secs(600);

/// Looks at one host at the same time, so that one host does not take the places of others.
pub(crate) const LOOKS_PER_HOST_MAX: usize = 4;

/// Hosts that are remembered; more than 1,000 Repos have. Those that nothing is known to be wrong with are not.
const HOSTS_MAX: usize = 2_000;

/// How long a host's failures count after its rest. It has then been left alone by every Repo.
const MEMORY: Duration = Duration::from_secs(3600);

/// All hosts at which there are looks, or that rest.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<String, Host>);

struct Host {
    places: Arc<Semaphore>,
    /// Looks under way, or waiting for a place.
    looks: usize,
    /// How often it failed in a row.
    failures: u32,
    /// Until when it rests.
    until: Timestamp,
    /// It asked for the rest.
    asked: bool,
    /// Why, in words.
    why: String,
    probed: bool,
    /// Counts its failures, so that looks that were under way together count as one.
    round: u64,
}

/// A host that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Its name, with its port if it has one.
    pub host: String,
    /// Why, in words.
    pub why: String,
    /// For how long still; while somebody looks whether it is back, how long that may take.
    pub left: Duration,
}

/// What a look found out about its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It answered; what it said is the repository's matter.
    Answers,
    /// It failed, for this reason.
    Fails(String),
    /// It asked to be left alone for this time.
    AsksForRest(String, Duration),
    /// Nothing: the look ended for another reason.
    Nothing,
}

/// A look that may be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    round: u64,
    probes: bool,
}

impl Hosts {
    /// Somebody is about to look: the places of the host.
    pub(crate) fn enter(&mut self, now: Timestamp, host: &str) -> Arc<Semaphore> {
        if self.0.len() >= HOSTS_MAX {
            self.0.retain(|_, host| host.looks > 0 || now < host.until);
        }
        let host = self.0.entry(host.to_owned()).or_insert_with(Host::new);
        host.looks = host.looks.saturating_add(1);
        Arc::clone(&host.places)
    }

    /// Whether the host rests.
    pub(crate) fn resting(&self, now: Timestamp, name: &str, probe_max: Duration) -> Option<Resting> {
        let host = self.0.get(name)?;
        let left = match host.until.since(now) {
            Duration::ZERO if host.probed => probe_max,
            left => left,
        };
        let host = Resting { host: name.to_owned(), why: host.why.clone(), left };
        (!left.is_zero()).then_some(host)
    }

    /// Makes a look, unless the host rests.
    pub(crate) fn begin(&mut self, now: Timestamp, name: &str, probe_max: Duration) -> Result<Ticket, Resting> {
        if let Some(resting) = self.resting(now, name, probe_max) {
            return Err(resting);
        }
        let host = self.0.entry(name.to_owned()).or_insert_with(Host::new);
        if host.failures > 0 && now.since(host.until) >= MEMORY {
            host.failures = 0;
        }
        let probes = host.failures > 0;
        host.probed = probes;
        Ok(Ticket { round: host.round, probes })
    }

    /// A look ended so.
    pub(crate) fn ended(&mut self, now: Timestamp, name: &str, ticket: &Ticket, outcome: Outcome) {
        let Some(host) = self.0.get_mut(name) else { return };
        if ticket.probes {
            host.probed = false;
        }
        match outcome {
            Outcome::Nothing => {}
            Outcome::Answers => {
                // One that asked for rest has it, though it still answers.
                if !host.asked || host.until <= now {
                    (host.failures, host.until, host.asked) = (0, now, false);
                }
            }
            Outcome::Fails(_) if ticket.round != host.round => {}
            Outcome::Fails(why) => {
                let rest = REST_FIRST.saturating_mul(2_u32.saturating_pow(host.failures)).min(REST_LONGEST);
                host.rest(now.after(rest), false, why);
            }
            Outcome::AsksForRest(why, rest) => host.rest(now.after(rest).max(host.until), true, why),
        }
    }

    /// Somebody who entered is gone.
    pub(crate) fn leave(&mut self, now: Timestamp, name: &str) {
        let Some(host) = self.0.get_mut(name) else { return };
        host.looks = host.looks.saturating_sub(1);
        if host.looks == 0 && host.failures == 0 && host.until <= now {
            self.0.remove(name);
        }
    }

    /// All that rest, by name.
    pub(crate) fn all_resting(&self, now: Timestamp, probe_max: Duration) -> Vec<Resting> {
        self.0.keys().filter_map(|name| self.resting(now, name, probe_max)).collect()
    }

    /// How many are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }
}

impl Host {
    fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(LOOKS_PER_HOST_MAX)),
            looks: 0,
            failures: 0,
            until: Timestamp::default(),
            asked: false,
            why: String::new(),
            probed: false,
            round: 0,
        }
    }

    fn rest(&mut self, until: Timestamp, asked: bool, why: String) {
        self.failures = self.failures.saturating_add(1);
        self.round = self.round.saturating_add(1);
        (self.until, self.asked, self.why) = (until, asked, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "git.example.com";
    const PROBE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn fails() -> Outcome {
        Outcome::Fails("connection refused".to_owned())
    }

    fn left(hosts: &Hosts, now: u64) -> Option<u64> {
        hosts.resting(at(now), HOST, PROBE).map(|resting| resting.left.as_secs())
    }

    #[test]
    fn a_host_that_fails_rests_longer_each_time_and_one_look_finds_out_whether_it_is_back() {
        let mut hosts = Hosts::default();
        hosts.enter(at(0), HOST);
        let mut now = 0;
        for rest in [30, 60, 120, 240, 480, 600, 600] {
            let ticket = hosts.begin(at(now), HOST, PROBE).expect("no rest");
            if now > 0 {
                let refused = hosts.begin(at(now), HOST, PROBE).expect_err("one probe at a time");
                assert_eq!((refused.why.as_str(), refused.left), ("connection refused", PROBE));
            }
            hosts.ended(at(now), HOST, &ticket, fails());
            assert_eq!(left(&hosts, now), Some(rest));
            assert_eq!(left(&hosts, now + rest - 1), Some(1));
            assert_eq!(hosts.resting(at(now), "other.example.com", PROBE), None);
            now += rest;
        }
        let probe = hosts.begin(at(now), HOST, PROBE).expect("no rest");
        hosts.ended(at(now), HOST, &probe, Outcome::Answers);
        assert_eq!(left(&hosts, now), None);
        let ticket = hosts.begin(at(now), HOST, PROBE).expect("it works");
        assert!(hosts.begin(at(now), HOST, PROBE).is_ok(), "many at a time");
        hosts.ended(at(now), HOST, &ticket, fails());
        assert_eq!(left(&hosts, now), Some(30), "success counts anew");
    }

    #[test]
    fn looks_that_fail_together_are_one_failure() {
        let mut hosts = Hosts::default();
        hosts.enter(at(0), HOST);
        let tickets = [0, 1, 2].map(|_| hosts.begin(at(0), HOST, PROBE).expect("it works"));
        for (ticket, now) in tickets.iter().zip(0..) {
            hosts.ended(at(now), HOST, ticket, fails());
        }
        assert_eq!(left(&hosts, 0), Some(30));
        let probe = hosts.begin(at(30), HOST, PROBE).expect("the rest is over");
        hosts.ended(at(30), HOST, &probe, Outcome::Nothing);
        assert!(hosts.begin(at(30), HOST, PROBE).is_ok(), "a probe that was given up makes room for the next");
    }

    #[test]
    fn a_host_that_asks_for_rest_has_it_though_another_look_is_answered() {
        let mut hosts = Hosts::default();
        hosts.enter(at(0), HOST);
        let [first, second] = [0, 1].map(|_| hosts.begin(at(0), HOST, PROBE).expect("it works"));
        let asked = |seconds| Outcome::AsksForRest("it answers 429".to_owned(), Duration::from_secs(seconds));
        hosts.ended(at(0), HOST, &first, asked(100));
        hosts.ended(at(1), HOST, &second, Outcome::Answers);
        assert_eq!(left(&hosts, 1), Some(99));
        hosts.ended(at(1), HOST, &second, asked(5));
        assert_eq!(left(&hosts, 1), Some(99), "the longer one counts");
        assert_eq!(hosts.all_resting(at(1), PROBE).len(), 1);
        assert_eq!(hosts.all_resting(at(100), PROBE), []);
    }

    #[test]
    fn hosts_are_forgotten_when_nothing_is_to_be_remembered() {
        let mut hosts = Hosts::default();
        hosts.enter(at(0), HOST);
        let ticket = hosts.begin(at(0), HOST, PROBE).expect("it works");
        hosts.ended(at(0), HOST, &ticket, Outcome::Answers);
        hosts.leave(at(0), HOST);
        assert_eq!(hosts.len(), 0);
        for number in 0..HOSTS_MAX {
            let host = number.to_string();
            hosts.enter(at(0), &host);
            let ticket = hosts.begin(at(0), &host, PROBE).expect("it works");
            hosts.ended(at(0), &host, &ticket, fails());
            hosts.leave(at(0), &host);
        }
        assert_eq!(hosts.len(), HOSTS_MAX, "they rest");
        hosts.enter(at(31), HOST);
        assert_eq!(hosts.len(), 1);
        let ticket = hosts.begin(at(31), HOST, PROBE).expect("it works");
        hosts.ended(at(31), HOST, &ticket, fails());
        let probe = hosts.begin(at(61 + 3600), HOST, PROBE).expect("long ago");
        assert!(!probe.probes, "what was long ago does not count");
    }
}
