//! Notices on their way from a machine to the outbox: each is sent until it is accepted.
//!
//! Loose notices are in no record: those that the record has no room for, and those about waits. The former are sent
//! after the write without them, and a crash before that loses them; the next life repeats the others.

use std::collections::BTreeMap;

use crate::notice::Notice;
use kernel::call::Call;
use kernel::id::NoticeId;
use kernel::machine::Timestamp;

/// Notices to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Telling {
    calls: BTreeMap<NoticeId, Call>,
    /// Notices that are sent without being in the record.
    loose: BTreeMap<NoticeId, Notice>,
}

impl Telling {
    /// Returns those of these notices and the loose ones that are due now.
    pub fn tell<'a>(&'a mut self, now: Timestamp, notices: impl Iterator<Item = &'a Notice>) -> Vec<Notice> {
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

    /// Adds a notice that is in no record.
    pub fn add(&mut self, notice: Notice) {
        self.loose.entry(notice.id.clone()).or_insert(notice);
    }

    /// It was delivered, or is in a durable outbox.
    pub fn told(&mut self, id: &NoticeId) {
        self.calls.remove(id);
        self.loose.remove(id);
    }

    /// It was not accepted, for this reason.
    pub fn failed(&mut self, id: &NoticeId, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if let Some(call) = self.calls.get_mut(id) {
            call.failed(again, why);
        }
    }

    /// True if this notice is sent without being in the record.
    pub fn is_loose(&self, notice: &Notice) -> bool {
        self.loose.get(&notice.id) == Some(notice)
    }

    /// True if no loose notice is left.
    pub fn is_done(&self) -> bool {
        self.loose.is_empty()
    }

    /// The calls for notices not accepted yet.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.values()
    }
}
