//! One receiver of notices, and the rules for each part of it.

mod body;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderName, HeaderValue};

use super::address::{Refused, WebUrl};
use super::mask::Secret;
use super::suggest::{listed, nearest};
use kernel::id::{Kind as WorkloadKind, Subject};
use kernel::mask::shown;
use notices::notice::Kind;

pub use body::{BodyTemplate, BodyValue};

/// One receiver, with every default filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct Hook {
    /// In the old form the name of the Deployment. Not unique: one Deployment may have several hooks.
    pub name: String,
    /// Where it is sent to.
    pub url: WebUrl,
    /// How it is sent.
    pub method: HookMethod,
    /// Sent as they are, by lower-case name. `content-type` replaces the one of `format`.
    pub headers: BTreeMap<String, Secret<String>>,
    /// Sent with every notice: in the query for GET, in the body otherwise.
    pub parameters: BTreeMap<String, Secret<String>>,
    /// The kinds of notices that it receives. Never empty.
    pub events: BTreeSet<Kind>,
    /// The file names no events for it. When a purge stalls, such a hook is skipped for good (decision 17).
    pub is_old_form: bool,
    /// The workloads whose notices it receives. Never empty.
    pub workloads: Vec<WorkloadPattern>,
    /// The form of the body.
    pub format: HookFormat,
    /// Keys of the signature, the current one first; empty: unsigned.
    pub secrets: Vec<Secret<Vec<u8>>>,
    /// For one attempt in all, from connecting to the last byte.
    pub timeout: Duration,
    /// How long to wait before each attempt. Never empty.
    pub schedule: Vec<Duration>,
}

/// Without the names of headers and parameters: people confuse name and value.
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (headers, parameters) = (self.headers.len(), self.parameters.len());
        let shown =
            f.debug_struct("Hook").field("name", &shown(&self.name)).field("url", &self.url).finish_non_exhaustive();
        shown.and_then(|()| write!(f, " with {headers} headers and {parameters} parameters"))
    }
}

/// How a hook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookMethod {
    /// Parameters go in the query.
    Get,
    /// Parameters go in the body, as in all that follow.
    Post,
    /// Sends a body, as `Post` does.
    Put,
    /// Sends a body, as `Post` does.
    Patch,
    /// Sends a body, as `Post` does.
    Delete,
}

impl HookMethod {
    /// As it is sent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What the body of a hook looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookFormat {
    /// `application/x-www-form-urlencoded`: the parameters and nothing else, as the old program did.
    Form,
    /// The notice as `application/json`.
    Json,
    /// `application/json`: an event, as Flux's notification-controller sends it.
    Flux,
    /// A CloudEvent in HTTP's binary mode.
    CloudEvents,
    /// The same, of CDEvents.
    CdEvents,
    /// A message for an incoming webhook of Slack.
    Slack,
    /// A card for a webhook of Workflows in Microsoft Teams.
    Teams,
    /// What the file has as `body`.
    Template(BodyTemplate),
}

impl HookFormat {
    /// As it is written in the file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Json => "json",
            Self::Flux => "flux",
            Self::CloudEvents => "cloudevents",
            Self::CdEvents => "cdevents",
            Self::Slack => "slack",
            Self::Teams => "teams",
            Self::Template(_) => "template",
        }
    }
}

/// A pattern of the workloads whose notices a hook receives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadPattern {
    /// All workloads: `*` in the file.
    All,
    /// Those of a namespace: `namespace/*` in the file.
    Namespace(String),
    /// `name`, in whatever namespace.
    Name(String),
    /// The same by the name of the hook itself, where the file names no workloads: of workloads Deployments alone, for there were no
    /// others when such files were written.
    Own(String),
    /// One workload: `namespace/name` in the file.
    Exact {
        namespace: String,
        /// The name in it.
        name: String,
    },
    /// `kind/namespace/name` or `kind/namespace/*`: of these, workloads of that kind.
    OfKind(WorkloadKind, Box<Self>),
}

impl WorkloadPattern {
    /// Parses `*`, `name`, `namespace/name` or `namespace/*`; the latter two also with a kind before them.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('/') {
            Some((kind, within)) if within.matches('/').count() == 1 => {
                Some(Self::OfKind(WorkloadKind::named(kind)?.identity(), Box::new(Self::parse(within)?)))
            }
            None if text == "*" => Some(Self::All),
            None => is_object_name(text).then(|| Self::Name(text.to_owned())),
            Some((namespace, _)) if !is_object_name(namespace) => None,
            Some((namespace, "*")) => Some(Self::Namespace(namespace.to_owned())),
            Some((namespace, name)) => {
                let exact = || Self::Exact { namespace: namespace.to_owned(), name: name.to_owned() };
                is_object_name(name).then(exact)
            }
        }
    }

    /// Whether the subject is meant.
    pub fn matches(&self, subject: &Subject) -> bool {
        let kind = match subject {
            Subject::Workload(id) => Some(id.kind),
            Subject::Pipeline(_) | Subject::Repo(_) => None,
        };
        match self {
            Self::All => true,
            Self::Namespace(wanted) => wanted == subject.namespace(),
            Self::Name(wanted) => wanted == subject.name(),
            Self::Own(wanted) => wanted == subject.name() && kind.is_none_or(|kind| kind == WorkloadKind::Deployment),
            Self::Exact { namespace, name } => namespace == subject.namespace() && name == subject.name(),
            Self::OfKind(wanted, within) => kind == Some(*wanted) && within.matches(subject),
        }
    }
}

