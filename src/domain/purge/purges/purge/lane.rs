//! The state of one distribution: whether others are to go along with the last creation, and whether it refuses.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::id::Reference;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::retry::{self, Backoff};

/// If an operator has to act, retries are slow. But a person who has granted a right looks whether it helps: noticed
/// within half a minute.
const SLOWLY: Backoff = Backoff { base: Duration::from_secs(15), cap: TRIED_EVERY };

/// How often it is tried then.
pub const TRIED_EVERY: Duration = Duration::from_secs(25);

/// A distribution that is throttled stands aside so long, lest it be the cause: longer each time in a row.
const ASIDE: Backoff = Backoff { base: Duration::from_millis(250), cap: Duration::from_secs(60) };

/// A distribution that refuses is tried again at the earliest so long after the last time, when a purge of it is ordered
/// meanwhile: the person who rolls out may have mended the cause.
const PROBED_AGAIN_AFTER: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// When its debounce window ends: those that wait then go as one.
    pub(super) window: Timestamp,
    /// It has refused the last creation, or not answered. Nothing is created before a probe of it has got through.
    pub(super) refusal: Option<Refusal>,
    /// Its last creations were throttled.
    pub(super) throttled: Option<Throttled>,
    /// Its jobs, whatever they are at.
    pub(super) jobs: usize,
    /// Creations of it that are under way.
    pub(super) calling: usize,
    /// Namespaces for which something waits, while it does not refuse.
    pub(super) wanted: usize,
    /// The seats that wait for it, by namespace.
    pub(super) seats: BTreeMap<String, Seat>,
}

/// What of one namespace waits for one distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    /// By their numbers: which, and whether CloudFront may have looked at it already.
    pub(super) jobs: BTreeMap<u64, (Reference, bool)>,
    pub(super) place: Place,
    /// It counts among those for which its distribution is wanted.
    pub(super) counts: bool,
}

/// Where a seat is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// Nowhere: nothing waits, or its distribution refuses and is being tried.
    #[default]
    Nowhere,
    /// It waits until then.
    Later(Timestamp),
    /// It waits for the pace alone. A repetition stands by the time from which on it does; all stand by the number of their first.
    Ready { repeated: bool, since: Timestamp, number: u64 },
}

/// How often in a row, and until when it stands aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Throttled {
    times: u32,
    /// When the last one was.
    at: Timestamp,
    until: Timestamp,
    why: String,
}

/// Why, and until when, a distribution is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    failures: u32,
    /// When it refused last.
    at: Timestamp,
    /// When it is tried again.
    pub(super) until: Timestamp,
    pub(super) why: String,
    /// An operator has to act.
    pub(super) needs_help: bool,
}

impl Lane {
    /// It has neither refused nor been throttled.
    pub(super) const fn is_open(&self) -> bool {
        self.refusal.is_none() && self.throttled.is_none()
    }

    /// It refuses, and what became of the last try is not known yet.
    pub(super) const fn is_being_tried(&self) -> bool {
        self.refusal.is_some() && self.calling > 0
    }

    /// From when on something may be created for it: once it refuses, a try.
    pub(super) fn opens(&self) -> Timestamp {
        // A throttling puts off the next try of one that refuses as well.
        let until = self.refusal.as_ref().map(|refusal| refusal.until).or_else(|| self.aside());
        self.window.max(until.unwrap_or_default())
    }

    /// A creation for it was throttled, and the account pauses until then: another one is to be the first after it, if one waits.
    /// As nothing was created, what waits need not wait for company.
    pub(super) fn throttled(&mut self, now: Timestamp, paused: Timestamp, of: &DistributionId, why: String) {
        let times = self.throttled.as_ref().map_or(0, |throttled| throttled.times).saturating_add(1);
        let until = now.after(ASIDE.delay(times, of.as_str())).max(paused.after(Duration::from_millis(1)));
        self.throttled = Some(Throttled { times, at: now, until, why });
        self.window = now;
        if let Some(refusal) = &mut self.refusal {
            refusal.until = refusal.until.max(until);
        }
    }

