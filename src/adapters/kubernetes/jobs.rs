//! Jobs of Repos as [`Jobs`], on the API of `batch/v1`: made suspended, started by a compare-and-set, followed by the label that
//! names the Repo's UID.
//!
//! What a Job consists of is in `template`, and what is kept of one that was read in `read`.
//! Not for when one is made, started or removed; that is `objects::repo`'s.

mod extras;
mod lock;
mod outputs;
mod read;
mod template;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::select;
use serde_json::json;

use super::PODS;
use apiserver::{Answer, Api, CallError, Clients, Collection, Decoder, Look, Reach, Reading, Resource, Tempo, Watches};
use kernel::id::RepoId;
use objects::ports::repo::{JobSight, Jobs, Made, Start};
use objects::repo::job::{self, Job, Order, Pod};
use purge::ports::{Flow, PortError};

const JOBS: Resource = Resource::new("batch", "v1", "jobs");

/// Labels of a Job and of its pod: whose it is, by name and by UID, and which of the Repo's Jobs.
const REPO: &str = "allclear.dev/repo";
const REPO_UID: &str = "allclear.dev/repo-uid";
const SEQ: &str = "allclear.dev/seq";
const ACTION: &str = "allclear.dev/action";
const ATTEMPT: &str = "allclear.dev/attempt";

/// An annotation of a Job: the commit that it fetches.
const REVISION: &str = "allclear.dev/revision";

/// The mark of a Job that we have started, or tried to. The Job's status says when.
const STARTED: &str = "allclear.dev/started";

/// The mark of a Job that we have taken back, or tried to.
const WITHDRAWN: &str = "allclear.dev/withdrawn";

/// The label by which the Job controller of every version finds its pods
/// (<https://kubernetes.io/docs/reference/labels-annotations-taints/#job-name>).
const JOB_NAME: &str = "job-name";

/// The UID of a pod's Job, which stays when the pod has no owner any more
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/job/#specifying-your-own-pod-selector>).
const JOB_UID: &str = "controller-uid";

/// The kubelet takes the end of a log for the termination message of a container that failed and wrote none.
const LOG_ON_ERROR: &str = "FallbackToLogsOnError";

/// How the API server refuses what a quota has no room for (its admission plugin *ResourceQuota*).
const OVER_QUOTA: &str = "exceeded quota";

/// The Jobs of one cluster.
pub struct KubernetesJobs {
    watches: Watches,
    api: Api,
    ours: Ours,
}

/// What the containers of ours need.
#[derive(Clone, Debug, Default)]
pub struct Ours {
    /// Their image; empty if it is not known.
    pub image: String,
    /// Git hosts that may have private addresses.
    pub private_hosts: Vec<String>,
    /// Stand-ins for git hosts, each as `HOST=IP:PORT`: only the demo and tests have any.
    pub stand_ins: Vec<String>,
}

impl KubernetesJobs {
    /// Those of the cluster that these clients talk to. Nothing is asked for yet.
    pub fn new(clients: &Clients, tempo: Tempo, ours: Ours) -> Self {
        Self { watches: Watches::new(clients.watch.clone(), tempo), api: Api::new(clients.request.clone()), ours }
    }

    /// The Job of a name that was taken already.
    async fn found(&self, of: &Collection, order: &Order, taken: CallError) -> Result<Made, PortError> {
        // A 409 is also how a quota says that others were faster; then there is no such Job.
        let Some(answer) = self.api.get(of, &order.name).await? else { return Err(taken.error) };
        // One that does not say which of ours it is, is another's.
        let Ok(job) = answer.object(read::job) else { return Ok(Made::Taken) };
        let ours =
            job.owner.as_ref() == Some(&order.uid) && (job.attempt, &job.revision) == (order.attempt, &order.revision);
        Ok(if ours { Made::Ours(Box::new(job)) } else { Made::Taken })
    }

