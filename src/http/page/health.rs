//! The sentence that people read first, its colour, and what needs a look.

use maud::{Markup, html};

use super::lines::Facts;
use super::mood::Mood;
use super::{SHOWN_MAX, Trouble, View, time};
use crate::actors::observation::Observation;

/// Names that follow the headline: with it a line of a wide page.
const OTHERS_NAMED_MAX: usize = 3;

/// The first thing on a page.
pub(super) struct Health {
    pub mood: Mood,
    /// What people and screen readers get first.
    pub headline: String,
    /// What follows it in the same sentence.
    pub rest: Markup,
    pub troubles: Vec<Trouble>,
}

impl Health {
    pub fn plain(mood: Mood, headline: impl Into<String>) -> Self {
        Self { mood, headline: headline.into(), rest: html! {}, troubles: Vec::new() }
    }

    /// What the actors show, unless the process as a whole is not well or not at work: that is the same on every page.
    ///
    /// # Errors
    /// How the process is then.
    pub fn of_process<'a>(view: &View<'a>) -> Result<&'a Observation, Self> {
        let seen = match view.seen {
            _ if view.draining => {
                return Err(Self::plain(Mood::Warn, "Shutting down; the next process goes on from the ledger"));
            }
            Ok(seen) => seen,
            Err(reason) => {
                let troubles = vec![Trouble::of(reason)];
                return Err(Self { troubles, ..Self::plain(Mood::Warn, "The actors do not answer") });
            }
        };
        let Some(leader) = &seen.standing_by else { return Ok(seen) };
        let troubles = seen.troubles.iter().map(Trouble::of).collect();
        Err(Self { troubles, ..Self::plain(Mood::Rest, format!("Standing by: {leader} leads")) })
    }

    /// Of everything: the worst row, by its name and reason; else what is wrong outside; else what moves.
    pub fn of_all(view: &View<'_>, seen: &Observation, lines: &[Facts<'_>], troubles: Vec<Trouble>) -> Self {
        let worst = lines.first().filter(|line| line.mood().needs_a_look());
        let moving = lines.first().filter(|line| line.mood() == Mood::Busy);
        let (mood, headline) = match (seen.synced, worst, troubles.first(), moving) {
            (true, Some(line), ..) => (line.mood(), line.headline()),
            (true, None, Some(trouble), _) => (Mood::Warn, trouble.lead().to_owned()),
            (true, None, None, Some(line)) => (Mood::Busy, line.headline()),
            (true, None, None, None) if seen.workloads == 0 => (Mood::Rest, "No workloads to watch".to_owned()),
            (true, None, None, None) => (Mood::Good, "All clear".to_owned()),
            (false, _, None, _) => (Mood::Busy, "Starting: listing the workloads of the cluster".to_owned()),
            (false, _, Some(trouble), _) => (Mood::Warn, format!("Starting; {}", trouble.lead())),
        };
        // The row that the headline is about.
        let first = if troubles.is_empty() { worst.or(moving) } else { worst };
        let rest = match first.filter(|_| seen.synced) {
            Some(first) => others(first, lines),
            None if mood == Mood::Good => fresh_since(view, seen),
            None => html! {},
        };
        Self { mood, headline, rest, troubles }
    }

    pub fn markup(&self) -> Markup {
        let listed = self.troubles.iter().filter(|trouble| trouble.words != self.headline);
        let listed: Vec<&Trouble> = listed.take(SHOWN_MAX).collect();
        html! {
            div.health.(self.mood.class()) {
                h1 { span.mark aria-hidden="true" { (self.mood.mark()) } " " (self.headline) span.rest { (self.rest) } }
                @if !listed.is_empty() { ul.troubles { @for trouble in listed { li { (trouble.markup()) } } } }
            }
        }
    }
}

/// Other rows that look the same, by name.
fn others(first: &Facts<'_>, lines: &[Facts<'_>]) -> Markup {
    let same = |line: &&Facts<'_>| {
        line.workload != first.workload
            && line.mood().needs_a_look() == first.mood().needs_a_look()
            && line.mood() <= Mood::Busy
    };
    let named: Vec<&Facts<'_>> = lines.iter().filter(same).take(OTHERS_NAMED_MAX + 1).collect();
    html! {
        @if !named.is_empty() {
            "; and "
            @for (index, line) in named.iter().take(OTHERS_NAMED_MAX).enumerate() { @if index > 0 { ", " } (line.name()) }
            @if named.len() > OTHERS_NAMED_MAX { " and others" }
        }
    }
}

/// What follows "All clear". In a group another member may have told of a purge that was of here too.
fn fresh_since(view: &View<'_>, seen: &Observation) -> Markup {
    let dry_run = view.about.dry_run;
    html! {
        @if let Some((at_ms, took_ms)) = view.last_purge {
            @if dry_run { ": all would be purged since " } @else { ": all purged since " }
            (time::absolute(at_ms, view.now_ms))
            @if let Some(took_ms) = took_ms.filter(|_| !dry_run) { "; the last purge took " (time::span(0, took_ms)) }
        } @else if seen.group.is_some() { ": no purge was told here since this process started" }
        @else { ": nothing had to be purged since this process started" }
    }
}
