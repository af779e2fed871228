//! A whole small world on the loopback: a cluster with its controllers, a CDN and a webhook receiver, and what a controller
//! needs to live in it. The demo runs in it, and so do the tests of the whole program.
//!
//! Worlds of one group share what is [`Outside`] of all clusters; see [`super::group`]. Not for faults; those are injected
//! into the three servers it holds.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::cloudfront::{self, CloudFrontStandIn};
use crate::http::Server;
use crate::kubernetes::{self, KubernetesStandIn, Timings};
use crate::receiver::Receiver;
use purge::ports::Board;

/// Begins the access key id of every controller; the name of its cluster follows, so that CloudFront's stand-in knows callers
/// apart. Every stand-in accepts it.
const ACCESS_KEY_ID: &str = "AKIASANDBOX";

const SECRET_ACCESS_KEY: &str = "sandbox-secret-key-that-no-log-may-show";

/// The cluster of a world that is alone.
const ALONE: &str = "stand-in";

/// The systems outside of all clusters: the CDN, and the receiver of notices. A handle.
#[derive(Clone)]
pub struct Outside {
    pub cloudfront: Arc<CloudFrontStandIn>,
    pub cdn: Arc<Server>,
    pub receiver: Arc<Receiver>,
    pub hook: Arc<Server>,
}

impl Outside {
    /// A CDN whose invalidations complete after this time (`None`: only on demand), and a receiver that takes
    /// everything.
    ///
    /// # Errors
    /// When a port cannot be had.
    pub async fn new(completes_after: Option<Duration>) -> io::Result<Self> {
        let options = cloudfront::Options { completes_after, ..cloudfront::Options::default() };
        let cloudfront = Arc::new(CloudFrontStandIn::new(options));
        let cdn = Arc::new(Server::start(cloudfront.clone()).await?);
        let receiver = Arc::new(Receiver::new());
        let hook = Arc::new(Server::start(receiver.clone()).await?);
        Ok(Self { cloudfront, cdn, receiver, hook })
    }
}

/// The world. Dropping it ends its servers and removes its files.
pub struct World {
    /// The name of its cluster.
    pub name: String,
    pub kubernetes: KubernetesStandIn,
    pub api: Server,
    pub cloudfront: Arc<CloudFrontStandIn>,
    pub cdn: Arc<Server>,
    pub receiver: Arc<Receiver>,
    pub hook: Arc<Server>,
    /// Boards that controllers of this process use instead of Redis; none for those that are configured.
    pub boards: Vec<Arc<dyn Board>>,
    files: PathBuf,
    /// A controller's other settings here.
    settings: BTreeMap<String, String>,
}

impl World {
    /// Makes a world: a cluster of these timings, and invalidations that complete after this time.
    ///
    /// # Errors
    /// When a port or a file cannot be had.
    pub async fn new(timings: Timings, completes_after: Option<Duration>) -> io::Result<Self> {
        Self::beside(ALONE, timings, Outside::new(completes_after).await?).await
    }

    /// Makes a world around another cluster, of this name, with the same outside.
    ///
    /// # Errors
    /// When a port or a file cannot be had.
    pub async fn beside(name: &str, timings: Timings, outside: Outside) -> io::Result<Self> {
        let cluster = name.to_owned();
        let kubernetes = KubernetesStandIn::new(kubernetes::Options { cluster, timings });
        let api = kubernetes.start().await?;
        let Outside { cloudfront, cdn, receiver, hook } = outside;
        let files = directory()?;
        std::fs::write(files.join("kubeconfig"), kubernetes.kubeconfig(&api))?;
        let (boards, settings) = (Vec::new(), BTreeMap::new());
        let world =
            Self { name: name.to_owned(), kubernetes, api, cloudfront, cdn, receiver, hook, boards, files, settings };
        world.subscribe(&json!([]))?;
        Ok(world)
    }