    /// Marks a Job and suspends it or not, if it still is as it was seen.
    async fn mark(
        &self,
        of: &Collection,
        repo: &RepoId,
        job: &Job,
        mark: &str,
        suspend: bool,
    ) -> Result<Start, PortError> {
        let change = json!({
            "metadata": {"uid": job.uid, "resourceVersion": job.version, "annotations": {mark: "true"}},
            "spec": {"suspend": suspend},
        });
        match self.api.merge(of, &job.name, &change).await {
            Ok(answer) => Ok(Start::Done(Box::new(read_job(&answer)?))),
            // It is gone, or of another version.
            Err(failed) if matches!(failed.status(), Some(404 | 409)) => Ok(Start::Refused),
            // A patch that names another object of this name would change its UID, which is wrong for good.
            Err(failed) if failed.status() == Some(422) && self.is_another(of, job).await? => Ok(Start::Refused),
            Err(failed) => Err(refused(failed, repo)),
        }
    }

    /// What a watch of these objects says.
    fn sights<T: Named>(&self, repo: &RepoId, of: Collection, read: Decoder<T>, words: Words<T>) -> Flow<JobSight> {
        let (attempt, namespace) = (of.attempt("watch").to_string(), repo.namespace.clone());
        let mut listing = None;
        let looks = self.watches.watch(of, read, Reach::default());
        let sights = looks.filter_map(move |look| std::future::ready(sight(look, &mut listing, &attempt, &words)));
        Box::pin(sights.map(move |sight| match sight {
            JobSight::Trouble(error) => JobSight::Trouble(advised(error, &namespace)),
            seen => seen,
        }))
    }

    /// Whether there is another Job of this name than the one that was seen, or none.
    async fn is_another(&self, of: &Collection, job: &Job) -> Result<bool, PortError> {
        Ok(match self.api.get(of, &job.name).await? {
            Some(answer) => read_job(&answer)?.uid != job.uid,
            None => true,
        })
    }
}

#[async_trait]
impl Jobs for KubernetesJobs {
    fn watch(&self, repo: &RepoId, uid: &str) -> Flow<JobSight> {
        let jobs = self.sights(
            repo,
            Collection::of(JOBS, &repo.namespace).labelled(REPO_UID, uid),
            read::job,
            Words { all: JobSight::All, seen: |job| JobSight::Seen(Box::new(job)), gone: JobSight::Gone },
        );
        let pods = self.sights(
            repo,
            Collection::of(PODS, &repo.namespace).labelled(REPO, &job::label(repo)),
            read::pod,
            Words { all: JobSight::Pods, seen: |pod| JobSight::Pod(Box::new(pod)), gone: JobSight::PodGone },
        );
        Box::pin(select(jobs, pods))
    }

    async fn make(&self, order: &Order) -> Result<Made, PortError> {
        let of = Collection::of(JOBS, &order.repo.namespace);
        let unfit = |why| PortError::lasting(of.attempt_one("create", &order.name).to_string(), why);
        let body = template::job(order, &self.ours).map_err(unfit)?;
        match self.api.create(&of, Some(&order.name), &body).await {
            // It is made, so it is not to be given up for good, whatever the answer is.
            Ok(answer) => Ok(Made::Ours(Box::new(read_job(&answer)?))),
            Err(failed) if failed.status() == Some(409) => self.found(&of, order, failed).await,
            Err(failed) => Err(refused(failed, &order.repo)),
        }
    }

