//! What is remembered of reports to a forge. It stands in the status, so comments of its fields are what `kubectl explain` says.
//!
//! Not for what is reported; that is `report`.

use serde::{Deserialize, Serialize};

use crate::form::{At, Count, In};
use kernel::id::CommitId;

/// Changes of a plan that are listed: as many as a person reads.
pub const LISTED_MAX: usize = 40;

/// The report to the forge, and what it may say of the newest plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// The addresses of what the newest plan would change, where they are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Listed>,
}

/// The last report to the forge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// The commit.
    pub revision: CommitId,
    /// The hash of what was said of it.
    pub hash: String,
    /// How many open requests had that commit at their head, and have the comment.
    #[serde(default, with = "In::<Count<u32>>")]
    pub requests: u32,
    /// When it was said first.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
}

/// The changes of a plan by the addresses of resources, as many as fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listed {
    /// The Job that made the plan.
    #[serde(default)]
    pub job: String,
    /// What would be done, and to which address.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(max = LISTED_MAX)))]
    pub listed: Vec<Change>,
    /// How many more there are.
    #[serde(default, with = "In::<Count<u32>>")]
    pub more: u32,
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// What would be done: create, update, delete, replace, forget, import or move.
    pub action: String,
    /// The address of the resource. It may hold a key of for_each.
    pub address: String,
}
