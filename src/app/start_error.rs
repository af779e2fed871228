//! Why the program does not start, and how patiently it asks before that.

use crate::adapters::http;
use crate::adapters::kubernetes::ConnectError;
use crate::http::ListenError;
use kernel::retry;
use purge::ports::{PortError, Retry};

/// Why the program did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for something this version cannot do, or leaves out something it needs.
    #[error("{0}")]
    Unusable(String),
    /// There is no cluster to run in.
    #[error(transparent)]
    Cluster(#[from] ConnectError),
    /// Something outside did not answer as it must before anything can begin.
    #[error(transparent)]
    Outside(#[from] PortError),
    /// The outbound HTTP client cannot be made.
    #[error("failed to prepare webhooks: {0}")]
    Webhooks(http::Error),
    /// The way to the edge cannot be made.
    #[error("failed to prepare looks at the edge: {0}")]
    Edge(http::Error),
    /// The way to the collector of traces cannot be made.
    #[error("failed to prepare traces: {0}")]
    Traces(http::Error),
    /// An address for probes or the status page cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Asks the API server until it answers or a person has to change something: that it is away for a moment is no reason to
/// end. `wanted` is what it is asked for.
pub(super) async fn ask<T, F>(wanted: &'static str, question: impl Fn() -> F) -> Result<T, PortError>
where
    F: Future<Output = Result<T, PortError>>,
{
    let mut attempt = 0;
    loop {
        match question().await {
            Err(error) if error.retry != Retry::Never => {
                attempt += 1;
                tracing::warn!(%error, wanted, "the API server did not answer a question of the start; trying again");
                tokio::time::sleep(retry::SERVICE.delay(attempt, wanted)).await;
            }
            answer => return answer,
        }
    }
}
