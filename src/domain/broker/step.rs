//! What follows from each event: the one place where the broker changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::path::show;
use super::{
    ABSENT_MAX, BACKOFF, BEAT_EVERY, Broker, DISBELIEVED_MAX, Effect, Event, HEARD_FOR, Machine, PIN_EVERY,
    REREAD_EVERY, RESTS_FOR, WANTED_MAX,
};
use crate::board::{AGAIN_MAX, News, PASSING_TTL, Posted, Posting};
use crate::id::{Member, Seq, WorkloadId};
use crate::machine::Timestamp;
use crate::record::Record;
use crate::roster::{Beat, Brought};

impl Machine for Broker {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        let mut effects = self.take(now, event);
        effects.extend(self.tick(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.find_same();
        let standing = self.stand(now);
        let silences = self.silences(now);
        if standing.config != self.standing.config {
            // The others hear at once with whom we agree, and on what.
            self.beat_due = self.beat_due.min(now);
        }
        if !standing.members.is_subset(&self.standing.members) {
            // Their records are read as soon as they are members.
            self.paths.iter_mut().for_each(|path| path.read.hurry(now));
        }
        let mut effects = self.work(now, &standing.members);
        if standing != self.standing || silences != self.silences {
            self.standing = standing;
            self.silences = silences;
            self.forget_strangers();
            effects.extend(self.followed.keys().cloned().map(Effect::Tell));
        }
        effects.extend(self.mind_holds(now));
        effects.extend(self.mind_doubts(now));
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let grouped = self.is_grouped();
        let paths = self.paths.iter().filter_map(|path| path.next_deadline(grouped));
        let refills = !self.identity.silent && self.paths.iter().any(super::Path::wants_refill);
        let refill = self.refill.deadline().filter(|_| refills);
        let pin = self.pinning.deadline().filter(|_| grouped);
        let holds = self.holds.deadline();
        paths.chain(refill).chain(pin).chain(grouped.then_some(self.beat_due)).chain(holds).min()
    }
}

impl Broker {
    fn take(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Published(workload, record) => {
                self.own(now, &workload, &record);
                if self.is_grouped() && self.copies.follow(&workload) {
                    self.paths.iter_mut().for_each(|path| path.ask_again(now, &workload));
                }
                self.followed.insert(workload, Some(record));
            }
            Event::Shown(records) => records.iter().for_each(|(workload, record)| self.own(now, workload, record)),
            Event::Absent(workload, seq) => {
                self.post(&workload, &Posting::Show(Box::new(Record::absent(seq))));
                self.note_absent(workload, seq);
            }
            Event::Forgotten(workload, seq, revision) => {
                self.post(&workload, &Posting::Forget(seq, revision));
                self.followed.get_mut(&workload).into_iter().for_each(|record| *record = None);
                if self.refill.is_asked() {
                    self.removed.insert(workload);
                }
            }
            Event::Left(workload) => self.left(now, workload),
            Event::Woken(index) => self.paths.get_mut(index).into_iter().for_each(|path| path.wake(now)),
            Event::Identified(index, identity) => self.identified(now, index, identity),
            Event::Read(index, news) => return self.read(now, index, news),
            Event::Posted(index, answers) => return self.posted(now, index, answers),
            Event::Beaten(index, before) => self.beaten(now, index, before),
            Event::WordsGathered(words, at_ms) => self.beat(words, at_ms),
            Event::LedgerRead(read) => self.refilled(now, read),
            Event::RecordLoaded(workload, read) => return self.compared(&workload, read),
            Event::PinRead(pin) => match pin {
                Ok(pin) => {
                    self.roster.iter_mut().for_each(|roster| roster.pinned(pin.clone()));
                    self.pin_known = true;
                    self.pinning.answered_until(now.after(PIN_EVERY));
                }
                Err(why) => self.pinning.failed(BACKOFF.from(now, "pin"), why),
            },
            Event::PinStored(pin, stored) => self.pin_stored(now, pin, stored),
        }
        Vec::new()
    }

