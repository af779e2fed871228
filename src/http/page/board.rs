//! The first page: is my release out, and if not, why. A row for each workload that moves, moved lately or needs somebody.

use std::time::Duration;

use maud::{Markup, html};

use super::health::Health;
use super::lines::{Cell, Facts, counts, lines};
use super::mood::Mood;
use super::{SHOWN_MAX, Section, Trouble, View, clusters, history, link, objects, time, webhooks};
use crate::actors::observation::Observation;
use crate::telemetry::passages::{Passage, Stage};
use purge::broker::MemberSeen;
use purge::rollouts::versions::Has;

/// The page in parts.
pub(super) fn parts(view: &View<'_>) -> (Health, Vec<Section>) {
    let seen = match Health::of_process(view) {
        Ok(seen) => seen,
        Err(health) => {
            let leader = view.seen.ok().and_then(|seen| seen.standing_by.as_ref());
            let mut sections = vec![Section::new("health", health.markup())];
            sections.extend(leader.map(|leader| Section::new("leader", standing_by(leader))));
            return (health, sections);
        }
    };
    let (lines, all) = lines(view, seen);
    let health = Health::of_all(view, seen, &lines, troubles(seen));
    let sections = vec![
        Section::new("health", health.markup()),
        Section::new("board", board(view, seen, &lines, all)),
        Section::new("webhooks", webhooks::waiting(seen, &lines)),
        Section::new("other", webhooks::stray(seen)),
        Section::new("numbers", numbers(seen)),
    ];
    (health, sections)
}

/// What is wrong outside of the workloads, each with what a person does about it.
fn troubles(seen: &Observation) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = seen.troubles.iter().map(Trouble::of).collect();
    let holds = seen.group.iter().flat_map(|group| &group.holds).filter(|hold| counts(hold));
    troubles.extend(holds.map(|hold| Trouble::see("/group", format!("The group is held: {}", hold.words))));
    let dead = seen.deliveries.iter().filter(|delivery| delivery.given_up);
    troubles.extend(dead.map(|delivery| {
        let about = delivery.subject.display_name();
        Trouble::see("#webhooks", format!("The webhook {} was not told of {about}: {}", delivery.hook, delivery.state))
    }));
    troubles.extend(objects::troubles(seen));
    troubles
}

fn standing_by(leader: &str) -> Markup {
    html! {
        div.card.empty {
            "This replica does nothing while another one works. What goes on is shown by " (leader)
            ", whose name begins with that of its pod:"
            code { "kubectl port-forward pod/POD 8081" }
        }
    }
}

fn board(view: &View<'_>, seen: &Observation, lines: &[Facts<'_>], all: usize) -> Markup {
    let members: Vec<&MemberSeen> = seen.group.iter().flat_map(|group| &group.members).take(SHOWN_MAX).collect();
    let tells = lines.iter().any(|line| line.told(seen).is_some());
    html! {
        @if lines.is_empty() { (nothing(seen)) } @else {
            div.card.wide role="region" tabindex="0" aria-label="Releases" {
                table.board {
                    thead {
                        tr {
                            @for name in ["release", "runs", "edge has"] { th scope="col" { (name) } }
                            @for member in &members { th scope="col" { (member.name) small { (clusters::heard(member)) } } }
                            th scope="col" { "purged" }
                            @if tells { th scope="col" { "told" } }
                        }
                    }
                    @for line in lines { (row(view, seen, line, &members, tells)) }
                }
            }
            @if all > lines.len() {
                p.more {
                    "and " (all - lines.len()) " more; " a href="/workloads?only=needs-a-look" { "those that need a look" }
                    ", and " a href="/workloads?only=in-flight" { "those that move" }
                }
            }
        }
    }
}

