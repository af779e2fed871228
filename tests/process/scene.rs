//! A world with the program in it, and what can be said of both from the outside.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purge::records::record::Record;
use purge::records::record_codec::decode;
use sandbox::cloudfront::Distribution;
use sandbox::kubernetes::{Kind, Timings};
use sandbox::world::World;
use serde_json::{Value, json};
use support::process::{Process, Written, comes_true};
use tokio::task::JoinHandle;

pub const NAMESPACE: &str = "shop";
pub const NAME: &str = "web";
pub const HOST: &str = "www.example.com";
pub const DISTRIBUTION: &str = "E2PROCESS";
pub const IMAGE: &str = "registry.example.com:5000/shop/web";

/// The namespace of the ledger, as [`World::environment`] sets it.
pub const LEDGER_NAMESPACE: &str = "default";

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
    /// What each process here has written, oldest first.
    written: Vec<Written>,
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
        Self::completing(Some(COMPLETES_AFTER)).await
    }

    /// The same, with invalidations that complete after this time, or never by themselves.
    pub async fn completing(after: Option<Duration>) -> Self {
        Self::of(World::new(Timings::IMMEDIATE, after).await.expect("loopback is there"))
    }

    /// The same around this world.
    pub fn of(world: World) -> Self {
        world.add_site(NAMESPACE, NAME, &image("1.0"), HOST, DISTRIBUTION).expect("the cluster takes it");
        world.kubernetes.settle();
        world.kubernetes.set_timings(TIMINGS);
        let hook = json!({
            "name": NAME, "url": format!("{}/purged", world.hook.url()), "method": "POST", "headers": {},
            "parameters": { "site": HOST }, "format": "json", "events": ["purge.completed"],
        });
        world.subscribe(&json!([hook])).expect("the file can be written");
        let controllers = run_controllers(&world);
        let mut environment: BTreeMap<String, String> = world.environment().into_iter().collect();
        environment.extend(QUICK.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Self { world, environment, process: None, written: Vec::new(), controllers }
    }

    /// Changes a variable of the environment the next program is started with.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Changes a variable of the environment the program is started with.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Starts the program with these arguments, and does not wait for anything.
    pub fn launch(&mut self, arguments: &[&str]) {
        self.follow(Process::start(arguments, self.environment.clone()));
    }

    fn follow(&mut self, process: Process) {
        self.written.push(process.written());
        self.process = Some(process);
    }

    /// The same with another release of the program, which is not told of these settings, because it refuses what it does not
    /// know.
    pub fn launch_release(&mut self, program: &str, unknown: &[String]) {
        let known = |(name, _): &(String, String)| !unknown.contains(name);
        let environment: BTreeMap<String, String> = self.environment.clone().into_iter().filter(known).collect();
        self.follow(Process::start_program(program, &["run"], environment));
    }

    /// Starts the program and waits until it has seen the cluster and recorded [`NAME`].
    pub async fn start(&mut self) {
        self.launch(&["run"]);
        self.wait_until_started().await;
    }

    /// Waits until the program has seen the cluster and recorded [`NAME`].
    pub async fn wait_until_started(&self) {
        self.wait_until("the program is ready and has its baseline", async |scene| {
            scene.is_synced().await && scene.record().is_some()
        })
        .await;
    }

    /// Whether the program has listed the cluster.
    pub async fn is_synced(&self) -> bool {
        self.process().state().await["synced"] == true
    }

    /// What the program says a rollout in flight waits for; empty when there is none.
    pub async fn waits_for(&self) -> String {
        self.process().state().await["rollouts"][0]["state"].as_str().unwrap_or_default().to_owned()
    }

    /// Stops the cluster's controllers: nothing set from now on has an effect.
    pub fn freeze(&mut self) {
        self.controllers.abort();
    }

    /// Lets them go on.
    pub fn thaw(&mut self) {
        self.controllers = run_controllers(&self.world);
    }

    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("it was started")
    }

    /// Whether there is a program.
    pub fn is_started(&self) -> bool {
        self.process.is_some()
    }

    /// The program, to be ended.
    pub fn take_process(&mut self) -> Process {
        self.process.take().expect("it was started")
    }

    /// Rolls out a tag of [`NAME`].
    pub fn roll_out(&self, tag: &str) {
        self.set_image(NAME, &image(tag));
    }

    /// Rolls out an image of a Deployment of one container called like it.
    pub fn set_image(&self, name: &str, image: &str) {
        self.world.kubernetes.set_image(NAMESPACE, name, name, image).expect("the cluster takes it");
    }

    /// Adds a Deployment of [`image`]`("1.0")`, rolled out already, that nothing reaches.
    pub fn add_workload(&self, name: &str) {
        self.world.kubernetes.seed(NAMESPACE, name, &image("1.0"), 1).expect("the cluster takes it");
    }

    /// Adds an object of [`NAMESPACE`] to the cluster, or changes it.
    pub fn apply(&self, mut object: Value) {
        object["metadata"]["namespace"] = json!(NAMESPACE);
        self.world.kubernetes.apply(object).expect("the cluster takes it");
    }

    /// Adds a distribution with this alias.
    pub fn add_distribution(&self, id: &str, alias: &str) {
        self.world.cloudfront.add_distribution(Distribution::new(id).alias(alias));
    }

    /// Waits until a condition holds; fails with the end of the log if it never does.
    pub async fn wait_until(&self, what: &str, mut condition: impl AsyncFnMut(&Self) -> bool) {
        if !comes_true(async || condition(self).await).await {
            let tail = self.process.as_ref().map(Process::tail).unwrap_or_default();
            let (record, outbox) = (self.record(), self.outbox());
            panic!("it never came to this: {what}\nrecord: {record:?}\noutbox: {outbox}\n{tail}");
        }
    }

    /// Waits until the rollout `seq` of [`NAME`] is over: closed in the ledger, all told, nothing left to send.
    pub async fn wait_until_over(&self, seq: u64) {
        let is_over = async |scene: &Self| scene.is_over(NAME, seq) && scene.outbox() == 0;
        self.wait_until(&format!("rollout {seq} of {NAME} is over"), is_over).await;
    }

    /// Whether the cluster has rolled out this generation of [`NAME`].
    pub fn is_rolled_out(&self, generation: u64) -> bool {
        let status = self.world.kubernetes.get(Kind::Deployment, NAMESPACE, NAME).map(|web| web["status"].clone());
        status.is_some_and(|status| {
            status["observedGeneration"] == generation
                && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| status[field] == 3)
        })
    }

    /// Whether the rollout `seq` of a Deployment is closed and told. Read from the outside, so also of a dead program.
    pub fn is_over(&self, name: &str, seq: u64) -> bool {
        self.record_of(name).is_some_and(|record| {
            record.seq.0 >= seq && record.closed == record.seq && record.votes.is_empty() && !record.is_open()
        })
    }

    /// The record of [`NAME`] in the ledger.
    pub fn record(&self) -> Option<Record> {
        self.record_of(NAME)
    }

    /// The record of a Deployment in the ledger. A shard may have an older one than its journal.
    pub fn record_of(&self, name: &str) -> Option<Record> {
        let key = format!("deployment.{NAMESPACE}.{name}");
        let maps = self.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        let texts = maps.iter().filter_map(|map| map["data"][&key].as_str());
        let records = texts.map(|text| decode(text.as_bytes()).expect("what the program wrote can be read"));
        records.max_by_key(|record| record.revision)
    }

    /// The objects of the ledger that have records.
    pub fn shards(&self) -> Vec<Value> {
        let mut maps = self.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        maps.retain(|map| map["metadata"]["labels"]["allclear.dev/part"] == "shard");
        maps
    }

    /// How many deliveries wait in the ledger.
    pub fn outbox(&self) -> usize {
        let maps = self.world.kubernetes.list(Kind::ConfigMap, LEDGER_NAMESPACE);
        let name = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().starts_with("allclear-outbox-");
        maps.iter().filter(|map| name(map)).count()
    }

    /// The Events on a Deployment, as `reason: note`, sorted.
    pub fn events_of(&self, name: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let events = self.world.kubernetes.list(Kind::Event, NAMESPACE);
        let about = events.iter().filter(|event| event["regarding"]["name"] == name);
        let mut events: Vec<String> =
            about.map(|event| format!("{}: {}", text(&event["reason"]), text(&event["note"]))).collect();
        events.sort();
        events
    }

    /// The note of the Event of this reason on a Deployment; empty if there is none.
    pub fn note(&self, name: &str, reason: &str) -> String {
        let prefix = format!("{reason}: ");
        self.events_of(name).iter().find_map(|event| event.strip_prefix(&prefix)).unwrap_or_default().to_owned()
    }

    /// The reasons of the Events on a Deployment, sorted.
    pub fn reasons_of(&self, name: &str) -> Vec<String> {
        let events = self.events_of(name);
        events.iter().filter_map(|event| event.split_once(": ")).map(|(reason, _)| reason.to_owned()).collect()
    }

    /// What was purged so far: the distributions, in the order of the invalidations.
    pub fn purged(&self) -> Vec<String> {
        self.world.cloudfront.invalidations().into_iter().map(|invalidation| invalidation.distribution).collect()
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
        let mut sent = BTreeSet::new();
        for call in self.world.receiver.received() {
            sent.insert((call.request.header("webhook-id").map(str::to_owned), call.request.body.clone()));
            let mut body: Value = serde_json::from_slice(&call.request.body).expect("the body is JSON");
            body["timestamp"].take();
            body["data"]["rollout"].take();
            told.insert(body.to_string());
        }
        assert_eq!(sent.len(), told.len(), "what is sent again has the same id and bytes: {sent:?}");
        Aftermath {
            invalidations: invalidations.into_iter().map(|each| (each.distribution, each.paths)).collect(),
            told,
            events: self.reasons_of(NAME),
            record: format!("{} {} {}", record.seq, record.phase.name(), ends.join(", ")),
        }
    }
}

