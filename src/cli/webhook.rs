//! `allclear webhook list|test|resend`: what was asked for, by its arguments.
//!
//! Not for what is sent and how; a test goes through `adapters::webhook`, as notices do, and a delivery that is asked for again is sent by
//! the running allclear.

mod list;
mod resend;
mod test;

use std::collections::BTreeMap;
use std::process::ExitCode;

use crate::adapters::clock::SystemClock;
use crate::adapters::webhook::Webhooks;
use crate::app;
use crate::cli::answer::{Outcome, Output, failed, invalid, print, refused};
use crate::cli::arguments::{Global, WebhookAction};
use crate::cli::config;
use crate::cli::connect::{ledger_flag, with_inputs};
use crate::config::{Config, load};
use crate::looking::Question;
use purge::ports::Clock;

/// What a person does who wants to know what the running allclear has.
const ELSEWHERE: &str = "the running allclear has its own: `kubectl -n allclear exec deploy/allclear -- allclear webhook list`, or --server with the \
                         address of its status page";

pub(super) fn webhook(global: Global, environment: BTreeMap<String, String>, action: WebhookAction) -> ExitCode {
    match action {
        WebhookAction::List { server: Some(url), output, .. } => {
            actix::System::new().block_on(async { print(&list::of_server(&url, output.into()).await) })
        }
        WebhookAction::List { server: None, ledger_namespace, output } => {
            let output = output.into();
            with_config(global, environment, ledger_namespace, output, async |config, webhooks, kubernetes| {
                let looked = app::sources::connected(config, kubernetes, None).await;
                let sources = looked.map(|(sources, _)| sources).map_err(|error| error.to_string());
                let file = config.webhooks.file.as_deref();
                print(&list::of_configuration(webhooks, file, sources, output).await)
            })
        }
        WebhookAction::Test { receiver, unmarked, output } => {
            let output = output.into();
            with_config(global, environment, None, output, async |_, webhooks, _| {
                print(&test::test(webhooks, receiver.as_deref(), unmarked, output).await)
            })
        }
        WebhookAction::Resend { name, namespace, ledger_namespace, all: _, receiver, event, now } => {
            let request = resend::Request { receiver, event, now };
            with_config(global, environment, ledger_namespace, Output::Table, async |config, webhooks, kubernetes| {
                let (sources, hand) = match app::sources::connected(config, kubernetes, namespace.as_deref()).await {
                    Ok(connected) => connected,
                    Err(error) => return failed(&error),
                };
                let question = Question { namespace, name };
                let configured: Vec<String> = webhooks.hooks().map(|(name, _)| name.to_owned()).collect();
                let at_ms = SystemClock::default().wall_ms();
                print(&resend::resend((&sources, &question, &hand), &configured, &request, at_ms).await)
            })
        }
    }
}

/// Reads the configuration, and has something done with its receivers.
fn with_config(
    global: Global,
    environment: BTreeMap<String, String>,
    ledger_namespace: Option<String>,
    output: Output,
    then: impl AsyncFnOnce(&Config, &Webhooks, &crate::adapters::kubernetes::Options) -> ExitCode,
) -> ExitCode {
    let kubernetes = global.kubernetes();
    with_inputs(global, environment, ledger_flag(ledger_namespace).into_iter().collect(), |inputs| {
        let loaded = match load(inputs) {
            Ok(loaded) => loaded,
            Err(invalid) => return print(&config::refused(&invalid, output)),
        };
        actix::System::new().block_on(async {
            match app::receivers(&loaded.config) {
                Ok(webhooks) => then(&loaded.config, &webhooks, &kubernetes).await,
                Err(error) => failed(&error),
            }
        })
    })
}

/// There is no receiver of this name.
fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Outcome {
    let known: Vec<&str> = known.into_iter().collect();
    let words = if known.is_empty() {
        format!("there is no receiver {name:?}: no webhook is configured here; {ELSEWHERE}")
    } else {
        format!("there is no receiver {name:?}; there are {}", known.join(", "))
    };
    invalid(&words)
}

/// Nothing is configured here.
fn none_here() -> Outcome {
    refused(&format!("no webhook is configured here (webhooks.file, WEBHOOKS_CONFIG); {ELSEWHERE}"))
}