    /// Clients that read the kubeconfig from now on reach the API server at this address: a line to it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn reach_at(&self, address: SocketAddr) -> io::Result<()> {
        std::fs::write(self.kubeconfig(), self.kubernetes.kubeconfig_at(&format!("http://{address}")))
    }

    /// Tells every controller that is started here from now on something more: a variable of its environment.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.settings.insert(name.to_owned(), value.into());
    }

    /// The access key id of the controllers of this world.
    pub fn access_key_id(&self) -> String {
        format!("{ACCESS_KEY_ID}-{}", self.name)
    }

    pub fn secret_access_key(&self) -> String {
        SECRET_ACCESS_KEY.to_owned()
    }

    /// A workload with a site and a distribution that serves it: the `Deployment`, `Service` and `Ingress` of `name` in
    /// `namespace`, reached by `host`, and `distribution` with that alias.
    ///
    /// # Errors
    /// When the cluster refuses it, in words.
    pub fn add_site(&self, namespace: &str, name: &str, image: &str, host: &str, distribution: &str) -> io::Result<()> {
        let refused = |failure| io::Error::other(format!("{failure:?}"));
        self.kubernetes.deploy_undated(namespace, name, image, 3).map_err(refused)?;
        self.kubernetes.expose(namespace, name, host).map_err(refused)?;
        let origin = "ingress.example.com";
        self.cloudfront.add_distribution(cloudfront::Distribution::new(distribution).alias(host).origin(origin));
        Ok(())
    }

    /// Writes the webhook file: a list of hooks in the form of `WEBHOOKS_CONFIG`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn subscribe(&self, hooks: &serde_json::Value) -> io::Result<()> {
        std::fs::write(self.files.join("webhooks.json"), json!({ "webhooks": hooks }).to_string())
    }

    /// Where its files are. All that is there goes with this world.
    pub fn directory(&self) -> &Path {
        &self.files
    }

    /// The kubeconfig; real `kubectl` understands it too.
    pub fn kubeconfig(&self) -> PathBuf {
        self.files.join("kubeconfig")
    }

    /// Leaves a small file of settings for a shell: with it, `allclear` and `kubectl` ask this world. Its path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn leave_settings(&self) -> io::Result<PathBuf> {
        let wanted = [
            "KUBECONFIG",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "ALLCLEAR__CLOUDFRONT__ENDPOINT",
            "ALLCLEAR__LEDGER__NAMESPACE",
            "WEBHOOKS_CONFIG",
        ];
        let environment = self.environment();
        let assignments = environment.iter().filter(|(name, _)| wanted.contains(&name.as_str()));
        let lines: String = assignments.map(|(name, value)| format!("export {name}='{value}'\n")).collect();
        let path = self.files.join("env");
        std::fs::write(&path, lines)?;
        Ok(path)
    }

    /// The environment a controller of this world is started with: names and values.
    pub fn environment(&self) -> Vec<(String, String)> {
        let webhooks = self.files.join("webhooks.json");
        let pairs = [
            ("KUBECONFIG", self.kubeconfig().display().to_string()),
            ("NAMESPACE", "*".to_owned()),
            ("WEBHOOKS_CONFIG", webhooks.display().to_string()),
            ("AWS_ACCESS_KEY_ID", self.access_key_id()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_access_key()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("ALLCLEAR__CLOUDFRONT__ENDPOINT", self.cdn.url()),
            ("ALLCLEAR__HTTP__LISTEN", "127.0.0.1:0".to_owned()),
            ("ALLCLEAR__HTTP__PAGE", "127.0.0.1:0".to_owned()),
            ("ALLCLEAR__LEDGER__NAMESPACE", "default".to_owned()),
            // One replica at a time; a test of several asks for the lease.
            ("ALLCLEAR__LEADER__LEASE", "false".to_owned()),
            ("ALLCLEAR__PURGE__POLL_FIRST", "300ms".to_owned()),
            // Nothing is between a pod that has ended and its clients: no kube-proxy, no load balancer.
            ("ALLCLEAR__ROLLOUT__SETTLE", "300ms".to_owned()),
        ];
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value));
        pairs.chain(self.settings.clone()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        remove(&self.files);
    }
}

/// Removes a directory of ours. A program that a stand-in still runs, such as git, may make a file in it meanwhile, so what fails is tried
/// again, for a second at most. The system empties its temporary directory too: leaving something there is no failure.
pub(super) fn remove(directory: &Path) {
    for _ in 0..50 {
        match std::fs::remove_dir_all(directory) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !directory.exists() => return,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// A directory of our own that did not exist before.
pub(super) fn directory() -> io::Result<PathBuf> {
    const ATTEMPTS_MAX: u32 = 1_000;
    let parent = std::env::temp_dir();
    let candidate = |number| parent.join(format!("allclear-{}-{number}", std::process::id()));
    let make = |path: &Path| std::fs::create_dir(path);
    for number in 0..ATTEMPTS_MAX {
        let path = candidate(number);
        match make(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no name is free for a temporary directory"))
}
