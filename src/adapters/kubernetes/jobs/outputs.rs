//! What the step `publish` of a Job gets, and no other container of its pod: the account's token for the API server, and what it is to
//! write where.
//!
//! Not for writing it; that is `kubernetes::outputs`.

use serde_json::{Value, json};

use objects::repo::job::Order;
use objects::repo::outputs::Outputs;
use objects::repo::status::Action;

/// The volume with the token, and where it is mounted.
pub(super) const VOLUME: &str = "api";
const FOLDER: &str = "/run/api";

/// How long the token is good for: the shortest time that there is. The kubelet renews it, however long the apply takes
/// (<https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#launch-a-pod-using-service-account-token-projection>).
const TOKEN_SECONDS: u32 = 600;

/// The token is read by the group of the pod, and by no one else.
const MODE: u32 = 0o440;

/// What an apply writes at its end, with the command that says what there is to write.
pub(super) fn wanted(order: &Order) -> Option<(&Outputs, &[String])> {
    let outputs = order.runner.outputs.as_ref().filter(|_| order.attempt.action == Action::Apply)?;
    Some((outputs, &order.runner.steps.output))
}

/// The token and the authority of the API server, as every pod has them by default
/// (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-token-volume>).
pub(super) fn volume() -> Value {
    json!({"name": VOLUME, "projected": {"defaultMode": MODE, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]}})
}

/// What is mounted beside the folder with what `output` wrote, which is at `out`.
pub(super) fn mounts(out: Value, tmp: Value) -> Value {
    json!([out, tmp, {"name": VOLUME, "mountPath": FOLDER, "readOnly": true}])
}

/// The words after `step publish`.
pub(super) fn arguments(order: &Order, outputs: &Outputs, out: &str) -> Vec<String> {
    let file = format!("{out}/outputs.json");
    let fixed = [
        ("--outputs", file.as_str()),
        ("--api", FOLDER),
        ("--namespace", &order.repo.namespace),
        ("--repo", &order.repo.name),
        ("--secret", &outputs.secret),
    ];
    let names = outputs.names.iter().map(|name| ("--name", name.as_str()));
    // With the option in the same word, a name may begin with a dash.
    fixed.into_iter().chain(names).map(|(option, value)| format!("{option}={value}")).collect()
}
