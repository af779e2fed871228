//! What becomes of a vote: the progress of its purges, its end, and what is told of both.

use crate::domain::distribution::DistributionId;
use crate::domain::id::{Reference, Vector, group_rollout_id};
use crate::domain::machine::Timestamp;
use crate::domain::notice::{Kind, Notice, PurgeFact};
use crate::domain::paths::Path;
use crate::domain::purge::Progress;
use crate::domain::record::{Closed, Edge, NOTICE_LIST_BYTES_MAX, Outcome, Phase, Purge, PurgeState, Record, Vote};
use crate::domain::rollout::{Rollout, words};

impl Rollout {
    /// A purge made progress. A report about a purge that is not ours, or already final, changes nothing.
    pub(super) fn purged(&mut self, now: Timestamp, reference: &Reference, progress: Progress) {
        let Some(draft) = &mut self.draft else { return };
        let Some(vote) = draft.votes.iter_mut().find(|vote| vote.purges.values().any(|p| p.reference == *reference))
        else {
            return;
        };
        let first = vote.purges.values().all(|purge| purge.state == PurgeState::Wanted);
        let Some((distribution, purge)) = vote.purges.iter_mut().find(|(_, purge)| purge.reference == *reference)
        else {
            return;
        };
        if purge.state.is_final() {
            return;
        }
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
                (first.then_some(Kind::PurgeStarted), message)
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
                purge.state = PurgeState::Impossible(why.clone());
                (Some(Kind::PurgeFailed), format!("invalidation of {distribution} is impossible: {why}"))
            }
            Progress::Failing(why) => {
                // A notice of its own: the purge may still prove to be impossible.
                detail.push_str("/failing");
                (Some(Kind::PurgeFailed), format!("{why}; it is tried again"))
            }
            Progress::Stalled(waited) => {
                vote.stalled = true;
                let waited = words::duration(waited);
                (Some(Kind::PurgeStalled), format!("invalidation of {distribution} is not completed after {waited}"))
            }
        };
        let vector = vote.vector.clone();
        if let Some(kind) = kind {
            self.announce_vote(now, &vector, kind, &detail, message);
        }
    }

    /// Closes a vote: the vector is done with, for the reason given.
    pub(super) fn finish(&mut self, now: Timestamp, vector: &Vector, outcome: Outcome, detail: &str) {
        let Some(vote) = self.draft.as_ref().and_then(|draft| draft.votes.iter().find(|vote| vote.vector == *vector))
        else {
            return;
        };
        let vote = vote.clone();
        let kind = match outcome {
            Outcome::Purged => Some(Kind::PurgeCompleted),
            Outcome::Returned | Outcome::RecoveredSkipped => Some(Kind::PurgeSkipped),
            Outcome::NoDistribution | Outcome::Dead => Some(Kind::PurgeFailed),
            // An impossible purge has been told when it proved to be so; the others are nobody's business.
            Outcome::Impossible | Outcome::NothingNew | Outcome::NoSite => None,
            // These close a rollout before its vote.
            Outcome::Failed(_) | Outcome::Superseded | Outcome::RolledBack | Outcome::Deleted => None,
        };
        let unknown = vote.purges.values().any(|purge| purge.state == PurgeState::DoneByOther);
        let message = match outcome {
            Outcome::Purged if unknown => {
                format!("purged, but it is not known whether it is complete everywhere: {}", purges_in_words(&vote))
            }
            Outcome::Purged => format!("the edge is fresh: {}", purges_in_words(&vote)),
            _ if detail.is_empty() => outcome.to_string(),
            _ => format!("{outcome} ({detail})"),
        };
        if let Some(kind) = kind {
            self.announce_vote(now, vector, kind, "", message);
        }
        let Some(draft) = &mut self.draft else { return };
        let change = words::change(draft.settled().filter(|_| vote.seq == draft.seq), &vote.version);
        let purges = vote.purges.iter().map(|(id, purge)| (id.clone(), purge.invalidation.clone())).collect();
        draft.votes.retain(|open| open.vector != *vector);
        // The purge of a later version found that one on the edge, whichever of the two completes first.
        let later = |closed: &Closed| closed.seq > vote.seq && closed.outcome == Outcome::Purged;
        let newest = !draft.history.iter().any(later);
        draft.close(Closed { seq: vote.seq, change, outcome: outcome.clone(), purges });
        if outcome == Outcome::Purged && newest {
            settle(draft, &vote);
        }
    }

    pub(super) fn announce_vote(&mut self, now: Timestamp, vector: &Vector, kind: Kind, detail: &str, message: String) {
        let identity = &self.identity;
        let Some(draft) = &mut self.draft else { return };
        let rollout = group_rollout_id(&identity.group, &identity.workload, vector);
        let id = Notice::id_of(&rollout, kind, detail);
        let settled = draft.settled().cloned();
        let Some(vote) = draft.votes.iter_mut().find(|vote| vote.vector == *vector) else { return };
        if !vote.noticed.insert(id.clone()) {
            return;
        }
        let notice = Notice {
            id,
            kind,
            at_ms: identity.epoch_ms.saturating_add_unsigned(now.as_millis()),
            workload: identity.workload.clone(),
            seq: vote.seq,
            change: words::change(settled.as_ref().filter(|_| vote.seq == draft.seq), &vote.version),
            rollout,
            message,
            hosts: fitting(&vote.hosts, NOTICE_LIST_BYTES_MAX, |host| host.as_str().len()).cloned().collect(),
            purges: purge_facts(vote),
            late: kind == Kind::PurgeCompleted && vote.stalled,
        };
        draft.untold.push(notice);
    }
}

/// The edge now agrees with what was voted for; with the record's own version too, unless another one completed meanwhile.
fn settle(draft: &mut Record, vote: &Vote) {
    let same = draft.version == vote.version;
    draft.settled = (!same).then(|| vote.version.clone());
    draft.edge = if !same && draft.phase == Phase::Complete { Edge::Moved } else { Edge::Settled };
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

fn purge_facts(vote: &Vote) -> Vec<PurgeFact> {
    let mentioned: Vec<Path> =
        fitting(vote.paths.iter(), NOTICE_LIST_BYTES_MAX / vote.purges.len().max(1), |path| path.as_str().len())
            .cloned()
            .collect();
    let fact = |(distribution, purge): (&DistributionId, &Purge)| PurgeFact {
        distribution: distribution.clone(),
        invalidation: purge.invalidation.clone(),
        paths: mentioned.clone(),
    };
    vote.purges.iter().map(fact).collect()
}

fn purges_in_words(vote: &Vote) -> String {
    let purges = vote.purges.iter().map(|(distribution, purge)| match (&purge.invalidation, &purge.state) {
        (Some(id), PurgeState::Completed) => format!("{distribution} by invalidation {id}"),
        (_, PurgeState::Impossible(_)) => format!("{distribution} could not be purged"),
        (_, _) => format!("{distribution} by another member"),
    });
    purges.collect::<Vec<_>>().join(", ")
}
