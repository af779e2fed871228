//! Pipelines beside the core: 500 of them, each with three environments in three clusters and a full history, in the cluster of 10,000 Deployments.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::forge::{self, ForgeHost, Hosted, Site};
use sandbox::git::GitHost;
use sandbox::http::{Seen, Server};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options, Timings};
use serde_json::{Value, json};
use support::controller::Controller;
use support::fixture::{CONTAINER, deployment, image, name, namespace};

use crate::cluster::{App, Cluster, POD_READY, refused, release, until};
use crate::{IDLE, Report, one_after_another, seconds, stand_in};

const PIPELINES: usize = 500;

/// The environments of each.
const ENVIRONMENTS: [&str; 3] = ["staging", "canary", "prod"];

/// Where the Pipelines and the Secrets of the other clusters are.
const PLACE: &str = "releases";

const OTHERS: [&str; 2] = ["eu-2", "us-1"];

/// Promotions by notification, one after the other.
const TOLD: usize = 100;

/// Ended promotions that a status and a History hold.
const ENDED_IN_STATUS: usize = 10;
const KEPT: usize = 200;

/// Promotions by pull request, one after the other.
const PROPOSED: usize = 20;

/// The host of the forge, and its repository.
const FORGE: &str = "git.example.com";
const REPOSITORY: &str = "shop/apps.git";
const TOKEN: &str = "token-of-the-forge";

/// Files of the repository and their size: 20 MiB in all.
const FILES: usize = 2_560;
const FILE_BYTES: usize = 8 * 1024;

/// Events each second about Deployments that no Pipeline names (fault row PF13).
const NOISE_PER_SECOND: usize = 10_000;

/// Nothing makes noise for longer.
const NOISE_MAX: Duration = Duration::from_mins(5);

/// The clusters and the forge.
struct Fleet<'a> {
    cluster: &'a Cluster,
    others: Vec<(KubernetesStandIn, Server)>,
    forge: Arc<ForgeHost>,
    site: Server,
}

/// Prints what Pipelines cost and how fast they are.
pub async fn measure(cluster: &Cluster, report: &mut Report) -> io::Result<()> {
    let fleet = Fleet::fill(cluster).await?;
    let without = fleet.idle_without(report).await?;
    let narrow = fleet.idle_in_one_cluster(report).await?;
    fleet.grow_old()?;
    let (controller, wide) = fleet.restart(report).await?;
    let apps = PIPELINES * ENVIRONMENTS.len();
    let app = (wide - narrow) * 1024.0 / to_f64(apps * OTHERS.len());
    let pipeline = ((narrow - without) * 1024.0 - app * to_f64(apps)) / to_f64(PIPELINES);
    report.line("Pipelines: heap over the core", format!("{:.1} MiB", wide - without), "≤ 25 MiB");
    report.line("… for each app that is watched in another cluster", format!("{app:.1} KiB"), "≤ 1 KiB");
    report.line("… for each Pipeline", format!("{pipeline:.1} KiB"), "≤ 12 KiB");
    fleet.tell(report).await?;
    one_after_another(cluster, "2026.11.22-1b2c3d4", ", beside Pipelines at rest", report).await?;
    fleet.under_noise(report).await?;
    fleet.propose(report).await?;
    report.memory("Pipelines: memory after all of it", controller.memory()?, "");
    report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    Ok(())
}

impl<'a> Fleet<'a> {
    async fn fill(cluster: &'a Cluster) -> io::Result<Self> {
        let here = &cluster.world.kubernetes;
        here.set_installed("allclear.dev", true);
        let mut others = Vec::new();
        for other in OTHERS {
            let timings = Timings { pod_ready: POD_READY, ..Timings::IMMEDIATE };
            let kubernetes = KubernetesStandIn::new(Options { cluster: other.to_owned(), timings });
            let api = kubernetes.start().await?;
            here.apply(secret(other, "kubeconfig", &kubernetes.kubeconfig(&api))).map_err(refused)?;
            others.push((kubernetes, api));
        }
        here.apply(secret("forge", "token", TOKEN)).map_err(refused)?;
        for kubernetes in others.iter().map(|(kubernetes, _)| kubernetes).chain([here]) {
            for number in 0..PIPELINES {
                for environment in ENVIRONMENTS {
                    kubernetes.put(app(number, environment)).map_err(refused)?;
                }
            }
            kubernetes.settle();
        }
        let git = Arc::new(GitHost::new()?);
        git.require_basic("oauth2", TOKEN);
        git.create(REPOSITORY, &[])?;
        let files: Vec<(String, Vec<u8>)> = (0..FILES).map(file).collect();
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        git.commit(REPOSITORY, "main", &files)?;
        let branches = Arc::new(Hosted(Arc::clone(&git), REPOSITORY.to_owned()));
        let forge = Arc::new(ForgeHost::new(forge::Kind::Gitea, "shop/apps", TOKEN, branches));
        let site = Server::start(Arc::new(Site { git, forge: Arc::clone(&forge) })).await?;
        let hook = json!({
            "name": "deployer", "url": cluster.world.hook.url(), "method": "POST", "headers": {}, "format": "json",
            "workloads": ["*"], "events": ["promotion.started"],
        });
        cluster.world.subscribe(&json!([hook]))?;
        Ok(Self { cluster, others, forge, site })
    }

