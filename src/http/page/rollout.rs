//! One rollout: how far it is and when it came there, what it waits for, and everything that belongs to it.

use maud::{Markup, html};

use super::lines::is_held_up;
use super::mood::Mood;
use super::{View, clusters, link, time};
use crate::actors::observation::{DeliverySeen, Observation};
use crate::telemetry::chronicle::Moment;
use notices::notice::Kind;
use purge::agreement::tally::Ballot;
use purge::rollouts::part::PartSeen;
use purge::rollouts::rollout::{PurgeSummary, Stage, Summary};

/// The stations a rollout passes, in order, as the page names them, each with the notice that tells that it began.
const WAY: [(Stage, &str, Kind); 4] = [
    (Stage::Rollout, "rollout", Kind::RolloutStarted),
    (Stage::Agreement, "agreement", Kind::RolloutCompleted),
    (Stage::Purge, "purge", Kind::PurgeStarted),
    (Stage::Webhooks, "webhooks", Kind::PurgeCompleted),
];

/// A rollout, in full.
pub(super) fn inside(view: &View<'_>, seen: &Observation, summary: &Summary) -> Markup {
    html! {
        p.change { (summary.change) }
        (way(view, summary))
        p.state.over[summary.phase == "failed"] { (summary.state) }
        p.next { span.kind { "Next: " } (summary.next) }
        @for older in older(seen, summary) { p.next { span.kind { "Older: " } (older) } }
        @for condition in &summary.conditions { p.fault { (condition) } }
        (blocks(seen, summary))
        (hosts(view, summary))
        (tree(view, seen, summary))
    }
}

/// A line for each older rollout that is not over: as the group has it, if there is one.
fn older<'a>(seen: &'a Observation, summary: &'a Summary) -> &'a [String] {
    let tally = seen.tallies.iter().find(|tally| tally.workload == summary.workload);
    tally.map(|tally| tally.older.as_slice()).filter(|older| !older.is_empty()).unwrap_or(&summary.past.older)
}

/// The notices of this very rollout.
fn told<'a>(view: &'a View<'_>, summary: &Summary) -> impl DoubleEndedIterator<Item = &'a Moment> {
    let (workload, seq) = (summary.workload.clone(), summary.seq);
    view.moments.iter().filter(move |moment| moment.workload == workload && moment.seq == seq)
}

/// The stations, with the time at which each began and how long it took.
fn way(view: &View<'_>, summary: &Summary) -> Markup {
    let begins =
        WAY.map(|(_, _, kind)| told(view, summary).find(|moment| moment.kind == kind).map(|moment| moment.at_ms));
    let over = summary.stage == Stage::Idle;
    // The end of the way: webhooks have no notice of their own, so their station has no length.
    let next = |index: usize| begins.iter().skip(index + 1).flatten().next().copied();
    html! {
        // What has failed is on no way any more; its state says so.
        @if summary.phase != "failed" && summary.phase != "withdrawn" && (!over || begins.iter().any(Option::is_some)) {
            ol.way aria-label="How far it is" {
                @for (index, ((stage, name, _), began)) in WAY.into_iter().zip(begins).enumerate() {
                    @let (done, now) = (stage < summary.stage && (!over || began.is_some()), stage == summary.stage);
                    li.done[done].now[now] aria-current=[now.then_some("step")] {
                        (name)
                        @if done { span.unseen { " done" } }
                        @if let Some(at_ms) = began {
                            div { (time::absolute(at_ms, view.now_ms)) }
                            @if let Some(next_ms) = next(index) { div { "took " (time::span(at_ms, next_ms)) } }
                            @else if now { div { "began " (time::ago(at_ms, view.now_ms)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The members that wait for this cluster, unless the state names them; amber where nothing moves here.
fn blocks(seen: &Observation, summary: &Summary) -> Markup {
    let tally = seen.tallies.iter().find(|tally| tally.workload == summary.workload);
    let blocks = tally.and_then(|tally| Some((tally, tally.blocks.as_ref()?)));
    html! {
        @if let Some((tally, words)) = blocks {
            @let said = summary.state.starts_with(words.as_str());
            @if is_held_up(tally) { p.fault { span.pill.warn { "others wait" } " " @if !said { (words) } } }
            @else if !said { p.next { (words) } }
        }
    }
}

/// The hosts that are known from the notices of it, or of the rollout before.
fn hosts(view: &View<'_>, summary: &Summary) -> Markup {
    let newest =
        view.moments.iter().rev().find(|moment| moment.workload == summary.workload && !moment.hosts.is_empty());
    html! {
        @if let Some(moment) = newest {
            p.next {
                span.kind { "Hosts: " }
                @for (index, host) in moment.hosts.iter().enumerate() { @if index > 0 { ", " } (host) }
            }
        }
    }
}

/// group → member → phase → purges → webhooks.
fn tree(view: &View<'_>, seen: &Observation, summary: &Summary) -> Markup {
    let tally = seen.tallies.iter().find(|tally| tally.workload == summary.workload);
    let deliveries: Vec<&DeliverySeen> =
        seen.deliveries.iter().filter(|delivery| delivery.subject == summary.workload).collect();
    // Alone there is no member to agree with.
    let members = if summary.members.len() > 1 { summary.members.as_slice() } else { &[] };
    let is_empty = tally.is_none() && members.is_empty() && summary.purges.is_empty() && deliveries.is_empty();
    html! {
        @if !is_empty {
            div.tree {
                @if tally.is_some() || !members.is_empty() {
                    span.kind { "group" } (view.about.group)
                    @if let Some(name) = tally.and_then(|tally| tally.known_as.as_ref()) { ", where it is called " (name) }
                }
                ul {
                    @if let Some(tally) = tally {
                        @let parts = clusters::of(seen, &summary.workload);
                        @for ballot in &tally.members { (part(ballot, parts)) }
                    } @else {
                        @for member in members {
                            li {
                                span.kind { "member" } (member.member) span.pill.(mood(member.phase).class()) { (member.phase) }
                                span.change { (member.version) }
                            }
                        }
                    }
                    @for purge in &summary.purges {
                        li {
                            span.kind { "purge" } (link::invalidation(&purge.distribution, purge.invalidation.as_deref())) ": "
                            (live(seen, purge))
                        }
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
}

/// One member's part, and why it is waited for.
fn part(ballot: &Ballot, parts: &[PartSeen]) -> Markup {
    let part = parts.iter().find(|part| part.member == ballot.member);
    html! {
        li {
            span.kind { "member" } (ballot.member) (standing(ballot, clusters::mood(part, Some(ballot))))
            @if let Some(part) = part { (clusters::words(part, parts, ballot.awaited.as_deref())) }
            @if let Some(why) = &ballot.awaited { p.next { "awaited: " (why) } }
        }
    }
}

/// Phase, vote and version of a member.
fn standing(ballot: &Ballot, mood: Mood) -> Markup {
    html! {
        span.pill.(mood.class()) { (ballot.phase) }
        @if ballot.voted { span.pill.good { "voted" } }
        span.change { (ballot.version) }
    }
}

fn mood(phase: &str) -> Mood {
    match phase {
        "complete" => Mood::Good,
        "rolling" => Mood::Busy,
        "failed" | "withdrawn" => Mood::Warn,
        _ => Mood::Rest,
    }
}

/// What the invalidator says of a purge is newer than what the record says.
fn live<'a>(seen: &'a Observation, purge: &'a PurgeSummary) -> &'a str {
    let working = seen.purges.iter().find(|seen| seen.reference.0 == purge.reference);
    working.map_or(&purge.state, |seen| &seen.state)
}
