//! Which server answers at a board's address: two addresses may lead to one, and an address may come to lead to another.

use std::time::Duration;

use super::NoAnswer;
use kernel::call::Call;
use kernel::machine::Timestamp;

/// How often we ask a server again for its identity.
const IDENTIFY_EVERY: Duration = Duration::from_secs(300);

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    call: Call,
    /// Its identity as of the last answer; `None` while it does not answer.
    identity: Option<String>,
    /// We have asked for its identity, and got an answer or a failure.
    tried: bool,
    /// The board that leads to the same server and is used instead of this one.
    pub(super) same_as: Option<usize>,
}

impl Server {
    /// Nothing is known of it.
    pub(super) fn new() -> Self {
        Self { call: Call::due(Timestamp::default()), identity: None, tried: false, same_as: None }
    }

    /// Whether to ask for its identity now.
    pub(super) fn ask(&mut self, now: Timestamp) -> bool {
        let due = self.call.is_due(now);
        if due {
            self.call.asked();
        }
        due
    }

    /// It gave its identity, or did not; then we ask again at the time of `again`.
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        identity: Result<String, NoAnswer>,
        again: impl FnOnce(u32) -> Timestamp,
    ) {
        self.tried = true;
        match identity {
            Ok(identity) => {
                self.identity = Some(identity);
                self.call.answered_until(now.after(IDENTIFY_EVERY));
            }
            Err(why) => {
                self.identity = None;
                self.call.failed(again, why);
            }
        }
    }

    /// The next answer may come from another server.
    pub(super) fn doubt(&mut self, now: Timestamp) {
        self.identity = None;
        self.call.hurry(now);
    }

    /// Makes the next question due now.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
    }

    /// Its identity, as it says itself; `None` while unknown.
    pub(super) fn identity(&self) -> Option<&String> {
        self.identity.as_ref()
    }

    /// Whether we have asked for its identity, and got an answer or a failure.
    pub(super) fn is_tried(&self) -> bool {
        self.tried
    }

    /// When it is asked next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    /// Why it gives no identity.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }
}
