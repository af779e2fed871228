//! Each kind as its controller writes it, field by field.

use serde_json::{Value, json};

use crate::object::Object;
use crate::reported::Standing;
use crate::{Newest, Report};
use kernel::id::Kind;

/// An object with fields replaced by JSON pointer; the parent of each is there.
fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    object
}

fn read(kind: Kind, object: &Value) -> Report {
    crate::read(kind, Object(object)).unwrap()
}

/// How it stands, in words; `!` after what stops the clock.
fn words(kind: Kind, object: &Value) -> String {
    match read(kind, object).reported().standing(false) {
        Standing::Complete => "complete".to_owned(),
        Standing::Waiting(wait) if wait.counts() => wait.to_string(),
        Standing::Waiting(wait) => format!("{wait}!"),
        Standing::DeadlineExceeded { last_update } => format!("missed its deadline at {last_update}"),
    }
}

/// Each change of the healthy object, and the words for it.
fn table(kind: Kind, healthy: &Value, rows: &[(&[(&str, Value)], &str)]) {
    assert_eq!(words(kind, healthy), "complete");
    for (changes, expected) in rows {
        assert_eq!(words(kind, &with(healthy.clone(), changes)), *expected, "{changes:?}");
    }
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "web", "generation": 4},
        "spec": {"replicas": 3},
        "status": {
            "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": "t1"}],
        },
    })
}

#[test]
fn a_deployment() {
    let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "lastUpdateTime": "t2"}]);
    table(
        Kind::Deployment,
        &deployment(),
        &[
            (&[("/metadata/generation", json!(5))], "its controller has not acted on generation 5 yet"),
            (&[("/metadata/deletionTimestamp", json!("t"))], "the workload is being deleted"),
            (&[("/status/availableReplicas", json!(2))], "2 of 3 pods available"),
            (
                &[("/status/updatedReplicas", json!(2)), ("/status/availableReplicas", json!(2))],
                "1 of 3 pods available",
            ),
            (&[("/status/replicas", json!(4)), ("/status/availableReplicas", json!(4))], "1 old pod has not gone yet"),
            (&[("/status/conditions", late.clone())], "missed its deadline at t2"),
            (&[("/spec/paused", json!(true)), ("/status/conditions", late)], "the rollout is paused!"),
            (&[("/spec/replicas", json!(0))], "the workload is scaled to zero!"),
            (&[("/spec/replicas", json!(null))], "3 of 1 pods available"),
        ],
    );
}

#[test]
fn a_deployment_whose_newest_replica_set_was_never_available_is_starting() {
    let starting = |reason: &str| {
        let conditions = json!([{"type": "Progressing", "status": "True", "reason": reason}]);
        read(Kind::Deployment, &with(deployment(), &[("/status/conditions", conditions)])).own.starting
    };
    // As a real 1.36 says it.
    for reason in ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated", "ProgressDeadlineExceeded"] {
        assert!(starting(reason), "{reason}");
    }
    assert!(!starting("NewReplicaSetAvailable"), "whatever becomes of its pods");
    assert!(!starting("DeploymentPaused"));
    let unsaid = read(Kind::Deployment, &with(deployment(), &[("/status/conditions", json!(null))]));
    assert!(!unsaid.own.starting, "no progress deadline, so nothing is said");
}

#[test]
fn the_deadline_of_a_deployment_is_read_and_a_missing_one_is_none() {
    let own = |deadline: Value, min_ready: Value| {
        let changes = [("/spec/progressDeadlineSeconds", deadline), ("/spec/minReadySeconds", min_ready)];
        let report = read(Kind::Deployment, &with(deployment(), &changes));
        report.own.deadline.map(|deadline| deadline.as_secs())
    };
    assert_eq!(own(json!(null), json!(null)), Some(600));
    assert_eq!(own(json!(3600), json!(120)), Some(3720));
    assert_eq!(own(json!(2_147_483_647), json!(120)), None, "no deadline");
}

