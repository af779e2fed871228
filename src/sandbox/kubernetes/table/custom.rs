//! The columns that a CustomResourceDefinition adds (`additionalPrinterColumns`), as the API server makes cells of them
//! (<https://github.com/kubernetes/kubernetes/blob/v1.33.0/staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go>).
//!
//! Of JSONPath it knows fields and a filter by one field's text, which is all that our definitions use.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{name, since};
use super::text;

pub fn header(column: &Value) -> Value {
    let path = text(column, "/jsonPath");
    let said = match text(column, "/description") {
        "" => format!("Custom resource definition column (in JSONPath format): {path}"),
        description => description.to_owned(),
    };
    json!({
        "name": column["name"], "type": column["type"], "format": text(column, "/format"),
        "priority": column["priority"].as_i64().unwrap_or(0), "description": said,
    })
}

/// The cells of one object: its name, and one for each column. A column that finds nothing has no cell's text.
pub fn cells(columns: &[Value], object: &Value, now: Timestamp) -> Vec<Value> {
    let cell = |column: &Value| {
        let found = at(object, text(column, "/jsonPath")).filter(|found| !found.is_null());
        match (text(column, "/type"), found) {
            (_, None) => Value::Null,
            ("date", Some(time)) => json!(since(time.as_str().unwrap_or_default(), now)),
            ("string", Some(Value::String(words))) => json!(words),
            ("string", Some(other)) => json!(other.to_string()),
            (_, Some(other)) => other.clone(),
        }
    };
    [vec![name(object)], columns.iter().map(cell).collect()].concat()
}

/// What a path leads to: `.spec.url`, `.status.conditions[?(@.type=="Ready")].status`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut found, mut rest) = (object, path);
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix("[?(@.") {
            let (condition, after) = filter.split_once(")]")?;
            let (field, wanted) = condition.split_once("==")?;
            let wanted = wanted.trim_matches('"');
            found = found.as_array()?.iter().find(|one| one.get(field).and_then(Value::as_str) == Some(wanted))?;
            rest = after;
        } else {
            let from = rest.strip_prefix('.')?;
            let end = from.find(['.', '[']).unwrap_or(from.len());
            let (field, after) = from.split_at_checked(end)?;
            found = found.get(field)?;
            rest = after;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_field_or_to_nothing() {
        let object = json!({"spec": {"url": "x"}, "status": {"conditions": [
            {"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"},
        ]}});
        assert_eq!(at(&object, ".spec.url"), Some(&json!("x")));
        assert_eq!(at(&object, ".status.conditions[?(@.type==\"Ready\")].status"), Some(&json!("True")));
        for nothing in [".spec.ulr", ".status.conditions[?(@.type==\"Gone\")].status", ".spec.url.deeper", "spec"] {
            assert_eq!(at(&object, nothing), None, "{nothing}");
        }
    }
}
