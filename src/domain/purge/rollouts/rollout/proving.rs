//! The looks at what the purges of this member have left at the edge, and the further purges that follow from them.
//!
//! ```text
//! completed ──▶ in the record, by the same write ──▶ asks ──▶ verdict: told, and in the history
//!                                                     ▲         └── stale, and a further purge may help ──▶ ordered ──▶ completed ─┐
//!                                                     └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Only the member that hears from CloudFront that a purge is complete looks at what it left, and others take its word, unless each is
//! to look from its own cluster; further purges are ordered by that one in any case. A look ends without a
//! word when a newer purge renews its pages, and one by a marker when another version begins: what new pods answer is not about it then.
//!
//! Not for when and what is asked, nor for what answers prove; that is [`proof::look`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bounds::policy::Proven;
use crate::purges::catalog::Found;
use crate::purges::purge::{Order, Progress};
use crate::records::record::{
    NOTICE_LIST_BYTES_MAX, PAGES_LOOKED_AT_MAX, Proving, Purge, PurgeState, Record, Seen, Vote, fitting,
};
use crate::records::record_codec;
use crate::rollouts::rollout::{Effect, Rollout, Sight};
use crate::rollouts::rollout::{ballot, words};
use kernel::id::{Reference, Vector};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kernel::text;
use notices::notice::{About, Kind, Mentions, Notice, PurgeFact};
use proof::asked::{Answers, Page, QuestionId};
use proof::look::{self, Again, Look, Ordered, Phase};
use proof::tally::Found as Shown;
use proof::verdict::{Follows, Verdict};

/// This life's state of the looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Looks {
    // Boxed, as those of the record are.
    running: BTreeMap<Reference, Box<Look>>,
    /// By which hosts each distribution of a vector was found, in this life.
    reached: BTreeMap<Vector, BTreeMap<DistributionId, BTreeSet<Host>>>,
    /// When this life learnt that a purge was created, by whomever; only while its completion is awaited.
    ordered: BTreeMap<Reference, Timestamp>,
}

/// A purge of a vector that is complete and is to be looked at.
pub(super) struct Completed {
    pub vector: Vector,
    pub distribution: DistributionId,
    /// As it was before.
    pub purge: Purge,
    pub ordered: Ordered,
    /// This member may purge it once more: one does of all that look.
    pub may_purge: bool,
}

impl Looks {
    /// The distributions of a vector were found.
    pub(super) fn reach(&mut self, vector: &Vector, found: &Found) {
        let known = self.reached.entry(vector.clone()).or_default();
        known.extend(found.distributions.iter().map(|(id, reached)| (id.clone(), reached.hosts.clone())));
    }

    /// Nothing more follows from the vector.
    pub(super) fn release(&mut self, vector: &Vector) {
        self.reached.remove(vector);
    }

    /// Another writer has changed the record.
    pub(super) fn begin_anew(&mut self) {
        self.running.clear();
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.running.values().filter_map(|look| look.next_deadline()).min()
    }
}

impl Rollout {
    /// How the workload is looked at after a purge, if it is.
    pub(super) fn proven(&self) -> Option<Proven> {
        self.policy.proof_of(self.workload()?)
    }

    /// A purge was created: it was ordered by now. That is of use to a look alone.
    pub(super) fn note_ordered(&mut self, reference: &Reference, now: Timestamp) {
        if self.proven().is_some() {
            let kept = self.record.draft.iter().flat_map(Record::all_kept);
            let listed = kept.flat_map(|vote| vote.purges.listed.values()).map(|purge| &purge.reference);
            let listed: BTreeSet<&Reference> = listed.collect();
            self.purges.looks.ordered.retain(|known, _| listed.contains(known));
            self.purges.looks.ordered.entry(reference.clone()).or_insert(now);
        }
    }

