//! The name of a workload where its namespace is known: `web` is a Deployment's, and other kinds stand before theirs as kubectl writes
//! them, `statefulset/db`.
//!
//! Not for names that say their namespace; those are [`WorkloadId`]'s.

use std::fmt;

use crate::id::{Kind, WorkloadId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadName {
    pub kind: Kind,
    pub name: String,
}

/// A text that names no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no workload; write NAME for a Deployment, else the kind first, as statefulset/NAME or daemonset/NAME"
)]
pub struct NotAName(String);

impl WorkloadName {
    /// Reads it; of the kind, each of the names that kubectl takes.
    ///
    /// # Errors
    /// An unknown kind, or no name.
    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let (kind, name) = match text.split_once('/') {
            None => (Some(Kind::Deployment), text),
            Some((kind, name)) => (Kind::named(kind), name),
        };
        let kind = kind.filter(|_| !name.is_empty() && !name.contains('/'));
        kind.map(|kind| Self { kind: kind.identity(), name: name.to_owned() }).ok_or_else(|| NotAName(text.to_owned()))
    }

    pub fn of(id: &WorkloadId) -> Self {
        Self { kind: id.kind, name: id.name.clone() }
    }

    /// The workload of this name in a namespace.
    pub fn within(&self, namespace: &str) -> WorkloadId {
        WorkloadId::new(self.kind, namespace, self.name.as_str())
    }
}

/// What [`WorkloadName::parse`] reads.
impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != Kind::Deployment {
            write!(f, "{}/", self.kind)?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_a_deployments_and_each_kind_is_read_as_it_is_written() {
        for kind in Kind::ALL.map(Kind::identity) {
            let web = WorkloadName { kind, name: "web".to_owned() };
            assert_eq!(WorkloadName::parse(&web.to_string()), Ok(web.clone()));
            assert_eq!(WorkloadName::of(&web.within("shop")), web);
        }
        let written = |text| WorkloadName::parse(text).map(|name| name.to_string());
        assert_eq!(written("web"), Ok("web".to_owned()));
        assert_eq!(written("deploy/web"), Ok("web".to_owned()));
        assert_eq!(written("rollout/web"), Ok("web".to_owned()), "a Rollout and a Deployment of one name are one");
        assert_eq!(written("sts/db"), Ok("statefulset/db".to_owned()));
        for wrong in ["", "job/web", "shop/web", "statefulset/", "/web", "statefulset/shop/db"] {
            let why = written(wrong).unwrap_err().to_string();
            assert!(why.starts_with(&format!("{wrong:?} names no workload; write NAME")), "{why}");
        }
    }
}
