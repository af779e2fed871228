//! As much of kustomize as `deploy/` uses, written from its documents
//! (<https://kubectl.docs.kubernetes.io/references/kustomize/kustomization/>). What it does not know fails.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Kinds that are in no namespace.
const CLUSTER_SCOPED: [&str; 3] = ["Namespace", "ClusterRole", "ClusterRoleBinding"];

/// The objects of a folder with a `kustomization.yaml`, in the order of its resources.
pub fn render(folder: &Path) -> Vec<Value> {
    let kustomization = documents(&folder.join("kustomization.yaml")).remove(0);
    let mut objects = Vec::new();
    for resource in texts(&kustomization["resources"]) {
        let path = folder.join(&resource);
        objects.extend(if path.is_dir() { render(&path) } else { documents(&path) });
    }
    for (field, value) in kustomization.as_object().unwrap() {
        match field.as_str() {
            "apiVersion" | "kind" | "resources" | "namespace" | "labels" | "images" => {}
            "patches" => value.as_array().unwrap().iter().for_each(|patch| apply(patch, &mut objects)),
            "configMapGenerator" => generate(folder, value, &mut objects),
            unknown => panic!("{}: this renderer does not know {unknown}", folder.display()),
        }
    }
    // In the order of kustomize: what is above, then namespaces, labels, images.
    for object in &mut objects {
        if let Some(namespace) = kustomization["namespace"].as_str() {
            place(object, namespace);
        }
        for label in kustomization["labels"].as_array().into_iter().flatten() {
            assert_eq!(label["includeSelectors"], json!(false), "selectors of what runs cannot be changed");
            put(object, "/metadata", &label["pairs"]);
            if label["includeTemplates"] == json!(true) && object.pointer("/spec/template").is_some() {
                put(object, "/spec/template/metadata", &label["pairs"]);
            }
        }
        for image in kustomization["images"].as_array().into_iter().flatten() {
            rename_image(object, image);
        }
    }
    objects
}

/// The documents of a YAML file.
pub fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parts = text.split("\n---\n").map(serde_saphyr::from_str);
    parts.map(|part| part.unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn place(object: &mut Value, namespace: &str) {
    let kind = object["kind"].as_str().unwrap();
    if kind == "Namespace" {
        object["metadata"]["name"] = json!(namespace);
    } else if !CLUSTER_SCOPED.contains(&kind) {
        object["metadata"]["namespace"] = json!(namespace);
    }
    // As kustomize does: it sets the namespace of the account of the base, and of a subject that names none.
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if subject.get("namespace").is_none_or(|named| *named == json!("allclear")) {
            subject["namespace"] = json!(namespace);
        }
    }
}

fn put(object: &mut Value, metadata: &str, pairs: &Value) {
    let metadata = object.pointer_mut(metadata).unwrap().as_object_mut().unwrap();
    let labels = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut().unwrap();
    labels.extend(pairs.as_object().unwrap().clone());
}

fn rename_image(object: &mut Value, image: &Value) {
    let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter(|container| container["image"] == image["name"]) {
        let text = |field: &str| image[field].as_str().unwrap_or_else(|| panic!("images without {field}")).to_owned();
        container["image"] = json!(format!("{}:{}", text("newName"), text("newTag")));
    }
}

/// Makes the ConfigMaps, each with a hash of its content in its name, and lets those who name them name that.
fn generate(folder: &Path, generators: &Value, objects: &mut Vec<Value>) {
    for generator in generators.as_array().unwrap() {
        let name = generator["name"].as_str().unwrap();
        let mut data = Map::new();
        for file in texts(&generator["files"]) {
            let path: PathBuf = folder.join(&file);
            data.insert(file, json!(std::fs::read_to_string(path).unwrap()));
        }
        let digest = Sha256::digest(json!(data).to_string());
        let hash: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let hashed = format!("{name}-{hash}");
        objects.iter_mut().for_each(|object| refer(object, name, &hashed));
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": hashed}, "data": data}));
    }
}

fn refer(value: &mut Value, name: &str, hashed: &str) {
    match value {
        Value::Object(fields) => {
            for (field, inner) in fields {
                if ["configMap", "configMapRef"].contains(&field.as_str()) && inner["name"] == json!(name) {
                    inner["name"] = json!(hashed);
                }
                refer(inner, name, hashed);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, name, hashed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn apply(patch: &Value, objects: &mut Vec<Value>) {
    let target = &patch["target"];
    let is_meant = |object: &Value| object["kind"] == target["kind"] && object["metadata"]["name"] == target["name"];
    assert!(objects.iter().any(is_meant), "a patch for what is not there: {target}");
    let change: Value = serde_saphyr::from_str(patch["patch"].as_str().unwrap()).unwrap();
    if change["$patch"] == json!("delete") {
        return objects.retain(|object| !is_meant(object));
    }
    for operation in change.as_array().unwrap_or_else(|| panic!("this renderer does not know such a patch: {change}")) {
        let list = operation["path"].as_str().unwrap().strip_suffix("/-");
        assert!(operation["op"] == json!("add") && list.is_some(), "this renderer does not know {operation}");
        for object in objects.iter_mut().filter(|object| is_meant(object)) {
            let list = object.pointer_mut(list.unwrap()).and_then(Value::as_array_mut);
            list.expect("there is such a list").push(operation["value"].clone());
        }
    }
}
