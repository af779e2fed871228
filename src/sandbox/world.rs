//! A whole small world on the loopback: a cluster with its controllers, a CDN and a webhook receiver, and what a controller
//! needs to live in it. The demo runs in it, and so do the tests of the whole program.
//!
//! Not for faults; those are injected into the three servers it holds.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::sandbox::cloudfront::{self, CloudFrontStandIn};
use crate::sandbox::http::Server;
use crate::sandbox::kubernetes::{self, KubernetesStandIn, Timings};
use crate::sandbox::receiver::Receiver;

/// The credentials every stand-in accepts.
pub const ACCESS_KEY_ID: &str = "AKIASANDBOX";

/// Their secret half.
pub const SECRET_ACCESS_KEY: &str = "sandbox";

/// The world. Dropping it ends its servers and removes its files.
pub struct World {
    /// The cluster.
    pub kubernetes: KubernetesStandIn,
    /// Its API server.
    pub api: Server,
    /// The CDN.
    pub cloudfront: Arc<CloudFrontStandIn>,
    /// Its API.
    pub cdn: Server,
    /// The webhook receiver.
    pub receiver: Arc<Receiver>,
    /// Its server.
    pub hook: Server,
    files: PathBuf,
}

impl World {
    /// Makes a world: a cluster of these timings, and invalidations that complete after this time.
    ///
    /// # Errors
    /// When a port or a file cannot be had.
    pub async fn new(timings: Timings, completes_after: Option<Duration>) -> io::Result<Self> {
        let kubernetes = KubernetesStandIn::new(kubernetes::Options { timings, ..kubernetes::Options::default() });
        let api = kubernetes.start().await?;
        let options = cloudfront::Options { completes_after, ..cloudfront::Options::default() };
        let cloudfront = Arc::new(CloudFrontStandIn::new(options));
        let cdn = Server::start(cloudfront.clone()).await?;
        let receiver = Arc::new(Receiver::new());
        let hook = Server::start(receiver.clone()).await?;
        let files = files()?;
        std::fs::write(files.join("kubeconfig"), kubernetes.kubeconfig(&api))?;
        let world = Self { kubernetes, api, cloudfront, cdn, receiver, hook, files };
        world.subscribe(&json!([]))?;
        Ok(world)
    }

    /// A workload with a site and a distribution that serves it: the `Deployment`, `Service` and `Ingress` of `name` in
    /// `namespace`, reached by `host`, and `distribution` with that alias.
    ///
    /// # Errors
    /// When the cluster refuses it, in words.
    pub fn add_site(&self, namespace: &str, name: &str, image: &str, host: &str, distribution: &str) -> io::Result<()> {
        let refused = |failure| io::Error::other(format!("{failure:?}"));
        self.kubernetes.deploy(namespace, name, image, 3).map_err(refused)?;
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

    /// The kubeconfig; real `kubectl` understands it too.
    pub fn kubeconfig(&self) -> PathBuf {
        self.files.join("kubeconfig")
    }

    /// What a shell needs before a command that asks about this world, as assignments.
    pub fn settings_for_questions(&self) -> String {
        let wanted = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "ALLCLEAR__CLOUDFRONT__ENDPOINT",
            "ALLCLEAR__LEDGER__NAMESPACE",
        ];
        let environment = self.environment();
        let assignments = environment.iter().filter(|(name, _)| wanted.contains(&name.as_str()));
        assignments.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// The environment a controller of this world is started with: names and values.
    pub fn environment(&self) -> Vec<(String, String)> {
        let webhooks = self.files.join("webhooks.json");
        let pairs = [
            ("KUBECONFIG", self.kubeconfig().display().to_string()),
            ("NAMESPACE", "*".to_owned()),
            ("WEBHOOKS_CONFIG", webhooks.display().to_string()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("ALLCLEAR__CLOUDFRONT__ENDPOINT", self.cdn.url()),
            ("ALLCLEAR__HTTP__LISTEN", "127.0.0.1:0".to_owned()),
            ("ALLCLEAR__LEDGER__NAMESPACE", "default".to_owned()),
            // One replica at a time; a test of several asks for the lease.
            ("ALLCLEAR__LEADER__LEASE", "false".to_owned()),
            ("ALLCLEAR__PURGE__POLL_FIRST", "300ms".to_owned()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The system empties its temporary directory too; leaving something there is no failure.
        let _ = std::fs::remove_dir_all(&self.files);
    }
}

/// A directory of our own that did not exist before.
fn files() -> io::Result<PathBuf> {
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
