//! The command line: one file for each command. What is said on standard output is the answer; everything else goes to
//! standard error. Exit codes: 0 done, 1 failed, 2 refused (arguments or configuration).

mod again;
pub mod answer;
mod arguments;
mod audit;
pub mod check;
pub mod command_kind;
mod completion;
pub mod config;
mod connect;
pub mod consent;
#[cfg(feature = "demo")]
pub mod demo;
mod examples;
pub mod explain;
pub mod group;
pub mod history;
pub mod ledger;
mod mcp;
pub mod objects;
pub mod purge;
mod read;
pub mod run;
mod screen;
pub mod status;
mod step;
pub mod version;
pub mod wait;
pub mod webhook;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::connect;
use crate::adapters::kubernetes::crd;
use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::objects::{PipelineKind, RepoKind};
use crate::app::by_hand::ByHand;
use crate::app::{self, Overrides};
use crate::cli::answer::{Outcome, Output, done, invalid, print, progress};
use crate::cli::arguments::{About, CheckArguments, Command, ConfigAction, Global, GroupAction, LedgerAction, OwnKind};
use crate::cli::connect::{ledger_flag, sources, with_inputs};
use crate::cli::consent::Consent;
use crate::cli::objects::command;
use crate::config::{InForce, load, load_as_controller};
use crate::looking::{LEDGER_NAMESPACE, Question, Sources, whose};
use ::purge::ports::Clock;
use ::purge::rollouts::goal::Goal;
use kernel::names::host::Host;

pub use arguments::Cli;

/// Where a pod finds its token; a caller without one is a person.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Reads the command line, the program's name first. Ends the program where it cannot be read, or only help is wanted.
pub fn parse(arguments: &[OsString]) -> Cli {
    let typed = arguments.first().map(OsString::as_os_str);
    let command = examples::dressed(Cli::command(), typed);
    let of_plugin = typed.is_some_and(|typed| Path::new(typed).file_stem() == Some(OsStr::new(completion::OF_PLUGIN)));
    let matches = if of_plugin {
        let words = arguments.iter().skip(1).cloned();
        command.get_matches_from(["allclear".into(), arguments::COMPLETE.into()].into_iter().chain(words))
    } else {
        command.get_matches_from(arguments)
    };
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Does what the command line asks. The environment is given as data.
pub fn main(cli: Cli, environment: BTreeMap<String, String>) -> ExitCode {
    let Cli { global, command } = cli;
    screen::choose(global.color);
    match command {
        Command::Run { dry_run, ledger_namespace, second_ledger } => {
            let dry_run = dry_run.then(|| ("dry_run".to_owned(), "true".to_owned()));
            let flags = dry_run.into_iter().chain(ledger_flag(ledger_namespace)).collect();
            let by_hand = global.by_hand(&environment, second_ledger);
            let kubernetes = global.kubernetes();
            with_inputs(global, environment, flags, |inputs| {
                run::run(inputs, Overrides { kubernetes, by_hand, ..Overrides::default() })
            })
        }
        Command::Audit(arguments) => print(&audit::audit(&arguments)),
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::demo(arguments),
        Command::Explain { name, host, namespace, ledger_namespace, server, watch, output, .. } => {
            let (asked, place) = ((namespace, name, host), (ledger_namespace, server));
            explain_command(global, environment, asked, place, watch, output.into())
        }
        Command::Check(arguments) => checked(global, environment, arguments),
        Command::Status { watch, of, server: Some(server), output, .. } => {
            let namespace = of.only();
            let asked = status::Asked::Server(&server, namespace.as_deref());
            actix::System::new().block_on(answer_status(&asked, watch, output.into()))
        }
        Command::Status { watch, of, server: None, ledger_namespace, output } => {
            let (output, namespace) = (output.into(), of.only());
            look(global, environment, ledger_namespace, (namespace, None), output, async |sources, question, _| {
                answer_status(&status::Asked::Sources(sources, question.namespace.as_deref()), watch, output).await
            })
        }
        Command::Wait { about, goal, timeout } => {
            wait_command(global, environment, about, wait::Wait { goal: goal.into(), at_most: timeout })
        }
        Command::History { about, output } => history_command(global, environment, about, output.into()),
        Command::Version { client: true, output, .. } => print(&version::client(output.into())),
        Command::Version { server, ledger_namespace, output, .. } => {
            version_command(global, environment, ledger_namespace, server, output.into())
        }
        Command::Purge { about, paths, dry_run, retry, wait, timeout } => {
            let wait = wait.then_some(wait::Wait { goal: Goal::Purged, at_most: timeout });
            purge_command(global, environment, about, purge::Request { paths, dry_run, retry, wait })
        }
        Command::Group { ledger_namespace, action } => group_command(global, environment, ledger_namespace, action),
        Command::Ledger { ledger_namespace, action } => ledger_command(global, environment, ledger_namespace, action),
        Command::Pipeline { action } => command::pipeline((global, environment), action),
        Command::Repo { action } => command::repo((global, environment), action),
        Command::Webhook { action } => webhook::webhook(global, environment, action),
        Command::Config { action } => config_command(global, environment, action),
        Command::Mcp { ledger_namespace } => {
            let kubernetes = global.kubernetes();
            let flags = ledger_flag(ledger_namespace).into_iter().collect();
            with_inputs(global, environment, flags, |inputs| mcp::mcp(inputs, kubernetes))
        }
        Command::Step { step } => print(&step::step(step)),
        Command::Crds { kind, weave } => {
            let all = match (kind, weave) {
                (_, true) => vec![crd::CRD_WEAVE],
                (Some(OwnKind::Pipeline), false) => vec![crd::CRD_HISTORIES, crd::CRD, crd::freeze::CRD],
                (Some(OwnKind::Repo), false) => vec![crd::CRD_HISTORIES, crd::repo::CRD],
                (None, false) => vec![crd::CRD_HISTORIES, crd::CRD, crd::freeze::CRD, crd::repo::CRD],
            };
            print(&done(all.join("---\n")))
        }
        Command::Completion { shell } => completion::script(shell),
        Command::Complete { words } => completion::complete(&words, environment),
    }
}

fn explain_command(
    global: Global,
    environment: BTreeMap<String, String>,
    (namespace, name, host): (Option<String>, Option<String>, Option<Host>),
    (ledger_namespace, server): (Option<String>, Option<url::Url>),
    watch: bool,
    output: Output,
) -> ExitCode {
    let repo = name.as_deref().is_some_and(command_kind::is_meant::<RepoKind>);
    let pipeline = name.as_deref().is_some_and(command_kind::is_meant::<PipelineKind>);
    match name {
        Some(_) if watch && (repo || pipeline) => {
            print(&invalid("--watch is for workloads; `allclear status --watch` shows Pipelines and Repos"))
        }
        Some(name) if repo => {
            command::explained::<RepoKind>((global, environment), (namespace.as_deref(), &name), server, output)
        }
        Some(name) if pipeline || server.is_some() => {
            command::explained::<PipelineKind>((global, environment), (namespace.as_deref(), &name), server, output)
        }
        name => look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question, _| {
            let ask = async || match &host {
                Some(host) => explain::about_host(sources, host, output).await,
                None => explain::explain(sources, question, output).await,
            };
            if watch { again::again(ask).await } else { print(&ask().await) }
        }),
    }
}

