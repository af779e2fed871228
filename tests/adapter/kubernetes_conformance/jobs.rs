//! Jobs, as far as what we do rests on the server and its Job controller: nothing runs before the start, the start is a
//! compare-and-set, a guarded Job has one pod, and it ends only when that has.
//!
//! No kubelet is needed: where one would say how a pod ended, a check does.

use serde_json::{Value, json};

use super::support::{Api, Check, checks, refused};
use sandbox::kubernetes::{Outcome, Script, Timings};

pub const CHECKS: &[(&str, Check)] = checks![
    a_job_names_its_pods_by_its_uid,
    a_suspended_job_makes_no_pod,
    a_job_is_started_by_a_compare_and_set,
    what_a_job_consists_of_never_changes,
    an_evicted_pod_ends_a_guarded_job_and_has_no_successor,
    a_deleted_pod_ends_a_guarded_job_once_it_is_over,
    a_removed_job_takes_its_pods_with_it_if_it_is_told_so,
    a_job_is_removed_only_if_it_is_the_one,
];

/// How often something is looked for, 100 ms apart in a real cluster.
const LOOKS_MAX: u32 = 200;

/// Longer than any check takes.
const AGES: std::time::Duration = std::time::Duration::from_secs(3_600);

fn at(api: &Api, name: &str) -> String {
    format!("{}/{}", api.path("jobs"), api.name(name))
}

/// A Job with the guards of ours.
async fn made(api: &Api, name: &str) -> Value {
    if let Some(stand_in) = &api.stand_in {
        // Its kubelet leaves to the checks how a pod ends.
        stand_in.set_job_script(Some(Script::new(|_| Outcome::Holds)));
        stand_in.set_timings(Timings { pod_gone: AGES, ..Timings::IMMEDIATE });
    }
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": api.name(name), "labels": {"check": api.check}},
        "spec": {
            "suspend": true, "completions": 1, "parallelism": 1, "backoffLimit": 0, "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
            ]},
            "template": {
                "metadata": {"labels": {"check": api.check}},
                "spec": {
                    "restartPolicy": "Never",
                    // No node has it, so that no kubelet interferes.
                    "nodeSelector": {"allclear.dev/check": "none"},
                    "containers": [{"name": "apply", "image": "infra:1"}],
                },
            },
        },
    });
    api.post(&api.path("jobs"), &job).await.unwrap()
}

/// A Job that was started, with the name of its pod.
async fn started(api: &Api, name: &str) -> (Value, String) {
    made(api, name).await;
    until(api, &at(api, name), |job| holds(job, "Suspended")).await;
    api.merge(&at(api, name), &json!({"spec": {"suspend": false}})).await.unwrap();
    let job = until(api, &at(api, name), |job| job["status"]["active"] == 1).await;
    let pods = pods(api, name).await;
    assert_eq!(pods.len(), 1, "{pods:?}");
    (job, pods[0]["metadata"]["name"].as_str().unwrap().to_owned())
}

async fn pods(api: &Api, name: &str) -> Vec<Value> {
    let path = format!("{}?labelSelector=job-name%3D{}", api.path("pods"), api.name(name));
    api.get(&path).await.unwrap()["items"].as_array().unwrap().clone()
}

/// The object at `path` as soon as that holds.
pub async fn until(api: &Api, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..LOOKS_MAX {
        pause(api).await;
        let object = api.get(path).await.unwrap();
        if holds(&object) {
            return object;
        }
    }
    panic!("waited in vain; it is {}", api.get(path).await.unwrap());
}

/// Waits until the object at `path` is gone, or on its way: a pod that runs ends first.
pub async fn is_gone(api: &Api, path: &str) {
    for _ in 0..LOOKS_MAX {
        pause(api).await;
        if api.get(path).await.map_or(true, |object| !object["metadata"]["deletionTimestamp"].is_null()) {
            return;
        }
    }
    panic!("{path} is left");
}