// Faults: P4
#[test]
fn why_pods_are_not_made_is_read_with_the_beginning_of_the_message() {
    let refused = |status: &str, message: &str| {
        let failure = json!({"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": message});
        read(Kind::Deployment, &with(deployment(), &[("/status/conditions", json!([failure]))])).own.refused
    };
    let quota =
        "pods \"web-7c9-\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2";
    assert_eq!(refused("True", quota), Some(format!("FailedCreate: {quota}")));
    assert_eq!(refused("False", quota), None);
    let long = refused("True", &"ü".repeat(5_000)).unwrap();
    assert_eq!(long.chars().count(), "FailedCreate: ".len() + 201);
}

fn stateful_set() -> Value {
    json!({
        "metadata": {"name": "db", "generation": 4},
        "spec": {"replicas": 5, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
        "status": {
            "observedGeneration": 4, "replicas": 5, "readyReplicas": 5, "availableReplicas": 5, "updatedReplicas": 5,
            "currentRevision": "db-b", "updateRevision": "db-b",
        },
    })
}

#[test]
fn a_stateful_set() {
    let (updated, partition) = ("/status/updatedReplicas", "/spec/updateStrategy/rollingUpdate/partition");
    let available = "/status/availableReplicas";
    let kept = "its partition of 2 keeps db-0 to db-1 as they were!";
    let on_delete = ("/spec/updateStrategy", json!({"type": "OnDelete"}));
    let to_delete = "its update strategy is OnDelete: 4 of 5 pods stay as they are until they are deleted, those without \
                     controller-revision-hash=db-b!";
    table(
        Kind::StatefulSet,
        &stateful_set(),
        &[
            (&[("/status/observedGeneration", json!(3))], "its controller has not acted on generation 4 yet"),
            (&[("/status/currentRevision", json!("db-a"))], "complete"),
            (&[(updated, json!(1)), (available, json!(4))], "0 of 5 pods available"),
            (&[(available, json!(4))], "4 of 5 pods available"),
            (&[("/status/replicas", json!(4)), (updated, json!(4)), (available, json!(4))], "4 of 5 pods available"),
            (&[("/spec/replicas", json!(0))], "the workload is scaled to zero!"),
            // Complete is complete, whatever the next change will meet.
            (&[(partition, json!(2))], "complete"),
            (std::slice::from_ref(&on_delete), "complete"),
            (&[(partition, json!(2)), (updated, json!(3))], kept),
            (
                &[(partition, json!(2)), (updated, json!(3)), ("/spec/ordinals", json!({"start": 7}))],
                "its partition of 2 keeps db-7 to db-8 as they were!",
            ),
            (&[(partition, json!(1)), (updated, json!(4))], "its partition of 1 keeps db-0 as it was!"),
            (
                &[(partition, json!(9)), (updated, json!(0)), ("/spec/replicas", json!(0))],
                "the workload is scaled to zero!",
            ),
            (&[(partition, json!(9)), (updated, json!(0))], "its partition of 9 keeps db-0 to db-4 as they were!"),
            // Those that are not kept are on their way, and the clock runs.
            (&[(partition, json!(2)), (updated, json!(2))], "2 of 5 pods available"),
            (&[(partition, json!(2)), (updated, json!(3)), (available, json!(4))], "2 of 5 pods available"),
            (&[on_delete.clone(), (updated, json!(1))], to_delete),
        ],
    );
}

#[test]
fn a_stateful_set_that_kubernetes_does_not_mend_by_itself_says_what_to_do() {
    let refused = |updated: u32, ready: u32, policy: Value| {
        let changes = [
            ("/status/updatedReplicas", json!(updated)),
            ("/status/readyReplicas", json!(ready)),
            ("/spec/podManagementPolicy", policy),
        ];
        read(Kind::StatefulSet, &with(stateful_set(), &changes)).own.refused
    };
    assert!(refused(0, 4, json!(null)).is_some_and(|why| why.contains("delete it, for Kubernetes")));
    assert!(refused(1, 3, json!("OrderedReady")).is_some(), "one of the two is of the former template");
    assert_eq!(refused(1, 4, json!(null)), None, "it may be the new one");
    assert_eq!(refused(0, 5, json!(null)), None, "none is broken");
    assert_eq!(refused(0, 4, json!("Parallel")), None);
    assert_eq!(refused(5, 4, json!(null)), None, "its next template replaces it");
}

#[test]
fn a_stateful_set_says_which_pods_are_new_and_whether_they_ever_were_available() {
    let settled = read(Kind::StatefulSet, &stateful_set()).own;
    assert_eq!((settled.newest, settled.starting), (Newest::Labelled("db-b".to_owned()), false));
    let starting = |current: &str, strategy: &str| {
        let changes = [
            ("/status/currentRevision", json!(current)),
            ("/status/availableReplicas", json!(3)),
            ("/spec/updateStrategy/type", json!(strategy)),
        ];
        read(Kind::StatefulSet, &with(stateful_set(), &changes)).own.starting
    };
    assert!(starting("db-a", "RollingUpdate"));
    assert!(!starting("db-b", "RollingUpdate"), "crashed long after it was complete");
    assert!(!starting("db-a", "OnDelete"), "its current revision never becomes the newest one");
}

fn daemon_set() -> Value {
    json!({
        "metadata": {
            "name": "agent", "generation": 4, "annotations": {"deprecated.daemonset.template.generation": "3"},
        },
        "spec": {"updateStrategy": {"type": "RollingUpdate"}},
        "status": {
            "observedGeneration": 4, "desiredNumberScheduled": 5, "currentNumberScheduled": 5,
            "updatedNumberScheduled": 5, "numberReady": 5, "numberAvailable": 5, "numberMisscheduled": 2,
        },
    })
}

#[test]
fn a_daemon_set() {
    let on_delete = ("/spec/updateStrategy/type", json!("OnDelete"));
    let updated = "/status/updatedNumberScheduled";
    let none = [
        ("/status/desiredNumberScheduled", json!(0)),
        ("/status/currentNumberScheduled", json!(0)),
        (updated, json!(0)),
        ("/status/numberAvailable", json!(0)),
    ];
    table(
        Kind::DaemonSet,
        &daemon_set(),
        &[
            (&[("/status/observedGeneration", json!(3))], "its controller has not acted on generation 4 yet"),
            (&[(updated, json!(4))], "4 of 5 pods available"),
            (&[("/status/numberAvailable", json!(null))], "0 of 5 pods available"),
            (&[("/status/currentNumberScheduled", json!(4)), (updated, json!(4))], "4 of 5 pods available"),
            (std::slice::from_ref(&on_delete), "complete"),
            (
                &[on_delete.clone(), (updated, json!(2))],
                "its update strategy is OnDelete: 3 of 5 pods stay as they are until they are deleted!",
            ),
            (&none, "no node is to run a pod of it!"),
        ],
    );
    assert_eq!(read(Kind::DaemonSet, &daemon_set()).own.newest, Newest::Generation("3".to_owned()));
    let all = with(daemon_set(), &none);
    let standing = read(Kind::DaemonSet, &all).reported().standing(true);
    assert!(matches!(standing, Standing::Waiting(wait) if !wait.counts()), "also where zero replicas are complete");
}

#[test]
fn kinds_that_replace_pods_one_by_one_may_take_a_minute_for_each_and_its_time_to_be_ready() {
    let minutes = |kind, object: &Value| read(kind, object).own.deadline.map(|deadline| deadline.as_secs() / 60);
    let slow = |object: Value| with(object, &[("/spec/minReadySeconds", json!(300))]);
    assert_eq!(minutes(Kind::StatefulSet, &stateful_set()), Some(5));
    assert_eq!(minutes(Kind::StatefulSet, &slow(stateful_set())), Some(30));
    assert_eq!(minutes(Kind::DaemonSet, &slow(daemon_set())), Some(30));
}

#[test]
fn a_field_of_another_type_is_named() {
    for (kind, object, pointer, words) in [
        (Kind::Deployment, deployment(), "/spec/replicas", ".spec.replicas is not a whole number"),
        (Kind::StatefulSet, stateful_set(), "/status/updateRevision", ".status.updateRevision is not a text"),
        (Kind::DaemonSet, daemon_set(), "/status/numberAvailable", ".status.numberAvailable is not a whole number"),
    ] {
        let error = crate::read(kind, Object(&with(object, &[(pointer, json!({}))]))).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}
