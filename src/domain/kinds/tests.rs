//! Each kind as its controller writes it, field by field.

mod aborted;

use serde_json::{Value, json};

use crate::object::Object;
use crate::reported::{GivenUp, Replicas, Standing};
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
        Standing::GivenUp(GivenUp::DeadlineExceeded { last_update }) => format!("missed its deadline at {last_update}"),
        Standing::GivenUp(why) => why.to_string(),
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

/// After an update of its canary, as Argo Rollouts 1.8 writes it.
fn canary() -> Value {
    json!({
        "metadata": {"name": "web", "generation": 429, "annotations": {}},
        "spec": {
            "replicas": 5,
            "strategy": {"canary": {"steps": [
                {"setWeight": 20}, {"pause": {}}, {"setWeight": 40}, {"pause": {"duration": "10m"}}, {"pause": {"duration": 30}},
                {"analysis": {"templates": [{"templateName": "rate"}]}}, {"experiment": {}}, {"plugin": {"name": "x/y"}},
            ]}},
        },
        "status": {
            "HPAReplicas": 5, "availableReplicas": 5, "blueGreen": {}, "canary": {}, "currentPodHash": "65fb5ffc84",
            "currentStepHash": "f64cdc9d", "currentStepIndex": 8, "observedGeneration": "429", "phase": "Healthy",
            "readyReplicas": 5, "replicas": 5, "stableRS": "65fb5ffc84", "updatedReplicas": 5,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "it has"}],
        },
    })
}

/// In the middle of an update, at a step; by its number from 0.
fn at_step(index: u32, changes: &[(&str, Value)]) -> Value {
    let object = with(
        canary(),
        &[
            ("/status/stableRS", json!("877894d5b")),
            ("/status/currentStepIndex", json!(index)),
            ("/status/updatedReplicas", json!(1)),
            ("/status/phase", json!("Paused")),
            ("/status/message", json!("CanaryPauseStep")),
        ],
    );
    with(object, changes)
}

fn pause(reason: &str) -> (&'static str, Value) {
    ("/status/pauseConditions", json!([{"reason": reason, "startTime": "2019-10-28T04:50:20Z"}]))
}

#[test]
fn a_canary() {
    let progressing = |message: &str| [("/status/phase", json!("Progressing")), ("/status/message", json!(message))];
    let steps = progressing("waiting for all steps to complete");
    let due = "a restart of its pods is due at 2026-01-02T00:00:00Z!";
    let restart =
        [("/spec/restartAt", json!("2026-01-02T00:00:00Z")), ("/status/restartedAt", json!("2026-01-01T00:00:00Z"))];
    table(
        Kind::Rollout,
        &canary(),
        &[
            (&[("/metadata/generation", json!(430))], "its controller has not acted on generation 430 yet"),
            (&[("/status/observedGeneration", json!("428"))], "its controller has not acted on generation 429 yet"),
            (
                &[("/status/observedGeneration", json!("5d4f7c9b8"))],
                "its status is of an Argo Rollouts before 1.0: observedGeneration is \"5d4f7c9b8\", and no number!",
            ),
            (&[("/status", json!({}))], "its controller has not acted on generation 429 yet"),
            (&[("/status/phase", json!(null))], "its controller has said nothing of it yet"),
            (&steps, "it is Progressing: waiting for all steps to complete"),
            (&[("/status/stableRS", json!("877894d5b"))], "its newest pods are not the stable ones yet"),
            (
                &[("/status/stableRS", json!("")), ("/status/currentPodHash", json!(""))],
                "its newest pods are not the stable ones yet",
            ),
            (&[("/status/replicas", json!(6)), ("/status/availableReplicas", json!(6))], "1 old pod has not gone yet"),
            (&[("/status/availableReplicas", json!(4))], "4 of 5 pods available"),
            (&[("/spec/paused", json!(true))], "the rollout is paused!"),
            (&[("/spec/replicas", json!(0))], "the workload is scaled to zero!"),
            // It has restarted, whatever the two texts look like.
            (&restart, "complete"),
            (&[restart[0].clone(), restart[1].clone(), ("/status/phase", json!("Progressing"))], due),
        ],
    );
}

