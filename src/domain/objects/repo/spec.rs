//! The checked spec of a `Repo`: the URL is one we may use, names fit, durations are within their limits, and each
//! action has a command.
//!
//! Not for the form in which people write it; that is the adapter's.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::apps::app::TargetKey;
use crate::gates::{Freeze, VerdictSource, Window};
use crate::repo::Repo;
use crate::repo::outputs::Outputs;
use crate::repo::status::Action;
use kernel::id::{CommitId, digest};
use kernel::names::ssh_url::web_of;

/// The spec of a Repo.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Where commits come from.
    pub source: Source,
    /// How often we look for a new commit.
    pub interval: Duration,
    /// The approval that an apply needs.
    pub approval: Approving,
    pub runner: Runner,
    pub workspace: Option<String>,
    /// How often an apply that failed is repeated by itself.
    pub retry: Retry,
    /// The conditions of an apply.
    pub gates: Gates,
    /// Nothing new starts, for this reason.
    pub suspended: Option<String>,
    /// Ended Jobs that are kept.
    pub keep: Keep,
    /// A wait longer than this is announced.
    pub stalled_after: Duration,
    /// Looks at what has changed outside of git; `None`: nothing looks.
    pub drift: Option<DriftLooks>,
    /// Where runs are reported; `None`: nowhere.
    pub report: Option<ReportTo>,
}

/// Where runs are reported, beside the address of the repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReportTo {
    pub provider: Provider,
    /// The Secret with the token, in the Repo's namespace.
    pub secret: String,
    pub detail: Detail,
}

/// Where requests live. It can be any whose API has states of commits, and comments that can be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    GitHub,
    GitLab,
    Gitea,
}

impl Provider {
    /// Its name in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
        }
    }
}

/// What a report has beside the state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Detail {
    // How much a plan would change.
    Numbers,
    // Which resources, too, by address.
    #[default]
    Addresses,
}

/// How often the commit that was applied is planned, and what follows where that plan would change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriftLooks {
    pub every: Duration,
    pub then: OnDrift,
}

/// What follows on drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnDrift {
    // A notice says so, and nothing else follows.
    #[default]
    Tell,
    // The commit is run once more, too.
    Apply,
}

/// What becomes of what was applied when the Repo is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OnDelete {
    // It stays.
    #[default]
    Keep,
    // A person is asked whether it is destroyed.
    Ask,
}

/// Where commits come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Where the repository is, as git clones it.
    pub url: String,
    /// Which of its commits is wanted.
    pub wanted: Wanted,
    /// The folder in which commands run, relative to the repository's root; empty for the root.
    pub path: String,
    /// The Secret with what git needs, in the Repo's namespace.
    pub secret: Option<String>,
    /// Paths beside that folder, in order: a commit that changes nothing in all of these does not concern the Repo. `None`: each
    /// commit does.
    pub watched: Option<Vec<String>>,
}

impl Source {
    /// The paths of which a change concerns the Repo, the empty one for the whole repository; `None`: each commit concerns it.
    pub fn concerning(&self) -> Option<Vec<String>> {
        let watched = self.watched.as_ref()?.iter().filter(|path| **path != self.path).cloned();
        Some(std::iter::once(self.path.clone()).chain(watched).collect())
    }

    /// The hash of those paths.
    pub fn paths_hash(&self) -> String {
        digest("paths", self.concerning().iter().flatten().map(String::as_str))
    }
}

/// Which commit is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// That of the branch which the remote's `HEAD` names.
    #[default]
    Head,
    /// That of a branch.
    Branch(String),
    /// That of a tag.
    Tag(String),
    Commit(CommitId),
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("HEAD"),
            Self::Branch(name) => write!(f, "branch {name}"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Commit(revision) => write!(f, "commit {revision}"),
        }
    }
}

/// The approval that an apply needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Approving {
    // Nothing: a commit is applied at once.
    #[default]
    Auto,
    // A yes to the commit.
    Revision,
    // A yes to what a plan says it would change.
    Plan,
    // No yes is enough: each commit is planned, and none is applied.
    Never,
}

impl Approving {
    /// Its name in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::Revision => "Revision",
            Self::Plan => "Plan",
            Self::Never => "Never",
        }
    }

    /// The first action of a run.
    pub const fn first(self) -> Action {
        match self {
            Self::Auto | Self::Revision => Action::Apply,
            Self::Plan | Self::Never => Action::Plan,
        }
    }
}

/// The tool: it fills the commands in, and defines how a plan is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Preset {
    // Terraform, or what has its command line. The plan is its JSON.
    #[default]
    Terraform,
    // Any commands. The plan is any text.
    Command,
}

