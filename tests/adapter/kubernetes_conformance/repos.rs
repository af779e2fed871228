//! Repos, as far as what we do rests on the server: which specs it takes, that a status is kept whole, what a Repo takes with it when
//! it goes, and that a Job of ours has nothing that the API does not know or that the restricted profile refuses.
//!
//! The stand-in has no schemas. There, what the CRD refuses is held against what the program itself makes of it.

use std::time::Duration;

use allclear::adapters::kubernetes::crd::repo::{Installation, object, written};
use allclear::adapters::kubernetes::jobs::{KubernetesJobs, Ours};
use allclear::adapters::kubernetes::{Options, Tempo, connect};
use kernel::id::{CommitId, RepoId, RunSeq};
use objects::ports::repo::{Jobs, Made};
use objects::repo::job::Order;
use objects::repo::lock::LockId;
use objects::repo::outputs::Outputs;
use objects::repo::spec::{DestroySteps, Object, Runner, Source, Steps, Wanted};
use objects::repo::status::{
    Action, Attempt, Condition, ConditionKind, Counts, Drift, Ended, Failing, Head, JobRef, Missed, Next, Phase, Plan,
    Question, Run, SKIPPED_MAX, Seen, Status, Terms, Unchanged, Waiting,
};
use objects::status::{Approval, HISTORY_MAX, Late, UNTOLD_MAX};
use sandbox::kubernetes::{Kind, KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use super::jobs::{is_gone, until};
use super::known::{lock, report};
use super::support::{Api, Check, checks, refused};

pub const CHECKS: &[(&str, Check)] = checks![
    what_the_crd_refuses_is_refused_by_the_program_as_well,
    what_a_repo_can_say_is_taken_as_it_is,
    all_that_a_repo_remembers_is_kept,
    a_repo_that_goes_takes_its_job_and_its_pod_with_it,
    a_job_of_a_repo_has_only_what_the_api_knows,
    the_pod_of_a_repo_passes_the_restricted_profile,
];

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const URL: &str = "https://git.example.com/platform/infra.git";

fn repos(api: &Api) -> String {
    format!("/apis/{}/v1alpha1/namespaces/{}/repos", api.whole(), api.namespace)
}

fn repo(api: &Api, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1alpha1", api.whole()), "kind": "Repo",
        "metadata": {"name": api.name(name), "labels": {"check": api.check}}, "spec": spec,
    })
}

/// A spec of nothing but the address, with these fields.
fn with(fields: &Value) -> Value {
    let mut spec = json!({"url": URL});
    let fields = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(fields);
    spec
}

/// A runner of the preset Command, with these fields.
fn command(fields: &Value) -> Value {
    let mut runner = json!({"preset": "Command", "image": "node:24", "steps": {"apply": ["npm", "run", "publish"]}});
    runner.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    with(&json!({"runner": runner}))
}

/// What the program makes of a spec.
fn judged(spec: &Value) -> Result<(), String> {
    let metadata = json!({"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1"});
    let read = object(&json!({"metadata": metadata, "spec": spec}).to_string(), &Installation::default());
    read.unwrap().spec.map(drop)
}

