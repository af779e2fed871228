//! Our own objects: a section for each kind and a card for each object, and the clusters that are looked at for Pipelines. A card of a
//! Pipeline has its environments from left to right; that of a Repo the wanted commit and its run.

use maud::{Markup, html};

use super::time::day_and_time;
use super::{SHOWN_MAX, Trouble, count, more, quoted, tally};
use crate::actors::observation::{LeafSeen, Observation, PromotingSeen, RunningSeen};
use kernel::id::{ObjectId, PipelineId, RepoId};
use objects::pipeline::view::{self as pipeline, EnvironmentView, PromotionView, TargetView};
use objects::repo::view::{self as repo, RunView};

/// The section of Pipelines.
pub(super) fn pipelines(PromotingSeen { pipelines, leaves, troubles }: &PromotingSeen) -> Markup {
    html! {
        (section("Pipeline", "moves a revision from environment to environment", troubles, pipelines, pipeline_card))
        @if !leaves.is_empty() { (clusters(leaves)) }
    }
}

/// The section of Repos.
pub(super) fn repos(RunningSeen { repos, troubles }: &RunningSeen) -> Markup {
    section("Repo", "runs a Job for each new commit", troubles, repos, repo_card)
}

fn section<V>(kind: &str, does: &str, troubles: &[String], views: &[V], card: fn(&V) -> Markup) -> Markup {
    html! {
        h2 { (kind) "s" (tally(views.len())) }
        @for trouble in troubles { p.fault { (trouble) } }
        @for view in views.iter().take(SHOWN_MAX) { (card(view)) }
        (more(views.len()))
        @if views.is_empty() {
            div.card.empty {
                "No " (kind) " has been found. One " (does) ":"
                code { "kubectl explain " (kind.to_lowercase()) "s.spec" }
            }
        }
    }
}

/// What needs a look, as the headline says it.
pub(super) fn troubles(seen: &Observation) -> Vec<Trouble> {
    let mut found = Vec::new();
    if let Some(PromotingSeen { pipelines, leaves, troubles }) = &seen.promoting {
        let stalled = pipelines.iter().filter(|view| view.is_stalled()).count();
        found.extend(of_kind("Pipeline", "pipelines", troubles, stalled));
        let sick = leaves.iter().filter(|leaf| !leaf.troubles.is_empty()).count();
        if sick > 0 {
            let clusters = count(sick, "cluster is not", "clusters are not");
            found.push(Trouble::see("pipelines", format!("{clusters} read as it should be; see Pipelines below")));
        }
    }
    if let Some(RunningSeen { repos, troubles }) = &seen.running {
        let stalled = repos.iter().filter(|view| view.is_stalled()).count();
        found.extend(of_kind("Repo", "repos", troubles, stalled));
    }
    found
}

fn of_kind(kind: &str, section: &'static str, troubles: &[String], stalled: usize) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = troubles.iter().map(|trouble| format!("{kind}s: {trouble}").into()).collect();
    if stalled > 0 {
        let need = count(stalled, &format!("{kind} needs"), &format!("{kind}s need"));
        found.push(Trouble::see(section, format!("{need} a person; see {kind}s below")));
    }
    found
}

fn pipeline_card(view: &pipeline::View) -> Markup {
    let PipelineId { namespace, name } = &view.id;
    let past = view.history.iter().map(|ended| {
        let what = html! { (ended.environment) " " (ended.revision) };
        (ended.at_ms, what, &ended.outcome, &ended.by)
    });
    html! {
        article.card {
            h3 {
                span.quiet { (namespace) "/" } (name)
                @if let Some(latest) = &view.latest { small { "latest " (latest) } }
                @if view.suspended.is_some() { " " span.pill.warn { "stopped" } }
            }
            (held("No new promotion starts: ", [&view.suspended, &view.faulty, &view.unjudged]))
            @for condition in view.conditions.iter().filter(|one| one.kind == "Stalled" && one.holds == Some(true)) {
                @if view.faulty.is_none() { p.fault { (condition.reason) ": " (condition.message) } }
            }
            ol.envs { @for environment in &view.environments { (column(environment)) } }
            @if !view.passed_over.is_empty() {
                p.next { "Passed over, without a target: " @for name in &view.passed_over { (name) " " } }
            }
            (before(past))
            @if view.environments.iter().any(|one| one.waits.is_some()) {
                p.next { code { "allclear explain pipeline/" (view.id.display_name()) } }
            }
        }
    }
}

