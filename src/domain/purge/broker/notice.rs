//! The notice for a workload that waits while the group is held up.

use super::Broker;
use crate::agreement::roster::Hold;
use kernel::id::WorkloadId;
use kernel::machine::Timestamp;
use kernel::names::image::brief;
use notices::notice::{Kind, Notice};

impl Broker {
    /// The notice for [`super::Effect::TellHeldUp`] and the UID of its object; `None` where we have no record that waits. No
    /// record holds it, so its id contains the wall clock, `at_ms`: a later hold is another notice.
    pub fn notice_of_hold(
        &self,
        now: Timestamp,
        at_ms: i64,
        workload: &WorkloadId,
        hold: &Hold,
    ) -> Option<(Notice, String)> {
        let view = self.view(now, workload);
        let record = view.members.get(&self.identity.member)?.as_ref()?.published.record()?;
        let rollout = format!("{}/{workload}/{}", self.identity.origin, record.seq);
        let notice = Notice {
            id: Notice::id_of(&rollout, Kind::GroupStalled, &format!("held/{}/{at_ms}", hold.reason.name())),
            kind: Kind::GroupStalled,
            at_ms,
            about: workload.clone().into(),
            seq: record.seq,
            rollout,
            change: brief(&record.version),
            message: format!("not purged while the group is held up: {}", hold.words),
        };
        Some((notice, record.uid.clone()))
    }
}
