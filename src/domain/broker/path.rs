//! One board, and what is still to be done there: our records to be posted, our beat, the news to be read.
//!
//! Nothing here waits for another board. What has been posted is not kept: it is read from the ledger again at the start, and
//! whenever the board turns out to have lost it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use super::doubts::Rejections;
use super::pace::Pace;
use super::{BACKOFF, Effect};
use crate::board::{AGAIN_MAX, Cursor, Interest, News, POSTINGS_MAX, Posted, Posting};
use crate::call::Call;
use crate::id::{Member, Seq, WorkloadId};
use crate::machine::Timestamp;
use crate::record::{Phase, Record};
use crate::retry;
use crate::roster::Beat;

/// How often a board is read when nobody says that there is news, give or take [`READ_SPREAD_MS`]: what a board has lost is
/// posted again that soon (fault R2).
const READ_EVERY_MS: u64 = 5_000;

/// Half of how far apart the polls of the members are spread, in milliseconds.
const READ_SPREAD_MS: u64 = 1_000;

/// Answers that are read one right after the other: 50,000 records, as after a start. Who changes records faster than they are read
/// has us read no more than that without a pause.
const ANSWERS_MAX: u32 = 100;

/// How often a server is asked again who it is: an address may come to lead to another one.
const IDENTIFY_EVERY: Duration = Duration::from_secs(300);

/// Records that may wait for a board that does not take them. Beyond that they are read from the ledger again when it does: at
/// 1 KiB for a record in flight, 1 MiB for each board.
const WAITING_MAX: usize = 1_000;

/// Records that cannot be kept on a board and are told of.
const REFUSED_MAX: usize = 20;

/// One board. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Path {
    pub(super) name: String,
    /// Which server answers there, as of the last answer; `None` while it does not.
    pub(super) identity: Option<String>,
    /// The path that leads to the same server. This one is not used then.
    pub(super) same_as: Option<usize>,
    /// The server was asked who it is, and answered or failed to.
    pub(super) tried: bool,
    /// When a call of any kind last succeeded.
    pub(super) answered: Option<Timestamp>,
    pub(super) identify: Call,
    pub(super) read: Call,
    pub(super) write: Call,
    /// Copies that were not believed.
    pub(super) rejected: Rejections,
    /// Members whose beats there were not believed lately, why, and when.
    pub(super) disbelieved: BTreeMap<Member, (String, Timestamp)>,
    /// Records that cannot be kept there, and why.
    pub(super) refused: BTreeMap<WorkloadId, String>,
    /// Everything is to be posted.
    pub(super) refill: bool,
    /// We have left a beat there.
    pub(super) beaten: bool,
    /// We had when it was last begun to be read: an answer may be older than what we left meanwhile.
    pub(super) beaten_before: bool,
    cursor: Cursor,
    /// Members whose records are to be read from the beginning.
    rewound: BTreeSet<Member>,
    /// There was news while it was being read.
    woken: bool,
    pace: Pace,
    /// Answers in a row that were not all there was.
    answers: u32,
    reads: u32,
    /// Workloads whose copies are all to be read, wherever the cursor is.
    again: BTreeSet<WorkloadId>,
    /// Those of them that are being read.
    reading: Vec<WorkloadId>,
    pending: BTreeMap<WorkloadId, Posting>,
    /// What is being posted.
    posting: Vec<(WorkloadId, Posting)>,
    /// The workload that was tried last. Those after it are next, so that one that cannot be posted keeps no other from it.
    last: Option<WorkloadId>,
    /// How many are posted at once; fewer while it fails.
    batch: usize,
    beat: Option<Box<Beat>>,
}

