//! From a request to an answer: which object or collection a path means, and which verb.
//!
//! JSON is understood and spoken, and tables made of it (`table`): requests for protobuf or metadata alone get plain JSON, which every
//! client accepts. Not here: what reading and writing mean (`read`, `write`).

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::body::{JSON, body, parse, patch_form};
use super::failure::{Failure, deleted, refusal};
use super::object::{Key, text};
use super::read::{ReadOptions, list_body};
use super::resource::Kind;
use super::watch::{CHUNKS_MAX, Watch};
use super::write::{DeleteOptions, Part, PatchForm};
use super::{ExpiredForm, KubernetesStandIn, access, core_events, definition, discovery, table};
use crate::http::{Body, Reply, Request};

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    kind: Kind,
    /// Empty: all namespaces, or a kind without.
    namespace: String,
    /// Empty: the collection.
    name: String,
    part: Part,
}

pub fn answer(stand_in: &KubernetesStandIn, request: &Request) -> Reply {
    let reply = answered(stand_in, request);
    let asks = request.method == http::Method::GET && request.header("accept").is_some_and(table::is_asked_for);
    let document = match &reply.body {
        Body::Full(body) if asks && reply.status == 200 => serde_json::from_slice::<Value>(body).ok(),
        Body::Full(_) | Body::Stream(_) => None,
    };
    match document.and_then(|document| table::of(&document, stand_in.time(stand_in.elapsed()))) {
        Some(table) => Reply::full(200, JSON, table.to_string()),
        None => reply,
    }
}

fn answered(stand_in: &KubernetesStandIn, request: &Request) -> Reply {
    if request.method == http::Method::GET {
        if matches!(request.path.as_str(), "/healthz" | "/livez" | "/readyz") {
            return Reply::full(200, "text/plain", "ok");
        }
        let (path, is_installed) = (request.path.trim_end_matches('/'), |group: &str| stand_in.is_installed(group));
        if let Some(document) = discovery::document(path, &is_installed) {
            return Reply::full(200, JSON, document.to_string());
        }
    }
    if request.method == http::Method::POST && request.path == "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
        return Reply::full(201, JSON, self_review(stand_in).to_string());
    }
    if let Some(reply) = access::review(stand_in, request) {
        return reply;
    }
    if let Some(answered) = core_events::answer(stand_in, request) {
        return answered.unwrap_or_else(|failure| refusal(&failure));
    }
    let Some(target) = Target::parse(&request.segments()).filter(|target| {
        let row = target.kind.describe();
        !row.custom || stand_in.is_installed(row.group)
    }) else {
        // A real server has no Status here: the path leads nowhere at all.
        return Reply::full(404, "text/plain; charset=utf-8", "404 page not found\n");
    };
    serve(stand_in, request, &target).unwrap_or_else(|failure| refusal(&failure))
}

/// The caller: without authentication it is always the user of the kubeconfig.
fn self_review(stand_in: &KubernetesStandIn) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
        "status": {"userInfo": {"username": stand_in.user(), "groups": ["system:authenticated"]}},
    })
}

fn serve(stand_in: &KubernetesStandIn, request: &Request, target: &Target) -> Result<Reply, Failure> {
    let collection = target.name.is_empty();
    let row = target.kind.describe();
    let resource = match target.part {
        Part::Main => row.plural.to_owned(),
        Part::Status => format!("{}/status", row.plural),
    };
    access::judge(stand_in, request, (row.group, &resource), (&target.namespace, &target.name))?;
    let rehearsed;
    let stand_in = match request.query.get("dryRun").map(String::as_str) {
        None => stand_in,
        Some("All") => {
            rehearsed = stand_in.rehearsed();
            &rehearsed
        }
        Some(_) => return Err(Failure::bad_request("Invalid value: dryRun: supported values: \"All\"")),
    };
    if request.method != http::Method::GET {
        stand_in.count_write();
    }
    match request.method.as_str() {
        "GET" if collection => read(stand_in, request, target),
        // A watch of one object may be asked for at its own path; kube asks at the collection with a field selector.
        "GET" => stand_in
            .get_object(target.kind, &target.key())
            .map(|object| Reply::full(200, JSON, object.body()))
            .ok_or_else(|| Failure::not_found(target.kind, &target.name)),
        "POST" if collection => create(stand_in, request, target),
        "PUT" if !collection => {
            let object = target.body(request)?;
            check_fields(request, target.kind, &object)?;
            let written = stand_in.write(|writer| writer.update(target.kind, &target.key(), object, target.part))?;
            Ok(Reply::full(200, JSON, written.body()))
        }
        "PATCH" if !collection => patch(stand_in, request, target),
        "DELETE" if !collection && target.part == Part::Main => delete(stand_in, request, target),
        _ => Err(Failure::method_not_allowed()),
    }
}

