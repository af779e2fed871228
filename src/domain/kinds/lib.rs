//! The kinds of workloads that serve sites: how each says how its rollout stands.
//!
//! | kind | complete, if it is not being deleted and its controller has acted on the newest spec | waits without a clock | fails |
//! |---|---|---|---|
//! | Deployment | every pod wanted is of the newest template and available, and no other is left | paused, scaled to zero | progress deadline |
//! | StatefulSet | the same; `currentRevision` may lag behind for ever | `partition`, `OnDelete`, scaled to zero | – |
//! | DaemonSet | the same, of the nodes that are to run it | `OnDelete`, no node is to run it | – |
//! | Argo Rollout | `Healthy`, the newest pods are the stable ones, and all of them are available; old ones may stay where no Service leads to them | pauses, analyses, experiments, a restart, scaled to zero | aborted, `Degraded` |
//! | declared (`workloads.custom`) | what the operator says holds | no `observedGeneration`, scaled to zero, what cannot be judged | what the operator says holds |
//!
//! One file for each kind reads one object ([`read`]); nothing behind it knows a kind. Purges and Pipelines judge by the same answer
//! ([`reported::Reported`]).
//!
//! Not for the pods themselves, nor for what follows.

mod argo_rollout;
mod custom;
mod daemon_set;
mod deployment;
pub mod object;
pub mod pods;
pub mod reported;
mod stateful_set;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kernel::id::Kind;
use kernel::unreadable::Unreadable;
use object::Object;
use reported::{Replicas, Reported, Says};

/// One object of a kind, as far as its controller reports its rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `metadata.generation`: raised by the API server on every change of the spec.
    pub generation: i64,
    /// `status.observedGeneration`: what the controller has acted on. The rest of the status means nothing before it reaches
    /// `generation`.
    pub observed_generation: i64,
    /// A deletion timestamp is set.
    pub deleting: bool,
    pub own: Own,
}

/// What each kind says in fields of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    pub replicas: Replicas,
    pub says: Says,
    /// Why pods are missing, where the kind says so.
    pub refused: Option<String>,
    /// The pods of the newest template were never available.
    pub starting: bool,
    /// How long a rollout may take by its own spec. `None` where there is no deadline.
    pub deadline: Option<Duration>,
    pub newest: Newest,
    pub stable: Option<Stable>,
}

/// The pods of the template before, of a kind that goes back to them when an update is aborted and leaves its spec as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stable {
    /// The value of the label [`template_label`] that they have.
    pub hash: String,
    pub replicas: Replicas,
    /// How the way back stands.
    pub says: Says,
}

/// How the pods of the newest template are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Newest {
    /// By nothing that the object says.
    #[default]
    Unsaid,
    /// By this value of the label [`template_label`].
    Labelled(String),
    /// By this value of the label [`GENERATION_LABEL`].
    Generation(String),
    /// By the label [`template_label`] of those that run its version; every one has the label.
    OfItsVersion,
}

/// Which template a pod of a DaemonSet was made from, counted. A pod of an older one with the same hash is as new: its template came
/// back. <https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/daemon/util/daemonset_util.go>
pub const GENERATION_LABEL: &str = "pod-template-generation";

/// The annotation in which the API server counts the templates of a DaemonSet.
/// <https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/apps/v1/conversion.go>
pub const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub use argo_rollout::{TemplateFrom, template_from};

/// The annotation in which Argo Rollouts notes the generation of the workload that a Rollout takes its template from.
/// <https://github.com/argoproj/argo-rollouts/blob/v1.8.3/utils/annotations/annotations.go>
pub const WORKLOAD_GENERATION: &str = "rollout.argoproj.io/workload-generation";

/// The label by which a kind tells the pods of one template from those of another.
pub const fn template_label(kind: Kind) -> &'static str {
    match kind {
        // <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label>
        Kind::Deployment => "pod-template-hash",
        Kind::StatefulSet | Kind::DaemonSet => "controller-revision-hash",
        // <https://argoproj.github.io/argo-rollouts/features/bluegreen/#activeservice>
        Kind::Rollout => "rollouts-pod-template-hash",
        Kind::Custom(kind) => kind.says().hash_label.as_str(),
    }
}

impl Report {
    /// What is judged.
    pub fn reported(&self) -> Reported<'_> {
        Reported {
            generation: self.generation,
            observed_generation: self.observed_generation,
            deleting: self.deleting,
            replicas: self.own.replicas,
            says: &self.own.says,
            refused: self.own.refused.as_deref(),
            starting: self.own.starting,
        }
    }
}

/// Reads an object of a kind. Of its metadata, only what is named here.
///
/// # Errors
/// When a field that is used has another type than its kind gives it.
pub fn read(kind: Kind, object: Object<'_>) -> Result<Report, Unreadable> {
    let generation = object.number("/metadata/generation")?.unwrap_or_default();
    Ok(Report {
        generation,
        observed_generation: match kind {
            Kind::Rollout => argo_rollout::observed_generation(object)?,
            Kind::Custom(_) => custom::observed_generation(object, generation)?,
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => object.observed_generation()?,
        }
        .unwrap_or_default(),
        deleting: object.at("/metadata/deletionTimestamp").is_some(),
        own: match kind {
            Kind::Deployment => deployment::read(object)?,
            Kind::StatefulSet => stateful_set::read(object)?,
            Kind::DaemonSet => daemon_set::read(object)?,
            Kind::Rollout => argo_rollout::read(object)?,
            Kind::Custom(kind) => custom::read(kind, object),
        },
    })
}

/// How long pods may take that are replaced one after another: each a minute, and as long as it has to be ready. Neither kind has a
/// deadline in its spec.
fn one_by_one(object: Object<'_>, pods: u32) -> Result<Option<Duration>, Unreadable> {
    const POD_SECONDS: u64 = 60;
    let each = POD_SECONDS.saturating_add(object.count("/spec/minReadySeconds")?.into());
    Ok(Some(Duration::from_secs(each.saturating_mul(pods.into()))))
}

/// The counts of pods of a kind whose spec says how many it wants.
fn counted(object: Object<'_>) -> Result<Replicas, Unreadable> {
    Ok(Replicas {
        desired: wanted(object)?,
        total: object.count("/status/replicas")?,
        updated: object.count("/status/updatedReplicas")?,
        ready: object.count("/status/readyReplicas")?,
        available: object.count("/status/availableReplicas")?,
    })
}

/// The pods that its spec wants: 1 where it does not say.
fn wanted(object: Object<'_>) -> Result<u32, Unreadable> {
    const AT: &str = "/spec/replicas";
    if object.at(AT).is_some() { object.count(AT) } else { Ok(1) }
}
