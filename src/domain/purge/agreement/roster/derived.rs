//! A group whose name was derived from the namespaces it watches, because only the variables of the old program are given: there, one
//! worker for each namespace of a cluster was usual, and groups had no names (decision 56).
//!
//! Members of earlier releases are in the group `default`. While one reports there that watches a namespace of ours, the derived name
//! would divide what belongs together, so nothing is done.

use std::collections::{BTreeMap, BTreeSet};

use super::{HEARD_FOR, Heartbeat, Roster, listed};
use kernel::id::Member;
use kernel::machine::Timestamp;

/// Members of the group `default` that are remembered. A group has 32 at most, and others can be made up.
const ELDERS_MAX: usize = 64;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Derived {
    name: String,
    watch: BTreeSet<String>,
    /// A server has said who is in the group `default`.
    looked: bool,
    /// Its members, what they watch, and when that was read.
    elders: BTreeMap<Member, (BTreeSet<String>, Timestamp)>,
}

impl Roster {
    /// The same roster of a group whose name was derived from these namespaces.
    pub fn derived_from(mut self, name: String, watch: BTreeSet<String>) -> Self {
        self.derived = Some(Derived { name, watch, looked: false, elders: BTreeMap::new() });
        self
    }

    /// Takes in the beats of the group `default` on a server.
    pub fn hear_elders(&mut self, now: Timestamp, beats: Vec<Heartbeat>) {
        let origin = self.origin.clone();
        let Some(Derived { looked, elders, .. }) = &mut self.derived else { return };
        *looked = true;
        elders.retain(|_, (_, at)| now.since(*at) <= HEARD_FOR);
        // What we left there ourselves, by an earlier release.
        for beat in beats.into_iter().filter(|beat| beat.origin != origin) {
            if elders.len() < ELDERS_MAX || elders.contains_key(&beat.member) {
                elders.insert(beat.member, (beat.stands.watch, now));
            }
        }
    }

    /// The name that the pin keeps, so that a later start goes on by it.
    pub(super) fn name_to_pin(&self) -> String {
        match (&self.pin, &self.derived) {
            (Some(pin), _) => pin.group.clone(),
            (None, Some(derived)) => derived.name.clone(),
            (None, None) => String::new(),
        }
    }

    /// Whether it is not known yet who is in the group `default`.
    pub(super) fn has_to_look(&self) -> bool {
        self.derived.as_ref().is_some_and(|derived| !derived.looked)
    }

    /// Why the derived name is in doubt, if it is.
    pub(super) fn divided(&self, now: Timestamp) -> Option<String> {
        let Derived { name, watch, elders, .. } = self.derived.as_ref()?;
        let overlaps = |theirs: &BTreeSet<String>| theirs.is_empty() || !theirs.is_disjoint(watch);
        let near = elders.iter().filter(|(_, (theirs, at))| now.since(*at) <= HEARD_FOR && overlaps(theirs));
        let (silent, same): (Vec<_>, Vec<_>) = near.partition(|(_, (theirs, _))| theirs.is_empty());
        let names = |elders: &[(&Member, &(BTreeSet<String>, Timestamp))]| {
            listed(&elders.iter().map(|(member, _)| (*member).clone()).collect())
        };
        let watch: Vec<&str> = watch.iter().map(String::as_str).collect();
        let parts = [
            (!same.is_empty()).then(|| format!("{} watches {} there", names(&same), watch.join(", "))),
            (!silent.is_empty()).then(|| format!("{} does not say there which namespaces it watches", names(&silent))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| {
            format!(
                "this group is called {name} after its namespaces, and on its Redis servers a group called default reports: {}; set \
                 group.name = \"default\" (ALLCLEAR__GROUP__NAME) here to be a member of that one; if it is another one, upgrade its \
                 members, or give them a group.name",
                parts.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::roster::{Pin, Reason, Servers, Stands};

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn derived() -> Roster {
        let roster = Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), BTreeMap::new(), None);
        roster.derived_from("ns-shop".to_owned(), names(&["shop"]))
    }

    fn elder(watch: &[&str]) -> Heartbeat {
        let stands = Stands { watch: names(watch), ..Stands::default() };
        Heartbeat { member: "us-1".into(), origin: "o9".into(), stands, ..Heartbeat::default() }
    }

    #[test]
    fn a_derived_name_is_kept_in_the_pin_and_held_while_a_group_default_watches_the_same() {
        let servers = Servers { distinct: 2, ..Servers::default() };
        let mut roster = derived();
        let _ = roster.hear(at(0), 0, Heartbeat { member: "eu-2".into(), origin: "o2".into(), ..Heartbeat::default() });
        let hold = |roster: &Roster, seconds| roster.standing(at(seconds), &servers).hold;
        assert_eq!(hold(&roster, 0).unwrap().reason, Reason::Starting, "nobody has looked yet");
        assert_eq!(roster.wanted_pin(at(0), &servers), None);
        for (watch, held) in [(&["shop"][..], true), (&["blog", "shop"], true), (&[], true), (&["blog"], false)] {
            let mut roster = roster.clone();
            roster.hear_elders(at(1), vec![elder(watch)]);
            let words = hold(&roster, 1).map(|hold| hold.words).unwrap_or_default();
            assert_eq!(words.contains("set group.name = \"default\""), held, "{watch:?}: {words}");
            assert_eq!(roster.wanted_pin(at(1), &servers).is_none(), held);
        }
        // What we left there by an earlier release is no other member.
        roster.hear_elders(at(1), vec![Heartbeat { origin: "o1".into(), ..elder(&[]) }]);
        let pin = roster.wanted_pin(at(1), &servers).unwrap();
        assert_eq!(pin.group, "ns-shop");
        roster.pinned(Some(pin.clone()));
        assert_eq!(hold(&roster, 1), None);
        let text = serde_json::to_string(&Pin { group: String::new(), ..pin }).unwrap();
        assert!(!text.contains("group"), "a pin by the configured name is written as ever: {text}");
    }
}