fn row(view: &View<'_>, seen: &Observation, line: &Facts<'_>, members: &[&MemberSeen], tells: bool) -> Markup {
    let mood = line.mood();
    let columns = 4 + members.len() + usize::from(tells);
    let versions = line.summary.map(|summary| &summary.versions);
    let would = if view.about.dry_run { "would have " } else { "" };
    html! {
        tbody.(mood.class()) {
            tr {
                th scope="row" {
                    span.mark aria-hidden="true" { (mood.mark()) } " " (link::workload(line.workload))
                    @if let Some(passage) = line.passage { small { (time::moment(passage.last_ms, view.now_ms)) } }
                }
                td.change data-label="runs" { @if let Some(versions) = versions { (versions.runs) } @else { "–" } }
                td.change data-label="edge has" {
                    @match versions.map(|versions| (versions.at_edge, versions.edge_has.as_deref())) {
                        Some((Has::Same, Some(version))) => { (would) (version) },
                        Some((Has::Another, Some(version))) => span.pill.(if mood == Mood::Bad { "bad" } else { "" }) { (would) (version) },
                        Some((Has::Mixed, Some(version))) => span.pill.(if mood == Mood::Bad { "bad" } else { "" }) { (would) (version) " or newer" },
                        Some((Has::NoEdge, _)) => "no edge",
                        Some((Has::Same | Has::Another | Has::Mixed | Has::Unknown, _)) | None => "not known",
                    }
                }
                @for member in members {
                    @let ballot = line.tally.and_then(|tally| tally.members.iter().find(|ballot| ballot.member == member.name));
                    td.cluster data-label=(member.name) { (clusters::cell(line.parts, ballot, &member.name)) }
                }
                td data-label="purged" { (cell(view, &line.purged())) }
                @if tells { td data-label="told" { @if let Some(told) = line.told(seen) { (cell(view, &told)) } } }
            }
            tr.why { td colspan=(columns) { (why(view, line)) } }
        }
    }
}

/// Why it is where it is, how long each stage took, and what to do.
fn why(view: &View<'_>, line: &Facts<'_>) -> Markup {
    let conditions = line.summary.map_or(&[][..], |summary| &summary.conditions);
    html! {
        p { (line.reason()) }
        @for condition in conditions { p.fault { (condition) } }
        @if let Some(passage) = line.passage { (laps(view, passage, line.moves)) }
        @if let Some(next) = line.next() { p.next { span.kind { "Next: " } (next) } }
        @if let Some(remedy) = line.remedy() { p.next { span.kind { "What to do: " } (remedy) } }
        @if let Some(command) = line.command() { p.next { code.command { (command) } } }
    }
}

/// How long each stage took, and since when it is in the present one.
fn laps(view: &View<'_>, passage: &Passage, moves: bool) -> Markup {
    let known = passage.stages();
    let present = Stage::ALL.into_iter().rev().find_map(|stage| Some((stage, passage.began(stage)?)));
    let present = present.filter(|(stage, _)| moves && known.iter().all(|(done, ..)| done != stage));
    html! {
        @if !known.is_empty() || present.is_some() {
            p.laps {
                @for (index, (stage, _, took)) in known.iter().enumerate() {
                    @if index > 0 { " · " } span.kind { (stage.name()) } " " (time::span(0, *took))
                }
                @if let Some((stage, at_ms)) = present {
                    @if !known.is_empty() { " · " }
                    span.kind { (stage.name()) } " since " (time::moment(at_ms, view.now_ms))
                }
                @if !moves { (history::behind(passage)) }
            }
        }
    }
}

fn cell(view: &View<'_>, cell: &Cell) -> Markup {
    html! {
        @if cell.mood == Mood::Rest { span.quiet { (cell.words) } } @else { span.pill.(cell.mood.class()) { (cell.words) } }
        @if let Some(at_ms) = cell.at_ms { " " small { (time::absolute(at_ms, view.now_ms)) } }
    }
}

fn nothing(seen: &Observation) -> Markup {
    html! {
        div.card.empty {
            @if !seen.synced {
                "The workloads are still being listed."
            } @else if seen.workloads == 0 {
                "No workloads have been found in the namespaces that are watched. Is the right one named in NAMESPACE?"
                code { "allclear config show" }
            } @else {
                "Nothing has moved since this process started. To see how it goes, change an image:"
                code { "kubectl -n NAMESPACE set image deployment/NAME CONTAINER=IMAGE:TAG" }
            }
        }
    }
}

/// Ages below this are not said in seconds, so that a page at rest stays the same bytes.
const RECENT_S: u64 = 60;

fn numbers(seen: &Observation) -> Markup {
    let plural = |number: usize, one: &str| if number == 1 { one.to_owned() } else { format!("{one}s") };
    html! {
        p.more {
            "Watches " a href="/workloads" { (seen.workloads) " " (plural(seen.workloads, "workload")) }
            @match seen.distributions {
                None => " · distributions are not listed yet",
                Some((number, age_s)) => {
                    " · knows " (number) " " (plural(number, "distribution"))
                    @if age_s >= RECENT_S { ", listed " (kernel::text::duration(Duration::from_secs(age_s / RECENT_S * RECENT_S))) " ago" }
                }
            }
        }
        @for account in &seen.bill {
            p.more { "Purged " (account) }
        }
    }
}
