//! Reports of copies that are rejected, or prove nothing. Anyone who reaches a board can write them in a loop, so
//! one report covers many.

use std::time::Duration;

use super::{Broker, Effect};
use kernel::machine::Timestamp;

/// How often we report rejected copies of one board.
const REJECTED_EVERY: Duration = Duration::from_secs(60);

/// How often we repeat that there are newer copies of our own records which prove nothing.
const DOUBTED_EVERY: Duration = Duration::from_secs(3_600);

/// Workloads named in that report.
const NAMED_MAX: usize = 3;

/// Rejected copies of one board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rejections {
    pub(super) all: u64,
    /// The fault of the last of them, and its time.
    pub(super) last: Option<(String, Timestamp)>,
    untold: u64,
    told: Option<Timestamp>,
}

impl Rejections {
    /// These were rejected, each for its reason.
    pub(super) fn add(&mut self, now: Timestamp, rejected: Vec<String>) {
        let number = u64::try_from(rejected.len()).unwrap_or(u64::MAX);
        self.all = self.all.saturating_add(number);
        self.untold = self.untold.saturating_add(number);
        self.last = rejected.into_iter().next_back().map(|why| (why, now)).or(self.last.take());
    }

    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let due = self.told.map_or_else(Timestamp::default, |told| told.after(REJECTED_EVERY));
        (self.untold > 0).then_some(due)
    }

    /// Reports them, if that is due.
    pub(super) fn tell(&mut self, index: usize, now: Timestamp) -> Option<Effect> {
        let (why, _) = self.last.as_ref().filter(|_| self.deadline().is_some_and(|due| due <= now))?;
        self.told = Some(now);
        Some(Effect::TellRejected(index, std::mem::take(&mut self.untold), why.clone()))
    }
}

/// The reports of our own copies that prove nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Doubts {
    told: Option<Timestamp>,
}

impl Broker {
    /// That boards have newer copies of our own records, which prove nothing.
    pub(super) fn doubt(&self) -> Option<String> {
        let number = self.regressions.doubted().count();
        let named: Vec<String> =
            self.regressions.doubted().take(NAMED_MAX).map(|name| self.local(name).display_name()).collect();
        (number > 0).then(|| {
            format!(
                "the Redis servers of the group have newer copies of {number} of our records than our ledger ({}{}): somebody \
                 else has written them, or our ledger was set back. Without group.key_file nothing proves either, so nothing \
                 is held, and later rollouts are counted above them; if the ledger was restored from a backup, run allclear \
                 ledger adopt, and see that only members can write to the servers",
                named.join(", "),
                if number > NAMED_MAX { ", …" } else { "" }
            )
        })
    }

    /// That copies of others found no place.
    pub(super) fn overfull(&self) -> Option<String> {
        let number = self.peer_records.too_many;
        (number > 0).then(|| {
            format!(
                "the copies of the members' records were more than are kept, {number} times: those of the first workloads by \
                 name were kept, and the others follow as these come to an end; if so many are not in flight, see who can \
                 write to the group's Redis servers"
            )
        })
    }

    /// Reports it, once and then every [`DOUBTED_EVERY`].
    pub(super) fn mind_doubts(&mut self, now: Timestamp) -> Option<Effect> {
        let words = self.doubt()?;
        let is_due = self.doubts.told.is_none_or(|told| now.since(told) >= DOUBTED_EVERY);
        is_due.then(|| {
            self.doubts.told = Some(now);
            Effect::TellDoubt(words)
        })
    }
}
