//! Two ledgers under one member's name: one cluster runs two allclears, two clusters took one name, or a ledger was made anew.
//!
//! The one that was known first goes on, and the others take no notice of the second (`peer_status`). The second leaves no more
//! beats, and waits until the first has been silent for [`HEARD_FOR`]: then its ledger is gone, and there is one again (decision 56).

use std::time::Duration;

use super::{HEARD_FOR, Heartbeat, Roster};
use kernel::id::{Member, Origin};
use kernel::machine::Timestamp;

/// How much longer the one with the later origin waits, where two wait for each other: two polls, and what they take.
const GIVES_WAY_FOR: Duration = Duration::from_secs(15);

/// Another allclear under our own name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Twin {
    origin: Origin,
    /// Its newest beat: of which life, and where in it.
    newest: (String, u64, i64),
    /// When that was new to us.
    at: Timestamp,
    /// It was there before we had left a beat.
    was_first: bool,
    /// It was seen to beat again. What was left once may be an old beat, or that of one that gives way to us.
    counts_on: bool,
}

impl Roster {
    /// The same roster where the configuration names our own Redis alone: whoever else reports there is another cluster.
    pub fn on_own_redis_only(mut self, is_so: bool) -> Self {
        self.only_own = is_so;
        self
    }

    /// Takes in a beat of our own name. `ours_was_there`: the board had one of ours before.
    pub fn hear_own(&mut self, now: Timestamp, beat: &Heartbeat, ours_was_there: bool) {
        if beat.origin == self.origin {
            return;
        }
        let newest = (beat.boot.clone(), beat.count, beat.at_ms);
        let known = self.twin.take().filter(|twin| twin.origin == beat.origin && self.is_near(now, twin));
        self.twin = Some(match known {
            None => Twin { origin: beat.origin.clone(), newest, at: now, was_first: !ours_was_there, counts_on: false },
            Some(twin) if twin.newest == newest => twin,
            Some(twin) => Twin { newest, at: now, counts_on: true, ..twin },
        });
    }

    /// True if a twin's last beat is so recent that it may be at work.
    fn is_near(&self, now: Timestamp, twin: &Twin) -> bool {
        let gives_way = if self.origin > twin.origin { GIVES_WAY_FOR } else { Duration::ZERO };
        now.since(twin.at) <= HEARD_FOR + gives_way
    }

    fn near_twin(&self, now: Timestamp) -> Option<&Twin> {
        self.twin.as_ref().filter(|twin| self.is_near(now, twin))
    }

    /// Whether we are the second under our name. One that only begins to beat after us, and goes on, has not seen us, nor we it: then
    /// the origins decide.
    fn is_second(&self, now: Timestamp) -> bool {
        let comes_first = |twin: &Twin| twin.was_first || (twin.counts_on && twin.origin < self.origin);
        self.near_twin(now).is_some_and(comes_first)
    }

    /// Whether to leave no beat, because another one has our name.
    pub fn gives_way(&self, now: Timestamp) -> bool {
        !self.only_own && self.is_second(now)
    }

    /// Why nothing may be done while another one has our name, if so.
    pub(super) fn twins(&self, now: Timestamp) -> Option<String> {
        let Self { own, .. } = self;
        let twin = self.near_twin(now)?;
        if self.only_own {
            return Some(format!(
                "another cluster or allclear (ledger {}) reports by the name {own} through the only Redis that is configured: if they \
                 are clusters, give each a Redis and a group.member of its own, and the addresses of all others \
                 (REMOTE_REDIS_HOSTS); if they have nothing to do with each other, give each its group.name",
                twin.origin
            ));
        }
        self.is_second(now).then(|| {
            format!(
                "another allclear reports by the name {own} (its ledger is {}) and comes first, so this one waits: if this cluster \
                 runs two allclears, give each its group.name; if two clusters have one name, give one of them another \
                 group.member; if the ledger was made anew, it goes on by itself {} s after the former was last heard from",
                twin.origin,
                HEARD_FOR.as_secs()
            )
        })
    }

