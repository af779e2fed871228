//! GitHub's rules (<https://docs.github.com/en/rest/pulls/pulls>).

use serde_json::{Value, json};

use super::super::http::{Reply, Request};
use super::{Asked, ForgeHost, Pull, PullState, Refusal, State, below, json as reply, marked, message, moment};

pub(super) fn answer(host: &ForgeHost, state: &mut State, request: &Request, document: Value) -> Reply {
    if request.header("user-agent").is_none() {
        return message(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header",
        );
    }
    // These come with a proof of their own.
    if request.path.starts_with("/api/v3/app/") || request.path.ends_with("/installation") {
        return host.judged(request).unwrap_or_else(|| message(404, "Not Found"));
    }
    let proof = request.header("authorization").unwrap_or_default();
    if proof != format!("Bearer {}", host.token) && proof != format!("token {}", host.token) {
        return message(401, "Bad credentials");
    }
    if request.path == "/api/graphql" {
        return merge_later(state, &document);
    }
    let Some(path) = below(request, &format!("/api/v3/repos/{}", host.repository)) else {
        return message(404, "Not Found");
    };
    let asked = Asked { request, path, document };
    let no_such = || message(404, "Not Found");
    match (request.method.as_str(), asked.path.as_slice()) {
        ("GET", ["pulls"]) => reply(200, &list(host, state, &asked)),
        ("POST", ["pulls"]) => create(host, state, &asked),
        ("GET", ["pulls", _]) => asked.found(state).map_or_else(no_such, |pull| marked(request, &shown(host, pull))),
        ("PATCH", ["pulls", _]) => {
            let Some(pull) = asked.changed(state) else { return no_such() };
            asked.rewrite(pull, "body");
            if asked.text("state").as_deref() == Some("closed") && pull.is_open() {
                pull.state = PullState::Closed;
            }
            reply(200, &shown(host, pull))
        }
        ("POST", ["statuses", _]) => asked.set_state(state, host.kind),
        ("GET", ["commits", commit, "pulls"]) => {
            reply(200, &asked.of_commit(state, commit).into_iter().map(|pull| shown(host, pull)).collect())
        }
        ("GET", ["issues", _, "comments"]) => asked.comments(state, host.kind).unwrap_or_else(no_such),
        ("PATCH", ["issues", "comments", _]) => asked.rewrite_comment(state).unwrap_or_else(no_such),
        ("POST", ["issues", _, "comments"]) => asked.comment(state).unwrap_or_else(no_such),
        ("POST", ["issues", _, "labels"]) => asked.label(state).unwrap_or_else(no_such),
        ("POST", ["pulls", _, "requested_reviewers"]) => match asked.ask(state, &host.members) {
            Ok(()) => asked.found(state).map_or_else(no_such, |pull| reply(201, &shown(host, pull))),
            Err(Some(_)) => message(
                422,
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the shop/web repository.",
            ),
            Err(None) => no_such(),
        },
        _ => no_such(),
    }
}

/// The only mutation that is known. A refusal is an answer with errors.
fn merge_later(state: &mut State, document: &Value) -> Reply {
    let refused = |words: &str| {
        reply(200, &json!({"data": Value::Null, "errors": [{"type": "UNPROCESSABLE", "message": words}]}))
    };
    let text = |name: &str| document.pointer(&format!("/variables/{name}")).and_then(Value::as_str).unwrap_or_default();
    let is_known = document
        .get("query")
        .and_then(Value::as_str)
        .is_some_and(|query| query.contains("enablePullRequestAutoMerge("));
    let number = text("pull").strip_prefix("PR_").and_then(|number| number.parse().ok());
    let Some(pull) = number.and_then(|number| state.changed(number)).filter(|_| is_known) else {
        return refused("Could not resolve to a node with the global id");
    };
    if pull.is_clean {
        return refused("Pull request Pull request is in clean status");
    }
    if pull.commit != text("head") {
        return refused("Head branch was modified. Review and try the merge again.");
    }
    pull.merge_later = Some((text("how").to_owned(), text("head").to_owned()));
    reply(200, &json!({"data": {"enablePullRequestAutoMerge": {"clientMutationId": Value::Null}}}))
}

fn list(host: &ForgeHost, state: &State, asked: &Asked<'_>) -> Value {
    let wanted = asked.query("state").unwrap_or("open");
    let is_wanted = |pull: &&Pull| {
        // A filter without an owner is ignored.
        let head = asked.query("head").filter(|head| head.contains(':'));
        (wanted == "all" || pull.is_open() == (wanted == "open"))
            && head.is_none_or(|head| head == format!("{}:{}", owner(host), pull.head))
            && asked.query("base").is_none_or(|base| base == pull.base)
    };
    let mut found: Vec<&Pull> = state.requests.iter().filter(is_wanted).collect();
    if asked.query("direction").unwrap_or("desc") == "desc" {
        found.reverse();
    }
    asked.page(found, "per_page", 30, 100).into_iter().map(|pull| shown(host, pull)).collect()
}

fn create(host: &ForgeHost, state: &mut State, asked: &Asked<'_>) -> Reply {
    let Some(wanted) = asked.wanted(["head", "base", "body"]) else { return message(422, "Validation Failed") };
    let (head, base) = (wanted.head.clone(), wanted.base.clone());
    let refused = |errors: Value| {
        let documentation = "https://docs.github.com/rest/pulls/pulls#create-a-pull-request";
        reply(422, &json!({"message": "Validation Failed", "errors": [errors], "documentation_url": documentation}))
    };
    let custom = |message: String| refused(json!({"resource": "PullRequest", "code": "custom", "message": message}));
    match state.create(&*host.branches, host.kind, wanted) {
        Ok(pull) => reply(201, &shown(host, pull)),
        Err(Refusal::Duplicate(_)) => custom(format!("A pull request already exists for {}:{head}.", owner(host))),
        Err(Refusal::Empty) => custom(format!("No commits between {base} and {head}")),
        Err(Refusal::NoHead) => refused(json!({"resource": "PullRequest", "field": "head", "code": "invalid"})),
        Err(Refusal::NoBase) => refused(json!({"resource": "PullRequest", "field": "base", "code": "invalid"})),
    }
}

fn owner(host: &ForgeHost) -> &str {
    host.repository.split('/').next().unwrap_or_default()
}

fn shown(host: &ForgeHost, pull: &Pull) -> Value {
    let repository = |id: u64, owner: &str| json!({"id": id, "full_name": host.repository, "owner": {"login": owner}});
    // A fork may belong to the same organization: then no filter by owner tells it apart.
    let of_head = repository(if pull.from_fork { 2 } else { 1 }, owner(host));
    json!({
        "id": 1_000 + pull.number,
        "number": pull.number,
        "html_url": format!("https://github.example.com/{}/pull/{}", host.repository, pull.number),
        "state": if pull.is_open() { "open" } else { "closed" },
        "title": pull.title,
        "body": if pull.body.is_empty() { Value::Null } else { Value::from(pull.body.as_str()) },
        "draft": pull.draft,
        "node_id": format!("PR_{}", pull.number),
        "created_at": moment(pull.number),
        "merged_at": (pull.state == PullState::Merged).then(|| moment(pull.number + 1)),
        "head": {"ref": pull.head, "sha": pull.commit, "label": format!("{}:{}", owner(host), pull.head), "repo": of_head},
        "base": {"ref": pull.base, "sha": host.branches.tip(&pull.base), "repo": repository(1, owner(host))},
    })
}
