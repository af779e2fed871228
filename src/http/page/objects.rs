//! The pages of our own objects: a card for each object, and the clusters that are looked at for Pipelines. A card of a
//! Pipeline has its environments from left to right; that of a Repo the wanted commit and its run.

use maud::{Markup, html};

use super::health::Health;
use super::mood::Mood;
use super::time::day_and_time;
use super::{SHOWN_MAX, Section, Trouble, View, count, more, quoted};
use crate::actors::observation::{LeafSeen, Observation, PromotingSeen, RunningSeen};
use kernel::id::{ObjectId, PipelineId, RepoId};
use objects::pipeline::view::{self as pipeline, EnvironmentView, PromotionView, TargetView};
use objects::repo::view::{self as repo, RunView};
use objects::status::ConditionView;

/// The page of Pipelines: a lane for each, with its environments from left to right.
pub(super) fn pipelines(view: &View<'_>) -> (Health, Vec<Section>) {
    page(view, "pipelines", |seen| {
        let PromotingSeen { pipelines, leaves, troubles } = seen.promoting.as_ref()?;
        let asks = pipelines.iter().find_map(asks);
        let moves = pipelines.iter().find_map(moves);
        let body = html! {
            (cards("Pipelines", pipelines, pipeline_card))
            @if !leaves.is_empty() { (clusters(leaves)) }
        };
        let troubles = promoting(pipelines, leaves, troubles);
        Some((of_kind("Pipeline", troubles, asks, moves, pipelines.is_empty()), body))
    })
}

/// The page of Repos.
pub(super) fn repos(view: &View<'_>) -> (Health, Vec<Section>) {
    page(view, "repos", |seen| {
        let RunningSeen { repos, troubles } = seen.running.as_ref()?;
        let asks = repos.iter().find_map(|repo| {
            let asked = repo.question.as_ref()?;
            Some(format!("{} waits for a person: {}", repo.id.display_name(), asked.words))
        });
        let moves = repos.iter().find_map(|repo| {
            let run = repo.run.as_ref().filter(|run| run.open)?;
            Some(format!("{} runs {}", repo.id.display_name(), run.revision.short()))
        });
        let health = of_kind("Repo", running(repos, troubles), asks, moves, repos.is_empty());
        Some((health, cards("Repos", repos, repo_card)))
    })
}

fn page(
    view: &View<'_>,
    id: &'static str,
    of: impl FnOnce(&Observation) -> Option<(Health, Markup)>,
) -> (Health, Vec<Section>) {
    let (health, body) = match Health::of_process(view) {
        Err(health) => (health, html! {}),
        Ok(seen) => of(seen).unwrap_or_else(|| (Health::plain(Mood::Rest, "Nothing here looks at them"), html! {})),
    };
    let sections = vec![Section::new("health", health.markup()), Section::new(id, body)];
    (health, sections)
}

/// What needs a person comes first, then what waits for an answer, then what moves.
fn of_kind(kind: &str, troubles: Vec<Trouble>, asks: Option<String>, moves: Option<String>, none: bool) -> Health {
    let (mood, headline) = match (troubles.first(), asks, moves) {
        (Some(trouble), ..) => (Mood::Warn, trouble.lead().to_owned()),
        (None, Some(asks), _) => (Mood::Warn, asks),
        (None, None, Some(moves)) => (Mood::Busy, moves),
        (None, None, None) if none => (Mood::Rest, format!("There is no {kind}")),
        (None, None, None) => (Mood::Good, format!("No {kind} waits for anything")),
    };
    Health { troubles, ..Health::plain(mood, headline) }
}

/// The first question that a Pipeline has.
fn asks(view: &pipeline::View) -> Option<String> {
    let id = view.id.display_name();
    view.environments.iter().find_map(|environment| {
        let asked = environment.question.as_ref()?;
        Some(format!("{id} waits for a person at {}: {}", environment.name, asked.words))
    })
}