    /// Between which instants of this life a purge was ordered, where another member did that: after this one had voted, for until then it
    /// could not be decided, and before it was known to be created.
    pub(super) fn ordered(&self, vector: &Vector, reference: &Reference) -> Ordered {
        let by = self.purges.looks.ordered.get(reference).copied();
        Ordered { after: self.purges.voted_at(vector, reference), by }
    }

    /// Another member's word has changed how far purges of a vector are. Where each member is to look, this one begins to.
    pub(super) fn look_at_others(&mut self, now: Timestamp, vector: &Vector, before: &BTreeMap<DistributionId, Purge>) {
        let Some(vote) = self.record.open_vote(vector) else { return };
        let is_news = |(id, purge): &(&DistributionId, &Purge)| {
            before.get(*id).is_none_or(|before| before.state != purge.state && !before.state.is_final())
        };
        let news: Vec<_> = vote.purges.listed.iter().filter(is_news).map(|(id, of)| (id.clone(), of.clone())).collect();
        for (distribution, purge) in news {
            if purge.state == PurgeState::Created {
                self.note_ordered(&purge.reference, now);
            }
            if purge.state == PurgeState::Completed && self.policy.proof.each_member_looks() {
                let (vector, ordered) = (vector.clone(), self.ordered(vector, &purge.reference));
                self.begin_look(now, Completed { vector, distribution, purge, ordered, may_purge: false });
            }
        }
    }

    /// A purge of the vector is complete: what it left is looked at, if its owner or the operator wants that. One that was covered was renewed
    /// by a purge of somebody else, and one whose hosts may be those of another distribution proves nothing of this one: neither is purged
    /// once more.
    pub(super) fn begin_look(&mut self, now: Timestamp, completed: Completed) {
        let Completed { vector, distribution, purge, ordered, may_purge } = &completed;
        let id = distribution;
        self.purges.looks.ordered.remove(&purge.reference);
        let Some(proven) = self.proven().filter(|_| purge.made().is_some()) else { return };
        let Some(vote) = self.record.draft.as_ref().and_then(|draft| draft.kept(vector)).cloned() else { return };
        let before = self.leave_look(&purge.reference);
        let paths = purge.sent.clone().unwrap_or_else(|| self.agreed_paths(&vote));
        let reached = self.purges.looks.reached.get(vector).and_then(|reached| reached.get(id)).cloned();
        let is_sure = *may_purge && reached.is_some() && !matches!(purge.state, PurgeState::Covered(_));
        let again = if is_sure { proven.again } else { Again::default() };
        let hosts = reached.filter(|hosts| !hosts.is_empty()).unwrap_or_else(|| self.only_hosts(&vote));
        let looked_at = self.pages_looked_at();
        let pages = pages(&hosts, &proven, PAGES_LOOKED_AT_MAX.saturating_sub(looked_at));
        let look = Look::begin(now, *ordered, paths, pages, proven.marker, again);
        let look = look.map(|look| before.as_ref().map_or(look.clone(), |before| look.in_place_of(&before.look)));
        let (seq, rollout) = (vote.seq, self.group_rollout(vector));
        let Some(draft) = &mut self.record.draft else { return };
        let change = words::changed_by(&vote, draft.before(), draft.seq);
        let (distribution, noticed) = (id.clone(), before.map(|before| before.noticed).unwrap_or_default());
        let proving = look.as_ref().map(|look| {
            let look = look.stored().clone();
            let only_looks = !may_purge && proven.again != Again::default();
            Proving { distribution, seq, rollout, change, look, noticed, seen: None, widened: false, only_looks }
        });
        let has_room = |proving: &Proving| record_codec::room(draft) > proving.bytes_at_most();
        match (look, proving) {
            (Some(look), Some(proving)) if has_room(&proving) => {
                Arc::make_mut(&mut draft.looks).insert(purge.reference.clone(), Box::new(proving));
                self.purges.looks.running.insert(purge.reference.clone(), Box::new(look));
            }
            (None, _) if looked_at < PAGES_LOOKED_AT_MAX => {
                let why = "no host of it is known here, or no page of it was purged";
                let why = format!("nothing says whether {id} is fresh: {why}");
                self.announce_vote(now, vector, Kind::EdgeUnknown, id.as_str(), why);
            }
            (_, _) => {
                let why = format!("more than {PAGES_LOOKED_AT_MAX} pages of this workload are not looked at together");
                let why = format!("nothing says whether all distributions are fresh, {id} among them: {why}");
                self.announce_vote(now, vector, Kind::EdgeUnknown, "room", why);
            }
        }
    }