fn repo_card(view: &repo::View) -> Markup {
    let RepoId { namespace, name } = &view.id;
    let repo::Held { suspended, faulty, unjudged } = &view.held;
    let ready = view.ready();
    let mood = match ready.and_then(|ready| ready.holds) {
        Some(true) => "good",
        Some(false) => "warn",
        None => "busy",
    };
    let past = view.history.iter().map(|ended| {
        let what = html! { (ended.revision.short()) };
        (ended.at_ms, what, &ended.outcome, &ended.by)
    });
    html! {
        article.card {
            h3 {
                span.quiet { (namespace) "/" } (name)
                @if let Some(head) = &view.head { small { (head.name) " at " (head.revision.short()) } }
                @if let Some(ready) = ready { " " span.pill.(mood) { (ready.reason) } }
                @if view.has_drifted() { " " span.pill.warn { "Drifted" } }
                @if view.is_unreported() { " " span.pill.warn { "Not reported" } }
            }
            (held("Nothing new starts: ", [suspended, faulty, unjudged]))
            @if let Some(run) = &view.run { (newest(run)) }
            @if let Some(waits) = &view.waits { p.state { (waits) } }
            p.next { (quoted(&view.next)) }
            @if let Some(asked) = &view.question { p.next { "ticket " code { (asked.ticket) } ", since " (day_and_time(asked.since_ms)) } }
            @if let Some(queued) = &view.queued {
                p.next {
                    "next: " (queued.revision.short()) ", since " (day_and_time(queued.since_ms))
                    @if !queued.skipped.is_empty() { ", instead of " (count(queued.skipped.len(), "other commit", "other commits")) }
                }
            }
            (before(past))
            @if view.waits.is_some() { p.next { code { "allclear explain repo/" (view.id.display_name()) } } }
        }
    }
}

/// What keeps an object from being judged as its spec says.
fn held(stopped: &str, [suspended, faulty, unjudged]: [&Option<String>; 3]) -> Markup {
    html! {
        @if let Some(why) = suspended { p.fault { (stopped) (why) } }
        @if let Some(why) = faulty { p.fault { "Its spec cannot be used: " (why) } }
        @if let Some(why) = unjudged { p.fault { (why) } }
    }
}

/// What ended, newest first: when, what, how, and who said yes.
fn before<'a>(past: impl ExactSizeIterator<Item = (i64, Markup, &'a String, &'a Option<String>)>) -> Markup {
    html! {
        @if past.len() > 0 {
            ul.before {
                @for (at_ms, what, outcome, by) in past.take(3) {
                    li {
                        (day_and_time(at_ms)) " " (what) ": " (outcome)
                        @if let Some(by) = by { ", approved by " (by) }
                    }
                }
            }
        }
    }
}

fn column(environment: &EnvironmentView) -> Markup {
    let EnvironmentView {
        name, after, revisions, unsettled, waits, next, promotion, question, request, targets, ..
    } = environment;
    let open = promotion.as_ref().filter(|promotion| promotion.open);
    let mood = match (question, waits, unsettled) {
        (Some(_), ..) => "warn",
        (None, None, None) => "good",
        (None, ..) => "busy",
    };
    html! {
        li.(mood) {
            p.name {
                (name)
                @for (index, before) in after.iter().enumerate() { small { (if index > 0 { " and " } else { " after " }) (before) } }
            }
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
                @if let Some(chosen) = &open.chosen { ", " (chosen) }
                @else if let Some((by, _)) = open.approved.as_ref().filter(|(by, _)| !by.is_empty()) { ", approved by " (by) }
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

fn newest(run: &RunView) -> Markup {
    let mood = match (run.open, run.phase.as_str()) {
        (true, _) => "busy",
        (false, "Succeeded") => "good",
        (false, _) => "warn",
    };
    html! {
        p {
            span.pill.(mood) { (run.phase) } " " (run.revision.short()) " "
            small.quiet {
                "run " (run.seq)
                @if let Some(counts) = run.plan.as_ref().and_then(|plan| plan.counts.as_ref()) { ", plan: " (counts) }
            }
        }
        @if let Some(logs) = run.job.as_ref().and_then(|job| job.logs.as_ref()) { p.next { code { (logs) } } }
    }
}
