//! The rows of the board, from what the actors show: one for each workload that moves, moved lately or needs somebody, with the worst
//! first. A pure function of the state; how a row looks is `board`'s.
//!
//! Words are those of the records and of the group. A command has the real names, and is left out where a name is no usual one: it is
//! there to be pasted into a shell.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::mood::Mood;
use super::{SHOWN_MAX, View};
use crate::actors::browse::Row;
use crate::actors::observation::Observation;
use crate::http::names::is_name;
use crate::telemetry::passages::{Passage, Stage as Lap};
use kernel::id::{Subject, WorkloadId};
use kernel::names::workload_name::WorkloadName;
use kernel::text::phrase;
use notices::notice::Kind;
use purge::agreement::roster::{Hold, Reason as Cause};
use purge::agreement::tally::{Ballot, Tally};
use purge::rollouts::part::PartSeen;
use purge::rollouts::rollout::{Stage, Summary};
use purge::rollouts::unwell::{Reason, Unwell};
use purge::rollouts::versions::{Has, Versions};

/// Characters of a reason in a headline: a line and a half of a wide page. The row has all of it.
const CAUSE_CHARS_MAX: usize = 140;

/// All that is known of one workload.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub workload: &'a WorkloadId,
    /// The newest words about it.
    pub summary: Option<&'a Summary>,
    /// Its rollout is in flight here.
    pub moves: bool,
    pub unwell: Option<&'a Unwell>,
    /// Why it is left alone, if it is.
    pub left_alone: Option<&'a str>,
    pub tally: Option<&'a Tally>,
    /// The part of each member of the group; none while alone.
    pub parts: &'a [PartSeen],
    /// The way of its newest rollout, as far as this process has told of it.
    pub passage: Option<&'a Passage>,
    /// Nothing can be agreed on in its group.
    pub held: bool,
    /// Nothing is purged: it is only said what would be.
    pub dry_run: bool,
}

/// What is said where nothing more is known of a workload that is left alone.
const CRASHED: &str = "it crashed too often; its record is unchanged, and the log says why";

/// A part of a row: its colour, its words, and since when.
pub(super) struct Cell {
    pub mood: Mood,
    pub words: String,
    pub at_ms: Option<i64>,
}

impl Cell {
    fn new(mood: Mood, words: impl Into<String>) -> Self {
        Self { mood, words: words.into(), at_ms: None }
    }
}

/// The board's rows, the worst first, and how many there are in all.
pub(super) fn lines<'a>(view: &View<'a>, seen: &'a Observation) -> (Vec<Facts<'a>>, usize) {
    let by = |all: &'a [Summary]| -> BTreeMap<&'a WorkloadId, &'a Summary> {
        all.iter().rev().map(|summary| (&summary.workload, summary)).collect()
    };
    let (moving, recent) = (by(&seen.rollouts), by(&seen.recent));
    let rows: BTreeMap<&WorkloadId, &Row> = view.listing.rows.iter().map(|row| (&row.summary.workload, row)).collect();
    let unwell: BTreeMap<&WorkloadId, &Unwell> = seen.unwell.iter().map(|one| (&one.workload, one)).collect();
    let tallies: BTreeMap<&WorkloadId, &Tally> = seen.tallies.iter().map(|tally| (&tally.workload, tally)).collect();
    let parts = seen.parts.iter().map(|parts| (&parts.workload, parts.members.as_slice()));
    let parts: BTreeMap<&WorkloadId, &[PartSeen]> = parts.collect();
    let passages: BTreeMap<(&WorkloadId, u64), &Passage> =
        view.passages.iter().map(|passage| ((&passage.workload, passage.seq), passage)).collect();
    let aside: BTreeSet<&WorkloadId> = seen.quarantined.iter().collect();
    let mut all: BTreeSet<&WorkloadId> = aside.clone();
    all.extend(moving.keys().chain(recent.keys()).chain(unwell.keys()).chain(tallies.keys()));
    let facts = |workload: &'a WorkloadId| {
        let row = rows.get(workload).copied();
        let past = row.map(|row| &row.summary).or(recent.get(workload).copied());
        let summary = moving.get(workload).copied().or(past);
        let why = row.and_then(|row| row.left_alone.as_deref());
        Facts {
            workload,
            summary,
            moves: moving.contains_key(workload),
            unwell: unwell.get(workload).copied(),
            left_alone: aside.contains(workload).then(|| why.unwrap_or(CRASHED)),
            tally: tallies.get(workload).copied(),
            parts: parts.get(workload).copied().unwrap_or_default(),
            passage: summary.and_then(|summary| passages.get(&(workload, summary.seq)).copied()),
            held: is_held(seen),
            dry_run: view.about.dry_run,
        }
    };
    let mut lines: Vec<Facts<'a>> = all.into_iter().map(facts).collect();
    lines.sort_by_key(|line| (line.mood(), Reverse(line.passage.map(|passage| passage.last_ms)), line.workload));
    let count = lines.len();
    lines.truncate(SHOWN_MAX);
    (lines, count)
}

