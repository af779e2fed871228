//! This life's state of the purges it carries out, beside the record: its questions and orders, when its
//! turn comes, and when a denied purge becomes owed.
//!
//! All of it may be lost: the next life asks and orders again, under the same references.
//!
//! Every member can do everything, and the references make repetition harmless. An order among them only saves work: for each
//! distribution the members have a rank, the first begins at once, and each later one begins a while after it learnt of the
//! decision, unless it has seen by then that the work is done. No member is elected, and none has to be alive.
//!
//! Not for how far a purge is; that is in the record ([`crate::records::record::VotePurges`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::purges::purge::Order;
use crate::records::record::{Purge, Record, Vote};
use crate::rollouts::rollout::proving::Looks;
use crate::rollouts::rollout::{Effect, Rollout};
use kernel::call::Call;
use kernel::id::{InvalidationId, Reference, Vector, rank, renewed_reference};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::paths::PathSet;
use kernel::text;

/// A purge that another member has created is followed by the next rank after so many takeover times. Most complete within
/// 25 s (95th percentile), and until then its creator follows it anyway.
pub(super) const FOLLOW_AFTER: u32 = 6;

/// The work that members do one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Task {
    Match,
    /// Create the purge of this one.
    Create(DistributionId),
    /// Ask how far it is.
    Follow(DistributionId),
    /// Announce how the vector ended.
    Tell,
}

impl Task {
    /// The next one for an open purge.
    pub(super) fn of(distribution: &DistributionId, purge: &Purge) -> Self {
        let distribution = distribution.clone();
        if purge.is_wanted() { Self::Create(distribution) } else { Self::Follow(distribution) }
    }
}

/// By which listing the purges of a vector were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compared {
    /// One that began after the last vote.
    Newer,
    /// One so old, for no newer one was to be had; `None` if this life never had one.
    Stale(Option<Duration>),
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Purges {
    matching: BTreeMap<Vector, Call>,
    /// By which listing the purges of a vector are all known.
    compared: BTreeMap<Vector, Compared>,
    /// Vectors whose hosts no distribution serves, while their vote is not stored.
    none: BTreeSet<Vector>,
    ordered: BTreeSet<Reference>,
    /// Purges that another life or another writer had listed: it may have sent them.
    inherited: BTreeSet<Reference>,
    /// When this life drafted its votes; see [`crate::purges::purge::Order::voted_at`].
    voted_at: BTreeMap<Vector, Timestamp>,
    /// References that took the place of others in this life.
    second: BTreeSet<Reference>,
    /// When this life learnt that a vector is decided.
    decided_at: BTreeMap<Vector, Timestamp>,
    /// When it is this member's turn to do what each member could do; `None` once it is.
    turns: BTreeMap<(Vector, Task), Option<Timestamp>>,
    /// When a purge that is denied becomes owed (`None`: now), and why it is.
    owed_at: BTreeMap<Reference, (Option<Timestamp>, String)>,
    /// When the report of owed purges is repeated.
    remind_at: BTreeMap<Vector, Timestamp>,
    pub(super) looks: Looks,
}

impl Purges {
    /// The listed purges of a record that this life finds.
    pub(super) fn resumed(record: Option<&Record>) -> Self {
        let mut purges = Self::default();
        purges.inherit(record);
        purges
    }

    fn inherit(&mut self, record: Option<&Record>) {
        let listed = record.iter().flat_map(|record| &record.votes).flat_map(|vote| vote.purges.listed.values());
        self.inherited = listed.map(|purge| purge.reference.clone()).collect();
    }

    /// Whether its creation may have been sent before this life orders it.
    pub(super) fn may_be_sent(&self, reference: &Reference) -> bool {
        self.inherited.contains(reference)
    }

    /// This life has drafted its vote for the vector.
    pub(super) fn voted(&mut self, vector: &Vector, now: Timestamp) {
        self.voted_at.insert(vector.clone(), now);
    }

    /// When this life drafted the vote for that purge, if it did.
    pub(super) fn voted_at(&self, vector: &Vector, reference: &Reference) -> Option<Timestamp> {
        self.voted_at.get(vector).filter(|_| !self.is_second(reference)).copied()
    }

    /// Whether it took the place of another. What is found under such a one counts, whenever it was created, so a wrong clock costs one
    /// more purge and no third.
    pub(super) fn is_second(&self, reference: &Reference) -> bool {
        self.second.contains(reference)
    }

    /// The reference that takes the place of one that was used before, for this invalidation.
    pub(super) fn renew(&mut self, spent: &Reference, found: &InvalidationId) -> Reference {
        let second = renewed_reference(spent, found);
        self.second.insert(second.clone());
        second
    }

