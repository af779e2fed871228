//! Argo Rollouts beside Deployments: a cluster may not have the kind, or let us read it, and one name may be that of both.

use std::time::Duration;

use allclear::adapters::kubernetes::hand::{Hand, Marked};
use allclear::adapters::kubernetes::{Cluster, Scope};
use futures_util::StreamExt;
use kernel::id::{Kind as WorkloadKind, WorkloadId};
use kernel::watches::listed::Scope as Listed;
use kinds::reported::Standing;
use purge::ports::{ClusterView, Flow, Present, Sight};
use sandbox::kubernetes::{Kind, Timings};
use serde_json::{Value, json};

use super::kinds::{object, set_image};
use super::{Bench, PATIENCE, brisk};

const BOTH: [WorkloadKind; 2] = [WorkloadKind::Deployment, WorkloadKind::Rollout];

/// A cluster with Argo Rollouts.
async fn bench() -> Bench {
    let bench = Bench::start().await;
    bench.api.set_installed("argoproj.io", true);
    bench.api.set_timings(Timings::IMMEDIATE);
    bench
}

fn view(bench: &Bench) -> Cluster {
    Cluster::new(&bench.clients, Scope::All, brisk()).following(BOTH.into())
}

fn apply(bench: &Bench, kind: WorkloadKind, name: &str, tag: u32) {
    bench.api.apply(object(kind, name, &format!("shop/web:{tag}"), 2)).unwrap();
    bench.api.settle();
}

/// In words, until this one is said.
pub async fn until(sights: &mut Flow<Sight>, last: &str) -> Vec<String> {
    let mut words = Vec::new();
    let reading = async {
        while let Some(sight) = sights.next().await {
            words.push(match sight {
                Sight::Restarted { scope } => format!("restarted {}", scope.as_str()),
                Sight::Seen(seen) if seen.tuning.faults.is_empty() => format!("{} {}", seen.object, seen.id.name),
                Sight::Seen(seen) => format!("{} {}, with a warning", seen.object, seen.id.name),
                Sight::Unreadable(id, why) => format!("{} cannot be read: {why}", id.name),
                Sight::Gone(id) => format!("{} is gone", id.name),
                Sight::Synced { scope, all: true } => format!("synced {}, all", scope.as_str()),
                Sight::Synced { scope, all: false } => format!("synced {}", scope.as_str()),
                Sight::Refused { scope, .. } => format!("refused {}", scope.as_str()),
                Sight::Trouble { scope, .. } => format!("trouble {}", scope.as_str()),
                Sight::SetBack { .. } => "set back".to_owned(),
            });
            if words.last().is_some_and(|word| word == last) {
                return;
            }
        }
    };
    if tokio::time::timeout(PATIENCE, reading).await.is_err() {
        panic!("{last:?} is not said after {words:?}");
    }
    words
}

#[tokio::test]
async fn rollouts_are_listed_first_and_said_once_deployments_are_listed_too() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Rollout, "argo", 1);
    apply(&bench, WorkloadKind::Deployment, "both", 1);
    apply(&bench, WorkloadKind::Rollout, "both", 1);
    apply(&bench, WorkloadKind::Deployment, "plain", 1);
    let view = view(&bench);
    let mut sights = view.watch();
    let mut words = until(&mut sights, "synced rollout/*, all").await;
    assert_eq!(words.first().map(String::as_str), Some("restarted rollout/*"));
    assert_eq!(words.get(1).map(String::as_str), Some("restarted *"), "{words:?}");
    words.sort();
    let all =
        ["deployment plain", "restarted *", "restarted rollout/*", "rollout argo", "rollout both, with a warning"];
    assert_eq!(words, [&all[..], &["synced *", "synced rollout/*, all"]].concat());
    let both = WorkloadId::deployment("shop", "both");
    let found = view.workload(&both).await.unwrap().unwrap();
    assert_eq!((found.object, found.tuning.faults.len()), (WorkloadKind::Rollout, 1), "a fresh look says the same");

    set_image(&bench.api, WorkloadKind::Deployment, "both", "shop/web:9");
    bench.api.patch(Kind::Deployment, "shop", "both", &json!({"spec": {"replicas": 0}})).unwrap();
    bench.api.settle();
    until(&mut sights, "rollout both").await;
    bench.api.delete(Kind::ArgoRollout, "shop", "both").unwrap();
    bench.api.settle();
    until(&mut sights, "both is gone").await;
    let found = view.workload(&both).await.unwrap().unwrap();
    assert_eq!((found.object, found.replicas.total), (WorkloadKind::Deployment, 0));
    bench.api.delete(Kind::Deployment, "shop", "both").unwrap();
    until(&mut sights, "both is gone").await;
    assert_eq!(view.workload(&both).await.unwrap(), None);
}

