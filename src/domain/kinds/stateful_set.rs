//! `apps/v1` StatefulSet. <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies>

use crate::object::Object;
use crate::reported::{Replicas, Says};
use crate::{Newest, Own, counted, one_by_one, template_label};
use kernel::id::Kind;
use kernel::unreadable::Unreadable;

const PARTITION: &str = "/spec/updateStrategy/rollingUpdate/partition";

pub(super) fn read(object: Object<'_>) -> Result<Own, Unreadable> {
    let replicas = counted(object)?;
    // `currentRevision` is not asked for: it can lag behind for ever (<https://github.com/kubernetes/kubernetes/issues/106055>).
    let revision = object.text("/status/updateRevision")?;
    // With OnDelete the former one stays current for ever.
    let is_on_delete = object.text("/spec/updateStrategy/type")? == Some("OnDelete");
    let is_settled = is_on_delete || object.text("/status/currentRevision")? == revision;
    Ok(Own {
        replicas,
        says: match replicas.old() {
            0 => Says::Counts,
            old if is_on_delete => Says::Held(on_delete(Kind::StatefulSet, old, replicas.total, revision)),
            _ => partition(object, replicas)?,
        },
        refused: broken(object, replicas)?,
        deadline: one_by_one(object, replicas.desired)?,
        starting: !is_settled && replicas.available < replicas.desired,
        newest: revision.map_or(Newest::Unsaid, |revision| Newest::Labelled(revision.to_owned())),
        stable: None,
    })
}

/// Which pods a partition keeps as they are, once all others are new.
fn partition(object: Object<'_>, replicas: Replicas) -> Result<Says, Unreadable> {
    let partition = object.count(PARTITION)?;
    let pods = partition.min(replicas.desired);
    let all_others_are_new = replicas.updated.saturating_add(pods) >= replicas.desired;
    if pods == 0 || !all_others_are_new || replicas.available < replicas.desired {
        return Ok(Says::Counts);
    }
    let first = object.count("/spec/ordinals/start")?;
    let name = object.text("/metadata/name")?.unwrap_or_default();
    let kept = match pods {
        1 => format!("{name}-{first} as it was"),
        more => format!("{name}-{first} to {name}-{} as they were", first.saturating_add(more - 1)),
    };
    Ok(Says::Held(format!("its partition of {partition} keeps {kept}")))
}

/// Which pods wait to be deleted by a person.
pub(super) fn on_delete(kind: Kind, old: u32, total: u32, newest: Option<&str>) -> String {
    let without =
        newest.map_or_else(String::new, |newest| format!(", those without {}={newest}", template_label(kind)));
    format!("its update strategy is OnDelete: {old} of {total} pods stay as they are until they are deleted{without}")
}

/// The controller replaces pods one by one and waits for each; a pod of a former template that is not ready it waits for, too, and
/// for ever (<https://github.com/kubernetes/kubernetes/issues/67250>).
fn broken(object: Object<'_>, replicas: Replicas) -> Result<Option<String>, Unreadable> {
    let unready = replicas.total.saturating_sub(replicas.ready);
    let is_ordered = object.text("/spec/podManagementPolicy")? != Some("Parallel");
    // More than the new ones alone can be.
    let is_old = replicas.old() > 0 && unready > replicas.updated;
    // Nobody wants those replaced that a partition keeps.
    let is_kept = object.count(PARTITION)? > 0;
    Ok((is_ordered && is_old && !is_kept).then(|| {
        "a pod of a former template is not ready; if it stays so, delete it, for Kubernetes does not replace it by itself \
         (kubernetes/kubernetes#67250)"
            .to_owned()
    }))
}
