//! Objects as a `Table`, which is what `kubectl get` asks for and prints: columns and cells as kube-apiserver has them
//! (<https://github.com/kubernetes/kubernetes/blob/v1.33.0/pkg/printers/internalversion/printers.go>).
//!
//! Custom resources have the columns of their definition; kinds without columns of their own a name and an age. Not for what `kubectl describe` prints:
//! that reads the objects.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::definition::definition;
use super::object::{number, text};
use super::resource::Kind;

mod cells;
mod custom;

/// A column. Those of priority 1 are for `-o wide`.
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: u8,
}

const fn column(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

const fn count(name: &'static str) -> Column {
    Column { kind: "integer", ..column(name) }
}

const fn wide(name: &'static str) -> Column {
    Column { priority: 1, ..column(name) }
}

const NAME: Column = Column { format: "name", ..column("Name") };
const AGE: Column = column("Age");

/// How one object becomes a row.
type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// The columns of a kind, and how its rows are made.
fn columns(kind: &str) -> (&'static [Column], Row) {
    match kind {
        "Pod" => (POD, cells::pod),
        "Deployment" => (DEPLOYMENT, cells::deployment),
        "ReplicaSet" => (REPLICA_SET, cells::replica_set),
        "Service" => (SERVICE, cells::service),
        "Ingress" => (INGRESS, cells::ingress),
        "Event" => (EVENT, cells::event),
        "Namespace" => (NAMESPACE, cells::namespace),
        "ConfigMap" => (CONFIG_MAP, cells::config_map),
        "Secret" => (SECRET, cells::secret),
        "Job" => (JOB, cells::job),
        _ => (OTHER, |object, now| vec![cells::name(object), cells::age(object, now)]),
    }
}

const POD: &[Column] = &[NAME, column("Ready"), column("Status"), column("Restarts"), AGE, wide("IP"), wide("Node")];
const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready"),
    count("Up-to-date"),
    count("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const REPLICA_SET: &[Column] =
    &[NAME, count("Desired"), count("Current"), count("Ready"), AGE, wide("Containers"), wide("Images")];
const SERVICE: &[Column] =
    &[NAME, column("Type"), column("Cluster-IP"), column("External-IP"), column("Port(s)"), AGE, wide("Selector")];
const INGRESS: &[Column] = &[NAME, column("Class"), column("Hosts"), column("Address"), column("Ports"), AGE];
const EVENT: &[Column] =
    &[column("Last Seen"), column("Type"), column("Reason"), column("Object"), wide("Source"), column("Message")];
const NAMESPACE: &[Column] = &[NAME, column("Status"), AGE];
const CONFIG_MAP: &[Column] = &[NAME, count("Data"), AGE];
const SECRET: &[Column] = &[NAME, column("Type"), count("Data"), AGE];
const JOB: &[Column] = &[NAME, column("Status"), column("Completions"), AGE];
const OTHER: &[Column] = &[NAME, AGE];

/// Whether a client takes a table, and asks for it first.
pub fn is_asked_for(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or_default();
    first.split(';').any(|part| part.trim() == "as=Table") && first.contains("g=meta.k8s.io")
}

/// A list, or one object, as a table. `with`: what each row says of its object (`includeObject`).
pub fn of(document: &Value, with: &str, now: Timestamp) -> Value {
    let kind = text(document, "/kind");
    let items = document.get("items").and_then(Value::as_array);
    let (kind, objects): (&str, Vec<&Value>) = match items {
        Some(items) => (kind.strip_suffix("List").unwrap_or(kind), items.iter().collect()),
        None => (kind, vec![document]),
    };
    let mut table = rows((text(document, "/apiVersion"), kind), &objects, with, now);
    let kept = ["resourceVersion", "continue", "remainingItemCount"];
    let metadata = document.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let metadata: Map<String, Value> = metadata
        .filter(|(name, _)| kept.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    table["metadata"] = Value::Object(metadata);
    table
}

/// One object that a watch tells of, in the same form.
pub fn of_watched(object: &Value, with: &str, now: Timestamp) -> Value {
    rows((text(object, "/apiVersion"), text(object, "/kind")), &[object], with, now)
}

fn rows((version, kind): (&str, &str), objects: &[&Value], with: &str, now: Timestamp) -> Value {
    let (columns, row) = columns(kind);
    let named = Kind::of(&json!({"apiVersion": version, "kind": kind}));
    let defined = named.and_then(definition).map(|definition| definition.columns.as_slice());
    let definitions = match defined {
        Some(columns) => [vec![header(&NAME)], columns.iter().map(custom::header).collect()].concat(),
        None => columns.iter().map(header).collect(),
    };
    let cells = |object: &Value| match defined {
        Some(columns) => custom::cells(columns, object, now),
        None => row(object, now),
    };
    let rows = objects.iter().map(|object| {
        let told = match with {
            "None" => Value::Null,
            "Object" => (*object).clone(),
            _ => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
            }),
        };
        let mut row = json!({"cells": cells(object)});
        if !told.is_null() {
            row["object"] = told;
        }
        row
    });
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": definitions, "rows": rows.collect::<Vec<_>>(),
    })
}

fn header(column: &Column) -> Value {
    json!({
        "name": column.name, "type": column.kind, "format": column.format, "priority": column.priority,
        "description": "",
    })
}

#[cfg(test)]
mod tests;
