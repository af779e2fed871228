//! What a Repo shows, what it asks, and the logs of its Jobs.

use std::fmt;

use super::error::Error;
use super::kind::{Open, ShownKind, one};
use super::words::{approved, approved_by, at, condition, earlier, ended, said};
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::crd::repo::Installation;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::cli::answer::{Outcome, done, refused};
use crate::cli::command_kind::CommandKind;
use crate::cli::read::repo_lines::{held, row};
use crate::config::Config;
use crate::looking::page::{Page, stamp};
use kernel::id::{CommitId, ObjectId, RepoId};
use objects::history::Entry;
use objects::kept::Answers;
use objects::repo::held::held_for;
use objects::repo::job::{StepKind, logs as command};
use objects::repo::past::remembered;
use objects::repo::spec::Object;
use objects::repo::view::{EndedView, QuestionView, RunView, UNLOCK, View, own_step, view};

/// To what a person says yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// The one question that a Repo may ask.
    Open,
    /// To run once more what was applied, or the wanted commit that changes nothing of it, which it does not ask.
    Again,
    /// To take away the lock in the way of its run. The time, in milliseconds since the Unix epoch, says how old that lock is.
    Unlock(i64),
}

impl ShownKind for RepoKind {
    type View = View;
    type Asker = Asker;

    const STATE: &'static str = "running";
    const OVERRIDE: &'static str = "--override: windows, freezes and the verdict are opened as well for this run; what it needs must be \
                                    ready in any case, and `suspend` stays.";
    const GATES_STAY: &'static str = "What else must hold stays";

    /// What an installation adds to a spec is not shown.
    fn desk(_: &Config, clients: &Clients) -> Desk<Self> {
        Desk::of_repos(clients, Installation::default())
    }

    fn view(object: &Object) -> View {
        view(object, &object.status)
    }

    fn id_of(view: &View) -> &RepoId {
        &view.id
    }

    fn answers(object: &Object) -> &Answers {
        &object.answers
    }

    fn remembered(object: &Object) -> Vec<Entry> {
        remembered(&object.status)
    }

    fn suspended(view: &View) -> Option<&str> {
        view.held.suspended.as_deref()
    }

    fn row(view: &View, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(view, f)
    }

    fn page(view: &View, now_ms: Option<i64>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = Page { f };
        page.title(&view.id.display_name())?;
        page.part("Source", [view.source.clone()].into_iter().filter(|source| !source.is_empty()))?;
        held(view, &mut page)?;
        page.part(
            "Head",
            view.head
                .iter()
                .map(|head| format!("{}, {}, since {}", head.revision, head.name, stamp(head.seen_ms, now_ms)))
                .chain(view.unchanged().map(str::to_owned)),
        )?;
        page.part("Waits", view.waits.clone())?;
        page.part("Next", [view.next.clone()])?;
        page.part("Question", view.question.as_ref().map(|question| asked(question, now_ms)))?;
        page.part("Gates", view.gates.clone())?;
        page.part("Run", view.run.iter().flat_map(|one| run(one, now_ms)))?;
        page.part("Logs", view.run.iter().flat_map(commands))?;
        page.part(
            "Queued",
            view.queued.iter().map(|queued| {
                format!("{} since {}{}", queued.revision, stamp(queued.since_ms, now_ms), skipped(&queued.skipped))
            }),
        )?;
        page.part("Conditions", view.conditions.iter().map(|one| condition(one, now_ms)))?;
        let earlier = earlier(Self::COMMAND, &view.id.display_name(), view.history.len());
        page.part("History", view.history.iter().map(|ended| past(ended, now_ms)).chain(earlier))
    }

