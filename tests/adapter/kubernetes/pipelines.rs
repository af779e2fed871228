//! Pipelines as the API server has them: watched, read, and their status written by compare-and-set.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::dry_objects::DryObjects;
use allclear::adapters::kubernetes::Tempo;
use allclear::adapters::kubernetes::objects::Pipelines;
use futures_util::StreamExt;
use kernel::id::{Environment, PipelineId, PromotionSeq, Revision};
use objects::kept::{ObjectSight, Written};
use objects::pipeline::spec::Object;
use objects::pipeline::status::{EnvironmentStatus, Phase, Promotion, Status};
use objects::ports::Objects;
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use super::{Bench, PATIENCE, brisk};

const OURS: &str = "allclear.dev";
const THEIRS: &str = "pipelines.weave.works";

fn pipeline(group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "Pipeline",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {
            "appRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "environments": [{"name": "staging", "targets": [{"namespace": "staging"}]}, {"name": "prod", "targets": [{"namespace": "prod"}]}],
        },
    })
}

fn id() -> PipelineId {
    PipelineId::new("shop", "web")
}

/// What a first judgement may write.
fn status() -> Status {
    let promotion = Promotion {
        seq: PromotionSeq(1),
        revision: Revision("1.3".to_owned()),
        from: None,
        phase: Phase::Waiting,
        started_ms: Some(1_700_000_000_123),
        approval: None,
        rollback: None,
        returns: false,
        chosen: None,
        message: "soaks".to_owned(),
    };
    let prod = EnvironmentStatus { promotion: Some(promotion), seq: PromotionSeq(1), ..EnvironmentStatus::default() };
    let environments = [(Environment("prod".to_owned()), prod)].into();
    Status { serial: 1, observed_generation: 1, environments, ..Status::default() }
}

/// A cluster that serves this group, with one Pipeline.
async fn start(group: &'static str) -> (Bench, Pipelines, Object) {
    let bench = Bench::start().await;
    bench.api.set_installed(group, true);
    bench.api.apply(pipeline(group, "web")).unwrap();
    let pipelines = Pipelines::new(&bench.clients, group, None, brisk());
    let object = pipelines.read(&id()).await.unwrap().expect("it is there");
    (bench, pipelines, object)
}

#[tokio::test]
async fn a_status_is_stored_whole_and_nothing_else_is_changed() {
    let (bench, pipelines, object) = start(OURS).await;
    assert_eq!((object.generation, object.status.observed_generation), (1, -1));
    let Written::Stored(stored) = pipelines.write(&Object { status: status(), ..object.clone() }).await.unwrap() else {
        panic!("it was the first write")
    };
    assert_eq!((&stored.status, stored.generation, &stored.spec), (&status(), 1, &object.spec));
    assert!(stored.version != object.version);
    let kept = bench.api.get(Kind::Pipeline, "shop", "web").unwrap();
    assert_eq!(kept["status"]["environments"]["prod"]["promotion"]["startedAt"], "2023-11-14T22:13:20.123Z");
    // An answer to a question is metadata: no new generation.
    let approve = json!({"metadata": {"annotations": {"allclear.dev/approve": "0123456789ab"}}});
    bench.api.patch(Kind::Pipeline, "shop", "web", &approve).unwrap();
    let answered = pipelines.read(&id()).await.unwrap().unwrap();
    assert_eq!((answered.generation, answered.answers.approve.as_deref()), (1, Some("0123456789ab")));
    assert_eq!(answered.status, status());
}

#[tokio::test]
async fn a_write_over_another_version_changes_nothing_and_shows_what_is_there() {
    let (bench, pipelines, object) = start(OURS).await;
    let mut suspended = pipeline(OURS, "web");
    suspended["spec"]["suspend"] = json!(true);
    bench.api.apply(suspended).unwrap();
    let Written::Conflict(Some(there)) = pipelines.write(&Object { status: status(), ..object.clone() }).await.unwrap()
    else {
        panic!("its spec had changed")
    };
    assert_eq!((there.generation, there.spec.as_ref().unwrap().suspended.is_some()), (2, true));
    assert_eq!(there.status.serial, 0);
    // Another object of the same name, and then none.
    bench.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    bench.api.apply(pipeline(OURS, "web")).unwrap();
    let Written::Conflict(Some(other)) = pipelines.write(&Object { status: status(), ..*there }).await.unwrap() else {
        panic!("it is another one")
    };
    assert!(other.uid != object.uid && other.status.serial == 0);
    bench.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    assert_eq!(pipelines.write(&Object { status: status(), ..object }).await.unwrap(), Written::Conflict(None));
    assert_eq!(pipelines.read(&id()).await.unwrap(), None);
}

