//! The rollouts that ended lately, as bars: how long each stage took, and for how long the edge was behind.
//!
//! From the notices of this process alone; `allclear history` has what the ledger keeps.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::health::Health;
use super::lines::mood_of;
use super::mood::Mood;
use super::{Section, View, link, time};
use crate::telemetry::passages::{Passage, Stage};
use kernel::id::WorkloadId;
use notices::notice::Kind;

/// Bars on the page: two screens.
const BARS_MAX: usize = 50;

/// Bars on the page of a workload.
const OWN_BARS_MAX: usize = 10;

/// The width of the longest bar, in units of its picture.
const WIDTH: i64 = 1000;

pub(super) fn parts(view: &View<'_>) -> (Health, Vec<Section>) {
    if let Err(health) = Health::of_process(view) {
        let sections = vec![Section::new("health", health.markup())];
        return (health, sections);
    }
    let ended = ended(view, view.passages);
    let health = match ended.first() {
        Some(last) => Health::plain(Mood::Rest, format!("{} ended last", last.workload.display_name())),
        None => Health::plain(Mood::Rest, "No rollout has ended since this process started"),
    };
    let sections = vec![
        Section::new("health", health.markup()),
        Section::new("history", html! { @if !ended.is_empty() { (table(view, &ended, BARS_MAX, true)) } }),
    ];
    (health, sections)
}

/// Those of one workload, with a headline of their own; nothing where none has ended.
pub(super) fn own(view: &View<'_>, passages: &[Passage]) -> Markup {
    let ended = ended(view, passages);
    html! { @if !ended.is_empty() { h3 { "How long the stages took" } (table(view, &ended, OWN_BARS_MAX, false)) } }
}

/// Without those whose purge failed and may be tried again.
fn ended<'a>(view: &View<'_>, passages: &'a [Passage]) -> Vec<&'a Passage> {
    let moving = view.seen.ok().into_iter().flat_map(|seen| &seen.rollouts);
    let moving: BTreeSet<(&WorkloadId, u64)> = moving.map(|summary| (&summary.workload, summary.seq)).collect();
    let is_open = |one: &Passage| one.has_failed() && moving.contains(&(&one.workload, one.seq));
    passages.iter().filter(|one| one.ended.is_some() && !is_open(one) && !one.stages().is_empty()).collect()
}

fn table(view: &View<'_>, ended: &[&Passage], most: usize, named: bool) -> Markup {
    let shown = || ended.iter().take(most);
    let longest = shown().map(|passage| passage.stages().iter().map(|(.., took)| took).sum::<i64>()).max();
    let looks = shown().any(|passage| passage.seen.is_some());
    let stages = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Look || looks);
    html! {
        div.card.wide role="region" tabindex="0" aria-label="Rollouts that ended" {
            table.bars {
                thead {
                    tr {
                        th scope="col" { "rollout" }
                        th scope="col" { "ended" }
                        td {}
                        @for stage in stages.clone() { th.(stage.name()) scope="col" { (stage.name()) } }
                        th scope="col" { "edge behind" }
                    }
                }
                tbody { @for passage in shown() { (row(view, passage, longest.unwrap_or(1).max(1), stages.clone(), named)) } }
            }
        }
    }
}

fn row(view: &View<'_>, passage: &Passage, longest: i64, stages: impl Iterator<Item = Stage>, named: bool) -> Markup {
    let known = passage.stages();
    let of = |stage: Stage| known.iter().find(|(one, ..)| *one == stage).map(|(.., took)| time::span(0, *took));
    html! {
        tr {
            th scope="row" {
                @if named { (link::workload(&passage.workload)) " " }
                small { (passage.seq) }
                @if let Some((mood, words)) = how(passage, verdict(view, passage)) { " " span.pill.(mood.class()) { (words) } }
            }
            td.quiet { @if let Some((_, at_ms)) = passage.ended { (time::absolute(at_ms, view.now_ms)) } }
            td.bar aria-hidden="true" { (bar(&known, longest)) }
            @for stage in stages { td data-label=(stage.name()) { (of(stage).unwrap_or_else(|| "–".to_owned())) } }
            td data-label="edge behind" { @if let Some(behind) = passage.behind_ms() { (time::span(0, behind)) } @else { "–" } }
        }
    }
}

