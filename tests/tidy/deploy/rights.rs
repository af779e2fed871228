//! The rights that each file of a role gives, beside the base.

/// Each right with its verbs.
pub type Rights = &'static [(&'static str, &'static str)];

/// The rights that components, the overlay of the older group and a leaf give, each for itself, by the file of the role. The base names
/// no Secrets; Secrets are named one by one.
pub const MORE_RIGHTS: [(&str, &str, Rights); 15] = [
    ("components/apps", "ClusterRole", &APPS),
    (
        "components/approvals-by-hand",
        "ClusterRole",
        &[
            ("allclear.dev/pipelines", "approve get list patch watch"),
            ("pipelines.weave.works/pipelines", "approve get list patch watch"),
        ],
    ),
    ("components/gitopsclusters", "ClusterRole", &[("gitops.weave.works/gitopsclusters", "get list watch")]),
    (
        "components/hooks",
        "ClusterRole",
        &[
            ("allclear.dev/pipelines", "patch"),
            ("allclear.dev/repos", "patch"),
            ("pipelines.weave.works/pipelines", "patch"),
        ],
    ),
    (
        "components/ledger-reader",
        "Role",
        &[
            ("/configmaps", "get list"),
            ("/pods", "list"),
            ("apps/deployments", "list"),
            ("coordination.k8s.io/leases/allclear-leader", "get"),
        ],
    ),
    (
        "components/pipelines",
        "ClusterRole",
        &[
            ("allclear.dev/histories", "create get update"),
            ("allclear.dev/pipelines", "get list watch"),
            ("allclear.dev/pipelines/status", "update"),
            ("allclear.dev/promotionfreezes", "get list watch"),
        ],
    ),
    ("components/reader", "ClusterRole", &READER),
    (
        "components/repo",
        "ClusterRole",
        &[
            ("allclear.dev/histories", "create get update"),
            ("allclear.dev/repos", "get list watch"),
            ("allclear.dev/repos/status", "update"),
        ],
    ),
    ("components/repo-approvals", "ClusterRole", &[("allclear.dev/repos", "approve get list patch watch")]),
    ("components/repo-destroy", "ClusterRole", &[("allclear.dev/repos", "patch")]),
    (
        "components/repo-namespace",
        "Role",
        &[("/pods", "get list watch"), ("/secrets/git", "get"), ("batch/jobs", "create delete get list patch watch")],
    ),
    ("components/secrets", "Role", &[("/secrets/eu-1", "get list watch"), ("/secrets/forge", "get list watch")]),
    (
        "overlays/weave",
        "ClusterRole",
        &[("pipelines.weave.works/pipelines", "get list watch"), ("pipelines.weave.works/pipelines/status", "update")],
    ),
    ("leaf", "ClusterRole", &LEAF),
    // Of the account of a Repo's Jobs, and not ours.
    ("repo-outputs", "Role", &[("/secrets/infra-outputs", "get patch")]),
];

/// Kinds of apps beside the Deployments of the base.
pub const APPS: [(&str, &str); 7] = [
    ("apps/daemonsets", "get list watch"),
    ("apps/statefulsets", "get list watch"),
    ("argoproj.io/applications", "get list watch"),
    ("argoproj.io/rollouts", "get list watch"),
    ("helm.toolkit.fluxcd.io/helmreleases", "get list watch"),
    ("infra.contrib.fluxcd.io/terraforms", "get list watch"),
    ("kustomize.toolkit.fluxcd.io/kustomizations", "get list watch"),
];

/// In another cluster: the same, and Deployments. No verb that writes.
pub const LEAF: [(&str, &str); 8] = {
    let [daemonsets, statefulsets, applications, rollouts, releases, terraforms, kustomizations] = APPS;
    let deployments = ("apps/deployments", "get list watch");
    [daemonsets, deployments, statefulsets, applications, rollouts, releases, terraforms, kustomizations]
};

/// What people read beside the role `view`. No verb that writes, and nothing that `view` leaves out on purpose.
pub const READER: [(&str, &str); 10] = [
    ("allclear.dev/histories", "get list watch"),
    ("allclear.dev/pipelines", "get list watch"),
    ("allclear.dev/promotionfreezes", "get list watch"),
    ("allclear.dev/repos", "get list watch"),
    ("argoproj.io/rollouts", "get list watch"),
    ("gateway.networking.k8s.io/gateways", "get list watch"),
    ("gateway.networking.k8s.io/grpcroutes", "get list watch"),
    ("gateway.networking.k8s.io/httproutes", "get list watch"),
    ("gateway.networking.k8s.io/referencegrants", "get list watch"),
    ("pipelines.weave.works/pipelines", "get list watch"),
];
