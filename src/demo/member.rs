//! A cluster of a story of rollouts: the site in it, its controller, and the notices of both.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::demo::narration::{
    CHAPTER_MAX, DISTRIBUTION, HOST, LOOK_EVERY, NAME, NAMESPACE, Told, events, image, refused, settled,
};
use crate::demo::stage::{Controller, Part};
use sandbox::kubernetes::Kind;
use sandbox::world::World;

/// A call of the receiver after a purge of one of these workloads, which serve a site.
pub fn hook(world: &World, name: &str, site: &str, workloads: &[&str]) -> Value {
    let workloads: Vec<String> = workloads.iter().map(|workload| format!("{NAMESPACE}/{workload}")).collect();
    json!({
        "name": name, "url": format!("{}/purged", world.hook.url()), "method": "POST", "headers": {},
        "parameters": {"site": site}, "workloads": workloads,
    })
}

/// One cluster and its controller.
pub struct Member {
    pub world: World,
    pub controller: Controller,
    /// The last thing that the controller said it waits for.
    pub state: String,
    /// Ids of Events that were told, or that are from an earlier chapter.
    told: BTreeSet<String>,
    _cluster: Part,
}

impl Member {
    /// The cluster with the site in this version, and a receiver to be called after a purge.
    pub fn new(world: World, tag: &str) -> io::Result<Self> {
        world.add_site(NAMESPACE, NAME, &image(tag), HOST, DISTRIBUTION)?;
        world.subscribe(&json!([hook(&world, NAME, HOST, &["*"])]))?;
        let cluster = Part::cluster(&world.kubernetes);
        let (controller, state, told) = (Controller::default(), String::new(), BTreeSet::new());
        Ok(Self { world, controller, state, told, _cluster: cluster })
    }

    pub async fn start(&mut self, settings: &[(&str, &str)]) -> io::Result<()> {
        self.controller.start(&self.world, settings, BTreeMap::new()).await
    }

    /// Waits until the controller has seen its cluster with so many workloads, which is settled: nothing has changed, so nothing is purged.
    pub async fn ready(&self, name: &str, workloads: usize) -> io::Result<()> {
        let deadline = Instant::now() + CHAPTER_MAX;
        loop {
            let seen = self.controller.observe().await;
            if seen.synced && seen.workloads == workloads && settled(&self.world) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{name} was not ready: {}", seen.troubles.join("; "))));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Sets a tag. Returns the command that does the same.
    pub fn set_image(&self, tag: &str) -> io::Result<String> {
        self.world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image(tag)).map_err(refused)?;
        Ok(format!("kubectl set image deployment/{NAME} {NAME}={}", image(tag)))
    }

    /// Has the Service of the site select the pods of another Deployment. Returns the command that does the same.
    pub fn select(&self, name: &str) -> io::Result<String> {
        let change = json!({"spec": {"selector": {"app": name}}});
        self.world.kubernetes.patch(Kind::Service, NAMESPACE, NAME, &change).map_err(refused)?;
        Ok(format!("kubectl set selector service/{NAME} app={name}"))
    }

    /// The Events so far are not told.
    pub fn begin(&mut self) {
        self.told = events(&self.world).into_iter().map(|told| told.id).collect();
    }

    pub fn news(&mut self) -> Vec<Told> {
        events(&self.world).into_iter().filter(|told| self.told.insert(told.id.clone())).collect()
    }

    /// Whether the controller has nothing left to do.
    pub async fn is_quiet(&self) -> bool {
        let seen = self.controller.observe().await;
        seen.synced && seen.rollouts.is_empty() && seen.deliveries.is_empty()
    }

    /// Calls of the receiver.
    pub fn received(&self) -> usize {
        self.world.receiver.received().len()
    }

    /// Calls of the receiver after the first so many, in words.
    pub fn calls_after(&self, known: usize) -> Vec<String> {
        let received = self.world.receiver.received();
        let words = received.iter().skip(known).map(|call| {
            let body = String::from_utf8_lossy(&call.request.body);
            format!("{} {} with {body}, answered 204", call.request.method, call.request.path)
        });
        words.collect()
    }

    /// Invalidations so far, at the CloudFront that all clusters share.
    pub fn purges(&self) -> usize {
        self.world.cloudfront.invalidations().len()
    }
}
