//! A world with the program in it, and what can be said of both from the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::domain::record::Record;
use allclear::domain::record_codec::decode;
use allclear::sandbox::kubernetes::{Kind, Timings};
use allclear::sandbox::world::World;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::process::{Process, comes_true};

pub const NAMESPACE: &str = "shop";
pub const NAME: &str = "web";
pub const HOST: &str = "www.example.com";
pub const DISTRIBUTION: &str = "E2PROCESS";
pub const IMAGE: &str = "registry.example.com:5000/shop/web";

/// The namespace of the ledger, as [`World::environment`] sets it.
const LEDGER_NAMESPACE: &str = "default";

/// A cluster in which a rollout of three pods takes a tenth of a second.
const TIMINGS: Timings = Timings {
    pod_ready: Duration::from_millis(30),
    pod_gone: Duration::from_millis(10),
    image_back_off: Duration::from_millis(30),
};

/// Long enough for the first look at an invalidation to find it in progress.
const COMPLETES_AFTER: Duration = Duration::from_millis(150);

/// Everything that would only make a test wait, made short.
const QUICK: [(&str, &str); 4] = [
    ("ALLCLEAR__PURGE__POLL_FIRST", "100ms"),
    ("ALLCLEAR__WEBHOOKS__RETRY", "0s, 100ms, 100ms, 200ms, 500ms, 1s, 2s, 5s, 5s, 5s"),
    ("ALLCLEAR__DISTRIBUTIONS__MISS_REFRESH", "1s"),
    ("ALLCLEAR__LOG__LEVEL", "info"),
];

/// A world with one site, [`NAME`], served by [`DISTRIBUTION`], and one webhook told of its purges.
pub struct Scene {
    pub world: World,
    pub environment: BTreeMap<String, String>,
    process: Option<Process>,
    controllers: JoinHandle<()>,
}

/// What is left when everything is over. Two runs that came to the same thing are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aftermath {
    /// Distribution and paths of each invalidation.
    pub invalidations: Vec<(String, Vec<String>)>,
    /// The different things the receiver was told, without their times.
    pub told: BTreeSet<String>,
    /// The reasons of all Events, sorted; one that was published twice is here twice.
    pub events: Vec<String>,
    /// Seq, phase and the ends of the closed rollouts.
    pub record: String,
}

impl Scene {
    /// A settled world, without the program.
    pub async fn new() -> Self {
        let world = World::new(Timings::IMMEDIATE, Some(COMPLETES_AFTER)).await.expect("loopback is there");
        world.add_site(NAMESPACE, NAME, &image("1.0"), HOST, DISTRIBUTION).expect("the cluster takes it");
        world.kubernetes.settle();
        world.kubernetes.set_timings(TIMINGS);
        let hook = json!({
            "name": NAME, "url": format!("{}/purged", world.hook.url()), "method": "POST", "headers": {},
            "parameters": { "site": HOST }, "format": "json", "events": ["purge.completed"],
        });
        world.subscribe(&json!([hook])).expect("the file can be written");
        let cluster = world.kubernetes.clone();
        let controllers = tokio::spawn(async move { cluster.run_controller().await });
        let mut environment: BTreeMap<String, String> = world.environment().into_iter().collect();
        environment.extend(QUICK.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { world, environment, process: None, controllers }
    }

    /// Changes a variable of the environment the program is started with.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Starts the program, and does not wait for anything.
    pub fn launch(&mut self) {
        self.process = Some(Process::start(&["run"], self.environment.clone()));
    }

    /// Starts the program and waits until it has seen the cluster and recorded every site there is.
    pub async fn start(&mut self) {
        self.launch();
        self.wait_until("the program is ready and has its baselines", async |scene| {
            let state = scene.process().state().await;
            state["synced"] == true && scene.record().is_some()
        })
        .await;
    }

    /// The program.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it was started")
    }

    /// The program, to be ended.
    pub fn take_process(&mut self) -> Process {
        self.process.take().expect("it was started")
    }

    /// Rolls out a tag of [`NAME`].
    pub fn roll_out(&self, tag: &str) {
        self.world.kubernetes.set_image(NAMESPACE, NAME, NAME, &image(tag)).expect("the cluster takes it");
    }

    /// Waits until a condition holds; fails with the end of the log if it never does.
    pub async fn wait_until(&self, what: &str, mut condition: impl AsyncFnMut(&Self) -> bool) {
        if !comes_true(async || condition(self).await).await {
            let tail = self.process.as_ref().map(Process::tail).unwrap_or_default();
            panic!("it never came to this: {what}\nrecord: {:?}\noutbox: {}\n{tail}", self.record(), self.outbox());
        }
    }

    /// Waits until the rollout `seq` of [`NAME`] is over: closed in the ledger, all told, nothing left to send.
    pub async fn wait_until_over(&self, seq: u64) {
        self.wait_until(&format!("rollout {seq} is over"), async |scene| scene.is_over(seq)).await;
    }

    /// Whether it is; everything is read from the outside, so it can be asked while the program is dead.
    pub fn is_over(&self, seq: u64) -> bool {
        self.outbox() == 0
            && self.record().is_some_and(|record| {
                record.seq.0 >= seq && record.closed == record.seq && record.votes.is_empty() && !record.is_open()
            })
    }

    /// The record of [`NAME`] in the ledger.
    pub fn record(&self) -> Option<Record> {
        self.record_of(NAMESPACE, NAME)
    }

    /// The record of a Deployment in the ledger.
    pub fn record_of(&self, namespace: &str, name: &str) -> Option<Record> {
        let key = format!("deployment.{namespace}.{name}");
        let maps = self.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        let text = maps.iter().find_map(|map| map["data"][&key].as_str())?;
        Some(decode(text.as_bytes()).expect("what the program wrote can be read"))
    }

    /// How many deliveries wait in the ledger.
    pub fn outbox(&self) -> usize {
        let maps = self.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        let name = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().starts_with("allclear-outbox-");
        maps.iter().filter(|map| name(map)).count()
    }

    /// The Events on a workload: reason and note, in no order.
    pub fn events_of(&self, namespace: &str, name: &str) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.world.kubernetes.list(Kind::Event, namespace);
        let about = events.iter().filter(|event| event["regarding"]["name"] == name);
        about.map(|event| (text(&event["reason"]), text(&event["note"]))).collect()
    }

    /// The reasons of the Events on [`NAME`], sorted.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.events_of(NAMESPACE, NAME).into_iter().map(|(reason, _)| reason).collect();
        reasons.sort();
        reasons
    }

    /// How many requests the webhook receiver has taken.
    pub fn calls(&self) -> usize {
        self.world.receiver.received().len()
    }

    /// What came of it all.
    pub fn aftermath(&self) -> Aftermath {
        let invalidations = self.world.cloudfront.invalidations();
        let record = self.record().expect("there is a record");
        let ends: Vec<String> =
            record.history.iter().map(|closed| format!("{} {:?}", closed.seq, closed.outcome)).collect();
        let mut told = BTreeSet::new();
        for call in self.world.receiver.received() {
            let mut body: Value = serde_json::from_slice(&call.request.body).expect("the body is JSON");
            body["timestamp"].take();
            body["data"]["rollout"].take();
            told.insert(body.to_string());
        }
        Aftermath {
            invalidations: invalidations.into_iter().map(|each| (each.distribution, each.paths)).collect(),
            told,
            events: self.reasons(),
            record: format!("{} {} {}", record.seq, record.phase.name(), ends.join(", ")),
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

/// The image of [`NAME`] with this tag.
pub fn image(tag: &str) -> String {
    format!("{IMAGE}:{tag}")
}
