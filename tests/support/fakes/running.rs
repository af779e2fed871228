//! What Repos meet: objects and Jobs that an API server keeps, a git host, and containers that end by themselves.
//!
//! Calls are named `repos.…`, `git.…` and `jobs.…`, each about the Repo.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::id::{CommitId, RepoId};
use objects::apps::app::{Look, TargetKey};
use objects::kept::{Answers, Finalizers};
use objects::ports::repo::{
    Begins, Comparison, Found, Heads, Holds, JobSight, Jobs, Made, Needs, Reports, Running, Saying, Start, Unresolved,
};
use objects::repo::Repo;
use objects::repo::job::{End, Job, Order, Place, Pod, Pods, Step, StepKind, StepState};
use objects::repo::plan::{Message, Planned};
use objects::repo::spec::{Approving, Gates, Keep, Object, Preset, Retry, Runner, Source, Spec, Steps};
use objects::repo::status::{Action, Phase, Status};
use purge::ports::{Flow, PortError};
use tokio::sync::mpsc;

use super::objects::{Calls, Out, Shelf, flow};
use super::{Millis, World, failed};

const CALLS: Calls = Calls { served: "repos.served", read: "repos.read", write: "repos.write" };

#[derive(Default)]
pub struct Runs {
    on: bool,
    shelf: Shelf<Repo>,
    /// That of the newest Job.
    version: u64,
    heads: BTreeMap<RepoId, CommitId>,
    /// Commits that change nothing that concerns anybody.
    idle: BTreeSet<CommitId>,
    /// Repos of which something is another thing than what was applied.
    drifted: BTreeSet<RepoId>,
    jobs: BTreeMap<(RepoId, String), Job>,
    job_watches: Vec<(RepoId, String, Out<JobSight>)>,
    /// Every Job that was started, in order.
    pub started: Vec<(Millis, RepoId, String)>,
    /// Jobs of one Repo that ran at the same time.
    pub overlaps: Vec<(RepoId, String)>,
    /// Removals of Jobs that had not ended.
    pub torn: Vec<String>,
}

/// A Repo of this name in `platform` that applies each commit at once.
pub fn repo(name: &str) -> Object {
    let spec = Spec {
        source: Source { url: format!("https://git.example.com/{name}.git"), ..Source::default() },
        interval: Duration::from_mins(1),
        approval: Approving::Auto,
        runner: Runner {
            preset: Preset::Command,
            image: "tool:1".to_owned(),
            steps: Steps { apply: vec!["apply".to_owned()], ..Steps::default() },
            ..Runner::default()
        },
        workspace: None,
        retry: Retry { limit: 0, backoff: Duration::from_mins(1) },
        gates: Gates::default(),
        suspended: None,
        keep: Keep { succeeded: 1, failed: 1 },
        stalled_after: Duration::from_hours(1),
        drift: None,
        report: None,
    };
    Object {
        id: RepoId::new("platform", name),
        uid: format!("{name}-uid"),
        generation: 1,
        version: String::new(),
        spec: Ok(spec),
        answers: Answers::default(),
        status: Status { observed_generation: -1, ..Status::default() },
        deleting: false,
        finalizers: Finalizers::default(),
    }
}

impl Runs {
    pub(super) fn life_ends(&mut self) {
        self.shelf.life_ends();
        self.job_watches.clear();
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn show_job(&mut self, repo: &RepoId, job: &Job) {
        self.job_watches.retain(|(of, uid, out)| {
            (of != repo || Some(uid) != job.owner.as_ref())
                || out.send(Some(JobSight::Seen(Box::new(job.clone())))).is_ok()
        });
    }
}

impl World {
    /// What Repos meet, where the feature is on.
    pub(super) fn running_ports(&self) -> Option<Running> {
        let runs = &self.state().runs;
        runs.on.then(|| Running {
            kind: self.kind_ports(runs.shelf.port(self, CALLS)),
            heads: Arc::new(self.clone()),
            jobs: Arc::new(self.clone()),
            holds: Arc::new(self.clone()),
            needs: Arc::new(self.clone()),
            reports: Arc::new(self.clone()),
        })
    }

    /// A person applies a Repo; the status stays.
    pub fn apply_repo(&self, object: Object) {
        let runs = &mut self.state().runs;
        runs.on = true;
        runs.shelf.apply(object);
    }

    /// A person deletes a Repo, and Kubernetes its Jobs.
    pub fn delete_repo(&self, name: &str) {
        let id = RepoId::new("platform", name);
        let runs = &mut self.state().runs;
        runs.shelf.remove(&id);
        runs.jobs.retain(|(of, _), _| *of != id);
    }

