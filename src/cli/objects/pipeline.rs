//! What a Pipeline shows, and what it asks: a question for each environment.

use std::fmt;

use super::error::Error;
use super::kind::{Open, ShownKind};
use super::words::{approved, approved_by, at, condition, earlier, said};
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::desk::{Desk, PROMOTE};
use crate::adapters::kubernetes::objects::PipelineKind;
use crate::app;
use crate::cli::command_kind::CommandKind;
use crate::cli::read::pipeline_lines::{brief, row};
use crate::config::Config;
use crate::looking::layout::Tone;
use crate::looking::page::{Page, stamp};
use kernel::id::{Environment, ObjectId, PipelineId, Revision};
use objects::history::Entry;
use objects::kept::Answers;
use objects::pipeline::choosing::{Choosing, choosing, nothing_untaken};
use objects::pipeline::past::remembered;
use objects::pipeline::spec::Object;
use objects::pipeline::view::{EndedView, EnvironmentView, PromotionView, QuestionView, TargetView, View, view};

/// To what a person says yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The question that is open about this environment.
    Open(Environment),
    /// To a revision of their own choice for this environment, which it does not ask about.
    Chosen(Environment, Revision),
}

impl ShownKind for PipelineKind {
    type View = View;
    type Asker = About;

    const STATE: &'static str = "promoting";
    const OVERRIDE: &'static str = "--override: soak, windows, freezes of the spec and the verdict are opened as well; readiness, `suspend` and a PromotionFreeze never are.";
    const GATES_STAY: &'static str = "Its other gates stay";

    fn desk(config: &Config, clients: &Clients) -> Desk {
        app::desk(config, clients)
    }

    fn view(object: &Object) -> View {
        view(object, &object.status, None)
    }

    fn id_of(view: &View) -> &PipelineId {
        &view.id
    }

    fn answers(object: &Object) -> &Answers {
        &object.answers
    }

    fn remembered(object: &Object) -> Vec<Entry> {
        remembered(&object.status)
    }

    fn suspended(view: &View) -> Option<&str> {
        view.suspended.as_deref()
    }

    fn row(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(view, f)
    }

    fn page(view: &View, now_ms: Option<i64>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let View { id, suspended, faulty, unjudged, latest, conditions, environments, passed_over, history, live } =
            view;
        let latest = latest.as_ref().map_or_else(String::new, |latest| format!("  latest {latest}"));
        let mut page = Page { f };
        page.title(&format!("{}{latest}", id.display_name()))?;
        page.toned("Stopped", Tone::Look, suspended.clone())?;
        page.toned("Faulty", Tone::Bad, faulty.iter().map(|why| format!("its spec cannot be used: {why}")))?;
        page.part("Not judged", unjudged.clone())?;
        page.part("Conditions", conditions.iter().map(|one| condition(one, now_ms)))?;
        let seen = if *live {
            "as allclear sees them now"
        } else {
            "as allclear wrote them into the status; --server URL asks a running one"
        };
        page.part("Targets are", [seen.to_owned()])?;
        for environment in environments {
            writeln!(page.f)?;
            explained(environment, now_ms, &mut page)?;
        }
        if !passed_over.is_empty() || !history.is_empty() {
            writeln!(page.f)?;
        }
        page.part("Passed over", passed_over.iter().map(|name| format!("{name}: it has no target")))?;
        let earlier = earlier(Self::COMMAND, &id.display_name(), history.len());
        page.part("History", history.iter().map(|one| ended(one, now_ms)).chain(earlier))
    }

    fn open(object: &Object, asker: &About) -> Result<Open, Error> {
        let asker = match asker {
            About::Open(environment) => environment,
            About::Chosen(environment, revision) => return chosen(object, environment, revision),
        };
        nothing_untaken(object, None)?;
        let view = Self::view(object);
        let pipeline = view.id.display_name();
        let Some(environment) = view.environments.iter().find(|one| one.name == *asker) else {
            let has = view.environments.iter().map(|one| one.name.0.clone()).collect();
            return Err(Error::NoEnvironment { pipeline, name: asker.0.clone(), has });
        };
        let Some(question) = &environment.question else {
            let what = format!("no question is open about {asker} of {pipeline}");
            return Err(Error::NotAsking { what, waits: environment.waits.clone() });
        };
        let QuestionView { words, ticket, revision, since_ms, .. } = question;
        let promotion = environment.promotion.as_ref().filter(|promotion| promotion.open);
        let revisions = change(promotion.and_then(|promotion| promotion.from.as_ref()), revision);
        let waits = promotion.map(|open| &open.message).filter(|message| !message.is_empty());
        let (how, gates) = environment.gates.split_first().map_or(("", &[][..]), |(how, gates)| (how.as_str(), gates));
        Ok(Open {
            ticket: ticket.clone(),
            words: words.clone(),
            since_ms: Some(*since_ms),
            about: format!("{pipeline}: {revisions} into {asker}"),
            known: waits.map(|message| format!("it waits now: {message}")).into_iter().collect(),
            follows: format!(
                "After a yes it is promoted {how}, once every target before it is still ready at that revision."
            ),
            gates: gates.to_vec(),
            yes_to: format!("{revision} in {asker} of {pipeline}"),
            instead: format!("It is about {revision} now, ticket {ticket}: {words}"),
            mark: None,
        })
    }

