//! GitLab's rules (<https://docs.gitlab.com/api/merge_requests/>).

use serde_json::{Value, json};

use super::super::http::{Reply, Request};
use super::{Asked, ForgeHost, Pull, PullState, Refusal, State, add, below, json as reply, marked, message, moment};

pub(super) fn answer(host: &ForgeHost, state: &mut State, request: &Request, document: Value) -> Reply {
    let proof = [request.header("private-token"), request.header("authorization")].map(Option::unwrap_or_default);
    if proof[0] != host.token && proof[1] != format!("Bearer {}", host.token) {
        return message(401, "401 Unauthorized");
    }
    let project = host.repository.replace('/', "%2F");
    let Some(path) = below(request, &format!("/api/v4/projects/{project}")) else {
        return message(404, "404 Project Not Found");
    };
    let asked = Asked { request, path, document };
    let no_such = || message(404, "404 Not found");
    match (request.method.as_str(), asked.path.as_slice()) {
        ("GET", ["merge_requests"]) => reply(200, &list(host, state, &asked)),
        ("POST", ["merge_requests"]) => create(host, state, &asked),
        ("GET", ["merge_requests", _]) => {
            asked.found(state).map_or_else(no_such, |pull| marked(request, &shown(host, pull)))
        }
        ("PUT", ["merge_requests", _]) => {
            let Some(pull) = asked.changed(state) else { return no_such() };
            asked.rewrite(pull, "description");
            add(
                &mut pull.labels,
                asked.text("add_labels").iter().flat_map(|all| all.split(',')).map(str::to_owned).collect(),
            );
            if let Some(ids) = asked.document.get("reviewer_ids").and_then(Value::as_array) {
                let ids = ids.iter().filter_map(Value::as_u64).filter_map(|id| usize::try_from(id).ok());
                pull.reviewers = ids.filter_map(|id| host.members.get(id).cloned()).collect();
            }
            if asked.text("state_event").as_deref() == Some("close") && pull.is_open() {
                pull.state = PullState::Closed;
            }
            reply(200, &shown(host, pull))
        }
        ("GET", ["users"]) => {
            // A search finds names that contain it, too.
            let search = asked.query("search").unwrap_or_default();
            let found = host.members.iter().enumerate().filter(|(_, name)| name.contains(search));
            reply(200, &found.map(|(id, name)| json!({"id": id, "username": name})).collect())
        }
        ("PUT", ["merge_requests", _, "merge"]) => {
            let Some(pull) = asked.changed(state) else { return no_such() };
            if asked.text("sha").is_some_and(|sha| sha != pull.commit) {
                return message(409, "SHA does not match HEAD of source branch");
            }
            let squash = asked.document.get("squash") == Some(&Value::Bool(true));
            if asked.document.get("auto_merge") != Some(&Value::Bool(true)) || !pull.has_pipeline {
                return message(405, "405 Method Not Allowed");
            }
            pull.merge_later = Some((if squash { "squash" } else { "merge" }.to_owned(), pull.commit.clone()));
            reply(200, &shown(host, pull))
        }
        ("POST", ["statuses", _]) => asked.set_state(state, host.kind),
        ("GET", ["repository", "commits", commit, "merge_requests"]) => {
            reply(200, &asked.of_commit(state, commit).into_iter().map(|pull| shown(host, pull)).collect())
        }
        ("GET", ["merge_requests", _, "notes"]) => asked.comments(state, host.kind).unwrap_or_else(no_such),
        ("PUT", ["merge_requests", _, "notes", _]) => asked.rewrite_comment(state).unwrap_or_else(no_such),
        ("POST", ["merge_requests", _, "notes"]) => asked.comment(state).unwrap_or_else(no_such),
        _ => no_such(),
    }
}

fn list(host: &ForgeHost, state: &State, asked: &Asked<'_>) -> Value {
    let wanted = asked.query("state").unwrap_or("all");
    let is_wanted = |pull: &&Pull| {
        (wanted == "all" || wanted == name(pull.state))
            && asked.query("source_branch").is_none_or(|head| head == pull.head)
            && asked.query("target_branch").is_none_or(|base| base == pull.base)
    };
    let mut found: Vec<&Pull> = state.requests.iter().filter(is_wanted).collect();
    if asked.query("sort").unwrap_or("desc") == "desc" {
        found.reverse();
    }
    asked.page(found, "per_page", 20, 100).into_iter().map(|pull| shown(host, pull)).collect()
}

fn create(host: &ForgeHost, state: &mut State, asked: &Asked<'_>) -> Reply {
    let Some(wanted) = asked.wanted(["source_branch", "target_branch", "description"]) else {
        return message(400, "title, source_branch, target_branch are missing");
    };
    match state.create(&*host.branches, host.kind, wanted) {
        Ok(pull) => reply(201, &shown(host, pull)),
        Err(Refusal::Duplicate(number)) => {
            let words = format!("Another open merge request already exists for this source branch: !{number}");
            reply(409, &json!({"message": [words]}))
        }
        Err(Refusal::NoHead | Refusal::NoBase | Refusal::Empty) => {
            reply(400, &json!({"message": {"base": ["The source or target branch does not exist"]}}))
        }
    }
}

fn name(state: PullState) -> &'static str {
    match state {
        PullState::Open => "opened",
        PullState::Merged => "merged",
        PullState::Closed => "closed",
    }
}

fn shown(host: &ForgeHost, pull: &Pull) -> Value {
    let id = |name: &String| host.members.iter().position(|member| member == name);
    let reviewers: Vec<Value> =
        pull.reviewers.iter().filter_map(|name| Some(json!({"id": id(name)?, "username": name}))).collect();
    json!({
        "id": 1_000 + pull.number,
        "iid": pull.number,
        "project_id": 1,
        "source_project_id": if pull.from_fork { 2 } else { 1 },
        "target_project_id": 1,
        "web_url": format!("https://gitlab.example.com/{}/-/merge_requests/{}", host.repository, pull.number),
        "state": name(pull.state),
        "title": pull.title,
        "description": if pull.body.is_empty() { Value::Null } else { Value::from(pull.body.as_str()) },
        "source_branch": pull.head,
        "target_branch": pull.base,
        "sha": pull.commit,
        "created_at": moment(pull.number),
        "detailed_merge_status": "mergeable",
        "labels": pull.labels,
        "reviewers": reviewers,
        "head_pipeline": pull.has_pipeline.then(|| json!({"id": 1, "status": "running"})),
        "merge_when_pipeline_succeeds": pull.merge_later.is_some(),
    })
}
