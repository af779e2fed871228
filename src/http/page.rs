//! The status page: what is going on and what a person should know or do, and a page for each workload.
//!
//! It shows words that others chose (`purge::rollouts::rollout`'s summaries, mostly) and chooses none of its own about a rollout, so
//! it cannot disagree with `explain` or the logs. Everything is escaped by maud; the style sheet and the script alone are put in as they
//! are. A page is made of sections: `http::live` sends those that have changed. Nothing is loaded from anywhere else, and without the
//! script the page reloads itself.

mod group;
mod health;
pub mod link;
mod objects;
mod overview;
mod rollout;
mod time;
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
use health::Health;
use kernel::id::WorkloadId;
use kernel::text::visible;
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
    /// The first one, with a search among all workloads.
    Overview(Search),
    /// That of one workload.
    Workload(WorkloadId),
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

/// Something that needs a look.
struct Trouble {
    words: String,
    /// The id of the section that says more.
    section: Option<&'static str>,
}

impl Trouble {
    const fn see(section: &'static str, words: String) -> Self {
        Self { words, section: Some(section) }
    }
}

impl From<String> for Trouble {
    fn from(words: String) -> Self {
        Self { words, section: None }
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
    let overview = matches!(view.asked, Asked::Overview(_));
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
                    p.name { @if overview { "allclear" } @else { a href="/" { "allclear" } } }
                    p { "member " (member) " of group " (group) }
                    @if *dry_run { span.pill.warn { "dry run: nothing is purged or sent" } }
                    nav aria-label="Pages" {
                        a href="/" aria-current=[overview.then_some("page")] { "Overview" }
                        a href="/api/v1/state" { "JSON" }
                        a href="/metrics" { "Metrics" }
                    }
                    div.live { span #link .pill hidden { "connecting" } button #pause type="button" aria-pressed="false" hidden { "Pause" } }
                }
                p #say .unseen role="status" {}
                main #main tabindex="-1" data-now=(view.now_ms) {
                    @for Section { id, before, html } in &sections { (before) section id=(id) { (html) } }
                    @if let Some(explained) = explained { (workload::explained(view, explained)) }
                }
                footer {
                    "allclear " (env!("CARGO_PKG_VERSION")) " · times are UTC, by the clock of " (member)
                    noscript { " · reloads every " (RELOADED_EVERY_S) " s" }
                    " · " a href="/api/v1/state" { "the same as JSON" }
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
        title: title(view, &health),
        icon: health.mood.icon(),
        headline: health.headline,
        sections: sections.into_iter().map(html).collect(),
    }
}

fn parts(view: &View<'_>) -> (Health, Vec<Section>) {
    match view.asked {
        Asked::Overview(search) => overview::parts(view, search),
        Asked::Workload(id) => workload::parts(view, id),
    }
}

fn title(view: &View<'_>, health: &Health) -> String {
    let member = &view.about.member;
    match view.asked {
        Asked::Overview(_) => format!("{} · allclear {member}", health.headline),
        Asked::Workload(id) => format!("{} · {} · allclear {member}", id.display_name(), health.headline),
    }
}

fn tally(n: usize) -> Markup {
    html! { @if n > 0 { " " small { (n) } } }
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