#[test]
fn a_canary_that_is_held_says_at_which_step_of_how_many_and_for_what() {
    let analysis =
        |phase: &str| ("/status/canary/currentStepAnalysisRunStatus", json!({"name": "web-6-2", "status": phase}));
    for (index, changes, expected) in [
        (1, vec![pause("CanaryPauseStep")], "it is at step 2 of 8 of its canary: a pause until it is promoted!"),
        (3, vec![pause("CanaryPauseStep")], "it is at step 4 of 8 of its canary: a pause of 10m!"),
        (4, vec![pause("CanaryPauseStep")], "it is at step 5 of 8 of its canary: a pause of 30s!"),
        (
            5,
            vec![pause("InconclusiveAnalysisRun")],
            "it is at step 6 of 8 of its canary: InconclusiveAnalysisRun, which a person has to judge!",
        ),
        (5, vec![analysis("Running")], "it is at step 6 of 8 of its canary: the analysis web-6-2 runs!"),
        (5, vec![analysis("Successful")], "it is at step 6 of 8 of its canary: an analysis is about to run!"),
        (6, vec![], "it is at step 7 of 8 of its canary: an experiment runs!"),
        (7, vec![], "it is at step 8 of 8 of its canary: a plugin works!"),
        // The clock runs: pods are on their way.
        (2, vec![], "1 of 5 pods available"),
        // A person went on, and the controller has not seen it.
        (1, vec![("/status/controllerPause", json!(true))], "1 of 5 pods available"),
    ] {
        assert_eq!(words(Kind::Rollout, &at_step(index, &changes)), expected);
    }
}

#[test]
fn an_aborted_rollout_has_failed_until_it_is_tried_again() {
    let aborted = "RolloutAborted: Rollout aborted update to revision 2";
    let degraded = [("/status/phase", json!("Degraded")), ("/status/message", json!(aborted))];
    let abort = |is: bool| ("/status/abort", json!(is));
    let said = |changes: &[(&str, Value)]| words(Kind::Rollout, &with(at_step(0, &degraded), changes));
    assert_eq!(said(&[abort(true)]), format!("the rollout was aborted: {aborted}"));
    assert_eq!(said(&[abort(true), pause("CanaryPauseStep")]), format!("the rollout was aborted: {aborted}"));
    assert_eq!(said(&[abort(false)]), "1 of 5 pods available", "the controller has not seen yet that it goes on");
    assert_eq!(
        said(&[abort(true), ("/metadata/generation", json!(430))]),
        "its controller has not acted on generation 430 yet"
    );
    // The mark of an abort of what is complete is taken away by the next look of the controller.
    assert_eq!(words(Kind::Rollout, &with(canary(), &[abort(true)])), "complete");
    let late = "ProgressDeadlineExceeded: ReplicaSet \"web-1\" has timed out progressing.";
    let changes = [("/status/phase", json!("Degraded")), ("/status/message", json!(late))];
    assert_eq!(words(Kind::Rollout, &at_step(0, &changes)), format!("Argo Rollouts calls it degraded: {late}"));
}

/// Before its promotion: the preview Service leads to the new pods, the active one to the old ones.
fn blue_green(changes: &[(&str, Value)]) -> Value {
    let object = json!({
        "metadata": {"name": "web", "generation": 410},
        "spec": {
            "replicas": 3,
            "strategy": {"blueGreen": {"activeService": "web", "autoPromotionEnabled": false, "previewService": "web-preview"}},
        },
        "status": {
            "HPAReplicas": 3, "availableReplicas": 3, "canary": {}, "controllerPause": true, "currentPodHash": "74b948fccb",
            "blueGreen": {"activeSelector": "6cbccd9f99", "previewSelector": "74b948fccb"},
            "message": "BlueGreenPause", "observedGeneration": "410", "phase": "Paused",
            "pauseConditions": [{"reason": "BlueGreenPause", "startTime": "2019-10-28T04:50:20Z"}],
            "readyReplicas": 6, "replicas": 6, "stableRS": "6cbccd9f99", "updatedReplicas": 3,
        },
    });
    with(object, changes)
}

