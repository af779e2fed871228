use serde_json::{Value, json};

use super::*;
use apiserver::Name;
use kernel::id::RunSeq;
use kernel::unreadable::Unreadable;
use objects::repo::job::{End, Place, Pods, Step, StepKind, StepState};
use objects::repo::lock::Lock;
use objects::repo::status::{Action, Attempt};

const COMMIT: &str = "0101010101010101010101010101010101010101";

fn raw(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": "j-1", "resourceVersion": "17",
            "labels": {"allclear.dev/seq": "7", "allclear.dev/action": "apply", "allclear.dev/attempt": "2"},
            "annotations": {"allclear.dev/revision": COMMIT},
            "ownerReferences": [{"uid": "other"}, {"uid": "r-1", "controller": true}],
        },
        "spec": {"suspend": true},
    })
}

fn job(name: &str) -> Job {
    read::job(&raw(name).to_string()).unwrap()
}

#[test]
fn a_job_that_was_just_made_is_read_without_a_status() {
    let expected = Job {
        name: "infra-1".to_owned(),
        uid: "j-1".to_owned(),
        version: "17".to_owned(),
        owner: Some("r-1".to_owned()),
        attempt: Attempt { seq: RunSeq(7), action: Action::Apply, number: 2 },
        revision: COMMIT.parse().expect("a commit's id"),
        marked: false,
        withdrawn: false,
        suspended: true,
        deleting: false,
        pods: Pods::default(),
        end: None,
    };
    assert_eq!(job("infra-1"), expected);
}

#[test]
fn a_job_has_ended_only_by_its_last_condition() {
    let of = |conditions: Value| {
        let mut raw = raw("infra-1");
        raw["spec"] = json!({});
        raw["metadata"]["annotations"]["allclear.dev/started"] = json!("true");
        raw["status"] = json!({"active": 1, "terminating": 2, "conditions": conditions});
        read::job(&raw.to_string()).unwrap()
    };
    let near = of(json!([
        {"type": "Suspended", "status": "False"},
        {"type": "FailureTarget", "status": "True", "reason": "PodFailurePolicy"},
        {"type": "Failed", "status": "False"},
    ]));
    assert_eq!((near.end, near.marked, near.suspended), (None, true, false));
    assert_eq!(near.pods, Pods { active: 1, terminating: 2, ..Pods::default() });
    let failed = json!([{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}]);
    assert_eq!(of(failed).end, Some(End::Failed("DeadlineExceeded".to_owned(), "too long".to_owned())));
    assert_eq!(of(json!([{"type": "Complete", "status": "True"}])).end, Some(End::Complete));
}

#[test]
fn a_job_that_does_not_say_which_it_is_cannot_be_read() {
    for label in ["seq", "action", "attempt"] {
        let mut raw = raw("infra-1");
        raw["metadata"]["labels"][format!("allclear.dev/{label}")] = json!("x");
        assert!(read::job(&raw.to_string()).unwrap_err().to_string().contains("name no attempt"), "{label}");
    }
    let mut raw = raw("infra-1");
    raw["metadata"].as_object_mut().unwrap().remove("annotations");
    assert!(read::job(&raw.to_string()).unwrap_err().to_string().contains("allclear.dev/revision"));
}

#[test]
fn a_job_counts_the_pods_that_have_ended_also_those_in_no_count_yet() {
    let mut raw = raw("infra-1");
    raw["metadata"]["annotations"]["allclear.dev/withdrawn"] = json!("true");
    raw["status"] = json!({
        "failed": 1, "succeeded": 2, "uncountedTerminatedPods": {"failed": ["p-1"]},
        "conditions": [{"type": "Suspended", "status": "True"}],
    });
    let job = read::job(&raw.to_string()).unwrap();
    assert_eq!((job.withdrawn, job.pods), (true, Pods { ended: 4, at_rest: true, ..Pods::default() }));
}

/// What others say of a node that is lost is no word of its kubelet.
#[test]
fn only_a_kubelet_says_that_a_pod_on_its_node_has_ended() {
    let place = |node: &str, status: Value| {
        let pod = json!({
            "metadata": {"name": "x", "uid": "p-1", "resourceVersion": "18", "labels": {"controller-uid": "j-1"}},
            "spec": {"nodeName": node, "containers": [{"name": "apply"}]}, "status": status,
        });
        let pod = read::pod(&pod.to_string()).unwrap();
        assert_eq!(pod.job, "j-1");
        pod.place
    };
    let lost = |reason: &str| json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]});
    assert_eq!(place("", json!({"phase": "Pending"})), Place::Nowhere);
    assert_eq!(place("node-1", json!({"phase": "Pending"})), Place::Node);
    assert_eq!(place("node-1", json!({"phase": "Failed"})), Place::Ended);
    assert_eq!(place("node-1", lost("EvictionByEvictionAPI")), Place::Ended);
    assert_eq!(place("node-1", lost("DeletionByPodGC")), Place::Node);
    assert_eq!(place("node-1", json!({"phase": "Failed", "reason": "NodeLost"})), Place::Node);
}

fn pod(status: Value) -> Pod {
    let pod = json!({
        "metadata": {"name": "infra-1-x", "uid": "p-1", "resourceVersion": "18"},
        "spec": {
            "initContainers": [{"name": "source"}, {"name": "istio-init"}, {"name": "prepare"}],
            "containers": [{"name": "apply"}],
        },
        "status": status,
    });
    read::pod(&pod.to_string()).unwrap()
}

