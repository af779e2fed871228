//! Jobs of Repos over the wire: made once, started once by compare-and-set, watched, read, removed.

use std::time::Duration;

use allclear::adapters::kubernetes::jobs::{KubernetesJobs, Ours};
use futures_util::StreamExt;
use kernel::id::{RepoId, RunSeq};
use objects::ports::repo::{JobSight, Jobs, Made, Start};
use objects::repo::job::{self, End, Job, Order, Place, Pod, StepKind, StepState};
use objects::repo::spec::{Runner, Source, Steps};
use objects::repo::status::{Action, Attempt};
use purge::ports::Retry;
use sandbox::kubernetes::{self, Kind, Outcome, Script, Timings};
use serde_json::{Value, json};

use super::{Bench, PATIENCE, brisk};

const UID: &str = "5d5a5c1e-0000-4000-8000-000000000001";

fn repo() -> RepoId {
    RepoId::new("platform", "infra")
}

fn order(seq: u64) -> Order {
    let attempt = Attempt { seq: RunSeq(seq), action: Action::Apply, number: 1 };
    Order {
        name: job::name(&repo(), UID, attempt),
        repo: repo(),
        uid: UID.to_owned(),
        attempt,
        revision: "0123456789abcdef0123456789abcdef01234567".parse().expect("a commit's id"),
        source: Source { url: "https://git.example.com/platform/infra.git".to_owned(), ..Source::default() },
        runner: Runner {
            image: "terraform:1".to_owned(),
            steps: Steps {
                prepare: vec!["terraform".to_owned(), "init".to_owned()],
                plan: Vec::new(),
                apply: vec!["terraform".to_owned(), "apply".to_owned()],
                ..Steps::default()
            },
            deadline: Duration::from_secs(3_600),
            grace: Duration::from_secs(300),
            ..Runner::default()
        },
        workspace: None,
        planned: false,
        fingerprint: None,
        unlock: None,
        addresses: false,
    }
}

/// A cluster with a namespace, and the Jobs in it.
async fn start() -> (Bench, KubernetesJobs) {
    let bench = Bench::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform"}});
    bench.api.apply(namespace).unwrap();
    let jobs = KubernetesJobs::new(&bench.clients, brisk(), Ours { image: "allclear:1".to_owned(), ..Ours::default() });
    (bench, jobs)
}

async fn made(jobs: &KubernetesJobs, order: &Order) -> Job {
    match jobs.make(order).await.unwrap() {
        Made::Ours(job) => *job,
        Made::Taken => panic!("it is ours"),
    }
}

/// A Job that was made, that the Job controller has looked at, and that was started.
async fn started(bench: &Bench, jobs: &KubernetesJobs, order: &Order) -> Job {
    made(jobs, order).await;
    bench.api.settle();
    let there = jobs.look(&repo(), &order.name).await.unwrap().expect("it was made");
    match jobs.start(&repo(), &there).await.unwrap() {
        Start::Done(job) => *job,
        Start::Refused => panic!("nothing has changed"),
    }
}

async fn look(jobs: &KubernetesJobs, order: &Order) -> Job {
    jobs.look(&repo(), &order.name).await.unwrap().expect("it is there")
}

async fn pod(jobs: &KubernetesJobs, job: &Job) -> Pod {
    let mut pods = jobs.pods(&repo(), &job.name, &job.uid).await.unwrap();
    assert_eq!(pods.len(), 1, "{pods:?}");
    pods.remove(0)
}

fn raw(bench: &Bench, order: &Order) -> Value {
    bench.api.get(Kind::Job, "platform", &order.name).unwrap()
}

#[tokio::test]
async fn a_job_that_is_made_twice_is_one_job_and_runs_nothing() {
    let (bench, jobs) = start().await;
    let first = made(&jobs, &order(1)).await;
    assert_eq!(
        (first.owner.as_deref(), first.attempt, &first.revision),
        (Some(UID), order(1).attempt, &order(1).revision)
    );
    assert!(first.suspended && !first.marked && first.end.is_none());
    let again = made(&jobs, &order(1)).await;
    assert_eq!(again, first);
    bench.api.settle();
    assert_eq!((bench.api.list(Kind::Job, "").len(), bench.api.list(Kind::Pod, "").len()), (1, 0));
}

