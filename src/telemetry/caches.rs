//! The metrics of caches between: what their endpoints have answered.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use purge::caches::asking::{Answer, Answers};

/// A cache and what came of one of its endpoints. There are as many as are configured, 16 at most.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCache {
    cache: String,
    outcome: &'static str,
}

/// What was asked of caches between, and what came of it.
#[derive(Default)]
pub struct Caches {
    endpoints: Family<ByCache, Counter>,
}

impl Caches {
    pub(super) fn register(&self, registry: &mut Registry) {
        let words = "Endpoints of caches between that were asked to let go, by cache and outcome";
        registry.register("cache_endpoints_asked", words, self.endpoints.clone());
    }

    /// A cache was asked; without answers, it was not known which endpoints it has.
    pub fn asked(&self, cache: &str, answers: Option<&Answers>) {
        let Some(answers) = answers else { return self.count(cache, "unknown") };
        for answer in answers.endpoints.values() {
            match answer {
                Answer::Before => {}
                Answer::Cleared => self.count(cache, "cleared"),
                Answer::Failed(_) => self.count(cache, "failed"),
            }
        }
    }

    fn count(&self, cache: &str, outcome: &'static str) {
        self.endpoints.get_or_create(&ByCache { cache: cache.to_owned(), outcome }).inc();
    }
}
