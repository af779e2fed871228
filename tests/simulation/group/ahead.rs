//! A cluster that is a version ahead of the others: a canary, or the first of a delivery that goes from cluster to cluster.

use super::*;

/// How one member says that its older rollouts stand.
async fn older(life: &Life) -> Vec<String> {
    let seen = life.observe().await;
    seen.tallies.iter().flat_map(|tally| tally.older.clone()).collect()
}

/// How many purges were told as complete.
fn purged(worlds: &[World]) -> usize {
    worlds.iter().flat_map(|world| world.told_ids("web", Kind::PurgeCompleted)).collect::<BTreeSet<_>>().len()
}

#[test]
fn clusters_behind_a_canary_have_each_of_their_versions_purged_once() {
    play(async {
        let (worlds, _) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        roll_out(&lives[0], "web", 2, "2", 4_000).await;
        pass(20_000).await;
        for next in 3..=5_i64 {
            let purges = usize::try_from(next - 3).unwrap();
            roll_out(&lives[0], "web", next, &next.to_string(), 4_000).await;
            pass(60_000).await;
            assert_eq!(creations(&worlds), purges, "the others are at {} still", next - 2);
            let older = older(&lives[0]).await;
            let line = format!(
                "rollout {} (web: {}): complete here before another version took its place",
                next - 1,
                next - 1
            );
            assert!(older.iter().any(|older| older.starts_with(&line)), "{older:?}");
            release(&lives[1..], next - 1, &(next - 1).to_string()).await;
            pass(60_000).await;
            assert_eq!(creations(&worlds), purges + 1, "{:#?}", lives[1].observe().await);
        }
        release(&lives[1..], 5, "5").await;
        pass(120_000).await;
        assert_eq!((creations(&worlds), purged(&worlds)), (4, 4), "2, 3, 4 and 5");
        for life in &lives {
            assert!(life.observe().await.rollouts.is_empty(), "{:#?}", life.observe().await);
            assert_eq!(life.world.told("web", Kind::RolloutSuperseded).len(), 0);
            assert!(!life.world.record(&id("web")).expect("a record").seeks());
        }
    });
}

#[test]
fn a_canary_that_goes_back_is_waited_for() {
    play(async {
        let (worlds, _) = group(3);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        for (generation, tag) in [(2, "2"), (3, "3"), (4, "1")] {
            roll_out(&lives[0], "web", generation, tag, 4_000).await;
            pass(20_000).await;
        }
        assert_eq!(lives[0].world.told("web", Kind::RolloutSuperseded).len(), 2, "2 and 3 were left");
        let before = creations(&worlds);
        release(&lives[1..], 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), before);
        let state = lives[1].observe().await.rollouts.first().map(|rollout| rollout.state.clone());
        assert!(state.as_ref().is_some_and(|state| state.contains("eu-1, which is at web: 1")), "{state:?}");
        roll_out(&lives[0], "web", 5, "2", 4_000).await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), before + 1);
    });
}