    fn here(&self) -> &KubernetesStandIn {
        &self.cluster.world.kubernetes
    }

    async fn start(&self, enabled: &str) -> io::Result<Controller> {
        let more = [
            ("ALLCLEAR__PIPELINE__ENABLED", enabled.to_owned()),
            ("ALLCLEAR__REPO__ENABLED", "off".to_owned()),
            (stand_in::HOSTS, format!("{FORGE}={}", self.site.address())),
        ];
        let more = more.map(|(name, value)| (name.to_owned(), value));
        let environment: BTreeMap<_, _> = self.cluster.environment().into_iter().chain(more).collect();
        let program = std::env::current_exe()?;
        Controller::start(&program.to_string_lossy(), &environment).await
    }

    /// The heap of the core alone, in MiB.
    async fn idle_without(&self, report: &mut Report) -> io::Result<f64> {
        let controller = self.start("off").await?;
        controller.ready().await?;
        tokio::time::sleep(IDLE).await;
        let memory = controller.memory()?;
        report.memory("without Pipelines: 30 s after a start", memory, "");
        controller.stop().await?;
        Ok(memory.anonymous)
    }

    /// The heap with Pipelines whose targets are all in this cluster, in MiB. All are seen for the first time.
    async fn idle_in_one_cluster(&self, report: &mut Report) -> io::Result<f64> {
        self.apply_all(0..PIPELINES, false, &json!({"notification": {}}))?;
        let targets = PIPELINES * ENVIRONMENTS.len();
        let writes = self.cluster.writes();
        let controller = self.start("auto").await?;
        let judged = controller.metric_is(READY, targets).await?;
        report.line(&format!("{PIPELINES} Pipelines, new: all targets known after"), seconds(judged), "");
        tokio::time::sleep(IDLE).await;
        let memory = controller.memory()?;
        let what = format!("{targets} targets in one cluster: 30 s later");
        report.memory(&what, memory, "");
        report.line("… writes to the API server", (self.cluster.writes() - writes).to_string(), "");
        let (from, writes) = (Instant::now(), self.cluster.writes());
        self.apply_all(0..PIPELINES, true, &json!({"notification": {}}))?;
        controller.metric_is(READY, targets * (1 + OTHERS.len())).await?;
        report.line("all edited at once: new targets known after", seconds(from.elapsed()), "");
        tokio::time::sleep(IDLE).await;
        report.line("… writes to the API server", (self.cluster.writes() - writes - PIPELINES_U64).to_string(), "");
        controller.stop().await?;
        Ok(memory.anonymous)
    }

    /// Each Pipeline has gone through as much as its status and its History hold.
    fn grow_old(&self) -> io::Result<()> {
        for number in 0..PIPELINES {
            let name = name(number);
            let status = json!({"status": {"history": entries(ENDED_IN_STATUS)}});
            let object = self.here().patch(Kind::Pipeline, PLACE, &name, &status).map_err(refused)?;
            let owner = json!({
                "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "name": name, "uid": object.pointer("/metadata/uid"),
            });
            let metadata = json!({"namespace": PLACE, "name": format!("pipeline.{name}"), "ownerReferences": [owner]});
            let history = json!({
                "apiVersion": "allclear.dev/v1alpha1", "kind": "History", "metadata": metadata, "entries": entries(KEPT),
            });
            self.here().apply(history).map_err(refused)?;
        }
        Ok(())
    }

    /// The heap after a restart with all targets, in MiB.
    async fn restart(&self, report: &mut Report) -> io::Result<(Controller, f64)> {
        let targets = PIPELINES * ENVIRONMENTS.len() * (1 + OTHERS.len());
        let (from, writes) = (Instant::now(), self.cluster.writes());
        let controller = self.start("auto").await?;
        let judged = controller.metric_is(READY, targets).await?;
        report.line(
            &format!("restart: {targets} targets known after"),
            seconds(judged),
            "≤ 3 s after the leaves synced",
        );
        report.line("restart: processor time", seconds(controller.cpu()?), "");
        tokio::time::sleep(IDLE).await;
        let memory = controller.memory()?;
        report.memory("30 s later, idle", memory, "");
        report.line("restart: writes to the API server", (self.cluster.writes() - writes).to_string(), "0");
        let by_name = self.requests_since(from).iter().filter(|request| is_by_name(request)).count();
        report.line("restart: targets read by name", by_name.to_string(), "");
        let (from, cpu) = (Instant::now(), controller.cpu()?);
        tokio::time::sleep(IDLE).await;
        let asked = self.requests_since(from);
        report.line("requests in another 30 s, watches aside", asked.len().to_string(), "0, and the check of the kind");
        asked.iter().take(10).for_each(|request| println!("{request}"));
        report.line("processor time in these 30 s", seconds(controller.cpu()? - cpu), "");
        Ok((controller, memory.anonymous))
    }

