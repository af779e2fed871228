//! Bitbucket Server's rules (<https://developer.atlassian.com/server/bitbucket/rest/v910/api-group-pull-requests/>).

use serde_json::{Value, json};

use super::super::http::{Reply, Request};
use super::{Asked, ForgeHost, Pull, PullState, Refusal, State, Wanted, below, json as reply, moment};

pub(super) fn answer(host: &ForgeHost, state: &mut State, request: &Request, document: Value) -> Reply {
    if request.header("authorization") != Some(&format!("Bearer {}", host.token)) {
        return refused(
            401,
            "Authentication failed. Please check your credentials and try again.",
            "IncorrectPasswordAuthenticationException",
        );
    }
    let (project, slug) = host.repository.split_once('/').unwrap_or_default();
    let Some(path) = below(request, &format!("/rest/api/1.0/projects/{project}/repos/{slug}")) else {
        return refused(404, &format!("Project {project} does not exist."), "NoSuchProjectException");
    };
    let asked = Asked { request, path, document };
    let no_such = || refused(404, "No pull request exists with this ID.", "NoSuchPullRequestException");
    let found = || asked.found(state);
    match (request.method.as_str(), asked.path.as_slice()) {
        ("GET", ["pull-requests"]) => reply(200, &list(host, state, &asked)),
        ("POST", ["pull-requests"]) => create(host, state, &asked),
        ("GET", ["pull-requests", _]) => found().map_or_else(no_such, |pull| reply(200, &shown(host, pull))),
        ("PUT", ["pull-requests", _]) => {
            let Some(now) = found().map(|pull| (pull.version, pull.number)) else { return no_such() };
            if asked.document.get("version").and_then(Value::as_u64) != Some(now.0) {
                return out_of_date();
            }
            let Some(pull) = state.changed(now.1) else { return no_such() };
            pull.title = asked.text("title").unwrap_or_else(|| pull.title.clone());
            // What a change leaves out is removed.
            pull.body = asked.text("description").unwrap_or_default();
            let reviewers = asked.document.get("reviewers").and_then(Value::as_array).into_iter().flatten();
            let named: Vec<&str> = reviewers.filter_map(|reviewer| reviewer.pointer("/user/name")?.as_str()).collect();
            if let Some(stranger) = named.iter().find(|name| !host.members.iter().any(|member| member == *name)) {
                let exception = "com.atlassian.bitbucket.pull.InvalidPullRequestReviewersException";
                return refused(409, &format!("{stranger} is not a user."), exception);
            }
            pull.reviewers = named.into_iter().map(str::to_owned).collect();
            reply(200, &shown(host, pull))
        }
        ("POST", ["pull-requests", _, "decline"]) => {
            let Some(now) = found().map(|pull| (pull.version, pull.number, pull.is_open())) else { return no_such() };
            let version = asked.query("version").map(str::to_owned).or_else(|| asked.text("version"));
            if version != Some(now.0.to_string()) {
                return out_of_date();
            }
            if !now.2 {
                return refused(409, "This pull request is not open.", "IllegalPullRequestStateException");
            }
            let Some(pull) = state.changed(now.1) else { return no_such() };
            pull.state = PullState::Closed;
            reply(200, &shown(host, pull))
        }
        ("POST", ["pull-requests", _, "comments"]) => {
            // A comment does not change the version.
            let Some(at) = found().map(|pull| pull.number) else { return no_such() };
            let pull = state.requests.iter_mut().find(|pull| pull.number == at);
            pull.into_iter().for_each(|pull| pull.comments.extend(asked.text("text")));
            reply(201, &json!({"id": 1, "text": asked.text("text")}))
        }
        _ => refused(404, "HTTP 404 Not Found", "NotFoundException"),
    }
}

