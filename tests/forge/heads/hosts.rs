//! Hosts that fail rest, and take no places from others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use forge::{Authorities, Http, HttpError};
use futures_util::future::join_all;
use objects::ports::repo::Heads;
use objects::repo::spec::Wanted;
use tokio::sync::Semaphore;

use super::{Desk, branch, lasting};

const COMMIT: &str = "1111111111111111111111111111111111111111";

/// Hosts that answer as they are told to; a closed gate keeps the requests to slow ones waiting.
struct Hosts {
    manners: Mutex<BTreeMap<String, Manner>>,
    open: AtomicUsize,
    open_max: AtomicUsize,
    sent: Mutex<BTreeMap<String, usize>>,
    gate: Semaphore,
    arrived: Semaphore,
}

#[derive(Clone, Copy)]
enum Manner {
    Refuses,
    Distrusted,
    Says(u16, Option<&'static str>),
    Waits,
}

impl Hosts {
    fn new(manners: &[(&str, Manner)]) -> Arc<Self> {
        Arc::new(Self {
            manners: Mutex::new(manners.iter().map(|(host, manner)| ((*host).to_owned(), *manner)).collect()),
            open: AtomicUsize::new(0),
            open_max: AtomicUsize::new(0),
            sent: Mutex::default(),
            gate: Semaphore::new(0),
            arrived: Semaphore::new(0),
        })
    }

    fn mend(&self, host: &str) {
        self.manners.lock().expect("lock").remove(host);
    }

    fn sent(&self, host: &str) -> usize {
        self.sent.lock().expect("lock").get(host).copied().unwrap_or_default()
    }

