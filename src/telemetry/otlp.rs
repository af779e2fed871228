//! Spans in the form that collectors read: OTLP over HTTP, its JSON encoding.
//!
//! Form: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>: ids in hexadecimal, 64-bit numbers as texts, values of
//! enumerations as numbers, names in lowerCamelCase. Messages:
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/v1.7.0/opentelemetry/proto/trace/v1/trace.proto>. Names of attributes
//! follow the semantic conventions where one fits, and begin with `allclear.` otherwise.
//!
//! A library for this costs 31 s of build and 10 crates (decision 45); what is used of it is this file.
//!
//! Not for what is a span (`kernel::trace`), nor for how it is sent (`app::exporting`).

use serde::Serialize;
use serde_json::{Value, json};

use kernel::trace::{Fact, Span, Stage};

/// The sender of all spans of this process: attributes by name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Resource(pub Vec<(String, String)>);

/// `SPAN_KIND_INTERNAL`
const INTERNAL: u8 = 1;

/// `SPAN_KIND_CLIENT`
const CLIENT: u8 = 3;

/// `STATUS_CODE_ERROR`; a status is left out otherwise, which means unset.
const ERROR: u8 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent<'a> {
    trace_id: &'a str,
    span_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<&'a str>,
    name: &'static str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

/// The body of one request. Without spans it asks only whether the collector answers.
pub fn body(resource: &Resource, spans: &[Span]) -> String {
    if spans.is_empty() {
        return json!({"resourceSpans": []}).to_string();
    }
    let attributes: Vec<Value> = resource.0.iter().map(|(name, value)| text(name, value)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes},
        "scopeSpans": [{
            "scope": {"name": "allclear", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans.iter().map(sent).collect::<Vec<_>>(),
        }],
    }]})
    .to_string()
}

fn sent(span: &Span) -> Sent<'_> {
    let Span { trace, id, parent, stage, workload, start_ms, end_ms, fault, facts } = span;
    let mut attributes =
        vec![text("k8s.namespace.name", &workload.namespace), text("k8s.deployment.name", &workload.name)];
    attributes.extend(facts.iter().map(|(name, fact)| attribute(name, fact)));
    attributes.extend(fault.iter().map(|fault| text("error.type", fault.kind)));
    Sent {
        trace_id: trace,
        span_id: id,
        parent_span_id: parent.as_deref(),
        name: stage.name(),
        kind: match stage {
            Stage::Rollout | Stage::Pods | Stage::Agreement => INTERNAL,
            Stage::Purge | Stage::Webhook => CLIENT,
        },
        start_time_unix_nano: nanos(*start_ms),
        end_time_unix_nano: nanos(*end_ms),
        attributes,
        status: fault.as_ref().map(|fault| json!({"code": ERROR, "message": fault.message})),
    }
}

fn attribute(name: &str, fact: &Fact) -> Value {
    match fact {
        Fact::Text(value) => text(name, value),
        Fact::Number(number) => json!({"key": name, "value": {"intValue": number.to_string()}}),
        Fact::Texts(texts) => {
            let values: Vec<Value> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"key": name, "value": {"arrayValue": {"values": values}}})
        }
    }
}

fn text(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

/// Nanoseconds since the Unix epoch; nothing happens before it.
fn nanos(time_ms: i64) -> String {
    (u128::from(time_ms.max(0).unsigned_abs()) * 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{Member, WorkloadId};
    use kernel::trace::Fault;

    #[test]
    fn a_span_has_the_form_of_the_specification() {
        let (workload, member) = (WorkloadId::deployment("shop", "web"), Member::from("eu-1"));
        let rollout = "5b8efff798038103d269b633813fc60c";
        let times = (1_544_712_660_000, 1_544_712_661_000);
        let span = Span::new(rollout, &workload, (Stage::Purge, &member, "E1"), times).unwrap();
        let span = span
            .with("allclear.seq", Fact::Number(7))
            .with("allclear.hosts", Fact::Texts(vec!["a.example".to_owned()]))
            .with("allclear.change", Fact::Text(String::new()))
            .failed(Some(Fault { kind: "impossible", message: "it is gone".to_owned() }));
        let resource = Resource(vec![("service.name".to_owned(), "allclear".to_owned())]);
        let body: Value = serde_json::from_str(&body(&resource, std::slice::from_ref(&span))).unwrap();
        // Written by hand from the example of the specification, examples/trace.json of opentelemetry-proto.
        let expected = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "allclear"}}]},
            "scopeSpans": [{
                "scope": {"name": "allclear", "version": env!("CARGO_PKG_VERSION")},
                "spans": [{
                    "traceId": "5b8efff798038103d269b633813fc60c",
                    "spanId": span.id,
                    "parentSpanId": span.parent,
                    "name": "purge",
                    "kind": 3,
                    "startTimeUnixNano": "1544712660000000000",
                    "endTimeUnixNano": "1544712661000000000",
                    "attributes": [
                        {"key": "k8s.namespace.name", "value": {"stringValue": "shop"}},
                        {"key": "k8s.deployment.name", "value": {"stringValue": "web"}},
                        {"key": "allclear.seq", "value": {"intValue": "7"}},
                        {"key": "allclear.hosts", "value": {"arrayValue": {"values": [{"stringValue": "a.example"}]}}},
                        {"key": "error.type", "value": {"stringValue": "impossible"}},
                    ],
                    "status": {"code": 2, "message": "it is gone"},
                }],
            }],
        }]});
        assert_eq!(body, expected);
    }

    #[test]
    fn the_root_has_no_parent_and_what_went_well_no_status() {
        let (workload, member) = (WorkloadId::deployment("shop", "web"), Member::from("eu-1"));
        let rollout = "5b8efff798038103d269b633813fc60c";
        let span = Span::new(rollout, &workload, (Stage::Rollout, &member, ""), (1, 2)).unwrap();
        let body: Value = serde_json::from_str(&body(&Resource::default(), &[span])).unwrap();
        let sent = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!((sent.get("parentSpanId"), sent.get("status"), &sent["kind"]), (None, None, &json!(1)));
    }
}
