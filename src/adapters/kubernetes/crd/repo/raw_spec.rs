//! What a Repo asks for, as people write it. The CRD is made from these types, so their comments are what `kubectl explain` says.
//! `url` is the field of the program before this one.
//!
//! Not for what they mean; that is `read`.

use std::collections::BTreeMap;

use objects::repo::spec::{Approving, Detail, OnDelete, OnDrift, Preset};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::raw_spec::{Forge, Freeze, Need, SecretRef, Verdict, Window};

#[cfg(test)]
use schemars::JsonSchema;

/// What a Repo asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RepoSpec {
    /// The repository's address, as git clones it: https://HOST/PATH without a user, or ssh://USER@HOST:PORT/PATH. No password, query or fragment in it.
    #[cfg_attr(
        test,
        schemars(
            length(max = 1024),
            regex(
                pattern = r"^(https://[^/@?#\s]+|ssh://([A-Za-z0-9._+][A-Za-z0-9._+-]*@)?[A-Za-z0-9\[][^/@?#\s]*)/[^?#\s]+$"
            )
        )
    )]
    pub url: String,
    /// Which commit is wanted. Without one, that of the branch which the remote's HEAD names.
    #[serde(rename = "ref")]
    pub wanted: Option<Ref>,
    /// The folder in which commands run, relative to the repository's root.
    #[cfg_attr(test, schemars(length(max = 1024), regex(pattern = r"^([^/].*)?$")))]
    pub path: Option<String>,
    /// Files and folders beside path. Where this is given, also empty, a commit that changes nothing in path and in these is not run.
    #[cfg_attr(test, schemars(length(max = 50), inner(length(min = 1, max = 1024), regex(pattern = "^[^/]"))))]
    pub watch_paths: Option<Vec<String>>,
    /// How often the ref is looked at: 1m unless given, from 30s to 24h.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub interval: Option<String>,
    /// The Secret for git: username and password, or bearerToken, or the keys of a GitHub App; caFile; for SSH identity and known_hosts. Containers with the runner's image do not get it.
    pub secret_ref: Option<SecretRef>,
    /// What a person is asked before an apply. Auto: nothing. Revision: a yes to the commit. Plan: a yes to what a plan would change. Never: each commit is planned, and none is applied.
    #[serde(default)]
    pub approval: Approving,
    /// The image that runs, and its commands.
    #[serde(default)]
    pub runner: RunnerSpec,
    /// TF_WORKSPACE for the commands.
    #[cfg_attr(test, schemars(length(max = 90), regex(pattern = "^[A-Za-z0-9._~-]*$")))]
    pub workspace: Option<String>,
    /// How often an apply that had begun and failed is repeated without a person.
    #[serde(default)]
    pub retry: Retry,
    /// What must hold before an apply starts. All are judged together.
    #[serde(default)]
    pub gates: Gates,
    /// No new run starts. What runs goes on.
    #[serde(default)]
    pub suspend: bool,
    /// Ended Jobs that are kept.
    #[serde(default)]
    pub keep: Keep,
    /// A notice says once that a wait is longer than this: 1h unless given, from 1m to 30d.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub stalled_after: Option<String>,
    /// How often what was applied is planned again, to see whether anything has changed outside of git: never unless given, from 10m to
    /// 30d. It needs a plan step, and applies nothing by itself.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub drift_every: Option<String>,
    /// What follows where that plan would change something. Tell: a notice and the condition Drifted, which is so unless given. Apply: the
    /// commit is run once more, too, at most once in driftEvery, as approval and gates say.
    pub on_drift: Option<OnDrift>,
    /// What becomes of what was applied when the Repo is deleted. Keep: it stays, which is so unless given. Ask: the Repo stays until a
    /// person has said whether it is destroyed, to a plan that says what goes.
    #[serde(default)]
    pub on_delete: OnDelete,
    /// What each apply writes to a Secret at its end.
    pub outputs: Option<Outputs>,
    /// Runs are reported at the forge of url: as the state of the commit, and as one comment on each open request that has it at its head.
    pub report: Option<Report>,
}

/// Outputs of the configuration that are written to a Secret.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Outputs {
    /// The Secret, in this namespace. It must be there, with the annotation allclear.dev/outputs-of: this Repo's name.
    pub secret_ref: SecretRef,
    /// The outputs, and the keys that they get. Only these are written; other keys of the Secret stay as they are.
    #[cfg_attr(
        test,
        schemars(length(min = 1, max = 50), inner(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$")))
    )]
    pub names: Vec<String>,
}

/// How runs are reported.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Report {
    /// The forge: github, gitlab or gitea, which is Forgejo, too.
    #[serde(rename = "type")]
    pub forge: Forge,
    /// The Secret with token for the forge, or the keys of a GitHub App. It may be that for git.
    pub secret_ref: Option<SecretRef>,
    /// What a comment has. Addresses: how much a plan would change, and which resources, which is so unless given. Numbers: how much alone, for keys of for_each may be secret.
    #[serde(default)]
    pub detail: Detail,
}

