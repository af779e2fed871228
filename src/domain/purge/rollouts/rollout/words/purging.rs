//! A complete rollout, and its purges, in words.

use super::{ITEMS_NAMED_MAX, PurgeSummary, closed};
use crate::purges::purge::TRIED_EVERY;
use crate::records::record::passed;
use crate::records::record::{Purge, PurgeState, Record, Vote};
use kernel::names::distribution::DistributionId;
use kernel::names::image::brief;
use kernel::text::duration;

/// The wait of a complete rollout, and the next step.
pub(super) fn complete(record: &Record) -> (String, String) {
    let Some(vote) = record.votes.iter().rfind(|vote| vote.closed.is_none() && vote.seq == record.seq) else {
        if record.awaits_vote() {
            return ("complete; checking once more before it is purged".into(), "votes for the purge".into());
        }
        let ended = record.history.last().filter(|closed| closed.seq == record.seq).map(closed);
        let owes = record.all_kept().any(Vote::owes);
        let next =
            if owes { format!("makes the owed purge: {}", retried()) } else { "waits for the next version".into() };
        return (ended.unwrap_or_else(|| "complete; nothing has changed".into()), next);
    };
    if vote.purges.is_empty() {
        return ("complete everywhere; looking for the distributions of its hosts".into(), "purges them".into());
    }
    let count = vote.count();
    let open = vote.purges.iter().filter(|(_, purge)| vote.unlisted.is_none() || !purge.state.is_final());
    let purges: Vec<String> = open.take(ITEMS_NAMED_MAX).map(|made| purge(made).state).collect();
    let mut state = purges.join("; ");
    if count.all() > purges.len() {
        let done = count.all() - count.open;
        state.push_str(&format!("; {done} of {} distributions are done with", count.all()));
    }
    let is_refused = vote.purges.values().any(|purge| !purge.refused.is_empty());
    let next = if is_refused { retried() } else { "tells the webhooks when all are completed".into() };
    (state, next)
}

/// When a refused purge is tried again.
pub(in crate::rollouts::rollout) fn retried() -> String {
    format!("it is tried again about every {}, and at once by allclear purge --retry", duration(TRIED_EVERY))
}

/// A line for each older rollout whose vote is open. What it waits for besides its purges, other members know (`tally`).
pub(super) fn older(record: &Record) -> Vec<String> {
    let open = record.votes.iter().filter(|vote| vote.closed.is_none() && vote.seq < record.seq);
    let line = |vote: &Vote| {
        let purges: Vec<String> = vote.purges.iter().take(ITEMS_NAMED_MAX).map(|made| purge(made).state).collect();
        let stands = if purges.is_empty() { "voted for, and not purged yet".to_owned() } else { purges.join("; ") };
        format!("rollout {} ({}): {stands}", vote.seq, brief(&vote.version))
    };
    let passed = passed(record, |_| "purged when the others have completed it".to_owned());
    open.map(line).chain(passed).collect()
}

pub(super) fn purge((distribution, purge): (&DistributionId, &Purge)) -> PurgeSummary {
    let made = purge.invalidation.as_ref().filter(|id| !id.is_of_dry_run());
    let id = made.map_or(String::new(), |id| format!(" {id}"));
    let state = match &purge.state {
        _ if made.is_none() && purge.invalidation.is_some() => format!("invalidation of {distribution} would be made"),
        PurgeState::Wanted if !purge.refused.is_empty() => {
            format!("invalidation of {distribution} is not made yet: {}", purge.refused)
        }
        PurgeState::Wanted => format!("invalidation of {distribution} queued"),
        PurgeState::Owed(why) => format!("invalidation of {distribution} owed: {why}; {}", retried()),
        PurgeState::Created => format!("invalidation{id} of {distribution} in progress"),
        PurgeState::Covered(_) => format!("covered by a later invalidation{id} of {distribution}, in progress"),
        PurgeState::Completed => format!("invalidation{id} of {distribution} completed"),
        PurgeState::DoneByOther => format!("invalidation of {distribution} was made by another"),
        PurgeState::Impossible(why) => format!("invalidation of {distribution} impossible: {why}"),
        PurgeState::Beyond(why) => format!("{distribution} is left out: {why}"),
    };
    let invalidation = made.map(ToString::to_string);
    let reference = purge.reference.to_string();
    PurgeSummary { reference, distribution: distribution.to_string(), invalidation, state }
}
