//! What becomes of a vote: the progress of its purges, its end, and what is told of both.

use std::collections::BTreeSet;

use crate::distribution::DistributionId;
use crate::group;
use crate::host::Host;
use crate::id::{InvalidationId, Member, NoticeId, Reference, Vector};
use crate::machine::Timestamp;
use crate::notice::Kind;
use crate::purge::Progress;
use crate::record::{
    Closed, Edge, NOTICE_LIST_BYTES_MAX, Outcome, PURGES_NAMED_MAX, Phase, PurgeState, Record, Vote, WORDS_BYTES_MAX,
};
use crate::rollout::execute::Task;
use crate::rollout::{Rollout, fates, words};
use crate::text;

/// How much of a reason is kept: two lines of a terminal. The log has all of it.
const WHY_CHARS_MAX: usize = 200;

/// Notices about single purges of one vote, beside that of its end. With more distributions in trouble than this, one notice
/// says so, and the end says how many they were: at a kilobyte each, more would not fit into the record.
const NOTICES_OF_PURGES_MAX: usize = 8;

/// As much of a reason as is kept.
pub(super) fn short(why: &str) -> &str {
    text::first(why, WHY_CHARS_MAX)
}

impl Rollout {
    /// A purge made progress. A report about a purge that is not ours, or already final, changes nothing.
    pub(super) fn purged(&mut self, now: Timestamp, reference: &Reference, progress: Progress) {
        self.note_waits(now, reference, &progress);
        let alone = self.is_alone();
        let ours = |vote: &&mut Vote| vote.purges.values().any(|purge| purge.reference == *reference);
        let Some(vote) = self.record.draft.as_mut().and_then(|draft| draft.all_kept_mut().find(ours)) else { return };
        let first = vote.purges.values().all(|purge| purge.state == PurgeState::Wanted);
        let Some((distribution, purge)) = vote.purges.iter_mut().find(|(_, purge)| purge.reference == *reference)
        else {
            return;
        };
        if purge.state.is_final() {
            return;
        }
        // Of one that is owed it has been told.
        let untold = vote.closed.is_none();
        let distribution = distribution.to_string();
        let mut detail = distribution.clone();
        let (kind, message) = match progress {
            Progress::Created(id) => {
                purge.state = PurgeState::Created;
                purge.invalidation = Some(id.clone());
                (first.then_some(Kind::PurgeStarted), format!("invalidation {id} of {distribution} was created"))
            }
            Progress::Covered { by, invalidation } => {
                purge.state = PurgeState::Covered(by);
                purge.invalidation = Some(invalidation.clone());
                let message = format!("covered by the later invalidation {invalidation} of {distribution}");
                // Another member may have created one for it, and what both tell must be the same.
                ((first && alone).then_some(Kind::PurgeStarted), message)
            }
            Progress::Completed => {
                purge.state = PurgeState::Completed;
                (None, String::new())
            }
            Progress::DoneByOther => {
                purge.state = PurgeState::DoneByOther;
                let message = format!(
                    "the reference {reference} was already used for other paths of {distribution}: \
                     members plan different paths; make their configuration equal"
                );
                (Some(Kind::PurgeFailed), message)
            }
            Progress::Impossible(why) => {
                purge.state = PurgeState::Impossible(short(&why).to_owned());
                (Some(Kind::PurgeFailed), format!("invalidation of {distribution} is impossible: {why}"))
            }
            Progress::Failing(why) => {
                // Of a large site it is begun with when its rollout has ended.
                if !untold && purge.state == PurgeState::Wanted {
                    purge.state = PurgeState::Owed(short(&why).to_owned());
                }
                // A notice of its own: the purge may still prove to be impossible.
                detail.push_str("/failing");
                (untold.then_some(Kind::PurgeFailed), format!("{why}; it is tried again"))
            }
            Progress::Overdue(_) | Progress::SentBefore(_) | Progress::OverBudget => (None, String::new()),
            Progress::Stalled(waited) => {
                vote.stalled = true;
                let waited = words::duration(waited);
                (Some(Kind::PurgeStalled), format!("invalidation of {distribution} is not completed after {waited}"))
            }
        };
        let vector = vote.vector.clone();
        vote.fold();
        if let Some(kind) = kind {
            self.announce_purge(now, &vector, kind, &detail, message);
        }
    }

    /// Writes a notice about one purge of a vector into the draft or, after [`NOTICES_OF_PURGES_MAX`], that there are more.
    fn announce_purge(&mut self, now: Timestamp, vector: &Vector, kind: Kind, detail: &str, message: String) {
        let id = self.notice_id(vector, kind, detail, &self.identity.member);
        let crowded = |vote: &Vote| vote.noticed.len() >= NOTICES_OF_PURGES_MAX && !vote.noticed.contains(&id);
        if self.record.draft.as_ref().and_then(|draft| draft.vote(vector)).is_some_and(crowded) {
            let message = "more distributions of this rollout are in such trouble; its end says how many they were";
            self.announce_vote(now, vector, kind, "more", message.to_owned());
        } else {
            self.announce_vote(now, vector, kind, detail, message);
        }
    }