    /// A record of ours as it is now.
    fn own(&mut self, now: Timestamp, workload: &WorkloadId, record: &Record) {
        self.absent.remove(workload);
        self.removed.remove(workload);
        self.ahead.stored(now, workload, record);
        self.post(workload, &show(record));
    }

    fn identified(&mut self, now: Timestamp, index: usize, identity: Result<String, String>) {
        let Some(path) = self.paths.get_mut(index) else { return };
        let before = path.identity.clone();
        path.identified(now, identity);
        if path.identity.is_some() && before != path.identity {
            // It was started again, perhaps. Another address of it would be taken for another server meanwhile.
            let others =
                self.paths.iter_mut().enumerate().filter(|(other, path)| *other != index && path.identity.is_some());
            others.for_each(|(_, path)| path.identify.hurry(now));
        }
    }

    /// Finds the paths that lead to one server: the first is used.
    fn find_same(&mut self) {
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        for (index, path) in self.paths.iter_mut().enumerate() {
            let identity = path.identity.clone();
            let known = identity.as_ref().and_then(|identity| first.get(identity).copied());
            if known.is_none() && path.same_as.is_some() {
                path.refill = true;
            }
            path.same_as = known;
            if let Some(identity) = identity {
                first.entry(identity).or_insert(index);
            }
        }
    }

    fn read(&mut self, now: Timestamp, index: usize, news: Result<Box<News>, String>) -> Vec<Effect> {
        let Some(path) = self.paths.get_mut(index) else { return Vec::new() };
        let news = match news {
            Ok(news) => *news,
            Err(why) => {
                path.read_failed(now, why);
                return Vec::new();
            }
        };
        path.was_read(now, &news);
        let News { heard, beats, rejected, disbelieved, lost, cursor: _, more: _, again: _ } = news;
        path.refill |= lost;
        path.rejected.add(now, rejected);
        path.disbelieved.retain(|_, (_, at)| now.since(*at) <= HEARD_FOR);
        for (member, why) in disbelieved {
            if self.standing.members.contains(&member) || path.disbelieved.len() < DISBELIEVED_MAX {
                path.disbelieved.insert(member, (why, now));
            }
        }
        let beaten = path.beaten_before;
        if !self.is_grouped() {
            return Vec::new();
        }
        let mut changed = BTreeSet::new();
        for beat in beats {
            self.hear_beat(now, (index, beaten), beat, &mut changed);
        }
        let is_listening = self.copies.is_listening();
        for heard in heard {
            let is_member = is_listening || self.standing.members.contains(&heard.member);
            if heard.member == self.identity.member || !is_member {
                continue;
            }
            let workload = heard.workload.clone();
            if self.copies.hear(heard) {
                // What others wait for now, they may have waited for an hour ago, and boards have forgotten since.
                if let Some(seq) = self.absent.get(&workload).filter(|_| self.copies.seeking().contains(&workload)) {
                    let absent = Posting::Show(Box::new(Record::absent(*seq)));
                    self.post(&workload, &absent);
                }
                changed.insert(workload);
            }
        }
        self.idled.retain(|workload, _| !changed.contains(workload));
        changed.iter().filter_map(|workload| self.spread(workload)).collect()
    }

    /// Boards forget after a while that we do not have a workload. Others may still wait for it.
    fn post_absent(&mut self, now: Timestamp) {
        if now < self.absent_due {
            return;
        }
        self.absent_due = now.after(PASSING_TTL / 3);
        let sought = self.absent.iter().filter(|(workload, _)| self.copies.seeking().contains(*workload));
        for (workload, seq) in sought.map(|(workload, seq)| (workload.clone(), *seq)).collect::<Vec<_>>() {
            self.post(&workload, &Posting::Show(Box::new(Record::absent(seq))));
        }
    }

