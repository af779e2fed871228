//! How long a rollout that is complete here waits for the group, and what follows when that is over.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::group::{self, Fate, Known, Verdict};
use crate::domain::id::{Member, Vector, rank};
use crate::domain::machine::Timestamp;
use crate::domain::notice::Kind;
use crate::domain::policy::Choice;
use crate::domain::record::{Outcome, Phase, Record};
use crate::domain::rollout::{ELAPSED_STORED_EVERY, Rollout, words};

impl Rollout {
    /// Lets the clock of a rollout run on while the group has not decided it, and acts on it once when the group's timeout is
    /// over. It is the only duration besides the rollout timeout that becomes a fact, and only under `skip` (decision 8).
    pub(super) fn mind_patience(&mut self, now: Timestamp) {
        if self.is_alone() || self.draft.as_ref().is_none_or(|draft| draft.phase != Phase::Complete) {
            return;
        }
        let undecided = self.undecided();
        let waits = self.is_waiting_for_group(undecided.is_some());
        if waits != self.running_since.is_some() {
            self.keep_time(now, waits);
        }
        if !waits {
            return;
        }
        if self.elapsed(now) < self.policy.group.timeout {
            if self.running_since.is_some_and(|since| now.since(since) >= ELAPSED_STORED_EVERY) {
                self.keep_time(now, true);
            }
            return;
        }
        self.keep_time(now, false);
        let skip = self.policy.group.at_timeout == Choice::Skip;
        match undecided {
            Some((vector, missing)) => self.doubt(now, &vector, &missing),
            None if skip => self.withdraw(now),
            None => self.stall(now),
        }
    }

    /// The open vote for the present rollout, and whose votes are missing.
    fn undecided(&self) -> Option<(Vector, BTreeSet<Member>)> {
        let record = self.durable.as_ref()?;
        let vote = record.vote_for(record.seq)?;
        match group::fate(&self.view, &vote.vector) {
            Fate::Open(missing) => Some((vote.vector.clone(), missing)),
            Fate::Decided(_) | Fate::Dead(..) | Fate::Mixed => None,
        }
    }

    fn is_waiting_for_group(&self, undecided: bool) -> bool {
        let followed = self.workload().is_some_and(|workload| !workload.tuning.disabled && !workload.paused);
        let waits = |draft: &Record| !draft.stalled && (draft.awaits_vote() || undecided);
        followed && self.draft.as_ref().is_some_and(waits)
    }

    /// It stays undecided until whoever has not voted comes back, moves on, or is forgotten.
    fn doubt(&mut self, now: Timestamp, vector: &Vector, missing: &BTreeSet<Member>) {
        let told_by = vector.0.keys().filter(|member| !missing.contains(*member));
        let first = rank(&self.group_rollout(vector), &self.identity.member, told_by) == 0;
        let Some(draft) = &mut self.draft else { return };
        draft.stalled = true;
        if first {
            let missing: Vec<&str> = missing.iter().map(|member| member.0.as_str()).collect();
            let message = format!(
                "some members voted, and these have not: {0}; nothing is purged until they return, another version is \
                 rolled out, or allclear group forget is run for those that are gone",
                missing.join(", ")
            );
            self.announce_vote(now, vector, Kind::GroupInDoubt, "", message);
        }
    }

    fn stall(&mut self, now: Timestamp) {
        let waited = words::duration(self.policy.group.timeout);
        let first = rank(&self.key(), &self.identity.member, self.awaiting()) == 0;
        let waiting = self.waiting_for().unwrap_or_else(|| "its own vote is not possible".to_owned());
        let Some(draft) = &mut self.draft else { return };
        draft.stalled = true;
        if first {
            self.announce(now, Kind::GroupStalled, format!("not purged after {waited}: {waiting}; still waiting"));
        }
    }

    /// For good: without a vote of ours for it, no vector with this rollout is ever decided (GA-5).
    fn withdraw(&mut self, now: Timestamp) {
        let waiting = self.waiting_for().unwrap_or_else(|| "its own vote was not possible".to_owned());
        let Some(draft) = &mut self.draft else { return };
        draft.phase = Phase::Withdrawn;
        self.announce(now, Kind::PurgeSkipped, format!("{}; {waiting}", Outcome::Withdrawn));
        self.close_current(Outcome::Withdrawn, waiting);
    }

    /// The members that wait as we do.
    fn awaiting(&self) -> impl Iterator<Item = &Member> {
        let waits = |known: &Option<Known>| known.as_ref().is_some_and(|known| known.record.awaits_vote());
        self.view.members.iter().filter(move |(_, known)| waits(known)).map(|(member, _)| member)
    }

    /// For whom the rollout waits, and why, in words.
    pub(super) fn waiting_for(&self) -> Option<String> {
        if let Some(hold) = &self.view.hold {
            return Some(format!("held up: {hold}"));
        }
        match group::judge(&self.view, &self.identity.member, &self.policy.group) {
            Verdict::Candidate(_) => None,
            Verdict::Waiting(reasons) => {
                let others = reasons.iter().filter(|(member, _)| **member != self.identity.member);
                let words: Vec<String> = others.map(|(member, reason)| format!("{member}, which {reason}")).collect();
                (!words.is_empty()).then(|| format!("waiting for {}", words.join("; ")))
            }
        }
    }

    /// When the group's timeout is over, or its elapsed part is to be stored.
    pub(super) fn patience_deadline(&self) -> Option<Timestamp> {
        let draft = self.draft.as_ref().filter(|draft| draft.phase == Phase::Complete)?;
        let since = self.running_since.filter(|_| !self.is_alone())?;
        let timeout = since.after(self.policy.group.timeout.saturating_sub(draft.elapsed()).max(Duration::ZERO));
        Some(timeout.min(since.after(ELAPSED_STORED_EVERY)))
    }
}
