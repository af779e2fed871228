//! Objects of apps, of any kind: which resource a kind is, and what is kept of an object.
//!
//! Not for whether an app is ready; that is `objects::apps::ready`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use apiserver::{Api, Resource};
use kernel::unreadable::Unreadable;
use objects::apps::app::{Look, TargetKey};
use objects::apps::ready::look;
use purge::ports::PortError;

/// What an object says to each target that names it.
pub(super) type Looks = Vec<(TargetKey, Result<Look, Unreadable>)>;

/// A kind's resource, and whether its objects are in namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub resource: Resource,
    pub namespaced: bool,
}

/// Kinds that every API server has at this place: they need no question.
const KNOWN: [(&str, &str, &str); 3] = [
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
];

/// Which resource a kind is, asked for once. A kind that is not served is asked for again each time: it may be installed at
/// any moment.
#[derive(Clone, Default)]
pub(super) struct Kinds(Arc<Mutex<BTreeMap<(String, String), Found>>>);

impl Kinds {
    /// The resource of a kind. Where its version is not served any more, the one that the server prefers takes its place.
    pub async fn find(&self, api: &Api, api_version: &str, kind: &str) -> Result<Found, PortError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if let Some((_, _, plural)) = KNOWN.iter().find(|known| (known.0, known.1) == (api_version, kind)) {
            return Ok(Found { resource: Resource::new("apps", "v1", plural), namespaced: true });
        }
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(found) = self.known().get(&key) {
            return Ok(found.clone());
        }
        let mut found = serving(api, group, version, kind).await?;
        if found.is_none() && !group.is_empty() {
            for version in api.versions(group).await?.into_iter().filter(|other| other != version).take(VERSIONS_MAX) {
                found = found.or(serving(api, group, &version, kind).await?);
            }
        }
        let found = found.ok_or_else(|| {
            let attempted = format!("failed to find the kind {kind} of {api_version}");
            PortError::passing(attempted, "the cluster does not serve it; install its CustomResourceDefinition")
        })?;
        self.known().insert(key, found.clone());
        Ok(found)
    }

    /// What a kind was is not to be believed any more.
    pub fn forget(&self, api_version: &str, kind: &str) {
        self.known().remove(&(api_version.to_owned(), kind.to_owned()));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<(String, String), Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Versions of a group that are asked for a kind; more than three are not served at a time by any group we know.
const VERSIONS_MAX: usize = 5;

async fn serving(api: &Api, group: &str, version: &str, kind: &str) -> Result<Option<Found>, PortError> {
    let kinds = api.kinds(group, version).await?.unwrap_or_default();
    let served = kinds.into_iter().find(|one| one.kind == kind && !one.plural.contains('/'));
    let owned = |text: &str| Cow::Owned(text.to_owned());
    Ok(served.map(|one| Found {
        namespaced: one.namespaced,
        resource: Resource { group: owned(group), version: owned(version), plural: Cow::Owned(one.plural) },
    }))
}

/// The wanted targets, by the name of their object. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<Mutex<Names>>);

/// Sorted by namespace and name.
type Names = Vec<TargetKey>;

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

#[derive(Deserialize)]
struct Identity<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl Wanted {
    /// These, and no others.
    pub fn set<'a>(&self, targets: impl Iterator<Item = &'a TargetKey>) {
        let mut names: Names = targets.cloned().collect();
        names.sort_by(|one, other| name_of(one).cmp(&name_of(other)));
        *self.names() = names;
    }

    /// What an object of this kind says to the targets that name it; nothing, at the price of reading its name, if none does.
    pub fn read(&self, api_version: &str, kind: &str, json: &str) -> Result<Looks, Unreadable> {
        let Named { metadata: Identity { namespace, name } } = serde_json::from_str(json)?;
        let targets = self.called(api_version, kind, (namespace.into_owned(), name.into_owned()));
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let object: Value = serde_json::from_str(json)?;
        let said = |target: TargetKey| {
            let look = look(&target.app, &target.name, &object);
            (target, look)
        };
        Ok(targets.into_iter().map(said).collect())
    }

    /// For an object whose name alone can be read: the targets that name it, each with the reason.
    pub fn unreadable(&self, api_version: &str, kind: &str, name: (String, String), why: Unreadable) -> Looks {
        let targets = self.called(api_version, kind, name);
        targets.into_iter().map(|target| (target, Err(why.clone()))).collect()
    }

    fn called(&self, api_version: &str, kind: &str, name: (String, String)) -> Vec<TargetKey> {
        let names = self.names();
        let name = (name.0.as_str(), name.1.as_str());
        let first = names.partition_point(|target| name_of(target) < name);
        let all = names.iter().skip(first).take_while(|target| name_of(target) == name);
        all.filter(|target| target.app.api_version == api_version && target.app.kind == kind).cloned().collect()
    }

    fn names(&self) -> std::sync::MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(target: &TargetKey) -> (&str, &str) {
    (&target.namespace, &target.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::apps::app::{AppKind, ClusterKey};
    use serde_json::json;

    fn target(kind: &str, name: &str) -> TargetKey {
        let app = AppKind::new("apps/v1", kind);
        TargetKey::new(ClusterKey::Here, app, "prod", name)
    }

    // Faults: PF13
    #[test]
    fn what_no_target_names_is_dropped_before_it_is_read() {
        let wanted = Wanted::default();
        let read = |json: &str| wanted.read("apps/v1", "Deployment", json);
        let other = r#"{"metadata": {"namespace": "prod", "name": "api"}, "spec": [1, 2, {"broken": }"#;
        assert!(read(other).is_err(), "a watch says whose object cannot be read");
        let web = json!({"metadata": {"namespace": "prod", "name": "web", "uid": "u-1"}, "spec": {}, "status": {"replicas": "three"}}).to_string();
        assert_eq!(read(&web), Ok(Vec::new()));
        let named = AppKind { container: Some("web".to_owned()), ..AppKind::new("apps/v1", "Deployment") };
        let twice = TargetKey::new(ClusterKey::Here, named, "prod", "web");
        wanted.set([target("Deployment", "web"), twice.clone(), target("StatefulSet", "web")].iter());
        let looks = read(&web).unwrap();
        let names: Vec<&TargetKey> = looks.iter().map(|(target, _)| target).collect();
        assert_eq!(names, [&target("Deployment", "web"), &twice]);
        assert!(matches!(&looks[0].1, Err(Unreadable::Mistyped { at, .. }) if at == ".status.replicas"), "{looks:?}");
        wanted.set([].iter());
        assert_eq!(read(&web), Ok(Vec::new()));
    }
}
