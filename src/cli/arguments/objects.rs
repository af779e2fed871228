//! The arguments of the commands about Pipelines and Repos.

use std::marker::PhantomData;

use clap::{Args, Subcommand};

use crate::adapters::kubernetes::objects::{PipelineKind, RepoKind};
use crate::cli::answer::Format;
use crate::cli::arguments::Namespaces;
use crate::cli::command_kind::{CommandKind, IdOf, NoName, named_in};
use objects::repo::job::StepKind;

#[derive(Debug, Subcommand)]
pub(crate) enum PipelineAction {
    /// Show each Pipeline: its environments from left to right, and what each waits for
    List(Listing),
    /// Show an environment's question and what approving does, then approve it; needs the right to patch pipelines
    Approve {
        #[command(flatten)]
        which: Named<PipelineKind>,
        /// The environment that it asks about
        environment: String,
        /// Open its soak, windows, freezes and verdict as well; readiness and a PromotionFreeze are never overridden
        #[arg(long = "override")]
        overrides: bool,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Choose a revision for an environment, as in `allclear pipeline promote shop/web prod --revision 1.4.2`: an older one, or one that
    /// was in no other environment. Shows what follows; needs the right to patch pipelines
    Promote {
        #[command(flatten)]
        which: Named<PipelineKind>,
        /// The environment that is to get it
        environment: String,
        /// The revision, as the app says it: for images the tag
        #[arg(long)]
        revision: String,
        /// Open its soak, windows, freezes and verdict as well; readiness and a PromotionFreeze are never overridden
        #[arg(long = "override", visible_alias = "skip-gates")]
        overrides: bool,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show what a Pipeline has gone through, newest first: its promotions, and what came to its first environment; needs the right to get histories
    History(Past<PipelineKind>),
    #[command(flatten)]
    Change(ChangeAction<PipelineKind>),
}

/// One object of a kind.
#[derive(Debug, Args)]
pub(crate) struct Named<K: CommandKind> {
    #[arg(help = format!("The {}, as {}", K::NAME, K::EXAMPLE))]
    pub(crate) name: String,
    /// Its namespace, where the name does not say it
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: CommandKind> Named<K> {
    pub(crate) fn id(&self) -> Result<IdOf<K>, NoName> {
        named_in::<K>(&self.name, self.namespace.as_deref())
    }
}

/// Which objects are listed, and how.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) of: Namespaces,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Format,
}

/// Whose past is shown, and how much of it.
#[derive(Debug, Args)]
pub(crate) struct Past<K: CommandKind> {
    #[command(flatten)]
    pub(crate) which: Named<K>,
    /// No more than so many [default: all]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Format,
}

/// What is done with objects of a kind, by a mark on each.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangeAction<K: CommandKind> {
    #[command(about = K::POKE)]
    Poke {
        #[command(flatten)]
        which: Chosen<K>,
    },
    #[command(about = K::SUSPEND)]
    Suspend {
        #[command(flatten)]
        which: Chosen<K>,
        /// Reason shown to others [default: stopped by, and your user name]
        #[arg(long, value_name = "WORDS")]
        reason: Option<String>,
    },
    #[command(about = K::RESUME)]
    Resume {
        #[command(flatten)]
        which: Chosen<K>,
    },
}

/// Which objects of a kind are changed.
#[derive(Debug, Args)]
pub(crate) struct Chosen<K: CommandKind> {
    #[arg(required_unless_present = "all", conflicts_with = "all", help = format!("The {}, as {}", K::NAME, K::EXAMPLE))]
    pub(crate) name: Option<String>,
    #[arg(long, help = format!("Every {}", K::NAME))]
    pub(crate) all: bool,
    /// Its namespace, where the name does not say it; with --all: only of this one
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    #[arg(skip)]
    kind: PhantomData<K>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RepoAction {
    /// Show each Repo: the commit that is wanted, its run, and what it waits for
    List(Listing),
    /// Show what a Repo asks, with its plan, and say yes, as in `allclear repo approve platform/infra --override`; needs the right to
    /// patch repos
    Approve {
        #[command(flatten)]
        which: Named<RepoKind>,
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
    /// Run once more the commit that a Repo has applied, as in `allclear repo run platform/infra`; needs the right to patch repos
    Run {
        #[command(flatten)]
        which: Named<RepoKind>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show the lock in the way of a Repo's run, who holds it and for how long, and have its next Job take that lock away, as in
    /// `allclear repo unlock platform/infra`; needs the right to patch repos
    Unlock {
        #[command(flatten)]
        which: Named<RepoKind>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Say no to a destroy: a Repo that is being deleted goes, and what it applied stays, as in `allclear repo keep platform/infra`;
    /// needs the right to patch repos
    Keep {
        #[command(flatten)]
        which: Named<RepoKind>,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Show the log of the newest run; needs the right to get pods/log
    Logs {
        #[command(flatten)]
        which: Named<RepoKind>,
        /// Of this step: source, prepare, backend, unlock, plan, report, verify, apply, output or publish [default: what the newest Job is for]
        #[arg(long, value_parser = step)]
        step: Option<StepKind>,
    },
    /// Show what a Repo has gone through, newest first: its runs; needs the right to get histories
    History(Past<RepoKind>),
    #[command(flatten)]
    Change(ChangeAction<RepoKind>),
}

fn step(name: &str) -> Result<StepKind, String> {
    StepKind::named(name).ok_or_else(|| {
        "a step is source, prepare, backend, unlock, plan, report, verify, apply, output or publish".to_owned()
    })
}
