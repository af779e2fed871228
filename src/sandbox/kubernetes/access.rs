//! Rights: everything but the forbidden. Answers the two reviews by which clients ask, and refuses all that they
//! would refuse: a review that allows a request that gets 403 would hide the very faults it is asked for.
//!
//! Not for roles and bindings: these are kept as objects and allow nothing.

use std::sync::PoisonError;

use serde_json::json;

use super::KubernetesStandIn;
use super::body;
use super::failure::{Failure, refusal};
use super::object::text;
use crate::http::{Reply, Request};

/// Something that is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// The user; `None`: all users.
    pub user: Option<String>,
    /// The verb; empty: all verbs.
    pub verb: String,
    /// The API group of the resource; empty: the core group.
    pub group: String,
    /// The resource, a subresource with a slash.
    pub resource: String,
    /// Where; `None`: everywhere.
    pub namespace: Option<String>,
}

/// A question: who, verb, group and resource, namespace.
struct Question<'a> {
    user: &'a str,
    verb: &'a str,
    group: &'a str,
    resource: &'a str,
    namespace: &'a str,
}

impl Forbidden {
    /// This verb on this resource, everywhere and for all users.
    pub fn everywhere(verb: &str, group: &str, resource: &str) -> Forbidden {
        let (verb, group, resource) = (verb.to_owned(), group.to_owned(), resource.to_owned());
        Forbidden { verb, group, resource, ..Forbidden::default() }
    }

    fn covers(&self, asked: &Question<'_>) -> bool {
        self.user.as_ref().is_none_or(|user| user == asked.user)
            && (self.verb.is_empty() || self.verb == asked.verb)
            && self.group == asked.group
            && self.resource == asked.resource
            && self.namespace.as_ref().is_none_or(|namespace| namespace == asked.namespace)
    }
}

impl KubernetesStandIn {
    /// Forbids something from now on.
    pub fn forbid(&self, forbidden: Forbidden) {
        self.inner.forbidden.lock().unwrap_or_else(PoisonError::into_inner).push(forbidden);
    }

    pub fn allow_all(&self) {
        self.inner.forbidden.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The same cluster; what is written through this handle is thrown away.
    pub(super) fn rehearsed(&self) -> KubernetesStandIn {
        KubernetesStandIn { dry: true, ..self.clone() }
    }

    fn allows(&self, asked: &Question<'_>) -> bool {
        let forbidden = self.inner.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
        !forbidden.iter().any(|one| one.covers(asked))
    }
}

/// The answer to an access review, if the request is one. Status and words as the real server gives them for RBAC.
pub(super) fn review(stand_in: &KubernetesStandIn, request: &Request) -> Option<Reply> {
    let (kind, own) = match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") => ("SelfSubjectAccessReview", true),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews") => ("SubjectAccessReview", false),
        _ => return None,
    };
    Some(reviewed(stand_in, request, kind, own).unwrap_or_else(|failure| refusal(&failure)))
}

fn reviewed(stand_in: &KubernetesStandIn, request: &Request, kind: &str, own: bool) -> Result<Reply, Failure> {
    if !own {
        let resource = ("authorization.k8s.io", "subjectaccessreviews");
        judge(stand_in, request, resource, ("", ""))?;
    }
    let mut body = body::body(request, ("authorization.k8s.io/v1", kind), "", "")?;
    let of = |name: &str| text(&body, &format!("/spec/resourceAttributes/{name}"));
    let resource = match of("subresource") {
        "" => of("resource").to_owned(),
        part => format!("{}/{part}", of("resource")),
    };
    let user = if own { stand_in.user() } else { text(&body, "/spec/user") };
    let asked =
        Question { user, verb: of("verb"), group: of("group"), resource: &resource, namespace: of("namespace") };
    let allowed = stand_in.allows(&asked);
    body["status"] = if allowed { json!({"allowed": true}) } else { json!({"allowed": false}) };
    Ok(Reply::full(201, "application/json", body.to_string()))
}

/// Refuses a request that is forbidden.
pub(super) fn judge(
    stand_in: &KubernetesStandIn,
    request: &Request,
    (group, resource): (&str, &str),
    (namespace, name): (&str, &str),
) -> Result<(), Failure> {
    let watched = matches!(request.query.get("watch").map(String::as_str), Some("1" | "true"));
    let verb = match (request.method.as_str(), name.is_empty()) {
        ("GET", _) if watched => "watch",
        ("GET", true) => "list",
        ("GET", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => return Ok(()),
    };
    let asked = Question { user: stand_in.user(), verb, group, resource, namespace };
    if stand_in.allows(&asked) {
        return Ok(());
    }
    Err(Failure::forbidden(asked.user, verb, (group, resource), (namespace, name)))
}