    async fn start(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError> {
        let of = Collection::of(JOBS, &repo.namespace);
        self.mark(&of, repo, job, STARTED, false).await
    }

    async fn withdraw(&self, repo: &RepoId, job: &Job) -> Result<Start, PortError> {
        let of = Collection::of(JOBS, &repo.namespace);
        self.mark(&of, repo, job, WITHDRAWN, true).await
    }

    async fn look(&self, repo: &RepoId, name: &str) -> Result<Option<Job>, PortError> {
        let of = Collection::of(JOBS, &repo.namespace);
        let found = self.api.get(&of, name).await.map_err(|failed| advised(failed.error, &repo.namespace))?;
        let Some(answer) = found else { return Ok(None) };
        answer.read(read::job).map(Some)
    }

    async fn pods(&self, repo: &RepoId, name: &str, uid: &str) -> Result<Vec<Pod>, PortError> {
        let of = Collection::of(PODS, &repo.namespace);
        let found = self.api.all(&of, Some(&format!("{JOB_NAME}={name}")), read::pod).await;
        let found = found.map_err(|failed| advised(failed.error, &repo.namespace))?;
        Ok(found.into_iter().filter(|pod| pod.job == uid).collect())
    }

    async fn remove(&self, repo: &RepoId, name: &str, uid: &str) -> Result<(), PortError> {
        // Jobs of `batch/v1` leave their pods behind where this is not said
        // (<https://kubernetes.io/docs/concepts/architecture/garbage-collection/#orphaned-dependents>).
        let of = Collection::of(JOBS, &repo.namespace);
        self.api.delete_exactly(&of, name, uid).await.map_err(|failed| advised(failed.error, &repo.namespace))
    }
}

/// What a write has answered. The write is done, so it is not to be given up for good, whatever the answer is.
fn read_job(answer: &Answer) -> Result<Job, PortError> {
    let unreadable = |why| PortError::passing(answer.attempted.as_str(), format!("its answer cannot be read: {why}"));
    answer.object(read::job).map_err(unreadable)
}

/// How sights of one kind of objects are put.
struct Words<T> {
    all: fn(Vec<T>) -> JobSight,
    seen: fn(T) -> JobSight,
    gone: fn(String) -> JobSight,
}

/// An object with a name.
trait Named: Send + 'static {
    const KIND: &'static str;
    fn name(&self) -> &str;
}

impl Named for Job {
    const KIND: &'static str = "Job";
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for Pod {
    const KIND: &'static str = "pod";
    fn name(&self) -> &str {
        &self.name
    }
}

/// What a look comes to. `listing` holds what was seen of a listing that is not complete.
fn sight<T: Named>(look: Look<T>, listing: &mut Option<Vec<T>>, attempt: &str, words: &Words<T>) -> Option<JobSight> {
    match look {
        Look::Restarted => {
            *listing = Some(Vec::new());
            None
        }
        Look::Seen(Reading::Read(one)) => match listing {
            Some(seen) => {
                seen.retain(|other| other.name() != one.name());
                seen.push(one);
                None
            }
            None => Some((words.seen)(one)),
        },
        Look::Seen(Reading::Unreadable(name, why)) => {
            let kind = T::KIND;
            Some(JobSight::Trouble(PortError::lasting(attempt, format!("{kind} {} cannot be read: {why}", name.name))))
        }
        Look::Gone(name) => {
            listing.iter_mut().for_each(|seen| seen.retain(|other| other.name() != name.name));
            Some((words.gone)(name.name))
        }
        // A watch that goes on after trouble, without a new listing, has missed nothing.
        Look::Synced => listing.take().map(words.all),
        Look::Trouble(error) => Some(JobSight::Trouble(error)),
    }
}

/// A write that was refused, with what to do about it.
fn refused(failed: CallError, repo: &RepoId) -> PortError {
    let CallError { failure, error } = failed;
    let said = failure.message.as_str();
    let by_quota = failure.status == Some(403) && said.contains(OVER_QUOTA);
    if by_quota {
        let advice = "it is tried again; raise the quota, or remove what uses it up";
        return PortError { attempted: error.attempted, ..PortError::passing("", format!("{said}; {advice}")) };
    }
    // Other plugins of admission, too, as that of PodSecurity. Of a missing right it is said: cannot create resource "jobs".
    let is_no_right = failure.status == Some(403) && error.denied && !said.contains(" resource \"");
    if failure.is_by_policy() || is_no_right {
        let advice = "a policy of the cluster refuses the Job; change spec.runner, or the policy for Jobs of allclear";
        return PortError::lasting(error.attempted, format!("{said}; {advice}"));
    }
    if matches!(failure.status, Some(400 | 422)) {
        let cause = format!("{}; correct spec.runner of Repo {}", error.cause, repo.name);
        return PortError { cause, ..error };
    }
    advised(error, &repo.namespace)
}

/// Says where the Role is, if a right is missing.
fn advised(error: PortError, namespace: &str) -> PortError {
    if !error.denied {
        return error;
    }
    let cause =
        format!("{}; deploy/components/repo-namespace has the Role for it: apply it in {namespace}", error.cause);
    PortError { cause, ..error }
}

#[cfg(test)]
mod tests;