    /// Remembers how the present rollout ended.
    pub(super) fn close_current(&mut self, outcome: Outcome, why: String) {
        if let Some(draft) = &mut self.record.draft {
            let change = text::cut(&words::change(draft.before(), &draft.version), WORDS_BYTES_MAX);
            let why = text::cut(&why, WORDS_BYTES_MAX);
            draft.close(Closed { seq: draft.seq, change, outcome, why, purges: Vec::new(), more: 0 });
        }
    }

    /// Closes a vote: the vector is done with, for the reason given. The vote itself stays until the other members know.
    pub(super) fn finish(&mut self, now: Timestamp, vector: &Vector, outcome: Outcome, why: &str) {
        let (agreed_at, hosts) = self.agreed(vector);
        let Some(draft) = &mut self.record.draft else { return };
        let open = |vote: &&mut Vote| vote.vector == *vector && vote.closed.is_none();
        let Some(vote) = draft.votes.iter_mut().find(open) else { return };
        vote.closed = Some(outcome.clone());
        // What is told of the end follows from all votes, and later lives may not see them all any more.
        vote.at_ms = vote.at_ms.max(agreed_at);
        let mentioned = fitting(&hosts, NOTICE_LIST_BYTES_MAX, |host: &Host| host.as_str().len());
        vote.hosts.extend(mentioned.cloned());
        short(why).clone_into(&mut vote.why);
        let vote = vote.clone();
        if self.is_turn(now, vector, Task::Tell) {
            self.announce_end(now, &vote);
        }
        let served = self.may_be_served();
        let Some(draft) = &mut self.record.draft else { return };
        let change = words::change(draft.before().filter(|_| vote.seq == draft.seq), &vote.version);
        let (purges, more) = named(&vote);
        if outcome == Outcome::Purged {
            settle(draft, &vote, served, self.policy.same_digest_is_same);
        }
        draft.close(Closed { seq: vote.seq, change, outcome, why: vote.why, purges, more });
        self.release(vector);
    }

    /// Goes on with a vote whose end is durable: it is told, by us when it is our turn and nobody else has, and then the vote
    /// is dropped once everybody has closed it.
    pub(super) fn see_told(&mut self, now: Timestamp, vote: &Vote) {
        let vector = &vote.vector;
        if let Some(id) = self.id_of_end(vote, &self.identity.member)
            && !vote.noticed.contains(&id)
        {
            if self.is_told_elsewhere(vote) {
                self.kept_mut(vector).into_iter().for_each(|vote| vote.noticed.extend([id.clone()]));
            } else if self.is_turn(now, vector, Task::Tell) {
                self.announce_end(now, vote);
            }
        }
        self.release(vector);
    }

    /// Whether another member has told it, or will, whatever happens here.
    fn is_told_elsewhere(&self, vote: &Vote) -> bool {
        let own = &self.identity.member;
        let dead = vote.closed == Some(Outcome::Dead);
        // Theirs may still be owed where ours is complete.
        let kind = vote.closed.as_ref().and_then(kind_of_end);
        let told = |member: &Member, record: &Record| match record.kept(&vote.vector) {
            Some(theirs) => kind
                .map(|kind| self.notice_id(&vote.vector, kind, "", member))
                .is_some_and(|id| theirs.noticed.contains(&id) && record.untold.iter().all(|notice| notice.id != id)),
            // Who has dropped its vote knows that it is told; of a dead vector it may never have voted.
            None => {
                !dead && record.last.as_ref().is_some_and(|last| group::is_past(&self.ballot.view, last, &vote.vector))
            }
        };
        let mut others = self.ballot.view.members.iter().filter(|(member, _)| *member != own);
        others.any(|(member, known)| known.as_ref().is_some_and(|known| told(member, &known.record)))
    }

    /// Drops a closed vote that is told and that no other member needs any more.
    fn release(&mut self, vector: &Vector) {
        let Some(draft) = &self.record.draft else { return };
        let Some(vote) = draft.kept(vector).filter(|vote| vote.closed.is_some()) else { return };
        let told = |id: NoticeId| {
            let waits = !self.is_alone() && draft.untold.iter().any(|notice| notice.id == id);
            vote.noticed.contains(&id) && !waits
        };
        let dead = vote.closed == Some(Outcome::Dead);
        let known = group::all_have_closed(&self.ballot.view, vector, dead, &self.identity.member);
        if !known || !self.id_of_end(vote, &self.identity.member).is_none_or(told) {
            return;
        }
        if vote.owes() {
            self.keep_owed(vector);
        } else if vote.owed_ms == 0 || !self.others_owe(vector) {
            self.record.draft.iter_mut().for_each(|draft| {
                draft.votes.retain(|vote| vote.vector != *vector);
                draft.owed.retain(|vote| vote.vector != *vector);
            });
            self.purges.release(vector);
        }
    }

