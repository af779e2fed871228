//! Reviews of rights, dry runs, and what a server says of itself: what `allclear check` rests on.

use serde_json::{Value, json};

use super::support::{Api, Check, checks, refused};

pub const CHECKS: &[(&str, Check)] = checks![
    a_review_of_own_rights_says_whether_and_nothing_is_kept,
    a_review_of_another_account_is_asked_for_by_its_name,
    a_dry_run_is_answered_like_a_create_and_stores_nothing,
    a_server_says_its_version_and_who_asks,
    what_is_forbidden_is_refused_and_reviewed_alike_on_demand,
];

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn review(kind: &str, namespace: &str, more: &Value) -> Value {
    let attributes = json!({"namespace": namespace, "verb": "list", "group": "apps", "resource": "deployments"});
    let mut object =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": {"resourceAttributes": attributes}});
    for (name, value) in more.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    object
}

async fn a_review_of_own_rights_says_whether_and_nothing_is_kept(api: Api) {
    let asked = review("SelfSubjectAccessReview", &api.namespace, &json!({}));
    let answer = api.post(&format!("{REVIEWS}/selfsubjectaccessreviews"), &asked).await.unwrap();
    assert_eq!((&answer["kind"], &answer["status"]["allowed"]), (&json!("SelfSubjectAccessReview"), &json!(true)));
}

async fn a_review_of_another_account_is_asked_for_by_its_name(api: Api) {
    let user = "system:serviceaccount:allclear:allclear";
    let more = json!({"user": user, "groups": ["system:serviceaccounts", "system:authenticated"]});
    let asked = review("SubjectAccessReview", &api.namespace, &more);
    let answer = api.post(&format!("{REVIEWS}/subjectaccessreviews"), &asked).await.unwrap();
    assert!(answer["status"]["allowed"].is_boolean(), "{answer}");
    assert_eq!(answer["spec"]["user"], user);
}

async fn a_dry_run_is_answered_like_a_create_and_stores_nothing(api: Api) {
    let dry = format!("{}?dryRun=All", api.path("configmaps"));
    let answer = api.post(&dry, &api.config_map("dry", "1")).await.unwrap();
    assert_eq!(answer["metadata"]["name"], api.name("dry"));
    assert!(answer["metadata"]["uid"].is_string(), "{answer}");
    refused(api.get(&format!("{}/{}", api.path("configmaps"), api.name("dry"))).await, 404, "NotFound");
    let mut nameless = api.config_map("dry", "1");
    nameless["metadata"]["name"] = json!("Not A Name");
    refused(api.post(&dry, &nameless).await, 422, "Invalid");
    let nowhere = "/api/v1/namespaces/allclear-none/configmaps?dryRun=All";
    let status = refused(api.post(nowhere, &api.config_map("a", "1")).await, 404, "NotFound");
    assert_eq!(status.message, "namespaces \"allclear-none\" not found");
}

async fn a_server_says_its_version_and_who_asks(api: Api) {
    let version = api.get("/version").await.unwrap();
    assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."), "{version}");
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &asked).await.unwrap();
    assert!(answer["status"]["userInfo"]["username"].is_string(), "{answer}");
}

async fn what_is_forbidden_is_refused_and_reviewed_alike_on_demand(api: Api) {
    use sandbox::kubernetes::Forbidden;

    let namespace = Some(api.namespace.clone());
    let right = Forbidden { namespace, ..Forbidden::everywhere("list", "", "endpoints") };
    api.stand_in().forbid(right);
    let attributes = json!({"namespace": api.namespace, "verb": "list", "group": "", "resource": "endpoints"});
    let asked = review("SelfSubjectAccessReview", &api.namespace, &json!({"resourceAttributes": attributes}));
    let answer = api.post(&format!("{REVIEWS}/selfsubjectaccessreviews"), &asked).await.unwrap();
    assert_eq!(answer["status"]["allowed"], false);
    // A verb that no other check uses.
    let right =
        Forbidden { namespace: Some("nowhere".to_owned()), ..Forbidden::everywhere("update", "", "configmaps") };
    api.stand_in().forbid(right);
    let path = "/api/v1/namespaces/nowhere/configmaps/a";
    let status = refused(api.put(path, &api.config_map("a", "1")).await, 403, "Forbidden");
    let user = api.stand_in().user();
    let words = format!(
        "configmaps is forbidden: User \"{user}\" cannot update resource \"configmaps\" in API group \"\" in the namespace \"nowhere\""
    );
    assert_eq!(status.message, words.replacen("configmaps is", "configmaps \"a\" is", 1));
}
