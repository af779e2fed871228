//! Why nothing is agreed on: each reason names what is wrong and what ends it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{HEARD_FOR, Pin, Roster, Servers, listed};
use kernel::id::Member;
use kernel::machine::Timestamp;

/// The reason of a hold, by which it is counted. In the order in which we report them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The servers are being asked who they are, for the first time.
    Starting,
    /// A dry run takes no part.
    DryRun,
    /// Another allclear of our name comes first.
    Twins,
    /// The members are not known, or not agreed on.
    Members,
    /// A configured server has never answered.
    Servers,
    /// A member's posts are not believed: the keys differ.
    Key,
    /// A member has other settings.
    Configuration,
    /// The ledger of a workload was set back (`StateRegressed`).
    SetBack,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::DryRun,
        Self::Twins,
        Self::Members,
        Self::Servers,
        Self::Key,
        Self::Configuration,
        Self::SetBack,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::DryRun => "dry_run",
            Self::Twins => "twins",
            Self::Members => "members",
            Self::Servers => "servers",
            Self::Key => "key",
            Self::Configuration => "configuration",
            Self::SetBack => "set_back",
        }
    }
}

/// Why nothing is agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hold {
    pub reason: Reason,
    /// The same in words, and what ends it.
    pub words: String,
}

impl Hold {
    /// A hold for this reason.
    pub fn new(reason: Reason, words: impl Into<String>) -> Self {
        Self { reason, words: words.into() }
    }
}

impl Roster {
    /// Why nothing may be done, if so.
    pub(super) fn hold(&self, now: Timestamp, servers: &Servers) -> Option<Hold> {
        let Self { own, configured, .. } = self;
        if let Some(twins) = self.twins(now) {
            return Some(Hold::new(Reason::Twins, twins));
        }
        if !configured.is_empty() && !configured.contains(own) {
            return Some(Hold::new(Reason::Members, self.unnamed()));
        }
        if servers.untried {
            return Some(Hold::new(Reason::Starting, "the group's servers are being asked who they are"));
        }
        if self.has_to_look() {
            let words = "the group's servers are being asked whether a group called default works there";
            return Some(Hold::new(Reason::Starting, words));
        }
        if let Some(words) = self.divided(now).or_else(|| self.lost(servers)) {
            return Some(Hold::new(Reason::Members, words));
        }
        let counted = match &self.pin {
            Some(pin) if self.fitting_pin(servers).is_some() => &pin.members,
            Some(pin) if configured.is_empty() && pin.members.contains(own) => &pin.members,
            Some(_) | None => configured,
        };
        let all: BTreeSet<Member> = self.known(now, servers).union(counted).cloned().collect();
        if all.len() > servers.most() {
            return Some(Hold::new(Reason::Members, self.surplus(now, &all, servers)));
        }
        if self.usable_pin(now, servers).is_some() {
            return self.unanswered(servers).map(|words| Hold::new(Reason::Servers, words));
        }
        Some(Hold::new(Reason::Members, self.unpinned(now, &all, servers)))
    }

    /// The configuration names members, and not this one.
    fn unnamed(&self) -> String {
        let Self { own, configured, .. } = self;
        format!(
            "group.members does not name this cluster, {own}, but {}; set group.member here to the name of this cluster in \
             that list, or put {own} into the list in every member",
            listed(configured)
        )
    }