/// Specs, and what the API server says of them: the message of a rule of ours, or where it is wrong.
fn wrong() -> Vec<(Value, &'static str)> {
    let mount = |mount: Value| with(&json!({"runner": {"mounts": [mount]}}));
    let window = |from: &str| with(&json!({"gates": {"windows": [{"from": from, "to": "17:00"}]}}));
    let url = |url: &str| json!({"url": url});
    vec![
        (json!({}), "spec.url: Required value"),
        (url("ssh://git:s3cr3t@git.example.com/a/b"), "spec.url"),
        (url("ssh://-oProxyCommand=x/a"), "spec.url"),
        (url("git@git.example.com:a/b.git"), "spec.url"),
        (url("http://git.example.com/a/b"), "spec.url"),
        (url("https://me:s3cr3t@git.example.com/a/b"), "spec.url"),
        (url("https://git.example.com/a/b?token=s3cr3t"), "spec.url"),
        (url("https://git.example.com/a/b#x"), "spec.url"),
        (url("https://git.example.com/"), "spec.url"),
        (with(&json!({"ref": {"branch": "main", "tag": "v1"}})), "at most one of branch, tag and commit"),
        (with(&json!({"ref": {"branch": "main", "commit": A}})), "at most one of branch, tag and commit"),
        (with(&json!({"ref": {"commit": "abc"}})), "spec.ref.commit"),
        (with(&json!({"path": "/etc"})), "spec.path"),
        (with(&json!({"workspace": "a b"})), "spec.workspace"),
        (with(&json!({"approval": "Maybe"})), "spec.approval"),
        (with(&json!({"retry": {"limit": 11}})), "spec.retry.limit"),
        (with(&json!({"keep": {"failed": 51}})), "spec.keep.failed"),
        (with(&json!({"keep": {"succeeded": -1}})), "spec.keep.succeeded"),
        (with(&json!({"secretRef": {"name": ""}})), "spec.secretRef.name"),
        (window("9:00"), "spec.gates.windows[0].from"),
        (with(&json!({"runner": {"image": "a b"}})), "spec.runner.image"),
        (with(&json!({"runner": {"env": vec![json!({"name": "a", "value": "b"}); 51]}})), "spec.runner.env"),
        (with(&json!({"runner": {"steps": {"apply": vec!["a"; 101]}}})), "spec.runner.steps.apply"),
        (with(&json!({"runner": {"preset": "Command"}})), "the preset Command needs an image"),
        (command(&json!({"image": ""})), "the preset Command needs an image"),
        (command(&json!({"steps": {"plan": ["a"]}})), "the preset Command needs steps.apply"),
        (command(&json!({"steps": {"apply": []}})), "the preset Command needs steps.apply"),
        (mount(json!({"mountPath": "/etc/a"})), "exactly one of secret, configMap"),
        (
            mount(json!({"mountPath": "/etc/a", "emptyDir": {}, "secret": {"secretName": "b"}})),
            "exactly one of secret, configMap",
        ),
        (mount(json!({"mountPath": "/workspace/a", "emptyDir": {}})), "mountPath is not in /workspace"),
        (mount(json!({"mountPath": "/workspace", "emptyDir": {}})), "mountPath is not in /workspace"),
        (mount(json!({"mountPath": "a", "emptyDir": {}})), "spec.runner.mounts[0].mountPath"),
        (planned(&json!({})), "approval: Plan needs runner.steps.plan"),
        (planned(&json!({"plan": []})), "approval: Plan needs runner.steps.plan"),
        (looking(&json!({})), "driftEvery needs runner.steps.plan"),
        (looking(&json!({"plan": []})), "driftEvery needs runner.steps.plan"),
        (with(&json!({"onDrift": "Apply"})), "onDrift needs driftEvery"),
    ]
}

/// Of the preset Command, with approval of a plan that these steps make.
fn planned(steps: &Value) -> Value {
    let mut spec = command(&json!({}));
    spec["approval"] = json!("Plan");
    spec["runner"]["steps"].as_object_mut().unwrap().extend(steps.as_object().unwrap().clone());
    spec
}

/// The same, planned again at times.
fn looking(steps: &Value) -> Value {
    let mut spec = planned(steps);
    spec.as_object_mut().unwrap().remove("approval");
    spec["driftEvery"] = json!("6h");
    spec
}

