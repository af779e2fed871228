//! Driving the controllers: by hand, one step at a time, or by themselves.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::controller::{Controller, Moment, Node, PodFate, Timings, WATCHED};
use super::{Kind, KubernetesStandIn};

/// Workloads moved on before the automatic mode lets others run: about 10 ms of work in a debug build.
const WORKLOADS_PER_TURN: usize = 50;

/// Steps after which [`KubernetesStandIn::settle`] gives up. A rollout takes about four steps per pod and a workload
/// has hundreds of pods at most, so a cluster that takes longer never settles.
const STEPS_MAX: u32 = 10_000;

impl KubernetesStandIn {
    /// Lets the controllers look once at every workload that has something to do now; returns how many those were.
    /// One step makes at most one pod per workload ready.
    pub fn step(&self) -> usize {
        let mut controller = self.controller();
        self.turn(&mut controller, usize::MAX)
    }

    /// Steps until nothing is left to do at the present time; returns the number of steps. What waits for time to pass
    /// (delays in [`Timings`], a progress deadline) goes on waiting: see [`KubernetesStandIn::run_for`].
    pub fn settle(&self) -> u32 {
        (0..STEPS_MAX).find(|_| self.step() == 0).unwrap_or(STEPS_MAX)
    }

    /// Moves the cluster's clock forward by `time`, with the controllers at work at every moment that matters on the
    /// way.
    pub fn run_for(&self, time: Duration) {
        let end = self.elapsed() + time;
        for _ in 0..STEPS_MAX {
            self.settle();
            let now = self.elapsed();
            match self.controller().next_due().filter(|due| *due <= end) {
                Some(due) => self.skip(due.saturating_sub(now)),
                None => break,
            }
        }
        self.skip(end.saturating_sub(self.elapsed()));
        self.settle();
    }