fn read(stand_in: &KubernetesStandIn, request: &Request, target: &Target) -> Result<Reply, Failure> {
    let options = ReadOptions::parse(target.kind, &target.namespace, &request.query)?;
    if !options.watch {
        let page = options.page(&stand_in.store().lock())?;
        return Ok(Reply::full(200, JSON, list_body(target.kind, &page)));
    }
    let started = options.start(&stand_in.store().lock());
    let start = match started {
        Err(failure) if stand_in.expired_form() == ExpiredForm::Event => {
            let event = json!({"type": "ERROR", "object": failure.status()});
            return Ok(Reply::full(200, JSON, format!("{event}\n")));
        }
        started => started?,
    };
    let runtime = tokio::runtime::Handle::try_current()
        .map_err(|_| Failure::internal("a watch needs a runtime to be fed from"))?;
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    let watch = Watch {
        store: stand_in.store().clone(),
        scope: options.scope,
        initial: start.initial,
        cursor: start.cursor,
        mark_initial_end: start.mark_initial_end,
        bookmarks: options.bookmarks,
        timeout: options.timeout,
        closing: stand_in.closing(),
    };
    // Ends with its client or with the runtime of the server, whichever goes first.
    runtime.spawn(watch.run(sender));
    Ok(Reply::stream(200, JSON, receiver))
}

/// Refuses unknown fields, where the client wants that.
fn check_fields(request: &Request, kind: Kind, object: &Value) -> Result<(), Failure> {
    match request.query.get("fieldValidation").map(String::as_str) {
        Some("Strict") => definition::check_strictly(kind, object),
        Some(_) | None => Ok(()),
    }
}

fn create(stand_in: &KubernetesStandIn, request: &Request, target: &Target) -> Result<Reply, Failure> {
    let object = target.body(request)?;
    check_fields(request, target.kind, &object)?;
    let mut namespace = target.namespace.clone();
    if target.kind.describe().namespaced && namespace.is_empty() {
        namespace = text(&object, "/metadata/namespace").to_owned();
        if namespace.is_empty() {
            return Err(Failure::bad_request("an empty namespace may not be set during creation"));
        }
    }
    let written = stand_in.write(|writer| writer.create(target.kind, &namespace, object))?;
    Ok(Reply::full(201, JSON, written.body()))
}

fn patch(stand_in: &KubernetesStandIn, request: &Request, target: &Target) -> Result<Reply, Failure> {
    let form = patch_form(request)?;
    if form == PatchForm::Apply && request.query.get("fieldManager").is_none_or(String::is_empty) {
        let why = "Required value: is required for apply patch";
        return Err(Failure::invalid_options("PatchOptions", "fieldManager", why));
    }
    let change = parse(&request.body)?;
    check_fields(request, target.kind, &change)?;
    let (written, created) =
        stand_in.write(|writer| writer.patch(target.kind, &target.key(), form, &change, target.part))?;
    Ok(Reply::full(if created { 201 } else { 200 }, JSON, written.body()))
}

fn delete(stand_in: &KubernetesStandIn, request: &Request, target: &Target) -> Result<Reply, Failure> {
    let options = delete_options(request, target.kind)?;
    let (object, gone) = stand_in.write(|writer| writer.delete(target.kind, &target.key(), &options))?;
    let tells_object = matches!(target.kind, Kind::Pod | Kind::Service | Kind::Namespace);
    if gone && !tells_object {
        return Ok(Reply::full(200, JSON, deleted(target.kind, &target.name, &object.uid).to_string()));
    }
    Ok(Reply::full(200, JSON, object.body()))
}

