//! The names of our workloads in the group (decision 55), and the edge where names change: rollouts, the ledger and
//! people know a workload by the name it has in this cluster; everything else in the broker, the boards and the beats
//! by its name in the group.
//!
//! Names are read from the records, so nothing is posted before the ledger was read. Of two workloads under one name, the one that is
//! really called so stays, else the older one; but one with votes under it goes on until they have ended, because the group counts on
//! them. The others are refused: the group hears nothing of them.
//!
//! The numbers of one name go up, whoever goes by it. Where a board turns out to know a higher one that others of ours had, the
//! workload is counted above it, as nothing was lost.

use std::collections::{BTreeMap, BTreeSet};

use super::step::absent;
use super::{Broker, Effect, Event};
use crate::agreement::group::{Naming, View};
use crate::records::record::Record;
use kernel::id::{Seq, WorkloadId};
use kernel::machine::Timestamp;
use kernel::names::group_name::Alias;

/// Names that others of ours had before, with their numbers, that are remembered. Beyond it a set-back is suspected without cause, and
/// `allclear ledger adopt` ends that.
const PAST_MAX: usize = 1_000;

/// The parts of a record that its name depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Local {
    alias: Option<Box<Alias>>,
    seq: Seq,
    has_votes: bool,
}

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Names {
    /// True if names can differ, which takes a group.
    grouped: bool,
    /// All records are known.
    known: bool,
    /// The events before that.
    early: Vec<Event>,
    locals: BTreeMap<WorkloadId, Local>,
    /// Those that go by another name, by that name.
    aliases: BTreeMap<WorkloadId, BTreeSet<WorkloadId>>,
    /// The workload that has each of these names.
    bearers: BTreeMap<WorkloadId, WorkloadId>,
    /// The highest number that others of ours had under a name.
    past: BTreeMap<WorkloadId, Seq>,
    /// The newest records of rollouts whose workloads are refused.
    refused: BTreeMap<WorkloadId, Box<Record>>,
    /// Rollouts that are to learn how it stands with their names.
    untold: BTreeSet<WorkloadId>,
}

impl Names {
    /// Nothing is known. `reads`: the ledger is going to be read.
    pub(super) fn new(grouped: bool, reads: bool) -> Self {
        Self { grouped, known: !grouped || !reads, ..Self::default() }
    }

    /// Whether all records are known.
    pub(super) fn are_known(&self) -> bool {
        self.known
    }

    /// The name in the group of a workload of ours; `None` where another one has it.
    pub(super) fn of<'a>(&'a self, local: &'a WorkloadId) -> Option<&'a WorkloadId> {
        let name = self.called(local);
        self.bearers.get(name).is_none_or(|bearer| bearer == local).then_some(name)
    }

    /// The workload of ours that goes by a name, or would; `None` where the one called so goes by another.
    pub(super) fn local<'a>(&'a self, name: &'a WorkloadId) -> Option<&'a WorkloadId> {
        let own = self.locals.get(name).is_none_or(|local| local.alias.is_none());
        self.bearers.get(name).or_else(|| own.then_some(name))
    }

    /// Whether nothing of ours goes by this name.
    pub(super) fn is_free(&self, name: &WorkloadId) -> bool {
        self.heirs(name).next().is_none()
    }

    /// How a workload stands with its name, in words.
    pub(super) fn naming(&self, local: &WorkloadId) -> Naming {
        let name = self.called(local);
        let Some(bearer) = self.bearers.get(name) else { return Naming::Stands };
        let why = |rightful: &WorkloadId| {
            let (name, other) = (name.display_name(), rightful.display_name());
            let by = if other == name { "is really called so" } else { "is older and goes by it" };
            format!(
                "its name in the group, {name}, is that of another workload of this cluster: {other} {by}; give one of the two \
                 another allclear.dev/group-name"
            )
        };
        match self.rightful(name) {
            Some(rightful) if rightful == local && bearer == local => Naming::Stands,
            Some(rightful) if rightful == local => Naming::Refused(format!(
                "{} still goes by its name in the group, {}, until its open votes have ended",
                bearer.display_name(),
                name.display_name()
            )),
            Some(rightful) if bearer == local => Naming::Leaves(why(rightful)),
            Some(rightful) => Naming::Refused(why(rightful)),
            None => Naming::Stands,
        }
    }