    /// A look from another member's word gives way to one of the member that ordered the purge itself.
    fn leave_look(&mut self, reference: &Reference) -> Option<Proving> {
        self.purges.looks.running.remove(reference);
        let draft = self.record.draft.as_mut().filter(|draft| draft.looks.contains_key(reference))?;
        Arc::make_mut(&mut draft.looks).remove(reference).map(|proving| *proving)
    }

    /// The paths that all members voted for, as far as their votes are known here.
    fn agreed_paths(&self, vote: &Vote) -> PathSet {
        ballot::plan(&self.ballot.view, &vote.vector).map_or_else(|| vote.plan.paths.clone(), |plan| plan.paths)
    }

    /// The hosts of the only distribution, where this life has not matched it itself.
    fn only_hosts(&self, vote: &Vote) -> BTreeSet<Host> {
        if vote.purges.count().all() != 1 {
            return BTreeSet::new();
        }
        let (_, agreed) = self.ballot.agreed(&vote.vector);
        if agreed.is_empty() { vote.plan.hosts.clone() } else { agreed }
    }

    /// Pages that are being looked at.
    fn pages_looked_at(&self) -> usize {
        let looks = self.record.draft.iter().flat_map(|draft| draft.looks.values());
        looks.filter(|proving| proving.look.phase != Phase::Done).map(|proving| proving.look.pages.len()).sum()
    }

    /// Goes on with all looks. Called after every event and tick.
    pub(super) fn look_at_edge(&mut self, now: Timestamp) -> Vec<Effect> {
        let Some(draft) = &mut self.record.draft else {
            let running = std::mem::take(&mut self.purges.looks.running);
            return running.into_keys().map(Effect::LeaveEdge).collect();
        };
        draft.note_seen();
        let references: Vec<Reference> = draft.looks.keys().cloned().collect();
        // A record without room has let go of some.
        let gone = self.purges.looks.running.extract_if(.., |reference, _| !references.contains(reference));
        let mut effects: Vec<Effect> = gone.map(|(reference, _)| Effect::LeaveEdge(reference)).collect();
        for reference in references {
            let Some(draft) = &self.record.draft else { break };
            let Some(proving) = draft.looks.get(&reference) else { continue };
            let durable = self.record.durable.as_ref().and_then(|durable| durable.looks.get(&reference));
            let event = match durable {
                _ if self.is_overtaken(draft, proving) => Some(look::Event::Overtaken),
                _ if self.is_unwanted(proving) => Some(look::Event::Forgotten),
                Some(durable) => Some(look::Event::Kept(durable.look.number)),
                None => None,
            };
            let resumed = || Box::new(Look::resume(now, proving.look.clone()));
            let look = self.purges.looks.running.entry(reference.clone()).or_insert_with(resumed);
            let follows = match event {
                Some(event) => look.step(now, event),
                None => look.tick(now),
            };
            effects.extend(self.follow_look(now, &reference, follows));
            self.drop_look(&reference);
        }
        effects.extend(self.order_once_more(now));
        effects
    }

    /// An answer of the edge, or a further purge that has ended, is about one look.
    pub(super) fn step_look(&mut self, now: Timestamp, reference: &Reference, event: look::Event) -> Vec<Effect> {
        let Some(look) = self.purges.looks.running.get_mut(reference) else { return Vec::new() };
        let follows = look.step(now, event);
        self.follow_look(now, reference, follows)
    }

