//! Repos on a terminal.

use std::fmt;

use serde::Serialize;

use crate::cli::page::{Page, time};
use crate::cli::read::repo_lines::{held, row, short};
use domain::kernel::id::{ObjectId, Revision};
use domain::kernel::text::visible;
use domain::repo::view::{ConditionView, EndedView, QuestionView, RunView, View};

/// Every Repo, and those that cannot be read.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) repos: Vec<View>,
    pub(super) unreadable: Vec<String>,
}

/// One Repo with all that is known of it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Explained(pub(super) View);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.repos.is_empty() && self.unreadable.is_empty() {
            return writeln!(f, "no Repos");
        }
        for view in &self.repos {
            row(view, f)?;
        }
        for unreadable in &self.unreadable {
            writeln!(f, "{}", visible(unreadable))?;
        }
        Ok(())
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(view) = self;
        writeln!(f, "{}", visible(&view.id.display_name()))?;
        let mut page = Page { f };
        page.part("Source", [view.source.clone()].into_iter().filter(|source| !source.is_empty()))?;
        held(view, &mut page)?;
        page.part(
            "Head",
            view.head.iter().map(|head| format!("{}, {}, since {}", head.revision, head.name, time(head.seen_ms))),
        )?;
        page.part("Waits", view.waits.clone())?;
        page.part("Next", [view.next.clone()])?;
        page.part("Question", view.question.as_ref().map(asked))?;
        page.part("Gates", view.gates.clone())?;
        page.part("Run", view.run.iter().flat_map(run))?;
        page.part("Logs", view.run.iter().flat_map(logs))?;
        page.part(
            "Queued",
            view.queued.iter().map(|queued| {
                format!("{} since {}{}", queued.revision, time(queued.since_ms), skipped(&queued.skipped))
            }),
        )?;
        page.part("Conditions", view.conditions.iter().map(condition))?;
        page.part("History", view.history.iter().map(ended))
    }
}

fn asked(question: &QuestionView) -> String {
    let QuestionView { kind, words, ticket, since_ms } = question;
    format!("{kind}, since {}: {words}; ticket {ticket}", time(*since_ms))
}

fn run(run: &RunView) -> Vec<String> {
    let started = run.started_ms.map_or_else(String::new, |at| format!(", started {}", time(at)));
    let ended = run.ended_ms.map_or_else(String::new, |at| format!(", ended {}", time(at)));
    let said = if run.message.is_empty() { String::new() } else { format!(": {}", run.message) };
    let mut lines = vec![format!("{} of {}, {}{started}{ended}{said}", run.seq, run.revision, run.phase)];
    lines.extend(run.job.as_ref().map(|job| format!("Job {} of this run: {}, {}", job.number, job.name, job.action)));
    lines.extend(run.plan.as_ref().map(|plan| {
        let counts = plan.counts.clone().unwrap_or_else(|| "any text; its log shows it".to_owned());
        format!("its plan: {counts}")
    }));
    lines.extend(run.approved.as_ref().map(|(by, at)| {
        let by = if by.is_empty() { "somebody who did not say a name" } else { by };
        format!("approved by {by}, {}", time(*at))
    }));
    let instead = skipped(&run.skipped);
    lines
        .extend(Some(instead).filter(|words| !words.is_empty()).map(|words| words.trim_start_matches(", ").to_owned()));
    lines
}

/// The commands that show what its Jobs wrote.
fn logs(run: &RunView) -> Vec<String> {
    let own = run.job.as_ref().and_then(|job| job.logs.clone());
    let plan = run.plan.as_ref().map(|plan| plan.logs.clone()).filter(|logs| Some(logs) != own.as_ref());
    own.into_iter().chain(plan).collect()
}

fn skipped(skipped: &[Revision]) -> String {
    let names: Vec<String> = skipped.iter().map(short).collect();
    if names.is_empty() { String::new() } else { format!(", skipped: {}", names.join(" ")) }
}

fn condition(one: &ConditionView) -> String {
    let holds = match one.holds {
        Some(true) => "",
        Some(false) => "not ",
        None => "not known to be ",
    };
    format!("{holds}{}, {} since {}: {}", one.kind, one.reason, time(one.since_ms), one.message)
}

fn ended(ended: &EndedView) -> String {
    let by = ended.by.as_ref().map_or_else(String::new, |by| format!(", approved by {by}"));
    let (seq, revision, outcome) = (ended.seq, short(&ended.revision), &ended.outcome);
    format!("{}: {seq} of {revision}, {outcome}{by}{}", time(ended.at_ms), skipped(&ended.skipped))
}
