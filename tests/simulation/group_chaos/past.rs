//! Members that vote for what they do not run any more (decision 52): they had come to it, and either went on, or another member had
//! voted for it already.

use kernel::id::{Seq, Vector, WorkloadId};
use kernel::names::image::Version;
use support::fakes::{Millis, Written};

use super::{Reached, Run};
use crate::group::NAMES;

/// Since when at the earliest a rollout had its number. What it had come to may be in no record before it has gone on: a write takes its
/// time, and one that fails is repeated unchanged. But it began after the last record of an earlier number was made, and that was made
/// after the one before it was written.
pub(super) fn begins_after<'a>(written: impl Iterator<Item = &'a Written>, seq: Seq) -> Millis {
    let earlier: Vec<_> =
        written.take_while(|written| written.record.as_ref().is_none_or(|record| record.seq < seq)).collect();
    let revision = |written: &Written| written.record.as_ref().map(|record| record.revision);
    let last = earlier.last().copied().map(revision);
    earlier.iter().rfind(|written| Some(revision(written)) != last).map_or(0, |before| before.at)
}

/// When a member came to `version` while that was its rollout.
pub(super) fn came_to(
    spans: &[(Millis, Millis, &Reached)],
    index: usize,
    (since, voted): (Millis, Millis),
    version: &Version,
) -> Option<Millis> {
    let came_to = |(from, end, reached): &&(Millis, Millis, &Reached)| {
        reached[index].as_ref() == Some(version) && *from <= voted && since <= *end
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
