//! Repos, with the real actors: what a crash, a lost answer, git that misbehaves or a lost actor may cost a run (RF11, RF13), and that it
//! costs the purges beside it nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use notices::notice::Kind;
use objects::repo::spec::{DriftLooks, Object, OnDrift};
use objects::repo::status::Phase;
use support::fakes::running::repo;
use support::fakes::{Fault, World};
use support::stage::{Life, life, settled};

use crate::promoting::purge_beside;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// The calls of a run.
const CALLS: [&str; 8] =
    ["repos.write", "repos.read", "git.resolve", "jobs.make", "jobs.start", "jobs.look", "jobs.pods", "jobs.remove"];

/// Containers take twenty seconds, and everything is done within this.
async fn until_ran(life: &Life, name: &str, commit: &str) {
    for _ in 0..200 {
        life.pass(20_000).await;
        life.world.end_jobs();
        if life.world.ran(name) == Some((commit.to_owned(), Phase::Succeeded)) {
            return;
        }
    }
    panic!("{commit} of {name} was not run: {:?}", life.world.ran(name));
}

/// How often Jobs of a Repo were started, by name: each once.
fn starts(world: &World, name: &str) -> usize {
    let state = world.state();
    let of: Vec<_> =
        state.runs.started.iter().filter(|(_, repo, _)| repo.name == name).map(|(.., job)| job.clone()).collect();
    let distinct: BTreeSet<_> = of.iter().collect();
    assert_eq!(distinct.len(), of.len(), "{name}: a Job was started twice");
    assert!(state.runs.overlaps.is_empty() && state.runs.torn.is_empty(), "{name}");
    assert!(state.contradictions.is_empty(), "{name}");
    of.len()
}

// Faults: RF1, RF3
#[test]
fn every_call_of_a_run_may_go_wrong_once() {
    let mut runs = 0;
    for call in CALLS {
        for fault in [Fault::Panic, Fault::Fail, Fault::LoseAnswer] {
            for skip in 0..12 {
                let world = settled(1, &["blog"]);
                world.apply_repo(repo("infra"));
                world.push("infra", A);
                world.plan(call, "infra", skip, fault);
                let reached = life(&world, async |life| {
                    until_ran(life, "infra", A).await;
                    world.push("infra", B);
                    until_ran(life, "infra", B).await;
                    life.pass(60_000).await;
                    assert_eq!(life.has_given_up(), None);
                    world.plan_is_done()
                });
                assert_eq!(starts(&world, "infra"), 2, "{call} {skip} {fault:?}");
                for kind in [Kind::RunStarted, Kind::RunCompleted] {
                    assert_eq!(world.told_ids("infra", kind).len(), 2, "{call} {skip} {fault:?}: {kind:?}");
                }
                runs += 1;
                if !reached {
                    break;
                }
            }
        }
    }
    assert!(runs > 60, "{runs}");
}

// Faults: RF13
#[test]
fn fifty_repos_in_a_world_that_misbehaves_run_each_commit_once() {
    let world = settled(7, &["blog"]);
    let names: Vec<String> = (0..50).map(|number| format!("r{number}")).collect();
    for name in &names {
        world.apply_repo(repo(name));
        world.push(name, A);
    }
    for (number, name) in names.iter().enumerate() {
        let call = CALLS[number % CALLS.len()];
        let fault = [Fault::Panic, Fault::Fail, Fault::LoseAnswer][number % 3];
        world.plan(call, &format!("repo/platform/{name}"), 0, fault);
    }
    for commit in [A, B] {
        life(&world, async |life| {
            for name in &names {
                world.push(name, commit);
            }
            life.pass(90_000).await;
            for name in &names {
                until_ran(life, name, commit).await;
            }
        });
    }
    assert!(names.iter().all(|name| starts(&world, name) == 2));
}

/// The same Repo, which is planned again every ten minutes, and run for what has drifted.
fn looking(name: &str) -> Object {
    let mut object = repo(name);
    let spec = object.spec.as_mut().expect("a spec");
    spec.runner.steps.plan = vec!["plan".to_owned()];
    spec.drift = Some(DriftLooks { every: Duration::from_mins(10), then: OnDrift::Apply });
    object
}

