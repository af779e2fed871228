//! The known state of the workload itself, and the sights that we believe.
//!
//! An object's generation only rises, so of two sights of one object the one with the lower generation is the older and says
//! nothing: watch caches of several API servers differ every day. Unless the cluster was restored from a backup: then the lower
//! one is the present. A watch cannot tell these apart, a consistent read can. Two of them, [`SET_BACK_AFTER`] apart, that show
//! a lower generation than the record has are the truth; the record's is a witness and follows.
//!
//! Also says which condition of its rollout a sight does not meet, because several stages ask for that. Not for what follows; that is
//! `observe`, `barrier` and `vote`.

use std::time::Duration;

use crate::records::record::{Leads, Moved, Phase, Record};
use crate::rollouts::rollout::{Effect, Rollout};
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::machine::Timestamp;
use kernel::watches::horizon::SET_BACK_AFTER;
use kinds::reported::{Standing, Wait};

/// How often at most we write and report a workload's faults. They are for people, and no decision depends on them; so an owner
/// who changes them a hundred times a minute costs two writes and an Event a minute.
const FAULTS_NOTED_EVERY: Duration = Duration::from_secs(60);

/// The known state of the workload itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Sight {
    #[default]
    Unknown,
    Seen(Box<Workload>),
    /// A watch reported it gone; a fresh look must confirm that.
    Missing,
    /// A fresh look says so too.
    Gone,
}

/// The meaning of a workload without a record. The sight that started the machine decides it, and no later one: a
/// rollout that was under way may be complete by then (decision 28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// It was not seen yet, and its scope is not listed, so its first sight decides.
    #[default]
    Open,
    /// Found by a first listing, at rest: nothing has changed.
    Baseline,
    /// Found by a first listing, in the middle of a rollout.
    UnderWay,
    /// All others are on record: it is new, whatever its state.
    New,
}

impl Arrival {
    /// Of a workload without a record, by this sight. `listed`: all others of its scope are on record.
    pub fn of(workload: &Workload, listed: bool) -> Self {
        match (listed, workload.reported().is_under_way()) {
            (true, _) => Self::New,
            (false, true) => Self::UnderWay,
            (false, false) => Self::Baseline,
        }
    }
}

/// A sight had an older generation than the newest known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Doubt {
    /// By a watch: a read must confirm it.
    Shown,
    /// By a consistent read, first at this time.
    Read(Timestamp),
}

/// The workload as it was last seen, and the looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sighting {
    pub(super) sight: Sight,
    /// Its meaning while it has no record.
    pub(super) arrival: Arrival,
    /// An older generation than the newest known was shown.
    doubt: Option<Doubt>,
    look: Call,
    /// Traffic moved to it, and this leads to it now.
    moved: Option<(Moved, Leads)>,
    /// Until when its faults are not noted again. The machine stays that long, to remember it.
    faults_rest: Option<Timestamp>,
}

impl Sighting {
    /// Nothing was seen yet. A workload that is `known` has a record.
    pub(super) fn new(known: bool) -> Self {
        Self { arrival: if known { Arrival::New } else { Arrival::Open }, ..Self::default() }
    }

    /// The newest sight of the workload.
    pub(super) fn workload(&self) -> Option<&Workload> {
        match &self.sight {
            Sight::Seen(workload) => Some(workload),
            Sight::Unknown | Sight::Missing | Sight::Gone => None,
        }
    }

    /// Takes in that traffic moved to it.
    pub(super) fn move_here(&mut self, moved: Moved, leads: Leads) {
        self.moved = Some((moved, leads));
    }

    /// The move that the record does not have yet.
    pub(super) fn moved(&self, record: &Record) -> Option<&(Moved, Leads)> {
        let is_new = |moved: &Moved| record.moved.as_ref().is_none_or(|last| !last.is(moved));
        self.moved.as_ref().filter(|(moved, _)| is_new(moved))
    }

    /// Takes in a sight; returns whether we believe it. One of the same object with an older generation is looked into
    /// instead.
    fn see(&mut self, workload: Box<Workload>, draft: Option<&Record>) -> bool {
        let newest = match &self.sight {
            Sight::Seen(seen) if seen.uid == workload.uid => seen.generation,
            Sight::Seen(_) | Sight::Unknown | Sight::Missing | Sight::Gone => i64::MIN,
        };
        let recorded = draft.filter(|record| record.uid == workload.uid);
        let current = workload.generation >= newest.max(recorded.map_or(i64::MIN, |record| record.generation));
        if current {
            self.sight = Sight::Seen(workload);
            self.doubt = None;
        } else {
            self.doubt.get_or_insert(Doubt::Shown);
        }
        current
    }

    /// Takes in the answer of a consistent read; returns whether we believe it. An older generation counts once a
    /// second read shows it.
    pub(super) fn read(&mut self, now: Timestamp, workload: Box<Workload>, draft: &mut Option<Record>) -> bool {
        let doubt = self.doubt.clone();
        if self.see(workload.clone(), draft.as_ref()) {
            return true;
        }
        match doubt {
            Some(Doubt::Read(since)) if now.since(since) >= SET_BACK_AFTER => {
                draft.iter_mut().for_each(|draft| draft.generation = workload.generation);
                self.sight = Sight::Seen(workload);
                self.doubt = None;
                true
            }
            Some(Doubt::Read(_)) => false,
            Some(Doubt::Shown) | None => {
                self.doubt = Some(Doubt::Read(now));
                false
            }
        }
    }