    /// Takes in a beat of this board, on which we had left one when it was begun to be read, or had not.
    fn hear_beat(
        &mut self,
        now: Timestamp,
        (board, beaten): (usize, bool),
        beat: Beat,
        changed: &mut BTreeSet<WorkloadId>,
    ) {
        let Some(roster) = &mut self.roster else { return };
        if beat.member == self.identity.member {
            if beaten {
                roster.hear_own(now, &beat);
            }
            return;
        }
        let (member, origin) = (beat.member.clone(), beat.origin.clone());
        let said = |roster: &super::Roster| {
            let voice = roster.voice(&member);
            voice.map(|voice| (voice.beat.words.clone(), voice.beat.seqs.clone())).unwrap_or_default()
        };
        let before = said(roster);
        let brought = roster.hear(now, board, beat);
        let after = said(roster);
        let other_words = before
            .0
            .keys()
            .chain(after.0.keys())
            .filter(|workload| spoken(&before, workload) != spoken(&after, workload));
        changed.extend(other_words.filter(|workload| self.followed.contains_key(*workload)).cloned());
        if brought == Brought::Ledger && self.copies.count(&member, &origin) {
            self.paths.iter_mut().for_each(|path| path.rewind(now, &member));
            changed.extend(self.followed.keys().cloned());
        }
    }

    fn posted(&mut self, now: Timestamp, index: usize, answers: Result<Vec<Posted>, String>) -> Vec<Effect> {
        let Some(path) = self.paths.get_mut(index) else { return Vec::new() };
        let newer = match answers {
            Ok(answers) => path.was_posted(now, answers),
            Err(why) => {
                path.post_failed(now, why);
                return Vec::new();
            }
        };
        if !self.is_grouped() {
            return Vec::new();
        }
        let unknown =
            newer.into_iter().filter(|(workload, seq, revision)| self.ahead.found(now, workload, *seq, *revision));
        unknown.map(|(workload, ..)| Effect::LoadRecord(workload)).collect()
    }

    /// The ledger was asked for a record of ours, because a board has a newer state of it.
    fn compared(&mut self, workload: &WorkloadId, read: Result<(Option<Box<Record>>, Seq), String>) -> Vec<Effect> {
        let Ok((record, floor)) = read else {
            self.ahead.failed(workload);
            return Vec::new();
        };
        let before = (self.ahead.hold(workload), self.ahead.above(workload));
        // Without a lead, something newer was published since the ledger was asked.
        if self.ahead.leads(workload)
            && self.ahead.compare(workload, record.as_deref(), floor)
            && let Some(record) = record
        {
            // Another process of ours wrote it.
            self.post(workload, &Posting::Show(record));
        }
        let changed =
            before != (self.ahead.hold(workload), self.ahead.above(workload)) && self.followed.contains_key(workload);
        changed.then(|| Effect::Tell(workload.clone())).into_iter().collect()
    }

    fn beaten(&mut self, now: Timestamp, index: usize, before: Result<Option<Box<Beat>>, String>) {
        let Some(path) = self.paths.get_mut(index) else { return };
        match before {
            Ok(before) => {
                path.written(now);
                let ours_was_there = std::mem::replace(&mut path.beaten, true);
                if let (Some(before), Some(roster), true) = (before, &mut self.roster, ours_was_there) {
                    roster.hear_own(now, &before);
                }
            }
            Err(why) => path.not_written(now, why),
        }
    }