    /// Until when it stands aside, if its last creations were throttled.
    fn aside(&self) -> Option<Timestamp> {
        self.throttled.as_ref().map(|throttled| throttled.until)
    }

    /// When it was throttled last, if nothing was created for it since.
    pub(super) fn throttled_at(&self) -> Option<Timestamp> {
        self.throttled.as_ref().map(|throttled| throttled.at)
    }

    /// Why it cannot be purged now, in words; `None` if only its window or the account's pace is in the way.
    pub(super) fn words(&self, now: Timestamp) -> Option<String> {
        let in_seconds = |until: Timestamp| until.since(now).as_secs();
        let refused = |it: &Refusal| format!("is refused; tried again in {} s: {}", in_seconds(it.until), it.why);
        let throttled =
            |it: &Throttled| format!("was throttled; tried again in {} s: {}", in_seconds(it.until), it.why);
        let throttle = self.throttled.as_ref().filter(|throttled| throttled.until > now);
        self.refusal.as_ref().map(refused).or_else(|| throttle.map(throttled))
    }

    /// CloudFront's last answer, if it refused a creation.
    pub(super) fn why(&self) -> Option<&str> {
        let throttled = self.throttled.as_ref().map(|throttled| throttled.why.as_str());
        self.refusal.as_ref().map(|refusal| refusal.why.as_str()).or(throttled)
    }

    /// It refused a creation that was sent then. One that had been under way when an earlier one was refused says nothing new.
    pub(super) fn refused(
        &mut self,
        now: Timestamp,
        sent: Timestamp,
        of: &DistributionId,
        why: String,
        needs_help: bool,
    ) {
        let before = self.refusal.take();
        if let Some(known) = before.as_ref().filter(|known| sent < known.at && known.needs_help == needs_help) {
            self.refusal = Some(known.clone());
            return;
        }
        let counts = before.filter(|known| known.needs_help == needs_help).map_or(0, |known| known.failures);
        let failures = counts.saturating_add(1);
        let backoff = if needs_help { SLOWLY } else { retry::SERVICE };
        let until = now.after(backoff.delay(failures, of.as_str()));
        self.refusal = Some(Refusal { failures, at: now, until, why, needs_help });
    }

    /// A purge of it was ordered: news, so it is tried again a little earlier.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        if let Some(refusal) = &mut self.refusal {
            refusal.until = refusal.until.min(refusal.at.after(PROBED_AGAIN_AFTER).max(now));
        }
    }

    /// It refuses, and is tried now.
    pub(super) fn try_now(&mut self, now: Timestamp) {
        if let Some(refusal) = &mut self.refusal {
            refusal.until = refusal.until.min(now);
        }
    }

    /// Its last words, if it refuses and an operator has to act.
    pub(super) fn why_failing(&self) -> Option<&str> {
        self.refusal.as_ref().filter(|refusal| refusal.needs_help).map(|refusal| refusal.why.as_str())
    }
}

impl Seat {
    /// The first that came.
    pub(super) fn first(&self) -> Option<(u64, &Reference, bool)> {
        self.jobs.first_key_value().map(|(number, (reference, repeats))| (*number, reference, *repeats))
    }

    /// Where it belongs. `next` is from when on its namespace may have another purge; one that CloudFront may have made already is none.
    pub(super) fn placed(&self, now: Timestamp, lane: &Lane, next: Timestamp) -> Place {
        let Some((number, _, repeats)) = self.first().filter(|_| !lane.is_being_tried()) else { return Place::Nowhere };
        let is_tried = lane.refusal.is_some() || repeats;
        let from = if is_tried { lane.opens() } else { lane.opens().max(next) };
        match is_tried {
            _ if from > now => Place::Later(from),
            true => Place::Ready { repeated: true, since: from, number },
            false => Place::Ready { repeated: false, since: Timestamp::default(), number },
        }
    }
}
