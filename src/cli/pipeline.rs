//! `allclear pipeline list|approve|poke|suspend|resume` and `allclear explain pipeline/NS/NAME`: Pipelines for people, with their own
//! rights (decision 21), also when no allclear runs.
//!
//! What is shown is a [`View`]: nothing is judged here. What is written is an annotation, which the running allclear acts on.

mod approve;
mod text;

use serde_json::json;
use url::Url;

use crate::actors::observation::PromotingSeen;
use crate::adapters::kubernetes::desk::{Desk, Found, Listing};
use crate::adapters::kubernetes::objects::{Kind, PipelineKind};
use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::command_kind::{self, one};
use crate::cli::status::remote;
use domain::kernel::id::{ObjectId, PipelineId};
use domain::pipeline::view::{View, view};

pub use crate::cli::mark::{Change, Which, change};
pub use approve::{Question, approve, question};

/// Reads `shop/web`, also as `pipeline/shop/web`.
///
/// # Errors
/// Why it is not the name of a Pipeline.
pub fn named(text: &str) -> Result<PipelineId, String> {
    command_kind::named::<PipelineKind>(text)
}

/// Every Pipeline, in a row each. Exit codes: 0 all of them, 1 not all could be read.
pub async fn list(desk: &Desk, namespace: Option<&str>, output: Output) -> Outcome {
    let Listing { found, unreadable } = match desk.all(namespace).await {
        Ok(Some(listing)) => listing,
        Ok(None) => return refused(PipelineKind::ABSENT),
        Err(error) => return refused(&error.to_string()),
    };
    let pipelines = found.iter().map(shown).collect();
    let unreadable = unreadable.into_iter().map(|(id, why)| format!("{} cannot be read: {why}", id.display_name()));
    let listed = text::Listed { pipelines, unreadable: unreadable.collect() };
    let code = if listed.unreadable.is_empty() { 0 } else { EXIT_FAILED };
    answer(&listed, output, code)
}

/// One Pipeline, judged line by line: by its status, or as a running allclear sees it. Exit codes: 0 found, 1 not.
pub async fn explain(asked: Asked<'_>, id: &PipelineId, output: Output) -> Outcome {
    let found = match asked {
        Asked::Desk(desk) => one(desk, id).await.map(|found| shown(&found)),
        Asked::Server(url) => live(url, id).await,
    };
    match found {
        Ok(view) => answer(&text::Explained(view), output, 0),
        Err(why) => refused(&why),
    }
}

/// The source that is asked about a Pipeline.
pub enum Asked<'a> {
    Desk(&'a Desk),
    /// A running allclear, by the address of its status page.
    Server(&'a Url),
}

fn shown(found: &Found) -> View {
    view(&found.object, &found.object.status, None)
}

async fn live(url: &Url, id: &PipelineId) -> Result<View, String> {
    let state = remote::state(url, None).await?;
    let promoting = state.get("promoting").cloned().unwrap_or(json!(null));
    let form = |error| format!("the state is of another form than this version knows: {error}");
    let promoting: Option<PromotingSeen> = serde_json::from_value(promoting).map_err(form)?;
    let Some(PromotingSeen { pipelines, .. }) = promoting else {
        return Err(
            "this allclear looks at no Pipelines: it stands by, pipeline.enabled is off, or the cluster lacks the kind"
                .to_owned(),
        );
    };
    let name = id.display_name();
    pipelines.into_iter().find(|view| view.id == *id).ok_or_else(|| format!("this allclear knows no Pipeline {name}"))
}