/// A release before it does not know its action, and leaves it alone.
#[tokio::test]
async fn a_look_at_drift_is_a_job_of_the_run_that_it_looks_at_and_has_no_step_that_applies() {
    let (bench, jobs) = start().await;
    let attempt = Attempt { seq: RunSeq(1), action: Action::Drift, number: 1 };
    let mut look = Order { attempt, name: job::name(&repo(), UID, attempt), planned: true, ..order(1) };
    let refused = jobs.make(&look).await.unwrap_err();
    assert!(refused.to_string().contains("it has no plan step; spec.runner.steps.plan"), "{refused}");
    look.runner.steps.plan = vec!["terraform".to_owned(), "plan".to_owned()];
    assert_ne!(look.name, order(1).name, "beside the Job that applied the commit");
    let applied = started(&bench, &jobs, &order(1)).await;
    let job = started(&bench, &jobs, &look).await;
    assert_eq!((job.attempt, job.marked, applied.attempt.action), (attempt, true, Action::Apply));
    let there = raw(&bench, &look);
    let labels = &there["metadata"]["labels"];
    let said = ["seq", "action", "attempt", "repo-uid"].map(|one| labels[format!("allclear.dev/{one}")].clone());
    assert_eq!(said, [json!("1"), json!("drift"), json!("1"), json!(UID)]);
    let pod = &there["spec"]["template"]["spec"];
    let all = ["initContainers", "containers"].map(|list| pod[list].as_array().unwrap().clone()).concat();
    let names: Vec<&str> = all.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["source", "prepare", "backend", "plan", "report"]);
}

#[tokio::test]
async fn a_job_that_another_has_is_taken_and_left_alone() {
    let (bench, jobs) = start().await;
    let others = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "platform", "name": order(1).name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x:1"}]}}},
    });
    bench.api.apply(others).unwrap();
    let before = raw(&bench, &order(1));
    assert_eq!(jobs.make(&order(1)).await.unwrap(), Made::Taken);
    // One that looks like ours, of a Repo that had the name before, or for another commit.
    made(&jobs, &order(2)).await;
    assert_eq!(jobs.make(&Order { uid: "another".to_owned(), ..order(2) }).await.unwrap(), Made::Taken);
    let moved = Order { revision: "f".repeat(40).parse().expect("a commit's id"), ..order(2) };
    assert_eq!(jobs.make(&moved).await.unwrap(), Made::Taken);
    assert_eq!(raw(&bench, &order(1)), before);
}

// Faults: RF2
#[tokio::test]
async fn a_job_is_started_only_as_it_was_seen_and_only_once() {
    let (bench, jobs) = start().await;
    let seen = made(&jobs, &order(1)).await;
    // The Job controller says that it is suspended: that is a change, too.
    bench.api.settle();
    assert_eq!(jobs.start(&repo(), &seen).await.unwrap(), Start::Refused);
    assert!(look(&jobs, &order(1)).await.suspended);
    let seen = look(&jobs, &order(1)).await;
    let Start::Done(now) = jobs.start(&repo(), &seen).await.unwrap() else { panic!("nothing has changed since") };
    assert!(now.marked && !now.suspended);
    assert_eq!(jobs.start(&repo(), &seen).await.unwrap(), Start::Refused);
    bench.api.settle();
    assert_eq!(bench.api.pods_ever(&seen.uid), 1);
    assert_eq!(look(&jobs, &order(1)).await.end, Some(End::Complete));
    // What was started is found by who makes it again.
    assert!(made(&jobs, &order(1)).await.marked);
}