    /// Whether it is this member's turn: `wait` after the first member's. Once its turn has come, it stays.
    pub(super) fn is_turn(&mut self, now: Timestamp, vector: &Vector, task: Task, wait: Duration) -> bool {
        // One lead for all steps of one decision: a member that takes over the matching need not wait again before
        // creating.
        let from = match &task {
            Task::Match | Task::Create(_) => *self.decided_at.entry(vector.clone()).or_insert(now),
            Task::Follow(_) | Task::Tell => now,
        };
        let turn = self.turns.entry((vector.clone(), task)).or_insert_with(|| Some(from.after(wait)));
        *turn = turn.filter(|at| *at > now);
        turn.is_none()
    }

    /// The end of the vector is announced anew.
    pub(super) fn tell_again(&mut self, vector: &Vector) {
        self.turns.remove(&(vector.clone(), Task::Tell));
    }

    /// Nothing more follows from the vector.
    pub(super) fn release(&mut self, vector: &Vector) {
        self.decided_at.remove(vector);
        self.compared.remove(vector);
        self.looks.release(vector);
        self.turns.retain(|(of, _), _| of != vector);
    }

    /// Asks for the distributions of the vector, unless that is under way.
    pub(super) fn begins_match(&mut self, now: Timestamp, vector: &Vector) -> bool {
        let call = self.matching.entry(vector.clone()).or_default();
        let due = call.is_due(now);
        if due {
            call.asked();
        }
        due
    }

    /// The distributions of the vector are known.
    pub(super) fn matched(&mut self, vector: &Vector) {
        self.matching.remove(vector);
    }

    /// By which listing the purges of the vector are all known, if they are.
    pub(super) fn compared(&self, vector: &Vector) -> Option<Compared> {
        self.compared.get(vector).copied()
    }

    /// From when the listing was, where no newer one was to be had.
    pub(super) fn listed(&self, vector: &Vector) -> Option<String> {
        match self.compared.get(vector)? {
            Compared::Newer => None,
            Compared::Stale(Some(age)) => Some(format!("{} ago", text::duration(*age))),
            Compared::Stale(None) => Some("before the last restart".to_owned()),
        }
    }

    /// They are all known.
    pub(super) fn compare(&mut self, vector: &Vector, by: Compared) {
        self.compared.insert(vector.clone(), by);
    }

    /// There are none, and the vote is not stored yet.
    pub(super) fn found_none(&mut self, vector: &Vector) {
        self.none.insert(vector.clone());
    }

    /// Whether there are none.
    pub(super) fn are_none(&self, vector: &Vector) -> bool {
        self.none.contains(vector)
    }

    /// Whether there were none for a vote that is stored now.
    pub(super) fn takes_none(&mut self, vector: &Vector) -> bool {
        self.none.remove(vector)
    }

    /// They could not be found; we ask again.
    pub(super) fn match_failed(&mut self, vector: &Vector, again: impl FnOnce(u32) -> Timestamp, why: &str) {
        if let Some(call) = self.matching.get_mut(vector) {
            call.failed(again, why);
        }
    }

    /// Whether the search for the distributions of the vector is under way.
    pub(super) fn is_matching(&self, vector: &Vector) -> bool {
        self.matching.get(vector).is_some_and(Call::is_asked)
    }

    /// The search for the distributions of each vector.
    pub(super) fn matching(&self) -> impl Iterator<Item = (&Vector, &Call)> {
        self.matching.iter()
    }

    /// Whether this life has ordered it.
    pub(super) fn is_ordered(&self, reference: &Reference) -> bool {
        self.ordered.contains(reference)
    }

    /// This life orders it.
    pub(super) fn note_ordered(&mut self, reference: &Reference) {
        self.ordered.insert(reference.clone());
    }

    /// It is ordered again, because its facts have changed.
    pub(super) fn order_again(&mut self, reference: &Reference) {
        self.ordered.remove(reference);
    }

    /// Why a denied purge is owed, and from when on (`None`: now).
    pub(super) fn owed_at(&self, reference: &Reference) -> Option<&(Option<Timestamp>, String)> {
        self.owed_at.get(reference)
    }

    /// It is owed from then on; `None` is at once.
    pub(super) fn owe(&mut self, reference: &Reference, due: Option<Timestamp>, why: &str) {
        self.owed_at.insert(reference.clone(), (due, why.to_owned()));
    }

    /// It is denied no more.
    pub(super) fn settle(&mut self, reference: &Reference) {
        self.owed_at.remove(reference);
    }

