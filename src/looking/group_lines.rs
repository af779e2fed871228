//! Lines about the members' parts in one rollout, for `status` and `explain`.

use crate::looking::layout::PAD;
use purge::agreement::tally::{Ballot, Executed};

/// A line for each member.
pub(crate) fn members(members: &[Ballot]) -> Vec<String> {
    let name =
        |ballot: &Ballot| if ballot.is_self { format!("{} (here)", ballot.member) } else { ballot.member.clone() };
    let width = members.iter().map(|ballot| name(ballot).chars().count()).max().unwrap_or_default();
    let line = |ballot: &Ballot| {
        let name = name(ballot);
        let pad: String = std::iter::repeat_n(PAD, width.saturating_sub(name.chars().count())).collect();
        format!("{name}{pad} {}", part(ballot))
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
