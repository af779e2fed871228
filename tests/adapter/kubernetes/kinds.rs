//! Workloads of each kind, as their controllers leave them step by step: what is read is held to the pods themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use allclear::adapters::kubernetes::{Cluster, Scope, workload_decoder};
use futures_util::StreamExt;
use kernel::id::{Kind as WorkloadKind, WorkloadId};
use kernel::names::image::VersionOf;
use kernel::watches::listed::Scope as Listed;
use kinds::reported::{Standing, Wait};
use purge::ports::{ClusterView, Sight};
use purge::workloads::serving::old_pods;
use sandbox::kubernetes::{Kind, KubernetesStandIn, Node, Options, PodFate, Timings};
use serde_json::{Value, json};
use support::fakes::Dice;

use super::{Bench, PATIENCE, brisk};

/// The image whose pods never become ready.
const BROKEN: &str = "shop/web:broken";

/// Worlds in which each kind is played.
const SEEDS: u64 = 25;

/// Steps of one world.
const STEPS: u64 = 80;

fn stored(kind: WorkloadKind) -> Kind {
    match kind {
        WorkloadKind::Deployment => Kind::Deployment,
        WorkloadKind::StatefulSet => Kind::StatefulSet,
        WorkloadKind::DaemonSet => Kind::DaemonSet,
        WorkloadKind::Rollout => Kind::ArgoRollout,
        WorkloadKind::Custom(_) => Kind::CloneSet,
    }
}

pub fn object(kind: WorkloadKind, name: &str, image: &str, replicas: u64) -> Value {
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {"namespace": "shop", "name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": image}]},
            },
        },
    });
    if kind != WorkloadKind::DaemonSet {
        object["spec"]["replicas"] = json!(replicas);
    }
    if kind == WorkloadKind::StatefulSet {
        object["spec"]["serviceName"] = json!(name);
    }
    if kind == WorkloadKind::Rollout {
        object["spec"]["strategy"] = json!({"canary": {}});
    }
    object
}

pub fn set_image(api: &KubernetesStandIn, kind: WorkloadKind, name: &str, image: &str) {
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}});
    api.patch(stored(kind), "shop", name, &change).unwrap();
}

/// A world with one workload, and what happens to it.
struct Play {
    api: KubernetesStandIn,
    kind: WorkloadKind,
    dice: Dice,
    replicas: u64,
    image: String,
}

impl Play {
    fn begin(kind: WorkloadKind, seed: u64) -> Self {
        let api = KubernetesStandIn::new(Options::default());
        api.set_timings(Timings::IMMEDIATE);
        api.set_fate(BROKEN, Some(PodFate::CannotPull));
        let mut play = Self { api, kind, dice: Dice(seed), replicas: 3, image: "shop/web:0".to_owned() };
        let mut object = object(kind, "web", &play.image, play.replicas);
        if kind == WorkloadKind::StatefulSet && play.dice.below(2) == 0 {
            object["spec"]["podManagementPolicy"] = json!("Parallel");
        }
        if kind == WorkloadKind::Rollout {
            play.api.expose("shop", "web", "web.example.com").unwrap();
            object["spec"]["strategy"] = match play.dice.below(3) {
                0 => json!({"canary": {}}),
                1 => json!({"canary": {"steps": [{"setWeight": 30}, {"pause": {}}, {"pause": {"duration": "30s"}}]}}),
                _ => json!({"blueGreen": {"activeService": "web", "autoPromotionEnabled": play.dice.below(2) == 0}}),
            };
        }
        play.api.apply(object).unwrap();
        play
    }