/// A spec with something in every field.
fn everything() -> Value {
    json!({
        "url": URL, "ref": {"tag": "v1.2"}, "path": "./envs/prod", "interval": "30s",
        "watchPaths": ["modules", "versions.tf"], "secretRef": {"name": "git"},
        "approval": "Plan", "workspace": "prod", "retry": {"limit": 10, "backoff": "30s"}, "suspend": true,
        "keep": {"succeeded": 0, "failed": 50}, "stalledAfter": "2h", "driftEvery": "6h", "onDrift": "Apply",
        "gates": {
            "windows": [{"days": ["Mon"], "from": "09:00", "to": "24:00", "timeZone": "Europe/Berlin"}],
            "freezes": [{"from": "2026-12-20T00:00:00Z", "to": "2027-01-03T00:00:00Z", "reason": "holidays"}],
            "verdict": {"url": "https://gate.example.com/x", "secretRef": {"name": "gate"}, "timeout": "5s"},
        },
        "runner": {
            "preset": "Command", "image": "node:24", "serviceAccountName": "deployer", "kubernetesToken": true,
            "deadline": "2h", "grace": "0s",
            "steps": {"prepare": ["npm", "ci"], "plan": ["npm", "run", "plan"], "apply": ["npm", "run", "publish"]},
            "env": [{"name": "TF_VAR_x", "valueFrom": {"secretKeyRef": {"name": "vars", "key": "x"}}}],
            "envFrom": [{"configMapRef": {"name": "vars", "optional": true}}],
            "mounts": mounts(),
            "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
            "nodeSelector": {"pool": "jobs"},
            "tolerations": [{"key": "jobs", "operator": "Exists", "effect": "NoSchedule"}],
            "imagePullSecrets": [{"name": "pull"}],
        },
    })
}

/// One of each kind of volume.
fn mounts() -> Value {
    json!([
        {"mountPath": "/etc/vars", "secret": {"secretName": "vars", "optional": true}, "readOnly": true},
        {"mountPath": "/etc/more", "configMap": {"name": "vars"}, "subPath": "a.tfvars"},
        {"mountPath": "/cache", "persistentVolumeClaim": {"claimName": "cache"}},
        {"mountPath": "/scratch", "emptyDir": {"sizeLimit": "1Gi"}},
    ])
}

async fn what_the_crd_refuses_is_refused_by_the_program_as_well(api: Api) {
    for (spec, words) in wrong() {
        assert!(judged(&spec).is_err(), "{spec}");
        if api.stand_in.is_some() {
            continue;
        }
        let said = refused(api.post(&repos(&api), &repo(&api, "a", &spec)).await, 422, "Invalid");
        assert!(said.message.contains(words), "{spec}: {}", said.message);
    }
}

async fn what_a_repo_can_say_is_taken_as_it_is(api: Api) {
    let terraform = with(&json!({"approval": "Plan", "runner": {"steps": {"prepare": []}}}));
    for (name, spec) in [("a", with(&json!({}))), ("b", command(&json!({}))), ("c", terraform), ("d", everything())] {
        assert_eq!(judged(&spec), Ok(()), "{spec}");
        let path = format!("{}?fieldValidation=Strict", repos(&api));
        let made = api.post(&path, &repo(&api, name, &spec)).await.unwrap();
        assert_eq!((&made["spec"], &made["status"]), (&spec, &json!({"observedGeneration": -1})));
    }
}

