//! The beats of one other member: which beat is news, and which of its processes and ledgers counts.
//!
//! No clock orders beats: one that is set back would silence its member for as long (fault C1). A *life* is one start of the
//! process over one ledger. Within it a counter orders. The first beat of an unknown life is news, and the one before
//! it is replaced; for another ledger that is not enough, because the records of the old one stop counting with it.
//!
//! A board that comes back shows old beats, of lives that we knew and of some that we did not. None of those counts on:
//! only a process that lives writes a later beat where we saw an earlier one. So another ledger, and a life that was replaced,
//! take the place of the present one when they are seen to count on, on one board, and the present one is not meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BEAT_TTL, Heartbeat, TURNS_MIN, TWINS_FOR};
use kernel::id::Origin;
use kernel::machine::Timestamp;

/// Lives of one member that are remembered. A board keeps a beat for 30 s, in which a process that crashes again and again
/// starts a few times; a forgotten life counts as unknown.
const LIVES_MAX: usize = 64;

/// How long after it was left a beat is read at most, and the answer to that read.
const READ_WITHIN: Duration = Duration::from_secs(11);

/// One start of a process over one ledger. Older programs go on with one name after their ledger was made anew.
type Life = (Origin, String);

/// Where in its life a beat is: by the counter, or in beats of older programs, which have none, by their own clock.
type Age = (u64, i64);

/// The state of one other member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerStatus {
    /// The newest beat of the life that counts.
    pub beat: Heartbeat,
    /// When the member's last new beat arrived, from any of its lives.
    pub at: Timestamp,
    lives: BTreeMap<Life, Heard>,
    /// The count of lives seen so far.
    number: u64,
    /// The ledger of the last new beat, and the times at which that ledger changed.
    last: Origin,
    turns: Vec<Timestamp>,
}

/// The beats of one life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Heard {
    newest: Age,
    at: Timestamp,
    /// Beats of it that were news; two are as good as more.
    beats: u32,
    /// Its place in the order in which lives were first seen, from 0.
    number: u64,
    /// The age that each board has shown of it since the last beat that counted.
    shown: BTreeMap<usize, Age>,
}

/// The news in a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brought {
    Nothing,
    /// Something newer of the same ledger.
    News,
    /// The first beat, or one of another ledger than before: from now on that one's records count.
    Ledger,
}

fn life(beat: &Heartbeat) -> Life {
    (beat.origin.clone(), beat.boot.clone())
}

fn age(beat: &Heartbeat) -> Age {
    (beat.count, if beat.count == 0 { beat.at_ms } else { 0 })
}

impl PeerStatus {
    /// Of a member whose first beat this board just showed.
    pub(super) fn new(now: Timestamp, board: usize, beat: Heartbeat) -> Self {
        let heard =
            Heard { newest: age(&beat), at: now, beats: 1, number: 0, shown: BTreeMap::from([(board, age(&beat))]) };
        let lives = BTreeMap::from([(life(&beat), heard)]);
        Self { last: beat.origin.clone(), at: now, lives, number: 1, turns: Vec::new(), beat }
    }

    /// When it left what we have read last, in words: a beat is left every 5 s and read at most 6 s later, and one that we found at
    /// our start may have been there for as long as a board keeps it.
    pub fn heard(&self, now: Timestamp) -> String {
        let age = now.since(self.at);
        let is_first = self.number == 1 && self.lives.values().all(|heard| heard.beats == 1);
        let most = age + if is_first { BEAT_TTL } else { READ_WITHIN };
        let step = [20, 40, 60].into_iter().find(|seconds| most.as_secs() <= *seconds);
        step.map_or_else(
            || format!("not heard from for {} s at least", age.as_secs() / 10 * 10),
            |seconds| format!("heard from in the last {seconds} s"),
        )
    }

    /// Takes in a beat that a board shows.
    pub(super) fn hear(&mut self, now: Timestamp, board: usize, beat: Heartbeat) -> Brought {
        let (life_of_it, age) = (life(&beat), age(&beat));
        let counts = life_of_it == life(&self.beat);
        let never_heard = !self.lives.contains_key(&life_of_it);
        let number = self.number;
        let heard = self.lives.entry(life_of_it).or_insert_with(|| Heard { number, ..Heard::default() });
        let shown_before = heard.shown.insert(board, age);
        if !never_heard && age <= heard.newest {
            return Brought::Nothing;
        }
        (heard.newest, heard.at) = (age, now);
        heard.beats = heard.beats.saturating_add(1).min(2);
        let counts_on = shown_before.is_some_and(|before| before < age);
        self.number = number.saturating_add(u64::from(never_heard));
        self.limit();
        self.take_turns(now, &beat.origin);
        self.at = now;
        let same_ledger = beat.origin == self.beat.origin;
        if !(counts || counts_on || (never_heard && same_ledger)) {
            return Brought::Nothing;
        }
        self.lives.values_mut().for_each(|heard| heard.shown.clear());
        self.beat = beat;
        if same_ledger { Brought::News } else { Brought::Ledger }
    }

    /// Notes a change of the ledger that beats come from.
    fn take_turns(&mut self, now: Timestamp, origin: &Origin) {
        if self.last != *origin {
            self.last = origin.clone();
            self.turns.push(now);
            self.turns.retain(|at| now.since(*at) <= TWINS_FOR);
        }
    }

    /// The ledgers that take turns under this name, if several do.
    pub(super) fn twins(&self, now: Timestamp) -> Option<Vec<&Origin>> {
        let turns = self.turns.iter().filter(|at| now.since(**at) <= TWINS_FOR).count();
        let lately = self.lives.iter().filter(|(_, heard)| now.since(heard.at) <= TWINS_FOR);
        (turns >= TURNS_MIN).then(|| {
            let mut ledgers: Vec<&Origin> = lately.map(|((origin, _), _)| origin).collect();
            ledgers.dedup();
            ledgers
        })
    }

    /// Forgets the lives that began first, beyond [`LIVES_MAX`].
    fn limit(&mut self) {
        if self.lives.len() <= LIVES_MAX {
            return;
        }
        let counts = life(&self.beat);
        let others = self.lives.iter().filter(|(life, _)| **life != counts);
        if let Some(first) = others.min_by_key(|(_, heard)| heard.number).map(|(life, _)| life.clone()) {
            self.lives.remove(&first);
        }
    }
}