#[tokio::test]
async fn a_cluster_without_the_kind_is_no_trouble_and_it_is_followed_once_it_is_there() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Deployment, "web", 1);
    apply(&bench, WorkloadKind::Rollout, "argo", 1);
    bench.api.set_installed("argoproj.io", false);
    let view = view(&bench);
    let mut sights = view.watch();
    let words = until(&mut sights, "synced *, all").await;
    assert_eq!(words, ["synced rollout/*", "restarted *", "deployment web", "synced *, all"]);
    assert_eq!(view.workload(&WorkloadId::deployment("shop", "argo")).await.unwrap(), None);
    bench.api.set_installed("argoproj.io", true);
    let words = until(&mut sights, "synced rollout/*, all").await;
    assert_eq!(words, ["restarted rollout/*", "rollout argo", "synced rollout/*, all"]);
}

#[tokio::test]
async fn without_the_right_rollouts_are_left_out_and_a_look_finds_the_deployment() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Deployment, "web", 1);
    apply(&bench, WorkloadKind::Rollout, "web", 1);
    bench.refuse(403, 1_000, |request| request.path.contains("/apis/argoproj.io"));
    let view = view(&bench);
    let web = WorkloadId::deployment("shop", "web");
    let is_deployment =
        async || view.workload(&web).await.unwrap().map(|found| found.object) == Some(WorkloadKind::Deployment);
    assert!(is_deployment().await);
    let words = until(&mut view.watch(), "synced *, all").await;
    assert!(
        words.contains(&"refused rollout/*".to_owned()) && words.contains(&"deployment web".to_owned()),
        "{words:?}"
    );
    assert!(is_deployment().await);
    let only = Listed::of_kind(WorkloadKind::Rollout, None);
    assert_eq!(only.as_str(), "rollout/*");
}

/// The Rollout `web` with the template of another object.
fn referring(kind: &str, name: &str) -> Value {
    let mut referring = object(WorkloadKind::Rollout, "web", "shop/web:1", 2);
    let spec = referring["spec"].as_object_mut().unwrap();
    spec.remove("template");
    spec.remove("selector");
    spec.insert("workloadRef".into(), json!({"apiVersion": "apps/v1", "kind": kind, "name": name}));
    referring
}

#[tokio::test]
async fn a_rollout_that_refers_to_a_deployment_is_seen_and_read_with_its_template() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Deployment, "legacy", 1);
    apply(&bench, WorkloadKind::Deployment, "other", 2);
    bench.api.apply(referring("Deployment", "legacy")).unwrap();
    bench.api.settle();
    let view = view(&bench);
    let mut sights = view.watch();
    let mut words = until(&mut sights, "synced rollout/*, all").await;
    words.sort();
    let seen = ["deployment other", "restarted *", "restarted rollout/*", "rollout web", "synced *"];
    assert_eq!(words, [&seen[..], &["synced rollout/*, all"]].concat());
    let id = |name: &str| WorkloadId::deployment("shop", name);
    let web = view.workload(&id("web")).await.unwrap().unwrap();
    assert_eq!(web.version.as_ref().map(ToString::to_string), Ok("legacy shop/web:1".to_owned()));
    assert!(web.selector.matches(&web.template_labels), "it has the selector, too");
    assert_eq!(web.standing(false), Standing::Complete);
    assert_eq!(view.workload(&id("legacy")).await.unwrap(), None, "it is not followed by itself");
    let names = |present: Present| present.workloads.into_iter().map(|one| one.id.name).collect::<Vec<_>>();
    assert_eq!(names(view.workloads("shop").await.unwrap()), ["other", "web"]);

    // A Deployment that was not kept is read.
    let other = json!({"spec": {"workloadRef": {"name": "other"}}});
    bench.api.patch(Kind::ArgoRollout, "shop", "web", &other).unwrap();
    let words = until(&mut sights, "rollout web").await;
    assert!(
        words.contains(&"deployment legacy".to_owned()) && words.contains(&"other is gone".to_owned()),
        "{words:?}"
    );
    let web = view.workload(&id("web")).await.unwrap().unwrap();
    assert_eq!(web.version.map(|version| version.to_string()), Ok("other shop/web:2".to_owned()));
    assert!(view.workload(&id("legacy")).await.unwrap().is_some());
}

