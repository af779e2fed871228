//! Whatever is heard, nothing is agreed on that is not pinned, and nothing is pinned that does not fit the servers.

use std::collections::BTreeSet;

use kernel::id::Member;
use kernel::machine::Timestamp;
use proptest::prelude::*;
use purge::agreement::roster::{Heartbeat, Pin, Roster, Servers, settings};
use purge::bounds::policy::Policy;

const NAMES: [&str; 4] = ["eu-1", "eu-2", "us-1", "us-2"];

/// What happens to a roster.
#[derive(Clone, Debug)]
enum Turn {
    /// A beat of this member, of this life of its process over this ledger, so much later by its own clock.
    Heartbeat(usize, u8, i64),
    /// A beat of our own name, from this ledger.
    Own(u8),
    /// So many seconds pass.
    Pass(u64),
    /// The pin that is wanted is stored.
    Pin,
    /// Somebody writes another pin.
    Forget,
    /// It is started again with other servers in its configuration.
    Servers(Servers),
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        6 => (1..4_usize, 0..2_u8, -5_000..5_000_i64).prop_map(|(who, ledger, later)| Turn::Heartbeat(who, ledger, later)),
        1 => (0..2_u8).prop_map(Turn::Own),
        3 => (1..60_u64).prop_map(Turn::Pass),
        3 => Just(Turn::Pin),
        1 => Just(Turn::Forget),
        1 => servers().prop_map(Turn::Servers),
    ]
}

fn servers() -> impl Strategy<Value = Servers> {
    (0..4_usize, 0..3_usize, prop::bool::weighted(0.1)).prop_map(|(distinct, silent, untried)| Servers {
        distinct,
        identified: (0..distinct).map(|number| format!("redis-up-{number}")).collect(),
        unidentified: (0..silent).map(|number| format!("redis-{number}")).collect(),
        untried,
        ..Servers::default()
    })
}

proptest! {
    #[test]
    fn nothing_is_agreed_on_that_is_not_pinned_and_fits_the_servers(
        configured in prop::sample::subsequence(&NAMES[..], 0..=3),
        mut servers in servers(),
        turns in prop::collection::vec(turn(), 0..60),
    ) {
        let configured: BTreeSet<Member> = configured.into_iter().map(Member::from).collect();
        let own = Member::from("eu-1");
        let settings = settings(&Policy::default(), false);
        let mut roster = Roster::new(own.clone(), "o0".into(), configured.clone(), settings, None);
        let (mut now, mut clock) = (0, 0);
        for turn in turns {
            let at = Timestamp::from_millis(now * 1_000);
            match turn {
                Turn::Heartbeat(who, ledger, later) => {
                    clock += 5_000;
                    let origin = format!("{}-{ledger}", NAMES[who]).as_str().into();
                    let at_ms = clock + later;
                    let _ = roster.hear(at, 0, Heartbeat { member: NAMES[who].into(), origin, at_ms, ..Heartbeat::default() });
                }
                Turn::Own(ledger) => {
                    let origin = format!("o{ledger}").as_str().into();
                    roster.hear_own(at, &Heartbeat { member: own.clone(), origin, ..Heartbeat::default() }, false);
                }
                Turn::Pass(seconds) => now += seconds,
                Turn::Servers(others) => servers = others,
                Turn::Pin => {
                    if let Some(pin) = roster.wanted_pin(at, &servers) {
                        prop_assert!(pin.members.contains(&own) && !servers.untried);
                        // Else only the servers that have answered are others.
                        let is_same = roster.pin().is_some_and(|old| (&old.members, old.of) == (&pin.members, pin.of));
                        prop_assert!(is_same || pin.members.len() == pin.of);
                        prop_assert!(is_same || configured.is_empty() || pin.members == configured);
                        prop_assert!(is_same || !configured.is_empty() || pin.of == servers.distinct.max(1));
                        let before = roster.pin().map(|pin| pin.members.clone()).unwrap_or_default();
                        prop_assert!(before.is_subset(&pin.members), "only a person makes the group smaller");
                        roster.pinned(Some(pin));
                        prop_assert_eq!(roster.wanted_pin(at, &servers), None, "once is enough");
                    }
                }
                Turn::Forget => {
                    let kept = roster.pin().cloned().map(|Pin { mut members, of, mut forgotten, group, answered }| {
                        forgotten.extend(members.iter().filter(|member| **member != own).cloned());
                        members.retain(|member| *member == own);
                        Pin { members, of, forgotten, group, answered }
                    });
                    roster.pinned(kept);
                }
            }
            let standing = roster.standing(Timestamp::from_millis(now * 1_000), &servers);
            if standing.hold.is_none() {
                let pin = roster.pin().cloned();
                prop_assert_eq!(Some(&standing.members), pin.as_ref().map(|pin| &pin.members));
                prop_assert!(standing.members.contains(&own));
                prop_assert!(standing.members.len() <= (servers.distinct + servers.unidentified.len()).max(1));
                prop_assert!(configured.is_empty() || standing.members.is_subset(&configured));
                let left_out = configured.difference(&standing.members);
                for member in left_out {
                    prop_assert!(pin.as_ref().is_some_and(|pin| pin.forgotten.contains(member)), "nobody forgot {}", member);
                }
            }
        }
    }
}
