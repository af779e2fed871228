//! One hook's share of the outbox. What one receiver does, slow, dead or gone, stays in its queue.

use std::collections::BTreeSet;

use kernel::machine::Timestamp;

/// Attempts under way at once for one hook whose last attempt succeeded. Receivers are small programs: four connections
/// hide a round trip and do not amount to an attack.
pub(super) const SENDING_MAX: usize = 4;

/// As [`SENDING_MAX`], for a hook whose last attempt failed: one at a time, so a hanging receiver occupies one of the
/// places all hooks share.
pub(super) const SENDING_FAILING_MAX: usize = 1;

/// One hook's share of the outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HookQueue {
    /// All its deliveries that are not delivered or given up, oldest first.
    pub live: BTreeSet<(i64, String)>,
    pub bytes: usize,
    /// Those that are due, first come first served.
    pub ready: BTreeSet<(Timestamp, String)>,
    pub sending: usize,
    /// The last attempt failed.
    pub failing: bool,
    /// The receiver asked to be left alone until then; forgotten when it has passed.
    pub resting_until: Option<Timestamp>,
    /// Why nothing is sent any more.
    pub disabled: Option<String>,
}

impl HookQueue {
    /// The delivery to send now, if there is one and the queue has room.
    pub fn next(&self) -> Option<&(Timestamp, String)> {
        let places = if self.failing { SENDING_FAILING_MAX } else { SENDING_MAX };
        let open = self.disabled.is_none() && self.resting_until.is_none() && self.sending < places;
        self.ready.first().filter(|_| open)
    }

    /// Ends a pause that is over.
    pub fn wake(&mut self, now: Timestamp) {
        self.resting_until = self.resting_until.filter(|until| *until > now);
    }

    /// When time alone lets [`HookQueue::next`] give something.
    pub fn deadline(&self) -> Option<Timestamp> {
        if self.ready.is_empty() { None } else { self.resting_until }
    }

    /// Whether it remembers anything.
    pub fn is_idle(&self) -> bool {
        self.live.is_empty() && self.sending == 0 && self.disabled.is_none() && self.resting_until.is_none()
    }
}
