//! The event as a document, which is what most receivers read, and what other formats are made from.
//!
//! It has the shape that Standard Webhooks recommends (`type`, `timestamp`, `data`); `docs/webhooks.schema.json` is its schema:
//!
//! ```json
//! {"type": "purge.completed", "timestamp": "2026-11-20T10:00:00Z",
//!  "data": {"workload": {"kind": "deployment", "namespace": "shop", "name": "web"},
//!           "rollout": "3f0c…", "seq": 7, "change": "web: 1.2.3 → 1.2.4", "message": "…",
//!           "hosts": ["www.example.com"],
//!           "purges": [{"distribution": "E1", "invalidation": "I1", "paths": ["/*"]}]},
//!  "parameters": {"site": "web"}}
//! ```
//!
//! Of a promotion, `data` has other members; those that are not known are left out:
//!
//! ```json
//! {"pipeline": {"namespace": "shop", "name": "web"}, "environment": "prod", "revision": "1.2.4", "from": "1.2.3", "seq": 7,
//!  "ticket": "0123456789ab", "pullRequest": "https://git.example.com/shop/pull/7", "change": "…", "message": "…"}
//! ```
//!
//! Of a run of a Repo:
//!
//! ```json
//! {"repo": {"namespace": "platform", "name": "infra"}, "revision": "3f0c…", "action": "apply", "attempt": 1, "seq": 7,
//!  "job": "infra-0123456789ab", "ticket": "0123456789ab", "plan": "2 to add, 1 to change, 0 to destroy", "skipped": ["9a1b…"],
//!  "message": "…"}
//! ```
//!
//! And the old form, which is the parameters of a hook and nothing else. Members are added in later versions, never renamed or removed. `parameters` is there if the hook has any, and
//! `data.truncated` if lists were cut to keep the notice or the document within its bound.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::form_urlencoded;

use crate::config::Secret;
use kernel::id::{Environment, Kind, PipelineId, RepoId, Revision, WorkloadId};
use kernel::names::host::Host;
use kernel::text::{first, visible};
use notices::delivery::BODY_BYTES_MAX;
use notices::notice::{About, Notice, PurgeFact, RunFact};

/// What lists are cut to, one after the other, until the document is within its bound.
const ITEMS_MAX: [usize; 4] = [usize::MAX, 100, 10, 0];

/// What texts are cut to in a document that is too long without any list. Even if every character has to be written as
/// an escape of six bytes, three such texts take less than half of [`BODY_BYTES_MAX`].
const TEXT_CHARS_MAX: usize = 1_000;

#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Rollout(Rollout<'a>),
    Promotion(Promotion<'a>),
    Run(Box<Run<'a>>),
}

#[derive(Serialize)]
struct Rollout<'a> {
    workload: Workload<'a>,
    rollout: &'a str,
    seq: u64,
    change: &'a str,
    message: &'a str,
    hosts: &'a [Host],
    purges: &'a [PurgeFact],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize)]
struct Workload<'a> {
    kind: Kind,
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Promotion<'a> {
    pipeline: Named<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a Environment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a Revision>,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pull_request: Option<&'a str>,
    change: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct Run<'a> {
    repo: Named<'a>,
    #[serde(flatten)]
    fact: Option<&'a RunFact>,
    seq: u64,
    message: &'a str,
}

/// The JSON document of a notice. The same notice gives the same bytes, at most [`BODY_BYTES_MAX`] of them.
///
/// # Errors
/// None are known; the type of `serde_json` promises none.
pub fn json(notice: &Notice) -> Result<String, serde_json::Error> {
    within(notice, BODY_BYTES_MAX)
}

/// The same, of so many bytes; not less than half of [`BODY_BYTES_MAX`].
///
/// # Errors
/// As [`json`].
pub fn within(notice: &Notice, bytes_max: usize) -> Result<String, serde_json::Error> {
    for items in ITEMS_MAX {
        let text = document(notice, items, usize::MAX)?;
        if text.len() <= bytes_max {
            return Ok(text);
        }
    }
    document(notice, 0, TEXT_CHARS_MAX)
}

