//! `allclear explain [-n NAMESPACE] [NAME]`: why a workload was purged, or was not, and what happens next.
//!
//! Everything is recomputed from the API server, the ledger and CloudFront with the caller's own credentials (decision 21),
//! so it also answers when no allclear runs. What cannot be read says so in its own place and hides nothing else.
//!
//! [`gather`] asks, [`model`] holds the answer, [`text`] and [`list`] print it. Nothing is changed anywhere.

pub(crate) mod distributions;
pub(crate) mod gather;
mod list;
pub mod live;
pub mod model;
pub(crate) mod near;
#[cfg(test)]
mod tests;
mod text;

use crate::cli::answer::{EXIT_FAILED, EXIT_INVALID, Outcome, Output, answer, refused};
use crate::cli::read::{Question, Sources, named};

/// Answers. Exit codes: 0 found, 1 not found or unreadable, 2 not a name.
pub async fn explain(sources: &Sources, question: &Question, output: Output) -> Outcome {
    let Some(name) = &question.name else {
        let (listing, complete) = list::all(sources, question).await;
        return answer(&listing, output, if complete { 0 } else { EXIT_FAILED });
    };
    let id = match named(name, question) {
        Ok(id) => id,
        Err(why) => return Outcome { code: EXIT_INVALID, ..refused(&why) },
    };
    match gather::explanation(sources, question, &id).await {
        gather::Found::Yes(explanation) => answer(&*explanation, output, 0),
        gather::Found::Unknown(explanation) => answer(&*explanation, output, EXIT_FAILED),
        gather::Found::No => refused(&near::not_found(sources, &id).await),
    }
}
