//! Names of things around a Pipeline. A promotion is never named by its revision: going back to an old one is a new promotion.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::ObjectId;

/// What an app or a git ref says it is: one text, compared for equality, never ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an environment; unique in its Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Environment(pub String);

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One Pipeline of this cluster. Written `pipeline/shop/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PipelineId {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PipelineId {
    /// The Pipeline of this name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl ObjectId for PipelineId {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn display_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipeline/{}/{}", self.namespace, self.name)
    }
}

/// How many promotions an environment has had: 1 for the first. It never decreases under one UID (PL-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PromotionSeq(pub u64);

impl fmt::Display for PromotionSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PromotionSeq {
    /// The next one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
