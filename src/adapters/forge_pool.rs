//! A [`Forge`] off the thread of those who call it: packs, trees and YAML take milliseconds to seconds, and an actor's thread has
//! none of them to spare.
//!
//! Not for whose turn it is at a host; that is the forge's own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::pipeline::proposal::{Order, Proposed, RequestState};
use domain::ports::PortError;
use domain::ports::pipeline::{Forge, Secrets};
use forge::propose::Forges;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::forge_http::ForgeHttp;

/// Calls at the same time. Each holds a thread and the trees of its repository.
const CALLS_MAX: usize = 2;

/// Longest wait for others; a call of its own is bounded by the forge.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A forge whose calls are made on threads of the blocking pool, two at a time.
pub struct Pooled {
    forge: Arc<dyn Forge>,
    places: Arc<Semaphore>,
}

impl Pooled {
    /// The same forge, elsewhere.
    pub fn new(forge: Arc<dyn Forge>) -> Self {
        Self { forge, places: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// All git hosts and forges, by this way out and with these Secrets.
    pub fn forges(http: Arc<ForgeHttp>, secrets: Arc<dyn Secrets>) -> Self {
        Self::new(Arc::new(Forges::new(http, secrets)))
    }

    async fn run<T, F>(
        &self,
        order: &Order,
        call: impl FnOnce(Arc<dyn Forge>, Order) -> F + Send,
    ) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, PortError>> + Send + 'static,
    {
        let failed = |why: String| {
            let attempted =
                format!("failed to promote {} into {} by a pull request", order.pipeline, order.environment);
            PortError::passing(attempted, why)
        };
        let place = tokio::time::timeout(WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| failed(format!("others were at it for {} s", WAIT_MAX.as_secs())))?;
        let place = place.map_err(|_| failed("it is over".to_owned()))?;
        let (call, runtime) = (call(Arc::clone(&self.forge), order.clone()), Handle::current());
        let work = tokio::task::spawn_blocking(move || {
            // Until the work ends, even if nobody waits for it any more.
            let _place = place;
            runtime.block_on(call)
        });
        work.await.unwrap_or_else(|_| Err(failed("the work broke off; the log says where".to_owned())))
    }
}

#[async_trait]
impl Forge for Pooled {
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError> {
        self.run(order, |forge, order| async move { forge.propose(&order).await }).await
    }

    async fn look(&self, order: &Order, number: u64) -> Result<RequestState, PortError> {
        self.run(order, move |forge, order| async move { forge.look(&order, number).await }).await
    }

    async fn withdraw(&self, order: &Order, number: Option<u64>, why: &str) -> Result<(), PortError> {
        let why = why.to_owned();
        self.run(order, move |forge, order| async move { forge.withdraw(&order, number, &why).await }).await
    }
}
