//! What the watcher tells of a workload that has no rollout actor to tell it: in no record, once, and the log has it.

use crate::actors::tell_at_once;
use domain::id::{Seq, WorkloadId};
use domain::notice::{Kind, Notice};

use super::DeploymentWatcher;

impl DeploymentWatcher {
    /// A notice that is in no record. When is part of its id: what happens again is another one.
    pub(super) fn notice(&self, id: &WorkloadId, kind: Kind, message: String) -> Notice {
        let at_ms = self.surroundings.ports.clock.wall_ms();
        let rollout = format!("{}/{id}", self.origin.0);
        Notice {
            id: Notice::id_of(&rollout, kind, &format!("watcher/{at_ms}")),
            kind,
            at_ms,
            subject: id.clone().into(),
            seq: self.records.get(id).map_or_else(Seq::default, |record| record.seq),
            rollout,
            change: String::new(),
            message,
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
        }
    }

    /// Tells it, once: the log has it.
    pub(super) fn tell(&self, notice: Notice, uid: String) -> impl Future<Output = ()> + use<> {
        let (surroundings, to) = (self.surroundings.clone(), self.directory.tell_notice.clone());
        async move { tell_at_once(&surroundings, &to, notice, &uid).await }
    }
}
