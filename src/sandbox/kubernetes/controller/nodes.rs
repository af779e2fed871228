//! The nodes of a cluster. They are no objects here: the controllers know them by a list.
//!
//! Not for evictions: of a pod on a node that does not answer only the condition changes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kubernetes::object::{items, text};

/// Where pods run that are bound to no node.
const FIRST: &str = "node-1";

/// A machine that pods are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Whether its kubelet answers. If not, its pods are not ready, and one that is deleted stays.
    pub answers: bool,
}

impl Node {
    /// A node that answers and has only the label of its name.
    pub fn new(name: &str) -> Node {
        let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]);
        Node { name: name.to_owned(), labels, answers: true }
    }

    /// The nodes of a new cluster.
    pub fn pair() -> Vec<Node> {
        [FIRST, "node-2"].map(Node::new).to_vec()
    }

    /// The same node with one more label.
    pub fn labelled(mut self, label: &str, value: &str) -> Node {
        self.labels.insert(label.to_owned(), value.to_owned());
        self
    }

    /// The same node when it does not answer.
    pub fn silent(self) -> Node {
        Node { answers: false, ..self }
    }

    /// Whether the node has all labels that a pod selects by.
    pub fn is_selected(&self, pod_spec: &Value) -> bool {
        let selector = pod_spec.get("nodeSelector").and_then(Value::as_object);
        selector
            .into_iter()
            .flatten()
            .all(|(label, value)| self.labels.get(label).map(String::as_str) == value.as_str())
    }

    /// Whether a pod may be made here: a node that does not answer has the taint `unreachable` with the effect NoSchedule.
    pub fn takes(&self, pod_spec: &Value) -> bool {
        const TAINT: &str = "node.kubernetes.io/unreachable";
        let tolerates = |toleration: &Value| {
            text(toleration, "/operator") == "Exists"
                && ["", TAINT].contains(&text(toleration, "/key"))
                && ["", "NoSchedule"].contains(&text(toleration, "/effect"))
        };
        self.answers || items(pod_spec, "/tolerations").iter().any(tolerates)
    }
}

/// Binds a pod to a node, as the DaemonSet controller does: by an affinity that the scheduler follows.
pub fn bind(pod: &mut Value, node: &str) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
}

/// The node that a pod runs on, or will.
pub fn node_of(pod: &Value) -> &str {
    let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let bound = text(pod, &format!("{required}/nodeSelectorTerms/0/matchFields/0/values/0"));
    if bound.is_empty() { FIRST } else { bound }
}
