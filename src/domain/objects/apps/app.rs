//! An app as a Pipeline sees it: one object in one target, what it says of itself, and whether it is ready.
//!
//! Not for telling whether it is ready, which is `ready`'s, nor for what a sight means for a promotion; that is `pipeline::judge`.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use kernel::id::Revision;
use kernel::names::image;
use kernel::unreadable::Unreadable;

/// Where a target's objects are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ClusterKey {
    /// The cluster that allclear runs in.
    Here,
    /// A leaf: another cluster, which we only read.
    Leaf(LeafId),
}

impl ClusterKey {
    /// The way people say it: `this cluster`, or `Secret/shop/eu-1`.
    pub fn display_name(&self) -> String {
        match self {
            Self::Here => "this cluster".to_owned(),
            Self::Leaf(leaf) => leaf.to_string(),
        }
    }

    /// What names it in a status.
    pub fn reference(&self) -> Option<ClusterRef> {
        match self {
            Self::Here => None,
            Self::Leaf(LeafId { kind, namespace, name }) => Some(ClusterRef {
                api_version: None,
                kind: *kind,
                name: name.clone(),
                namespace: Some(namespace.clone()),
            }),
        }
    }
}

/// Names a leaf by the object that holds its kubeconfig. Written `Secret/shop/eu-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeafId {
    pub kind: LeafKind,
    pub namespace: String,
    pub name: String,
}

/// The kinds of object that may hold a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LeafKind {
    Secret,
    // Of gitops.weave.works, which names a Secret.
    GitopsCluster,
}

/// Another cluster, by what holds its kubeconfig.
// As specs and statuses name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClusterRef {
    /// The group and version of that object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 317)))]
    pub api_version: Option<String>,
    /// Its kind. A Secret has the kubeconfig under the key kubeconfig, value or value.yaml.
    pub kind: LeafKind,
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 253)))]
    pub name: String,
    /// Its namespace: that of the object that names it, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub namespace: Option<String>,
}

impl fmt::Display for LeafKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret => "Secret",
            Self::GitopsCluster => "GitopsCluster",
        })
    }
}

impl fmt::Display for LeafId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// The kind of an app's object, and the places of its revision and readiness if we do not know the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKind {
    /// Its group and version, as in a manifest: `apps/v1`.
    pub api_version: String,
    /// Its kind: `Deployment`.
    pub kind: String,
    /// The container whose image is the revision; `None` where there is one, or one with the app's name.
    pub container: Option<String>,
    /// JSON pointer (RFC 6901) to the revision.
    pub revision_at: Option<String>,
    /// JSON pointer (RFC 6901) to what says that it is ready.
    pub ready_at: Option<String>,
    /// The value there if it is ready; `True` unless given.
    pub ready_value: Option<String>,
}

impl AppKind {
    /// A kind whose revision and readiness are where its kind has them.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            container: None,
            revision_at: None,
            ready_at: None,
            ready_value: None,
        }
    }
}

/// One object that a Pipeline watches. Clones share its parts: a Pipeline, the reader of the cluster, its watches and
/// their decoder hold it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKey(Arc<TargetParts>);

/// The parts of a [`TargetKey`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetParts {
    pub cluster: ClusterKey,
    /// The kind of object.
    pub app: AppKind,
    pub namespace: String,
    pub name: String,
}

impl From<TargetParts> for TargetKey {
    fn from(parts: TargetParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for TargetKey {
    type Target = TargetParts;

    fn deref(&self) -> &TargetParts {
        &self.0
    }
}

impl TargetKey {
    /// The object of this name.
    pub fn new(cluster: ClusterKey, app: AppKind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        TargetParts { cluster, app, namespace: namespace.into(), name: name.into() }.into()
    }

    /// Why what needs this object has to wait, in words, from what is known of it; `None` if it is there and ready.
    pub fn holds_up(&self, sight: Option<&Sight>) -> Option<String> {
        let why = sight.map_or_else(|| Some("it was not looked at yet".to_owned()), Sight::unready)?;
        Some(format!("needs {} {}: {why}", self.app.kind, self.display_name()))
    }

    /// The way people say it: `prod/web`, or `eu-1/prod/web` in a leaf.
    pub fn display_name(&self) -> String {
        match &self.cluster {
            ClusterKey::Here => format!("{}/{}", self.namespace, self.name),
            ClusterKey::Leaf(leaf) => format!("{}/{}/{}", leaf.name, self.namespace, self.name),
        }
    }
}

/// The known state of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    /// It cannot be said: not looked at yet, not readable, or its cluster does not answer; with the reason in words.
    Unknown(String),
    /// Its collection was read, and it is not there.
    Absent,
    Present(Present),
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Present {
    /// `metadata.uid`: another one is another object.
    pub uid: String,
    /// Why it is not ready, in words; `None` if it is ready and its controller has acted on its newest spec.
    pub unready: Option<String>,
    /// The revision that it runs, or why that is unknown.
    pub revision: Result<Revision, NoRevision>,
}

/// Why it is not known which revision an object runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoRevision {
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It says none, or none that can be compared and shown.
    #[error("{0}")]
    Unusable(String),
}

/// The result of one look at an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    pub present: Present,
    /// Its kind does not publish which spec it has acted on, or publishes its parts at different times: being ready counts only
    /// when a second look some seconds later says the same.
    pub twice: bool,
}

impl Sight {
    /// The revision it is settled at: present, ready, and with a revision.
    pub fn settled(&self) -> Option<&Revision> {
        match self {
            Self::Present(Present { unready: None, revision: Ok(revision), .. }) => Some(revision),
            Self::Present(_) | Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The state in one word.
    pub const fn standing(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::Absent => "absent",
            Self::Present(Present { unready: None, revision: Ok(_), .. }) => "ready",
            Self::Present(_) => "not_ready",
        }
    }

    /// Why it is not there and ready, in words; `None` if it is.
    pub fn unready(&self) -> Option<String> {
        match self {
            Self::Unknown(why) => Some(format!("it cannot be read: {why}")),
            Self::Absent => Some("it does not exist".to_owned()),
            Self::Present(present) => present.unready.clone(),
        }
    }

    /// The revision it says, ready or not.
    pub fn revision(&self) -> Option<&Revision> {
        match self {
            Self::Present(Present { revision: Ok(revision), .. }) => Some(revision),
            Self::Present(_) | Self::Absent | Self::Unknown(_) => None,
        }
    }
}