async fn pause(api: &Api) {
    match &api.stand_in {
        Some(stand_in) => drop(stand_in.step()),
        None => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
    }
}

fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// What a kubelet writes when the only container of a pod has ended.
async fn end(api: &Api, pod: &str, code: i32) {
    let ended = json!({"terminated": {"exitCode": code, "reason": "Error", "startedAt": null, "finishedAt": null}});
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [{
        "name": "apply", "image": "infra:1", "imageID": "", "ready": false, "restartCount": 0, "state": ended,
    }]}});
    api.merge(&format!("{}/{pod}/status", api.path("pods")), &status).await.unwrap();
}

async fn a_job_names_its_pods_by_its_uid(api: Api) {
    let job = made(&api, "a").await;
    let (uid, name) = (&job["metadata"]["uid"], &job["metadata"]["name"]);
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    for (label, value) in [("controller-uid", uid), ("job-name", name)] {
        assert_eq!((&labels[label], &labels[format!("batch.kubernetes.io/{label}")]), (value, value));
    }
    assert_eq!(job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], *uid);
    assert_eq!((&job["metadata"]["generation"], &job["spec"]["completionMode"]), (&json!(1), &json!("NonIndexed")));
    assert_eq!(job["status"], json!({}));
}

async fn a_suspended_job_makes_no_pod(api: Api) {
    made(&api, "a").await;
    let job = until(&api, &at(&api, "a"), |job| holds(job, "Suspended")).await;
    assert_eq!(condition(&job, "Suspended").unwrap()["reason"], "JobSuspended");
    assert_eq!((job["status"].get("startTime"), pods(&api, "a").await.len()), (None, 0));
}

async fn a_job_is_started_by_a_compare_and_set(api: Api) {
    let seen = made(&api, "a").await;
    let start = |uid: &Value, version: &Value| {
        let metadata = json!({"uid": uid, "resourceVersion": version, "annotations": {"allclear.dev/started": "true"}});
        json!({"metadata": metadata, "spec": {"suspend": false}})
    };
    let (uid, version) = (&seen["metadata"]["uid"], &seen["metadata"]["resourceVersion"]);
    // That it is suspended is said by the controller, which is a change.
    let now = until(&api, &at(&api, "a"), |job| holds(job, "Suspended")).await;
    refused(api.merge(&at(&api, "a"), &start(uid, version)).await, 409, "Conflict");
    let version = &now["metadata"]["resourceVersion"];
    let another = json!("5d5a5c1e-0000-4000-8000-000000000001");
    refused(api.merge(&at(&api, "a"), &start(&another, version)).await, 422, "Invalid");
    refused(api.merge(&at(&api, "none"), &start(uid, version)).await, 404, "NotFound");
    let done = api.merge(&at(&api, "a"), &start(uid, version)).await.unwrap();
    assert_eq!((&done["spec"]["suspend"], &done["metadata"]["generation"]), (&json!(false), &json!(2)));
    refused(api.merge(&at(&api, "a"), &start(uid, version)).await, 409, "Conflict");
    let resumed = until(&api, &at(&api, "a"), |job| job["status"]["active"] == 1).await;
    assert_eq!(condition(&resumed, "Suspended").unwrap()["status"], "False");
    assert!(resumed["status"]["startTime"].is_string());
}

async fn what_a_job_consists_of_never_changes(api: Api) {
    let (_, pod) = started(&api, "a").await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "apply", "image": "other:1"}]}}}});
    let status = refused(api.merge(&at(&api, "a"), &image).await, 422, "Invalid");
    assert!(status.message.contains("spec.template") && status.message.contains("field is immutable"), "{status:?}");
    let more = json!({"spec": {"completions": 2}});
    refused(api.merge(&at(&api, "a"), &more).await, 422, "Invalid");
    assert_eq!(pods(&api, "a").await[0]["metadata"]["name"], pod);
}

