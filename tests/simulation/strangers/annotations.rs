//! Row T1: what the owner of a namespace writes into the annotations of a Deployment costs nobody else anything, and us little.

use std::time::{Duration, Instant};

use allclear::adapters::kubernetes::workload_decoder;
use kernel::id::{Kind as WorkloadKind, Seq};
use kernel::machine::{Machine, Timestamp};
use kernel::names::image::VersionOf;
use notices::notice::Kind;
use purge::bounds::policy::Policy;
use purge::rollouts::rollout::{Arrival, Effect, Event, Identity, Rollout};
use purge::workloads::workload::{ANNOTATION_PREFIX, Tuning, Workload};
use support::fakes::{Millis, World};
use support::stage::{Life, Stage, deployment, id, life, roll_out, settled};

/// Virtual minutes that a hostile workload is left alone for.
const IDLE: Millis = 10 * 60_000;

type Annotations = Vec<(String, String)>;

/// So many annotations that nobody knows.
fn unknown(count: usize) -> Annotations {
    (0..count).map(|number| (format!("{ANNOTATION_PREFIX}typing-error-{number:04}"), "true".to_owned())).collect()
}

/// One known annotation with a value of this size, the most that Kubernetes takes being 256 KiB.
fn long(name: &str, bytes: usize) -> Annotations {
    vec![(format!("{ANNOTATION_PREFIX}{name}"), "x".repeat(bytes))]
}

/// The Deployment `name`, complete, with these annotations.
fn annotated(name: &str, generation: i64, annotations: &Annotations) -> Workload {
    let read = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Workload { tuning: Tuning::read(read), ..deployment(name, 1, generation, "1", Stage::Complete) }
}

/// How often the record of `name` was written, or that was tried.
fn writes(world: &World, name: &str) -> usize {
    world.asked("ledger.store", &id(name).to_string()).len()
}

fn events(world: &World, name: &str) -> usize {
    let state = world.state();
    state.published.iter().filter(|(_, _, notice)| notice.about.subject() == id(name)).count()
}

/// A workload gets these annotations, and nothing else happens to it. Writes of its record and Events: those of the sight, and
/// those of the time after it.
fn idle_beside(annotations: &Annotations) -> ((usize, usize), (usize, usize)) {
    let world = settled(1, &["web", "hostile"]);
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        let before = (writes(&world, "hostile"), events(&world, "hostile"));
        world.set(annotated("hostile", 1, annotations));
        life.pass(90_000).await;
        let seen = (writes(&world, "hostile"), events(&world, "hostile"));
        life.pass(IDLE).await;
        let rested = (writes(&world, "hostile"), events(&world, "hostile"));
        ((seen.0 - before.0, seen.1 - before.1), (rested.0 - seen.0, rested.1 - seen.1))
    })
}

// Faults: T1
#[test]
fn bad_annotations_cost_a_write_for_each_sight_that_differs_and_none_at_rest() {
    let each = [
        ("one of 240 KB", long("enabled", 240_000)),
        ("one list of 240 KB", long("hosts", 240_000)),
        ("350 unknown ones", unknown(350)),
        ("1,900 unknown ones", unknown(1_900)),
    ];
    for (what, annotations) in each {
        let ((writes, events), (later, events_later)) = idle_beside(&annotations);
        println!(
            "T1: {what}: writes of its record at the sight {writes} (aim 2), in ten minutes of rest {later} (aim 0)"
        );
        println!("T1: {what}: Events at the sight {events} (aim 1), in ten minutes of rest {events_later} (aim 0)");
        // What is told is written first, and once it was told, that nothing is left to tell.
        assert!(writes <= 2 && later == 0, "{what}: {writes} and {later} writes");
        assert_eq!((events, events_later), (1, 0), "{what}");
    }
}

