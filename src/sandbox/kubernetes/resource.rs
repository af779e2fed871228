//! The kinds the stand-in serves: their names, their places in the URL space, and the rules in which they differ.
//!
//! Everything that a real API server decides per kind is a field of [`Description`], so a new kind is one row here. Not for validation or
//! defaults of particular kinds: those are in `defaults`.

use serde_json::Value;

/// A kind the stand-in serves, in the order of [`ROWS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Namespace,
    Pod,
    Service,
    ConfigMap,
    Deployment,
    ReplicaSet,
    Ingress,
    HttpRoute,
    GrpcRoute,
    Gateway,
    /// As releases of the Gateway API since 1.5 serve it.
    ReferenceGrant,
    /// In `events.k8s.io`; `core_events` has its old address.
    Event,
    Lease,
    Secret,
    ServiceAccount,
    /// Roles and bindings are kept, and allow nothing: everything is allowed here.
    Role,
    RoleBinding,
    ClusterRole,
    ClusterRoleBinding,
    EndpointSlice,
    /// Kept, and lets everything through.
    NetworkPolicy,
    StatefulSet,
    DaemonSet,
    Job,
    Pipeline,
    /// Under the CRD of its own group: only its fields are kept in a status.
    WeavePipeline,
    HelmRelease,
    Kustomization,
    /// Has no status subresource.
    Application,
    ArgoRollout,
    GitopsCluster,
    Repo,
    /// In no namespace, and without a status.
    PromotionFreeze,
    /// Without a status.
    History,
    /// Of no controller here: its status and its pods are the test's.
    CloneSet,
}

/// What raises `metadata.generation`. Observed on kube-apiserver 1.36.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    Absent,
    /// A change of `spec`.
    Spec,
    /// A change of `spec` or of the annotations: the rule of Deployments alone.
    SpecOrAnnotations,
    /// A change of anything but `metadata` and `status`: the rule of custom resources with a status subresource.
    AllButMetadata,
}

/// One row of the table of kinds.
#[derive(Debug)]
pub struct Description {
    /// The API group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// The name in objects.
    pub kind: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
    /// Abbreviations for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether `status` is written through a subresource of its own and is ignored elsewhere.
    pub status: bool,
    pub generation: Generation,
    /// Whether it comes from a CustomResourceDefinition. Such objects carry `apiVersion` and `kind` inside lists too,
    /// cannot be patched strategically, and cannot be updated without a resourceVersion.
    pub custom: bool,
    /// Whether PUT without a resourceVersion is allowed (it means: whatever is there).
    pub unconditional_update: bool,
}

/// The group of the Gateway API, which a cluster may lack.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

