//! The scopes whose workloads are all on record: there, a workload without a record is new (decision 28).
//!
//! A scope that is not listed yet gets a first listing, in which a workload is taken as it is. A listed scope stays so,
//! in every later life: a workload that was created while nothing ran is a change like any other.
//!
//! A ledger may keep its records in parts. A part that is missing, or is another object than it was, has forgotten workloads. They
//! are no first listing: what was done for them is not known, so each is a change, as a new one is (decision 48). Not for where this
//! is kept; that is the ledger's business.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{Kind, ObjectId};

/// Shards of a ledger. 10,000 workloads give 156 records a shard: about 40 KB idle, so that one write is cheap, while a
/// first start costs 66 writes (bound: 100, fault L1) and a ConfigMap (1 MiB) has room for records of 6 KB each.
pub const SHARDS: usize = 64;

/// The shard an object's record belongs to. Stored ledgers rest on it: another function would lose every record.
pub fn shard_of(id: &impl fmt::Display) -> usize {
    let digest = Sha256::digest(id.to_string().as_bytes());
    usize::from(digest.first().copied().unwrap_or_default()) % SHARDS
}

/// How all namespaces together are written.
const ALL: &str = "*";

/// A scope of a watch: a namespace, or all of them (`*`, which is no name of a namespace). Of the kinds of workloads, each is listed by
/// itself: Deployments as `shop`, as before there were others, those as `statefulset/shop`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scope(String);

impl Scope {
    /// The scope of a watch of Deployments, or of one that lists a kind of ours: `None` for all namespaces.
    pub fn of(namespace: Option<&str>) -> Self {
        Self(namespace.unwrap_or(ALL).to_owned())
    }

    /// The scope of a watch of one kind of workloads.
    pub fn of_kind(kind: Kind, namespace: Option<&str>) -> Self {
        match kind {
            Kind::Deployment => Self::of(namespace),
            Kind::StatefulSet | Kind::DaemonSet | Kind::Rollout | Kind::Custom(_) => {
                Self(format!("{kind}/{}", namespace.unwrap_or(ALL)))
            }
        }
    }

    /// Whether the object is in it.
    pub fn contains(&self, id: &impl ObjectId) -> bool {
        self.lists_in(id.namespace(), id.kind())
    }

    /// Whether it lists objects of the kind that this one has, in whatever namespace.
    pub fn lists_kind_of(&self, id: &impl ObjectId) -> bool {
        self.lists(id.kind())
    }

    /// Whether it lists workloads of this kind, in whatever namespace; `None`: objects of a kind of ours.
    pub fn lists(&self, kind: Option<Kind>) -> bool {
        self.parts().0 == kind.filter(|kind| *kind != Kind::Deployment).map(Kind::word)
    }

    /// Whether what it lists may go by this name: that of a Rollout is the one of a Deployment, in whose scope it is, too.
    pub fn may_list(&self, id: &impl ObjectId) -> bool {
        Kind::ALL
            .into_iter()
            .any(|kind| Some(kind.identity()) == id.kind() && self.lists_in(id.namespace(), Some(kind)))
            || self.contains(id)
    }

    /// Whether objects of this kind in this namespace are in it.
    fn lists_in(&self, in_namespace: &str, kind: Option<Kind>) -> bool {
        let (_, namespace) = self.parts();
        self.lists(kind) && (namespace == ALL || namespace == in_namespace)
    }