// Faults: T1
#[test]
fn annotations_that_change_all_the_time_cost_an_event_and_two_writes_a_minute() {
    let world = settled(1, &["hostile"]);
    let (writes, events) = life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        let before = (writes(&world, "hostile"), events(&world, "hostile"));
        for turn in 0..IDLE / 200 {
            let usize_turn = usize::try_from(turn).unwrap();
            world.set(annotated("hostile", 1, &unknown(1 + usize_turn % 7)));
            life.pass(200).await;
        }
        (writes(&world, "hostile") - before.0, events(&world, "hostile") - before.1)
    });
    println!(
        "T1: annotations that change five times a second for ten minutes: writes {writes} (aim 20), Events {events} (aim 10)"
    );
    assert!(writes <= 22 && events <= 11, "{writes} writes, {events} Events");
}

// Faults: T1
/// What one sight costs: reading the object, and deciding what to make of it. As the API server would send it.
#[test]
fn an_object_with_1_900_unknown_annotations_is_read_and_judged_in_no_time() {
    let annotations: std::collections::BTreeMap<_, _> = unknown(1_900).into_iter().collect();
    let object = serde_json::json!({
        "metadata": {"namespace": "shop", "name": "hostile", "uid": "u-1", "generation": 1, "annotations": annotations},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "hostile"}},
            "template": {"metadata": {"labels": {"app": "hostile"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    })
    .to_string();
    let (mut took, mut faulty) = (Vec::new(), 0);
    for _ in 0..20 {
        let begin = Instant::now();
        let workload = workload_decoder(WorkloadKind::Deployment, &VersionOf::Images)(&object).unwrap();
        let identity = Identity {
            workload: workload.id.clone(),
            member: "eu-1".into(),
            group: "default".to_owned(),
            grouped: false,
            origin: "ledger".into(),
            epoch_ms: 0,
            keeps_times: false,
        };
        let now = Timestamp::default();
        let mut machine = Rollout::resume(identity, Policy::default(), Seq(0), None).arriving(Arrival::New);
        for effect in machine.step(now, Event::Seen(Box::new(workload))) {
            let Effect::Store(record) = effect else { continue };
            faulty += usize::from(record.untold.iter().any(|notice| notice.kind == Kind::WorkloadFaulty));
            drop(machine.step(now, Event::Stored));
        }
        took.push(begin.elapsed());
    }
    took.sort();
    let median = took[took.len() / 2];
    println!(
        "T1: {} bytes with 1,900 unknown annotations read and judged in {median:?} (aim 20 ms, unoptimised)",
        object.len()
    );
    assert_eq!(faulty, 20);
    assert!(median < Duration::from_millis(100), "{median:?}");
}

/// When the rollout of `web` was purged, beside so many hostile workloads; and the time of a real clock that all of it took.
fn purged_beside(hostile: usize) -> (Millis, Duration) {
    let names: Vec<String> = (0..hostile).map(|number| format!("hostile-{number}")).collect();
    let world = settled(1, &["web"]);
    for name in &names {
        world.set(annotated(name, 1, &unknown(1_900)));
    }
    let begin = Instant::now();
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for name in &names {
            // One more than before: a sight that differs.
            world.set(annotated(name, 1, &unknown(1_901)));
        }
        roll_out(life, "web", 2, "2", 10_000).await;
        life.until("the purge is made", 60_000, |world| !world.creations("EWEB").is_empty()).await;
        life.until("it is told", 60_000, |world| !world.told("web", Kind::PurgeCompleted).is_empty()).await;
    });
    (world.creations("EWEB")[0], begin.elapsed())
}

// Faults: T1
#[test]
fn a_purge_beside_five_hostile_deployments_comes_as_soon_as_without_them() {
    let (alone, alone_real) = purged_beside(0);
    let (beside, beside_real) = purged_beside(5);
    println!("T1: a purge beside five Deployments with 1,900 unknown annotations after {beside} ms (aim {alone} ms)");
    println!("T1: real time of that run {beside_real:?} (aim near {alone_real:?})");
    assert_eq!(beside, alone);
    assert!(beside_real < alone_real + Duration::from_secs(2), "{beside_real:?}");
}
