//! The effect of a purge's report on the record, and its notices.

use std::time::Duration;

use crate::purges::purge::Progress;
use crate::records::record::{Purge, PurgeState, Vote};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::rollout::words::{self, short};
use kernel::id::{InvalidationId, Reference, Vector};
use kernel::machine::Timestamp;
use kernel::text;
use notices::notice::Kind;

/// Notices about single purges of one vote, beside that of its end. Beyond this, one notice says that there are more, and
/// the end says how many: at a kilobyte each, more would not fit into the record.
const NOTICES_OF_PURGES_MAX: usize = 8;

impl Rollout {
    /// A purge made progress. A report about a purge that is not ours, or already final, changes nothing.
    pub(super) fn purged(&mut self, now: Timestamp, reference: &Reference, progress: Progress) {
        let (alone, time) = (self.identity.is_alone(), self.identity.time_kept(now));
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
        if vote.times.purge_ms == 0 && matches!(progress, Progress::Created(_) | Progress::Covered { .. }) {
            vote.times.purge_ms = time;
        }
        // An owed one was announced already.
        let untold = vote.closed.is_none();
        let distribution = distribution.to_string();
        let mut detail = distribution.clone();
        let (kind, message) = match progress {
            Progress::Created(id) => {
                purge.state = PurgeState::Created;
                purge.invalidation = Some(id.clone());
                (first.then_some(Kind::PurgeStarted), created(&id, &distribution))
            }
            Progress::Covered { by, invalidation } => {
                purge.state = PurgeState::Covered(by);
                purge.invalidation = Some(invalidation.clone());
                // Another member may have created one for it, and both notices must be the same.
                ((first && alone).then_some(Kind::PurgeStarted), covered(&invalidation, &distribution))
            }
            Progress::Completed => {
                purge.state = PurgeState::Completed;
                (None, String::new())
            }
            Progress::Spent(id) => {
                purge.reference = self.purges.renew(reference, &id);
                (None, String::new())
            }
            Progress::DoneByOther => {
                purge.state = PurgeState::DoneByOther;
                (Some(Kind::PurgeFailed), used_for_others(reference, &distribution))
            }
            Progress::Impossible(why) => {
                purge.state = PurgeState::Impossible(short(&why).to_owned());
                (Some(Kind::PurgeFailed), format!("invalidation of {distribution} is impossible: {why}"))
            }
            Progress::Failing(why) => {
                owe_late(purge, untold, &why);
                // A notice of its own: the purge may still prove to be impossible.
                detail.push_str("/failing");
                (untold.then_some(Kind::PurgeFailed), format!("{why}; {}", words::retried()))
            }
            Progress::Overdue(_) | Progress::SentBefore(_) | Progress::OverBudget => (None, String::new()),
            Progress::Spaced(purges) => {
                // A notice of its own: it may take long besides.
                detail.push_str("/spaced");
                (Some(Kind::PurgeStalled), spaced(purges, &distribution, &self.identity.workload.namespace))
            }
            Progress::Stalled(waited) => {
                vote.stalled = true;
                (Some(Kind::PurgeStalled), late(waited, &distribution))
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
}

/// On a large site the turn of a purge comes after its rollout has ended: then it is owed at once.
fn owe_late(purge: &mut Purge, untold: bool, why: &str) {
    if !untold && purge.state == PurgeState::Wanted {
        purge.state = PurgeState::Owed(short(why).to_owned());
    }
}

fn late(waited: Duration, distribution: &str) -> String {
    format!("invalidation of {distribution} is not completed after {}", text::duration(waited))
}

fn created(id: &InvalidationId, distribution: &str) -> String {
    match id.is_of_dry_run() {
        true => format!("an invalidation of {distribution} would be created"),
        false => format!("invalidation {id} of {distribution} was created"),
    }
}

fn covered(by: &InvalidationId, distribution: &str) -> String {
    match by.is_of_dry_run() {
        true => format!("a later invalidation of {distribution} would cover it"),
        false => format!("covered by the later invalidation {by} of {distribution}"),
    }
}

fn spaced(purges: u32, distribution: &str, namespace: &str) -> String {
    format!(
        "namespace {namespace} has used up its {purges} purges of {distribution} an hour: until they have come back, what it orders \
         shares one each {}; the operator can allow more by purges_per_hour in tenants.allow",
        text::duration(Duration::from_secs(60 * 60) / purges.max(1))
    )
}

fn used_for_others(reference: &Reference, distribution: &str) -> String {
    format!(
        "the reference {reference} was already used for other paths of {distribution}: members plan different paths; make their \
         configuration equal"
    )
}