    /// The repository of a Repo has this commit at its head.
    pub fn push(&self, name: &str, commit: &str) {
        self.state().runs.heads.insert(RepoId::new("platform", name), commit.parse().expect("a commit's id"));
    }

    /// The same, of a commit that has the content of the one before wherever that counts.
    pub fn push_idle(&self, name: &str, commit: &str) {
        self.state().runs.idle.insert(commit.parse().expect("a commit's id"));
        self.push(name, commit);
    }

    /// Somebody changes by hand what a Repo has applied.
    pub fn drift(&self, name: &str) {
        self.state().runs.drifted.insert(RepoId::new("platform", name));
    }

    /// The commit of a Repo's newest run, and how far it has got.
    pub fn ran(&self, name: &str) -> Option<(String, Phase)> {
        let run = self.state().runs.shelf.get(&RepoId::new("platform", name))?.status.run?;
        Some((run.revision.to_string(), run.phase))
    }

    /// Every Job that runs ends well.
    pub fn end_jobs(&self) {
        let mut state = self.state();
        let runs = &mut state.runs;
        let running: Vec<_> =
            runs.jobs.iter().filter(|(_, job)| job.pods.active > 0).map(|(key, _)| key.clone()).collect();
        for (repo, name) in running {
            let version = runs.next_version();
            let Some(job) = runs.jobs.get_mut(&(repo.clone(), name)) else { continue };
            *job = Job { end: Some(End::Complete), pods: Pods::default(), version, ..job.clone() };
            let job = job.clone();
            if job.attempt.action == Action::Apply {
                runs.drifted.remove(&repo);
            }
            runs.show_job(&repo, &job);
        }
    }

    /// The reader of the Repos' watch panics.
    pub fn panic_running(&self) {
        self.state().runs.shelf.panic();
    }
}

#[async_trait]
impl Heads for World {
    async fn resolve(&self, repo: &RepoId, _: &Spec, begins: &Begins<'_>) -> Result<Found, Unresolved> {
        begins();
        let unresolved = |why: String| Unresolved { why, lasting: false, busy: false, rest: Duration::ZERO };
        let lost = self.port("git.resolve", &repo.to_string()).await.map_err(|error| unresolved(error.to_string()))?;
        let revision = self.state().runs.heads.get(repo).cloned();
        match revision.filter(|_| !lost) {
            Some(revision) => Ok(Found { revision, name: "refs/heads/main".to_owned() }),
            None => Err(unresolved("no such repository".to_owned())),
        }
    }

    async fn compare(&self, repo: &RepoId, question: &Comparison) -> Result<bool, Unresolved> {
        match self.port("git.compare", &repo.to_string()).await {
            Ok(false) => Ok(self.state().runs.idle.contains(&question.head)),
            Ok(true) | Err(_) => {
                Err(Unresolved { why: "no answer".to_owned(), lasting: false, busy: false, rest: Duration::ZERO })
            }
        }
    }
}

#[async_trait]
impl Reports for World {
    async fn say(&self, _: &Saying) -> Result<u32, Unresolved> {
        Ok(0)
    }
}

#[async_trait]
impl Holds for World {
    /// No Repo here asks on deletion.
    async fn hold(&self, repo: &RepoId, _: &str, _: bool) -> Result<(), PortError> {
        self.port("repos.hold", &repo.to_string()).await.map(drop)
    }
}

#[async_trait]
impl Needs for World {
    async fn see(&self, needs: &[TargetKey]) -> Vec<(TargetKey, Result<Option<Look>, PortError>)> {
        let mut seen = Vec::new();
        for need in needs {
            let read = match self.port("needs.see", &need.display_name()).await {
                Ok(false) => Ok(self.state().promotions.targets.get(need).cloned()),
                Ok(true) => Err(failed("needs.see")),
                Err(error) => Err(error),
            };
            seen.push((need.clone(), read));
        }
        seen
    }
}

#[async_trait]
impl Jobs for World {
    fn watch(&self, repo: &RepoId, uid: &str) -> Flow<JobSight> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.state();
        let of = |((of, _), job): (&(RepoId, String), &Job)| {
            (of == repo && job.owner.as_deref() == Some(uid)).then(|| job.clone())
        };
        let _ = sender.send(Some(JobSight::All(state.runs.jobs.iter().filter_map(of).collect())));
        let _ = sender.send(Some(JobSight::Pods(Vec::new())));
        state.runs.job_watches.push((repo.clone(), uid.to_owned(), sender));
        flow(receiver, "the watch of Jobs")
    }

