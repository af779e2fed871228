//! The page of the group: its members, and the boards over which their records travel. Workloads in each cluster are on the board.

use maud::{Markup, html};

use super::health::Health;
use super::lines::counts;
use super::mood::Mood;
use super::{SHOWN_MAX, Section, Trouble, View, clusters, more};
use purge::agreement::roster::HEARD_FOR;
use purge::agreement::tally::ago;
use purge::broker::{BoardSeen, MemberSeen, Seen};

/// An age below this is not said in seconds, so that a page at rest stays the same bytes. Members send a beat every few seconds.
const RECENT_S: u64 = 20;

pub(super) fn parts(view: &View<'_>) -> (Health, Vec<Section>) {
    let group = match Health::of_process(view) {
        Ok(seen) => seen.group.as_ref(),
        Err(health) => {
            let sections = vec![Section::new("health", health.markup())];
            return (health, sections);
        }
    };
    let health = match group {
        None => Health::plain(Mood::Rest, "This cluster is in no group"),
        Some(group) => of_group(group, &view.about.group),
    };
    let body = html! { @if let Some(group) = group { (members(group)) } };
    let sections = vec![Section::new("health", health.markup()), Section::new("group", body)];
    (health, sections)
}

/// A hold comes first, then a member that is not agreed on or not heard from, then a Redis that does not answer.
fn of_group(group: &Seen, name: &str) -> Health {
    if let Some(hold) = group.holds.iter().find(|hold| counts(hold)) {
        let troubles = group.holds.iter().map(|hold| Trouble::of(&hold.words)).collect();
        let trouble = Trouble::of(&hold.words);
        return Health { troubles, ..Health::plain(Mood::Warn, format!("Group {name} is held: {}", trouble.lead())) };
    }
    let odd = group.members.iter().find(|member| !member.agreed || is_silent(member));
    let board = group.boards.iter().find_map(|board| Some((board, board.trouble.as_ref()?)));
    match (odd, board) {
        (Some(member), _) if !member.agreed => {
            Health::plain(Mood::Warn, format!("{} is not agreed on by all", member.name))
        }
        (Some(member), _) => Health::plain(Mood::Warn, format!("{} is not heard from", member.name)),
        (None, Some((board, _))) => Health::plain(Mood::Warn, format!("Redis {} does not answer", board.name)),
        (None, None) => Health::plain(Mood::Good, format!("All members of {name} are heard from")),
    }
}

/// As the roster has it: after this long without a beat, somebody should look.
fn is_silent(member: &MemberSeen) -> bool {
    let is_long_ago = |age_s: u64| age_s > HEARD_FOR.as_secs();
    !member.is_self && (member.disbelieved.is_some() || member.heard_s.is_none_or(is_long_ago))
}

fn members(group: &Seen) -> Markup {
    html! {
        h2 { "Members" }
        div.card { ul.rows { @for member in group.members.iter().take(SHOWN_MAX) { (row(member)) } } (more(group.members.len())) }
        @if !group.boards.is_empty() {
            h2 { "Redis" }
            div.card { ul.rows { @for board in group.boards.iter().take(SHOWN_MAX) { (redis(board)) } } (more(group.boards.len())) }
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
                (clusters::heard(member))
                @for difference in &member.differences { p.fault { (difference) } }
                @for why in &member.unfollowed { p { (why) } }
            }
        }
    }
}

fn redis(board: &BoardSeen) -> Markup {
    html! {
        li {
            span.who { (board.name) }
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
