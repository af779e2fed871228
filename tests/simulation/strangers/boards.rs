//! Whoever can write to one Redis of a group writes copies of a member's own record.

use allclear::actors::{Grouping, Settings};
use kernel::id::Seq;
use purge::agreement::roster::Trust;
use purge::records::record::Record;
use support::stage::{Life, id};

use crate::group::{creations, group, member, pass, play, release, start};

fn lives(worlds: &[support::fakes::World], trust: Trust) -> Vec<Life> {
    let settings = |name: &str| {
        let grouping = Grouping { trust, ..Grouping::default() };
        Settings { grouping: Some(grouping), ..member(name) }
    };
    worlds.iter().zip(crate::group::NAMES).map(|(world, name)| start(world, settings(name))).collect()
}

// Faults: T8
/// One copy of eu-1's record, far ahead of its ledger, on every Redis. With a key only a member can have written it, so the
/// workload is held. Without one it is told, and the rollout goes on: counted above the copy, so that eu-2 hears of it.
#[test]
fn a_forged_copy_of_our_own_record_holds_nothing_up_without_a_key() {
    for (trust, purges) in [(Trust::Unsigned, 1), (Trust::Signed, 0)] {
        play(async {
            let (worlds, boards) = group(2);
            let forged = Record { revision: 40, ..Record::first(Seq(90)) };
            for board in &boards {
                board.put("eu-1", "eu-1-0", &id("web"), forged.clone().into()).await;
            }
            let lives = lives(&worlds, trust);
            pass(15_000).await;
            release(&lives, 2, "2").await;
            pass(90_000).await;
            println!("T8: purges after a forged copy of our own, {trust:?}: {} (aim {purges})", creations(&worlds));
            assert_eq!(creations(&worlds), purges, "{trust:?}");
            let seen = lives[0].observe().await;
            let regressed = seen.group.as_ref().expect("a group").regressed.len();
            assert_eq!(regressed, usize::from(trust == Trust::Signed), "{:?}", seen.troubles);
        });
    }
}

// Faults: T8
/// The same while the rollout is under way: what was begun goes on under a higher number, and is purged.
#[test]
fn a_copy_forged_in_the_middle_of_a_rollout_ends_in_a_purge_without_a_key() {
    play(async {
        let (worlds, boards) = group(2);
        let lives = lives(&worlds, Trust::UnsignedOnPurpose);
        pass(15_000).await;
        support::stage::roll_out(&lives[0], "web", 2, "2", 4_000).await;
        let forged = Record { revision: 40, ..Record::first(Seq(90)) };
        for board in &boards {
            board.put("eu-1", "eu-1-0", &id("web"), forged.clone().into()).await;
        }
        pass(10_000).await;
        support::stage::roll_out(&lives[1], "web", 2, "2", 4_000).await;
        pass(180_000).await;
        println!("T8: purges after a copy that was forged on the way {} (aim 1)", creations(&worlds));
        assert_eq!(creations(&worlds), 1);
    });
}
