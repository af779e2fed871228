//! Configuration: four layers in, one validated tree out, or every problem at once.
//!
//! ```text
//! configs/default.toml ─▶ file ─▶ environment ─▶ flags        later wins, key by key        layers.rs, env.rs
//!                          └──────┬──────┘
//!                     effective values, each with its place                                 show.rs
//!                                 ▼
//!                     Config (typed, checked together) or Invalid                           validate.rs, webhooks.rs
//! ```
//!
//! Nothing here reads the environment, the clock or a file by itself: [`Inputs`] brings them. Past this module no raw
//! TOML, JSON or variable exists. `configs/default.toml` is the list of all keys, their defaults and their
//! documentation; a key that is not in it does not exist. Nothing here decides what a value means for a rollout.

mod address;
mod advice;
mod aws;
mod caches;
mod custom;
mod env;
mod filter;
mod group;
mod hook;
mod in_force;
mod json;
mod layers;
mod looks;
mod mask;
mod pipeline;
mod problem;
mod proxies;
mod reference;
mod serving;
mod show;
mod suggest;
mod syntax;
mod tenants;
mod traces;
mod validate;
mod values;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use address::{RedisAddress, Refused, WebUrl};
pub use aws::{Account, Aws, CloudFront};
pub use env::{key_of, name_of};
pub use filter::cap;
pub use hook::{BodyTemplate, BodyValue, Hook, HookFormat, HookMethod, WorkloadPattern, key as webhook_key};
pub use in_force::InForce;
pub use looks::Proof;
pub use mask::Secret;
pub use pipeline::{Enabled, Git, Pipeline, Repo, Secrets};
pub use problem::{Invalid, Place, Problem, Warning};
pub use reference::{Reference, reference, reference_tables};
pub use serving::{Hooks, Http};
pub use show::Effective;
pub use traces::Traces;

use kernel::id::Kind;
use kernel::machine::millis;
use layers::Layer;
use problem::Findings;
use proof::look::Again;
use purge::agreement::roster::Trust;
use purge::bounds::policy::{
    Agreement, AtBarrier, AtTimeout, Choice, Missing, OnMissing, OnRollback, Policy, Versions,
};
use purge::bounds::tenants::Tenants;
use purge::caches::Cache;
use purge::purges::purge::{Pace, Rate};
use purge::records::rules::Rules;
use purge::workloads::extent::Extent;
use values::Values;

/// The file that is read when `--config` is not given, if it exists.
pub const FILE_DEFAULT: &str = "/etc/allclear/config.toml";

/// Bytes of one configuration file at most: what a ConfigMap can hold
/// (<https://kubernetes.io/docs/concepts/configuration/configmap/>, "cannot exceed 1 MiB").
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Everything configuration is made from, given as data.
pub struct Inputs<'a> {
    /// The file named by `--config`; `None` for [`FILE_DEFAULT`], which may be missing.
    pub file: Option<PathBuf>,
    /// The whole environment. Names that are not ours are ignored.
    pub environment: BTreeMap<String, String>,
    /// Dotted key → value, as given by flags (`dry_run` → `true`).
    pub flags: BTreeMap<String, String>,
    /// Content of `/var/run/secrets/kubernetes.io/serviceaccount/namespace`, where we run in a cluster.
    pub service_account_namespace: Option<String>,
    /// Reads one file as text; [`read_file`] in production.
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// A configuration that is good to start with, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What everything else works with.
    pub config: Config,
    /// What was given where, for `config show`.
    pub effective: Effective,
    /// What of it a running controller leaves for commands elsewhere.
    pub in_force: InForce,
    /// What the operator should know; to be logged at start.
    pub warnings: Vec<Warning>,
}

/// Puts the layers together and checks them.
///
/// # Errors
/// With every problem there is; the process ends with exit code 2 then.
pub fn load(inputs: &Inputs<'_>) -> Result<Loaded, Invalid> {
    load_over(inputs, None)
}

/// The same, with what the running controller wrote above all of it.
///
/// # Errors
/// The same.
pub fn load_as_controller(inputs: &Inputs<'_>, in_force: &InForce) -> Result<Loaded, Invalid> {
    load_over(inputs, Some(in_force))
}

