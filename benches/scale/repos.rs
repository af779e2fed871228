//! Repos beside the core: 1,000 of them, looked at once a minute, 300 of them on a host that is dead, in the cluster of 10,000 Deployments.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox::http::{Reply, Request, Seen, Server, StandIn};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};
use support::controller::Controller;

use crate::cluster::{Cluster, refused, until};
use crate::{IDLE, Report, seconds, stand_in};

const REPOS: usize = 1_000;

/// Those on the host that is dead.
const DEAD: usize = 300;

/// Commits that are pushed, one after another.
const PUSHED: usize = 40;

/// Where the Repos are.
const PLACE: &str = "infra";

const HOST: &str = "git.example.com";
const DEAD_HOST: &str = "dead.example.com";

/// How long it may take until every Repo was looked at, and those of the dead host say so: after three looks in vain, which are a
/// minute, two and four apart.
const WARM_MAX: Duration = Duration::from_secs(900);

/// How often it is looked whether that is so.
const WARM_STEP: Duration = Duration::from_secs(5);

/// From then on until nothing is written any more: sentences for people follow within a second.
const CALM: Duration = Duration::from_secs(10);

/// How often connections are counted.
const COUNTED_EVERY: Duration = Duration::from_millis(100);

/// The state of a connection that is open, in Linux's list of them (`TCP_ESTABLISHED`,
/// <https://docs.kernel.org/networking/proc_net_tcp.html>).
const OPEN: &str = "01";

/// How long they are watched at rest.
const WATCHED: Duration = Duration::from_secs(150);

/// A look comes an interval after the last one, ten percent more at most.
const LATEST: Duration = Duration::from_secs(66);

/// A git host that knows refs and nothing else.
#[derive(Default)]
pub struct RefsOnly(Mutex<BTreeMap<String, String>>);

impl RefsOnly {
    fn commit(&self, name: &str) -> String {
        let moved = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        moved.unwrap_or_else(|| commit(0))
    }

    fn push(&self, name: &str, commit: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), commit.to_owned());
    }
}

impl StandIn for RefsOnly {
    fn answer(&self, request: &Request) -> Reply {
        let name = request.path.trim_start_matches('/').split(".git").next().unwrap_or_default();
        if request.path.ends_with("/info/refs") {
            let body =
                [packet("# service=git-upload-pack\n"), "0000".to_owned(), packet("version 2\n"), packet("ls-refs\n")];
            let body = format!("{}{}0000", body.concat(), packet("fetch=shallow\n"));
            return Reply::full(200, "application/x-git-upload-pack-advertisement", body);
        }
        let commit = self.commit(name);
        let refs = [
            packet(&format!("{commit} HEAD symref-target:refs/heads/main\n")),
            packet(&format!("{commit} refs/heads/main\n")),
        ];
        Reply::full(200, "application/x-git-upload-pack-result", format!("{}0000", refs.concat()))
    }
}

/// A line as git's protocol has it.
fn packet(line: &str) -> String {
    format!("{:04x}{line}", line.len() + 4)
}

/// Never forty zeros, which names no commit.
pub fn commit(number: usize) -> String {
    format!("{:040x}", number + 1)
}

fn name(number: usize) -> String {
    format!("repo-{number:04}")
}

/// As the program before ours left it: its commit counts as run, so a start runs nothing.
fn repo(number: usize) -> Value {
    let host = if number < REPOS - DEAD { HOST } else { DEAD_HOST };
    json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "metadata": {"namespace": PLACE, "name": name(number)},
        "spec": {
            "url": format!("https://{host}/{}.git", name(number)),
            "runner": {"preset": "Command", "image": "tool:1", "steps": {"apply": ["apply"]}},
        },
        "status": {"observedGeneration": 1, "gitSHA": commit(0), "runStatus": "Completed", "runJobName": "before"},
    })
}

/// The cluster, with Repos, and the git host.
struct Scene<'a> {
    cluster: &'a Cluster,
    git: Arc<RefsOnly>,
    site: Server,
    dead: SocketAddr,
}

