//! This rollout's view of the group, and the group's view of it: its record, and its name there (decision 55), which is its own or
//! the one that its annotation asks for.
//!
//! Votes are cast under a name, and it is part of their vector's id. So another name is taken only once no vote is left: those that are
//! open end under the old one, and meanwhile none is cast. The rollout gets a number of its own then, because under either name the
//! group may have seen another one: the number between is that of being absent under the old name. It is no change of version.
//!
//! Not for what follows from it; that is `vote`, `execute` and `group_timeout`. Not for which of two workloads under one name stays:
//! that is `broker::names`, and comes with the view.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::agreement::group::{self, Decision, Fate, Naming, NumberedView, View};
use crate::bounds::plan::Plan;
use crate::bounds::policy::Policy;
use crate::records::record::{Published, Record, Vote};
use crate::rollouts::rollout::clearing::Caches;
use crate::rollouts::rollout::{Effect, Rollout};
use crate::workloads::workload::Workload;
use kernel::call::Call;
use kernel::id::{Member, Reference, Seq, Vector, WorkloadId, group_rollout_id};
use kernel::names::group_name::Alias;
use kernel::names::host::Host;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ballot {
    /// The records of all members, as the group actor last sent them; with our own once it was published.
    pub(super) view: View,
    number: u64,
    /// The look at our own workload before a vote.
    pub(super) recheck: Call,
    /// The caches that are asked before it.
    pub(super) caches: Caches,
    /// The durable record was shown to the group in this life.
    published: bool,
    /// We have informed the other members that the workload does not exist here.
    told_absent: bool,
}

impl Ballot {
    /// Takes in what the group knows. Answers may overtake each other: one with an older record of ours than an earlier
    /// answer would leave us waiting for what has come already.
    pub(super) fn changed(
        &mut self,
        NumberedView { number, view }: NumberedView,
        own: &Member,
        durable: Option<&Record>,
    ) {
        if number < self.number {
            return;
        }
        let revision = |record: Option<&Record>| record.map_or(0, |record| record.revision);
        let shown = revision(known(&view, own));
        // One that is refused its name is shown nothing of the group, itself neither.
        let refused = matches!(view.naming, Naming::Refused(_));
        if refused || shown >= revision(known(&self.view, own)) || shown == revision(durable) {
            (self.view, self.number) = (view, number);
        }
    }

    /// Whether the view contains our own record as the ledger has it: what others may have seen of us.
    pub(super) fn is_current(&self, own: &Member, durable: Option<&Record>) -> bool {
        durable.is_some() && known(&self.view, own) == durable
    }

    /// Shows the durable record to the group once in every life; afterwards, every write does.
    pub(super) fn publish(&mut self, durable: Option<&Record>) -> Option<Effect> {
        let first = !std::mem::replace(&mut self.published, true);
        durable.filter(|_| first).map(|record| Effect::Publish(Box::new(record.clone())))
    }

    /// Whether the group was shown it in this life.
    pub(super) fn is_published(&self) -> bool {
        self.published
    }

    /// Informs the other members, once, that we vote for no rollout up to this one.
    pub(super) fn absent(&mut self, seq: Seq) -> Option<Effect> {
        (!std::mem::replace(&mut self.told_absent, true)).then_some(Effect::Absent(seq))
    }

    /// When the last of the votes for a vector was cast, by its member's clock, and the hosts of all.
    pub(super) fn agreed(&self, vector: &Vector) -> (i64, BTreeSet<Host>) {
        let votes = self.view.members.values().filter_map(|known| known.as_ref()?.published.vote(vector));
        votes.fold((0, BTreeSet::new()), |(at_ms, mut hosts), vote| {
            hosts.extend(vote.plan.hosts.iter().cloned());
            (vote.cast.at_ms.max(at_ms), hosts)
        })
    }

    /// The view as it will be once `draft` is stored: no other member has to see it first.
    pub(super) fn once_stored(&self, own: &Member, draft: &Record) -> Cow<'_, View> {
        if known(&self.view, own) == Some(draft) {
            return Cow::Borrowed(&self.view);
        }
        let mut view = self.view.clone();
        if let Some(Some(known)) = view.members.get_mut(own) {
            known.published = Published::Record(Box::new(draft.clone()));
        }
        Cow::Owned(view)
    }

    /// Whether a member other than `own` does not know yet that the owed purges of a vector have been made.
    pub(super) fn others_owe(&self, vector: &Vector, own: &Member) -> bool {
        self.others(own).filter_map(|(_, theirs)| theirs.kept(vector)).any(Vote::owes)
    }

    /// The copies of the members other than `own`.
    pub(super) fn others<'a>(&'a self, own: &'a Member) -> impl Iterator<Item = (&'a Member, &'a Published)> {
        let others = self.view.members.iter().filter(move |(member, _)| *member != own);
        others.filter_map(|(member, known)| Some((member, &known.as_ref()?.published)))
    }

    /// A vote was cast.
    pub(super) fn voted(&mut self) {
        self.recheck.answered();
        self.caches.voted();
    }

    /// The group actor was rebuilt, and numbers its views anew.
    pub(super) fn restart(&mut self) {
        self.number = 0;
    }
}

