//! What all members, ourselves included, last showed of workloads whose rollout has ended here: so that people see how it ended in every
//! cluster.
//!
//! Nothing is decided by it, and it asks no board for anything: it keeps what is read anyway, within bounds, and a restart begins anew.

use std::collections::BTreeMap;

use crate::agreement::board::{Heard, Posting};
use crate::records::record::Published;
use crate::records::record_codec::{decode_published, encode_published};
use kernel::id::{Member, Seq, WorkloadId};

/// Workloads whose last copies are kept: as many as the board shows after they have moved.
const WORKLOADS_MAX: usize = 50;

/// Bytes of these copies: 4,000 records at 1 KiB. The oldest go first.
const BYTES_MAX: usize = 4 << 20;

/// A copy as it was published; its state orders it. One that was taken back is empty: an older board cannot bring it back.
type Copy = ((Seq, u64), Box<str>);

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lately {
    copies: BTreeMap<WorkloadId, BTreeMap<Member, Copy>>,
    /// The same workloads, the one that ended last at the end.
    order: Vec<WorkloadId>,
}

impl Lately {
    /// Keeps what was known of a workload when its rollout here ended.
    pub(super) fn keep(&mut self, workload: &WorkloadId, known: impl IntoIterator<Item = (Member, Published)>) {
        self.leave(workload);
        let copy = |(member, published): (Member, Published)| {
            let text = encode_published(&published).ok()?;
            Some((member, (published.state(), text.into_boxed_str())))
        };
        let copies: BTreeMap<Member, Copy> = known.into_iter().filter_map(copy).collect();
        if copies.is_empty() {
            return;
        }
        self.copies.insert(workload.clone(), copies);
        self.order.push(workload.clone());
        self.limit();
    }

    /// Takes in what a board shows of a workload that is kept.
    pub(super) fn hear(&mut self, Heard { member, workload, said, .. }: &Heard) {
        let Some(copies) = self.copies.get_mut(workload) else { return };
        // Of one state, a removal is the newer.
        let is_newer = |(state, text): &Copy| *state > said.state() || *state == said.state() && text.is_empty();
        if copies.get(member).is_some_and(is_newer) {
            return;
        }
        match said {
            Posting::Show(published) => {
                let Ok(text) = encode_published(published) else { return };
                copies.insert(member.clone(), (published.state(), text.into_boxed_str()));
            }
            Posting::Forget(..) => drop(copies.insert(member.clone(), (said.state(), Box::default()))),
        }
        self.limit();
    }

    /// What a member last showed of a workload.
    pub(super) fn of(&self, workload: &WorkloadId, member: &Member) -> Option<Published> {
        let (_, text) = self.copies.get(workload)?.get(member).filter(|(_, text)| !text.is_empty())?;
        decode_published(text.as_bytes()).ok()
    }

    pub(super) fn workloads(&self) -> impl Iterator<Item = &WorkloadId> {
        self.copies.keys()
    }

    /// A rollout follows this workload again, or it is gone.
    pub(super) fn leave(&mut self, workload: &WorkloadId) {
        if self.copies.remove(workload).is_some() {
            self.order.retain(|one| one != workload);
        }
    }

    /// Forgets what a member showed.
    pub(super) fn forget(&mut self, member: &Member) {
        self.copies.values_mut().for_each(|copies| drop(copies.remove(member)));
    }

    fn limit(&mut self) {
        let bytes = |copies: &BTreeMap<WorkloadId, BTreeMap<Member, Copy>>| -> usize {
            copies.values().flat_map(BTreeMap::values).map(|(_, text)| text.len()).sum()
        };
        while self.order.len() > WORKLOADS_MAX || bytes(&self.copies) > BYTES_MAX {
            if self.order.is_empty() {
                return;
            }
            self.copies.remove(&self.order.remove(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::Record;

    fn id(number: usize) -> WorkloadId {
        WorkloadId::deployment("shop", format!("web-{number}"))
    }

    fn record(seq: u64, revision: u64) -> Published {
        Record { revision, ..Record::first(Seq(seq)) }.into()
    }

    fn heard(member: &str, said: Posting) -> Heard {
        Heard { member: member.into(), workload: id(0), origin: "o2".into(), said }
    }

    fn seq(lately: &Lately, member: &str) -> Option<u64> {
        lately.of(&id(0), &member.into()).map(|published| published.seq().0)
    }

    #[test]
    fn what_is_heard_later_counts_and_what_is_older_does_not() {
        let mut lately = Lately::default();
        lately.hear(&heard("eu-2", Posting::Show(record(9, 1))));
        assert_eq!(seq(&lately, "eu-2"), None, "it is not kept");
        lately.keep(&id(0), [("eu-1".into(), record(4, 2)), ("eu-2".into(), record(7, 2))]);
        lately.hear(&heard("eu-2", Posting::Show(record(8, 1))));
        lately.hear(&heard("eu-2", Posting::Show(record(7, 9))));
        assert_eq!((seq(&lately, "eu-1"), seq(&lately, "eu-2")), (Some(4), Some(8)));
        lately.hear(&heard("eu-2", Posting::Forget(Seq(8), 2)));
        lately.hear(&heard("eu-2", Posting::Show(record(8, 1))));
        assert_eq!((seq(&lately, "eu-1"), seq(&lately, "eu-2")), (Some(4), None), "an older board brings nothing back");
        lately.forget(&"eu-1".into());
        assert_eq!(seq(&lately, "eu-1"), None);
    }

    #[test]
    fn the_workloads_that_ended_first_make_room() {
        let mut lately = Lately::default();
        for number in 0..WORKLOADS_MAX {
            lately.keep(&id(number), [("eu-1".into(), record(1, 1))]);
        }
        lately.keep(&id(0), [("eu-1".into(), record(2, 1))]);
        lately.keep(&id(WORKLOADS_MAX), [("eu-1".into(), record(1, 1))]);
        assert_eq!(lately.workloads().count(), WORKLOADS_MAX);
        assert_eq!((seq(&lately, "eu-1"), lately.of(&id(1), &"eu-1".into())), (Some(2), None), "it ended once more");
        lately.leave(&id(0));
        assert_eq!((seq(&lately, "eu-1"), lately.order.len()), (None, WORKLOADS_MAX - 1));
    }
}
