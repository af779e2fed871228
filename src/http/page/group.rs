//! The group: its members, the boards their records travel over, and each workload in flight in each cluster.

use maud::{Markup, html};

use super::{SHOWN_MAX, link, more, rollout, tally};
use purge::agreement::tally::{Tally, ago};
use purge::broker::{BoardSeen, MemberSeen, Seen};

/// An age below this is not said in seconds, so that a page at rest stays the same bytes. Members send a beat every few seconds.
const RECENT_S: u64 = 20;

/// The section of the group.
pub(super) fn section(group: &Seen, tallies: &[Tally]) -> Markup {
    html! {
        h2 { "Group" (tally(group.members.len())) }
        @if !tallies.is_empty() { (matrix(group, tallies)) }
        div.card {
            @for hold in &group.holds { p.fault { "Nothing is purged: " (hold.words) } }
            ul.rows {
                @for member in group.members.iter().take(SHOWN_MAX) { (row(member)) }
                @for board in group.boards.iter().take(SHOWN_MAX) { (redis(board)) }
            }
            (more(group.members.len()))
        }
    }
}

/// Each workload in flight, in each cluster.
fn matrix(group: &Seen, tallies: &[Tally]) -> Markup {
    let names: Vec<&String> = group.members.iter().map(|member| &member.name).take(SHOWN_MAX).collect();
    html! {
        div.card.wide role="region" tabindex="0" aria-label="Workloads by cluster" {
            table.matrix {
                thead { tr { th scope="col" { "workload" } @for name in &names { th scope="col" { (name) } } } }
                tbody {
                    @for tally in tallies.iter().take(SHOWN_MAX) {
                        tr {
                            th scope="row" { (link::workload(&tally.workload)) }
                            @for name in &names {
                                @let ballot = tally.members.iter().find(|ballot| ballot.member == **name);
                                td.cell data-member=(name) { @if let Some(ballot) = ballot { (rollout::standing(ballot)) } @else { "–" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `just now`, `40s ago`.
fn since(age_s: u64) -> String {
    if age_s < RECENT_S { "just now".to_owned() } else { ago(age_s) }
}

fn row(member: &MemberSeen) -> Markup {
    html! {
        li {
            span.who { (member.name) @if let Some(version) = &member.version { small { "allclear " (version) } } }
            div {
                @if !member.agreed { span.pill.warn { "not agreed" } " " }
                @match (member.is_self, member.heard_s) {
                    (true, _) => "this member",
                    (false, _) if member.disbelieved.is_some() => "heard from, and not believed",
                    (false, Some(_)) => { (member.heard.as_deref().unwrap_or("heard from")) }
                    (false, None) => "not heard from since this process started",
                }
                @for difference in &member.differences { p.fault { (difference) } }
                @for why in &member.unfollowed { p { (why) } }
            }
        }
    }
}

fn redis(board: &BoardSeen) -> Markup {
    html! {
        li {
            span.who { (board.name) small { "Redis" } }
            div {
                @if let Some(same) = &board.same_as { "the same server as " (same) } @else {
                    @if let Some(age) = board.answered_s { "answered " (since(age)) } @else { "has not answered yet" }
                    @if board.waiting > 0 { ", " (board.waiting) " to be posted" }
                }
                @if let Some(trouble) = &board.trouble { p.fault { (trouble) } }
            }
        }
    }
}
