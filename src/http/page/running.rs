//! Repos: a card for each, with the wanted commit, its run and what it waits for.

use maud::{Markup, html};

use super::time::day_and_time;
use super::{SHOWN_MAX, Trouble, count, more, quoted, tally};
use crate::actors::observation::RunningSeen;
use domain::kernel::id::{ObjectId, RepoId, Revision};
use domain::repo::view::{RunView, View};

/// Digits of a commit that people tell commits apart by.
const COMMIT_DIGITS: usize = 12;

/// The section of Repos.
pub(super) fn section(seen: &RunningSeen) -> Markup {
    let RunningSeen { repos, troubles } = seen;
    html! {
        h2 { "Repos" (tally(repos.len())) }
        @for trouble in troubles { p.fault { (trouble) } }
        @for view in repos.iter().take(SHOWN_MAX) { (card(view)) }
        (more(repos.len()))
        @if repos.is_empty() {
            div.card.empty {
                "No Repo has been found. One runs a Job for each new commit:"
                code { "kubectl explain repos.spec" }
            }
        }
    }
}

/// What needs a look, as the headline says it.
pub(super) fn troubles(seen: &RunningSeen) -> Vec<Trouble> {
    let named = seen.troubles.iter().map(|trouble| format!("Repos: {trouble}"));
    let mut troubles: Vec<Trouble> = named.map(Trouble::from).collect();
    let stalled = seen.repos.iter().filter(|view| view.is_stalled()).count();
    if stalled > 0 {
        let words = format!("{} a person; see Repos below", count(stalled, "Repo needs", "Repos need"));
        troubles.push(Trouble::see("repos", words));
    }
    troubles
}

fn card(view: &View) -> Markup {
    let RepoId { namespace, name } = &view.id;
    let ready = view.conditions.iter().find(|one| one.kind == "Ready");
    let mood = match ready.and_then(|ready| ready.holds) {
        Some(true) => "good",
        Some(false) => "warn",
        None => "busy",
    };
    html! {
        article.card {
            h3 {
                span.quiet { (namespace) "/" } (name)
                @if let Some(head) = &view.head { small { (head.name) " at " (short(&head.revision)) } }
                @if let Some(ready) = ready { " " span.pill.(mood) { (ready.reason) } }
            }
            @if let Some(why) = &view.held.suspended { p.fault { "Nothing new starts: " (why) } }
            @if let Some(why) = &view.held.faulty { p.fault { "Its spec cannot be used: " (why) } }
            @if let Some(why) = &view.held.unjudged { p.fault { (why) } }
            @if let Some(run) = &view.run { (newest(run)) }
            @if let Some(waits) = &view.waits { p.state { (waits) } }
            p.next { (quoted(&view.next)) }
            @if let Some(asked) = &view.question { p.next { "ticket " code { (asked.ticket) } ", since " (day_and_time(asked.since_ms)) } }
            @if let Some(queued) = &view.queued {
                p.next {
                    "next: " (short(&queued.revision)) ", since " (day_and_time(queued.since_ms))
                    @if !queued.skipped.is_empty() { ", instead of " (count(queued.skipped.len(), "other commit", "other commits")) }
                }
            }
            @if !view.history.is_empty() {
                ul.before {
                    @for ended in view.history.iter().take(3) {
                        li {
                            (day_and_time(ended.at_ms)) " " (short(&ended.revision)) ": " (ended.outcome)
                            @if let Some(by) = &ended.by { ", approved by " (by) }
                        }
                    }
                }
            }
            @if view.waits.is_some() { p.next { code { "allclear explain repo/" (view.id.display_name()) } } }
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
            span.pill.(mood) { (run.phase) } " " (short(&run.revision)) " "
            small.quiet {
                "run " (run.seq)
                @if let Some(counts) = run.plan.as_ref().and_then(|plan| plan.counts.as_ref()) { ", plan: " (counts) }
            }
        }
        @if let Some(logs) = run.job.as_ref().and_then(|job| job.logs.as_ref()) { p.next { code { (logs) } } }
    }
}

fn short(revision: &Revision) -> String {
    revision.0.chars().take(COMMIT_DIGITS).collect()
}
