//! How far a workload is on its way to what a person or a CI job waits for, judged by a fresh read of it and of its record.
//!
//! ```text
//! awaited ──▶ reached
//!    └──────▶ ended: failed, another version took its place, nothing to purge
//! ```
//!
//! A change that allclear has not seen yet is awaited: `kubectl apply` and a wait right behind it are never answered by the
//! record of the version before. Not for asking, nor for how long; that is `cli::wait`.

use crate::bounds::policy::Policy;
use crate::records::record::{Phase, Record};
use crate::rollouts::edge::{self, AtEdge};
use crate::rollouts::rollout::as_it_runs;
use crate::workloads::readiness;
use crate::workloads::workload::Workload;
use kernel::names::image::{Version, difference};
use kinds::reported::Standing;

/// The goal of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Every pod runs the new version, and no old one serves any more.
    Complete,
    /// The edge serves nothing older either.
    Purged,
    /// Nothing is left to do: as purged where there is an edge, and all notices are sent.
    Settled,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    Reached,
    /// Not yet. What is waited for, in words.
    Awaited(String),
    /// It will not be reached, unless a person changes something. Why, in words.
    Ended(String),
}

/// How far a workload is on its way to a goal. `since` is the version that it ran when the wait began: another one ends the wait.
pub fn way(goal: Goal, since: &Version, record: Option<&Record>, workload: Option<&Workload>, policy: &Policy) -> Way {
    if let Some(Ok(now)) = workload.map(|workload| &workload.version)
        && !now.same_content(since, policy.version.same_digest_is_same)
    {
        return Way::Ended(format!("another version took its place: {}", difference(since, now)));
    }
    let running = record.zip(workload).map(|(record, workload)| as_it_runs(record, workload, policy));
    match reached(goal, record, running.as_deref().or(workload), policy) {
        Way::Reached if running.is_some_and(|running| running.withdrawn.is_some()) => {
            Way::Ended("its update was aborted, and what ran before runs".to_owned())
        }
        way => way,
    }
}

fn reached(goal: Goal, record: Option<&Record>, workload: Option<&Workload>, policy: &Policy) -> Way {
    match goal {
        Goal::Complete => complete(record, workload, policy),
        Goal::Purged => match edge::at_edge(record, workload, policy) {
            AtEdge::Purged => Way::Reached,
            AtEdge::Edgeless(why) => Way::Ended(format!("{why}; --for settled takes that for an end")),
            AtEdge::Awaited(why) => Way::Awaited(why),
            AtEdge::Stuck(why) => Way::Ended(why),
        },
        Goal::Settled => match edge::at_edge(record, workload, policy) {
            AtEdge::Purged | AtEdge::Edgeless(_) if record.is_some_and(Record::is_open) => {
                Way::Awaited("what happened is being told".to_owned())
            }
            AtEdge::Purged | AtEdge::Edgeless(_) => Way::Reached,
            AtEdge::Awaited(why) => Way::Awaited(why),
            AtEdge::Stuck(why) => Way::Ended(why),
        },
    }
}

fn complete(record: Option<&Record>, workload: Option<&Workload>, policy: &Policy) -> Way {
    let record = match edge::followed(record, workload, policy) {
        Ok(record) => record,
        Err(AtEdge::Awaited(why)) => return Way::Awaited(why),
        Err(AtEdge::Stuck(why) | AtEdge::Edgeless(why)) => return Way::Ended(why),
        Err(AtEdge::Purged) => return Way::Reached,
    };
    match &record.phase {
        Phase::Rolling => Way::Awaited("its rollout is not complete".to_owned()),
        Phase::Failed(failure) => Way::Ended(format!("its rollout failed: {failure}")),
        Phase::Complete | Phase::Withdrawn => {
            match workload.map(|workload| workload.standing(policy.zero_is_complete)) {
                Some(Standing::Waiting(wait)) => Way::Awaited(readiness::words(&wait, None)),
                Some(Standing::GivenUp(why)) => Way::Ended(why.to_string()),
                Some(Standing::Complete) | None => Way::Reached,
            }
        }
    }
}
