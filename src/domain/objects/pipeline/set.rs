//! Several apps together: their place, and their revision, `api=1.2,web=3.4`.

use crate::apps::app::{AppKind, ClusterKey, NoRevision, TargetKey};
use kernel::id::Revision;

/// Apps of one set.
pub const APPS_MAX: usize = 10;

/// Longest revision of a set, in bytes: ten images with tags, or eight with digests, and their names. It is kept in trails and history.
pub const SET_BYTES_MAX: usize = 1_024;

/// The kind of a place. Kubernetes has none of this name that could be a target: a group is missing.
const KIND: &str = "Set";

/// The place with these apps.
pub fn place(cluster: ClusterKey, namespace: impl Into<String>, apps: &[String]) -> TargetKey {
    TargetKey::new(cluster, AppKind::new("", KIND), namespace, apps.join("+"))
}

/// Whether this is a place of a set, and no object.
pub fn is_place(target: &TargetKey) -> bool {
    target.app.api_version.is_empty() && target.app.kind == KIND
}

/// The revision of a set. No part has a comma.
pub(super) fn joined<'a>(parts: impl IntoIterator<Item = (&'a String, &'a Revision)>) -> Result<Revision, NoRevision> {
    let mut all = String::new();
    for (app, Revision(revision)) in parts {
        if revision.contains(',') {
            return Err(NoRevision::Unusable(format!("{app}: a revision with a comma cannot be part of a set")));
        }
        let comma = if all.is_empty() { "" } else { "," };
        all.extend([comma, app, "=", revision]);
    }
    if all.len() > SET_BYTES_MAX {
        return Err(NoRevision::Unusable(format!("the revisions of the set have more than {SET_BYTES_MAX} bytes")));
    }
    Ok(Revision(all))
}

/// What each app of a set has in this revision; `None` if it is none of a set of these apps.
pub fn parts<'a>(apps: &'a [String], revision: &Revision) -> Option<Vec<(&'a String, Revision)>> {
    let mut said = revision.0.split(',');
    let part = |app: &'a String| {
        let (name, revision) = said.next()?.split_once('=')?;
        (name == app && !revision.is_empty()).then(|| (app, Revision(revision.to_owned())))
    };
    let parts: Option<Vec<_>> = apps.iter().map(part).collect();
    parts.filter(|_| !apps.is_empty() && said.next().is_none())
}
