//! Names of our own objects, Pipelines and Repos, and of what happens in them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ObjectId, digest};

/// The revision of an app: one text, compared for equality, never ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub String);

impl From<String> for Revision {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a commit in git, in hexadecimal. Repositories with SHA-256 ids, which have 64 digits, are refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct CommitId(String);

/// What no commit's id is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no commit's id: {digits} digits of 0-9 and a-f", digits = CommitId::DIGITS)]
pub struct NotACommitId(String);

impl CommitId {
    const DIGITS: usize = 40;
    /// What people compare at a glance.
    const DIGITS_SHORT: usize = 12;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first digits, for where it is one of many.
    pub fn short(&self) -> &str {
        self.0.get(..Self::DIGITS_SHORT).unwrap_or(&self.0)
    }
}

impl TryFrom<String> for CommitId {
    type Error = NotACommitId;

    fn try_from(text: String) -> Result<Self, NotACommitId> {
        let is_id = text.len() == Self::DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id { Ok(Self(text)) } else { Err(NotACommitId(text)) }
    }
}

impl FromStr for CommitId {
    type Err = NotACommitId;

    fn from_str(text: &str) -> Result<Self, NotACommitId> {
        text.to_owned().try_into()
    }
}

impl From<[u8; 20]> for CommitId {
    fn from(bytes: [u8; 20]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Gates take a revision: that of a Pipeline, or the commit of a Repo.
impl From<CommitId> for Revision {
    fn from(commit: CommitId) -> Self {
        Self(commit.0)
    }
}

impl fmt::Display for CommitId {
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

/// Declares the name of an object of one of our kinds, written with that kind first.
macro_rules! object_id {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $type {
            pub namespace: String,
            pub name: String,
        }

        impl $type {
            /// The one of this name.
            pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
                Self { namespace: namespace.into(), name: name.into() }
            }

            /// Reads what [`fmt::Display`] writes; `None` for everything else.
            pub fn parse(text: &str) -> Option<Self> {
                let (namespace, name) = text.strip_prefix(concat!($kind, "/"))?.split_once('/')?;
                let is_part = |part: &str| !part.is_empty() && !part.contains('/');
                (is_part(namespace) && is_part(name)).then(|| Self::new(namespace, name))
            }
        }

        impl ObjectId for $type {
            fn namespace(&self) -> &str {
                &self.namespace
            }

            fn display_name(&self) -> String {
                format!("{}/{}", self.namespace, self.name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($kind, "/{}/{}"), self.namespace, self.name)
            }
        }
    };
}

object_id! {
    /// One Pipeline of this cluster. Written `pipeline/shop/web`.
    PipelineId, "pipeline"
}
object_id! {
    /// One Repo of this cluster. Written `repo/platform/infra`.
    RepoId, "repo"
}

/// How many promotions an environment has had: 1 for the first. It never decreases under one UID (PL-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PromotionSeq(pub u64);

impl From<u64> for PromotionSeq {
    fn from(count: u64) -> Self {
        Self(count)
    }
}

impl fmt::Display for PromotionSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PromotionSeq {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// How many runs a Repo has had: 1 for the first. It never decreases under one UID (RP-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunSeq(pub u64);

impl From<u64> for RunSeq {
    fn from(count: u64) -> Self {
        Self(count)
    }
}

impl fmt::Display for RunSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RunSeq {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The name of a run: `H(UID, seq)`.
pub fn run_id(uid: &str, seq: RunSeq) -> String {
    digest("run", [uid, seq.to_string().as_str()])
}

/// The name of a promotion: `H(UID, environment, seq)`.
pub fn promotion_id(uid: &str, environment: &Environment, seq: PromotionSeq) -> String {
    digest("promotion", [uid, environment.0.as_str(), seq.to_string().as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commits_id_is_whole_and_as_git_writes_it() {
        let commit = CommitId::from([0xa9; 20]);
        assert_eq!((commit.as_str(), commit.short()), ("a9".repeat(20).as_str(), "a9a9a9a9a9a9"));
        assert_eq!(commit.as_str().parse(), Ok(commit));
        for text in ["", "main", &"a".repeat(39), &"a".repeat(64), &"A".repeat(40), &"é".repeat(20)] {
            assert_eq!(text.parse::<CommitId>(), Err(NotACommitId(text.to_owned())));
        }
    }
}
