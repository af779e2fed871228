//! A Rollout whose template is that of a Deployment (`spec.workloadRef`): both together say what it runs.
//! <https://argoproj.github.io/argo-rollouts/migrating/#reference-deployment-from-rollout>
//!
//! The two are never seen at one moment. So the Rollout is complete only while the Deployment that was seen is of the generation that
//! its controller has noted: a version of another time is never taken for what runs. Not for which of several objects counts; that is
//! `joining`'s.

use crate::workloads::template_of::TemplateOf;
use crate::workloads::workload::Workload;
use kernel::unreadable::Unreadable;
use kinds::reported::Says;

/// A Rollout with what the Deployment says that it refers to; any other workload as it is.
///
/// # Errors
/// When there is no such Deployment.
pub fn resolved(mut rollout: Workload, deployment: Option<&Workload>) -> Result<Workload, Unreadable> {
    let Some(of) = rollout.template_of.take() else { return Ok(rollout) };
    let TemplateOf { deployment: id, noted, selects } = *of;
    let Some(deployment) = deployment.filter(|deployment| deployment.id == id) else {
        let name = &id.name;
        return Err(Unreadable::because(format!(
            "its template is that of the Deployment {name} (spec.workloadRef), which does not exist: make it, or name another one"
        )));
    };
    rollout.version = match &rollout.tuning.counts.containers {
        Some(names) => deployment.version.clone().map(|all| all.only(names).unwrap_or(all)),
        None => deployment.version.clone(),
    };
    if rollout.tuning.counts.containers.is_none() {
        // The annotation of the Deployment has chosen them.
        rollout.tuning.counts.containers.clone_from(&deployment.tuning.counts.containers);
    }
    rollout.template_labels.clone_from(&deployment.template_labels);
    if !selects {
        rollout.selector.clone_from(&deployment.selector);
    }
    if noted != Some(deployment.generation) {
        let generation = deployment.generation;
        rollout.says = Says::Unfinished(format!(
            "its controller has not acted on generation {generation} of Deployment {}, whose template it has, yet",
            id.name
        ));
        rollout.stable = None;
    }
    Ok(rollout)
}