    /// Leaves a beat on every board.
    fn beat(&mut self, words: BTreeMap<WorkloadId, (Seq, String)>, at_ms: i64) {
        let Some(roster) = &self.roster else { return };
        self.beats = self.beats.saturating_add(1);
        // Older programs take a beat that bears no later time for an earlier one; two may fall into one millisecond, and a
        // wall's clock may be set back.
        self.beaten_ms = at_ms.max(self.beaten_ms.saturating_add(1));
        let beat = Beat {
            member: self.identity.member.clone(),
            origin: self.identity.origin.clone(),
            boot: self.identity.boot.clone(),
            count: self.beats,
            version: self.identity.version.clone(),
            config: self.standing.config.clone(),
            members: roster.pin().map(|pin| pin.members.clone()).unwrap_or_default(),
            settings: roster.settings(),
            seqs: words.iter().map(|(workload, (seq, _))| (workload.clone(), *seq)).collect(),
            words: words.into_iter().map(|(workload, (_, words))| (workload, words)).collect(),
            place: self.identity.place.clone(),
            at_ms: self.beaten_ms,
        };
        self.paths.iter_mut().for_each(|path| path.leave(Box::new(beat.clone())));
    }

    fn refilled(&mut self, now: Timestamp, read: Result<Option<super::Kept>, String>) {
        let waiting = std::mem::take(&mut self.refilling);
        let removed = std::mem::take(&mut self.removed);
        let records = match read {
            // A record of another ledger; the group of that ledger reads it.
            Ok(read) => read.filter(|(origin, _)| *origin == self.identity.origin).map(|(_, records)| records),
            Err(why) => {
                self.refill.failed(BACKOFF.from(now, "refill"), why);
                for (index, path) in self.paths.iter_mut().enumerate() {
                    path.refill |= waiting.contains(&index);
                }
                return;
            }
        };
        self.refill.answered_until(now);
        let records = records.unwrap_or_default();
        for index in waiting {
            let Some(path) = self.paths.get_mut(index) else { continue };
            path.fill(records.iter().filter(|(id, _)| !removed.contains(*id)).map(|(id, record)| (id, show(record))));
            path.fill(self.absent.iter().map(|(id, seq)| (id, Posting::Show(Box::new(Record::absent(*seq))))));
        }
    }

    fn pin_stored(&mut self, now: Timestamp, pin: super::Pin, stored: Result<bool, String>) {
        match stored {
            Ok(true) => {
                self.roster.iter_mut().for_each(|roster| roster.pinned(Some(pin.clone())));
                self.pinning.answered_until(now.after(PIN_EVERY));
            }
            Ok(false) => {
                self.pin_known = false;
                self.pinning.answered_until(now);
            }
            Err(why) => {
                self.pin_known = false;
                self.pinning.failed(BACKOFF.from(now, "pin"), why);
            }
        }
    }

    /// Everything that is due.
    fn work(&mut self, now: Timestamp, members: &BTreeSet<Member>) -> Vec<Effect> {
        let grouped = self.is_grouped();
        let mut effects = Vec::new();
        if grouped && self.beat_due <= now {
            self.beat_due = now.after(BEAT_EVERY);
            if !self.identity.silent {
                effects.push(Effect::GatherWords);
            }
            self.post_absent(now);
            effects.extend(self.want(now));
            self.make_up(now, members);
        }
        for (index, path) in self.paths.iter_mut().enumerate() {
            effects.extend(path.work(index, now, Some(members).filter(|_| grouped)));
        }
        if !self.identity.silent && self.refill.is_due(now) && self.paths.iter().any(super::Path::wants_refill) {
            self.refill.asked();
            let wanting = self.paths.iter_mut().enumerate().filter(|(_, path)| path.wants_refill());
            self.refilling = wanting
                .map(|(index, path)| {
                    path.refill = false;
                    index
                })
                .collect();
            effects.push(Effect::ReadLedger);
        }
        if grouped {
            effects.extend(self.pin(now));
        }
        effects
    }

    /// Our cluster does not have the workload. Who asks for many that do not exist is answered, and not remembered for ever.
    fn note_absent(&mut self, workload: WorkloadId, seq: Seq) {
        self.absent.insert(workload, seq);
        if self.absent.len() > ABSENT_MAX {
            let seeking = self.copies.seeking();
            self.absent.retain(|workload, _| seeking.contains(workload));
        }
    }