    /// How a rollout that had ended with owed purges has ended after all.
    pub(super) fn end_owed(&mut self, vote: &Vote, ended: &Outcome) {
        let served = self.may_be_served();
        let Some(draft) = &mut self.record.draft else { return };
        if let Some(closed) = draft.history.iter_mut().find(|closed| closed.seq == vote.seq) {
            closed.outcome = ended.clone();
            (closed.purges, closed.more) = named(vote);
            short(&fates::missing(vote)).clone_into(&mut closed.why);
        }
        if *ended == Outcome::Purged {
            settle(draft, vote, served, self.policy.same_digest_is_same);
        }
    }

    fn id_of_end(&self, vote: &Vote, member: &Member) -> Option<NoticeId> {
        let kind = vote.closed.as_ref().and_then(kind_of_end)?;
        Some(self.notice_id(&vote.vector, kind, "", member))
    }

    fn announce_end(&mut self, now: Timestamp, vote: &Vote) {
        let Some((outcome, kind)) = vote.closed.as_ref().and_then(|outcome| Some((outcome, kind_of_end(outcome)?)))
        else {
            return;
        };
        let message = match outcome {
            Outcome::Purged | Outcome::Partly | Outcome::PartlyOwed | Outcome::Owed => fates::told(vote, outcome),
            _ if vote.why.is_empty() => outcome.to_string(),
            _ => format!("{outcome} ({})", vote.why),
        };
        self.announce_vote(now, &vote.vector, kind, "", message);
    }

    /// When the last of the votes for a vector was cast, by its member's clock, and the hosts of all.
    pub(super) fn agreed(&self, vector: &Vector) -> (i64, BTreeSet<Host>) {
        let votes = self.ballot.view.members.values().filter_map(|known| known.as_ref()?.record.vote(vector));
        votes.fold((0, BTreeSet::new()), |(at_ms, mut hosts), vote| {
            hosts.extend(vote.hosts.iter().cloned());
            (vote.at_ms.max(at_ms), hosts)
        })
    }
}

/// What is told of an end, if anything is.
const fn kind_of_end(outcome: &Outcome) -> Option<Kind> {
    match outcome {
        Outcome::Purged => Some(Kind::PurgeCompleted),
        Outcome::Returned | Outcome::RecoveredSkipped => Some(Kind::PurgeSkipped),
        Outcome::NoDistribution | Outcome::Dead => Some(Kind::PurgeFailed),
        Outcome::Partly => Some(Kind::PurgeFailed),
        Outcome::Owed | Outcome::PartlyOwed => Some(Kind::PurgeOwed),
        // An impossible purge has been told when it proved to be so; the others are nobody's business.
        Outcome::Impossible | Outcome::NothingNew | Outcome::NoSite => None,
        // These close a rollout before its vote.
        Outcome::Failed(_) | Outcome::Superseded | Outcome::RolledBack | Outcome::Deleted | Outcome::Withdrawn => None,
    }
}

/// All was purged: the edge now agrees with what was voted for, unless another version completed meanwhile or may have been
/// `served`.
fn settle(draft: &mut Record, vote: &Vote, served: bool, same_digest_is_same: bool) {
    // Asked for since, it is asked for still.
    draft.request = draft.request.filter(|asked| *asked > vote.seq);
    // The purge of a later version found that one on the edge, whichever of the two completes first.
    if draft.history.iter().any(|closed| closed.seq > vote.seq && closed.outcome == Outcome::Purged) {
        return;
    }
    let same = draft.version.same_content(&vote.version, same_digest_is_same);
    draft.settled = (!same).then(|| vote.version.clone());
    let moved = vote.overtaken || (!same && (served || draft.phase == Phase::Complete));
    draft.edge = if moved { Edge::Moved } else { Edge::Settled };
}

/// As many items as fit into so many bytes, from the first on.
pub(super) fn fitting<'a, T: 'a>(
    items: impl IntoIterator<Item = &'a T>,
    bytes_max: usize,
    bytes: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &'a T> {
    let mut left = bytes_max;
    items.into_iter().take_while(move |item| {
        let fits = bytes(item) <= left;
        left = left.saturating_sub(bytes(item));
        fits
    })
}

/// The first purges of a vote as the history names them, and how many more there are.
fn named(vote: &Vote) -> (Vec<(DistributionId, Option<InvalidationId>)>, usize) {
    let purges = vote.purges.iter().map(|(id, purge)| (id.clone(), purge.invalidation.clone()));
    let purges: Vec<_> = purges.take(PURGES_NAMED_MAX).collect();
    let more = vote.count().all().saturating_sub(purges.len());
    (purges, more)
}
