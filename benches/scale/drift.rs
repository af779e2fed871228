//! Repos that are looked at for drift, and whose runs are reported to a forge: 500 of them, in the cluster of 10,000 Deployments.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use objects::repo::plan::{Message, fingerprint};
use objects::repo::spec::Preset;
use sandbox::forge::{self, ForgeHost, Pull, Table};
use sandbox::http::{Reply, Request, Server, StandIn};
use sandbox::kubernetes::{End, Kind, KubernetesStandIn, Outcome, Script};
use serde_json::{Value, json};
use support::controller::Controller;

use crate::cluster::{Cluster, refused, until_within};
use crate::repos::{RefsOnly, commit};
use crate::{IDLE, Report, seconds, stand_in};

const REPOS: usize = 500;

/// Where the Repos are.
const PLACE: &str = "infra";

const HOST: &str = "git.example.com";
const TOKEN: &str = "token-of-the-forge";

/// The shortest time between two looks at drift that a spec may ask for, in seconds: 36 times as often as the 6 hours of the documents.
const DRIFT_EVERY: u32 = 600;

/// All first runs end within this: 500 Jobs, one after another for each Repo, many at a time.
const RUN_MAX: Duration = Duration::from_mins(10);

/// The first look at drift comes half of its time after an apply, or later.
const FIRST_MAX: Duration = Duration::from_mins(15);

/// How long the looks are watched.
const WATCHED: Duration = Duration::from_secs(300);

/// How often the Job controller and the kubelet of the stand-in go on.
const STEP_EVERY: Duration = Duration::from_millis(100);

/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One in this many has drifted at each look.
const DRIFTED_EACH: usize = 10;

/// A git host and the API of its forge under one address: each repository is one with the same branches.
struct Site {
    git: RefsOnly,
    forge: Arc<ForgeHost>,
}

impl StandIn for Site {
    fn answer(&self, request: &Request) -> Reply {
        let Some(rest) = request.path.strip_prefix("/api/v1/repos/shop/") else { return self.git.answer(request) };
        let rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        self.forge.answer(&Request { path: format!("/api/v1/repos/shop/infra/{rest}"), ..request.clone() })
    }
}

fn name(number: usize) -> String {
    format!("repo-{number:04}")
}

fn repo(number: usize) -> Value {
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"namespace": PLACE, "name": name(number)},
        "spec": {
            "url": format!("https://{HOST}/shop/{}.git", name(number)),
            "driftEvery": format!("{DRIFT_EVERY}s"),
            "report": {"type": "gitea", "secretRef": {"name": "forge"}},
            "runner": {"preset": "Command", "image": "tool:1", "steps": {"plan": ["plan"], "apply": ["apply"]}},
        },
    })
}

/// Each container ends well at once; one Repo in ten has something to change whenever it is looked at.
fn script() -> io::Result<Script> {
    let said =
        |plan: &[u8]| Message::Planned(fingerprint(Preset::Command, plan).map_err(other)?).to_json().map_err(other);
    let (none, some) = (said(b"")?, said(b"what somebody changed by hand")?);
    Ok(Script::new(move |run| {
        let end = End::default();
        let number = run.job.split('-').nth(1).and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
        let message = if number.is_multiple_of(DRIFTED_EACH) { &some } else { &none };
        Outcome::Ends(Duration::ZERO, if run.container == "report" { end.saying(message) } else { end })
    }))
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Prints what looks at drift and reports cost.
pub async fn measure(cluster: &Cluster, report: &mut Report) -> io::Result<()> {
    let kubernetes = &cluster.world.kubernetes;
    kubernetes.set_installed("allclear.dev", true);
    kubernetes.set_job_script(Some(script()?));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"token": STANDARD.encode(TOKEN)},
        "metadata": {"namespace": PLACE, "name": "forge", "annotations": {"allclear.dev/send-to": HOST}},
    });
    kubernetes.apply(secret).map_err(refused)?;
    for number in 0..REPOS {
        kubernetes.put(repo(number)).map_err(refused)?;
    }
    let branches = Arc::new(Table::default());
    branches.set("main", &commit(0));
    let forge = Arc::new(ForgeHost::new(forge::Kind::Gitea, "shop/infra", TOKEN, branches));
    forge.add(Pull { commit: commit(0), ..Pull::new("main", "release", "A change", "") });
    let site = Server::start(Arc::new(Site { git: RefsOnly::default(), forge: Arc::clone(&forge) })).await?;
    let machinery = Machinery::start(kubernetes);
    let more = [
        ("ALLCLEAR__REPO__ENABLED", "auto".to_owned()),
        ("ALLCLEAR__REPO__STEP_IMAGE", "allclear:scale".to_owned()),
        ("ALLCLEAR__PIPELINE__ENABLED", "off".to_owned()),
        (stand_in::HOSTS, format!("{HOST}={}", site.address())),
    ];
    let more = more.map(|(name, value)| (name.to_owned(), value));
    let environment: BTreeMap<_, _> = cluster.environment().into_iter().chain(more).collect();
    let controller = Controller::start(&std::env::current_exe()?.to_string_lossy(), &environment).await?;
    let scene = Scene { cluster, site, forge, controller };
    scene.first_runs(report).await?;
    scene.at_rest(report).await?;
    scene.looks(report).await?;
    machinery.stop();
    report.line("stopping (SIGTERM)", seconds(scene.controller.stop().await?), "≤ 5 s");
    Ok(())
}

