//! The program understands what an installation tells it: the file and the variables of the pod, read as the program reads them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use allclear::config::{Config, Inputs, load};
use serde_json::{Value, json};

use crate::none;
use crate::render::{helm, text};
use crate::settings::{RENDERED, Rendered};

/// Loads what the pod among these objects would load. The Secrets are there, with the keys that manifests name.
fn loaded(objects: &[Value]) -> Result<Config, String> {
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == json!(kind)).unwrap();
    let deployment = of_kind("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let mut environment = BTreeMap::from(
        [("REDIS_HOST", "redis.eu-1.internal"), ("REMOTE_REDIS_HOSTS", "redis.eu-2.internal,redis.us-1.internal")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    for variable in pod["containers"][0]["env"].as_array().unwrap() {
        let field = variable.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str);
        let value = match field {
            Some("metadata.namespace") => deployment["metadata"]["namespace"].as_str(),
            Some("metadata.name") => Some("allclear-7c9-x4"),
            _ => variable["value"].as_str(),
        };
        environment.insert(variable["name"].as_str().unwrap().to_owned(), value.unwrap().to_owned());
    }
    let sources = pod.pointer("/volumes/0/projected/sources").and_then(Value::as_array).unwrap();
    let map = sources[0]["configMap"]["name"].as_str().unwrap();
    let map = objects.iter().find(|object| object["metadata"]["name"] == json!(map)).expect("the ConfigMap is there");
    let config = map["data"]["config.toml"].as_str().unwrap().to_owned();
    let read = |path: &Path| match path.to_str().unwrap() {
        "/etc/allclear/config.toml" => Ok(config.clone()),
        "/etc/allclear/webhooks.json" => Ok(text("configs/webhooks.json")),
        "/etc/allclear/redis-ca.pem" => Ok("-----BEGIN CERTIFICATE-----".to_owned()),
        "/etc/allclear/group-key" | "/etc/allclear/hook-keys" | "/etc/allclear/fresh-token" => Ok("0".repeat(64)),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    let inputs = Inputs {
        file: None,
        environment,
        flags: BTreeMap::new(),
        service_account_namespace: deployment["metadata"]["namespace"].as_str().map(str::to_owned),
        read: &read,
    };
    load(&inputs).map(|loaded| loaded.config).map_err(|invalid| invalid.to_string())
}

#[test]
fn the_program_takes_what_each_installation_tells_it() {
    let mut refused = Vec::new();
    for Rendered { name, by_kustomize, by_helm } in RENDERED.iter() {
        for (tool, objects) in [("kustomize", by_kustomize), ("helm", by_helm)] {
            let wrong = loaded(objects).err().map(|error| format!("{name} by {tool}: {error}"));
            refused.extend(wrong);
        }
    }
    none("the program refuses its configuration", &refused);
}

#[test]
fn a_switch_of_the_chart_reaches_the_program() {
    let config = |values: Value| loaded(&helm(("allclear", "allclear"), &values).unwrap()).unwrap();
    let group =
        config(json!({"group": {"enabled": true, "member": "eu-1", "members": ["eu-1", "eu-2"], "redisCa": true}}))
            .group;
    assert_eq!((group.member.as_deref(), group.members.len(), group.keys.len()), (Some("eu-1"), 2, 1));
    assert!(!group.unsigned);
    let unsigned = config(json!({"group": {"enabled": true, "signed": false}})).group;
    assert!(unsigned.unsigned && unsigned.keys.is_empty());
    let watched = config(json!({"rbac": {"scope": "namespaces"}, "watch": {"namespaces": ["shop", "blog"]}})).watch;
    assert!(format!("{watched:?}").contains("shop") && format!("{watched:?}").contains("blog"), "{watched:?}");
    let own = config(json!({"rbac": {"scope": "namespaces"}})).watch;
    assert!(format!("{own:?}").contains("allclear"), "{own:?}");
    let said = format!(
        "{:?}",
        config(json!({
            "webhooks": {"enabled": true}, "hooks": {"enabled": true, "keys": true}, "fresh": {"enabled": true},
            "pipelines": {"enabled": true, "weave": true}, "proxy": {"webhooks": "http://proxy:3128"},
            "config": "[rollout]\ntimeout = \"21m\"",
        }))
    );
    for words in ["8082", "pipelines.weave.works", "3128", "1260s"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// A wrong key in `config` is the program's to name, with its line.
#[test]
fn a_typo_in_the_file_is_refused_by_the_program() {
    let objects = helm(("allclear", "allclear"), &json!({"config": "[rollout]\ntimeuot = \"21m\""})).unwrap();
    let refused = loaded(&objects).unwrap_err();
    assert!(refused.contains("timeuot"), "{refused}");
}
