//! The Job controller, with a kubelet for its pods.
//!
//! Rules, reasons and messages follow `pkg/controller/job` (Kubernetes 1.33): a suspended Job has no pod; a pod is counted once, and
//! then lets go of its finalizer; a Job is `FailureTarget` or `SuccessCriteriaMet` first, and `Failed` or `Complete` only when no pod of
//! it is left that has not ended. Left out: deadlines, indexed Jobs, more than one pod at a time, back-off between pods, time to live.
//!
//! Not for what containers do: a script says that (`script`).

mod pod;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use script::{ContainerRun, End, Outcome, Script};

use super::pods::{pod_of, sooner};
use super::{Moment, Timings};
use crate::kubernetes::failure::Failure;
use crate::kubernetes::object::{Key, Object, holds, is_ending, items, number, text};
use crate::kubernetes::resource::Kind;
use crate::kubernetes::write::{DeleteOptions, JOB_TRACKING, Writer};
use pod::PodRun;

/// What the controller and the kubelet know besides what is in the store. UIDs are those of Jobs where nothing else is said.
#[derive(Debug, Default)]
pub struct Jobs {
    script: Option<Script>,
    known: BTreeMap<String, Key>,
    dirty: BTreeSet<String>,
    due: BTreeMap<String, Duration>,
    /// What each pod is doing, by the pod's UID.
    runs: BTreeMap<String, PodRun>,
    /// How many pods a Job has ever had.
    made: BTreeMap<String, u64>,
    /// Containers that the script is to be asked about, with the UIDs of their Job and of their pod.
    questions: Vec<(String, String, ContainerRun)>,
    /// Containers that were started, in order.
    started: Vec<ContainerRun>,
}

/// A pod after its kubelet has looked at it.
struct Pod {
    key: Key,
    value: Value,
}

/// Why a Job is to end, and how.
struct Target {
    met: &'static str,
    then: &'static str,
    reason: String,
    message: String,
}

impl Jobs {
    /// Decides what becomes of containers from now on. Those that could not start are tried again.
    pub fn set_script(&mut self, script: Option<Script>) {
        self.script = script;
        self.runs.values_mut().for_each(PodRun::ask_again);
        self.look_again();
    }

    /// Ends the container that was started in one of these pods of this Job, and has not ended; false if there is none.
    pub fn finish(&mut self, uid: &str, pods: &[Arc<Object>], end: End) -> bool {
        for pod in pods {
            let Some(run) = self.runs.get_mut(&pod.uid) else { continue };
            if run.is_at_work() {
                run.decide(Outcome::Ends(Duration::ZERO, end));
                self.dirty.insert(uid.to_owned());
                return true;
            }
        }
        false
    }

    /// The container that runs in one of these pods.
    pub fn running(&self, pods: &[Arc<Object>]) -> Option<String> {
        pods.iter().find_map(|pod| self.runs.get(&pod.uid)?.running()).map(str::to_owned)
    }

    /// How many pods the Job of this UID has ever had.
    pub fn pods_ever(&self, uid: &str) -> u64 {
        self.made.get(uid).copied().unwrap_or_default()
    }

    /// Every container that was started, in order.
    pub fn started(&self) -> &[ContainerRun] {
        &self.started
    }

    /// Looks at every Job again at the next step.
    pub fn look_again(&mut self) {
        self.dirty.extend(self.known.keys().cloned());
    }

    /// A Job was written or removed.
    pub fn notice_job(&mut self, job: &Object, removed: bool) {
        self.known.insert(job.uid.clone(), job.key.clone());
        self.dirty.insert(job.uid.clone());
        if removed {
            self.due.remove(&job.uid);
        }
    }

    /// A pod was written or removed; true if it is a Job's.
    pub fn notice_pod(&mut self, pod: &Object, removed: bool) -> bool {
        let Some(job) = pod.owner.as_ref().filter(|owner| self.known.contains_key(*owner)) else { return false };
        self.dirty.insert(job.clone());
        if removed {
            self.runs.remove(&pod.uid);
        }
        true
    }

