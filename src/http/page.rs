//! The status page: one page, rendered here, that reloads itself. No script, nothing loaded from anywhere.
//!
//! It shows words that others chose (`domain::rollout`'s summaries, mostly) and chooses none of its own about a rollout, so
//! it cannot disagree with `explain` or the logs. Everything is escaped by maud; the style sheet alone is put in as it is.

mod group;
mod promoting;
mod rollout;
mod running;

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use crate::actors::observation::{DeliverySeen, Observation, PurgeSeen};
use domain::id::WorkloadId;
use domain::rollout::{Summary, duration};
use domain::unwell::Unwell;

/// The page's style sheet. Its hash is in the content security policy, so it goes into the page byte for byte.
pub const STYLE: &str = include_str!("page.css");

/// Entries of each list on one page. A page of this many is about 200 KB, and readers stop before that; the JSON has
/// them all.
const SHOWN_MAX: usize = 100;

/// Who is being looked at. Constant for the life of the process.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// This member's name.
    pub member: String,
    /// Its group's name.
    pub group: String,
    /// Nothing is changed outside.
    pub dry_run: bool,
}

/// How the page looks at a glance: a class of the style sheet, and the colour of its icon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    Busy,
    Warn,
    Bad,
}

impl Mood {
    const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// A dot, as a `data:` address; `%23` is the `#` of the colour.
    fn icon(self) -> String {
        let colour = match self {
            Self::Good => "1f9d63",
            Self::Busy => "2f74d0",
            Self::Warn => "d99a1c",
            Self::Bad => "d0392f",
        };
        format!(
            "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
             %3Ccircle cx='8' cy='8' r='6' fill='%23{colour}'/%3E%3C/svg%3E"
        )
    }
}

/// The line everybody reads first.
struct Health {
    mood: Mood,
    headline: String,
    troubles: Vec<String>,
}

impl Health {
    fn new(draining: bool, seen: Result<&Observation, &String>) -> Self {
        let seen = match seen {
            _ if draining => return Self::plain(Mood::Warn, "Shutting down; the next process goes on from the ledger"),
            Ok(seen) => seen,
            Err(reason) => {
                return Self { troubles: vec![reason.clone()], ..Self::plain(Mood::Bad, "The actors do not answer") };
            }
        };
        if let Some(leader) = &seen.standing_by {
            return Self {
                troubles: seen.troubles.clone(),
                ..Self::plain(Mood::Good, &format!("Standing by: {leader} leads"))
            };
        }
        let mut troubles = seen.troubles.clone();
        let dead = seen.deliveries.iter().filter(|delivery| delivery.given_up).count();
        if dead > 0 {
            troubles.push(format!(
                "{} given up; see Webhooks below",
                count(dead, "webhook delivery", "webhook deliveries")
            ));
        }
        if !seen.quarantined.is_empty() {
            let left = count(seen.quarantined.len(), "workload is", "workloads are");
            troubles.push(format!("{left} left alone after repeated crashes; see Quarantined below"));
        }
        if !seen.unwell.is_empty() {
            let rollouts = count(seen.unwell.len(), "workload", "workloads");
            troubles.push(format!("the newest rollout of {rollouts} did not end well; see Needs a look below"));
        }
        troubles.extend(seen.promoting.iter().flat_map(promoting::troubles));
        troubles.extend(seen.running.iter().flat_map(running::troubles));
        let (mood, headline) = match (seen.synced, troubles.len(), seen.rollouts.len()) {
            (false, 0, _) => (Mood::Busy, "Starting: listing the workloads of the cluster".to_owned()),
            (false, _, _) => (Mood::Warn, "Starting, but something is in the way".to_owned()),
            (true, 0, 0) if seen.workloads == 0 => (Mood::Busy, "No workloads to watch".to_owned()),
            (true, 0, 0) => (Mood::Good, "All clear".to_owned()),
            (true, 0, n) => (Mood::Busy, format!("{} in flight", count(n, "rollout", "rollouts"))),
            (true, n, _) => (Mood::Warn, count(n, "thing needs a look", "things need a look")),
        };
        Self { mood, headline, troubles }
    }

    fn plain(mood: Mood, headline: &str) -> Self {
        Self { mood, headline: headline.to_owned(), troubles: Vec::new() }
    }

    fn markup(&self) -> Markup {
        html! {
            section.health.(self.mood.class()) role="status" {
                strong { (self.headline) }
                @if !self.troubles.is_empty() {
                    ul { @for trouble in &self.troubles { li { (trouble) } } }
                }
            }
        }
    }
}

/// The whole page.
pub fn render(about: &About, draining: bool, seen: Result<&Observation, &String>) -> String {
    let health = Health::new(draining, seen);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content="2";
                title { (health.headline) " · allclear " (about.member) }
                link rel="icon" href=(health.mood.icon());
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "allclear" }
                    p { "member " (about.member) " of group " (about.group) }
                    @if about.dry_run { span.pill.warn { "dry run: nothing is purged or sent" } }
                }
                (health.markup())
                @if let Ok(seen) = seen { (body(about, seen)) }
                footer {
                    "allclear " (env!("CARGO_PKG_VERSION")) " · reloads every 2 s · "
                    a href="/api/v1/state" { "the same as JSON" } " · " a href="/metrics" { "metrics" }
                }
            }
        }
    }
    .into_string()
}

