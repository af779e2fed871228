//! Notices as Kubernetes Events on their workload, where `kubectl describe` shows them.
//!
//! An Event's name is derived from its notice, so a notice sent again after a restart meets its own Event (409) and
//! there is only ever one. Events are for recent eyes: the API server forgets them after an hour by default.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>
//!
//! They are `v1` Events, and not `events.k8s.io/v1`, for their order. `kubectl describe` sorts by `lastTimestamp` alone
//! (kubectl, `pkg/util/event/sorted_event_list.go`), `kubectl events` by it where it is set. `events.k8s.io/v1` refuses an
//! Event that has one; `v1` does not, also beside `eventTime` (Kubernetes, `pkg/apis/core/validation/events.go`; both read
//! 2026-11). `lastTimestamp` has whole seconds, and the order within one second is left to the list and the sort. The API
//! server lists by name, and our names begin as those of Kubernetes' own Events do, with the time in nanoseconds: the list
//! is in the order in which things happened before it is sorted. Go's `sort.Sort` promises nothing about equals, but leaves
//! alone what is sorted already. So the order is kept unless the list holds more than a dozen Events (fewer are sorted by
//! insertion, which is stable) and another program's Event that was repeated: its `lastTimestamp` is later than the time in
//! its name.
//!
//! Not for deciding what to publish, nor for retries.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use apiserver::{Api, Collection, Resource};
use kernel::id::{self, PipelineId, RepoId, Subject, WorkloadId};
use kernel::remark::{Remark, Remarked};
use kernel::text::{clean_ends, head};
use notices::notice::{Kind, Notice};
use purge::ports::{EventSink, PortError};

const EVENTS: Resource = Resource::new("", "v1", "events");

/// The reporting controller of every Event.
pub const CONTROLLER: &str = "allclear.dev/controller";

/// Longest `message` the API server accepts, in bytes.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Longest `reportingInstance` the API server accepts, in bytes.
const INSTANCE_BYTES_MAX: usize = 128;

/// Longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Most bytes of an answer: the Event itself, with the fields the server adds.
const BYTES_MAX: usize = 64 * 1024;

/// Events sent at the same time. What is decided does not wait for them, and they leave the API server to what does.
const EVENTS_AT_ONCE: usize = 4;

/// Publishes Events through the API server.
pub struct Events {
    api: Api,
    instance: String,
}

impl Events {
    /// `instance` names this process: the pod, or the host it runs on.
    pub fn new(client: Client, instance: &str) -> Self {
        let instance = if instance.is_empty() { "allclear" } else { instance };
        Self {
            api: Api::new(client).up_to(BYTES_MAX).at_once(EVENTS_AT_ONCE),
            instance: head(instance, INSTANCE_BYTES_MAX).to_owned(),
        }
    }

