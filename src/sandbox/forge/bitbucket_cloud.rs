//! Bitbucket Cloud's rules (<https://developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests/>).
//!
//! What others met there and its documents do not say: a second request between the same branches changes the first one, and a change
//! without reviewers removes them (<https://github.com/renovatebot/renovate/blob/main/lib/modules/platform/bitbucket/index.ts>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::http::{Reply, Request};
use super::{Asked, ForgeHost, Pull, PullState, Refusal, State, Wanted, below, json as reply, moment};

/// The e-mail address of the account whose API token opens it, too.
pub const EMAIL: &str = "ann@example.com";

/// The UUID of a member's account, without braces.
pub fn account(name: &str) -> String {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("504c3b62-8120-4f0c-a7bc-{digits:0>12.12}")
}

pub(super) fn answer(host: &ForgeHost, state: &mut State, request: &Request, document: Value) -> Reply {
    let proofs =
        [format!("Bearer {}", host.token), format!("Basic {}", STANDARD.encode(format!("{EMAIL}:{}", host.token)))];
    if !request.header("authorization").is_some_and(|proof| proofs.iter().any(|known| known == proof)) {
        return refused(401, "Token is invalid, expired, or not supported for this endpoint.");
    }
    let Some(path) = below(request, &format!("/2.0/repositories/{}", host.repository)) else {
        return refused(404, "You may not have access to this repository or it no longer exists in this workspace.");
    };
    let asked = Asked { request, path, document };
    let no_such = || refused(404, "No PullRequest matches the given query.");
    let found = || asked.found(state);
    match (request.method.as_str(), asked.path.as_slice()) {
        ("GET", ["pullrequests"]) => list(host, state, &asked),
        ("POST", ["pullrequests"]) => create(host, state, &asked),
        ("GET", ["pullrequests", _]) => found().map_or_else(no_such, |pull| reply(200, &shown(host, pull, true))),
        ("PUT", ["pullrequests", _]) => {
            let Some((number, is_open)) = found().map(|pull| (pull.number, pull.is_open())) else { return no_such() };
            if !is_open {
                return refused(400, "This pull request is already closed.");
            }
            let reviewers = match reviewers(host, &asked) {
                Ok(reviewers) => reviewers,
                Err(refusal) => return refusal,
            };
            let Some(pull) = state.changed(number) else { return no_such() };
            asked.rewrite(pull, "description");
            pull.reviewers = reviewers;
            pull.draft = asked.document.get("draft").and_then(Value::as_bool).unwrap_or_default();
            reply(200, &shown(host, pull, true))
        }
        ("POST", ["pullrequests", _, "decline"]) => {
            let Some((number, is_open)) = found().map(|pull| (pull.number, pull.is_open())) else { return no_such() };
            if !is_open {
                return refused(400, "This pull request is already closed.");
            }
            let Some(pull) = state.changed(number) else { return no_such() };
            pull.state = PullState::Closed;
            reply(200, &shown(host, pull, true))
        }
        ("POST", ["pullrequests", _, "comments"]) => {
            let Some(number) = found().map(|pull| pull.number) else { return no_such() };
            let words = asked.document.pointer("/content/raw").and_then(Value::as_str).map(str::to_owned);
            let Some(words) = words else { return refused(400, "content.raw: required key not provided") };
            state.changed(number).into_iter().for_each(|pull| pull.comments.push(words.clone()));
            reply(201, &json!({"id": 1, "content": {"raw": words}}))
        }
        _ => refused(404, "Resource not found"),
    }
}

/// The reviewers that a document names: all of them, or none.
fn reviewers(host: &ForgeHost, asked: &Asked<'_>) -> Result<Vec<String>, Reply> {
    let named = asked.document.get("reviewers").and_then(Value::as_array).into_iter().flatten();
    let member = |uuid: &str| host.members.iter().find(|name| uuid == format!("{{{}}}", account(name))).cloned();
    let known: Option<Vec<String>> = named.map(|one| member(one.get("uuid")?.as_str()?)).collect();
    known.ok_or_else(|| refused(400, "reviewers: Malformed reviewers list"))
}

