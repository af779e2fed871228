//! Jobs, for those who drive the stand-in: what their containers do, and what became of them.
//!
//! Not for the rules of the Job controller; those are in `controller::jobs`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::KubernetesStandIn;
use super::controller::{ContainerRun, End, Script};
use super::failure::Failure;
use super::object::{Key, Object};
use super::resource::Kind;

impl KubernetesStandIn {
    /// Decides what becomes of containers of Jobs from now on. Without a script each ends with 0 after
    /// [`Timings::pod_ready`](super::Timings::pod_ready).
    pub fn set_job_script(&self, script: Option<Script>) {
        self.controller().jobs.set_script(script);
        self.wake();
    }

    /// Lets no pod of a Job be made from now on, as a quota without room does, or lets them be made again.
    pub fn refuse_job_pods(&self, refuse: bool) {
        self.controller().jobs.refuse_pods(refuse);
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
        let mut conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array).cloned();
        conditions.get_or_insert_default().push(json!({
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
mod tests;