/// A status with something in every field, and as much as there can be of what is listed.
fn full() -> Status {
    let commit = || A.parse().expect("a commit's id");
    let skipped = || vec![commit(); SKIPPED_MAX];
    let notice = json!({
        "id": "n-1", "kind": "run.waiting", "at_ms": 5, "workload": "repo/platform/infra", "seq": 4, "rollout": "r-1",
        "change": "aaaaaaaaaaaa", "message": "it waits",
    });
    let condition = |kind, holds: Option<bool>, reason: &str| Condition {
        kind,
        holds,
        reason: reason.to_owned(),
        message: "one sentence".to_owned(),
        since_ms: 1_700_000_000_123,
    };
    let ended = |seq| Ended {
        seq: RunSeq(seq),
        revision: commit(),
        outcome: Phase::Lost,
        by: Some("jane".to_owned()),
        skipped: skipped(),
        work: "w".to_owned(),
        at_ms: 1_699_999_999_999,
    };
    let run = Run {
        attempt: Attempt { seq: RunSeq(4), action: Action::Plan, number: 2 },
        revision: commit(),
        terms: Terms { work: "w".to_owned(), settings: "s".to_owned() },
        phase: Phase::Planned,
        job: Some(JobRef { name: "infra-0123456789ab".to_owned(), uid: Some("j-1".to_owned()) }),
        plan: Some(Plan {
            fingerprint: "f".to_owned(),
            counts: Some(Counts { add: 1, change: 0, destroy: 3 }),
            job: "infra-0123456789ab".to_owned(),
        }),
        approval: Some(Approval { by: Some("jane".to_owned()), ticket: "t".to_owned(), at_ms: 1, overrides: true }),
        failing: Failing { before: 1, applies: 2, not_before_ms: Some(1_700_000_000_999) },
        started_ms: Some(1_700_000_001_000),
        ended_ms: Some(1_700_000_002_000),
        skipped: skipped(),
        message: "waits".to_owned(),
    };
    Status {
        serial: 12,
        observed_generation: 3,
        head: Some(Head { revision: commit(), name: "refs/heads/main".to_owned(), seen_ms: 1_700_000_000_123 }),
        next: Some(Next { revision: commit(), since_ms: 0, skipped: skipped() }),
        run: Some(run.clone()),
        unchanged: Some(Unchanged {
            revision: commit(),
            since: commit(),
            seq: RunSeq(4),
            paths: "p".to_owned(),
            at_ms: 1_700_000_000_124,
        }),
        drift: Some(drift(skipped())),
        report: Some(report()),
        destroy: Some(Run { attempt: Attempt { seq: RunSeq(5), action: Action::Destroy, number: 2 }, ..run }),
        seq: RunSeq(4),
        waiting: Some(Waiting { question: Question::Plan, ticket: "0123456789ab".to_owned(), since_ms: 9 }),
        lock: Some(lock()),
        late: Some(Late { since_ms: 7, told: true }),
        history: (0..HISTORY_MAX as u64).map(ended).collect(),
        untold: vec![serde_json::from_value(notice).unwrap(); UNTOLD_MAX],
        conditions: vec![
            condition(ConditionKind::Ready, None, "Running"),
            condition(ConditionKind::Stalled, Some(true), "RunFailed"),
            condition(ConditionKind::Drifted, Some(false), "InSync"),
        ],
    }
}

fn drift(skipped: Vec<CommitId>) -> Drift {
    let plan = Plan {
        fingerprint: "f".to_owned(),
        counts: Some(Counts { add: 1, change: 0, destroy: 3 }),
        job: "infra-0123456789ab".to_owned(),
    };
    let look = Run {
        attempt: Attempt { seq: RunSeq(4), action: Action::Drift, number: 3 },
        revision: A.parse().expect("a commit's id"),
        terms: Terms { work: "w".to_owned(), settings: "s".to_owned() },
        phase: Phase::Started,
        job: Some(JobRef { name: "infra-0123456789ab".to_owned(), uid: Some("j-1".to_owned()) }),
        plan: Some(plan.clone()),
        approval: Some(Approval { by: None, ticket: "t".to_owned(), at_ms: 1, overrides: false }),
        failing: Failing { before: 1, applies: 2, not_before_ms: Some(1_700_000_000_999) },
        started_ms: Some(1_700_000_001_000),
        ended_ms: Some(1_700_000_002_000),
        skipped,
        message: "runs".to_owned(),
    };
    Drift {
        look: Some(look),
        looks: 3,
        seen: Some(Seen { seq: RunSeq(4), settings: "s".to_owned(), plan: Some(plan), since_ms: 1, at_ms: 2 }),
        missed: Some(Missed {
            count: 1,
            at_ms: 3,
            settings: "s".to_owned(),
            job: "j".to_owned(),
            message: "why".to_owned(),
        }),
        late: Some(Late { since_ms: 7, told: true }),
        applied_ms: Some(1_700_000_001_000),
    }
}

