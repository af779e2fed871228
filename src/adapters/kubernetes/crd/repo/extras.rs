//! Kubernetes' own parts of a Repo's pods, checked and brought into one form: a JSON object with sorted keys and nothing that is
//! empty, so that two specs that mean the same give the same text.
//!
//! Not for what the API server checks itself when a Job is made: the shapes of variables, resources and tolerations are its own.

use std::collections::BTreeSet;

use kernel::text::is_hidden;
use serde_json::{Map, Value, json};

use super::super::checks::{InvalidSpec, at_most, invalid, object_name};
use super::raw_spec::{Mount, RunnerSpec};

/// Entries of one list. The CRD says the same.
const ENTRIES_MAX: usize = 50;

/// All of it, as text: what a Repo may make each of its Jobs larger by.
const EXTRAS_BYTES_MAX: usize = 16 * 1024;

/// Where the repository is in each container; the template mounts it.
const WORKSPACE: &str = "workspace";

/// The extras of a runner; empty for none.
pub fn extras(raw: &RunnerSpec) -> Result<String, InvalidSpec> {
    let RunnerSpec { env, env_from, mounts, node_selector, tolerations, image_pull_secrets, .. } = raw;
    let mut parts = Map::new();
    let mut put = |name: &str, count: usize, value: Value| {
        at_most(ENTRIES_MAX, count, &format!("runner.{name}"))?;
        if count > 0 {
            parts.insert(name.to_owned(), value);
        }
        Ok(())
    };
    put("env", env.len(), objects(env, "env")?)?;
    put("envFrom", env_from.len(), objects(env_from, "envFrom")?)?;
    put("tolerations", tolerations.len(), objects(tolerations, "tolerations")?)?;
    put("nodeSelector", node_selector.len(), json!(node_selector))?;
    put("mounts", mounts.len(), mounted(mounts)?)?;
    for secret in image_pull_secrets {
        object_name(&secret.name, "runner.imagePullSecrets")?;
    }
    let names = image_pull_secrets.iter().map(|secret| json!({"name": secret.name}));
    put("imagePullSecrets", image_pull_secrets.len(), names.collect())?;
    for (name, resources) in [("resources", &raw.resources), ("stepResources", &raw.step_resources)] {
        match resources {
            None => {}
            Some(Value::Object(fields)) => put(name, fields.len(), Value::Object(fields.clone()))?,
            Some(_) => return invalid(format!("runner.{name} is no object")),
        }
    }
    if env.iter().any(|one| one.get("name").and_then(Value::as_str).is_none_or(str::is_empty)) {
        return invalid("a variable in runner.env has no name");
    }
    if parts.is_empty() {
        return Ok(String::new());
    }
    let mut whole = Value::Object(parts);
    whole.sort_all_objects();
    let text = whole.to_string();
    if text.len() > EXTRAS_BYTES_MAX {
        return invalid(format!("what runner adds to the pod has {} bytes, {EXTRAS_BYTES_MAX} at most", text.len()));
    }
    Ok(text)
}

fn objects(entries: &[Value], what: &str) -> Result<Value, InvalidSpec> {
    if entries.iter().all(Value::is_object) {
        Ok(Value::Array(entries.to_vec()))
    } else {
        invalid(format!("an entry of runner.{what} is no object"))
    }
}

fn mounted(mounts: &[Mount]) -> Result<Value, InvalidSpec> {
    let mut places = BTreeSet::new();
    for mount in mounts {
        mount_path(&mount.mount_path)?;
        if !places.insert(mount.mount_path.as_str()) {
            return invalid(format!("two of runner.mounts are at {}", mount.mount_path));
        }
        let sources = [&mount.secret, &mount.config_map, &mount.persistent_volume_claim, &mount.empty_dir];
        let mut named = sources.into_iter().flatten();
        if !matches!((named.next(), named.next()), (Some(Value::Object(_)), None)) {
            return invalid(format!(
                "runner.mounts: {} is not exactly one of secret, configMap, persistentVolumeClaim and emptyDir",
                mount.mount_path
            ));
        }
        let sub_path = mount.sub_path.as_deref().unwrap_or_default();
        if sub_path.starts_with('/') || sub_path.split('/').any(|part| part == "..") {
            return invalid(format!("runner.mounts: the subPath of {} leads out of the volume", mount.mount_path));
        }
    }
    serde_json::to_value(mounts).map_err(|error| InvalidSpec(format!("runner.mounts: {error}")))
}

/// A path that is what it looks like, and not one of ours.
fn mount_path(path: &str) -> Result<(), InvalidSpec> {
    let Some(relative) = path.strip_prefix('/') else {
        return invalid(format!("runner.mounts: the mountPath {path:?} does not begin with /"));
    };
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    if !relative.split('/').all(is_part) || path.contains(|character| is_hidden(character) || character == ':') {
        return invalid(format!("runner.mounts: the mountPath {path:?} has an empty part, a ., a .. or a : in it"));
    }
    if relative.split('/').next() == Some(WORKSPACE) || relative == "tmp" {
        return invalid(format!("runner.mounts: {path} is where allclear mounts something itself; use another path"));
    }
    Ok(())
}
