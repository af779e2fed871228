//! What is asked of the API server, and what it means where that fails: one table of status, words, and whether trying again
//! can help.
//!
//! Not for trying again: a caller does that, by the [`Retry`] class of the error.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kube::client::AuthError;
use kube::config::{KubeconfigError, LoadDataError};
use serde::Deserialize;

use kernel::answer::{PortError, Retry};
use kernel::text::{in_words, unread};

/// Longest wait that a `Retry-After` can ask of us. API servers say seconds; minutes come from a broken proxy.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// Most of an error's text that is repeated to a person.
const MESSAGE_CHARS_MAX: usize = 400;

/// Deepest chain of causes looked at.
const CAUSES_MAX: usize = 16;

/// How the API server refuses what is made in a namespace that is being deleted (its admission plugin *NamespaceLifecycle*).
const ENDING: &str = "because it is being terminated";

/// How admission says no: a webhook, and a ValidatingAdmissionPolicy. No right would help.
const BY_POLICY: [&str; 2] = ["denied the request", "denied request"];

/// A kind of object by its place in the URL space. Some kinds come from data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version of the group.
    pub version: Cow<'static, str>,
    /// The plural, as RBAC rules name it.
    pub plural: Cow<'static, str>,
}

/// `v1` Namespaces.
pub const NAMESPACES: Resource = Resource::new("", "v1", "namespaces");

/// All objects of a kind, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub resource: Resource,
    /// The namespace; `None` means all.
    pub namespace: Option<String>,
    /// Those of it that are meant; `None` means all.
    pub only: Option<Only>,
}

/// Some objects of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// The one of this name: a right to one object is enough for that.
    Named(String),
    /// Those whose label of this key has this value.
    Labelled(&'static str, String),
}

/// What is attempted, for the error's first half and for naming the missing right.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    pub(crate) verb: &'static str,
    pub(crate) collection: &'a Collection,
    /// Of which one, where it is one.
    pub(crate) name: Option<&'a str>,
}

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status, or the code of an `ERROR` event; `None` when there was no answer.
    pub status: Option<u16>,
    /// What went wrong, in the other side's words.
    pub message: String,
    /// How long the other side asks us to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Resource {
    /// A kind that we know.
    pub const fn new(group: &'static str, version: &'static str, plural: &'static str) -> Self {
        Self { group: Cow::Borrowed(group), version: Cow::Borrowed(version), plural: Cow::Borrowed(plural) }
    }

    /// The name in RBAC rules and errors: `deployments.apps`, `services`.
    fn display_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Collection {
    /// The objects of a kind in all namespaces; also those of a kind that is in none.
    pub fn everywhere(resource: Resource) -> Self {
        Self { resource, namespace: None, only: None }
    }

    /// The objects of a kind in one namespace.
    pub fn of(resource: Resource, namespace: &str) -> Self {
        Self { resource, namespace: Some(namespace.to_owned()), only: None }
    }

    /// The same, but only the object of this name.
    pub fn only(self, name: &str) -> Self {
        Self { only: Some(Only::Named(name.to_owned())), ..self }
    }

    /// The same, but only the objects whose label of this key has this value.
    pub fn labelled(self, key: &'static str, value: &str) -> Self {
        Self { only: Some(Only::Labelled(key, value.to_owned())), ..self }
    }

    /// The name of the only object that is meant.
    pub fn name(&self) -> Option<&str> {
        match self.only.as_ref()? {
            Only::Named(name) => Some(name),
            Only::Labelled(..) => None,
        }
    }

    /// The fields that a watch selects by.
    pub(crate) fn fields(&self) -> Option<String> {
        self.name().map(|name| format!("metadata.name={name}"))
    }

    /// The labels that a watch selects by.
    pub(crate) fn labels(&self) -> Option<String> {
        match self.only.as_ref()? {
            Only::Named(_) => None,
            Only::Labelled(key, value) => Some(format!("{key}={value}")),
        }
    }

    /// The URL path of the collection, for [`kube::core::Request`].
    pub(crate) fn path(&self) -> String {
        let Resource { group, version, plural } = &self.resource;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match &self.namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }

    /// An attempt at the collection as a whole.
    pub fn attempt(&self, verb: &'static str) -> Attempt<'_> {
        Attempt { verb, collection: self, name: None }
    }

    /// An attempt at one of its objects.
    pub fn attempt_one<'a>(&'a self, verb: &'static str, name: &'a str) -> Attempt<'a> {
        Attempt { verb, collection: self, name: Some(name) }
    }

    /// Where: `in shop` or `in all namespaces`.
    fn place(&self) -> String {
        self.namespace.as_ref().map_or_else(|| "in all namespaces".to_owned(), |namespace| format!("in {namespace}"))
    }
}

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {} {}", self.verb, self.collection.resource.display_name())?;
        if let Some(name) = self.name {
            write!(f, " {name}")?;
        }
        write!(f, " {}", self.collection.place())
    }
}

