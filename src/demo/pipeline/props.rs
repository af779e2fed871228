//! What is on the stage: the objects that people apply, and the deployer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{FILE, FORGE, NAME, NAMESPACE, PROD, REPOSITORY, STAGING};
use crate::demo::narration::image;
use sandbox::git::GitHost;
use sandbox::kubernetes::KubernetesStandIn;

/// How often the deployer looks at the branch.
const DEPLOY_EVERY: Duration = Duration::from_millis(300);

/// What prod runs, as its file says it: the value and the marker behind it.
pub(super) fn manifest(tag: &str) -> String {
    format!("image: {} # {{\"$promotion\": \"{NAMESPACE}:{NAME}:{PROD}:image\"}}\n", image(tag))
}

/// The Pipeline, as a person applies it. `purged`: staging is done only when its edge is purged.
pub(super) fn pipeline(purged: bool, manual: bool) -> Value {
    let edge = if purged { json!({"workloads": [NAME]}) } else { Value::Null };
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": NAMESPACE, "name": NAME},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "environments": [
                {"name": STAGING, "targets": [{"namespace": STAGING}], "purged": edge},
                {"name": PROD, "targets": [
                    {"namespace": PROD},
                    {"namespace": PROD, "clusterRef": {"kind": "Secret", "name": "us-1"}},
                ]},
            ],
            "promotion": {"manual": manual, "strategy": {"pull-request": {
                "type": "gitea", "url": format!("https://{FORGE}/{REPOSITORY}"), "baseBranch": "main",
                "secretRef": {"name": "forge"},
            }}},
        },
    })
}

/// A Secret beside the Pipeline, which may be sent to that host.
pub(super) fn secret(name: &str, data: &[(&str, &str)], to: Option<&str>) -> Value {
    let data: BTreeMap<_, _> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    let annotations = to.map(|host| json!({"allclear.dev/send-to": host}));
    let metadata = json!({"namespace": NAMESPACE, "name": name, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
}

/// Rolls out the branch's version on each change, until nothing else holds git: a small Flux.
pub(super) async fn deploy(git: Arc<GitHost>, clusters: Vec<KubernetesStandIn>) {
    let mut running = String::new();
    while Arc::strong_count(&git) > 1 {
        let said = git.git(REPOSITORY, &["show", &format!("main:{FILE}")]).unwrap_or_default();
        let wanted = said.strip_prefix("image: ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        if !wanted.is_empty() && wanted != running {
            wanted.clone_into(&mut running);
            for cluster in &clusters {
                if let Err(failure) = cluster.set_image(PROD, NAME, NAME, wanted) {
                    tracing::warn!(?failure, "the deployer could not set an image");
                }
            }
        }
        sleep(DEPLOY_EVERY).await;
    }
}
