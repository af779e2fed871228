//! The one template: what a Job of a Repo consists of.
//!
//! Its guards make one pod of it, ever, as far as Kubernetes lets them: no retries, no second pod before the first has ended, and the
//! Job fails with its pod. Its pod passes the restricted profile of the Pod Security Standards.
//! Containers of ours get arguments alone; those of the user get no git credentials of ours (RP-9).
//!
//! Not for when a Job is made or started, nor for what its steps write.

use serde_json::{Map, Value, json};

use super::extras::Extras;
use super::outputs;
use super::{ACTION, ATTEMPT, LOG_ON_ERROR, Ours, REPO, REPO_UID, REVISION, SEQ};
use objects::repo::job::{self, Order, StepKind};
use objects::repo::spec::{Preset, Runner, Wanted};
use objects::repo::status::Action;

/// The label of the program before ours, so that selectors of its users go on working.
const CONTROLLER: &str = "repos.terraform.gitops.k8s.io";

/// Keeps Cluster Autoscaler from moving the pod to another node
/// (<https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md>).
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// Keeps Istio from adding its proxy: where that is no sidecar as Kubernetes knows them, it never ends, and the Job with it
/// (<https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/>).
const NO_SIDECARS: [(&str, &str); 1] = [("sidecar.istio.io/inject", "false")];

/// Keeps Linkerd from the same (<https://linkerd.io/2/features/proxy-injection/>).
const NO_LINKERD: &str = "linkerd.io/inject";

/// Keeps Karpenter from ending the pod to save a node (<https://karpenter.sh/docs/concepts/disruption/>).
const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";

/// The longest value of a label (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/>).
const LABEL_CHARS_MAX: usize = 63;

/// The user and the group of every container: `nonroot` of the images that have one.
const USER: u32 = 65532;

/// Where Terraform keeps what it knows of a folder, unless this variable names another place.
const DATA_DIR: &str = ".terraform";
const DATA_DIR_VARIABLE: &str = "TF_DATA_DIR";

/// The git Secret is read by the group of the pod, and by no one else.
const SECRET_MODE: u32 = 0o440;

const WORKSPACE: &str = "/workspace";
const SOURCE: &str = "/workspace/source";
const OUT: &str = "/workspace/out";
const SECRET: &str = "/run/git";

/// Why an order makes no Job.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("spec.runner cannot be read: {0}")]
    Extras(#[from] serde_json::Error),
    #[error("{0}")]
    Lacks(&'static str),
}

/// The Job that is ordered, suspended.
///
/// # Errors
/// When it would have no command, or its extras are not what the template knows.
pub(super) fn job(order: &Order, ours: &Ours) -> Result<Value, Unfit> {
    if ours.image.is_empty() {
        return Err(Unfit::Lacks(
            "repo.step_image is not set, and its containers need allclear's own image: deploy/components/repo sets it",
        ));
    }
    let extras = Extras::parse(&order.runner.extras)?;
    let (before, last) = containers(order, &extras, ours)?;
    let labels = labels(order);
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": order.name,
            "namespace": order.repo.namespace,
            "labels": labels,
            "annotations": {REVISION: order.revision.as_str()},
            "ownerReferences": [{
                "apiVersion": "allclear.dev/v1alpha1", "kind": "Repo", "name": order.repo.name, "uid": order.uid,
                // To block the deletion of the Repo would take a right to its finalizers on some clusters.
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "spec": {
            "suspend": true,
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                // Without a name: every container, init containers too. Those that ended with 0 are not looked at.
                {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
            ]},
            "activeDeadlineSeconds": order.runner.deadline.as_secs(),
            "template": {
                "metadata": {"labels": of_pod(&labels), "annotations": annotations()},
                "spec": pod(order, &extras, before, last),
            },
        },
    }))
}

/// Labels of the pod. The name of the Repo is not among them: a Service that selects `app: NAME` would send requests to it.
fn of_pod(labels: &Map<String, Value>) -> Map<String, Value> {
    let mut labels = labels.clone();
    labels.remove("app");
    labels.extend(NO_SIDECARS.map(|(key, value)| (key.to_owned(), json!(value))));
    labels
}