#[tokio::test]
async fn another_job_of_the_name_is_never_started() {
    let (bench, jobs) = start().await;
    let seen = made(&jobs, &order(1)).await;
    bench.api.delete(Kind::Job, "platform", &order(1).name).unwrap();
    assert_eq!(jobs.start(&repo(), &seen).await.unwrap(), Start::Refused);
    let other = made(&jobs, &order(1)).await;
    assert!(other.uid != seen.uid);
    // Even if it had the version that was seen.
    let forged = Job { version: other.version.clone(), ..seen.clone() };
    assert_eq!(jobs.start(&repo(), &forged).await.unwrap(), Start::Refused);
    assert!(look(&jobs, &order(1)).await.suspended);
    // A refusal for another reason is an error.
    bench.refuse(422, 1, |request| request.method == "PATCH");
    let there = look(&jobs, &order(1)).await;
    let error = jobs.start(&repo(), &there).await.unwrap_err();
    assert!(error.retry == Retry::Never && error.cause.contains("refused by the test"), "{error}");
}

#[tokio::test]
async fn the_steps_of_a_pod_are_read_as_they_go() {
    let (bench, jobs) = start().await;
    bench.api.set_job_script(Some(Script::new(|run| match run.container.as_str() {
        "source" => Outcome::Ends(Duration::ZERO, kubernetes::End::default().saying("fetched")),
        _ => Outcome::Holds,
    })));
    let job = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    let states = |pod: Pod| pod.steps.into_iter().map(|step| (step.kind, step.state)).collect::<Vec<_>>();
    let source = (StepKind::Source, StepState::Ended(0, "Completed".to_owned(), "fetched".to_owned()));
    let later = [StepKind::Backend, StepKind::Apply].map(|step| (step, StepState::Waiting));
    let running = [source.clone(), (StepKind::Prepare, StepState::Running)];
    assert_eq!(states(pod(&jobs, &job).await), [&running[..], &later].concat());
    assert!(bench.api.finish("platform", &job.name, kubernetes::End::out_of_memory()));
    bench.api.settle();
    let prepare = (StepKind::Prepare, StepState::Ended(137, "OOMKilled".to_owned(), String::new()));
    let ended = pod(&jobs, &job).await;
    assert_eq!((ended.alive, ended.disrupted.clone()), (false, None));
    assert_eq!(states(ended), [&[source, prepare][..], &later].concat());
    let Some(End::Failed(reason, message)) = look(&jobs, &order(1)).await.end else { panic!("it failed") };
    assert_eq!(reason, "PodFailurePolicy");
    assert!(message.contains("Container prepare") && message.contains("exit code 137"), "{message}");
    // A pod of another Job of that name is not one of this Job's.
    assert_eq!(jobs.pods(&repo(), &job.name, "another").await.unwrap(), []);
    // What runs has what the order says.
    let run = bench.api.started_containers().into_iter().find(|run| run.container == "prepare").unwrap();
    assert_eq!((run.command.join(" ").as_str(), run.working_dir.as_str()), ("terraform init", "/workspace/source"));
    assert_eq!(run.env.get("GIT_SHA").map(String::as_str), Some(order(1).revision.as_str()));
}

// Faults: RF5
#[tokio::test]
async fn an_evicted_pod_ends_its_job_and_has_no_successor() {
    let (bench, jobs) = start().await;
    bench.api.set_timings(Timings { pod_gone: Duration::from_secs(300), ..Timings::IMMEDIATE });
    bench.api.set_job_script(Some(Script::new(|_| Outcome::Holds)));
    let job = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    bench.api.evict("platform", &job.name).unwrap();
    bench.api.settle();
    let told = pod(&jobs, &job).await;
    assert!(told.alive, "{told:?}");
    assert!(told.disrupted.as_deref().is_some_and(|why| why.starts_with("EvictionByEvictionAPI")), "{told:?}");
    let waiting = look(&jobs, &order(1)).await;
    assert_eq!((waiting.end, waiting.pods.active, waiting.pods.terminating), (None, 0, 1));
    bench.api.run_for(Duration::from_secs(301));
    let ended = look(&jobs, &order(1)).await;
    let Some(End::Failed(reason, message)) = ended.end else { panic!("it failed") };
    assert!(reason == "PodFailurePolicy" && message.contains("DisruptionTarget"), "{reason} {message}");
    assert_eq!((ended.pods.terminating, bench.api.pods_ever(&job.uid)), (0, 1));
}

