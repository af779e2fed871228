//! What the lines of all members say, kept small: a line costs some 100 bytes, and a text that comes again nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::line::{Line, pairs};
use crate::names::{Name, Names};
use crate::secret;

/// Where something was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whose log it is, by its number in [`Logs::members`].
    pub member: usize,
    /// From 1.
    pub line: u64,
    /// When it was written, in microseconds since the Unix epoch.
    pub at_us: i64,
}

/// What one log is.
#[derive(Clone, Debug)]
pub struct MemberLog {
    /// As its lines say, or else as the caller does.
    pub name: String,
    /// The first and the last stamp, in microseconds since the Unix epoch. `None`: no line was read.
    pub span_us: Option<(i64, i64)>,
    pub lines: u64,
    /// Lines that are none of ours, or cannot be read.
    pub strange: u64,
    /// Starts of a process.
    pub lives: u64,
    pub is_dry_run: bool,
    /// Its lines name more than one member: logs that were mixed.
    pub is_mixed: bool,
    names_itself: bool,
}

/// A rollout of one member: whose log, which workload, which number, and how often that number was begun anew: a dry run counts again
/// from 1 after each start, and so does a ledger that was made anew.
pub(crate) type Own = (usize, Name, u64, u32);

/// A notice that was logged. One that was logged again is there once.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub place: Place,
    pub kind: Name,
    pub own: Own,
    pub rollout: Name,
    pub change: Name,
    pub message: Name,
    /// When it happened; when it was logged where the line does not say.
    pub at_us: i64,
    /// Distributions, and their invalidations where they are made and said.
    pub purges: Vec<(Name, Option<Name>)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Vote {
    pub place: Place,
    pub own: Own,
    pub rollout: Name,
    /// Each member with its number.
    pub members: Vec<(Name, u64)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub first: Place,
    pub hook: Name,
    /// The message of its last line: it was delivered, given up, or is tried again.
    pub last: Name,
    pub workload: Name,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Logs {
    pub(crate) names: Names,
    pub(crate) members: Vec<MemberLog>,
    pub(crate) told: Vec<Told>,
    pub(crate) votes: Vec<Vote>,
    pub(crate) deliveries: BTreeMap<Name, Delivery>,
    /// What looks like a secret. The line is named and never shown.
    pub(crate) leaks: Vec<(Place, &'static str)>,
    /// What allclear itself says that it has broken.
    pub(crate) admitted: Vec<(Place, Name)>,
    /// Rollouts that their member says have ended.
    pub(crate) ended: BTreeMap<Own, Place>,
    known: HashSet<(usize, u64)>,
    /// How often each number was begun, and under which name last.
    begun: HashMap<(usize, Name, u64), (Name, u32)>,
}

impl Logs {
    /// Begins with the log of another member, whom the caller calls so. The number is for [`Logs::take`].
    pub fn begin(&mut self, name: &str) -> usize {
        self.members.push(MemberLog {
            name: name.to_owned(),
            span_us: None,
            lines: 0,
            strange: 0,
            lives: 0,
            is_dry_run: false,
            is_mixed: false,
            names_itself: false,
        });
        self.members.len().saturating_sub(1)
    }

    pub fn members(&self) -> &[MemberLog] {
        &self.members
    }

    /// Takes in the next line of a log.
    pub fn take(&mut self, member: usize, text: &str) {
        let Some(log) = self.members.get_mut(member) else { return };
        log.lines += 1;
        let number = log.lines;
        let Some((line, at_us)) =
            Line::read(text).and_then(|line| Some((line.at_us()?, line))).map(|(at, line)| (line, at))
        else {
            log.strange += 1;
            if let Some(what) = secret::shown(text) {
                let at_us = log.span_us.map_or(0, |(_, last)| last);
                self.leaks.push((Place { member, line: number, at_us }, what));
            }
            return;
        };
        let (first, last) = log.span_us.unwrap_or((at_us, at_us));
        log.span_us = Some((first.min(at_us), last.max(at_us)));
        let place = Place { member, line: number, at_us };
        if let Some(what) = secret::shown(text) {
            self.leaks.push((place, what));
        }
        if line.message == "started" {
            log.lives += 1;
            log.is_dry_run |= line.dry_run;
        } else if !line.kind.is_empty() && !line.notice.is_empty() {
            self.tell(place, &line);
        } else if !line.members.is_empty() {
            self.vote(place, &line);
        } else if !line.delivery.is_empty() {
            self.deliver(place, &line);
        } else if !line.outcome.is_empty() {
            let own = self.own(place, &line);
            self.ended.entry(own).or_insert(place);
        } else if !line.invalidation.is_empty() {
            // Its name is known from here on: that is what a witness is asked for.
            self.names.of(&line.invalidation);
        } else if !line.promise.is_empty() {
            let promise = self.names.of(&line.promise);
            self.admitted.push((place, promise));
        }
    }

    fn own(&mut self, place: Place, line: &Line<'_>) -> Own {
        let workload = self.names.of(&line.workload);
        let key = (place.member, workload, line.seq);
        let rollout = self.names.of(&line.rollout);
        let (known, times) = self.begun.entry(key).or_insert((rollout, 0));
        if line.kind == "rollout.started" && *known != rollout {
            (*known, *times) = (rollout, times.saturating_add(1));
        }
        (place.member, workload, line.seq, *times)
    }

    fn tell(&mut self, place: Place, line: &Line<'_>) {
        // A digest is enough to know it again, and a million ids are not kept.
        let mut digest = DefaultHasher::new();
        line.notice.hash(&mut digest);
        if !self.known.insert((place.member, digest.finish())) {
            return;
        }
        let made: BTreeMap<&str, &str> = pairs(&line.invalidations).collect();
        let purges: Vec<(Name, Option<Name>)> = line
            .distributions
            .split(',')
            .filter(|one| !one.is_empty())
            .map(|one| (self.names.of(one), made.get(one).map(|id| self.names.of(id))))
            .collect();
        let told = Told {
            place,
            kind: self.names.of(&line.kind),
            own: self.own(place, line),
            rollout: self.names.of(&line.rollout),
            change: self.names.of(&line.change),
            message: self.names.of(&line.message),
            at_us: if line.at_ms > 0 { line.at_ms.saturating_mul(1_000) } else { place.at_us },
            purges,
        };
        self.told.push(told);
    }

    fn vote(&mut self, place: Place, line: &Line<'_>) {
        if let Some(log) = self.members.get_mut(place.member) {
            log.is_mixed |= log.names_itself && log.name != line.member;
            if !log.names_itself && !line.member.is_empty() {
                log.name = line.member.clone().into_owned();
                log.names_itself = true;
            }
        }
        let numbered = pairs(&line.members).filter_map(|(name, seq)| Some((name, seq.parse::<u64>().ok()?)));
        let members = numbered.map(|(name, seq)| (self.names.of(name), seq)).collect();
        let vote = Vote { place, own: self.own(place, line), rollout: self.names.of(&line.rollout), members };
        self.votes.push(vote);
    }

    fn deliver(&mut self, place: Place, line: &Line<'_>) {
        let (delivery, last) = (self.names.of(&line.delivery), self.names.of(&line.message));
        let (hook, workload) = (self.names.of(&line.hook), self.names.of(&line.workload));
        let known = self.deliveries.entry(delivery).or_insert(Delivery { first: place, hook, last, workload });
        known.last = last;
    }

    /// The logs of this member, by the name that its votes and the caller use: those of its pods, and of their lives.
    pub(crate) fn logs_of(&self, member: Name) -> Vec<usize> {
        let name = self.names.text(member);
        self.members.iter().enumerate().filter(|(_, log)| log.name == name).map(|(at, _)| at).collect()
    }
}
