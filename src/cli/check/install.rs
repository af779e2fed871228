//! What a person needs to install allclear: to make each kind of object that the manifests have, and to hold each right that they
//! grant. RBAC lets people grant only what they have themselves, unless they may escalate
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>).
//!
//! Not for anything after the installation.

use futures_util::future::join_all;

use super::catalog::{Check, INSTALL_GRANTS, INSTALL_RIGHTS};
use super::report::Finding;
use crate::adapters::kubernetes::reviews::{Reviews, Right, Whom};
use purge::ports::PortError;

/// Missing rights that are named.
const NAMED_MAX: usize = 6;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What deploy/base has in its namespace, by group and resource.
pub const IN_NAMESPACE: [(&str, &str); 7] = [
    ("", "serviceaccounts"),
    ("", "configmaps"),
    ("", "services"),
    ("apps", "deployments"),
    ("networking.k8s.io", "networkpolicies"),
    (RBAC, "roles"),
    (RBAC, "rolebindings"),
];

/// What it has in no namespace.
pub const IN_CLUSTER: [(&str, &str); 3] = [("", "namespaces"), (RBAC, "clusterroles"), (RBAC, "clusterrolebindings")];

/// Whether the caller may apply the manifests. `granted`: the rights that they grant. `crds`: they have these, too.
pub async fn install(reviews: &Reviews, namespace: &str, granted: Vec<(Check, Right)>, crds: bool) -> Vec<Finding> {
    let right = |(group, resource): (&'static str, &'static str), namespace: Option<&str>| Right {
        verb: "create",
        group,
        resource,
        name: None,
        namespace: namespace.map(str::to_owned),
    };
    let crds = crds.then_some(("apiextensions.k8s.io", "customresourcedefinitions"));
    let made = IN_NAMESPACE.map(|kind| right(kind, Some(namespace))).into_iter();
    let made = made.chain(IN_CLUSTER.into_iter().chain(crds).map(|kind| right(kind, None))).collect();
    let escalate = Right { verb: "escalate", ..right((RBAC, "clusterroles"), None) };
    let granted = granted.into_iter().map(|(_, right)| right).collect();
    let (made, granted, escalates) =
        tokio::join!(lacking(reviews, made), lacking(reviews, granted), reviews.may(&Whom::Caller, &escalate),);
    let applies = match made {
        Err(error) => INSTALL_RIGHTS.warning(format!("not told: {error}")),
        Ok(lacking) if lacking.is_empty() => INSTALL_RIGHTS.good("you may make all objects of deploy/base"),
        Ok(lacking) => INSTALL_RIGHTS
            .failed(format!("you may not {}", named(&lacking)))
            .hint("ask for them, or have deploy/ applied by a person who has them; deploy/overlays/namespaced needs no ClusterRole"),
    };
    let grants = match (granted, escalates) {
        (Ok(lacking), _) if lacking.is_empty() => INSTALL_GRANTS.good("you hold every right that the roles grant"),
        (_, Ok(true)) => INSTALL_GRANTS.good("you may grant rights that you do not hold (escalate)"),
        (Err(error), _) => INSTALL_GRANTS.warning(format!("not told: {error}")),
        (Ok(lacking), _) => INSTALL_GRANTS
            .failed(format!("Kubernetes lets you grant only rights that you hold, and you may not {}", named(&lacking)))
            .hint("have the roles of deploy/ applied by a cluster administrator"),
    };
    vec![applies, grants]
}

/// Those of these rights that the caller does not have, in words.
async fn lacking(reviews: &Reviews, rights: Vec<Right>) -> Result<Vec<String>, PortError> {
    let asked = rights.into_iter().map(|right| async move { (reviews.may(&Whom::Caller, &right).await, right) });
    let mut lacking = Vec::new();
    for (answer, right) in join_all(asked).await {
        if !answer? {
            let place = right.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            lacking.push(format!("{} {}{place}", right.verb, right.resource_name()));
        }
    }
    Ok(lacking)
}

fn named(lacking: &[String]) -> String {
    let more = lacking.len().saturating_sub(NAMED_MAX);
    let named = lacking.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
