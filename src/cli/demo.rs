//! `allclear demo`: ends with exit code 0 only if every chapter came out as announced.

use std::process::ExitCode;

use crate::cli::answer::failed;
use crate::cli::explain;
use crate::demo;

/// What the demo tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Story {
    /// A rollout, in one cluster or in several, and its purge
    Rollout,
    /// A Pipeline that promotes from staging to prod; needs git
    Pipeline,
    /// A Repo, whose commits run Jobs; needs git
    Repo,
}

/// Runs the demo; a story of rollouts has this many clusters. `stay` keeps everything running afterwards.
pub fn demo(story: Story, clusters: u8, stay: bool) -> ExitCode {
    demo::life::explained_by(explain::live::explains);
    let told = match story {
        Story::Rollout => demo::tell(clusters, stay),
        Story::Pipeline => demo::tell_pipeline(stay),
        Story::Repo => demo::tell_repo(stay),
    };
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => failed(&"the demo did not come out as announced; see the table above"),
        Err(error) => failed(&format!("the demo could not be run: {error}")),
    }
}
