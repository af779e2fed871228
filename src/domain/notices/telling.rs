//! Notices on their way from a machine to the outbox: each is told until it is there.
//!
//! Loose notices are in no record: those that the record has no room for, and those about waits. The former are told after the
//! write without them, and a crash before that loses them; the next life repeats the others.

use std::collections::BTreeMap;

use crate::kernel::call::Call;
use crate::kernel::id::NoticeId;
use crate::kernel::machine::Timestamp;
use crate::notices::notice::Notice;

/// What is being told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Telling {
    calls: BTreeMap<NoticeId, Call>,
    /// Notices that are told without being in the record.
    loose: BTreeMap<NoticeId, Notice>,
}

impl Telling {
    /// Of these notices and the loose ones, those that are to be told now.
    pub(crate) fn tell<'a>(&'a mut self, now: Timestamp, notices: impl Iterator<Item = &'a Notice>) -> Vec<Notice> {
        self.calls.values_mut().for_each(|call| call.wake(now));
        let mut due = Vec::new();
        for notice in notices.chain(self.loose.values()) {
            let call = self.calls.entry(notice.id.clone()).or_default();
            if call.is_due(now) {
                call.asked();
                due.push(notice.clone());
            }
        }
        due
    }

    /// Tells a notice without a record that has it.
    pub(crate) fn add(&mut self, notice: Notice) {
        self.loose.entry(notice.id.clone()).or_insert(notice);
    }

    /// It was told, or is on its way in a durable outbox.
    pub(crate) fn told(&mut self, id: &NoticeId) {
        self.calls.remove(id);
        self.loose.remove(id);
    }

    /// It was not, for this reason.
    pub(crate) fn failed(&mut self, id: &NoticeId, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.failed(again, why);
        }
    }

    /// Whether this notice is told without being in the record.
    pub(crate) fn is_loose(&self, notice: &Notice) -> bool {
        self.loose.get(&notice.id) == Some(notice)
    }

    /// Whether all loose notices were told.
    pub(crate) fn is_done(&self) -> bool {
        self.loose.is_empty()
    }

    /// Those that are not told yet.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }
}
