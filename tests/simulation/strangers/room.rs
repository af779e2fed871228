//! T3: a part of the ledger that others have filled. Whoever suffers is told, and is served once there is room.

use notices::notice::Kind;
use support::fakes::{Fault, Millis, World};
use support::stage::{Life, Stage, deployment, id, life, roll_out, settled};

/// When Events said of this workload that it is stuck for want of room.
fn told(world: &World, name: &str) -> Vec<Millis> {
    let about = |(_, _, notice): &&(_, _, notices::notice::Notice)| {
        notice.about.subject() == id(name)
            && notice.kind == Kind::RolloutStuck
            && notice.message.contains("no room, as simulated")
    };
    world.state().published.iter().filter(about).map(|(at, ..)| *at).collect()
}

// Faults: T3
#[test]
fn first_records_without_room_are_put_aside_and_their_owners_are_told_once() {
    let world = settled(1, &["web", "late"]);
    for _ in 0..2 {
        world.plan("ledger.store_all", "shop/late", 0, Fault::Full);
    }
    life(&world, async |life: &mut Life| {
        life.pass(5_000).await;
        assert!(world.record(&id("web")).is_some() && world.record(&id("late")).is_none());
        let troubles = life.observe().await.troubles.join("\n");
        assert!(troubles.contains("shop/late") && troubles.contains("no room"), "{troubles}");
        // The neighbour is served meanwhile.
        roll_out(life, "web", 2, "2", 4_000).await;
        life.until("the neighbour is purged", 20_000, |world| !world.creations("EWEB").is_empty()).await;
        life.until("there is room at last", 900_000, |world| world.record(&id("late")).is_some()).await;
        assert_eq!(told(&world, "late").len(), 1, "told once, refused twice");
        assert_eq!(world.asked("ledger.store_all", "shop/late").len(), 3, "not in a loop");
        life.pass(2_000).await;
        assert_eq!(life.observe().await.troubles, Vec::<String>::new(), "shown only as long as it lasts");
        roll_out(life, "late", 2, "2", 4_000).await;
        life.until("it is followed from then on", 20_000, |world| !world.creations("ELATE").is_empty()).await;
    });
}

// Faults: T3
#[test]
fn a_rollout_whose_record_has_no_room_is_told_of_and_purged_once_there_is_some() {
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life: &mut Life| {
        life.pass(2_000).await;
        for _ in 0..20 {
            world.plan("ledger.store", "shop/web", 0, Fault::Full);
        }
        world.set(deployment("web", 1, 2, "2", Stage::Complete));
        roll_out(life, "blog", 2, "2", 4_000).await;
        life.until("the neighbour is purged", 20_000, |world| !world.creations("EBLOG").is_empty()).await;
        assert_eq!(world.creations("EWEB").len(), 0);
        let shown = format!("{:?}", life.observe().await.rollouts);
        assert!(shown.contains("no room, as simulated"), "the rollout says what it waits for: {shown}");
        life.until("there is room at last", 3_600_000, |world| !world.creations("EWEB").is_empty()).await;
        life.until("it is over", 300_000, |world| world.record(&id("web")).is_some_and(|record| !record.is_open()))
            .await;
    });
    let refused = world.asked("ledger.store", "shop/web").len();
    println!(
        "T3: an Event of a rollout without room {} (aim 1), writes until there was room {refused} (21 and more)",
        told(&world, "web").len()
    );
    assert_eq!(told(&world, "web").len(), 1);
}