    fn open(object: &Object, asker: &Asker) -> Result<Open, Error> {
        let view = &Self::view(object);
        match asker {
            Asker::Again => return once_more(view),
            Asker::Unlock(now_ms) => return unlocked(object, view, *now_ms),
            Asker::Open => {}
        }
        let name = view.id.display_name();
        let Some(QuestionView { kind, words, ticket, since_ms }) = &view.question else {
            return Err(Error::NotAsking { what: format!("{name} asks nothing"), waits: view.waits.clone() });
        };
        if kind == UNLOCK {
            let what = format!("{name} asks about a lock, and `allclear repo unlock {name}` answers that");
            return Err(Error::NotAsking { what, waits: view.waits.clone() });
        }
        let run = view.run.as_ref();
        let counts = run.and_then(|run| run.plan.as_ref()?.counts.as_ref());
        let message = run.map(|run| &run.message).filter(|message| !message.is_empty() && *message != words);
        let revision = run.map_or_else(String::new, |run| format!(": {}", run.revision));
        Ok(Open {
            ticket: ticket.clone(),
            words: words.clone(),
            since_ms: Some(*since_ms),
            about: format!("{name}{revision}, {}", view.source),
            known: counts
                .map(|counts| format!("the plan: {counts}"))
                .into_iter()
                .chain(message.map(|message| format!("it says: {message}")))
                .collect(),
            follows: match kind.as_str() {
                "Plan" => "After a yes it is planned again and applied if that plan is the same.".to_owned(),
                "Again" => "After a yes it is run once more.".to_owned(),
                "Destroy" => {
                    format!(
                        "After a yes it is planned again and DESTROYED if that plan is the same. `allclear repo keep {name}` is \
                     the no."
                    )
                }
                "DestroyAgain" => "After a yes a destroy is planned once more, and asked about.".to_owned(),
                _ => "After a yes it is applied.".to_owned(),
            },
            gates: view.gates.clone(),
            yes_to: if kind == "Destroy" { format!("DESTROY what {name} applied") } else { name },
            instead: format!("Its ticket is {ticket} now: {words}"),
            mark: None,
        })
    }

    /// The log of the plan that is asked about, or why it cannot be shown.
    async fn before(desk: &Desk<Self>, view: &View, asker: &Asker) -> String {
        // The plan of what was applied says nothing of the next run.
        let run = view.run.as_ref().filter(|_| *asker == Asker::Open);
        let Some(plan) = run.and_then(|run| run.plan.as_ref()) else { return String::new() };
        match desk.log(&view.id.namespace, &plan.job, StepKind::Plan.name()).await {
            Ok(Some(log)) => log,
            Ok(None) => format!("the plan cannot be shown: no pod of Job {} is there any more", plan.job),
            Err(error) => format!("the plan cannot be shown: {error}; `{}` reads the same", plan.logs),
        }
    }
}

/// What is not asked: to run once more what was applied.
fn once_more(view: &View) -> Result<Open, Error> {
    let name = view.id.display_name();
    let Some((run, ticket)) = view.run.as_ref().and_then(|run| Some((run, run.again.clone()?))) else {
        let what = format!("{name} has not applied its commit; `allclear repo approve {name}` answers what it asks");
        return Err(Error::NotAsking { what, waits: view.waits.clone() });
    };
    let held = [&view.held.suspended, &view.held.faulty, &view.held.unjudged].into_iter().flatten().next();
    if let Some(why) = held {
        return Err(Error::NotAsking { what: format!("{name} runs nothing now"), waits: Some(why.clone()) });
    }
    let other = view.head.as_ref().filter(|head| head.revision != run.revision && view.unchanged().is_none());
    if let Some(head) = other {
        let what = format!("{name} is to run {}, which is newer", head.revision);
        return Err(Error::NotAsking { what, waits: view.waits.clone() });
    }
    // What changes nothing here is run in the place of what was applied: the yes is to it, and to no newer one.
    let wanted = view.head.as_ref().map_or(&run.revision, |head| &head.revision);
    let words = match view.unchanged() {
        Some(_) => format!("{} is run, the wanted commit, though it changes nothing here", wanted.short()),
        None => "what was applied is run once more".to_owned(),
    };
    Ok(Open {
        follows: format!("After a yes {} is run. What a plan would change is asked about as always.", wanted.short()),
        instead: format!(
            "{name} has run meanwhile, or another commit is wanted: its ticket is {ticket} now, and {words}"
        ),
        words,
        since_ms: None,
        about: format!("{name}: {wanted}, {}", view.source),
        known: view.unchanged().map(str::to_owned).into_iter().collect(),
        gates: view.gates.clone(),
        yes_to: format!("another run of {name}"),
        mark: None,
        ticket,
    })
}