/// The same of one workload, for its own page.
pub(super) fn one<'a>(view: &View<'a>, seen: &'a Observation, row: &'a Row) -> Facts<'a> {
    let workload = &row.summary.workload;
    let live = seen.rollouts.iter().find(|summary| summary.workload == *workload);
    let summary = live.unwrap_or(&row.summary);
    Facts {
        workload,
        summary: Some(summary),
        moves: live.is_some() || row.in_flight,
        unwell: row.unwell.as_ref().filter(|_| live.is_none()),
        left_alone: row.left_alone.as_deref(),
        tally: seen.tallies.iter().find(|tally| tally.workload == *workload),
        parts: seen.parts.iter().find(|parts| parts.workload == *workload).map_or(&[], |parts| &parts.members),
        passage: view.passages.iter().find(|one| one.workload == *workload && one.seq == summary.seq),
        held: is_held(seen),
        dry_run: view.about.dry_run,
    }
}

/// Whether nothing can be agreed on, for a reason that somebody should look at.
fn is_held(seen: &Observation) -> bool {
    seen.group.as_ref().is_some_and(|group| group.hold.is_some() && group.holds.first().is_none_or(counts))
}

/// A start, and a dry run, hold a group by rights.
pub(super) fn counts(hold: &Hold) -> bool {
    !matches!(hold.reason, Cause::Starting | Cause::DryRun)
}

/// Whether others wait for this cluster while nothing moves here. While its own rollout goes on, a wait is no trouble.
pub(super) fn is_held_up(tally: &Tally) -> bool {
    let rolls = tally.members.iter().any(|ballot| ballot.is_self && ballot.phase == "rolling");
    tally.blocks.is_some() && !rolls
}

/// What an end that was not well means for the edge.
pub(super) const fn mood_of(reason: Reason) -> Mood {
    match reason {
        Reason::Failed => Mood::Warn,
        Reason::Withdrawn | Reason::Owed | Reason::Impossible | Reason::Partly | Reason::Stale => Mood::Bad,
    }
}

impl<'a> Facts<'a> {
    pub fn name(&self) -> String {
        self.workload.display_name()
    }

