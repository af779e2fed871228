//! Jobs, for those who drive the stand-in: what their containers do, and what became of them.
//!
//! Not for the rules of the Job controller; those are in `controller::jobs`.

use std::sync::Arc;

use serde_json::json;

use super::KubernetesStandIn;
use super::controller::{ContainerRun, End, Script};
use super::failure::Failure;
use super::object::{Key, Object, items};
use super::resource::Kind;

impl KubernetesStandIn {
    /// Decides what becomes of containers of Jobs from now on. Without a script each ends with 0 after
    /// [`Timings::pod_ready`](super::Timings::pod_ready).
    pub fn set_job_script(&self, script: Option<Script>) {
        self.controller().jobs.set_script(script);
        self.wake();
    }

    /// Ends the container that was started in the pod of this Job and has not ended; false if there is none.
    pub fn finish(&self, namespace: &str, job: &str, end: End) -> bool {
        let (uid, pods) = self.job(namespace, job);
        let finished = self.controller().jobs.finish(&uid, &pods, end);
        self.wake();
        finished
    }

    /// The container that runs in the pod of this Job.
    pub fn running_step(&self, namespace: &str, job: &str) -> Option<String> {
        let (_, pods) = self.job(namespace, job);
        self.controller().jobs.running(&pods)
    }