static ROWS: [(Kind, Description); 35] = [
    (Kind::Namespace, Description { namespaced: false, ..row("", "Namespace", "namespaces").status().short(&["ns"]) }),
    (Kind::Pod, row("", "Pod", "pods").status().short(&["po"])),
    (Kind::Service, row("", "Service", "services").status().short(&["svc"])),
    (Kind::ConfigMap, row("", "ConfigMap", "configmaps").short(&["cm"])),
    (
        Kind::Deployment,
        row("apps", "Deployment", "deployments").status().counts(Generation::SpecOrAnnotations).short(&["deploy"]),
    ),
    (Kind::ReplicaSet, row("apps", "ReplicaSet", "replicasets").status().counts(Generation::Spec).short(&["rs"])),
    (Kind::Ingress, row("networking.k8s.io", "Ingress", "ingresses").status().counts(Generation::Spec).short(&["ing"])),
    (Kind::HttpRoute, custom(GATEWAY_GROUP, "v1", "HTTPRoute", "httproutes")),
    (Kind::GrpcRoute, custom(GATEWAY_GROUP, "v1", "GRPCRoute", "grpcroutes")),
    (Kind::Gateway, custom(GATEWAY_GROUP, "v1", "Gateway", "gateways").short(&["gtw"])),
    (
        Kind::ReferenceGrant,
        Description { status: false, ..custom(GATEWAY_GROUP, "v1", "ReferenceGrant", "referencegrants") },
    ),
    (Kind::Event, row("events.k8s.io", "Event", "events").short(&["ev"])),
    (Kind::Lease, Description { unconditional_update: false, ..row("coordination.k8s.io", "Lease", "leases") }),
    (Kind::Secret, row("", "Secret", "secrets")),
    (Kind::ServiceAccount, row("", "ServiceAccount", "serviceaccounts").short(&["sa"])),
    (Kind::Role, row(RBAC_GROUP, "Role", "roles")),
    (Kind::RoleBinding, row(RBAC_GROUP, "RoleBinding", "rolebindings")),
    (Kind::ClusterRole, Description { namespaced: false, ..row(RBAC_GROUP, "ClusterRole", "clusterroles") }),
    (
        Kind::ClusterRoleBinding,
        Description { namespaced: false, ..row(RBAC_GROUP, "ClusterRoleBinding", "clusterrolebindings") },
    ),
    (
        Kind::EndpointSlice,
        row("discovery.k8s.io", "EndpointSlice", "endpointslices").counts(Generation::AllButMetadata),
    ),
    (
        Kind::NetworkPolicy,
        row("networking.k8s.io", "NetworkPolicy", "networkpolicies").counts(Generation::Spec).short(&["netpol"]),
    ),
    (Kind::StatefulSet, row("apps", "StatefulSet", "statefulsets").status().counts(Generation::Spec).short(&["sts"])),
    (Kind::DaemonSet, row("apps", "DaemonSet", "daemonsets").status().counts(Generation::Spec).short(&["ds"])),
    (Kind::Job, row("batch", "Job", "jobs").status().counts(Generation::Spec)),
    (Kind::Pipeline, custom("allclear.dev", "v1alpha1", "Pipeline", "pipelines")),
    (Kind::WeavePipeline, custom("pipelines.weave.works", "v1alpha1", "Pipeline", "pipelines")),
    (Kind::HelmRelease, custom("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases").short(&["hr"])),
    (
        Kind::Kustomization,
        custom("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations").short(&["ks"]),
    ),
    (
        Kind::Application,
        Description { status: false, ..custom("argoproj.io", "v1alpha1", "Application", "applications") },
    ),
    (Kind::ArgoRollout, custom("argoproj.io", "v1alpha1", "Rollout", "rollouts")),
    (Kind::GitopsCluster, custom("gitops.weave.works", "v1alpha1", "GitopsCluster", "gitopsclusters")),
    (Kind::Repo, custom("allclear.dev", "v1alpha1", "Repo", "repos")),
    (
        Kind::PromotionFreeze,
        Description {
            namespaced: false,
            status: false,
            ..custom("allclear.dev", "v1alpha1", "PromotionFreeze", "promotionfreezes").short(&["pfreeze"])
        },
    ),
    (Kind::History, Description { status: false, ..custom("allclear.dev", "v1alpha1", "History", "histories") }),
    (Kind::CloneSet, custom("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets")),
];

/// A built-in kind in `v1`, without a status and a generation.
const fn row(group: &'static str, kind: &'static str, plural: &'static str) -> Description {
    Description {
        group,
        version: "v1",
        kind,
        plural,
        short_names: &[],
        namespaced: true,
        status: false,
        generation: Generation::Absent,
        custom: false,
        unconditional_update: true,
    }
}

const fn custom(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Description {
    let built_in = row(group, kind, plural).status().counts(Generation::AllButMetadata);
    Description { version, custom: true, unconditional_update: false, ..built_in }
}

impl Kind {
    pub fn all() -> impl Iterator<Item = Kind> {
        ROWS.iter().map(|(kind, _)| *kind)
    }

    pub fn describe(self) -> &'static Description {
        &ROWS[self as usize].1
    }

    /// The kind served at `group`/`version`/`plural`, if any.
    pub fn served_at(group: &str, version: &str, plural: &str) -> Option<Kind> {
        Kind::all().find(|kind| {
            let row = kind.describe();
            row.group == group && row.version == version && row.plural == plural
        })
    }

    /// The kind an object says it is, by its `apiVersion` and `kind`.
    pub fn of(object: &Value) -> Option<Kind> {
        let (api_version, name) = (object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?);
        Kind::all().find(|kind| kind.describe().kind == name && kind.describe().api_version() == api_version)
    }
}

impl Description {
    const fn short(self, short_names: &'static [&'static str]) -> Description {
        Description { short_names, ..self }
    }

    const fn status(self) -> Description {
        Description { status: true, ..self }
    }

    const fn counts(self, generation: Generation) -> Description {
        Description { generation, ..self }
    }

    /// `apiVersion` as objects carry it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Where the API has this group in this version: `/api/v1`, `/apis/apps/v1`.
    pub fn root(&self) -> String {
        format!("/{}/{}", if self.group.is_empty() { "api" } else { "apis" }, self.api_version())
    }

    /// The name error messages use: `pods`, `deployments.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_is_found_again_at_its_own_address() {
        for (index, kind) in Kind::all().enumerate() {
            let row = kind.describe();
            assert_eq!(kind as usize, index);
            assert_eq!(Kind::served_at(row.group, row.version, row.plural), Some(kind));
            assert_eq!(Kind::of(&json!({"apiVersion": row.api_version(), "kind": row.kind})), Some(kind));
        }
    }
}
