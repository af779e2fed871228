//! Pipelines, as far as what we do rests on the server: a status written by compare-and-set, fields that another CRD
//! drops, marks on the metadata, objects that are made anew.

use serde_json::{Value, json};

use super::kinds::{OTHER, PRUNING_FIELDS};
use super::support::{Api, Check, checks, refused, version};

pub const CHECKS: &[(&str, Check)] = checks![
    a_new_pipeline_has_the_status_of_its_crd_and_no_other,
    a_pipelines_generation_counts_its_spec_alone,
    a_pipelines_status_is_a_compare_and_set,
    a_pipelines_status_takes_nothing_else_from_what_it_is_sent,
    a_crd_without_our_fields_drops_them_from_the_answer_already,
    a_mark_can_name_the_object_it_is_for,
    a_pipeline_made_anew_is_another_one_without_a_status,
    a_status_that_git_applies_is_dropped,
    a_pipeline_on_its_way_out_still_takes_a_status,
    a_pipeline_is_watched_through_everything_that_is_done_to_it,
    discovery_names_the_kind_and_its_status,
    a_secret_is_watched_by_its_name_alone,
];

/// Where the Pipelines of a group are.
fn collection(api: &Api, group: &str) -> String {
    format!("/apis/{group}/v1alpha1/namespaces/{}/pipelines", api.namespace)
}

fn ours(api: &Api) -> String {
    collection(api, api.whole())
}

fn at(api: &Api, name: &str) -> String {
    format!("{}/{}", ours(api), api.name(name))
}

fn pipeline(api: &Api, group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "Pipeline",
        "metadata": {"name": api.name(name), "labels": {"check": api.check}},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [
                {"name": "staging", "targets": [{"namespace": "staging"}]},
                {"name": "prod", "targets": [{"namespace": "prod"}]},
            ],
            "promotion": {"manual": true, "strategy": {"notification": {}}},
        },
    })
}

async fn made(api: &Api, name: &str) -> Value {
    api.post(&ours(api), &pipeline(api, api.whole(), name)).await.unwrap()
}

/// What the machine writes.
fn status(serial: u64) -> Value {
    json!({
        "observedGeneration": 1, "serial": serial, "latestRevision": "1.3",
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "All clusters checked",
            "lastTransitionTime": "2026-11-22T22:10:00.123Z", "observedGeneration": 1,
        }],
        "environments": {
            "staging": {"targets": [{
                "clusterAppRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "uid": "u", "ready": true, "revision": "1.3",
            }]},
            "prod": {
                "seq": 1,
                "promotion": {"seq": 1, "revision": "1.3", "phase": "Waiting", "startedAt": "2026-11-22T22:10:00.123Z"},
                "waitingApproval": {"revision": "1.3", "ticket": "0123456789ab", "for": "Approval", "since": "2026-11-22T22:10:00Z"},
            },
        },
        "untold": [{"id": "a", "data": {"nothing": null, "many": [1, 2]}}],
    })
}

/// The object with another status, as the machine sends it: metadata and status alone.
fn with_status(object: &Value, status: &Value) -> Value {
    let metadata = &object["metadata"];
    let kept: serde_json::Map<String, Value> = ["name", "namespace", "uid", "resourceVersion"]
        .into_iter()
        .map(|field| (field.to_owned(), metadata[field].clone()))
        .collect();
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept, "status": status})
}

async fn a_new_pipeline_has_the_status_of_its_crd_and_no_other(api: Api) {
    let mut told = pipeline(&api, api.whole(), "a");
    told["status"] = status(7);
    let made = api.post(&ours(&api), &told).await.unwrap();
    assert_eq!(made["status"], json!({"observedGeneration": -1}));
    assert_eq!(made["metadata"]["generation"], 1);
}