impl Preset {
    /// Its name in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terraform => "Terraform",
            Self::Command => "Command",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Runner {
    /// How its plan is read.
    pub preset: Preset,
    /// The image of the user's containers.
    pub image: String,
    pub steps: Steps,
    /// What destroys, if people are asked about that on deletion; `None`: nothing is destroyed.
    pub destroy: Option<DestroySteps>,
    /// The ServiceAccount; `None`: the namespace's default one.
    pub service_account: Option<String>,
    /// The pod gets the ServiceAccount's token for the API server.
    pub kubernetes_token: bool,
    /// Terraform's state may be kept in the pod, and be lost with it.
    pub local_state: bool,
    /// How long a Job may take from its start.
    pub deadline: Duration,
    /// How long its programs may take to end after SIGTERM.
    pub grace: Duration,
    /// Kubernetes' own parts of the pod, as one JSON object that the template takes apart: `env`, `envFrom`, `mounts`, `resources`,
    /// `stepResources`, `nodeSelector`, `tolerations`, `imagePullSecrets`. Empty for none.
    pub extras: String,
    /// What an apply writes to a Secret at its end.
    pub outputs: Option<Outputs>,
}

/// Commands with their arguments. An empty one is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps {
    pub prepare: Vec<String>,
    /// Says what would change.
    pub plan: Vec<String>,
    pub apply: Vec<String>,
    /// Says what the outputs are, where some are wanted.
    pub output: Vec<String>,
}

/// Commands that destroy what was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DestroySteps {
    /// Says what would be destroyed.
    pub plan: Vec<String>,
    pub destroy: Vec<String>,
}

/// How often an apply that had begun and failed is repeated by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    pub limit: u32,
    /// The pause before the first of them. It doubles each time, up to an hour.
    pub backoff: Duration,
}

/// The conditions of an apply. All are judged together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gates {
    /// It is in one of these. None: at any time.
    pub windows: Vec<Window>,
    /// It is in none of these.
    pub freezes: Vec<Freeze>,
    pub verdict: Option<VerdictSource>,
    /// Each of these objects is there and ready.
    pub needs: Vec<TargetKey>,
}

/// Ended Jobs that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keep {
    /// Of those that succeeded.
    pub succeeded: usize,
    /// Of those that failed.
    pub failed: usize,
}

impl Spec {
    /// The Secrets that are sent somewhere, each with the address that it is named for.
    pub fn sent(&self) -> BTreeSet<(String, String)> {
        let git = (self.source.secret.clone(), self.source.url.clone());
        let verdict = self.gates.verdict.as_ref().map(|verdict| (verdict.secret.clone(), verdict.url.clone()));
        let report = self.report.as_ref().map(|to| (Some(to.secret.clone()), web_of(&self.source.url)));
        [Some(git), verdict, report]
            .into_iter()
            .flatten()
            .filter_map(|(secret, address)| Some((secret?, address)))
            .collect()
    }

    /// Whether reports have the addresses of what would change.
    pub fn wants_addresses(&self) -> bool {
        self.report.as_ref().is_some_and(|to| to.detail == Detail::Addresses)
    }

    /// The work of a run on a commit, beside the commit: another folder or workspace is other work, so the same commit
    /// is run again for it.
    pub fn work(&self) -> String {
        digest("work", [self.source.path.as_str(), self.workspace.as_deref().unwrap_or_default()])
    }

    /// All that what would run depends on, beside the commit. A yes is a yes to this, too.
    pub fn settings(&self) -> String {
        let Runner { preset, image, steps, service_account, kubernetes_token, local_state, extras, outputs, .. } =
            &self.runner;
        let Steps { prepare, plan, apply, output } = steps;
        let counts = [prepare.len(), plan.len(), apply.len()].map(|count| count.to_string());
        let words = [prepare, plan, apply].into_iter().flatten().map(String::as_str);
        let fixed = [
            self.source.path.as_str(),
            self.workspace.as_deref().unwrap_or_default(),
            self.source.secret.as_deref().unwrap_or_default(),
            self.approval.name(),
            preset.name(),
            image,
            service_account.as_deref().unwrap_or_default(),
            if *kubernetes_token { "token" } else { "" },
            if *local_state { "local state" } else { "" },
            extras,
        ];
        let common = fixed.into_iter().chain(counts.iter().map(String::as_str)).chain(words);
        // Without outputs it is the hash of every release before: an answer to that stays one.
        let outputs = outputs.iter().flat_map(|outputs| outputs.words().chain(output.iter().map(String::as_str)));
        digest("settings", common.chain(outputs))
    }

    /// The same of a destroy.
    pub fn destroy_settings(&self) -> String {
        let DestroySteps { plan, destroy } = self.runner.destroy.clone().unwrap_or_default();
        let fixed = [self.settings(), plan.len().to_string()];
        digest("destroy", fixed.iter().chain(&plan).chain(&destroy).map(String::as_str))
    }
}

/// A Repo, as the API server has it.
pub type Object = crate::kept::Object<Repo>;