    /// The kind, where it is written, and the namespace.
    fn parts(&self) -> (Option<&str>, &str) {
        match self.0.split_once('/') {
            Some((kind, namespace)) => (Some(kind), namespace),
            None => (None, self.0.as_str()),
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The scopes that are listed, and for each the shards where that does not hold any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Listed(BTreeMap<Scope, BTreeSet<usize>>);

impl Listed {
    /// Every workload of this scope is on record now.
    pub fn add(&mut self, scope: Scope) {
        self.0.insert(scope, BTreeSet::new());
    }

    /// A shard is missing, or was set back.
    pub fn forget(&mut self, shard: usize) {
        self.0.values_mut().for_each(|forgotten| forgotten.extend([shard]));
    }

    /// Whether an object without a record is new, or was forgotten.
    pub fn covers(&self, id: &impl ObjectId) -> bool {
        self.covers_as(id.kind(), id)
    }

    /// The same of an object of this kind, whatever its name says.
    pub fn covers_as(&self, kind: Option<Kind>, id: &impl ObjectId) -> bool {
        self.0.keys().any(|scope| scope.lists_in(id.namespace(), kind))
    }

    /// Whether an object without a record may have had one: its part of the ledger was lost.
    pub fn has_forgotten(&self, id: &impl ObjectId) -> bool {
        let forgets = |(scope, forgotten): (&Scope, &BTreeSet<usize>)| {
            scope.contains(id) && !forgotten.is_empty() && forgotten.contains(&shard_of(id))
        };
        self.0.iter().any(forgets)
    }

    /// Whether this scope is listed, without exception.
    pub fn is_whole(&self, scope: &Scope) -> bool {
        self.0.get(scope).is_some_and(BTreeSet::is_empty)
    }

    /// Whether this scope was ever listed.
    pub fn has(&self, scope: &Scope) -> bool {
        self.0.contains_key(scope)
    }

    /// Whether nothing was ever listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WorkloadId;

    fn id(namespace: &str, name: &str) -> WorkloadId {
        WorkloadId::deployment(namespace, name)
    }

    #[test]
    fn a_workload_stays_in_its_shard_for_ever() {
        // Pinned: a change here orphans the records of every ledger there is.
        assert_eq!(shard_of(&id("shop", "web")), 7);
    }

    #[test]
    fn ten_thousand_workloads_spread_evenly_over_the_shards() {
        let mut sizes = [0_usize; SHARDS];
        for number in 0..10_000 {
            sizes[shard_of(&id(&format!("team-{}", number % 50), &format!("app-{number}")))] += 1;
        }
        assert!(sizes.iter().all(|size| (100..=220).contains(size)), "{sizes:?}");
    }

    #[test]
    fn a_namespace_that_was_not_listed_is_not_covered_by_one_that_was() {
        let mut listed = Listed::default();
        listed.add(Scope::of(Some("shop")));
        assert!(listed.covers(&id("shop", "web")) && !listed.covers(&id("bank", "web")));
        listed.add(Scope::of(None));
        assert!(listed.covers(&id("bank", "web")));
    }

    #[test]
    fn each_kind_is_listed_by_itself() {
        let mut listed = Listed::default();
        let db = WorkloadId::new(Kind::StatefulSet, "shop", "db");
        listed.add(Scope::of(None));
        assert!(listed.covers(&id("shop", "web")) && !listed.covers(&db));
        listed.add(Scope::of_kind(Kind::StatefulSet, Some("shop")));
        assert!(listed.covers(&db) && !listed.covers(&WorkloadId { kind: Kind::DaemonSet, ..db.clone() }));
        assert!(!listed.covers(&WorkloadId { namespace: "bank".to_owned(), ..db }));
        let text = serde_json::to_string(&listed).unwrap();
        assert_eq!(text, r#"{"*":[],"statefulset/shop":[]}"#, "as releases before read and keep it");
    }

    #[test]
    fn a_rollout_is_listed_by_itself_though_it_has_the_name_of_a_deployment() {
        let web = WorkloadId::new(Kind::Rollout, "shop", "web");
        assert_eq!(web, id("shop", "web"));
        let rollouts = Scope::of_kind(Kind::Rollout, Some("shop"));
        assert!(!rollouts.contains(&web) && rollouts.may_list(&web) && Scope::of(None).may_list(&web));
        assert!(!Scope::of_kind(Kind::StatefulSet, None).may_list(&web));
        let mut listed = Listed::default();
        listed.add(Scope::of(None));
        assert!(listed.covers(&web) && !listed.covers_as(Some(Kind::Rollout), &web), "its first listing is a baseline");
        listed.add(rollouts);
        assert!(listed.covers_as(Some(Kind::Rollout), &web));
    }

    #[test]
    fn what_a_lost_shard_forgot_is_no_first_listing_and_is_forgotten_until_it_is_listed_again() {
        let mut listed = Listed::default();
        listed.add(Scope::of(None));
        listed.forget(shard_of(&id("shop", "web")));
        assert!(listed.has_forgotten(&id("shop", "web")), "shard 7");
        assert_ne!(shard_of(&id("shop", "api")), 7);
        assert!(!listed.has_forgotten(&id("shop", "api")));
        assert!(listed.covers(&id("shop", "web")) && listed.covers(&id("shop", "api")));
        assert!(!listed.is_whole(&Scope::of(None)));
        listed.add(Scope::of(None));
        assert!(listed.covers(&id("shop", "web")) && !listed.has_forgotten(&id("shop", "web")));
    }
}
