//! Workloads whose names differ from cluster to cluster (decision 55).

use kernel::id::WorkloadId;
use kernel::names::group_name::GroupName;
use kernel::names::host::Host;
use purge::bounds::tenants::{Allowance, Tenants};
use purge::workloads::workload::{Tuning, Workload};

use super::*;

fn eu() -> WorkloadId {
    WorkloadId::deployment("prod", "web-eu")
}

/// `prod/web-eu`, which serves the site of `shop/web` and asks to be called so.
fn called(name: &str, generation: i64, tag: &str, stage: Stage) -> Workload {
    let tuning = Tuning {
        group_name: Some(GroupName::parse(name).expect("a name")),
        hosts: Some(vec![Host::parse("web.example.com").expect("a host")]),
        ..Tuning::default()
    };
    Workload { id: eu(), tuning, ..deployment("web", 1, generation, tag, stage) }
}

/// Two clusters: `shop/web` in the one, and `prod/web-eu` in the other, under that name.
fn differing() -> (Vec<World>, Vec<Life>) {
    let (worlds, _) = group(2);
    worlds[1].delete(&id("web"));
    worlds[1].set(called("shop/web", 1, "1", Stage::Complete));
    let lives = worlds.iter().zip(NAMES).map(|(world, name)| start(world, allowed(name)));
    let lives = lives.collect();
    (worlds, lives)
}

fn allowed(name: &str) -> Settings {
    let allowance = Allowance {
        namespaces: ["prod".to_owned()].into(),
        group_names: ["shop".to_owned()].into(),
        ..Allowance::default()
    };
    let mut settings = member(name);
    settings.policy.tenants = Tenants { allowed: vec![allowance], ..Tenants::default() };
    settings
}

/// Rolls `prod/web-eu` out.
async fn roll_out_called(life: &Life, name: &str, generation: i64, tag: &str) {
    life.world.set(called(name, generation, tag, Stage::Half));
    pass(2_000).await;
    life.world.set(called(name, generation, tag, Stage::Complete));
}

fn seq(world: &World, of: &WorkloadId) -> Seq {
    world.record(of).expect("a record").seq
}

#[test]
fn workloads_of_other_names_are_purged_together_once() {
    play(async {
        let (worlds, lives) = differing();
        agreed(&lives).await;
        roll_out(&lives[0], "web", 2, "2", 4_000).await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0, "prod/web-eu is not there yet");
        roll_out_called(&lives[1], "shop/web", 2, "2").await;
        pass(120_000).await;
        assert_eq!(creations(&worlds), 1);
        for (world, name) in worlds.iter().zip([id("web"), eu()]) {
            assert!(!world.record(&name).expect("a record").seeks());
        }
        assert_eq!(worlds[1].record(&eu()).expect("a record").name_in_group(&eu()), &id("web"));
    });
}

#[test]
fn a_cluster_that_never_had_a_workload_of_the_name_is_told_so_with_the_cure() {
    play(async {
        let (worlds, _) = group(2);
        worlds[1].delete(&id("web"));
        let lives = start_all(&worlds);
        agreed(&lives).await;
        roll_out(&lives[0], "web", 2, "2", 4_000).await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 0);
        let seen = lives[0].observe().await;
        let why = seen.tallies.iter().flat_map(|tally| &tally.members).find_map(|ballot| ballot.awaited.clone());
        let why = why.expect("eu-2 is waited for");
        assert!(why.starts_with("has never had a workload of this name"), "{why}");
        assert!(why.contains("allclear.dev/group-name") && why.contains("group.absent = \"ignore\""), "{why}");
    });
}

#[test]
fn a_workload_that_is_renamed_in_the_middle_of_a_vote_is_purged_once_and_then_goes_by_the_new_name() {
    play(async {
        let (worlds, lives) = differing();
        agreed(&lives).await;
        roll_out(&lives[0], "web", 2, "2", 4_000).await;
        roll_out_called(&lives[1], "shop/web", 2, "2").await;
        let votes = |world: &World| world.record(&eu()).is_some_and(|record| !record.votes.is_empty());
        lives[1].until("it has voted", 60_000, votes).await;
        worlds[1].set(called("shop/store", 2, "2", Stage::Complete));
        let named = |world: &World| world.record(&eu()).expect("a record").name_in_group(&eu()).clone();
        let before = seq(&worlds[1], &eu());
        pass(1_000).await;
        assert_eq!((named(&worlds[1]), votes(&worlds[1])), (id("web"), true), "until the vote has ended");
        pass(120_000).await;
        assert_eq!(creations(&worlds), 1);
        assert_eq!((named(&worlds[1]), votes(&worlds[1])), (id("store"), false));
        assert_eq!(seq(&worlds[1], &eu()).0, before.0 + 2, "no change of version, and a number of its own");
        assert!(!worlds[0].record(&id("web")).expect("a record").seeks(), "the others have seen it end");

        // They know each other no more, until the other one is called so as well.
        roll_out(&lives[0], "web", 3, "3", 4_000).await;
        roll_out_called(&lives[1], "shop/store", 3, "3").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
        let web = deployment("web", 1, 3, "3", Stage::Complete);
        let tuning = Tuning { group_name: Some(GroupName::parse("store").expect("a name")), ..Tuning::default() };
        worlds[0].set(Workload { tuning, ..web });
        pass(120_000).await;
        assert_eq!(creations(&worlds), 2);
    });
}

#[test]
fn of_two_under_one_name_the_one_really_called_so_stays_and_the_other_takes_over_when_it_is_gone() {
    play(async {
        let (worlds, mut lives) = differing();
        agreed(&lives).await;
        roll_out(&lives[0], "web", 2, "2", 4_000).await;
        roll_out_called(&lives[1], "shop/web", 2, "2").await;
        pass(120_000).await;
        assert_eq!(creations(&worlds), 1);
        // It comes, at the version before; the other one had a higher number.
        worlds[1].set(deployment("web", 1, 1, "2", Stage::Complete));
        pass(120_000).await;
        assert_eq!(creations(&worlds), 2, "what is new is purged, and is counted above what the other one had");
        roll_out_called(&lives[1], "shop/web", 3, "3").await;
        pass(60_000).await;
        let seen = lives[1].observe().await;
        let refused = seen.rollouts.iter().find(|rollout| rollout.workload == eu()).expect("it waits");
        assert!(refused.state.contains("shop/web is really called so"), "{}", refused.state);
        let tally = seen.tallies.iter().find(|tally| tally.workload == eu()).expect("a tally");
        assert!(tally.state.contains("is that of another workload of this cluster"), "{}", tally.state);

        // Also in another life.
        let ends = lives.pop().expect("two lives");
        ends.root.send(Drain).await.expect("it ends");
        pass(5_000).await;
        worlds[1].life_ends();
        lives.push(start(&worlds[1], allowed(NAMES[1])));
        agreed(&lives).await;
        pass(15_000).await;
        release(&lives, 3, "3").await;
        pass(120_000).await;
        assert_eq!(creations(&worlds), 3, "of shop/web in both clusters");
        assert!(worlds[1].record(&eu()).expect("a record").seeks(), "it waits for its name");

        worlds[1].delete(&id("web"));
        pass(120_000).await;
        assert_eq!(creations(&worlds), 4, "what waited for its name");
        roll_out(&lives[0], "web", 4, "4", 4_000).await;
        roll_out_called(&lives[1], "shop/web", 4, "4").await;
        pass(120_000).await;
        assert_eq!(creations(&worlds), 5);
        for life in &lives {
            assert_eq!(hold(&life.observe().await), None);
        }
    });
}