fn wait_command(global: Global, environment: BTreeMap<String, String>, about: About, wait: wait::Wait) -> ExitCode {
    about_one(global, environment, about, async |sources, question, _| {
        let outcome = wait::wait(sources, question, wait, &mut progress).await;
        print(&Outcome { out: screen::reached(&outcome.out), ..outcome })
    })
}

fn history_command(global: Global, environment: BTreeMap<String, String>, about: About, output: Output) -> ExitCode {
    about_one(global, environment, about, async |sources, question, _| {
        print(&history::history(sources, question, output).await)
    })
}

fn purge_command(
    global: Global,
    environment: BTreeMap<String, String>,
    about: About,
    request: purge::Request,
) -> ExitCode {
    about_one(global, environment, about, async |sources, question, hand| {
        let now_ms = SystemClock::default().wall_ms();
        print(&purge::purge((sources, question, hand), request, now_ms, &mut progress).await)
    })
}

fn version_command(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    server: Option<url::Url>,
    output: Output,
) -> ExitCode {
    if let Some(url) = server {
        return actix::System::new().block_on(async { print(&version::of_server(&url, output).await) });
    }
    let namespace = ledger_namespace.clone().unwrap_or_else(|| LEDGER_NAMESPACE.to_owned());
    look(global, environment, ledger_namespace, (None, None), output, async |sources, _, _| {
        print(&version::of_cluster(sources, &namespace, output).await)
    })
}