fn load_over(inputs: &Inputs<'_>, in_force: Option<&InForce>) -> Result<Loaded, Invalid> {
    let mut findings = Findings::default();
    let defaults = layers::built_in(&mut findings);
    let surroundings = env::surroundings(&inputs.environment, inputs.service_account_namespace.as_deref());
    let file = layers::file_layer((inputs.file.as_deref(), FILE_DEFAULT), inputs.read, &defaults, &mut findings);
    let environment = env::of_environment(&inputs.environment, &defaults, &mut findings);
    let flags = layers::of_flags(&inputs.flags, &defaults, &mut findings);
    let controller = in_force.map(|in_force| in_force.layer(&defaults)).unwrap_or_default();
    let merged = layers::merged(&[defaults.clone(), surroundings, file, environment, flags, controller])
        .unwrap_or_else(|_| {
            findings.refuse(&Place::Default, "", None, "the layers cannot be put together", "report this as a bug");
            Layer::default()
        });
    // What seems to be missing may stand in the file, so nothing is said of that yet.
    let config =
        if findings.unread { None } else { validate::config(&mut Values::new(&merged, &mut findings), inputs.read) };
    if let Some(config) = &config {
        let Config { webhooks, pipeline, repo, .. } = config;
        let hooks = if webhooks.proxy.is_none() { webhooks.hooks.as_slice() } else { &[] };
        let git = [("pipeline.enabled", pipeline.enabled), ("repo.enabled", repo.enabled)];
        let git = git.into_iter().filter(|(_, enabled)| *enabled == Enabled::On).map(|(key, _)| key);
        proxies::warn(&inputs.environment, hooks, git, &mut findings);
    }
    let Findings { mut problems, mut warnings, unread: _ } = findings;
    problems.sort();
    warnings.sort();
    match config {
        Some(config) if problems.is_empty() => {
            let (effective, in_force) = (Effective::of(&merged, &defaults, &config), InForce::of(&merged, &defaults));
            Ok(Loaded { effective, in_force, config, warnings })
        }
        Some(_) | None => Err(Invalid { problems, warnings }),
    }
}

/// Reads a file of at most [`FILE_BYTES_MAX`] as text.
///
/// # Errors
/// Where it cannot be read, is longer, or is not UTF-8.
pub fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// The validated configuration. Take it apart without `..`, so that a new field stops the build where it is forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub watch: Watch,
    /// Which kinds of workloads are followed, those that are declared among them.
    pub kinds: BTreeSet<Kind>,
    /// When a rollout counts as complete or failed.
    pub rollout: Rollout,
    /// When two images are the same version.
    pub version: Versions,
    /// What is purged, how fast, and when it is not.
    pub purge: Purge,
    pub proof: Proof,
    pub site: Site,
    /// The rights of tenants to purge.
    pub tenants: Tenants,
    /// The index of distributions.
    pub distributions: Distributions,
    pub cloudfront: CloudFront,
    /// The AWS accounts.
    pub aws: Aws,
    pub redis: Redis,
    /// The clusters behind the same CDN.
    pub group: Group,
    /// Where records are kept.
    pub ledger: Ledger,
    /// Which of several replicas works.
    pub leader: Leader,
    /// The receivers of notices.
    pub webhooks: Webhooks,
    /// Revisions that move from environment to environment.
    pub pipeline: Pipeline,
    /// Commits that are run.
    pub repo: Repo,
    /// Where git hosts and forges may be.
    pub git: Git,
    /// Where Secrets may be sent.
    pub secrets: Secrets,
    /// Our own HTTP server.
    pub http: Http,
    /// Requests of other programs.
    pub hooks: Hooks,
    pub log: Log,
    /// Where spans are sent.
    pub traces: Traces,
    /// Do everything but purge, vote and notify; records are kept in memory then, whatever `ledger` says.
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Where workloads are looked for.
    pub namespaces: Namespaces,
}

