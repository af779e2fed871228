//! The command line: one file for each command. What is said on standard output is the answer; everything else goes to
//! standard error. Exit codes: 0 done, 1 failed, 2 refused (arguments or configuration).

pub mod answer;
pub mod config;
pub mod consent;
#[cfg(feature = "demo")]
pub mod demo;
pub mod explain;
pub mod group;
pub mod ledger;
mod page;
pub mod read;
pub mod run;
pub mod status;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::adapters::kubernetes::crd;
use crate::app::by_hand::ByHand;
use crate::app::{self, Overrides};
use crate::cli::answer::{Outcome, Output, failed, print};
use crate::cli::consent::Consent;
use crate::config::{Inputs, load, read_file};

/// Where a pod finds its token; a caller without one is a person.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Where a pod finds the name of its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Kubernetes says "deployed"; the CDN keeps serving yesterday. allclear watches workloads, waits until a new image tag has
/// fully rolled out, purges the right CloudFront distribution exactly once, and then calls webhooks.
#[derive(Debug, Parser)]
#[command(name = "allclear", version, about, long_about = None, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 arguments or configuration refused.")]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// The configuration file [default: /etc/allclear/config.toml, where it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The kubeconfig [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context to use
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller, as a pod does; outside of one, the cluster and the ledger's namespace must be named
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
    #[cfg(feature = "demo")]
    /// See the whole thing work on this machine alone: stand-ins for the cluster, CloudFront and a webhook receiver
    Demo {
        /// The story to tell
        #[arg(value_enum, default_value_t = demo::Story::Rollout)]
        story: demo::Story,
        /// Clusters that serve the same site, each with a controller and a Redis of its own; more than one are a group
        #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(crate::demo::CLUSTERS_MAX)))]
        clusters: u8,
        /// Keep running afterwards, and say which address to open
        #[arg(long)]
        stay: bool,
    },
    /// Answer why a workload was, or was not, purged, and what happens next
    Explain {
        /// The workload, as web, shop/web or deployment/web; none for a list of all
        name: Option<String>,
        /// Its namespace [default: that of the kubeconfig's context; all for a list]
        #[arg(short, long)]
        namespace: Option<String>,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Show every rollout in flight, what it waits for in which cluster, what needs a look, and the Redis servers
    Status {
        /// Draw it again every 2 seconds, until Ctrl-C
        #[arg(short, long)]
        watch: bool,
        /// Only of this namespace
        #[arg(short, long)]
        namespace: Option<String>,
        /// Ask a running allclear, by the address of its status page, instead of the cluster and the Redis servers
        #[arg(long, value_name = "URL")]
        server: Option<url::Url>,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE", conflicts_with = "server")]
        ledger_namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Show the group of clusters, or forget a member of it, or have it back
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
    /// Show or check the configuration
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print the CustomResourceDefinitions of this release, for kubectl apply -f -; nothing acts on Pipelines yet
    Crds {
        /// Those for objects of pipelines.weave.works that are stored already
        #[arg(long)]
        weave: bool,
    },
    /// Print completions for a shell
    Completion {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum GroupAction {
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
enum LedgerAction {
    /// Show the ledger, or the record of one workload with its copies in the Redis servers
    Show {
        /// The workload, as web, shop/web or deployment/web; none for the ledger as a whole
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
        /// The workload, as web, shop/web or deployment/web
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

#[derive(Debug, Subcommand)]
enum ConfigAction {
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

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

impl From<Format> for Output {
    fn from(format: Format) -> Self {
        match format {
            Format::Table => Self::Table,
            Format::Json => Self::Json,
        }
    }
}

/// Does what the command line asks. The environment is given as data.
pub fn main(cli: Cli, environment: BTreeMap<String, String>) -> ExitCode {
    let Cli { global, command } = cli;
    match command {
        Command::Run { dry_run, ledger_namespace, second_ledger } => {
            let dry_run = dry_run.then(|| ("dry_run".to_owned(), "true".to_owned()));
            let flags = dry_run.into_iter().chain(ledger_flag(ledger_namespace)).collect();
            let by_hand = global.by_hand(&environment, second_ledger);
            let overrides = Overrides { kubernetes: global.kubernetes(), by_hand, ..Overrides::default() };
            with_inputs(global, environment, flags, |inputs| run::run(inputs, overrides))
        }
        #[cfg(feature = "demo")]
        Command::Demo { story, clusters, stay } => demo::demo(story, clusters, stay),
        Command::Explain { name, namespace, ledger_namespace, output } => {
            let output = output.into();
            look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question| {
                print(&explain::explain(sources, question, output).await)
            })
        }
        Command::Status { watch, namespace, server: Some(server), output, .. } => {
            let asked = status::Asked::Server(&server, namespace.as_deref());
            actix::System::new().block_on(answer_status(&asked, watch, output.into()))
        }
        Command::Status { watch, namespace, server: None, ledger_namespace, output } => {
            let output = output.into();
            look(global, environment, ledger_namespace, (namespace, None), output, async |sources, question| {
                answer_status(&status::Asked::Sources(sources, question), watch, output).await
            })
        }
        Command::Group { ledger_namespace, action } => {
            let output = match action {
                GroupAction::Show { output } => output.into(),
                GroupAction::Add { .. } | GroupAction::Forget { .. } => Output::Table,
            };
            look(global, environment, ledger_namespace, (None, None), output, async |sources, question| {
                print(&match &action {
                    GroupAction::Show { .. } => group::show(sources, question, output).await,
                    GroupAction::Add { member } => group::add(sources, question, member).await,
                    GroupAction::Forget { member, yes } => {
                        group::forget(sources, question, member, Consent::new(*yes)).await
                    }
                })
            })
        }
        Command::Ledger { ledger_namespace, action } => ledger_command(global, environment, ledger_namespace, action),
        Command::Config { action } => with_inputs(global, environment, BTreeMap::new(), |inputs| {
            let outcome = match action {
                ConfigAction::Show { output } => config::show(inputs, output.into()),
                ConfigAction::Validate { output } => config::validate(inputs, output.into()),
            };
            print(&outcome)
        }),
        Command::Crds { weave } => {
            let out = if weave { crd::CRD_WEAVE } else { crd::CRD };
            print(&Outcome { out: out.to_owned(), err: String::new(), code: 0 })
        }
        Command::Completion { shell } => {
            // Into memory first: the library panics where its reader has gone away.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "allclear", &mut script);
            let _ = io::stdout().write_all(&script);
            ExitCode::SUCCESS
        }
    }
}

impl Global {
    fn kubernetes(&self) -> crate::adapters::kubernetes::Options {
        crate::adapters::kubernetes::Options { kubeconfig: self.kubeconfig.clone(), context: self.context.clone() }
    }

    /// Outside a pod, a person starts the controller.
    fn by_hand(&self, environment: &BTreeMap<String, String>, second_ledger: bool) -> Option<ByHand> {
        let variable = environment.get("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
        let cluster_named = self.kubeconfig.is_some() || self.context.is_some() || variable;
        (!Path::new(TOKEN_FILE).exists()).then_some(ByHand { cluster_named, second_ledger })
    }
}

fn ledger_flag(namespace: Option<String>) -> Option<(String, String)> {
    namespace.map(|namespace| ("ledger.namespace".to_owned(), namespace))
}

fn ledger_command(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    action: LedgerAction,
) -> ExitCode {
    match action {
        LedgerAction::Show { name, namespace, output } => {
            let output = output.into();
            look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question| {
                print(&ledger::show(sources, question, output).await)
            })
        }
        LedgerAction::Adopt { name, namespace, all, yes } => {
            let which = if all { ledger::Which::All } else { ledger::Which::Named };
            let output = Output::Table;
            look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question| {
                print(&ledger::adopt(sources, question, which, Consent::new(yes)).await)
            })
        }
    }
}

async fn answer_status(asked: &status::Asked<'_>, watch: bool, output: Output) -> ExitCode {
    if watch { status::watch(asked, output).await } else { print(&status::status(asked, output).await) }
}

/// Reads the configuration, connects with the caller's credentials, and has a question about `(namespace, name)` answered.
fn look(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    (namespace, name): (Option<String>, Option<String>),
    output: Output,
    answer: impl AsyncFnOnce(&read::Sources, &read::Question) -> ExitCode,
) -> ExitCode {
    let flags = ledger_flag(ledger_namespace).into_iter().collect();
    let kubernetes = global.kubernetes();
    with_inputs(global, environment, flags, |inputs| {
        let loaded = match load(inputs) {
            Ok(loaded) => loaded,
            Err(invalid) => return print(&config::refused(&invalid, output)),
        };
        actix::System::new().block_on(async {
            let views = match app::views(&loaded.config, &kubernetes, namespace.as_deref()).await {
                Ok(views) => views,
                Err(error) => return failed(&error),
            };
            let app::Views { cluster, ledger, cdn, group, own_namespace, ledger_place, alone } = views;
            let us = read::Us { member: alone.to_string(), group: loaded.config.group.name.clone() };
            let sources = read::Sources { cluster, ledger, cdn, group };
            let policy = loaded.config.policy();
            let question = read::Question { namespace, name, own_namespace, policy, ledger_place, us };
            answer(&sources, &question).await
        })
    })
}

fn with_inputs(
    global: Global,
    environment: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
    then: impl FnOnce(&Inputs<'_>) -> ExitCode,
) -> ExitCode {
    let service_account_namespace = std::fs::read_to_string(NAMESPACE_FILE).ok();
    then(&Inputs { file: global.config, environment, flags, service_account_namespace, read: &read_file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_nothing_is_started_and_the_commands_are_shown() {
        for arguments in [&["allclear"][..], &["allclear", "--config", "x.toml"]] {
            let refused = Cli::try_parse_from(arguments).expect_err("there is no command");
            let (code, text) = (refused.exit_code(), refused.to_string());
            assert!(code == 2 && text.contains("run") && text.contains("demo") && text.contains("explain"), "{text}");
        }
    }
}
