//! The cluster and the account the controller is measured in: stand-ins in this process, over real HTTP.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use sandbox::cloudfront::Distribution;
use sandbox::http::Seen;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Timings};
use sandbox::world::World;
use serde_json::Value;
use support::fixture::{CONTAINER, deployment, image, name, namespace};

/// Deployments of a large cluster (fault row L1).
pub const DEPLOYMENTS: usize = 10_000;

/// StatefulSets beside them.
const STATEFUL_SETS: usize = 2_000;

/// All that is followed.
pub const WORKLOADS: usize = DEPLOYMENTS + STATEFUL_SETS;

/// Distributions of a large account; AWS's default quota is 200.
const DISTRIBUTIONS: usize = 500;

/// The distribution that many workloads are served by.
const SHARED: &str = "E0SHARED";

/// From one pod's readiness to the next. Long enough that the ledger's writes about the one are over by the other, as
/// they always are in a real cluster.
pub const POD_READY: Duration = Duration::from_millis(100);

/// How long a rollout settles.
const SETTLE: Duration = Duration::from_millis(300);

/// How long CloudFront takes, far less than in earnest.
const COMPLETES_AFTER: Duration = Duration::from_secs(1);

/// How often the Deployment controller looks, and so how exactly the moment of completion is known.
pub const STEP_EVERY: Duration = Duration::from_millis(5);

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A StatefulSet that is rolled out, as large as a Deployment.
fn stateful_set(number: usize) -> Value {
    let revision = format!("{}-7c9d5b8f6", name(number));
    let mut object = deployment(number);
    for (at, field, value) in [
        ("", "kind", "StatefulSet"),
        ("/spec", "serviceName", &name(number)),
        ("/status", "currentRevision", &revision),
        ("/status", "updateRevision", &revision),
    ] {
        if let Some(fields) = object.pointer_mut(at).and_then(Value::as_object_mut) {
            fields.insert(field.to_owned(), value.into());
        }
    }
    object
}

pub struct Cluster {
    /// All that is outside of the controller.
    pub world: World,
}

/// A Deployment in a cluster.
#[derive(Clone)]
pub struct App {
    pub cluster: KubernetesStandIn,
    pub namespace: String,
    pub name: String,
}

impl App {
    /// Whether its rollout is complete.
    pub fn is_complete(&self) -> bool {
        let object = self.cluster.get(Kind::Deployment, &self.namespace, &self.name).unwrap_or_default();
        let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64);
        count("/metadata/generation") == count("/status/observedGeneration")
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|field| count(&format!("/status/{field}")) == count("/spec/replicas"))
    }
}

/// Releases new images, one for each app, at once, and waits until all are complete; returns when the last one became so.
pub async fn release(apps: &[(App, String)]) -> io::Result<Instant> {
    for (App { cluster, namespace, name }, image) in apps {
        cluster.set_image(namespace, name, CONTAINER, image).map_err(refused)?;
    }
    let from = Instant::now();
    loop {
        let before = Instant::now();
        for (app, _) in apps {
            app.cluster.step();
        }
        if apps.iter().all(|(app, _)| app.is_complete()) {
            return Ok(before);
        }
        if from.elapsed() > PATIENCE {
            return Err(io::Error::other("the Deployments do not roll out"));
        }
        tokio::time::sleep(STEP_EVERY).await;
    }
}

/// Looks until it is there.
pub async fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> io::Result<T> {
    until_within(PATIENCE, STEP_EVERY, what, look).await
}

/// Looks this often until it is there, for this long at most.
pub async fn until_within<T>(
    patience: Duration,
    every: Duration,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> io::Result<T> {
    let from = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if from.elapsed() > patience {
            return Err(io::Error::other(format!("waited in vain for {what}")));
        }
        tokio::time::sleep(every).await;
    }
}

/// One rollout, from the fact that completed it to the request that purged it.
#[derive(Clone, Debug)]
pub struct Purge {
    /// Just before the status was written that makes the Deployment complete.
    pub complete: Instant,
    /// When CloudFront had received the creation.
    pub received: Instant,
}

impl Purge {
    /// How long the edge was older than it had to be: from the end of the settling, which is as long as the operator says.
    pub fn latency(&self) -> Duration {
        self.received.saturating_duration_since(self.complete).saturating_sub(SETTLE)
    }
}

impl Cluster {
    /// Fills the stand-ins: Deployments that are rolled out, each with a Service and an Ingress, and the distributions.
    ///
    /// The first `single` Deployments have a distribution each; the `shared` that follow have one together.
    pub async fn fill(single: usize, shared: usize) -> io::Result<Self> {
        // What is shared has one of its own; the others of the account serve Deployments that stay as they are.
        let of = |number| if number < single { number } else { number + shared };
        let one = |number| serving(&distribution(number), std::iter::once(of(number)));
        let all = serving(SHARED, single..single + shared);
        Self::fill_with((0..DISTRIBUTIONS).map(one).chain([all]), POD_READY, namespace).await
    }

