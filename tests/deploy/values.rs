//! Values: a typo is refused, and each one does something.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::none;
use crate::render::{documents, helm, text};

/// Where people write what is Kubernetes' own, or names of their own.
const FREE: [&str; 24] = [
    "affinity.nodeAffinity",
    "affinity.podAffinity",
    "affinity.podAntiAffinity",
    "commonLabels",
    "extraEnv[].valueFrom",
    "extraEnvFrom[].configMapRef",
    "extraEnvFrom[].secretRef",
    "extraVolumeMounts[]",
    "extraVolumes[]",
    "global",
    "metrics.dashboard.labels",
    "metrics.rules.labels",
    "metrics.serviceMonitor.labels",
    "networkPolicy.egress.extra[]",
    "nodeSelector",
    "podAnnotations",
    "podLabels",
    "resources.claims[]",
    "resources.limits",
    "resources.requests",
    "serviceAccount.annotations",
    "tolerations[]",
    "topologySpreadConstraints[]",
    "",
];

fn schema() -> Value {
    serde_json::from_str(&text("deploy/chart/allclear/values.schema.json")).unwrap()
}

fn defaults() -> Value {
    documents(&text("deploy/chart/allclear/values.yaml")).remove(0)
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Each object of the schema that takes keys it does not name.
fn open(path: &str, schema: &Value, found: &mut BTreeSet<String>) {
    if schema["type"] == json!("object") && schema["additionalProperties"] != json!(false) {
        found.insert(path.to_owned());
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        open(&below(path, key), inner, found);
    }
    if schema["items"].is_object() {
        open(&format!("{path}[]"), &schema["items"], found);
    }
}

#[test]
fn the_schema_is_closed_wherever_the_keys_are_ours() {
    let mut found = BTreeSet::new();
    open("", &schema(), &mut found);
    let mut free: BTreeSet<String> = FREE.iter().map(|path| (*path).to_owned()).collect();
    assert!(free.remove("") && !found.contains(""), "the top is closed");
    assert_eq!(found, free);
}

/// What the schema names and what values.yaml shows, with a comment above each.
#[test]
fn the_schema_and_the_values_have_the_same_keys_each_with_a_comment() {
    fn compare(path: &str, schema: &Value, values: &Value, wrong: &mut Vec<String>) {
        // What has no default need not be shown: lists, maps, and parts of Kubernetes' own objects.
        let shown = |path: &str| !["global", "affinity", "resources"].iter().any(|own| path.starts_with(own));
        let keys = |value: &Value| -> BTreeSet<String> {
            value.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
        };
        let named = keys(&schema["properties"]);
        for key in named.union(&keys(values)).filter(|key| shown(&below(path, key))) {
            let place = below(path, key);
            match (&schema["properties"][key], &values[key]) {
                (Value::Null, _) if schema["additionalProperties"].is_object() => {}
                (Value::Null, _) => wrong.push(format!("{place} is not in the schema")),
                (_, Value::Null) => wrong.push(format!("{place} is not in values.yaml")),
                (inner, value) => compare(&place, inner, value, wrong),
            }
        }
    }
    let mut wrong = Vec::new();
    compare("", &schema(), &defaults(), &mut wrong);
    let values = text("deploy/chart/allclear/values.yaml");
    let lines: Vec<&str> = values.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(": ") && !line.starts_with('#')) {
        let within =
            line.starts_with("cpu: ") || line.starts_with("memory: ") || line.starts_with("grafana_dashboard: ");
        if !within && !lines[..at].last().is_some_and(|above| above.starts_with("# ")) {
            wrong.push(format!("values.yaml:{}: {line} has no comment", at + 1));
        }
    }
    none("values.yaml and its schema differ", &wrong);
}

#[test]
fn a_typo_is_refused_by_its_name() {
    for (values, words) in [
        (json!({"ha": {"enabld": true}}), "enabld"),
        (json!({"dryrun": true}), "dryrun"),
        (json!({"networkPolicy": {"egress": {"enable": true}}}), "enable"),
        (json!({"pipelines": {"secrets": [{"namespace": "shop", "name": ["a"]}]}}), "name"),
        (json!({"rbac": {"scope": "namespaced"}}), "scope"),
        (json!({"dryRun": "yes"}), "dryRun"),
        (json!({"image": {"digest": "sha256:abc"}}), "digest"),
        (json!({"watch": {"namespaces": "shop"}}), "namespaces"),
        (json!({"ha": {"replicas": 1}}), "replicas"),
        // What would lead nowhere.
        (json!({"pipelines": {"weave": true}}), "pipelines"),
        (json!({"crds": {"weave": true}}), "install"),
        (json!({"repos": {"namespaces": [{"namespace": "platform"}]}}), "repos"),
        (json!({"rbac": {"scope": "namespaces"}, "group": {"enabled": true}}), "member"),
    ] {
        let refused = helm(("a", "b"), &values).expect_err(&values.to_string());
        assert!(refused.contains(words), "{values}: {refused}");
    }
}

