//! Lines about the members' parts in one rollout, for `status` and `explain`.

use std::time::Duration;

use crate::looking::layout::PAD;
use kernel::text::duration;
use purge::agreement::tally::{Ballot, Executed};
use purge::rollouts::part::PartSeen;

/// A line for each member, with what its part says beside.
pub(crate) fn members(members: &[Ballot], parts: &[PartSeen]) -> Vec<String> {
    let name =
        |ballot: &Ballot| if ballot.is_self { format!("{} (here)", ballot.member) } else { ballot.member.clone() };
    let width = members.iter().map(|ballot| name(ballot).chars().count()).max().unwrap_or_default();
    let line = |ballot: &Ballot| {
        let name = name(ballot);
        let pad: String = std::iter::repeat_n(PAD, width.saturating_sub(name.chars().count())).collect();
        let beside = parts.iter().find(|part| part.member == ballot.member && !part.is_self);
        let beside = beside.map_or_else(String::new, |part| said(part, parts, ballot.awaited.as_deref().unwrap_or("")));
        format!("{name}{pad} {}{beside}", part(ballot))
    };
    members.iter().map(line).collect()
}

fn part(ballot: &Ballot) -> String {
    let Ballot { phase, version, seq, voted, awaited, .. } = ballot;
    let version = if version.is_empty() { String::new() } else { format!(" at {version}") };
    let number = seq.map_or_else(String::new, |seq| format!(" (rollout {seq})"));
    let vote = if *voted { "; has voted" } else { "" };
    let awaited = awaited.as_ref().map_or_else(String::new, |why| format!("; awaited: {why}"));
    format!("{phase}{version}{number}{vote}{awaited}")
}

/// What another member's part says more than ours, and than why it is waited for.
fn said(part: &PartSeen, parts: &[PartSeen], awaited: &str) -> String {
    let own = parts.iter().find(|part| part.is_self);
    let PartSeen { says, for_s, edge, stale, ended, silent, .. } = part;
    let edge = edge.as_ref().filter(|_| own.is_none_or(|own| own.edge != part.edge) && stale.is_none());
    let ended = ended.as_ref().filter(|_| own.is_none_or(|own| own.ended != part.ended));
    let said = [
        says.clone(),
        for_s.filter(|seconds| *seconds > 0).map(|seconds| format!("for {}", duration(Duration::from_secs(seconds)))),
        stale.as_ref().map(|why| format!("edge stale: {why}")),
        edge.map(|edge| format!("edge has {edge}")),
        ended.cloned(),
        silent.clone(),
    ];
    let said = said.into_iter().flatten().filter(|words| !awaited.contains(words.as_str()));
    said.map(|words| format!("; {words}")).collect()
}

/// Why a board fails, beside whose name it is said: without the name.
pub(crate) fn board_trouble<'a>(name: &str, trouble: &'a str) -> &'a str {
    trouble.split_once(&format!(" in Redis {name}: ")).map_or(trouble, |(_, why)| why)
}

/// A line for a purge.
pub(crate) fn purge(purge: &Executed) -> String {
    let Executed { distribution, executors, invalidation, state } = purge;
    let id = invalidation.as_ref().map_or_else(String::new, |id| format!(" by {id}"));
    let by = match executors.split_first() {
        None => String::new(),
        Some((first, [])) => format!("; made by {first}"),
        Some((first, rest)) => format!("; made by {first}, else by {}", rest.join(", ")),
    };
    format!("{distribution}{id}: {state}{by}")
}