#[test]
fn a_blue_green_rollout_is_complete_once_the_active_service_leads_to_its_new_pods_though_the_old_ones_run_on() {
    let said = |changes: &[(&str, Value)]| words(Kind::Rollout, &blue_green(changes));
    assert_eq!(said(&[]), "its new pods wait behind the preview Service until they are promoted!");
    let healthy = [
        ("/status/pauseConditions", json!(null)),
        ("/status/phase", json!("Healthy")),
        ("/status/message", json!(null)),
    ];
    let (stable, active) =
        (("/status/stableRS", json!("74b948fccb")), ("/status/blueGreen/activeSelector", json!("74b948fccb")));
    let and = |more: &[(&'static str, Value)]| said(&[&healthy, more].concat());
    assert_eq!(and(&[stable.clone(), active.clone()]), "complete");
    assert_ne!(and(std::slice::from_ref(&stable)), "complete", "the active Service leads to the old ones");
    assert_ne!(and(std::slice::from_ref(&active)), "complete", "nothing says that they stay");
    assert_eq!(
        and(&[stable.clone(), active.clone(), ("/status/availableReplicas", json!(2))]),
        "2 of 3 pods available"
    );
    let analysis =
        ("/status/blueGreen/postPromotionAnalysisRunStatus", json!({"name": "web-2-post", "status": "Running"}));
    let progressing = ("/status/phase", json!("Progressing"));
    assert_eq!(
        and(&[active.clone(), progressing, analysis]),
        "its update waits: the analysis after its promotion web-2-post runs!"
    );
    let read = read(Kind::Rollout, &blue_green(&[&healthy[..], &[stable, active]].concat()));
    assert_eq!(read.own.newest, Newest::Labelled("74b948fccb".to_owned()));
    assert!(!read.reported().is_under_way() && read.own.replicas.old() == 0);
}

#[test]
fn with_traffic_routing_old_pods_run_on_and_are_not_taken_for_new_ones() {
    let routed = |total: u32, available: u32| {
        let changes = [
            ("/spec/strategy/canary/trafficRouting", json!({"nginx": {"stableIngress": "web"}})),
            ("/status/replicas", json!(total)),
            ("/status/availableReplicas", json!(available)),
        ];
        with(canary(), &changes)
    };
    assert_eq!(words(Kind::Rollout, &routed(10, 10)), "complete");
    assert_eq!(words(Kind::Rollout, &routed(10, 9)), "4 of 5 pods available", "it may be a new one");
    let old = with(routed(10, 10), &[("/status/stableRS", json!("877894d5b"))]);
    assert_eq!(
        read(Kind::Rollout, &old).own.replicas,
        Replicas { desired: 5, total: 10, updated: 5, ready: 5, available: 10 }
    );
}

#[test]
fn the_generation_of_the_workload_with_the_template_is_waited_for() {
    let of = |noted: &str, observed: &str| {
        let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let mut object = with(canary(), &[("/spec/workloadRef", reference)]);
        object["metadata"]["annotations"] = json!({"rollout.argoproj.io/workload-generation": noted});
        object["status"]["workloadObservedGeneration"] = json!(observed);
        words(Kind::Rollout, &object)
    };
    assert_eq!(of("7", "7"), "complete");
    assert_eq!(of("8", "7"), "its controller has not acted on generation 8 of the workload with its template yet");
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
        (Kind::Rollout, canary(), "/status/observedGeneration", ".status.observedGeneration is not a text"),
    ] {
        let error = crate::read(kind, Object(&with(object, &[(pointer, json!({}))]))).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}
