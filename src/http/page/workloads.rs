//! All workloads, searched and filtered by the server: a page of rows at a time, however many there are.

use maud::{Markup, html};
use url::form_urlencoded::Serializer;

use super::health::Health;
use super::lines::mood_of;
use super::mood::Mood;
use super::{Section, View, link, workload};
use crate::actors::browse::Row;
use crate::actors::observation::Observation;
use purge::rollouts::browse::{Only, ROWS_MAX, Search, TEXT_CHARS_MAX};

pub(super) fn parts(view: &View<'_>, search: &Search) -> (Health, Vec<Section>) {
    let seen = match Health::of_process(view) {
        Ok(seen) => seen,
        Err(health) => {
            let sections = vec![Section::new("health", health.markup())];
            return (health, sections);
        }
    };
    let health = Health::plain(Mood::Rest, format!("Workloads of {}", view.about.member));
    let sections = vec![Section { before: form(search), ..Section::new("workloads", results(view, seen, search)) }];
    (health, sections)
}

/// The form. It stands outside of what changes, so that nothing disturbs who types; without a script it is sent as usual.
fn form(search: &Search) -> Markup {
    let option = |only: Only, words: &str| {
        html! { option value=(only.name()) selected[search.only == only] { (words) } }
    };
    html! {
        h1.plain #find { "Workloads" }
        form #search action="/workloads" method="get" role="search" {
            label for="q" { "Search" }
            input #q name="q" type="search" value=(search.text) maxlength=(TEXT_CHARS_MAX) autocomplete="off"
                placeholder="a part of namespace/name or of an image";
            label for="only" { "Show" }
            select #only name="only" {
                (option(Only::All, "all"))
                (option(Only::InFlight, "in flight"))
                (option(Only::Amber, "needs a look"))
            }
            button type="submit" { "Search" }
        }
    }
}

fn results(view: &View<'_>, seen: &Observation, search: &Search) -> Markup {
    let listing = view.listing;
    let first = search.page.saturating_mul(ROWS_MAX);
    html! {
        @if listing.rows.is_empty() {
            div.card.empty {
                @if listing.matched > 0 { "This page is empty. " a href=(address(search, 0)) { "The first one" } " is not." }
                @else if seen.workloads == 0 { "No workload has a record yet." }
                @else { "Of " (seen.workloads) " workloads none is like that." }
            }
        } @else {
            p.more {
                (first + 1) "–" (first + listing.rows.len()) " of " (listing.matched)
                @if listing.matched != seen.workloads { ", among " (seen.workloads) " workloads" }
            }
            // Also above the rows, which are fifty stops for a keyboard.
            @if listing.matched > ROWS_MAX { (pager(search, listing.matched, "Pages of workloads")) }
            div.card.wide role="region" tabindex="0" aria-label="Workloads found" {
                table.found {
                    thead { tr { th scope="col" { "workload" } th scope="col" { "version" } th scope="col" { "state" } th scope="col" { "last news" } } }
                    tbody { @for row in &listing.rows { (line(view, seen, row)) } }
                }
            }
            @if listing.matched > ROWS_MAX { (pager(search, listing.matched, "Pages of workloads, below the rows")) }
        }
    }
}

fn line(view: &View<'_>, seen: &Observation, row: &Row) -> Markup {
    let id = &row.summary.workload;
    let live = seen.rollouts.iter().find(|summary| summary.workload == *id).unwrap_or(&row.summary);
    html! {
        tr {
            th scope="row" { (link::workload(id)) }
            td.change { (row.version) }
            td { (pill(row)) (live.state) }
            td.quiet { (workload::last_told(view, id)) }
        }
    }
}

/// What is not at rest, or not well, in a word.
fn pill(row: &Row) -> Markup {
    html! {
        @if row.left_alone.is_some() { span.pill.warn { "left alone" } " " }
        @if let Some(unwell) = &row.unwell { span.pill.(mood_of(unwell.reason).class()) { (unwell.reason.name()) } " " }
        @else if row.in_flight { span.pill.busy { "in flight" } " " }
    }
}

fn pager(search: &Search, matched: usize, label: &str) -> Markup {
    let last = matched.saturating_sub(1) / ROWS_MAX;
    let to = |page: usize, words: &str| html! { a href=(address(search, page)) { (words) } " " };
    html! {
        nav.pager aria-label=(label) {
            @if search.page > 0 { (to(0, "First")) (to(search.page - 1, "Previous")) }
            span { "page " (search.page + 1) " of " (last + 1) " " }
            @if search.page < last { (to(search.page + 1, "Next")) (to(last, "Last")) }
        }
    }
}

/// The address of a page of a search.
fn address(search: &Search, page: usize) -> String {
    let mut query = Serializer::new(String::new());
    if !search.text.is_empty() {
        query.append_pair("q", &search.text);
    }
    query.append_pair("only", search.only.name()).append_pair("page", &(page + 1).to_string());
    format!("/workloads?{}", query.finish())
}