    /// The UIDs of the Jobs to look at now, no longer noted as such.
    pub fn take_due(&mut self, now: Duration) -> Vec<String> {
        let ripe: Vec<String> = self.due.iter().filter(|(_, at)| **at <= now).map(|(uid, _)| uid.clone()).collect();
        for uid in ripe {
            self.due.remove(&uid);
            self.dirty.insert(uid);
        }
        std::mem::take(&mut self.dirty).into_iter().collect()
    }

    /// When to look again without anything having changed.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.values().min().copied()
    }

    /// Asks the script about the containers that are to start, and returns how many those were. Nothing is locked meanwhile but the
    /// controllers.
    pub fn ask(&mut self, timings: Timings) -> usize {
        let questions = std::mem::take(&mut self.questions);
        for (uid, pod, run) in &questions {
            let outcome = match &self.script {
                Some(Script(script)) => script(run),
                None => Outcome::Ends(timings.pod_ready, End::default()),
            };
            if !matches!(outcome, Outcome::Waits(..)) {
                self.started.push(run.clone());
            }
            self.runs.entry(pod.clone()).and_modify(|known| known.decide(outcome));
            self.dirty.insert(uid.clone());
        }
        questions.len()
    }

    /// Moves one Job and its pods a step on.
    ///
    /// # Errors
    /// When the store refuses a write, which is a fault of this program.
    pub fn reconcile(
        &mut self,
        writer: &mut Writer<'_>,
        uid: &str,
        now: &Moment,
        timings: Timings,
    ) -> Result<(), Failure> {
        let Some(key) = self.known.get(uid).cloned() else { return Ok(()) };
        let job = writer.state.get(Kind::Job, &key).filter(|job| job.uid == uid);
        let mut next = None;
        let pods = self.run_pods(writer, (uid, &key.name), now, timings, &mut next);
        match job {
            Some(job) => self.sync(writer, &job, &pods, now, &mut next)?,
            None if pods.is_empty() => drop(self.known.remove(uid)),
            // Background deletion: they go as gracefully as if a person had deleted them, and nothing counts them.
            None => {
                for pod in &pods {
                    end(writer, pod)?;
                    if has_ended(&pod.value) {
                        writer.state.remove(Kind::Pod, &pod.key);
                    }
                }
            }
        }
        match next {
            Some(next) => drop(self.due.insert(uid.to_owned(), next)),
            None => drop(self.due.remove(uid)),
        }
        Ok(())
    }

    /// Moves the pods of a Job on. Those that have ended and are held by nothing go.
    fn run_pods(
        &mut self,
        writer: &mut Writer<'_>,
        (uid, job): (&str, &str),
        now: &Moment,
        timings: Timings,
        next: &mut Option<Duration>,
    ) -> Vec<Pod> {
        let mut pods = Vec::new();
        for object in writer.state.children(uid).into_iter().filter(|object| object.kind == Kind::Pod) {
            let mut value = object.value();
            let is_new = !self.runs.contains_key(&object.uid);
            let run = self.runs.entry(object.uid.clone()).or_insert_with(|| PodRun::new(job, &value));
            let progress = run.advance(&value, now, &writer.now, timings.pod_gone);
            if progress.changed || is_new {
                run.show(&mut value, &writer.now);
                writer.state.put(Kind::Pod, value.clone());
            }
            if let Some(question) = progress.question {
                self.questions.push((uid.to_owned(), object.uid.clone(), question));
            }
            if let Some(at) = progress.next {
                *next = sooner(*next, at);
            }
            if has_ended(&value) && is_ending(&value) && !is_tracked(&value) {
                writer.state.remove(Kind::Pod, &object.key);
                continue;
            }
            pods.push(Pod { key: object.key.clone(), value });
        }
        pods
    }

    /// The Job controller: counts pods that have ended, decides whether the Job is to end, and whether it is to have a pod.
    fn sync(
        &mut self,
        writer: &mut Writer<'_>,
        job: &Object,
        pods: &[Pod],
        now: &Moment,
        next: &mut Option<Duration>,
    ) -> Result<(), Failure> {
        let mut value = job.value();
        if holds(&value, "Complete") || holds(&value, "Failed") {
            return Ok(());
        }
        let mut target = target_before(&value);
        let mut counts = [count(&value, "failed"), count(&value, "succeeded")];
        for pod in pods.iter().filter(|pod| has_ended(&pod.value) && is_tracked(&pod.value)) {
            let good = text(&pod.value, "/status/phase") == "Succeeded";
            counts[usize::from(good)] += 1;
            if !good && target.is_none() {
                target = by_policy(&value, &pod.value);
            }
            let_go(writer, pod);
        }
        let [failed, succeeded] = counts;
        let suspended = value.pointer("/spec/suspend") == Some(&Value::Bool(true));
        let target = target.or_else(|| by_backoff(&value, failed)).or_else(|| by_success(&value, succeeded));
        let unended = |ending| pods.iter().filter(move |pod| !has_ended(&pod.value) && is_ending(&pod.value) == ending);
        let mut terminating = unended(true).count() as u64;
        let mut active = unended(false).count() as u64;
        if target.is_some() || suspended {
            for pod in unended(false) {
                end(writer, pod)?;
            }
            terminating += std::mem::take(&mut active);
        }
        match &target {
            Some(target) => {
                condition(&mut value, target.met, true, (&target.reason, &target.message), &writer.now);
                if terminating == 0 {
                    condition(&mut value, target.then, true, (&target.reason, &target.message), &writer.now);
                    if target.then == "Complete" {
                        value["status"]["completionTime"] = json!(writer.now);
                    }
                }
            }
            None => {
                suspend(&mut value, suspended, &writer.now);
                let replaces = text(&value, "/spec/podReplacementPolicy") != "Failed" || terminating == 0;
                if !suspended && active == 0 && replaces && !is_ending(&value) {
                    self.make_pod(writer, &value, next, now)?;
                    active = 1;
                }
            }
        }
        let ready = pods.iter().filter(|pod| holds(&pod.value, "Ready")).count() as u64;
        let counts = [("active", active), ("failed", failed), ("succeeded", succeeded)];
        write_counts(&mut value, counts, terminating, ready);
        if value != job.value() {
            writer.state.put(Kind::Job, value);
        }
        Ok(())
    }

    fn make_pod(
        &mut self,
        writer: &mut Writer<'_>,
        job: &Value,
        next: &mut Option<Duration>,
        now: &Moment,
    ) -> Result<(), Failure> {
        let mut pod = pod_of(job);
        pod["metadata"]["finalizers"] = json!([JOB_TRACKING]);
        writer.create(Kind::Pod, text(job, "/metadata/namespace"), pod)?;
        *self.made.entry(text(job, "/metadata/uid").to_owned()).or_default() += 1;
        *next = Some(now.elapsed);
        Ok(())
    }
}