fn group_command(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    action: GroupAction,
) -> ExitCode {
    let output = match action {
        GroupAction::Show { output } => output.into(),
        GroupAction::Add { .. } | GroupAction::Forget { .. } | GroupAction::Leave { .. } => Output::Table,
    };
    look(global, environment, ledger_namespace, (None, None), output, async |sources, _, _| {
        print(&match &action {
            GroupAction::Show { .. } => group::show(sources, output).await,
            GroupAction::Add { member } => group::add(sources, member).await,
            GroupAction::Leave { yes } => group::leave::leave(sources, Consent::new(*yes)).await,
            GroupAction::Forget { member, yes } => group::forget(sources, member, Consent::new(*yes)).await,
        })
    })
}

impl Global {
    /// Outside a pod, a person starts the controller.
    fn by_hand(&self, environment: &BTreeMap<String, String>, second_ledger: bool) -> Option<ByHand> {
        let variable = environment.get("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
        let cluster_named = self.kubeconfig.is_some() || self.context.is_some() || variable;
        (!Path::new(TOKEN_FILE).exists()).then_some(ByHand { cluster_named, second_ledger })
    }
}

/// Checks everything that the configuration names.
fn checked(global: Global, environment: BTreeMap<String, String>, arguments: CheckArguments) -> ExitCode {
    let CheckArguments { pre, cacheability, wait, service_account: account, ledger_namespace, output } = arguments;
    let cacheability = cacheability.then_some(check::cacheability::PACE);
    let (options, output) = (check::Options { pre, account, as_caller: false, cacheability, wait }, output.into());
    let kubernetes = global.kubernetes();
    // A configuration that is named is meant: it may be the next one.
    let is_named = global.config.is_some() || options.pre;
    with_inputs(global, environment, ledger_flag(ledger_namespace).into_iter().collect(), |inputs| {
        let given = match load(inputs) {
            Ok(loaded) => loaded,
            Err(invalid) => return print(&config::refused(&invalid, output)),
        };
        actix::System::new().block_on(async {
            let look = async || {
                let reload = |in_force: &InForce| load_as_controller(inputs, in_force);
                let (loaded, whose) = match connect(&kubernetes).await {
                    Ok(clients) if is_named => (given.clone(), whose::beside(&given, &clients).await),
                    Ok(clients) => whose::in_force(given.clone(), &clients, reload).await,
                    Err(error) => (given.clone(), whose::Whose::Own(error.to_string())),
                };
                let outside = app::checking::outside(&loaded.config, &kubernetes, None).await;
                (loaded, whose, outside)
            };
            print(&check::check(look, &options, output).await)
        })
    })
}

fn config_command(global: Global, environment: BTreeMap<String, String>, action: ConfigAction) -> ExitCode {
    with_inputs(global, environment, BTreeMap::new(), |inputs| {
        let outcome = match action {
            ConfigAction::Show { output } => config::show(inputs, output.into()),
            ConfigAction::Validate { output } => config::validate(inputs, output.into()),
        };
        print(&outcome)
    })
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
            look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question, _| {
                print(&ledger::show(sources, question, output).await)
            })
        }
        LedgerAction::Adopt { name, namespace, all, yes } => {
            let which = if all { ledger::Which::All } else { ledger::Which::Named };
            let output = Output::Table;
            look(global, environment, ledger_namespace, (namespace, name), output, async |sources, question, _| {
                print(&ledger::adopt(sources, question, which, Consent::new(yes)).await)
            })
        }
    }
}

/// Has a question about one workload answered.
fn about_one(
    global: Global,
    environment: BTreeMap<String, String>,
    About { name, namespace, ledger_namespace }: About,
    answer: impl AsyncFnOnce(&Sources, &Question, &Hand) -> ExitCode,
) -> ExitCode {
    look(global, environment, ledger_namespace, (namespace, Some(name)), Output::Table, answer)
}

async fn answer_status(asked: &status::Asked<'_>, watch: bool, output: Output) -> ExitCode {
    if watch { status::watch(asked, output).await } else { print(&status::status(asked, output).await) }
}

/// Reads the configuration, connects with the caller's credentials, and has a question about `(namespace, name)` answered, also with the
/// hand that marks workloads.
fn look(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    (namespace, name): (Option<String>, Option<String>),
    output: Output,
    answer: impl AsyncFnOnce(&Sources, &Question, &Hand) -> ExitCode,
) -> ExitCode {
    let flags = ledger_flag(ledger_namespace).into_iter().collect();
    let kubernetes = global.kubernetes();
    with_inputs(global, environment, flags, |inputs| {
        actix::System::new().block_on(async {
            match sources(inputs, &kubernetes, namespace.as_deref(), output).await {
                Ok((sources, hand)) => answer(&sources, &Question { namespace, name }, &hand).await,
                Err(outcome) => print(&outcome),
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