/// What the logs of these members, of all their lives, say against the promises (`docs/audit.md`). The audit knows nothing of the program,
/// and nothing of what a test did.
pub fn broken(members: &[&Scene]) -> Vec<String> {
    let mut logs = audit::Logs::default();
    for member in members {
        let at = logs.begin(&member.world.name);
        for written in &member.written {
            written.lock().expect("no panic").iter().for_each(|line| logs.take(at, line));
        }
    }
    let report = audit::judge(&logs, &[], &audit::Invalidations::default());
    let broken = report.promises.into_iter().filter(|judgement| judgement.verdict == audit::Verdict::Broken);
    broken.map(|judgement| format!("{}: {:#?}", judgement.promise.words(), judgement.evidence)).collect()
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.controllers.abort();
        // Its log is whole only then.
        drop(self.process.take());
        if !std::thread::panicking() {
            let broken = broken(&[&*self]);
            assert!(broken.is_empty(), "by its log alone: {broken:#?}");
        }
    }
}

/// Lets the cluster's controllers work for as long as the handle is not aborted.
fn run_controllers(world: &World) -> JoinHandle<()> {
    let cluster = world.kubernetes.clone();
    tokio::spawn(async move { cluster.run_controller().await })
}

/// The image of [`NAME`] with this tag.
pub fn image(tag: &str) -> String {
    format!("{IMAGE}:{tag}")
}