// Faults: RF10
#[tokio::test]
async fn why_a_pod_does_not_run_is_said() {
    let (bench, jobs) = start().await;
    let waits = || Outcome::Waits("CreateContainerConfigError".to_owned(), "secret \"vars\" not found".to_owned());
    bench.api.set_job_script(Some(Script::new(move |_| waits())));
    let job = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    let waits = pod(&jobs, &job).await.waits;
    assert_eq!(waits.as_deref(), Some("CreateContainerConfigError: secret \"vars\" not found"));
}

#[tokio::test]
async fn a_job_is_removed_with_its_pods_and_another_one_is_left() {
    let (bench, jobs) = start().await;
    let job = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    jobs.remove(&repo(), &job.name, "another").await.unwrap();
    assert_eq!((look(&jobs, &order(1)).await.uid, bench.api.list(Kind::Pod, "platform").len()), (job.uid.clone(), 1));
    jobs.remove(&repo(), &job.name, &job.uid).await.unwrap();
    bench.api.settle();
    assert_eq!(jobs.look(&repo(), &job.name).await.unwrap(), None);
    assert_eq!(bench.api.list(Kind::Pod, "platform").len(), 0);
    jobs.remove(&repo(), &job.name, &job.uid).await.unwrap();
    bench.refuse(500, 1, |request| request.method == "DELETE");
    assert!(jobs.remove(&repo(), &job.name, &job.uid).await.is_err());
}

#[tokio::test]
async fn the_jobs_of_one_repo_are_watched_and_those_of_others_are_not() {
    let (bench, jobs) = start().await;
    made(&jobs, &order(1)).await;
    let mut other = order(1);
    other.uid = "another".to_owned();
    other.name = "other-1".to_owned();
    made(&jobs, &other).await;
    let mut flow = jobs.watch(&repo(), UID).filter(|sight| std::future::ready(!is_about_a_pod(sight)));
    let mut next = async || match tokio::time::timeout(PATIENCE, flow.next()).await.expect("it goes on").unwrap() {
        JobSight::All(all) => format!("all {}", all.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(" ")),
        JobSight::Seen(job) => format!("seen {} suspended={} marked={}", job.name, job.suspended, job.marked),
        JobSight::Gone(name) => format!("gone {name}"),
        other => panic!("{other:?}"),
    };
    let name = order(1).name;
    assert_eq!(next().await, format!("all {name}"));
    let there = look(&jobs, &order(1)).await;
    jobs.start(&repo(), &there).await.unwrap();
    assert_eq!(next().await, format!("seen {name} suspended=false marked=true"));
    jobs.remove(&repo(), &other.name, "another").await.unwrap();
    bench.api.delete(Kind::Job, "platform", &name).unwrap();
    assert_eq!(next().await, format!("gone {name}"));
    let watched = bench.seen(|seen| seen.query.contains_key("watch") && seen.path.ends_with("/jobs"));
    let selected = |seen: &sandbox::http::Seen| {
        seen.query.get("labelSelector").map(String::as_str) == Some(&*format!("allclear.dev/repo-uid={UID}"))
    };
    assert!(!watched.is_empty() && watched.iter().all(selected), "{watched:?}");
}

fn is_about_a_pod(sight: &JobSight) -> bool {
    matches!(sight, JobSight::Pods(_) | JobSight::Pod(_) | JobSight::PodGone(_))
}

/// A pod of every Repo of this name, whatever has become of its Job: a new Repo waits for it (decision 62).
#[tokio::test]
async fn a_pod_that_its_job_or_its_repo_left_is_seen_and_read() {
    let (bench, jobs) = start().await;
    bench.api.set_timings(Timings { pod_gone: Duration::from_secs(300), ..Timings::IMMEDIATE });
    bench.api.set_job_script(Some(Script::new(|_| Outcome::Holds)));
    let job = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    let mut orphan = bench.api.list(Kind::Pod, "platform").remove(0);
    orphan["metadata"]["ownerReferences"] = json!([]);
    bench.api.apply(orphan).unwrap();
    let again = "another-uid-of-the-same-name";
    let mut watch = jobs.watch(&repo(), again).filter(|sight| std::future::ready(is_about_a_pod(sight)));
    let listed = tokio::time::timeout(PATIENCE, watch.next()).await.expect("it is listed");
    let Some(JobSight::Pods(pods)) = listed else { panic!("{listed:?}") };
    assert_eq!(pods.iter().map(|pod| (pod.job.as_str(), pod.alive)).collect::<Vec<_>>(), [(job.uid.as_str(), true)]);
    assert!(pod(&jobs, &job).await.alive, "it is read by the UID that it names, without an owner");
}