/// The Job controller and the kubelet, which go on by themselves.
struct Machinery(Arc<AtomicBool>);

impl Machinery {
    fn start(kubernetes: &KubernetesStandIn) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (is_over, kubernetes) = (Arc::clone(&ends), kubernetes.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                kubernetes.step();
                std::thread::sleep(STEP_EVERY);
            }
        });
        Self(ends)
    }

    fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Scene<'a> {
    cluster: &'a Cluster,
    site: Server,
    forge: Arc<ForgeHost>,
    controller: Controller,
}

/// What had been used until a moment.
struct Used {
    at: Instant,
    cpu: Duration,
    writes: u64,
}

impl Scene<'_> {
    fn used(&self) -> io::Result<Used> {
        Ok(Used { at: Instant::now(), cpu: self.controller.cpu()?, writes: self.cluster.writes() })
    }

    /// The conditions of this type that are so.
    fn conditions(&self, kind: &str, is: &[&str]) -> usize {
        let repos = self.cluster.world.kubernetes.list(Kind::Repo, PLACE);
        let has = |repo: &&Value| {
            let all = repo.pointer("/status/conditions").and_then(Value::as_array);
            all.into_iter().flatten().any(|one| one["type"] == kind && is.iter().any(|status| one["status"] == *status))
        };
        repos.iter().filter(has).count()
    }

    /// Every Repo runs its first commit, and says so at the forge.
    async fn first_runs(&self, report: &mut Report) -> io::Result<()> {
        let from = self.used()?;
        until_within(RUN_MAX, LOOK_EVERY, "the first runs", || {
            (self.conditions("Ready", &["True"]) == REPOS).then_some(())
        })
        .await?;
        report.line(&format!("{REPOS} new Repos with reports: all applied after"), seconds(from.at.elapsed()), "");
        until_within(RUN_MAX, LOOK_EVERY, "the reports", || {
            (self.conditions("Reported", &["True"]) == REPOS).then_some(())
        })
        .await?;
        report.line("… and all told to the forge after", seconds(from.at.elapsed()), "");
        report.line("… processor time", seconds(self.controller.cpu()?.saturating_sub(from.cpu)), "");
        report.line("… writes to the API server", (self.cluster.writes() - from.writes).to_string(), "");
        let states = self.forge.states().len();
        report.line("… states at the forge", states.to_string(), &REPOS.to_string());
        Ok(())
    }

    /// Nothing is due yet but looks at git, one a minute for each.
    async fn at_rest(&self, report: &mut Report) -> io::Result<()> {
        tokio::time::sleep(IDLE).await;
        let from = self.used()?;
        tokio::time::sleep(IDLE).await;
        self.share(&from, "30 s at rest", report)?;
        report.memory("… memory", self.controller.memory()?, "");
        Ok(())
    }

    /// Looks at drift go on.
    async fn looks(&self, report: &mut Report) -> io::Result<()> {
        let first = || (self.conditions("Drifted", &["True", "False"]) > 0).then_some(());
        until_within(FIRST_MAX, LOOK_EVERY, "the first look at drift", first).await?;
        let (from, before) = (self.used()?, self.jobs_made());
        tokio::time::sleep(WATCHED).await;
        self.share(&from, &format!("{} s of looks at drift", WATCHED.as_secs()), report)?;
        let looks = self.jobs_made() - before;
        let due =
            REPOS * usize::try_from(WATCHED.as_secs()).unwrap_or_default() / usize::try_from(DRIFT_EVERY).unwrap_or(1);
        report.line("… Jobs made for them", looks.to_string(), &format!("≤ {due}"));
        let (drifted, in_sync) = (self.conditions("Drifted", &["True"]), self.conditions("Drifted", &["False"]));
        report.line("… Repos that have drifted, and those in sync", format!("{drifted}, {in_sync}"), "one to nine");
        report.memory("… memory", self.controller.memory()?, "");
        Ok(())
    }

    fn jobs_made(&self) -> usize {
        let seen = self.cluster.world.api.seen();
        seen.iter().filter(|seen| seen.method == "POST" && seen.path.ends_with("/jobs")).count()
    }

    /// The part of a processor, requests and writes since then.
    fn share(&self, from: &Used, what: &str, report: &mut Report) -> io::Result<()> {
        let took = from.at.elapsed().as_secs_f64();
        let busy = self.controller.cpu()?.saturating_sub(from.cpu).as_secs_f64() / took * 100.0;
        report.line(&format!("{what}: share of a processor, TLS aside"), format!("{busy:.1} %"), "");
        report.line("… writes to the API server", (self.cluster.writes() - from.writes).to_string(), "");
        let asked = self.cluster.world.api.seen();
        let asked = asked.iter().filter(|seen| seen.at >= from.at && !seen.query.contains_key("watch")).count();
        report.line("… requests to the API server, watches aside", asked.to_string(), "");
        let told = self.site.seen().iter().filter(|seen| seen.at >= from.at && seen.path.starts_with("/api/")).count();
        report.line("… requests to the forge's API", told.to_string(), "");
        Ok(())
    }
}
