//! What each cluster of the group shows of a release: a cell of the board, and a line on a workload's page.
//!
//! It is as old as what was last heard from its member, and says so where that is silent: what is old has no colour. Our own cell has no
//! words, because the row has them.

use maud::{Markup, html};

use super::lines::mood_of_ballot;
use super::mood::Mood;
use crate::actors::observation::Observation;
use kernel::id::WorkloadId;
use purge::agreement::tally::Ballot;
use purge::broker::MemberSeen;
use purge::rollouts::part::PartSeen;

/// The parts of all members in a workload; none while alone.
pub(super) fn of<'a>(seen: &'a Observation, workload: &WorkloadId) -> &'a [PartSeen] {
    seen.parts.iter().find(|parts| parts.workload == *workload).map_or(&[], |parts| &parts.members)
}

/// How old what is known of a member is, in words.
pub(super) fn heard(member: &MemberSeen) -> &str {
    match (member.is_self, member.heard_s) {
        (true, _) => "this member",
        (false, _) if member.disbelieved.is_some() => "heard from, and not believed",
        (false, Some(_)) => member.heard.as_deref().unwrap_or("heard from"),
        (false, None) => "not heard from since this process started",
    }
}

/// One member's cell: its phase or vote, its version, and its words.
pub(super) fn cell(parts: &[PartSeen], ballot: Option<&Ballot>, member: &str) -> Markup {
    let part = parts.iter().find(|part| part.member == member);
    let voted = ballot.is_some_and(|ballot| ballot.voted);
    let phase = part.map(|part| part.phase.as_str()).or(ballot.map(|ballot| ballot.phase.as_str()));
    let version = part.map(|part| part.version.as_str()).or(ballot.map(|ballot| ballot.version.as_str()));
    html! {
        @if let Some(phase) = phase {
            span.pill.(mood(part, ballot).class()) { (if voted { "voted" } else { phase }) }
            @if let Some(version) = version.filter(|version| !version.is_empty()) { " " small.change { (version) } }
            @if let Some(part) = part { (words(part, parts, None)) }
        }
    }
}

/// The words of another member, as far as they say more than our own, and than what was `said` of it.
pub(super) fn words(part: &PartSeen, parts: &[PartSeen], said: Option<&str>) -> Markup {
    let is_news = |words: &&String| said.is_none_or(|said| !said.contains(words.as_str()));
    let own = parts.iter().find(|part| part.is_self);
    let is_other = |of: fn(&PartSeen) -> &Option<String>| own.map(of) != Some(of(part));
    let PartSeen { phase, says, edge, stale, ended, silent, .. } = part;
    html! {
        @if !part.is_self {
            @if let Some(minutes) = part.for_s.map(|seconds| seconds / 60).filter(|minutes| *minutes > 0) {
                " " small.quiet { "for " (minutes) " min" }
            }
            @if let Some(says) = says.as_ref().filter(is_news) { p.says { (says) } }
            @else if phase == "rolling" && says.is_none() && silent.is_none() { p.says { "gives no reason" } }
            @if let Some(stale) = stale { p.fault.stale { "edge stale: " (stale) } }
            @else if let Some(edge) = edge.as_ref().filter(|_| is_other(|part| &part.edge)) { p.says { "edge has " (edge) } }
            @if let Some(ended) = ended.as_ref().filter(|_| is_other(|part| &part.ended)) { p.says { (ended) } }
            @if let Some(silent) = silent.as_ref().filter(is_news) {
                p.says { @if part.seq.is_some() { "last known: " } (part.member) " " (silent) }
            }
        }
    }
}

