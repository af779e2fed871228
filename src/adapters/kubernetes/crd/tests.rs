//! Makes the CRDs of `deploy/crds` from the raw types of specs and the domain's types of statuses. Only tests do: what is shipped has
//! the files.
//!
//! A CRD's schema is a part of JSON Schema (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>):
//! nothing is null, and nothing is a choice of types. What the types cannot say is added here: rules in CEL, the kind of a list,
//! columns, and the status that a new object has.

mod freezes;
mod histories;
mod nonsense;
mod repos;
pub mod stored;

use objects::pipeline::status::Status;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::raw_spec::PipelineSpec;
use super::{CRD, CRD_HISTORIES, CRD_WEAVE, freeze, repo};

const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
const STATUS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/status";

/// Rules that a schema alone cannot say: of what, what, and what a person reads who broke it. Names are escaped as CEL wants it:
/// `namespace` is a word of its own, and a hyphen an operator.
const RULES: &[(&str, &str, &str)] = &[
    (
        "/environments",
        "self.all(one, self.exists_one(other, other.name == one.name))",
        "names of environments are unique",
    ),
    (
        "/environments",
        "size(self) == 0 || !has(self[0].gates)",
        "the first environment has no gates: nothing is promoted into it",
    ),
    (
        "strategy",
        "has(self.pull__dash__request) != has(self.notification)",
        "exactly one of pull-request and notification",
    ),
    (
        "clusterRef",
        "self.kind != 'Secret' || !has(self.__namespace__)",
        "a Secret is in the namespace of the Pipeline: leave namespace out",
    ),
];

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    structural(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// The part of JSON Schema that a CRD may be.
fn structural(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else {
        return json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    };
    // An optional field may be left out; null would be another value.
    if let Some(Value::Array(choices)) = fields.remove("anyOf") {
        let chosen = choices.into_iter().find(|one| one["type"] != "null").unwrap();
        chosen.as_object().unwrap().iter().for_each(|(name, value)| {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        });
    }
    if let Some(Value::Array(types)) = fields.get("type") {
        let only = types.iter().find(|one| *one != "null").unwrap().clone();
        fields.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    // What Kubernetes checks itself, once it is in a Job.
    if !fields.contains_key("type") {
        fields.insert("type".to_owned(), json!("object"));
        fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
    fields.remove("title");
    // Only what a person would not guess is written into an object by the server.
    if fields.get("default").is_some_and(|default| default != "Latest") {
        fields.remove("default");
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for schema in properties.values_mut() {
            *schema = structural(schema.take());
        }
    }
    for place in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(place) {
            *schema = structural(schema.take());
        }
    }
    Value::Object(fields)
}

/// Calls `act` on each schema below this one, with the name of its property.
fn each(schema: &mut Value, name: &str, act: &mut impl FnMut(&str, &mut Map<String, Value>)) {
    let Value::Object(fields) = schema else { return };
    act(name, fields);
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.iter_mut().for_each(|(name, schema)| each(schema, name, act));
    }
    for place in ["items", "additionalProperties"] {
        if let Some(schema) = fields.get_mut(place) {
            each(schema, "", act);
        }
    }
}

fn column(name: &str, at: &str, priority: u8, kind: &str) -> Value {
    let mut column = json!({"name": name, "jsonPath": at, "type": kind});
    if priority > 0 {
        column["priority"] = json!(priority);
    }
    column
}

/// Of one of the object's conditions.
fn condition(kind: &str, field: &str) -> String {
    format!(".status.conditions[?(@.type==\"{kind}\")].{field}")
}

/// What makes one kind another than the others.
struct Kind {
    group: &'static str,
    name: &'static str,
    description: &'static str,
    columns: Vec<Value>,
    /// The names of its conditions, for people.
    conditions: &'static str,
    spec: Value,
    status: Value,
}

fn crd(of: Kind) -> Value {
    let Kind { group, name, description, columns, conditions, spec, mut status } = of;
    let (singular, plural) = (name.to_lowercase(), format!("{}s", name.to_lowercase()));
    status["default"] = json!({"observedGeneration": -1});
    let listed = &mut status["properties"]["conditions"];
    listed["x-kubernetes-list-type"] = json!("map");
    listed["x-kubernetes-list-map-keys"] = json!(["type"]);
    listed["items"]["properties"]["type"]["description"] = json!(conditions);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": name, "listKind": format!("{name}List"), "plural": plural, "singular": singular},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status,
                    },
                }},
            }],
        },
    })
}

fn pipelines(group: &'static str) -> Value {
    crd(Kind {
        group,
        name: "Pipeline",
        description: "A revision of an app moves from environment to environment.",
        columns: vec![
            column("App Kind", ".spec.appRef.kind", 0, "string"),
            column("App Name", ".spec.appRef.name", 0, "string"),
            column("Age", ".metadata.creationTimestamp", 0, "date"),
            column("Ready", &condition("Ready", "status"), 0, "string"),
            column("Status", &condition("Ready", "message"), 0, "string"),
            column("Latest", ".status.latestRevision", 1, "string"),
            column("Waiting", &condition("PromotionPending", "message"), 1, "string"),
        ],
        conditions: "Ready, PromotionPending or Stalled.",
        spec: schema_of::<PipelineSpec>(),
        status: schema_of::<Status>(),
    })
}