    /// The highest number that others of ours may have had under a name, where `floor` is that of the ledger; `None` where nothing but
    /// the workload called so ever went by it, as far as is known.
    fn others_had(&self, name: &WorkloadId, floor: Seq) -> Option<Seq> {
        let past = self.past.get(name).copied();
        let is_shared = self.aliases.contains_key(name) || past.is_some();
        is_shared.then(|| past.unwrap_or_default().max(Record::above(floor).0))
    }

    fn called<'a>(&'a self, local: &'a WorkloadId) -> &'a WorkloadId {
        self.locals.get(local).and_then(|known| known.alias.as_ref()).map_or(local, |alias| &alias.name)
    }

    /// All that go by a name, with what decides between them: who comes first, stays. And whether it has votes.
    fn heirs<'a>(&'a self, name: &'a WorkloadId) -> impl Iterator<Item = (bool, &'a str, &'a WorkloadId, bool)> {
        let own = self.locals.get_key_value(name).filter(|(_, local)| local.alias.is_none());
        let aliases = self.aliases.get(name).into_iter().flatten().filter_map(|id| self.locals.get_key_value(id));
        own.into_iter().chain(aliases).map(move |(id, local)| {
            let created = local.alias.as_ref().map_or("", |alias| alias.created.as_str());
            (id != name, created, id, local.has_votes)
        })
    }

    fn rightful<'a>(&'a self, name: &'a WorkloadId) -> Option<&'a WorkloadId> {
        self.heirs(name).min().map(|(_, _, id, _)| id)
    }

    /// Takes in a record. Returns the names that may now have another bearer.
    fn put(&mut self, local: &WorkloadId, record: &Record) -> BTreeSet<WorkloadId> {
        let mut touched = self.take_out(local);
        if let Some(Alias { name, .. }) = record.group_name.as_deref() {
            self.aliases.entry(name.clone()).or_default().insert(local.clone());
            touched.insert(name.clone());
        }
        let has_votes = !record.votes.is_empty();
        self.locals.insert(local.clone(), Local { alias: record.group_name.clone(), seq: record.seq, has_votes });
        touched
    }

    /// A record is gone, or says something else. Returns the same.
    fn take_out(&mut self, local: &WorkloadId) -> BTreeSet<WorkloadId> {
        let mut touched: BTreeSet<WorkloadId> =
            self.aliases.contains_key(local).then(|| local.clone()).into_iter().collect();
        let Some(before) = self.locals.remove(local) else { return touched };
        if let Some(name) = before.alias.map(|alias| alias.name) {
            if let Some(others) = self.aliases.get_mut(&name) {
                others.remove(local);
            }
            self.aliases.retain(|_, others| !others.is_empty());
            touched.insert(name);
        }
        touched
    }

    /// Finds out who has a name. Returns who had it, and who has it.
    fn settle(&mut self, name: &WorkloadId) -> (Option<WorkloadId>, Option<WorkloadId>) {
        let is_called = self.locals.get(name).is_some_and(|local| local.alias.is_none());
        let before = self.bearers.get(name).cloned().or_else(|| (self.known && is_called).then(|| name.clone()));
        let stays = |id: &WorkloadId, has_votes| has_votes && before.as_ref().is_none_or(|before| before == id);
        let first =
            self.heirs(name).min_by_key(|(other, created, id, votes)| (!stays(id, *votes), *other, *created, *id));
        let after = first.map(|(_, _, id, _)| id.clone());
        let seqs = self.heirs(name).filter(|(_, _, id, _)| Some(*id) != after.as_ref());
        let highest = seqs.filter_map(|(_, _, id, _)| Some(self.locals.get(id)?.seq)).max();
        if before != after {
            highest.into_iter().for_each(|seq| self.note_past(name.clone(), seq));
        }
        let all: Vec<WorkloadId> = self.heirs(name).map(|(_, _, id, _)| id.clone()).collect();
        if before != after || all.len() > 1 {
            self.untold.extend(all);
        }
        match after.clone().filter(|_| self.aliases.contains_key(name)) {
            Some(bearer) => self.bearers.insert(name.clone(), bearer),
            None => self.bearers.remove(name),
        };
        (before, after)
    }

    fn note_past(&mut self, name: WorkloadId, seq: Seq) {
        let past = self.past.entry(name).or_default();
        *past = seq.max(*past);
        if self.past.len() > PAST_MAX {
            self.past.pop_first();
        }
    }
}