#[test]
fn steps_are_read_in_the_order_in_which_they_run_and_without_those_of_others() {
    let step = |kind, state| Step { kind, state };
    let waiting = [StepKind::Source, StepKind::Prepare, StepKind::Apply].map(|kind| step(kind, StepState::Waiting));
    assert_eq!(pod(json!({"phase": "Pending"})).steps, waiting);
    let ended = |code: i32, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason, "message": "m"}});
    let running = pod(json!({
        "phase": "Running",
        "containerStatuses": [{"name": "apply", "state": {"running": {"startedAt": "2026-11-23T04:00:00Z"}}}],
        "initContainerStatuses": [
            {"name": "prepare", "state": ended(137, "OOMKilled")},
            {"name": "istio-init", "state": ended(0, "Completed")},
            {"name": "source", "state": ended(0, "Completed")},
        ],
    }));
    let end = |code, reason: &str| StepState::Ended(code, reason.to_owned(), "m".to_owned());
    let expected = [
        step(StepKind::Source, end(0, "Completed")),
        step(StepKind::Prepare, end(137, "OOMKilled")),
        step(StepKind::Apply, StepState::Running),
    ];
    assert_eq!((running.steps, running.alive, running.waits), (expected.to_vec(), true, None));
}

/// With the preset Terraform the message of a failed container may be the end of its log.
#[test]
fn of_the_end_of_a_log_nothing_is_kept_but_whose_lock_is_in_the_way() {
    let state = |code: i32, log: &str| {
        let ended = json!({"terminated": {"exitCode": code, "reason": "Error", "message": log}});
        let pod = json!({
            "metadata": {"name": "infra-1-x", "uid": "p-1", "resourceVersion": "18"},
            "spec": {"containers": [{"name": "apply", "terminationMessagePolicy": "FallbackToLogsOnError"}]},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "apply", "state": ended}]},
        });
        read::pod(&pod.to_string()).unwrap().steps.remove(0).state
    };
    let ended = |code, message: &str| StepState::Ended(code, "Error".to_owned(), message.to_owned());
    assert_eq!(state(1, "token = hunter2"), ended(1, ""));
    assert_eq!(state(0, "3 added"), ended(0, "3 added"), "it was written to be read");
    let log = "Error: Error acquiring the state lock\n  ID:   a-1\n  Who:  me@host\ntoken = hunter2";
    let lock = Lock::new(Some("a-1"), Some("me@host"), None);
    assert_eq!(state(1, log), StepState::Locked(1, "Error".to_owned(), lock));
}

#[test]
fn why_a_pod_does_not_run_is_said_by_the_scheduler_or_a_container() {
    let unscheduled = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
    ]});
    assert_eq!(pod(unscheduled).waits.as_deref(), Some("Unschedulable: 0/3 nodes are available"));
    let waits = |reason: &str| {
        let state = json!({"waiting": {"reason": reason, "message": "no Secret git"}});
        pod(json!({"phase": "Pending", "initContainerStatuses": [{"name": "source", "state": state}]})).waits
    };
    assert_eq!(waits("ImagePullBackOff").as_deref(), Some("ImagePullBackOff"));
    assert_eq!(waits("CreateContainerConfigError").as_deref(), Some("CreateContainerConfigError: no Secret git"));
    assert_eq!(waits("PodInitializing"), None);
}

#[test]
fn a_pod_that_was_ended_from_outside_says_by_what() {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    let told = pod(json!({"phase": "Running", "conditions": [condition]}));
    assert_eq!((told.alive, told.disrupted.as_deref()), (true, Some("EvictionByEvictionAPI: Eviction API: evicting")));
    let full = pod(json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}));
    assert_eq!(
        (full.alive, full.disrupted.as_deref()),
        (false, Some("Evicted: The node was low on resource: memory."))
    );
    assert_eq!(pod(json!({"phase": "Failed"})).disrupted, None);
}

#[test]
fn a_listing_is_told_whole_and_changes_one_by_one() {
    let mut listing = None;
    let words = Words { all: JobSight::All, seen: |job| JobSight::Seen(Box::new(job)), gone: JobSight::Gone };
    let mut say = |look| match sight(look, &mut listing, "failed to watch", &words) {
        None => String::new(),
        Some(JobSight::All(jobs)) => format!("all {}", jobs.iter().map(|job| &*job.name).collect::<Vec<_>>().join(" ")),
        Some(JobSight::Seen(job)) => format!("seen {}", job.name),
        Some(JobSight::Gone(name)) => format!("gone {name}"),
        Some(JobSight::Trouble(error)) => format!("trouble {error}"),
        Some(other) => panic!("{other:?}"),
    };
    let seen = |name| Look::Seen(Reading::Read(job(name)));
    let gone = || Look::Gone(Name { namespace: "platform".to_owned(), name: "a".to_owned() });
    assert_eq!([say(Look::Restarted), say(seen("a")), say(seen("b")), say(seen("a"))], ["", "", "", ""]);
    assert_eq!(say(Look::Synced), "all b a");
    assert_eq!([say(seen("c")), say(gone())], ["seen c", "gone a"]);
    // After trouble that cost nothing.
    assert_eq!(say(Look::Synced), "");
    // A listing that is begun anew forgets what the one before has seen.
    assert_eq!([say(Look::Restarted), say(seen("a")), say(Look::Restarted), say(Look::Synced)], ["", "", "", "all "]);
    let unreadable = Name { namespace: "platform".to_owned(), name: "x".to_owned() };
    let said = say(Look::Seen(Reading::Unreadable(unreadable, Unreadable::because("why"))));
    assert_eq!(said, "trouble failed to watch: Job x cannot be read: why");
}
