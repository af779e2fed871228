//! The parts of all members in one workload, for people: in flight, and for a while after it has ended here.

use super::Broker;
use crate::records::record::Published;
use crate::rollouts::part::{PartSeen, PartsSeen};
use kernel::id::{Member, WorkloadId};
use kernel::machine::Timestamp;

impl Broker {
    /// What each member shows of a workload of ours; nobody's while alone.
    pub fn parts(&self, now: Timestamp, local: &WorkloadId) -> PartsSeen {
        let name = self.names.of(local).unwrap_or(local);
        let members = self.members().iter().filter(|_| self.is_grouped());
        PartsSeen { workload: local.clone(), members: members.map(|member| self.part(now, name, member)).collect() }
    }

    /// Our workloads of which this was kept after their rollout had ended here.
    pub fn lately(&self) -> impl Iterator<Item = WorkloadId> {
        self.peer_records.lately.workloads().filter(|name| !self.ours.follows(name)).map(|name| self.local(name))
    }

    fn part(&self, now: Timestamp, name: &WorkloadId, member: &Member) -> PartSeen {
        let is_self = *member == self.identity.member;
        let part = PartSeen::of(member, is_self);
        let kept = || self.peer_records.lately.of(name, member);
        if is_self {
            let own = self.ours.record(name).cloned().map(Published::from);
            return own.or_else(kept).map_or(part.clone(), |own| part.shown(&own));
        }
        let known = self.peer_records.of(name, member).map(|known| known.published).or_else(kept);
        let part = known.map_or(part.clone(), |published| part.shown(&published));
        let Some(roster) = &self.membership.roster else { return part };
        let part = roster.peer(member).map_or(part.clone(), |peer| part.told(peer, name));
        let why =
            self.disbelieved(now).find(|(other, _)| *other == member).map(|(_, why)| format!("is not believed: {why}"));
        PartSeen { silent: why.or_else(|| roster.silence(now, member)), ..part }
    }
}
