//! The members of the group, from the ledger and from their beats, and what the rollouts last learnt about them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BACKOFF, Effect, NoAnswer};
use crate::agreement::roster::{Hold, Pin, Reason, Roster, Servers, Standing};
use kernel::call::Call;
use kernel::id::Member;
use kernel::machine::Timestamp;

/// How often the pin is read; we notice a change by `allclear group forget` within this time.
const PIN_EVERY: Duration = Duration::from_secs(10);

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Membership {
    /// `None` while alone.
    pub(super) roster: Option<Roster>,
    /// Our standing with the members as the rollouts last learnt it.
    pub(super) standing: Standing,
    /// The members that were silent then, in words.
    silences: BTreeMap<Member, String>,
    /// The reading and writing of the pin.
    pinning: Call,
    /// Whether the pin was read since we last found it changed.
    is_pin_known: bool,
}

impl Membership {
    /// Without a roster we are alone.
    pub(super) fn new(roster: Option<Roster>) -> Self {
        Self {
            roster,
            standing: Standing::default(),
            silences: BTreeMap::new(),
            pinning: Call::due(Timestamp::default()),
            is_pin_known: false,
        }
    }

    /// Whether there is a group.
    pub(super) fn is_grouped(&self) -> bool {
        self.roster.is_some()
    }

    /// How we stand with the members now; `listen_only` in a dry run.
    pub(super) fn stand(&self, now: Timestamp, servers: &Servers, listen_only: bool) -> Standing {
        let Some(roster) = &self.roster else { return Standing::default() };
        let mut standing = roster.standing(now, servers);
        if listen_only {
            let words = "this is a dry run: nothing is agreed on with other members";
            standing.hold = Some(Hold::new(Reason::DryRun, words));
        } else if standing.hold.is_some()
            && (roster.pin().is_none() || roster.wanted_pin(now, servers).is_some())
            && let Some(why) = self.pinning.reason()
        {
            standing.hold =
                Some(Hold::new(Reason::Members, format!("the members cannot be kept in the ledger: {why}")));
        }
        standing
    }

    /// Which of the others are silent now, in words.
    pub(super) fn silences(&self, now: Timestamp, own: &Member) -> BTreeMap<Member, String> {
        let Some(roster) = &self.roster else { return BTreeMap::new() };
        let others = self.standing.members.iter().filter(|member| *member != own);
        others.filter_map(|member| Some((member.clone(), roster.silence(now, member)?))).collect()
    }

    /// Notes what the rollouts are to learn. Returns whether it is news.
    pub(super) fn note(&mut self, standing: Standing, silences: BTreeMap<Member, String>) -> bool {
        let is_news = standing != self.standing || silences != self.silences;
        (self.standing, self.silences) = (standing, silences);
        is_news
    }

    /// Reads the pin when that is due, or stores the one that is wanted.
    pub(super) fn mind_pin(&mut self, now: Timestamp, servers: &Servers, listen_only: bool) -> Option<Effect> {
        let roster = self.roster.as_ref()?;
        let wanted = roster.wanted_pin(now, servers).filter(|_| self.is_pin_known && !listen_only);
        if wanted.is_some() && !self.pinning.is_failing() {
            self.pinning.hurry(now);
        }
        if !self.pinning.is_due(now) {
            return None;
        }
        self.pinning.asked();
        Some(wanted.map_or(Effect::ReadPin, |pin| Effect::StorePin(pin, roster.pin().cloned())))
    }

    /// The pin was read, or could not be.
    pub(super) fn pin_read(&mut self, now: Timestamp, pin: Result<Option<Pin>, NoAnswer>) {
        match pin {
            Ok(pin) => {
                self.roster.iter_mut().for_each(|roster| roster.pinned(pin.clone()));
                self.is_pin_known = true;
                self.pinning.answered_until(now.after(PIN_EVERY));
            }
            Err(why) => self.pinning.failed(BACKOFF.from(now, "pin"), why),
        }
    }

    /// The pin was stored, another one was there, or the outcome is unknown.
    pub(super) fn pin_stored(&mut self, now: Timestamp, pin: &Pin, stored: Result<bool, NoAnswer>) {
        match stored {
            Ok(true) => {
                self.roster.iter_mut().for_each(|roster| roster.pinned(Some(pin.clone())));
                self.pinning.answered_until(now.after(PIN_EVERY));
            }
            Ok(false) => {
                self.is_pin_known = false;
                self.pinning.answered_until(now);
            }
            Err(why) => {
                self.is_pin_known = false;
                self.pinning.failed(BACKOFF.from(now, "pin"), why);
            }
        }
    }

    /// When the pin is read next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.pinning.deadline().filter(|_| self.is_grouped())
    }
}
