//! The status of a Pipeline: its references of clusters stand in it as a spec would write them, without the Pipeline's own namespace.
//!
//! Not for deciding what is in it.

use objects::apps::app::ClusterRef;
use objects::pipeline::spec::Object;
use objects::pipeline::status::Status;
use serde_json::Value;

use super::status::{self, Fault};

/// Reads the status of an object of this namespace; without one it is that of a Pipeline that was never judged.
///
/// # Errors
/// When something in it is not what we write.
pub fn read(json: Option<&str>, namespace: &str) -> Result<Status, Fault> {
    let mut status: Status = status::read(json)?;
    for cluster in clusters(&mut status) {
        cluster.api_version = None;
        cluster.namespace.get_or_insert_with(|| namespace.to_owned());
    }
    Ok(status)
}

/// The status of an object as it stands in it.
///
/// # Errors
/// None: a status has no form that JSON has not.
pub fn written(object: &Object) -> serde_json::Result<Value> {
    let mut written = object.status.clone();
    for cluster in clusters(&mut written) {
        cluster.namespace.take_if(|namespace| *namespace == object.id.namespace);
    }
    status::written(&written)
}

fn clusters(status: &mut Status) -> impl Iterator<Item = &mut ClusterRef> {
    let targets = status.environments.values_mut().flat_map(|one| &mut one.targets);
    targets.filter_map(|target| target.cluster_app_ref.cluster_ref.as_mut())
}

#[cfg(test)]
mod tests;
