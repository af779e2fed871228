//! Which server answers at a board's address: two addresses may lead to one, and an address may come to lead to another.

use std::time::Duration;

use crate::call::Call;
use crate::machine::Timestamp;

/// How often a server is asked again who it is.
const IDENTIFY_EVERY: Duration = Duration::from_secs(300);

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    call: Call,
    /// Who it is, as of the last answer; `None` while it does not answer.
    identity: Option<String>,
    /// It was asked who it is, and answered or failed to.
    tried: bool,
    /// The path that leads to the same server. This one is not used then.
    pub(super) same_as: Option<usize>,
}

impl Server {
    /// Nothing is known of it.
    pub(super) fn new() -> Self {
        Self { call: Call::due(Timestamp::default()), identity: None, tried: false, same_as: None }
    }

    /// Asks who it is, if that is due.
    pub(super) fn ask(&mut self, now: Timestamp) -> bool {
        let due = self.call.is_due(now);
        if due {
            self.call.asked();
        }
        due
    }

    /// It said who it is, or did not: then it is asked again at the time of `again`.
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        identity: Result<String, String>,
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

    /// It is asked again at once.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.call.hurry(now);
    }

    /// Who it is, as it says itself; `None` while that is not known.
    pub(super) fn identity(&self) -> Option<&String> {
        self.identity.as_ref()
    }

    /// Whether it was asked who it is, and answered or failed to.
    pub(super) fn is_tried(&self) -> bool {
        self.tried
    }

    /// When it is asked next.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    /// Why it does not say who it is.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.call.reason()
    }
}
