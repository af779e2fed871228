//! What is known of one distribution: whether others are to go along with the last creation, and whether it refuses.

use std::time::Duration;

use crate::distribution::DistributionId;
use crate::machine::Timestamp;
use crate::retry::{self, Backoff};

/// If an operator has to act, there is no hurry.
const SLOWLY: Backoff = Backoff { base: Duration::from_secs(15), cap: Duration::from_secs(5 * 60) };

/// A distribution that refuses is tried again at the earliest so long after the last time, when a purge of it is ordered
/// meanwhile: the person who rolls out may have mended the cause.
const PROBED_AGAIN_AFTER: Duration = Duration::from_secs(15);

/// One distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    /// When its debounce window ends: those that wait then go as one.
    pub(super) window: Timestamp,
    /// It has refused the last creation, or not answered. Nothing is created before a probe of it has got through.
    pub(super) refusal: Option<Refusal>,
}

/// Why, and until when, a distribution is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refusal {
    failures: u32,
    /// When it refused last.
    at: Timestamp,
    /// When it is tried again.
    pub(super) until: Timestamp,
    /// What it said.
    pub(super) why: String,
    /// An operator has to act.
    pub(super) needs_help: bool,
}

impl Lane {
    /// Nothing is known of it that the next order has to know.
    pub(super) fn is_blank(&self, now: Timestamp) -> bool {
        self.window <= now && self.refusal.is_none()
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

    /// Its last words, if it refuses and an operator has to act.
    pub(super) fn why_failing(&self) -> Option<&str> {
        self.refusal.as_ref().filter(|refusal| refusal.needs_help).map(|refusal| refusal.why.as_str())
    }
}