    /// Names under which two allclears report, each with both ledgers, while one of them is at work.
    pub fn namesakes(&self, now: Timestamp) -> Vec<(Member, Vec<Origin>)> {
        let ours = self.near_twin(now).filter(|twin| twin.counts_on && !self.is_second(now));
        let ours = ours.map(|twin| (self.own.clone(), vec![self.origin.clone(), twin.origin.clone()]));
        let theirs = self.peers.values().filter_map(|peer| {
            let ledgers = peer.twins(now)?.into_iter().cloned().collect();
            Some((peer.beat.member.clone(), ledgers))
        });
        ours.into_iter().chain(theirs).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::agreement::roster::{Pin, Servers};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn roster(origin: &str) -> Roster {
        let pin = Pin { members: BTreeSet::from(["eu-1".into(), "eu-2".into()]), of: 2, ..Pin::default() };
        Roster::new("eu-1".into(), origin.into(), BTreeSet::new(), BTreeMap::new(), Some(pin))
    }

    fn beat(origin: &str, count: u64) -> Heartbeat {
        Heartbeat {
            member: "eu-1".into(),
            origin: origin.into(),
            boot: origin.to_owned(),
            count,
            ..Heartbeat::default()
        }
    }

    fn hold(roster: &Roster, seconds: u64) -> String {
        let servers = Servers { distinct: 2, ..Servers::default() };
        roster.standing(at(seconds), &servers).hold.map(|hold| hold.words).unwrap_or_default()
    }

    #[test]
    fn the_one_that_was_there_first_goes_on_and_the_second_waits_until_it_is_silent() {
        for (first, second) in [("a", "z"), ("z", "a")] {
            let (mut old, mut new) = (roster(first), roster(second));
            // The new one finds the beat of the old one when it leaves its first, and leaves no other.
            new.hear_own(at(0), &beat(first, 7), false);
            old.hear_own(at(1), &beat(second, 1), true);
            assert!(hold(&new, 1).contains("comes first, so this one waits") && new.gives_way(at(1)));
            assert_eq!((hold(&old, 1).as_str(), old.gives_way(at(1))), ("", false), "{first} was first");
            for count in 0..20 {
                new.hear_own(at(5 * count), &beat(first, 8 + count), false);
                assert!(new.gives_way(at(5 * count)));
            }
            // Its ledger was made anew: the old beats end.
            assert!(hold(&new, 95 + 39).contains("goes on by itself 40 s after"));
            assert_eq!((hold(&new, 95 + 56).as_str(), new.gives_way(at(95 + 56))), ("", false));
        }
    }

    #[test]
    fn of_two_that_begin_together_one_goes_on() {
        let (mut one, mut other) = (roster("a"), roster("b"));
        for count in 1..4 {
            one.hear_own(at(5 * count), &beat("b", count), true);
            other.hear_own(at(5 * count), &beat("a", count), true);
        }
        assert_eq!((one.gives_way(at(15)), other.gives_way(at(15))), (false, true));
        assert_eq!(one.namesakes(at(15)).len(), 1, "and says that there is another");
        // Each found the other's beat on some board: the later origin waits longer, so that they do not wait in turn for ever.
        let (mut one, mut other) = (roster("a"), roster("b"));
        one.hear_own(at(0), &beat("b", 1), false);
        other.hear_own(at(0), &beat("a", 1), false);
        assert!(one.gives_way(at(40)) && other.gives_way(at(40)));
        assert!(!one.gives_way(at(41)) && other.gives_way(at(41)));
        other.hear_own(at(46), &beat("a", 2), false);
        assert!(other.gives_way(at(60)));
    }

    #[test]
    fn on_one_redis_that_is_all_there_is_everybody_waits_who_has_a_namesake() {
        let mut roster = roster("a").on_own_redis_only(true);
        roster.hear_own(at(0), &beat("b", 1), true);
        assert!(hold(&roster, 1).contains("through the only Redis that is configured") && !roster.gives_way(at(1)));
    }
}
