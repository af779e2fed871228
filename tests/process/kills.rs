//! `kill -9` at each step between "tag seen" and "webhook delivered" (fault rows K1–K14).
//!
//! The steps are not listed by hand: an undisturbed rollout is watched once, and each request it makes to the cluster,
//! to CloudFront and to the receiver is a point. For each, a fresh world: the same rollout, that request held, the program
//! killed while it waits for the answer, and started again. Held *before*, the request never happened; *after*, it was
//! carried out and nobody was told. Reads change nothing, so for them both are the same and only one is tried.
//!
//! What must come out is what came out of the undisturbed run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use sandbox::http::{Action, Fault, Request, Seen, Server, When};
use sandbox::kubernetes::Kind;
use serde_json::json;
use support::process::comes_true;

use crate::scene::{Aftermath, NAME, Scene};

/// Worlds at once. Each is mostly waiting, and each has a program that needs a core for a moment when it starts.
const AT_ONCE: usize = 3;

/// A request that follows from what was seen to be over is made within this.
const SETTLES_WITHIN: Duration = Duration::from_millis(300);

/// Whom a request is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Cluster,
    CloudFront,
    Receiver,
}

/// A moment to be killed at: the `nth` request of this kind after the new tag was set.
#[derive(Clone, Debug)]
struct Point {
    peer: Peer,
    what: &'static str,
    nth: usize,
    when: When,
}

/// A world whose invalidations complete when they are asked for the second time, so that a slow machine changes no number of requests.
async fn polled_twice() -> Scene {
    let scene = Scene::completing(None).await;
    scene.world.cloudfront.complete_at_look(2);
    scene
}

/// What became of a run that was killed.
struct Outcome {
    point: Point,
    /// Whether the point was reached; if not, the run was not disturbed.
    reached: bool,
    /// Deliveries the receiver had when the program was killed, and in the end.
    calls: (usize, usize),
    aftermath: Aftermath,
    took_ms: u128,
}

// Faults: K1–K14
#[tokio::test]
async fn killed_at_any_step_it_ends_as_if_it_had_never_been_killed() {
    let mut scene = polled_twice().await;
    scene.start().await;
    let before = Peer::ALL.map(|peer| peer.server(&scene).seen().len());
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let expected = scene.aftermath();
    let points = points(&scene, before);
    drop(scene);
    judge(points, expected, |_| ()).await;
}

// Faults: K1–K14
/// The same for each write of the ledger where the shard is so large that it gets a journal: the new object, its name in the
/// ledger's object and in the shard, and the writes of the journal.
#[tokio::test]
async fn killed_at_any_write_of_a_large_shard_it_ends_as_if_it_had_never_been_killed() {
    let mut scene = polled_twice().await;
    scene.start().await;
    enlarge(&scene);
    let before = Peer::ALL.map(|peer| peer.server(&scene).seen().len());
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let (expected, mut points) = (scene.aftermath(), points(&scene, before));
    assert!(scene.shards().len() > 1, "it has a journal");
    drop(scene);
    points.retain(|point| [STORE, CREATE].contains(&point.what));
    assert!(points.iter().any(|point| point.what == CREATE), "{points:?}");
    judge(points, expected, enlarge).await;
}

/// Makes the shard of the workload as large as that of a large cluster.
fn enlarge(scene: &Scene) {
    let mut shard = scene.shards().into_iter().next().expect("there is a record");
    shard["data"]["padding"] = json!("x".repeat(8_000));
    scene.world.kubernetes.put(shard).expect("it can be changed");
}

/// Kills a rollout at each point, in a world that was prepared, and compares what comes of it.
async fn judge(points: Vec<Point>, expected: Aftermath, prepare: fn(&Scene)) {
    assert_eq!((expected.invalidations.len(), expected.told.len()), (1, 1), "{expected:?}");
    let runs = futures_util::stream::iter(points.into_iter().map(|point| run(point, prepare))).buffered(AT_ONCE);
    let outcomes: Vec<Outcome> = runs.collect().await;
    let table: Vec<String> = outcomes.iter().map(|outcome| outcome.line(&expected)).collect();
    println!("{}\n{} points", table.join("\n"), table.len());
    let wrong: Vec<&String> = table.iter().filter(|line| line.contains("WRONG")).collect();
    assert!(wrong.is_empty(), "undisturbed: {expected:#?}\n{wrong:#?}");
    // Stores that wait for company may be one less in another run, and so may looks at the site, which is kept for a second;
    // everything else is the same in every run.
    let missed = |what: fn(&str) -> bool| outcomes.iter().filter(|one| !one.reached && what(one.point.what)).count();
    let stores_and_looks = (missed(|what| what == STORE), missed(|what| what == LOOK));
    assert!(
        stores_and_looks.0 <= 2 && stores_and_looks.1 <= 1 && missed(|what| ![STORE, LOOK].contains(&what)) == 0,
        "{table:#?}"
    );
}

