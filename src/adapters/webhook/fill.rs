//! Fills the body that the owner of a hook wrote with the values of an event, when it is sent. The ledger has the event; the text may
//! hold a credential, and so stays in the configuration, as parameters do.

use serde_json::{Value, json};

use super::body::{self, Parts};
use super::marked::REASON;
use crate::config::{BodyTemplate, BodyValue};
use notices::notice::{Kind, Severity};

/// The body of an event that was stored as a document.
///
/// # Errors
/// In words: there is no such body.
pub fn filled(template: &BodyTemplate, id: &str, document: &str) -> Result<String, &'static str> {
    let parts = body::parts(document).ok_or("the hook had another format when this was stored")?;
    let data: Value = serde_json::from_str(parts.data.get()).unwrap_or_default();
    let of = |value| value_of(value, id, document, &parts, &data);
    template.fill(of).ok_or("the body is longer than a body may be: it names the event too often")
}

fn value_of(value: BodyValue, id: &str, document: &str, parts: &Parts<'_>, data: &Value) -> Value {
    let kind = Kind::named(&parts.r#type);
    let own = |name: &str| data.get(name).cloned().unwrap_or_default();
    match value {
        BodyValue::Type => json!(parts.r#type),
        BodyValue::Id => json!(id),
        BodyValue::Severity => json!(match kind.map(Kind::severity) {
            None | Some(Severity::Info) => "info",
            Some(Severity::Warn) => "warning",
            Some(Severity::Error) => "error",
        }),
        BodyValue::Reason => json!(kind.map_or(REASON, Kind::reason)),
        BodyValue::Timestamp => json!(parts.timestamp),
        BodyValue::Event => serde_json::from_str(document).unwrap_or_default(),
        BodyValue::Kind => match ["workload", "pipeline", "repo"].into_iter().find(|name| data.get(name).is_some()) {
            Some("workload") => own("workload").get("kind").cloned().unwrap_or_default(),
            Some(name) => json!(name),
            None => Value::Null,
        },
        BodyValue::Namespace | BodyValue::Name => {
            let subject = ["workload", "pipeline", "repo"].into_iter().find_map(|name| data.get(name));
            subject.and_then(|subject| subject.get(value.name())).cloned().unwrap_or_default()
        }
        BodyValue::Distributions => of_purges(data, |purge| vec![purge["distribution"].clone()]),
        BodyValue::Paths => of_purges(data, |purge| purge["paths"].as_array().cloned().unwrap_or_default()),
        BodyValue::Message
        | BodyValue::Seq
        | BodyValue::Change
        | BodyValue::Rollout
        | BodyValue::Hosts
        | BodyValue::Environment
        | BodyValue::Revision
        | BodyValue::From
        | BodyValue::Ticket
        | BodyValue::PullRequest
        | BodyValue::Action
        | BodyValue::Attempt
        | BodyValue::Job
        | BodyValue::Plan => own(value.name()),
    }
}

/// Each once, in order; `null` where the event is about no workload.
fn of_purges(data: &Value, of: impl Fn(&Value) -> Vec<Value>) -> Value {
    let Some(purges) = data.get("purges").and_then(Value::as_array) else { return Value::Null };
    let mut found: Vec<Value> = Vec::new();
    for one in purges.iter().flat_map(of) {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Value::Array(found)
}