impl Path {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            identity: None,
            same_as: None,
            tried: false,
            answered: None,
            identify: Call::due(Timestamp::default()),
            read: Call::due(Timestamp::default()),
            write: Call::due(Timestamp::default()),
            rejected: Rejections::default(),
            disbelieved: BTreeMap::new(),
            refused: BTreeMap::new(),
            refill: true,
            beaten: false,
            beaten_before: false,
            cursor: Cursor::default(),
            rewound: BTreeSet::new(),
            woken: false,
            pace: Pace::default(),
            answers: 0,
            reads: 0,
            again: BTreeSet::new(),
            reading: Vec::new(),
            pending: BTreeMap::new(),
            posting: Vec::new(),
            last: None,
            batch: POSTINGS_MAX,
            beat: None,
        }
    }

    /// What can be done now, in a group with these members, or alone. In a group servers are asked who they are.
    pub(super) fn work(&mut self, index: usize, now: Timestamp, members: Option<&BTreeSet<Member>>) -> Vec<Effect> {
        let mut effects = Vec::new();
        effects.extend(self.rejected.tell(index, now));
        if members.is_some() && self.identify.is_due(now) {
            self.identify.asked();
            effects.push(Effect::Identify(index));
        }
        if self.same_as.is_some() {
            return effects;
        }
        if self.read.is_due(now) {
            self.read.asked();
            self.pace.made(now);
            self.woken = false;
            self.beaten_before = self.beaten;
            self.reading = self.again.iter().take(AGAIN_MAX).cloned().collect();
            let again = self.reading.iter().cloned().collect();
            let interest = Interest { members: Some(members.cloned().unwrap_or_default()), again };
            effects.push(Effect::Read(index, self.cursor.clone(), interest));
        }
        if self.write.is_due(now) {
            if let Some(beat) = self.beat.take() {
                self.write.asked();
                effects.push(Effect::Beat(index, beat));
            } else if !self.pending.is_empty() {
                self.write.asked();
                self.posting = self.next_batch();
                effects.push(Effect::Post(index, self.posting.clone()));
            }
        }
        effects
    }

    pub(super) fn next_deadline(&self, grouped: bool) -> Option<Timestamp> {
        let identify = self.identify.deadline().filter(|_| grouped);
        let identify = identify.into_iter().chain(self.rejected.deadline()).min();
        if self.same_as.is_some() {
            return identify;
        }
        let write = self.write.deadline().filter(|_| self.beat.is_some() || !self.pending.is_empty());
        identify.into_iter().chain(self.read.deadline()).chain(write).min()
    }

    /// A record, or its end, is to be posted; only its newest state is.
    pub(super) fn post(&mut self, workload: &WorkloadId, posting: Posting) {
        self.pending.insert(workload.clone(), posting);
        self.limit();
    }

    /// Everything the ledger holds is to be posted, except where something newer waits already.
    pub(super) fn fill<'a>(&mut self, postings: impl Iterator<Item = (&'a WorkloadId, Posting)>) {
        for (workload, posting) in postings {
            self.pending.entry(workload.clone()).or_insert(posting);
        }
    }

    /// The next beat to be left; one that was not left yet is out of date.
    pub(super) fn leave(&mut self, beat: Box<Beat>) {
        self.beat = Some(beat);
    }

    /// How many records wait.
    pub(super) fn waiting(&self) -> usize {
        self.pending.len() + self.posting.len()
    }

    /// Whether the ledger is to be read for it. Not while it fails: what waits is tried first.
    pub(super) fn wants_refill(&self) -> bool {
        self.refill && self.same_as.is_none() && !self.write.is_failing()
    }

    /// Somebody says that there is news.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.woken = true;
        self.read.hurry(self.pace.next(now));
    }

    /// All copies of this workload are to be read, at once.
    pub(super) fn ask_again(&mut self, now: Timestamp, workload: &WorkloadId) {
        self.again.insert(workload.clone());
        self.read.hurry(now);
    }

    /// A member's records are to be read from the beginning.
    pub(super) fn rewind(&mut self, now: Timestamp, member: &Member) {
        self.cursor.0.remove(member);
        self.rewound.insert(member.clone());
        self.wake(now);
    }

    /// It was read up to the cursor of this answer.
    pub(super) fn was_read(&mut self, now: Timestamp, News { cursor, more, again, .. }: &News) {
        let mut cursor = cursor.clone();
        for workload in std::mem::take(&mut self.reading).iter().take(*again) {
            self.again.remove(workload);
        }
        for member in std::mem::take(&mut self.rewound) {
            cursor.0.remove(&member);
        }
        self.cursor = cursor;
        self.reads = self.reads.wrapping_add(1);
        let spread = retry::jitter(&self.name, self.reads) % (2 * READ_SPREAD_MS);
        let wait = Duration::from_millis(READ_EVERY_MS - READ_SPREAD_MS + spread);
        self.answers = if *more { self.answers.saturating_add(1) } else { 0 };
        let due = match () {
            () if (*more && self.answers < ANSWERS_MAX) || !self.again.is_empty() => now,
            () if *more || self.woken => self.pace.next(now),
            () => now.after(wait),
        };
        self.answered = Some(now);
        self.read.answered_until(due);
    }

    /// It could not be read.
    pub(super) fn read_failed(&mut self, now: Timestamp, why: String) {
        self.read.failed(BACKOFF.from(now, &self.name), why);
        // The next answer there may come from another server.
        self.identity = None;
        self.identify.hurry(now);
    }

    /// The server said who it is, or did not.
    pub(super) fn identified(&mut self, now: Timestamp, identity: Result<String, String>) {
        self.tried = true;
        match identity {
            Ok(identity) => {
                self.identity = Some(identity);
                self.answered = Some(now);
                self.identify.answered_until(now.after(IDENTIFY_EVERY));
            }
            Err(why) => {
                self.identity = None;
                self.identify.failed(BACKOFF.from(now, &self.name), why);
            }
        }
    }

    /// What was posted was taken in; returns what turned out to be older than what the board has.
    pub(super) fn was_posted(&mut self, now: Timestamp, answers: Vec<Posted>) -> Vec<(WorkloadId, Seq, u64)> {
        self.written(now);
        self.batch = self.batch.saturating_mul(2).min(POSTINGS_MAX);
        let mut newer = Vec::new();
        let posted = std::mem::take(&mut self.posting);
        for ((workload, _), answer) in posted.into_iter().zip(answers) {
            self.refused.remove(&workload);
            match answer {
                Posted::Current => {}
                Posted::Newer(seq, revision) => newer.push((workload, seq, revision)),
                Posted::Refused(why) if self.refused.len() < REFUSED_MAX => drop(self.refused.insert(workload, why)),
                Posted::Refused(_) => {}
            }
        }
        newer
    }

    /// A write succeeded; the next one is due.
    pub(super) fn written(&mut self, now: Timestamp) {
        self.answered = Some(now);
        self.write.answered_until(now);
    }

    /// It is not known whether what was written is there.
    pub(super) fn not_written(&mut self, now: Timestamp, why: String) {
        self.write.failed(BACKOFF.from(now, &self.name), why);
    }

    /// It is not known whether what was posted is there.
    pub(super) fn post_failed(&mut self, now: Timestamp, why: String) {
        self.not_written(now, why);
        // If it is because of one of them, the others get through the sooner the fewer go with it.
        self.batch = (self.batch.min(self.posting.len()) / 2).max(1);
        for (workload, posting) in std::mem::take(&mut self.posting) {
            // Something newer may have come meanwhile.
            self.pending.entry(workload).or_insert(posting);
        }
        self.limit();
    }

    /// Leaves to the ledger what is too much to keep while the board does not take it. What was removed or never existed is
    /// not in the ledger, so that is kept; it is small.
    fn limit(&mut self) {
        if !self.write.is_failing() || self.pending.len() <= WAITING_MAX {
            return;
        }
        let mut kept = 0;
        self.pending.retain(|_, posting| {
            let in_ledger = matches!(posting, Posting::Show(record) if record.phase != Phase::Absent);
            kept += usize::from(in_ledger);
            !in_ledger || kept <= WAITING_MAX
        });
        self.refill = true;
    }

    fn next_batch(&mut self) -> Vec<(WorkloadId, Posting)> {
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.pending.range::<WorkloadId, _>((after, Bound::Unbounded)).map(|(workload, _)| workload);
        let wanted = self.batch.min(self.pending.len());
        let batch: Vec<WorkloadId> = later.chain(self.pending.keys()).take(wanted).cloned().collect();
        self.last = batch.last().cloned();
        batch.into_iter().filter_map(|workload| Some((workload.clone(), self.pending.remove(&workload)?))).collect()
    }
}

/// What is posted of a record.
pub(super) fn show(record: &Record) -> Posting {
    Posting::Show(Box::new(record.clone()))
}
