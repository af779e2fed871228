//! What the API answers when it refuses: `Status` objects with the code, reason, message and details of a real server.
//!
//! Clients decide by `code` and `reason`, people read `message`; each is copied from `apimachinery/pkg/api/errors`
//! (Kubernetes 1.33). Not for failures of the transport: those are injected in front of the stand-in.

use serde_json::{Value, json};

use super::resource::Kind;
use crate::http::Reply;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason} ({code}): {message}")]
pub struct Failure {
    pub code: u16,
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// `details`; null when there are none.
    pub details: Value,
    /// Where an expired list may go on, inconsistently.
    pub resume: Option<String>,
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, reason, message: message.into(), details: Value::Null, resume: None }
    }

    fn about(mut self, kind: Kind, name: &str) -> Failure {
        let row = kind.describe();
        let mut details = json!({"kind": row.plural});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !row.group.is_empty() {
            details["group"] = json!(row.group);
        }
        self.details = details;
        self
    }

    /// 404: no such object.
    pub fn not_found(kind: Kind, name: &str) -> Failure {
        let message = format!("{} \"{name}\" not found", kind.describe().qualified());
        Failure::new(404, "NotFound", message).about(kind, name)
    }

    /// 404: no such path.
    pub fn no_such_resource() -> Failure {
        Failure::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 409: created before.
    pub fn already_exists(kind: Kind, name: &str) -> Failure {
        let message = format!("{} \"{name}\" already exists", kind.describe().qualified());
        Failure::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// 409: another client wrote first.
    pub fn conflict(kind: Kind, name: &str) -> Failure {
        Failure::precondition(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409: a precondition of the request does not hold.
    pub fn precondition(kind: Kind, name: &str, why: &str) -> Failure {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.describe().qualified());
        Failure::new(409, "Conflict", message).about(kind, name)
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, "BadRequest", message)
    }

    /// 403: the authorizer says no; `who` asks to `verb` the resource of this group, in this namespace or (empty) in all.
    pub fn forbidden(
        who: &str,
        verb: &str,
        (group, resource): (&str, &str),
        (namespace, name): (&str, &str),
    ) -> Failure {
        let place = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let message = format!(
            "{qualified}{named} is forbidden: User \"{who}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
        );
        Failure::new(403, "Forbidden", message)
    }

    /// 405: the path exists, the verb does not.
    pub fn method_not_allowed() -> Failure {
        Failure::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    /// 415: a body in a form that is not understood.
    pub fn unsupported_media(expected: &str) -> Failure {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {expected}");
        Failure::new(415, "UnsupportedMediaType", message)
    }

    /// 422: a field of an object is wrong. `cause` is one of `FieldValueRequired`, `FieldValueInvalid`,
    /// `FieldValueForbidden`; `why` reads like `Required value: name or generateName is required`.
    pub fn invalid(kind: Kind, name: &str, field: &str, cause: &str, why: &str) -> Failure {
        let row = kind.describe();
        let subject = if row.group.is_empty() { row.kind.to_owned() } else { format!("{}.{}", row.kind, row.group) };
        let mut failure = Failure::new(422, "Invalid", format!("{subject} \"{name}\" is invalid: {field}: {why}"));
        failure.details = json!({
            "name": name, "group": row.group, "kind": row.kind,
            "causes": [{"reason": cause, "message": why, "field": field}],
        });
        failure
    }

    /// 422: the parameters of a list, watch or patch are wrong.
    pub fn invalid_options(options: &str, field: &str, why: &str) -> Failure {
        let mut failure =
            Failure::new(422, "Invalid", format!("{options}.meta.k8s.io \"\" is invalid: {field}: {why}"));
        failure.details = json!({
            "group": "meta.k8s.io", "kind": options,
            "causes": [{"reason": "FieldValueForbidden", "message": why, "field": field}],
        });
        failure
    }

    /// 410: the history asked for is gone; list again.
    pub fn expired(requested: u64, oldest: u64) -> Failure {
        Failure::new(410, "Expired", format!("too old resource version: {requested} ({oldest})"))
    }

    /// 410: the next page of a list is gone. `resume` is a token with which the list can go on, inconsistently.
    pub fn page_expired(resume: String) -> Failure {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to retrieve \
                       the remainder of the results. Continuing with the provided token results in an inconsistent \
                       list - objects that were created, modified, or deleted between the time the first chunk was \
                       returned and now may show up in the list.";
        Failure { resume: Some(resume), ..Failure::new(410, "Expired", message) }
    }

    /// 504: a version asked for that has not happened yet.
    pub fn from_the_future(requested: u64, current: u64) -> Failure {
        let mut failure = Failure::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        );
        failure.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        failure
    }

    /// 500 without a reason: what a real server answers where its own code has not classified an error.
    pub fn unknown(message: impl Into<String>) -> Failure {
        Failure::new(500, "", message)
    }

    /// 500: the stand-in itself is at fault.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure::new(500, "InternalError", message)
    }

    pub fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.resume {
            metadata["continue"] = json!(token);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}

/// The `Status` of a deletion that is done.
pub fn deleted(kind: Kind, name: &str, uid: &str) -> Value {
    let row = kind.describe();
    let mut details = json!({"name": name, "kind": row.plural, "uid": uid});
    if !row.group.is_empty() {
        details["group"] = json!(row.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub(super) fn refusal(failure: &Failure) -> Reply {
    Reply::full(failure.code, "application/json", failure.status().to_string())
}