#[tokio::test]
async fn fields_that_the_crd_of_another_group_drops_are_noticed() {
    let (bench, pipelines, object) = start(THEIRS).await;
    let Written::Pruned(stored, lost) = pipelines.write(&Object { status: status(), ..object }).await.unwrap() else {
        panic!("that CRD has no promotions")
    };
    assert_eq!(lost, ["status.environments.prod.promotion", "status.environments.prod.seq", "status.serial"]);
    assert_eq!((stored.status.serial, stored.status.observed_generation), (0, 1));
    assert_eq!(bench.api.get(Kind::WeavePipeline, "shop", "web").unwrap()["status"]["observedGeneration"], 1);
}

#[tokio::test]
async fn all_of_them_are_watched_and_one_that_cannot_be_read_costs_itself_only() {
    let (bench, pipelines, _) = start(OURS).await;
    let mut broken = pipeline(OURS, "broken");
    broken["status"] = json!({"serial": "many"});
    bench.api.put(broken).unwrap();
    let mut faulty = pipeline(OURS, "faulty");
    faulty["spec"]["environments"] = json!([]);
    bench.api.put(faulty).unwrap();
    let mut flow = pipelines.watch();
    let mut said = Vec::new();
    let mut next = async |until: &str| {
        while !said.iter().any(|one: &String| one == until) {
            let sight = tokio::time::timeout(PATIENCE, flow.next()).await.expect(until).unwrap();
            said.push(match sight {
                ObjectSight::Restarted => "restarted".to_owned(),
                ObjectSight::Seen(object) => {
                    format!("{} {}", object.id.name, if object.spec.is_ok() { "seen" } else { "invalid" })
                }
                ObjectSight::Unreadable(id, why) => {
                    assert!(why.to_string().contains("status"), "{why}");
                    format!("{} unreadable", id.name)
                }
                ObjectSight::Gone(id) => format!("{} gone", id.name),
                ObjectSight::Synced => "synced".to_owned(),
                ObjectSight::Trouble(error) => format!("trouble {error}"),
            });
        }
        said.clone()
    };
    let mut first = next("synced").await;
    first.sort();
    assert_eq!(first, ["broken unreadable", "faulty invalid", "restarted", "synced", "web seen"]);
    bench.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    next("web gone").await;
}

/// A5: as for workloads, what a watch goes on from is a version of the future after a restore, so it is told nothing.
#[tokio::test]
async fn a_pipeline_that_is_restored_is_seen_as_it_was() {
    let bench = Bench::start().await;
    bench.api.set_installed(OURS, true);
    bench.api.put(pipeline(OURS, "web")).unwrap();
    let backup = bench.api.backup();
    for number in 0..5 {
        bench.api.put(pipeline(OURS, &format!("later-{number}"))).unwrap();
    }
    let tempo = Tempo { prove: Some(Duration::from_millis(50)), ..brisk() };
    let mut flow = Pipelines::new(&bench.clients, OURS, None, tempo).watch();
    let mut all = BTreeSet::new();
    let mut listed = async |count: usize| {
        let mut shown = 0;
        loop {
            match tokio::time::timeout(PATIENCE, flow.next()).await.expect("it is listed").unwrap() {
                ObjectSight::Restarted => shown = 0,
                ObjectSight::Seen(object) => {
                    shown += 1;
                    all.insert(object.id.name.clone());
                }
                ObjectSight::Synced if shown == count => return all.len(),
                _ => {}
            }
        }
    };
    assert_eq!(listed(6).await, 6);
    bench.api.restore(&backup);
    assert_eq!(listed(1).await, 6, "the one of the backup alone is there");
}

