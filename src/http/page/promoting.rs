//! Pipelines: a row for each, its environments from left to right, and the clusters that are looked at for them.

use maud::{Markup, html};

use super::time::day_and_time;
use super::{SHOWN_MAX, Trouble, count, more, quoted, tally};
use crate::actors::observation::{LeafSeen, PromotingSeen};
use domain::kernel::id::{ObjectId, PipelineId};
use domain::pipeline::view::{EnvironmentView, PromotionView, TargetView, View};

/// The section of Pipelines.
pub(super) fn section(seen: &PromotingSeen) -> Markup {
    let PromotingSeen { pipelines, leaves, troubles } = seen;
    html! {
        h2 { "Pipelines" (tally(pipelines.len())) }
        @for trouble in troubles { p.fault { (trouble) } }
        @for view in pipelines.iter().take(SHOWN_MAX) { (card(view)) }
        (more(pipelines.len()))
        @if pipelines.is_empty() {
            div.card.empty {
                "No Pipeline has been found. One moves a revision from environment to environment:"
                code { "kubectl explain pipelines.spec" }
            }
        }
        @if !leaves.is_empty() { (clusters(leaves)) }
    }
}

/// What needs a look, as the headline says it.
pub(super) fn troubles(seen: &PromotingSeen) -> Vec<Trouble> {
    let named = seen.troubles.iter().map(|trouble| format!("Pipelines: {trouble}"));
    let mut troubles: Vec<Trouble> = named.map(Trouble::from).collect();
    let stalled = seen.pipelines.iter().filter(|view| view.is_stalled()).count();
    if stalled > 0 {
        let words = format!("{} a person; see Pipelines below", count(stalled, "Pipeline needs", "Pipelines need"));
        troubles.push(Trouble::see("pipelines", words));
    }
    let sick = seen.leaves.iter().filter(|leaf| !leaf.troubles.is_empty()).count();
    if sick > 0 {
        let clusters = count(sick, "cluster is not", "clusters are not");
        troubles.push(Trouble::see("pipelines", format!("{clusters} read as it should be; see Pipelines below")));
    }
    troubles
}

fn card(view: &View) -> Markup {
    let PipelineId { namespace, name } = &view.id;
    html! {
        article.card {
            h3 {
                span.quiet { (namespace) "/" } (name)
                @if let Some(latest) = &view.latest { small { "latest " (latest) } }
                @if view.suspended.is_some() { " " span.pill.warn { "stopped" } }
            }
            @if let Some(why) = &view.suspended { p.fault { "No new promotion starts: " (why) } }
            @if let Some(why) = &view.faulty { p.fault { "Its spec cannot be used: " (why) } }
            @if let Some(why) = &view.unjudged { p.fault { (why) } }
            @for condition in view.conditions.iter().filter(|one| one.kind == "Stalled" && one.holds) {
                @if view.faulty.is_none() { p.fault { (condition.reason) ": " (condition.message) } }
            }
            ol.envs { @for environment in &view.environments { (column(environment)) } }
            @if !view.passed_over.is_empty() {
                p.next { "Passed over, without a target: " @for name in &view.passed_over { (name) " " } }
            }
            @if !view.history.is_empty() {
                ul.before {
                    @for ended in view.history.iter().take(3) {
                        li {
                            (day_and_time(ended.at_ms)) " " (ended.environment) " " (ended.revision) ": " (ended.outcome)
                            @if let Some(by) = &ended.by { ", approved by " (by) }
                        }
                    }
                }
            }
            @if view.environments.iter().any(|one| one.waits.is_some()) {
                p.next { code { "allclear explain pipeline/" (view.id.display_name()) } }
            }
        }
    }
}

fn column(environment: &EnvironmentView) -> Markup {
    let EnvironmentView { name, revisions, unsettled, waits, next, promotion, question, request, targets, .. } =
        environment;
    let open = promotion.as_ref().filter(|promotion| promotion.open);
    let mood = match (question, waits, unsettled) {
        (Some(_), ..) => "warn",
        (None, None, None) => "good",
        (None, ..) => "busy",
    };
    html! {
        li.(mood) {
            p.name { (name) }
            p.change {
                @for (index, revision) in revisions.iter().enumerate() { @if index > 0 { " + " } (revision) }
                @if revisions.is_empty() { "no revision seen" }
                @if let Some(open) = open { " → " (open.revision) }
            }
            @if let Some(open) = open { (phase(open)) }
            @if let Some(waits) = waits { p.state { (waits) } } @else if let Some(why) = unsettled { p.state { (why) } }
            p.next { (quoted(next)) }
            @if let Some(request) = request { p { (link(&request.url, request.number)) } }
            @if let Some(asked) = question { p.next { "ticket " code { (asked.ticket) } ", since " (day_and_time(asked.since_ms)) } }
            ul.targets { @for one in targets.iter().take(SHOWN_MAX) { (target(one)) } }
        }
    }
}

fn phase(open: &PromotionView) -> Markup {
    html! {
        p {
            span.pill.busy { (open.phase) } " "
            small.quiet {
                "promotion " (open.seq)
                @if let Some(at) = open.soak_ends_ms { ", soak ends " (day_and_time(at)) }
                @if let Some((by, _)) = open.approved.as_ref().filter(|(by, _)| !by.is_empty()) { ", approved by " (by) }
            }
        }
    }
}

/// A forge's answer says where its request is; only an address of the web is made a link.
fn link(url: &str, number: u64) -> Markup {
    html! {
        @if url.starts_with("https://") {
            a href=(url) rel="noreferrer noopener" { "pull request " (number) }
        } @else { "pull request " (number) ": " (url) }
    }
}

fn target(target: &TargetView) -> Markup {
    html! {
        li {
            span.dot.good[target.ready].warn[!target.ready] {}
            (target.name)
            @if let Some(revision) = &target.revision { " " span.change { (revision) } }
            @if let Some(error) = &target.error { div.quiet { (error) } }
        }
    }
}

fn clusters(leaves: &[LeafSeen]) -> Markup {
    html! {
        h2 { "Clusters that Pipelines read" (tally(leaves.len())) }
        div.card {
            ul.rows {
                @for LeafSeen { name, watches, troubles } in leaves.iter().take(SHOWN_MAX) {
                    li {
                        span.who { (name) small { (count(*watches, "watch", "watches")) } }
                        div {
                            @if troubles.is_empty() { "no trouble" }
                            @for trouble in troubles { p.fault { (trouble) } }
                        }
                    }
                }
            }
            (more(leaves.len()))
        }
    }
}
