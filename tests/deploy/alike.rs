//! The chart and the kustomize trees give the same objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, helm, kustomize, text, top};
use crate::settings::{RENDERED, Rendered, Setting, all};

/// Labels that say who made an object; the chart has them on every object, kustomize on some. What selects is compared.
const WHOSE: [&str; 6] = [
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// An object as both ways have to give it. What may differ is taken out here and nowhere else.
fn comparable(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.retain(|label, _| !WHOSE.contains(&label.as_str()));
    }
    // helm keeps a CRD when the release goes; kubectl delete -k is told so by a comment.
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("helm.sh/resource-policy");
    }
    metadata.retain(|_, value| *value != json!({}));
    // kustomize puts a hash into the name of a ConfigMap, helm one into an annotation of the pod.
    let hashed = |name: &str| name.starts_with("allclear-config");
    if metadata["name"].as_str().is_some_and(hashed) {
        metadata["name"] = json!("allclear-config");
        let config: toml::Table = object["data"]["config.toml"].as_str().unwrap().parse().unwrap();
        object["data"]["config.toml"] = without_defaults(serde_json::to_value(config).unwrap());
    }
    if let Some(template) = object.pointer_mut("/spec/template").filter(|template| template.is_object()) {
        if let Some(annotations) = template["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
            assert!(annotations.remove("checksum/config").is_some());
        }
        template["metadata"].as_object_mut().unwrap().retain(|_, value| *value != json!({}));
        let name = template.pointer_mut("/spec/volumes/0/projected/sources/0/configMap/name").unwrap();
        assert!(name.as_str().is_some_and(hashed), "{name}");
        *name = json!("allclear-config");
        // Kubernetes reads variables in any order, since none of ours refers to another.
        let variables = template.pointer_mut("/spec/containers/0/env").and_then(Value::as_array_mut).unwrap();
        variables.sort_by_key(|variable| variable["name"].to_string());
    }
    object
}

/// An empty list of namespaces is the default, and an empty section is none.
fn without_defaults(config: Value) -> Value {
    let Value::Object(mut sections) = config else { return config };
    if sections.get("watch") == Some(&json!({"namespaces": []})) {
        sections.remove("watch");
    }
    Value::Object(sections)
}

/// Objects by kind, namespace and name.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    // helm makes no namespace: it is --create-namespace that does.
    for object in objects.into_iter().filter(|object| object["kind"] != json!("Namespace")) {
        let object = comparable(object);
        let place = object["metadata"]["namespace"].as_str().unwrap_or("the cluster");
        let name = format!("{} {} of {place}", object["kind"].as_str().unwrap(), object["metadata"]["name"]);
        assert!(found.insert(name.clone(), object).is_none(), "two of {name}");
    }
    found
}

/// What the two give differently.
fn differences(kustomize: Vec<Value>, helm: Vec<Value>) -> Vec<String> {
    let (trees, chart) = (by_name(kustomize), by_name(helm));
    let names: BTreeSet<&String> = trees.keys().chain(chart.keys()).collect();
    let differ = names.into_iter().filter_map(|name| match (trees.get(name), chart.get(name)) {
        (Some(_), None) => Some(format!("{name} is not in the chart")),
        (None, Some(_)) => Some(format!("{name} is in the chart alone")),
        (tree, chart) if tree != chart => {
            Some(format!("{name}:\n{:#}\n  and in the chart\n{:#}", tree.unwrap(), chart.unwrap()))
        }
        _ => None,
    });
    differ.collect()
}

#[test]
fn the_chart_and_the_trees_give_the_same_objects() {
    let mut found = Vec::new();
    for Rendered { name, by_kustomize, by_helm } in RENDERED.iter() {
        let differ = differences(by_kustomize.clone(), by_helm.clone());
        found.extend(differ.into_iter().map(|one| format!("{name}: {one}")));
    }
    none("the chart and kustomize differ", &found);
}

/// The comparison itself: it sees a value, a missing object and one too many.
#[test]
fn a_difference_is_seen() {
    let base = || RENDERED[0].by_kustomize.clone();
    let chart = |values: Value| helm(("allclear", "allclear"), &values).unwrap();
    assert_eq!(differences(base(), chart(json!({}))), Vec::<String>::new());
    let seen = |values: Value| differences(base(), chart(values)).join("\n");
    assert!(seen(json!({"dryRun": true})).starts_with("Deployment \"allclear\" of allclear:"));
    assert!(seen(json!({"networkPolicy": {"enabled": false}})).contains("is not in the chart"));
    assert!(seen(json!({"approvers": {"repos": true}})).contains("is in the chart alone"));
    assert!(seen(json!({"config": "[log]\nlevel = \"debug\""})).contains("debug"));
    assert!(seen(json!({"image": {"tag": "other"}})).contains("allclear:other"));
    assert!(seen(json!({"resources": {"limits": {"memory": "1Gi"}}})).contains("1Gi"));
}

/// An overlay of one's own, in a namespace of one's own: the rights go to the account there.
#[test]
fn an_overlay_moves_the_account_and_its_rights_together() {
    for folder in ["base", "overlays/namespaced"] {
        let objects = kustomize(Some("platform"), &[folder], &[]);
        let subjects: Vec<&Value> =
            objects.iter().filter_map(|object| object["subjects"].as_array()).flatten().collect();
        assert!(subjects.len() >= 2, "{folder}");
        assert!(subjects.iter().all(|subject| subject["namespace"] == "platform"), "{folder}: {subjects:?}");
        let account = objects.iter().find(|object| object["kind"] == "ServiceAccount").unwrap();
        assert_eq!(account["metadata"]["namespace"], "platform", "{folder}");
    }
}

/// What a person finds below deploy/ and could name in an overlay is tried above.
#[test]
fn every_tree_and_component_is_tried() {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for Setting { resources, components, .. } in all() {
        named.extend(resources.iter().chain(components).map(|folder| (*folder).to_owned()));
    }
    let mut there = BTreeSet::from(["base".to_owned(), "crds".to_owned()]);
    for parent in ["components", "overlays"] {
        for entry in std::fs::read_dir(top().join("deploy").join(parent)).unwrap() {
            there.insert(format!("{parent}/{}", entry.unwrap().file_name().to_string_lossy()));
        }
    }
    assert_eq!(named, there);
}

/// The policies name our account, wherever it is.
#[test]
fn the_policies_of_the_chart_are_those_beside_the_trees() {
    let values = json!({"policies": {"approvals": true, "manual": true}, "serviceAccount": {"name": "edge"}});
    let rendered = helm(("other", "platform"), &values).unwrap();
    let account =
        |text: String| text.replace("system:serviceaccount:allclear:allclear", "system:serviceaccount:platform:edge");
    let files = ["approvals", "manual"].map(|name| account(text(&format!("deploy/policies/{name}.yaml"))));
    assert!(files[0].contains("system:serviceaccount:platform:edge"));
    for object in files.iter().flat_map(|file| documents(file)) {
        assert!(rendered.contains(&object), "{object:#}");
    }
}
