//! The arguments of every command, and the words of `--help`.

mod audit;
mod objects;
mod shell;
mod webhooks;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

use crate::cli::answer::Format;
#[cfg(feature = "demo")]
use crate::cli::demo;
use crate::cli::step::Step;
use kernel::names::host::Host;
use purge::rollouts::goal::Goal;

pub(super) use audit::{AuditArguments, named};
pub(super) use objects::{ChangeAction, Listing, Past, PipelineAction, RepoAction};
pub(super) use shell::{COMPLETE, Shell};
pub(super) use webhooks::WebhookAction;

/// Kubernetes says "deployed"; the CDN keeps serving yesterday. allclear watches workloads, waits until a new image tag has
/// fully rolled out, purges the right CloudFront distribution exactly once, and then calls webhooks.
#[derive(Debug, Parser)]
#[command(name = "allclear", version, about, long_about = None, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 arguments or configuration refused.")]
pub struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Args)]
pub(super) struct Global {
    /// The configuration file [default: /etc/allclear/config.toml, where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The kubeconfig [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context to use
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Colours: auto is for terminals, unless NO_COLOR or CLICOLOR_FORCE says otherwise
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub(super) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the controller, as a pod does; outside of one, name the cluster, and the ledger's namespace unless it is a dry run
    Run {
        /// Do everything but purge and notify, and say what would have been done
        #[arg(long)]
        dry_run: bool,
        /// Where it keeps its records [default: the configured ledger.namespace, or the pod's own]
        #[arg(long, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        /// Outside a pod: begin a ledger although the cluster has another one. Both purge then, so each rollout twice
        #[arg(long)]
        second_ledger: bool,
    },
    /// Check everything that has to hold: the cluster, rights, ledger, Redis, group, AWS, hosts, webhooks; changes nothing
    #[command(after_help = CHECK_HELP)]
    Check(CheckArguments),
    /// Judge by the logs of all members whether allclear has kept its promises; needs no cluster and connects to nothing
    #[command(after_help = AUDIT_HELP)]
    Audit(AuditArguments),
    #[cfg(feature = "demo")]
    /// See the whole thing work on this machine alone: stand-ins for the cluster, CloudFront and a webhook receiver
    Demo(demo::Arguments),
    /// Answer why a workload was, or was not, purged, why a Pipeline does not promote or a Repo does not run, and what happens next
    Explain {
        /// The workload, as web, shop/web or statefulset/db, the host or an address of it, as www.example.com, the Pipeline, as pipeline/shop/web, or the
        /// Repo, as repo/shop/web; none for a list of all workloads
        name: Option<String>,
        /// What is behind this host: distributions, rules, workloads, and what is not followed
        #[arg(long, conflicts_with_all = ["name", "namespace", "server"], value_parser = Host::parse)]
        host: Option<Host>,
        /// Its namespace [default: that of the kubeconfig's context; all for a list]
        #[arg(short, long)]
        namespace: Option<String>,
        /// Of a list: all namespaces, as without -n
        #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace", "host"])]
        all_namespaces: bool,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        /// Of a Pipeline or a Repo: ask a running allclear, by the address of its status page, what it sees now, as in
        /// `allclear explain repo/shop/web --server http://localhost:8081`
        #[arg(long, value_name = "URL", conflicts_with = "ledger_namespace", value_parser = server)]
        server: Option<url::Url>,
        /// Answer again when it changes, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Wait until a workload's change is complete, purged or settled, as a CI job does right behind kubectl apply
    #[command(after_help = WAIT_HELP)]
    Wait {
        #[command(flatten)]
        about: About,
        /// What to wait for
        #[arg(long = "for", value_enum, default_value = "purged", value_name = "GOAL")]
        goal: GoalName,
        /// How long at most, from 1s to 24h
        #[arg(long, default_value = "30m", value_name = "TIME", value_parser = at_most)]
        timeout: Duration,
    },
    /// Ask allclear to purge a workload's distributions now, with your own right to patch it
    #[command(after_help = PURGE_HELP)]
    Purge {
        #[command(flatten)]
        about: About,
        /// These paths, and cache tags with their #, instead of what is usually purged; a list with commas, at most 10
        #[arg(long, value_name = "PATHS", value_delimiter = ',')]
        paths: Vec<String>,
        /// Only say what would be purged
        #[arg(long)]
        dry_run: bool,
        /// Have what CloudFront refused tried now, instead of another purge: for when the cause is mended
        #[arg(long, conflicts_with_all = ["dry_run", "paths"])]
        retry: bool,
        /// Wait until it is purged
        #[arg(long, conflicts_with = "dry_run")]
        wait: bool,
        /// With --wait: how long at most, from 1s to 24h
        #[arg(long, default_value = "30m", value_name = "TIME", value_parser = at_most, requires = "wait")]
        timeout: Duration,
    },
    /// Show how the last rollouts of a workload ended, and when they were purged
    History {
        #[command(flatten)]
        about: About,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Show the version of this program and of the allclear that runs, and what follows where they differ
    Version {
        /// Only of this program: nothing is asked
        #[arg(long)]
        client: bool,
        /// Ask a running allclear, by the address of its status page
        #[arg(long, value_name = "URL", conflicts_with = "client", value_parser = server)]
        server: Option<url::Url>,
        /// The namespace of the Deployment and of its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE", conflicts_with = "server")]
        ledger_namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Show every rollout in flight and every Pipeline, what each waits for, what needs a look, and the Redis servers
    Status {
        /// Draw it again every 2 seconds, until Ctrl-C; in a pipe, say in a line each what has changed
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        of: Namespaces,
        /// Ask a running allclear, by the address of its status page, instead of the cluster and the Redis servers
        #[arg(long, value_name = "URL", value_parser = server)]
        server: Option<url::Url>,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE", conflicts_with = "server")]
        ledger_namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Answer for a model, over standard input and output: status, explain, history and fresh as tools of the Model Context Protocol
    #[command(after_help = MCP_HELP)]
    Mcp {
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
    },
    /// Show the group of clusters, or forget a member of it, or have it back
    #[command(after_help = GROUP_HELP)]
    Group {
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, global = true, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        #[command(subcommand)]
        action: GroupAction,
    },
    /// Show what is kept in the ledger, or take workloads as they are after it was set back
    Ledger {
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, global = true, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        #[command(subcommand)]
        action: LedgerAction,
    },
    /// Show Pipelines, answer what they ask, look now, and stop the line or let it go on
    Pipeline {
        #[command(subcommand)]
        action: PipelineAction,
    },
    /// Show Repos, answer what they ask, read their logs, look now, and stop them or let them go on
    Repo {
        #[command(subcommand)]
        action: RepoAction,
    },
    /// Show the receivers of webhooks, send a test event, or have sent again what was given up
    Webhook {
        #[command(subcommand)]
        action: WebhookAction,
    },
    /// Show or check the configuration
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print the CustomResourceDefinitions of this release, for kubectl apply -f -
    Crds {
        /// The one of this kind alone
        kind: Option<OwnKind>,
        /// Those for objects of pipelines.weave.works that are stored already
        #[arg(long, conflicts_with = "kind")]
        weave: bool,
    },
    /// Do one step of a Repo's Job, inside its pod
    #[command(hide = true)]
    Step {
        #[command(subcommand)]
        step: Step,
    },
    /// Print completions for a shell; those of bash, zsh and fish know namespaces, workloads, Pipelines, Repos and receivers
    #[command(after_help = COMPLETION_HELP)]
    Completion {
        /// Which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Answer what may stand in the place of the last word; for the scripts of `completion`, and for kubectl
    #[command(name = COMPLETE, hide = true, disable_help_flag = true)]
    Complete {
        /// The words behind the program's name
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// Which namespaces are shown.
#[derive(Debug, Args)]
pub(super) struct Namespaces {
    /// Only this namespace [default: all]
    #[arg(short, long)]
    namespace: Option<String>,
    /// All namespaces, as without -n
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl Namespaces {
    /// The only one; `None` for all.
    pub(super) fn only(self) -> Option<String> {
        self.namespace.filter(|_| !self.all_namespaces)
    }
}

/// One workload, and where its record is.
#[derive(Debug, Args)]
pub(super) struct About {
    /// The workload, as web, shop/web or statefulset/db
    pub(super) name: String,
    /// Its namespace [default: that of the kubeconfig's context]
    #[arg(short, long)]
    pub(super) namespace: Option<String>,
    /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
    #[arg(long, value_name = "NAMESPACE")]
    pub(super) ledger_namespace: Option<String>,
}

const COMPLETION_HELP: &str = "\
The scripts of bash, zsh and fish ask the program at each press of the Tab key. It uses your kubeconfig and answers within a second. \
Where it cannot find names, it offers none.

For `kubectl allclear`, kubectl 1.26 and later runs a program kubectl_complete-allclear in PATH. A symlink to allclear is enough:
  ln -s \"$(command -v allclear)\" ~/.local/bin/kubectl_complete-allclear";

const WAIT_HELP: &str = "\
A change that allclear has not seen yet is waited for. A rollout that fails, or that another version overtakes, ends the wait.

Exit codes: 0 reached, 1 it will not be reached or cannot be read, 2 arguments refused, 3 the time is over.";

const AUDIT_HELP: &str = "\
Give each member's log its own file, from the same hours. docs/audit.md says what is judged, and how.

Exit codes: 0 every promise was held, 1 one was broken, 2 something cannot be told or read.";
const MCP_HELP: &str = "\
A program that works with a model starts it; it is of no use to a person on a terminal. It only reads, with your own credentials, and \
has no tool that changes anything. It ends with the input. Setting it up: docs/mcp.md";

const GROUP_HELP: &str = "\
Words:
  group    the clusters that serve the same sites; a purge is made once for all of them
  member   one cluster of it, with its own allclear
  board    a Redis on which the members publish what they know
  vote     a member's word that its rollout is complete, and what is to be purged
  pinned   the members as this cluster's ledger has agreed on them";

const PURGE_HELP: &str = "\
It writes the annotations allclear.dev/requested-at and allclear.dev/requested-paths on the workload. The running allclear does the \
rest, once for a group of clusters. While an earlier change still waits for its purge, the usual paths are purged as well. With --retry \
it writes allclear.dev/retry-at instead, and nothing new is purged: run it in the cluster that tries.

Exit codes: 0 asked for (with --wait: purged), 1 not, 2 arguments refused, 3 the time is over.";

/// A kind of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OwnKind {
    /// Pipelines
    Pipeline,
    /// Repos
    Repo,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GoalName {
    /// Every pod runs the new version, and no old one serves any more
    Complete,
    /// CloudFront serves nothing older either
    Purged,
    /// As purged, and all notices are handed over; also reached where no host or distribution leads to the workload
    Settled,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Complete => Self::Complete,
            GoalName::Purged => Self::Purged,
            GoalName::Settled => Self::Settled,
        }
    }
}

/// The parser's own words are about offsets in the text.
fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "not a number with a unit; write it as 20m or 90s".to_owned())
}

/// The address of a status page. `localhost:8081` is one: without this, `localhost` would be taken for its scheme.
fn server(text: &str) -> Result<url::Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let usual = "write it as http://localhost:8081";
    let url = url::Url::parse(&whole).map_err(|_| format!("not an address; {usual}"))?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    if is_web { Ok(url) } else { Err(format!("not the address of a web page; {usual}")) }
}

fn at_most(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    let day = Duration::from_hours(24);
    if (Duration::from_secs(1)..=day).contains(&time) { Ok(time) } else { Err("not from 1s to 24h".to_owned()) }
}

#[derive(Debug, Subcommand)]
pub(super) enum GroupAction {
    /// Show its members, as known and as pinned in the ledger, its Redis servers, and what differs
    Show {
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Have a forgotten member back, as soon as it reports
    Add {
        /// Its name
        member: String,
    },
    /// Let this cluster leave the group: it waits for no other member from then on, and works alone
    Leave {
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
    /// Take a member that will not come back out of the members that this cluster's ledger has pinned
    Forget {
        /// Its name
        member: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum LedgerAction {
    /// Show the ledger, or the record of one workload with its copies in the Redis servers
    Show {
        /// The workload, as web, shop/web or statefulset/db; none for the ledger as a whole
        name: Option<String>,
        /// Its namespace [default: that of the kubeconfig's context]
        #[arg(short, long)]
        namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// After the ledger was set back (StateRegressed): take a workload as it is, as a new baseline, without a purge
    Adopt {
        /// The workload, as web, shop/web or statefulset/db
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// Its namespace [default: that of the kubeconfig's context]
        #[arg(short, long)]
        namespace: Option<String>,
        /// Every workload for which a Redis holds newer state than the ledger
        #[arg(long)]
        all: bool,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// What `allclear check` is asked for.
#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// Only what has to hold before the installation, with your own credentials
    #[arg(long)]
    pub(super) pre: bool,
    /// Ask for a few pages through the CDN as well: what they say of how they are cached
    #[arg(long, conflicts_with = "pre")]
    pub(super) cacheability: bool,
    /// Look again until nothing fails; it gives up after 5 minutes, or after this time
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "5m", value_parser = time)]
    pub(super) wait: Option<Duration>,
    /// The controller's service account [default: that of the Deployment in the namespace of the ledger, or allclear]
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account)]
    pub(super) service_account: Option<(String, String)>,
    /// Where the ledger is [default: the configured ledger.namespace, or allclear]
    #[arg(long, value_name = "NAMESPACE")]
    pub(super) ledger_namespace: Option<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(super) output: Format,
}

/// It has examples of its own, the first one as in `examples`.
const CHECK_HELP: &str = "Examples:
  allclear check --pre --config config.toml                   before the installation
  kubectl -n allclear exec deploy/allclear -- allclear check  as the controller itself
  allclear check --wait=10m -o json                           in CI, after a rollout of allclear
  allclear check --cacheability                               what a purge does not reach, and what it throws away for nothing

Exit codes: 0 nothing fails (! and what was not tried are no failure), 1 something fails, 2 arguments or configuration refused.
Every check: docs/check.md";

fn account(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        Some(_) | None => Err("a service account is NAMESPACE/NAME, as allclear/allclear".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Show every effective value and the layer it came from; secrets are masked
    Show {
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Check the configuration and name everything that is wrong with it
    Validate {
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
}
