//! Notices as Kubernetes Events on their workload, where `kubectl describe` shows them.
//!
//! An Event's name is derived from its notice, so a notice told again after a restart meets its own Event (409) and there
//! is only ever one. Events are for recent eyes: the API server forgets them after an hour by default.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>
//!
//! Not for deciding what is told, nor for trying again.

use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::call::{Attempt, Collection, Failure, Resource, read};
use crate::domain::id::Kind as WorkloadKind;
use crate::domain::notice::{Kind, Notice};
use crate::ports::{EventSink, PortError};

const EVENTS: Resource = Resource { group: "events.k8s.io", version: "v1", plural: "events" };

/// Who reports, in every Event.
pub const CONTROLLER: &str = "allclear.dev/controller";

/// Longest `note` the API server accepts, in bytes.
const NOTE_BYTES_MAX: usize = 1024;

/// Longest `reportingInstance` the API server accepts, in bytes.
const INSTANCE_BYTES_MAX: usize = 128;

/// Longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Most bytes of an answer: the Event itself, with the fields the server adds.
const BYTES_MAX: usize = 64 * 1024;

/// Publishes Events through the API server.
pub struct Events {
    client: Client,
    instance: String,
}

impl Events {
    /// `instance` names this process: the pod, or the host it runs on.
    pub fn new(client: Client, instance: &str) -> Self {
        let instance = if instance.is_empty() { "allclear" } else { instance };
        Self { client, instance: cut(instance, INSTANCE_BYTES_MAX).to_owned() }
    }

    fn body(&self, notice: &Notice, workload_uid: &str) -> Value {
        let workload = &notice.workload;
        let (api_version, kind) = match workload.kind {
            WorkloadKind::Deployment => ("apps/v1", "Deployment"),
        };
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": workload.namespace, "name": name_of(notice)},
            "eventTime": micro_time(notice.at_ms),
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance,
            "reason": notice.kind.reason(),
            "action": action(notice.kind),
            "type": if notice.kind.is_warning() { "Warning" } else { "Normal" },
            "note": note(&format!("{} ({})", notice.message, notice.change)),
            "regarding": {
                "apiVersion": api_version, "kind": kind,
                "namespace": workload.namespace, "name": workload.name, "uid": workload_uid,
            },
        })
    }
}

#[async_trait]
impl EventSink for Events {
    async fn publish(&self, notice: &Notice, workload_uid: &str) -> Result<(), PortError> {
        let collection = Collection::of(EVENTS, &notice.workload.namespace);
        let attempt = Attempt { verb: "create", collection: &collection, name: None };
        let body = self.body(notice, workload_uid).to_string().into_bytes();
        let request = kube::core::Request::new(collection.path()).create(&PostParams::default(), body);
        let request = request.map_err(|error| attempt.failed(Failure::unanswered(error)))?;
        match read(&self.client, request, ANSWER_MAX, BYTES_MAX).await {
            // Already there: an earlier attempt succeeded, and its answer was lost or forgotten.
            Ok(_) | Err(Failure { status: Some(409), .. }) => Ok(()),
            Err(failure) => Err(attempt.failed(failure)),
        }
    }
}

/// `web.` and the notice's id, which is what Kubernetes' own Events look like. A name may hold lower-case letters, digits,
/// `-` and `.`; the id's underscore may not be in one.
fn name_of(notice: &Notice) -> String {
    let id: String = notice.id.0.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = cut(&id, NAME_BYTES_MAX / 2).to_ascii_lowercase();
    let workload = cut(&notice.workload.name, NAME_BYTES_MAX - id.len() - 1);
    format!("{}.{id}", workload.trim_end_matches(['-', '.']))
}

/// What was done when the Event was made, as `action` wants it: the machine's side of the reason.
const fn action(kind: Kind) -> &'static str {
    match kind {
        Kind::RolloutStarted
        | Kind::RolloutCompleted
        | Kind::RolloutSuperseded
        | Kind::RolloutFailed
        | Kind::RolloutStuck => "Rollout",
        Kind::GroupStalled | Kind::GroupInDoubt => "Agreement",
        Kind::PurgeStarted
        | Kind::PurgeCompleted
        | Kind::PurgeFailed
        | Kind::PurgeOwed
        | Kind::PurgeStalled
        | Kind::PurgeSkipped => "Purge",
        Kind::WorkloadFaulty => "Configuration",
    }
}

fn note(message: &str) -> String {
    if message.len() <= NOTE_BYTES_MAX {
        return message.to_owned();
    }
    format!("{}…", cut(message, NOTE_BYTES_MAX - '…'.len_utf8()))
}

/// The beginning of a text, at most so many bytes, whole characters only.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// A time as `MicroTime` is written; the epoch where the clock is out of all range.
pub(super) fn micro_time(at_ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{NoticeId, Seq, WorkloadId};

    fn notice(name: &str, id: &str) -> Notice {
        Notice {
            id: NoticeId(id.to_owned()),
            kind: Kind::PurgeFailed,
            at_ms: 0,
            workload: WorkloadId::deployment("shop", name),
            seq: Seq(1),
            rollout: "r".into(),
            change: String::new(),
            message: String::new(),
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
        }
    }

    #[test]
    fn the_name_of_an_event_is_a_legal_one_whatever_the_workload_is_called() {
        assert_eq!(name_of(&notice("web", "msg_0a1b")), "web.msg0a1b");
        let long =
            name_of(&notice(&format!("{}.{}", "a".repeat(219), "b".repeat(30)), &format!("msg_{}", "f".repeat(32))));
        assert!(long.len() <= NAME_BYTES_MAX, "{}", long.len());
        assert!(long.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-'));
        assert!(!long.contains(".."));
    }

    #[test]
    fn a_note_is_cut_at_a_character() {
        assert_eq!(note("fine"), "fine");
        let cut = note(&"ä".repeat(600));
        assert!(cut.len() <= NOTE_BYTES_MAX && cut.ends_with("ä…"));
    }

    #[test]
    fn the_time_has_microseconds() {
        assert_eq!(micro_time(1_700_000_000_123), "2023-11-14T22:13:20.123000Z");
    }
}
