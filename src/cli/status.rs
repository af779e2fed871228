//! `allclear status [-w] [-n NAMESPACE] [--server URL]`: every rollout in flight, what it waits for, in every member of the
//! group, and how the boards are.
//!
//! Recomputed from the API server, the ledger and the boards with the caller's own credentials, as `explain` does, so it also
//! answers when no allclear runs; or, with `--server`, asked of a running one. Both come to the same JSON, that of
//! `/api/v1/state`, and are printed from it ([`shown`]).

pub(crate) mod remote;
mod shown;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::answer::{EXIT_FAILED, Outcome, Output, refused};
use crate::http::state_json;
use crate::looking::Sources;
use crate::looking::state::{State, state};
use kernel::text::{visible_json, visible_lines};
use shown::Shown;

/// How often a watched status is drawn again.
const DRAWN_EVERY: Duration = Duration::from_secs(2);

/// Clears a terminal and begins at its top (ECMA-48, ED and CUP).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

pub enum Asked<'a> {
    /// The cluster, the ledger and the boards, of one namespace if one is given.
    Sources(&'a Sources, Option<&'a str>),
    /// A running allclear, by its address.
    Server(&'a url::Url, Option<&'a str>),
}

/// The status once. Exit codes: 0 known, 1 not all of it could be read.
pub async fn status(asked: &Asked<'_>, output: Output) -> Outcome {
    let (state, complete) = match asked {
        Asked::Sources(sources, namespace) => {
            let state = state(sources, *namespace).await;
            (json(&state, sources.whose.line()), state.seen.synced)
        }
        Asked::Server(url, namespace) => match remote::state(url, *namespace).await {
            Ok(state) => (state, true),
            Err(why) => return refused(&why),
        },
    };
    answer(&state, output, if complete { 0 } else { EXIT_FAILED })
}

/// The status again and again until Ctrl-C: drawn over the last one on a terminal, else one after the other.
pub async fn watch(asked: &Asked<'_>, output: Output) -> ExitCode {
    let clears = output == Output::Table && io::stdout().is_terminal();
    loop {
        let again = async {
            let Outcome { out, err, .. } = status(asked, output).await;
            let (out, err) = (visible_lines(&out), visible_lines(&err));
            let drawn =
                if clears { format!("{CLEAR}{out}{err}\nevery 2 s; Ctrl-C ends it\n") } else { format!("{out}\n") };
            let mut stdout = io::stdout().lock();
            if stdout.write_all(drawn.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                return false;
            }
            if !clears {
                let _ = io::stderr().write_all(err.as_bytes());
            }
            true
        };
        let ended = async {
            if !again.await {
                return;
            }
            tokio::time::sleep(DRAWN_EVERY).await;
        };
        tokio::select! {
            () = ended => {}
            _ = tokio::signal::ctrl_c() => return ExitCode::SUCCESS,
        }
    }
}

/// What `--server` prints of an answer, of one namespace if one is given; `None` where the answer is no JSON.
pub fn printed(said: &[u8], namespace: Option<&str>, output: Output) -> Option<Outcome> {
    Some(answer(&remote::read(said, namespace)?, output, 0))
}

/// As `/api/v1/state` has it, with the source of the settings, and with boards that are no group's.
fn json(State { about, seen, boards, ledger_read }: &State, settings: Option<String>) -> Value {
    let mut state = state_json(about, seen);
    if let Some(fields) = state.as_object_mut() {
        fields.extend(settings.map(|settings| ("settings".to_owned(), json!(settings))));
        fields.extend(boards.as_ref().map(|boards| ("boards".to_owned(), json!(boards))));
        if !ledger_read {
            fields.remove("workloads");
        }
    }
    state
}

fn answer(state: &Value, output: Output, code: u8) -> Outcome {
    let out = match output {
        Output::Json => visible_json(&format!("{state:#}\n")).into_owned(),
        Output::Table => match serde_json::from_value::<Shown>(state.clone()) {
            Ok(shown) => shown.to_string(),
            Err(error) => {
                let err =
                    format!("error: the state is of another form than this version knows: {error}; -o json shows it\n");
                return Outcome { out: String::new(), err, code: EXIT_FAILED };
            }
        },
    };
    Outcome { out, err: String::new(), code }
}
