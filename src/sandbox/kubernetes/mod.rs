//! A Kubernetes API in memory, and the controllers of workloads to go with it: for `demo`, tests and benches.
//!
//! The API half (`api`, `read`, `write`, `watch`, `store`) keeps the rules of a real server that a watching controller
//! rests on: one counter of versions, consistent paging, watches that resume or fail with 410, optimistic locking,
//! status as a subresource, generations. The same list of checks runs against it and against a real server
//! (`tests/adapter/kubernetes_conformance.rs`). The controller half (`controller`) makes workloads roll out, step by
//! step for tests and by itself for the demo ([`KubernetesStandIn::run_controller`]).
//!
//! Time is tokio's clock since the stand-in was made, plus what [`KubernetesStandIn::skip`] added: the controllers
//! stand still where the runtime that drives them is paused. The server has a runtime of its own, which never is.
//!
//! What it is not: no authentication, no admission webhooks, no schemas but those of our own kinds (`definition`), no field ownership, no
//! logs. A request that needs one of these is refused or behaves as in a cluster without. Everything is allowed but what
//! [`KubernetesStandIn::forbid`] names. Of kubectl, `get`, `describe`, `apply`, `set image` and `rollout status|undo` work
//! (`tests/adapter/kubectl.rs`).

mod access;
mod api;
mod body;
mod controller;
mod core_events;
mod defaults;
mod definition;
mod discovery;
mod failure;
mod jobs;
mod object;
mod patch;
mod read;
mod resource;
mod selector;
mod steps;
mod store;
mod table;
mod watch;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch as channel;
use tokio::time::Instant;

pub use access::Forbidden;
pub use controller::{ContainerRun, End, Node, Outcome, PodFate, Script, Timings};
pub use failure::Failure;
pub use resource::Kind;

use crate::http::{Reply, Request, Server, StandIn};
use controller::Controller;
use object::{Key, Object, text};
use resource::GATEWAY_GROUP;
use selector::Selector;
pub use store::Backup;
use store::{Scope, Store};
use watch::Closing;
use write::{Part, PatchForm, Writer};

/// How many changes of each kind are remembered; who lags further behind gets 410. A change of a Deployment holds about 2 KiB, so this is at
/// most 40 MiB per kind. It covers a burst of one write to each of 10,000 objects twice over.
const CHANGES_MAX: usize = 20_000;

/// How a watch learns that its resourceVersion is too old. Real servers do both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiredForm {
    /// HTTP 200 and one ERROR event: what kube-apiserver 1.36 was seen to do.
    Event,
    /// HTTP 410.
    Http,
}

/// How a stand-in behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the cluster. UIDs are derived from it: two stand-ins that are to be two clusters need two names.
    pub cluster: String,
    /// How long the controllers take; [`KubernetesStandIn::set_timings`] changes it later.
    pub timings: Timings,
}

impl Default for Options {
    fn default() -> Options {
        Options { cluster: "stand-in".to_owned(), timings: Timings::IMMEDIATE }
    }
}

/// A cluster's API. A handle: clones share the cluster.
#[derive(Clone, Debug)]
pub struct KubernetesStandIn {
    inner: Arc<Inner>,
    /// What is written through this handle is thrown away: `dryRun=All`.
    dry: bool,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    store: Arc<Store>,
    /// The groups of the CustomResourceDefinitions that are installed.
    crds: Mutex<BTreeSet<&'static str>>,
    expired_form: Mutex<ExpiredForm>,
    forbidden: Mutex<Vec<Forbidden>>,
    writes: AtomicU64,
    closing: channel::Sender<Closing>,
    made_at: (jiff::Timestamp, Instant),
    skipped: Mutex<Duration>,
    controller: Mutex<Controller>,
}

