//! One watch of a leaf, and what it knows of the targets in its collection.
//!
//! Not for other watches: what one knows never depends on another (LF-3).

use std::collections::BTreeMap;

use super::{NOT_SYNCED, Number, SPARE_FOR, TROUBLE_MAX, TWICE_AFTER};
use crate::apps::app::{Look, Present, Sight, TargetKey};
use kernel::answer::PortError;
use kernel::call::Call;
use kernel::machine::Timestamp;
use kernel::retry::SERVICE;
use kernel::unreadable::Unreadable;

/// Why a target is not ready that has to be seen twice.
const SEEN_ONCE: &str = "it was seen ready once; it is looked at again, because it does not say what it has acted on";

/// The last sight of a target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    Absent,
    Unreadable(Unreadable),
    There(Look),
}

/// The known state of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    /// `None` before the first look.
    seen: Option<Seen>,
    /// Since when each look has said this.
    since: Timestamp,
    /// A second look, long enough after the first, has said the same.
    confirmed: bool,
    /// Seen since the last listing began; otherwise it is read by name once the listing is complete.
    shown: bool,
    /// It was wanted after the first listing had begun, and no read by name has answered since. The watch's state of it
    /// may be from before, with everything between left out.
    late: bool,
    read: Call,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Trouble {
    since: Timestamp,
    why: String,
    /// It has lasted too long for what was known before it.
    lasts: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Watched {
    pub number: Number,
    /// Its first listing has begun: from then on it may have left out what was not wanted yet.
    begun: bool,
    /// It was listed to the end at least once.
    synced: bool,
    trouble: Option<Trouble>,
    known: BTreeMap<TargetKey, Known>,
    /// Since when no target needs it.
    spare: Option<Timestamp>,
}

impl Known {
    /// The watch says this of it.
    fn hear(&mut self, now: Timestamp, seen: Seen) {
        if self.late {
            // A read that is under way may be answered with what was before this.
            self.read.outdate();
        } else {
            self.see(now, seen);
        }
    }

    fn see(&mut self, now: Timestamp, seen: Seen) {
        (self.shown, self.late) = (true, false);
        if self.seen.as_ref() != Some(&seen) {
            (self.seen, self.since, self.confirmed) = (Some(seen), now, false);
        }
    }

    /// When it is due for its second look, if it needs one.
    fn second_look(&self) -> Option<Timestamp> {
        match &self.seen {
            Some(Seen::There(look)) if look.twice && look.present.unready.is_none() && !self.confirmed => {
                Some(self.since.after(TWICE_AFTER))
            }
            Some(Seen::There(_) | Seen::Absent | Seen::Unreadable(_)) | None => None,
        }
    }

    /// When it is read by name.
    fn reads_at(&self, now: Timestamp) -> Option<Timestamp> {
        let wanted = if self.shown { self.second_look()? } else { now };
        Some(self.read.deadline().map_or(wanted, |again| again.max(wanted))).filter(|_| !self.read.is_asked())
    }
}

/// The sight of an object that is there, `confirmed` if a second look has said the same as the first.
pub(crate) fn present(look: &Look, confirmed: bool) -> Sight {
    let mut present: Present = look.present.clone();
    if look.twice && !confirmed {
        present.unready.get_or_insert_with(|| SEEN_ONCE.to_owned());
    }
    Sight::Present(present)
}

impl Watched {
    /// A watch that begins, and the targets of its collection.
    pub fn new<'a>(number: Number, targets: impl Iterator<Item = &'a TargetKey>) -> Self {
        let known = targets.map(|target| (target.clone(), Known::default())).collect();
        Self { number, begun: false, synced: false, trouble: None, known, spare: None }
    }

    /// These targets are in its collection, too: what it has said already it did not say of them.
    pub fn concerns<'a>(&mut self, targets: impl Iterator<Item = &'a TargetKey>) {
        let late = self.begun;
        let new = |target: &TargetKey| (target.clone(), Known { late, ..Known::default() });
        self.known.extend(targets.map(new));
    }

    /// These are not wanted any more.
    pub fn concerns_no_more<'a>(&mut self, targets: impl Iterator<Item = &'a TargetKey>) {
        for target in targets {
            self.known.remove(target);
        }
    }

    /// A target needs it, or none does.
    pub fn used(&mut self, now: Timestamp, is_needed: bool) {
        self.spare = (!is_needed).then(|| self.spare.unwrap_or(now));
    }

    pub fn is_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Whether it was spare for long enough.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.spare.is_some_and(|since| since.after(SPARE_FOR) <= now)
    }

    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.why.as_str())
    }

    pub fn restarted(&mut self) {
        self.begun = true;
        for known in self.known.values_mut() {
            known.shown = false;
            // It may be answered with what was before the listing.
            known.read.outdate();
        }
    }

    pub fn see(&mut self, now: Timestamp, target: &TargetKey, seen: Seen) {
        if let Some(known) = self.known.get_mut(target) {
            known.hear(now, seen);
        }
    }

    /// An object is gone. Returns the targets that it was.
    pub fn gone(&mut self, now: Timestamp, namespace: &str, name: &str) -> Vec<TargetKey> {
        let is_it = |target: &TargetKey| target.namespace == namespace && target.name == name;
        let mut gone = Vec::new();
        for (target, known) in self.known.iter_mut().filter(|(target, _)| is_it(target)) {
            known.hear(now, Seen::Absent);
            gone.push(target.clone());
        }
        gone
    }

    pub fn synced(&mut self) {
        (self.synced, self.trouble) = (true, None);
    }

    pub fn troubled(&mut self, now: Timestamp, why: String) {
        let (since, lasts) = self.trouble.as_ref().map_or((now, !self.synced), |known| (known.since, known.lasts));
        self.trouble = Some(Trouble { since, why, lasts });
    }

    /// The answer to a read by name. It never replaces what the watch has shown since it was asked for: that may be newer.
    pub fn read(&mut self, now: Timestamp, target: &TargetKey, answer: Result<Option<Look>, PortError>) {
        let Some(known) = self.known.get_mut(target) else { return };
        let answer = match answer {
            Ok(look) => look.map_or(Seen::Absent, Seen::There),
            Err(error) => return known.read.failed(SERVICE.from(now, &target.name), error),
        };
        let is_outdated = known.read.is_outdated();
        known.read.answered();
        if is_outdated {
            return;
        }
        if !known.shown {
            known.see(now, answer);
        } else if known.second_look().is_some_and(|due| due <= now) {
            known.confirmed = known.seen.as_ref() == Some(&answer);
            known.since = now;
        }
    }

    /// The targets that are read by name now.
    pub fn ask(&mut self, now: Timestamp) -> Vec<TargetKey> {
        if !self.synced {
            return Vec::new();
        }
        let due = self.known.iter_mut().filter(|(_, known)| known.reads_at(now).is_some_and(|at| at <= now));
        due.map(|(target, known)| {
            known.read.asked();
            target.clone()
        })
        .collect()
    }

    /// The known state of a target of this collection, or why there is none.
    pub fn sight(&self, target: &TargetKey) -> Result<Sight, &str> {
        if let Some(trouble) = self.trouble.as_ref().filter(|trouble| trouble.lasts) {
            return Err(&trouble.why);
        }
        let known = self.known.get(target).filter(|_| self.synced);
        match known.and_then(|known| known.seen.as_ref()) {
            None => {
                let trouble = self.trouble.as_ref().map(|trouble| trouble.why.as_str());
                let why = known.and_then(|known| known.read.last_reason()).or(trouble);
                Err(why.unwrap_or(NOT_SYNCED))
            }
            Some(Seen::Absent) => Ok(Sight::Absent),
            Some(Seen::Unreadable(why)) => Ok(Sight::Unknown(format!("it cannot be read: {why}"))),
            Some(Seen::There(look)) => Ok(present(look, known.is_some_and(|known| known.confirmed))),
        }
    }

    /// Whether two looks, far enough apart, have said this.
    pub fn is_confirmed(&self, target: &TargetKey, look: &Look) -> bool {
        let known = self.known.get(target).filter(|known| known.confirmed);
        known.is_some_and(|known| matches!(&known.seen, Some(Seen::There(seen)) if seen == look))
    }

    /// Whether it has shown this target, and all there is.
    pub fn has_shown(&self, target: &TargetKey) -> bool {
        self.synced && self.known.get(target).is_some_and(|known| matches!(known.seen, Some(Seen::There(_))))
    }

    pub fn tick(&mut self, now: Timestamp) {
        if let Some(trouble) = &mut self.trouble {
            trouble.lasts |= trouble.since.after(TROUBLE_MAX) <= now;
        }
    }

    pub fn next_deadline(&self) -> Option<Timestamp> {
        let lasts =
            self.trouble.as_ref().filter(|trouble| !trouble.lasts).map(|trouble| trouble.since.after(TROUBLE_MAX));
        let over = self.spare.map(|since| since.after(SPARE_FOR));
        let reads = self.known.values().filter(|_| self.synced);
        let reads = reads.filter_map(|known| known.reads_at(Timestamp::default()));
        reads.chain(lasts).chain(over).min()
    }
}
