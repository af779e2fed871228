//! The page of one workload: its newest rollout and notices, how earlier ones ended, and the answer of `explain`.

use maud::{Markup, html};

use super::health::Health;
use super::lines::{self, Facts};
use super::link::before_name;
use super::mood::Mood;
use super::{Asked, Section, Trouble, View, count, history, rollout, time};
use crate::actors::browse::Row;
use crate::actors::observation::Observation;
use crate::telemetry::chronicle::Moment;
use crate::telemetry::passages::passages;
use kernel::id::WorkloadId;
use kernel::names::workload_name::WorkloadName;
use notices::notice::{Kind, Severity};

/// Moments on one page: those of a dozen rollouts.
const MOMENTS_MAX: usize = 60;

/// The page in parts.
pub(super) fn parts(view: &View<'_>, id: &WorkloadId) -> (Health, Vec<Section>) {
    let seen = match Health::of_process(view) {
        Ok(seen) => seen,
        Err(health) => {
            let sections = vec![Section::new("health", html! { (heading(id, None)) (health.markup()) })];
            return (health, sections);
        }
    };
    let row = view.listing.rows.first();
    let health = of_one(view, seen, id, row);
    let sections = vec![
        Section::new("health", html! { (heading(id, row)) (health.markup()) (remedy(view, seen, row)) }),
        Section::new("rollout", html! { @if let Some(row) = row { (newest(view, seen, row)) } }),
        Section::new(
            "history",
            history::own(view, &passages(view.moments.iter().filter(|moment| moment.workload == *id))),
        ),
        Section::new("told", html! { h2 { "What happened" } (story(view, id, row)) }),
    ];
    (health, sections)
}

fn heading(id: &WorkloadId, row: Option<&Row>) -> Markup {
    html! {
        p.crumb {
            a href="/workloads" { "Workloads" } " / " span.quiet { (before_name(id)) } strong { (id.name) }
            @if let Some(row) = row { " " span.change { (row.version) } }
        }
    }
}

/// How this workload is, as its own words have it.
fn of_one(view: &View<'_>, seen: &Observation, id: &WorkloadId, row: Option<&Row>) -> Health {
    let Some(row) = row else {
        let why =
            if seen.synced { "is not on record here" } else { "is not known yet: the workloads are being listed" };
        return Health::plain(Mood::Rest, format!("{} {why}", id.display_name()));
    };
    let facts = lines::one(view, seen, row);
    let mood = facts.mood();
    let words = if mood.needs_a_look() { facts.headline() } else { facts.reason() };
    let conditions = facts.summary.into_iter().flat_map(|summary| &summary.conditions);
    let holds = seen.group.iter().filter_map(|group| group.hold.as_ref());
    let held = holds.map(|hold| Trouble::see("/group", format!("The group is held: {hold}")));
    let troubles = conditions.map(Trouble::of).chain(held).collect();
    Health { troubles, ..Health::plain(mood, words) }
}

/// What to do, where something must be done.
fn remedy(view: &View<'_>, seen: &Observation, row: Option<&Row>) -> Markup {
    let facts = row.map(|row| lines::one(view, seen, row));
    html! {
        @if let Some(remedy) = facts.as_ref().and_then(Facts::remedy) { p.todo { span.kind { "What to do: " } (remedy) } }
        @if let Some(command) = facts.as_ref().and_then(Facts::command) { p.todo { code.command { (command) } } }
    }
}

fn newest(view: &View<'_>, seen: &Observation, row: &Row) -> Markup {
    let id = &row.summary.workload;
    let summary = seen.rollouts.iter().find(|summary| summary.workload == *id).unwrap_or(&row.summary);
    html! {
        h2 { "Rollout " (summary.seq) }
        article.card { (rollout::inside(view, seen, summary)) }
    }
}

/// The notices since the process started, with times, and the ends of the last rollouts, from the ledger.
fn story(view: &View<'_>, id: &WorkloadId, row: Option<&Row>) -> Markup {
    let told: Vec<&Moment> = view.moments.iter().rev().filter(|moment| moment.workload == *id).collect();
    html! {
        div.card {
            @if told.is_empty() { p.quiet { "Nothing since this process started." } }
            ol.story {
                @for moment in told.iter().take(MOMENTS_MAX) {
                    li {
                        span.at { (time::moment(moment.at_ms, view.now_ms)) }
                        div { span.pill.(colour(moment)) { (moment.kind.name()) } " " span.quiet { "rollout " (moment.seq) } p { (moment.message) } }
                    }
                }
            }
            @if told.len() > MOMENTS_MAX { p.more { "and " (count(told.len() - MOMENTS_MAX, "earlier one", "earlier ones")) } }
            @if let Some(row) = row.filter(|row| !row.summary.past.history.is_empty()) {
                h3 { "How the last rollouts ended" }
                ul.before { @for closed in &row.summary.past.history { li { (closed) } } }
            }
        }
    }
}

/// The notices of a refused purge, and of a stale edge.
const REFUSALS: [Kind; 3] = [Kind::PurgeOwed, Kind::PurgeFailed, Kind::EdgeStale];

fn colour(moment: &Moment) -> &'static str {
    match moment.kind.severity() {
        Severity::Info => "",
        Severity::Warn => "warn",
        Severity::Error if REFUSALS.contains(&moment.kind) => "bad",
        Severity::Error => "warn",
    }
}

/// The time of a workload's last notice.
pub(super) fn last_told(view: &View<'_>, id: &WorkloadId) -> Markup {
    let last = view.moments.iter().rev().find(|moment| moment.workload == *id);
    html! { @if let Some(last) = last { (time::moment(last.at_ms, view.now_ms)) } }
}

/// The answer of `explain`, word by word, as of now; it costs calls to the API server and to AWS, so it is not live.
pub(super) fn explained(view: &View<'_>, explained: &Result<String, String>) -> Markup {
    html! {
        section #explain {
            h2 { "Explained" small { " as of " (time::absolute(view.now_ms, view.now_ms)) "; reload to ask again" } }
            @match explained {
                Ok(text) => div.card.wide role="region" tabindex="0" aria-label="The answer of explain" {
                    @for line in text.lines() { div.line { (line) } }
                },
                Err(why) => div.card.empty { (why) },
            }
            @if let Asked::Workload(id) = view.asked {
                p.more { "The same in a terminal: " code { "allclear explain -n " (id.namespace) " " (WorkloadName::of(id)) } }
            }
        }
    }
}
