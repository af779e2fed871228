//! The installation itself, for commands: which replica holds the Lease, what Deployment there is, and how its pods are. Read with the
//! caller's own credentials, each for itself, so that what may not be read hides nothing else.
//!
//! Not for what follows from it; that is `looking::replicas`.

use std::sync::Arc;

use kube::Client;
use serde::Deserialize;

use super::lease::KubernetesLease;
use super::{decode, pods};
use crate::adapters::clock::SystemClock;
use apiserver::{Api, Collection, NAMESPACES, Resource};
use kernel::replica::lease::{Claim, Replica};
use kernel::unreadable::Unreadable;
use purge::ports::{Lease as _, PortError};
use purge::workloads::readiness::Pod;
use purge::workloads::workload::Workload;

/// What every object of ours carries, whatever the installation is called.
pub const LABEL: &str = "app.kubernetes.io/part-of=allclear";

const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments");
const PODS: Resource = Resource::new("", "v1", "pods");
const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");

/// The file of the configuration, as the manifests mount it.
const CONFIG_FILE: &str = "config.toml";

/// Where the installation is looked at.
pub struct Installation {
    api: Api,
    lease: KubernetesLease,
    /// The namespace of the ledger, in which it runs.
    pub namespace: String,
}

/// What was seen of it at one moment.
pub struct Seen {
    /// The holder of the Lease; `None` if there is no such object.
    pub lease: Result<Option<Claim>, PortError>,
    /// The Deployments of the namespace that are ours, by name.
    pub controllers: Result<Vec<Controller>, PortError>,
    pub pods: Result<Vec<Pod>, PortError>,
}

/// A Deployment of ours.
#[derive(Clone, Debug)]
pub struct Controller {
    /// As of any workload: its counts, images and what Kubernetes refuses.
    pub workload: Workload,
    /// The service account of its pods.
    pub account: String,
    /// Its arguments or its environment say that it runs dry.
    pub dry_run: bool,
    /// The ConfigMaps that it mounts.
    pub config_maps: Vec<String>,
}

impl Installation {
    /// The installation whose ledger is in this namespace. Nothing is asked yet.
    pub fn new(client: &Client, namespace: &str) -> Self {
        let nobody = Replica { pod: "allclear-command".to_owned(), boot: String::new() };
        let clock = Arc::new(SystemClock::default());
        Self {
            api: Api::new(client.clone()),
            lease: KubernetesLease::new(client.clone(), namespace, nobody, clock),
            namespace: namespace.to_owned(),
        }
    }

    /// Looks at all of it.
    pub async fn look(&self) -> Seen {
        let (lease, controllers, pods) = tokio::join!(self.lease(), self.controllers(), self.pods());
        Seen { lease, controllers, pods }
    }

    /// Looks at the Lease alone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn lease(&self) -> Result<Option<Claim>, PortError> {
        self.lease.look().await
    }

    /// The Deployments alone.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn controllers(&self) -> Result<Vec<Controller>, PortError> {
        let of = Collection::of(DEPLOYMENTS, &self.namespace);
        let mut found = self.api.all(&of, Some(LABEL), controller).await?;
        found.sort_by(|one, other| one.workload.id.cmp(&other.workload.id));
        Ok(found)
    }

    async fn pods(&self) -> Result<Vec<Pod>, PortError> {
        let of = Collection::of(PODS, &self.namespace);
        let mut found: Vec<Pod> = self.api.all(&of, Some(LABEL), |json| pods::pod(json).map(|(_, pod)| pod)).await?;
        found.retain(|pod| !pod.finished);
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Whether a namespace exists, as far as the caller may see that; `None` where not.
    pub async fn has_namespace(&self, name: &str) -> Option<bool> {
        self.api.get(&Collection::everywhere(NAMESPACES), name).await.ok().map(|found| found.is_some())
    }

    /// The configuration that a ConfigMap holds for the controller; `None` where it holds none, or is gone.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn file(&self, config_map: &str) -> Result<Option<String>, PortError> {
        let found = self.api.get(&Collection::of(CONFIG_MAPS, &self.namespace), config_map).await?;
        let map = found.map(|answer| answer.json::<RawMap>()).transpose()?;
        Ok(map.and_then(|map| map.data?.remove(CONFIG_FILE)))
    }
}

#[derive(Deserialize)]
struct RawMap {
    data: Option<std::collections::BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    template: RawTemplate,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTemplate {
    spec: RawPods,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawPods {
    service_account_name: Option<String>,
    containers: Vec<RawContainer>,
    volumes: Option<Vec<RawVolume>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawContainer {
    args: Option<Vec<String>>,
    env: Option<Vec<RawVariable>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawVariable {
    name: String,
    value: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawVolume {
    config_map: Option<RawName>,
    projected: Option<RawProjected>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawProjected {
    sources: Option<Vec<RawVolume>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawName {
    name: Option<String>,
}

fn controller(json: &str) -> Result<Controller, Unreadable> {
    let workload = decode::deployment(json)?;
    let Raw { spec } = serde_json::from_str(json)?;
    let RawPods { service_account_name, containers, volumes } = spec.template.spec;
    let is_dry = |container: &RawContainer| {
        let by_flag = container.args.iter().flatten().any(|word| word == "--dry-run");
        let is_set = |variable: &RawVariable| {
            let value = variable.value.as_deref().unwrap_or_default();
            variable.name == crate::config::name_of("dry_run") && value.trim().eq_ignore_ascii_case("true")
        };
        by_flag || container.env.iter().flatten().any(is_set)
    };
    let sources = volumes.into_iter().flatten().flat_map(|volume| {
        let RawVolume { config_map, projected } = volume;
        let within = projected.and_then(|projected| projected.sources).into_iter().flatten();
        config_map.into_iter().chain(within.filter_map(|source| source.config_map)).filter_map(|map| map.name)
    });
    Ok(Controller {
        workload,
        // A pod without one has its namespace's own (https://kubernetes.io/docs/concepts/security/service-accounts/).
        account: service_account_name.filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned()),
        dry_run: containers.iter().any(is_dry),
        config_maps: sources.collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value) -> Controller {
        let object = json!({
            "metadata": {"namespace": "allclear", "name": "allclear", "uid": "u"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": {"spec": spec}},
        });
        controller(&object.to_string()).unwrap()
    }

    #[test]
    fn account_configuration_and_dry_run_are_found() {
        let container =
            |args: Value, env: Value| json!({"name": "allclear", "image": "allclear:1", "args": args, "env": env});
        let plain = read(json!({
            "serviceAccountName": "allclear-b",
            "containers": [container(json!(["run"]), json!([{"name": "POD_NAME", "valueFrom": {}}]))],
            "volumes": [{"name": "config", "projected": {"sources": [
                {"configMap": {"name": "allclear-config-x7"}}, {"secret": {"name": "allclear-webhooks"}},
            ]}}, {"name": "tmp", "emptyDir": {}}],
        }));
        assert_eq!((plain.account.as_str(), plain.dry_run), ("allclear-b", false));
        assert_eq!(plain.config_maps, ["allclear-config-x7"]);
        assert!(read(json!({"containers": [container(json!(["run", "--dry-run"]), Value::Null)]})).dry_run);
        let variable = json!([{"name": "ALLCLEAR__DRY_RUN", "value": "True"}]);
        let by_variable = read(json!({"containers": [container(Value::Null, variable)]}));
        assert_eq!((by_variable.account.as_str(), by_variable.dry_run), ("default", true));
    }
}