/// The stages one after the other, on the scale of the longest bar. What lasts at all is seen.
fn bar(known: &[(Stage, i64, i64)], longest: i64) -> Markup {
    let widths = known.iter().map(|(stage, _, took)| (stage, (took.saturating_mul(WIDTH) / longest).max(4)));
    let placed = widths.scan(0, |at, (stage, width)| {
        let begin = *at;
        *at += width;
        Some((stage, begin, width))
    });
    html! {
        svg viewBox={ "0 0 " (WIDTH + 16) " 10" } preserveAspectRatio="none" focusable="false" {
            @for (stage, x, width) in placed { rect.(stage.name()) x=(x) width=(width - 1) y="0" height="10" {} }
        }
    }
}

/// The board's colour of one that is its workload's newest. Of an older one only its notices are left.
fn verdict(view: &View<'_>, passage: &Passage) -> Option<Mood> {
    let is_newer = |other: &Passage| other.workload == passage.workload && other.seq > passage.seq;
    let seen = view.seen.ok().filter(|_| !view.passages.iter().any(is_newer))?;
    let unwell = seen.unwell.iter().find(|unwell| unwell.workload == passage.workload);
    Some(unwell.map_or(Mood::Rest, |unwell| mood_of(unwell.reason)))
}

/// How one ended that did not end in a purge, or whose edge was looked at. The newest one has the board's colour.
fn how(passage: &Passage, verdict: Option<Mood>) -> Option<(Mood, &'static str)> {
    match passage.ended?.0 {
        Kind::RolloutFailed => Some((Mood::Warn, "failed")),
        Kind::PurgeFailed => Some((verdict.unwrap_or(Mood::Warn), "not purged")),
        // The group gave it up.
        Kind::PurgeSkipped if verdict == Some(Mood::Bad) => Some((Mood::Bad, "not purged")),
        Kind::EdgeStale => Some((Mood::Bad, "stale")),
        Kind::EdgeFresh => Some((Mood::Good, "fresh")),
        Kind::RolloutSuperseded => Some((Mood::Rest, "overtaken")),
        Kind::PurgeSkipped => Some((Mood::Rest, "not to be purged")),
        _ => None,
    }
}

/// For how long the edge was behind, where it is known.
pub(super) fn behind(passage: &Passage) -> Markup {
    html! {
        @if let Some(behind) = passage.behind_ms() {
            " · " span.kind { "edge behind " } "for " (time::span(0, behind))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::chronicle::Chronicle;
    use crate::telemetry::passages::passages;
    use kernel::id::Seq;
    use notices::notice::Notice;

    fn of(kind: Kind) -> Passage {
        let chronicle = Chronicle::default();
        let notice = Notice {
            id: Notice::id_of("web", kind, ""),
            kind,
            at_ms: 0,
            about: WorkloadId::deployment("shop", "web").into(),
            seq: Seq(3),
            rollout: String::new(),
            change: String::new(),
            message: String::new(),
        };
        chronicle.note(&notice, 1_000);
        chronicle.read(|kept| passages(kept)).remove(0)
    }

    #[test]
    fn an_end_without_a_purge_has_the_colour_of_the_board() {
        let mood = |kind, verdict| how(&of(kind), verdict).unwrap().0;
        assert_eq!(mood(Kind::PurgeFailed, Some(Mood::Bad)), Mood::Bad);
        assert_eq!(mood(Kind::PurgeFailed, Some(Mood::Rest)), Mood::Rest, "no distribution serves it");
        assert_eq!(mood(Kind::PurgeFailed, None), Mood::Warn, "another rollout followed");
        assert_eq!(mood(Kind::PurgeSkipped, Some(Mood::Bad)), Mood::Bad, "its group gave it up");
        assert_eq!(mood(Kind::PurgeSkipped, Some(Mood::Rest)), Mood::Rest);
    }
}
