//! Caches between, asked at their endpoints: a real Varnish and a real nginx as docs/caches.md has them, found by EndpointSlices of our
//! stand-in of the API.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::caches::CacheEndpoints;
use kernel::id::WorkloadId;
use purge::caches::asking::{Answer, Answers, Endpoint, Question};
use purge::caches::demand::{Scope, demands};
use purge::caches::form::Form;
use purge::caches::{Cache, Method};
use purge::ports::{Caches, PortError};
use purge::testing::cache;
use sandbox::kubernetes::Kind;
use serde_json::json;
use support::tiers::{Nginx, Site, Varnish};

use crate::edge_look::{Peer, ok};
use crate::kubernetes::Bench;

const HOST: &str = "www.example.com";

/// A cluster with a Service of caches.
struct Inside {
    bench: Bench,
    caches: CacheEndpoints,
}

impl Inside {
    /// The Service `inner` has these pods.
    async fn with(pods: &[SocketAddr]) -> Self {
        let bench = Bench::start().await;
        bench
            .api
            .put(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "inner"},
                "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
            }))
            .unwrap();
        let caches = CacheEndpoints::new(Arc::new(bench.view())).unwrap().among_stand_ins();
        let inside = Self { bench, caches };
        pods.iter().enumerate().for_each(|(number, to)| inside.join(number, *to, true));
        inside
    }

    /// A pod, in a slice of its own: pods of one machine differ by their ports.
    fn join(&self, number: usize, to: SocketAddr, ready: bool) {
        self.bench.api.put(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "namespace": "shop", "name": format!("inner-{number}"), "labels": {"kubernetes.io/service-name": "inner"},
            },
            "ports": [{"name": "http", "port": to.port(), "protocol": "TCP"}],
            "endpoints": [{
                "addresses": [to.ip().to_string()], "conditions": {"ready": ready, "serving": ready},
                "targetRef": {"kind": "Pod", "namespace": "shop", "name": format!("inner-{number}"), "uid": format!("uid-{number}")},
            }],
        })).unwrap();
    }

    fn leave(&self, number: usize) {
        self.bench.api.delete(Kind::EndpointSlice, "shop", &format!("inner-{number}")).unwrap();
    }

    async fn ask(&self, cache: Cache, path: &str, cleared: BTreeSet<Endpoint>) -> Result<Answers, PortError> {
        let scope = Scope::of([HOST.parse().unwrap()], &[path.parse().unwrap()].into_iter().collect());
        let cache = Arc::new(cache);
        let demand = demands(std::slice::from_ref(&cache), &scope).pop().unwrap();
        let question =
            Question { number: 1, cache, requests: demand.requests, cleared, wait_max: Duration::from_secs(20) };
        self.caches.ask(&WorkloadId::deployment("shop", "web"), &question).await
    }

    /// What each pod has answered, by name.
    async fn answers(&self, cache: Cache, path: &str) -> Vec<(String, Answer)> {
        let answers = self.ask(cache, path, BTreeSet::new()).await.unwrap();
        answers.endpoints.into_iter().map(|(endpoint, answer)| (endpoint.name, answer)).collect()
    }
}

/// As docs/caches.md has it.
fn bans() -> Cache {
    Cache { headers: vec![("x-ban".to_owned(), Form::parse("{regex}").unwrap())], ..cache("inner") }
}

fn purges() -> Cache {
    Cache { method: Method::Purge, ..cache("inner") }
}

fn at_nginx() -> Cache {
    Cache { method: Method::Get, path: Form::parse("/purge{path}").unwrap(), ..cache("inner") }
}

fn site() -> Site {
    Site::start("1", &[("Cache-Control", "public, max-age=3600")])
}

/// The version that a cache answers for a page.
async fn version(to: SocketAddr, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let answer = client.get(format!("http://{to}{path}")).header("Host", HOST).send().await.unwrap();
    answer.text().await.unwrap()
}

async fn versions(caches: &[SocketAddr], path: &str) -> Vec<String> {
    let mut all = Vec::new();
    for to in caches {
        all.push(version(*to, path).await);
    }
    all
}

fn cleared(names: &[&str]) -> Vec<(String, Answer)> {
    names.iter().map(|name| ((*name).to_owned(), Answer::Cleared)).collect()
}

