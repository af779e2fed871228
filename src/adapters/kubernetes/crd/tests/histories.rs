//! The CRD of histories. One has neither a spec nor a status: nobody asks for anything by it. Its name says of what it is, so that it needs no
//! columns.

use objects::history::{ENTRIES_MAX, Entry};
use serde_json::{Value, json};

use super::schema_of;

/// Where its entries are.
pub const ENTRIES: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/entries";

/// The CRD of histories.
pub fn own() -> Value {
    let mut entries = schema_of::<Vec<Entry>>();
    entries["description"] = json!("Oldest first.");
    entries["maxItems"] = json!(ENTRIES_MAX);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "histories.allclear.dev"},
        "spec": {
            "group": "allclear.dev",
            "names": {"kind": "History", "listKind": "HistoryList", "plural": "histories", "singular": "history"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "description": "What a Pipeline or a Repo has gone through. allclear writes it; deleting it forgets that, and nothing else.",
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "entries": entries,
                    },
                }},
            }],
        },
    })
}