/// The CRD of our own group.
fn own() -> Value {
    let mut crd = pipelines("allclear.dev");
    let spec = crd.pointer_mut(SPEC).unwrap();
    let rule = |rule: &str, message: &str| json!({"rule": rule, "message": message});
    let mut used = 0;
    each(spec, "", &mut |name, fields| {
        let of = |place: &&(&str, &str, &str)| place.0.trim_start_matches('/') == name;
        let rules: Vec<Value> = RULES.iter().filter(of).map(|(_, cel, message)| rule(cel, message)).collect();
        if !rules.is_empty() {
            used += 1;
            fields.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
        }
    });
    // Environments once, strategies twice, references of targets and needs.
    assert_eq!(used, 5, "a rule is about nothing");
    let one = rule("has(self.appRef) != has(self.apps)", "exactly one of appRef and apps");
    crd.pointer_mut(SPEC).unwrap()["x-kubernetes-validations"] = json!([one]);
    crd
}

/// The CRD for objects of `pipelines.weave.works` that are stored already. Nothing that is new may refuse them: their own status
/// would be impossible to write.
fn weave() -> Value {
    let mut crd = pipelines("pipelines.weave.works");
    crd.pointer_mut(&format!("{}/required", SPEC.trim_end_matches("/properties/spec"))).unwrap().take();
    let root = crd.pointer_mut(SPEC.trim_end_matches("/properties/spec")).unwrap();
    root.as_object_mut().unwrap().remove("required");
    each(crd.pointer_mut(SPEC).unwrap(), "", &mut |_, fields| {
        for check in ["pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"] {
            fields.remove(check);
        }
    });
    crd
}

const HEAD: &str = "# Made from the types in src/adapters/kubernetes/crd by\n\
                    # cargo test --lib crd::tests -- --ignored\n";

fn yaml(crd: &Value) -> String {
    format!("{HEAD}{}", serde_saphyr::to_string(crd).unwrap())
}

const REMADE: &str = "made anew by: cargo test --lib crd::tests -- --ignored";

#[test]
fn the_crds_that_are_shipped_are_those_of_the_types() {
    assert!(yaml(&own()) == CRD, "deploy/crds/pipelines.yaml is {REMADE}");
    assert!(yaml(&weave()) == CRD_WEAVE, "deploy/crds/pipelines-weave.yaml is {REMADE}");
    assert!(yaml(&freezes::own()) == freeze::CRD, "deploy/crds/promotionfreezes.yaml is {REMADE}");
    assert!(yaml(&histories::own()) == CRD_HISTORIES, "deploy/crds/histories.yaml is {REMADE}");
    assert!(yaml(&repos::own()) == repo::CRD, "deploy/crds/repos.yaml is {REMADE}");
}

#[test]
#[ignore = "writes deploy/crds"]
fn make_the_crds() {
    let to = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/crds/");
    std::fs::write(format!("{to}pipelines.yaml"), yaml(&own())).unwrap();
    std::fs::write(format!("{to}pipelines-weave.yaml"), yaml(&weave())).unwrap();
    std::fs::write(format!("{to}promotionfreezes.yaml"), yaml(&freezes::own())).unwrap();
    std::fs::write(format!("{to}histories.yaml"), yaml(&histories::own())).unwrap();
    std::fs::write(format!("{to}repos.yaml"), yaml(&repos::own())).unwrap();
}

/// What every structural schema obeys, and what `kubectl apply` warns of.
#[test]
fn the_crds_are_structural() {
    const KNOWN: [&str; 22] = [
        "type",
        "description",
        "properties",
        "required",
        "items",
        "additionalProperties",
        "default",
        "enum",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "maxProperties",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-preserve-unknown-fields",
        "nullable",
    ];
    for mut crd in [own(), weave(), repos::own(), freezes::own(), histories::own()] {
        for place in [SPEC, STATUS, histories::ENTRIES] {
            let Some(schema) = crd.pointer_mut(place) else { continue };
            each(schema, "", &mut |name, fields| {
                let unknown: Vec<&String> = fields.keys().filter(|key| !KNOWN.contains(&key.as_str())).collect();
                assert!(unknown.is_empty(), "{name}: {unknown:?}");
                assert!(fields["type"].is_string(), "{name}: {fields:?}");
                let format = fields.get("format").and_then(Value::as_str).unwrap_or("int64");
                assert!(["int64", "date-time"].contains(&format), "{name}: {format}");
            });
        }
    }
}

/// Everything a status can hold has a bound, but for maps, which have one entry for each environment.
#[test]
fn a_stored_object_of_the_other_group_breaks_no_rule() {
    let text = weave().pointer(SPEC).unwrap().to_string();
    for check in ["pattern", "minLength", "maxItems", "x-kubernetes-validations"] {
        assert!(!text.contains(check), "{check}");
    }
    assert!(own().pointer(SPEC).unwrap().to_string().contains("x-kubernetes-validations"));
}
