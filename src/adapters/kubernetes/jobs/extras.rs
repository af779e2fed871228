//! Kubernetes' own parts of a runner, as the text that a spec carries them in.
//!
//! Not for what is in them: the API server judges that.

use serde::Deserialize;
use serde_json::{Value, json};

/// The parts that go to places of their own. A part that is not known is an error: left out, it would be missed in the pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Extras {
    /// Of each of the user's containers.
    pub env: Vec<Value>,
    /// Of each of the user's containers.
    pub env_from: Vec<Value>,
    /// In each of the user's containers.
    pub mounts: Vec<Mount>,
    /// Of each of the user's containers.
    pub resources: Option<Value>,
    /// Of each of ours.
    pub step_resources: Option<Value>,
    pub node_selector: Option<Value>,
    pub tolerations: Option<Value>,
    pub image_pull_secrets: Option<Value>,
}

/// A volume and where it is mounted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mount {
    pub mount_path: String,
    /// Which part of the volume; the whole if none is named.
    pub sub_path: Option<String>,
    /// It cannot be written to.
    #[serde(default)]
    pub read_only: bool,
    #[serde(flatten)]
    pub volume: Volume,
}

/// The kinds of volume that may be mounted. None of them reaches the node.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Volume {
    /// A Secret of the namespace.
    Secret(Value),
    /// A ConfigMap of the namespace.
    ConfigMap(Value),
    /// A claim of the namespace.
    PersistentVolumeClaim(Value),
    EmptyDir(Value),
}

impl Extras {
    /// Reads them; an empty text is none.
    ///
    /// # Errors
    /// When they are not what `spec.runner` may have.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        if text.is_empty() { Ok(Self::default()) } else { serde_json::from_str(text) }
    }
}

impl Mount {
    /// The volume of this name.
    pub fn volume(&self, name: &str) -> Value {
        match &self.volume {
            Volume::Secret(source) => json!({"name": name, "secret": source}),
            Volume::ConfigMap(source) => json!({"name": name, "configMap": source}),
            Volume::PersistentVolumeClaim(source) => json!({"name": name, "persistentVolumeClaim": source}),
            Volume::EmptyDir(source) => json!({"name": name, "emptyDir": source}),
        }
    }
}