async fn all_that_a_repo_remembers_is_kept(api: Api) {
    let mut made = api.post(&repos(&api), &repo(&api, "a", &with(&json!({})))).await.unwrap();
    let path = format!("{}/{}/status", repos(&api), api.name("a"));
    let bare = object(&made.to_string(), &Installation::default()).unwrap();
    for phase in Phase::ALL {
        let of = |run: Run| Run { phase, ..run };
        let status = Status { run: full().run.map(of), ..full() };
        let sent = written(&Object { status: status.clone(), ..bare.clone() }).unwrap();
        made["status"] = sent.clone();
        made = api.put(&format!("{path}?fieldValidation=Strict"), &made).await.unwrap();
        assert_eq!(made["status"], sent);
        assert_eq!(object(&made.to_string(), &Installation::default()).unwrap().status, status);
    }
}

/// An order for a Job with everything in it that an order can have.
fn order(action: Action) -> Order {
    let argv = |words: &str| words.split(' ').map(str::to_owned).collect();
    let spec = everything();
    let mut extras = spec["runner"].clone();
    let extra =
        ["env", "envFrom", "mounts", "resources", "nodeSelector", "tolerations", "imagePullSecrets"].map(str::to_owned);
    extras.as_object_mut().unwrap().retain(|name, _| extra.contains(name));
    Order {
        name: "infra-0123456789ab".to_owned(),
        repo: RepoId::new("platform", "infra"),
        uid: "5d5a5c1e-0000-4000-8000-000000000001".to_owned(),
        attempt: Attempt { seq: RunSeq(7), action, number: 2 },
        revision: A.parse().expect("a commit's id"),
        source: Source {
            url: URL.to_owned(),
            wanted: Wanted::Branch("main".to_owned()),
            path: "envs/prod".to_owned(),
            secret: Some("git".to_owned()),
            watched: None,
        },
        runner: Runner {
            image: "terraform:1".to_owned(),
            steps: Steps {
                prepare: argv("terraform init"),
                plan: argv("sh -c $(date)"),
                apply: argv("terraform apply"),
                output: argv("terraform output"),
            },
            destroy: Some(DestroySteps { plan: argv("sh -c $(date)"), destroy: argv("terraform apply") }),
            outputs: Some(Outputs { secret: "out".to_owned(), names: vec!["a".to_owned()] }),
            service_account: Some("default".to_owned()),
            kubernetes_token: true,
            deadline: Duration::from_secs(3_600),
            grace: Duration::from_secs(300),
            extras: extras.to_string(),
            ..Runner::default()
        },
        workspace: Some("prod".to_owned()),
        planned: true,
        fingerprint: matches!(action, Action::Apply | Action::Destroy).then(|| "f1".to_owned()),
        unlock: LockId::new("5d9a5d1e-0d3f"),
        addresses: true,
    }
}