    async fn make(&self, order: &Order) -> Result<Made, PortError> {
        let lost = self.port("jobs.make", &order.repo.to_string()).await?;
        let made = {
            let mut state = self.state();
            let runs = &mut state.runs;
            if runs.shelf.get(&order.repo).is_none_or(|object| object.uid != order.uid) {
                // Kubernetes would collect it at once: its owner is gone.
                return Err(failed("jobs.make"));
            }
            let version = runs.next_version();
            let fresh = Job {
                name: order.name.clone(),
                uid: format!("job-{version}"),
                version,
                owner: Some(order.uid.clone()),
                attempt: order.attempt,
                revision: order.revision.clone(),
                marked: false,
                withdrawn: false,
                suspended: true,
                deleting: false,
                pods: Pods::default(),
                end: None,
            };
            let job = runs.jobs.entry((order.repo.clone(), order.name.clone())).or_insert(fresh).clone();
            runs.show_job(&order.repo, &job);
            Made::Ours(Box::new(job))
        };
        if lost { Err(failed("jobs.make")) } else { Ok(made) }
    }

    async fn start(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError> {
        let lost = self.port("jobs.start", &repo.to_string()).await?;
        let started = {
            let mut state = self.state();
            let now = state.now();
            let runs = &mut state.runs;
            let others =
                runs.jobs.iter().filter(|((of, name), other)| of == repo && *name != job.name && other.pods.active > 0);
            let overlaps: Vec<_> = others.map(|((of, name), _)| (of.clone(), name.clone())).collect();
            let version = runs.next_version();
            match runs.jobs.get_mut(&(repo.clone(), job.name.clone())) {
                Some(known) if known.version == job.version && known.uid == job.uid => {
                    let pods = Pods { active: 1, ..Pods::default() };
                    *known = Job { marked: true, suspended: false, pods, version, ..known.clone() };
                    let known = known.clone();
                    runs.overlaps.extend(overlaps);
                    runs.started.push((now, repo.clone(), known.name.clone()));
                    runs.show_job(repo, &known);
                    Start::Done(Box::new(known))
                }
                Some(_) | None => Start::Refused,
            }
        };
        if lost { Err(failed("jobs.start")) } else { Ok(started) }
    }

    async fn withdraw(&self, _: &RepoId, _: &Job) -> Result<Start, PortError> {
        // Nothing here is wanted that would take the place of a Job that did not run.
        Ok(Start::Refused)
    }

    async fn look(&self, repo: &RepoId, name: &str) -> Result<Option<Job>, PortError> {
        let lost = self.port("jobs.look", &repo.to_string()).await?;
        let job = self.state().runs.jobs.get(&(repo.clone(), name.to_owned())).cloned();
        if lost { Err(failed("jobs.look")) } else { Ok(job) }
    }

    async fn pods(&self, repo: &RepoId, name: &str, _: &str) -> Result<Vec<Pod>, PortError> {
        let lost = self.port("jobs.pods", &repo.to_string()).await?;
        let (job, empty) = {
            let runs = &self.state().runs;
            (runs.jobs.get(&(repo.clone(), name.to_owned())).cloned(), !runs.drifted.contains(repo))
        };
        if lost {
            return Err(failed("jobs.pods"));
        }
        let planned = Message::Planned(Planned { fingerprint: "1".repeat(64), counts: None, empty });
        let said = planned.to_json().expect("a message");
        let pod = |job: Job| {
            let over = job.end.is_some();
            let (kind, said) = match job.attempt.action {
                Action::Apply | Action::Destroy => (StepKind::Apply, String::new()),
                Action::Plan | Action::Drift | Action::DestroyPlan => (StepKind::Report, said),
            };
            let state = if over { StepState::Ended(0, String::new(), said) } else { StepState::Running };
            let steps = vec![Step { kind, state }];
            let place = if over { Place::Ended } else { Place::Node };
            Pod { name: format!("{name}-pod"), job: job.uid, place, alive: !over, steps, ..Pod::default() }
        };
        Ok(job.filter(|job| job.marked).map(pod).into_iter().collect())
    }

    async fn remove(&self, repo: &RepoId, name: &str, uid: &str) -> Result<(), PortError> {
        let lost = self.port("jobs.remove", &repo.to_string()).await?;
        {
            let mut state = self.state();
            let runs = &mut state.runs;
            let key = (repo.clone(), name.to_owned());
            let removed =
                runs.jobs.get(&key).is_some_and(|job| job.uid == uid).then(|| runs.jobs.remove(&key)).flatten();
            runs.torn.extend(removed.filter(|job| job.marked && job.end.is_none()).map(|job| job.name));
        }
        if lost { Err(failed("jobs.remove")) } else { Ok(()) }
    }
}