/// Which commit is wanted: at most one of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Ref {
    /// The newest of this branch.
    #[cfg_attr(test, schemars(length(max = 255)))]
    pub branch: Option<String>,
    /// That of this tag.
    #[cfg_attr(test, schemars(length(max = 255)))]
    pub tag: Option<String>,
    /// This one, by all 40 digits of its id.
    #[cfg_attr(test, schemars(regex(pattern = "^([0-9a-f]{40})?$")))]
    pub commit: Option<String>,
}

/// The image that runs, and its commands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct RunnerSpec {
    /// What fills the steps and the image that are not given. Terraform: init, plan and apply of Terraform. Command: nothing.
    pub preset: Preset,
    /// The image of the containers with your commands. Needed for Command.
    #[cfg_attr(test, schemars(length(max = 512), regex(pattern = r"^\S*$")))]
    pub image: Option<String>,
    /// The commands. Each one that is given replaces that of the preset.
    pub steps: Steps,
    /// Environment variables, as in a container.
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub env: Vec<Value>,
    /// Environment variables out of Secrets and ConfigMaps, as in a container.
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub env_from: Vec<Value>,
    /// Files for the commands.
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub mounts: Vec<Mount>,
    /// What each container with your commands needs, as in a container. Unless given: 100m and 256Mi, at most 1 CPU and 1Gi.
    pub resources: Option<Value>,
    /// What each container of allclear in the same pod needs, as in a container. Unless given: 50m and 64Mi, at most 500m and 256Mi.
    pub step_resources: Option<Value>,
    /// On which nodes it may run.
    #[cfg_attr(test, schemars(extend("maxProperties" = 50)))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that it tolerates, as in a pod.
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub tolerations: Vec<Value>,
    /// Secrets by which images are pulled.
    #[cfg_attr(test, schemars(length(max = 50)))]
    pub image_pull_secrets: Vec<SecretRef>,
    /// The ServiceAccount: default, unless given.
    #[cfg_attr(test, schemars(length(max = 253)))]
    pub service_account_name: Option<String>,
    /// The commands get the ServiceAccount's token for the API server.
    pub kubernetes_token: bool,
    /// How long a Job may take from its start: 1h unless given, from 1m to 24h.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub deadline: Option<String>,
    /// Terraform may keep its state in the pod, where it is lost with it: without this, such a configuration is not run.
    pub allow_local_state: bool,
    /// How long Terraform waits for the lock of its state, as -lock-timeout: not at all unless given, up to 1h.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub lock_timeout: Option<String>,
    /// How long a command may take to end after SIGTERM, so that Terraform can give its lock back: 5m unless given, up to 1h.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub grace: Option<String>,
}

/// Commands, each as a list of words. No shell reads them. An empty list leaves the step out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Steps {
    /// Runs before every other step of yours.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub prepare: Option<Vec<String>>,
    /// Says what would change. With the preset Command it writes that to /workspace/out/plan, as any text.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub plan: Option<Vec<String>>,
    /// Changes what the commit describes: the only step that may.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub apply: Option<Vec<String>>,
    /// Says what the outputs are, with outputs alone. It writes them to /workspace/out/outputs.json, as terraform output -json does.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub output: Option<Vec<String>>,
    /// Says what a destroy would take away, where and as plan does. For onDelete: Ask.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub destroy_plan: Option<Vec<String>>,
    /// Destroys that. For onDelete: Ask.
    #[cfg_attr(test, schemars(length(max = 100), inner(length(max = 4096))))]
    pub destroy: Option<Vec<String>>,
}

/// Files: exactly one of secret, configMap, persistentVolumeClaim and emptyDir, each as in a volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Mount {
    /// Where. Not in /workspace, which holds the repository.
    #[cfg_attr(test, schemars(length(max = 1024), regex(pattern = "^/")))]
    pub mount_path: String,
    /// Only this path of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(length(max = 1024)))]
    pub sub_path: Option<String>,
    /// The commands cannot write there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// A Secret, by secretName.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Value>,
    /// A ConfigMap, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<Value>,
    /// A PersistentVolumeClaim, by claimName.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<Value>,
    /// A folder that is empty when the Job starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<Value>,
}

/// How often an apply is repeated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Retry {
    /// So often: 0 unless given.
    #[cfg_attr(test, schemars(range(min = 0, max = 10)))]
    pub limit: i64,
    /// The pause before the first retry. It doubles each time, up to 1h. 1m unless given, from 1s to 1h.
    #[cfg_attr(test, schemars(length(max = 32)))]
    pub backoff: Option<String>,
}

/// What must hold before an apply starts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Gates {
    /// It is in one of these parts of the week.
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub windows: Vec<Window>,
    /// It is in none of these times.
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub freezes: Vec<Freeze>,
    /// Another system says that the gate is open.
    pub verdict: Option<Verdict>,
    /// These objects are there and ready.
    #[cfg_attr(test, schemars(length(max = 20)))]
    pub needs: Vec<Need>,
}

/// Ended Jobs that are kept, with their logs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct Keep {
    /// Of those that succeeded: 3 unless given.
    #[cfg_attr(test, schemars(range(min = 0, max = 50)))]
    pub succeeded: Option<i64>,
    /// Of those that failed: 3 unless given.
    #[cfg_attr(test, schemars(range(min = 0, max = 50)))]
    pub failed: Option<i64>,
}