impl Attempt<'_> {
    /// The error a port reports: what was attempted, why it failed, what can be done, whether trying again can help.
    pub(crate) fn failed(&self, failure: Failure) -> PortError {
        let by_policy = failure.is_by_policy();
        let Failure { status, message, retry_after } = failure;
        let resource = self.collection.resource.display_name();
        // What is made in a namespace that is ending is refused as well, and no right would help.
        let denied = matches!(status, Some(401 | 403)) && !message.contains(ENDING) && !by_policy;
        let (cause, retry) = match status {
            Some(401) => (
                format!(
                    "the API server does not accept our credentials ({message}); renew the token or the kubeconfig"
                ),
                Retry::Never,
            ),
            Some(403) if by_policy => (format!("{message}; a policy of the cluster refuses it"), Retry::Never),
            Some(403) => (
                format!("{message}; allow {} to {} {resource} {}", whom(&message), self.verb, self.collection.place()),
                Retry::Never,
            ),
            Some(code @ (400 | 404 | 405 | 406 | 413 | 415 | 422)) => {
                (format!("{message} (status {code})"), Retry::Never)
            }
            Some(code) => (format!("{message} (status {code})"), retry_after.map_or(Retry::Later, Retry::After)),
            None => (message, retry_after.map_or(Retry::Later, Retry::After)),
        };
        let unknown_caller = status == Some(401);
        PortError { attempted: self.to_string(), cause, retry, denied, unknown_caller, reason: None }
    }
}

impl Failure {
    /// Whether a policy of the cluster has refused it, so that no right would help.
    pub fn is_by_policy(&self) -> bool {
        self.status == Some(403) && BY_POLICY.iter().any(|said| self.message.contains(said))
    }

    /// There was no answer, or not all of it.
    pub(crate) fn unanswered(message: impl fmt::Display) -> Self {
        Self { status: None, message: shorten(&message.to_string()), retry_after: None }
    }

    /// Nothing came for this long.
    pub(crate) fn silent(within: Duration) -> Self {
        Self::unanswered(format!("no answer within {} s", within.as_secs_f32()))
    }

    /// Whether less would have been answered: the answer was too large for a proxy (413), or for the API server's own
    /// connection to its storage (gRPC's `message larger than max`).
    pub(crate) fn is_for_size(&self) -> bool {
        self.status == Some(413) || (self.status >= Some(500) && self.message.contains("larger than max"))
    }

    /// What a `Status` object says, be it an error's body or the object of an `ERROR` event.
    pub(crate) fn of_status(text: &str) -> Option<Self> {
        let status: Status = serde_json::from_str(text).ok()?;
        let code = status.code.filter(|code| *code >= 400)?;
        let message = [status.message, status.reason].into_iter().flatten().find(|text| !text.is_empty());
        Some(Self {
            status: Some(code),
            message: shorten(&message.unwrap_or_else(|| "no reason given".to_owned())),
            retry_after: status.details.and_then(|details| details.retry_after_seconds).filter(|s| *s > 0).map(bounded),
        })
    }

    /// There was no answer, by what kube says of it.
    pub(crate) fn of_error(error: &kube::Error) -> Self {
        Self::unanswered(failure_in_words(error))
    }

