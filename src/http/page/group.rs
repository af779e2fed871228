//! The group: its members, and the boards their records travel over.

use maud::{Markup, html};

use super::{SHOWN_MAX, more, tally};
use domain::broker::{BoardSeen, MemberSeen, Seen};
use domain::tally::ago;

/// The section of the group.
pub fn section(group: &Seen) -> Markup {
    html! {
        h2 { "Group" (tally(group.members.len())) }
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

fn row(member: &MemberSeen) -> Markup {
    html! {
        li {
            span.who { (member.name) @if let Some(version) = &member.version { small { "allclear " (version) } } }
            div {
                @if !member.agreed { span.pill.warn { "not agreed" } " " }
                @match (member.is_self, member.heard_s) {
                    (true, _) => "this member",
                    (false, _) if member.disbelieved.is_some() => "heard from, and not believed",
                    (false, Some(age)) => { "heard from " (ago(age)) }
                    (false, None) => "not heard from since this process started",
                }
                @for difference in &member.differences { p.fault { (difference) } }
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
                    @if let Some(age) = board.answered_s { "answered " (ago(age)) } @else { "has not answered yet" }
                    @if board.waiting > 0 { ", " (board.waiting) " to be posted" }
                }
                @if let Some(trouble) = &board.trouble { p.fault { (trouble) } }
            }
        }
    }
}