// Faults: K1–K14
/// Goal: a recovery that is cut short itself is no worse. Method: the first life ends with its first write, the second one
/// with its second and so on, each carried out and unanswered, so that every life dies somewhere else in its recovery.
#[tokio::test]
async fn killed_in_the_middle_of_every_recovery_it_still_arrives_at_the_same_end() {
    /// Undisturbed, a rollout makes 15 writes; no life needs more.
    const LIVES_MAX: usize = 20;
    let mut scene = polled_twice().await;
    scene.start().await;
    scene.roll_out("1.1");
    let (mut lives, mut noted) = (1, 0);
    while !ends_before_its_write(&scene, lives).await {
        lives += 1;
        assert!(lives <= LIVES_MAX, "{}", scene.process().tail());
        scene.take_process().kill();
        Peer::ALL.iter().for_each(|peer| peer.server(&scene).clear_faults());
        noted += usize::from(forget_abrupt_end(&scene));
        scene.launch(&["run"]);
    }
    println!("{lives} lives, {noted} of them noted");
    assert!(lives > 4 && noted > 1, "{lives} lives, {noted} of them noted");
    assert_eq!((scene.purged().len(), scene.aftermath().told.len()), (1, 1));
    assert_eq!(scene.reasons_of(NAME), ["PurgeCompleted", "PurgeStarted", "RolloutCompleted", "RolloutStarted"]);
    // Each life but the last may have died between the receiver's answer and the ledger's.
    assert!((1..lives).contains(&scene.calls()), "{} calls in {lives} lives", scene.calls());
}

/// What is worked on when lives end abruptly one after the other rests longer and longer (`strangers::lives` of the
/// simulation). Here every life is to go on at once. Whether this life had noted that it works: an early one may die first.
fn forget_abrupt_end(scene: &Scene) -> bool {
    let mut ledger =
        scene.world.kubernetes.get(Kind::ConfigMap, "default", "allclear-ledger").expect("there is a ledger");
    let noted = ledger["data"].as_object_mut().expect("it has data").remove("life").is_some();
    scene.world.kubernetes.put(ledger).expect("it can be changed");
    noted
}

/// Whether the rollout is over before this life's `nth` write; that write, if it comes, is carried out and not answered.
async fn ends_before_its_write(scene: &Scene, nth: usize) -> bool {
    let count = Arc::new(AtomicUsize::new(0));
    for peer in Peer::ALL {
        let count = Arc::clone(&count);
        let is_last =
            move |request: &Request| request.method != "GET" && count.fetch_add(1, Ordering::Relaxed) + 1 == nth;
        peer.server(scene).inject(Fault::once(When::After, Action::Hold).matching(is_last));
    }
    tokio::select! {
        () = scene.world.api.held() => false,
        () = scene.world.cdn.held() => false,
        () = scene.world.hook.held() => false,
        over = comes_true(async || scene.is_over(NAME, 2) && scene.outbox() == 0) => {
            assert!(over, "it neither writes nor ends\n{}", scene.process().tail());
            true
        }
    }
}

/// One rollout in a world of its own, killed at `point`.
async fn run(point: Point, prepare: fn(&Scene)) -> Outcome {
    let began = Instant::now();
    let mut scene = polled_twice().await;
    scene.start().await;
    prepare(&scene);
    let server = point.peer.server(&scene);
    let (peer, what, nth) = (point.peer, point.what, point.nth);
    let count = AtomicUsize::new(0);
    let matches = move |request: &Request| {
        let line = (request.method.as_str(), request.path.as_str(), request.query.contains_key("watch"));
        peer.what(line) == Some(what) && count.fetch_add(1, Ordering::Relaxed) == nth
    };
    server.inject(Fault::once(point.when, Action::Hold).matching(matches));
    scene.roll_out("1.1");
    let reached = tokio::select! {
        () = server.held() => true,
        over = comes_true(async || scene.is_over(NAME, 2) && scene.outbox() == 0) => {
            assert!(over, "{point:?} was neither reached nor passed\n{}", scene.process().tail());
            // The last writes are what makes it look over: they may be held as soon as they are seen.
            tokio::time::timeout(SETTLES_WITHIN, server.held()).await.is_ok()
        }
    };
    scene.take_process().kill();
    let calls = scene.calls();
    point.peer.server(&scene).clear_faults();
    scene.start().await;
    scene.wait_until_over(2).await;
    let calls = (calls, scene.calls());
    Outcome { point, reached, calls, aftermath: scene.aftermath(), took_ms: began.elapsed().as_millis() }
}

