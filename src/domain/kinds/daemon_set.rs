//! `apps/v1` DaemonSet. Its counts are of nodes.
//! <https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/>

use crate::object::Object;
use crate::reported::{Replicas, Says};
use crate::stateful_set::on_delete;
use crate::{Newest, Own, TEMPLATE_GENERATION, one_by_one};
use kernel::id::Kind;
use kernel::unreadable::Unreadable;

pub(super) fn read(object: Object<'_>) -> Result<Own, Unreadable> {
    let replicas = Replicas {
        desired: object.count("/status/desiredNumberScheduled")?,
        total: object.count("/status/currentNumberScheduled")?,
        updated: object.count("/status/updatedNumberScheduled")?,
        ready: object.count("/status/numberReady")?,
        available: object.count("/status/numberAvailable")?,
    };
    let is_on_delete = object.text("/spec/updateStrategy/type")? == Some("OnDelete");
    let old = replicas.old();
    Ok(Own {
        replicas,
        says: match old {
            1.. if is_on_delete => Says::Held(on_delete(Kind::DaemonSet, old, replicas.total, None)),
            _ if replicas.desired == 0 => Says::Held("no node is to run a pod of it".to_owned()),
            _ => Says::Counts,
        },
        deadline: one_by_one(object, replicas.desired)?,
        newest: object
            .text(&format!("/metadata/annotations/{TEMPLATE_GENERATION}"))?
            .map_or(Newest::Unsaid, |number| Newest::Generation(number.to_owned())),
        ..Own::default()
    })
}