#[tokio::test]
async fn a_cluster_without_the_crd_is_found_to_be_so() {
    let bench = Bench::start().await;
    let pipelines = Pipelines::new(&bench.clients, OURS, None, brisk());
    assert!(!pipelines.are_served().await.unwrap());
    bench.api.set_installed(OURS, true);
    assert!(pipelines.are_served().await.unwrap());
    assert_eq!(pipelines.refused().await, None);
    bench.refuse(500, 1, |_| true);
    assert_eq!(pipelines.refused().await, None, "that says nothing of rights");
    bench.refuse(403, 1, |_| true);
    assert!(pipelines.refused().await.unwrap().starts_with("failed to list pipelines.allclear.dev"));
    bench.refuse(403, 1, |_| true);
    let words = pipelines.are_served().await.unwrap_err().to_string();
    assert!(words.starts_with("failed to ask which kinds of allclear.dev are served"), "{words}");
}

// Faults: PF19
#[tokio::test]
async fn in_a_dry_run_statuses_are_kept_over_the_real_objects_and_nothing_is_written() {
    let (bench, pipelines, real) = start(OURS).await;
    let dry = DryObjects::new(Arc::new(pipelines));
    let writes = bench.api.writes();
    let object = dry.read(&id()).await.unwrap().unwrap();
    assert_eq!(object, real);
    let Written::Stored(stored) = dry.write(&Object { status: status(), ..object.clone() }).await.unwrap() else {
        panic!("it was the first write")
    };
    assert_eq!((&stored.status, stored.version != object.version), (&status(), true));
    // An earlier sight is one of another version, as with a real write.
    let Written::Conflict(Some(there)) = dry.write(&Object { status: status(), ..object }).await.unwrap() else {
        panic!("it was written since")
    };
    assert_eq!(there, stored);
    // A change of the real object shows, under what was kept; then the version is another one again.
    let mut suspended = pipeline(OURS, "web");
    suspended["spec"]["suspend"] = json!(true);
    bench.api.apply(suspended).unwrap();
    let mut watch = dry.watch();
    let seen = loop {
        let sight = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
        if let ObjectSight::Seen(object) = sight {
            break object;
        }
    };
    assert_eq!((seen.status.serial, seen.spec.as_ref().unwrap().suspended.is_some()), (1, true));
    assert!(matches!(dry.write(&stored).await.unwrap(), Written::Conflict(Some(now)) if now == seen));
    let later = Status { serial: 2, ..status() };
    assert!(matches!(dry.write(&Object { status: later, ..*seen }).await.unwrap(), Written::Stored(_)));
    // Another object of the name begins anew.
    assert_eq!(bench.api.writes(), writes, "nothing came over the wire");
    bench.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    bench.api.apply(pipeline(OURS, "web")).unwrap();
    assert_eq!(dry.read(&id()).await.unwrap().unwrap().status.serial, 0);
    bench.api.delete(Kind::Pipeline, "shop", "web").unwrap();
    assert_eq!(dry.read(&id()).await.unwrap(), None);
}

// Faults: PF18
#[tokio::test]
async fn a_cluster_of_another_namespace_can_be_forbidden() {
    let bench = Bench::start().await;
    bench.api.set_installed(OURS, true);
    let pipelines = || Pipelines::new(&bench.clients, OURS, None, brisk());
    bench.api.apply(pipeline(OURS, "web")).unwrap();
    let why = pipelines().confined().read(&id()).await.unwrap().unwrap().spec.unwrap_err();
    assert!(why.contains("namespace staging is another one, which pipeline.cross_namespace"), "{why}");
    let at_home = || {
        let mut own = pipeline(OURS, "web");
        for environment in own["spec"]["environments"].as_array_mut().unwrap() {
            environment["targets"][0]["namespace"] = json!("shop");
        }
        own
    };
    let mut remote = at_home();
    let elsewhere = json!({"kind": "GitopsCluster", "name": "eu-1", "namespace": "infra"});
    remote["spec"]["environments"][1]["targets"][0]["clusterRef"] = elsewhere;
    bench.api.apply(remote).unwrap();
    assert!(pipelines().read(&id()).await.unwrap().unwrap().spec.is_ok());
    let why = pipelines().confined().read(&id()).await.unwrap().unwrap().spec.unwrap_err();
    assert!(why.contains("GitopsCluster/infra/eu-1") && why.contains("pipeline.cross_namespace"), "{why}");
    let mut own = at_home();
    own["spec"]["environments"][1]["targets"][0]["clusterRef"] = json!({"kind": "GitopsCluster", "name": "eu-1"});
    bench.api.apply(own).unwrap();
    assert!(pipelines().confined().read(&id()).await.unwrap().unwrap().spec.is_ok());
}
