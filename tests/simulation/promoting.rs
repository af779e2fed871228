//! Pipelines, with the real actors: what a crash, a lost answer, a dead cluster or a lost actor may cost a promotion, and that it costs
//! the purges beside it nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use kernel::id::PipelineId;
use kernel::names::workload_name::WorkloadName;
use notices::notice::{Kind, Notice};
use objects::apps::app::TargetKey;
use objects::pipeline::proposal::{ForgeKind, Repository, RequestState};
use objects::pipeline::spec::{Object, PromotionSpec, Purged, Strategy, Until};
use objects::pipeline::status::{Phase, Status};
use support::fakes::promoting::{environment, pipeline, target};
use support::fakes::{Fault, Millis, World};
use support::stage::{Life, id, life, roll_out, settled};

fn staging() -> TargetKey {
    target(None, "staging")
}

/// Prod is in two clusters, so that one of them can be away.
fn prod() -> [TargetKey; 2] {
    [target(None, "prod"), target(Some("us-1"), "prod")]
}

/// Promotes from staging to prod by telling a program.
fn by_notice(name: &str) -> Object {
    pipeline(name, vec![environment("staging", &[staging()]), environment("prod", &prod())])
}

/// The same by a pull request.
fn by_request(name: &str) -> Object {
    let mut object = by_notice(name);
    let repository = Repository {
        forge: ForgeKind::Gitea,
        url: "https://git.example.com/shop/web.git".to_owned(),
        base: "main".to_owned(),
        path: None,
        secret: None,
    };
    let spec = object.spec.as_mut().expect("a spec");
    spec.environments[1].promotion =
        Some(PromotionSpec { manual: false, strategy: Strategy::PullRequest(repository, Box::default()) });
    object
}

/// Everything is at revision 1.
fn at_rest(object: Object) -> World {
    let world = settled(1, &["blog"]);
    world.apply(object);
    for target in prod().iter().chain([&staging()]) {
        world.deploy(target, "1", true);
    }
    world
}

/// When receivers took notices of this kind about the Pipeline.
fn told(world: &World, kind: Kind) -> usize {
    world.told("web", kind).len()
}

/// Staging gets revision 2, and prod gets it when it is told or merged.
async fn promote(life: &Life) {
    life.pass(5_000).await;
    life.world.deploy(&staging(), "2", true);
    let started = |world: &World| matches!(world.phase("web", "prod"), Some((.., phase)) if phase > Phase::Waiting);
    life.until("the promotion starts", 300_000, started).await;
    let merge = |world: &World| {
        let mut state = world.state();
        state.promotions.requests.values_mut().for_each(|(_, state)| *state = RequestState::Merged);
    };
    let landed = |world: &World| matches!(world.phase("web", "prod"), Some((.., phase)) if phase >= Phase::Proposed);
    life.until("it is told or proposed", 900_000, landed).await;
    merge(&life.world);
    let merged = |world: &World| matches!(world.phase("web", "prod"), Some((.., phase)) if phase >= Phase::Landed);
    life.until("it is seen to be merged", 900_000, merged).await;
    for target in prod() {
        life.world.deploy(&target, "2", false);
        life.pass(3_000).await;
        life.world.deploy(&target, "2", true);
    }
    let completed = |world: &World| matches!(world.phase("web", "prod"), Some((.., Phase::Completed)));
    life.until("prod is done", 900_000, completed).await;
    life.pass(60_000).await;
}

/// What a promotion leaves behind, whatever went wrong: one of everything.
fn check(world: &World, what: &str) {
    let (seq, revision, phase) = world.phase("web", "prod").expect("a promotion");
    assert_eq!((seq.0, revision.0.as_str(), phase), (1, "2", Phase::Completed), "{what}");
    let starts = |notice: &&Notice| notice.kind == Kind::PromotionStarted;
    let announced = |status: &Status| status.untold.iter().filter(starts).map(|n| n.id.clone()).collect::<Vec<_>>();
    let ids: BTreeSet<_> =
        world.state().promotions.shelf.written().iter().flat_map(|(.., status)| announced(status)).collect();
    assert_eq!(ids.len(), 1, "{what}: one promotion was started, however often it was told");
    // A life that ends between the outbox and the status tells again, under the same id.
    for kind in [Kind::PromotionStarted, Kind::PromotionCompleted] {
        assert_eq!(world.told_ids("web", kind).len(), 1, "{what}: {kind:?}");
    }
    assert!(world.state().promotions.requests.len() <= 1, "{what}: one request");
    assert!(world.state().contradictions.is_empty(), "{what}");
}