/// A time as every format has it.
pub fn time(at_ms: i64) -> String {
    // Out of range only beyond the year 9999.
    Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX).to_string()
}

fn document(notice: &Notice, items: usize, chars: usize) -> Result<String, serde_json::Error> {
    // Two sentences for people, which receivers put into chats and terminals.
    let (change, message) = (visible(&notice.change), visible(&notice.message));
    let document = Document {
        r#type: notice.kind.name(),
        timestamp: time(notice.at_ms),
        data: match &notice.about {
            About::Workload(WorkloadId { kind, namespace, name }, mentions) => {
                let hosts = mentions.hosts.get(..items).unwrap_or(&mentions.hosts);
                let purges = mentions.purges.get(..items).unwrap_or(&mentions.purges);
                Data::Rollout(Rollout {
                    workload: Workload { kind: *kind, namespace, name },
                    rollout: first(&notice.rollout, chars),
                    seq: notice.seq.0,
                    change: first(&change, chars),
                    message: first(&message, chars),
                    hosts,
                    purges,
                    truncated: mentions.cut
                        || hosts.len() < mentions.hosts.len()
                        || purges.len() < mentions.purges.len()
                        || chars < usize::MAX,
                })
            }
            About::Pipeline(PipelineId { namespace, name }, fact) => {
                let fact = fact.as_ref();
                Data::Promotion(Promotion {
                    pipeline: Named { namespace, name },
                    environment: fact.map(|fact| &fact.environment),
                    revision: fact.and_then(|fact| fact.revision.as_ref()),
                    from: fact.and_then(|fact| fact.from.as_ref()),
                    seq: notice.seq.0,
                    ticket: fact.and_then(|fact| fact.ticket.as_deref()),
                    pull_request: fact.and_then(|fact| fact.request.as_deref()),
                    change: first(&change, chars),
                    message: first(&message, chars),
                })
            }
            About::Repo(RepoId { namespace, name }, fact) => Data::Run(Box::new(Run {
                repo: Named { namespace, name },
                fact: fact.as_ref(),
                seq: notice.seq.0,
                message: first(&message, chars),
            })),
        },
    };
    serde_json::to_string(&document)
}

/// A document, as far as other formats take it apart.
#[derive(Deserialize)]
pub struct Parts<'a> {
    #[serde(borrow)]
    pub r#type: Cow<'a, str>,
    #[serde(borrow)]
    pub timestamp: Cow<'a, str>,
    #[serde(borrow)]
    pub data: &'a RawValue,
}

/// The parts of a document; `None` of what was stored for a hook that had another format then.
pub fn parts(document: &str) -> Option<Parts<'_>> {
    serde_json::from_str(document).ok()
}

/// A document with the hook's parameters as its last member. They may hold credentials, so they are added when it is
/// sent and never stored.
///
/// # Errors
/// None are known; the type of `serde_json` promises none.
pub fn with_parameters(
    document: &str,
    parameters: &BTreeMap<String, Secret<String>>,
) -> Result<String, serde_json::Error> {
    let exposed: BTreeMap<&str, &str> = parameters.iter().map(|(name, value)| (&**name, &**value.expose())).collect();
    match document.strip_suffix('}') {
        Some(open) if !exposed.is_empty() => {
            Ok(format!("{open},\"parameters\":{}}}", serde_json::to_string(&exposed)?))
        }
        Some(_) | None => Ok(document.to_owned()),
    }
}

