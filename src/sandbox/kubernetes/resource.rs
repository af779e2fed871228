//! The kinds the stand-in serves: their names, their places in the URL space, and the rules in which they differ.
//!
//! Everything that a real API server decides per kind is a field of [`Description`], so a new kind is one row here.
//! Not for validation or defaults of particular kinds: those are in `defaults`.

use serde_json::{Value, json};

/// A kind the stand-in serves. The order is the order of the tables in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Namespace.
    Namespace,
    /// `v1` Pod.
    Pod,
    /// `v1` Service.
    Service,
    /// `v1` ConfigMap.
    ConfigMap,
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `networking.k8s.io/v1` Ingress.
    Ingress,
    /// `gateway.networking.k8s.io/v1` HTTPRoute.
    HttpRoute,
    /// `gateway.networking.k8s.io/v1` GRPCRoute.
    GrpcRoute,
    /// `gateway.networking.k8s.io/v1` Gateway.
    Gateway,
    /// `gateway.networking.k8s.io/v1` ReferenceGrant, as releases since 1.5 serve it.
    ReferenceGrant,
    /// `events.k8s.io/v1` Event.
    Event,
    /// `coordination.k8s.io/v1` Lease.
    Lease,
    /// `v1` Secret.
    Secret,
    /// `v1` ServiceAccount.
    ServiceAccount,
    /// `rbac.authorization.k8s.io/v1` Role. Kept, and allows nothing: everything is allowed here.
    Role,
    /// `rbac.authorization.k8s.io/v1` RoleBinding.
    RoleBinding,
    /// `rbac.authorization.k8s.io/v1` ClusterRole.
    ClusterRole,
    /// `rbac.authorization.k8s.io/v1` ClusterRoleBinding.
    ClusterRoleBinding,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
    /// `networking.k8s.io/v1` NetworkPolicy. Kept, and lets everything through.
    NetworkPolicy,
    /// `apps/v1` StatefulSet. Kept as it is written: no controller works on it.
    StatefulSet,
    /// `apps/v1` DaemonSet. As above.
    DaemonSet,
    /// `batch/v1` Job.
    Job,
    /// `allclear.dev/v1alpha1` Pipeline.
    Pipeline,
    /// `pipelines.weave.works/v1alpha1` Pipeline, under the CRD of its own group: only its fields are kept in a status.
    WeavePipeline,
    /// `helm.toolkit.fluxcd.io/v2` HelmRelease.
    HelmRelease,
    /// `kustomize.toolkit.fluxcd.io/v1` Kustomization.
    Kustomization,
    /// `argoproj.io/v1alpha1` Application, which has no status subresource.
    Application,
    /// `argoproj.io/v1alpha1` Rollout.
    ArgoRollout,
    /// `gitops.weave.works/v1alpha1` GitopsCluster.
    GitopsCluster,
    /// `allclear.dev/v1alpha1` Repo.
    Repo,
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
    /// The plural, lower case: the name in URLs.
    pub plural: &'static str,
    /// The singular, lower case.
    pub singular: &'static str,
    /// The name in objects.
    pub kind: &'static str,
    /// Abbreviations for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether `status` is written through a subresource of its own and is ignored elsewhere.
    pub status: bool,
    /// What raises the generation.
    pub generation: Generation,
    /// Whether it comes from a CustomResourceDefinition. Such objects carry `apiVersion` and `kind` inside lists too,
    /// cannot be patched strategically, and cannot be updated without a resourceVersion.
    pub custom: bool,
    /// Whether PUT without a resourceVersion is allowed (it means: whatever is there).
    pub unconditional_update: bool,
}

const fn core(plural: &'static str, singular: &'static str, kind: &'static str) -> Description {
    Description {
        group: "",
        version: "v1",
        plural,
        singular,
        kind,
        short_names: &[],
        namespaced: true,
        status: false,
        generation: Generation::Absent,
        custom: false,
        unconditional_update: true,
    }
}

const fn gateway(plural: &'static str, singular: &'static str, kind: &'static str) -> Description {
    custom(GATEWAY_GROUP, "v1", plural, singular, kind)
}

