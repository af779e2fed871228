//! This rollout's view of the group, and the group's view of it.
//!
//! Not for what follows from it; that is `vote`, `execute` and `group_timeout`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::agreement::group::{self, Decision, Fate, Naming, NumberedView, View};
use crate::bounds::plan::Plan;
use crate::records::record::{Published, Record, Vote};
use crate::rollouts::rollout::{Effect, Rollout};
use kernel::call::Call;
use kernel::id::{Member, Reference, Seq, Vector};
use kernel::names::host::Host;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ballot {
    /// The records of all members, as the group actor last sent them; with our own once it was published.
    pub(super) view: View,
    number: u64,
    /// The look at our own workload before a vote.
    pub(super) recheck: Call,
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
        let others = self.view.members.iter().filter(|(member, _)| *member != own);
        others.filter_map(|(_, known)| known.as_ref()?.published.kept(vector)).any(Vote::owes)
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
    let known = view.members.get(member).and_then(Option::as_ref);
    let record = known.and_then(|known| known.published.record());
    record.zip(vector.component(member)).is_some_and(|(record, component)| {
        record.passed_at(component).is_some() && record.last == Some(group::brief_of(view, vector))
    })
}

/// Our record as the group knows it.
fn known<'a>(view: &'a View, own: &Member) -> Option<&'a Record> {
    view.members.get(own)?.as_ref()?.published.record()
}