/// What was last known of a silent member is no news, good or bad.
pub(super) fn mood(part: Option<&PartSeen>, ballot: Option<&Ballot>) -> Mood {
    let Some(part) = part else { return ballot.map_or(Mood::Rest, mood_of_ballot) };
    match (part.phase.as_str(), ballot) {
        _ if part.silent.is_some() => Mood::Rest,
        _ if part.stale.is_some() => Mood::Bad,
        (_, Some(ballot)) => mood_of_ballot(ballot),
        ("failed" | "withdrawn", None) => Mood::Warn,
        ("rolling", None) => Mood::Busy,
        ("complete", None) => Mood::Good,
        (_, None) => Mood::Rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(member: &str, phase: &str) -> PartSeen {
        PartSeen {
            member: member.to_owned(),
            is_self: member == "eu-1",
            seq: Some(4),
            phase: phase.to_owned(),
            version: "web: 2".to_owned(),
            edge: Some("web: 1".to_owned()),
            ..PartSeen::default()
        }
    }

    fn shown(part: PartSeen) -> String {
        let parts = [self::part("eu-1", "complete"), part];
        cell(&parts, None, &parts[1].member).into_string()
    }

    #[test]
    fn a_cell_has_the_reason_of_its_member_and_how_long_it_lasted() {
        let says = Some("0 of 2 pods ready; web-1: <ImagePullBackOff>".to_owned());
        let seen = shown(PartSeen { says, for_s: Some(250), ..part("us-1", "rolling") });
        assert!(seen.contains("pill busy\">rolling") && seen.contains("web-1: &lt;ImagePullBackOff&gt;"), "{seen}");
        assert!(seen.contains("for 4 min") && !seen.contains("edge has"), "the edge is as it is here: {seen}");
        let seen = shown(PartSeen { for_s: Some(59), ..part("us-1", "rolling") });
        assert!(seen.contains("gives no reason") && !seen.contains("for "), "{seen}");
    }

    #[test]
    fn what_is_old_says_so_and_has_no_colour() {
        let silent = || Some("has not been heard from for more than a minute".to_owned());
        let ends = [("complete", None), ("rolling", None), ("complete", Some("AccessDenied".to_owned()))];
        for (phase, stale) in ends {
            let seen = shown(PartSeen { silent: silent(), stale, ..part("us-1", phase) });
            assert!(seen.contains(&format!("pill rest\">{phase}")), "{seen}");
            assert!(seen.contains("last known: us-1 has not been heard from for more than a minute"), "{seen}");
            assert!(!seen.contains("gives no reason"), "{seen}");
        }
        let never = PartSeen { silent: silent(), seq: None, edge: None, ..part("us-1", "unknown") };
        let seen = shown(never);
        assert!(seen.contains("us-1 has not been heard") && !seen.contains("last known"), "{seen}");
    }

    #[test]
    fn an_end_or_an_edge_that_differs_from_ours_is_said_and_a_stale_edge_is_red() {
        let ended = |words: &str| Some(words.to_owned());
        let ours = || PartSeen { ended: ended("purged"), ..part("eu-1", "complete") };
        let of = |theirs: PartSeen| cell(&[ours(), theirs], None, "us-1").into_string();
        let same = of(PartSeen { ended: ended("purged"), ..part("us-1", "complete") });
        assert!(!same.contains("purged") && !same.contains("edge has"), "{same}");
        let other = of(PartSeen { ended: ended("not purged: it failed"), ..part("us-1", "failed") });
        assert!(other.contains("pill warn\">failed") && other.contains("not purged: it failed"), "{other}");
        let other = of(PartSeen { edge: Some("web: 2".to_owned()), ..part("us-1", "complete") });
        assert!(other.contains("edge has web: 2"), "{other}");
        let stale = of(PartSeen { stale: Some("AccessDenied".to_owned()), ..part("us-1", "complete") });
        assert!(stale.contains("pill bad") && stale.contains("edge stale: AccessDenied"), "{stale}");
    }

    #[test]
    fn a_vote_is_said_before_a_phase_and_a_member_of_which_nothing_is_known_has_an_empty_cell() {
        let ballot = Ballot { voted: true, phase: "complete".to_owned(), ..Ballot::default() };
        let parts = [part("us-1", "complete")];
        assert!(cell(&parts, Some(&ballot), "us-1").into_string().contains("pill good\">voted"));
        assert_eq!(cell(&parts, None, "ap-1").into_string(), "");
    }
}