    async fn before(_: &Desk, _: &View, _: &About) -> String {
        String::new()
    }
}

/// What a person says yes to who chooses a revision for an environment.
fn chosen(object: &Object, environment: &Environment, revision: &Revision) -> Result<Open, Error> {
    let Choosing { ticket, written, from, relation, known, how, gates } = choosing(object, environment, revision)?;
    let pipeline = object.id.display_name();
    Ok(Open {
        words: format!("a person chooses it: {relation}"),
        since_ms: None,
        about: format!("{pipeline}: {} into {environment}", change(from.as_ref(), revision)),
        known,
        follows: format!(
            "After a yes it is promoted {how}, whatever the environments before {environment} are at. What they have or had by then is \
             promoted into {environment} only after a yes; what is newer goes on as usual."
        ),
        gates,
        yes_to: format!("{revision} in {environment} of {pipeline}"),
        instead: format!("Its ticket is {ticket} now: another revision was chosen for {environment} meanwhile"),
        mark: Some((PROMOTE, written)),
        ticket,
    })
}

/// `1.2 → 1.3`.
fn change(from: Option<&Revision>, to: &Revision) -> String {
    from.map_or_else(|| to.to_string(), |from| format!("{from} → {to}"))
}

fn explained(environment: &EnvironmentView, now_ms: Option<i64>, page: &mut Page<'_, '_>) -> fmt::Result {
    let EnvironmentView { unsettled, waits, next, gates, promotion, question, request, targets, .. } = environment;
    page.title(&brief(environment))?;
    page.part("Waits", waits.clone())?;
    page.part("Next", [next.clone()])?;
    page.part("Question", question.as_ref().map(|question| asked(question, now_ms)))?;
    page.part("Promotion", promotion.iter().flat_map(|one| promoted(one, now_ms)))?;
    page.part("Request", request.as_ref().map(|request| format!("#{} {}", request.number, request.url)))?;
    page.part("How", gates.clone())?;
    let settled = if unsettled.is_some() { "not settled" } else { "settled" };
    let reason = unsettled.as_ref().map_or_else(|| settled.to_owned(), |why| format!("{settled}: {why}"));
    page.part("Targets", [reason].into_iter().filter(|_| !targets.is_empty()).chain(targets.iter().map(target)))
}

fn asked(question: &QuestionView, now_ms: Option<i64>) -> String {
    let QuestionView { kind, words, ticket, revision, since_ms } = question;
    format!("{kind} of {revision}, since {}: {words}; ticket {ticket}", stamp(*since_ms, now_ms))
}

fn promoted(promotion: &PromotionView, now_ms: Option<i64>) -> Vec<String> {
    let PromotionView { seq, revision, from, phase, message, soak_ends_ms, started_ms, approved: yes, chosen, .. } =
        promotion;
    let (started, said) = (at("started", *started_ms, now_ms), said(message));
    let mut lines = vec![format!("{seq}, {}, {phase}{started}{said}", change(from.as_ref(), revision))];
    lines.extend(soak_ends_ms.map(|at| format!("its soak ends {}", stamp(at, now_ms))));
    lines.extend(chosen.clone());
    lines.extend(yes.as_ref().map(|yes| approved(yes, now_ms)));
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

fn ended(ended: &EndedView, now_ms: Option<i64>) -> String {
    let EndedView { environment, seq, revision, outcome, by, at_ms, chosen } = ended;
    let who = chosen.as_ref().map_or_else(|| approved_by(by.as_ref()), |words| format!(", {words}"));
    format!("{}: {environment} {seq}, {revision}: {outcome}{who}", stamp(*at_ms, now_ms))
}