/// A Job that cannot run is suspended as the one that was seen, and its pod says that nothing of it ran.
#[tokio::test]
async fn a_job_that_does_not_run_is_taken_back_and_its_pod_is_seen_to_the_end() {
    let (bench, jobs) = start().await;
    bench.api.set_job_script(Some(Script::new(|run| match run.container.as_str() {
        "source" => Outcome::Ends(Duration::ZERO, kubernetes::End::default()),
        _ => Outcome::Waits("ErrImagePull".to_owned(), String::new()),
    })));
    let mut watch = jobs.watch(&repo(), UID);
    let listed = |sight: JobSight| std::future::ready(matches!(sight, JobSight::Pods(_)));
    assert!(tokio::time::timeout(PATIENCE, watch.by_ref().any(listed)).await.expect("they are listed"));
    let stale = started(&bench, &jobs, &order(1)).await;
    bench.api.settle();
    assert_eq!(jobs.withdraw(&repo(), &stale).await.unwrap(), Start::Refused, "it has changed since");
    let there = look(&jobs, &order(1)).await;
    let Start::Done(now) = jobs.withdraw(&repo(), &there).await.unwrap() else { panic!("nothing has changed") };
    assert!(now.withdrawn && now.suspended && now.marked);
    bench.api.settle();
    let over = look(&jobs, &order(1)).await;
    assert!(over.pods.at_rest && over.pods.active == 0 && over.pods.terminating == 0, "{over:?}");
    let mut last = None;
    loop {
        match tokio::time::timeout(PATIENCE, watch.next()).await.expect("it goes on").unwrap() {
            JobSight::Pod(pod) => last = Some(pod),
            JobSight::PodGone(_) => break,
            _ => {}
        }
    }
    let last = last.expect("it was seen");
    assert_eq!((last.place, last.alive, &last.job), (Place::Ended, true, &there.uid));
    let begun = last.steps.iter().filter(|step| step.state != StepState::Waiting).map(|step| step.kind);
    assert_eq!(begun.collect::<Vec<_>>(), [StepKind::Source]);
}

#[tokio::test]
async fn where_the_right_to_watch_is_missing_it_is_said_where_the_role_for_it_is() {
    let (bench, jobs) = start().await;
    bench.refuse(403, 4, |request| request.query.contains_key("watch"));
    bench.refuse(403, 4, |request| request.method == "GET");
    let first = tokio::time::timeout(PATIENCE, jobs.watch(&repo(), UID).next()).await.expect("it says something");
    let Some(JobSight::Trouble(error)) = first else { panic!("it is refused") };
    assert!(error.denied && error.cause.contains("deploy/components/repo-namespace has the Role"), "{error}");
}

