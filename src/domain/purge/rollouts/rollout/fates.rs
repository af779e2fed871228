//! How a vector ends once its purges are final or owed, in words: which distributions are fresh, which are not, and why.
//!
//! Not for when that is so (`Vote::is_carried_out`), nor for what follows from it; that is `close`.

use crate::records::record::{Count, Outcome, PurgeState, Vote};
use crate::rollouts::rollout::words;

/// Distributions that are named with a reason: with 200 characters each they leave a sentence readable, and an Event holds 1 KiB.
const REASONS_NAMED_MAX: usize = 3;

/// How a vector with these purges ends.
pub(super) const fn outcome(count: &Count) -> Outcome {
    let Count { completed, unknown, impossible, owed, open } = *count;
    match (completed + unknown > 0, owed + open > 0, impossible > 0) {
        (true, false, false) => Outcome::Purged,
        (true, false, true) => Outcome::Partly,
        (true, true, _) => Outcome::PartlyOwed,
        (false, true, _) => Outcome::Owed,
        (false, false, _) => Outcome::Impossible,
    }
}

/// Begins the words that say by which listing the distributions were found, where none was to be had that began after the votes.
const LISTED: &str = "distributions as listed ";

/// Why it ended so: from when the listing is, where it is old, and what is missing.
pub(super) fn why(vote: &Vote, listed: Option<&str>) -> String {
    let listed = listed.map(|from| format!("{LISTED}{from}"));
    let missing = Some(missing(vote)).filter(|words| !words.is_empty());
    listed.into_iter().chain(missing).collect::<Vec<_>>().join("; ")
}

/// By which listing, if [`why`] said so.
pub(super) fn listed(vote: &Vote) -> Option<&str> {
    vote.why.split("; ").next().filter(|words| words.starts_with(LISTED))
}

/// The announcement of such an end.
pub(super) fn told(vote: &Vote, outcome: &Outcome) -> String {
    let unknown = vote.count().unknown > 0;
    let stale = listed(vote);
    let listed = stale.map_or_else(String::new, |stale| format!("; {stale}"));
    match outcome {
        Outcome::Purged if vote.is_of_dry_run() => format!("would be purged now: {}", fresh(vote)),
        Outcome::Partly | Outcome::PartlyOwed if vote.is_of_dry_run() => {
            format!("would be partly purged: {}; {}", fresh(vote), missing(vote))
        }
        Outcome::Purged if unknown => {
            format!("purged, but it is not known whether it is complete everywhere{listed}: {}", fresh(vote))
        }
        Outcome::Purged if stale.is_some() => format!("purged{listed}: {}", fresh(vote)),
        Outcome::Purged if vote.owed_ms != 0 => format!("the edge is fresh, late, for it was owed: {}", fresh(vote)),
        Outcome::Purged => format!("the edge is fresh: {}", fresh(vote)),
        Outcome::Partly | Outcome::PartlyOwed => {
            format!("partly purged{listed}: {}; {}", fresh(vote), missing(vote))
        }
        _ => format!("not purged: {}", missing(vote)),
    }
}

/// Which distributions are fresh, or would be: `E1 by invalidation I1, E2 by another member`.
fn fresh(vote: &Vote) -> String {
    let purges = vote.purges.iter().filter_map(|(distribution, purge)| match (&purge.state, &purge.invalidation) {
        (PurgeState::Completed, Some(id)) if id.is_of_dry_run() => Some(distribution.to_string()),
        (PurgeState::Completed, Some(id)) => Some(format!("{distribution} by invalidation {id}")),
        (PurgeState::Completed, None) | (PurgeState::DoneByOther, _) => {
            Some(format!("{distribution} by another member"))
        }
        (
            PurgeState::Wanted
            | PurgeState::Owed(_)
            | PurgeState::Created
            | PurgeState::Covered(_)
            | PurgeState::Impossible(_)
            | PurgeState::Beyond(_),
            _,
        ) => None,
    });
    let count = vote.count();
    words::some(purges, count.completed + count.unknown)
}

/// Which are not, and why: `E3 cannot be purged (NoSuchDistribution); E4 is owed and tried again (AccessDenied)`.
pub(super) fn missing(vote: &Vote) -> String {
    let count = vote.count();
    let reasons = |reason: fn(&PurgeState) -> Option<&String>| {
        let named = vote
            .purges
            .iter()
            .filter_map(move |(distribution, purge)| reason(&purge.state).map(|why| format!("{distribution} ({why})")));
        named.take(REASONS_NAMED_MAX)
    };
    let impossible = reasons(|state| match state {
        PurgeState::Impossible(why) | PurgeState::Beyond(why) => Some(why),
        _ => None,
    });
    let owed = reasons(|state| if let PurgeState::Owed(why) = state { Some(why) } else { None });
    let mut parts = Vec::new();
    if count.impossible > 0 {
        parts.push(format!("cannot be purged: {}", words::some(impossible, count.impossible)));
    }
    if count.owed > 0 {
        parts.push(format!("owed, and tried again: {}", words::some(owed, count.owed)));
    }
    if count.open > 0 {
        parts.push(format!("{} more distributions wait until some of these are purged", count.open));
    }
    parts.join("; ")
}