impl Rollout {
    /// Whether the view contains our own record as the ledger has it: what others may have seen of us.
    pub(super) fn view_is_current(&self) -> bool {
        self.ballot.is_current(&self.identity.member, self.record.durable.as_ref())
    }

    /// The view by which a vote is approached. Members of a group see each other's stored records; a group of one is what it drafts.
    pub(super) fn outlook(&self) -> Cow<'_, View> {
        match self.record.draft.as_ref().filter(|_| self.identity.is_alone()) {
            Some(draft) => self.ballot.once_stored(&self.identity.member, draft),
            None => Cow::Borrowed(&self.ballot.view),
        }
    }

    /// Whether another member may need something of this one. Before the group's records are known, it may.
    pub(super) fn is_wanted_by_others(&self) -> bool {
        let known = self.record.durable.is_none() || self.view_is_current();
        !self.identity.is_alone() && (!known || group::others_seek(&self.ballot.view, &self.identity.member))
    }

    /// When the last vote for a purge was cast, by its voter's clock; 0 if that is not known, or must not count.
    pub(super) fn voted_ms(&self, vector: &Vector, reference: &Reference) -> i64 {
        let kept = self.record.draft.as_ref().and_then(|draft| draft.kept(vector));
        let (agreed_ms, _) = self.ballot.agreed(vector);
        kept.filter(|_| !self.purges.is_second(reference)).map_or(0, |vote| vote.cast.at_ms.max(agreed_ms))
    }

    /// Takes the name that the workload asks for, as soon as that is possible.
    pub(super) fn take_name(&mut self, workload: &Workload) {
        let wanted = wanted_name(workload, &self.policy);
        let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.group_name != wanted) else { return };
        let name = |alias: Option<&Alias>| alias.map(|alias| alias.name.clone());
        let renamed = name(draft.group_name.as_deref()) != name(wanted.as_deref());
        if renamed && !draft.votes.is_empty() {
            return;
        }
        draft.group_name = wanted;
        if renamed {
            // What it voted for last was about other workloads of the members.
            draft.remember_last(None);
            let seq = draft.seq;
            self.bump_seq(seq);
            self.bump_seq(seq.next());
        }
    }

    /// Whether a vote may be cast: the group knows the workload by the name it asks for, and nothing else of this cluster has that.
    pub(super) fn may_vote_by_name(&self, draft: &Record) -> bool {
        let view = &self.ballot.view;
        let shown = known(view, &self.identity.member);
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
        let (before, after) = (record.name_in_group(&workload.id), wanted_name(workload, &self.policy));
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

/// The wanted group name of a workload, where that is not its own. A name that is not allowed is a fault, and counts as
/// none.
pub(super) fn wanted_name(workload: &Workload, policy: &Policy) -> Option<Box<Alias>> {
    let name = policy.tenants.group_name(workload).ok().filter(|name| *name != workload.id)?;
    Some(Box::new(Alias { name, created: workload.created.clone() }))
}

/// Whether the record says what the workload is to go by.
pub(super) fn is_called(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    record.group_name == wanted_name(workload, policy)
}

/// The plan of a vector, if it is decided.
pub(super) fn plan(view: &View, vector: &Vector) -> Option<Plan> {
    match group::fate(view, vector) {
        Fate::Decided(Decision::Execute(plan)) => Some(plan),
        Fate::Decided(Decision::Close(_)) | Fate::Open(_) | Fate::Dead(..) | Fate::Mixed => None,
    }
}

/// Whether a member that a vector died of has voted for it, and still keeps its part: it was first to find that the votes were cast
/// under two configurations. What was gone past cannot be given another number, so ours is.
pub(super) fn keeps(view: &View, vector: &Vector, member: &Member) -> bool {
    known(view, member).zip(vector.component(member)).is_some_and(|(record, component)| {
        record.passed_at(component).is_some() && record.last == Some(group::brief_of(view, vector))
    })
}

/// The record of a member as the group knows it.
pub(super) fn known<'a>(view: &'a View, member: &Member) -> Option<&'a Record> {
    view.members.get(member)?.as_ref()?.published.record()
}