const fn custom(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
) -> Description {
    Description {
        group,
        version,
        status: true,
        generation: Generation::AllButMetadata,
        custom: true,
        unconditional_update: false,
        ..core(plural, singular, kind)
    }
}

const fn rbac(plural: &'static str, singular: &'static str, kind: &'static str) -> Description {
    Description { group: "rbac.authorization.k8s.io", ..core(plural, singular, kind) }
}

/// The group of the Gateway API, which a cluster may lack.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

static NAMESPACE: Description = Description {
    short_names: &["ns"],
    namespaced: false,
    status: true,
    ..core("namespaces", "namespace", "Namespace")
};
static POD: Description = Description { short_names: &["po"], status: true, ..core("pods", "pod", "Pod") };
static SERVICE: Description =
    Description { short_names: &["svc"], status: true, ..core("services", "service", "Service") };
static CONFIG_MAP: Description = Description { short_names: &["cm"], ..core("configmaps", "configmap", "ConfigMap") };
static DEPLOYMENT: Description = Description {
    group: "apps",
    short_names: &["deploy"],
    status: true,
    generation: Generation::SpecOrAnnotations,
    ..core("deployments", "deployment", "Deployment")
};
static REPLICA_SET: Description = Description {
    group: "apps",
    short_names: &["rs"],
    status: true,
    generation: Generation::Spec,
    ..core("replicasets", "replicaset", "ReplicaSet")
};
static INGRESS: Description = Description {
    group: "networking.k8s.io",
    short_names: &["ing"],
    status: true,
    generation: Generation::Spec,
    ..core("ingresses", "ingress", "Ingress")
};
static HTTP_ROUTE: Description = gateway("httproutes", "httproute", "HTTPRoute");
static GRPC_ROUTE: Description = gateway("grpcroutes", "grpcroute", "GRPCRoute");
static GATEWAY: Description = Description { short_names: &["gtw"], ..gateway("gateways", "gateway", "Gateway") };
static REFERENCE_GRANT: Description = Description {
    short_names: &["refgrant"],
    status: false,
    ..gateway("referencegrants", "referencegrant", "ReferenceGrant")
};
static EVENT: Description =
    Description { group: "events.k8s.io", short_names: &["ev"], ..core("events", "event", "Event") };
static LEASE: Description =
    Description { group: "coordination.k8s.io", unconditional_update: false, ..core("leases", "lease", "Lease") };
static ENDPOINT_SLICE: Description = Description {
    group: "discovery.k8s.io",
    generation: Generation::AllButMetadata,
    ..core("endpointslices", "endpointslice", "EndpointSlice")
};

static NETWORK_POLICY: Description = Description {
    group: "networking.k8s.io",
    short_names: &["netpol"],
    generation: Generation::Spec,
    ..core("networkpolicies", "networkpolicy", "NetworkPolicy")
};

static SECRET: Description = core("secrets", "secret", "Secret");
static SERVICE_ACCOUNT: Description =
    Description { short_names: &["sa"], ..core("serviceaccounts", "serviceaccount", "ServiceAccount") };
static ROLE: Description = rbac("roles", "role", "Role");
static ROLE_BINDING: Description = rbac("rolebindings", "rolebinding", "RoleBinding");
static CLUSTER_ROLE: Description =
    Description { namespaced: false, ..rbac("clusterroles", "clusterrole", "ClusterRole") };
static CLUSTER_ROLE_BINDING: Description =
    Description { namespaced: false, ..rbac("clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding") };

static STATEFUL_SET: Description = Description {
    group: "apps",
    short_names: &["sts"],
    status: true,
    generation: Generation::Spec,
    ..core("statefulsets", "statefulset", "StatefulSet")
};
static DAEMON_SET: Description = Description {
    group: "apps",
    short_names: &["ds"],
    status: true,
    generation: Generation::Spec,
    ..core("daemonsets", "daemonset", "DaemonSet")
};
static JOB: Description =
    Description { group: "batch", status: true, generation: Generation::Spec, ..core("jobs", "job", "Job") };
