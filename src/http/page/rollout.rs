//! One rollout in flight: how far it is, what it waits for, and the tree of everything that belongs to it.

use maud::{Markup, html};

use super::About;
use crate::actors::observation::{DeliverySeen, Observation, PurgeSeen};
use domain::rollout::{PurgeSummary, Stage, Summary};
use domain::tally::Ballot;

/// The stations a rollout passes, in order, as the page names them.
const WAY: [(Stage, &str); 4] = [
    (Stage::Rollout, "rollout"),
    (Stage::Agreement, "agreement"),
    (Stage::Purge, "purge"),
    (Stage::Webhooks, "webhooks"),
];

/// Whether a rollout in flight shows this purge.
pub fn owns(seen: &Observation, purge: &PurgeSeen) -> bool {
    let mut shown = seen.rollouts.iter().flat_map(|summary| &summary.purges);
    shown.any(|summary| summary.reference == purge.reference.0)
}

/// A rollout in flight.
pub fn card(about: &About, seen: &Observation, summary: &Summary) -> Markup {
    html! {
        article.card {
            h3 {
                span.quiet { (summary.workload.namespace) "/" } (summary.workload.name)
                small { "rollout " (summary.seq) }
            }
            p.change { (summary.change) }
            (way(summary))
            p.state.over[summary.phase == "failed"] { (summary.state) }
            p.next { "Next: " (summary.next) }
            @for condition in &summary.conditions { p.fault { (condition) } }
            @if let Some(blocks) = blocks(seen, summary) { p.fault { (blocks) } }
            (tree(about, seen, summary))
            @if !summary.history.is_empty() {
                ul.before { @for closed in &summary.history { li { (closed) } } }
            }
        }
    }
}

fn way(summary: &Summary) -> Markup {
    html! {
        // What has failed is on no way any more; its state says so.
        @if summary.phase != "failed" && summary.phase != "withdrawn" {
            ol.way {
                @for (stage, name) in WAY {
                    li.done[stage < summary.stage].now[stage == summary.stage] { (name) }
                }
            }
        }
    }
}

/// Who waits for this cluster, unless the state says so.
fn blocks<'a>(seen: &'a Observation, summary: &Summary) -> Option<&'a String> {
    let tally = seen.tallies.iter().find(|tally| tally.workload == summary.workload)?;
    tally.blocks.as_ref().filter(|blocks| !summary.state.starts_with(blocks.as_str()))
}

/// group → member → phase → purges → webhooks.
fn tree(about: &About, seen: &Observation, summary: &Summary) -> Markup {
    let tally = seen.tallies.iter().find(|tally| tally.workload == summary.workload);
    let deliveries: Vec<&DeliverySeen> =
        seen.deliveries.iter().filter(|delivery| delivery.subject == summary.workload).collect();
    html! {
        div.tree {
            span.kind { "group" } (about.group)
            ul {
                @if let Some(tally) = tally {
                    @for ballot in &tally.members { (part(ballot)) }
                } @else {
                    @for member in &summary.members {
                        li {
                            span.kind { "member" } (member.member) span.pill.(mood(member.phase)) { (member.phase) }
                            span.change { (member.version) }
                        }
                    }
                }
                @for purge in &summary.purges {
                    li { span.kind { "purge" } (purge.distribution) ": " (live(seen, purge)) }
                }
                @for delivery in deliveries {
                    li {
                        span.kind { "webhook" } (delivery.hook) ": " (delivery.kind) ", " (delivery.state)
                    }
                }
            }
        }
    }
}

/// One member's part, and why it is waited for.
fn part(ballot: &Ballot) -> Markup {
    html! {
        li {
            span.kind { "member" } (ballot.member) span.pill.(stand(ballot)) { (ballot.phase) }
            @if ballot.voted { span.pill.good { "voted" } }
            span.change { (ballot.version) }
            @if let Some(why) = &ballot.awaited { p.next { "awaited: " (why) } }
        }
    }
}

/// One that is complete and waited for all the same is no good news.
fn stand(ballot: &Ballot) -> &'static str {
    match (mood(&ballot.phase), &ballot.awaited) {
        ("good", Some(_)) => "warn",
        (mood, _) => mood,
    }
}

fn mood(phase: &str) -> &'static str {
    match phase {
        "complete" => "good",
        "rolling" => "busy",
        "failed" => "bad",
        _ => "",
    }
}

/// What the invalidator says of a purge is newer than what the record says.
fn live<'a>(seen: &'a Observation, purge: &'a PurgeSummary) -> &'a str {
    let working = seen.purges.iter().find(|seen| seen.reference.0 == purge.reference);
    working.map_or(&purge.state, |seen| &seen.state)
}