    /// An answer that is no success.
    pub(crate) fn of_answer(status: http::StatusCode, headers: &http::HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let header = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let told = Self::of_status(&text);
        let fallback = || match text.trim() {
            "" => status.canonical_reason().unwrap_or("no reason given").to_owned(),
            text => shorten(text),
        };
        Self {
            status: Some(status.as_u16()),
            retry_after: header.map(bounded).or(told.as_ref().and_then(|told| told.retry_after)),
            message: told.map_or_else(fallback, |told| told.message),
        }
    }
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
    message: Option<String>,
    reason: Option<String>,
    details: Option<Details>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
}

fn bounded(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(RETRY_AFTER_MAX)
}

/// An error of kube in words. Those about credentials are said by their kind: kube's own quote what the plugin was called with
/// and all that it has written, tokens among it.
pub(crate) fn failure_in_words(error: &kube::Error) -> String {
    // kube's own words have the URL, and with it the password.
    if let kube::Error::ProxyProtocolDisabled { .. } | kube::Error::ProxyProtocolUnsupported { .. } = error {
        return "its proxy (proxy-url of the kubeconfig, or HTTPS_PROXY) is neither http nor https".to_owned();
    }
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(this) = cause else { break };
        if let Some(about) = this.downcast_ref::<AuthError>() {
            return format!("failed to get credentials: {}", unauthenticated(about));
        }
        if let Some(about) = this.downcast_ref::<KubeconfigError>() {
            return format!("the kubeconfig cannot be used: {}", unusable(about));
        }
        cause = this.source();
    }
    in_words(error)
}

/// What is wrong with a kubeconfig, by kind and place. kube's own words quote it: a token in the wrong place is in them.
pub fn unusable(error: &KubeconfigError) -> String {
    let data = |what: &str, error: &LoadDataError| match error {
        LoadDataError::DecodeBase64(_) => format!("{what} is not base64"),
        LoadDataError::ReadFile(cause, _) => format!("{what} is in a file that cannot be read: {}", unread(cause)),
        LoadDataError::NoBase64DataOrFile => format!("{what} is missing"),
    };
    match error {
        KubeconfigError::CurrentContextNotSet => "it names no current context; choose one with --context".to_owned(),
        KubeconfigError::LoadContext(_) => "it has no such context".to_owned(),
        KubeconfigError::LoadClusterOfContext(_) => "it has no cluster of the name in its context".to_owned(),
        KubeconfigError::FindPath => "there is none".to_owned(),
        KubeconfigError::ReadConfig(cause, _) => format!("it cannot be read: {}", unread(cause)),
        KubeconfigError::Parse(cause) => match cause.location() {
            Some(place) => format!("it is not valid at line {}, column {}", place.line(), place.column()),
            None => "it is not valid YAML of a kubeconfig".to_owned(),
        },
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the server of its cluster is not a URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => "its proxy-url, or HTTPS_PROXY, is not a URL".to_owned(),
        KubeconfigError::ParseNoProxy(_) => {
            "NO_PROXY has an item that is no host, address or network, such as an empty one behind a comma".to_owned()
        }
        KubeconfigError::LoadCertificateAuthority(cause) => data("its certificate authority", cause),
        KubeconfigError::LoadClientCertificate(cause) => data("its client certificate", cause),
        KubeconfigError::LoadClientKey(cause) => data("its client key", cause),
        KubeconfigError::ParseCertificates(_) => "its certificate authority is not PEM".to_owned(),
        _ => "its parts do not fit together".to_owned(),
    }
}

fn unauthenticated(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { cmd: _, out } => {
            format!(
                "the credential plugin of the kubeconfig failed with {}; run kubectl to see what it says",
                out.status
            )
        }
        AuthError::AuthExecStart(cause) => {
            let why = match cause.kind() {
                std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
                other => other.to_string(),
            };
            format!("the credential plugin of the kubeconfig cannot be started: {why}")
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed | AuthError::AuthExec(_) => {
            "the credential plugin of the kubeconfig answered with something else than a credential".to_owned()
        }
        AuthError::ReadTokenFile(cause, _) => format!("the token file cannot be read: {}", unread(cause)),
        AuthError::InvalidBearerToken(_) => "the token has characters that none can have".to_owned(),
        AuthError::InvalidBasicAuth(_) => "user or password have characters that cannot be sent".to_owned(),
        AuthError::MissingCommand => "the credential plugin of the kubeconfig has no command".to_owned(),
        _ => "the user of the kubeconfig cannot be used".to_owned(),
    }
}