    fn versions(&self) -> Option<&'a Versions> {
        self.summary.map(|summary| &summary.versions)
    }

    fn is_purged(&self) -> bool {
        self.versions().is_some_and(|versions| versions.purged)
    }

    fn stale(&self) -> Option<&'a str> {
        self.versions().and_then(|versions| versions.stale.as_deref())
    }

    fn pod(&self) -> Option<&'a (String, String)> {
        self.versions().and_then(|versions| versions.pod.as_ref())
    }

    fn condition(&self) -> Option<&'a String> {
        self.summary.and_then(|summary| summary.conditions.first())
    }

    fn blocks(&self) -> Option<&'a String> {
        self.tally.filter(|tally| is_held_up(tally)).and_then(|tally| tally.blocks.as_ref())
    }

    /// Another member that was heard from lately and knows the edge to be stale. In flight that may end with the next attempt.
    fn stale_by(&self) -> Option<(&'a str, &'a str)> {
        let heard = self.parts.iter().filter(|part| !part.is_self && part.silent.is_none() && !self.moves);
        heard.filter_map(|part| Some((part.member.as_str(), part.stale.as_deref()?))).next()
    }

    pub fn mood(&self) -> Mood {
        let unwell = self.unwell.map(|unwell| mood_of(unwell.reason));
        let moves = self.moves || self.tally.is_some();
        let waits = self.left_alone.is_some()
            || self.blocks().is_some()
            || self.pod().is_some()
            || self.condition().is_some()
            || self.stale_by().is_some()
            || (self.held && moves);
        match unwell {
            Some(Mood::Bad) => Mood::Bad,
            _ if self.stale().is_some() => Mood::Bad,
            Some(mood) => mood,
            None if waits => Mood::Warn,
            None if moves => Mood::Busy,
            None => self.summary.map_or(Mood::Rest, ended),
        }
    }

    /// Its name and why somebody should look, or what it does, in one sentence.
    pub fn headline(&self) -> String {
        let name = self.name();
        let because = |words: &str, cause: &str| format!("{name} {words}: {}", phrase(cause, CAUSE_CHARS_MAX));
        if let Some(Unwell { reason, state, .. }) = self.unwell {
            let cause = self.stale().unwrap_or_else(|| self.without_change(state));
            return because(verdict(*reason), cause);
        }
        if let Some(stale) = self.stale() {
            return because("is stale at the edge", stale);
        }
        if let Some(why) = self.left_alone {
            return because("is left alone for a while", why);
        }
        if let Some(blocks) = self.blocks() {
            return format!("{name}: {blocks}");
        }
        if let Some((member, why)) = self.stale_by() {
            return because(&format!("is stale at the edge, as {member} says"), why);
        }
        if let Some((pod, reason)) = self.pod() {
            return because(&format!("waits for its pod {pod}"), reason);
        }
        if let Some(condition) = self.condition() {
            return format!("{name}: {}", phrase(condition, CAUSE_CHARS_MAX));
        }
        if self.held {
            return format!("{name} waits: its group is held");
        }
        format!("{name} {}", self.doing())
    }

    fn doing(&self) -> &'static str {
        match (self.summary.filter(|_| self.moves).map(|summary| summary.stage), self.dry_run) {
            (Some(Stage::Rollout), _) => "is rolling out",
            (Some(Stage::Agreement), _) if self.tally.is_some() => "waits for its group",
            (Some(Stage::Agreement), false) => "is about to be purged",
            (Some(Stage::Purge), false) => "is being purged",
            (Some(Stage::Agreement | Stage::Purge), true) => "would be purged now",
            (Some(Stage::Webhooks), false) if self.is_purged() => "is purged, and webhooks are told",
            (Some(Stage::Webhooks), true) if self.is_purged() => "would be purged, and webhooks told",
            (Some(Stage::Webhooks), _) => "is not to be purged, and that is told",
            (Some(Stage::Idle), _) => "is being looked at",
            (None, _) => "moves in another cluster of its group",
        }
    }

    /// A sentence without the versions before it, which stand beside it.
    fn without_change<'b>(&self, state: &'b str) -> &'b str {
        let change = self.summary.map_or("", |summary| summary.change.as_str());
        state.strip_prefix(change).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(state)
    }

    /// Why it is where it is, in full.
    pub fn reason(&self) -> String {
        match (self.unwell, self.left_alone, self.summary, self.tally) {
            (Some(unwell), ..) => self.without_change(&unwell.state).to_owned(),
            (None, Some(why), ..) => format!("left alone for a while: {why}"),
            (None, None, Some(summary), _) => self.without_change(&summary.state).to_owned(),
            (None, None, None, Some(tally)) => tally.state.clone(),
            (None, None, None, None) => String::new(),
        }
    }

    /// What comes next by itself.
    pub fn next(&self) -> Option<&'a str> {
        self.summary.filter(|_| self.moves).map(|summary| summary.next.as_str())
    }

    /// What a person does about it.
    pub fn remedy(&self) -> Option<&'static str> {
        let refused = self.stale().filter(|_| self.moves).map(|_| Reason::Owed);
        let elsewhere = || self.stale_by().map(|_| ELSEWHERE_REMEDY);
        self.unwell.map(|unwell| unwell.reason).or(refused).map(Reason::remedy).or_else(elsewhere)
    }

    /// The command that says more, or mends it.
    pub fn command(&self) -> Option<String> {
        let WorkloadId { namespace, name, .. } = self.workload;
        if !self.mood().needs_a_look() || !is_name(namespace) || !is_name(name) {
            return None;
        }
        let path = format!("{namespace}/{}", WorkloadName::of(self.workload));
        let is_refused = self.stale().is_some() && self.moves;
        Some(match (self.unwell.map(|unwell| unwell.reason), self.pod()) {
            (Some(Reason::Owed), _) => format!("allclear purge {path} --retry"),
            (Some(Reason::Withdrawn | Reason::Impossible | Reason::Partly | Reason::Stale), _) => {
                format!("allclear purge {path}")
            }
            (None, _) if is_refused => format!("allclear purge {path} --retry"),
            (None, Some((pod, _))) if is_name(pod) => format!("kubectl -n {namespace} describe pod {pod}"),
            (Some(Reason::Failed) | None, _) => format!("allclear explain {path}"),
        })
    }

    /// Whether it is purged, and since when.
    pub fn purged(&self) -> Cell {
        let told = |lap| self.passage.and_then(|passage| passage.began(lap));
        let stage = self.summary.filter(|_| self.moves).map(|summary| summary.stage);
        let has = self.versions().map(|versions| versions.at_edge);
        if self.stale().is_some() || self.unwell.is_some_and(|unwell| mood_of(unwell.reason) == Mood::Bad) {
            let seen_stale = self.unwell.is_some_and(|unwell| unwell.reason == Reason::Stale)
                || self.passage.is_some_and(|passage| passage.seen == Some(Kind::EdgeStale));
            return Cell::new(Mood::Bad, if seen_stale { "stale" } else { "not purged" });
        }
        if self.unwell.is_some() {
            return Cell::new(Mood::Rest, "not purged");
        }
        let purged = if self.dry_run { "would be purged" } else { "purged" };
        match (stage, has) {
            (Some(Stage::Purge), _) => Cell { at_ms: told(Lap::Purge), ..Cell::new(Mood::Busy, "under way") },
            (Some(Stage::Rollout | Stage::Agreement), _) => Cell::new(Mood::Rest, "not yet"),
            (_, Some(Has::Same)) if !self.is_purged() => Cell::new(Mood::Rest, "edge has it"),
            (_, Some(Has::Same)) => Cell { at_ms: told(Lap::Look), ..Cell::new(Mood::Good, purged) },
            (_, Some(Has::NoEdge)) => Cell::new(Mood::Rest, "no edge"),
            (_, Some(Has::Another | Has::Mixed | Has::Unknown) | None) => Cell::new(Mood::Rest, "–"),
        }
    }

    /// Whether the webhooks were told; `None` where there is none.
    pub fn told(&self, seen: &Observation) -> Option<Cell> {
        if seen.receivers.is_empty() && seen.deliveries.is_empty() {
            return None;
        }
        let is_ours = |subject: &Subject| *subject == *self.workload;
        let mut own = seen.deliveries.iter().filter(|delivery| is_ours(&delivery.subject)).peekable();
        let waits = own.peek().is_some();
        Some(if let Some(dead) = own.find(|delivery| delivery.given_up) {
            Cell::new(Mood::Warn, format!("not {}", dead.hook))
        } else if waits {
            Cell::new(Mood::Busy, "under way")
        } else if self.moves {
            Cell::new(Mood::Rest, "nothing yet")
        } else {
            Cell::new(Mood::Rest, "nothing waits")
        })
    }
}