fn body(about: &About, seen: &Observation) -> Markup {
    if let Some(leader) = &seen.standing_by {
        return html! {
            div.card.empty {
                "This replica does nothing while another one works. What goes on is shown by " (leader)
                ", whose name begins with that of its pod:"
                code { "kubectl port-forward pod/POD 8080" }
            }
        };
    }
    html! {
        (numbers(seen))
        @if !seen.unwell.is_empty() { (unwell(&seen.unwell)) }
        h2 { "In flight" (tally(seen.rollouts.len())) }
        @for summary in seen.rollouts.iter().take(SHOWN_MAX) { (rollout::card(about, seen, summary)) }
        (more(seen.rollouts.len()))
        @if seen.rollouts.is_empty() { (nothing_in_flight(seen)) }
        @if let Some(seen) = &seen.promoting { (promoting::section(seen)) }
        @if let Some(seen) = &seen.running { (running::section(seen)) }
        @if let Some(group) = &seen.group { (group::section(group)) }
        @if !seen.quarantined.is_empty() { (quarantined(&seen.quarantined)) }
        @let stray: Vec<&PurgeSeen> = seen.purges.iter().filter(|purge| !rollout::owns(seen, purge)).collect();
        @if !stray.is_empty() { (purges(&stray)) }
        h2 { "Webhooks" (tally(seen.deliveries.len())) }
        (deliveries(&seen.deliveries))
        h2 { "Recent" (tally(seen.recent.len())) }
        (recent(&seen.recent))
    }
}

fn numbers(seen: &Observation) -> Markup {
    html! {
        dl {
            div { dt { "workloads" } dd { (seen.workloads) } }
            div { dt { "rollouts in flight" } dd { (seen.rollouts.len()) } }
            div { dt { "purges on their way" } dd { (seen.purges.len()) } }
            div {
                dt { "distributions" }
                @match seen.distributions {
                    Some((known, age)) => dd { (known) small { "listed " (duration(Duration::from_secs(age))) " ago" } },
                    None => dd { "–" small { "not listed yet" } },
                }
            }
        }
        @if seen.distributions.is_some_and(|(known, _)| known == 0) {
            p.more { "This AWS account has no distributions, so nothing can be purged. Is it the right account?" }
        }
    }
}

fn nothing_in_flight(seen: &Observation) -> Markup {
    html! {
        div.card.empty {
            @if !seen.synced {
                "The workloads are still being listed."
            } @else if seen.workloads == 0 {
                "No Deployments have been found in the namespaces that are watched. Is the right one named in NAMESPACE?"
                code { "allclear config show" }
            } @else {
                "Nothing is rolling out. To see how it goes, change an image:"
                code { "kubectl -n NAMESPACE set image deployment/NAME CONTAINER=IMAGE:TAG" }
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
                        span.who { (workload.display_name()) }
                        span { "crashed too often and is left alone for a few minutes; its record is unchanged. The log says why." }
                    }
                }
            }
            (more(workloads.len()))
        }
    }
}

/// Rollouts that did not end well, until a later one does.
fn unwell(workloads: &[Unwell]) -> Markup {
    html! {
        h2 { "Needs a look" (tally(workloads.len())) }
        div.card {
            ul.rows {
                @for Unwell { workload, reason, state } in workloads.iter().take(SHOWN_MAX) {
                    li {
                        span.who { (workload.display_name()) }
                        div {
                            span.pill.warn { (reason.name()) } " " (state)
                            div.quiet {
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
fn purges(purges: &[&PurgeSeen]) -> Markup {
    html! {
        h2 { "Other purges" (tally(purges.len())) }
        div.card {
            ul.rows {
                @for purge in purges.iter().take(SHOWN_MAX) {
                    li { span.who { (purge.distribution) small { (purge.reference) } } span { (purge.state) } }
                }
            }
            (more(purges.len()))
        }
    }
}

fn deliveries(deliveries: &[DeliverySeen]) -> Markup {
    let mut sorted: Vec<&DeliverySeen> = deliveries.iter().collect();
    sorted.sort_by_key(|delivery| !delivery.given_up);
    html! {
        @if deliveries.is_empty() { div.card.empty { "No webhook waits to be delivered." } } @else {
            div.card {
                ul.rows {
                    @for delivery in sorted.into_iter().take(SHOWN_MAX) {
                        li {
                            span.who { (delivery.hook) small { (delivery.subject.display_name()) } }
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

fn recent(recent: &[Summary]) -> Markup {
    html! {
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
                            span.who { (summary.workload.display_name()) small { "rollout " (summary.seq) } }
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

fn tally(n: usize) -> Markup {
    html! { @if n > 0 { small { (n) } } }
}

fn more(n: usize) -> Markup {
    html! {
        @if n > SHOWN_MAX {
            p.more { "and " (n - SHOWN_MAX) " more; " a href="/api/v1/state" { "the JSON" } " has them all" }
        }
    }
}

fn count(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}
