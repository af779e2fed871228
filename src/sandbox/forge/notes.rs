//! States of commits, and comments on requests, as GitHub, GitLab and Gitea have them.

use serde_json::{Value, json};

use super::super::http::Reply;
use super::{Asked, ForgeHost, Kind, Pull, State, json as reply, message};

/// The state of a commit, as it was set once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitState {
    pub commit: String,
    pub name: String,
    pub state: String,
    pub words: String,
}

/// So far apart are the numbers of comments on two requests.
const OF_ONE: u64 = 100_000;

impl ForgeHost {
    /// All states that were set, oldest first.
    pub fn states(&self) -> Vec<CommitState> {
        self.lock().states.clone()
    }
}

impl Asked<'_> {
    /// Sets the state of a commit. GitLab refuses the one that is set already.
    pub(super) fn set_state(&self, state: &mut State, kind: Kind) -> Reply {
        let key = if kind == Kind::GitLab { "name" } else { "context" };
        let known: &[&str] = match kind {
            Kind::GitLab => &["pending", "running", "success", "failed", "canceled"],
            _ => &["pending", "success", "error", "failure"],
        };
        let (Some(commit), Some(name), Some(wanted)) = (self.path.get(1), self.text(key), self.text("state")) else {
            return message(422, "Validation Failed");
        };
        if !known.contains(&wanted.as_str()) {
            return message(422, "Validation Failed");
        }
        let words = self.text("description").unwrap_or_default();
        let newest = state.states.iter().rev().find(|one| one.commit == *commit && one.name == name);
        if kind == Kind::GitLab && newest.is_some_and(|one| one.state == wanted && wanted == "pending") {
            return message(400, "Cannot transition status via :enqueue from :pending");
        }
        state.states.push(CommitState { commit: (*commit).to_owned(), name, state: wanted, words });
        reply(201, &json!({"id": state.states.len()}))
    }

    /// The requests that contain a commit, also those that have ended.
    pub(super) fn of_commit<'a>(&self, state: &'a State, commit: &str) -> Vec<&'a Pull> {
        let found = state.requests.iter().filter(|pull| pull.commit == commit || pull.body.contains(commit));
        self.page(found.collect(), "per_page", 20, 100)
    }

    /// The comments on a request, oldest first; in pages, but for Gitea.
    pub(super) fn comments(&self, state: &State, kind: Kind) -> Option<Reply> {
        let pull = self.found(state)?;
        let numbered = (1..).zip(&pull.comments);
        let all: Vec<Value> =
            numbered.map(|(at, body)| json!({"id": pull.number * OF_ONE + at, "body": body})).collect();
        let shown = if kind == Kind::Gitea { all } else { self.page(all, "per_page", 20, 100) };
        Some(reply(200, &shown.into()))
    }

    /// Gives the comment that the end of the path names another text.
    pub(super) fn rewrite_comment(&self, state: &mut State) -> Option<Reply> {
        let id: u64 = self.path.last()?.parse().ok()?;
        let at = usize::try_from(id % OF_ONE).ok()?.checked_sub(1)?;
        let comment = state.changed(id / OF_ONE)?.comments.get_mut(at)?;
        *comment = self.text("body")?;
        Some(reply(200, &json!({"id": id, "body": comment})))
    }
}
