//! A notice as Flux's notification-controller hands an event to a generic webhook (<https://fluxcd.io/flux/components/notification/events/>),
//! so that what receives those receives ours.
//!
//! ```json
//! {"involvedObject": {"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "namespace": "shop", "name": "web", "uid": "…"},
//!  "severity": "info", "timestamp": "2026-11-20T10:00:00Z", "message": "…", "reason": "PromotionStarted",
//!  "metadata": {"allclear.dev/environment": "prod", "allclear.dev/version": "1.2.4"},
//!  "reportingController": "allclear", "reportingInstance": "allclear"}
//! ```
//!
//! The instance is not the member that sends it: any of them may, and the bytes of a delivery are always the same.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use kernel::id::ObjectId;
use kernel::text::{first, visible};
use notices::delivery::BODY_BYTES_MAX;
use notices::notice::{About, Notice, Severity};

/// The header by which notification-controller names who reports.
pub const COMPONENT: &str = "gotk-component";

/// What [`COMPONENT`] and the event say.
pub const REPORTER: &str = "allclear";

/// What texts are cut to where a body is too long; an escape takes six bytes, and there are five such texts.
const TEXT_CHARS_MAX: usize = 1_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    involved_object: Involved<'a>,
    severity: &'static str,
    timestamp: String,
    message: &'a str,
    reason: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<&'static str, &'a str>,
    reporting_controller: &'static str,
    reporting_instance: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Involved<'a> {
    api_version: &'static str,
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
}

/// The event of a notice. The same notice gives the same bytes, at most [`BODY_BYTES_MAX`] of them.
///
/// # Errors
/// None are known; the type of `serde_json` promises none.
pub fn event(notice: &Notice) -> Result<String, serde_json::Error> {
    let whole = cut(notice, usize::MAX)?;
    if whole.len() <= BODY_BYTES_MAX { Ok(whole) } else { cut(notice, TEXT_CHARS_MAX) }
}

/// An event that tells of a test, about an object that there is none of.
pub fn test(timestamp: &str, message: &str) -> String {
    serde_json::json!({
        "involvedObject": {
            "apiVersion": "allclear.dev/v1alpha1", "kind": "WebhookTest", "namespace": REPORTER, "name": "test",
        },
        "severity": "info", "timestamp": timestamp, "message": message, "reason": "WebhookTest",
        "metadata": {"allclear.dev/test": "true"},
        "reportingController": REPORTER, "reportingInstance": REPORTER,
    })
    .to_string()
}

fn cut(notice: &Notice, chars: usize) -> Result<String, serde_json::Error> {
    let (message, change) = (visible(&notice.message), visible(&notice.change));
    let short = |text| first(text, chars);
    let mut metadata = BTreeMap::new();
    let involved_object = match &notice.about {
        About::Workload(id, _) => {
            metadata.insert("allclear.dev/change", short(&change));
            let (namespace, name) = (ObjectId::namespace(id), id.name.as_str());
            Involved { api_version: id.kind.api_version(), kind: id.kind.name(), namespace, name, uid: None }
        }
        About::Pipeline(id, fact) => {
            if let Some(fact) = fact {
                let known = [
                    ("allclear.dev/environment", Some(fact.environment.0.as_str())),
                    ("allclear.dev/version", fact.revision.as_ref().map(|revision| revision.0.as_str())),
                    ("allclear.dev/ticket", fact.ticket.as_deref()),
                    ("allclear.dev/pull-request", fact.request.as_deref()),
                ];
                metadata.extend(known.into_iter().filter_map(|(name, value)| Some((name, short(value?)))));
            }
            let (api_version, uid) = ("allclear.dev/v1alpha1", Some(notice.rollout.as_str()));
            Involved { api_version, kind: "Pipeline", namespace: &id.namespace, name: &id.name, uid }
        }
        About::Repo(id, fact) => {
            if let Some(fact) = fact {
                let known = [
                    ("allclear.dev/revision", Some(fact.revision.as_str())),
                    ("allclear.dev/action", Some(fact.action.as_str())),
                    ("allclear.dev/ticket", fact.ticket.as_deref()),
                    ("allclear.dev/job", fact.job.as_deref()),
                ];
                metadata.extend(known.into_iter().filter_map(|(name, value)| Some((name, short(value?)))));
            }
            let (api_version, namespace, name) = ("allclear.dev/v1alpha1", id.namespace.as_str(), id.name.as_str());
            Involved { api_version, kind: "Repo", namespace, name, uid: None }
        }
    };
    let event = Event {
        involved_object,
        severity: if notice.kind.severity() == Severity::Info { "info" } else { "error" },
        // Out of range only beyond the year 9999.
        timestamp: Timestamp::from_millisecond(notice.at_ms).unwrap_or(Timestamp::MAX).to_string(),
        message: short(&message),
        reason: notice.kind.reason(),
        metadata,
        reporting_controller: REPORTER,
        reporting_instance: REPORTER,
    };
    serde_json::to_string(&event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{Environment, PipelineId, Revision, Seq, WorkloadId};
    use notices::notice::{Kind, PromotionFact};

    fn notice() -> Notice {
        let fact = PromotionFact {
            environment: Environment("prod".to_owned()),
            revision: Some(Revision("1.2.4".to_owned())),
            from: None,
            ticket: None,
            request: None,
        };
        Notice {
            id: "msg_1".into(),
            kind: Kind::PromotionStarted,
            about: About::Pipeline(PipelineId::new("shop", "web"), Some(fact)),
            seq: Seq(7),
            at_ms: 1_763_632_800_000,
            rollout: "uid".to_owned(),
            change: "1.2.3 → 1.2.4".to_owned(),
            message: "1.2.4 is promoted to prod".to_owned(),
        }
    }

    #[test]
    fn a_promotion_is_byte_for_byte_what_is_documented() {
        let expected = concat!(
            r#"{"involvedObject":{"apiVersion":"allclear.dev/v1alpha1","kind":"Pipeline","namespace":"shop","name":"web","#,
            r#""uid":"uid"},"severity":"info","timestamp":"2025-11-20T10:00:00Z","message":"1.2.4 is promoted to prod","#,
            r#""reason":"PromotionStarted","metadata":{"allclear.dev/environment":"prod","allclear.dev/version":"1.2.4"},"#,
            r#""reportingController":"allclear","reportingInstance":"allclear"}"#
        );
        assert_eq!(event(&notice()).expect("text"), expected);
    }

    #[test]
    fn a_purge_is_about_its_deployment_and_what_failed_is_an_error() {
        let about = WorkloadId::deployment("shop", "web").into();
        let failed = Notice { kind: Kind::PurgeFailed, about, ..notice() };
        let json: serde_json::Value = serde_json::from_str(&event(&failed).expect("text")).expect("JSON");
        assert_eq!(json["involvedObject"]["kind"], "Deployment");
        assert_eq!((&json["severity"], &json["reason"]), (&"error".into(), &"PurgeFailed".into()));
        assert_eq!(json["metadata"]["allclear.dev/change"], "1.2.3 → 1.2.4");
    }

    #[test]
    fn t12_an_event_stays_within_its_bound_and_hides_nothing() {
        let long = Notice { message: "\n\u{202e}".repeat(100_000), ..notice() };
        let text = event(&long).expect("text");
        assert!(text.len() <= BODY_BYTES_MAX && text.contains(r"\\n\\u{202e}"), "{}", text.len());
    }
}
