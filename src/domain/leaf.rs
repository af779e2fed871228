//! One cluster that is read: whose targets are in it, which collections are watched for them, and what is known of each.

use crate::app::{Look, TargetKey};
use crate::ports::PortError;

/// What one watch is of: the objects of a kind, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collection {
    /// The group and version, as in a manifest: `apps/v1`.
    pub api_version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// The namespace; `None` is all of them.
    pub namespace: Option<String>,
}

/// What a watch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A new listing begins.
    Restarted,
    /// What an object says to each target that names it; or why it cannot be read, in words.
    Seen(Vec<(TargetKey, Result<Look, String>)>),
    /// An object is gone.
    Gone {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The listing is complete; also said when a watch that was in trouble goes on without a new one.
    Synced,
    /// It failed and is being started again.
    Trouble(PortError),
}