    /// Takes in what a watch says: a sight, or that the workload is gone. Returns whether it became another object, or none:
    /// reads made before that say nothing any more, in whatever order the answers come.
    pub(super) fn watched(&mut self, workload: Option<Box<Workload>>, draft: Option<&Record>) -> bool {
        let same = match (&self.sight, &workload) {
            (Sight::Seen(seen), Some(workload)) => seen.uid == workload.uid,
            (Sight::Missing | Sight::Gone, None) => true,
            (Sight::Unknown | Sight::Seen(_) | Sight::Missing | Sight::Gone, _) => false,
        };
        if !same {
            self.look.outdate();
        }
        if let (Sight::Seen(_), None) = (&self.sight, &workload) {
            // What comes back under its name is another one.
            self.arrival = Arrival::New;
        }
        match workload {
            Some(workload) => drop(self.see(workload, draft)),
            None if self.sight != Sight::Gone => self.miss(),
            None => {}
        }
        !same
    }

    /// It is reported gone; a look must confirm that.
    pub(super) fn miss(&mut self) {
        self.sight = Sight::Missing;
        self.doubt = None;
    }

    /// Asks for a look, unless one is under way.
    pub(super) fn look(&mut self, now: Timestamp) -> Option<Effect> {
        self.look.is_due(now).then(|| {
            self.look.asked();
            Effect::Look
        })
    }

    /// Takes in the answer to a look, and returns whether it shows the present. If not, we look again.
    pub(super) fn looked(
        &mut self,
        now: Timestamp,
        workload: Option<Box<Workload>>,
        draft: &mut Option<Record>,
        again: impl FnOnce(u32) -> Timestamp,
    ) -> bool {
        if !self.look.is_asked() {
            // It was asked for in an earlier life.
            return false;
        }
        if self.look.is_outdated() {
            self.look.answered();
            return false;
        }
        let current = match workload {
            Some(workload) => self.read(now, workload, draft),
            None => {
                self.sight = Sight::Gone;
                self.arrival = Arrival::New;
                self.doubt = None;
                true
            }
        };
        if current {
            self.look.answered();
        } else {
            self.look.repeat(again);
        }
        current
    }

    /// A look failed, for this reason.
    pub(super) fn failed(&mut self, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        self.look.failed(again, why);
    }

    /// Looks into an older generation, when it is time to.
    pub(super) fn look_into_doubt(&mut self, now: Timestamp) -> Option<Effect> {
        let due = match self.doubt.as_ref()? {
            Doubt::Shown => true,
            Doubt::Read(since) => now.since(*since) >= SET_BACK_AFTER,
        };
        if due { self.look(now) } else { None }
    }

    /// Whether its faults may be noted now; if so, not again for a while.
    pub(super) fn notes_faults(&mut self, now: Timestamp) -> bool {
        let due = self.faults_rest.is_none_or(|until| until <= now);
        if due {
            self.faults_rest = Some(now.after(FAULTS_NOTED_EVERY));
        }
        due
    }

    /// Whether the newest sight is believed, no look is under way, and nothing of it is to be remembered.
    pub(super) fn is_settled(&self) -> bool {
        !self.look.is_asked() && self.doubt.is_none() && self.faults_rest.is_none()
    }

    /// The look at the workload.
    pub(super) fn call(&self) -> &Call {
        &self.look
    }

    /// Ends a pause that is over.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.look.wake(now);
        self.faults_rest = self.faults_rest.filter(|until| *until > now);
    }

    /// When it is looked at again, or faults may be noted. While a look is under way or is paused, that comes before an
    /// older generation is looked into.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let look = match self.doubt.as_ref().filter(|_| self.look.is_idle()) {
            Some(Doubt::Read(since)) => Some(since.after(SET_BACK_AFTER)),
            Some(Doubt::Shown) | None => self.look.deadline(),
        };
        look.into_iter().chain(self.faults_rest).min()
    }
}

impl Rollout {
    /// Whether the present rollout still has, by this look, what it had when its predicate held.
    pub(super) fn still_stands(&mut self, now: Timestamp, workload: &Workload) -> bool {
        match (workload.standing(self.policy.zero_is_complete), self.record.draft.as_ref().map(|draft| draft.seq)) {
            (Standing::GivenUp(_), _) | (_, None) => false,
            (Standing::Complete, _) => true,
            // The answer came to another rollout, which has not stood yet.
            (Standing::Waiting(_), Some(_))
                if self.record.draft.as_ref().is_some_and(|draft| draft.phase != Phase::Complete) =>
            {
                false
            }
            (Standing::Waiting(_), Some(seq)) => {
                // An earlier life has seen it, and does not say with how many pods: those of now are wanted.
                self.barrier.stands(now, seq, Duration::ZERO, workload);
                self.barrier.lacks(now, workload, &self.policy).is_none()
            }
        }
    }

    /// The unmet condition of a rollout whose predicate has held; if this life has not seen it hold, the one of its
    /// sight.
    pub(super) fn misses(&self, now: Timestamp, workload: &Workload) -> Option<Wait> {
        let seq = self.record.draft.as_ref().map(|draft| draft.seq);
        match workload.standing(self.policy.zero_is_complete) {
            Standing::Waiting(_) if seq.is_some_and(|seq| self.barrier.has_stood(seq)) => {
                self.barrier.lacks(now, workload, &self.policy)
            }
            Standing::Waiting(wait) => Some(wait),
            Standing::Complete | Standing::GivenUp(_) => None,
        }
    }
}
