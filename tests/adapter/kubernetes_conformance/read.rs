//! Reading: discovery, selectors, paging on a consistent snapshot, and lists of the past.

use serde_json::{Value, json};

use super::support::{Api, Check, checks, names, refused, version};

pub const CHECKS: &[(&str, Check)] = checks![
    discovery_names_what_is_served,
    label_selectors_select,
    field_selectors_select_by_name_alone,
    items_of_builtin_lists_carry_no_type,
    pages_show_one_moment,
    a_list_can_show_the_past,
    contradicting_list_options_are_refused,
    a_version_from_the_future_times_out,
    an_old_page_is_expired_and_can_be_resumed_on_demand,
];

async fn discovery_names_what_is_served(api: Api) {
    assert!(api.get("/version").await.unwrap()["gitVersion"].is_string());
    assert!(api.get("/api").await.unwrap()["versions"].as_array().unwrap().contains(&json!("v1")));
    let groups = api.get("/apis").await.unwrap();
    let groups: Vec<&str> = groups["groups"].as_array().unwrap().iter().filter_map(|g| g["name"].as_str()).collect();
    for group in ["apps", "networking.k8s.io", "events.k8s.io", "coordination.k8s.io"] {
        assert!(groups.contains(&group), "{group} is not in {groups:?}");
    }
    let apps = api.get("/apis/apps/v1").await.unwrap();
    let resources = apps["resources"].as_array().unwrap();
    let find = |name: &str| resources.iter().find(|resource| resource["name"] == name).unwrap();
    assert_eq!(
        (&find("deployments")["kind"], &find("deployments")["namespaced"]),
        (&json!("Deployment"), &json!(true))
    );
    assert!(find("deployments")["verbs"].as_array().unwrap().contains(&json!("watch")));
    assert_eq!(find("deployments/status")["kind"], "Deployment");
}

/// Three maps with a label `tier`: front, back, and none.
async fn three_tiers(api: &Api) {
    for (name, tier) in [("a", Some("front")), ("b", Some("back")), ("c", None)] {
        let mut map = api.config_map(name, "1");
        if let Some(tier) = tier {
            map["metadata"]["labels"]["tier"] = json!(tier);
        }
        api.post(&api.path("configmaps"), &map).await.unwrap();
    }
}

async fn label_selectors_select(api: Api) {
    three_tiers(&api).await;
    for (selector, expected) in [
        ("tier%3Dfront", vec!["a"]),
        ("tier%3D%3Dfront", vec!["a"]),
        ("tier", vec!["a", "b"]),
        ("tier,tier%3Dback", vec!["b"]),
    ] {
        let path = format!("{}?{},{selector}", api.path("configmaps"), api.mine());
        assert_eq!(names(&api.get(&path).await.unwrap()), expected, "{selector}");
    }
    let everywhere = api.get(&format!("/api/v1/configmaps?{}", api.mine())).await.unwrap();
    assert_eq!(names(&everywhere), ["a", "b", "c"]);
    refused(api.get(&format!("{}?labelSelector=a+b+c", api.path("configmaps"))).await, 400, "BadRequest");
}

async fn field_selectors_select_by_name_alone(api: Api) {
    three_tiers(&api).await;
    let select = |fields: String| {
        let (api, path) = (api.clone(), format!("{}?{}&fieldSelector={fields}", api.path("configmaps"), api.mine()));
        async move { api.get(&path).await }
    };
    assert_eq!(names(&select(format!("metadata.name%3D{}", api.name("b"))).await.unwrap()), ["b"]);
    refused(select("data.v%3D1".to_owned()).await, 400, "BadRequest");
    let path = format!("{}?fieldSelector=spec.replicas%3D1", api.path("deployments"));
    refused(api.get(&path).await, 400, "BadRequest");
}

async fn items_of_builtin_lists_carry_no_type(api: Api) {
    api.post(&api.path("configmaps"), &api.config_map("a", "1")).await.unwrap();
    let list = api.get(&format!("{}?{}", api.path("configmaps"), api.mine())).await.unwrap();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!((&list["items"][0]["kind"], &list["items"][0]["apiVersion"]), (&Value::Null, &Value::Null));
    let one = api.get(&format!("{}/{}", api.path("configmaps"), api.name("a"))).await.unwrap();
    assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
}