    /// See [`Effect::AskEdge`].
    pub(super) fn edge_answered(
        &mut self,
        now: Timestamp,
        of: &Reference,
        id: QuestionId,
        answers: Box<Answers>,
    ) -> Vec<Effect> {
        self.step_look(now, of, look::Event::Answered(id, answers))
    }

    /// Whoever was asked was rebuilt and has forgotten it.
    pub(super) fn ask_edge_again(&mut self, now: Timestamp) -> Vec<Effect> {
        let running: Vec<Reference> = self.purges.looks.running.keys().cloned().collect();
        running.iter().flat_map(|reference| self.step_look(now, reference, look::Event::PeersRestarted)).collect()
    }

    /// Its owner, or the operator, has switched it off, or wants it done in another way. While it is not known how the workload stands,
    /// nothing changes.
    fn is_unwanted(&self, proving: &Proving) -> bool {
        let Sight::Seen(workload) = &self.sighting.sight else { return false };
        let proven = self.policy.proof_of(workload).filter(|_| !workload.tuning.disabled);
        proven.is_none_or(|proven| proven.marker != proving.look.marker)
    }

    /// Whether a newer purge renews the pages, or another version begins, with which they cannot be compared. What is on its way is made.
    fn is_overtaken(&self, draft: &Record, proving: &Proving) -> bool {
        let renews = |vote: &Vote| {
            let purge = vote.purges.listed.get(&proving.distribution).filter(|_| vote.seq > proving.seq)?;
            purge.made()?;
            let sent = purge.sent.clone().unwrap_or_else(|| self.agreed_paths(vote));
            Some(sent.covers(&proving.look.paths))
        };
        let compares = proving.look.marker.is_some() && matches!(proving.look.phase, Phase::Looking | Phase::Later);
        let is_another = || draft.settled().is_none_or(|settled| *settled != draft.version);
        let has_moved_on = compares && draft.seq > proving.seq && is_another();
        has_moved_on || draft.all_kept().any(|vote| renews(vote).unwrap_or_default())
    }

    fn follow_look(&mut self, now: Timestamp, reference: &Reference, follows: Vec<look::Effect>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for effect in follows {
            let Some(draft) = self.record.draft.as_mut() else { break };
            let Some(seq) = draft.looks.get(reference).map(|proving| proving.seq) else { break };
            match effect {
                look::Effect::Keep(stored) => draft.change_look(reference, |proving| proving.look = *stored),
                look::Effect::Ask(question) => effects.push(Effect::AskEdge(reference.clone(), question)),
                look::Effect::PurgeAgain(_, verdict) => {
                    draft.forget_fresh(seq);
                    self.tell_of_look(now, reference, Kind::PurgeRepeated, &verdict.round.to_string(), verdict.words);
                }
                // What a further purge follows from is told with that.
                look::Effect::Tell(verdict) if verdict.follows == Follows::Again => {}
                look::Effect::Tell(verdict) => {
                    let seen = Seen::new(verdict.found, &verdict.words);
                    let is_helpless = verdict.follows == Follows::Helpless;
                    draft.change_look(reference, |proving| {
                        proving.seen = Some(Seen { may_be_over: proving.only_looks && !is_helpless, ..seen });
                    });
                    self.tell_of_look(now, reference, kind_of(&verdict), &verdict.round.to_string(), verdict.words);
                }
                look::Effect::End => effects.push(Effect::LeaveEdge(reference.clone())),
            }
        }
        effects
    }

    /// Drops a look that has ended, once what it saw is in the history. Until its rollout is closed it stays.
    fn drop_look(&mut self, reference: &Reference) {
        let Some(draft) = &mut self.record.draft else { return };
        draft.note_seen();
        let Some(proving) = draft.looks.get(reference) else { return };
        let is_open = draft.votes.iter().any(|vote| vote.seq == proving.seq && vote.closed.is_none());
        let is_over = self.purges.looks.running.get(reference).is_some_and(|look| look.is_over());
        if is_over && !(is_open && proving.seen.is_some()) {
            Arc::make_mut(&mut draft.looks).remove(reference);
            self.purges.looks.running.remove(reference);
        }
    }

