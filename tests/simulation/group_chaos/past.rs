//! Members that vote for what they do not run any more (decision 52): they had come to it, and either went on, or another member had
//! voted for it already.

use kernel::id::{Vector, WorkloadId};
use kernel::names::image::Version;
use support::fakes::Millis;

use super::{Reached, Run};
use crate::group::NAMES;

/// When a member came to `version` while that was its rollout.
pub(super) fn came_to(
    spans: &[(Millis, Millis, &Reached)],
    index: usize,
    (begun, voted): (Millis, Millis),
    version: &Version,
) -> Option<Millis> {
    let came_to = |(from, end, reached): &&(Millis, Millis, &Reached)| {
        reached[index].as_ref() == Some(version) && *from <= voted && begun <= *end
    };
    spans.iter().find(came_to).map(|(came, ..)| *came)
}

/// Whether a member that came to `version` was, when it looked before its vote, at one that is not the one it had come from
/// (decision 52).
pub(super) fn is_past(
    spans: &[(Millis, Millis, &Reached)],
    index: usize,
    came: Millis,
    version: &Version,
    looked_at: Option<&Version>,
) -> bool {
    let mut earlier =
        spans.iter().filter(|(from, ..)| *from < came).filter_map(|(.., reached)| reached[index].as_ref());
    let before = earlier.rfind(|earlier| *earlier != version);
    looked_at.is_some_and(|now| now != version && Some(now) != before)
}

/// Whether another member had voted for it before. Its vote is never taken back, so whoever has gone on or back since joins it.
pub(super) fn is_joined(run: &Run, (workload, vector): (&WorkloadId, &Vector), name: &str, voted: Millis) -> bool {
    let others = run.worlds.iter().zip(NAMES).filter(|(_, other)| *other != name);
    others.into_iter().any(|(world, _)| {
        let state = world.state();
        let mut before = state.written.iter().filter(|written| written.workload == *workload && written.at <= voted);
        before.any(|written| written.record.iter().flat_map(|record| &record.votes).any(|vote| vote.vector == *vector))
    })
}