/// Annotations of the pod: nothing ends it to save a node, and no mesh adds a container that never ends.
fn annotations() -> Map<String, Value> {
    let kept = [(SAFE_TO_EVICT, "false"), (DO_NOT_DISRUPT, "true"), (NO_LINKERD, "disabled")];
    kept.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

/// Labels of the Job. A Repo's name that is too long for a label is left out: the beginning of it could be the name of
/// another Repo.
fn labels(order: &Order) -> Map<String, Value> {
    let mut labels = Map::new();
    if order.repo.name.len() <= LABEL_CHARS_MAX {
        labels.insert("app".to_owned(), json!(order.repo.name));
    }
    let ours = [
        ("controller", CONTROLLER.to_owned()),
        (REPO, job::label(&order.repo)),
        (REPO_UID, order.uid.clone()),
        (SEQ, order.attempt.seq.to_string()),
        (ACTION, order.attempt.action.name().to_owned()),
        (ATTEMPT, order.attempt.number.to_string()),
    ];
    labels.extend(ours.into_iter().map(|(key, value)| (key.to_owned(), json!(value))));
    labels
}

fn pod(order: &Order, extras: &Extras, before: Vec<Value>, last: Value) -> Value {
    let mut volumes: Vec<Value> =
        ["workspace", "out", "tmp"].map(|name| json!({"name": name, "emptyDir": {}})).to_vec();
    if let Some(name) = &order.source.secret {
        volumes.push(json!({"name": "git", "secret": {"secretName": name, "defaultMode": SECRET_MODE}}));
    }
    if before.iter().any(|container| named(container) == Some(StepKind::Output.name())) {
        volumes.push(outputs::volume());
    }
    volumes.extend(extras.mounts.iter().enumerate().map(|(at, mount)| mount.volume(&volume_name(at))));
    let mut pod = json!({
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": order.runner.grace.as_secs(),
        "automountServiceAccountToken": order.runner.kubernetes_token,
        "enableServiceLinks": false,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": volumes,
        "initContainers": before,
        "containers": [last],
    });
    let optional = [
        ("serviceAccountName", order.runner.service_account.as_ref().map(|name| json!(name))),
        ("nodeSelector", extras.node_selector.clone()),
        ("tolerations", extras.tolerations.clone()),
        ("imagePullSecrets", extras.image_pull_secrets.clone()),
    ];
    set(&mut pod, optional);
    pod
}

/// The containers that run one after another, and the one that ends the Job.
fn containers(order: &Order, extras: &Extras, ours: &Ours) -> Result<(Vec<Value>, Value), Unfit> {
    let (plan, apply) = commands(order);
    let steps = &order.runner.steps;
    let user = |kind, command: &[String]| users(order, extras, kind, command);
    let step = |kind, arguments: Vec<String>| own(extras, ours, kind, &arguments);
    let mut before = vec![source(order, extras, ours)];
    if !steps.prepare.is_empty() {
        before.push(user(StepKind::Prepare, &steps.prepare));
    }
    if order.runner.preset == Preset::Terraform && !order.runner.local_state {
        before.push(backend(order, extras, ours));
    }
    if let Some(lock) = &order.unlock {
        // The lock of this id and no other: where it is gone, or another is held, this fails, and nothing is taken away.
        before.push(user(StepKind::Unlock, &words([tool(&steps.prepare), "force-unlock", "-force", lock.as_str()])));
    }
    let planned = order.attempt.action != Action::Apply || order.planned || order.fingerprint.is_some();
    if planned {
        if plan.is_empty() {
            return Err(Unfit::Lacks("it has no plan step; spec.runner.steps.plan says which command plans"));
        }
        before.push(user(StepKind::Plan, plan));
    }
    let preset = order.runner.preset.name();
    let mut read_plan = words(["--preset", preset, "--out", OUT]);
    read_plan.extend(order.addresses.then(|| "--addresses".to_owned()));
    match (order.attempt.action, &order.fingerprint) {
        (Action::Plan | Action::Drift | Action::DestroyPlan, _) => {
            return Ok((before, step(StepKind::Report, read_plan)));
        }
        (Action::Apply | Action::Destroy, Some(fingerprint)) => {
            read_plan.extend(words(["--fingerprint", fingerprint]));
            // Outputs are written after an apply alone, and one of what changes nothing needs no yes.
            read_plan.extend(outputs::wanted(order).map(|_| "--or-empty".to_owned()));
            before.push(step(StepKind::Verify, read_plan));
        }
        (Action::Destroy, None) => {
            return Err(Unfit::Lacks("it names no plan that was said yes to, and destroys nothing"));
        }
        (Action::Apply, None) => {}
    }
    if apply.is_empty() {
        return Err(Unfit::Lacks("it has no apply step; spec.runner.steps.apply says which command applies"));
    }
    let apply = user(StepKind::Apply, apply);
    let Some((wanted, command)) = outputs::wanted(order) else { return Ok((before, apply)) };
    if command.is_empty() {
        return Err(Unfit::Lacks(
            "it has no output step; spec.runner.steps.output says which command says what the outputs are",
        ));
    }
    before.extend([apply, user(StepKind::Output, command)]);
    let mut publish = step(StepKind::Publish, outputs::arguments(order, wanted, OUT));
    let mounts = outputs::mounts(mounted("out", OUT, true), mounted("tmp", "/tmp", false));
    set(&mut publish, [("volumeMounts", Some(mounts))]);
    Ok((before, publish))
}

/// The program that has Terraform's command line: that of `PROGRAM init`, where the user names one.
fn tool(prepare: &[String]) -> &str {
    match prepare {
        [program, command, ..] if command == "init" => program,
        _ => "terraform",
    }
}

/// The commands that plan and apply, or plan what a destroy would take away and apply that. Empty for none.
fn commands(order: &Order) -> (&[String], &[String]) {
    let Runner { steps, destroy, .. } = &order.runner;
    if !order.attempt.action.is_of_destroy() {
        return (&steps.plan, &steps.apply);
    }
    destroy.as_ref().map_or((&[], &[]), |steps| (steps.plan.as_slice(), steps.destroy.as_slice()))
}

/// Fetches the commit: the only container with the git Secret.
fn source(order: &Order, extras: &Extras, ours: &Ours) -> Value {
    let wanted = match &order.source.wanted {
        Wanted::Head => "HEAD".to_owned(),
        Wanted::Branch(name) => format!("refs/heads/{name}"),
        Wanted::Tag(name) => format!("refs/tags/{name}"),
        Wanted::Commit(revision) => revision.to_string(),
    };
    let url = order.source.url.as_str();
    let mut arguments =
        words(["--url", url, "--revision", order.revision.as_str(), "--ref", &wanted, "--into", SOURCE]);
    let mut mounts = vec![mounted("workspace", WORKSPACE, false), mounted("tmp", "/tmp", false)];
    if order.source.secret.is_some() {
        arguments.extend(words(["--secret", SECRET]));
        mounts.push(mounted("git", SECRET, true));
    }
    let path = order.source.path.trim_matches('/');
    if !path.is_empty() {
        arguments.extend(words(["--path", path]));
    }
    for host in &ours.private_hosts {
        arguments.extend(words(["--private-host", host]));
    }
    for stand_in in &ours.stand_ins {
        arguments.extend(words(["--stand-in", stand_in]));
    }
    let mut container = own(extras, ours, StepKind::Source, &arguments);
    set(&mut container, [("volumeMounts", Some(json!(mounts)))]);
    container
}

/// Looks where `terraform init` says that the state is.
fn backend(order: &Order, extras: &Extras, ours: &Ours) -> Value {
    let directory = directory(order);
    let named = extras.env.iter().rfind(|entry| named(entry) == Some(DATA_DIR_VARIABLE));
    let data = named.and_then(|entry| entry.get("value")).and_then(Value::as_str).unwrap_or(DATA_DIR);
    let mut container = own(extras, ours, StepKind::Backend, &words(["--folder", &directory, "--data", data]));
    let mounts = [mounted("workspace", WORKSPACE, true), mounted("tmp", "/tmp", true)];
    set(&mut container, [("volumeMounts", Some(json!(mounts)))]);
    container
}

/// A container of ours: our image's own program, which needs little and gets nothing of the user's.
fn own(extras: &Extras, ours: &Ours, kind: StepKind, arguments: &[String]) -> Value {
    let arguments: Vec<String> =
        words(["step", kind.name()]).into_iter().chain(arguments.iter().cloned()).map(|word| literal(&word)).collect();
    json!({
        "name": kind.name(),
        "image": ours.image,
        "args": arguments,
        "securityContext": security(),
        "resources": extras.step_resources.clone().unwrap_or_else(of_ours),
        "volumeMounts": [mounted("out", OUT, true), mounted("tmp", "/tmp", false)],
    })
}

/// A container of the user's, with the whole command.
fn users(order: &Order, extras: &Extras, kind: StepKind, command: &[String]) -> Value {
    // What a plan writes has a volume of its own, so that its folder is there from the beginning.
    let fixed = [("workspace", WORKSPACE), ("out", OUT), ("tmp", "/tmp")];
    let mut mounts = fixed.map(|(volume, path)| mounted(volume, path, false)).to_vec();
    mounts.extend(extras.mounts.iter().enumerate().map(|(at, mount)| {
        let mut mounted = mounted(&volume_name(at), &mount.mount_path, mount.read_only);
        set(&mut mounted, [("subPath", mount.sub_path.as_ref().map(|path| json!(path)))]);
        mounted
    }));
    let mut container = json!({
        "name": kind.name(),
        "image": order.runner.image,
        "command": command.iter().map(|word| literal(word)).collect::<Vec<_>>(),
        "workingDir": directory(order),
        "env": environment(order, extras),
        "securityContext": security(),
        "resources": extras.resources.clone().unwrap_or_else(of_users),
        "volumeMounts": mounts,
    });
    // The end of the log, of which no more is read than whose lock is in the way.
    let policy = (order.runner.preset == Preset::Terraform).then(|| json!(LOG_ON_ERROR));
    let env_from = Some(&extras.env_from).filter(|sources| !sources.is_empty());
    set(&mut container, [("envFrom", env_from.map(|sources| json!(sources))), ("terminationMessagePolicy", policy)]);
    container
}

/// What a container of ours needs. Fetching holds some pages of the pack, and the rest goes to the disk. Limits, because a quota on
/// limits refuses every pod without.
fn of_ours() -> Value {
    json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}})
}

