//! What the audit says: a verdict for each promise, with its evidence, and the story of each change.

use std::fmt;

use serde::Serialize;

use crate::story::Change;

/// The promises of `docs/audit.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Promise {
    /// One rollout of the group causes one invalidation for each distribution, and a further one only on evidence.
    Once,
    /// Nothing is purged before every member is complete.
    Complete,
    /// No purge and no webhook is lost.
    Kept,
    /// One that is broken stops no other.
    Apart,
    /// No rollout ends in two ways.
    Told,
    /// Nothing secret is shown.
    Secret,
}

impl Promise {
    pub const ALL: [Self; 6] = [Self::Once, Self::Complete, Self::Kept, Self::Apart, Self::Told, Self::Secret];

    pub const fn words(self) -> &'static str {
        match self {
            Self::Once => "each rollout is purged once",
            Self::Complete => "nothing is purged before every member is complete",
            Self::Kept => "no purge and no webhook is lost",
            Self::Apart => "what is broken stops nothing else",
            Self::Told => "each rollout ends in one way",
            Self::Secret => "no secret is shown",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Held,
    CannotBeTold,
    Broken,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Held => "held",
            Self::CannotBeTold => "cannot be told",
            Self::Broken => "broken",
        })
    }
}

/// One line of a log, or one object, and what it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The member's name and the line's number, or another witness.
    pub place: String,
    pub words: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub promise: Promise,
    pub verdict: Verdict,
    /// What was looked at, in one sentence.
    pub words: String,
    /// What breaks it, or what is missing to tell.
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub promises: Vec<Judgement>,
    pub changes: Vec<Change>,
}

impl Report {
    /// The worst verdict.
    pub fn verdict(&self) -> Verdict {
        self.promises.iter().map(|judgement| judgement.verdict).max().unwrap_or(Verdict::CannotBeTold)
    }
}
