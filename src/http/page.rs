//! The status page: a board of what is going on and what a person should know or do, and pages for the rest.
//!
//! It shows words that others chose (`purge::rollouts::rollout`'s summaries, mostly) and chooses none of its own about a rollout, so
//! it cannot disagree with `explain` or the logs. Everything is escaped by maud; the style sheet and the script alone are put in as they
//! are. A page is made of sections: `http::live` sends those that have changed. Nothing is loaded from anywhere else, and without the
//! script the page reloads itself.

mod board;
mod clusters;
mod group;
mod health;
mod history;
mod lines;
pub mod link;
mod mood;
mod objects;
mod rollout;
mod time;
mod webhooks;
mod workload;
mod workloads;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use crate::actors::browse::Listing;
use crate::actors::observation::Observation;
use crate::looking::About;
use crate::looking::page::count;
use crate::telemetry::chronicle::Moment;
use crate::telemetry::passages::Passage;
use health::Health;
use kernel::id::WorkloadId;
use kernel::text::{phrase, visible};
use purge::rollouts::browse::Search;

/// The page's style sheet. Its hash is in the content security policy, so it goes into the page byte for byte.
pub const STYLE: &str = include_str!("page/page.css");

/// The page's script; as the style sheet.
pub const SCRIPT: &str = include_str!("page/page.js");

/// Entries of each list on one page. A page of this many is about 200 KB, and readers stop before that; the JSON has
/// them all.
const SHOWN_MAX: usize = 100;

/// How often a page without a script reloads itself, in seconds. A reload takes the focus, so it is seldom.
const RELOADED_EVERY_S: u32 = 15;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The first one.
    Board,
    /// A search among all workloads.
    Workloads(Search),
    /// That of one workload.
    Workload(WorkloadId),
    Pipelines,
    Repos,
    Group,
    History,
}

impl Asked {
    /// The page of this path, but for those of workloads.
    pub fn named(path: &str) -> Option<Self> {
        Some(match path {
            "" | "/" => Self::Board,
            "/pipelines" => Self::Pipelines,
            "/repos" => Self::Repos,
            "/group" => Self::Group,
            "/history" => Self::History,
            _ => return None,
        })
    }

    /// The tab in which it is.
    const fn tab(&self) -> &'static str {
        match self {
            Self::Board => "/",
            Self::Workloads(_) | Self::Workload(_) => "/workloads",
            Self::Pipelines => "/pipelines",
            Self::Repos => "/repos",
            Self::Group => "/group",
            Self::History => "/history",
        }
    }

    /// What its title begins with; nothing for the first page, which begins with its headline.
    fn title(&self) -> Option<String> {
        match self {
            Self::Board => None,
            Self::Workloads(_) => Some("Workloads".to_owned()),
            Self::Workload(id) => Some(id.display_name()),
            Self::Pipelines => Some("Pipelines".to_owned()),
            Self::Repos => Some("Repos".to_owned()),
            Self::Group => Some("Group".to_owned()),
            Self::History => Some("History".to_owned()),
        }
    }
}

/// Everything a page is made from.
pub struct View<'a> {
    pub about: &'a About,
    pub asked: &'a Asked,
    /// The process has begun to end.
    pub draining: bool,
    /// What the actors show, or why they do not.
    pub seen: Result<&'a Observation, &'a String>,
    /// The workloads that were asked for.
    pub listing: &'a Listing,
    /// Recent notices, oldest first.
    pub moments: &'a [Moment],
    /// The ways of all rollouts that this process told of, the last one first.
    pub passages: &'a [Passage],
    /// When the last purge was complete, and how long it took, in milliseconds.
    pub last_purge: Option<(i64, Option<i64>)>,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: i64,
}

/// A part of a page, which can change while the rest stays.
struct Section {
    id: &'static str,
    /// What stands before it and never changes: a form that a person may be writing in.
    before: Markup,
    html: Markup,
}

impl Section {
    fn new(id: &'static str, html: Markup) -> Self {
        Self { id, before: html! {}, html }
    }
}

/// Something outside of the workloads that needs a look.
struct Trouble {
    words: String,
    /// The part of it that a headline has.
    lead: String,
    /// Where more is said.
    href: Option<&'static str>,
}

/// Characters of a trouble in a headline.
const LEAD_CHARS_MAX: usize = 140;

/// A shorter part of a sentence before its first colon says too little.
const LEAD_BYTES_MIN: usize = 24;

impl Trouble {
    /// Of a cause outside, in the words of the one that failed: a headline has what failed, not the prose of who refused it.
    fn of(words: impl AsRef<str>) -> Self {
        let words = words.as_ref();
        let ends = [": ", "; "].into_iter().flat_map(|mark| words.match_indices(mark)).map(|(end, _)| end);
        let end = ends.filter(|end| *end >= LEAD_BYTES_MIN).min();
        let lead = phrase(end.and_then(|end| words.get(..end)).unwrap_or(words), LEAD_CHARS_MAX).to_owned();
        Self { words: words.to_owned(), lead, href: None }
    }