    /// The report of owed purges is repeated at this time.
    pub(super) fn remind(&mut self, vector: &Vector, at: Timestamp) {
        self.remind_at.insert(vector.clone(), at);
    }

    /// Forgets the reports of all other vectors: only these still owe something.
    pub(super) fn remind_only_of(&mut self, vectors: &[Vector]) {
        self.remind_at.retain(|vector, _| vectors.contains(vector));
    }

    /// An actor that was asked something was rebuilt and has forgotten it.
    pub(super) fn restart(&mut self) {
        self.matching.clear();
        self.none.clear();
        self.ordered.clear();
    }

    /// Another writer has changed the record to this one.
    pub(super) fn begin_anew(&mut self, record: Option<&Record>) {
        self.restart();
        self.inherit(record);
        self.compared.clear();
        self.looks.begin_anew();
        self.voted_at.clear();
        self.turns.clear();
    }

    /// Ends every wait that is over, so that no deadline stays in the past.
    pub(super) fn wake(&mut self, now: Timestamp) {
        self.matching.values_mut().for_each(|call| call.wake(now));
        self.turns.values_mut().for_each(|turn| *turn = turn.filter(|at| *at > now));
        self.owed_at.values_mut().for_each(|(due, _)| *due = due.filter(|due| *due > now));
        self.remind_at.retain(|_, at| *at > now);
    }

    /// When a question is repeated, a turn comes, a purge becomes owed, or a report is repeated.
    pub(super) fn deadline(&self, draft: Option<&Record>) -> Option<Timestamp> {
        let open = |reference: &Reference| {
            let votes = draft.iter().flat_map(|draft| &draft.votes).filter(|vote: &&Vote| vote.closed.is_none());
            let mut purges = votes.flat_map(|vote| vote.purges.listed.values());
            purges.any(|purge| purge.reference == *reference && !purge.state.ends_rollout())
        };
        let due = self.owed_at.iter().filter(|(reference, _)| open(reference)).filter_map(|(_, (due, _))| *due);
        let turns = self.turns.values().flatten().copied();
        let matching = self.matching.values().filter_map(Call::deadline);
        due.chain(turns).chain(matching).chain(self.remind_at.values().copied()).chain(self.looks.deadline()).min()
    }
}

impl Rollout {
    /// Whether this member may do something that others may do as well: once its turn has come, it stays.
    pub(super) fn is_turn(&mut self, now: Timestamp, vector: &Vector, task: Task) -> bool {
        if self.identity.is_alone() {
            return true;
        }
        let (key, after) = match &task {
            Task::Create(distribution) => (distribution.to_string(), 1),
            Task::Follow(distribution) => (distribution.to_string(), FOLLOW_AFTER),
            Task::Match => (self.group_rollout(vector), 1),
            Task::Tell => (self.teller_key(vector), 1),
        };
        let rank = rank(&key, &self.identity.member, vector.0.keys());
        let wait = self.policy.group.takeover.saturating_mul(rank.saturating_mul(after));
        self.purges.is_turn(now, vector, task, wait)
    }

    /// Whether no other member comes before this one with the purge of a distribution.
    pub(super) fn is_first_for(&self, vector: &Vector, distribution: &DistributionId) -> bool {
        self.identity.is_alone() || rank(distribution.as_str(), &self.identity.member, vector.0.keys()) == 0
    }

    /// The member that purges the first distribution announces the end: it is the first to know.
    fn teller_key(&self, vector: &Vector) -> String {
        let vote = self.record.draft.as_ref().and_then(|draft| draft.vote(vector));
        let first = vote.and_then(|vote| vote.purges.listed.keys().next()).map(ToString::to_string);
        first.unwrap_or_else(|| self.group_rollout(vector))
    }

    /// Orders a purge, with the paths to send, or those `voted` for. One that exists, or is covered, is waited for, and none is created.
    pub(super) fn order(
        &mut self,
        vector: &Vector,
        distribution: &DistributionId,
        purge: &Purge,
        voted: &PathSet,
    ) -> Effect {
        self.purges.note_ordered(&purge.reference);
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        Effect::Purge(Box::new(Order {
            reference: purge.reference.clone(),
            distribution: distribution.clone(),
            paths: purge.sent.as_ref().unwrap_or(voted).clone(),
            subject: self.identity.workload.clone().into(),
            invalidation: purge.invalidation.clone().filter(|_| !purge.is_wanted()),
            paths_per_hour: limits.paths_per_hour,
            purges_per_hour: limits.purges_per_hour,
            voted_at: self.purges.voted_at(vector, &purge.reference),
            voted_ms: self.voted_ms(vector, &purge.reference),
            ordered_ms: 0,
        }))
    }
}
