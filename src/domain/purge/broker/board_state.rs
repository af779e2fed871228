//! One board: which server answers there, how far it is read, and what is still to be written there.
//!
//! Nothing here waits for another board.

use std::collections::{BTreeMap, BTreeSet};

use super::doubts::Rejections;
use super::queue::Queue;
use super::reading::Reading;
use super::server::Server;
use super::{BACKOFF, Effect, NoAnswer};
use crate::agreement::board::{Heard, Interest, News, Posted};
use crate::agreement::roster::{HEARD_FOR, Heartbeat};
use kernel::id::{Member, Seq, WorkloadId};
use kernel::machine::Timestamp;

/// Most names besides the members' that we remember for a board because we reject their beats.
pub(super) const DISBELIEVED_MAX: usize = 100;

/// One board. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoardState {
    pub(super) name: String,
    pub(super) server: Server,
    pub(super) reading: Reading,
    pub(super) queue: Queue,
    /// When a call of any kind last succeeded.
    pub(super) answered: Option<Timestamp>,
    /// Copies that were not believed.
    pub(super) rejected: Rejections,
    /// Members whose beats there were not believed lately, why, and when.
    pub(super) disbelieved: BTreeMap<Member, (String, Timestamp)>,
}

impl BoardState {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            server: Server::new(),
            reading: Reading::new(),
            queue: Queue::new(),
            answered: None,
            rejected: Rejections::default(),
            disbelieved: BTreeMap::new(),
        }
    }

    /// The effects to perform now, in a group with these members, or alone. Only in a group do we ask servers for their
    /// identity.
    pub(super) fn work(&mut self, index: usize, now: Timestamp, members: Option<&BTreeSet<Member>>) -> Vec<Effect> {
        let mut effects = Vec::new();
        effects.extend(self.rejected.tell(index, now));
        if members.is_some() && self.server.ask(now) {
            effects.push(Effect::Identify(index));
        }
        if !self.is_used() {
            return effects;
        }
        if let Some((cursor, again)) = self.reading.begin(now, self.queue.has_beaten()) {
            let interest = Interest { members: Some(members.cloned().unwrap_or_default()), again };
            effects.push(Effect::Read(index, cursor, interest));
        }
        effects.extend(self.queue.write(now, index));
        effects
    }

    pub(super) fn next_deadline(&self, grouped: bool) -> Option<Timestamp> {
        let identify = self.server.deadline().filter(|_| grouped);
        let always = identify.into_iter().chain(self.rejected.deadline());
        let used = self.reading.deadline().into_iter().chain(self.queue.deadline()).filter(|_| self.is_used());
        always.chain(used).min()
    }

    /// Whether no board before it leads to the same server.
    pub(super) fn is_used(&self) -> bool {
        self.server.same_as.is_none()
    }

    /// Whether the ledger is to be read for it.
    pub(super) fn wants_refill(&self) -> bool {
        self.is_used() && self.queue.wants_refill()
    }

    /// It was read, in a group with these members. Returns what others left there: copies of records, and beats.
    pub(super) fn was_read(
        &mut self,
        now: Timestamp,
        news: News,
        members: &BTreeSet<Member>,
    ) -> (Vec<Heard>, Vec<Heartbeat>) {
        let News { heard, beats, elders: _, rejected, disbelieved, lost, cursor, more, again } = news;
        self.answered = Some(now);
        self.reading.answered(now, &self.name, cursor, again, more);
        if lost {
            self.queue.refill();
        }
        self.rejected.add(now, rejected);
        self.disbelieved.retain(|_, (_, at)| now.since(*at) <= HEARD_FOR);
        for (member, why) in disbelieved {
            if members.contains(&member) || self.disbelieved.len() < DISBELIEVED_MAX {
                self.disbelieved.insert(member, (why, now));
            }
        }
        (heard, beats)
    }

    /// It could not be read, for this reason.
    pub(super) fn read_failed(&mut self, now: Timestamp, why: NoAnswer) {
        self.reading.failed(BACKOFF.from(now, &self.name), why);
        self.server.doubt(now);
    }

    /// The server gave its identity, or did not. Returns whether it is another server than before, or back.
    pub(super) fn identified(&mut self, now: Timestamp, identity: Result<String, NoAnswer>) -> bool {
        let before = self.server.identity().cloned();
        if identity.is_ok() {
            self.answered = Some(now);
        }
        self.server.answered(now, identity, BACKOFF.from(now, &self.name));
        self.server.identity().is_some() && before.as_ref() != self.server.identity()
    }

    /// The post succeeded, or its outcome is unknown. Returns our records that are older than the board's.
    pub(super) fn was_posted(
        &mut self,
        now: Timestamp,
        answers: Result<Vec<Posted>, NoAnswer>,
    ) -> Vec<(WorkloadId, Seq, u64)> {
        match answers {
            Ok(answers) => {
                self.answered = Some(now);
                self.queue.posted(now, answers)
            }
            Err(why) => {
                self.queue.post_failed(BACKOFF.from(now, &self.name), why);
                Vec::new()
            }
        }
    }

    /// Its trouble, if any.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.queue.trouble().or_else(|| self.reading.trouble()).or_else(|| self.server.trouble())
    }
}
