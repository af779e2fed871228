//! The collector of traces: whether it takes spans, by a request without any.

use std::time::Duration;

use super::catalog::TRACES_COLLECTOR;
use super::report::Finding;
use crate::adapters::collector::{Collector, Refusal};
use crate::config::Traces;
use crate::telemetry::otlp::{self, Resource};

/// Longest wait for it.
const WITHIN: Duration = Duration::from_secs(10);

/// The collector, where one is configured.
pub async fn collector(traces: &Traces) -> Option<Finding> {
    let about = traces.endpoint.as_ref()?;
    let finding = match Collector::configured(traces) {
        Ok(None) => return None,
        Err(why) => TRACES_COLLECTOR.failed(why),
        Ok(Some(collector)) => match collector.send(otlp::body(&Resource::default(), &[]), WITHIN).await {
            Ok(_) => TRACES_COLLECTOR.good("takes spans"),
            Err(Refusal::Never(why)) => TRACES_COLLECTOR.failed(why).hint(
                "see whether traces.endpoint is its address for OTLP over HTTP, with JSON, and whether traces.headers are what it asks for",
            ),
            Err(Refusal::Later { why, .. }) => TRACES_COLLECTOR
                .failed(why)
                .hint("see whether the collector runs, and whether a NetworkPolicy lets us out"),
        },
    };
    Some(finding.of(about))
}
