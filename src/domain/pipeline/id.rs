//! Names of things around a Pipeline. A promotion is never named by its revision: going back to an old one is a new promotion.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ObjectId, digest};
use crate::pipeline::status::Question;

/// What an app or a git ref says it is: one text, compared for equality, never ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an environment; unique in its Pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// Reads what [`fmt::Display`] writes; `None` for everything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.strip_prefix("pipeline/")?.split_once('/')?;
        let is_part = |part: &str| !part.is_empty() && !part.contains('/');
        (is_part(namespace) && is_part(name)).then(|| Self::new(namespace, name))
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

/// The name of a promotion: `H(UID, environment, seq)`.
pub fn promotion_id(uid: &str, environment: &Environment, seq: PromotionSeq) -> String {
    digest("promotion", [uid, environment.0.as_str(), seq.to_string().as_str()])
}

/// Hexadecimal digits of a ticket: enough that nobody guesses one, and that a person can copy it.
const TICKET_DIGITS: usize = 12;

/// What an answer has to name, so that it counts for one question about one promotion and for no other (PL-5).
pub fn ticket(
    uid: &str,
    environment: &Environment,
    seq: PromotionSeq,
    revision: &Revision,
    question: Question,
) -> String {
    let seq = seq.to_string();
    let parts = [uid, environment.0.as_str(), seq.as_str(), revision.0.as_str(), question.name()];
    digest("ticket", parts).chars().take(TICKET_DIGITS).collect()
}
