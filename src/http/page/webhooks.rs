//! What belongs to no row of the board: webhook deliveries that were given up or are about no workload there, and purges without a
//! rollout.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::lines::Facts;
use super::{SHOWN_MAX, count, link, more};
use crate::actors::observation::{DeliverySeen, Observation, PurgeSeen};
use crate::http::names::is_name;
use kernel::id::{ObjectId, Subject, WorkloadId};
use kernel::names::workload_name::WorkloadName;

/// Deliveries that no row shows, and dead letters, with what a person needs to have them sent again.
pub(super) fn waiting(seen: &Observation, lines: &[Facts<'_>]) -> Markup {
    let shown: BTreeSet<&WorkloadId> = lines.iter().map(|line| line.workload).collect();
    let has_row = |subject: &Subject| matches!(subject, Subject::Workload(id) if shown.contains(id));
    let mut listed: Vec<&DeliverySeen> =
        seen.deliveries.iter().filter(|delivery| delivery.given_up || !has_row(&delivery.subject)).collect();
    listed.sort_by_key(|delivery| !delivery.given_up);
    html! {
        @if !listed.is_empty() {
            h2 { "Webhooks" }
            div.card {
                ul.rows { @for delivery in listed.iter().take(SHOWN_MAX) { (row(delivery)) } }
                (more(listed.len()))
            }
        }
    }
}

fn row(delivery: &DeliverySeen) -> Markup {
    html! {
        li {
            span.who { (delivery.hook) small { (subject(&delivery.subject)) } }
            div {
                @if delivery.given_up { span.pill.warn { "dead letter" } " " }
                (delivery.kind) ": " (delivery.state)
                ", " (count(delivery.attempts as usize, "attempt", "attempts")) " so far"
                @if delivery.given_up { (resend(delivery)) }
            }
        }
    }
}

/// How a dead letter is sent again, and its id.
fn resend(delivery: &DeliverySeen) -> Markup {
    let (kind, id) = match &delivery.subject {
        Subject::Workload(id) => ("", format!("{}/{}", id.namespace, WorkloadName::of(id))),
        Subject::Pipeline(id) => ("pipeline/", id.display_name()),
        Subject::Repo(id) => ("repo/", id.display_name()),
    };
    let is_usual = id.split('/').chain([delivery.hook.as_str()]).all(is_name);
    html! {
        p.next {
            @if is_usual { code.command { "allclear webhook resend " (kind) (id) " --receiver " (delivery.hook) } " " }
            small { (delivery.id) }
        }
    }
}

fn subject(subject: &Subject) -> Markup {
    match subject {
        Subject::Workload(id) => link::workload(id),
        Subject::Pipeline(_) | Subject::Repo(_) => html! { (subject.display_name()) },
    }
}

/// Purges that no rollout in flight shows: of workloads that are gone, for example.
pub(super) fn stray(seen: &Observation) -> Markup {
    let owned: BTreeSet<&str> =
        seen.rollouts.iter().flat_map(|summary| &summary.purges).map(|purge| purge.reference.as_str()).collect();
    let purges: Vec<&PurgeSeen> =
        seen.purges.iter().filter(|purge| !owned.contains(purge.reference.0.as_str())).collect();
    html! {
        @if !purges.is_empty() {
            h2 { "Other purges" }
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