impl Broker {
    /// The workload of ours that the group knows by this name.
    pub fn local(&self, name: &WorkloadId) -> WorkloadId {
        self.names.local(name).unwrap_or(name).clone()
    }

    /// The name that a workload of ours has in the group, or would have.
    pub fn name_in_group<'a>(&'a self, local: &'a WorkloadId) -> &'a WorkloadId {
        self.names.called(local)
    }

    /// The view of a rollout whose workload the group does not know by its name.
    pub(super) fn unnamed(&self, local: &WorkloadId) -> Option<View> {
        let (naming, hold) = match self.names.naming(local) {
            _ if !self.names.known => {
                (Naming::Stands, "what its workloads go by in the group is being read from the ledger".to_owned())
            }
            Naming::Stands | Naming::Leaves(_) => return None,
            Naming::Refused(why) => (Naming::Refused(why.clone()), why),
        };
        let config = self.membership.standing.config.clone();
        Some(View { config, hold: Some(hold), naming, ..View::default() })
    }

    /// Keeps an event for when all names are known, if they are not.
    pub(super) fn keeps(&mut self, event: &Event) -> bool {
        let is_of_ours = matches!(
            event,
            Event::Published(..) | Event::Shown(_) | Event::Absent(..) | Event::Forgotten(..) | Event::Left(_)
        );
        let keeps = is_of_ours && !self.names.known;
        if keeps {
            self.names.early.push(event.clone());
        }
        keeps
    }