#[tokio::test]
async fn three_varnish_let_go_of_what_a_ban_names_and_of_nothing_else() {
    let site = site();
    let varnish = [(); 3].map(|()| Varnish::inner(site.address(), "127.0.0.1"));
    let pods: Vec<SocketAddr> = varnish.iter().map(Varnish::address).collect();
    let inside = Inside::with(&pods).await;
    let first = versions(&pods, "/shop/a.html?b=1").await;
    assert_eq!(versions(&pods, "/blog/a.html").await, first);
    site.deploy("2");
    assert_eq!(versions(&pods, "/shop/a.html?b=1").await, first, "they keep what they have");
    assert_eq!(inside.answers(bans(), "/shop/*").await, cleared(&["inner-0", "inner-1", "inner-2"]));
    let second = versions(&pods, "/shop/a.html?b=1").await;
    assert!(second.iter().all(|version| *version != first[0]), "{second:?}");
    assert_eq!(versions(&pods, "/blog/a.html").await, first, "no wider than asked");
    site.deploy("3");
    assert_eq!(inside.answers(bans(), "/blog/a.html").await, cleared(&["inner-0", "inner-1", "inner-2"]));
    assert_ne!(versions(&pods, "/blog/a.html").await, first);
    assert_eq!(versions(&pods, "/shop/a.html?b=1").await, second);
}

#[tokio::test]
async fn varnish_purges_one_page_and_one_that_is_not_allowed_to_says_so() {
    let site = site();
    let varnish = [Varnish::inner(site.address(), "127.0.0.1"), Varnish::inner(site.address(), "10.9.9.9")];
    let pods: Vec<SocketAddr> = varnish.iter().map(Varnish::address).collect();
    let inside = Inside::with(&pods).await;
    let (first, other) = (versions(&pods, "/a").await, versions(&pods, "/b").await);
    site.deploy("2");
    let refused = ("inner-1".to_owned(), Answer::Failed("answers 403 to PURGE".to_owned()));
    assert_eq!(inside.answers(purges(), "/a").await, [cleared(&["inner-0"]), vec![refused]].concat());
    assert_ne!(version(pods[0], "/a").await, first[0]);
    assert_eq!((version(pods[1], "/a").await, version(pods[0], "/b").await), (first[1].clone(), other[0].clone()));
}

#[tokio::test]
async fn nginx_purges_one_page_and_what_it_does_not_have_is_gone() {
    let site = site();
    let nginx = Nginx::inner(site.address());
    let inside = Inside::with(&[nginx.address()]).await;
    for page in ["/a", "/caf%C3%A9/x.html?b=1"] {
        let first = version(nginx.address(), page).await;
        let other = version(nginx.address(), "/other").await;
        site.deploy(&format!("after {page}").replace('/', "-"));
        assert_eq!(version(nginx.address(), page).await, first, "it keeps what it has");
        assert_eq!(inside.answers(at_nginx(), page).await, cleared(&["inner-0"]));
        assert_ne!(version(nginx.address(), page).await, first);
        assert_eq!(version(nginx.address(), "/other").await, other);
    }
    assert_eq!(inside.answers(at_nginx(), "/never-asked").await, cleared(&["inner-0"]), "404 is gone");
    let strict = Cache { gone: BTreeSet::new(), ..at_nginx() };
    let answer = Answer::Failed("answers 404 to GET".to_owned());
    assert_eq!(inside.answers(strict, "/never-asked").await, [("inner-0".to_owned(), answer)]);
}

// Faults: P5
#[tokio::test]
async fn one_that_does_not_answer_holds_up_no_other_and_is_named() {
    let good = Peer::start(|_| ok("", "")).await;
    let other = Peer::start(|_| ok("", "")).await;
    // Nobody listens there any more.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let inside = Inside::with(&[good.address, closed, other.address]).await;
    let [one, two, three] = inside.answers(bans(), "/*").await.try_into().unwrap();
    assert_eq!((one.1, three.1), (Answer::Cleared, Answer::Cleared));
    assert_eq!(two.0, "inner-1");
    assert!(matches!(&two.1, Answer::Failed(why) if why.starts_with("does not answer: ")), "{two:?}");
    let heads = good.heads();
    assert!(heads[0].starts_with("BAN /* HTTP/1.1\r\n"), "{heads:?}");
    for sent in ["host: www.example.com\r\n", "x-ban: ^/\r\n", "user-agent: allclear/"] {
        assert!(heads[0].contains(sent), "{heads:?}");
    }
    let names = heads[0].lines().skip(1).filter_map(|line| line.split_once(": ")).map(|(name, _)| name);
    let others: Vec<&str> =
        names.filter(|name| !["host", "x-ban", "user-agent", "accept", "content-length"].contains(name)).collect();
    assert_eq!(others, [""; 0], "nothing else is sent");
}

