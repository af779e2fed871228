//! The workload's name in its group (decision 55): its own name, or the one that its annotation asks for.
//!
//! Votes are cast under a name, and it is part of their vector's id. So another name is taken only once no vote is left: those that are
//! open end under the old one, and meanwhile none is cast. The rollout gets a number of its own then, because under either name the
//! group may have seen another one: the number between is that of being absent under the old name. It is no change of version.
//!
//! Not for which of two workloads under one name stays: that is `broker::names`, and comes with the view.

use crate::agreement::group::Naming;
use crate::bounds::policy::Policy;
use crate::records::record::Record;
use crate::rollouts::rollout::Rollout;
use crate::workloads::workload::Workload;
use kernel::id::{Vector, WorkloadId, group_rollout_id};
use kernel::names::group_name::Alias;

/// The wanted group name of a workload, where that is not its own. A name that is not allowed is a fault, and counts as
/// none.
pub(super) fn wanted(workload: &Workload, policy: &Policy) -> Option<Box<Alias>> {
    let name = policy.tenants.group_name(workload).ok().filter(|name| *name != workload.id)?;
    Some(Box::new(Alias { name, created: workload.created.clone() }))
}

/// Whether the record says what the workload is to go by.
pub(super) fn is_called(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    record.group_name == wanted(workload, policy)
}

impl Rollout {
    /// Takes the name that the workload asks for, as soon as that is possible.
    pub(super) fn take_name(&mut self, workload: &Workload) {
        let wanted = wanted(workload, &self.policy);
        let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.group_name != wanted) else { return };
        let name = |alias: Option<&Alias>| alias.map(|alias| alias.name.clone());
        let renamed = name(draft.group_name.as_deref()) != name(wanted.as_deref());
        if renamed && !draft.votes.is_empty() {
            return;
        }
        draft.group_name = wanted;
        if renamed {
            // What it voted for last was about other workloads of the members.
            draft.last = None;
            let seq = draft.seq;
            self.bump_seq(seq);
            self.bump_seq(seq.next());
        }
    }

    /// Whether a vote may be cast: the group knows the workload by the name it asks for, and nothing else of this cluster has that.
    pub(super) fn may_vote_by_name(&self, draft: &Record) -> bool {
        let view = &self.ballot.view;
        let shown = view.members.get(&self.identity.member).and_then(Option::as_ref);
        let shown = shown.and_then(|known| known.published.record());
        let is_shown = self.identity.is_alone() || shown.is_some_and(|shown| shown.group_name == draft.group_name);
        let is_asked_for = self.workload().is_none_or(|workload| is_called(draft, workload, &self.policy));
        is_shown && is_asked_for && view.naming == Naming::Stands
    }

    /// Why no vote is cast under its name, in words.
    pub(super) fn name_in_words(&self, record: &Record) -> Option<String> {
        match &self.ballot.view.naming {
            Naming::Stands => {}
            Naming::Leaves(why) | Naming::Refused(why) => return Some(why.clone()),
        }
        let workload = self.workload().filter(|workload| !is_called(record, workload, &self.policy))?;
        let (before, after) = (record.name_in_group(&workload.id), wanted(workload, &self.policy));
        let after = after.as_ref().map_or(&workload.id, |alias| &alias.name);
        Some(format!(
            "it is known in the group as {}, and as {} once its open votes have ended",
            before.display_name(),
            after.display_name()
        ))
    }

    /// The name of a vector's rollout, the same in the whole group: by the name under which we voted, or would.
    pub(super) fn group_rollout(&self, vector: &Vector) -> String {
        let records = || self.record.draft.iter().chain(&self.record.durable);
        let vote = records().find_map(|record| record.kept(vector));
        match vote {
            Some(vote) => self.rollout_under(vote.name.as_ref(), vector),
            None => self.rollout_under(Some(self.called_now()), vector),
        }
    }

    /// Its name in the group, by the draft.
    pub(super) fn called_now(&self) -> &WorkloadId {
        let own = &self.identity.workload;
        self.record.draft.as_ref().map_or(own, |draft| draft.name_in_group(own))
    }

    /// The same for a vector that was voted for under this name; `None`: its own.
    pub(super) fn rollout_under(&self, name: Option<&WorkloadId>, vector: &Vector) -> String {
        group_rollout_id(&self.identity.group, name.unwrap_or(&self.identity.workload), vector)
    }
}
