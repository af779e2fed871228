//! Members that are forgotten, renamed, or come back.

use purge::agreement::roster::Pin;

use super::*;

// Faults: D3
#[test]
fn a_member_that_is_forgotten_is_not_waited_for_any_more() {
    play(async {
        let (worlds, _) = group(2);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        let gone = Pin {
            members: BTreeSet::from(["eu-1".into()]),
            of: 2,
            forgotten: BTreeSet::from(["eu-2".into()]),
            ..Pin::default()
        };
        let ledger = worlds[0].state().ledger.clone();
        let pin = ledger.pin().await.unwrap();
        assert!(ledger.store_pin(&gone, pin.as_ref()).await.unwrap());
        pass(15_000).await;
        let seen = lives[0].observe().await;
        let agreed: Vec<_> = seen.group.expect("a group").members.into_iter().filter(|member| member.agreed).collect();
        assert_eq!(agreed.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["eu-1"]);
        release(&lives[..1], 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds[..1]), 1);
    });
}

/// As `allclear group forget` does.
async fn forget(world: &World, name: &str) {
    let ledger = world.state().ledger.clone();
    let pin = ledger.pin().await.unwrap().expect("it is pinned");
    let members = pin.members.iter().filter(|member| member.0 != name).cloned().collect();
    let forgotten = pin.forgotten.iter().cloned().chain([name.into()]).collect();
    assert!(ledger.store_pin(&Pin { members, forgotten, ..pin.clone() }, Some(&pin)).await.unwrap());
}

#[test]
fn a_member_is_renamed_by_the_recipe_and_its_old_name_comes_back_to_nobodys_harm() {
    play(async {
        let (worlds, boards) = group(3);
        let mut lives = start_all(&worlds);
        agreed(&lives).await;
        release(&lives, 2, "2").await;
        pass(60_000).await;
        // Its configuration, and a restart; the ledger is the same.
        let ends = lives.pop().expect("three lives");
        ends.root.send(Drain).await.expect("it ends");
        pass(5_000).await;
        let ledger = worlds[2].state().ledger.clone();
        worlds[2].life_ends();
        worlds[2].joins("us-east", &[boards[2].clone(), boards[0].clone(), boards[1].clone()]);
        worlds[2].state().ledger = ledger;
        lives.push(start(&worlds[2], member("us-east")));
        pass(60_000).await;
        let held = hold(&lives[0].observe().await).expect("a hold");
        assert!(held.contains("if us-1 is now called us-east") && held.contains("group forget us-1"), "{held}");
        for world in &worlds[..2] {
            forget(world, "us-1").await;
        }
        agreed(&lives).await;
        // They have told each other.
        pass(15_000).await;
        for life in &lives {
            let group = life.observe().await.group.expect("a group");
            let agreed: Vec<_> = group.members.iter().filter(|member| member.agreed).map(|m| m.name.as_str()).collect();
            assert_eq!((agreed, group.holds), (vec!["eu-1", "eu-2", "us-east"], Vec::new()));
        }
        release(&lives, 3, "3").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 2);
        // Somebody starts it once more under its old name.
        let old = World::new(9);
        old.joins("us-1", &boards);
        let old = start(&old, member("us-1"));
        pass(60_000).await;
        let seen = lives[0].observe().await;
        assert_eq!(hold(&seen), None);
        let words = "us-1 reports but was forgotten";
        assert!(seen.troubles.iter().any(|trouble| trouble.starts_with(words)), "{:?}", seen.troubles);
        release(&lives, 4, "4").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 3);
        drop(old);
    });
}

#[test]
fn a_second_allclear_under_a_members_name_waits_and_the_group_goes_on_with_the_first() {
    play(async {
        let (worlds, boards) = group(2);
        let lives = start_all(&worlds);
        agreed(&lives).await;
        // Another namespace of the same cluster: another ledger, and the name of the cluster.
        let beside = World::new(9);
        beside.joins("eu-1", &boards);
        beside.lose_ledger();
        let second = start(&beside, member("eu-1"));
        pass(90_000).await;
        let held = hold(&second.observe().await).expect("a hold");
        assert!(held.contains("give each its group.name"), "{held}");
        for life in &lives {
            assert_eq!(hold(&life.observe().await), None);
        }
        release(&lives, 2, "2").await;
        pass(60_000).await;
        assert_eq!(creations(&worlds), 1);
    });
}
