//! A stand-in for what the visitors of one site reach: CloudFront's cache in front of the site's pods.
//!
//! It keeps what it has fetched until an invalidation of its distribution is complete at the stand-in of CloudFront's API, and says of each
//! answer how old it is, as CloudFront does. One place, one kind of page; paths do not matter. Not a proxy: what the pods answer is a word.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use super::cloudfront::{CloudFrontStandIn, Status};
use super::http::{Body, Reply, Request, StandIn};

/// The header by which a page says of which version it is.
pub const VERSION: &str = "x-version";

/// The stand-in. Give it to [`super::http::Server::start`] and keep an `Arc` of it for steering.
pub struct EdgeStandIn {
    cloudfront: Arc<CloudFrontStandIn>,
    distribution: String,
    state: Mutex<State>,
}

struct State {
    /// What the pods answer now.
    version: String,
    /// What a slow answer holds that is stored after the next purge, in place of what the pods answer.
    late: Option<String>,
    cached: Option<Cached>,
    /// Complete invalidations when it last looked.
    purges: usize,
    /// Requests so far.
    asked: usize,
}

struct Cached {
    version: String,
    at: Instant,
}

impl EdgeStandIn {
    /// The edge of a distribution, with nothing cached, in front of pods of this version.
    pub fn new(cloudfront: Arc<CloudFrontStandIn>, distribution: &str, version: &str) -> EdgeStandIn {
        let state = State { version: version.to_owned(), late: None, cached: None, purges: 0, asked: 0 };
        EdgeStandIn { cloudfront, distribution: distribution.to_owned(), state: Mutex::new(state) }
    }

    /// The pods answer this version from now on.
    pub fn serve(&self, version: &str) {
        self.lock().version = version.to_owned();
    }

    /// After the next purge, what is stored first is a slow answer of an old pod: of this version.
    pub fn delay(&self, version: &str) {
        self.lock().late = Some(version.to_owned());
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.lock().asked
    }

    fn complete(&self) -> usize {
        let invalidations = self.cloudfront.invalidations();
        let is_its = |status: Status, of: &str| status == Status::Completed && of == self.distribution;
        invalidations.iter().filter(|made| is_its(made.status, &made.distribution)).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StandIn for EdgeStandIn {
    fn answer(&self, _: &Request) -> Reply {
        let purges = self.complete();
        let mut state = self.lock();
        state.asked += 1;
        if purges > std::mem::replace(&mut state.purges, purges) {
            let late = state.late.take();
            state.cached = late.map(|version| Cached { version, at: Instant::now() });
        }
        let is_hit = state.cached.is_some();
        let (asked, version) = (state.asked, state.version.clone());
        let cached = state.cached.get_or_insert_with(|| Cached { version, at: Instant::now() });
        let mut headers = vec![
            ("content-type", "text/html".to_owned()),
            ("via", "1.1 0123456789abcdef.cloudfront.net (CloudFront)".to_owned()),
            ("x-amz-cf-id", format!("stand-in-{asked}")),
            ("x-amz-cf-pop", "FRA56-P1".to_owned()),
            ("x-cache", if is_hit { "Hit from cloudfront" } else { "Miss from cloudfront" }.to_owned()),
        ];
        headers.push((VERSION, cached.version.clone()));
        if is_hit {
            headers.push(("age", cached.at.elapsed().as_secs().to_string()));
        }
        let page = format!("<h1>version {}</h1>\n", cached.version);
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Reply { status: 200, headers, body: Body::Full(Bytes::from(page)) }
    }
}
