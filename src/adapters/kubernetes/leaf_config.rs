//! Finds the kubeconfig of a leaf and follows it: a Secret, or a GitopsCluster that names one. Both are watched by their names, for
//! which a right to that one object is enough.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources>
//!
//! Not for what a kubeconfig may say; that is `kubeconfig`'s.

use futures_util::stream::unfold;
use serde::Deserialize;

use super::followed::Followed;
use super::parts::Condition;
use super::secrets::{self, SECRETS};
use apiserver::{Collection, Resource, Watches};
use kernel::unreadable::Unreadable;
use objects::apps::app::{LeafId, LeafKind};
use purge::ports::{Flow, PortError};

const GITOPS_CLUSTERS: Resource = Resource::new("gitops.weave.works", "v1alpha1", "gitopsclusters");

/// Under which key of a Secret a kubeconfig is, in this order: upstream's own, Cluster API's, and that of Flux.
const KEYS: [&str; 3] = ["kubeconfig", "value", "value.yaml"];

/// A kubeconfig as it stands in a Secret. It holds credentials, so it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Kubeconfig(pub Vec<u8>);

/// Where the search stands; each is said when it changes.
pub(super) type Finding = Result<Kubeconfig, PortError>;

/// Follows the kubeconfig of a leaf, for ever.
pub(super) fn follow(watches: Watches, leaf: LeafId) -> Flow<Finding> {
    let secret = match leaf.kind {
        LeafKind::Secret => Some(followed(&watches, &leaf.namespace, &leaf.name)),
        LeafKind::GitopsCluster => None,
    };
    let cluster = match leaf.kind {
        LeafKind::Secret => None,
        LeafKind::GitopsCluster => {
            let of = Collection::of(GITOPS_CLUSTERS, &leaf.namespace).only(&leaf.name);
            let not_found = format!("GitopsCluster.gitops.weave.works \"{}\" not found", leaf.name);
            Some(Followed::new(&watches, of, gitops_cluster, not_found))
        }
    };
    let search = Search { watches, leaf, cluster, secret, named: None, said: None };
    Box::pin(unfold(search, |mut search| async move {
        loop {
            let finding = search.next().await?;
            if search.said.as_ref() != Some(&finding) {
                search.said = Some(finding.clone());
                return Some((finding, search));
            }
        }
    }))
}

struct Search {
    watches: Watches,
    leaf: LeafId,
    cluster: Option<Followed<Named>>,
    secret: Option<Followed<Kubeconfig>>,
    /// The Secret that the cluster names now.
    named: Option<String>,
    said: Option<Finding>,
}

impl Search {
    async fn next(&mut self) -> Option<Finding> {
        loop {
            let (cluster, secret) = (self.cluster.as_mut(), self.secret.as_mut());
            tokio::select! {
                named = next_of(cluster) => {
                    let secret = match named? {
                        Ok(Named { ready: true, secret: Some(secret) }) => Ok(secret),
                        Ok(Named { .. }) => Err(self.not_ready()),
                        Err(error) => Err(error),
                    };
                    match secret {
                        Ok(secret) if self.named.as_ref() == Some(&secret) => {}
                        Ok(secret) => {
                            self.secret = Some(followed(&self.watches, &self.leaf.namespace, &secret));
                            self.named = Some(secret);
                        }
                        Err(error) => {
                            (self.secret, self.named) = (None, None);
                            return Some(Err(error));
                        }
                    }
                }
                found = next_of(secret) => return found.map(|found| found.map_err(secrets::advised)),
            }
        }
    }

    /// In the words that users of `pipelines.weave.works` look for.
    fn not_ready(&self) -> PortError {
        PortError::passing(format!("Target cluster '{}' not ready", self.leaf), "see its conditions")
    }
}

async fn next_of<T: Clone + Send + 'static>(followed: Option<&mut Followed<T>>) -> Option<Result<T, PortError>> {
    match followed {
        Some(followed) => followed.next().await,
        None => std::future::pending().await,
    }
}

fn followed(watches: &Watches, namespace: &str, name: &str) -> Followed<Kubeconfig> {
    let of = Collection::of(SECRETS, namespace).only(name);
    Followed::new(watches, of, secret, format!("secrets \"{name}\" not found"))
}

/// Reads the kubeconfig of a Secret. Why it cannot be read never repeats any of it.
fn secret(json: &str) -> Result<Kubeconfig, Unreadable> {
    let data = secrets::data(json)?;
    let found = KEYS.iter().find_map(|key| Some((key, data.get(*key)?)));
    let none = || Unreadable::because(format!("it has none of the keys {}", KEYS.join(", ")));
    let (key, value) = found.ok_or_else(none)?;
    secrets::decoded(key, value).map(Kubeconfig)
}

/// Which Secret a GitopsCluster names, and whether it is to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    ready: bool,
    secret: Option<String>,
}

/// <https://github.com/weaveworks/cluster-controller/blob/main/api/v1alpha1/gitopscluster_types.go>
fn gitops_cluster(json: &str) -> Result<Named, Unreadable> {
    #[derive(Deserialize)]
    struct Cluster {
        spec: Option<Spec>,
        status: Option<Status>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        secret_ref: Option<Reference>,
        capi_cluster_ref: Option<Reference>,
    }
    #[derive(Deserialize)]
    struct Reference {
        name: String,
    }
    #[derive(Deserialize)]
    struct Status {
        conditions: Option<Vec<Condition>>,
    }
    let Cluster { spec, status } = serde_json::from_str(json)?;
    let Spec { secret_ref, capi_cluster_ref } = spec.unwrap_or_default();
    let of_capi = capi_cluster_ref.map(|cluster| format!("{}-kubeconfig", cluster.name));
    let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
    Ok(Named {
        ready: conditions.iter().any(|condition| condition.kind == "Ready" && condition.holds()),
        secret: secret_ref.map(|secret| secret.name).or(of_capi),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kubeconfig_is_under_the_first_of_three_keys() {
        let of = |data: serde_json::Value| secret(&json!({"data": data}).to_string()).map(|found| found.0);
        assert_eq!(of(json!({"value.yaml": "Yw==", "value": "Yg==", "kubeconfig": "YQ=="})), Ok(b"a".to_vec()));
        assert_eq!(of(json!({"value.yaml": "Yw==", "value": "Yg=="})), Ok(b"b".to_vec()));
        assert_eq!(of(json!({"value.yaml": "Yw=="})), Ok(b"c".to_vec()));
        let none = of(json!({"token": "Yw=="})).unwrap_err();
        assert_eq!(none.to_string(), "it has none of the keys kubeconfig, value, value.yaml");
        for data in [json!({"value": "s3cr3t!"}), json!({"value": {"s3cr3t": 1}}), json!("s3cr3t")] {
            assert!(!of(data).unwrap_err().to_string().contains("s3cr3t"));
        }
    }

    #[test]
    fn a_gitops_cluster_names_its_secret_itself_or_by_its_capi_cluster() {
        let of = |spec: serde_json::Value, ready: &str| {
            let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
            gitops_cluster(&json!({"spec": spec, "status": status}).to_string()).unwrap()
        };
        let named = |name: &str, ready| Named { ready, secret: Some(name.to_owned()) };
        assert_eq!(of(json!({"secretRef": {"name": "eu"}}), "True"), named("eu", true));
        assert_eq!(of(json!({"capiClusterRef": {"name": "eu"}}), "False"), named("eu-kubeconfig", false));
        assert_eq!(gitops_cluster("{}"), Ok(Named { ready: false, secret: None }));
    }
}
