//! The four ways to change a part of an object: JSON merge patch (RFC 7396), JSON patch (RFC 6902), strategic merge and
//! server-side apply.
//!
//! Strategic merge and apply are naive: lists of the usual workload fields merge by their key, `$patch: delete` and
//! `$patch: replace` are known, other directives are not; apply does not track field ownership, so it never conflicts
//! and never removes a field that its manager stops mentioning. Nothing of ours depends on those.

use serde_json::{Map, Value};

use super::failure::Failure;

/// Lists that merge by a key instead of being replaced, with that key: the `patchMergeKey` of the core types.
const MERGE_KEYS: [(&str, &str); 12] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("imagePullSecrets", "name"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("ownerReferences", "uid"),
    ("conditions", "type"),
    ("ports", "port"),
    ("loadBalancerIngress", "ip"),
];

/// Operations a JSON patch may have: the limit of kube-apiserver (`maxJSONPatchOperations`).
const JSON_PATCH_OPERATIONS_MAX: usize = 10_000;

/// JSON merge patch: objects merge, null removes, anything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let Some(fields) = object(target) else { return };
    for (name, change) in patch {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Strategic merge patch, and the merge of server-side apply.
pub fn merge_strategically(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        *target = Value::Object(
            patch.iter().filter(|(name, _)| *name != "$patch").map(|(n, v)| (n.clone(), v.clone())).collect(),
        );
        return;
    }
    let Some(fields) = object(target) else { return };
    for (name, change) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        match (change, merge_key(name, change)) {
            (Value::Null, _) => {
                fields.remove(name);
            }
            (Value::Array(items), Some(key)) => {
                merge_list(fields.entry(name.clone()).or_insert(Value::Null), items, key);
            }
            _ => merge_strategically(fields.entry(name.clone()).or_insert(Value::Null), change),
        }
    }
}

/// Applies a JSON patch.
///
/// # Errors
/// 400 for a malformed patch, 422 for an operation that does not apply to the object.
pub fn apply_operations(target: &mut Value, patch: &Value) -> Result<(), Failure> {
    let malformed = || Failure::bad_request("error decoding patch: expected a list of operations");
    let operations = patch.as_array().ok_or_else(malformed)?;
    if operations.len() > JSON_PATCH_OPERATIONS_MAX {
        return Err(Failure::bad_request("The allowed maximum operations in a JSON patch is 10000"));
    }
    for operation in operations {
        let field = |name: &str| operation.get(name).and_then(Value::as_str);
        let (verb, path) = (field("op").ok_or_else(malformed)?, field("path").ok_or_else(malformed)?);
        let value = || operation.get("value").cloned().ok_or_else(malformed);
        let source = || field("from").ok_or_else(malformed);
        let applied = match verb {
            "add" => insert(target, path, value()?),
            "remove" => take(target, path).map(drop),
            "replace" => take(target, path).and_then(|_| insert(target, path, operation.get("value")?.clone())),
            "test" => (target.pointer(path) == Some(&value()?)).then_some(()),
            "copy" => target.pointer(source()?).cloned().and_then(|copied| insert(target, path, copied)),
            "move" => take(target, source()?).and_then(|moved| insert(target, path, moved)),
            _ => return Err(malformed()),
        };
        applied.ok_or_else(|| unprocessable(verb, path))?;
    }
    Ok(())
}

fn unprocessable(verb: &str, path: &str) -> Failure {
    Failure {
        code: 422,
        reason: "Invalid",
        message: format!(
            "the server rejected our request due to an error in our request: {verb} does not apply at {path}"
        ),
        details: Value::Null,
        resume: None,
    }
}

/// The fields of an object; what is not one becomes an empty one.
fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// The key by which the list `name` merges. Ports of containers and of Services have the same name and different keys.
fn merge_key(name: &str, change: &Value) -> Option<&'static str> {
    let first = change.as_array()?.first()?;
    if name == "ports" && first.get("containerPort").is_some() {
        return Some("containerPort");
    }
    let (_, key) = MERGE_KEYS.iter().find(|(list, _)| *list == name)?;
    first.get(key).is_some().then_some(*key)
}

fn merge_list(target: &mut Value, items: &[Value], key: &str) {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(list) = target else { return };
    for item in items {
        let place = list.iter().position(|present| present.get(key) == item.get(key));
        let deletes = item.get("$patch").and_then(Value::as_str) == Some("delete");
        match place.map(|place| (place, list.get_mut(place))) {
            Some((place, _)) if deletes => {
                list.remove(place);
            }
            Some((_, Some(present))) => merge_strategically(present, item),
            _ if deletes => {}
            _ => list.push(item.clone()),
        }
    }
}

/// Splits a JSON pointer into the pointer of the parent and the last, unescaped token.
fn split(path: &str) -> Option<(&str, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn insert(target: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *target = value;
        return Some(());
    }
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => {
            let place: usize = last.parse().ok().filter(|place| *place <= list.len())?;
            list.insert(place, value);
        }
        _ => return None,
    }
    Some(())
}

fn take(target: &mut Value, path: &str) -> Option<Value> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent)? {
        Value::Object(fields) => fields.remove(&last),
        Value::Array(list) => {
            let place: usize = last.parse().ok().filter(|place| *place < list.len())?;
            Some(list.remove(place))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_removes_with_null_and_replaces_lists() {
        let mut target = json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "x": 1});
        merge(&mut target, &json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "l": [3], "x": null}));
        assert_eq!(target, json!({"a": {"c": 2, "d": {"f": 3}}, "l": [3]}));
    }

    #[test]
    fn a_strategic_patch_merges_containers_by_name() {
        let mut target =
            json!({"containers": [{"name": "web", "image": "w:1", "args": ["a"]}, {"name": "log", "image": "l:1"}]});
        let patch = json!({"$setElementOrder/containers": [], "containers": [
            {"name": "web", "image": "w:2"}, {"name": "log", "$patch": "delete"}, {"name": "new", "image": "n:1"}]});
        merge_strategically(&mut target, &patch);
        assert_eq!(
            target,
            json!({"containers": [{"name": "web", "image": "w:2", "args": ["a"]}, {"name": "new", "image": "n:1"}]})
        );
    }

    #[test]
    fn json_patch_operations_apply_in_order_or_not_at_all() {
        let mut target = json!({"a": [1, 3], "m": {"x/y": 1}});
        let patch = json!([
            {"op": "test", "path": "/a/0", "value": 1},
            {"op": "add", "path": "/a/1", "value": 2},
            {"op": "replace", "path": "/m/x~1y", "value": 9},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "remove", "path": "/a/0"},
            {"op": "move", "from": "/b/0", "path": "/c"},
        ]);
        apply_operations(&mut target, &patch).unwrap();
        assert_eq!(target, json!({"a": [2, 3], "b": [2, 3], "c": 1, "m": {"x/y": 9}}));
        let failure = apply_operations(&mut target, &json!([{"op": "remove", "path": "/nothing"}])).unwrap_err();
        assert_eq!(failure.code, 422);
        assert_eq!(apply_operations(&mut target, &json!({"op": "add"})).unwrap_err().code, 400);
    }
}