    fn body(&self, on: Involved<'_>, said: &Said<'_>) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": on.namespace, "name": said.name, "annotations": said.annotations},
            "eventTime": micro_time(said.at_ms),
            "firstTimestamp": time(said.at_ms),
            "lastTimestamp": time(said.at_ms),
            "count": 1,
            "reportingComponent": CONTROLLER,
            "reportingInstance": self.instance,
            "reason": said.reason,
            "action": said.action,
            "type": if said.is_warning { "Warning" } else { "Normal" },
            // `kubectl describe` prints it as it is, between lines of its own.
            "message": clean_ends(&said.message, MESSAGE_BYTES_MAX),
            "involvedObject": on,
        })
    }

    async fn create(&self, on: Involved<'_>, said: &Said<'_>) -> Result<(), PortError> {
        let collection = Collection::of(EVENTS, on.namespace);
        match self.api.create(&collection, None, &self.body(on, said)).await {
            // Already there: an earlier attempt succeeded, and its answer was lost or forgotten.
            Err(failed) if failed.status() != Some(409) => Err(failed.error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The object that an Event is about.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Involved<'a> {
    api_version: &'static str,
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

impl<'a> Involved<'a> {
    /// `stand_in`: the kind of a workload's object, where that is not the one in its name.
    fn of(subject: &'a Subject, stand_in: Option<id::Kind>, uid: &'a str) -> Self {
        match subject {
            Subject::Workload(WorkloadId { kind, namespace, name }) => {
                let kind = stand_in.unwrap_or(*kind);
                Self { api_version: kind.api_version(), kind: kind.name(), namespace, name, uid }
            }
            Subject::Pipeline(PipelineId { namespace, name }) => {
                Self { api_version: "allclear.dev/v1alpha1", kind: "Pipeline", namespace, name, uid }
            }
            Subject::Repo(RepoId { namespace, name }) => {
                Self { api_version: "allclear.dev/v1alpha1", kind: "Repo", namespace, name, uid }
            }
        }
    }
}

/// What an Event says.
struct Said<'a> {
    name: String,
    at_ms: i64,
    reason: &'a str,
    action: &'a str,
    is_warning: bool,
    message: String,
    annotations: BTreeMap<&'a str, &'a str>,
}

#[async_trait]
impl EventSink for Events {
    async fn publish(&self, notice: &Notice, workload_uid: &str) -> Result<(), PortError> {
        let said = Said {
            name: name_of(notice),
            at_ms: notice.at_ms,
            reason: notice.kind.reason(),
            action: action(notice.kind),
            is_warning: notice.kind.is_warning(),
            message: words(notice),
            annotations: BTreeMap::new(),
        };
        let stand_in = notice.about.mentions().and_then(|mentions| mentions.stand_in);
        self.create(Involved::of(&notice.about.subject(), stand_in, workload_uid), &said).await
    }

    async fn remark(&self, remark: &Remark, on: &Remarked, at_ms: i64) -> Result<(), PortError> {
        let annotations = remark.annotations.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let said = Said {
            name: name_at(on.subject.name(), at_ms, 0, &remark.id(&on.uid, on.serial)),
            at_ms,
            reason: remark.reason,
            action: if matches!(on.subject, Subject::Repo(_)) { "Run" } else { "Promotion" },
            is_warning: remark.is_warning,
            message: remark.message.clone(),
            annotations,
        };
        self.create(Involved::of(&on.subject, None, &on.uid), &said).await
    }
}

/// The message, with the change that it is about, if it is about one.
fn words(notice: &Notice) -> String {
    if notice.change.is_empty() {
        return notice.message.clone();
    }
    format!("{} ({})", notice.message, notice.change)
}

/// `web.`, the time, and the notice's id. The time is written as Kubernetes does for its own Events (client-go,
/// `GenerateEventName`): nanoseconds since the epoch in hexadecimal digits, 16 of them until the year 2554. We know
/// milliseconds; the digits below them distinguish notices of one millisecond by their place in a rollout's life.
///
/// Time and kind are part of the notice, so a repeated notice has the same name. A name may hold lower-case letters,
/// digits, `-` and `.`; the id's underscore may not be in one.
fn name_of(notice: &Notice) -> String {
    let id: String = notice.id.0.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = head(&id, NAME_BYTES_MAX / 2).to_ascii_lowercase();
    name_at(notice.about.subject().name(), notice.at_ms, notice.kind.place().into(), &id)
}

fn name_at(name: &str, at_ms: i64, place: u64, id: &str) -> String {
    let at_ns = u64::try_from(at_ms).unwrap_or_default().saturating_mul(1_000_000).saturating_add(place);
    let ending = format!("{at_ns:016x}.{id}");
    let name = head(name, NAME_BYTES_MAX - ending.len() - 1);
    format!("{}.{ending}", name.trim_end_matches(['-', '.']))
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
        | Kind::PurgeSkipped
        | Kind::PurgeRepeated => "Purge",
        Kind::EdgeRenewed
        | Kind::EdgeFresh
        | Kind::EdgeUnknown
        | Kind::EdgeStale
        | Kind::RepoDrifted
        | Kind::RepoInSync => "Look",
        Kind::PromotionWaiting
        | Kind::PromotionStarted
        | Kind::PromotionCompleted
        | Kind::PromotionWithdrawn
        | Kind::PromotionFailed
        | Kind::PromotionStalled => "Promotion",
        Kind::RunWaiting
        | Kind::RunStarted
        | Kind::RunCompleted
        | Kind::RunPlanned
        | Kind::RunFailed
        | Kind::RunStalled
        | Kind::RunSuperseded => "Run",
        Kind::SiteLost | Kind::WorkloadFaulty | Kind::PipelineFaulty | Kind::RepoFaulty => "Configuration",
    }
}

/// A time as `MicroTime` is written; the epoch where the clock is out of all range.
pub(super) fn micro_time(at_ms: i64) -> String {
    moment(at_ms).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A time as `Time` is written and kept: whole seconds, the rest cut off.
fn time(at_ms: i64) -> String {
    moment(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn moment(at_ms: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::{NoticeId, Seq};

    fn notice(name: &str, id: &str) -> Notice {
        Notice {
            id: NoticeId(id.to_owned()),
            kind: Kind::PurgeFailed,
            at_ms: 0,
            about: WorkloadId::deployment("shop", name).into(),
            seq: Seq(1),
            rollout: "r".into(),
            change: String::new(),
            message: String::new(),
        }
    }

    #[test]
    fn the_name_of_an_event_is_a_legal_one_whatever_the_workload_is_called() {
        let at = Notice { at_ms: 1_700_000_000_123, ..notice("web", "msg_0a1b") };
        assert_eq!(name_of(&at), "web.17979cfe3d7ed4cc.msg0a1b");
        let long =
            name_of(&notice(&format!("{}.{}", "a".repeat(219), "b".repeat(30)), &format!("msg_{}", "f".repeat(32))));
        assert!(long.len() <= NAME_BYTES_MAX, "{}", long.len());
        assert!(long.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-'));
        assert!(!long.contains(".."));
    }

    #[test]
    fn names_sort_by_time_and_then_by_the_place_in_a_rollouts_life() {
        let name = |at_ms, kind, id: &str| name_of(&Notice { at_ms, kind, ..notice("web", id) });
        let in_order = [
            name(i64::MIN, Kind::PurgeFailed, "msg_5"),
            name(999_999_999_999, Kind::PurgeCompleted, "msg_9"),
            name(1_700_000_000_999, Kind::PurgeCompleted, "msg_8"),
            name(1_700_000_001_000, Kind::RolloutSuperseded, "msg_7"),
            name(1_700_000_001_000, Kind::RolloutStarted, "msg_6"),
            name(1_700_000_001_000, Kind::PurgeStarted, "msg_5"),
            name(1_700_000_001_000, Kind::PurgeCompleted, "msg_4"),
            name(1_700_000_001_001, Kind::RolloutStarted, "msg_3"),
            name(9_200_000_000_000, Kind::RolloutStarted, "msg_2"),
            name(i64::MAX, Kind::RolloutStarted, "msg_1"),
        ];
        assert!(in_order.is_sorted(), "{in_order:#?}");
    }

    #[test]
    fn the_time_has_microseconds_or_whole_seconds() {
        assert_eq!(micro_time(1_700_000_000_123), "2023-11-14T22:13:20.123000Z");
        assert_eq!(time(1_700_000_000_999), "2023-11-14T22:13:20Z");
    }
}
