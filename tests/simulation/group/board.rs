//! What the board of each member shows of all clusters.

use super::*;
use purge::rollouts::part::PartSeen;

/// The part of `member` in `shop/web`, as this life shows it.
async fn part(life: &Life, member: &str) -> PartSeen {
    let seen = life.observe().await;
    let parts = seen.parts.iter().find(|parts| parts.workload == id("web")).expect("it is shown");
    parts.members.iter().find(|part| part.member == member).expect("every member has a part").clone()
}

/// Goal: the page of either member tells what the other waits for and since when, how it ended in both, and that one is silent. Method:
/// eu-1 is complete long before eu-2, whose pods come slowly; then both end, and eu-2 stops.
#[test]
fn each_member_shows_all_parts_in_flight_and_after_the_end_and_says_when_one_is_silent() {
    play(async {
        let (worlds, _) = group(2);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        release(&lives[..1], 2, "2").await;
        worlds[1].set(deployment("web", 1, 2, "2", Stage::Half));
        pass(90_000).await;
        let theirs = part(&lives[0], "eu-2").await;
        assert_eq!((theirs.phase.as_str(), theirs.version.as_str(), theirs.is_self), ("rolling", "web: 2", false));
        assert!(theirs.says.as_ref().is_some_and(|says| says.contains(" of 3 pods")), "{theirs:?}");
        assert!(theirs.for_s.is_some_and(|seconds| (80..=95).contains(&seconds)), "{theirs:?}");
        assert_eq!((theirs.edge.as_deref(), &theirs.ended, &theirs.silent), (Some("web: 1"), &None, &None));
        let ours = part(&lives[1], "eu-1").await;
        assert_eq!((ours.phase.as_str(), &ours.says), ("complete", &None), "it waits for others alone");
        assert_eq!(creations(&worlds), 0);

        worlds[1].set(deployment("web", 1, 2, "2", Stage::Complete));
        pass(120_000).await;
        assert_eq!(creations(&worlds), 1);
        for life in &lives {
            assert_eq!(life.observe().await.tallies, [], "nothing moves any more");
            for member in &NAMES[..2] {
                let ended = part(life, member).await;
                assert_eq!((ended.phase.as_str(), ended.edge.as_deref()), ("complete", Some("web: 2")), "{ended:?}");
                assert!(ended.ended.as_ref().is_some_and(|how| how.starts_with("purged (EWEB by ")), "{ended:?}");
                assert_eq!(ended.silent, None);
            }
        }
        lives[1].root.send(Drain).await.expect("it ends");
        pass(90_000).await;
        let last = part(&lives[0], "eu-2").await;
        assert_eq!(last.phase, "complete", "what was last known");
        assert!(last.silent.is_some_and(|why| why.starts_with("has not been heard from for more than a minute")));
    });
}
