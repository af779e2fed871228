//! A Repo in a few lines, as the list and the status have it.

use std::fmt;

use crate::looking::layout::Tone;
use crate::looking::page::Page;
use kernel::id::ObjectId;
use objects::repo::view::{Held, RunView, View};

/// A Repo in a row: the wanted commit and its run, and below them what waits.
pub(crate) fn row(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut page = Page { f };
    page.title(&format!("{}  {}", view.id.display_name(), state(view)))?;
    held(view, &mut page)?;
    let waits = view.waits.iter().filter(|_| view.held.faulty.is_none());
    page.part("Waits", waits.map(|waits| format!("{waits}; {}", view.next)))
}

/// The wanted commit and its run.
pub(crate) fn state(view: &View) -> String {
    let head = view.head.as_ref().map_or_else(|| "?".to_owned(), |head| head.revision.short().to_owned());
    let run = view.run.as_ref().map_or_else(String::new, |run| format!("  │  {}", brief(run)));
    let unchanged = if view.unchanged().is_some() { ", unchanged here" } else { "" };
    let drifted = if view.has_drifted() { ", drifted" } else { "" };
    format!("{head}{unchanged}{drifted}{run}")
}

/// `run 4 of 0123456789ab: Started apply`.
fn brief(run: &RunView) -> String {
    let action = run.job.as_ref().filter(|_| run.open).map_or_else(String::new, |job| format!(" {}", job.action));
    format!("run {} of {}: {}{action}", run.seq, run.revision.short(), run.phase)
}

/// What keeps a Repo from being judged as its spec says now.
pub(crate) fn held(view: &View, page: &mut Page<'_, '_>) -> fmt::Result {
    let Held { suspended, faulty, unjudged } = &view.held;
    page.toned("Stopped", Tone::Look, suspended.clone())?;
    page.toned("Faulty", Tone::Bad, faulty.iter().map(|why| format!("its spec cannot be used: {why}")))?;
    page.part("Not judged", unjudged.clone())
}
