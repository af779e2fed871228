//! The effect of a purge's report on the record, and its notices.

use std::time::Duration;

use crate::purges::purge::Progress;
use crate::records::record::{Purge, PurgeState, Vote};
use crate::rollouts::rollout::proving::Completed;
use crate::rollouts::rollout::purges::FOLLOW_AFTER;
use crate::rollouts::rollout::words::{self, short};
use crate::rollouts::rollout::{Effect, Rollout};
use kernel::id::{InvalidationId, Reference, Vector};
use kernel::machine::Timestamp;
use kernel::names::paths::PathSet;
use kernel::text;
use notices::notice::Kind;

/// Notices about single purges of one vote, beside that of its end. Beyond this, one notice says that there are more, and
/// the end says how many: at a kilobyte each, more would not fit into the record.
const NOTICES_OF_PURGES_MAX: usize = 8;

/// A denied purge is owed after this: rights that are just being given take seconds to reach all of AWS, and a rollout that ends
/// at the first refusal would say so too soon.
const OWED_AFTER: Duration = Duration::from_secs(60);

impl Rollout {
    /// A purge was reported on: one of a vote, or a further one.
    pub(super) fn heard_of(&mut self, now: Timestamp, reference: &Reference, progress: Progress) -> Vec<Effect> {
        if let Some(follows) = self.purged_again(now, reference, &progress) {
            return follows;
        }
        let done = if let Progress::Completed(called) = &progress { self.completes(reference, *called) } else { None };
        if let Progress::Created(_) = &progress {
            self.note_ordered(reference, now);
        }
        self.note_waits(now, reference, &progress);
        self.purged(now, reference, progress);
        if let Some(completed) = done {
            self.begin_look(now, completed);
        }
        Vec::new()
    }

    /// The purge that is complete, as it was, if this member is to look at what it left: who ordered it, also where another was told before;
    /// or else, where the life is over that did, the first of those that may order it; or each, where each is to look.
    fn completes(&mut self, reference: &Reference, called: Option<Timestamp>) -> Option<Completed> {
        let vote = self.record.vote_under(reference)?;
        let vector = vote.vector.clone();
        let (distribution, purge) = vote.purges.under_mut(reference)?;
        let (distribution, purge) = (distribution.clone(), purge.clone());
        let is_open = !purge.state.is_final();
        let (is_ours, ordered) = match called {
            Some(_) => (is_open || purge.state == PurgeState::Completed, called.into()),
            None => (is_open && self.is_first_for(&vector, &distribution), self.ordered(&vector, reference)),
        };
        let looks = is_ours || is_open && self.policy.proof.each_member_looks();
        looks.then_some(Completed { vector, distribution, purge, ordered, may_purge: is_ours })
    }

    /// A purge made progress. A report about a purge that is not ours, or already final, changes nothing.
    fn purged(&mut self, now: Timestamp, reference: &Reference, progress: Progress) {
        let (alone, time) = (self.identity.is_alone(), self.identity.time_kept(now));
        let Some(vote) = self.record.vote_under(reference) else { return };
        let first = vote.purges.listed.values().all(Purge::is_wanted);
        let vector = vote.vector.clone();
        let Some((distribution, purge)) = vote.purges.under_mut(reference) else { return };
        if purge.state.is_final() {
            return;
        }
        if vote.times.purge_ms == 0 && matches!(progress, Progress::Created(_) | Progress::Covered { .. }) {
            vote.times.purge_ms = time;
        }
        // An owed one was announced already.
        let untold = vote.closed.is_none();
        let (mut detail, distribution) = (distribution.to_string(), distribution.words());
        let (kind, message) = match progress {
            Progress::Created(id) => {
                purge.create(id.clone());
                (first.then_some(Kind::PurgeStarted), created(&id, &distribution))
            }
            Progress::Covered { by, invalidation } => {
                purge.cover(by, Some(invalidation.clone()));
                // Another member may have created one for it, and both notices must be the same.
                ((first && alone).then_some(Kind::PurgeStarted), covered(&invalidation, &distribution))
            }
            Progress::Completed(_) => {
                purge.complete();
                (None, String::new())
            }
            Progress::Spent(id) => {
                purge.reference = self.purges.renew(reference, &id);
                (None, String::new())
            }
            Progress::DoneByOther => {
                purge.leave_to_other();
                (Some(Kind::PurgeFailed), used_for_others(reference, &distribution))
            }
            Progress::Impossible(why) => {
                purge.give_up(short(&why));
                (Some(Kind::PurgeFailed), format!("invalidation of {distribution} is impossible: {why}"))
            }
            Progress::Failing(why) => {
                // On a large site the turn of a purge comes after its rollout has ended: then it is owed at once.
                if !untold && purge.is_wanted() {
                    purge.owe(short(&why));
                }
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
                vote.purges.stalled = true;
                (Some(Kind::PurgeStalled), late(waited, &distribution))
            }
        };
        vote.purges.fold();
        if let Some(kind) = kind {
            self.announce_purge(now, &vector, kind, &detail, message);
        }
    }