    /// Evicts the pod of this Job as the eviction API does: it gets a reason, and ends gracefully.
    ///
    /// # Errors
    /// 404 when it has none that runs.
    pub fn evict(&self, namespace: &str, job: &str) -> Result<(), Failure> {
        let (_, pods) = self.job(namespace, job);
        let pod = pods.first().ok_or_else(|| Failure::not_found(Kind::Pod, job))?;
        let mut conditions = items(&pod.value(), "/status/conditions").to_vec();
        conditions.push(json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": self.stamp(self.elapsed()),
        }));
        let status = json!({"status": {"conditions": conditions}});
        self.patch(Kind::Pod, namespace, &pod.key.name, &status)?;
        self.delete(Kind::Pod, namespace, &pod.key.name)
    }

    /// How many pods the Job of this UID has ever had, also one that is gone.
    pub fn pods_ever(&self, job_uid: &str) -> u64 {
        self.controller().jobs.pods_ever(job_uid)
    }

    /// Every container of a Job that was started, in order.
    pub fn started_containers(&self) -> Vec<ContainerRun> {
        self.controller().jobs.started().to_vec()
    }

    /// The UID and the pods of a Job; none if it is not there.
    fn job(&self, namespace: &str, name: &str) -> (String, Vec<Arc<Object>>) {
        let state = self.store().lock();
        let Some(job) = state.get(Kind::Job, &Key::new(namespace, name)) else { return Default::default() };
        let pods = state.children(&job.uid).into_iter().filter(|child| child.kind == Kind::Pod).collect();
        (job.uid.clone(), pods)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::super::{Options, Outcome, Timings};
    use super::*;

    const PLACE: &str = "platform";

    /// Looks of 20 µs and more before a thread that does not answer is given up.
    const LOOKS_MAX: u32 = 100_000;

    fn guarded(name: &str) -> Value {
        let container = |name: &str| json!({"name": name, "image": "infra:1", "args": [name, "$$HOME"]});
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"namespace": PLACE, "name": name},
            "spec": {
                "suspend": true, "backoffLimit": 0, "podReplacementPolicy": "Failed",
                "podFailurePolicy": {"rules": [
                    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
                ]},
                "template": {"spec": {
                    "restartPolicy": "Never", "initContainers": [container("source")], "containers": [container("apply")],
                }},
            },
        })
    }

    fn cluster() -> KubernetesStandIn {
        KubernetesStandIn::new(Options::default())
    }

    fn start(cluster: &KubernetesStandIn, name: &str) -> String {
        let job = cluster.apply(guarded(name)).unwrap();
        cluster.settle();
        cluster.patch(Kind::Job, PLACE, name, &json!({"spec": {"suspend": false}})).unwrap();
        job["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// Every step ends well, but for `apply`, which waits until its end is set.
    fn hold_apply(cluster: &KubernetesStandIn) {
        let ends = Outcome::Ends(Duration::ZERO, End::default());
        cluster.set_job_script(Some(Script::new(move |run| match run.container.as_str() {
            "apply" => Outcome::Holds,
            _ => ends.clone(),
        })));
    }

    fn status(cluster: &KubernetesStandIn, name: &str) -> Value {
        cluster.get(Kind::Job, PLACE, name).unwrap()["status"].clone()
    }

    fn conditions(cluster: &KubernetesStandIn, name: &str) -> Vec<String> {
        let status = status(cluster, name);
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.iter()
            .map(|one| {
                format!(
                    "{}={} {}",
                    one["type"].as_str().unwrap(),
                    one["status"].as_str().unwrap(),
                    one["reason"].as_str().unwrap()
                )
            })
            .collect()
    }

    fn message(cluster: &KubernetesStandIn, name: &str) -> String {
        let status = status(cluster, name);
        status["conditions"].as_array().unwrap().last().unwrap()["message"].as_str().unwrap().to_owned()
    }

    fn pods(cluster: &KubernetesStandIn) -> Vec<Value> {
        cluster.list(Kind::Pod, PLACE)
    }

    #[test]
    fn a_started_job_runs_its_containers_one_after_another_and_is_complete() {
        let cluster = cluster();
        let uid = start(&cluster, "infra");
        cluster.settle();
        let steps: Vec<String> = cluster.started_containers().iter().map(|run| run.command.join(" ")).collect();
        assert_eq!(steps, ["source $HOME", "apply $HOME"]);
        assert_eq!(conditions(&cluster, "infra").last().unwrap(), "Complete=True CompletionsReached");
        let status = status(&cluster, "infra");
        assert_eq!((&status["succeeded"], &status["terminating"], status.get("active")), (&json!(1), &json!(0), None));
        let pods = pods(&cluster);
        assert_eq!(
            (pods.len(), &pods[0]["status"]["phase"], &pods[0]["metadata"]["labels"]["job-name"]),
            (1, &json!("Succeeded"), &json!("infra"))
        );
        assert_eq!((cluster.pods_ever(&uid), &pods[0]["metadata"]["finalizers"]), (1, &json!([])));
    }

    #[test]
    fn each_state_of_a_container_can_be_seen() {
        let cluster = cluster();
        hold_apply(&cluster);
        start(&cluster, "infra");
        let mut seen = Vec::new();
        while cluster.step() > 0 {
            for pod in pods(&cluster) {
                let state = |list: &str| {
                    pod["status"][list][0]["state"].as_object().map(|state| state.keys().next().unwrap().clone())
                };
                let state = (
                    pod["status"]["phase"].as_str().unwrap().to_owned(),
                    state("initContainerStatuses"),
                    state("containerStatuses"),
                );
                if seen.last() != Some(&state) {
                    seen.push(state);
                }
            }
        }
        let word = |word: &str| Some(word.to_owned());
        let expected = [
            ("Pending".to_owned(), None, None),
            ("Pending".to_owned(), word("waiting"), word("waiting")),
            ("Pending".to_owned(), word("running"), word("waiting")),
            ("Pending".to_owned(), word("terminated"), word("waiting")),
            ("Running".to_owned(), word("terminated"), word("running")),
        ];
        assert_eq!(seen, expected);
        assert_eq!(cluster.running_step(PLACE, "infra").as_deref(), Some("apply"));
        assert!(cluster.finish(PLACE, "infra", End::with(0).saying("done")));
        cluster.settle();
        assert_eq!(pods(&cluster)[0]["status"]["containerStatuses"][0]["state"]["terminated"]["message"], "done");
        assert!(!cluster.finish(PLACE, "infra", End::default()));
    }

    #[test]
    fn a_container_that_fails_fails_the_job_by_its_policy() {
        let cluster = cluster();
        let ends = |code| Outcome::Ends(Duration::ZERO, End::with(code));
        cluster.set_job_script(Some(Script::new(move |run| ends(if run.container == "source" { 4 } else { 0 }))));
        let uid = start(&cluster, "infra");
        cluster.settle();
        assert_eq!(
            conditions(&cluster, "infra")[1..],
            ["FailureTarget=True PodFailurePolicy", "Failed=True PodFailurePolicy"]
        );
        let name = pods(&cluster)[0]["metadata"]["name"].as_str().unwrap().to_owned();
        let expected = format!(
            "Container source for pod platform/{name} failed with exit code 4 matching FailJob rule at index 1"
        );
        assert_eq!((message(&cluster, "infra"), cluster.pods_ever(&uid)), (expected, 1));
        assert_eq!(
            pods(&cluster)[0]["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
            "PodInitializing"
        );
    }

    // Faults: RF5
    #[test]
    fn a_pod_that_is_deleted_even_by_force_ends_the_job_and_has_no_successor() {
        let cluster = cluster();
        hold_apply(&cluster);
        let uid = start(&cluster, "infra");
        cluster.settle();
        let name = pods(&cluster)[0]["metadata"]["name"].as_str().unwrap().to_owned();
        cluster.delete(Kind::Pod, PLACE, &name).unwrap();
        cluster.step();
        assert_eq!(status(&cluster, "infra")["terminating"], 1);
        cluster.settle();
        assert!(message(&cluster, "infra").contains("Container apply for pod"), "{}", message(&cluster, "infra"));
        assert_eq!((pods(&cluster).len(), cluster.pods_ever(&uid)), (0, 1));
    }

    #[test]
    fn without_the_guards_a_pod_that_ends_has_a_successor_at_once() {
        let cluster = cluster();
        cluster.set_timings(Timings { pod_gone: Duration::from_secs(60), ..Timings::IMMEDIATE });
        hold_apply(&cluster);
        let mut job = guarded("infra");
        for guard in ["podFailurePolicy", "podReplacementPolicy"] {
            job["spec"].as_object_mut().unwrap().remove(guard);
        }
        job["spec"]["suspend"] = json!(false);
        let uid = cluster.apply(job).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        cluster.settle();
        cluster.evict(PLACE, "infra").unwrap();
        cluster.settle();
        assert_eq!((pods(&cluster).len(), cluster.pods_ever(&uid)), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn by_itself_a_job_takes_as_long_as_its_script_says_and_an_end_that_comes_early_counts() {
        let cluster = cluster();
        let late = cluster.clone();
        cluster.set_job_script(Some(Script::new(move |run| match run.container.as_str() {
            "source" => Outcome::Ends(Duration::from_secs(3), End::default()),
            _ => {
                // What a demo does that runs a program: it answers later, or at once, from another task.
                let (late, run) = (late.clone(), run.clone());
                std::thread::spawn(move || {
                    assert!(late.finish(&run.namespace, &run.job, End::default().saying("ran")));
                });
                Outcome::Holds
            }
        })));
        start(&cluster, "infra");
        let began = tokio::time::Instant::now();
        // The clock is paused, and the other thread's is not: looks are counted, not time.
        let complete = async {
            for _ in 0..LOOKS_MAX {
                if conditions(&cluster, "infra").contains(&"Complete=True CompletionsReached".to_owned()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("it is not complete: {:?}", conditions(&cluster, "infra"));
        };
        tokio::select! {
            () = cluster.run_controller() => {}
            () = complete => {}
        }
        assert!(began.elapsed() >= Duration::from_secs(3));
        assert_eq!(pods(&cluster)[0]["status"]["containerStatuses"][0]["state"]["terminated"]["message"], "ran");
    }
}
