//! The sentence that people read first, its colour, and what needs a look.

use maud::{Markup, html};

use super::{Trouble, View, count, objects, time};
use crate::actors::observation::Observation;
use purge::agreement::tally::Tally;

/// How a page looks at a glance: a class of the style sheet, a mark, and the colour of its icon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Good,
    Busy,
    Warn,
    Bad,
}

impl Mood {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// So that the colour is never all there is.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Busy => "…",
            Self::Warn => "!",
            Self::Bad => "✗",
        }
    }

    /// A dot, as a `data:` address; `%23` is the `#` of the colour.
    pub fn icon(self) -> String {
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

    /// Of the process as a whole, as far as it is not well or not at work: that is the same on every page.
    pub fn of_process(view: &View<'_>) -> Result<(), Self> {
        let seen = match view.seen {
            _ if view.draining => {
                return Err(Self::plain(Mood::Warn, "Shutting down; the next process goes on from the ledger"));
            }
            Ok(seen) => seen,
            Err(reason) => {
                let troubles = vec![reason.clone().into()];
                return Err(Self { troubles, ..Self::plain(Mood::Bad, "The actors do not answer") });
            }
        };
        let Some(leader) = &seen.standing_by else { return Ok(()) };
        let troubles = seen.troubles.iter().cloned().map(Trouble::from).collect();
        Err(Self { troubles, ..Self::plain(Mood::Good, format!("Standing by: {leader} leads")) })
    }

    pub fn of_all(view: &View<'_>, seen: &Observation) -> Self {
        let troubles = troubles(seen);
        let (mood, headline) = match (seen.synced, troubles.len(), seen.rollouts.len()) {
            (false, 0, _) => (Mood::Busy, "Starting: listing the workloads of the cluster".to_owned()),
            (false, _, _) => (Mood::Warn, "Starting, but something is in the way".to_owned()),
            (true, 0, 0) if seen.workloads == 0 => (Mood::Busy, "No workloads to watch".to_owned()),
            (true, 0, 0) => (Mood::Good, "All clear".to_owned()),
            (true, 0, n) => (Mood::Busy, format!("{} in flight", count(n, "rollout", "rollouts"))),
            (true, n, _) => (Mood::Warn, count(n, "thing needs a look", "things need a look")),
        };
        let rest = if mood == Mood::Good {
            fresh_since(view)
        } else {
            html! {}
        };
        Self { mood, headline, rest, troubles }
    }

    pub fn markup(&self) -> Markup {
        html! {
            div.health.(self.mood.class()) {
                h1 { span.mark aria-hidden="true" { (self.mood.mark()) } " " (self.headline) span.rest { (self.rest) } }
                @if !self.troubles.is_empty() {
                    ul {
                        @for Trouble { words, section } in &self.troubles {
                            li { @if let Some(section) = section { a href={ "#" (section) } { (words) } } @else { (words) } }
                        }
                    }
                }
            }
        }
    }
}

/// What follows "All clear".
fn fresh_since(view: &View<'_>) -> Markup {
    html! {
        @if let Some((at_ms, took_ms)) = view.last_purge {
            ": all purged since " (time::absolute(at_ms, view.now_ms))
            @if let Some(took_ms) = took_ms { "; the last purge took " (time::span(0, took_ms)) }
        } @else { ": nothing had to be purged since this process started" }
    }
}

fn troubles(seen: &Observation) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = seen.troubles.iter().cloned().map(Trouble::from).collect();
    let dead = seen.deliveries.iter().filter(|delivery| delivery.given_up).count();
    if dead > 0 {
        let words = format!("{} given up; see Webhooks below", count(dead, "webhook delivery", "webhook deliveries"));
        troubles.push(Trouble::see("webhooks", words));
    }
    if !seen.quarantined.is_empty() {
        let left = count(seen.quarantined.len(), "workload is", "workloads are");
        let words = format!("{left} left alone after repeated crashes; see Quarantined below");
        troubles.push(Trouble::see("quarantined", words));
    }
    if !seen.unwell.is_empty() {
        let rollouts = count(seen.unwell.len(), "workload", "workloads");
        let words = format!("the newest rollout of {rollouts} did not end well; see Needs a look below");
        troubles.push(Trouble::see("look", words));
    }
    let waited_for = seen.tallies.iter().filter(|tally| is_held_up(tally)).count();
    if waited_for > 0 {
        let words = format!(
            "others wait for this cluster with {}; see In flight below",
            count(waited_for, "workload", "workloads")
        );
        troubles.push(Trouble::see("flight", words));
    }
    troubles.extend(objects::troubles(seen));
    troubles
}

/// Whether others wait for this cluster while nothing moves here. While its own rollout goes on, a wait is no trouble.
pub(super) fn is_held_up(tally: &Tally) -> bool {
    let rolls = tally.members.iter().any(|ballot| ballot.is_self && ballot.phase == "rolling");
    tally.blocks.is_some() && !rolls
}