    /// Notes from a report how long the purge may still take, and what was really sent.
    fn note_waits(&mut self, now: Timestamp, reference: &Reference, progress: &Progress) {
        let Some(vote) = self.record.vote_under(reference) else { return };
        let members = vote.vector.0.len();
        let Some((_, purge)) = vote.purges.under_mut(reference) else { return };
        match progress {
            Progress::Failing(why) => {
                purge.note_refused(short(why));
                let exists = purge.invalidation.is_some();
                self.note_denied(now, members, reference, exists, why);
            }
            Progress::Overdue(why) => self.purges.owe(reference, None, short(why)),
            Progress::SentBefore(sent) => purge.sent = Some(sent.clone()),
            Progress::OverBudget => {
                purge.sent = Some(PathSet::default());
                // It is ordered again with that, once it is durable.
                self.purges.order_again(reference);
            }
            Progress::Stalled(_) | Progress::Spent(_) | Progress::Spaced(_) => {}
            Progress::Created(_)
            | Progress::Covered { .. }
            | Progress::Completed(_)
            | Progress::DoneByOther
            | Progress::Impossible(_) => {
                purge.refused.clear();
                self.purges.settle(reference);
            }
        }
    }

    /// A purge is denied, so it becomes owed when every rank has had its turn and a minute has passed; the members
    /// report it in their order.
    fn note_denied(&mut self, now: Timestamp, members: usize, reference: &Reference, exists: bool, why: &str) {
        let others = u32::try_from(members.saturating_sub(1)).unwrap_or(u32::MAX);
        let turns = others.saturating_mul(if exists { FOLLOW_AFTER } else { 1 });
        let wait = OWED_AFTER.saturating_add(self.policy.group.takeover.saturating_mul(turns));
        let due = self.purges.owed_at(reference).map_or_else(|| Some(now.after(wait)), |(due, _)| *due);
        self.purges.owe(reference, due, short(why));
    }

    /// Writes a notice about one purge of a vector into the draft or, after [`NOTICES_OF_PURGES_MAX`], that there are more.
    fn announce_purge(&mut self, now: Timestamp, vector: &Vector, kind: Kind, detail: &str, message: String) {
        let id = self.notice_id(vector, kind, detail, &self.identity.member);
        let crowded =
            |Vote { purges, .. }: &Vote| purges.noticed.len() >= NOTICES_OF_PURGES_MAX && !purges.noticed.contains(&id);
        if self.record.draft.as_ref().and_then(|draft| draft.vote(vector)).is_some_and(crowded) {
            let message = "more distributions of this rollout are in such trouble; its end says how many they were";
            self.announce_vote(now, vector, kind, "more", message.to_owned());
        } else {
            self.announce_vote(now, vector, kind, detail, message);
        }
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