    /// Fills the stand-ins: Deployments, each in the namespace that `place` names, and these distributions. `pod_ready` is the time
    /// from one ready pod to the next.
    pub async fn fill_with(
        distributions: impl Iterator<Item = Distribution>,
        pod_ready: Duration,
        place: impl Fn(usize) -> String,
    ) -> io::Result<Self> {
        let timings = Timings { pod_ready, ..Timings::IMMEDIATE };
        let world = World::new(timings, Some(COMPLETES_AFTER)).await?;
        for number in 0..DEPLOYMENTS {
            let mut deployment = deployment(number);
            if let Some(namespace) = deployment.pointer_mut("/metadata/namespace") {
                *namespace = place(number).into();
            }
            world.kubernetes.put(deployment).map_err(refused)?;
            world.kubernetes.expose(&place(number), &name(number), &host(number)).map_err(refused)?;
        }
        for number in DEPLOYMENTS..WORKLOADS {
            world.kubernetes.put(stateful_set(number)).map_err(refused)?;
        }
        distributions.for_each(|distribution| world.cloudfront.add_distribution(distribution));
        world.kubernetes.settle();
        Ok(Self { world })
    }

    /// The environment a controller is started with. Nothing but the loopback is slow here, so the account's rate, which
    /// would make the second rollout wait for the first, is lifted.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let more = [
            ("ALLCLEAR__PURGE__CREATIONS_PER_SECOND", "100".to_owned()),
            ("ALLCLEAR__LOG__FORMAT", "json".to_owned()),
            // As in the image: deploy/Dockerfile.
            ("MALLOC_ARENA_MAX", "1".to_owned()),
            ("MALLOC_MMAP_THRESHOLD_", "131072".to_owned()),
            ("ALLCLEAR__ROLLOUT__SETTLE", format!("{}ms", SETTLE.as_millis())),
        ];
        let more = more.map(|(name, value)| (name.to_owned(), value));
        self.world.environment().into_iter().chain(more).collect()
    }

    /// Requests other than GET that the API server has received.
    pub fn writes(&self) -> u64 {
        self.world.kubernetes.writes()
    }

    /// Releases a new version of these Deployments at once and waits until all are complete; returns when the last one
    /// became so.
    pub async fn release(&self, numbers: std::ops::Range<usize>, tag: &str) -> io::Result<Instant> {
        let app = |number| {
            let cluster = self.world.kubernetes.clone();
            (App { cluster, namespace: namespace(number), name: name(number) }, image(number, tag))
        };
        release(&numbers.map(app).collect::<Vec<_>>()).await
    }

    /// Rolls one Deployment out, one that has a distribution of its own, and waits for the purge.
    pub async fn roll_out(&self, number: usize, tag: &str) -> io::Result<Purge> {
        let complete = self.release(number..number + 1, tag).await?;
        let path = format!("/2020-05-31/distribution/{}/invalidation", distribution(number));
        let look = || {
            // Old pods end after the last new one is available.
            self.world.kubernetes.step();
            let seen = self.world.cdn.seen();
            let creation = |seen: &&Seen| seen.method == "POST" && seen.path == path && seen.at >= complete;
            seen.iter().find(creation).map(|creation| creation.at)
        };
        let received = until("the purge of a Deployment that is complete", look).await?;
        Ok(Purge { complete, received })
    }

    /// Invalidations of the distribution that many share.
    pub fn shared_purges(&self) -> usize {
        self.world.cloudfront.invalidations().iter().filter(|purge| purge.distribution == SHARED).count()
    }

    /// Every request from the fact to the purge, each with its time since the fact.
    pub fn requests(&self, purge: &Purge) -> Vec<String> {
        let mut seen = self.world.api.seen();
        seen.extend(self.world.cdn.seen());
        seen.retain(|seen| seen.at >= purge.complete && seen.at <= purge.received);
        seen.sort_by_key(|seen| seen.at);
        let line = |seen: &Seen| {
            let after = seen.at.saturating_duration_since(purge.complete).as_millis();
            format!("{after:>5} ms  {} {}", seen.method, seen.path)
        };
        seen.iter().map(line).collect()
    }
}

/// A distribution of these Deployments.
pub fn serving(id: &str, numbers: impl Iterator<Item = usize>) -> Distribution {
    numbers.fold(Distribution::new(id).origin("lb.example.com"), |all, number| all.alias(&host(number)))
}

fn host(number: usize) -> String {
    format!("{}.example.com", name(number))
}

pub fn distribution(number: usize) -> String {
    format!("E{number:013}")
}

/// What a stand-in refused.
pub fn refused(failure: sandbox::kubernetes::Failure) -> io::Error {
    io::Error::other(format!("the stand-in refused it: {failure:?}"))
}