impl KubernetesStandIn {
    /// A cluster with the four namespaces every cluster has and nothing in them.
    pub fn new(options: Options) -> KubernetesStandIn {
        let stand_in = KubernetesStandIn {
            inner: Arc::new(Inner {
                store: Arc::new(Store::new(CHANGES_MAX)),
                crds: Mutex::new(BTreeSet::from([GATEWAY_GROUP])),
                expired_form: Mutex::new(ExpiredForm::Event),
                forbidden: Mutex::default(),
                writes: AtomicU64::new(0),
                closing: channel::Sender::new(Closing::default()),
                made_at: (jiff::Timestamp::now(), Instant::now()),
                skipped: Mutex::new(Duration::ZERO),
                controller: Mutex::new(Controller::new(options.timings)),
                options,
            }),
            dry: false,
        };
        for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            stand_in.ensure_namespace(namespace);
        }
        stand_in
    }

    /// Serves the cluster on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(&self) -> io::Result<Server> {
        Server::start(Arc::new(self.clone())).await
    }

    /// A kubeconfig (JSON, so also YAML) whose only context is this cluster as `server` serves it.
    pub fn kubeconfig(&self, server: &Server) -> String {
        self.kubeconfig_at(&server.url())
    }

    /// The same for a client that reaches the server at this URL.
    pub fn kubeconfig_at(&self, url: &str) -> String {
        let name = &self.inner.options.cluster;
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name, "preferences": {},
            "clusters": [{"name": name, "cluster": {"server": url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        })
        .to_string()
    }

    /// The only user, as the kubeconfig names it.
    pub fn user(&self) -> &str {
        &self.inner.options.cluster
    }

    /// Creates or merges an object, by the rules of the API; `status`, if given, is written too. The namespace is made
    /// if need be. Returns the object as stored.
    ///
    /// # Errors
    /// What the API would answer; 404 for a kind that is not served.
    pub fn apply(&self, object: Value) -> Result<Value, Failure> {
        let kind = Kind::of(&object).ok_or_else(Failure::no_such_resource)?;
        let key = self.key_of(kind, &object);
        let status = object.get("status").cloned();
        let applied = self.write(|writer| {
            let (written, _) = writer.patch(kind, &key, PatchForm::Apply, &object, Part::Main)?;
            match status {
                Some(status) => {
                    let change = json!({"status": status});
                    Ok(writer.patch(kind, &key, PatchForm::Merge, &change, Part::Status)?.0)
                }
                None => Ok(written),
            }
        })?;
        Ok(applied.value())
    }

    /// Stores an object exactly as given, whatever the rules say: any status, any generation, unknown fields, missing
    /// ones. Only a missing UID, creation time and generation are filled in. Returns the object as stored.
    ///
    /// # Errors
    /// 404 for a kind that is not served, 422 for an object without a name.
    pub fn put(&self, object: Value) -> Result<Value, Failure> {
        let kind = Kind::of(&object).ok_or_else(Failure::no_such_resource)?;
        let key = self.key_of(kind, &object);
        if key.name.is_empty() {
            return Err(Failure::invalid(kind, "", "metadata.name", "FieldValueRequired", "Required value"));
        }
        Ok(self.write(|writer| Ok(writer.put_raw(kind, object)))?.value())
    }

    /// Changes an object by a JSON merge patch, or its status if the patch is of `status` alone.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn patch(&self, kind: Kind, namespace: &str, name: &str, change: &Value) -> Result<Value, Failure> {
        let of_status = change.as_object().is_some_and(|fields| fields.keys().all(|field| field == "status"));
        let part = if of_status { Part::Status } else { Part::Main };
        let key = Key::new(namespace, name);
        Ok(self.write(|writer| writer.patch(kind, &key, PatchForm::Merge, change, part))?.0.value())
    }

    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.get_object(kind, &Key::new(namespace, name)).map(|object| object.value())
    }

    /// All objects of a kind in a namespace, or in all when it is empty.
    pub fn list(&self, kind: Kind, namespace: &str) -> Vec<Value> {
        let scope = Scope { kind, namespace: namespace.to_owned(), selector: Selector::default() };
        self.store().lock().list(&scope).iter().map(|object| object.value()).collect()
    }

    /// Deletes an object as a client would; pods that run end gracefully when the controller gets to them.
    ///
    /// # Errors
    /// 404 when it is not there.
    pub fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<(), Failure> {
        let key = Key::new(namespace, name);
        self.write(|writer| writer.delete(kind, &key, &Default::default())).map(drop)
    }

    /// Creates a Deployment of one container, called like it, with label `app`; or gives an existing one this image and
    /// number of replicas. Nothing runs until the controller is stepped.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn deploy(&self, namespace: &str, name: &str, image: &str, replicas: u32) -> Result<Value, Failure> {
        self.apply(deployment(namespace, name, image, replicas))
    }

    /// The same without a progress deadline, so that `rollout.timeout` alone says how long a rollout may take, and a test or
    /// the demo need not wait ten minutes.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn deploy_undated(&self, namespace: &str, name: &str, image: &str, replicas: u32) -> Result<Value, Failure> {
        let mut deployment = deployment(namespace, name, image, replicas);
        if let Some(spec) = deployment.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("progressDeadlineSeconds".to_owned(), json!(controller::NO_DEADLINE));
        }
        self.apply(deployment)
    }

    /// Like [`KubernetesStandIn::deploy`], and rolled out already: the status says so, but there are no ReplicaSet and
    /// no pods, and the controller leaves it alone until its generation changes. For filling a cluster with thousands.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn seed(&self, namespace: &str, name: &str, image: &str, replicas: u32) -> Result<Value, Failure> {
        let deployment = self.deploy_undated(namespace, name, image, replicas)?;
        let now = self.stamp(self.elapsed());
        let condition = |kind: &str, reason: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason,
                "lastUpdateTime": now, "lastTransitionTime": now,
            })
        };
        let status = json!({
            "observedGeneration": deployment["metadata"]["generation"], "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [
                condition("Available", "MinimumReplicasAvailable"),
                condition("Progressing", "NewReplicaSetAvailable"),
            ],
        });
        self.patch(Kind::Deployment, namespace, name, &json!({"status": status}))
    }

    /// Changes the image of one container, as `kubectl set image` does.
    ///
    /// # Errors
    /// 404 when there is no such Deployment or container.
    pub fn set_image(&self, namespace: &str, name: &str, container: &str, image: &str) -> Result<Value, Failure> {
        let missing = || Failure::not_found(Kind::Deployment, &format!("{name}/{container}"));
        let deployment = self.get(Kind::Deployment, namespace, name).ok_or_else(missing)?;
        let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        if !containers.into_iter().flatten().any(|present| text(present, "/name") == container) {
            return Err(missing());
        }
        let change = json!({"spec": {"template": {"spec": {"containers": [{"name": container, "image": image}]}}}});
        let key = Key::new(namespace, name);
        let patch =
            |writer: &mut Writer<'_>| writer.patch(Kind::Deployment, &key, PatchForm::Strategic, &change, Part::Main);
        Ok(self.write(patch)?.0.value())
    }

    /// Makes a Deployment reachable at `host`: a Service that selects `app: name` and an Ingress to it, both called
    /// `name`.
    ///
    /// # Errors
    /// What the API would answer.
    pub fn expose(&self, namespace: &str, name: &str, host: &str) -> Result<(), Failure> {
        let metadata = json!({"namespace": namespace, "name": name});
        self.apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }))?;
        let backend = json!({"service": {"name": name, "port": {"number": 80}}});
        self.apply(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata,
            "spec": {"rules": [{"host": host, "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": backend},
            ]}}]},
        }))?;
        Ok(())
    }

    /// Forgets all history: a watch or a paged list resumed from before gets 410. Open watches go on.
    pub fn compact(&self) {
        self.store().write(|state| state.compact());
    }

    /// Ends every open watch, quietly as on a time-out.
    pub fn close_watches(&self) {
        self.close(false);
    }

    /// Ends every open watch with an ERROR event of code 410, and forgets all history.
    pub fn expire_watches(&self) {
        self.compact();
        self.close(true);
    }

    /// A backup of everything, as a snapshot of etcd.
    pub fn backup(&self) -> Backup {
        self.store().lock().backup()
    }

    /// Restores a backup, as an operator does: the API server is stopped meanwhile, so every open watch ends. A client that
    /// watches on from a version above the restored one gets only bookmarks until that version is reached.
    pub fn restore(&self, backup: &Backup) {
        self.store().write(|state| state.restore(backup));
        self.close_watches();
    }

    /// Installs or removes the Gateway API.
    pub fn set_gateway_api(&self, installed: bool) {
        self.set_installed(GATEWAY_GROUP, installed);
    }

    /// Installs or removes the CustomResourceDefinitions of a group. Of those that are known only the Gateway API's are installed
    /// in a new stand-in.
    pub fn set_installed(&self, group: &'static str, installed: bool) {
        let mut crds = self.inner.crds.lock().unwrap_or_else(PoisonError::into_inner);
        if installed {
            crds.insert(group)
        } else {
            crds.remove(group)
        };
    }

    /// Chooses how a watch from an old version is refused from now on.
    pub fn set_expired_form(&self, form: ExpiredForm) {
        *self.inner.expired_form.lock().unwrap_or_else(PoisonError::into_inner) = form;
    }

    /// How many requests other than GET have come in, refused ones included. Calls of this Rust API do not count.
    pub fn writes(&self) -> u64 {
        self.inner.writes.load(Ordering::Relaxed)
    }

    /// The version of the newest write.
    pub fn version(&self) -> u64 {
        self.store().lock().version()
    }

    /// Moves the cluster's clock forward.
    pub fn skip(&self, time: Duration) {
        *self.inner.skipped.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }

    /// The time in the cluster, since it was made.
    fn elapsed(&self) -> Duration {
        self.inner.made_at.1.elapsed() + *self.inner.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A time in the cluster, as objects carry it: RFC 3339 in whole seconds.
    fn stamp(&self, elapsed: Duration) -> String {
        self.time(elapsed).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn time(&self, elapsed: Duration) -> jiff::Timestamp {
        self.inner.made_at.0.checked_add(elapsed).unwrap_or(self.inner.made_at.0)
    }

    fn ensure_namespace(&self, name: &str) {
        if name.is_empty() || self.get_object(Kind::Namespace, &Key::new("", name)).is_some() {
            return;
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        // Another caller may have been faster, which is as good.
        let _ = self.write(|writer| writer.create(Kind::Namespace, "", namespace));
    }

    /// Where an object given to this API goes; makes the namespace.
    fn key_of(&self, kind: Kind, object: &Value) -> Key {
        let namespace = if kind.describe().namespaced { text(object, "/metadata/namespace") } else { "" };
        self.ensure_namespace(namespace);
        Key::new(namespace, text(object, "/metadata/name"))
    }

    fn close(&self, expired: bool) {
        self.inner.closing.send_modify(|order| *order = Closing { round: order.round + 1, expired });
    }

    /// Runs `write` under the lock.
    fn write<T>(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let now = self.stamp(self.elapsed());
        let cluster = &self.inner.options.cluster;
        if self.dry {
            let mut thrown_away = self.store().lock().clone();
            return write(&mut Writer { state: &mut thrown_away, now, cluster });
        }
        self.store().write(|state| write(&mut Writer { state, now, cluster }))
    }

    fn store(&self) -> &Arc<Store> {
        &self.inner.store
    }

    fn get_object(&self, kind: Kind, key: &Key) -> Option<Arc<Object>> {
        self.store().lock().get(kind, key)
    }

    fn count_write(&self) {
        self.inner.writes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether objects of this group are served, if they come from a CustomResourceDefinition.
    fn is_installed(&self, group: &str) -> bool {
        self.inner.crds.lock().unwrap_or_else(PoisonError::into_inner).contains(group)
    }

    fn expired_form(&self) -> ExpiredForm {
        *self.inner.expired_form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closing(&self) -> channel::Receiver<Closing> {
        let mut closing = self.inner.closing.subscribe();
        closing.mark_unchanged();
        closing
    }
}

impl StandIn for KubernetesStandIn {
    fn answer(&self, request: &Request) -> Reply {
        api::answer(self, request)
    }
}

/// A Deployment of one container, called like it, with label `app`.
fn deployment(namespace: &str, name: &str, image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": image, "ports": [{"containerPort": 8080}]}]},
            },
        },
    })
}
