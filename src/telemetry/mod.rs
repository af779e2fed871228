//! What the program says about itself: log lines and metrics, from one place.
//!
//! Every transition is one INFO line and one count, both made by [`Metrics::notice`] from the same notice, so they cannot
//! disagree. Not for telling users; that is `domain::notice` and its ways out.

mod metrics;

pub use metrics::Metrics;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Starts logging to standard error. `filter` is a level in any case, or a tracing filter.
///
/// # Errors
/// If the filter cannot be read, in words.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("{filter:?} is not a log filter: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = match format {
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
    started.map_err(|error| format!("cannot start logging: {error}"))
}