async fn an_evicted_pod_ends_a_guarded_job_and_has_no_successor(api: Api) {
    let (_, pod) = started(&api, "a").await;
    let path = format!("{}/{pod}", api.path("pods"));
    // The disruption controller takes back what is older than two minutes, so this is of the server's own time.
    let now = api.get(&path).await.unwrap()["metadata"]["creationTimestamp"].clone();
    let disrupted = json!({"status": {"conditions": [{
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "evicting",
        "lastProbeTime": null, "lastTransitionTime": now,
    }]}});
    api.merge(&format!("{path}/status"), &disrupted).await.unwrap();
    api.delete(&path).await.unwrap();
    let told = until(&api, &at(&api, "a"), |job| job["status"]["terminating"] == 1).await;
    assert!(!holds(&told, "Failed"), "{told}");
    assert_eq!(pods(&api, "a").await.len(), 1);
    end(&api, &pod, 143).await;
    let ended = until(&api, &at(&api, "a"), |job| holds(job, "Failed")).await;
    let failed = condition(&ended, "Failed").unwrap();
    assert_eq!(failed["reason"], "PodFailurePolicy");
    let message = failed["message"].as_str().unwrap();
    assert!(message.ends_with("has condition DisruptionTarget matching FailJob rule at index 0"), "{message}");
    assert_eq!(condition(&ended, "FailureTarget").unwrap()["reason"], "PodFailurePolicy");
    assert_eq!((&ended["status"]["failed"], ended["status"].get("active")), (&json!(1), None));
    assert_eq!(pods(&api, "a").await.len(), 0);
}

async fn a_deleted_pod_ends_a_guarded_job_once_it_is_over(api: Api) {
    let (_, pod) = started(&api, "a").await;
    // By force, which the Job controller's finalizer does not let happen before the pod is counted.
    let body = json!({"gracePeriodSeconds": 0});
    let path = format!("{}/{pod}", api.path("pods"));
    api.send("DELETE", &path, Some(&body), "application/json").await.unwrap();
    let told = until(&api, &at(&api, "a"), |job| job["status"]["terminating"] == 1).await;
    assert!(!holds(&told, "Failed"), "{told}");
    end(&api, &pod, 137).await;
    let ended = until(&api, &at(&api, "a"), |job| holds(job, "Failed")).await;
    let failed = condition(&ended, "Failed").unwrap();
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains("Container apply") && message.contains("failed with exit code 137"), "{message}");
    assert_eq!((&failed["reason"], &ended["status"]["failed"]), (&json!("PodFailurePolicy"), &json!(1)));
    assert_eq!(pods(&api, "a").await.len(), 0);
}

async fn a_removed_job_takes_its_pods_with_it_if_it_is_told_so(api: Api) {
    let (_, kept) = started(&api, "a").await;
    api.delete(&at(&api, "a")).await.unwrap();
    let kept = format!("{}/{kept}", api.path("pods"));
    let is_orphan = |pod: &Value| pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty);
    let orphan = until(&api, &kept, is_orphan).await;
    assert_eq!(orphan["metadata"].get("deletionTimestamp"), None);
    let (_, taken) = started(&api, "b").await;
    let background = json!({"propagationPolicy": "Background"});
    api.send("DELETE", &at(&api, "b"), Some(&background), "application/json").await.unwrap();
    refused(api.get(&at(&api, "b")).await, 404, "NotFound");
    is_gone(&api, &format!("{}/{taken}", api.path("pods"))).await;
}

async fn a_job_is_removed_only_if_it_is_the_one(api: Api) {
    let job = made(&api, "a").await;
    let only = |uid: &Value| json!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
    let another = only(&json!("5d5a5c1e-0000-4000-8000-000000000001"));
    refused(api.send("DELETE", &at(&api, "a"), Some(&another), "application/json").await, 409, "Conflict");
    let its = only(&job["metadata"]["uid"]);
    api.send("DELETE", &at(&api, "a"), Some(&its), "application/json").await.unwrap();
    refused(api.send("DELETE", &at(&api, "a"), Some(&its), "application/json").await, 404, "NotFound");
}
