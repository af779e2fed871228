//! The arguments of the commands about Pipelines and Repos.

use clap::{Args, Subcommand};

use crate::cli::answer::Format;
use domain::repo::job::StepKind;

#[derive(Debug, Subcommand)]
pub(crate) enum PipelineAction {
    /// Show each Pipeline: its environments from left to right, and what each waits for
    List(Listing),
    /// Show an environment's question and what approving does, then approve it; needs the right to patch pipelines
    Approve {
        /// The Pipeline, as shop/web
        name: String,
        /// The environment that it asks about
        environment: String,
        /// Open its soak, windows, freezes and verdict as well; readiness is never overridden
        #[arg(long = "override")]
        overrides: bool,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Have allclear look at a Pipeline now
    Poke {
        #[command(flatten)]
        which: WhichPipelines,
    },
    /// Stop the line: no new promotion starts; what was started goes on
    Suspend {
        #[command(flatten)]
        which: WhichPipelines,
        /// Reason shown to others [default: stopped by, and your user name]
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
    },
    /// Let a stopped line go on
    Resume {
        #[command(flatten)]
        which: WhichPipelines,
    },
}

/// Which objects are listed, and how.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Only of this namespace [default: all]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Args)]
pub(crate) struct WhichPipelines {
    /// The Pipeline, as shop/web
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Every Pipeline
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: only of this namespace
    #[arg(short, long, requires = "all")]
    pub(crate) namespace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RepoAction {
    /// Show each Repo: the commit that is wanted, its run, and what it waits for
    List(Listing),
    /// Show what a Repo asks, with its plan, and say yes, as in `allclear repo approve platform/infra --override`; needs the right to
    /// patch repos
    Approve {
        /// The Repo, as platform/infra
        name: String,
        /// Only the question that has this ticket [default: the open one]
        #[arg(long)]
        ticket: Option<String>,
        /// Open its windows, freezes and verdict as well; what it needs is never overridden
        #[arg(long = "override")]
        overrides: bool,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show the log of the newest run; needs the right to get pods/log
    Logs {
        /// The Repo, as platform/infra
        name: String,
        /// Of this step: source, prepare, plan, report, verify or apply [default: what the newest Job is for]
        #[arg(long, value_parser = step)]
        step: Option<StepKind>,
    },
    /// Have allclear look for a new commit now
    Poke {
        #[command(flatten)]
        which: WhichRepos,
    },
    /// Stop it: no new run starts; what runs goes on
    Suspend {
        #[command(flatten)]
        which: WhichRepos,
        /// Reason shown to others [default: stopped by, and your user name]
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
    },
    /// Let a stopped Repo go on
    Resume {
        #[command(flatten)]
        which: WhichRepos,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WhichRepos {
    /// The Repo, as platform/infra
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Every Repo
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: only of this namespace
    #[arg(short, long, requires = "all")]
    pub(crate) namespace: Option<String>,
}

fn step(name: &str) -> Result<StepKind, String> {
    StepKind::named(name).ok_or_else(|| "a step is source, prepare, backend, plan, report, verify or apply".to_owned())
}