static PIPELINE: Description = custom("allclear.dev", "v1alpha1", "pipelines", "pipeline", "Pipeline");
static REPO: Description = custom("allclear.dev", "v1alpha1", "repos", "repo", "Repo");
static WEAVE_PIPELINE: Description = custom("pipelines.weave.works", "v1alpha1", "pipelines", "pipeline", "Pipeline");
static HELM_RELEASE: Description = Description {
    short_names: &["hr"],
    ..custom("helm.toolkit.fluxcd.io", "v2", "helmreleases", "helmrelease", "HelmRelease")
};
static KUSTOMIZATION: Description = Description {
    short_names: &["ks"],
    ..custom("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "kustomization", "Kustomization")
};
static APPLICATION: Description =
    Description { status: false, ..custom("argoproj.io", "v1alpha1", "applications", "application", "Application") };
static ARGO_ROLLOUT: Description = custom("argoproj.io", "v1alpha1", "rollouts", "rollout", "Rollout");
static GITOPS_CLUSTER: Description =
    custom("gitops.weave.works", "v1alpha1", "gitopsclusters", "gitopscluster", "GitopsCluster");

impl Kind {
    /// Every kind, in table order.
    pub const ALL: [Kind; 32] = [
        Kind::Namespace,
        Kind::Pod,
        Kind::Service,
        Kind::ConfigMap,
        Kind::Deployment,
        Kind::ReplicaSet,
        Kind::Ingress,
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::Gateway,
        Kind::ReferenceGrant,
        Kind::Event,
        Kind::Lease,
        Kind::Secret,
        Kind::ServiceAccount,
        Kind::Role,
        Kind::RoleBinding,
        Kind::ClusterRole,
        Kind::ClusterRoleBinding,
        Kind::EndpointSlice,
        Kind::NetworkPolicy,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Job,
        Kind::Pipeline,
        Kind::WeavePipeline,
        Kind::HelmRelease,
        Kind::Kustomization,
        Kind::Application,
        Kind::ArgoRollout,
        Kind::GitopsCluster,
        Kind::Repo,
    ];

    /// The row of the table.
    pub fn describe(self) -> &'static Description {
        match self {
            Kind::Namespace => &NAMESPACE,
            Kind::Pod => &POD,
            Kind::Service => &SERVICE,
            Kind::ConfigMap => &CONFIG_MAP,
            Kind::Deployment => &DEPLOYMENT,
            Kind::ReplicaSet => &REPLICA_SET,
            Kind::Ingress => &INGRESS,
            Kind::HttpRoute => &HTTP_ROUTE,
            Kind::GrpcRoute => &GRPC_ROUTE,
            Kind::Gateway => &GATEWAY,
            Kind::ReferenceGrant => &REFERENCE_GRANT,
            Kind::Event => &EVENT,
            Kind::Lease => &LEASE,
            Kind::Secret => &SECRET,
            Kind::ServiceAccount => &SERVICE_ACCOUNT,
            Kind::Role => &ROLE,
            Kind::RoleBinding => &ROLE_BINDING,
            Kind::ClusterRole => &CLUSTER_ROLE,
            Kind::ClusterRoleBinding => &CLUSTER_ROLE_BINDING,
            Kind::EndpointSlice => &ENDPOINT_SLICE,
            Kind::NetworkPolicy => &NETWORK_POLICY,
            Kind::StatefulSet => &STATEFUL_SET,
            Kind::DaemonSet => &DAEMON_SET,
            Kind::Job => &JOB,
            Kind::Pipeline => &PIPELINE,
            Kind::WeavePipeline => &WEAVE_PIPELINE,
            Kind::HelmRelease => &HELM_RELEASE,
            Kind::Kustomization => &KUSTOMIZATION,
            Kind::Application => &APPLICATION,
            Kind::ArgoRollout => &ARGO_ROLLOUT,
            Kind::GitopsCluster => &GITOPS_CLUSTER,
            Kind::Repo => &REPO,
        }
    }

    /// The kind served at `group`/`version`/`plural`, if any.
    pub fn served_at(group: &str, version: &str, plural: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| {
            let row = kind.describe();
            row.group == group && row.version == version && row.plural == plural
        })
    }

    /// The kind an object says it is, by its `apiVersion` and `kind`.
    pub fn of(object: &Value) -> Option<Kind> {
        let (api_version, name) = (object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?);
        Kind::ALL.into_iter().find(|kind| kind.describe().kind == name && kind.describe().api_version() == api_version)
    }
}

