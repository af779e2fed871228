//! What a client asks first: the version, which groups and kinds there are, and what a PATCH of them takes.
//!
//! Of `/openapi/v3` there is what `kubectl apply` reads: where the PATCH of a kind takes `fieldValidation`, kubectl sends an object without a
//! check of its own; otherwise it wants the schemas of version 2, which are not served
//! (<https://github.com/kubernetes/kubernetes/blob/v1.33.0/staging/src/k8s.io/cli-runtime/pkg/resource/query_param_verifier_v3.go>).
//! There are no schemas, and so nothing for `kubectl explain`. Not for the check itself (`definition`).

use serde_json::{Map, Value, json};

use super::resource::{Description, Kind};

const OPENAPI: &str = "/openapi/v3";

/// The groups served, in the order of the table, each once. The core group is not among them.
fn groups(is_installed: &dyn Fn(&str) -> bool) -> Vec<&'static Description> {
    let mut rows: Vec<&'static Description> = Vec::new();
    for row in Kind::all().map(Kind::describe) {
        let served = !row.group.is_empty() && (!row.custom || is_installed(row.group));
        if served && !rows.iter().any(|seen| seen.group == row.group) {
            rows.push(row);
        }
    }
    rows
}

/// The document at `path`, if there is one: `/version`, `/api`, `/apis`, `/openapi/v3`, and the lists below them.
pub fn document(path: &str, is_installed: &dyn Fn(&str) -> bool) -> Option<Value> {
    if let Some(root) = path.strip_prefix(OPENAPI) {
        return openapi(root, is_installed);
    }
    match path {
        "/version" => Some(version()),
        "/api" => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        "/apis" => {
            let groups: Vec<Value> = groups(is_installed).into_iter().map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        "/api/v1" => Some(resource_list("")),
        _ => {
            let rest = path.strip_prefix("/apis/")?;
            let row = groups(is_installed).into_iter().find(|row| rest.split('/').next() == Some(row.group))?;
            match rest.split_once('/') {
                None => Some(group(row)),
                Some((_, version)) if version == row.version => Some(resource_list(row.group)),
                Some(_) => None,
            }
        }
    }
}

/// `/version`. The numbers are those of the oldest server the client types support; the suffix tells a person who looks
/// that this is no cluster.
fn version() -> Value {
    json!({
        "major": "1", "minor": "33", "gitVersion": "v1.33.0+allclear-stand-in", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": "loopback",
    })
}

fn group(row: &'static Description) -> Value {
    let version = json!({"groupVersion": row.api_version(), "version": row.version});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": row.group, "versions": [version], "preferredVersion": version,
    })
}

fn resource_list(group: &str) -> Value {
    const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let mut resources = Vec::new();
    let mut group_version = "v1".to_owned();
    for row in Kind::all().map(Kind::describe).filter(|row| row.group == group) {
        group_version = row.api_version();
        resources.push(json!({
            "name": row.plural, "singularName": row.kind.to_lowercase(), "namespaced": row.namespaced, "kind": row.kind,
            "verbs": VERBS, "shortNames": row.short_names,
        }));
        if row.status {
            resources.push(json!({
                "name": format!("{}/status", row.plural), "singularName": "", "namespaced": row.namespaced,
                "kind": row.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    if group.is_empty() {
        resources.push(json!({
            "name": "events", "singularName": "event", "namespaced": true, "kind": "Event",
            "verbs": ["create", "get", "list"], "shortNames": ["ev"],
        }));
    }
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

/// The list of groups, or the kinds of the group at `root`.
fn openapi(root: &str, is_installed: &dyn Fn(&str) -> bool) -> Option<Value> {
    let rows = Kind::all().map(Kind::describe).filter(|row| !row.custom || is_installed(row.group));
    if root.is_empty() {
        let place = |row: &Description| {
            let root = row.root();
            (root.trim_start_matches('/').to_owned(), json!({"serverRelativeURL": format!("{OPENAPI}{root}")}))
        };
        return Some(json!({"paths": rows.map(place).collect::<Map<String, Value>>()}));
    }
    let patch = |row: &Description| {
        let scope = if row.namespaced { "namespaces/{namespace}/" } else { "" };
        let validation = json!({"name": "fieldValidation", "in": "query", "schema": {"type": "string"}});
        let kind = json!({"group": row.group, "version": row.version, "kind": row.kind});
        let patch = json!({"parameters": [validation], "x-kubernetes-group-version-kind": kind});
        (format!("{root}/{scope}{}/{{name}}", row.plural), json!({"patch": patch}))
    };
    let paths: Map<String, Value> = rows.filter(|row| row.root() == root).map(patch).collect();
    let info = json!({"title": "A stand-in for Kubernetes", "version": "unversioned"});
    (!paths.is_empty()).then(|| json!({"openapi": "3.0.0", "info": info, "paths": paths}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::resource::GATEWAY_GROUP;

    #[test]
    fn a_cluster_without_the_gateway_api_does_not_announce_it() {
        let with = document("/apis", &|_| true).unwrap().to_string();
        let without = document("/apis", &|_| false).unwrap().to_string();
        assert!(with.contains(GATEWAY_GROUP) && !without.contains(GATEWAY_GROUP));
        assert_eq!(document("/apis/gateway.networking.k8s.io/v1", &|_| false), None);
        assert!(document("/apis/gateway.networking.k8s.io/v1", &|_| true).is_some());
    }

    #[test]
    fn every_group_of_openapi_leads_to_its_document() {
        let list = document(OPENAPI, &|_| true).unwrap();
        let places = list["paths"].as_object().unwrap();
        assert!(places.contains_key("api/v1") && places.contains_key("apis/allclear.dev/v1alpha1"), "{list}");
        for (name, place) in places {
            let found = document(place["serverRelativeURL"].as_str().unwrap(), &|_| true).unwrap();
            let paths = found["paths"].as_object().unwrap();
            assert!(!paths.is_empty() && paths.keys().all(|path| path.starts_with(&format!("/{name}/"))), "{found}");
        }
        for nowhere in ["/openapi/v2", "/openapi/v3/api", "/openapi/v3/apis/apps/v2", "/openapi"] {
            assert_eq!(document(nowhere, &|_| true), None, "{nowhere}");
        }
        assert_eq!(document("/openapi/v3/apis/allclear.dev/v1alpha1", &|_| false), None);
    }
}
