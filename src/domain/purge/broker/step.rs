//! The reaction to each event: the one place where the broker changes.

use std::collections::{BTreeMap, BTreeSet};

use super::{BACKOFF, BoardState, Broker, Effect, Event, Machine, NoAnswer};
use crate::agreement::board::{AGAIN_MAX, News, Posted, Posting};
use crate::agreement::roster::{Brought, Heartbeat, Said, Saying};
use crate::records::record::{Published, Record};
use kernel::floor::Floor;
use kernel::id::{Member, Seq, WorkloadId};
use kernel::machine::Timestamp;

impl Machine for Broker {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        if self.keeps(&event) {
            return self.tick(now);
        }
        let effects = self.take(now, event);
        let mut effects = self.outward(effects);
        effects.extend(self.tick(now));
        effects
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.find_same();
        let standing = self.stand(now);
        let silences = self.membership.silences(now, &self.identity.member);
        if standing.config != self.membership.standing.config {
            // The others learn at once with whom we agree, and on what.
            self.pulse.hurry(now);
        }
        if !standing.members.is_subset(self.members()) {
            // Their records are read as soon as they are members.
            self.boards.iter_mut().for_each(|board| board.reading.hurry(now));
        }
        let mut effects = self.work(now, &standing.members);
        if self.membership.note(standing, silences) {
            self.forget_strangers();
            effects.extend(self.ours.followed().cloned().map(Effect::Tell));
        }
        effects.extend(self.mind_holds(now));
        effects.extend(self.mind_doubts(now));
        self.outward(effects)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let grouped = self.is_grouped();
        let boards = self.boards.iter().filter_map(|board| board.next_deadline(grouped));
        let refill = self.refill.deadline(&self.boards, !self.names.are_known()).filter(|_| !self.identity.listen_only);
        let pulse = grouped.then(|| self.pulse.deadline());
        let rest = [refill, self.membership.deadline(), pulse, self.holds.deadline()];
        boards.chain(rest.into_iter().flatten()).min()
    }
}

