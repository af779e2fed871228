//! Pipelines on a terminal.

use std::fmt;

use serde::Serialize;

use crate::cli::page::{Page, time};
use crate::cli::read::pipeline_lines::{brief, row};
use domain::kernel::id::{ObjectId, Revision};
use domain::kernel::text::visible;
use domain::pipeline::view::{EnvironmentView, PromotionView, QuestionView, TargetView, View};

/// Every Pipeline, and those that cannot be read.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) pipelines: Vec<View>,
    pub(super) unreadable: Vec<String>,
}

/// One Pipeline with all that is known of it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Explained(pub(super) View);

/// `1.2 → 1.3`.
pub(super) fn change(from: Option<&Revision>, to: &Revision) -> String {
    from.map_or_else(|| to.to_string(), |from| format!("{from} → {to}"))
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pipelines.is_empty() && self.unreadable.is_empty() {
            return writeln!(f, "no Pipelines");
        }
        for view in &self.pipelines {
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
        let View { id, suspended, faulty, unjudged, latest, conditions, environments, passed_over, history, live } =
            &self.0;
        let latest = latest.as_ref().map_or_else(String::new, |latest| format!("  latest {latest}"));
        writeln!(f, "{}{}", visible(&id.display_name()), visible(&latest))?;
        let mut page = Page { f };
        page.part("Stopped", suspended.clone())?;
        page.part("Faulty", faulty.iter().map(|why| format!("its spec cannot be used: {why}")))?;
        page.part("Not judged", unjudged.clone())?;
        let condition = |one: &domain::pipeline::view::ConditionView| {
            let holds = if one.holds { "" } else { "not " };
            format!("{holds}{}, {} since {}: {}", one.kind, one.reason, time(one.since_ms), one.message)
        };
        page.part("Conditions", conditions.iter().map(condition))?;
        let seen = if *live {
            "as allclear sees them now"
        } else {
            "as allclear wrote them into the status; --server URL asks a running one"
        };
        page.part("Targets are", [seen.to_owned()])?;
        for environment in environments {
            writeln!(page.f)?;
            explained(environment, &mut page)?;
        }
        if !passed_over.is_empty() || !history.is_empty() {
            writeln!(page.f)?;
        }
        page.part("Passed over", passed_over.iter().map(|name| format!("{name}: it has no target")))?;
        page.part(
            "History",
            history.iter().map(|ended| {
                let by = ended.by.as_ref().map_or_else(String::new, |by| format!(", approved by {by}"));
                let (environment, seq, revision) = (&ended.environment, ended.seq, &ended.revision);
                format!("{}: {environment} {seq}, {revision}: {}{by}", time(ended.at_ms), ended.outcome)
            }),
        )
    }
}

fn explained(environment: &EnvironmentView, page: &mut Page<'_, '_>) -> fmt::Result {
    let EnvironmentView { unsettled, waits, next, gates, promotion, question, request, targets, .. } = environment;
    writeln!(page.f, "{}", visible(&brief(environment)))?;
    page.part("Waits", waits.clone())?;
    page.part("Next", [next.clone()])?;
    page.part("Question", question.as_ref().map(asked))?;
    page.part("Promotion", promotion.iter().flat_map(promoted))?;
    page.part("Request", request.as_ref().map(|request| format!("#{} {}", request.number, request.url)))?;
    page.part("How", gates.clone())?;
    let settled = if unsettled.is_some() { "not settled" } else { "settled" };
    let reason = unsettled.as_ref().map_or_else(|| settled.to_owned(), |why| format!("{settled}: {why}"));
    page.part("Targets", [reason].into_iter().filter(|_| !targets.is_empty()).chain(targets.iter().map(target)))
}

fn asked(question: &QuestionView) -> String {
    let QuestionView { kind, words, ticket, revision, since_ms } = question;
    format!("{kind} of {revision}, since {}: {words}; ticket {ticket}", time(*since_ms))
}

fn promoted(promotion: &PromotionView) -> Vec<String> {
    let PromotionView { seq, revision, from, phase, message, soak_ends_ms, started_ms, approved, .. } = promotion;
    let started = started_ms.map_or_else(String::new, |at| format!(", started {}", time(at)));
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    let mut lines = vec![format!("{seq}, {}, {phase}{started}{said}", change(from.as_ref(), revision))];
    lines.extend(soak_ends_ms.map(|at| format!("its soak ends {}", time(at))));
    lines.extend(approved.as_ref().map(|(by, at)| {
        let by = if by.is_empty() { "somebody who did not say a name" } else { by };
        format!("approved by {by}, {}", time(*at))
    }));
    lines
}

fn target(target: &TargetView) -> String {
    let TargetView { name, revision, ready, error } = target;
    let at = revision.as_ref().map_or_else(String::new, |revision| format!(" {revision}"));
    let state = match (ready, error) {
        (true, None) => "ready".to_owned(),
        (_, Some(why)) => why.clone(),
        (false, None) => "not ready".to_owned(),
    };
    format!("{name}{at}: {state}")
}