    /// Runs the controllers for as long as the future is polled; it never ends by itself.
    pub async fn run_controller(&self) {
        let mut signals: Vec<_> = WATCHED.iter().filter_map(|kind| self.store().signal(*kind)).collect();
        loop {
            for signal in &mut signals {
                signal.borrow_and_update();
            }
            let (busy, next) = {
                let mut controller = self.controller();
                (self.turn(&mut controller, WORKLOADS_PER_TURN) > 0, controller.next_due())
            };
            if busy {
                tokio::task::yield_now().await;
                continue;
            }
            // Without anything due, a change is the only thing that can wake us; the hour is only a number to wait for.
            let wait = next.map_or(Duration::from_secs(3_600), |next| next.saturating_sub(self.elapsed()));
            let wake = Instant::now() + wait;
            let changed = futures_util::future::select_all(signals.iter_mut().map(|signal| Box::pin(signal.changed())));
            tokio::select! {
                _ = changed => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Decides what becomes of pods that run `image`, those running already included; `None` heals it.
    pub fn set_fate(&self, image: &str, fate: Option<PodFate>) {
        self.controller().set_fate(image, fate);
        self.wake();
    }

    /// Decides which nodes there are from now on. A new cluster has two that answer, and all pods but those of DaemonSets run on the first.
    pub fn set_nodes(&self, nodes: Vec<Node>) {
        self.controller().set_nodes(nodes);
        self.wake();
    }

    /// Changes how long things take from now on.
    pub fn set_timings(&self, timings: Timings) {
        self.controller().set_timings(timings);
        self.wake();
    }

    /// Lets [`KubernetesStandIn::run_controller`] look again although nothing was written.
    pub(super) fn wake(&self) {
        self.store().wake(Kind::Deployment);
    }

    pub(super) fn controller(&self) -> MutexGuard<'_, Controller> {
        self.inner.controller.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One look at each workload that has something to do, at most `limit`; returns how many those were.
    fn turn(&self, controller: &mut Controller, limit: usize) -> usize {
        let elapsed = self.elapsed();
        let now = Moment { elapsed, time: self.time(elapsed) };
        controller.notice(&self.store().lock());
        // Garbage is not counted: its removal is a change, which the next turn notices.
        let cleaned = self.write(|writer| Ok(controller.collect_garbage(writer)));
        // Nor are EndpointSlices: no controller here waits for them.
        let _ = self.write(|writer| {
            controller.publish_endpoints(writer);
            Ok(())
        });
        let owners = controller.take_due(elapsed, limit);
        for owner in &owners {
            let reconciled = self.write(|writer| controller.reconcile(writer, owner, &now));
            // A refusal means that the object has gone meanwhile; whatever took it away is noticed next time.
            let _ = reconciled;
        }
        let jobs = controller.run_jobs(&now, |step| {
            let _ = self.write(|writer| step(writer));
        });
        owners.len() + jobs + cleaned.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Options;
    use super::*;

    const SHOP: &str = "shop";

    fn cluster() -> KubernetesStandIn {
        KubernetesStandIn::new(Options::default())
    }

    fn web(cluster: &KubernetesStandIn) -> Value {
        cluster.get(Kind::Deployment, SHOP, "web").unwrap()
    }

    fn counts(cluster: &KubernetesStandIn) -> [i64; 4] {
        let status = &web(cluster)["status"];
        ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].map(|f| status[f].as_i64().unwrap_or(0))
    }

    fn condition(cluster: &KubernetesStandIn, kind: &str) -> (String, String) {
        let web = web(cluster);
        let conditions = web["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions.iter().find(|c| c["type"] == kind).unwrap();
        (found["status"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
    }

    fn progressing(cluster: &KubernetesStandIn) -> String {
        condition(cluster, "Progressing").1
    }

    fn waiting_reasons(cluster: &KubernetesStandIn) -> Vec<String> {
        let pods = cluster.list(Kind::Pod, SHOP);
        let reason = |pod: &Value| {
            pod.pointer("/status/containerStatuses/0/state/waiting/reason").and_then(Value::as_str).map(str::to_owned)
        };
        pods.iter().filter_map(reason).collect()
    }

    #[test]
    fn a_new_deployment_becomes_complete_pod_by_pod() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 3).unwrap();
        assert!(web(&cluster)["status"]["observedGeneration"].is_null(), "nobody has looked yet");
        let mut ready = Vec::new();
        while cluster.step() > 0 {
            ready.push(counts(&cluster)[2]);
        }
        assert!(ready.windows(2).all(|pair| pair[1] - pair[0] <= 1), "{ready:?}");
        assert_eq!(counts(&cluster), [3, 3, 3, 3]);
        assert_eq!(progressing(&cluster), "NewReplicaSetAvailable");
        assert_eq!(condition(&cluster, "Available"), ("True".into(), "MinimumReplicasAvailable".into()));
        let web = web(&cluster);
        assert_eq!(web["metadata"]["generation"], 1, "the controller's own writes do not raise it");
        assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
        assert_eq!(cluster.step(), 0);
        let version = cluster.version();
        cluster.settle();
        assert_eq!(cluster.version(), version, "a cluster at rest writes nothing");
    }

    #[test]
    fn a_rolling_update_keeps_its_bounds_and_leaves_one_old_replica_set() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 4).unwrap();
        cluster.settle();
        cluster.set_image(SHOP, "web", "web", "web:2").unwrap();
        assert_eq!(web(&cluster)["metadata"]["generation"], 2);
        assert_eq!(web(&cluster)["status"]["observedGeneration"], 1);
        let mut reasons = Vec::new();
        while cluster.step() > 0 {
            let [replicas, _, _, available] = counts(&cluster);
            assert!(replicas <= 5 && available >= 3, "25 % of 4: {replicas} pods, {available} available");
            reasons.push(progressing(&cluster));
        }
        reasons.dedup();
        assert_eq!(reasons, ["NewReplicaSetCreated", "ReplicaSetUpdated", "NewReplicaSetAvailable"]);
        assert_eq!(counts(&cluster), [4, 4, 4, 4]);
        assert_eq!(cluster.list(Kind::ReplicaSet, SHOP).len(), 2);
        assert_eq!(cluster.list(Kind::Pod, SHOP).len(), 4);
        assert!(cluster.list(Kind::Pod, SHOP).iter().all(|pod| pod["spec"]["containers"][0]["image"] == "web:2"));
        cluster.set_image(SHOP, "web", "web", "web:1").unwrap();
        cluster.settle();
        assert_eq!(cluster.list(Kind::ReplicaSet, SHOP).len(), 2, "the old ReplicaSet is used again");
        assert_eq!(web(&cluster)["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
        assert_eq!(counts(&cluster), [4, 4, 4, 4]);
    }

    #[test]
    fn an_image_that_cannot_be_pulled_stalls_until_the_deadline_and_heals() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 3).unwrap();
        cluster.settle();
        cluster.set_fate("web:2", Some(PodFate::CannotPull));
        cluster.set_image(SHOP, "web", "web", "web:2").unwrap();
        cluster.settle();
        assert_eq!(waiting_reasons(&cluster), ["ImagePullBackOff"]);
        assert_eq!(counts(&cluster), [4, 1, 3, 3]);
        cluster.run_for(Duration::from_secs(590));
        assert_ne!(progressing(&cluster), "ProgressDeadlineExceeded");
        cluster.run_for(Duration::from_secs(12));
        assert_eq!(condition(&cluster, "Progressing"), ("False".into(), "ProgressDeadlineExceeded".into()));
        cluster.set_image(SHOP, "web", "web", "web:1").unwrap();
        cluster.step();
        let web = web(&cluster);
        assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
        assert_eq!(progressing(&cluster), "ReplicaSetUpdated", "one pod of the old set counts as updated at once");
        cluster.set_image(SHOP, "web", "web", "web:2").unwrap();
        cluster.set_fate("web:2", None);
        cluster.settle();
        assert_eq!((counts(&cluster), progressing(&cluster)), ([3, 3, 3, 3], "NewReplicaSetAvailable".into()));
    }

    #[test]
    fn a_pod_without_a_node_says_so_and_heals() {
        let cluster = cluster();
        cluster.set_fate("web:1", Some(PodFate::Unschedulable));
        cluster.deploy(SHOP, "web", "web:1", 1).unwrap();
        cluster.settle();
        assert_eq!(cluster.list(Kind::Pod, SHOP)[0]["status"]["conditions"][0]["reason"], "Unschedulable");
        assert_eq!(condition(&cluster, "Available").0, "False");
        cluster.set_fate("web:1", None);
        cluster.settle();
        assert_eq!(counts(&cluster), [1, 1, 1, 1]);
    }

    #[test]
    fn a_paused_deployment_is_scaled_but_not_rolled_out() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 2).unwrap();
        cluster.settle();
        cluster.patch(Kind::Deployment, SHOP, "web", &json!({"spec": {"paused": true, "replicas": 3}})).unwrap();
        cluster.set_image(SHOP, "web", "web", "web:2").unwrap();
        cluster.settle();
        assert_eq!((counts(&cluster), progressing(&cluster)), ([3, 0, 3, 3], "DeploymentPaused".into()));
        cluster.patch(Kind::Deployment, SHOP, "web", &json!({"spec": {"paused": null}})).unwrap();
        cluster.settle();
        assert_eq!((counts(&cluster), progressing(&cluster)), ([3, 3, 3, 3], "NewReplicaSetAvailable".into()));
    }