// Faults: RF1, RF3
#[test]
fn what_drifts_is_told_and_run_once_whatever_goes_wrong_with_a_look() {
    let mut reached = 0;
    for call in ["repos.write", "jobs.make", "jobs.start", "jobs.look", "jobs.pods", "jobs.remove"] {
        for fault in [Fault::Panic, Fault::Fail, Fault::LoseAnswer] {
            for skip in 0..2 {
                let world = settled(1, &["blog"]);
                world.apply_repo(looking("infra"));
                world.push("infra", A);
                let is_done = life(&world, async |life| {
                    until_ran(life, "infra", A).await;
                    world.drift("infra");
                    world.plan(call, "infra", skip, fault);
                    for _ in 0..120 {
                        life.pass(20_000).await;
                        world.end_jobs();
                    }
                    assert_eq!(life.has_given_up(), None);
                    world.plan_is_done()
                });
                reached += usize::from(is_done);
                let told = |kind| world.told_ids("infra", kind).len();
                let told = [Kind::RunStarted, Kind::RunCompleted, Kind::RepoDrifted, Kind::RepoInSync].map(told);
                assert_eq!(told, [2, 2, 1, 0], "{call} {skip} {fault:?}");
                assert!(starts(&world, "infra") >= 2 + 2, "and it is looked at again: {call} {skip} {fault:?}");
            }
        }
    }
    assert!(reached > 25, "{reached}");
}

/// The same Repo, which only its folder concerns.
fn watching(name: &str) -> Object {
    let mut object = repo(name);
    object.spec.as_mut().expect("a spec").source.watched = Some(Vec::new());
    object
}

#[test]
fn a_commit_that_changes_nothing_here_runs_nothing_whatever_goes_wrong_with_the_comparison() {
    for call in ["git.compare", "repos.write"] {
        for fault in [Fault::Panic, Fault::Fail, Fault::LoseAnswer] {
            let world = settled(1, &["blog"]);
            world.apply_repo(watching("infra"));
            world.push("infra", A);
            life(&world, async |life| {
                until_ran(life, "infra", A).await;
                world.plan(call, "infra", 0, fault);
                world.push_idle("infra", B);
                life.pass(200_000).await;
                assert!(world.plan_is_done(), "{call} {fault:?}");
            });
            life(&world, async |life| {
                life.pass(200_000).await;
                assert_eq!(starts(&world, "infra"), 1, "{call} {fault:?}: nor does the next life run it");
                world.push("infra", C);
                until_ran(life, "infra", C).await;
            });
            assert_eq!(starts(&world, "infra"), 2, "{call} {fault:?}");
        }
    }
}

// Faults: RF11
#[test]
fn a_repo_that_is_deleted_in_any_moment_leaves_nothing_behind() {
    for after in (0..3_000).step_by(150) {
        let world = settled(1, &["blog"]);
        world.apply_repo(repo("infra"));
        world.push("infra", A);
        life(&world, async |life| {
            life.pass(after).await;
            let before = starts(&world, "infra");
            world.delete_repo("infra");
            life.pass(300_000).await;
            assert_eq!(starts(&world, "infra"), before, "{after}");
            assert_eq!(life.has_given_up(), None);
        });
        // Created again, it is a new one.
        let mut again = repo("infra");
        again.uid = "another".to_owned();
        world.apply_repo(again);
        life(&world, async |life| until_ran(life, "infra", A).await);
    }
}

/// Beside `blog`, at rest.
fn one_repo() -> World {
    let world = settled(1, &["blog"]);
    world.apply_repo(repo("infra"));
    world.push("infra", A);
    world
}

// Faults: RF13
#[test]
fn actors_of_repos_that_crash_until_they_must_rest_cost_no_purge_anything_and_come_back() {
    let undisturbed = purge_beside(one_repo(), async |_| {});
    let disturbed = purge_beside(one_repo(), async |life| {
        for _ in 0..40 {
            life.world.panic_running();
            life.pass(1_500).await;
        }
        let seen = life.observe().await.running.expect("it shows itself while it rests");
        assert!(seen.troubles.iter().any(|words| words.contains("crashed too often")), "{seen:#?}");
        life.pass(360_000).await;
        life.world.push("infra", B);
        until_ran(life, "infra", B).await;
    });
    assert_eq!(disturbed, undisturbed);
}
