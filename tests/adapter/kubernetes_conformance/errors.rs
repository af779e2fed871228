//! Refusals: code, reason and details, because clients decide by them.

use serde_json::json;

use super::support::{Api, Check, checks, refused};

pub const CHECKS: &[(&str, Check)] = checks![
    a_missing_object_is_not_found,
    a_namespace_that_is_not_there_is_named,
    a_second_create_says_already_exists,
    a_stale_update_is_a_conflict,
    bodies_must_belong_to_their_path,
    names_are_checked,
    workload_selectors_are_checked,
    unknown_forms_of_bodies_are_refused,
    the_gateway_api_can_be_missing_on_demand,
];

async fn a_missing_object_is_not_found(api: Api) {
    let status = refused(api.get(&format!("{}/none", api.path("deployments"))).await, 404, "NotFound");
    assert_eq!(status.message, "deployments.apps \"none\" not found");
    let details = status.details.unwrap();
    assert_eq!((details.name.as_str(), details.group.as_str(), details.kind.as_str()), ("none", "apps", "deployments"));
    refused(api.delete(&format!("{}/none", api.path("configmaps"))).await, 404, "NotFound");
    refused(api.merge(&format!("{}/none", api.path("configmaps")), &json!({})).await, 404, "NotFound");
    let nowhere = api.get("/apis/nothing.example.com/v1/things").await.unwrap_err();
    assert_eq!(nowhere.code, 404);
}

async fn a_namespace_that_is_not_there_is_named(api: Api) {
    let path = "/api/v1/namespaces/allclear-none/configmaps";
    let status = refused(api.post(path, &api.config_map("a", "1")).await, 404, "NotFound");
    assert_eq!(status.message, "namespaces \"allclear-none\" not found");
    let empty = api.get(path).await.unwrap();
    assert_eq!(empty["items"], json!([]), "a list does not ask for the namespace");
}

async fn a_second_create_says_already_exists(api: Api) {
    api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let status = refused(api.post(&api.path("configmaps"), &api.config_map("a", "2")).await, 409, "AlreadyExists");
    let details = status.details.unwrap();
    assert_eq!((details.name, details.kind.as_str()), (api.name("a"), "configmaps"));
}

async fn a_stale_update_is_a_conflict(api: Api) {
    let old = api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    let mut new = old.clone();
    new["data"]["v"] = json!("2");
    api.put(&path, &new).await.unwrap();
    let status = refused(api.put(&path, &new).await, 409, "Conflict");
    assert!(status.message.contains("the object has been modified"), "{}", status.message);
    let stale = json!({"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"v": "3"}});
    refused(api.merge(&path, &stale).await, 409, "Conflict");
    let mut other = new.clone();
    other["metadata"]["resourceVersion"] = json!(null);
    other["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    refused(api.put(&path, &other).await, 409, "Conflict");
    assert_eq!(api.get(&path).await.unwrap()["data"]["v"], "2");
}

async fn bodies_must_belong_to_their_path(api: Api) {
    let map = api.config_map("a", "1");
    refused(api.put(&format!("{}/b", api.path("configmaps")), &map).await, 400, "BadRequest");
    let mut elsewhere = map.clone();
    elsewhere["metadata"]["namespace"] = json!("default");
    refused(api.post(&api.path("configmaps"), &elsewhere).await, 400, "BadRequest");
    refused(api.post(&api.path("deployments"), &map).await, 400, "BadRequest");
    let mut versioned = map;
    versioned["metadata"]["resourceVersion"] = json!("1");
    let odd = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": api.name("a")}, "spec": "text"});
    refused(api.post(&api.path("services"), &odd).await, 400, "BadRequest");
    assert_eq!(api.post(&api.path("configmaps"), &versioned).await.unwrap_err().code, 500, "a wart, but theirs");
}

async fn names_are_checked(api: Api) {
    let mut map = api.config_map("a", "1");
    map["metadata"]["name"] = json!("Not_A_Name");
    let status = refused(api.post(&api.path("configmaps"), &map).await, 422, "Invalid");
    assert_eq!(status.details.unwrap().causes[0].field, "metadata.name");
    map["metadata"]["name"] = json!("");
    refused(api.post(&api.path("configmaps"), &map).await, 422, "Invalid");
}

async fn workload_selectors_are_checked(api: Api) {
    let mut mismatch = api.deployment("a");
    mismatch["spec"]["selector"]["matchLabels"] = json!({"other": "label"});
    let status = refused(api.post(&api.path("deployments"), &mismatch).await, 422, "Invalid");
    assert_eq!(status.details.unwrap().causes[0].field, "spec.template.metadata.labels");
    let mut made = api.post(&api.path("deployments"), &api.deployment("b")).await.unwrap();
    made["metadata"]["resourceVersion"] = json!(null);
    made["spec"]["selector"]["matchLabels"]["more"] = json!("x");
    made["spec"]["template"]["metadata"]["labels"]["more"] = json!("x");
    let path = format!("{}/{}", api.path("deployments"), api.name("b"));
    refused(api.put(&path, &made).await, 422, "Invalid");
}

async fn unknown_forms_of_bodies_are_refused(api: Api) {
    api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    refused(api.patch(&path, "json", &json!({})).await, 415, "UnsupportedMediaType");
    refused(api.patch(&path, "apply-patch+yaml", &api.config_map("a", "2")).await, 422, "Invalid");
}

async fn the_gateway_api_can_be_missing_on_demand(api: Api) {
    api.get(&api.path("httproutes")).await.unwrap();
    api.stand_in().set_gateway_api(false);
    let status = api.get(&api.path("httproutes")).await.unwrap_err();
    assert_eq!(status.code, 404);
    let groups = api.get("/apis").await.unwrap().to_string();
    assert!(!groups.contains("gateway.networking.k8s.io") && groups.contains("events.k8s.io"));
    api.stand_in().set_gateway_api(true);
}
