//! Clusters that are restored from a backup, under a running process or while there is none.

use std::cell::RefCell;

use support::fakes::World;
use support::fakes::backup::Backup;
use support::stage::{Life, Stage, deployment, id, life, roll_out, settled};

fn references(world: &World) -> usize {
    world.state().created.len()
}

/// `web` has been rolled out since the backup, `blog` has not.
async fn rolled_out_since(life: &Life) -> Backup {
    life.pass(2_000).await;
    let backup = life.world.backup();
    roll_out(life, "web", 2, "2", 10_000).await;
    life.pass(60_000).await;
    assert_eq!((life.world.creations("EWEB").len(), life.world.creations("EBLOG").len()), (1, 0));
    backup
}

// Faults: A5
#[test]
fn after_a_restore_what_runs_is_purged_once_and_no_number_is_given_out_twice() {
    let world = settled(1, &["web", "blog"]);
    life(&world, async |life| {
        let backup = rolled_out_since(life).await;
        let before = life.world.record(&id("web")).unwrap();
        life.world.restore(&backup);
        life.pass(60_000).await;
        let web = life.world.record(&id("web")).unwrap();
        assert!(web.seq > before.seq && !web.is_open(), "{web:?}");
        assert_eq!(web.version, deployment("web", 1, 1, "1", Stage::Complete).version.unwrap());
        assert_eq!((life.world.creations("EWEB").len(), life.world.creations("EBLOG").len()), (2, 0));

        roll_out(life, "web", 2, "2", 10_000).await;
        roll_out(life, "blog", 2, "2", 10_000).await;
        life.pass(60_000).await;
        assert_eq!((life.world.creations("EWEB").len(), life.world.creations("EBLOG").len()), (3, 1));
        assert_eq!(references(&life.world), 4, "each under a reference of its own");
    });
}

// Faults: A5
#[test]
fn a_restore_in_the_middle_of_a_rollout_ends_it_and_begins_another() {
    let world = settled(2, &["web", "blog"]);
    life(&world, async |life| {
        let backup = rolled_out_since(life).await;
        life.world.set(deployment("web", 1, 3, "3", Stage::Half));
        life.pass(10_000).await;
        life.world.restore(&backup);
        life.pass(120_000).await;
        let web = life.world.record(&id("web")).unwrap();
        assert!(!web.is_open(), "{web:?}");
        assert_eq!(web.version, deployment("web", 1, 1, "1", Stage::Complete).version.unwrap());
        assert_eq!((life.world.creations("EWEB").len(), references(&life.world)), (2, 2));
    });
}

#[test]
fn a_workload_that_was_deleted_since_the_backup_counts_on_when_it_is_back() {
    let world = settled(3, &["web", "blog"]);
    life(&world, async |life| {
        life.pass(2_000).await;
        roll_out(life, "web", 2, "2", 10_000).await;
        life.pass(60_000).await;
        let backup = life.world.backup();
        roll_out(life, "web", 3, "3", 10_000).await;
        life.pass(60_000).await;
        let before = life.world.record(&id("web")).unwrap();
        life.world.delete(&id("web"));
        life.pass(60_000).await;
        assert_eq!(life.world.record(&id("web")), None);
        life.world.restore(&backup);
        life.pass(60_000).await;
        let web = life.world.record(&id("web")).unwrap();
        assert!(web.seq > before.seq, "{} after {}", web.seq, before.seq);
        assert_eq!(references(&life.world), 3);
    });
}

#[test]
fn after_a_restore_while_nothing_ran_an_invalidation_from_before_it_is_not_taken_for_a_purge() {
    let world = settled(4, &["web", "blog"]);
    let backup = RefCell::new(None);
    life(&world, async |life| {
        let before = rolled_out_since(life).await;
        life.pass(3_600_000).await;
        backup.replace(Some(before));
    });
    world.restore(&backup.take().unwrap());
    life(&world, async |life| {
        life.pass(60_000).await;
        roll_out(life, "web", 2, "2", 10_000).await;
        life.pass(60_000).await;
        assert!(!life.world.record(&id("web")).unwrap().is_open());
        assert_eq!((life.world.creations("EWEB").len(), references(&life.world)), (2, 2), "its number was used before");
        roll_out(life, "web", 3, "3", 10_000).await;
        life.pass(60_000).await;
        assert_eq!(life.world.creations("EWEB").len(), 3);
    });
}