    /// Waits until so many requests have come that wait.
    async fn arrivals(&self, count: u32) {
        self.arrived.acquire_many(count).await.expect("open").forget();
    }
}

#[async_trait]
impl Http for Hosts {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        _: Option<&Authorities>,
        _: usize,
    ) -> Result<http::Response<Bytes>, HttpError> {
        let host = request.uri().host().expect("a host").to_owned();
        *self.sent.lock().expect("lock").entry(host.clone()).or_default() += 1;
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.open_max.fetch_max(open, Ordering::SeqCst);
        let manner = self.manners.lock().expect("lock").get(&host).copied();
        if let Some(Manner::Waits) = manner {
            self.arrived.add_permits(1);
            self.gate.acquire().await.expect("open").forget();
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
        let (status, after) = match manner {
            Some(Manner::Refuses) => {
                return Err(HttpError::Unreachable("no connection: connection refused".to_owned()));
            }
            Some(Manner::Distrusted) => return Err(HttpError::Untrusted("TLS failed: unknown issuer".to_owned())),
            Some(Manner::Says(status, after)) => (status, after),
            Some(Manner::Waits) | None => (200, None),
        };
        let mut answer = http::Response::builder().status(status);
        answer = answer.header("content-type", "application/x-git-upload-pack-advertisement");
        if let Some(after) = after {
            answer = answer.header("retry-after", after);
        }
        let lines = [format!("{COMMIT} HEAD\0symref=HEAD:refs/heads/main\n"), format!("{COMMIT} refs/heads/main\n")];
        let body: String = lines.iter().map(|line| format!("{:04x}{line}", line.len() + 4)).collect();
        Ok(answer.body(Bytes::from(body + "0000")).expect("an answer"))
    }
}

fn url(host: &str, number: usize) -> String {
    format!("https://{host}/team/repo-{number}.git")
}

// Faults: RF7
#[tokio::test]
async fn three_hundred_repos_of_a_dead_host_cost_a_few_requests_and_others_are_looked_at() {
    let hosts = Hosts::new(&[("dead.example.com", Manner::Refuses)]);
    let desk = Desk::new(hosts.clone());
    let urls: Vec<String> =
        (0..300).flat_map(|number| [url("dead.example.com", number), url("live.example.com", number)]).collect();
    let looks = join_all(urls.iter().map(|url| desk.look(url, Wanted::Head))).await;
    let (dead, live): (Vec<_>, Vec<_>) = looks.into_iter().zip(&urls).partition(|(_, url)| url.contains("dead"));
    assert!(live.iter().all(|(look, _)| look.as_ref().is_ok_and(|found| found.revision.as_str() == COMMIT)));
    for (look, _) in dead {
        let unresolved = look.expect_err("it is dead");
        assert!(unresolved.why.contains("connection refused"), "{}", unresolved.why);
        assert_eq!((unresolved.lasting, unresolved.rest.as_secs()), (false, 30));
    }
    assert!((1..=3).contains(&hosts.sent("dead.example.com")), "{}", hosts.sent("dead.example.com"));
    let rests = |seconds| {
        let why = "no connection: connection refused";
        [format!("git host dead.example.com is paused for {seconds} s, then asked again: {why}")]
    };
    assert_eq!(desk.resting(), rests(30));

    let sent = hosts.sent("dead.example.com");
    desk.clock.forward(29);
    let resting = desk.look(&urls[0], Wanted::Head).await.expect_err("it rests");
    assert_eq!((resting.rest.as_secs(), hosts.sent("dead.example.com")), (1, sent));
    assert!(resting.why.starts_with("dead.example.com is left alone for a while: "), "{}", resting.why);
    desk.clock.forward(1);
    let looks = urls.iter().filter(|url| url.contains("dead")).map(|url| desk.look(url, Wanted::Head));
    let said: BTreeSet<String> =
        join_all(looks).await.into_iter().map(|look| look.expect_err("it is dead").why).collect();
    assert_eq!(said, BTreeSet::from([resting.why]), "whoever asked says the same, so no status is written anew");
    assert!(hosts.sent("dead.example.com") <= sent + 3);
    assert_eq!(desk.resting(), rests(60), "those that asked together are one failure");
    hosts.mend("dead.example.com");
    desk.clock.forward(60);
    assert!(desk.look(&urls[0], Wanted::Head).await.is_ok());
    assert!(join_all(urls.iter().map(|url| desk.look(url, Wanted::Head))).await.iter().all(Result::is_ok));
    assert_eq!(desk.resting(), [""; 0]);
}

// Faults: RF7
#[tokio::test]
async fn repositories_that_hang_leave_places_to_others_at_their_host_and_elsewhere() {
    let slow: Vec<String> = (0..3).map(|number| format!("slow-{number}.example.com")).collect();
    let manners: Vec<(&str, Manner)> = slow.iter().map(|host| (host.as_str(), Manner::Waits)).collect();
    let hosts = Hosts::new(&manners);
    let desk = Desk::new(hosts.clone());
    let waiting: Vec<String> = slow.iter().flat_map(|host| (0..20).map(move |number| url(host, number))).collect();
    let looks = join_all(waiting.iter().map(|url| desk.look(url, Wanted::Head)));
    let others = async {
        hosts.arrivals(9).await;
        for number in 0..20 {
            let host = format!("fast-{number}.example.com");
            assert!(desk.look(&url(&host, 0), branch("main")).await.is_ok(), "not behind those that wait");
        }
        let sent: Vec<usize> = slow.iter().map(|host| hosts.sent(host)).collect();
        assert_eq!(sent, [3, 3, 3]);
        slow.iter().for_each(|host| hosts.mend(host));
        assert!(desk.look_from("shop", &url(&slow[0], 0)).await.is_ok(), "a place of that host is left to others");
        hosts.gate.add_permits(1000);
    };
    let (looks, ()) = tokio::join!(looks, others);
    assert!(looks.iter().all(Result::is_ok));
    assert!(hosts.open_max.load(Ordering::SeqCst) <= 16);
}

// Faults: RF7
#[tokio::test]
async fn a_repository_that_fails_rests_alone_and_all_others_of_its_host_are_looked_at() {
    let hosts = Hosts::new(&[("git.example.com", Manner::Says(500, None))]);
    let desk = Desk::new(hosts.clone());
    let bad = url("git.example.com", 0);
    let fails = desk.look_from("shop", &bad).await.expect_err("500");
    assert_eq!((fails.lasting, fails.rest.as_secs()), (false, 2), "{}", fails.why);
    hosts.mend("git.example.com");
    let rests = desk.look_from("shop", &bad).await.expect_err("it rests");
    assert_eq!(rests.why, "the repository is left alone for a while: it answers 500");
    for (namespace, number) in [("shop", 1), ("blog", 0), ("blog", 1)] {
        assert!(desk.look_from(namespace, &url("git.example.com", number)).await.is_ok(), "{namespace} {number}");
    }
    assert_eq!(desk.resting(), [""; 0]);
    desk.clock.forward(2);
    assert!(desk.look_from("shop", &bad).await.is_ok());
}

#[tokio::test]
async fn a_look_begins_when_it_has_its_place_and_not_at_all_at_a_host_that_rests() {
    let hosts = Hosts::new(&[("slow.example.com", Manner::Waits), ("dead.example.com", Manner::Refuses)]);
    let desk = Desk::new(hosts.clone());
    let begun = AtomicUsize::new(0);
    let begins = || _ = begun.fetch_add(1, Ordering::SeqCst);
    let spec = super::spec(&url("slow.example.com", 0), Wanted::Head, None);
    let repo = super::repo();
    let looks = join_all((0..6).map(|_| desk.heads.resolve(&repo, &spec, &begins)));
    let others = async {
        hosts.arrivals(3).await;
        assert_eq!(begun.load(Ordering::SeqCst), 3, "the others wait for their places");
        hosts.gate.add_permits(1000);
    };
    let (looks, ()) = tokio::join!(looks, others);
    assert!(looks.iter().all(Result::is_ok));
    assert_eq!(begun.load(Ordering::SeqCst), 6);
    let spec = super::spec(&url("dead.example.com", 0), Wanted::Head, None);
    for _ in 0..3 {
        assert!(desk.heads.resolve(&repo, &spec, &begins).await.is_err());
    }
    assert_eq!(begun.load(Ordering::SeqCst), 7, "a host that rests is not asked");
}

// Faults: RF7
#[tokio::test]
async fn whom_a_host_asks_for_patience_leaves_it_alone_and_others_go_on() {
    for (status, after, rest, rests_too) in [
        (429, Some("100"), 101, true),
        (429, Some("99999999"), 600, true),
        (429, None, 60, true),
        (503, Some("7"), 8, false),
        (503, Some("99999999"), 600, false),
        (503, None, 2, false),
        (502, Some("100"), 101, false),
    ] {
        let hosts = Hosts::new(&[("busy.example.com", Manner::Says(status, after))]);
        let desk = Desk::new(hosts.clone());
        let look = desk.look(&url("busy.example.com", 0), Wanted::Head).await.expect_err("it is busy");
        assert_eq!((look.lasting, look.rest.as_secs()), (false, rest), "{status} {after:?}: {}", look.why);
        hosts.mend("busy.example.com");
        let sibling = desk.look(&url("busy.example.com", 1), Wanted::Head).await;
        assert_eq!(sibling.is_err(), rests_too, "{status} {after:?}");
        let rests = "busy.example.com, without credentials from platform, is left alone for a while: it answers 429";
        assert!(sibling.is_ok() || sibling.is_err_and(|none| none.why == rests));
        assert!(desk.look_from("shop", &url("busy.example.com", 0)).await.is_ok(), "{status} {after:?}");
    }
}

#[tokio::test]
async fn what_one_repository_is_refused_is_no_reason_to_leave_its_host_alone() {
    for manner in [Manner::Says(401, None), Manner::Says(403, None), Manner::Says(404, None), Manner::Says(301, None)] {
        let desk = Desk::new(Hosts::new(&[("git.example.com", manner)]));
        lasting(desk.look(&url("git.example.com", 0), Wanted::Head).await);
        assert_eq!(desk.resting(), [""; 0]);
    }
    let desk = Desk::new(Hosts::new(&[("git.example.com", Manner::Distrusted)]));
    let distrusted = desk.look(&url("git.example.com", 0), Wanted::Head).await.expect_err("no trust");
    assert!(distrusted.why.contains("unknown issuer") && distrusted.rest.is_zero(), "{}", distrusted.why);
    assert_eq!(desk.resting(), [""; 0], "others may trust what it does not");
}