/// How a real API server words these: a quota, a policy, a missing right.
#[tokio::test]
async fn a_refusal_says_what_to_do_about_it() {
    let (bench, jobs) = start().await;
    let refuse = |status: u16, message: &'static str| {
        let body = json!({"kind": "Status", "code": status, "message": message}).to_string();
        let answer = sandbox::http::Action::Answer(sandbox::http::Reply::full(status, "application/json", body));
        let is_post = |request: &sandbox::http::Request| request.method == "POST";
        bench.server.inject(sandbox::http::Fault::once(sandbox::http::When::Before, answer).matching(is_post));
    };
    let cases = [
        (
            403,
            "jobs.batch \"x\" is forbidden: exceeded quota: few, requested: count/jobs.batch=1",
            Retry::Later,
            false,
            "raise the quota",
        ),
        (
            403,
            "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no",
            Retry::Never,
            false,
            "spec.runner",
        ),
        (
            403,
            "jobs.batch is forbidden: User \"a\" cannot create resource \"jobs\"",
            Retry::Never,
            true,
            "deploy/components/repo-namespace",
        ),
        (
            422,
            "Job.batch \"x\" is invalid: spec.template.spec.volumes[3].name: Required value",
            Retry::Never,
            false,
            "correct spec.runner",
        ),
        (409, "Operation cannot be fulfilled on resourcequotas \"few\"", Retry::Later, false, "resourcequotas"),
    ];
    for (status, message, retry, denied, words) in cases {
        refuse(status, message);
        let error = jobs.make(&order(1)).await.unwrap_err();
        assert_eq!((error.retry, error.denied), (retry, denied), "{error}");
        assert!(error.cause.contains(words) && error.cause.contains(message), "{error}");
    }
    let none = Order { runner: Runner { steps: Steps::default(), ..order(1).runner }, ..order(1) };
    let error = jobs.make(&none).await.unwrap_err();
    assert!(error.retry == Retry::Never && error.cause.contains("spec.runner.steps.apply"), "{error}");
}

/// A Job as the first release with Repos makes it, in what later ones read of it, and with another template than today's. Clusters
/// hold such Jobs, so this is never changed: a later form is another one beside it.
fn of_the_first_release() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "namespace": "platform", "name": "infra-9421fe3ca3bc",
            "labels": {
                "app": "infra", "controller": "repos.terraform.gitops.k8s.io", "allclear.dev/repo-uid": UID,
                "allclear.dev/seq": "1", "allclear.dev/action": "apply", "allclear.dev/attempt": "1",
            },
            "annotations": {"allclear.dev/revision": "0123456789abcdef0123456789abcdef01234567"},
            "ownerReferences": [{
                "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "name": "infra", "uid": UID, "controller": true,
                "blockOwnerDeletion": false,
            }],
        },
        "spec": {
            "suspend": true, "backoffLimit": 0, "activeDeadlineSeconds": 60,
            "template": {"spec": {
                "restartPolicy": "Never",
                "initContainers": [{"name": "source", "image": "allclear:0", "args": ["step", "source"]}],
                "containers": [{"name": "apply", "image": "terraform:0", "command": ["terraform", "apply"]}],
            }},
        },
    })
}

// Faults: RF14
#[tokio::test]
async fn a_job_that_another_release_made_is_found_started_and_followed_as_it_is() {
    let (bench, jobs) = start().await;
    bench.api.apply(of_the_first_release()).unwrap();
    bench.api.settle();
    let before = raw(&bench, &order(1));
    let found = made(&jobs, &order(1)).await;
    assert_eq!((found.attempt, found.suspended, found.marked), (order(1).attempt, true, false));
    assert_eq!(raw(&bench, &order(1)), before, "it is neither made again nor changed");
    let mut watch = jobs.watch(&repo(), UID).filter(|sight| std::future::ready(!is_about_a_pod(sight)));
    let listed = tokio::time::timeout(PATIENCE, watch.next()).await.expect("it is listed");
    let Some(JobSight::All(all)) = listed else { panic!("{listed:?}") };
    assert!(all.len() == 1 && all[0] == found, "it is among the Repo's own: {all:?}");
    let Start::Done(now) = jobs.start(&repo(), &found).await.unwrap() else { panic!("nothing has changed") };
    assert!(now.marked && !now.suspended && now.uid == found.uid);
    bench.api.settle();
    let (mut after, mut expected) = (raw(&bench, &order(1)), before);
    for job in [&mut after, &mut expected] {
        job["spec"]["suspend"] = Value::Null;
    }
    assert_eq!(after["spec"], expected["spec"], "no more than started");
    assert_eq!(after["metadata"]["annotations"]["allclear.dev/started"], "true");
    let images: Vec<String> = bench.api.started_containers().into_iter().map(|run| run.image).collect();
    assert_eq!(images, ["allclear:0", "terraform:0"]);
    assert_eq!((look(&jobs, &order(1)).await.end, bench.api.pods_ever(&found.uid)), (Some(End::Complete), 1));
    assert_eq!(bench.api.list(Kind::Job, "").len(), 1);
}
