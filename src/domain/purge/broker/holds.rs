//! The holds of the group, and their reports: once when a hold has lasted a while, once on each workload that
//! waits meanwhile, and once when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Broker, Effect};
use crate::agreement::roster::{HEARD_FOR, Hold, Reason, listed};
use kernel::id::{Member, WorkloadId};
use kernel::machine::Timestamp;

/// How long a hold lasts before we report it. Members that start, or get another configuration one after the other, cause
/// one for two beats and two reads, 5 s each.
const TOLD_AFTER: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Holding {
    since: Timestamp,
    told: bool,
    /// The workloads whose owners know of it by an Event.
    told_on: BTreeSet<WorkloadId>,
}

/// All holds, by their reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Holds(BTreeMap<Reason, Holding>);

impl Holds {
    /// When the next report is due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.0.values().filter(|holding| !holding.told).map(|holding| holding.since.after(TOLD_AFTER)).min()
    }
}

impl Broker {
    /// The present holds of the group, the most important first; empty while alone.
    pub(super) fn held_up(&self, now: Timestamp) -> Vec<Hold> {
        let Some(roster) = &self.membership.roster else { return Vec::new() };
        let mut holds: Vec<Hold> = self.membership.standing.hold.iter().cloned().collect();
        let keys: Vec<String> = self.disbelieved(now).map(|(member, why)| format!("{member}: {why}")).collect();
        if !keys.is_empty() {
            let words = format!(
                "the beats of these members are not believed: {}; give all members the same group.key_file, or none, and \
                 restart what was changed",
                keys.join("; ")
            );
            holds.push(Hold::new(Reason::Key, words));
        }
        let others = self.members().iter().filter(|member| **member != self.identity.member);
        let differing = others.filter_map(|member| {
            let cure = roster.cure(member)?;
            Some(format!("{member} has another configuration: {}; {cure}", roster.differences(member).join("; ")))
        });
        let differing: Vec<String> = differing.collect();
        if !differing.is_empty() {
            holds.push(Hold::new(Reason::Configuration, differing.join("; ")));
        }
        let regressed: BTreeSet<Member> =
            self.regressions.held().map(|name| Member(self.local(name).display_name())).collect();
        if !regressed.is_empty() {
            let words = format!(
                "StateRegressed: the ledger was set back behind what the group has seen of {}; if its records are right, run \
                 allclear ledger adopt",
                listed(&regressed)
            );
            holds.push(Hold::new(Reason::SetBack, words));
        }
        holds
    }

    /// Members that count as silent although they beat: their beats are rejected.
    pub(super) fn disbelieved(&self, now: Timestamp) -> impl Iterator<Item = (&Member, &String)> {
        let forgotten = |member: &Member| {
            let pin = self.membership.roster.as_ref().and_then(|roster| roster.pin());
            pin.is_some_and(|pin| pin.forgotten.contains(member))
        };
        let silent = move |member: &Member| {
            self.membership.roster.as_ref().is_some_and(|roster| roster.silence(now, member).is_some())
        };
        let mut seen = BTreeSet::new();
        let all = self.boards.iter().flat_map(|board| &board.disbelieved);
        all.filter(move |(member, (_, at))| {
            let counts = **member != self.identity.member && !forgotten(member) && silent(member);
            counts && now.since(*at) <= HEARD_FOR && seen.insert((*member).clone())
        })
        .map(|(member, (why, _))| (member, why))
    }

    /// Reports what is due of the holds.
    pub(super) fn mind_holds(&mut self, now: Timestamp) -> Vec<Effect> {
        // A dry run takes no part anyway.
        let present: BTreeMap<Reason, Hold> =
            self.held_up(now).into_iter().filter(|hold| hold.reason != Reason::DryRun).map(|h| (h.reason, h)).collect();
        let mut effects = Vec::new();
        self.holds.0.retain(|reason, holding| {
            let lasts = present.contains_key(reason);
            if !lasts && holding.told {
                effects.push(Effect::TellRelease(*reason));
            }
            lasts
        });
        for (reason, hold) in present {
            let waiting = self.waiting_under(reason);
            let begun = Holding { since: now, told: false, told_on: BTreeSet::new() };
            let holding = self.holds.0.entry(reason).or_insert(begun);
            if now.since(holding.since) < TOLD_AFTER {
                continue;
            }
            if !std::mem::replace(&mut holding.told, true) {
                effects.push(Effect::TellHold(hold.clone()));
            }
            let new = waiting.into_iter().filter(|workload| holding.told_on.insert(workload.clone()));
            effects.extend(new.map(|workload| Effect::TellHeldUp(workload, hold.clone())));
        }
        effects
    }

    /// The workloads of ours that wait while the group is held up for this reason.
    fn waiting_under(&self, reason: Reason) -> Vec<WorkloadId> {
        let waits = |workload: &WorkloadId| reason != Reason::SetBack || self.regressions.hold(workload).is_some();
        self.ours.seeking().filter(|workload| waits(workload)).cloned().collect()
    }
}
