//! The group as the status shows it: its members, its boards, and what holds it up.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BoardState, Broker, Membership, Trouble};
use crate::agreement::roster::{HEARD_FOR, Hold, Reason};
use kernel::id::{Kind, Member, WorkloadId};
use kernel::machine::Timestamp;

/// How long a rejected copy stays among the troubles.
const REJECTION_SHOWN_FOR: Duration = Duration::from_secs(300);

/// The group at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Why nothing can be agreed on; `None` if nothing is in the way.
    pub hold: Option<String>,
    /// All that holds up the group or a part of it, also members whose settings or keys differ, and workloads whose
    /// ledger was set back.
    pub holds: Vec<Hold>,
    /// The hash of our configuration, the members included.
    pub config: String,
    /// The members, ourselves included, and all other names that report.
    pub members: Vec<MemberSeen>,
    pub boards: Vec<BoardSeen>,
    /// Workloads with a state that the ledger has lost.
    pub regressed: Vec<WorkloadId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberSeen {
    pub name: String,
    /// It is this one.
    pub is_self: bool,
    /// It is among those that are agreed on.
    pub agreed: bool,
    /// Seconds since its last beat; `None` without one, and for ourselves.
    pub heard_s: Option<u64>,
    /// The same in words that are true: how long ago it left what was read last is known within bounds only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// The program's version there.
    pub version: Option<String>,
    /// In which settings it differs from us.
    pub differences: Vec<String>,
    /// The remedy for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
    /// The kinds of workloads that we follow and it does not, a sentence each: why, and the remedy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfollowed: Vec<String>,
    /// Why its beats are rejected, if there are any.
    pub disbelieved: Option<String>,
    /// Where it runs, as it says itself: clearer than a name made from a UID.
    pub place: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardSeen {
    pub name: String,
    /// The identity of the server that answers there; `None` while unknown.
    pub identity: Option<String>,
    /// Its trouble, if any.
    pub trouble: Option<String>,
    /// Seconds since it last answered.
    pub answered_s: Option<u64>,
    /// Records that wait to be posted there.
    pub waiting: usize,
    /// Copies rejected since the start.
    pub rejected: u64,
    /// The address of the same server that is used instead.
    pub same_as: Option<String>,
}

impl Broker {
    /// The group at a glance; `None` while alone.
    pub fn seen(&self, now: Timestamp) -> Option<Seen> {
        let Membership { roster, standing, .. } = &self.membership;
        let roster = roster.as_ref()?;
        let own = &self.identity.member;
        let others = roster.peers().map(|(member, _)| member);
        let mut names: Vec<_> = standing.members.iter().chain(others).chain([own]).collect();
        names.sort();
        names.dedup();
        let followed = || Kind::ALL.into_iter().filter(|kind| self.identity.stands.follows(*kind));
        let member = |name: &&Member| {
            let peer = roster.peer(name).filter(|_| *name != own);
            let version = peer.map_or_else(
                || (*name == own).then(|| self.identity.version.clone()),
                |peer| Some(peer.beat.version.clone()),
            );
            MemberSeen {
                name: name.to_string(),
                is_self: *name == own,
                agreed: roster.pin().is_some_and(|pin| pin.members.contains(*name)),
                heard_s: peer.map(|peer| now.since(peer.at).as_secs()),
                heard: peer.map(|peer| peer.heard(now)),
                version,
                differences: if *name == own { Vec::new() } else { roster.differences(name) },
                cure: roster.cure(name).filter(|_| *name != own),
                unfollowed: followed()
                    .filter(|_| *name != own)
                    .filter_map(|kind| roster.unfollowed(name, kind))
                    .collect(),
                disbelieved: self.disbelieved(now).find(|(member, _)| member == name).map(|(_, why)| why.clone()),
                place: match peer {
                    Some(peer) => Some(peer.beat.stands.place.clone()),
                    None => (*name == own).then(|| self.identity.stands.place.clone()),
                }
                .filter(|place| !place.is_empty()),
            }
        };
        Some(Seen {
            hold: standing.hold.as_ref().map(|hold| hold.words.clone()),
            holds: self.held_up(now),
            config: standing.config.clone(),
            members: names.iter().map(member).collect(),
            boards: self.boards_seen(now),
            regressed: self.regressions.held().map(|name| self.local(name)).collect(),
        })
    }

    /// The boards, also while alone.
    pub fn boards_seen(&self, now: Timestamp) -> Vec<BoardSeen> {
        let name = |index: usize| self.boards.get(index).map(|board| board.name.clone());
        let seen = |board: &BoardState| BoardSeen {
            name: board.name.clone(),
            identity: board.server.identity().cloned(),
            trouble: board.trouble().map(str::to_owned),
            answered_s: board.answered.map(|at| now.since(at).as_secs()),
            waiting: board.queue.len(),
            rejected: board.rejected.all,
            same_as: board.server.same_as.and_then(name),
        };
        self.boards.iter().map(seen).collect()
    }

    /// Whether the last call to this board failed.
    pub fn is_troubled(&self, index: usize) -> bool {
        self.boards.get(index).is_some_and(|board| board.trouble().is_some())
    }

    pub fn troubles(&self, now: Timestamp) -> Vec<Trouble> {
        let failing = self.boards.iter().filter_map(BoardState::trouble);
        let mut troubles: Vec<Trouble> = failing.map(|why| Trouble::Board(why.to_owned())).collect();
        troubles.extend(self.rejections(now).chain(self.refusals()).map(Trouble::Other));
        troubles.extend(
            self.refill.trouble().map(|why| Trouble::Other(format!("cannot read the ledger for the boards: {why}"))),
        );
        let Some(Seen { hold, holds, members, .. }) = self.seen(now) else { return troubles };
        // Whoever is down takes its Redis with it, which is the smaller part of the news.
        troubles.splice(0..0, self.silent(now).into_iter().map(Trouble::Other));
        let warning = self.identity.trust.warning().map(str::to_owned);
        troubles.extend(warning.into_iter().chain(self.doubt()).chain(self.overfull()).map(Trouble::Other));
        let keys = holds.into_iter().filter(|hold| hold.reason == Reason::Key).map(|hold| hold.words);
        troubles.extend(keys.chain(hold).map(Trouble::Hold));
        let held =
            |name: &WorkloadId| Some(format!("{}: {}", self.local(name).display_name(), self.regressions.hold(name)?));
        troubles.extend(self.regressions.held().filter_map(held).map(Trouble::Other));
        let differing = members.into_iter().filter(|member| !member.differences.is_empty());
        troubles.extend(differing.map(|MemberSeen { name: member, differences, cure, .. }| Trouble::Difference {
            member,
            differences,
            cure,
        }));
        troubles.extend(self.namesakes(now).chain(self.strangers(now)).map(Trouble::Other));
        troubles
    }

    /// The silent members that a purge waits for, each with its own Redis if that fails, too.
    fn silent(&self, now: Timestamp) -> Vec<String> {
        let Some(roster) = &self.membership.roster else { return Vec::new() };
        let members =
            roster.pin().into_iter().flat_map(|pin| &pin.members).filter(|member| **member != self.identity.member);
        let mut silent = Vec::new();
        for member in members {
            // One without any beat yet may be on its way to us, and one that is not believed is named with its key.
            let (Some(peer), Some(silence)) = (roster.peer(member), roster.silence(now, member)) else { continue };
            if self.disbelieved(now).any(|(other, _)| other == member) {
                continue;
            }
            let fails =
                self.boards.iter().any(|board| board.name == peer.beat.stands.place && board.trouble().is_some());
            let redis =
                if fails { format!("; its own Redis, {}, fails", peer.beat.stands.place) } else { String::new() };
            silent.push(format!("{member} {silence}, and purges wait for it{redis}"));
        }
        silent
    }

    /// The boards with copies that were rejected lately.
    fn rejections(&self, now: Timestamp) -> impl Iterator<Item = String> {
        self.boards.iter().filter_map(move |board| {
            let (why, _) = board.rejected.last.as_ref().filter(|(_, at)| now.since(*at) <= REJECTION_SHOWN_FOR)?;
            Some(format!("{}: {} copies were not believed, the last one because {why}", board.name, board.rejected.all))
        })
    }

    /// The records that boards do not take.
    fn refusals(&self) -> impl Iterator<Item = String> {
        let refused = self.boards.iter().flat_map(|board| board.queue.refused().map(move |refused| (board, refused)));
        refused.map(|(board, (workload, why))| {
            format!("{} does not take the record of {}: {why}", board.name, self.local(workload).display_name())
        })
    }

    /// Two allclears under one name, of which the first counts.
    fn namesakes(&self, now: Timestamp) -> impl Iterator<Item = String> {
        let namesakes = self.membership.roster.iter().flat_map(move |roster| roster.namesakes(now));
        namesakes.map(|(name, ledgers)| {
            let ledgers: Vec<String> = ledgers.iter().map(ToString::to_string).collect();
            format!(
                "two allclears report by the name {name} (ledgers {}); the one that was known first counts: if one cluster runs \
                 both, give each its group.name; if they are two clusters, give one of them another group.member",
                ledgers.join(" and ")
            )
        })
    }

    /// Those that report, and are not among the members that are agreed on.
    fn strangers(&self, now: Timestamp) -> impl Iterator<Item = String> {
        let pinned = self.membership.roster.iter().filter_map(|roster| Some((roster, roster.pin()?)));
        pinned.flat_map(move |(roster, pin)| {
            let strangers = roster.peers().filter(move |(name, peer)| {
                !pin.members.contains(*name) && now.since(peer.at) <= HEARD_FOR
            });
            strangers.map(|(name, _)| {
                if pin.forgotten.contains(name) {
                    format!(
                        "{name} reports but was forgotten, so no member waits for it: stop its allclear, or run allclear \
                         group add {name} in every other member to have it back"
                    )
                } else {
                    format!("{name} reports but is not among the members that the ledger has")
                }
            })
        })
    }
}