impl Description {
    /// `apiVersion` as objects carry it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The name error messages use: `pods`, `deployments.apps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The URL path of the collection in `namespace`, or of all namespaces when it is empty.
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let scope = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        format!("{root}/{}{scope}/{}", self.api_version(), self.plural)
    }
}

/// The groups served, in the order of the table, each once. The core group is not among them.
fn groups(is_installed: &dyn Fn(&str) -> bool) -> Vec<&'static Description> {
    let mut rows: Vec<&'static Description> = Vec::new();
    for row in Kind::ALL.into_iter().map(Kind::describe) {
        let served = !row.group.is_empty() && (!row.custom || is_installed(row.group));
        if served && !rows.iter().any(|seen| seen.group == row.group) {
            rows.push(row);
        }
    }
    rows
}

/// The discovery document at `path`, if there is one: `/version`, `/api`, `/apis` and the lists below them.
pub fn discovery(path: &str, is_installed: &dyn Fn(&str) -> bool) -> Option<Value> {
    match path {
        "/version" => Some(version()),
        "/api" => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        "/apis" => {
            let groups: Vec<Value> = groups(is_installed).into_iter().map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        "/api/v1" => Some(resource_list("")),
        _ => {
            let rest = path.strip_prefix("/apis/")?;
            let row = groups(is_installed).into_iter().find(|row| rest.split('/').next() == Some(row.group))?;
            match rest.split_once('/') {
                None => Some(group(row)),
                Some((_, version)) if version == row.version => Some(resource_list(row.group)),
                Some(_) => None,
            }
        }
    }
}

/// `/version`. The numbers are those of the oldest server the client types support; the suffix tells a person who looks
/// that this is no cluster.
fn version() -> Value {
    json!({
        "major": "1", "minor": "33", "gitVersion": "v1.33.0+allclear-stand-in", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": "loopback",
    })
}

fn group(row: &'static Description) -> Value {
    let version = json!({"groupVersion": row.api_version(), "version": row.version});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": row.group, "versions": [version], "preferredVersion": version,
    })
}

fn resource_list(group: &str) -> Value {
    const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut resources = Vec::new();
    let mut group_version = "v1".to_owned();
    for row in Kind::ALL.into_iter().map(Kind::describe).filter(|row| row.group == group) {
        group_version = row.api_version();
        resources.push(json!({
            "name": row.plural, "singularName": row.singular, "namespaced": row.namespaced, "kind": row.kind,
            "verbs": VERBS, "shortNames": row.short_names,
        }));
        if row.status {
            resources.push(json!({
                "name": format!("{}/status", row.plural), "singularName": "", "namespaced": row.namespaced,
                "kind": row.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    if group.is_empty() {
        resources.push(json!({
            "name": "events", "singularName": "event", "namespaced": true, "kind": "Event",
            "verbs": ["create", "get", "list"], "shortNames": ["ev"],
        }));
    }
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_again_at_its_own_address() {
        for kind in Kind::ALL {
            let row = kind.describe();
            assert_eq!(Kind::served_at(row.group, row.version, row.plural), Some(kind));
            assert_eq!(Kind::of(&json!({"apiVersion": row.api_version(), "kind": row.kind})), Some(kind));
        }
    }

    #[test]
    fn a_cluster_without_the_gateway_api_does_not_announce_it() {
        let with = discovery("/apis", &|_| true).unwrap().to_string();
        let without = discovery("/apis", &|_| false).unwrap().to_string();
        assert!(with.contains(GATEWAY_GROUP) && !without.contains(GATEWAY_GROUP));
        assert_eq!(discovery("/apis/gateway.networking.k8s.io/v1", &|_| false), None);
        assert!(discovery("/apis/gateway.networking.k8s.io/v1", &|_| true).is_some());
    }
}