/// Writes how many pods there are. The API leaves out zeros of those that it does not have as pointers.
fn write_counts(job: &mut Value, counts: [(&str, u64); 3], terminating: u64, ready: u64) {
    let Some(status) = job["status"].as_object_mut() else { return };
    for (field, count) in counts {
        match count {
            0 => drop(status.remove(field)),
            count => drop(status.insert(field.to_owned(), json!(count))),
        }
    }
    status.insert("terminating".to_owned(), json!(terminating));
    status.insert("ready".to_owned(), json!(ready));
}

/// Begins the end of a pod, unless it has begun or is over.
fn end(writer: &mut Writer<'_>, pod: &Pod) -> Result<(), Failure> {
    if is_ending(&pod.value) || has_ended(&pod.value) {
        return Ok(());
    }
    writer.delete(Kind::Pod, &pod.key, &DeleteOptions::default()).map(drop)
}

/// Takes the controller's finalizer from a pod that has ended; with that, a pod that is being deleted goes.
fn let_go(writer: &mut Writer<'_>, pod: &Pod) {
    if !has_ended(&pod.value) || !is_tracked(&pod.value) {
        return;
    }
    let mut value = pod.value.clone();
    if let Some(finalizers) = value.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|one| one != JOB_TRACKING);
    }
    writer.state.put(Kind::Pod, value);
    if is_ending(&pod.value) {
        writer.state.remove(Kind::Pod, &pod.key);
    }
}