/// Bytes of a `whsec_` key (<https://github.com/standard-webhooks/standard-webhooks>, spec of 2024, "Signature scheme").
const KEY_BYTES: RangeInclusive<usize> = 24..=64;

/// What a key of Standard Webhooks starts with; what follows is base64.
const KEY_PREFIX: &str = "whsec_";

/// Headers a hook may not set, because they would contradict what is sent.
const HEADERS_OURS: [&str; 7] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

pub(super) fn method(text: &str) -> Result<HookMethod, Refused> {
    match text.trim().to_ascii_uppercase().as_str() {
        "GET" => Ok(HookMethod::Get),
        "POST" => Ok(HookMethod::Post),
        "PUT" => Ok(HookMethod::Put),
        "PATCH" => Ok(HookMethod::Patch),
        "DELETE" => Ok(HookMethod::Delete),
        _ => Err(Refused::new("is not a method", "write GET, POST, PUT, PATCH or DELETE")),
    }
}

/// `None` is the format whose body is in the file.
pub(super) fn format(text: &str) -> Result<Option<HookFormat>, Refused> {
    Ok(Some(match text.trim().to_ascii_lowercase().as_str() {
        "form" => HookFormat::Form,
        "json" => HookFormat::Json,
        "flux" => HookFormat::Flux,
        "cloudevents" => HookFormat::CloudEvents,
        "cdevents" => HookFormat::CdEvents,
        "slack" => HookFormat::Slack,
        "teams" => HookFormat::Teams,
        "template" => return Ok(None),
        _ => {
            let fix = "write form, json, flux, cloudevents, cdevents, slack, teams or template";
            return Err(Refused::new("is not a format", fix));
        }
    }))
}

pub(super) fn event(text: &str) -> Result<Kind, Refused> {
    Kind::named(text.trim()).ok_or_else(|| {
        let names = || Kind::ALL.into_iter().map(Kind::name);
        let fix = match nearest(text, names()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("write {}", listed(names())),
        };
        Refused::new("is not an event", fix)
    })
}

pub(super) fn pattern(text: &str) -> Result<WorkloadPattern, Refused> {
    let fix = "write *, a name, namespace/name or namespace/*, the latter two also with a kind, as statefulset/shop/db";
    WorkloadPattern::parse(text.trim()).ok_or_else(|| Refused::new("is not a workload", fix))
}

pub(super) fn header(name: &str, value: &str) -> Result<(String, String), Refused> {
    let header = name
        .parse::<HeaderName>()
        .map_err(|_| Refused::new("is not a name of a header", "write letters, digits and hyphens"))?;
    if HEADERS_OURS.contains(&header.as_str()) {
        return Err(Refused::new("is a header that allclear sets itself", "leave it out"));
    }
    if HeaderValue::from_str(value).is_err() {
        return Err(Refused::new("has a value that cannot be sent", "leave out line breaks and control characters"));
    }
    Ok((header.as_str().to_owned(), value.to_owned()))
}

/// A key of Standard Webhooks, or any text, whose bytes are the key then.
///
/// # Errors
/// What is wrong with it, without any of it.
pub fn key(text: &str) -> Result<Secret<Vec<u8>>, Refused> {
    let Some(encoded) = text.strip_prefix(KEY_PREFIX) else {
        return if text.is_empty() {
            Err(Refused::new(
                "is an empty key",
                "write a key of Standard Webhooks: whsec_ and base64 of 24 to 64 bytes",
            ))
        } else {
            Ok(Secret::new(text.as_bytes().to_vec()))
        };
    };
    let fix = "write whsec_ and base64 of 24 to 64 random bytes";
    let key = BASE64.decode(encoded).map_err(|_| Refused::new("is a whsec_ key that is not base64", fix))?;
    if KEY_BYTES.contains(&key.len()) {
        Ok(Secret::new(key))
    } else {
        Err(Refused::new(format!("is a whsec_ key of {} bytes", key.len()), fix))
    }
}

/// A DNS subdomain, which names of Deployments are
/// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>).
pub(super) fn is_object_name(text: &str) -> bool {
    const CHARS_MAX: usize = 253;
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= CHARS_MAX && text.starts_with(is_outer) && text.ends_with(is_outer) && text.chars().all(is_inner)
}

impl fmt::Display for WorkloadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Namespace(namespace) => write!(f, "{namespace}/*"),
            Self::Name(name) | Self::Own(name) => f.write_str(name),
            Self::Exact { namespace, name } => write!(f, "{namespace}/{name}"),
            Self::OfKind(kind, within) => write!(f, "{kind}/{within}"),
        }
    }
}
