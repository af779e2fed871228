//! The CustomResourceDefinitions of allclear, from the files of `deploy/crds`: which fields an object may have.
//!
//! Kinds of others have no definition here: their objects keep every field. Not for the rules of values (required fields, enumerations,
//! CEL): those are tried against a real API server.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::failure::Failure;
use super::resource::Kind;

/// Where each definition is written.
const FILES: [(Kind, &str); 5] = [
    (Kind::History, include_str!("../../../deploy/crds/histories.yaml")),
    (Kind::Pipeline, include_str!("../../../deploy/crds/pipelines.yaml")),
    (Kind::WeavePipeline, include_str!("../../../deploy/crds/pipelines-weave.yaml")),
    (Kind::PromotionFreeze, include_str!("../../../deploy/crds/promotionfreezes.yaml")),
    (Kind::Repo, include_str!("../../../deploy/crds/repos.yaml")),
];

static SCHEMAS: OnceLock<BTreeMap<Kind, Value>> = OnceLock::new();

/// The `openAPIV3Schema` of a kind; `None`: it is built in, or it belongs to others.
fn schema(kind: Kind) -> Option<&'static Value> {
    let read = |text| {
        let mut document: Value = serde_saphyr::from_str(text).ok()?;
        Some(document.pointer_mut("/spec/versions/0/schema/openAPIV3Schema")?.take())
    };
    let all = || FILES.into_iter().filter_map(|(kind, text)| Some((kind, read(text)?))).collect();
    SCHEMAS.get_or_init(all).get(&kind)
}

/// Refuses a field that the definition of the kind does not know, as a server does that is asked for `fieldValidation=Strict`.
///
/// # Errors
/// 400, with the first of them.
pub fn check_strictly(kind: Kind, object: &Value) -> Result<(), Failure> {
    let unknown = schema(kind).and_then(|schema| unknown(schema, object, ""));
    let Some(field) = unknown else { return Ok(()) };
    let row = kind.describe();
    Err(Failure::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: unknown field \"{field}\"",
        row.kind, row.version, row.kind
    )))
}

/// The path of the first field that a schema does not know. A field that is null is on its way out.
fn unknown(schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        return values.iter().enumerate().find_map(|(index, value)| unknown(items, value, &format!("{at}[{index}]")));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return None;
    }
    let named = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    if named.is_none() && others.is_none() {
        return None;
    }
    let fields = value.as_object()?.iter().filter(|(_, value)| !value.is_null());
    fields.into_iter().find_map(|(name, value)| {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match named.and_then(|named| named.get(name)).or(others) {
            Some(schema) => unknown(schema, value, &at),
            None => Some(at),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_kinds_of_ours_have_a_schema_and_no_other_kind_has() {
        for kind in Kind::all() {
            let specified = matches!(kind, Kind::Pipeline | Kind::WeavePipeline | Kind::PromotionFreeze | Kind::Repo);
            let found = schema(kind);
            assert_eq!(found.is_some(), specified || kind == Kind::History, "{kind:?}");
            assert!(found.is_none_or(|found| found["properties"]["spec"].is_object() == specified));
        }
    }

    #[test]
    fn a_misspelt_field_is_found_where_it_is() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {
                "url": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
                "steps": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            }},
        }});
        let of = |object: Value| unknown(&schema, &object, "");
        let right = json!({
            "metadata": {"any": 1},
            "spec": {"url": "x", "labels": {"a": "b"}, "free": {"x": {}}, "steps": [{"name": "a"}], "ulr": null},
        });
        assert_eq!(of(right), None);
        assert_eq!(of(json!({"spec": {"ulr": "x"}})), Some("spec.ulr".to_owned()));
        assert_eq!(of(json!({"spec": {"steps": [{"name": "a"}, {"nam": "b"}]}})), Some("spec.steps[1].nam".to_owned()));
        assert_eq!(of(json!({"specs": {}})), Some("specs".to_owned()));
    }
}
