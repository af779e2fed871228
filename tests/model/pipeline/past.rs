//! What has happened, and the promises that it broke. It knows what really was, and judges by that alone.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::PromotionSeq;
use kernel::promise::Promise;
use objects::pipeline::spec::Advance;
use objects::pipeline::status::{Phase, Promotion, Status};
use objects::status::Approval;

use super::world::{Change, How, World, environment, number};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Past {
    pub broken: BTreeSet<Promise>,
    /// Where everything that a promotion rests on really ran this revision when a fresh look was answered.
    pub reads: BTreeSet<(usize, PromotionSeq, u8)>,
    /// Environments that were looked at afresh for a promotion into them.
    pub looked: BTreeSet<(usize, PromotionSeq)>,
    /// Tickets that a person answered.
    pub answered: Vec<String>,
    /// What people chose, by ticket.
    wishes: BTreeMap<String, Wish>,
    /// What an environment is not to get by itself, since a person chose something else.
    passed: [BTreeSet<u8>; 3],
    /// What an environment went back to by itself, and from which revision.
    back: BTreeSet<(usize, u8, u8)>,
    /// Tickets that a promotion was started with.
    used: BTreeSet<String>,
    /// The promotions of each environment: number and revision.
    known: BTreeMap<(usize, PromotionSeq), u8>,
    /// Promotions whose start was sent, in a world with freezes.
    begun: BTreeSet<(usize, PromotionSeq)>,
    /// Requests that were made.
    created: BTreeSet<(usize, PromotionSeq)>,
    /// The revision that each environment's newest promotion completed with, or was closed at.
    ended: [Option<u8>; 3],
    /// What each environment runs, and what those before it have run since the promotion into it was started.
    runs: [u8; 3],
    ran: [BTreeSet<u8>; 3],
}

/// A revision that a person chose for an environment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wish {
    env: usize,
    runs: u8,
    written: String,
    /// The promotion that it became.
    made: Option<PromotionSeq>,
}

fn promotion(status: &Status, env: usize) -> Option<&Promotion> {
    status.environment(&environment(env))?.promotion.as_ref()
}

impl Past {
    pub fn note_truth(&mut self, world: &World, truth: &[u8; 3]) {
        self.runs = *truth;
        for (env, runs) in truth.iter().enumerate() {
            self.ran[env].extend(world.before(env).into_iter().map(|before| truth[before]));
            let is_chosen = |wish: &Wish| wish.env == env && wish.runs == *runs;
            // It has what is newer than all that it was chosen over.
            let went_back = self.back.iter().any(|(of, had, _)| (of, had) == (&env, runs));
            if !self.passed[env].contains(runs) && !self.wishes.values().any(is_chosen) && !went_back {
                self.passed[env].clear();
            }
        }
    }

    /// A person chooses.
    pub fn wish(&mut self, env: usize, runs: u8, ticket: &str, written: &str) {
        // Said twice it is one.
        let wish = Wish { env, runs, written: written.to_owned(), made: None };
        self.wishes.entry(ticket.to_owned()).or_insert(wish);
    }

    /// What was written on the object with this answer.
    pub fn written(&self, ticket: &str) -> Option<String> {
        self.wishes.get(ticket).map(|wish| wish.written.clone())
    }

    /// The answers on the object are this one now. A choice that nobody has seen is gone.
    pub fn wiped_out(&mut self, ticket: &str) {
        self.wishes.retain(|of, wish| of == ticket || wish.made.is_some());
    }

    /// Whether each choice became a promotion.
    pub fn all_taken(&self) -> bool {
        self.wishes.values().all(|wish| wish.made.is_some())
    }

    /// Whether a promotion with this approval is one that a person chose.
    pub fn is_wish(&self, approval: &Option<Approval>) -> bool {
        approval.as_ref().is_some_and(|approval| self.wishes.contains_key(&approval.ticket))
    }

    /// A promotion is in the object for the first time. What a person chose becomes one, with all that was to be there before it held
    /// back.
    fn judge_begun(&mut self, world: &World, env: usize, new: &Promotion) {
        if new.rollback.is_some() {
            let bad = new.from.as_ref().map(number);
            self.promise(Promise::ChoiceStands, bad.is_some() && bad == world.stuck);
            let once = bad.is_some_and(|bad| self.back.insert((env, number(&new.revision), bad)));
            self.promise(Promise::NotPromotedTwice, once);
            self.passed[env].extend(bad);
            return;
        }
        let ticket = new.approval.as_ref().map(|approval| approval.ticket.clone());
        let Some(wish) = ticket.and_then(|ticket| self.wishes.get_mut(&ticket)) else { return };
        let is_first = *wish.made.get_or_insert(new.seq) == new.seq;
        let is_it = (wish.env, wish.runs) == (env, number(&new.revision));
        let chosen = wish.runs;
        self.promise(Promise::ChoiceStands, is_first && is_it);
        let promoted = self.known.iter().filter(|((of, seq), _)| *of == env && *seq < new.seq).map(|(_, runs)| *runs);
        self.passed[env].extend(promoted);
        self.passed[env].insert(self.runs[env]);
        self.passed[env].remove(&chosen);
    }

    fn promise(&mut self, promise: Promise, kept: bool) {
        if !kept {
            self.broken.insert(promise);
        }
    }

    /// A write was sent, by a worker that was told whether test is frozen. What it has begun before goes on.
    pub fn judge_frozen(&mut self, world: &World, sent: &Status, frozen: bool) {
        let started = promotion(sent, 1).filter(|one| one.phase >= Phase::Started && one.started_ms.is_some());
        let Some(started) = started.filter(|_| world.faults.freezes > 0) else { return };
        if self.begun.insert((1, started.seq)) {
            self.promise(Promise::FrozenStartsNothing, !frozen);
        }
    }

