//! SIGTERM in every phase of a rollout (fault rows K16 and K17): not ready at once, ended with 0 within five seconds, and
//! the next life ends what this one had begun, as if nothing had happened.

use std::time::Duration;

use sandbox::http::{Action, Fault, When};
use support::process::comes_true;

use crate::scene::{NAME, Scene};

/// What fault K16 allows; Kubernetes would allow 30 s.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Stops the program, which must end in order.
async fn stop(scene: &mut Scene) {
    scene.process().signal("TERM");
    expect_end(scene).await;
}

/// Waits until a program that was told to stop has ended.
async fn expect_end(scene: &mut Scene) {
    let mut process = scene.take_process();
    let ended = process.ended(ENDS_WITHIN).await;
    let status = ended.unwrap_or_else(|| panic!("it still runs {ENDS_WITHIN:?} after SIGTERM\n{}", process.tail()));
    assert!(status.success(), "{status}\n{}", process.tail());
    assert!(process.complaints().is_empty(), "stopping is no trouble: {:#?}", process.complaints());
}

/// Starts the program again and sees the rollout of 1.1 through.
async fn go_on(scene: &mut Scene) {
    scene.start().await;
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged().len(), 1);
    assert_eq!(scene.aftermath().told.len(), 1, "one thing was told, whether once or twice");
    assert_eq!(scene.reasons_of(NAME), ["PurgeCompleted", "PurgeStarted", "RolloutCompleted", "RolloutStarted"]);
}

fn is_store(method: &str, path: &str) -> bool {
    method == "PUT" && path.contains("/allclear-ledger-")
}

#[tokio::test]
async fn an_idle_program_stops_and_finds_at_its_next_start_what_changed_meanwhile() {
    let mut scene = Scene::new().await;
    scene.start().await;
    assert_eq!(scene.process().get("/readyz").await.map(|(status, _)| status), Some(200));
    stop(&mut scene).await;
    scene.roll_out("1.1");
    go_on(&mut scene).await;
    assert_eq!(scene.calls(), 1);
}

// Faults: K16
#[tokio::test]
async fn a_program_that_follows_a_rollout_stops_and_goes_on_with_it() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.freeze();
    scene.roll_out("1.1");
    scene.wait_until("the rollout is followed", async |scene| !scene.waits_for().await.is_empty()).await;
    stop(&mut scene).await;
    scene.thaw();
    go_on(&mut scene).await;
    assert_eq!(scene.calls(), 1);
}

#[tokio::test]
async fn a_program_whose_record_is_being_written_is_not_ready_at_once_and_stops_without_an_answer() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let store = Fault::once(When::Before, Action::Hold).matching(|r| is_store(r.method.as_str(), &r.path));
    scene.world.api.inject(store);
    scene.roll_out("1.1");
    scene.world.api.held().await;
    scene.process().signal("TERM");
    let unready = comes_true(async || matches!(scene.process().get("/readyz").await, Some((503, _)))).await;
    assert!(unready, "{}", scene.process().tail());
    expect_end(&mut scene).await;
    go_on(&mut scene).await;
    assert_eq!(scene.calls(), 1);
}

// Faults: K17
#[tokio::test]
async fn a_program_that_is_killed_while_it_stops_loses_nothing() {
    let mut scene = Scene::new().await;
    scene.start().await;
    let store = Fault::once(When::After, Action::Hold).matching(|r| is_store(r.method.as_str(), &r.path));
    scene.world.api.inject(store);
    scene.roll_out("1.1");
    scene.world.api.held().await;
    scene.process().signal("TERM");
    scene.wait_until("it stops", async |scene| scene.process().said("stopping")).await;
    scene.take_process().kill();
    go_on(&mut scene).await;
    assert_eq!(scene.calls(), 1);
}

// Faults: K15
/// A pause of the whole machine, which the program does not notice: its sockets and its clock are still there.
#[tokio::test]
async fn a_program_that_stood_still_goes_on_where_it_was() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.process().signal("STOP");
    scene.roll_out("1.1");
    scene.wait_until("it is rolled out", async |scene| scene.is_rolled_out(2)).await;
    scene.process().signal("CONT");
    scene.wait_until_over(2).await;
    assert_eq!((scene.purged().len(), scene.calls()), (1, 1));
}

#[tokio::test]
async fn a_program_whose_invalidation_was_accepted_without_an_answer_stops_and_makes_no_second_one() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.world.cdn.inject(Fault::once(When::After, Action::Hold).matching(|request| request.method == "POST"));
    scene.roll_out("1.1");
    scene.world.cdn.held().await;
    stop(&mut scene).await;
    go_on(&mut scene).await;
    assert_eq!(scene.world.cloudfront.invalidations()[0].repeats, 1, "it was asked for again, by the same reference");
}

// Faults: K16
#[tokio::test]
async fn a_program_that_waits_for_an_invalidation_stops_without_waiting_for_it() {
    let mut scene = Scene::completing(None).await;
    scene.start().await;
    scene.roll_out("1.1");
    let polled = |scene: &Scene| {
        let seen = scene.world.cdn.seen();
        seen.iter().any(|seen| seen.method == "GET" && seen.path.contains("/invalidation/"))
    };
    scene.wait_until("the invalidation is polled", async |scene| polled(scene)).await;
    stop(&mut scene).await;
    scene.world.cloudfront.complete_all();
    go_on(&mut scene).await;
    assert_eq!(scene.world.cloudfront.invalidations()[0].repeats, 0, "its id was in the record");
}

// Faults: K16
#[tokio::test]
async fn a_program_whose_receiver_hangs_stops_without_it_and_calls_it_again() {
    let mut scene = Scene::new().await;
    scene.start().await;
    scene.world.hook.inject(Fault::once(When::Before, Action::Hold));
    scene.roll_out("1.1");
    scene.world.hook.held().await;
    stop(&mut scene).await;
    go_on(&mut scene).await;
    assert_eq!(scene.calls(), 1, "the call that hung never arrived");
}
