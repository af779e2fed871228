//! The first page: everything that is in flight, or needs a look, and a search among all workloads.

use std::time::Duration;

use maud::{Markup, html};

use super::health::Health;
use super::{SHOWN_MAX, Section, View, count, group, link, more, objects, rollout, tally, time, workload, workloads};
use crate::actors::observation::{DeliverySeen, Observation, PurgeSeen};
use kernel::id::{Subject, WorkloadId};
use purge::rollouts::browse::Search;
use purge::rollouts::rollout::Summary;
use purge::rollouts::unwell::Unwell;

/// The page in parts.
pub(super) fn parts(view: &View<'_>, search: &Search) -> (Health, Vec<Section>) {
    let seen = match (Health::of_process(view), view.seen) {
        (Ok(()), Ok(seen)) => seen,
        (Err(health), seen) => {
            let leader = seen.ok().and_then(|seen| seen.standing_by.as_ref());
            let mut sections = vec![Section::new("health", health.markup())];
            sections.extend(leader.map(|leader| Section::new("leader", standing_by(leader))));
            return (health, sections);
        }
        (Ok(()), Err(reason)) => {
            let health = Health::plain(super::health::Mood::Bad, reason.as_str());
            return (health, Vec::new());
        }
    };
    let health = Health::of_all(view, seen);
    let sections = vec![
        Section::new("health", health.markup()),
        Section::new("numbers", numbers(view, seen)),
        Section::new("look", html! { @if !seen.unwell.is_empty() { (unwell(view, &seen.unwell)) } }),
        Section::new("quarantined", html! { @if !seen.quarantined.is_empty() { (quarantined(&seen.quarantined)) } }),
        Section::new("flight", in_flight(view, seen)),
        Section::new("group", html! { @if let Some(group) = &seen.group { (group::section(group, &seen.tallies)) } }),
        Section {
            before: workloads::form(search),
            ..Section::new("workloads", workloads::results(view, seen, search))
        },
        Section::new("recent", recent(view, &seen.recent)),
        Section::new("webhooks", deliveries(&seen.deliveries)),
        Section::new("other", stray(seen)),
        Section::new("pipelines", html! { @if let Some(seen) = &seen.promoting { (objects::pipelines(seen)) } }),
        Section::new("repos", html! { @if let Some(seen) = &seen.running { (objects::repos(seen)) } }),
    ];
    (health, sections)
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

fn numbers(view: &View<'_>, seen: &Observation) -> Markup {
    html! {
        dl {
            div { dt { "workloads" } dd { (seen.workloads) } }
            div { dt { "rollouts in flight" } dd { (seen.rollouts.len()) } }
            div { dt { "purges on their way" } dd { (seen.purges.len()) } }
            div {
                dt { "distributions" }
                @match seen.distributions {
                    Some((known, age)) => dd { (known) small { "listed " (listed(view, age)) } },
                    None => dd { "–" small { "not listed yet" } },
                }
            }
        }
        @if seen.distributions.is_some_and(|(known, _)| known == 0) {
            p.more { "This AWS account has no distributions, so nothing can be purged. Is it the right account?" }
        }
    }
}

/// By the minute: the seconds would make every second another page.
fn listed(view: &View<'_>, age_s: u64) -> String {
    let age_ms = i64::try_from(Duration::from_secs(age_s).as_millis()).unwrap_or(i64::MAX);
    time::ago(view.now_ms.saturating_sub(age_ms), view.now_ms)
}

fn in_flight(view: &View<'_>, seen: &Observation) -> Markup {
    html! {
        h2 { "In flight" (tally(seen.rollouts.len())) }
        @for summary in seen.rollouts.iter().take(SHOWN_MAX) { (rollout::card(view, seen, summary)) }
        (more(seen.rollouts.len()))
        @if seen.rollouts.is_empty() {
            div.card.empty {
                @if !seen.synced {
                    "The workloads are still being listed."
                } @else if seen.workloads == 0 {
                    "No workloads have been found in the namespaces that are watched. Is the right one named in NAMESPACE?"
                    code { "allclear config show" }
                } @else {
                    "Nothing is rolling out. To see how it goes, change an image:"
                    code { "kubectl -n NAMESPACE set image deployment/NAME CONTAINER=IMAGE:TAG" }
                }
            }
        }
    }
}

fn quarantined(workloads: &[WorkloadId]) -> Markup {
    html! {
        h2 { "Quarantined" (tally(workloads.len())) }
        div.card {
            ul.rows {
                @for workload in workloads.iter().take(SHOWN_MAX) {
                    li {
                        span.who { (link::workload(workload)) }
                        span { "crashed too often and is left alone for a few minutes; its record is unchanged. The log says why." }
                    }
                }
            }
            (more(workloads.len()))
        }
    }
}

/// Rollouts that did not end well, until a later one does.
fn unwell(view: &View<'_>, workloads: &[Unwell]) -> Markup {
    html! {
        h2 { "Needs a look" (tally(workloads.len())) }
        div.card {
            ul.rows {
                @for Unwell { workload, reason, state } in workloads.iter().take(SHOWN_MAX) {
                    li {
                        span.who { (link::workload(workload)) small { (workload::last_told(view, workload)) } }
                        div {
                            span.pill.(workloads::colour(*reason)) { (reason.name()) } " " (state)
                            p.next { span.kind { "What to do: " } (reason.remedy()) }
                            p.quiet {
                                code { "allclear explain -n " (workload.namespace) " " (workload.name) }
                                " says why; the next rollout that ends well ends this"
                            }
                        }
                    }
                }
            }
            (more(workloads.len()))
        }
    }
}

/// Purges that no rollout in flight shows: of workloads that are gone, for example.
fn stray(seen: &Observation) -> Markup {
    let purges: Vec<&PurgeSeen> = seen.purges.iter().filter(|purge| !rollout::owns(seen, purge)).collect();
    html! {
        @if !purges.is_empty() {
            h2 { "Other purges" (tally(purges.len())) }
            div.card {
                ul.rows {
                    @for purge in purges.iter().take(SHOWN_MAX) {
                        li {
                            span.who { (link::invalidation(&purge.distribution.to_string(), None)) small { (purge.reference) } }
                            span { (purge.state) }
                        }
                    }
                }
                (more(purges.len()))
            }
        }
    }
}

fn deliveries(deliveries: &[DeliverySeen]) -> Markup {
    let mut sorted: Vec<&DeliverySeen> = deliveries.iter().collect();
    sorted.sort_by_key(|delivery| !delivery.given_up);
    html! {
        h2 { "Webhooks" (tally(deliveries.len())) }
        @if deliveries.is_empty() { div.card.empty { "No webhook waits to be delivered." } } @else {
            div.card {
                ul.rows {
                    @for delivery in sorted.into_iter().take(SHOWN_MAX) {
                        li {
                            span.who { (delivery.hook) small { (subject(&delivery.subject)) } }
                            div {
                                @if delivery.given_up { span.pill.bad { "dead letter" } " " }
                                (delivery.kind) ": " (delivery.state)
                                ", " (count(delivery.attempts as usize, "attempt", "attempts")) " so far"
                                @if delivery.given_up { div.quiet { code { (delivery.id) } } }
                            }
                        }
                    }
                }
                (more(deliveries.len()))
            }
        }
    }
}

fn subject(subject: &Subject) -> Markup {
    match subject {
        Subject::Workload(id) => link::workload(id),
        Subject::Pipeline(_) | Subject::Repo(_) => html! { (subject.display_name()) },
    }
}

fn recent(view: &View<'_>, recent: &[Summary]) -> Markup {
    html! {
        h2 { "Recent" (tally(recent.len())) }
        @if recent.is_empty() {
            div.card.empty {
                "No rollout has ended since this process started. Earlier ones are in the ledger:"
                code { "allclear explain" }
            }
        } @else {
            div.card {
                ul.rows {
                    @for summary in recent.iter().take(SHOWN_MAX) {
                        li {
                            span.who {
                                (link::workload(&summary.workload))
                                small { "rollout " (summary.seq) }
                                small { (rollout::ended(view, summary)) }
                            }
                            div {
                                @if summary.phase == "failed" { span.pill.bad { "failed" } " " (summary.change) " " }
                                (summary.state)
                                @for condition in &summary.conditions { p.fault { (condition) } }
                            }
                        }
                    }
                }
                (more(recent.len()))
            }
        }
    }
}
