//! Why a command about an object of ours does not do what was asked.

use objects::pipeline::choosing::{Refusal, Untaken};
use purge::ports::PortError;

/// In words for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Port(#[from] PortError),
    /// The cluster does not have the kind.
    #[error("{0}")]
    NoKind(&'static str),
    #[error("there is no {kind} {name}; `allclear {command} list` shows those there are")]
    Missing { kind: &'static str, name: String, command: &'static str },
    #[error("{0} was made anew meanwhile")]
    MadeAnew(String),

    /// A running allclear did not say.
    #[error("{0}")]
    Server(String),
    #[error("the state is of another form than this version knows: {0}")]
    Form(serde_json::Error),
    #[error("this allclear looks at no {kind}s: it stands by, {command}.enabled is off, or the cluster lacks the kind")]
    NotLooking { kind: &'static str, command: &'static str },
    #[error("this allclear knows no {kind} {name}")]
    Unknown { kind: &'static str, name: String },

    #[error("{pipeline} has no environment {name:?}; it has {}", .has.join(", "))]
    NoEnvironment { pipeline: String, name: String, has: Vec<String> },
    #[error("nothing was changed: {what}; {}", instead(.waits.as_deref()))]
    NotAsking { what: String, waits: Option<String> },
    #[error("nothing was changed: {0}")]
    NotChosen(#[from] Refusal),
    #[error("nothing was changed: {0}")]
    Untaken(#[from] Untaken),
    #[error("nothing was changed: the open question has another ticket, {ticket}: {words}")]
    OtherTicket { ticket: String, words: String },
    #[error("nothing was changed: a yes names who says it, and that cannot be found out: {0}")]
    NoUser(PortError),
    #[error("nothing was changed: the question moved on while you were asked. {0}")]
    MovedOn(String),
    #[error("nothing was changed: {name} changed {times} times meanwhile; try again")]
    Changing { name: String, times: usize },

    /// Nothing asks whether it is destroyed.
    #[error(
        "nothing was changed: {0} is not being deleted, or nothing keeps it; `onDelete: Keep` in its spec says beforehand that \
         nothing is destroyed"
    )]
    NotLeaving(String),
    #[error("{0} has not run a Job yet")]
    NoJob(String),
    #[error("no pod of Job {0} is there any more, and its log went with it")]
    NoPod(String),
    #[error("{error}; `{command}` reads the same")]
    Log { error: PortError, command: String },
}

fn instead(waits: Option<&str>) -> String {
    waits.map_or_else(|| "it waits for nothing".to_owned(), |waits| format!("it waits for something else: {waits}"))
}
