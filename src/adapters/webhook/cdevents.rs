//! A notice as an event of CDEvents 0.5.1 (<https://github.com/cdevents/spec/tree/v0.5.1>), which travels as a CloudEvent.
//!
//! | notice | event |
//! |---|---|
//! | `purge.completed` | `service.published` |
//! | `promotion.completed` | `service.upgraded`, or `service.deployed` where nothing was there before |
//! | `run.started` | `taskrun.started` |
//! | `run.completed`, `run.planned`, `run.failed`, of a Job | `taskrun.finished` |
//! | any other | one of ours, `dev.cdeventsx.allclear-SUBJECT.PREDICATE` |
//!
//! No event says more than its notice: that a rollout is complete is one of ours, because CDEvents asks for the artifact then, and the
//! notice has versions in words alone. Of a group there is one event, as there is one notice; events for a deployment to several targets are
//! proposed (<https://github.com/cdevents/spec/pull/319>, <https://github.com/cdevents/spec/pull/328>) and not released. The `data` of our
//! own event is in each, as custom data or as the content of what is ours.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::body;
use super::cloud::SOURCE;
use kernel::id::{ObjectId, Subject};
use kernel::text::{first, visible};
use notices::delivery::BODY_BYTES_MAX;
use notices::notice::{About, Kind, Notice};

/// The version of the specification.
const SPECIFICATION: &str = "0.5.1";

/// What the rest of an event may take beside our data: ids, names, and a message.
const AROUND_BYTES_MAX: usize = 16 * 1024;

/// What a message is cut to, which may take six bytes for each character.
const MESSAGE_CHARS_MAX: usize = 1_000;

#[derive(Serialize)]
struct Event<'a> {
    context: Context<'a>,
    subject: What<'a>,
    #[serde(rename = "customData", skip_serializing_if = "Option::is_none")]
    custom_data: Option<&'a RawValue>,
    #[serde(rename = "customDataContentType", skip_serializing_if = "Option::is_none")]
    custom_data_content_type: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'static str,
    r#type: String,
    timestamp: String,
    /// The same in all events of one rollout, promotion or run.
    #[serde(skip_serializing_if = "str::is_empty")]
    chain_id: &'a str,
}

#[derive(Serialize)]
struct What<'a> {
    id: String,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Theirs(Value),
    Ours(&'a RawValue),
}

/// An event of the specification: its type, the id of its subject, and the content of that.
struct Theirs {
    r#type: &'static str,
    id: String,
    content: Value,
}

/// The event of a notice. The same notice gives the same bytes, at most [`BODY_BYTES_MAX`] of them.
///
/// # Errors
/// None are known; the type of `serde_json` promises none.
pub fn event(notice: &Notice) -> Result<String, serde_json::Error> {
    let document = body::within(notice, BODY_BYTES_MAX - AROUND_BYTES_MAX)?;
    let data = serde_json::from_str::<body::Parts<'_>>(&document)?.data;
    let (r#type, subject, custom_data) = match theirs(notice) {
        Some(Theirs { r#type, id, content }) => {
            (r#type.to_owned(), What { id, content: Content::Theirs(content) }, Some(data))
        }
        None => {
            let id = notice.about.subject().to_string();
            (ours(notice.kind.name()), What { id, content: Content::Ours(data) }, None)
        }
    };
    let context = Context {
        specversion: SPECIFICATION,
        id: notice.id.0.as_str(),
        source: SOURCE,
        r#type,
        timestamp: body::time(notice.at_ms),
        chain_id: first(&notice.rollout, MESSAGE_CHARS_MAX),
    };
    let custom_data_content_type = custom_data.map(|_| "application/json");
    serde_json::to_string(&Event { context, subject, custom_data, custom_data_content_type })
}

/// An event that tells of a test.
pub fn test(id: &str, timestamp: &str, message: &str) -> String {
    json!({
        "context": {
            "specversion": SPECIFICATION, "id": id, "source": SOURCE, "type": ours("webhook.test"), "timestamp": timestamp,
        },
        "subject": {"id": "test", "content": {"test": true, "message": message}},
    })
    .to_string()
}

/// The type of an event that the specification has not.
fn ours(name: &str) -> String {
    format!("dev.cdeventsx.allclear-{}.0.1.0", name.replace('_', ""))
}

fn theirs(notice: &Notice) -> Option<Theirs> {
    let subject = notice.about.subject();
    match (notice.kind, &notice.about) {
        (Kind::PurgeCompleted, About::Workload(id, _)) => Some(Theirs {
            r#type: "dev.cdevents.service.published.0.3.0",
            id: subject.to_string(),
            content: json!({"environment": {"id": id.namespace}}),
        }),
        (Kind::PromotionCompleted, About::Pipeline(_, Some(fact))) => Some(Theirs {
            r#type: match fact.from {
                Some(_) => "dev.cdevents.service.upgraded.0.3.0",
                None => "dev.cdevents.service.deployed.0.3.0",
            },
            id: subject.to_string(),
            content: json!({
                "environment": {"id": fact.environment.0},
                "artifactId": artifact(&subject, &fact.revision.as_ref()?.0),
            }),
        }),
        (Kind::RunStarted | Kind::RunCompleted | Kind::RunPlanned | Kind::RunFailed, About::Repo(id, Some(fact))) => {
            let (name, run) = (&fact.action, json!({"id": notice.rollout}));
            let r#type = match notice.kind {
                Kind::RunStarted => "dev.cdevents.taskrun.started.0.3.0",
                _ => "dev.cdevents.taskrun.finished.0.3.0",
            };
            let content = match notice.kind {
                Kind::RunStarted => json!({"taskName": name, "pipelineRun": run}),
                Kind::RunFailed => {
                    let message = visible(&notice.message);
                    let errors = first(&message, MESSAGE_CHARS_MAX);
                    json!({"taskName": name, "pipelineRun": run, "outcome": "failure", "errors": errors})
                }
                _ => json!({"taskName": name, "pipelineRun": run, "outcome": "success"}),
            };
            Some(Theirs { r#type, id: format!("{}/{}", id.namespace, fact.job.as_ref()?), content })
        }
        _ => None,
    }
}

/// A package URL (<https://github.com/package-url/purl-spec>): what is promoted may be of any kind.
fn artifact(subject: &Subject, revision: &str) -> String {
    let (namespace, name) = match subject {
        Subject::Workload(id) => (ObjectId::namespace(id), id.name.as_str()),
        Subject::Pipeline(id) => (id.namespace.as_str(), id.name.as_str()),
        Subject::Repo(id) => (id.namespace.as_str(), id.name.as_str()),
    };
    let mut encoded = String::new();
    for byte in revision.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b':' => encoded.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("pkg:generic/{namespace}/{name}@{encoded}")
}