/// Which namespaces are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// Not configured: all, if our credentials allow to list them, else our own (decision 20).
    AllOrOwn,
    /// `*`: all, and an error if that is forbidden.
    All,
    /// These namespaces, at least one.
    Listed(BTreeSet<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// A rollout that is not complete after this has failed.
    pub timeout: Duration,
    /// How long it is waited after the last old pod has stopped serving (decision 33).
    pub settle: Duration,
    /// How long old pods that still serve are waited for; zero means not at all.
    pub drain_timeout: Duration,
    /// What a workload with zero replicas is.
    pub zero_replicas: ZeroReplicas,
}

/// What a rollout of a workload that is scaled to zero counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroReplicas {
    /// Neither complete nor failed: it waits, without timeout, until the workload is scaled up (decision 20).
    Wait,
    /// Complete, as nothing serves the old version.
    Complete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// How long hosts that a workload had and lost are looked for again.
    pub missing_timeout: Duration,
    pub missing: OnMissing,
    /// Whether traffic that moves from one workload to another asks for a purge.
    pub follow_traffic: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Purge {
    /// What is purged where a workload does not say.
    pub paths: Extent,
    /// Purges of one distribution within this time after the first share the next one (decision 19).
    pub debounce: Duration,
    /// How long a purge may take before it is reported as stalled.
    pub completion_timeout: Duration,
    /// When a purge is looked at for the first time.
    pub poll_first: Duration,
    /// Purges created per second to start from; each member of a group has its own. More than 0.
    pub creations_per_second: f64,
    /// Never more than these; not less than the start.
    pub creations_per_second_max: f64,
    /// A rollout that completes after it was recorded as failed (decision 4).
    pub on_recovered: Choice,
    /// A rollout that is rolled back, before it was complete, to what the edge was last made to agree with (decision 31).
    pub on_rollback: OnRollback,
    /// Further purges of what is looked at, and when the first is made in any case.
    pub again: Again,
    /// Before a purge by cache tags, whether answers carry the header with their tags.
    pub sample_tags: bool,
    /// Paths of a month in each account above which somebody is told; 0: nobody.
    pub budget: u64,
    /// `[[cache]]`: what is asked to let go before a purge.
    pub caches: Vec<Arc<Cache>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distributions {
    /// How often the listing is refreshed.
    pub refresh: Duration,
    /// A host without distribution refreshes the listing at once, but not more often than this.
    pub miss_refresh: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redis {
    /// Our own Redis, where records are published.
    pub url: Option<RedisAddress>,
    /// The authorities, PEM, that the certificates of `rediss://` servers, ours and the members', are verified by, read from
    /// `redis.ca_file`; `None`: those of the system.
    pub ca: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group's name, part of every key in Redis.
    pub name: String,
    /// The name instead of that where only the old program's variables are given, `NAMESPACE` among them: one worker for each
    /// namespace is a group for each. Not where the ledger has members by the default name (decision 56).
    pub derived: Option<String>,
    /// Our own name in the group; `None` for `self` while there is no group, and for one that is made from the
    /// cluster's identity in a group (decision 5).
    pub member: Option<String>,
    /// The other members' Redis servers: distinct, and without our own where its text shows it. Empty: no
    /// group. One that is ours under another name is recognised later, by its `run_id` (decision 6).
    pub remotes: Vec<RedisAddress>,
    /// `remotes` was given and names our own Redis only: another cluster may use it as its own.
    pub only_own: bool,
    /// The members' names, where they are given: two at least, ours among them if it is set. Empty: they are learnt.
    pub members: BTreeSet<String>,
    /// After this, `policy` applies.
    pub timeout: Duration,
    /// The lead a member of one rank has before the next one takes over a purge.
    pub takeover: Duration,
    /// What happens to a group rollout that is not decided in time.
    pub policy: AtTimeout,
    /// What a member is that does not have the workload.
    pub absent: AbsentPolicy,
    /// The keys of the records, read from `group.key_file`: the first signs, all verify. None: unsigned (decision 7).
    pub keys: Vec<Secret<Vec<u8>>>,
    /// Unsigned records are meant.
    pub unsigned: bool,
}

impl Group {
    /// How far what is on the members' servers is proof.
    pub fn trust(&self) -> Trust {
        Trust::of(!self.keys.is_empty(), self.unsigned)
    }
}

/// What a member without the workload means for a group rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentPolicy {
    /// It is waited for.
    Wait,
    /// It is left out.
    Ignore,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// Where records are kept. A dry run keeps them in memory all the same (decision 23).
    pub backend: LedgerBackend,
    /// The namespace of the ledger's objects; `None` where we could not learn our own.
    pub namespace: Option<String>,
}

/// Where records are kept (decision 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerBackend {
    /// ConfigMaps in our own namespace.
    Kubernetes,
    /// Nowhere: for the demo and tests.
    Memory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// Of several replicas one works, chosen by a Lease. A dry run, and records in memory, do without.
    pub lease: bool,
    /// The name of this replica; `None` for the host's.
    pub replica: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhooks {
    /// The file the hooks were read from.
    pub file: Option<PathBuf>,
    /// The hooks in the order of the file; each has its own timeout and schedule filled in.
    pub hooks: Vec<Hook>,
    /// The only proxy that is used; the environment's is not (decision 18).
    pub proxy: Option<WebUrl>,
    /// The proxy refuses special addresses itself. Unless it does, receivers that are names are not called through it.
    pub proxy_judges: bool,
    /// Whether receivers may have private addresses. Link-local and metadata addresses are refused always.
    pub allow_private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// A level, or a filter of `tracing_subscriber::EnvFilter`, which accepted it.
    pub level: String,
    /// How a line is written.
    pub format: LogFormat,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Text,
}

impl Config {
    /// What the decisions about a rollout depend on.
    pub fn policy(&self) -> Policy {
        Policy {
            kinds: self.kinds.clone(),
            rollout_timeout: self.rollout.timeout,
            barrier: AtBarrier { settle: self.rollout.settle, drain_timeout: self.rollout.drain_timeout },
            zero_is_complete: self.rollout.zero_replicas == ZeroReplicas::Complete,
            version: self.version.clone(),
            paths: self.purge.paths.clone(),
            tenants: self.tenants.clone(),
            on_recovered: self.purge.on_recovered,
            on_rollback: self.purge.on_rollback,
            missing: Missing { timeout: self.site.missing_timeout, then: self.site.missing },
            group: Agreement {
                timeout: self.group.timeout,
                at_timeout: self.group.policy,
                absent_left_out: self.group.absent == AbsentPolicy::Ignore,
                takeover: self.group.takeover,
                rules: Rules::CURRENT,
            },
            proof: self.proof.policy(self.purge.again),
            caches: self.purge.caches.clone(),
        }
    }

    /// How purges are paced.
    pub fn pace(&self) -> Pace {
        // Thousandths of so many a second are milliseconds of so many seconds.
        let rate = |per_second| {
            let thousandths = millis(Duration::from_secs_f64(per_second));
            Rate::from_thousandths(u32::try_from(thousandths).unwrap_or(u32::MAX))
        };
        Pace {
            debounce: self.purge.debounce,
            creations_per_second: rate(self.purge.creations_per_second),
            creations_per_second_max: rate(self.purge.creations_per_second_max),
            poll_first: self.purge.poll_first,
            completion_timeout: self.purge.completion_timeout,
        }
    }

    /// Whether a group was configured. `false` does not mean that there is none: the ledger may have members (decision 56).
    pub fn is_grouped(&self) -> bool {
        let Group { remotes, only_own, members, .. } = &self.group;
        !remotes.is_empty() || *only_own || !members.is_empty()
    }

    /// Whether other members are meant, so that ours needs a name that no other cluster has.
    pub fn means_others(&self) -> bool {
        !self.group.remotes.is_empty() || !self.group.members.is_empty()
    }

    /// Where records are really kept: in memory during a dry run, so that nothing seen then counts as purged later.
    pub fn ledger_backend(&self) -> LedgerBackend {
        if self.dry_run { LedgerBackend::Memory } else { self.ledger.backend }
    }
}

#[cfg(test)]
mod tests;