async fn a_pipelines_generation_counts_its_spec_alone(api: Api) {
    let made = made(&api, "a").await;
    let path = at(&api, "a");
    for mark in ["requested-at", "suspend"] {
        let change = json!({"metadata": {"annotations": {format!("allclear.dev/{mark}"): "2026-11-22T22:10:00Z"}}});
        assert_eq!(api.merge(&path, &change).await.unwrap()["metadata"]["generation"], 1, "{mark}");
    }
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let written = api.put(&format!("{path}/status"), &with_status(&labelled, &status(1))).await.unwrap();
    assert_eq!(written["metadata"]["generation"], 1);
    let same = api.merge(&path, &json!({"spec": {"promotion": {"manual": true}}})).await.unwrap();
    assert_eq!((&same["metadata"]["generation"], version(&same)), (&json!(1), version(&written)), "no change");
    let suspended = api.merge(&path, &json!({"spec": {"suspend": true}})).await.unwrap();
    assert_eq!((&suspended["metadata"]["generation"], &suspended["status"]), (&json!(2), &written["status"]));
    assert_eq!(suspended["metadata"]["uid"], made["metadata"]["uid"]);
}

async fn a_pipelines_status_is_a_compare_and_set(api: Api) {
    let old = made(&api, "a").await;
    let path = format!("{}/status", at(&api, "a"));
    let first = api.put(&path, &with_status(&old, &status(1))).await.unwrap();
    assert_eq!(first["status"], status(1), "all of it is kept, nulls in notices too");
    let stale = refused(api.put(&path, &with_status(&old, &status(2))).await, 409, "Conflict");
    assert!(stale.message.contains("the object has been modified"), "{}", stale.message);
    // A mark of a person is another version as well.
    let change = json!({"metadata": {"annotations": {"allclear.dev/requested-at": "now"}}});
    let marked = api.merge(&at(&api, "a"), &change).await.unwrap();
    refused(api.put(&path, &with_status(&first, &status(2))).await, 409, "Conflict");
    let same = api.put(&path, &with_status(&marked, &status(1))).await.unwrap();
    assert_eq!(version(&same), version(&marked), "the same again is no write");
    let mut other = with_status(&marked, &status(2));
    other["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    refused(api.put(&path, &other).await, 409, "Conflict");
    let mut blind = with_status(&marked, &status(2));
    blind["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    refused(api.put(&path, &blind).await, 422, "Invalid");
    api.delete(&at(&api, "a")).await.unwrap();
    refused(api.put(&path, &with_status(&marked, &status(2))).await, 404, "NotFound");
}

async fn a_pipelines_status_takes_nothing_else_from_what_it_is_sent(api: Api) {
    let old = made(&api, "a").await;
    let path = format!("{}/status", at(&api, "a"));
    let mut sent = with_status(&old, &status(1));
    sent["spec"] = json!({"suspend": true});
    sent["metadata"]["annotations"] = json!({"allclear.dev/suspend": "x"});
    sent["metadata"]["finalizers"] = json!(["allclear.dev/check"]);
    let written = api.put(&path, &sent).await.unwrap();
    assert_eq!((&written["spec"], &written["status"]), (&old["spec"], &status(1)));
    assert!(written["metadata"]["annotations"].is_null() && written["metadata"]["finalizers"].is_null());
    // And the other way round: what is sent to the object itself does not touch the status.
    let mut main = written.clone();
    main["status"] = json!({"observedGeneration": 9});
    let put = api.put(&at(&api, "a"), &main).await.unwrap();
    assert_eq!((&put["status"], version(&put)), (&status(1), version(&written)));
    let edited = api.merge(&path, &json!({"status": {"serial": 0}})).await.unwrap();
    assert_eq!((&edited["status"]["serial"], &edited["status"]["latestRevision"]), (&json!(0), &json!("1.3")));
}

async fn a_crd_without_our_fields_drops_them_from_the_answer_already(api: Api) {
    let group = api.pruning();
    let made = api.post(&collection(&api, group), &pipeline(&api, group, "a")).await.unwrap();
    let path = format!("{}/{}/status", collection(&api, group), api.name("a"));
    let written = api.put(&path, &with_status(&made, &status(1))).await.unwrap();
    let kept = written["status"].as_object().unwrap();
    assert!(kept.keys().all(|field| PRUNING_FIELDS.contains(&field.as_str())), "{kept:?}");
    assert_eq!(kept["environments"]["prod"], json!({"waitingApproval": {"revision": "1.3"}}));
    assert_eq!(kept["observedGeneration"], 1);
}

async fn a_mark_can_name_the_object_it_is_for(api: Api) {
    let made = made(&api, "a").await;
    let path = at(&api, "a");
    let mark = |metadata: Value| json!({"metadata": metadata});
    let other = json!({"uid": "00000000-0000-4000-8000-000000000000", "annotations": {"allclear.dev/suspend": "x"}});
    let status = refused(api.merge(&path, &mark(other)).await, 422, "Invalid");
    assert_eq!(
        status.details.unwrap().causes[0].field,
        "metadata.uid",
        "a patch may not change it, and is no conflict"
    );
    let right = json!({"uid": made["metadata"]["uid"], "annotations": {"allclear.dev/suspend": "x"}});
    let marked = api.merge(&path, &mark(right)).await.unwrap();
    assert_eq!(marked["metadata"]["annotations"], json!({"allclear.dev/suspend": "x"}));
    let stale = json!({"resourceVersion": version(&made), "annotations": {"allclear.dev/suspend": null}});
    refused(api.merge(&path, &mark(stale)).await, 409, "Conflict");
    let current = json!({"resourceVersion": version(&marked), "annotations": {"allclear.dev/suspend": null}});
    let cleared = api.merge(&path, &mark(current)).await.unwrap();
    assert!(cleared["metadata"]["annotations"]["allclear.dev/suspend"].is_null());
    refused(api.merge(&format!("{path}-none"), &mark(json!({"labels": {"a": "b"}}))).await, 404, "NotFound");
}

async fn a_pipeline_made_anew_is_another_one_without_a_status(api: Api) {
    let first = made(&api, "a").await;
    let path = format!("{}/status", at(&api, "a"));
    let kept = api.put(&path, &with_status(&first, &status(5))).await.unwrap();
    api.delete(&at(&api, "a")).await.unwrap();
    // As a backup has it, without what only the server gives.
    let mut backup = kept.clone();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        backup["metadata"].as_object_mut().unwrap().remove(field);
    }
    let again = api.post(&ours(&api), &backup).await.unwrap();
    assert_eq!(again["status"], json!({"observedGeneration": -1}));
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    let restored = api.put(&path, &with_status(&again, &kept["status"])).await.unwrap();
    assert_eq!(restored["status"], status(5));
    refused(api.put(&path, &with_status(&kept, &status(6))).await, 409, "Conflict");
}

async fn a_status_that_git_applies_is_dropped(api: Api) {
    let object = pipeline(&api, api.whole(), "a");
    let path = format!("{}?fieldManager=check&force=true", at(&api, "a"));
    let made = api.patch(&path, "apply-patch+yaml", &object).await.unwrap();
    let written = api.put(&format!("{}/status", at(&api, "a")), &with_status(&made, &status(1))).await.unwrap();
    let mut old = object.clone();
    old["status"] = json!({"serial": 0});
    old["metadata"]["annotations"] = json!({"allclear.dev/suspend": "x"});
    let applied = api.patch(&path, "apply-patch+yaml", &old).await.unwrap();
    assert_eq!((&applied["status"], &applied["metadata"]["generation"]), (&written["status"], &json!(1)));
    assert_eq!(applied["metadata"]["annotations"]["allclear.dev/suspend"], "x");
    let again = api.patch(&path, "apply-patch+yaml", &old).await.unwrap();
    assert_eq!(version(&again), version(&applied), "what is applied again is no write");
}

async fn a_pipeline_on_its_way_out_still_takes_a_status(api: Api) {
    let mut held = pipeline(&api, api.whole(), "a");
    held["metadata"]["finalizers"] = json!(["allclear.dev/check"]);
    api.post(&ours(&api), &held).await.unwrap();
    api.delete(&at(&api, "a")).await.unwrap();
    let leaving = api.get(&at(&api, "a")).await.unwrap();
    assert!(leaving["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(leaving["metadata"]["generation"], 2);
    let written = api.put(&format!("{}/status", at(&api, "a")), &with_status(&leaving, &status(1))).await.unwrap();
    assert_eq!(written["status"], status(1));
    let change = json!({"metadata": {"annotations": {"allclear.dev/requested-at": "now"}}});
    api.merge(&at(&api, "a"), &change).await.unwrap();
    api.merge(&at(&api, "a"), &json!({"metadata": {"finalizers": null}})).await.unwrap();
    refused(api.get(&at(&api, "a")).await, 404, "NotFound");
}

async fn a_pipeline_is_watched_through_everything_that_is_done_to_it(api: Api) {
    let query = format!("{}&resourceVersion=0", api.mine());
    let mut events = api.watch(&ours(&api), &query).await.unwrap();
    let made = made(&api, "a").await;
    assert_eq!(events.next_change().await, "ADDED a=");
    api.put(&format!("{}/status", at(&api, "a")), &with_status(&made, &status(1))).await.unwrap();
    assert_eq!(events.next_change().await, "MODIFIED a=");
    let change = json!({"metadata": {"annotations": {"allclear.dev/requested-at": "now"}}});
    api.merge(&at(&api, "a"), &change).await.unwrap();
    assert_eq!(events.next_change().await, "MODIFIED a=");
    api.delete(&at(&api, "a")).await.unwrap();
    assert_eq!(events.next_change().await, "DELETED a=");
}

async fn discovery_names_the_kind_and_its_status(api: Api) {
    let found = api.get(&format!("/apis/{}/v1alpha1", api.whole())).await.unwrap();
    let kinds = found["resources"].as_array().unwrap();
    let of = |name: &str| kinds.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {found}"));
    assert_eq!((&of("pipelines")["kind"], &of("pipelines")["namespaced"]), (&json!("Pipeline"), &json!(true)));
    assert_eq!(of("pipelines")["singularName"], "pipeline");
    assert_eq!(of("pipelines/status")["verbs"], json!(["get", "patch", "update"]));
    let group = api.get(&format!("/apis/{}", api.whole())).await.unwrap();
    assert_eq!(group["preferredVersion"]["version"], "v1alpha1");
    assert_eq!(api.get(&format!("/apis/{}/v1", api.whole())).await.unwrap_err().code, 404);
    assert_eq!(api.get(&format!("/apis/{OTHER}/v1alpha1")).await.unwrap_err().code, 404);
}

async fn a_secret_is_watched_by_its_name_alone(api: Api) {
    let secret = |name: &str, value: &str| {
        let metadata = json!({"name": api.name(name), "labels": {"check": api.check}});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": value}})
    };
    let secrets = api.path("secrets");
    let kept = api.post(&secrets, &secret("a", "one")).await.unwrap();
    assert_eq!((&kept["data"]["token"], &kept["stringData"]), (&json!("b25l"), &Value::Null));
    let query = format!(
        "fieldSelector=metadata.name%3D{}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        api.name("a")
    );
    let mut events = api.watch(&secrets, &query).await.unwrap();
    assert_eq!(events.next_change().await, "ADDED a=");
    assert_eq!(events.next_change().await, "END OF LIST");
    api.post(&secrets, &secret("b", "one")).await.unwrap();
    api.merge(&format!("{secrets}/{}", api.name("a")), &json!({"stringData": {"token": "two"}})).await.unwrap();
    assert_eq!(events.next_change().await, "MODIFIED a=");
    api.delete(&format!("{secrets}/{}", api.name("a"))).await.unwrap();
    assert_eq!(events.next_change().await, "DELETED a=");
}
