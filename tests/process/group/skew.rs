//! Two releases beside each other: `make skew` runs the program that `ALLCLEAR_OLD_BIN` names, of the release before, and this
//! one in the same clusters, one after the other and at the same time (decision 41).

use std::time::Duration;

use sandbox::http::{Action, Fault, When};

use crate::group::field::{Field, MEMBERS};
use crate::group::oracles::{Want, judge, words};
use crate::scene::Scene;

/// Settings of the tests that the release before does not know, and so refuses.
const UNKNOWN_BEFORE: [&str; 3] = ["ALLCLEAR__GROUP__UNSIGNED", "ALLCLEAR__HTTP__PAGE", "ALLCLEAR__ROLLOUT__SETTLE"];

/// How long a group that may not purge is watched not to.
const PATIENTLY: Duration = Duration::from_secs(2);

/// The program of the release before.
fn before() -> String {
    std::env::var("ALLCLEAR_OLD_BIN")
        .expect("ALLCLEAR_OLD_BIN names the program of the release before: see `make skew`")
}

/// Starts a member with the release before, or with this one.
async fn launch(member: &mut Scene, old: bool) {
    if old {
        member.launch_release(&before(), &UNKNOWN_BEFORE);
    } else {
        member.launch(&["run"]);
    }
    member.wait_until_started().await;
}

async fn swap(field: &mut Field, at: usize, old: bool) {
    field.kill(at);
    launch(&mut field[at], old).await;
    // Another program holds other things, so there is nothing to compare with.
    field.baselines[at] = None;
}

/// A group in which every member runs the release before, and has purged once.
async fn old_group() -> Field {
    let mut field = Field::prepare().await;
    for at in 0..MEMBERS {
        launch(&mut field[at], true).await;
    }
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field
}

/// Each member is upgraded in turn while a version waits to be purged. Between the first and the last nothing is purged, and
/// each says which setting differs.
async fn upgrade_in(order: [usize; MEMBERS]) {
    let mut field = old_group().await;
    let [first, between @ .., last] = order;
    swap(&mut field, first, false).await;
    field.roll_out("1.2");
    let says = async |field: &Field| {
        let words = words(field, first).await;
        words.contains(&field[last].world.name) && words.contains("rules")
    };
    field.wait_until("the upgraded member names who differs, and in what", says).await;
    for at in between {
        swap(&mut field, at, false).await;
    }
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(PATIENTLY, "nothing is purged while members run two releases", still).await;
    swap(&mut field, last, false).await;
    field.wait_until("it is purged when all are upgraded", async |field| field.purges().len() == 2).await;
    let seq = field.records().iter().flatten().map(|record| record.seq.0).max().unwrap_or_default();
    judge(&field, Want::purged(2, seq)).await;
}

#[tokio::test]
#[ignore = "needs the program of the release before: `make skew` names it"]
async fn members_are_upgraded_one_after_the_other_in_either_order() {
    upgrade_in([0, 1, 2]).await;
    upgrade_in([2, 1, 0]).await;
}

/// All members are replaced while CloudFront is asked for a purge that the release before has decided.
#[tokio::test]
#[ignore = "needs the program of the release before: `make skew` names it"]
async fn a_purge_that_the_release_before_decided_is_finished_under_its_reference() {
    let mut field = old_group().await;
    field[0].world.cdn.inject(
        Fault::once(When::After, Action::Hold)
            .matching(|request| request.method == "POST" && request.path.ends_with("/invalidation")),
    );
    field.roll_out("1.2");
    tokio::time::timeout(support::process::PATIENCE, field[0].world.cdn.held()).await.expect("a purge is asked for");
    for at in 0..MEMBERS {
        field.kill(at);
    }
    field.clear_faults();
    for at in 0..MEMBERS {
        launch(&mut field[at], false).await;
    }
    field.wait_until_over(3).await;
    judge(&field, Want::purged(2, 3)).await;
    field.roll_out("1.3");
    judge(&field, Want::purged(3, 4)).await;
}

/// A member is taken back to the release before once everything is at rest, and upgraded again.
#[tokio::test]
#[ignore = "needs the program of the release before: `make skew` names it"]
async fn a_member_at_rest_goes_back_to_the_release_before_and_upgrades_again() {
    let mut field = Field::new().await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    swap(&mut field, 1, true).await;
    field.roll_out("1.2");
    let still = async |field: &Field| field.purges().len() == 1;
    field.holds_for(PATIENTLY, "nothing is purged while one runs the release before", still).await;
    swap(&mut field, 1, false).await;
    field.wait_until("it is purged when all run this release again", async |field| field.purges().len() == 2).await;
}

/// A single cluster is upgraded in the act.
#[tokio::test]
#[ignore = "needs the program of the release before: `make skew` names it"]
async fn a_cluster_alone_is_upgraded_in_the_act_of_purging() {
    let mut scene = Scene::new().await;
    launch(&mut scene, true).await;
    scene.world.cdn.inject(
        Fault::once(When::After, Action::Hold)
            .matching(|request| request.method == "POST" && request.path.ends_with("/invalidation")),
    );
    scene.roll_out("1.1");
    tokio::time::timeout(support::process::PATIENCE, scene.world.cdn.held()).await.expect("a purge is asked for");
    scene.take_process().kill();
    scene.world.cdn.clear_faults();
    launch(&mut scene, false).await;
    scene.wait_until_over(2).await;
    assert_eq!(scene.world.cloudfront.invalidations().len(), 1, "the reference of the release before is kept");
    scene.roll_out("1.2");
    scene.wait_until_over(3).await;
    assert_eq!(scene.world.cloudfront.invalidations().len(), 2);
}
