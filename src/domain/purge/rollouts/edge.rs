//! Whether the edge serves what the cluster runs, of one workload: the link from purging to promoting.
//!
//! It is said of a fresh read of the workload and of its record, and of nothing that a watch has seen: a change that was not
//! noticed yet is a difference between the two. What it rests on is what the record says was done; nothing is asked of CloudFront.
//!
//! Not for what follows from it; that is `pipeline::judge`.

use crate::bounds::policy::Policy;
use crate::records::record::{Edge, Outcome, Phase, Record, Seen};
use crate::rollouts::rollout::news;
use crate::workloads::beside::BESIDE_CURE;
use crate::workloads::workload::Workload;
use proof::look;
use proof::tally::Found;

/// The state of the edge compared with the version that a workload runs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtEdge {
    /// All of it is purged, as CloudFront reports.
    Purged,
    /// There is no edge: no host leads to the workload, or no distribution serves its hosts. In words.
    Edgeless(String),
    /// Not yet; allclear is about to change that, or can be expected to. What is waited for, in words.
    Awaited(String),
    /// Stale, until a person changes something. Why, in words.
    Stuck(String),
}

impl AtEdge {
    /// The same where this serves another version of the site: nobody knows which of them the edge has got.
    #[must_use]
    pub fn beside(self, another: Option<String>) -> Self {
        match (self, another) {
            (Self::Purged, Some(another)) => Self::Awaited(format!("{another}; {BESIDE_CURE}")),
            (itself, _) => itself,
        }
    }

    /// The same where it counts only once a look has shown what new pods answer, since the newest purge. What has no edge needs none.
    #[must_use]
    pub fn proved(self, record: Option<&Record>) -> Self {
        let (Self::Purged, Some(record)) = (&self, record) else { return self };
        let seen =
            record.history.iter().rev().find(|closed| closed.seq == record.seq).and_then(|closed| closed.seen.as_ref());
        match seen {
            Some(Seen { found: Found::Fresh, .. }) => self,
            _ if record.looks.values().any(|proving| proving.look.phase == look::Phase::Waiting) => {
                Self::Awaited("it is purged, and will be once more before anybody looks at it".to_owned())
            }
            _ if !record.looks.is_empty() => Self::Awaited("it is purged, and being looked at".to_owned()),
            Some(Seen { words, .. }) => Self::Stuck(words.clone()),
            None => Self::Stuck(
                "it is purged, and nobody looked at it by a marker: see allclear.dev/proof-marker".to_owned(),
            ),
        }
    }

    /// Why it may serve something older, in words that say what is waited for. Without an edge, nothing older is served.
    pub fn stale(self) -> Option<String> {
        match self {
            Self::Purged | Self::Edgeless(_) => None,
            Self::Awaited(why) | Self::Stuck(why) => Some(why),
        }
    }
}

/// How the edge stands towards what the workload runs now.
pub fn at_edge(record: Option<&Record>, workload: Option<&Workload>, policy: &Policy) -> AtEdge {
    match followed(record, workload, policy) {
        Ok(record) => settled(record),
        Err(why) => why,
    }
}

/// The record, if it is about what the workload runs now. A change that allclear has not seen yet is awaited: what the record
/// says is then about what ran before.
///
/// # Errors
/// How it stands instead: awaited or stuck.
pub fn followed<'a>(
    record: Option<&'a Record>,
    workload: Option<&Workload>,
    policy: &Policy,
) -> Result<&'a Record, AtEdge> {
    let stuck = |why: &str| Err(AtEdge::Stuck(why.to_owned()));
    let awaited = |why: &str| Err(AtEdge::Awaited(why.to_owned()));
    let Some(workload) = workload else {
        return stuck("there is no such workload in a namespace that allclear watches");
    };
    if workload.deleting {
        return stuck(&format!("the {} is being deleted", workload.id.kind.name()));
    }
    if workload.tuning.disabled {
        return stuck("purging for it is switched off by its annotation allclear.dev/enabled");
    }
    if let Err(why) = &workload.version {
        return stuck(&format!("its version cannot be read: {why}"));
    }
    let Some(record) = record else { return awaited("allclear has no record of it yet") };
    if record.off || news(record, workload, policy).is_some() {
        return awaited("it runs something else than allclear has on record; allclear records it at once, if it runs");
    }
    if record.set_back.is_some() {
        return awaited("its record was set back to an earlier state, and is being brought up to date");
    }
    Ok(record)
}

/// Whether all that the record speaks of is at the edge.
fn settled(record: &Record) -> AtEdge {
    let stuck = |why: &str| AtEdge::Stuck(why.to_owned());
    let awaited = |why: &str| AtEdge::Awaited(why.to_owned());
    match &record.phase {
        Phase::Complete => {}
        Phase::Rolling => return awaited("its rollout is not complete"),
        Phase::Failed(failure) => return stuck(&format!("its rollout failed: {failure}")),
        Phase::Withdrawn => return stuck("its rollout was given up, and nothing was purged"),
    }
    if !record.owed.is_empty() {
        return awaited("a purge is owed, and tried again");
    }
    let mut open =
        record.votes.iter().filter(|vote| vote.closed.is_none()).flat_map(|vote| vote.purges.listed.values());
    if let Some(refused) = open.find(|purge| !purge.refused.is_empty()) {
        return awaited(&format!("its purge is not made yet, and tried again: {}", refused.refused));
    }
    if record.awaits_vote() || record.votes.iter().any(|vote| vote.closed.is_none()) {
        return awaited("its purge is under way");
    }
    let ended = record.history.iter().rev().find(|closed| closed.seq == record.seq);
    match ended.map(|closed| (&closed.outcome, closed.why.as_str())) {
        Some((outcome, why)) if !is_purged(outcome) => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            let words = format!("its rollout ended: {outcome}{why}");
            if outcome.is_owed() { AtEdge::Awaited(words) } else { AtEdge::Stuck(words) }
        }
        // No site, no edge.
        Some((outcome @ (Outcome::NoSite | Outcome::NoDistribution), _)) => AtEdge::Edgeless(outcome.to_string()),
        // Also where the end is forgotten, or nothing has changed since it was first seen.
        Some(_) | None => match record.edge {
            Edge::Settled if record.settled.is_none() => AtEdge::Purged,
            Edge::Settled => stuck("the edge was last made to agree with another version"),
            Edge::Moved => stuck("another version has been served since the last purge"),
            Edge::Unknown => stuck("nothing was purged since allclear first saw it in the middle of a rollout"),
        },
    }
}

/// Whether nothing older is left at the edge after a rollout that ended so.
const fn is_purged(outcome: &Outcome) -> bool {
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
        | Outcome::SwitchedOff
        | Outcome::SetBack
        | Outcome::Dead => false,
    }
}