    /// A write was sent, by a worker that sees this.
    pub fn judge_sent(&mut self, world: &World, durable: &Status, sent: &Status, shown: &[Option<u8>; 3]) {
        for env in 1..3 {
            let Some(after) = promotion(sent, env) else { continue };
            let before = promotion(durable, env).filter(|before| before.seq == after.seq);
            let was = before.map_or(Phase::Waiting, |before| before.phase);
            if was == after.phase {
                continue;
            }
            match after.phase {
                Phase::Started => self.promise(Promise::UnknownDecidesNothing, shown[env].is_some()),
                Phase::Withdrawn => {
                    let seen = world.before(env).into_iter().any(|before| shown[before].is_some());
                    self.promise(Promise::UnknownDecidesNothing, seen);
                }
                _ => {}
            }
        }
    }

    /// A write is durable, while the spec is the first or the changed one.
    pub fn judge_stored(&mut self, world: &World, changed: bool, before: &Status, after: &Status) {
        for env in 1..3 {
            let seq =
                |status: &Status| status.environment(&environment(env)).map(|known| known.seq).unwrap_or_default();
            self.promise(Promise::SeqsRise, seq(before) <= seq(after));
            let Some(new) = promotion(after, env) else {
                self.promise(Promise::PromotionsInOrder, promotion(before, env).is_none());
                continue;
            };
            let old = promotion(before, env);
            let runs = number(&new.revision);
            if !self.known.contains_key(&(env, new.seq)) {
                self.judge_begun(world, env, new);
            }
            let first = *self.known.entry((env, new.seq)).or_insert(runs);
            let same = old.filter(|old| old.seq == new.seq);
            let rises =
                old.is_none_or(|old| old.seq < new.seq) || same.is_some_and(|old| rank(old.phase) <= rank(new.phase));
            self.promise(Promise::PromotionsInOrder, first == runs && rises);
            let was = same.map_or(Phase::Waiting, |old| old.phase);
            let starts = was == Phase::Waiting && matches!(new.phase, Phase::Started | Phase::Proposed);
            self.promise(Promise::AnswersBelong, !(starts && env == 1 && world.is_frozen(changed)));
            if was != new.phase {
                self.judge_change(world, changed, env, was, new);
            }
        }
    }

    fn judge_change(&mut self, world: &World, changed: bool, env: usize, was: Phase, new: &Promotion) {
        let how = world.how[env - 1];
        let runs = number(&new.revision);
        let is_past_start = |phase| matches!(phase, Phase::Started | Phase::Proposed);
        match new.phase {
            Phase::Started | Phase::Proposed if was == Phase::Waiting => {
                // Step by step it may have been there before, if it only went on since.
                let place = |revision: u8| world.head.iter().position(|one| *one == revision);
                let went_on = |now: u8| world.advance == Advance::Stepwise && place(now) > place(runs);
                let read = |(of, seq, now): &(usize, PromotionSeq, u8)| {
                    (*of, *seq) == (env, new.seq) && (*now == runs || went_on(*now))
                };
                let goes_back = new.rollback.is_some();
                let is_chosen = goes_back || self.is_wish(&new.approval);
                let looked = is_chosen && self.looked.contains(&(env, new.seq));
                // What was never together in staging is no set that anybody wanted.
                let is_set = world.head.contains(&runs);
                self.promise(Promise::RestsOnFreshReads, looked || is_set && self.reads.iter().any(read));
                let yes = new.approval.as_ref().map(|approval| approval.ticket.clone());
                let said = yes.as_ref().is_some_and(|ticket| self.answered.contains(ticket));
                let manual = matches!(how, How::ManualNotice | How::ManualRequest);
                self.promise(Promise::ChoiceStands, said || !self.passed[env].contains(&runs));
                if said && self.passed[env].contains(&runs) {
                    self.passed[env].clear();
                }
                self.promise(Promise::NotPromotedTwice, said || goes_back || self.ended[env] != Some(runs));
                let once = yes.is_none_or(|ticket| said && self.used.insert(ticket));
                self.promise(Promise::YesCountsOnce, once && (said || !manual));
                self.ran[env] = world.before(env).into_iter().map(|before| self.runs[before]).collect();
            }
            Phase::Withdrawn | Phase::Superseded if is_past_start(was) => {
                let left = self.ran[env].iter().any(|ran| *ran != runs);
                self.promise(Promise::StandsUntilLeft, left || changed && world.change != Change::Freeze);
            }
            Phase::Completed | Phase::Abandoned => self.ended[env] = Some(runs),
            _ => {}
        }
    }

    /// A promotion is told to whoever carries it out.
    pub fn judge_told(&mut self, env: usize, seq: PromotionSeq, revision: u8) {
        let first = *self.known.entry((env, seq)).or_insert(revision);
        self.promise(Promise::PromotionsInOrder, first == revision);
    }

    /// A request is made, or an open one becomes this promotion's.
    pub fn judge_created(&mut self, env: usize, seq: PromotionSeq) {
        let first = self.created.insert((env, seq));
        self.promise(Promise::OneRequest, first);
    }
}

/// The order of a promotion's phases, by hand: each leads only to higher ones.
fn rank(phase: Phase) -> u8 {
    match phase {
        Phase::Waiting => 0,
        Phase::Started => 1,
        Phase::Proposed => 2,
        Phase::Landed => 3,
        Phase::Completed | Phase::Superseded | Phase::Withdrawn | Phase::Abandoned => 4,
    }
}
