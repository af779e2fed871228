//! A CDN of two tiers of real Varnish before a site of pods, purged by the invalidations of CloudFront's stand-in:
//!
//! ```text
//! visitor ──▶ edge (FRA56-P1) ──▶ shield (FRA50-C1) ──▶ site, which answers its version
//!               ▲                    ▲
//!               └── purges ──────────┴── CloudFrontStandIn: InProgress ─▶ Completed
//! ```
//!
//! Each tier carries out each invalidation after a lag of its own, so the order may be the wrong one, and may be left out. Ages, hits,
//! collapsed requests and what is served while it is fetched anew are Varnish's own. How long answers are kept is what the site says
//! in `Cache-Control`.
//!
//! It cannot prove what CloudFront does: above all whether an answer in flight is stored after a purge. Purges by tag do nothing here.

mod inner;
mod purges;
mod site;
mod varnish;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox::cloudfront::CloudFrontStandIn;

pub use inner::Nginx;
use purges::Purges;
pub use purges::{Lag, Tier};
pub use site::Site;
pub use varnish::{Place, Varnish};

/// What is waited for takes milliseconds, or as long as an age of a few seconds takes to come; two full cores make that ten times as long.
const UNTIL_MAX: Duration = Duration::from_secs(60);

/// The version that the site has at first.
pub const FIRST_VERSION: &str = "1";

/// How a CDN behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long an answer is kept, in seconds.
    pub ttl_secs: u32,
    /// For how much longer it may be given while it is fetched anew, in seconds: `stale-while-revalidate`.
    pub grace_secs: u32,
    /// Of the edge.
    pub edge_lag: Lag,
    /// Of the shield.
    pub shield_lag: Lag,
    /// Further headers of the site's answers.
    pub headers: Vec<(String, String)>,
}

/// The CDN and its site. Dropping it ends the programs that it runs.
#[derive(Debug)]
pub struct Tiers {
    purges: Purges,
    edge: Arc<Varnish>,
    shield: Arc<Varnish>,
    pub site: Site,
    client: reqwest::Client,
}

/// What a visitor was answered.
#[derive(Clone, Debug)]
pub struct Visit {
    /// When the whole answer was there.
    pub answered_at: Instant,
    /// The version that the answer is of.
    pub version: String,
    /// In seconds.
    pub age: Option<u64>,
    /// `Hit from cloudfront`, and the like.
    pub cached: String,
    pub headers: reqwest::header::HeaderMap,
}

impl Default for Options {
    /// An hour, no grace, and purges in the right order: the shield at once, the edge after it.
    fn default() -> Options {
        let (edge_lag, shield_lag) = (Lag::Of(Duration::from_millis(10)), Lag::Of(Duration::ZERO));
        Options { ttl_secs: 3_600, grace_secs: 0, edge_lag, shield_lag, headers: Vec::new() }
    }
}

impl Tiers {
    /// Starts them, empty, for a distribution of `cloudfront`, before a site of [`FIRST_VERSION`].
    pub fn start(cloudfront: &Arc<CloudFrontStandIn>, distribution: &str, options: &Options) -> Tiers {
        let kept = match options.grace_secs {
            0 => format!("public, max-age={}", options.ttl_secs),
            grace => format!("public, max-age={}, stale-while-revalidate={grace}", options.ttl_secs),
        };
        let named = options.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<(&str, &str)> = std::iter::once(("Cache-Control", kept.as_str())).chain(named).collect();
        let site = Site::start(FIRST_VERSION, &headers);
        let shield = Place { pop: "FRA50-C1", next: site.address(), is_outermost: false };
        let shield = Arc::new(Varnish::start(shield));
        let edge = Place { pop: "FRA56-P1", next: shield.address(), is_outermost: true };
        let edge = Arc::new(Varnish::start(edge));
        let both = [Arc::clone(&edge), Arc::clone(&shield)];
        let lags = [options.edge_lag, options.shield_lag];
        let purges = Purges::start(Arc::clone(cloudfront), distribution, both, lags);
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(UNTIL_MAX);
        Tiers { purges, edge, shield, site, client: client.build().expect("a client") }
    }

    /// Where visitors come to: the edge speaks HTTP there, for every host.
    pub fn address(&self) -> SocketAddr {
        self.edge.address()
    }

    /// One of the tiers by itself.
    pub fn tier(&self, tier: Tier) -> &Varnish {
        match tier {
            Tier::Edge => &self.edge,
            Tier::Shield => &self.shield,
        }
    }

    /// From now on a tier carries out invalidations so; those that it has not carried out yet, too.
    pub fn set_lag(&self, tier: Tier, lag: Lag) {
        self.purges.set_lag(tier, lag);
    }

    /// Waits until a tier is done with an invalidation.
    pub async fn until_purged(&self, tier: Tier, id: &str) {
        until("a tier is purged", async || self.purges.is_done(tier, id)).await;
    }

    /// A visitor of `www.example.com` asks the edge, on a new connection, as browsers do.
    pub async fn visit(&self, path: &str) -> Visit {
        self.visit_at(self.edge.address(), path).await
    }

    /// A request to one of the tiers by itself. What it has stored thereby is what the edge's own request would.
    pub async fn visit_at(&self, address: SocketAddr, path: &str) -> Visit {
        let request = self.client.get(format!("http://{address}{path}"));
        let request = request.header("host", "www.example.com").header("accept-encoding", "gzip, deflate, br, zstd");
        let mut answer = request.send().await.expect("an answer");
        let headers = std::mem::take(answer.headers_mut());
        answer.bytes().await.expect("the whole answer");
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let version = text("x-version").unwrap_or_else(|| panic!("no version in {headers:?}"));
        let age = text("age").and_then(|age| age.parse().ok());
        let cached = text("x-cache").unwrap_or_default();
        Visit { answered_at: Instant::now(), version, age, cached, headers }
    }
}

impl Visit {
    /// Whether its age says that it was stored before `then`. Ages are whole seconds, rounded down by each tier, so of what was
    /// stored up to two seconds before `then` this need not be so.
    pub fn was_stored_before(&self, then: Instant) -> bool {
        self.age.is_some_and(|age| self.answered_at < then + Duration::from_secs(age))
    }
}

/// Waits for what comes by itself; a minute at most.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + UNTIL_MAX;
    while !is_so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