/// Parameters as `application/x-www-form-urlencoded`, in the order of their names.
pub fn form(parameters: &BTreeMap<String, Secret<String>>) -> String {
    let pairs = parameters.iter().map(|(name, value)| (name, value.expose()));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::Seq;
    use notices::notice::{self, Mentions};

    fn mentions() -> Mentions {
        let purge = PurgeFact {
            distribution: "E1".parse().expect("an id"),
            invalidation: Some("I1".into()),
            paths: vec!["/*".parse().expect("a path")],
        };
        let hosts = vec![Host::parse("www.example.com").expect("a host")];
        Mentions { hosts, purges: vec![purge], ..Mentions::default() }
    }

    fn mentioning(mentions: Mentions) -> Notice {
        Notice { about: About::Workload(WorkloadId::deployment("shop", "web"), mentions), ..notice() }
    }

    fn notice() -> Notice {
        Notice {
            id: "msg_1".into(),
            kind: notice::Kind::PurgeCompleted,
            about: About::Workload(WorkloadId::deployment("shop", "web"), mentions()),
            seq: Seq(7),
            at_ms: 1_763_632_800_000,
            rollout: "3f0c".to_owned(),
            change: "web: 1 → 2".to_owned(),
            message: "fresh".to_owned(),
        }
    }

    #[test]
    fn the_document_is_byte_for_byte_what_is_documented() {
        let text = json(&notice()).expect("text");
        let expected = concat!(
            r#"{"type":"purge.completed","timestamp":"2025-11-20T10:00:00Z","data":{"#,
            r#""workload":{"kind":"deployment","namespace":"shop","name":"web"},"rollout":"3f0c","seq":7,"#,
            r#""change":"web: 1 → 2","message":"fresh","hosts":["www.example.com"],"#,
            r#""purges":[{"distribution":"E1","invalidation":"I1","paths":["/*"]}]}}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn the_document_of_a_promotion_has_what_is_known_of_it() {
        let fact = notice::PromotionFact {
            environment: Environment("prod".to_owned()),
            revision: Some(Revision("1.2.4".to_owned())),
            from: None,
            ticket: Some("0123456789ab".to_owned()),
            request: None,
        };
        let kind = notice::Kind::PromotionWaiting;
        let about = About::Pipeline(PipelineId::new("shop", "web"), Some(fact));
        let text = json(&Notice { kind, about, ..notice() }).expect("text");
        let expected = concat!(
            r#"{"type":"promotion.waiting","timestamp":"2025-11-20T10:00:00Z","data":{"pipeline":{"namespace":"shop","#,
            r#""name":"web"},"environment":"prod","revision":"1.2.4","seq":7,"ticket":"0123456789ab","#,
            r#""change":"web: 1 → 2","message":"fresh"}}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_document_stays_within_its_bound_and_says_when_something_is_missing() {
        let hosts = (0..5_000).filter_map(|n| Host::parse(&format!("host-{n}.example.com")).ok()).collect();
        let mut many = mentioning(Mentions { hosts, ..mentions() });
        let text = json(&many).expect("text");
        assert!(text.len() <= BODY_BYTES_MAX && text.contains(r#""truncated":true"#), "{}", text.len());
        many.message = "\u{1}".repeat(100_000);
        let text = json(&many).expect("text");
        assert!(text.len() <= BODY_BYTES_MAX, "{}", text.len());
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn a_notice_that_does_not_mention_everything_says_so() {
        let text = json(&mentioning(Mentions { cut: true, ..mentions() })).expect("text");
        assert!(text.contains(r#""truncated":true"#), "{text}");
    }

    // Faults: T12
    #[test]
    fn t12_a_sentence_for_people_hides_nothing() {
        let sly = "1.0\n\u{1b}[31m\u{202e}2.0".to_owned();
        let text = json(&Notice { change: sly.clone(), message: sly, ..notice() }).expect("text");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for sentence in ["change", "message"] {
            assert_eq!(document["data"][sentence], "1.0\\n\\u{1b}[31m\\u{202e}2.0");
        }
    }

    #[test]
    fn parameters_are_the_last_member_and_escaped() {
        let parameters = BTreeMap::from([("a\"b".to_owned(), Secret::new("c d&e".to_owned()))]);
        assert_eq!(
            with_parameters("{\"x\":1}", &parameters).ok().as_deref(),
            Some(r#"{"x":1,"parameters":{"a\"b":"c d&e"}}"#)
        );
        assert_eq!(with_parameters("{\"x\":1}", &BTreeMap::new()).ok().as_deref(), Some(r#"{"x":1}"#));
        assert_eq!(form(&parameters), "a%22b=c+d%26e");
    }
}
