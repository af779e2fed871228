//! Reviews by the API server's own authorizer: of the caller's rights (SelfSubjectAccessReview), and of
//! another account's, where that is allowed (SubjectAccessReview).
//! <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>
//!
//! A review changes nothing. Not for which rights are needed, nor for what follows where one is missing.

use std::time::Duration;

use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use apiserver::{Api, Collection, Resource};
use purge::ports::PortError;

const GROUP: &str = "authorization.k8s.io";
const OWN: Resource = Resource::new(GROUP, "v1", "selfsubjectaccessreviews");
const OF_ANOTHER: Resource = Resource::new(GROUP, "v1", "subjectaccessreviews");
const WHO: Resource = Resource::new("authentication.k8s.io", "v1", "selfsubjectreviews");

/// Longest wait for a review. An authorizer that is a webhook may take seconds.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Reviews under way at a time: there are about 30 for each namespace.
const AT_ONCE: usize = 8;

/// One right: a verb on a resource, perhaps of one name, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource; a subresource stands behind a slash.
    pub resource: &'static str,
    /// Of this object alone.
    pub name: Option<&'static str>,
    /// Where; `None` means in all namespaces.
    pub namespace: Option<String>,
}

/// The subject of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The owner of these credentials.
    Caller,
    /// A service account, by namespace and name.
    Account(String, String),
}

#[derive(Clone)]
pub struct Reviews(Api);

#[derive(Deserialize)]
struct Reviewed {
    status: Option<Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    #[serde(default)]
    allowed: bool,
}

impl Reviews {
    /// Of this API server. Nothing is asked yet.
    pub fn new(client: Client) -> Self {
        Self(Api::new(client).within(ANSWER_MAX).at_once(AT_ONCE))
    }

    /// Whether it is allowed.
    ///
    /// # Errors
    /// When the API server does not answer. To ask for another account is a right of its own; where it is missing, [`PortError::denied`] is set.
    pub async fn may(&self, whom: &Whom, right: &Right) -> Result<bool, PortError> {
        let attributes = attributes(right);
        let (of, object) = match whom {
            Whom::Caller => {
                (OWN, json!({"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}))
            }
            Whom::Account(namespace, name) => {
                let spec = json!({
                    "resourceAttributes": attributes,
                    "user": format!("system:serviceaccount:{namespace}:{name}"),
                    // The groups every service account is in; roles may be bound to them.
                    "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
                });
                (OF_ANOTHER, json!({"kind": "SubjectAccessReview", "spec": spec}))
            }
        };
        let answer = self.0.create(&Collection::everywhere(of), None, &versioned(object, GROUP)).await?;
        let reviewed: Reviewed = answer.json()?;
        Ok(reviewed.status.is_some_and(|verdict| verdict.allowed))
    }

    /// The name by which the API server knows the caller.
    ///
    /// # Errors
    /// When there is no answer: servers before 1.28 do not serve this review.
    pub async fn caller(&self) -> Result<String, PortError> {
        let object = versioned(json!({"kind": "SelfSubjectReview"}), "authentication.k8s.io");
        let answer = self.0.create(&Collection::everywhere(WHO), None, &object).await?;
        let review: Value = answer.json()?;
        let name = review.pointer("/status/userInfo/username").and_then(Value::as_str);
        name.map(str::to_owned).ok_or_else(|| PortError::passing(answer.attempted, "the answer has no name"))
    }
}

impl Right {
    /// In words, as people write RBAC rules: `get, list deployments.apps`.
    pub fn resource_name(&self) -> String {
        let resource =
            if self.group.is_empty() { self.resource.to_owned() } else { format!("{}.{}", self.resource, self.group) };
        self.name.map_or(resource.clone(), |name| format!("{resource} {name}"))
    }
}

fn attributes(right: &Right) -> Value {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    json!({
        "namespace": right.namespace.as_deref().unwrap_or_default(),
        "verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource,
        "name": right.name.unwrap_or_default(),
    })
}

fn versioned(mut object: Value, group: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::String(format!("{group}/v1")));
    }
    object
}
