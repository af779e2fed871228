//! A part of the ledger is deleted: what it knew counts as set back, and the edge is purged once more.

use purge::records::record::Record;
use sandbox::kubernetes::Kind;
use serde_json::json;

use crate::scene::{DISTRIBUTION, LEDGER_NAMESPACE, NAME, Scene};

/// A shard as large as those of a large cluster, by an entry that is no record: the next rollout gives it a journal.
const PADDING_BYTES: usize = 5 * 1024;

/// The references of all invalidations.
fn references(scene: &Scene) -> Vec<String> {
    scene.world.cloudfront.invalidations().into_iter().map(|made| made.reference).collect()
}

async fn stop(scene: &mut Scene) {
    let mut process = scene.take_process();
    process.signal("TERM");
    process.ended(support::process::PATIENCE).await.expect("it ends by itself");
}

fn delete(scene: &Scene, part: impl Fn(&str) -> bool) {
    let names = scene.shards().into_iter().filter_map(|map| Some(map["metadata"]["name"].as_str()?.to_owned()));
    let names: Vec<String> = names.filter(|name| part(name)).collect();
    assert!(!names.is_empty(), "there is one to delete");
    for name in names {
        scene.world.kubernetes.delete(Kind::ConfigMap, LEDGER_NAMESPACE, &name).expect("it is there");
    }
}

/// Whether the name is that of a journal: `allclear-ledger-07-0a1b…`.
fn is_journal(name: &str) -> bool {
    name.trim_start_matches("allclear-ledger-").contains('-')
}

/// Two rollouts are purged. Then the part of the ledger that has the second is deleted while nothing runs.
async fn lose(part: impl Fn(&str) -> bool) -> (Scene, Record) {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    stop(&mut scene).await;
    for mut shard in scene.shards() {
        shard["data"]["padding"] = json!("x".repeat(PADDING_BYTES));
        scene.world.kubernetes.put(shard).expect("the cluster takes it");
    }
    scene.start().await;
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    let before = scene.record().expect("there is a record");
    stop(&mut scene).await;
    delete(&scene, part);
    (scene, before)
}

/// What is told as fresh after the loss was purged after it, under a reference that was never used before.
async fn is_purged_once_more(mut scene: Scene, before: &Record) {
    let (made, calls) = (references(&scene), scene.calls());
    assert_eq!(made.len(), 2);
    scene.launch(&["run"]);
    scene.wait_until_over(before.seq.0 + 1).await;
    let now = references(&scene);
    assert_eq!((now.len(), scene.purged()), (3, vec![DISTRIBUTION.to_owned(); 3]), "{now:?}");
    assert!(!made.contains(&now[2]), "{now:?}");
    assert_eq!(scene.calls(), calls + 1, "the webhook is told of that one");
    let record = scene.record().expect("there is a record");
    assert!(record.seq.0 > 1 << 32, "numbers go on above all that may have been in use: {}", record.seq);
    let events = scene.events_of(NAME);
    assert!(events.iter().any(|event| event.contains("the ledger was set back")), "{events:?}");
    let log = scene.process().log().join("\n");
    assert!(log.contains("a part of the ledger was deleted or replaced"), "{log}");

    // And the next rollout is one like any other, also after a restart.
    stop(&mut scene).await;
    scene.start().await;
    scene.roll_out("1.3");
    scene.wait_until_over(record.seq.0 + 1).await;
    assert_eq!((references(&scene).len(), scene.calls()), (4, calls + 2));
}

// Faults: A8
#[tokio::test]
async fn a_deleted_journal_of_the_ledger_costs_one_purge_and_hides_none() {
    let (scene, before) = lose(is_journal).await;
    let left = scene.record().expect("the base has an older one");
    assert!(left.seq < before.seq, "{} after {}", left.seq, before.seq);
    is_purged_once_more(scene, &before).await;
}

// Faults: A8
#[tokio::test]
async fn a_deleted_shard_of_the_ledger_costs_one_purge_and_hides_none() {
    let (scene, before) = lose(|_| true).await;
    assert_eq!(scene.record(), None);
    is_purged_once_more(scene, &before).await;
}

// Faults: A8
/// A new version is rolled out under the number that the journal had given to another: CloudFront would answer with the old
/// invalidation, for its reference follows from the number.
#[tokio::test]
async fn a_rollout_after_a_deleted_journal_is_really_purged() {
    let (mut scene, _) = lose(is_journal).await;
    let made = references(&scene);
    scene.roll_out("1.3");
    scene.launch(&["run"]);
    let is_fresh = async |scene: &Scene| {
        scene.record().is_some_and(|record| {
            let runs = record.version.iter().all(|(_, image)| image.tag() == Some("1.3"));
            runs && record.closed == record.seq && !record.is_open()
        })
    };
    scene.wait_until("1.3 is recorded as done", is_fresh).await;
    let new: Vec<String> = references(&scene).into_iter().filter(|reference| !made.contains(reference)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
}
