//! The name of a record's workload in the group (decision 55).

use super::Record;
use kernel::id::{Seq, WorkloadId};

impl Record {
    /// Its name in its group; `own` is its name in its cluster.
    pub fn name_in_group<'a>(&'a self, own: &'a WorkloadId) -> &'a WorkloadId {
        self.group_name.as_ref().map_or(own, |alias| &alias.name)
    }

    /// The other name that it goes by and `next`, or nothing in its place, does not: with the last number it had under it.
    pub fn leaves(&self, next: Option<&Self>) -> Option<(WorkloadId, Seq)> {
        let name = &self.group_name.as_ref()?.name;
        let stays = next.and_then(|next| next.group_name.as_ref()).is_some_and(|next| next.name == *name);
        (!stays).then(|| (name.clone(), self.seq))
    }
}