/// What a person may set, each with a value that is not its default.
const CHANGES: &str = r#"{
    "/nameOverride": "other", "/fullnameOverride": "other", "/commonLabels": {"a": "b"},
    "/image/repository": "registry.example.com/other", "/image/tag": "2", "/image/pullPolicy": "Always",
    "/image/digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    "/imagePullSecrets": ["a"], "/dryRun": true, "/watch/namespaces": ["shop"], "/config": "[log]\nlevel = 'debug'",
    "/serviceAccount/create": false, "/serviceAccount/name": "other", "/serviceAccount/annotations": {"a": "b"},
    "/rbac/create": false, "/rbac/scope": "namespaces",
    "/secrets/environment": "other", "/secrets/webhooks": "other", "/secrets/group": "other",
    "/webhooks/enabled": true,
    "/group/enabled": false, "/group/member": "us-1", "/group/members": ["eu-1", "us-1"], "/group/signed": false,
    "/group/redisCa": true, "/ha/enabled": false, "/ha/replicas": 3,
    "/pipelines/enabled": false, "/pipelines/weave": true, "/pipelines/gitopsClusters": true, "/pipelines/apps": true,
    "/pipelines/secrets": [{"namespace": "shop", "names": ["a"]}],
    "/repos/enabled": false, "/repos/namespaces": [{"namespace": "platform"}], "/repos/destroy": true,
    "/hooks/enabled": false, "/hooks/keys": true, "/fresh/enabled": false,
    "/approvers/pipelines": true, "/approvers/repos": true, "/readers/enabled": false,
    "/readers/ledgerGroups": ["developers"], "/policies/approvals": true, "/policies/manual": true,
    "/crds/install": false, "/crds/weave": true,
    "/networkPolicy/enabled": false, "/networkPolicy/metricsFrom": [], "/networkPolicy/freshFrom": ["a"],
    "/networkPolicy/hooksFrom": ["a"], "/networkPolicy/egress/enabled": false,
    "/networkPolicy/egress/httpsPorts": [443], "/networkPolicy/egress/redisPorts": [],
    "/networkPolicy/egress/tracesPorts": [443],
    "/traces/endpoint": "http://b:4318", "/traces/headersSecret": "other",
    "/networkPolicy/egress/podIdentity": false, "/networkPolicy/egress/extra": [{}],
    "/proxy/aws": "http://a:1", "/proxy/noProxy": ".internal", "/proxy/webhooks": "http://a:1",
    "/caBundle/configMap": "other", "/caBundle/key": "a",
    "/metrics/serviceMonitor/enabled": false, "/metrics/serviceMonitor/labels": {"a": "b"},
    "/metrics/serviceMonitor/interval": "1m",
    "/openshift": true, "/resources": {"limits": {"cpu": 1}}, "/podAnnotations": {"a": "b"}, "/podLabels": {"a": "b"},
    "/nodeSelector": {"a": "b"}, "/tolerations": [{"operator": "Exists"}], "/affinity": {"podAffinity": {}},
    "/topologySpreadConstraints": [{"maxSkew": 1}], "/priorityClassName": "high",
    "/extraEnv": [{"name": "a"}], "/extraEnvFrom": [{"prefix": "a"}], "/extraVolumes": [{"name": "a"}],
    "/extraVolumeMounts": [{"name": "a", "mountPath": "/a"}]
}"#;

/// Each value that is not a switch of a file that may be missing (packed.rs has those) changes what is rendered.
#[test]
fn no_value_is_without_effect() {
    let mut all = defaults();
    let on = json!({
        "/ha/enabled": true, "/group/enabled": true, "/group/member": "eu-1", "/group/members": ["eu-1"],
        "/pipelines/enabled": true, "/repos/enabled": true, "/hooks/enabled": true, "/fresh/enabled": true,
        "/readers/enabled": true, "/crds/install": true, "/networkPolicy/egress/enabled": true, "/caBundle/configMap": "bundle",
        "/metrics/serviceMonitor/enabled": true, "/traces/endpoint": "http://a:4318",
    });
    for (place, value) in on.as_object().unwrap() {
        *all.pointer_mut(place).unwrap() = value.clone();
    }
    let rendered = |values: &Value| helm(("allclear", "allclear"), values).unwrap_or_else(|error| panic!("{error}"));
    let before = rendered(&all);
    let mut idle = Vec::new();
    let changes: BTreeMap<String, Value> = serde_json::from_str(CHANGES).unwrap();
    for (place, value) in &changes {
        let mut changed = all.clone();
        *changed.pointer_mut(place).unwrap() = value.clone();
        if rendered(&changed) == before {
            idle.push(place.clone());
        }
    }
    none("a value that does nothing", &idle);
    let mut missing = Vec::new();
    leaves("", &defaults(), &mut missing);
    missing.retain(|place| {
        let by_packed = place.starts_with("/metrics/rules/") || place.starts_with("/metrics/dashboard/");
        !by_packed && !changes.keys().any(|tried| place == tried || place.starts_with(&format!("{tried}/")))
    });
    none("a value that nothing tries", &missing);
}

fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => fields.iter().for_each(|(key, inner)| leaves(&format!("{path}/{key}"), inner, found)),
        None => found.push(path.to_owned()),
    }
}

/// A rule without `from` would let every pod in.
#[test]
fn an_empty_list_of_scrapers_lets_no_pod_in() {
    let values = json!({"networkPolicy": {"metricsFrom": []}});
    let rendered = helm(("allclear", "allclear"), &values).unwrap();
    let policy = rendered.iter().find(|object| object["kind"] == json!("NetworkPolicy")).unwrap();
    assert_eq!((&policy["spec"]["ingress"], &policy["spec"]["policyTypes"]), (&json!([]), &json!(["Ingress"])));
}