/// The Job of an order, as our adapter makes it: a stand-in takes everything as it comes. What a server adds is left out.
async fn job_of(order: &Order) -> Value {
    let taker = KubernetesStandIn::new(StandInOptions::default());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": order.repo.namespace}});
    taker.apply(namespace).unwrap();
    let server = taker.start().await.unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), taker.kubeconfig(&server)).unwrap();
    let clients = connect(&Options { kubeconfig: Some(file.path().to_owned()), ..Options::default() }).await.unwrap();
    let ours = Ours { image: "allclear:1".to_owned(), ..Ours::default() };
    let made = KubernetesJobs::new(&clients, Tempo::default(), ours).make(order).await.unwrap();
    assert!(matches!(made, Made::Ours(_)));
    let mut job = taker.get(Kind::Job, &order.repo.namespace, &order.name).unwrap();
    server.stop().await;
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "namespace"] {
        job["metadata"].as_object_mut().unwrap().remove(field);
    }
    job.as_object_mut().unwrap().remove("status");
    job["spec"].as_object_mut().unwrap().remove("selector");
    job["spec"]["template"]["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .retain(|label, _| !label.contains("job-name"));
    job["spec"]["template"]["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .retain(|label, _| !label.contains("controller-uid"));
    job
}

/// Such a Job of a Repo that is there, in this namespace.
async fn job_in(api: &Api, namespace: &str, action: Action) -> Value {
    let collection = format!("/apis/{}/v1alpha1/namespaces/{namespace}/repos", api.whole());
    let owner = api.post(&collection, &repo(api, "owner", &with(&json!({"suspend": true})))).await.unwrap();
    let mut job = job_of(&order(action)).await;
    job["metadata"]["name"] = json!(api.name("a"));
    let reference = &mut job["metadata"]["ownerReferences"][0];
    for (field, value) in
        [("apiVersion", &owner["apiVersion"]), ("name", &owner["metadata"]["name"]), ("uid", &owner["metadata"]["uid"])]
    {
        reference[field] = value.clone();
    }
    let jobs = format!("/apis/batch/v1/namespaces/{namespace}/jobs?fieldValidation=Strict");
    api.post(&jobs, &job).await.unwrap()
}

async fn a_job_of_a_repo_has_only_what_the_api_knows(api: Api) {
    for action in Action::ALL {
        let made = job_in(&api, &api.namespace, action).await;
        let expected = job_of(&order(action)).await;
        let of = |job: &Value, list: &str| job["spec"]["template"]["spec"][list].clone();
        for list in ["initContainers", "containers", "volumes", "securityContext", "tolerations", "imagePullSecrets"] {
            let (there, said) = (of(&made, list), of(&expected, list));
            assert!(contains(&there, &said), "{list}: {said} became {there}");
        }
        assert!(contains(&made["spec"]["podFailurePolicy"], &expected["spec"]["podFailurePolicy"]), "{made:#}");
        for (field, value) in [("backoffLimit", json!(0)), ("podReplacementPolicy", json!("Failed"))] {
            assert_eq!(made["spec"][field], value);
        }
        for (path, name) in [(api.path("jobs"), api.name("a")), (repos(&api), api.name("owner"))] {
            api.delete(&format!("{path}/{name}")).await.unwrap();
        }
    }
}

/// Whether everything that was said stands there. A server adds defaults.
fn contains(there: &Value, said: &Value) -> bool {
    match (there, said) {
        (Value::Object(there), Value::Object(said)) => {
            said.iter().all(|(name, said)| contains(there.get(name).unwrap_or(&Value::Null), said))
        }
        (Value::Array(there), Value::Array(said)) => {
            there.len() == said.len() && there.iter().zip(said).all(|(there, said)| contains(there, said))
        }
        // What is false is left out.
        (Value::Null, said) => said == false,
        (there, said) => there == said,
    }
}

async fn the_pod_of_a_repo_passes_the_restricted_profile(api: Api) {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "allclear-check-", "labels": labels},
    });
    let made = api.post("/api/v1/namespaces", &namespace).await.unwrap();
    let namespace = made["metadata"]["name"].as_str().unwrap().to_owned();
    let api = Api { namespace: namespace.clone(), ..api };
    // Whoever makes a pod waits for the account.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    let _ = api.post(&api.path("serviceaccounts"), &account).await;
    let job = job_in(&api, &namespace, Action::Apply).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": api.name("a"), "labels": {"check": api.check}},
        "spec": job["spec"]["template"]["spec"],
    });
    let made = api.post(&format!("{}?fieldValidation=Strict", api.path("pods")), &pod).await;
    api.delete(&format!("/api/v1/namespaces/{namespace}")).await.unwrap();
    made.unwrap();
}

async fn a_repo_that_goes_takes_its_job_and_its_pod_with_it(api: Api) {
    job_in(&api, &api.namespace, Action::Apply).await;
    let job = format!("{}/{}", api.path("jobs"), api.name("a"));
    api.merge(&job, &json!({"spec": {"suspend": false}})).await.unwrap();
    until(&api, &job, |job| job["status"]["active"] == 1).await;
    let pods = format!("{}?labelSelector=job-name%3D{}", api.path("pods"), api.name("a"));
    let pods = api.get(&pods).await.unwrap()["items"].as_array().unwrap().clone();
    assert_eq!(pods.len(), 1);
    let pod = format!("{}/{}", api.path("pods"), pods[0]["metadata"]["name"].as_str().unwrap());
    api.delete(&format!("{}/{}", repos(&api), api.name("owner"))).await.unwrap();
    is_gone(&api, &job).await;
    is_gone(&api, &pod).await;
}