    #[test]
    fn a_deployment_scales_to_zero_and_back_and_takes_its_pods_with_it() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 2).unwrap();
        cluster.settle();
        for (replicas, expected) in [(0, [0, 0, 0, 0]), (3, [3, 3, 3, 3])] {
            cluster.patch(Kind::Deployment, SHOP, "web", &json!({"spec": {"replicas": replicas}})).unwrap();
            cluster.settle();
            assert_eq!(counts(&cluster), expected);
        }
        cluster.delete(Kind::Deployment, SHOP, "web").unwrap();
        cluster.settle();
        assert!(cluster.list(Kind::ReplicaSet, SHOP).is_empty() && cluster.list(Kind::Pod, SHOP).is_empty());
    }

    #[test]
    fn a_seeded_deployment_rests_until_it_is_changed() {
        let cluster = cluster();
        cluster.seed(SHOP, "web", "web:1", 2).unwrap();
        cluster.settle();
        assert!(cluster.list(Kind::ReplicaSet, SHOP).is_empty());
        assert_eq!((counts(&cluster), progressing(&cluster)), ([2, 2, 2, 2], "NewReplicaSetAvailable".into()));
        cluster.set_image(SHOP, "web", "web", "web:2").unwrap();
        cluster.settle();
        assert_eq!((counts(&cluster), cluster.list(Kind::Pod, SHOP).len()), ([2, 2, 2, 2], 2));
    }

    #[test]
    fn a_deleted_pod_is_replaced() {
        let cluster = cluster();
        cluster.deploy(SHOP, "web", "web:1", 2).unwrap();
        cluster.settle();
        let name = cluster.list(Kind::Pod, SHOP)[0]["metadata"]["name"].as_str().unwrap().to_owned();
        cluster.delete(Kind::Pod, SHOP, &name).unwrap();
        assert!(cluster.get(Kind::Pod, SHOP, &name).unwrap()["metadata"]["deletionTimestamp"].is_string());
        cluster.settle();
        assert!(cluster.get(Kind::Pod, SHOP, &name).is_none());
        assert_eq!((counts(&cluster), cluster.list(Kind::Pod, SHOP).len()), ([2, 2, 2, 2], 2));
    }

    /// The automatic mode under paused time: the rollout takes as long as the timings say, and then the task rests.
    #[tokio::test(start_paused = true)]
    async fn the_automatic_mode_takes_the_time_it_is_told() {
        let cluster = KubernetesStandIn::new(Options { timings: Timings::LIFELIKE, ..Options::default() });
        cluster.deploy(SHOP, "web", "web:1", 3).unwrap();
        let begin = Instant::now();
        let done = async {
            while counts(&cluster) != [3, 3, 3, 3] {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            () = cluster.run_controller() => unreachable!("it never ends"),
            () = done => {}
        }
        let taken = begin.elapsed();
        assert!(taken >= Duration::from_millis(4_500) && taken < Duration::from_millis(4_800), "{taken:?}");
    }
}