/// Whether the lock in the way of the run is taken away.
fn unlocked(object: &Object, view: &View, now_ms: i64) -> Result<Open, Error> {
    let name = view.id.display_name();
    let Some(lock) = &object.status.lock else {
        return Err(Error::NotAsking { what: format!("{name} asks about no lock"), waits: view.waits.clone() });
    };
    let revision = view.run.as_ref().map_or_else(String::new, |run| format!(": {}", run.revision));
    let (id, ticket, words) = (&lock.id, lock.ticket.clone(), lock.words());
    Ok(Open {
        since_ms: Some(lock.asked_ms),
        about: format!("{name}{revision}, {}", view.source),
        known: lock.since_ms.and_then(|since| held_for(since, now_ms)).into_iter().collect(),
        follows: format!(
            "After a yes its next Job takes lock {id} away, and no other. If the holder still runs, two programs write one state."
        ),
        gates: view.gates.clone(),
        yes_to: format!("taking lock {id} away for {name}"),
        instead: format!("Its ticket is {ticket} now: {words}"),
        mark: None,
        words,
        ticket,
    })
}

/// The log of a step of the newest run's Job; without a step, of what that Job is for. Exit codes: 0 shown, 1 not.
pub async fn logs(desk: &Desk<RepoKind>, id: &RepoId, step: Option<StepKind>) -> Outcome {
    match log(desk, id, step).await {
        Ok(text) => done(ended(text)),
        Err(error) => refused(&error),
    }
}

async fn log(desk: &Desk<RepoKind>, id: &RepoId, step: Option<StepKind>) -> Result<String, Error> {
    let found = one(desk, id).await?;
    let (job, step) = job_of(&found.object, step).ok_or_else(|| Error::NoJob(id.display_name()))?;
    match desk.log(&id.namespace, &job, step.name()).await {
        Ok(text) => text.ok_or(Error::NoPod(job)),
        Err(error) => Err(Error::Log { error, command: command(&id.namespace, &job, step) }),
    }
}

/// The Job that has this step, and the step.
fn job_of(object: &Object, step: Option<StepKind>) -> Option<(String, StepKind)> {
    let run = object.status.newest()?;
    let action = run.newest_job().map_or(run.attempt.action, |(_, action)| action);
    let step = step.unwrap_or(own_step(action));
    let planned = run.plan.as_ref().filter(|_| matches!(step, StepKind::Plan | StepKind::Report));
    let job = planned.map(|plan| plan.job.clone()).or_else(|| run.job.as_ref().map(|job| job.name.clone()))?;
    Some((job, step))
}

fn asked(question: &QuestionView, now_ms: Option<i64>) -> String {
    let QuestionView { kind, words, ticket, since_ms } = question;
    format!("{kind}, since {}: {words}; ticket {ticket}", stamp(*since_ms, now_ms))
}

fn run(run: &RunView, now_ms: Option<i64>) -> Vec<String> {
    let (started, ended) = (at("started", run.started_ms, now_ms), at("ended", run.ended_ms, now_ms));
    let mut lines =
        vec![format!("{} of {}, {}{started}{ended}{}", run.seq, run.revision, run.phase, said(&run.message))];
    lines.extend(run.job.as_ref().map(|job| format!("Job {} of this run: {}, {}", job.number, job.name, job.action)));
    lines.extend(run.plan.as_ref().map(|plan| {
        let counts = plan.counts.clone().unwrap_or_else(|| "any text; its log shows it".to_owned());
        format!("its plan: {counts}")
    }));
    lines.extend(run.approved.as_ref().map(|yes| approved(yes, now_ms)));
    let instead = skipped(&run.skipped);
    lines
        .extend(Some(instead).filter(|words| !words.is_empty()).map(|words| words.trim_start_matches(", ").to_owned()));
    lines
}

/// The commands that show what its Jobs wrote.
fn commands(run: &RunView) -> Vec<String> {
    let own = run.job.as_ref().and_then(|job| job.logs.clone());
    let plan = run.plan.as_ref().map(|plan| plan.logs.clone()).filter(|logs| Some(logs) != own.as_ref());
    own.into_iter().chain(plan).collect()
}

fn skipped(skipped: &[CommitId]) -> String {
    let names: Vec<&str> = skipped.iter().map(CommitId::short).collect();
    if names.is_empty() { String::new() } else { format!(", skipped: {}", names.join(" ")) }
}

fn past(ended: &EndedView, now_ms: Option<i64>) -> String {
    let EndedView { seq, revision, outcome, by, skipped: instead, at_ms } = ended;
    let (by, skipped) = (approved_by(by.as_ref()), skipped(instead));
    format!("{}: {seq} of {}, {outcome}{by}{skipped}", stamp(*at_ms, now_ms), revision.short())
}