    /// The ledger's records are known: so are the names. Takes in what came before.
    pub(super) fn learn_names<'a>(
        &mut self,
        now: Timestamp,
        records: impl Iterator<Item = (&'a WorkloadId, &'a Record)>,
    ) {
        if !self.names.grouped {
            return;
        }
        let mut touched = BTreeSet::new();
        for (local, record) in records {
            if !self.names.locals.contains_key(local) {
                touched.extend(self.names.put(local, record));
            }
        }
        touched.iter().for_each(|name| self.settle(now, name));
        self.names.known = true;
    }

    /// The events before all names were known. Their rollouts get another view.
    pub(super) fn early(&mut self) -> Vec<Event> {
        let early = std::mem::take(&mut self.names.early);
        let published = early
            .iter()
            .filter_map(|event| if let Event::Published(local, _) = event { Some(local.clone()) } else { None });
        self.names.untold.extend(published);
        early
    }

    /// A record of ours says what it says. A rollout may follow it. Returns its name, if the group is to hear of it.
    pub(super) fn name(
        &mut self,
        now: Timestamp,
        local: &WorkloadId,
        record: &Record,
        follows: bool,
    ) -> Option<WorkloadId> {
        if !self.names.grouped {
            return Some(local.clone());
        }
        let had = self.names.of(local).cloned().filter(|_| self.names.locals.contains_key(local));
        let before = self.names.locals.get(local).map(|local| local.seq).unwrap_or_default();
        if follows {
            self.names.refused.insert(local.clone(), Box::new(record.clone()));
        }
        let touched = self.names.put(local, record);
        touched.iter().for_each(|name| self.settle(now, name));
        if let Some(left) = had.filter(|had| had != self.names.called(local)) {
            self.names.note_past(left.clone(), before);
            self.leave_name(&left, before);
        }
        let name = self.names.of(local).cloned();
        if name.is_some() {
            self.names.refused.remove(local);
        }
        name
    }

    /// A record of ours is gone. Returns the name that it had.
    pub(super) fn unname(&mut self, now: Timestamp, local: &WorkloadId) -> Option<WorkloadId> {
        let had = self.names.of(local).cloned();
        let last = self.names.locals.get(local).map(|local| local.seq);
        self.names.refused.remove(local);
        let touched = self.names.take_out(local);
        if let (Some(name), Some(last), false) = (&had, last, touched.is_empty()) {
            self.names.note_past(name.clone(), last);
        }
        touched.iter().for_each(|name| self.settle(now, name));
        had
    }

    /// The rollout of a workload has ended.
    pub(super) fn forget_refused(&mut self, local: &WorkloadId) {
        self.names.refused.remove(local);
    }

    /// A workload of ours no longer has this name. If no other has it, the group learns that.
    fn leave_name(&mut self, name: &WorkloadId, last: Seq) {
        if self.names.is_free(name) {
            self.leave_followed(name);
            self.say_absent(name, last.next());
        }
    }

    /// Nothing of ours goes by this name, or something else does.
    pub(super) fn leave_followed(&mut self, name: &WorkloadId) {
        self.ours.leave(name);
        self.peer_records.leave(name, None);
        self.regressions.forget(name);
    }

    fn say_absent(&mut self, name: &WorkloadId, seq: Seq) {
        self.names.note_past(name.clone(), seq);
        self.post(name, &absent(seq));
        self.ours.note_absent(name.clone(), seq, self.peer_records.seeking());
    }

    /// Finds out who has a name, and hands it over.
    fn settle(&mut self, now: Timestamp, name: &WorkloadId) {
        let (before, after) = self.names.settle(name);
        if before == after {
            return;
        }
        if let (Some(before), Some(record)) = (before, self.ours.record(name).cloned())
            && self.names.locals.contains_key(&before)
        {
            self.names.refused.entry(before).or_insert_with(|| Box::new(record));
        }
        self.leave_followed(name);
        let Some(after) = after.filter(|_| self.names.known) else { return };
        match self.names.refused.remove(&after) {
            Some(record) => self.follow(now, &after, name.clone(), record),
            // No rollout follows it; the ledger has its record.
            None => self.boards.iter_mut().for_each(|board| board.queue.refill()),
        }
    }

    /// Our other workloads' records under a name may explain a board's copy: then nothing was lost.
    pub(super) fn explain_by_names(&mut self, name: &WorkloadId, floor: Seq) {
        if let Some(highest) = self.names.others_had(name, floor) {
            self.regressions.explain(name, highest);
        }
    }

    /// The effects as the rest of the program knows our workloads.
    pub(super) fn outward(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        let mut out = Vec::with_capacity(effects.len());
        for effect in effects {
            out.extend(match effect {
                Effect::Tell(name) => self.names.local(&name).cloned().map(Effect::Tell),
                Effect::TellHeldUp(name, hold) => {
                    self.names.local(&name).cloned().map(|local| Effect::TellHeldUp(local, hold))
                }
                Effect::Want(name) => self.wanted(&name).map(Effect::Want),
                Effect::LoadRecord(name) => {
                    let local = self.names.local(&name).cloned();
                    if local.is_none() {
                        self.regressions.forget(&name);
                    }
                    local.map(Effect::LoadRecord)
                }
                other => Some(other),
            });
        }
        out.extend(std::mem::take(&mut self.names.untold).into_iter().map(Effect::Tell));
        out
    }

    /// The workload of ours that is to be woken for a name. Where the one called so goes by another, the group learns that.
    fn wanted(&mut self, name: &WorkloadId) -> Option<WorkloadId> {
        let local = self.names.local(name).cloned();
        if local.is_none()
            && let Some(seq) = self.names.locals.get(name).map(|local| local.seq)
        {
            self.say_absent(name, seq.next());
        }
        local
    }
}
