//! What containers of Jobs do here. Those of allclear run this very program, as their pods do; those of the user plan and apply an
//! infrastructure that is a list of servers for each Repo.
//!
//! Not for when a Job is made or started; that is the controller's, which is on trial.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{FILE, GIT};
use crate::demo::narration::LOOK_EVERY;
use crate::demo::stage::Part;
use objects::repo::job::StepKind;
use sandbox::kubernetes::{ContainerRun, End, KubernetesStandIn, Outcome, Script};
use sandbox::world::World;

/// Where a container finds its files.
const WORKSPACE: &str = "/workspace";

/// How long the kubelet may take to notice that a container runs, which is a moment.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

/// The containers and what they change.
pub(super) struct Pods {
    kubernetes: KubernetesStandIn,
    /// A folder for each Job, in place of the volumes of its pod.
    folder: PathBuf,
    /// Where the git host is.
    git: SocketAddr,
    scene: Mutex<Scene>,
}

#[derive(Default)]
struct Scene {
    /// Servers that there are, by Repo.
    servers: BTreeMap<String, BTreeSet<String>>,
    /// Applies that have begun do not go on.
    held: bool,
    ended: Vec<Ended>,
}

/// A container that has ended.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) job: String,
    pub(super) container: String,
    pub(super) code: i32,
    /// What it said to people.
    pub(super) words: String,
}

impl Pods {
    /// Lets the containers of this world do what is described above. Also returns what runs them.
    pub(super) fn start(world: &World, git: SocketAddr) -> (Arc<Self>, Part) {
        let folder = world.directory().join("pods");
        let pods = Arc::new(Self { kubernetes: world.kubernetes.clone(), folder, git, scene: Mutex::default() });
        let (started, mut to_run) = mpsc::unbounded_channel::<ContainerRun>();
        // The script must not block, so each container runs in a task of its own.
        world.kubernetes.set_job_script(Some(Script::new(move |run| {
            let _ = started.send(run.clone());
            Outcome::Holds
        })));
        let runner = Arc::clone(&pods);
        #[expect(clippy::disallowed_methods, reason = "a container is not waited for; it ends with the demo")]
        let kubelet = Part::play(async move {
            while let Some(run) = to_run.recv().await {
                let pods = Arc::clone(&runner);
                actix::spawn(async move { pods.run(&run).await });
            }
        });
        (pods, kubelet)
    }

    /// Lets applies stop where they are from now on, or go on.
    pub(super) fn hold(&self, held: bool) {
        self.scene().held = held;
    }

    /// A person makes a server by hand.
    pub(super) fn make_by_hand(&self, repo: &str, server: &str) {
        self.scene().servers.entry(repo.to_owned()).or_default().insert(server.to_owned());
    }

    /// Containers that have ended, in order, after the first so many.
    pub(super) fn ended_after(&self, known: usize) -> Vec<Ended> {
        self.scene().ended.iter().skip(known).cloned().collect()
    }

    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one container to its end.
    async fn run(&self, run: &ContainerRun) {
        let (end, words) = match self.work(run).await {
            Ok(done) => done,
            Err(error) => (End::with(1).saying(error.to_string()), error.to_string()),
        };
        let ContainerRun { namespace, job, container, .. } = run;
        let ended = Ended { job: job.clone(), container: container.clone(), code: end.code, words };
        self.scene().ended.push(ended);
        let noticed = async {
            while !self.kubernetes.finish(namespace, job, end.clone()) {
                sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(NOTICED_WITHIN, noticed).await.is_err() {
            tracing::warn!(job, container, "a container ended that was not running");
        }
    }

    /// How a container ends, and what it says.
    async fn work(&self, run: &ContainerRun) -> io::Result<(End, String)> {
        let folder = self.folder.join(&run.job);
        std::fs::create_dir_all(folder.join("out"))?;
        let repo = run.env.get("REPO_NAME").cloned().unwrap_or_default();
        match StepKind::named(&run.container) {
            Some(StepKind::Source | StepKind::Backend | StepKind::Report | StepKind::Verify) => {
                self.ours(run, &folder).await
            }
            Some(StepKind::Plan) => self.plan(&repo, &folder),
            Some(StepKind::Apply) => self.apply(&repo, &folder).await,
            Some(StepKind::Prepare) => prepare(&folder),
            // Nothing here keeps a lock, and no Repo of the demo names an output.
            Some(StepKind::Unlock | StepKind::Output | StepKind::Publish) | None => Ok((End::default(), String::new())),
        }
    }

    /// A container of ours: this program, with the arguments of the container.
    async fn ours(&self, run: &ContainerRun, folder: &Path) -> io::Result<(End, String)> {
        let log = folder.join(format!("{}.message", run.container));
        std::fs::write(&log, "")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.env_clear().kill_on_drop(true);
        command.args(run.command.iter().map(|word| match word.strip_prefix(WORKSPACE) {
            Some(rest) => format!("{}{rest}", folder.display()),
            None => word.clone(),
        }));
        if run.container == StepKind::Source.name() {
            command.arg("--stand-in").arg(format!("{GIT}={}", self.git));
        }
        let output = command.arg("--termination-log").arg(&log).output().await?;
        let end = End::with(output.status.code().unwrap_or(1)).saying(std::fs::read_to_string(&log)?);
        Ok((end, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// A stand-in for `terraform plan` and `terraform show -json`.
    fn plan(&self, repo: &str, folder: &Path) -> io::Result<(End, String)> {
        let (there, wanted) = (self.scene().servers.get(repo).cloned().unwrap_or_default(), wanted(folder)?);
        let change = |name: &String, actions: &str, before: Value, after: Value| {
            json!({
                "address": format!("server.{name}"), "mode": "managed",
                "change": {"actions": [actions], "before": before, "after": after, "after_unknown": {}},
            })
        };
        let added = wanted.difference(&there).map(|name| change(name, "create", Value::Null, json!({"name": name})));
        let removed = there.difference(&wanted).map(|name| change(name, "delete", json!({"name": name}), Value::Null));
        let changes: Vec<Value> = added.chain(removed).collect();
        let plan = json!({"format_version": "1.2", "applyable": !changes.is_empty(), "resource_changes": changes});
        std::fs::write(folder.join("out/plan.json"), plan.to_string())?;
        Ok((End::default(), String::new()))
    }

    /// A stand-in for `terraform apply`.
    async fn apply(&self, repo: &str, folder: &Path) -> io::Result<(End, String)> {
        let wanted = wanted(folder)?;
        while self.scene().held {
            sleep(LOOK_EVERY).await;
        }
        let words = format!("the servers are {}", Vec::from_iter(wanted.iter().map(String::as_str)).join(", "));
        self.scene().servers.insert(repo.to_owned(), wanted);
        Ok((End::default().saying(words.as_str()), words))
    }
}

/// A stand-in for `terraform init`, which notes where the state is: the configuration names a bucket.
fn prepare(folder: &Path) -> io::Result<(End, String)> {
    let data = folder.join("source/.terraform");
    std::fs::create_dir_all(&data)?;
    std::fs::write(data.join("terraform.tfstate"), json!({"version": 3, "backend": {"type": "s3"}}).to_string())?;
    Ok((End::default(), String::new()))
}

/// The servers that the commit asks for.
fn wanted(folder: &Path) -> io::Result<BTreeSet<String>> {
    let file = std::fs::read_to_string(folder.join("source").join(FILE))?;
    Ok(file.lines().map(str::to_owned).collect())
}
