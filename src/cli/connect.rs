//! How a command gets to its cluster: by the configuration and with the caller's credentials.

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::adapters::kubernetes::{self, Clients};
use crate::cli::answer::{Outcome, Output, failed, print};
use crate::cli::arguments::Global;
use crate::cli::config;
use crate::config::{Config, Inputs, load, read_file};

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
        let loaded = match load(inputs) {
            Ok(loaded) => loaded,
            Err(invalid) => return print(&config::refused(&invalid, output)),
        };
        actix::System::new().block_on(async {
            match kubernetes::connect(&options).await {
                Ok(clients) => print(&done(&loaded.config, &clients).await),
                Err(error) => failed(&error),
            }
        })
    })
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