/// Prints what Repos cost and how fast they are.
pub async fn measure(cluster: &Cluster, report: &mut Report) -> io::Result<()> {
    let kubernetes = &cluster.world.kubernetes;
    kubernetes.set_installed("allclear.dev", true);
    for number in 0..REPOS {
        kubernetes.put(repo(number)).map_err(refused)?;
    }
    let git = Arc::new(RefsOnly::default());
    let site = Server::start(git.clone()).await?;
    // Bound and given back: what connects to it is refused.
    let dead = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let scene = Scene { cluster, git, site, dead };
    let without = scene.idle_without(report).await?;
    let controller = scene.at_rest(without, report).await?;
    scene.push_all(report).await?;
    report.memory("Repos: memory after all of it", controller.memory()?, "");
    report.line("stopping (SIGTERM)", seconds(controller.stop().await?), "≤ 5 s");
    Ok(())
}

impl Scene<'_> {
    async fn start(&self, enabled: &str) -> io::Result<Controller> {
        let more = [
            ("ALLCLEAR__REPO__ENABLED", enabled.to_owned()),
            ("ALLCLEAR__REPO__STEP_IMAGE", "allclear:scale".to_owned()),
            ("ALLCLEAR__PIPELINE__ENABLED", "off".to_owned()),
            (stand_in::HOSTS, format!("{HOST}={},{DEAD_HOST}={}", self.site.address(), self.dead)),
        ];
        let more = more.map(|(name, value)| (name.to_owned(), value));
        let environment: BTreeMap<_, _> = self.cluster.environment().into_iter().chain(more).collect();
        Controller::start(&std::env::current_exe()?.to_string_lossy(), &environment).await
    }

    /// The heap of the core alone, in MiB.
    async fn idle_without(&self, report: &mut Report) -> io::Result<f64> {
        let controller = self.start("off").await?;
        controller.ready().await?;
        tokio::time::sleep(IDLE).await;
        let memory = controller.memory()?;
        report.memory("without Repos: 30 s after a start", memory, "");
        controller.stop().await?;
        Ok(memory.anonymous)
    }

    /// Looks go on, and nothing else.
    async fn at_rest(&self, without: f64, report: &mut Report) -> io::Result<Controller> {
        let controller = self.start("auto").await?;
        let known = controller.metric_is("allclear_repos", REPOS).await?;
        report.line(&format!("{REPOS} Repos: all have an actor after"), seconds(known), "");
        let warm = self.warm().await?;
        report.line(&format!("… the {DEAD} on a dead host say so after"), seconds(warm), "");
        tokio::time::sleep(CALM).await;
        let (from, cpu, writes) = (Instant::now(), controller.cpu()?, self.cluster.writes());
        let connections = self.most_connections(WATCHED).await?;
        let busy = (controller.cpu()? - cpu).as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
        let memory = controller.memory()?;
        report.memory("Repos at rest", memory, "");
        let each = (memory.anonymous - without) * 1024.0 / 1_000.0;
        report.line("… for each Repo", format!("{each:.1} KiB"), "≤ 8 KiB");
        report.line("… share of a processor, TLS aside", format!("{busy:.1} %"), "≤ 5 %");
        let looks: Vec<Seen> = self.site.seen().into_iter().filter(|seen| seen.at >= from).collect();
        let rate =
            format!("{:.1}/s", f64::from(u32::try_from(looks.len()).unwrap_or(u32::MAX)) / WATCHED.as_secs_f64());
        report.line(&format!("… looks at the {} on a host that answers", REPOS - DEAD), rate, "11.7/s");
        report.percentiles("… lateness of a look", lateness(&looks).into_iter(), &[(50, ""), (99, "≤ 5 s"), (100, "")]);
        report.line("… connections to the host at a time, at most", connections.to_string(), "≤ 16");
        let asked = self.cluster.world.api.seen();
        let asked = asked.iter().filter(|seen| seen.at >= from && !seen.query.contains_key("watch")).count();
        report.line("… requests to the API server, watches aside", asked.to_string(), "0, and the check of the kind");
        report.line("… writes to the API server", (self.cluster.writes() - writes).to_string(), "0");
        self.name_writes(from);
        Ok(controller)
    }

    /// Waits until every Repo of the dead host says that git fails; how long that took.
    async fn warm(&self) -> io::Result<Duration> {
        let from = Instant::now();
        loop {
            let repos = self.cluster.world.kubernetes.list(Kind::Repo, PLACE);
            let failed = |repo: &&Value| {
                let conditions = repo.pointer("/status/conditions").and_then(Value::as_array);
                conditions.into_iter().flatten().any(|one| one["reason"] == "GitFailed")
            };
            let count = repos.iter().filter(failed).count();
            if count == DEAD {
                return Ok(from.elapsed());
            }
            if from.elapsed() > WARM_MAX {
                return Err(io::Error::other(format!("only {count} of {DEAD} Repos say that git fails")));
            }
            tokio::time::sleep(WARM_STEP).await;
        }
    }

    /// How many connections to the git host were open at the same time, at most.
    async fn most_connections(&self, during: Duration) -> io::Result<usize> {
        let from = Instant::now();
        let port = format!(":{:04X}", self.site.address().port());
        let mut most = 0;
        while from.elapsed() < during {
            let table = std::fs::read_to_string("/proc/net/tcp")?;
            let is_open = |line: &&str| {
                let mut fields = line.split_whitespace().skip(2);
                fields.next().is_some_and(|remote| remote.ends_with(&port)) && fields.next() == Some(OPEN)
            };
            most = most.max(table.lines().filter(is_open).count());
            tokio::time::sleep(COUNTED_EVERY).await;
        }
        Ok(most)
    }

    /// Prints what was written since then: there should be nothing.
    fn name_writes(&self, from: Instant) {
        let seen = self.cluster.world.api.seen();
        for write in seen.iter().filter(|seen| seen.at >= from && seen.method != "GET") {
            println!("  {} {}", write.method, write.path);
        }
    }

    /// Measures the way from a poke to the look, and from the new commit to the start of its Job.
    async fn push_all(&self, report: &mut Report) -> io::Result<()> {
        let (mut looked, mut started) = (Vec::new(), Vec::new());
        let kubernetes = &self.cluster.world.kubernetes;
        for number in 0..PUSHED {
            let name = name(number);
            self.git.push(&name, &commit(number + 1));
            let poke = json!({"metadata": {"annotations": {"allclear.dev/requested-at": number.to_string()}}});
            let from = Instant::now();
            kubernetes.patch(Kind::Repo, PLACE, &name, &poke).map_err(refused)?;
            let first = |seen: Vec<Seen>, is: &dyn Fn(&Seen) -> bool| {
                kubernetes.step();
                seen.iter().find(|seen| seen.at >= from && is(seen)).map(|seen| seen.at)
            };
            let is_look = |seen: &Seen| seen.path.contains(&format!("/{name}.git/"));
            let look = until("a look", || first(self.site.seen(), &is_look)).await?;
            let is_start = |seen: &Seen| seen.method == "PATCH" && seen.path.contains(&format!("/jobs/{name}-"));
            let start = until("the start of a Job", || first(self.cluster.world.api.seen(), &is_start)).await?;
            looked.push(look.saturating_duration_since(from));
            started.push(start.saturating_duration_since(look));
            let ended = || {
                kubernetes.step();
                let object = kubernetes.get(Kind::Repo, PLACE, &name)?;
                let is = |pointer: &str, text: &str| object.pointer(pointer).and_then(Value::as_str) == Some(text);
                (is("/status/gitSHA", &commit(number + 1)) && is("/status/runStatus", "Completed")).then_some(())
            };
            until("the end of a Job", ended).await?;
        }
        report.percentiles("poke to look", looked.into_iter(), &[(50, ""), (100, "≤ 1 s")]);
        report.percentiles("look to start of the Job", started.into_iter(), &[(50, ""), (95, "≤ 500 ms"), (100, "")]);
        Ok(())
    }
}

/// How much later than an interval after the last one each look came.
fn lateness(looks: &[Seen]) -> Vec<Duration> {
    let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut late = Vec::new();
    for look in looks.iter().filter(|look| look.method == "POST") {
        if let Some(before) = last.insert(look.path.as_str(), look.at) {
            late.push(look.at.saturating_duration_since(before).saturating_sub(LATEST));
        }
    }
    late
}
