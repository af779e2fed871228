//! `allclear repo list|approve|logs|poke|suspend|resume` and `allclear explain repo/NS/NAME`: Repos for people, with their own rights
//! (decision 21), also when no allclear runs.
//!
//! What is shown is a [`View`]: nothing is judged here. What is written is an annotation, which the running allclear acts on.

mod approve;
mod text;

use serde_json::json;
use url::Url;

use crate::actors::observation::RunningSeen;
use crate::adapters::kubernetes::desk::{Desk, Found, Listing};
use crate::adapters::kubernetes::objects::{Kind, RepoKind};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::command_kind::{self, one};
use crate::cli::status::remote;
use domain::kernel::id::{ObjectId, RepoId};
use domain::repo::job::{StepKind, logs as command};
use domain::repo::spec::Object;
use domain::repo::view::{View, own_step, view};

pub use crate::cli::mark::{Change, Which, change};
pub use approve::{Question, Yes, approve, question};

/// Reads `platform/infra`, also as `repo/platform/infra`.
///
/// # Errors
/// Why it is not the name of a Repo.
pub fn named(text: &str) -> Result<RepoId, String> {
    command_kind::named::<RepoKind>(text)
}

/// Every Repo, in a row each. Exit codes: 0 all of them, 1 not all could be read.
pub async fn list(desk: &Desk<RepoKind>, namespace: Option<&str>, output: Output) -> Outcome {
    let Listing { found, unreadable } = match desk.all(namespace).await {
        Ok(Some(listing)) => listing,
        Ok(None) => return refused(RepoKind::ABSENT),
        Err(error) => return refused(&error.to_string()),
    };
    let repos = found.iter().map(shown).collect();
    let unreadable = unreadable.into_iter().map(|(id, why)| format!("{} cannot be read: {why}", id.display_name()));
    let listed = text::Listed { repos, unreadable: unreadable.collect() };
    let code = if listed.unreadable.is_empty() { 0 } else { EXIT_FAILED };
    answer(&listed, output, code)
}

/// One Repo with all that is known of it: by its status, or as a running allclear sees it. Exit codes: 0 found, 1 not.
pub async fn explain(asked: Asked<'_>, id: &RepoId, output: Output) -> Outcome {
    let found = match asked {
        Asked::Desk(desk) => one(desk, id).await.map(|found| shown(&found)),
        Asked::Server(url) => live(url, id).await,
    };
    match found {
        Ok(view) => answer(&text::Explained(view), output, 0),
        Err(why) => refused(&why),
    }
}

/// The source that is asked about a Repo.
pub enum Asked<'a> {
    Desk(&'a Desk<RepoKind>),
    /// A running allclear, by the address of its status page.
    Server(&'a Url),
}

async fn live(url: &Url, id: &RepoId) -> Result<View, String> {
    let state = remote::state(url, None).await?;
    let running = state.get("running").cloned().unwrap_or(json!(null));
    let form = |error| format!("the state is of another form than this version knows: {error}");
    let running: Option<RunningSeen> = serde_json::from_value(running).map_err(form)?;
    let Some(RunningSeen { repos, .. }) = running else {
        return Err(
            "this allclear looks at no Repos: it stands by, repo.enabled is off, or the cluster lacks the kind"
                .to_owned(),
        );
    };
    let name = id.display_name();
    repos.into_iter().find(|view| view.id == *id).ok_or_else(|| format!("this allclear knows no Repo {name}"))
}

/// The log of a step of the newest run's Job; without a step, of what that Job is for. Exit codes: 0 shown, 1 not.
pub async fn logs(desk: &Desk<RepoKind>, id: &RepoId, step: Option<StepKind>) -> Outcome {
    let found = match one(desk, id).await {
        Ok(found) => found,
        Err(why) => return refused(&why),
    };
    let Some((job, step)) = job_of(&found.object, step) else {
        return refused(&format!("{} has not run a Job yet", id.display_name()));
    };
    match desk.log(&id.namespace, &job, step.name()).await {
        Ok(Some(out)) => Outcome { out: ended(out), err: String::new(), code: 0 },
        Ok(None) => refused(&format!("no pod of Job {job} is there any more, and its log went with it")),
        Err(error) => refused(&format!("{error}; `{}` reads the same", command(&id.namespace, &job, step))),
    }
}

/// The Job that has this step, and the step.
fn job_of(object: &Object, step: Option<StepKind>) -> Option<(String, StepKind)> {
    let run = object.status.run.as_ref()?;
    let action = run.newest_job().map_or(run.attempt.action, |(_, action)| action);
    let step = step.unwrap_or(own_step(action));
    let planned = run.plan.as_ref().filter(|_| matches!(step, StepKind::Plan | StepKind::Report));
    let job = planned.map(|plan| plan.job.clone()).or_else(|| run.job.as_ref().map(|job| job.name.clone()))?;
    Some((job, step))
}

/// With a line break at its end.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn shown(found: &Found<Object>) -> View {
    view(&found.object, &found.object.status)
}
