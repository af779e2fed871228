//! `kill -9` at each step between "tag seen" and "webhook delivered" (fault rows K1–K14).
//!
//! The steps are not listed by hand: an undisturbed rollout is watched once, and each request it makes to the cluster,
//! to CloudFront and to the receiver is a point. For each, a fresh world: the same rollout, that request held, the program
//! killed while it waits for the answer, and started again. Held *before*, the request never happened; *after*, it was
//! carried out and nobody was told. Reads change nothing, so for them both are the same and only one is tried.
//!
//! What must come out is what came out of the undisturbed run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use allclear::sandbox::http::{Action, Fault, Request, Seen, Server, When};
use futures_util::StreamExt;

use crate::process::comes_true;
use crate::scene::{Aftermath, Scene};

/// Worlds at once. Each is mostly waiting, and each has a program that needs a core for a moment when it starts.
const AT_ONCE: usize = 3;

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

#[tokio::test]
async fn killed_at_any_step_it_ends_as_if_it_had_never_been_killed() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let before = Peer::ALL.map(|peer| peer.server(&scene).seen().len());
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    let expected = scene.aftermath();
    let points = points(&scene, before);
    drop(scene);
    assert_eq!((expected.invalidations.len(), expected.told.len()), (1, 1), "{expected:?}");

    let runs = futures_util::stream::iter(points.into_iter().map(run)).buffered(AT_ONCE);
    let outcomes: Vec<Outcome> = runs.collect().await;
    let table: Vec<String> = outcomes.iter().map(|outcome| outcome.line(&expected)).collect();
    println!("{}\n{} points", table.join("\n"), table.len());
    let wrong: Vec<&String> = table.iter().filter(|line| line.contains("WRONG")).collect();
    assert!(wrong.is_empty(), "undisturbed: {expected:#?}\n{wrong:#?}");
    // Stores that wait for company may be one more or one less; everything else is the same in every run.
    let missed = outcomes.iter().filter(|outcome| !outcome.reached);
    assert!(missed.clone().all(|outcome| outcome.point.what == STORE) && missed.count() <= 4, "{table:#?}");
}

/// One rollout in a world of its own, killed at `point`.
async fn run(point: Point) -> Outcome {
    let began = Instant::now();
    let mut scene = Scene::new().await;
    scene.start().await;
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
        over = comes_true(async || scene.is_over(2)) => {
            assert!(over, "{point:?} was neither reached nor passed\n{}", scene.process().tail());
            false
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
            (Self::Cluster, "GET") if path.contains("/ingresses") => Some("site found"),
            (Self::Cluster, "GET") if path.contains("/deployments/") => Some("workload looked at again"),
            (Self::Cluster, "GET") if last.starts_with("allclear-ledger-") => Some("record read"),
            (Self::Cluster, "POST" | "PUT") if last.starts_with("allclear-ledger-") => Some(STORE),
            (Self::Cluster, "POST") if last == "configmaps" => Some("outbox written"),
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