/// The points of an undisturbed run, in the order of its requests. `before` is how many each server had seen already.
fn points(scene: &Scene, before: [usize; 3]) -> Vec<Point> {
    let mut requests: Vec<(Instant, Peer, Seen)> = Vec::new();
    for (peer, before) in Peer::ALL.into_iter().zip(before) {
        let seen = peer.server(scene).seen().into_iter().skip(before);
        requests.extend(seen.map(|seen| (seen.at, peer, seen)));
    }
    requests.sort_by_key(|(at, ..)| *at);
    let mut counts: BTreeMap<(Peer, &str), usize> = BTreeMap::new();
    let mut points = Vec::new();
    for (_, peer, seen) in requests {
        let line = (seen.method.as_str(), seen.path.as_str(), seen.query.contains_key("watch"));
        let Some(what) = peer.what(line) else { continue };
        let count = counts.entry((peer, what)).or_default();
        let whens: &[When] = if seen.method == "GET" { &[When::Before] } else { &[When::Before, When::After] };
        points.extend(whens.iter().map(|when| Point { peer, what, nth: *count, when: *when }));
        *count += 1;
    }
    points
}

const STORE: &str = "ledger store";
const LOOK: &str = "site found";

const CREATE: &str = "outbox written, or a journal";

impl Peer {
    const ALL: [Self; 3] = [Self::Cluster, Self::CloudFront, Self::Receiver];

    fn server(self, scene: &Scene) -> &Server {
        match self {
            Self::Cluster => &scene.world.api,
            Self::CloudFront => &scene.world.cdn,
            Self::Receiver => &scene.world.hook,
        }
    }

    /// What a request is for; `None` if being killed at it is the same as at another point.
    ///
    /// Left out: watches and the listing of pods, which only feed words and run from "tag seen" to the end, so every
    /// other point is also one of theirs; and of the three listings a site is found by, which go out together, all but
    /// the Ingresses.
    fn what(self, (method, path, watch): (&str, &str, bool)) -> Option<&'static str> {
        let last = path.rsplit('/').next().unwrap_or_default();
        match (self, method) {
            (Self::Cluster, "GET") if watch => None,
            (Self::Cluster, "GET") if path.contains("/ingresses") => Some(LOOK),
            (Self::Cluster, "GET") if path.contains("/deployments/") => Some("workload looked at again"),
            (Self::Cluster, "GET") if last.starts_with("allclear-ledger-") => Some("record read"),
            (Self::Cluster, "POST" | "PUT") if last.starts_with("allclear-ledger-") => Some(STORE),
            (Self::Cluster, "POST") if last == "configmaps" => Some(CREATE),
            (Self::Cluster, "DELETE") if last.starts_with("allclear-outbox-") => Some("outbox emptied"),
            (Self::Cluster, "POST") if last == "events" => Some("event published"),
            (Self::Cluster, _) => None,
            (Self::CloudFront, "GET") if last == "distribution" => Some("distributions listed"),
            (Self::CloudFront, "GET") => Some("completion polled"),
            (Self::CloudFront, _) => Some("invalidation created"),
            (Self::Receiver, _) => Some("webhook sent"),
        }
    }
}

impl Outcome {
    /// One line of the table.
    fn line(&self, expected: &Aftermath) -> String {
        let Self { point, reached, calls: (before, after), aftermath, took_ms } = self;
        // A delivery that had arrived may arrive once more, because the program could not know; no other may.
        let deliveries_right = if *before == 0 { *after == 1 } else { (1..=2).contains(after) };
        let right = aftermath == expected && deliveries_right;
        let verdict = if right { "as undisturbed".to_owned() } else { format!("WRONG {aftermath:?}") };
        let when = match point.when {
            When::Before => "before",
            When::After => "after",
        };
        let reached = if *reached { "killed" } else { "not reached" };
        let purges = aftermath.invalidations.len();
        format!(
            "{when:<6} {what} {nth:<2} | {reached:<11} | {purges} invalidation, {after} webhook | {took_ms:>5} ms | {verdict}",
            what = format_args!("{:<24}", point.what),
            nth = point.nth + 1,
        )
    }
}