    fn requests_since(&self, from: Instant) -> Vec<String> {
        let servers = self.others.iter().map(|(_, api)| api).chain([&self.cluster.world.api]);
        let seen = servers.flat_map(|api| api.seen().into_iter().filter(move |seen| seen.at >= from));
        let asked = seen.filter(|seen| !seen.query.contains_key("watch"));
        asked.map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }

    /// Measures the way from the last fact about staging to the notice in the outbox.
    async fn tell(&self, report: &mut Report) -> io::Result<()> {
        let mut times = Vec::new();
        for number in 0..TOLD {
            let complete = self.release_staging(number).await?;
            let stored =
                |seen: &&Seen| seen.at >= complete && seen.method != "GET" && seen.path.contains("allclear-outbox");
            let look = || self.cluster.world.api.seen().iter().find(stored).map(|seen| seen.at);
            times.push(until("the notice of a promotion", look).await?.saturating_duration_since(complete));
            self.at_rest(number).await?;
        }
        let aims = [(50, "≤ 60 ms"), (99, "≤ 250 ms"), (100, "")];
        report.percentiles("last target ready to notification stored", times.into_iter(), &aims);
        Ok(())
    }

    /// Measures the way from the last fact about staging to the pull request.
    async fn propose(&self, report: &mut Report) -> io::Result<()> {
        let strategy = json!({"notification": null, "pull-request": {
            "type": "gitea", "url": format!("https://{FORGE}/{REPOSITORY}"), "baseBranch": "main",
            "secretRef": {"name": "forge"},
        }});
        let numbers = TOLD..TOLD + PROPOSED;
        self.apply_all(numbers.clone(), true, &strategy)?;
        let mut times = Vec::new();
        for number in numbers {
            let before = self.forge.pulls().len();
            let complete = self.release_staging(number).await?;
            let opened = || (self.forge.pulls().len() > before).then(Instant::now);
            times.push(until("a pull request", opened).await?.saturating_duration_since(complete));
            self.at_rest(number).await?;
        }
        let what = format!("last target ready to pull request, {} MiB of files", FILES * FILE_BYTES / 1024 / 1024);
        report.percentiles(&what, times.into_iter(), &[(50, ""), (95, "≤ 5 s"), (100, "")]);
        Ok(())
    }

