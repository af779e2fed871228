//! As much of `/openapi/v3` as `kubectl create -f`, `apply` and `explain` read: which operations there are, that they take
//! `fieldValidation`, and the schemas of our own kinds.
//!
//! kubectl sends an object without a check of its own if the PATCH of its kind takes `fieldValidation`; otherwise it wants the schemas
//! of version 2, which are not served
//! (<https://github.com/kubernetes/kubernetes/blob/v1.33.0/staging/src/k8s.io/cli-runtime/pkg/resource/query_param_verifier_v3.go>).
//! Built-in kinds have no schemas here. Not for the check itself (`definition`).

use serde_json::{Map, Value, json};

use super::definition::definition;
use super::resource::{Description, Kind};

const ROOT: &str = "/openapi/v3";

/// The document at `path`, if there is one: the list of groups, or one group in one version.
pub fn document(path: &str, is_installed: &dyn Fn(&str) -> bool) -> Option<Value> {
    let asked = path.strip_prefix(ROOT)?;
    let served = |kind: &Kind| !kind.describe().custom || is_installed(kind.describe().group);
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(served).collect();
    if asked.is_empty() {
        let place = |kind: &Kind| {
            let address = address(kind.describe());
            (address.trim_start_matches('/').to_owned(), json!({"serverRelativeURL": format!("{ROOT}{address}")}))
        };
        return Some(json!({"paths": kinds.iter().map(place).collect::<Map<String, Value>>()}));
    }
    let kinds: Vec<Kind> = kinds.into_iter().filter(|kind| address(kind.describe()) == asked).collect();
    (!kinds.is_empty()).then(|| group(&kinds))
}

/// Where the API has this group in this version: `/api/v1`, `/apis/apps/v1`.
fn address(row: &Description) -> String {
    let root = if row.group.is_empty() { "/api" } else { "/apis" };
    format!("{root}/{}", row.api_version())
}

/// The kinds of one group.
fn group(kinds: &[Kind]) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for kind in kinds {
        let row = kind.describe();
        let collection = row.collection(if row.namespaced { "{namespace}" } else { "" });
        let reading = operation(row, &[]);
        let writing = operation(row, &["dryRun", "fieldManager", "fieldValidation"]);
        paths.insert(format!("{collection}/{{name}}"), json!({"get": reading, "put": writing, "patch": writing}));
        paths.insert(collection, json!({"get": reading, "post": writing}));
        if let Some(definition) = definition(*kind) {
            let mut schema = definition.schema.clone();
            schema["x-kubernetes-group-version-kind"] = json!([identity(row)]);
            schemas.insert(format!("{}.{}.{}", reversed(row.group), row.version, row.kind), schema);
        }
    }
    let info = json!({"title": "A stand-in for Kubernetes", "version": "unversioned"});
    json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}})
}

fn identity(row: &Description) -> Value {
    json!({"group": row.group, "version": row.version, "kind": row.kind})
}

/// A group as names of schemas begin with it: `dev.allclear`.
fn reversed(group: &str) -> String {
    group.rsplit('.').collect::<Vec<_>>().join(".")
}

fn operation(row: &Description, parameters: &[&str]) -> Value {
    let parameter = |name: &&str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    json!({
        "parameters": parameters.iter().map(parameter).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": identity(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_the_list_leads_to_its_document() {
        let list = document(ROOT, &|_| true).unwrap();
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
    }

    #[test]
    fn a_kind_that_is_not_installed_is_not_announced() {
        assert_eq!(document("/openapi/v3/apis/allclear.dev/v1alpha1", &|_| false), None);
        assert!(!document(ROOT, &|_| false).unwrap().to_string().contains("allclear.dev"));
    }
}