/// The only question that is understood: between these two branches.
fn list(host: &ForgeHost, state: &State, asked: &Asked<'_>) -> Reply {
    let between = asked.query("q").and_then(|q| {
        let (head, base) = q.strip_prefix("source.branch.name=\"")?.split_once("\" AND destination.branch.name=\"")?;
        Some((head, base.strip_suffix('"')?))
    });
    let Some((head, base)) = between else { return refused(400, "q: unknown field") };
    let states: Vec<&str> = asked.request.raw_query.split('&').filter_map(|pair| pair.strip_prefix("state=")).collect();
    let is_wanted = |pull: &&Pull| {
        let is_state = if states.is_empty() { pull.is_open() } else { states.contains(&name(pull.state)) };
        is_state && pull.head == head && pull.base == base
    };
    let mut found: Vec<&Pull> = state.requests.iter().filter(is_wanted).collect();
    if asked.query("sort") == Some("-created_on") {
        found.reverse();
    }
    let page = asked.page(found, "pagelen", 10, 50);
    let values: Vec<Value> = page.into_iter().map(|pull| shown(host, pull, false)).collect();
    reply(200, &json!({"size": values.len(), "page": 1, "pagelen": 50, "values": values}))
}

fn create(host: &ForgeHost, state: &mut State, asked: &Asked<'_>) -> Reply {
    let branch = |side: &str| asked.document.pointer(&format!("/{side}/branch/name"))?.as_str().map(str::to_owned);
    let (Some(head), Some(base), Some(title)) = (branch("source"), branch("destination"), asked.text("title")) else {
        return refused(400, "title: required key not provided");
    };
    let reviewers = match reviewers(host, asked) {
        Ok(reviewers) => reviewers,
        Err(refusal) => return refusal,
    };
    let body = asked.text("description").unwrap_or_default();
    let draft = asked.document.get("draft").and_then(Value::as_bool).unwrap_or_default();
    let number = match state.create(&*host.branches, host.kind, Wanted { head, base, title, body, draft }) {
        Ok(pull) => pull.number,
        Err(Refusal::Duplicate(number)) => number,
        Err(Refusal::Empty) => return refused(400, "There are no changes to be pulled"),
        Err(Refusal::NoHead) => return refused(400, "source: branch not found"),
        Err(Refusal::NoBase) => return refused(400, "destination: branch not found"),
    };
    let Some(pull) = state.changed(number) else { return refused(400, "Bad request") };
    asked.rewrite(pull, "description");
    pull.reviewers = reviewers;
    reply(201, &shown(host, pull, true))
}

fn refused(status: u16, message: &str) -> Reply {
    reply(status, &json!({"type": "error", "error": {"message": message}}))
}

fn name(state: PullState) -> &'static str {
    match state {
        PullState::Open => "OPEN",
        PullState::Merged => "MERGED",
        PullState::Closed => "DECLINED",
    }
}

/// A list has no reviewers, and both say only the first digits of a commit.
fn shown(host: &ForgeHost, pull: &Pull, is_whole: bool) -> Value {
    let side = |branch: &str, repository: &str, commit: Option<&str>| {
        let commit = commit.and_then(|commit| commit.get(..12)).map(|hash| json!({"type": "commit", "hash": hash}));
        json!({"branch": {"name": branch}, "repository": {"full_name": repository}, "commit": commit})
    };
    let from = if pull.from_fork { "eve/web" } else { host.repository.as_str() };
    let mut shown = json!({
        "type": "pullrequest",
        "id": pull.number,
        "state": name(pull.state),
        "draft": pull.draft,
        "title": pull.title,
        "description": pull.body,
        "created_on": moment(pull.number),
        "close_source_branch": false,
        "source": side(&pull.head, from, Some(&pull.commit)),
        "destination": side(&pull.base, &host.repository, host.branches.tip(&pull.base).as_deref()),
        "links": {"html": {"href": format!("https://bitbucket.org/{}/pull-requests/{}", host.repository, pull.number)}},
    });
    let accounts =
        pull.reviewers.iter().map(|name| json!({"uuid": format!("{{{}}}", account(name)), "display_name": name}));
    if is_whole && let Some(fields) = shown.as_object_mut() {
        fields.insert("reviewers".to_owned(), accounts.collect());
    }
    shown
}