    /// What was heard of others than the members counts no more.
    fn forget_strangers(&mut self) {
        if let Some(roster) = self.roster.as_ref().filter(|_| !self.copies.is_listening()) {
            let members = &self.standing.members;
            self.copies.retain(|member| members.contains(member) || roster.voice(member).is_some());
        }
    }

    /// Has read again what had found no place, as far as there is room now.
    fn make_up(&mut self, now: Timestamp, members: &BTreeSet<Member>) {
        let others = members.iter().filter(|member| **member != self.identity.member).cloned().collect();
        let Some(lacking) = self.copies.lacking(&others, AGAIN_MAX) else { return };
        for path in &mut self.paths {
            lacking.iter().for_each(|workload| path.ask_again(now, workload));
        }
        if self.copies.has_room() && now.since(self.reread) >= REREAD_EVERY {
            self.reread = now;
            self.copies.read_again();
            self.paths.iter_mut().for_each(|path| others.iter().for_each(|member| path.rewind(now, member)));
        }
    }

    /// The rollout that followed the workload has ended.
    fn left(&mut self, now: Timestamp, workload: WorkloadId) {
        self.followed.remove(&workload);
        self.copies.leave(&workload);
        if self.is_wanted(&workload) {
            let (times, at) = self.idled.entry(workload).or_default();
            (*times, *at) = (times.saturating_add(1), now);
        } else {
            self.idled.remove(&workload);
        }
    }

    /// What others wait for and nobody here sees to: what was told of it may have been lost, or come too early.
    fn want(&mut self, now: Timestamp) -> Vec<Effect> {
        let rests = |workload: &WorkloadId| {
            self.idled.get(workload).is_some_and(|(times, at)| *times > 1 && now.since(*at) < RESTS_FOR)
        };
        let seeking = self.copies.seeking();
        let from = self.woken.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let after = seeking.range::<WorkloadId, _>((from, Bound::Unbounded));
        let before = self.woken.iter().flat_map(|woken| seeking.range(..=woken));
        let wanted = after.chain(before).filter(|workload| self.is_wanted(workload) && !rests(workload));
        let wanted: Vec<WorkloadId> = wanted.take(WANTED_MAX).cloned().collect();
        self.woken = wanted.last().cloned().or_else(|| self.woken.take());
        wanted.into_iter().map(Effect::Want).collect()
    }

    /// Reads the pin, or stores the one that is wanted.
    fn pin(&mut self, now: Timestamp) -> Vec<Effect> {
        let Some(roster) = &self.roster else { return Vec::new() };
        let wanted = roster.wanted_pin(now, &self.servers()).filter(|_| self.pin_known && !self.identity.silent);
        if wanted.is_some() && !self.pinning.is_failing() {
            self.pinning.hurry(now);
        }
        if !self.pinning.is_due(now) {
            return Vec::new();
        }
        self.pinning.asked();
        let mut effects: Vec<Effect> = self.ahead.ask_again().into_iter().map(Effect::LoadRecord).collect();
        effects.push(match wanted {
            Some(pin) => Effect::StorePin(pin, self.roster.as_ref().and_then(|roster| roster.pin().cloned())),
            None => Effect::ReadPin,
        });
        effects
    }

    fn silences(&self, now: Timestamp) -> BTreeMap<Member, String> {
        let Some(roster) = &self.roster else { return BTreeMap::new() };
        let others = self.standing.members.iter().filter(|member| **member != self.identity.member);
        others.filter_map(|member| Some((member.clone(), roster.silence(now, member)?))).collect()
    }
}

/// The words a member has about its rollouts, and which of them each is about.
type Spoken = (BTreeMap<WorkloadId, String>, BTreeMap<WorkloadId, Seq>);

fn spoken<'a>((words, seqs): &'a Spoken, workload: &WorkloadId) -> (Option<&'a String>, Option<&'a Seq>) {
    (words.get(workload), seqs.get(workload))
}
