//! Two releases beside each other: `make skew` runs the program that `ALLCLEAR_OLD_BIN` names, of an earlier release, and this
//! one in the same clusters, one after the other and at the same time (decision 41). Nothing is assumed of the earlier one but that it
//! reads this ledger: which settings it knows, and whether it agrees with this release, it is asked.

use std::process::Command;
use std::time::Duration;

use kernel::id::{Kind as WorkloadKind, WorkloadId};
use kernel::watches::listed::shard_of;
use sandbox::http::{Action, Fault, When};
use serde_json::Value;

use crate::group::field::{Field, MEMBERS};
use crate::group::oracles::{Want, judge, words};
use crate::kinds::{self, OTHERS};
use crate::scene::{NAMESPACE, Scene};

/// How long a group that may not purge is watched not to.
const PATIENTLY: Duration = Duration::from_secs(2);

/// The program of the earlier release.
fn before() -> String {
    std::env::var("ALLCLEAR_OLD_BIN")
        .expect("ALLCLEAR_OLD_BIN names the program of an earlier release: see `make skew`")
}

/// The settings of a member that the earlier release does not know, and so refuses, by its own words.
fn unknown(member: &Scene) -> Vec<String> {
    let asked = Command::new(before())
        .args(["config", "validate"])
        .env_clear()
        .envs(&member.environment)
        .output()
        .expect("the program of the earlier release runs");
    let said = [asked.stdout, asked.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let refused = said.lines().filter(|line| line.contains("is not a key"));
    let names = refused.filter_map(|line| line.trim().strip_prefix("environment ")?.split(':').next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(asked.status.success() || !names.is_empty(), "it refuses more than what it does not know:\n{said}");
    names
}

/// Starts a member with the earlier release, or with this one.
async fn launch(member: &mut Scene, old: bool) {
    if old {
        let unknown = unknown(member);
        member.launch_release(&before(), &unknown);
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

/// Whether a member of this release agrees with all others, once it has heard each of them: which settings and rules differ it says itself.
async fn agrees(field: &Field, at: usize) -> bool {
    let members = async |field: &Field| field[at].process().state().await["agreement"]["members"].clone();
    let is_heard = |member: &Value| member["is_self"] == true || member["heard_s"].is_u64();
    let all_heard = async |field: &Field| {
        members(field).await.as_array().is_some_and(|all| all.len() == MEMBERS && all.iter().all(is_heard))
    };
    field.wait_until("it has heard every member", all_heard).await;
    let members = members(field).await;
    let all = members.as_array().into_iter().flatten().filter_map(|member| member["differences"].as_array());
    let differences: Vec<&Value> = all.flatten().collect();
    println!("what differs between the releases: {differences:?}");
    differences.is_empty()
}

/// A group in which every member runs the earlier release, and has purged once.
async fn old_group() -> Field {
    let mut field = Field::prepare().await;
    for at in 0..MEMBERS {
        launch(&mut field[at], true).await;
    }
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    field
}

/// Each member is upgraded in turn while a version rolls out. Where the releases agree it is purged at once, and the rest is upgraded
/// after it. Where they differ nothing is purged between the first and the last, and each says which setting differs.
async fn upgrade_in(order: [usize; MEMBERS]) {
    let mut field = old_group().await;
    let [first, between @ .., last] = order;
    swap(&mut field, first, false).await;
    let agree = agrees(&field, first).await;
    field.roll_out("1.2");
    if agree {
        judge(&field, Want::purged(2, 3)).await;
    } else {
        let says = async |field: &Field| {
            let words = words(field, first).await;
            words.contains(&field[last].world.name) && words.contains("there and")
        };
        field.wait_until("the upgraded member names who differs, and in what", says).await;
    }
    for at in between {
        swap(&mut field, at, false).await;
    }
    if !agree {
        let still = async |field: &Field| field.purges().len() == 1;
        field.holds_for(PATIENTLY, "nothing is purged while members run releases that differ", still).await;
    }
    swap(&mut field, last, false).await;
    field.wait_until("it is purged when all are upgraded", async |field| field.purges().len() == 2).await;
    let seq = field.records().iter().flatten().map(|record| record.seq.0).max().unwrap_or_default();
    judge(&field, Want::purged(2, seq)).await;
}

#[tokio::test]
#[ignore = "needs the program of an earlier release: `make skew` names it"]
async fn members_are_upgraded_one_after_the_other_in_either_order() {
    upgrade_in([0, 1, 2]).await;
    upgrade_in([2, 1, 0]).await;
}

/// All members are replaced while CloudFront is asked for a purge that the earlier release has decided.
#[tokio::test]
#[ignore = "needs the program of an earlier release: `make skew` names it"]
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

/// A member is taken back to the earlier release once everything is at rest, and upgraded again.
#[tokio::test]
#[ignore = "needs the program of an earlier release: `make skew` names it"]
async fn a_member_at_rest_goes_back_to_the_release_before_and_upgrades_again() {
    let mut field = Field::new().await;
    field.roll_out("1.1");
    judge(&field, Want::purged(1, 2)).await;
    swap(&mut field, 1, true).await;
    let agree = agrees(&field, 0).await;
    field.roll_out("1.2");
    if agree {
        judge(&field, Want::purged(2, 3)).await;
    } else {
        let still = async |field: &Field| field.purges().len() == 1;
        field.holds_for(PATIENTLY, "nothing is purged while one runs a release that differs", still).await;
    }
    swap(&mut field, 1, false).await;
    field.wait_until("it is purged when all run this release again", async |field| field.purges().len() == 2).await;
    field.roll_out("1.3");
    field.wait_until("and so is the next", async |field| field.purges().len() == 3).await;
}

/// A single cluster is upgraded in the act.
#[tokio::test]
#[ignore = "needs the program of an earlier release: `make skew` names it"]
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

#[tokio::test]
#[ignore = "needs the program of an earlier release: `make skew` names it"]
async fn what_the_release_before_does_not_follow_it_passes_over_and_keeps() {
    let (kind, word, name, distribution) = OTHERS[0];
    let mut scene = kinds::scene().await;
    launch(&mut scene, false).await;
    let known = async |scene: &Scene| kinds::record(scene, word, name).is_some();
    scene.wait_until("it has a baseline", known).await;
    kinds::roll_out(&scene, kind, name, "1.1");
    let at_rest = async |scene: &Scene| {
        kinds::purged(scene, distribution) > 0
            && kinds::record(scene, word, name).is_some_and(|record| !record.is_open())
    };
    scene.wait_until("it is purged", at_rest).await;
    let before = kinds::record(&scene, word, name);
    drop(scene.take_process());
    launch(&mut scene, true).await;
    // It writes into the part of the ledger that has the record of the StatefulSet, which changes while nobody follows it.
    let shard = shard_of(&WorkloadId::new(WorkloadKind::StatefulSet, NAMESPACE, name));
    let beside = (0..).map(|number| format!("beside-{number}"));
    let mut beside = beside.filter(|name| shard_of(&WorkloadId::deployment(NAMESPACE, name.as_str())) == shard);
    let beside = beside.next().expect("there are many names");
    scene.add_workload(&beside);
    scene.wait_until("it has a record", async |scene| kinds::record(scene, "Deployment", &beside).is_some()).await;
    kinds::roll_out(&scene, kind, name, "1.2");
    assert_eq!(kinds::record(&scene, word, name), before, "it is kept as it was");
    drop(scene.take_process());
    launch(&mut scene, false).await;
    scene.wait_until("what changed meanwhile is purged", async |scene| kinds::purged(scene, distribution) == 2).await;
    assert_eq!(scene.purged(), [distribution, distribution]);
}