    /// Orders the further purges whose evidence is durable, each once the caches between were asked.
    fn order_once_more(&mut self, now: Timestamp) -> Vec<Effect> {
        let Some((draft, durable)) = self.record.draft.as_ref().zip(self.record.durable.as_ref()) else {
            return Vec::new();
        };
        let due = draft.looks.iter().filter_map(|(first, proving)| {
            let (reference, _) = proving.again(first)?;
            let stored = durable.looks.get(first)?;
            let is_stored = stored.again(first)?.0 == reference && stored.widened == proving.widened;
            (is_stored && !self.purges.is_ordered(&reference)).then(|| (reference, proving.clone()))
        });
        let due: Vec<(Reference, Box<Proving>)> = due.collect();
        let known = draft.last_hosts();
        let of = |(reference, proving): &(Reference, Box<Proving>)| {
            let pages = proving.look.pages.iter().map(|tally| tally.page.host().clone());
            (reference.clone(), pages.chain(known.iter().cloned()).collect(), proving.paths_of_again())
        };
        let mut effects = Vec::new();
        // What still has the old version would fill the edge with it once more.
        let ready = self.clear_caches_again(now, &due.iter().map(of).collect::<Vec<_>>(), &mut effects);
        let ready = due.into_iter().filter(|(reference, _)| ready.contains(reference));
        effects.extend(ready.map(|(reference, proving)| self.order_again_of(reference, &proving)));
        effects
    }

    fn order_again_of(&mut self, reference: Reference, proving: &Proving) -> Effect {
        self.purges.note_ordered(&reference);
        let limits = self.policy.tenants.limits(&self.identity.workload.namespace);
        Effect::Purge(Box::new(Order {
            reference,
            distribution: proving.distribution.clone(),
            paths: proving.paths_of_again(),
            subject: self.identity.workload.clone().into(),
            invalidation: None,
            paths_per_hour: limits.paths_per_hour,
            purges_per_hour: limits.purges_per_hour,
            voted_at: None,
            voted_ms: 0,
            ordered_ms: 0,
        }))
    }

    /// A further purge made progress. Returns `None` if it is none.
    pub(super) fn purged_again(
        &mut self,
        now: Timestamp,
        again: &Reference,
        progress: &Progress,
    ) -> Option<Vec<Effect>> {
        let draft = self.record.draft.as_mut()?;
        let (first, round) = draft.look_of_again(again).map(|(first, round)| (first.clone(), round))?;
        let proving = draft.looks.get(&first)?;
        let what = format!("{} once more", proving.distribution);
        let told = match progress {
            Progress::Created(id) | Progress::Covered { invalidation: id, .. } if id.is_of_dry_run() => {
                return Some(self.step_look(now, &first, look::Event::Forgotten));
            }
            Progress::Created(_) | Progress::Covered { .. } | Progress::SentBefore(_) => None,
            Progress::Completed(called) => {
                return Some(self.step_look(now, &first, look::Event::AgainCompleted(round, *called)));
            }
            Progress::DoneByOther | Progress::Spent(_) => {
                return Some(self.give_up_again(now, &first, round, "its reference was used for something else"));
            }
            // Most wait no longer for the first one, either.
            Progress::Impossible(why) | Progress::Overdue(why) => {
                return Some(self.give_up_again(now, &first, round, why));
            }
            Progress::OverBudget => {
                draft.change_look(&first, |proving| proving.widened = true);
                self.purges.order_again(again);
                None
            }
            Progress::Failing(why) => {
                let why = format!("cannot purge {what} yet: {why}; {}", words::retried());
                Some((Kind::PurgeStalled, "failing", why))
            }
            Progress::Spaced(purges) => {
                let why = format!("its namespace has used up its {purges} purges of it an hour");
                Some((Kind::PurgeStalled, "spaced", format!("purging {what} waits: {why}")))
            }
            Progress::Stalled(waited) => {
                let why = format!("purging {what} is not completed after {}", text::duration(*waited));
                Some((Kind::PurgeStalled, "slow", why))
            }
        };
        if let Some((kind, detail, message)) = told {
            self.tell_of_look(now, &first, kind, &format!("again {round}/{detail}"), message);
        }
        Some(Vec::new())
    }

