//! The remarks on a change of status: the Events that the users of `pipelines.weave.works` know, with its reasons and
//! its texts (weaveworks/pipeline-controller, `controllers/leveltriggered/controller.go` and
//! `server/strategy/notification`, v0.22).
//!
//! Where upstream repeated them with every reconciliation, a remark is about what is different from the status before.

use std::collections::BTreeSet;

use crate::apps::app::{ClusterKey, TargetKey, TargetParts};
use crate::apps::leaf::NOT_SYNCED;
use crate::pipeline::judge::NOT_LOOKED_AT;
use crate::pipeline::spec::{EnvironmentSpec, Object, Strategy};
use crate::pipeline::status::{Ended, EnvironmentStatus, Status, TargetStatus};
use kernel::id::ObjectId;
use kernel::remark::Remark;

/// Targets that one change is remarked of at most. A Pipeline may have a thousand, and its status has them all.
const UNREAD_MAX: usize = 20;

/// The remarks on an object whose status was `before`.
pub fn remarks(object: &Object, before: &Status) -> Vec<Remark> {
    let Ok(spec) = &object.spec else { return Vec::new() };
    let environments = spec.environments.iter().filter_map(|own| {
        let is = object.status.environment(&own.name)?;
        Some((own, before.environment(&own.name), is))
    });
    let mut remarks: Vec<Remark> = Vec::new();
    let mut told: BTreeSet<String> = BTreeSet::new();
    for (own, was, is) in environments.clone() {
        let lost = unread(object, own, was, is).filter(|remark| told.insert(remark.message.clone()));
        remarks.extend(lost.take(UNREAD_MAX.saturating_sub(remarks.len())));
    }
    if conditions(before) != conditions(&object.status) {
        remarks.push(normal("Updated", format!("Updated pipeline {}", object.id.display_name())));
    }
    remarks.extend(environments.filter_map(|(own, was, is)| promoted(object, own, was, is)));
    remarks
}

/// The promotions that have ended since the status was this.
pub fn ended<'a>(before: &'a Status, after: &'a Status) -> impl Iterator<Item = &'a Ended> {
    after.history.iter().filter(|ended| !before.history.contains(ended))
}

/// Targets that cannot be read, where that or its reason is new.
fn unread<'a>(
    object: &'a Object,
    own: &'a EnvironmentSpec,
    was: Option<&'a EnvironmentStatus>,
    is: &'a EnvironmentStatus,
) -> impl Iterator<Item = Remark> + 'a {
    let targets = own.members().zip(&is.targets).enumerate();
    targets.filter_map(move |(number, (target, said))| {
        let before = was.and_then(|was| was.targets.get(number)).and_then(|before| before.error.as_ref());
        let why = unreadable(said).filter(|why| before != Some(why))?;
        let pipeline = object.id.display_name();
        let is_absent = said.error.as_deref() == Some(&super::show::not_found(target));
        let (reason, what) = match &target.cluster {
            ClusterKey::Leaf(leaf) if !is_absent => {
                ("GetClusterError", format!("cluster {}/{}", leaf.namespace, leaf.name))
            }
            ClusterKey::Leaf(_) | ClusterKey::Here => ("GetAppError", format!("application object {}", place(target))),
        };
        let message = format!("Failed to get {what} for pipeline {pipeline}: {why}");
        Some(Remark { reason, is_warning: true, message, annotations: Vec::new() })
    })
}

/// Why a target cannot be read; `None` if it was read, ready or not, or is being looked at for the first time.
fn unreadable(said: &TargetStatus) -> Option<&String> {
    let is_new = |why: &str| why == NOT_SYNCED || why == NOT_LOOKED_AT;
    said.error.as_ref().filter(|why| said.uid.is_none() && !is_new(why))
}

/// `CLUSTER-NAMESPACE/CLUSTER:NAMESPACE/NAME`, or `NAMESPACE/NAME` in this cluster.
fn place(target: &TargetKey) -> String {
    let TargetParts { cluster, namespace, name, .. } = &**target;
    match cluster {
        ClusterKey::Here => format!("{namespace}/{name}"),
        ClusterKey::Leaf(leaf) => format!("{}/{}:{namespace}/{name}", leaf.namespace, leaf.name),
    }
}

/// The subject of `Updated`. Upstream reported it at every reconciliation; the readiness of each target would still be
/// a dozen for one rollout, which hide the Events that matter.
fn conditions(status: &Status) -> Vec<(&'static str, Option<bool>, &str)> {
    status.conditions.iter().map(|one| (one.kind.name(), one.holds, one.reason.as_str())).collect()
}

/// A promotion by notification that has started.
fn promoted(
    object: &Object,
    own: &EnvironmentSpec,
    was: Option<&EnvironmentStatus>,
    is: &EnvironmentStatus,
) -> Option<Remark> {
    let by_notice = own.promotion.as_ref().is_some_and(|promotion| promotion.strategy == Strategy::Notification);
    let started = |known: &EnvironmentStatus| {
        known.promotion.as_ref().filter(|promotion| promotion.started_ms.is_some()).map(|promotion| promotion.seq)
    };
    let promotion = is.promotion.as_ref().filter(|_| by_notice && started(is).is_some())?;
    if was.and_then(started) == started(is) {
        return None;
    }
    let (pipeline, environment, version) =
        (object.id.display_name(), own.name.to_string(), promotion.revision.0.clone());
    let message = format!("Promote pipeline {pipeline} to {environment} with version {version}");
    let annotations = vec![("environment", environment), ("version", version)];
    Some(Remark { annotations, ..normal("Promote", message) })
}

const fn normal(reason: &'static str, message: String) -> Remark {
    Remark { reason, is_warning: false, message, annotations: Vec::new() }
}
