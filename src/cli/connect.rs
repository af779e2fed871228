//! How a command gets to its cluster: by the configuration and with the caller's credentials.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::{self, Clients};
use crate::app;
use crate::cli::answer::{Outcome, Output, print, refused};
use crate::cli::arguments::Global;
use crate::cli::config;
use crate::config::{Config, InForce, Inputs, load, load_as_controller, read_file};
use crate::looking::{Sources, whose};

/// Where a pod finds the name of its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl Global {
    pub(super) fn kubernetes(&self) -> kubernetes::Options {
        kubernetes::Options { kubeconfig: self.kubeconfig.clone(), context: self.context.clone(), unattended: false }
    }
}

/// Connects with the caller's credentials, and has something done.
pub(super) fn connected(
    global: Global,
    environment: BTreeMap<String, String>,
    output: Output,
    done: impl AsyncFnOnce(&Config, &Clients) -> Outcome,
) -> ExitCode {
    let options = global.kubernetes();
    with_inputs(global, environment, BTreeMap::new(), |inputs| {
        actix::System::new().block_on(async {
            match clients(inputs, &options, output).await {
                Ok((config, clients)) => print(&done(&config, &clients).await),
                Err(outcome) => print(&outcome),
            }
        })
    })
}

/// The configuration as it was given, and the way to the cluster.
///
/// # Errors
/// What the command comes to instead.
pub(super) async fn clients(
    inputs: &Inputs<'_>,
    options: &kubernetes::Options,
    output: Output,
) -> Result<(Config, Clients), Outcome> {
    let loaded = load(inputs).map_err(|invalid| config::refused(&invalid, output))?;
    let clients = kubernetes::connect(options).await.map_err(|error| refused(&error))?;
    Ok((loaded.config, clients))
}

/// All that is looked at, by the configuration in force, of `namespace` or of all; and the hand that marks workloads.
///
/// # Errors
/// What the command comes to instead.
pub(super) async fn sources(
    inputs: &Inputs<'_>,
    options: &kubernetes::Options,
    namespace: Option<&str>,
    output: Output,
) -> Result<(Sources, Hand), Outcome> {
    let loaded = load(inputs).map_err(|invalid| config::refused(&invalid, output))?;
    let clients = kubernetes::connect(options).await.map_err(|error| refused(&error))?;
    let hand = Hand::new(&clients);
    let reload = |in_force: &InForce| load_as_controller(inputs, in_force);
    let (loaded, whose) = whose::in_force(loaded, &clients, reload).await;
    let sources = app::sources::sources(&loaded.config, clients, namespace, whose).await;
    sources.map(|sources| (sources, hand)).map_err(|error| refused(&error))
}

/// Has something done with all that the configuration is read from.
pub(super) fn with_inputs(
    global: Global,
    environment: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
    then: impl FnOnce(&Inputs<'_>) -> ExitCode,
) -> ExitCode {
    let service_account_namespace = std::fs::read_to_string(NAMESPACE_FILE).ok();
    then(&Inputs { file: global.config, environment, flags, service_account_namespace, read: &read_file })
}

/// `--ledger-namespace`, as the configuration has it.
pub(super) fn ledger_flag(namespace: Option<String>) -> Option<(String, String)> {
    namespace.map(|namespace| ("ledger.namespace".to_owned(), namespace))
}
