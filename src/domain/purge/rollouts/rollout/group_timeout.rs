//! How long a rollout that is complete here waits for the group, and what follows when that is over.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::agreement::group::{self, Fate, Known, Verdict};
use crate::bounds::policy::{Agreement, AtTimeout};
use crate::records::record::{Outcome, Phase, Record};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::rollout::ballot::known;
use crate::rollouts::rollout::clock::ELAPSED_STORED_EVERY;
use crate::rollouts::rollout::close::End;
use kernel::id::{Member, Vector, rank};
use kernel::machine::Timestamp;
use kernel::text;
use notices::notice::Kind;

/// A vector with an open vote of ours, and those who have not voted.
type Undecided = (Vector, BTreeSet<Member>);

impl Rollout {
    /// Lets the clock of a rollout run on until the group has decided it, and acts once when the group's timeout is over.
    /// Besides the rollout timeout this is the only duration that becomes a fact, and only under `skip` (decision 8).
    pub(super) fn mind_group_timeout(&mut self, now: Timestamp) -> Option<End> {
        if self.identity.is_alone() || self.record.draft.as_ref().is_none_or(|draft| draft.phase != Phase::Complete) {
            return None;
        }
        let undecided = self.undecided();
        let waits = self.is_waiting_for_group(undecided.is_some());
        if waits != self.stopwatch.runs() {
            self.stopwatch.keep(now, waits, &mut self.record.draft);
        }
        if !waits {
            return None;
        }
        if self.elapsed(now) < self.wait_for_group(undecided.as_ref()) {
            if self.stopwatch.is_store_due(now) {
                self.stopwatch.keep(now, true, &mut self.record.draft);
            }
            return None;
        }
        self.stopwatch.keep(now, false, &mut self.record.draft);
        match undecided {
            None if self.ends_the_wait() => return self.withdraw(),
            undecided if self.is_wait_told(undecided.as_ref()) => {
                self.record.draft.iter_mut().for_each(|draft| draft.stalled = true);
            }
            Some((vector, missing)) => self.doubt(now, &vector, &missing),
            None => self.stall(now),
        }
        None
    }

    /// How long it waits before it gives up or reports. Members that wait together are staggered, so that only the
    /// first reports.
    fn wait_for_group(&self, undecided: Option<&Undecided>) -> Duration {
        let own = &self.identity.member;
        let rank = match undecided {
            None if self.ends_the_wait() => 0,
            None => rank(&self.called_now().to_string(), own, self.awaiting()),
            Some((vector, missing)) => {
                let voted = vector.0.keys().filter(|member| !missing.contains(*member));
                rank(&self.group_rollout(vector), own, voted)
            }
        };
        let Agreement { timeout, takeover, .. } = &self.policy.group;
        timeout.saturating_add(takeover.saturating_mul(rank))
    }

    /// Whether the timeout ends the wait. Never while the group is on hold, when we cannot judge what the silence
    /// means.
    fn ends_the_wait(&self) -> bool {
        self.policy.group.at_timeout == AtTimeout::Skip && self.ballot.view.hold.is_none()
    }

    /// Whether another member has already reported this wait.
    fn is_wait_told(&self, undecided: Option<&Undecided>) -> bool {
        let own = &self.identity.member;
        let told = |member: &Member| known(&self.ballot.view, member).is_some_and(|record| record.stalled);
        match undecided {
            None => self.awaiting().filter(|member| *member != own).any(told),
            Some((vector, missing)) => {
                vector.0.keys().filter(|member| *member != own && !missing.contains(*member)).any(told)
            }
        }
    }

    /// The open vote for the present rollout, and whose votes are missing.
    fn undecided(&self) -> Option<Undecided> {
        let record = self.record.durable.as_ref()?;
        let vote = record.vote_for(record.seq)?;
        match group::fate(&self.ballot.view, &vote.vector) {
            Fate::Open(mut missing) => {
                missing.retain(|member| !group::has_voted(&self.ballot.view, &vote.vector, member));
                (!missing.is_empty()).then(|| (vote.vector.clone(), missing))
            }
            Fate::Decided(_) | Fate::Dead(..) | Fate::Mixed => None,
        }
    }