// Faults: P6
#[tokio::test]
async fn one_that_joins_is_asked_one_that_has_answered_is_not_and_one_that_left_is_not_there() {
    let peers =
        [Peer::start(|_| ok("", "")).await, Peer::start(|_| ok("", "")).await, Peer::start(|_| ok("", "")).await];
    let inside = Inside::with(&[peers[0].address, peers[1].address]).await;
    let first = inside.ask(bans(), "/*", BTreeSet::new()).await.unwrap();
    inside.leave(0);
    inside.join(2, peers[2].address, true);
    let cleared = first.endpoints.into_keys().collect();
    let second = inside.ask(bans(), "/*", cleared).await.unwrap();
    let second: Vec<_> = second.endpoints.into_iter().map(|(one, answer)| (one.name, answer)).collect();
    assert_eq!(second, [("inner-1".to_owned(), Answer::Before), ("inner-2".to_owned(), Answer::Cleared)]);
    assert_eq!(peers.each_ref().map(|peer| peer.heads().len()), [1, 1, 1]);
}

#[tokio::test]
async fn a_redirect_is_no_answer_and_is_not_followed() {
    let elsewhere = Peer::start(|_| ok("", "")).await;
    let to = elsewhere.address;
    let peer = Peer::start(move |_| crate::edge_look::redirect(&format!("http://{to}/"))).await;
    let inside = Inside::with(&[peer.address]).await;
    let answer = Answer::Failed("answers 302 to BAN".to_owned());
    assert_eq!(inside.answers(bans(), "/*").await, [("inner-0".to_owned(), answer)]);
    assert_eq!((peer.heads().len(), elsewhere.heads().len()), (1, 0));
}

#[tokio::test]
async fn what_is_missing_is_not_empty() {
    let peer = Peer::start(|_| ok("", "")).await;
    let inside = Inside::with(&[]).await;
    let why = async |cache: Cache| inside.ask(cache, "/*", BTreeSet::new()).await.unwrap_err().to_string();
    assert!(why(bans()).await.contains("the Service shop/inner has no EndpointSlices"), "{}", why(bans()).await);
    inside.join(0, peer.address, false);
    let answers = inside.ask(bans(), "/*", BTreeSet::new()).await.unwrap();
    assert_eq!((answers.endpoints.len(), answers.unready), (0, 1));
    let other = |name: &str| Cache { service: cache(name).service, ..bans() };
    assert!(why(other("outer")).await.contains("the Service shop/outer does not exist"));
    let port =
        Cache { service: purge::caches::Service { port: purge::caches::Port::Number(81), ..bans().service }, ..bans() };
    assert!(why(port).await.contains("no TCP port of this number or name"));
    inside.bench.refuse(403, 1, |request| request.path.ends_with("/endpointslices"));
    let said = why(bans()).await;
    assert!(said.contains("endpointslices"), "{said}");
    assert_eq!(peer.heads(), [""; 0]);
}

#[tokio::test]
async fn an_endpoint_that_is_said_to_be_on_this_machine_is_not_asked() {
    let peer = Peer::start(|_| ok("", "")).await;
    let inside = Inside::with(&[peer.address]).await;
    let inside = Inside { caches: CacheEndpoints::new(Arc::new(inside.bench.view())).unwrap(), ..inside };
    let why = "is not asked: its address 127.0.0.1 is an address of this machine itself";
    assert_eq!(inside.answers(bans(), "/*").await, [("inner-0".to_owned(), Answer::Failed(why.to_owned()))]);
    assert_eq!(peer.heads(), [""; 0]);
}