fn list(host: &ForgeHost, state: &State, asked: &Asked<'_>) -> Value {
    let wanted = asked.query("state").unwrap_or("OPEN");
    let direction = asked.query("direction").unwrap_or("INCOMING");
    let is_wanted = |pull: &&Pull| {
        let at = if direction == "OUTGOING" { &pull.head } else { &pull.base };
        let is_here = direction != "OUTGOING" || !pull.from_fork;
        let is_at = asked.query("at").is_none_or(|branch| branch == format!("refs/heads/{at}"));
        is_here && is_at && (wanted == "ALL" || wanted == name(pull.state))
    };
    let mut found: Vec<&Pull> = state.requests.iter().filter(is_wanted).collect();
    if asked.query("order").unwrap_or("NEWEST") == "NEWEST" {
        found.reverse();
    }
    let page = asked.page(found, "limit", 25, 1_000);
    let values: Vec<Value> = page.into_iter().map(|pull| shown(host, pull)).collect();
    json!({"size": values.len(), "limit": 25, "isLastPage": true, "start": 0, "values": values})
}

fn create(host: &ForgeHost, state: &mut State, asked: &Asked<'_>) -> Reply {
    let branch = |side: &str| {
        let side = asked.document.get(side)?;
        side.pointer("/repository/project/key")?;
        side.get("id")?.as_str()?.strip_prefix("refs/heads/").map(str::to_owned)
    };
    let (Some(head), Some(base), Some(title)) = (branch("fromRef"), branch("toRef"), asked.text("title")) else {
        return refused(400, "The request names no branches.", "BadRequestException");
    };
    let body = asked.text("description").unwrap_or_default();
    match state.create(&*host.branches, host.kind, Wanted { head, base, title, body, draft: false }) {
        Ok(pull) => reply(201, &shown(host, pull)),
        Err(Refusal::Duplicate(_)) => {
            let words = "Only one pull request may be open for a given source and target branch";
            refused(409, words, "com.atlassian.bitbucket.pull.DuplicatePullRequestException")
        }
        Err(Refusal::Empty) => {
            let words =
                "Unable to create pull request as the source branch is already up-to-date with the target branch.";
            refused(409, words, "com.atlassian.bitbucket.pull.EmptyPullRequestException")
        }
        Err(Refusal::NoHead | Refusal::NoBase) => refused(
            404,
            "Repository does not have that branch.",
            "com.atlassian.bitbucket.commit.NoSuchCommitException",
        ),
    }
}

fn out_of_date() -> Reply {
    let words = "You are attempting to modify a pull request based on out-of-date information.";
    refused(409, words, "com.atlassian.bitbucket.pull.PullRequestOutOfDateException")
}

fn refused(status: u16, message: &str, exception: &str) -> Reply {
    reply(status, &json!({"errors": [{"context": null, "message": message, "exceptionName": exception}]}))
}

fn name(state: PullState) -> &'static str {
    match state {
        PullState::Open => "OPEN",
        PullState::Merged => "MERGED",
        PullState::Closed => "DECLINED",
    }
}

fn shown(host: &ForgeHost, pull: &Pull) -> Value {
    let (project, slug) = host.repository.split_once('/').unwrap_or_default();
    let side = |branch: &str, id: u64, commit: Option<&str>| {
        let repository = json!({"slug": slug, "id": id, "project": {"key": project}});
        json!({"id": format!("refs/heads/{branch}"), "displayId": branch, "latestCommit": commit, "repository": repository})
    };
    let reviewers =
        pull.reviewers.iter().map(|name| json!({"user": {"name": name}, "role": "REVIEWER", "approved": false}));
    let url = format!("https://bitbucket.example.com/projects/{project}/repos/{slug}/pull-requests/{}", pull.number);
    json!({
        "id": pull.number,
        "version": pull.version,
        "state": name(pull.state),
        "open": pull.is_open(),
        "closed": !pull.is_open(),
        "title": pull.title,
        "description": (!pull.body.is_empty()).then_some(&pull.body),
        "createdDate": moment(pull.number),
        "fromRef": side(&pull.head, if pull.from_fork { 2 } else { 1 }, Some(&pull.commit)),
        "toRef": side(&pull.base, 1, host.branches.tip(&pull.base).as_deref()),
        "reviewers": reviewers.collect::<Vec<_>>(),
        "links": {"self": [{"href": url}]},
    })
}