    /// Something that people, other programs and clusters do.
    fn happen(&mut self, at: u64) {
        let (kind, api) = (self.kind, &self.api);
        match self.dice.below(9) {
            0 | 1 => {
                self.image = if self.dice.below(4) == 0 { BROKEN.to_owned() } else { format!("shop/web:{at}") };
                set_image(api, kind, "web", &self.image);
            }
            2 if kind != WorkloadKind::DaemonSet => {
                self.replicas = self.dice.below(5);
                api.patch(stored(kind), "shop", "web", &json!({"spec": {"replicas": self.replicas}})).unwrap();
            }
            3 => {
                let pods = api.list(Kind::Pod, "shop");
                if let Some(pod) = pods.get(usize::try_from(self.dice.below(4)).unwrap()) {
                    let _ = api.delete(Kind::Pod, "shop", pod["metadata"]["name"].as_str().unwrap());
                }
            }
            4 if kind == WorkloadKind::StatefulSet => {
                let partition = self.dice.below(4);
                let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
                api.patch(stored(kind), "shop", "web", &json!({"spec": {"updateStrategy": strategy}})).unwrap();
            }
            5 if matches!(kind, WorkloadKind::StatefulSet | WorkloadKind::DaemonSet) => {
                let strategy = if self.dice.below(2) == 0 { "OnDelete" } else { "RollingUpdate" };
                let strategy = json!({"type": strategy, "rollingUpdate": null});
                api.patch(stored(kind), "shop", "web", &json!({"spec": {"updateStrategy": strategy}})).unwrap();
            }
            6 if kind == WorkloadKind::DaemonSet => {
                let nodes = (0..=self.dice.below(3)).map(|number| Node::new(&format!("node-{number}")));
                api.set_nodes(nodes.collect());
            }
            6 if kind == WorkloadKind::Rollout => {
                let now = json!("2026-01-02T00:00:00Z");
                let change = match self.dice.below(4) {
                    0 => json!({"status": {"abort": true}}),
                    1 => json!({"status": {"abort": false}}),
                    2 => json!({"spec": {"restartAt": now}}),
                    _ => json!({"status": {"pauseConditions": null}}),
                };
                api.patch(stored(kind), "shop", "web", &change).unwrap();
            }
            7 => api.run_for(Duration::from_secs(40)),
            _ => drop(api.settle()),
        }
    }

    fn standing(&self) -> Standing {
        let object = self.api.get(stored(self.kind), "shop", "web").unwrap();
        workload_decoder(self.kind, &VersionOf::Images)(&object.to_string()).unwrap().standing(true)
    }

    /// The images of the pods that stay, each with whether it is ready. Of a Rollout those that its Service leads to, for others may run on.
    fn pods(&self) -> Vec<(String, bool)> {
        let service = self.api.get(Kind::Service, "shop", "web").unwrap_or_default();
        let selector = service["spec"]["selector"].as_object().cloned().unwrap_or_default();
        let is_led_to = |pod: &Value| selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value);
        let pods = self.api.list(Kind::Pod, "shop").into_iter().filter(is_led_to);
        let staying = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        };
        let image = |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        staying.map(|pod| (image(&pod), ready(&pod))).collect()
    }
}

/// The oracle reads pods, and never a status.
#[test]
fn what_is_complete_has_no_pod_that_is_old_and_once_all_is_calm_none_that_is_not_ready() {
    for kind in WorkloadKind::ALL {
        let (mut complete, mut calm) = (0, 0);
        for seed in 0..SEEDS {
            let mut play = Play::begin(kind, seed);
            for at in 1..=STEPS {
                play.happen(at);
                play.api.step();
                if play.standing() == Standing::Complete {
                    complete += 1;
                    let old: Vec<_> = play.pods().into_iter().filter(|(image, _)| *image != play.image).collect();
                    assert_eq!(old, [], "{kind} of seed {seed} after {at} steps");
                }
            }
            play.api.settle();
            if play.standing() == Standing::Complete {
                calm += 1;
                assert!(play.pods().iter().all(|(_, ready)| *ready), "{kind} of seed {seed}: {:?}", play.pods());
            }
        }
        assert!(complete > 80 && calm > 4, "{kind}: {complete} and {calm} are worth little");
    }
}

#[test]
fn each_kind_comes_to_be_complete_and_says_so() {
    for kind in WorkloadKind::ALL {
        let api = KubernetesStandIn::new(Options::default());
        api.set_timings(Timings::IMMEDIATE);
        api.apply(object(kind, "web", "shop/web:1", 2)).unwrap();
        api.settle();
        set_image(&api, kind, "web", "shop/web:2");
        let read = || {
            let object = api.get(stored(kind), "shop", "web").unwrap();
            workload_decoder(kind, &VersionOf::Images)(&object.to_string()).unwrap().standing(false)
        };
        let mut seen = Vec::new();
        for _ in 0..60 {
            let standing = read();
            if seen.last() != Some(&standing) {
                seen.push(standing);
            }
            api.step();
        }
        assert_eq!(seen.first(), Some(&Standing::Waiting(Wait::NotObserved { generation: 2 })), "{kind}");
        assert_eq!(seen.last(), Some(&Standing::Complete), "{kind}: {seen:?}");
        assert_eq!(seen.iter().filter(|standing| **standing == Standing::Complete).count(), 1, "{kind}: {seen:?}");
    }
}

