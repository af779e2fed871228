//! What the program says about itself: log lines and metrics, from one place.
//!
//! Every transition is one line and one count, both made by [`Metrics::notice`] from the same notice, so they cannot
//! disagree. Not for telling users; that is `notices::notice` and its ways out.

mod boards;
mod caches;
pub mod chronicle;
mod doors;
mod edge;
mod exposition;
mod figures;
mod labels;
mod lines;
mod metrics;
mod named;
pub mod otlp;
pub mod passages;
mod process;
mod promoting;
mod running;
mod standing;
pub mod traces;

pub use edge::Stopwatch;
pub use exposition::Form;
pub use lines::lines;
pub use metrics::Metrics;
pub use promoting::Share;
pub use standing::{AtRest, InFlight};

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, ParseError, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{LogFormat, cap};
use kernel::id::{InvalidationId, WorkloadId};
use purge::purges::purge::Order;
use purge::rollouts::rollout::{Ended, Voted};

/// Logs a vote, once it is in the ledger. `allclear audit` reads it: a purge that is seen before all votes of its rollout came too early.
pub fn log_vote(workload: &WorkloadId, voted: &Voted) {
    tracing::info!(
        workload = %workload.display_name(),
        seq = voted.seq.0,
        rollout = %voted.rollout,
        member = %voted.member,
        members = %voted.members(),
        "voted for the rollout"
    );
}

/// Logs that a rollout of this cluster has ended, with the write that says so. `allclear audit` reads it: what was complete ends.
pub fn log_ended(workload: &WorkloadId, ended: &Ended) {
    tracing::info!(
        workload = %workload.display_name(),
        seq = ended.seq.0,
        change = %ended.change,
        outcome = ended.outcome,
        "the rollout has ended"
    );
}

/// Logs an invalidation that CloudFront has accepted, also a further one, which no notice names.
pub fn log_created(order: &Order, invalidation: &InvalidationId) {
    tracing::info!(
        workload = %order.subject.display_name(),
        distribution = %order.distribution,
        invalidation = %invalidation,
        reference = %order.reference,
        "CloudFront accepted an invalidation"
    );
}

/// Why nothing is logged.
#[derive(Debug, thiserror::Error)]
pub enum NotLogging {
    #[error("log.level is not a log filter")]
    Filter(#[from] ParseError),
    #[error("cannot start logging: {0}")]
    Started(#[from] TryInitError),
}

/// Starts logging to standard error. `filter` is a level in any case, or a tracing filter.
///
/// # Errors
/// If the filter cannot be read, or the process logs already.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<(), NotLogging> {
    let filter = EnvFilter::try_new(ours(filter))?;
    let lines = lines(format, std::io::stderr().is_terminal(), std::io::stderr);
    Ok(tracing_subscriber::registry().with(filter).with(capped()).with(lines).try_init()?)
}

/// Leaves out what libraries may not say, whatever the filter asks for: they would show credentials ([`cap`]).
fn capped<S: tracing::Subscriber>() -> impl Layer<S> {
    filter_fn(|line| *line.level() <= cap(line.target())).with_max_level_hint(LevelFilter::TRACE)
}

/// The filter in full. A level alone is about this program: libraries say what they met with, and our adapters what it means,
/// so lines of libraries are off unless the filter names them (`debug,kube=debug`).
fn ours(filter: &str) -> String {
    let part = |part: &str| match part.parse::<LevelFilter>() {
        Ok(level) => format!("allclear={level}"),
        Err(_) => part.to_owned(),
    };
    let parts = filter.split(',').map(str::trim).filter(|text| !text.is_empty()).map(part);
    std::iter::once("off".to_owned()).chain(parts).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_about_our_own_lines_and_libraries_speak_where_they_are_named() {
        assert_eq!(ours("DEBUG"), "off,allclear=debug");
        assert_eq!(ours("info, kube=warn"), "off,allclear=info,kube=warn");
        assert_eq!(ours("allclear::adapters=trace"), "off,allclear::adapters=trace");
        assert_eq!(ours(""), "off");
    }
}
