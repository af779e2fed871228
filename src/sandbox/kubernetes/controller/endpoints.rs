//! EndpointSlices: which pods each Service leads to, and whether they serve.
//!
//! Follows `pkg/controller/endpointslice` (Kubernetes 1.33): a pod that ends stays an endpoint, `terminating` and still
//! `serving` while it is ready, until it is gone. Left out: ports, zones, several slices of one Service, and the empty slice of
//! a Service that never had a pod: a large cluster in a test would have thousands of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::kubernetes::object::{Key, Object, holds, is_ending, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::selector::Selector;
use crate::kubernetes::store::{Scope, State};
use crate::kubernetes::write::{DeleteOptions, Writer};

/// A Service, as far as its endpoints depend on it.
#[derive(Debug)]
struct Service {
    selector: BTreeMap<String, String>,
    publishes_unready: bool,
    /// By the pod's name.
    endpoints: BTreeMap<String, Value>,
}

/// What the endpoints controller knows.
#[derive(Debug, Default)]
pub struct Endpoints {
    services: BTreeMap<Key, Service>,
    /// The Services of a namespace by the first label they select: a pod then finds its own among thousands.
    by_label: BTreeMap<(String, String, String), BTreeSet<Key>>,
    /// Services whose slice is not what it should be.
    dirty: BTreeSet<Key>,
}

impl Endpoints {
    /// Takes in a Service that was written or removed.
    pub fn notice_service(&mut self, state: &State, object: &Object, removed: bool) {
        let key = object.key.clone();
        if let Some(label) = self.services.remove(&key).and_then(|service| first_label(&key, &service.selector)) {
            self.by_label.entry(label).or_default().remove(&key);
        }
        self.dirty.insert(key.clone());
        let value = object.value();
        let selector = value.pointer("/spec/selector").and_then(Value::as_object);
        let selector: BTreeMap<String, String> = selector
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let Some(label) = first_label(&key, &selector).filter(|_| !removed) else { return };
        let publishes_unready = value.pointer("/spec/publishNotReadyAddresses") == Some(&Value::Bool(true));
        let mut service = Service { selector, publishes_unready, endpoints: BTreeMap::new() };
        let scope = Scope { kind: Kind::Pod, namespace: key.namespace.clone(), selector: Selector::default() };
        for pod in state.list(&scope) {
            service.take(&pod, false);
        }
        self.by_label.entry(label).or_default().insert(key.clone());
        self.services.insert(key, service);
    }

    /// Takes in a pod that was written or removed.
    pub fn notice_pod(&mut self, pod: &Object, removed: bool) {
        for (label, value) in &pod.labels {
            let label = (pod.key.namespace.clone(), label.clone(), value.clone());
            for key in self.by_label.get(&label).into_iter().flatten() {
                if self.services.get_mut(key).is_some_and(|service| service.take(pod, removed)) {
                    self.dirty.insert(key.clone());
                }
            }
        }
    }

    /// Writes the slices that are not what they should be.
    pub fn publish(&mut self, writer: &mut Writer<'_>) {
        for key in std::mem::take(&mut self.dirty) {
            let slice = Key::new(key.namespace.clone(), format!("{}-slice", key.name));
            let present = writer.state.get(Kind::EndpointSlice, &slice).map(|present| present.value());
            match (self.services.get(&key), present) {
                (None, None) => {}
                (None, Some(_)) => {
                    // It is there: it was just read, and nothing holds it.
                    let _ = writer.delete(Kind::EndpointSlice, &slice, &DeleteOptions::default());
                }
                (Some(service), None) if service.endpoints.is_empty() => {}
                (Some(service), present) => {
                    let endpoints: Vec<&Value> = service.endpoints.values().collect();
                    let endpoints = json!(endpoints);
                    if present.is_none_or(|present| present.get("endpoints") != Some(&endpoints)) {
                        writer.put_raw(Kind::EndpointSlice, object(&key, &slice, &endpoints));
                    }
                }
            }
        }
    }
}

impl Service {
    /// Takes in a pod; says whether that changed anything.
    fn take(&mut self, object: &Object, removed: bool) -> bool {
        let selected = self.selector.iter().all(|(key, value)| object.labels.get(key) == Some(value));
        let pod = object.value();
        let address = text(&pod, "/status/podIP");
        if removed || !selected || address.is_empty() {
            return self.endpoints.remove(&object.key.name).is_some();
        }
        let (serving, terminating) = (holds(&pod, "Ready"), is_ending(&pod));
        let ready = self.publishes_unready || (serving && !terminating);
        let endpoint = json!({
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": {
                "kind": "Pod", "namespace": object.key.namespace, "name": object.key.name, "uid": object.uid,
            },
        });
        self.endpoints.insert(object.key.name.clone(), endpoint.clone()).as_ref() != Some(&endpoint)
    }
}

fn first_label(service: &Key, selector: &BTreeMap<String, String>) -> Option<(String, String, String)> {
    selector.first_key_value().map(|(key, value)| (service.namespace.clone(), key.clone(), value.clone()))
}

fn object(service: &Key, slice: &Key, endpoints: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "namespace": slice.namespace, "name": slice.name,
            "labels": {
                "kubernetes.io/service-name": service.name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4", "endpoints": endpoints, "ports": [],
    })
}