    /// A further purge cannot be made: that is told, and then that the edge is stale.
    fn give_up_again(&mut self, now: Timestamp, first: &Reference, round: u8, why: &str) -> Vec<Effect> {
        let of = self.record.draft.as_ref().and_then(|draft| draft.looks.get(first));
        let message = of.map(|proving| format!("cannot purge {} once more: {why}", proving.distribution));
        let detail = format!("again {round}");
        message.into_iter().for_each(|message| self.tell_of_look(now, first, Kind::PurgeFailed, &detail, message));
        self.step_look(now, first, look::Event::AgainFailed(round))
    }

    /// Writes a notice about a look into the draft, once for each detail.
    pub(super) fn tell_of_look(
        &mut self,
        now: Timestamp,
        reference: &Reference,
        kind: Kind,
        detail: &str,
        message: String,
    ) {
        let member = self.identity.member.clone();
        let own = if self.identity.is_alone() { String::new() } else { format!("/{member}") };
        let at_ms = self.identity.wall_ms(now);
        let workload = self.identity.workload.clone();
        let Some(draft) = &mut self.record.draft else { return };
        let stand_in = draft.stand_in;
        let Some(proving) = draft.looks.get(reference) else { return };
        let id = Notice::id_of(&proving.rollout, kind, &format!("{reference}/{detail}{own}"));
        if proving.noticed.contains(&id) {
            return;
        }
        let hosts: BTreeSet<&Host> = proving.look.pages.iter().map(|tally| tally.page.host()).collect();
        let mentioned = fitting(proving.look.paths.iter(), NOTICE_LIST_BYTES_MAX, |path| path.as_str().len());
        let paths: Vec<_> = mentioned.cloned().collect();
        let cut = paths.len() < proving.look.paths.len();
        let purges = vec![PurgeFact { distribution: proving.distribution.clone(), invalidation: None, paths }];
        let hosts = hosts.into_iter().cloned().collect();
        let notice = Notice {
            id: id.clone(),
            kind,
            at_ms,
            about: About::Workload(workload, Mentions { hosts, purges, cut, late: false, stand_in }),
            seq: proving.seq,
            rollout: proving.rollout.clone(),
            change: proving.change.clone(),
            message,
        };
        draft.untold.push(notice);
        draft.change_look(reference, |proving| proving.noticed.extend([id]));
    }
}

/// Whether a purge is a further one whose evidence is on record.
pub(super) fn is_on_record(held: &Record, order: &Order) -> bool {
    let proving = held.look_of_again(&order.reference).and_then(|(first, _)| held.looks.get(first));
    proving.is_some_and(|proving| proving.distribution == order.distribution && proving.paths_of_again() == order.paths)
}

impl Proving {
    /// The paths that its further purge sends.
    fn paths_of_again(&self) -> PathSet {
        if self.widened { PathSet::default() } else { self.look.paths_of_again() }
    }
}

/// The pages of these hosts: of each the first path, then the others.
fn pages(hosts: &BTreeSet<Host>, proven: &Proven, most: usize) -> Vec<Page> {
    let pages = proven.paths.iter().flat_map(|path| hosts.iter().map(move |host| (host.clone(), path.clone())));
    pages.filter_map(|(host, path)| Page::new(host, path).ok()).take(most).collect()
}

const fn kind_of(verdict: &Verdict) -> Kind {
    match verdict.found {
        Shown::Fresh => Kind::EdgeFresh,
        Shown::Renewed => Kind::EdgeRenewed,
        Shown::Unknown => Kind::EdgeUnknown,
        Shown::Stale => Kind::EdgeStale,
    }
}
