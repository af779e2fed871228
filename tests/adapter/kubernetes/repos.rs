//! Repos as the API server has them: watched, read, and their status written by compare-and-set, as Pipelines are.

use allclear::adapters::kubernetes::crd::repo::Installation;
use allclear::adapters::kubernetes::finalizer::KubernetesHolds;
use allclear::adapters::kubernetes::objects::{GROUP, Repos};
use futures_util::StreamExt;
use kernel::id::{RepoId, RunSeq};
use objects::kept::{ObjectSight, Written};
use objects::ports::Objects;
use objects::ports::repo::Holds;
use objects::repo::spec::Object;
use objects::repo::status::{Head, Status};
use sandbox::kubernetes::Kind;
use serde_json::{Value, json};

use super::{Bench, PATIENCE, brisk};

fn repo(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Repo",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"url": "https://git.example.com/platform/infra.git"},
    })
}

fn id() -> RepoId {
    RepoId::new("platform", "infra")
}

fn status() -> Status {
    let head = Head {
        revision: "a".repeat(40).parse().expect("a commit's id"),
        name: "refs/heads/main".to_owned(),
        seen_ms: 1_700_000_000_123,
    };
    Status { serial: 1, observed_generation: 1, head: Some(head), seq: RunSeq(2), ..Status::default() }
}

async fn start() -> (Bench, Repos, Object) {
    let bench = Bench::start().await;
    bench.api.set_installed(GROUP, true);
    bench.api.apply(repo("platform", "infra")).unwrap();
    let (terraform_image, namespace) = ("terraform:1".to_owned(), Some("own".to_owned()));
    let installation = Installation { terraform_image, namespace, confined: false };
    let repos = Repos::new(&bench.clients, None, brisk(), installation);
    let object = repos.read(&id()).await.unwrap().expect("it is there");
    (bench, repos, object)
}

#[tokio::test]
async fn a_status_is_stored_whole_and_only_over_what_was_read() {
    let (bench, repos, object) = start().await;
    assert_eq!((object.generation, object.status.observed_generation), (1, -1));
    assert_eq!(object.spec.as_ref().unwrap().runner.image, "terraform:1");
    let Written::Stored(stored) = repos.write(&Object { status: status(), ..object.clone() }).await.unwrap() else {
        panic!("it was the first write")
    };
    assert_eq!((&stored.status, stored.generation, &stored.spec), (&status(), 1, &object.spec));
    let kept = bench.api.get(Kind::Repo, "platform", "infra").unwrap();
    assert_eq!(kept["status"]["head"]["seenAt"], "2023-11-14T22:13:20.123Z");
    assert_eq!(kept["status"]["shortRevision"], "aaaaaaaaaaaa");
    // Written over what was there before.
    let Written::Conflict(Some(there)) = repos.write(&Object { status: status(), ..object.clone() }).await.unwrap()
    else {
        panic!("it had changed")
    };
    assert_eq!(there.status, status());
    bench.api.delete(Kind::Repo, "platform", "infra").unwrap();
    assert_eq!(repos.write(&Object { status: status(), ..*there }).await.unwrap(), Written::Conflict(None));
    assert_eq!(repos.read(&id()).await.unwrap(), None);
}

#[tokio::test]
async fn all_of_them_are_watched_and_those_of_our_own_namespace_are_refused() {
    let (bench, repos, _) = start().await;
    let mut broken = repo("platform", "broken");
    broken["status"] = json!({"serial": "many"});
    bench.api.put(broken).unwrap();
    bench.api.apply(repo("own", "infra")).unwrap();
    assert!(repos.are_served().await.unwrap());
    let (mut seen, mut flow) = (Vec::new(), repos.watch());
    loop {
        match tokio::time::timeout(PATIENCE, flow.next()).await.expect("a listing").expect("it never ends") {
            ObjectSight::Restarted => {}
            ObjectSight::Seen(object) => seen.push((object.id.clone(), object.spec.err().unwrap_or_default())),
            ObjectSight::Unreadable(id, why) => seen.push((id, why.to_string())),
            ObjectSight::Synced => break,
            other => panic!("{other:?}"),
        }
    }
    seen.sort();
    let [(own, refused), (broken, unreadable), (infra, nothing)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((own, infra, nothing.as_str()), (&RepoId::new("own", "infra"), &id(), ""));
    assert!(refused.starts_with("Repos are refused in the namespace of allclear itself"), "{refused}");
    assert!(broken.name == "broken" && unreadable.contains("its status: "), "{unreadable}");
}

#[tokio::test]
async fn a_repo_with_our_finalizer_stays_until_that_is_taken_away_and_those_of_others_are_left() {
    let (bench, repos, object) = start().await;
    let finalizers = KubernetesHolds::new(&bench.clients);
    let there = || bench.api.get(Kind::Repo, "platform", "infra");
    finalizers.hold(&id(), "another", true).await.unwrap();
    assert!(!repos.read(&id()).await.unwrap().expect("it is there").finalizers.ours, "it is another Repo's");
    finalizers.hold(&id(), &object.uid, true).await.unwrap();
    finalizers.hold(&id(), &object.uid, true).await.unwrap();
    assert_eq!(there().unwrap()["metadata"]["finalizers"], json!(["allclear.dev/destroy"]));
    let mut shared = there().unwrap();
    shared["metadata"]["finalizers"] = json!(["example.com/theirs", "allclear.dev/destroy"]);
    bench.api.put(shared).unwrap();
    bench.api.delete(Kind::Repo, "platform", "infra").unwrap();
    let held = repos.read(&id()).await.unwrap().expect("it is there");
    assert!(held.is_leaving());
    let Written::Stored(_) = repos.write(&Object { status: status(), ..held }).await.unwrap() else {
        panic!("its status is written as before")
    };
    finalizers.hold(&id(), &object.uid, false).await.unwrap();
    assert_eq!(there().unwrap()["metadata"]["finalizers"], json!(["example.com/theirs"]));
    let mut last = there().unwrap();
    last["metadata"]["finalizers"] = json!(["allclear.dev/destroy"]);
    bench.api.put(last).unwrap();
    finalizers.hold(&id(), &object.uid, false).await.unwrap();
    assert_eq!(there(), None, "nothing keeps it");
    finalizers.hold(&id(), &object.uid, false).await.unwrap();
}
