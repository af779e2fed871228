//! The rollouts that were complete here when another version took their place. They are kept, because the other members
//! may still come to them (decision 52), and how that ends without a purge.
//!
//! Not for who votes for one; that is `vote`.

use crate::records::record::{CHANGE_WORDS_BYTES_MAX, Closed, Outcome, Passed, Record, Vote, WORDS_BYTES_MAX};
use crate::records::rules::Rules;
use crate::rollouts::rollout::{Rollout, words};
use crate::workloads::workload::Workload;
use kernel::id::Vector;
use kernel::machine::Timestamp;
use kernel::names::image::Version;
use kernel::text;
use notices::notice::Kind;

impl Rollout {
    /// Another version, or another object, takes the place of the present one.
    pub(super) fn go_past(&mut self, now: Timestamp, workload: &Workload, next: &Version) {
        let Some(draft) = &self.record.draft else { return };
        let keeps = !self.identity.is_alone() && self.policy.group.rules > Rules::SECOND;
        let is_followed = keeps && draft.uid == workload.uid;
        let kept =
            if is_followed { draft.kept_beside(next, self.policy.version.same_digest_is_same) } else { Vec::new() };
        self.let_go(now, Kind::RolloutSuperseded, &Outcome::Superseded, |passed| {
            !kept.iter().any(|kept| kept.seq == passed.seq)
        });
        self.record.draft.iter_mut().for_each(|draft| draft.passed.clone_from(&kept));
    }

    /// The rollout of ours that a vector means, if we went past it.
    pub(super) fn passed_in<'a>(&self, draft: &'a Record, vector: &Vector) -> Option<&'a Passed> {
        draft.passed_at(vector.component(&self.identity.member)?)
    }

    /// Our record as it was at that rollout.
    pub(super) fn passed_then(&self, draft: &Record, vector: &Vector) -> Option<Record> {
        Some(draft.as_of(self.passed_in(draft, vector)?))
    }

    /// Drops rollouts that were gone past, for good. One that was voted for ends with its vote.
    pub(super) fn let_go(&mut self, now: Timestamp, kind: Kind, outcome: &Outcome, goes: impl Fn(&Passed) -> bool) {
        let Some(draft) = &mut self.record.draft else { return };
        let all = std::mem::take(&mut draft.passed);
        let (gone, kept): (Vec<Passed>, Vec<Passed>) = all.into_iter().partition(goes);
        draft.passed = kept;
        for passed in gone {
            let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.vote_for(passed.seq).is_none()) else {
                continue;
            };
            let then = draft.as_of(&passed);
            let change = text::cut(&words::change(then.before(), &then.version), WORDS_BYTES_MAX);
            let (seq, outcome) = (passed.seq, outcome.clone());
            let message = outcome.to_string();
            draft.close(Closed { seq, change, outcome, why: String::new(), purges: Vec::new(), more: 0, seen: None });
            self.announce_of(now, &then, kind, message);
        }
    }
}

impl Record {
    /// Whether another version has taken the place of its newest rollout, which is kept.
    pub(super) fn is_passed(&self) -> bool {
        self.passed.last().is_some_and(|passed| passed.seq == self.seq)
    }
}

/// Marks a vote for a passed rollout: the edge has had something else since.
pub(super) fn overtaken(mut vote: Vote, then: &Record) -> Vote {
    vote.change_words = text::cut(&words::change(then.before(), &then.version), CHANGE_WORDS_BYTES_MAX);
    vote.purges.overtaken = true;
    vote
}