/// What a view of all kinds says until everything is listed: the scopes that are listed, and those that it may not list.
async fn listed(view: &Cluster) -> (BTreeSet<WorkloadId>, BTreeSet<Listed>, BTreeSet<Listed>) {
    let mut sights = view.watch();
    let (mut seen, mut done, mut refused) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let reading = async {
        while let Some(sight) = sights.next().await {
            let all = match sight {
                Sight::Seen(workload) => {
                    seen.insert(workload.id);
                    false
                }
                Sight::Synced { scope, all } => {
                    done.insert(scope);
                    all
                }
                Sight::Refused { scope, all, .. } => {
                    refused.insert(scope);
                    all
                }
                _ => false,
            };
            if all {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("everything in view is listed");
    (seen, done, refused)
}

#[tokio::test]
async fn each_kind_is_listed_by_itself_and_one_that_we_may_not_list_holds_up_no_other() {
    let bench = Bench::start().await;
    bench.api.set_installed("argoproj.io", true);
    for kind in WorkloadKind::ALL {
        bench.api.apply(object(kind, kind.word(), "shop/web:1", 1)).unwrap();
    }
    let view = Cluster::new(&bench.clients, Scope::All, brisk());
    let all: BTreeSet<_> = WorkloadKind::ALL.map(|kind| WorkloadId::new(kind, "shop", kind.word())).into();
    let scopes: BTreeSet<_> = WorkloadKind::ALL.map(|kind| Listed::of_kind(kind, None)).into();
    assert_eq!(listed(&view).await, (all.clone(), scopes.clone(), BTreeSet::new()));
    for id in &all {
        assert_eq!(view.workload(id).await.unwrap().map(|workload| workload.id).as_ref(), Some(id));
    }

    bench.refuse(403, 1_000, |request| request.path.contains("/statefulsets"));
    let (seen, done, refused) = listed(&view).await;
    let denied = Listed::of_kind(WorkloadKind::StatefulSet, None);
    assert_eq!((seen.len(), refused), (3, BTreeSet::from([denied.clone()])));
    assert_eq!(done, scopes.into_iter().filter(|scope| *scope != denied).collect());
}

#[tokio::test]
async fn a_pod_that_took_over_a_name_is_not_taken_for_the_one_that_had_it() {
    let bench = Bench::start().await;
    bench.api.set_timings(Timings { pod_gone: Duration::from_secs(30), ..Timings::IMMEDIATE });
    bench.api.apply(object(WorkloadKind::StatefulSet, "db", "shop/db:1", 2)).unwrap();
    bench.api.expose("shop", "db", "db.example.com").unwrap();
    bench.api.run_for(Duration::from_secs(60));
    let before = bench.api.list(Kind::EndpointSlice, "shop");
    set_image(&bench.api, WorkloadKind::StatefulSet, "db", "shop/db:2");
    bench.api.run_for(Duration::from_secs(180));
    let view = Cluster::new(&bench.clients, Scope::All, brisk());
    let id = WorkloadId::new(WorkloadKind::StatefulSet, "shop", "db");
    let workload = view.workload(&id).await.unwrap().unwrap();
    assert_eq!(workload.standing(false), Standing::Complete);
    // A pod of the former template that a controller of another had orphaned is still there, and no Service leads to it; the slices lag,
    // and name the former owners of the names alone.
    let mut orphan = bench.api.list(Kind::Pod, "shop").remove(0);
    orphan["metadata"] = json!({
        "namespace": "shop", "name": "db-left", "labels": {"app": "db", "controller-revision-hash": "db-before"},
    });
    bench.api.apply(orphan).unwrap();
    for slice in before {
        bench.api.put(slice).unwrap();
    }
    let seen = view.serving(&workload).await.unwrap();
    assert_eq!(seen.endpoints, [], "those are other pods");
    assert_eq!(old_pods(&seen, &workload).to_string(), "no old pod serves any more");

    // A pod of another controller with the same labels is none of its pods.
    let mut other = bench.api.get(Kind::Pod, "shop", "db-left").unwrap();
    other["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "seed", "uid": "another", "controller": true}]);
    bench.api.put(other).unwrap();
    let seen = view.serving(&workload).await.unwrap();
    assert!(seen.pods.iter().all(|(_, pod)| pod.name != "db-left"), "{:?}", seen.pods);
    let deployments = Cluster::new(&bench.clients, Scope::All, brisk()).following([WorkloadKind::Deployment].into());
    let error = deployments.workload(&id).await.unwrap_err();
    assert!(error.to_string().contains("workloads.kinds"), "it is not taken for absent: {error}");
}
