//! One stored object: its bytes, serialised once, and the few fields the store itself looks at.
//!
//! A list or a watch copies these bytes and never builds the object again: that is what makes 10,000 Deployments cheap.
//! A caller that needs the content parses it ([`Object::value`]). Not for rules: what may change is decided in `write`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::resource::Kind;

/// Where an object is: unique within its kind, ordered as lists are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// A key; `namespace` is empty for kinds without namespaces.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

/// One version of one object. Immutable: a write makes a new one.
#[derive(Debug)]
pub struct Object {
    pub kind: Kind,
    pub key: Key,
    /// The resourceVersion of this version.
    pub version: u64,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// The UID of the owner that is the controller, if there is one.
    pub owner: Option<String>,
    /// The JSON text, `kind` and `apiVersion` first.
    body: Bytes,
    /// The offset in `body` behind `{"kind":…,"apiVersion":…,`.
    head: usize,
}

impl Object {
    /// Serialises `value`, which must have its metadata, as version `version`.
    pub fn new(kind: Kind, version: u64, mut value: Value) -> Object {
        value["metadata"]["resourceVersion"] = json!(version.to_string());
        let key = Key::new(text(&value, "/metadata/namespace"), text(&value, "/metadata/name"));
        let (body, head) = serialise(kind, &value);
        let owners = value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let owner = owners.into_iter().flatten().find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        Object {
            kind,
            key,
            version,
            uid: text(&value, "/metadata/uid").to_owned(),
            labels: labels(&value),
            owner: owner.map(|owner| text(owner, "/uid").to_owned()),
            body,
            head,
        }
    }

    /// The whole object as JSON text.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Appends the object as an item of a list: a real server leaves `kind` and `apiVersion` out of the items of its
    /// own kinds, and so must a stand-in, or clients that rely on them are never found out.
    pub fn write_item(&self, list: &mut Vec<u8>) {
        if self.kind.describe().custom {
            list.extend_from_slice(&self.body);
        } else {
            list.push(b'{');
            list.extend_from_slice(self.body.get(self.head..).unwrap_or_default());
        }
    }

    pub fn value(&self) -> Value {
        // The bytes were serialised from a `Value`; null would stand for a fault of serde_json.
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The string at a JSON pointer; empty where there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer.
pub fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The list at a JSON pointer; empty where there is none.
pub fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a condition in the status is true.
pub fn holds(object: &Value, condition: &str) -> bool {
    let conditions = items(object, "/status/conditions");
    conditions.iter().any(|one| text(one, "/type") == condition && text(one, "/status") == "True")
}

/// Whether a deletion has begun.
pub fn is_ending(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The labels of an object or a pod template.
pub fn labels(value: &Value) -> BTreeMap<String, String> {
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn serialise(kind: Kind, value: &Value) -> (Bytes, usize) {
    let row = kind.describe();
    let mut body = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", row.kind, row.api_version()).into_bytes();
    let head = body.len();
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    let mut first = true;
    for (name, field) in fields.iter().filter(|(name, _)| *name != "kind" && *name != "apiVersion") {
        if !first {
            body.push(b',');
        }
        first = false;
        body.extend_from_slice(Value::String(name.clone()).to_string().as_bytes());
        body.push(b':');
        body.extend_from_slice(field.to_string().as_bytes());
    }
    body.push(b'}');
    (Bytes::from(body), head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_a_list_lacks_the_type_unless_the_kind_is_custom() {
        let value =
            json!({"apiVersion": "x", "data": {"a": "b"}, "kind": "y", "metadata": {"name": "n", "namespace": "ns"}});
        let object = Object::new(Kind::ConfigMap, 7, value.clone());
        assert_eq!(object.value()["apiVersion"], "v1");
        let mut item = Vec::new();
        object.write_item(&mut item);
        let item: Value = serde_json::from_slice(&item).unwrap();
        assert_eq!(
            item,
            json!({"data": {"a": "b"}, "metadata": {"name": "n", "namespace": "ns", "resourceVersion": "7"}})
        );
        let mut item = Vec::new();
        Object::new(Kind::HttpRoute, 7, value).write_item(&mut item);
        let item: Value = serde_json::from_slice(&item).unwrap();
        assert_eq!(item["kind"], "HTTPRoute");
    }
}
