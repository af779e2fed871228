//! What Pipelines need from the outside.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::pipeline::proposal::{Order, Proposed, RequestState};
use crate::ports::PortError;

/// Where pull requests live: a git host and its forge.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Makes the promotion's pull request, or finds it. Repeating an order, whole or broken off, makes no second one.
    ///
    /// # Errors
    /// In words; lasting only where a person must change something.
    async fn propose(&self, order: &Order) -> Result<Proposed, PortError>;

    /// How the promotion's request stands.
    ///
    /// # Errors
    /// In words.
    async fn look(&self, order: &Order, number: u64) -> Result<RequestState, PortError>;

    /// Closes the promotion's request, saying why, and removes its branch where it is still ours. Closing what is closed is
    /// nothing. Without a number, the request may exist: it is looked for.
    ///
    /// # Errors
    /// In words.
    async fn withdraw(&self, order: &Order, number: Option<u64>, why: &str) -> Result<(), PortError>;
}

/// Secrets of this cluster, read by name when they are used and kept by nobody.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The content of a Secret.
    ///
    /// # Errors
    /// In words; lasting where it is not there, denied where we have no right to it.
    async fn read(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, Vec<u8>>, PortError>;
}
