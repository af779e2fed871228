//! The events and effects of a leaf.

use std::collections::{BTreeMap, BTreeSet};

use crate::apps::app::{Look, Sight, TargetKey};
use kernel::answer::PortError;
use kernel::id::PipelineId;
use kernel::unreadable::Unreadable;

/// The collection of one watch: the objects of a kind, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Collection {
    /// The group and version, as in a manifest: `apps/v1`.
    pub api_version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// The namespace; `None` is all of them.
    pub namespace: Option<String>,
}

impl Collection {
    /// The objects of the target's kind in its namespace, and in all.
    pub(super) fn both(target: &TargetKey) -> [Self; 2] {
        [Some(target.namespace.clone()), None].map(|namespace| Self {
            api_version: target.app.api_version.clone(),
            kind: target.app.kind.clone(),
            namespace,
        })
    }

    pub(super) fn contains(&self, target: &TargetKey) -> bool {
        self.api_version == target.app.api_version
            && self.kind == target.app.kind
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == target.namespace)
    }
}

/// The news of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A new listing begins: all targets wanted when this arrives are decoded from it.
    Restarted,
    /// The look at an object for each target that names it; or why it cannot be read.
    Seen(Vec<(TargetKey, Result<Look, Unreadable>)>),
    /// An object is gone.
    Gone { namespace: String, name: String },
    /// The listing is complete; also said when a watch that was in trouble goes on without a new one.
    Synced,
    /// It failed and is being started again.
    Trouble(PortError),
}

/// Names one watch or one read of this machine; never given out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

/// The known states of targets.
pub type Sights = BTreeMap<TargetKey, Sight>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A Pipeline wants to know about these targets from now on, and no others; none: it is gone.
    Wanted(PipelineId, BTreeSet<TargetKey>),
    /// A Pipeline wants a fresh read of these. Its own earlier wish is forgotten.
    LookedFor(PipelineId, u64, BTreeSet<TargetKey>),
    /// There is a way to the cluster: the first one, or a new one.
    Linked,
    /// There is none, and why.
    Unlinked(String),
    /// A watch said something.
    Told(Number, News),
    /// The answer to [`Effect::Read`].
    Read(Number, Result<Option<Look>, PortError>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Find the way to the cluster, and keep saying where it leads. Answered by [`Event::Linked`] and [`Event::Unlinked`].
    Connect,
    /// Decode only what concerns these. Before any watch that follows it. No answer.
    Want(BTreeSet<TargetKey>),
    Watch(Number, Collection),
    Unwatch(Number),
    /// Read one object afresh, a few at a time. Answered by [`Event::Read`].
    Read(Number, TargetKey),
    /// Say what is known of all targets of a Pipeline: it takes the place of what was said before.
    Report(PipelineId, Sights),
    /// The answer to [`Event::LookedFor`] of this number.
    Looked(PipelineId, u64, Sights),
    /// Nothing is wanted: end. A later [`Event::Wanted`] begins anew.
    End,
}