    /// Servers that never answered: we do not know which members they stand for.
    fn unanswered(&self, servers: &Servers) -> Option<String> {
        let Pin { answered, .. } = self.pin.as_ref().filter(|pin| !pin.answered.is_empty())?;
        let never: Vec<&str> = servers.unidentified.difference(answered).map(String::as_str).collect();
        (!never.is_empty()).then(|| {
            let why: Vec<&str> = never.iter().filter_map(|name| Some(servers.reasons.get(*name)?.as_str())).collect();
            let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join("; ")) };
            format!(
                "{} has never answered{why}, so it is not known whether a member is behind it that is to be waited for; mend the \
                 address in redis.url or group.remotes, or take it out, and restart; once it has answered it may be away",
                never.join(", ")
            )
        })
    }

    /// There are more names than servers: one is new, or has another name than before.
    fn surplus(&self, now: Timestamp, all: &BTreeSet<Member>, servers: &Servers) -> String {
        let most = servers.most();
        let pinned = self.fitting_pin(servers).map(|pin| &pin.members);
        let is_heard = |name: &&Member| {
            **name == self.own || self.peers.get(*name).is_some_and(|peer| now.since(peer.at) <= HEARD_FOR)
        };
        let members = pinned.unwrap_or(&self.configured);
        let silent: BTreeSet<Member> = members.iter().filter(|name| !is_heard(name)).cloned().collect();
        let new: BTreeSet<Member> = all.difference(members).cloned().collect();
        let begin = format!("more members than servers: {}, and {} configured", listed(all), counted(most));
        if !silent.is_empty() && !new.is_empty() {
            let called: Vec<String> = new.iter().map(|name| self.called(name)).collect();
            let (silent, called, new) = (listed(&silent), called.join(", "), listed(&new));
            return format!(
                "{begin}; {called} is heard from, and {silent} is not: if {silent} is now called {new}, give it its old name back \
                 by group.member (a name that begins with c- is one that nobody gave), or run allclear group forget {silent} \
                 in every other member; if {new} is another cluster, add its Redis to redis.url or group.remotes everywhere"
            );
        }
        let retired = match pinned {
            None if !self.configured.is_empty() => {
                ", and a member that has retired must be taken out of group.members too"
            }
            None | Some(_) => "",
        };
        format!("{begin}; each cluster's own Redis must be in redis.url or group.remotes of all of them{retired}")
    }

    /// A member's name, with where it runs if it says so.
    fn called(&self, name: &Member) -> String {
        match self.peers.get(name).map(|peer| &peer.beat.stands.place).filter(|place| !place.is_empty()) {
            Some(place) => format!("{name} (whose own Redis is {place})"),
            None => name.to_string(),
        }
    }

    /// Why there is no usable pin.
    fn unpinned(&self, now: Timestamp, known: &BTreeSet<Member>, servers: &Servers) -> String {
        let Self { configured, .. } = self;
        if !configured.is_empty() && !servers.may_be(configured.len()) {
            let servers = if servers.most() < configured.len() { servers.most() } else { servers.distinct };
            return format!(
                "group.members names {} members ({}), and {} configured; each member has one",
                configured.len(),
                listed(configured),
                counted(servers)
            );
        }
        if configured.is_empty() && !servers.unidentified.is_empty() {
            let silent = |name: &String| match servers.reasons.get(name) {
                Some(why) => format!("{name} has not said which server it is ({why})"),
                None => format!("{name} has not said which server it is"),
            };
            let silent: Vec<String> = servers.unidentified.iter().map(silent).collect();
            return format!(
                "it is not known how many members the group has: {}; known are {}",
                silent.join("; "),
                listed(known)
            );
        }
        if configured.is_empty() && known.len() < servers.distinct {
            let missing = match (servers.distinct - known.len(), servers.distinct) {
                (1, 2) => "the second has not been heard from".to_owned(),
                (1, 3) => "the third has not been heard from".to_owned(),
                (1, n) => format!("the {n}th has not been heard from"),
                (n, _) => format!("{n} have not been heard from"),
            };
            return format!("{} of {} members are known: {}; {missing}", known.len(), servers.distinct, listed(known));
        }
        if self.wanted_pin(now, servers).is_some() {
            return "the members are being written to the ledger".to_owned();
        }
        let unnamed: Vec<String> = known.difference(configured).map(|name| self.called(name)).collect();
        if !configured.is_empty() && !unnamed.is_empty() {
            return format!(
                "{} is heard from, and group.members here does not name it: name it there, in place of its former name if it \
                 has another one now, and restart; or stop its allclear",
                unnamed.join(", ")
            );
        }
        format!(
            "the ledger has the members {}, and of these {} are not heard from: if they have retired, run allclear group forget \
             with their names here",
            self.pin.as_ref().map_or_else(String::new, |pin| listed(&pin.members)),
            listed(&self.dropped_by(&self.known(now, servers)))
        )
    }
}

/// So many servers, and the verb.
fn counted(servers: usize) -> String {
    if servers == 1 { "1 server is".to_owned() } else { format!("{servers} different servers are") }
}
