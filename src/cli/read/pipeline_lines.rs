//! A Pipeline in a few lines, as the list and the status have it.

use std::fmt;

use crate::looking::layout::Tone;
use crate::looking::page::Page;
use kernel::id::ObjectId;
use objects::pipeline::view::{EnvironmentView, View};

/// A Pipeline in a row: its environments from left to right, and below them what waits.
pub(crate) fn row(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let environments: Vec<String> = view.environments.iter().map(brief).collect();
    let mut page = Page { f };
    page.title(&format!("{}  {}", view.id.display_name(), environments.join("  │  ")))?;
    page.toned("Stopped", Tone::Look, view.suspended.clone())?;
    page.toned("Faulty", Tone::Bad, view.faulty.clone())?;
    page.part("Not judged", view.unjudged.clone())?;
    for environment in &view.environments {
        let waits = environment.waits.iter().filter(|_| view.faulty.is_none());
        page.part(&environment.name.0, waits.map(|waits| format!("{waits}; {}", environment.next)))?;
    }
    Ok(())
}

/// `prod 1.2 → 1.3 (Waiting)`, and what it comes after where that is not the one to the left.
pub(crate) fn brief(environment: &EnvironmentView) -> String {
    let at: Vec<&str> = environment.revisions.iter().map(|revision| revision.0.as_str()).collect();
    let at = if at.is_empty() { "?".to_owned() } else { at.join("+") };
    let open = environment.promotion.as_ref().filter(|promotion| promotion.open);
    let moving = open.map(|open| {
        let chosen = open.chosen.as_ref().map(|words| format!(", {words}")).unwrap_or_default();
        format!(" → {} ({}{chosen})", open.revision, open.phase)
    });
    let unready = environment.unsettled.as_ref().filter(|_| open.is_none()).map(|_| " (not ready)".to_owned());
    let after = after(environment).map(|after| format!(", {after}")).unwrap_or_default();
    format!("{} {at}{}{after}", environment.name, moving.or(unready).unwrap_or_default())
}

/// `after eu and us`.
fn after(environment: &EnvironmentView) -> Option<String> {
    let names: Vec<&str> = environment.after.iter().map(|name| name.0.as_str()).collect();
    (!names.is_empty()).then(|| format!("after {}", names.join(" and ")))
}