    /// The same, of which a page says more.
    fn at(href: &'static str, words: String) -> Self {
        Self { href: Some(href), ..Self::of(words) }
    }

    /// In words of ours, of which a page says more.
    fn see(href: &'static str, words: String) -> Self {
        Self { lead: phrase(&words, LEAD_CHARS_MAX).to_owned(), words, href: Some(href) }
    }

    fn lead(&self) -> &str {
        &self.lead
    }

    fn markup(&self) -> Markup {
        html! {
            @if let Some(href) = self.href { a href=(href) { (self.words) } } @else { (self.words) }
            @if self.words.contains("forbidden") {
                p.next { span.kind { "What to do: " } "give allclear's role the right that is missing; " code.command { "allclear check" } " names it" }
            }
        }
    }
}

/// What can change of a page. Of the same state it is the same bytes, for a minute at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Live {
    /// The title of the page.
    pub title: String,
    pub icon: String,
    /// Its first sentence, for screen readers.
    pub headline: String,
    /// Its sections, by id, as HTML.
    pub sections: BTreeMap<&'static str, String>,
}

/// The whole page; `explained` is the answer of `explain` where a page of a workload was asked for.
pub fn render(view: &View<'_>, explained: Option<&Result<String, String>>) -> String {
    let (health, sections) = parts(view);
    let About { member, group, dry_run } = view.about;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                noscript { meta http-equiv="refresh" content=(RELOADED_EVERY_S); }
                title { (title(view, &health)) }
                link rel="icon" href=(health.mood.icon());
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the state" }
                header {
                    p.name { a href="/" { "allclear" } }
                    p { "member " (member) " of group " (group) }
                    @if *dry_run { span.pill.warn { "dry run: nothing is purged or sent" } }
                    div.live { span #link .pill hidden { "connecting" } button #pause type="button" aria-pressed="false" hidden { "Pause" } }
                }
                nav #tabs aria-label="Pages" { (tabs(view)) }
                p #say .unseen role="status" {}
                main #main tabindex="-1" data-now=(view.now_ms) {
                    @for Section { id, before, html } in &sections { (before) section id=(id) { (html) } }
                    @if let Some(explained) = explained { (workload::explained(view, explained)) }
                }
                footer {
                    "allclear " (env!("CARGO_PKG_VERSION")) " · times are UTC, by the clock of " (member)
                    noscript { " · reloads every " (RELOADED_EVERY_S) " s" }
                    " · " a href="/api/v1/state" { "the same as JSON" } " · " a href="/metrics" { "metrics" }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// What can change of a page.
pub fn live(view: &View<'_>) -> Live {
    let (health, sections) = parts(view);
    let html = |Section { id, html, .. }: Section| (id, visible(&html.into_string()).into_owned());
    Live {
        title: visible(&title(view, &health)).into_owned(),
        icon: health.mood.icon(),
        headline: visible(&health.headline).into_owned(),
        sections: sections.into_iter().chain([Section::new("tabs", tabs(view))]).map(html).collect(),
    }
}

/// Links to the pages that the cluster has a use for; a mark where somebody should look.
fn tabs(view: &View<'_>) -> Markup {
    let mut tabs = vec![("/", "Board", false), ("/workloads", "Workloads", false)];
    if let Ok(seen) = view.seen {
        tabs.extend(objects::tabs(seen));
        tabs.extend(seen.group.as_ref().map(|group| ("/group", "Group", group.holds.iter().any(lines::counts))));
    }
    if view.passages.iter().any(|passage| passage.ended.is_some()) {
        tabs.push(("/history", "History", false));
    }
    let here = view.asked.tab();
    html! {
        @for (href, name, look) in tabs {
            a href=(href) aria-current=[(href == here).then_some("page")] {
                (name) @if look { span.mark aria-hidden="true" { "!" } span.unseen { ", needs a look" } }
            }
        }
    }
}

fn parts(view: &View<'_>) -> (Health, Vec<Section>) {
    match view.asked {
        Asked::Board => board::parts(view),
        Asked::Workloads(search) => workloads::parts(view, search),
        Asked::Workload(id) => workload::parts(view, id),
        Asked::Pipelines => objects::pipelines(view),
        Asked::Repos => objects::repos(view),
        Asked::Group => group::parts(view),
        Asked::History => history::parts(view),
    }
}

fn title(view: &View<'_>, health: &Health) -> String {
    let member = &view.about.member;
    match view.asked.title() {
        None => format!("{} · allclear {member}", health.headline),
        Some(page) => format!("{page} · {} · allclear {member}", health.headline),
    }
}

fn more(n: usize) -> Markup {
    html! {
        @if n > SHOWN_MAX {
            p.more { "and " (n - SHOWN_MAX) " more; " a href="/api/v1/state" { "the JSON" } " has them all" }
        }
    }
}

/// A sentence, with what stands between backticks as code.
fn quoted(sentence: &str) -> Markup {
    html! {
        @for (index, part) in sentence.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