    /// Measures the core while Deployments that no Pipeline names change in another cluster, and all Pipelines are edited.
    async fn under_noise(&self, report: &mut Report) -> io::Result<()> {
        let (quiet, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let Some((other, _)) = self.others.first() else { return Ok(()) };
        for number in 0..100 {
            other.put(app(number, "stranger")).map_err(refused)?;
        }
        other.settle();
        let noise = {
            let (other, quiet, made) = (other.clone(), Arc::clone(&quiet), Arc::clone(&made));
            std::thread::spawn(move || make_noise(&other, &quiet, &made))
        };
        let from = Instant::now();
        self.apply_all(0..TOLD, true, &json!({"notification": {}}))?;
        self.apply_all(TOLD..PIPELINES, true, &json!({"notification": {}}))?;
        let measured = one_after_another(self.cluster, "2026.11.23-4d5e6f7", ", beside noise", report).await;
        quiet.store(true, Ordering::Relaxed);
        // A panic in it was printed.
        let _ = noise.join();
        let rate = to_f64(made.load(Ordering::Relaxed)) / from.elapsed().as_secs_f64();
        report.line("… changes of strangers' Deployments in another cluster", format!("{rate:.0}/s"), "10000/s");
        measured.map(drop)
    }

    async fn release_staging(&self, number: usize) -> io::Result<Instant> {
        let clusters = self.others.iter().map(|(kubernetes, _)| kubernetes).chain([self.here()]);
        let apps = clusters.map(|cluster| {
            let (namespace, name) = (place(number, "staging"), name(number));
            (App { cluster: cluster.clone(), namespace, name }, image(number, "2026.11.22-9e8f7a6"))
        });
        release(&apps.collect::<Vec<_>>()).await
    }

    /// Waits until the Pipeline of this number has said what it waits for, so that no write of it falls into the next one's time.
    async fn at_rest(&self, number: usize) -> io::Result<()> {
        let landed = || {
            let object = self.here().get(Kind::Pipeline, PLACE, &name(number))?;
            let promotion = object.pointer("/status/environments/canary/promotion")?;
            let untold =
                object.pointer("/status/untold").and_then(Value::as_array).is_some_and(|some| !some.is_empty());
            let is_over = ["Landed", "Proposed"].iter().any(|phase| promotion["phase"] == *phase);
            (is_over && !untold).then_some(())
        };
        until("the promotion to be told or proposed", landed).await?;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        Ok(())
    }

    fn apply_all(&self, numbers: std::ops::Range<usize>, wide: bool, strategy: &Value) -> io::Result<()> {
        for number in numbers {
            self.here().apply(pipeline(number, wide, strategy)).map_err(refused)?;
        }
        Ok(())
    }
}

/// Promotions that ended long ago, oldest first, in the past of all that is measured.
fn entries(count: usize) -> Vec<Value> {
    let entry = |number: usize| {
        let at = format!("2026-01-{:02}T{:02}:00:00Z", 1 + number / 24, number % 24);
        json!({
            "environment": "prod", "seq": number + 1, "revision": format!("2026.1.{number}-1a2b3c4"), "outcome": "Completed",
            "at": at, "by": "jane@example.com",
        })
    };
    (0..count).map(entry).collect()
}

/// The metric of targets that are ready.
const READY: &str = r#"allclear_targets{standing="ready"}"#;

/// Our own writes when all Pipelines are edited.
const PIPELINES_U64: u64 = PIPELINES as u64;

/// Changes Deployments that no Pipeline names, until it is told to stop.
fn make_noise(cluster: &KubernetesStandIn, quiet: &AtomicBool, made: &AtomicUsize) {
    let from = Instant::now();
    while !quiet.load(Ordering::Relaxed) && from.elapsed() < NOISE_MAX {
        let due = usize::try_from(from.elapsed().as_millis()).unwrap_or(usize::MAX) * NOISE_PER_SECOND / 1_000;
        while made.load(Ordering::Relaxed) < due && !quiet.load(Ordering::Relaxed) {
            let number = made.fetch_add(1, Ordering::Relaxed);
            let change = json!({"metadata": {"labels": {"noise": number.to_string()}}});
            let (namespace, name) = (place(number % 100, "stranger"), name(number % 100));
            if cluster.patch(Kind::Deployment, &namespace, &name, &change).is_err() {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The namespace of an app: every team has one for each environment.
fn place(number: usize, environment: &str) -> String {
    format!("{}-{environment}", namespace(number))
}

fn app(number: usize, environment: &str) -> Value {
    let mut app = deployment(number);
    if let Some(metadata) = app.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), place(number, environment).into());
        metadata.insert("uid".to_owned(), format!("{environment}-{number:06}").into());
    }
    app
}

fn secret(name: &str, key: &str, value: &str) -> Value {
    let data = BTreeMap::from([(key, STANDARD.encode(value))]);
    let metadata = json!({"namespace": PLACE, "name": name, "annotations": {"allclear.dev/send-to": FORGE}});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
}

fn pipeline(number: usize, wide: bool, strategy: &Value) -> Value {
    let environment = |environment: &str| {
        let namespace = place(number, environment);
        let others = OTHERS.iter().take(if wide { OTHERS.len() } else { 0 });
        let others =
            others.map(|other| json!({"namespace": namespace, "clusterRef": {"kind": "Secret", "name": other}}));
        let targets: Vec<Value> = std::iter::once(json!({"namespace": namespace})).chain(others).collect();
        json!({"name": environment, "targets": targets})
    };
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": PLACE, "name": name(number)},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name(number), "container": CONTAINER},
            "environments": ENVIRONMENTS.map(environment),
            "promotion": {"strategy": strategy},
        },
    })
}

/// Whether one object was asked for.
fn is_by_name(request: &str) -> bool {
    request.starts_with("GET /apis/apps/v1/namespaces/") && request.split('/').count() == 8
}

/// A file of the repository; those of Pipelines say what each environment runs.
fn file(number: usize) -> (String, Vec<u8>) {
    let mut text = String::new();
    if number < PIPELINES {
        for environment in ENVIRONMENTS {
            let marker = json!({"$promotion": format!("{PLACE}:{}:{environment}:image", name(number))});
            text.push_str(&format!("{environment}: {} # {marker}\n", image(number, "2026.11.20-1a2b3c4")));
        }
    }
    let mut line = 0;
    while text.len() < FILE_BYTES {
        text.push_str(&format!("setting-{number:05}-{line:04}: value of setting {line}\n"));
        line += 1;
    }
    (format!("apps/{}/values.yaml", name(number)), text.into_bytes())
}

#[expect(clippy::cast_precision_loss, reason = "counts of thousands")]
fn to_f64(count: usize) -> f64 {
    count as f64
}
