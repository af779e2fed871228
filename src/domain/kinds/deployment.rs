//! `apps/v1` Deployment.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status>

use std::time::Duration;

use crate::object::{Condition, Object};
use crate::reported::{GivenUp, Says};
use crate::{Newest, Own, counted};
use kernel::unreadable::Unreadable;

/// The reason of a missed progress deadline.
const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// The reasons by which the Deployment controller says that the newest ReplicaSet is not complete, from
/// <https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/deployment/util/deployment_util.go#L66-L100>. Once it was, the
/// reason stays `NewReplicaSetAvailable`, whatever becomes of its pods. A paused or just resumed Deployment says nothing of it.
const NOT_AVAILABLE_YET: [&str; 5] =
    ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ReplicaSetCreateError", DEADLINE_EXCEEDED];

/// `progressDeadlineSeconds` by which Kubernetes says that there is none.
const NO_DEADLINE: u32 = 2_147_483_647;

/// Its default, in seconds.
/// <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#progress-deadline-seconds>
const DEADLINE_DEFAULT: u32 = 600;

pub(super) fn read(object: Object<'_>) -> Result<Own, Unreadable> {
    let progressing = object.condition("Progressing")?;
    Ok(Own {
        replicas: counted(object)?,
        says: match &progressing {
            _ if object.flag("/spec/paused")? => Says::Held("the rollout is paused".to_owned()),
            Some(condition) if condition.reason == DEADLINE_EXCEEDED => {
                Says::GivenUp(GivenUp::DeadlineExceeded { last_update: condition.updated.to_owned() })
            }
            Some(_) | None => Says::Counts,
        },
        refused: object.condition("ReplicaFailure")?.filter(Condition::holds).map(|failure| failure.refusal()),
        starting: progressing.is_some_and(|condition| NOT_AVAILABLE_YET.contains(&condition.reason)),
        deadline: deadline(object)?,
        newest: Newest::Unsaid,
        stable: None,
    })
}

/// How long its pods may take, by the two fields of its spec.
pub(super) fn deadline(object: Object<'_>) -> Result<Option<Duration>, Unreadable> {
    const AT: &str = "/spec/progressDeadlineSeconds";
    let deadline = if object.at(AT).is_some() { object.count(AT)? } else { DEADLINE_DEFAULT };
    let seconds = u64::from(deadline).saturating_add(object.count("/spec/minReadySeconds")?.into());
    Ok((deadline != NO_DEADLINE).then(|| Duration::from_secs(seconds)))
}
