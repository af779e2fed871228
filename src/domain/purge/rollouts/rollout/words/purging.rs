//! A complete rollout, and its purges, in words.

use std::time::Duration;

use super::{ITEMS_NAMED_MAX, PurgeSummary, closed};
use crate::purges::purge::TRIED_EVERY;
use crate::records::record::passed;
use crate::records::record::{Purge, Record, Vote};
use kernel::names::distribution::DistributionId;
use kernel::names::image::brief;
use kernel::text::duration;
use proof::look::Phase;

/// The wait of a complete rollout, and the next step.
pub(super) fn complete(record: &Record) -> (String, String) {
    let Some(vote) = record.votes.iter().rfind(|vote| vote.closed.is_none() && vote.seq == record.seq) else {
        if record.awaits_vote() {
            return ("complete; checking once more before it is purged".into(), "votes for the purge".into());
        }
        let ended = record.history.last().filter(|closed| closed.seq == record.seq).map(closed);
        if let Some((looks, next)) = proving(record) {
            let ended = ended.unwrap_or_else(|| "complete".to_owned());
            return (format!("{ended}; {looks}"), next);
        }
        let owes = record.all_kept().any(Vote::owes);
        let next =
            if owes { format!("makes the owed purge: {}", retried()) } else { "waits for the next version".into() };
        return (ended.unwrap_or_else(|| "complete; nothing has changed".into()), next);
    };
    if vote.purges.listed.is_empty() {
        return ("complete everywhere; looking for the distributions of its hosts".into(), "purges them".into());
    }
    let count = vote.purges.count();
    let open = vote.purges.listed.iter().filter(|(_, purge)| vote.purges.unlisted.is_none() || !purge.state.is_final());
    let purges: Vec<String> = open.take(ITEMS_NAMED_MAX).map(|made| purge(made).state).collect();
    let mut state = purges.join("; ");
    if count.all() > purges.len() {
        let done = count.all() - count.open;
        state.push_str(&format!("; {done} of {} distributions are done with", count.all()));
    }
    let is_refused = vote.purges.listed.values().any(|purge| !purge.refused.is_empty());
    let next = if is_refused { retried() } else { "tells the webhooks when all are completed".into() };
    (state, next)
}

/// What is being looked for at the edge after a purge of the present rollout, and what comes next.
fn proving(record: &Record) -> Option<(String, String)> {
    let of = |phase: Phase| {
        let looks =
            record.looks.values().filter(move |proving| (proving.seq, proving.look.phase) == (record.seq, phase));
        let (pages, purges) = looks.fold((0, Vec::new()), |(pages, mut purges), proving| {
            purges.push(proving.distribution.to_string());
            (pages + proving.look.pages.len(), purges)
        });
        (pages > 0).then_some((pages, purges.join(", ")))
    };
    // Of one that is made in any case, the edge has shown nothing.
    let blind = || record.looks.values().find(|proving| proving.seq == record.seq)?.look.again_after_s;
    let count = |pages: usize| if pages == 1 { "one page".to_owned() } else { format!("{pages} pages") };
    if let Some((_, purges)) = of(Phase::Again) {
        let state = if blind().is_some() {
            format!("{purges} is being purged once more, as purge.again_after says")
        } else {
            format!("the edge showed what was there before, so {purges} is being purged once more")
        };
        return Some((state, "looks at the edge again when that is complete".into()));
    }
    if let Some(((_, purges), after_s)) = of(Phase::Waiting).zip(blind()) {
        let after = duration(Duration::from_secs(after_s.into()));
        let state = format!("{purges} is purged once more {after} after it was, as purge.again_after says");
        return Some((state, "looks at the edge after that".into()));
    }
    if let Some((pages, _)) = of(Phase::Looking) {
        let is_old =
            record.looks.values().flat_map(|proving| &proving.look.pages).any(|page| page.old().next().is_some());
        let next = if is_old {
            "what it has shown so far is old; two such looks count, half a minute after the purge"
        } else {
            "says what the edge has shown"
        };
        return Some((format!("looking at {} at the edge", count(pages)), next.into()));
    }
    let (pages, _) = of(Phase::Later)?;
    Some((format!("looking at {} once more, 5 min after the purge", count(pages)), "waits for the next version".into()))
}

/// When a refused purge is tried again.
pub(in crate::rollouts::rollout) fn retried() -> String {
    format!("it is tried again about every {}, and at once by allclear purge --retry", duration(TRIED_EVERY))
}

/// A line for each older rollout whose vote is open. What it waits for besides its purges, other members know (`tally`).
pub(super) fn older(record: &Record) -> Vec<String> {
    let open = record.votes.iter().filter(|vote| vote.closed.is_none() && vote.seq < record.seq);
    let line = |vote: &Vote| {
        let purges: Vec<String> =
            vote.purges.listed.iter().take(ITEMS_NAMED_MAX).map(|made| purge(made).state).collect();
        let stands = if purges.is_empty() { "voted for, and not purged yet".to_owned() } else { purges.join("; ") };
        format!("rollout {} ({}): {stands}", vote.seq, brief(&vote.version))
    };
    let passed = passed(record, |_| "purged when the others have completed it".to_owned());
    open.map(line).chain(passed).collect()
}

pub(super) fn purge((distribution, purge): (&DistributionId, &Purge)) -> PurgeSummary {
    let invalidation = purge.made().map(ToString::to_string);
    let (reference, state) = (purge.reference.to_string(), purge.words(distribution, &retried()));
    PurgeSummary { reference, distribution: distribution.to_string(), invalidation, state }
}
