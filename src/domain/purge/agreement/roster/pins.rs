//! The pin: when it stands, when another one is to be stored, and what it keeps (decisions 5 and 56).
//!
//! A configuration can lose what it says of others: an optional Secret is deleted and made again without it, an address is left
//! out. So fewer servers than pinned members never make a smaller group, nor none: only a person makes it smaller, by `allclear
//! group forget` or `allclear group leave`.

use std::collections::BTreeSet;

use super::{HEARD_FOR, Pin, Roster, Servers, listed};
use kernel::id::Member;
use kernel::machine::Timestamp;

impl Pin {
    /// Whether it names members besides this one: then there is a group, whatever is configured.
    pub fn names_others(&self, own: &Member) -> bool {
        self.members.len() > 1 && self.members.iter().any(|member| member != own)
    }

    /// The pin after these members were forgotten.
    pub fn without(&self, left: &BTreeSet<Member>) -> Self {
        Self {
            members: self.members.difference(left).cloned().collect(),
            forgotten: self.forgotten.union(left).cloned().collect(),
            ..self.clone()
        }
    }
}

impl Roster {
    /// The pin that must replace [`Roster::pin`] in the ledger, if any.
    pub fn wanted_pin(&self, now: Timestamp, servers: &Servers) -> Option<Pin> {
        let is_held = self.twins(now).or_else(|| self.divided(now)).or_else(|| self.lost(servers)).is_some();
        if servers.untried || self.has_to_look() || is_held {
            return None;
        }
        if let Some(pin) = self.usable_pin(now, servers) {
            let answered = self.answered(servers);
            return (answered != pin.answered).then(|| Pin { answered, ..pin.clone() });
        }
        let mut known = self.known(now, servers);
        known.extend(self.fitting_pin(servers).into_iter().flat_map(|pin| pin.members.clone()));
        let pin = |members: BTreeSet<Member>, of| {
            // If the pin lacks our name, we had another one before, and the old name no longer has an owner.
            let renamed = self.pin.iter().filter(|pin| !pin.members.contains(&self.own)).flat_map(|pin| &pin.members);
            let forgotten = self.pin.iter().flat_map(|pin| &pin.forgotten).chain(renamed);
            let forgotten = forgotten.filter(|name| !members.contains(*name));
            let (forgotten, answered) = (forgotten.cloned().collect(), self.answered(servers));
            Pin { members, of, forgotten, group: self.name_to_pin(), answered }
        };
        let next = if self.configured.is_empty() {
            let of = servers.distinct.max(1);
            (servers.unidentified.is_empty() && known.len() == of).then(|| pin(known, of))
        } else {
            let of = self.configured.len();
            let fits = self.configured.contains(&self.own) && servers.may_be(of);
            (fits && known.is_subset(&self.configured)).then(|| pin(self.configured.clone(), of))
        };
        next.filter(|next| self.dropped_by(&next.members).is_empty())
    }

    /// The pinned members that are not among these, whom a person has to forget first. If the pin lacks our name, one of its
    /// names was ours.
    pub(super) fn dropped_by(&self, members: &BTreeSet<Member>) -> BTreeSet<Member> {
        let Some(pin) = &self.pin else { return BTreeSet::new() };
        let dropped: BTreeSet<Member> = pin.members.difference(members).cloned().collect();
        if pin.members.contains(&self.own) || dropped.len() > 1 { dropped } else { BTreeSet::new() }
    }

    /// The servers that have answered once, of those that are configured now. Where an older program did not say, they are
    /// taken down in the moment in which as many answer as there are members.
    fn answered(&self, servers: &Servers) -> BTreeSet<String> {
        let before = self.pin.as_ref().map(|pin| &pin.answered);
        let unsaid = before.is_some_and(BTreeSet::is_empty);
        if unsaid && self.pin.as_ref().is_some_and(|pin| servers.distinct < pin.of) {
            return BTreeSet::new();
        }
        let still = before.into_iter().flatten().filter(|name| servers.unidentified.contains(*name));
        still.chain(&servers.identified).cloned().collect()
    }

    /// Why the pin keeps us from going on: it has members that the configuration has lost.
    pub(super) fn lost(&self, servers: &Servers) -> Option<String> {
        let pin = self.pin.as_ref().filter(|pin| pin.names_others(&self.own))?;
        let others: BTreeSet<Member> = pin.members.iter().filter(|member| **member != self.own).cloned().collect();
        let others = listed(&others);
        let ends = format!(
            "if one of them has retired, run allclear group forget with its name here; if this cluster is to leave the group and \
             work alone, run allclear group leave ({others} then has to forget {})",
            self.own
        );
        if servers.is_none() {
            return Some(format!(
                "the ledger has the members {}, and no Redis is configured here: give REDIS_HOST and REMOTE_REDIS_HOSTS \
                 (redis.url and group.remotes) back, and restart; {ends}",
                listed(&pin.members)
            ));
        }
        let most = servers.most();
        if pin.members.len() > most {
            let configured =
                if most == 1 { "1 Redis server is".to_owned() } else { format!("{most} different Redis servers are") };
            return Some(format!(
                "the ledger has {} members ({}), and {configured} configured here: give REMOTE_REDIS_HOSTS (group.remotes) the \
                 address that it lacks back, and restart; {ends}",
                pin.members.len(),
                listed(&pin.members)
            ));
        }
        let left = if self.configured.is_empty() { BTreeSet::new() } else { self.dropped_by(&self.configured) };
        (!left.is_empty()).then(|| {
            let left = listed(&left);
            format!(
                "the ledger has {left} among the members, and group.members here does not name it: put it back; or, if it has \
                 retired or has another name now, run allclear group forget {left} here"
            )
        })
    }

    /// Ourselves and all that reported lately, but for those that were forgotten.
    pub(super) fn known(&self, now: Timestamp, servers: &Servers) -> BTreeSet<Member> {
        let heard = self.peers.iter().filter(|(_, peer)| now.since(peer.at) <= HEARD_FOR).map(|(member, _)| member);
        let heard: BTreeSet<&Member> = heard.chain([&self.own]).collect();
        let Some(Pin { forgotten, of, .. }) = &self.pin else { return heard.into_iter().cloned().collect() };
        let new: BTreeSet<Member> = heard.iter().copied().filter(|name| !forgotten.contains(*name)).cloned().collect();
        // A further server that no other name came with adds each name that reports again.
        let is_added = servers.distinct > *of && new.len() < servers.distinct;
        if is_added { heard.into_iter().cloned().collect() } else { new }
    }

    /// The pin, if it still fits the configuration and contains every name that reports or is configured, except forgotten
    /// ones.
    pub(super) fn usable_pin(&self, now: Timestamp, servers: &Servers) -> Option<&Pin> {
        let known = self.known(now, servers);
        self.fitting_pin(servers).filter(|pin| {
            let mut others = known.iter().chain(&self.configured);
            others.all(|member| pin.members.contains(member) || pin.forgotten.contains(member))
        })
    }

    /// The pin, where it still fits what is configured. Its members are waited for, no matter who else reports.
    pub(super) fn fitting_pin(&self, servers: &Servers) -> Option<&Pin> {
        let Self { own, configured, pin, .. } = self;
        pin.as_ref().filter(|pin| {
            pin.members.contains(own)
                && servers.may_be(pin.of)
                && (configured.is_empty() || pin.members.is_subset(configured))
        })
    }
}