/// The first rule of the policy that a failed pod matches.
fn by_policy(job: &Value, pod: &Value) -> Option<Target> {
    let rules = items(job, "/spec/podFailurePolicy/rules").iter();
    let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
    let words = rules.enumerate().find_map(|(index, rule)| {
        let action = text(rule, "/action");
        let matching = format!("matching {action} rule at index {index}");
        if let Some((container, code)) = rule.get("onExitCodes").and_then(|codes| exit_code(codes, pod)) {
            return Some((
                action,
                format!("Container {container} for pod {namespace}/{name} failed with exit code {code} {matching}"),
            ));
        }
        let found =
            items(rule, "/onPodConditions").iter().map(|one| text(one, "/type")).find(|kind| holds(pod, kind))?;
        Some((action, format!("Pod {namespace}/{name} has condition {found} {matching}")))
    });
    let (_, message) = words.filter(|(action, _)| *action == "FailJob")?;
    Some(failure("PodFailurePolicy", message))
}

/// The first container with a code other than 0 that the rule is about.
fn exit_code(rule: &Value, pod: &Value) -> Option<(String, i64)> {
    let among = |code: i64| items(rule, "/values").iter().any(|one| one.as_i64() == Some(code));
    let wanted = text(rule, "/containerName");
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
    statuses.into_iter().flat_map(|list| items(pod, list)).find_map(|status| {
        let (name, code) = (text(status, "/name"), number(status, "/state/terminated/exitCode")?);
        let named = wanted.is_empty() || wanted == name;
        (code != 0 && named && among(code) == (text(rule, "/operator") == "In")).then(|| (name.to_owned(), code))
    })
}

fn by_backoff(job: &Value, failed: u64) -> Option<Target> {
    let limit = number(job, "/spec/backoffLimit").and_then(|limit| u64::try_from(limit).ok()).unwrap_or_default();
    (failed > limit).then(|| failure("BackoffLimitExceeded", "Job has reached the specified backoff limit".to_owned()))
}

fn by_success(job: &Value, succeeded: u64) -> Option<Target> {
    let wanted = number(job, "/spec/completions").and_then(|wanted| u64::try_from(wanted).ok()).unwrap_or(1);
    let (met, then) = ("SuccessCriteriaMet", "Complete");
    let message = "Reached expected number of succeeded pods".to_owned();
    (succeeded >= wanted).then(|| Target { met, then, reason: "CompletionsReached".to_owned(), message })
}

fn failure(reason: &str, message: String) -> Target {
    Target { met: "FailureTarget", then: "Failed", reason: reason.to_owned(), message }
}

/// What was decided before.
fn target_before(job: &Value) -> Option<Target> {
    let of = |met: &'static str, then: &'static str| {
        let condition = items(job, "/status/conditions")
            .iter()
            .find(|one| text(one, "/type") == met && text(one, "/status") == "True")?;
        let (reason, message) = (text(condition, "/reason").to_owned(), text(condition, "/message").to_owned());
        Some(Target { met, then, reason, message })
    };
    of("FailureTarget", "Failed").or_else(|| of("SuccessCriteriaMet", "Complete"))
}

/// Says that the Job is suspended, or goes on, and when it started.
fn suspend(job: &mut Value, suspended: bool, now: &str) {
    if suspended {
        drop(job["status"].as_object_mut().and_then(|status| status.remove("startTime")));
        condition(job, "Suspended", true, ("JobSuspended", "Job suspended"), now);
        return;
    }
    if holds(job, "Suspended") {
        condition(job, "Suspended", false, ("JobResumed", "Job resumed"), now);
    }
    if text(job, "/status/startTime").is_empty() {
        job["status"]["startTime"] = json!(now);
    }
}

/// Sets a condition, unless it is so already.
fn condition(job: &mut Value, kind: &str, holds: bool, (reason, message): (&str, &str), now: &str) {
    let status = if holds { "True" } else { "False" };
    if items(job, "/status/conditions").iter().any(|one| text(one, "/type") == kind && text(one, "/status") == status) {
        return;
    }
    let mut all: Vec<Value> =
        items(job, "/status/conditions").iter().filter(|one| text(one, "/type") != kind).cloned().collect();
    all.push(json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    }));
    job["status"]["conditions"] = json!(all);
}

fn count(job: &Value, field: &str) -> u64 {
    job.pointer(&format!("/status/{field}")).and_then(Value::as_u64).unwrap_or_default()
}

fn has_ended(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"))
}

fn is_tracked(pod: &Value) -> bool {
    items(pod, "/metadata/finalizers").iter().any(|one| one == JOB_TRACKING)
}
