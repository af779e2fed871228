//! The CRD of Repos, and nonsense for its schema.

use serde_json::{Value, json};

use super::super::repo::{RepoSpec, Written};
use super::{Kind, SPEC, column, condition, crd, schema_of};

/// Rules that a schema alone cannot say: at which place of the spec, what, and what a person reads who broke it.
const RULES: &[(&str, &str, &str)] = &[
    (
        "",
        "!has(self.approval) || self.approval != 'Plan' || !has(self.runner) || !has(self.runner.preset) || \
         self.runner.preset != 'Command' || (has(self.runner.steps) && has(self.runner.steps.plan) && \
         size(self.runner.steps.plan) > 0)",
        "approval: Plan needs runner.steps.plan",
    ),
    (
        "",
        "!has(self.driftEvery) || !has(self.runner) || !has(self.runner.preset) || self.runner.preset != 'Command' || \
         (has(self.runner.steps) && has(self.runner.steps.plan) && size(self.runner.steps.plan) > 0)",
        "driftEvery needs runner.steps.plan: a look at drift is a plan",
    ),
    ("", "!has(self.onDrift) || has(self.driftEvery)", "onDrift needs driftEvery: without it nothing looks for drift"),
    (
        "",
        "!has(self.onDelete) || self.onDelete != 'Ask' || !has(self.runner) || \
         ((!has(self.runner.preset) || self.runner.preset != 'Command') && \
         (!has(self.runner.steps) || (!has(self.runner.steps.plan) && !has(self.runner.steps.apply)))) || \
         (has(self.runner.steps) && has(self.runner.steps.destroyPlan) && size(self.runner.steps.destroyPlan) > 0 && \
         has(self.runner.steps.destroy) && size(self.runner.steps.destroy) > 0)",
        "onDelete: Ask needs runner.steps.destroyPlan and runner.steps.destroy, where plan or apply is not that of Terraform",
    ),
    (
        "/properties/ref",
        "[has(self.branch), has(self.tag), has(self.commit)].filter(one, one).size() <= 1",
        "at most one of branch, tag and commit",
    ),
    (
        "/properties/runner",
        "!has(self.preset) || self.preset != 'Command' || (has(self.image) && size(self.image) > 0)",
        "the preset Command needs an image",
    ),
    (
        "/properties/runner",
        "!has(self.preset) || self.preset != 'Command' || (has(self.steps) && has(self.steps.apply) && \
         size(self.steps.apply) > 0)",
        "the preset Command needs steps.apply",
    ),
    (
        "/properties/runner/properties/mounts/items",
        "[has(self.secret), has(self.configMap), has(self.persistentVolumeClaim), \
         has(self.emptyDir)].exists_one(one, one)",
        "exactly one of secret, configMap, persistentVolumeClaim and emptyDir",
    ),
    (
        "/properties/runner/properties/mounts/items",
        "self.mountPath != '/workspace' && !self.mountPath.startsWith('/workspace/')",
        "mountPath is not in /workspace, which holds the repository",
    ),
    (
        "/properties/gates/properties/needs/items/properties/clusterRef",
        "self.kind != 'Secret' || !has(self.__namespace__)",
        "a Secret is in the namespace of the Repo: leave namespace out",
    ),
];

/// The CRD of Repos.
pub fn own() -> Value {
    let mut crd = crd(Kind {
        group: "allclear.dev",
        name: "Repo",
        description: "A new commit of a git ref runs a Job, once.",
        columns: vec![
            column("URL", ".spec.url", 0, "string"),
            column("Revision", ".status.shortRevision", 0, "string"),
            column("Run", ".status.run.phase", 0, "string"),
            column("Age", ".metadata.creationTimestamp", 0, "date"),
            column("Ready", &condition("Ready", "status"), 0, "string"),
            // The long one is the last, as that of Pipelines.
            column("Status", &condition("Ready", "message"), 0, "string"),
        ],
        conditions: "Ready, Stalled or Drifted.",
        spec: schema_of::<RepoSpec>(),
        status: schema_of::<Written<'_>>(),
    });
    for (place, rule, message) in RULES {
        let place = crd.pointer_mut(&format!("{SPEC}{place}")).unwrap();
        let rules = place["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
        let rules = rules.into_iter().chain([json!({"rule": rule, "message": message})]);
        place["x-kubernetes-validations"] = rules.collect();
    }
    crd
}