fn delete_options(request: &Request, kind: Kind) -> Result<DeleteOptions, Failure> {
    let body = if request.body.is_empty() { json!({}) } else { parse(&request.body)? };
    let condition =
        |name: &str| body.pointer(&format!("/preconditions/{name}")).and_then(Value::as_str).map(str::to_owned);
    let query_seconds = request.query.get("gracePeriodSeconds").and_then(|seconds| seconds.parse().ok());
    let policy = body.get("propagationPolicy").and_then(Value::as_str);
    let policy = policy.or_else(|| request.query.get("propagationPolicy").map(String::as_str));
    Ok(DeleteOptions {
        // Jobs of `batch/v1` leave their pods behind unless the request says otherwise, for the sake of old clients.
        orphans: policy.map_or(kind == Kind::Job, |policy| policy == "Orphan"),
        uid: condition("uid"),
        version: condition("resourceVersion"),
        grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64).or(query_seconds),
    })
}

impl Target {
    /// Understands a path, or does not: then there is nothing at it.
    fn parse(segments: &[&str]) -> Option<Target> {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, plural, rest) = match rest {
            // `namespaces/x` and its subresources are the namespace itself, everything longer is in it.
            ["namespaces", rest @ ..] if rest.len() < 2 || matches!(rest, [_, "status" | "finalize"]) => {
                ("", "namespaces", rest)
            }
            ["namespaces", namespace, plural, rest @ ..] => (*namespace, *plural, rest),
            [plural, rest @ ..] => ("", *plural, rest),
            [] => return None,
        };
        let kind = Kind::served_at(group, version, plural)?;
        let row = kind.describe();
        let (name, part) = match rest {
            [] => ("", Part::Main),
            [name] => (*name, Part::Main),
            [name, "status"] if row.status => (*name, Part::Status),
            _ => return None,
        };
        let misplaced = row.namespaced && namespace.is_empty() && !name.is_empty();
        if misplaced || (!row.namespaced && !namespace.is_empty()) {
            return None;
        }
        Some(Target { kind, namespace: namespace.to_owned(), name: name.to_owned(), part })
    }

    fn key(&self) -> Key {
        Key::new(self.namespace.as_str(), self.name.as_str())
    }

    /// The object in the body of a create or update, checked to belong to this path.
    fn body(&self, request: &Request) -> Result<Value, Failure> {
        let row = self.kind.describe();
        body(request, (&row.api_version(), row.kind), &self.namespace, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Option<(Kind, String, String, Part)> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        Target::parse(&segments).map(|target| (target.kind, target.namespace, target.name, target.part))
    }

    #[test]
    fn paths_mean_collections_objects_and_their_status() {
        let of = |kind, namespace: &str, name: &str, part| Some((kind, namespace.to_owned(), name.to_owned(), part));
        assert_eq!(target("/api/v1/namespaces"), of(Kind::Namespace, "", "", Part::Main));
        assert_eq!(target("/api/v1/namespaces/x"), of(Kind::Namespace, "", "x", Part::Main));
        assert_eq!(target("/api/v1/namespaces/x/status"), of(Kind::Namespace, "", "x", Part::Status));
        assert_eq!(target("/api/v1/pods"), of(Kind::Pod, "", "", Part::Main));
        assert_eq!(target("/api/v1/namespaces/x/pods/p/status"), of(Kind::Pod, "x", "p", Part::Status));
        assert_eq!(target("/apis/apps/v1/namespaces/x/deployments/d"), of(Kind::Deployment, "x", "d", Part::Main));
        for nowhere in ["/api/v2/pods", "/api/v1/pods/p", "/apis/apps/v1/pods", "/api/v1/namespaces/x/namespaces", "/x"]
        {
            assert_eq!(target(nowhere), None, "{nowhere}");
        }
    }
}