    fn is_waiting_for_group(&self, undecided: bool) -> bool {
        let followed = self.workload().is_some_and(|workload| !workload.tuning.disabled && !workload.is_held());
        let waits = |draft: &Record| !draft.stalled && (draft.awaits_vote() || undecided);
        followed && self.record.draft.as_ref().is_some_and(waits)
    }

    /// It stays undecided until the members that have not voted come back, move on, or are forgotten.
    fn doubt(&mut self, now: Timestamp, vector: &Vector, missing: &BTreeSet<Member>) {
        let Some(draft) = &mut self.record.draft else { return };
        draft.stalled = true;
        let unfollowed = &self.ballot.view.unfollowed;
        let why = |member: &Member| unfollowed.get(member).map_or_else(String::new, |why| format!(", which {why}"));
        let missing: Vec<String> = missing.iter().map(|member| format!("{member}{}", why(member))).collect();
        let message = format!(
            "some members voted, and these have not: {0}; nothing is purged until they return, another version is rolled \
             out, or allclear group forget is run for those that are gone",
            missing.join(", ")
        );
        self.announce_vote(now, vector, Kind::GroupInDoubt, "", message);
    }

    fn stall(&mut self, now: Timestamp) {
        let waited = text::duration(self.policy.group.timeout);
        let waiting = self.waiting_for().unwrap_or_else(|| "its own vote is not possible".to_owned());
        let Some(draft) = &mut self.record.draft else { return };
        draft.stalled = true;
        self.announce(now, Kind::GroupStalled, format!("not purged after {waited}: {waiting}; still waiting"));
    }

    /// For good: without a vote of ours for it, no vector with this rollout is ever decided (GA-5).
    fn withdraw(&mut self) -> Option<End> {
        let waiting = self.waiting_for().unwrap_or_else(|| "its own vote was not possible".to_owned());
        self.record.draft.as_mut()?.phase = Phase::Withdrawn;
        let (kind, outcome) = (Kind::PurgeSkipped, Outcome::Withdrawn);
        Some(End { kind, message: format!("{outcome}; {waiting}"), outcome, why: waiting })
    }

    /// The members that wait as we do, with the same version.
    fn awaiting(&self) -> impl Iterator<Item = &Member> {
        let own = self.record.draft.as_ref().map(Record::code);
        let waits = move |known: &Option<Known>| {
            let record =
                known.as_ref().and_then(|known| known.published.record()).filter(|record| record.awaits_vote());
            record.zip(own).is_some_and(|(record, own)| record.code().is_same(&own))
        };
        self.ballot.view.members.iter().filter(move |(_, known)| waits(known)).map(|(member, _)| member)
    }

    /// The members the rollout waits for, and why, in words.
    pub(super) fn waiting_for(&self) -> Option<String> {
        if let Some(hold) = &self.ballot.view.hold {
            return Some(format!("held up: {hold}"));
        }
        match group::judge(&self.ballot.view, &self.identity.member, &self.policy.group) {
            Verdict::Candidate(_) => None,
            Verdict::Waiting(reasons) => {
                let others = reasons.iter().filter(|(member, _)| **member != self.identity.member);
                let words: Vec<String> = others.map(|(member, reason)| format!("{member}, which {reason}")).collect();
                (!words.is_empty()).then(|| format!("waiting for {}", words.join("; ")))
            }
        }
    }

    /// When the wait is over, or its elapsed part is to be stored.
    pub(super) fn group_deadline(&self) -> Option<Timestamp> {
        let draft = self.record.draft.as_ref().filter(|draft| draft.phase == Phase::Complete)?;
        let since = self.stopwatch.since().filter(|_| !self.identity.is_alone() && self.view_is_current())?;
        let rest = self.wait_for_group(self.undecided().as_ref()).saturating_sub(draft.elapsed());
        Some(since.after(rest.min(ELAPSED_STORED_EVERY)))
    }
}