/// What a container of the user's needs, unless its Repo says it: a provider of Terraform holds some hundred MiB.
fn of_users() -> Value {
    json!({"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}})
}

fn directory(order: &Order) -> String {
    match order.source.path.trim_matches('/') {
        "" => SOURCE.to_owned(),
        path => format!("{SOURCE}/{path}"),
    }
}

/// What a command of the user's finds in its environment. Defaults come first and give way to the user's; what says which run this
/// is comes last, and the user's of that name is left out.
fn environment(order: &Order, extras: &Extras) -> Vec<Value> {
    let pair = |name: &str, value: &str| json!({"name": name, "value": literal(value)});
    let has = |entries: &[Value], name: &str| entries.iter().any(|entry| named(entry) == Some(name));
    let mut ours = vec![
        pair("REPO_NAME", &order.repo.name),
        pair("REPO_URL", &order.source.url),
        pair("GIT_SHA", order.revision.as_str()),
        pair("ALLCLEAR_RUN", &order.attempt.seq.to_string()),
    ];
    ours.extend(order.workspace.as_deref().map(|workspace| pair("TF_WORKSPACE", workspace)));
    let defaults = [("HOME", "/tmp"), ("TF_IN_AUTOMATION", "true"), ("TF_INPUT", "0")];
    let kept = defaults.into_iter().filter(|(name, _)| !has(&extras.env, name));
    let mut all: Vec<Value> = kept.map(|(name, value)| pair(name, value)).collect();
    all.extend(extras.env.iter().filter(|entry| named(entry).is_none_or(|name| !has(&ours, name))).cloned());
    all.extend(ours);
    all
}

/// What the restricted profile asks of a container
/// (<https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>), and a root that is read only.
fn security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
    })
}

/// A word as the program gets it. The kubelet replaces `$(NAME)` in commands, arguments and values, and `$$` stands for `$`
/// (<https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/>).
fn literal(word: &str) -> String {
    word.replace('$', "$$")
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn mounted(volume: &str, path: &str, read_only: bool) -> Value {
    json!({"name": volume, "mountPath": path, "readOnly": read_only})
}

fn volume_name(at: usize) -> String {
    format!("mount-{at}")
}

fn named(entry: &Value) -> Option<&str> {
    entry.get("name").and_then(Value::as_str)
}

/// Sets the fields that have a value.
fn set<const N: usize>(object: &mut Value, fields: [(&str, Option<Value>); N]) {
    let Some(object) = object.as_object_mut() else { return };
    for (name, value) in fields {
        object.extend(value.map(|value| (name.to_owned(), value)));
    }
}

#[cfg(test)]
mod tests;
