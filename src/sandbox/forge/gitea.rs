//! Gitea's rules (<https://docs.gitea.com/api>), also Forgejo's.

use serde_json::{Value, json};

use super::super::http::{Reply, Request};
use super::{Asked, ForgeHost, Pull, PullState, Refusal, State, below, json as reply, message, moment};

pub(super) fn answer(host: &ForgeHost, state: &mut State, request: &Request, document: Value) -> Reply {
    let proof = request.header("authorization").unwrap_or_default();
    if proof != format!("token {}", host.token) && proof != format!("Bearer {}", host.token) {
        return message(401, "user does not exist [uid: 0, name: ]");
    }
    let no_such = || message(404, "The target couldn't be found.");
    let Some(path) = below(request, &format!("/api/v1/repos/{}", host.repository)) else { return no_such() };
    let asked = Asked { request, path, document };
    match (request.method.as_str(), asked.path.as_slice()) {
        ("GET", ["pulls"]) => reply(200, &list(host, state, &asked)),
        ("POST", ["pulls"]) => create(host, state, &asked),
        ("GET", ["pulls", _]) => asked.found(state).map_or_else(no_such, |pull| reply(200, &shown(host, pull))),
        ("PATCH", ["pulls", _]) => {
            let Some(pull) = asked.changed(state) else { return no_such() };
            if asked.text("state").is_some() && pull.state == PullState::Merged {
                return message(412, "cannot change the state of a merged pull request");
            }
            asked.rewrite(pull, "body");
            if asked.text("state").as_deref() == Some("closed") {
                pull.state = PullState::Closed;
            }
            // Not 200, as its documentation says, too.
            reply(201, &shown(host, pull))
        }
        ("POST", ["statuses", _]) => asked.set_state(state, host.kind),
        ("GET", ["issues", _, "comments"]) => asked.comments(state, host.kind).unwrap_or_else(no_such),
        ("PATCH", ["issues", "comments", _]) => asked.rewrite_comment(state).unwrap_or_else(no_such),
        ("POST", ["issues", _, "comments"]) => asked.comment(state).unwrap_or_else(no_such),
        ("POST", ["issues", _, "labels"]) => asked.label(state).unwrap_or_else(no_such),
        ("POST", ["pulls", _, "requested_reviewers"]) => match asked.ask(state, &host.members) {
            Ok(()) => reply(201, &json!([])),
            Err(Some(user)) => message(404, &format!("user '{user}' does not exist")),
            Err(None) => no_such(),
        },
        ("POST", ["pulls", _, "merge"]) => {
            let Some(pull) = asked.changed(state) else { return no_such() };
            if asked.text("head_commit_id").is_some_and(|head| head != pull.commit) {
                return message(409, "head out of date");
            }
            let is_waiting =
                asked.document.get("merge_when_checks_succeed") == Some(&Value::Bool(true)) && !pull.is_clean;
            if is_waiting && pull.merge_later.is_some() {
                return message(409, "pull request is already scheduled to auto merge when checks succeed");
            }
            if is_waiting {
                pull.merge_later = asked.text("Do").map(|how| (how, pull.commit.clone()));
                return Reply::empty(201);
            }
            host.branches.merge(&pull.base, &pull.head);
            pull.state = PullState::Merged;
            Reply::empty(200)
        }
        _ => no_such(),
    }
}

/// There is no filter by branch.
fn list(host: &ForgeHost, state: &State, asked: &Asked<'_>) -> Value {
    let wanted = asked.query("state").unwrap_or("open");
    let is_wanted = |pull: &&Pull| wanted == "all" || pull.is_open() == (wanted == "open");
    let found = state.requests.iter().rev().filter(is_wanted).collect();
    asked.page(found, "limit", 30, 50).into_iter().map(|pull| shown(host, pull)).collect()
}

fn create(host: &ForgeHost, state: &mut State, asked: &Asked<'_>) -> Reply {
    let Some(wanted) = asked.wanted(["head", "base", "body"]) else { return message(422, "[Head]: Required") };
    match state.create(&*host.branches, host.kind, wanted) {
        Ok(pull) => reply(201, &shown(host, pull)),
        Err(Refusal::Duplicate(number)) => {
            message(409, &format!("pull request already exists for these targets [id: {number}, issue_id: {number}]"))
        }
        Err(Refusal::Empty) => message(422, "There are no changes between the head and the base"),
        Err(Refusal::NoHead | Refusal::NoBase) => message(404, "The target couldn't be found."),
    }
}

fn shown(host: &ForgeHost, pull: &Pull) -> Value {
    let is_here = host.branches.tip(&pull.head).is_some();
    let head = if is_here { pull.head.clone() } else { format!("refs/pull/{}/head", pull.number) };
    let of_head = if pull.from_fork { 2 } else { 1 };
    json!({
        "id": 1_000 + pull.number,
        "number": pull.number,
        "html_url": format!("https://gitea.example.com/{}/pulls/{}", host.repository, pull.number),
        "state": if pull.is_open() { "open" } else { "closed" },
        "merged": pull.state == PullState::Merged,
        "mergeable": true,
        "title": pull.title,
        "body": pull.body,
        "created_at": moment(pull.number),
        "head": {"label": pull.head, "ref": head, "sha": pull.commit, "repo_id": of_head},
        "base": {"label": pull.base, "ref": pull.base, "sha": host.branches.tip(&pull.base), "repo_id": 1},
    })
}