/// What a Pipeline promotes, or waits for.
fn moves(view: &pipeline::View) -> Option<String> {
    let id = view.id.display_name();
    view.environments.iter().find_map(|environment| {
        let open = environment.promotion.as_ref().filter(|promotion| promotion.open);
        let why = || environment.waits.as_ref().or(environment.unsettled.as_ref());
        match (open, why()) {
            (Some(open), _) => Some(format!("{id}: {} is on its way to {}", open.revision, environment.name)),
            (None, Some(why)) => Some(format!("{id}: {} {why}", environment.name)),
            (None, None) => None,
        }
    })
}

fn cards<V>(name: &str, views: &[V], card: fn(&V) -> Markup) -> Markup {
    html! {
        @if !views.is_empty() { h2 { (name) } }
        @for view in views.iter().take(SHOWN_MAX) { (card(view)) }
        (more(views.len()))
    }
}

/// What needs a look of Pipelines and Repos, each by its name.
pub(super) fn troubles(seen: &Observation) -> Vec<Trouble> {
    let of_pipelines = seen.promoting.iter().flat_map(|seen| promoting(&seen.pipelines, &seen.leaves, &seen.troubles));
    let of_repos = seen.running.iter().flat_map(|seen| running(&seen.repos, &seen.troubles));
    of_pipelines.chain(of_repos).collect()
}

fn promoting(pipelines: &[pipeline::View], leaves: &[LeafSeen], troubles: &[String]) -> Vec<Trouble> {
    let outside = troubles.iter().map(|words| Trouble::at("/pipelines", format!("Pipelines: {words}")));
    let stalled = pipelines.iter().filter_map(|view| {
        Some(Trouble::see("/pipelines", stalled("Pipeline", &view.id.display_name(), &view.conditions)?))
    });
    let sick = leaves.iter().flat_map(|leaf| {
        let words = |trouble: &String| format!("Pipelines cannot read {}: {trouble}", leaf.name);
        leaf.troubles.iter().map(move |trouble| Trouble::at("/pipelines", words(trouble)))
    });
    outside.chain(stalled).chain(sick).collect()
}

fn running(repos: &[repo::View], troubles: &[String]) -> Vec<Trouble> {
    let outside = troubles.iter().map(|words| Trouble::at("/repos", format!("Repos: {words}")));
    let stalled = repos
        .iter()
        .filter_map(|view| Some(Trouble::see("/repos", stalled("Repo", &view.id.display_name(), &view.conditions)?)));
    outside.chain(stalled).collect()
}

fn stalled(kind: &str, name: &str, conditions: &[ConditionView]) -> Option<String> {
    let stalled = conditions.iter().find(|one| one.kind == "Stalled" && one.holds == Some(true))?;
    Some(format!("{kind} {name} needs a person: {}", stalled.message))
}

/// Which of the pages of our own objects the cluster has a use for, and whether somebody should look at it.
pub(super) fn tabs(seen: &Observation) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    let pipelines = seen.promoting.as_ref().and_then(|seen| {
        let PromotingSeen { pipelines, leaves, troubles } = seen;
        let found = promoting(pipelines, leaves, troubles);
        let is_used = !pipelines.is_empty() || !found.is_empty();
        is_used.then(|| {
            ("/pipelines", "Pipelines", !found.is_empty() || pipelines.iter().any(|view| asks(view).is_some()))
        })
    });
    let repos = seen.running.as_ref().and_then(|RunningSeen { repos, troubles }| {
        let found = running(repos, troubles);
        let is_used = !repos.is_empty() || !found.is_empty();
        is_used.then(|| ("/repos", "Repos", !found.is_empty() || repos.iter().any(|view| view.question.is_some())))
    });
    pipelines.into_iter().chain(repos)
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
        h2 { "Clusters that Pipelines read" }
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
                }
            @if let Some(counts) = run.plan.as_ref().and_then(|plan| plan.counts.as_ref()) { " " span.pill { "plan: " (counts) } }
        }
        @let logs = run.job.as_ref().and_then(|job| job.logs.as_ref());
        @let plan = run.plan.as_ref().map(|plan| &plan.logs);
        @if let Some(plan) = plan.filter(|plan| logs != Some(*plan)) { p.next { "the plan: " code.command { (plan) } } }
        @if let Some(logs) = logs { p.next { "its log: " code.command { (logs) } } }
    }
}