/// The remedy where another cluster knows the edge to be stale: its purge may be refused, or a look from there has shown it.
const ELSEWHERE_REMEDY: &str =
    "ask there: allclear explain names what is refused in that cluster, or what the edge answered it";

/// How a rollout that is over, and needs no look, ended.
fn ended(summary: &Summary) -> Mood {
    match (summary.phase, summary.versions.at_edge) {
        ("complete", Has::Same | Has::NoEdge) => Mood::Good,
        _ => Mood::Rest,
    }
}

const fn verdict(reason: Reason) -> &'static str {
    match reason {
        Reason::Failed => "did not roll out",
        Reason::Withdrawn => "was given up by its group, and the edge is stale",
        Reason::Owed | Reason::Impossible | Reason::Stale => "is stale at the edge",
        Reason::Partly => "is stale at a part of the edge",
    }
}

/// One that is complete and waited for all the same is no good news.
pub(super) fn mood_of_ballot(ballot: &Ballot) -> Mood {
    match (ballot.phase.as_str(), ballot.voted, &ballot.awaited) {
        ("failed" | "withdrawn", ..) | ("complete", false, Some(_)) => Mood::Warn,
        ("rolling", ..) => Mood::Busy,
        ("complete", ..) => Mood::Good,
        _ => Mood::Rest,
    }
}

#[cfg(test)]
mod tests;
