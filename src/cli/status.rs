//! `allclear status [-w] [-n NAMESPACE] [--server URL]`: every rollout in flight, what it waits for, in every member of the
//! group, and how the boards are.
//!
//! Recomputed from the API server, the ledger and the boards with the caller's own credentials, as `explain` does, so it also
//! answers when no allclear runs; or, with `--server`, asked of a running one. Both come to the same JSON, that of
//! `/api/v1/state`, and are printed from it ([`shown`]).

pub(crate) mod remote;
mod shown;
mod watch;

use serde_json::{Value, json};

use crate::cli::answer::{EXIT_FAILED, Outcome, Output, both, refused};
use crate::http::state_json;
use crate::looking::Sources;
use crate::looking::layout::Screen;
use crate::looking::state::{State, state};
use kernel::text::visible_json;
use shown::Shown;

pub use watch::watch;

pub enum Asked<'a> {
    /// The cluster, the ledger and the boards, of one namespace if one is given.
    Sources(&'a Sources, Option<&'a str>),
    /// A running allclear, by its address.
    Server(&'a url::Url, Option<&'a str>),
}

/// The status once. Exit codes: 0 known, 1 not all of it could be read.
pub async fn status(asked: &Asked<'_>, output: Output) -> Outcome {
    match read(asked).await {
        Ok((state, complete)) => answer(&state, output, if complete { 0 } else { EXIT_FAILED }),
        Err(why) => refused(&why),
    }
}

/// The state, and whether that is all of it.
async fn read(asked: &Asked<'_>) -> Result<(Value, bool), String> {
    match asked {
        Asked::Sources(sources, namespace) => {
            let state = state(sources, *namespace).await;
            Ok((json(&state, sources.whose.line()), state.seen.synced))
        }
        Asked::Server(url, namespace) => remote::state(url, *namespace).await.map(|state| (state, true)),
    }
}

/// What `--server` prints of an answer, of one namespace if one is given; `None` where the answer is no JSON.
pub fn printed(said: &[u8], namespace: Option<&str>, output: Output) -> Option<Outcome> {
    Some(answer(&remote::read(said, namespace)?, output, 0))
}

/// As `/api/v1/state` has it, with the source of the settings, the pods of what rolls out, and with boards that are no group's.
fn json(State { about, seen, boards, pods, ledger_read }: &State, settings: Option<String>) -> Value {
    let mut state = state_json(about, seen);
    if let Some(fields) = state.as_object_mut() {
        fields.extend(settings.map(|settings| ("settings".to_owned(), json!(settings))));
        fields.extend(boards.as_ref().map(|boards| ("boards".to_owned(), json!(boards))));
        if !pods.is_empty() {
            fields.insert("pods".to_owned(), json!(pods));
        }
        if !ledger_read {
            fields.remove("workloads");
        }
    }
    state
}

fn answer(state: &Value, output: Output, code: u8) -> Outcome {
    let text = |screen: Screen| serde_json::from_value::<Shown>(state.clone()).map(|shown| screen.draw(&shown));
    let out = match output {
        Output::Json => Ok(visible_json(&format!("{state:#}\n")).into_owned()),
        Output::Table => text(Screen::default()),
        Output::Drawn(screen) => text(screen),
        Output::Both => text(Screen::default()).map(|text| both(&text, state)),
    };
    match out {
        Ok(out) => Outcome { out, err: String::new(), code },
        Err(error) => {
            let err =
                format!("error: the state is of another form than this version knows: {error}; -o json shows it\n");
            Outcome { out: String::new(), err, code: EXIT_FAILED }
        }
    }
}
