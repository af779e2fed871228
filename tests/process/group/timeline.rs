//! When the clusters agreed, as the clusters themselves say: a thread of its own looks at every Deployment all the time.
//!
//! It looks every few milliseconds, so a shorter moment of agreement is missed; the rollouts here stay complete for longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox::kubernetes::{Kind, KubernetesStandIn};
use serde_json::Value;

use crate::scene::{NAME, NAMESPACE};

/// Three Deployments of some kilobytes are looked at in a tenth of this.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// A moment at which every cluster had completed one version.
#[derive(Clone, Debug)]
pub struct Agreement {
    pub since: Instant,
    /// The generation of each Deployment: two agreements differ in one at least.
    pub generations: Vec<i64>,
}

/// The agreements so far. Dropping it ends its thread.
pub struct Timeline {
    agreements: Arc<Mutex<Vec<Agreement>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Timeline {
    /// Looks at these clusters from now on.
    pub fn follow(clusters: Vec<KubernetesStandIn>) -> Self {
        let (agreements, end) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (found, ended) = (Arc::clone(&agreements), Arc::clone(&end));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                look(&clusters, &mut found.lock().unwrap());
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Self { agreements, end, thread: Some(thread) }
    }

    /// All agreements since the beginning, which is the first.
    pub fn agreements(&self) -> Vec<Agreement> {
        self.agreements.lock().unwrap().clone()
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn look(clusters: &[KubernetesStandIn], found: &mut Vec<Agreement>) {
    let since = Instant::now();
    let deployments = clusters.iter().map(|cluster| cluster.get(Kind::Deployment, NAMESPACE, NAME));
    let Some(complete) = deployments.map(|deployment| complete(&deployment?)).collect::<Option<Vec<_>>>() else {
        return;
    };
    let (generations, images): (Vec<i64>, Vec<String>) = complete.into_iter().unzip();
    if images.iter().all(|image| *image == images[0]) && found.last().is_none_or(|last| last.generations != generations)
    {
        found.push(Agreement { since, generations });
    }
}

/// The generation and the image of a Deployment that is complete.
pub fn complete(deployment: &Value) -> Option<(i64, String)> {
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let (generation, status) = (number(&deployment["metadata"]["generation"]), &deployment["status"]);
    let wanted = number(&deployment["spec"]["replicas"]);
    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
    let complete = number(&status["observedGeneration"]) >= generation
        && counts.iter().all(|count| number(&status[count]) == wanted);
    let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?.to_owned();
    complete.then_some((generation, image))
}