/// Goal: an API server that cannot list Rollouts holds up no Deployment for longer than a bound, and takes no Rollout for absent.
#[tokio::test]
async fn rollouts_that_cannot_be_listed_are_left_out_after_a_while_and_followed_once_they_can_be() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Deployment, "web", 1);
    apply(&bench, WorkloadKind::Rollout, "web", 1);
    bench.refuse(500, u32::MAX, |request| request.path.contains("/apis/argoproj.io"));
    let view = view(&bench);
    let mut sights = view.watch();
    let words = until(&mut sights, "synced *, all").await;
    assert_eq!(words.first().map(String::as_str), Some("trouble rollout/*"), "{words:?}");
    let left_out = words.iter().position(|word| word == "refused rollout/*");
    let seen = words.iter().position(|word| word == "deployment web");
    assert!(left_out.is_some() && left_out < seen, "{words:?}");
    let error = view.workload(&WorkloadId::deployment("shop", "web")).await.unwrap_err();
    assert!(error.to_string().starts_with("failed to get rollouts.argoproj.io web in shop"), "{error}");
    bench.server.clear_faults();
    until(&mut sights, "synced rollout/*, all").await;
    assert_eq!(
        view.workload(&WorkloadId::deployment("shop", "web")).await.unwrap().unwrap().object,
        WorkloadKind::Rollout
    );
}

#[tokio::test]
async fn workloads_that_cannot_be_read_are_named_in_a_listing() {
    let bench = bench().await;
    for name in ["web", "broken"] {
        apply(&bench, WorkloadKind::Deployment, name, 1);
    }
    let mut broken = bench.api.get(Kind::Deployment, "shop", "broken").unwrap();
    broken["spec"]["replicas"] = json!("two");
    bench.api.put(broken).unwrap();
    let there = view(&bench).workloads("shop").await.unwrap();
    let names: Vec<&str> = there.workloads.iter().map(|workload| workload.id.name.as_str()).collect();
    assert_eq!((names, there.unread), (vec!["web"], [WorkloadId::deployment("shop", "broken")].into()));
}

#[tokio::test]
async fn a_rollout_with_the_template_of_another_is_named_and_hides_a_deployment_of_its_name() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Deployment, "web", 1);
    bench.api.apply(referring("ReplicaSet", "web")).unwrap();
    let words = until(&mut view(&bench).watch(), "synced rollout/*, all").await;
    assert!(!words.contains(&"deployment web".to_owned()), "{words:?}");
    assert!(words.iter().any(|word| word.contains("spec.workloadRef")), "{words:?}");
    let error = view(&bench).workload(&WorkloadId::deployment("shop", "web")).await.unwrap_err();
    assert!(error.to_string().contains("spec.workloadRef"), "{error}");
}

#[tokio::test]
async fn a_person_marks_the_object_that_counts() {
    let bench = bench().await;
    apply(&bench, WorkloadKind::Rollout, "web", 1);
    let hand = Hand::new(&bench.clients);
    let marks = [("allclear.dev/requested-at", Some("now"))];
    let web = WorkloadId::deployment("shop", "web");
    assert_eq!(hand.annotate(&web, &marks).await.unwrap(), Marked::Done);
    let rollout = bench.api.get(Kind::ArgoRollout, "shop", "web").unwrap();
    assert_eq!(rollout["metadata"]["annotations"]["allclear.dev/requested-at"], "now");
    assert_eq!(hand.annotate(&WorkloadId::deployment("shop", "gone"), &marks).await.unwrap(), Marked::Gone);
    bench.api.run_for(Duration::from_secs(1));
}