impl Broker {
    fn take(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Published(local, record) => {
                if let Some(name) = self.name(now, &local, &record, true) {
                    self.follow(now, &local, name, record);
                }
            }
            Event::Shown(records) => {
                for (local, record) in &records {
                    if let Some(name) = self.name(now, local, record, false) {
                        self.own(now, local, &name, record);
                    }
                }
            }
            Event::Absent(local, seq) => {
                if let Some(name) = self.names.of(&local).cloned() {
                    self.post(&name, &absent(seq));
                    self.ours.note_absent(name, seq, self.peer_records.seeking());
                }
            }
            Event::Forgotten(local, seq, revision) => self.forgotten(now, local, seq, revision),
            Event::Left(local) => {
                self.forget_refused(&local);
                if let Some(name) = self.names.of(&local).cloned() {
                    self.left(now, name);
                }
            }
            Event::Follows(kinds) => {
                let before = self.identity.stands.clone();
                self.identity.stands.follow(&kinds);
                if self.identity.stands != before {
                    self.pulse.hurry(now);
                }
            }
            Event::Woken(index) => self.boards.get_mut(index).into_iter().for_each(|board| board.reading.wake(now)),
            Event::Identified(index, identity) => self.identified(now, index, identity),
            Event::Read(index, news) => return self.read(now, index, news),
            Event::Posted(index, answers) => return self.posted(now, index, answers),
            Event::Beaten(index, before) => self.beaten(now, index, before),
            Event::WordsGathered(words, at_ms) => self.beat(now, words, at_ms),
            Event::LedgerRead(read) => return self.refilled(now, read),
            Event::RecordLoaded(local, read) => {
                let name = self.names.of(&local).cloned();
                return name.map_or_else(Vec::new, |name| self.compared(&name, read));
            }
            Event::PinRead(pin) => self.membership.pin_read(now, pin),
            Event::PinStored(pin, stored) => self.membership.pin_stored(now, &pin, stored),
        }
        Vec::new()
    }

    /// A rollout follows a workload, which goes by this name, with this record.
    pub(super) fn follow(&mut self, now: Timestamp, local: &WorkloadId, name: WorkloadId, record: Box<Record>) {
        self.own(now, local, &name, &record);
        if self.is_grouped() && self.peer_records.follow(&name) {
            self.boards.iter_mut().for_each(|board| board.reading.ask_again(now, &name));
        }
        self.ours.follow(name, record);
    }

    /// A record of ours was removed.
    fn forgotten(&mut self, now: Timestamp, local: WorkloadId, seq: Seq, revision: u64) {
        let had = self.unname(now, &local);
        had.iter().for_each(|name| self.peer_records.lately.leave(name));
        if let Some(name) = had.filter(|name| self.names.is_free(name)) {
            self.post(&name, &Posting::Forget(seq, revision));
            if name == local {
                self.ours.remove(&name);
            } else {
                self.leave_followed(&name);
            }
        }
        self.refill.note_removed(local);
    }

    /// A record of ours as it is now.
    fn own(&mut self, now: Timestamp, local: &WorkloadId, workload: &WorkloadId, record: &Record) {
        self.ours.note_present(workload);
        self.refill.note_present(local);
        self.regressions.stored(now, workload, record);
        self.post(workload, &show(record));
    }

    fn identified(&mut self, now: Timestamp, index: usize, identity: Result<String, NoAnswer>) {
        let Some(board) = self.boards.get_mut(index) else { return };
        if board.identified(now, identity) {
            // The server may have restarted. Until it answers, another address of it would count as another server.
            let boards = self.boards.iter_mut().enumerate();
            let others = boards.filter(|(other, board)| *other != index && board.server.identity().is_some());
            others.for_each(|(_, board)| board.server.hurry(now));
        }
    }

    /// Finds the boards that lead to one server: the first is used.
    fn find_same(&mut self) {
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        for (index, board) in self.boards.iter_mut().enumerate() {
            let identity = board.server.identity().cloned();
            let known = identity.as_ref().and_then(|identity| first.get(identity).copied());
            if known.is_none() && !board.is_used() {
                board.queue.refill();
            }
            board.server.same_as = known;
            if let Some(identity) = identity {
                first.entry(identity).or_insert(index);
            }
        }
    }

    fn read(&mut self, now: Timestamp, index: usize, news: Result<Box<News>, NoAnswer>) -> Vec<Effect> {
        let Some(board) = self.boards.get_mut(index) else { return Vec::new() };
        let news = match news {
            Ok(mut news) => {
                if let (Some(elders), Some(roster)) = (news.elders.take(), &mut self.membership.roster) {
                    roster.hear_elders(now, elders);
                }
                *news
            }
            Err(why) => {
                board.read_failed(now, why);
                return Vec::new();
            }
        };
        let (heard, beats) = board.was_read(now, news, &self.membership.standing.members);
        let beaten = board.reading.is_after_our_beat();
        if !self.is_grouped() {
            return Vec::new();
        }
        let mut changed = BTreeSet::new();
        for beat in beats {
            self.hear_beat(now, (index, beaten), beat, &mut changed);
        }
        let is_listening = self.peer_records.is_listening();
        for heard in heard {
            let is_member = is_listening || self.members().contains(&heard.member);
            if heard.member == self.identity.member || !is_member {
                continue;
            }
            let workload = heard.workload.clone();
            if self.peer_records.hear(heard) {
                // What others wait for now, they may have waited for an hour ago, and boards have forgotten since.
                if let Some(seq) = self.ours.absent_up_to(&workload)
                    && self.peer_records.seeking().contains(&workload)
                {
                    self.post(&workload, &absent(seq));
                }
                changed.insert(workload);
            }
        }
        changed.iter().for_each(|workload| self.waking.forget(workload));
        changed.iter().filter_map(|workload| self.spread(workload)).collect()
    }

    /// Takes in a beat of this board; `beaten`: the board had a beat of ours when the read began.
    fn hear_beat(
        &mut self,
        now: Timestamp,
        (board, beaten): (usize, bool),
        beat: Heartbeat,
        changed: &mut BTreeSet<WorkloadId>,
    ) {
        let Some(roster) = &mut self.membership.roster else { return };
        if beat.member == self.identity.member {
            if !is_same_process(&beat.boot, &self.identity.boot) {
                roster.hear_own(now, &beat, beaten);
            }
            return;
        }
        let (member, origin) = (beat.member.clone(), beat.origin.clone());
        let said = |roster: &super::Roster| {
            let peer = roster.peer(&member);
            peer.map(|peer| peer.beat.said.clone()).unwrap_or_default()
        };
        let stands = |roster: &super::Roster| roster.peer(&member).map(|peer| peer.beat.stands.clone());
        let (before, stood) = (said(roster), stands(roster));
        let brought = roster.hear(now, board, beat);
        let (after, stands) = (said(roster), stands(roster));
        let all = before.words.keys().chain(after.words.keys());
        let other_words = all.filter(|workload| before.about(workload) != after.about(workload));
        changed.extend(other_words.filter(|workload| self.ours.follows(workload)).cloned());
        if stood != stands {
            changed.extend(self.ours.followed().cloned());
        }
        if brought == Brought::Ledger && self.peer_records.count(&member, &origin) {
            self.boards.iter_mut().for_each(|board| board.reading.rewind(now, &member));
            changed.extend(self.ours.followed().cloned());
        }
    }

    fn posted(&mut self, now: Timestamp, index: usize, answers: Result<Vec<Posted>, NoAnswer>) -> Vec<Effect> {
        let Some(board) = self.boards.get_mut(index) else { return Vec::new() };
        let newer = board.was_posted(now, answers);
        if !self.is_grouped() {
            return Vec::new();
        }
        let unknown = newer
            .into_iter()
            .filter(|(workload, seq, revision)| self.regressions.found(now, workload, *seq, *revision));
        unknown.map(|(workload, ..)| Effect::LoadRecord(workload)).collect()
    }

    /// The ledger was asked for a record of ours, because a board has a newer state of it.
    fn compared(&mut self, workload: &WorkloadId, read: Result<(Option<Box<Record>>, Floor), NoAnswer>) -> Vec<Effect> {
        let Ok((record, floor)) = read else {
            self.regressions.failed(workload);
            return Vec::new();
        };
        let before = (self.regressions.hold(workload), self.regressions.above(workload));
        self.explain_by_names(workload, floor.seq);
        // Where none is left, a newer state was published since we asked the ledger.
        if self.regressions.contains(workload)
            && self.regressions.compare(workload, record.as_deref(), floor)
            && let Some(record) = record
        {
            // Another process of ours wrote it.
            self.post(workload, &(*record).into());
        }
        let changed = before != (self.regressions.hold(workload), self.regressions.above(workload));
        let told = match self.ours.follows(workload) {
            true => changed.then(|| Effect::Tell(workload.clone())),
            // At rest, it is to be counted above what others of ours had under its name.
            false => self.regressions.is_explained(workload).then(|| Effect::Want(workload.clone())),
        };
        told.into_iter().collect()
    }

    fn beaten(&mut self, now: Timestamp, index: usize, before: Result<Option<Box<Heartbeat>>, NoAnswer>) {
        let Some(board) = self.boards.get_mut(index) else { return };
        match before {
            Ok(before) => {
                board.answered = Some(now);
                let ours_was_there = board.queue.beaten(now);
                let before = before.filter(|before| !is_same_process(&before.boot, &self.identity.boot));
                if let (Some(before), Some(roster)) = (before, &mut self.membership.roster) {
                    roster.hear_own(now, &before, ours_was_there);
                }
            }
            Err(why) => board.queue.beat_failed(BACKOFF.from(now, &board.name), why),
        }
    }

    /// Leaves a beat on every board, unless we give way to another allclear of our name.
    fn beat(&mut self, now: Timestamp, sayings: BTreeMap<WorkloadId, Saying>, wall_ms: i64) {
        let Some(roster) = self.membership.roster.as_ref().filter(|roster| !roster.gives_way(now)) else { return };
        let (count, at_ms) = self.pulse.next(wall_ms);
        let named = |(local, said)| Some((self.names.of(&local)?.clone(), said));
        let beat = Heartbeat {
            member: self.identity.member.clone(),
            origin: self.identity.origin.clone(),
            boot: self.identity.boot.clone(),
            count,
            version: self.identity.version.clone(),
            config: self.membership.standing.config.clone(),
            members: roster.pin().map(|pin| pin.members.clone()).unwrap_or_default(),
            settings: roster.settings(),
            said: Said::of(sayings.into_iter().filter_map(named).collect()),
            stands: self.identity.stands.clone(),
            at_ms,
        };
        self.boards.iter_mut().for_each(|board| board.queue.leave(Box::new(beat.clone())));
    }

    fn refilled(&mut self, now: Timestamp, read: Result<Option<super::Kept>, NoAnswer>) -> Vec<Effect> {
        let records = match read {
            // A record of another ledger; the group of that ledger reads it.
            Ok(read) => read.filter(|(origin, _)| *origin == self.identity.origin).map(|(_, records)| records),
            Err(why) => {
                self.refill.failed(now, why, &mut self.boards);
                return Vec::new();
            }
        };
        let records = records.unwrap_or_default();
        let (boards, removed) = self.refill.answered(now);
        let present = || records.iter().filter(|(local, _)| !removed.contains(*local));
        self.learn_names(now, present().map(|(local, record)| (local, record.as_ref())));
        for index in boards {
            let Some(BoardState { queue, .. }) = self.boards.get_mut(index) else { continue };
            queue.fill(present().filter_map(|(local, record)| Some((self.names.of(local)?, show(record)))));
            queue.fill(self.ours.absent().map(|(id, seq)| (id, absent(seq))));
        }
        self.early().into_iter().flat_map(|event| self.take(now, event)).collect()
    }

    /// Everything that is due.
    fn work(&mut self, now: Timestamp, members: &BTreeSet<Member>) -> Vec<Effect> {
        let grouped = self.is_grouped();
        let mut effects = Vec::new();
        if grouped && self.pulse.beats(now) {
            if !self.identity.listen_only {
                effects.push(Effect::GatherWords);
            }
            for (workload, seq) in self.ours.absent_again(now, self.peer_records.seeking()) {
                self.post(&workload, &absent(seq));
            }
            effects.extend(self.want(now));
            self.make_up(now, members);
        }
        for (index, board) in self.boards.iter_mut().enumerate() {
            effects.extend(board.work(index, now, Some(members).filter(|_| grouped)));
        }
        if !self.identity.listen_only {
            effects.extend(self.refill.begin(now, &mut self.boards, !self.names.are_known()));
        }
        if let Some(pin) = self.membership.mind_pin(now, &self.servers(), self.identity.listen_only) {
            effects.extend(self.regressions.ask_again().into_iter().map(Effect::LoadRecord));
            effects.push(pin);
        }
        effects
    }

    /// Drops the posts of names that are not members.
    fn forget_strangers(&mut self) {
        if let Some(roster) = self.membership.roster.as_ref().filter(|_| !self.peer_records.is_listening()) {
            let members = &self.membership.standing.members;
            self.peer_records.retain(|member| members.contains(member) || roster.peer(member).is_some());
        }
    }

    /// Reads again the copies that found no room, as far as there is room now.
    fn make_up(&mut self, now: Timestamp, members: &BTreeSet<Member>) {
        let others = members.iter().filter(|member| **member != self.identity.member).cloned().collect();
        let Some(lacking) = self.peer_records.lacking(&others, AGAIN_MAX) else { return };
        for board in &mut self.boards {
            lacking.iter().for_each(|workload| board.reading.ask_again(now, workload));
        }
        if self.peer_records.read_again(now) {
            let boards = self.boards.iter_mut();
            boards.for_each(|board| others.iter().for_each(|member| board.reading.rewind(now, member)));
        }
    }

    /// The rollout that followed the workload has ended.
    fn left(&mut self, now: Timestamp, workload: WorkloadId) {
        let own = self.ours.record(&workload).cloned().map(|record| (self.identity.member.clone(), record.into()));
        self.ours.leave(&workload);
        self.peer_records.leave(&workload, own);
        if self.is_wanted(&workload) {
            self.waking.idled(now, workload);
        } else {
            self.waking.forget(&workload);
        }
    }

    /// Wakes rollouts that others wait for and that do not run here: the first request may have been lost, or come too
    /// early.
    fn want(&mut self, now: Timestamp) -> Vec<Effect> {
        let wanted = self.peer_records.seeking().iter().filter(|workload| self.is_wanted(workload)).cloned().collect();
        self.waking.next(now, &wanted).into_iter().map(Effect::Want).collect()
    }
}

/// Whether two lives are of one process: an earlier one of ours, over a ledger that is gone, is no other allclear.
fn is_same_process(one: &str, other: &str) -> bool {
    let process = |boot: &str| boot.rsplit_once('-').map(|(process, _)| process.to_owned());
    process(one).is_some_and(|one| !one.is_empty() && Some(one) == process(other))
}

/// The post of a record.
fn show(record: &Record) -> Posting {
    record.clone().into()
}

/// The post of a workload that this cluster does not have.
pub(super) fn absent(seq: Seq) -> Posting {
    Posting::Show(Published::Absent(seq))
}
