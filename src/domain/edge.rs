//! Whether the edge serves what the cluster runs, of one workload: the link from purging to promoting.
//!
//! It is said of a fresh read of the workload and of its record, and of nothing that a watch has seen: a change that was not
//! noticed yet is a difference between the two. What it rests on is what the record says was done; nothing is asked of CloudFront.
//!
//! Not for what follows from it; that is `pipeline::judge`.

use crate::policy::Policy;
use crate::record::{Edge, Outcome, Phase, Record};
use crate::rollout::news;
use crate::workload::Workload;

/// Whether the edge is fresh for what the workload runs now.
///
/// # Errors
/// Why not, in words that say what is waited for.
pub fn fresh(record: Option<&Record>, workload: Option<&Workload>, policy: &Policy) -> Result<(), String> {
    let workload = workload.ok_or("there is no such Deployment in a namespace that allclear watches")?;
    if workload.deleting {
        return Err("the Deployment is being deleted".to_owned());
    }
    if workload.tuning.disabled {
        return Err("purging for it is switched off by its annotation allclear.dev/enabled".to_owned());
    }
    if let Err(why) = &workload.version {
        return Err(format!("its version cannot be read: {why}"));
    }
    let record = record.ok_or("allclear has no record of it yet")?;
    if record.off || news(record, workload, policy).is_some() {
        return Err(
            "it runs something else than allclear has on record; allclear records it at once, if it runs".to_owned()
        );
    }
    if record.set_back.is_some() {
        return Err("its record was set back to an earlier state, and is being brought up to date".to_owned());
    }
    settled(record)
}

/// Whether all that the record speaks of is at the edge.
fn settled(record: &Record) -> Result<(), String> {
    match &record.phase {
        Phase::Complete => {}
        Phase::Rolling => return Err("its rollout is not complete".to_owned()),
        Phase::Failed(failure) => return Err(format!("its rollout failed: {failure}")),
        Phase::Withdrawn => return Err("its rollout was given up, and nothing was purged".to_owned()),
    }
    if !record.owed.is_empty() {
        return Err("a purge is owed, and tried on".to_owned());
    }
    if record.awaits_vote() || record.votes.iter().any(|vote| vote.closed.is_none()) {
        return Err("its purge is under way".to_owned());
    }
    let ended = record.history.iter().rev().find(|closed| closed.seq == record.seq);
    match ended.map(|closed| (&closed.outcome, closed.why.as_str())) {
        Some((outcome, why)) if !is_fresh(outcome) => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            Err(format!("its rollout ended: {outcome}{why}"))
        }
        // No site, no edge.
        Some((Outcome::NoSite | Outcome::NoDistribution, _)) => Ok(()),
        // Also where the end is forgotten, or nothing has changed since it was first seen.
        Some(_) | None => match record.edge {
            Edge::Settled if record.settled.is_none() => Ok(()),
            Edge::Settled => Err("the edge was last made to agree with another version".to_owned()),
            Edge::Moved => Err("another version has been served since the last purge".to_owned()),
            Edge::Unknown => {
                Err("nothing was purged since allclear first saw it in the middle of a rollout".to_owned())
            }
        },
    }
}

/// Whether nothing older is left at the edge after a rollout that ended so.
const fn is_fresh(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Purged | Outcome::NothingNew | Outcome::Returned | Outcome::NoSite | Outcome::NoDistribution => true,
        Outcome::RecoveredSkipped
        | Outcome::Impossible
        | Outcome::Owed
        | Outcome::Partly
        | Outcome::PartlyOwed
        | Outcome::Failed(_)
        | Outcome::Superseded
        | Outcome::RolledBack
        | Outcome::Deleted
        | Outcome::Withdrawn
        | Outcome::Dead => false,
    }
}