async fn pages_show_one_moment(api: Api) {
    for name in ["a", "b", "c", "d", "e"] {
        api.post(&api.path("configmaps"), &api.config_map(name, "old")).await.unwrap();
    }
    let path = format!("{}?{}&limit=2", api.path("configmaps"), api.mine());
    let first = api.get(&path).await.unwrap();
    assert_eq!(names(&first), ["a", "b"]);
    let object = |name: &str| format!("{}/{}", api.path("configmaps"), api.name(name));
    api.delete(&object("c")).await.unwrap();
    for value in ["new", "newer"] {
        api.merge(&object("d"), &json!({"data": {"v": value}})).await.unwrap();
    }
    api.post(&api.path("configmaps"), &api.config_map("bb", "new")).await.unwrap();
    let next = |list: &Value| format!("{path}&continue={}", list["metadata"]["continue"].as_str().unwrap());
    let second = api.get(&next(&first)).await.unwrap();
    assert_eq!((names(&second), version(&second)), (vec!["c".into(), "d".into()], version(&first)));
    assert_eq!(second["items"][1]["data"]["v"], "old");
    let third = api.get(&next(&second)).await.unwrap();
    assert_eq!(names(&third), ["e"]);
    assert!(third["metadata"]["continue"].as_str().unwrap_or_default().is_empty());
    let now = api.get(&format!("{}?{}", api.path("configmaps"), api.mine())).await.unwrap();
    assert_eq!(names(&now), ["a", "b", "bb", "d", "e"]);
    refused(api.get(&format!("{path}&continue=nonsense")).await, 400, "BadRequest");
}

async fn a_list_can_show_the_past(api: Api) {
    let old = api.post(&api.path("configmaps"), &api.config_map("a", "old")).await.unwrap();
    let path = format!("{}/{}", api.path("configmaps"), api.name("a"));
    let new = api.merge(&path, &json!({"data": {"v": "new"}})).await.unwrap();
    let at = |version: &str, rule: &str| {
        let query = format!("{}&resourceVersion={version}&resourceVersionMatch={rule}", api.mine());
        let (api, path) = (api.clone(), format!("{}?{query}", api.path("configmaps")));
        async move { api.get(&path).await.unwrap()["items"][0]["data"]["v"].as_str().unwrap().to_owned() }
    };
    assert_eq!(at(version(&old), "Exact").await, "old");
    assert_eq!(at(version(&new), "Exact").await, "new");
    assert_eq!(at(version(&new), "NotOlderThan").await, "new");
}

async fn contradicting_list_options_are_refused(api: Api) {
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Newest",
        "sendInitialEvents=true",
    ] {
        refused(api.get(&format!("{}?{query}", api.path("configmaps"))).await, 422, "Invalid");
    }
    for query in ["sendInitialEvents=true", "resourceVersion=1&resourceVersionMatch=NotOlderThan"] {
        let answer = api.watch(&api.path("configmaps"), query).await;
        refused(answer.map(|_| Value::Null), 422, "Invalid");
    }
}

async fn a_version_from_the_future_times_out(api: Api) {
    let now = api.get(&api.path("configmaps")).await.unwrap();
    let future = version(&now).parse::<u64>().unwrap() + 1_000_000_000;
    let path = format!("{}?resourceVersion={future}&resourceVersionMatch=NotOlderThan", api.path("configmaps"));
    let status = refused(api.get(&path).await, 504, "Timeout");
    assert!(status.message.contains("Too large resource version"), "{}", status.message);
}

async fn an_old_page_is_expired_and_can_be_resumed_on_demand(api: Api) {
    for name in ["a", "b", "c"] {
        api.post(&api.path("configmaps"), &api.config_map(name, "1")).await.unwrap();
    }
    let path = format!("{}?{}&limit=1", api.path("configmaps"), api.mine());
    let first = api.get(&path).await.unwrap();
    api.post(&api.path("configmaps"), &api.config_map("aa", "2")).await.unwrap();
    api.stand_in().compact();
    let next = format!("{path}&continue={}", first["metadata"]["continue"].as_str().unwrap());
    let status = refused(api.get(&next).await, 410, "Expired");
    let resume = status.metadata.unwrap().continue_.unwrap();
    let second = api.get(&format!("{path}&continue={resume}")).await.unwrap();
    assert_eq!(names(&second), ["aa"], "the rest is what there is now");
    let old = format!("{}?resourceVersion={}&resourceVersionMatch=Exact", api.path("configmaps"), version(&first));
    refused(api.get(&old).await, 410, "Expired");
}
