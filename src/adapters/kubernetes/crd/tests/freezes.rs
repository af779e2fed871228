//! The CRD of PromotionFreezes. It has no status: nobody writes to one but people.

use serde_json::{Value, json};

use super::super::freeze::FreezeSpec;
use super::{column, schema_of};

/// What a schema alone cannot say, and what a person reads who broke it.
const RULE: (&str, &str) = ("!has(self.from) || !has(self.until) || self.until > self.from", "until is after from");

/// The CRD of PromotionFreezes.
pub fn own() -> Value {
    let mut spec = schema_of::<FreezeSpec>();
    spec["x-kubernetes-validations"] = json!([{"rule": RULE.0, "message": RULE.1}]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "promotionfreezes.allclear.dev"},
        "spec": {
            "group": "allclear.dev",
            "names": {
                "kind": "PromotionFreeze",
                "listKind": "PromotionFreezeList",
                "plural": "promotionfreezes",
                "singular": "promotionfreeze",
                "shortNames": ["pfreeze"],
            },
            "scope": "Cluster",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("From", ".spec.from", 0, "string"),
                    column("Until", ".spec.until", 0, "string"),
                    column("Reason", ".spec.reason", 0, "string"),
                    column("Age", ".metadata.creationTimestamp", 0, "date"),
                ],
                "schema": {"openAPIV3Schema": {
                    "description": "Nothing new is promoted in the Pipelines that it selects.",
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                    },
                }},
            }],
        },
    })
}