/// The account that an API server has refused, from its message (`User "jane" cannot list resource …`), for the advice.
fn whom(refusal: &str) -> String {
    let user = refusal.split_once("User \"").and_then(|(_, rest)| rest.split_once('"')).map(|(user, _)| user);
    let account = user.and_then(|user| user.strip_prefix("system:serviceaccount:")?.split_once(':'));
    match (user, account) {
        (_, Some((namespace, account))) => format!("the service account {account} of namespace {namespace}"),
        (Some(user), None) => format!("the user {user}"),
        (None, None) => "the owner of these credentials".to_owned(),
    }
}

/// Cuts a text to what a person reads.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments");

    fn answer(status: u16, retry_after: Option<&str>, body: &str) -> Failure {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert(http::header::RETRY_AFTER, seconds.parse().unwrap());
        }
        Failure::of_answer(http::StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn a_missing_right_names_verb_resource_and_namespace() {
        let status =
            r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"User \"jane\" cannot list deployments"}"#;
        let shop = Collection::of(DEPLOYMENTS, "shop");
        let error = shop.attempt("list").failed(answer(403, None, status));
        assert_eq!(error.retry, Retry::Never);
        assert_eq!(
            error.to_string(),
            "failed to list deployments.apps in shop: User \"jane\" cannot list deployments; \
             allow the user jane to list deployments.apps in shop"
        );
    }

    #[test]
    fn only_rights_and_credentials_are_somebody_elses_to_give() {
        let shop = Collection::of(DEPLOYMENTS, "shop");
        let denied = |status, text: &str| shop.attempt("create").failed(answer(status, None, text)).denied;
        assert!(denied(403, "forbidden: User \"jane\" cannot create deployments") && denied(401, "Unauthorized"));
        let ending = "forbidden: unable to create new content in namespace shop because it is being terminated";
        let policy =
            "forbidden: ValidatingAdmissionPolicy 'allclear' with binding 'all' denied request: you may not approve";
        assert!(!denied(403, policy) && !denied(403, "admission webhook \"gate\" denied the request: no"));
        let said = shop.attempt("patch").failed(answer(403, None, policy)).to_string();
        assert!(said.ends_with("you may not approve; a policy of the cluster refuses it"), "{said}");
        assert!(!denied(403, ending) && !denied(422, "") && !denied(404, "") && !denied(500, ""));
    }

    #[test]
    fn an_overloaded_server_says_when_to_come_back() {
        let everywhere = Collection::everywhere(DEPLOYMENTS);
        let retry = |failure| everywhere.attempt("watch").failed(failure).retry;
        assert_eq!(retry(answer(429, Some("7"), "Too many requests")), Retry::After(Duration::from_secs(7)));
        assert_eq!(retry(answer(503, None, "")), Retry::Later);
        assert_eq!(retry(answer(429, Some("999999"), "")), Retry::After(RETRY_AFTER_MAX));
        let body = r#"{"code":429,"details":{"retryAfterSeconds":3}}"#;
        assert_eq!(retry(answer(429, None, body)), Retry::After(Duration::from_secs(3)));
    }

    #[test]
    fn an_answer_that_is_not_a_status_is_repeated_in_short() {
        let failure = answer(502, None, &"<html>bad gateway</html>".repeat(100));
        assert_eq!(failure.status, Some(502));
        assert_eq!(failure.message.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert_eq!(answer(504, None, "").message, "Gateway Timeout");
    }

    #[test]
    fn whom_to_give_a_right_is_in_the_words_of_the_refusal() {
        let refusal =
            |user: &str| format!("pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\"");
        assert_eq!(whom(&refusal("jane@example.com")), "the user jane@example.com");
        let account = refusal("system:serviceaccount:allclear:watcher");
        assert_eq!(whom(&account), "the service account watcher of namespace allclear");
        assert_eq!(whom("Forbidden"), "the owner of these credentials");
    }
}
