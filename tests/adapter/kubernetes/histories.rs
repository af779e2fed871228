//! Histories as the API server has them: grown by compare-and-set, once, and never guessed at.

use allclear::adapters::kubernetes::histories::{KubernetesHistories, name};
use objects::history::Entry;
use objects::history::figures::What;
use objects::ports::{Histories, Owner};
use sandbox::kubernetes::{Forbidden, Kind};
use serde_json::{Value, json};

use super::Bench;

const GROUP: &str = "allclear.dev";

fn owner(name: &str, uid: &str) -> Owner {
    Owner {
        group: GROUP.to_owned(),
        kind: "Pipeline",
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

/// Promotion `seq` into prod, which was completed.
fn done(seq: u64) -> Entry {
    Entry {
        environment: Some("prod".to_owned()),
        seq,
        revision: format!("1.{seq}"),
        outcome: "Completed".to_owned(),
        at_ms: i64::try_from(seq).unwrap() * 1_000,
        ..Entry::default()
    }
}

/// A cluster with the namespace, and without the kind.
async fn bare() -> (Bench, KubernetesHistories) {
    let bench = Bench::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    bench.api.apply(namespace).unwrap();
    let histories = KubernetesHistories::new(&bench.clients);
    (bench, histories)
}

async fn bench() -> (Bench, KubernetesHistories) {
    let (bench, histories) = bare().await;
    bench.api.set_installed(GROUP, true);
    (bench, histories)
}

async fn seqs(histories: &KubernetesHistories, of: &str) -> Vec<u64> {
    let history = histories.read("shop", &name("Pipeline", of)).await.unwrap();
    history.unwrap().entries.iter().map(|entry| entry.seq).collect()
}

fn writes(bench: &Bench) -> usize {
    bench.seen(|seen| ["POST", "PUT"].contains(&seen.method.as_str()) && seen.path.contains("/histories")).len()
}

#[tokio::test]
async fn each_object_has_a_history_of_its_own_which_goes_with_it() {
    let (bench, histories) = bench().await;
    histories.keep(&owner("web", "1"), &[done(1)], &[done(2)]).await.unwrap();
    let counted = histories.keep(&owner("web", "1"), &[done(2)], &[done(3)]).await.unwrap();
    assert_eq!(counted.iter().map(|figure| figure.what).collect::<Vec<_>>(), [What::Deployed]);
    histories.keep(&owner("api", "2"), &[], &[done(7)]).await.unwrap();
    assert_eq!((seqs(&histories, "web").await, seqs(&histories, "api").await), (vec![1, 2, 3], vec![7]));
    let stored: Value = bench.api.get(Kind::History, "shop", "pipeline.web").unwrap();
    let owners = &stored["metadata"]["ownerReferences"];
    assert_eq!(
        *owners,
        json!([{"apiVersion": "allclear.dev/v1alpha1", "kind": "Pipeline", "name": "web", "uid": "1"}])
    );
}

/// What a restart repeats is there already: nothing is written, and nothing counted.
#[tokio::test]
async fn what_is_there_is_neither_written_nor_counted_again() {
    let (bench, histories) = bench().await;
    histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap();
    let before = writes(&bench);
    assert_eq!(histories.keep(&owner("web", "1"), &[done(1)], &[done(1)]).await.unwrap(), []);
    assert_eq!(writes(&bench), before);
}

#[tokio::test]
async fn another_writer_loses_nothing_and_what_is_written_meanwhile_stays() {
    let (bench, histories) = bench().await;
    histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap();
    bench.refuse(409, 1, |request| request.method == "PUT");
    histories.keep(&owner("web", "1"), &[], &[done(2)]).await.unwrap();
    assert_eq!(seqs(&histories, "web").await, [1, 2]);
    bench.refuse(409, 3, |request| request.method == "PUT");
    let error = histories.keep(&owner("web", "1"), &[], &[done(3)]).await.unwrap_err();
    assert!(!error.denied, "{error}");
    // Two at once, as two replicas would: each takes in what the other wrote.
    let (one, other) = (owner("web", "1"), owner("web", "1"));
    let (four, five) = ([done(4)], [done(5)]);
    let (first, second) = tokio::join!(histories.keep(&one, &[], &four), histories.keep(&other, &[], &five));
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1, 1));
    assert_eq!(seqs(&histories, "web").await, [1, 2, 4, 5]);
}

#[tokio::test]
async fn an_earlier_object_of_the_name_leaves_nothing() {
    let (_bench, histories) = bench().await;
    histories.keep(&owner("web", "1"), &[], &[done(1), done(2)]).await.unwrap();
    histories.keep(&owner("web", "2"), &[], &[done(1)]).await.unwrap();
    assert_eq!(seqs(&histories, "web").await, [1]);
    let history = histories.read("shop", "pipeline.web").await.unwrap().unwrap();
    assert!(history.is_of("2") && !history.is_of("1"));
}

#[tokio::test]
async fn a_cluster_without_the_kind_or_the_right_is_told_apart() {
    let (bench, histories) = bare().await;
    let absent = |error: purge::ports::PortError| {
        assert!(!error.denied && error.to_string().contains("does not have the kind History"), "{error}");
    };
    absent(histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap_err());
    assert!(!histories.are_served().await.unwrap());
    // A real API server judges rights before it looks whether there is such a kind.
    bench.api.forbid(Forbidden::everywhere("get", GROUP, "histories"));
    absent(histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap_err());
    bench.api.set_installed(GROUP, true);
    let denied = histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap_err();
    assert!(denied.denied && denied.to_string().contains("histories"), "{denied}");
    bench.api.allow_all();
    histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap();
}

/// A person may have edited it: what cannot be read is not written over.
#[tokio::test]
async fn what_cannot_be_read_is_left_alone() {
    let (bench, histories) = bench().await;
    let edited = json!({
        "apiVersion": "allclear.dev/v1alpha1", "kind": "History",
        "metadata": {"namespace": "shop", "name": "pipeline.web"},
        "entries": [{"revision": "1.1", "outcome": "Completed", "at": "yesterday"}],
    });
    bench.api.apply(edited).unwrap();
    let error = histories.keep(&owner("web", "1"), &[], &[done(1)]).await.unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
    assert_eq!(writes(&bench), 0);
}

#[test]
fn a_name_that_would_be_too_long_is_cut_and_stays_its_own() {
    assert_eq!(name("Repo", "infra"), "repo.infra");
    let [fits, longer] = [248, 249].map(|count| name("Repo", &"x".repeat(count)));
    assert_eq!((fits.len(), longer.len()), (253, 253));
    let others = ["a", "b"].map(|end| name("Pipeline", &format!("{}{end}", "x".repeat(252))));
    assert!(others[0] != others[1] && others.iter().all(|name| name.len() <= 253), "{others:?}");
}