fn play(object: Object, fault: Option<(&'static str, u32, Fault)>) -> (World, bool) {
    let world = at_rest(object);
    if let Some((call, skip, fault)) = fault {
        world.plan(call, "", skip, fault);
    }
    let done = life(&world, async |life| {
        promote(life).await;
        assert_eq!(life.has_given_up(), None);
        world.plan_is_done()
    });
    assert_eq!((told(&world, Kind::PromotionStarted), told(&world, Kind::PromotionCompleted)), (1, 1), "{fault:?}");
    (world, done)
}

#[test]
fn a_revision_that_settles_in_staging_is_told_once_and_done_when_all_of_prod_has_it() {
    let (world, _) = play(by_notice("web"), None);
    check(&world, "all is well");
    // Both environments were read afresh before it started.
    let read: BTreeSet<_> = world.state().promotions.reads.iter().map(|(_, target)| target.clone()).collect();
    assert_eq!(read, prod().into_iter().chain([staging()]).collect());
}

#[test]
fn a_request_is_opened_once_and_seen_to_be_merged() {
    let (world, _) = play(by_request("web"), None);
    check(&world, "by a request");
    let state = world.state();
    let (order, _) = state.promotions.requests.values().next().expect("a request");
    assert_eq!((order.seq.0, order.revision.0.as_str()), (1, "2"));
}

/// Every call of a promotion goes wrong once, each in a run of its own, in each of these ways.
fn all_that_goes_wrong(object: &Object, calls: &[&'static str]) {
    let mut runs = 0;
    for call in calls {
        for fault in [Fault::Panic, Fault::Fail, Fault::LoseAnswer] {
            let mut reached = 0;
            for skip in 0..40 {
                let (world, happened) = play(object.clone(), Some((call, skip, fault)));
                check(&world, &format!("{call} {skip} {fault:?}"));
                if !happened {
                    break;
                }
                reached += 1;
            }
            assert!((1..40).contains(&reached), "{call} was made {reached} times");
            runs += reached;
        }
    }
    assert!(runs >= 3 * u32::try_from(calls.len()).unwrap_or(u32::MAX), "{runs} runs");
}

// Faults: PF1
#[test]
fn whatever_call_goes_wrong_a_promotion_is_told_once() {
    all_that_goes_wrong(&by_notice("web"), &["pipelines.write", "leaf.read"]);
}

// Faults: PF1
#[test]
fn whatever_call_goes_wrong_a_promotion_has_one_request() {
    all_that_goes_wrong(&by_request("web"), &["forge.propose", "forge.look"]);
}

// Faults: PF1
#[test]
fn a_life_that_ends_at_any_moment_is_taken_up_by_the_next() {
    // The calls of one promotion, each of which is the last thing a life does.
    let (world, _) = play(by_request("web"), None);
    let count = |call: &str| world.state().asked.iter().filter(|asked| asked.call == call).count();
    for call in ["pipelines.write", "leaf.read", "forge.propose", "forge.look"] {
        for made in 0..count(call) {
            let world = at_rest(by_request("web"));
            world.plan(call, "", u32::try_from(made).unwrap_or_default(), Fault::Hang);
            life(&world, async |life| {
                let hangs = async {
                    while !world.plan_is_done() {
                        life.pass(50).await;
                    }
                };
                tokio::select! {
                    () = promote(life) => {}
                    () = hangs => {}
                }
            });
            world.pass(1_000);
            life(&world, async |life| promote(life).await);
            check(&world, &format!("{call} {made}"));
        }
    }
}

// Faults: PF4
#[test]
fn a_cluster_that_is_away_holds_up_what_needs_it_and_nothing_else() {
    let world = at_rest(by_notice("web"));
    world.apply(pipeline(
        "local",
        vec![environment("staging", &[staging()]), environment("prod", &[prod()[0].clone()])],
    ));
    world.cut(&prod()[1].cluster, true);
    life(&world, async |life| {
        life.pass(5_000).await;
        world.deploy(&staging(), "2", true);
        life.pass(120_000).await;
        assert!(
            matches!(world.phase("local", "prod"), Some((.., Phase::Landed))),
            "{:?}",
            world.phase("local", "prod")
        );
        assert!(world.phase("web", "prod").is_none_or(|(.., phase)| phase == Phase::Waiting));
        let seen = life.observe().await.promoting.expect("Pipelines are attended to");
        let leaf = seen.leaves.iter().find(|leaf| leaf.name.contains("us-1")).expect("the cluster");
        assert!(!leaf.troubles.is_empty(), "{seen:#?}");
        let web = seen.pipelines.iter().find(|view| view.id.name == "web").expect("the Pipeline");
        let waits = web.environments[1].waits.clone().unwrap_or_default();
        assert!(waits.contains("us-1/prod/web") && waits.contains("leaf.connect"), "{waits}");
        world.cut(&prod()[1].cluster, false);
        life.until("it goes on", 60_000, |world| matches!(world.phase("web", "prod"), Some((.., Phase::Landed)))).await;
    });
}

/// A rollout of `blog` while something else is spoilt, with the times of all that it did.
pub fn purge_beside(world: World, spoil: impl AsyncFn(&Life)) -> Vec<(Millis, String)> {
    life(&world, async |life| {
        life.pass(2_000).await;
        let rollout = async {
            life.pass(10_000).await;
            roll_out(life, "blog", 2, "2", 30_000).await;
            life.pass(60_000).await;
        };
        tokio::join!(spoil(life), rollout);
        assert_eq!(life.has_given_up(), None);
    });
    assert_eq!(world.record(&id("blog")).map(|record| record.is_open()), Some(false));
    world.effects("blog", "EBLOG")
}

// Faults: PF15
#[test]
fn actors_of_pipelines_that_crash_until_they_must_rest_cost_no_purge_anything_and_come_back() {
    let undisturbed = purge_beside(at_rest(by_notice("web")), async |_| {});
    for of_clusters in [true, false] {
        let disturbed = purge_beside(at_rest(by_notice("web")), async |life| {
            for _ in 0..40 {
                life.world.panic_promoting(of_clusters);
                life.pass(1_500).await;
            }
            let seen = life.observe().await.promoting.expect("it shows itself while it rests");
            let rests = |words: &String| words.contains("crashed too often");
            let leaves = seen.leaves.iter().flat_map(|leaf| &leaf.troubles);
            assert!(seen.troubles.iter().chain(leaves).any(rests), "{seen:#?}");
            life.pass(360_000).await;
            life.world.deploy(&staging(), "2", true);
            let landed = |world: &World| matches!(world.phase("web", "prod"), Some((.., Phase::Landed)));
            life.until("promotions go on after the rest", 60_000, landed).await;
        });
        assert_eq!(disturbed, undisturbed, "of clusters: {of_clusters}");
    }
}

#[test]
fn a_parent_of_clusters_that_is_rebuilt_is_told_anew_what_is_wanted() {
    let (world, happened) = play(by_notice("web"), Some(("leaves.link", 1, Fault::Panic)));
    assert!(happened, "it crashed while it began with the second cluster");
    check(&world, "the parent of the readers crashed");
}

// Faults: PF20
#[test]
fn a_cluster_without_the_kind_is_quiet_and_notices_when_it_is_installed() {
    let world = at_rest(by_notice("web"));
    world.state().promotions.shelf.serve(false);
    life(&world, async |life| {
        life.pass(60_000).await;
        let seen = life.observe().await;
        let promoting = seen.promoting.expect("switched on");
        assert!(promoting.pipelines.is_empty() && promoting.troubles.is_empty() && seen.troubles.is_empty());
        world.state().promotions.shelf.serve(true);
        life.pass(310_000).await;
        assert_eq!(life.observe().await.promoting.expect("switched on").pipelines.len(), 1);
        world.state().promotions.shelf.serve(false);
        life.pass(310_000).await;
        assert!(life.observe().await.promoting.expect("switched on").pipelines.is_empty());
    });
}

#[test]
fn a_pipeline_that_is_deleted_is_forgotten_and_its_clusters_are_left() {
    let world = at_rest(by_notice("web"));
    life(&world, async |life| {
        life.pass(10_000).await;
        assert_eq!(life.observe().await.promoting.expect("switched on").leaves.len(), 2);
        world.unapply(&PipelineId::new("shop", "web"));
        life.pass(10_000).await;
        let seen = life.observe().await.promoting.expect("switched on");
        assert!(seen.pipelines.is_empty(), "{seen:#?}");
        life.pass(130_000).await;
        assert_eq!(life.observe().await.promoting.expect("switched on").leaves.len(), 0);
    });
}

#[test]
fn an_edge_that_is_not_fresh_holds_up_what_comes_after_it() {
    let mut object = by_notice("web");
    let spec = object.spec.as_mut().expect("a spec");
    spec.environments[0].purged =
        Some(Purged { workloads: vec![WorkloadName::parse("web").unwrap()], by: None, until: Until::Purged });
    let world = at_rest(object);
    world.state().promotions.edge = Some("E1 is still being purged".to_owned());
    life(&world, async |life| {
        life.pass(5_000).await;
        world.deploy(&staging(), "2", true);
        life.pass(60_000).await;
        assert!(world.phase("web", "prod").is_none_or(|(.., phase)| phase == Phase::Waiting));
        world.state().promotions.edge = None;
        life.until("it starts", 10_000, |world| matches!(world.phase("web", "prod"), Some((.., Phase::Landed)))).await;
    });
}

#[test]
fn a_poke_looks_at_an_open_request_at_once() {
    let world = at_rest(by_request("web"));
    life(&world, async |life| {
        life.pass(5_000).await;
        world.deploy(&staging(), "2", true);
        let open = |world: &World| matches!(world.phase("web", "prod"), Some((.., Phase::Proposed)));
        life.until("the request is open", 60_000, open).await;
        world.state().promotions.requests.values_mut().for_each(|(_, state)| *state = RequestState::Merged);
        let mut object = world.applied("web").expect("it is there");
        object.answers.poked = Some("2026-11-22T22:00:00Z".to_owned());
        world.apply(object);
        let landed = |world: &World| matches!(world.phase("web", "prod"), Some((.., Phase::Landed)));
        life.until("it is seen to be merged", 3_000, landed).await;
    });
}

#[test]
fn a_day_at_rest_writes_nothing() {
    let world = at_rest(by_notice("web"));
    life(&world, async |life| life.pass(60_000).await);
    let before = world.state().promotions.shelf.written().len();
    assert!(before <= 2, "{before} writes for a Pipeline at rest");
    life(&world, async |life| {
        for _ in 0..24 {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        life.pass(1).await;
    });
    assert_eq!(world.state().promotions.shelf.written().len(), before, "a restart and a day");
}

#[test]
fn of_more_pipelines_than_have_places_those_of_the_newcomer_are_attended_to() {
    let world = at_rest(by_notice("web"));
    let named =
        |namespace: &str, name: String| Object { id: PipelineId::new(namespace, name.clone()), ..by_notice(&name) };
    (0..2_000).for_each(|number| world.apply(named("crowd", format!("p{number}"))));
    life(&world, async |life| {
        life.pass(10_000).await;
        let attended = async |namespace: &str| {
            let seen = life.observe().await.promoting.expect("switched on");
            let of = seen.pipelines.iter().filter(|view| view.id.namespace == namespace).count();
            (of, seen.pipelines.len(), seen.troubles.into_iter().find(|words| words.contains("wait for one of")))
        };
        let crowded = Some(
            "of the Pipelines 1 wait for one of 2000 places; namespace crowd has most, 1999. Use a second allclear for some"
                .to_owned(),
        );
        assert_eq!(attended("shop").await, (1, 2_000, crowded));
        world.apply(named("late", "one".to_owned()));
        life.pass(5_000).await;
        let (late, all, words) = attended("late").await;
        assert_eq!((late, all), (1, 2_000), "{words:?}");
        assert!(words.as_ref().is_some_and(|words| words.contains(" 2 wait for one of 2000 places")), "{words:?}");
        // What a place was taken from is taken in again when one is free.
        world.unapply(&PipelineId::new("late", "one"));
        world.unapply(&PipelineId::new("shop", "web"));
        life.pass(10_000).await;
        assert_eq!(attended("crowd").await, (2_000, 2_000, None));
    });
}
