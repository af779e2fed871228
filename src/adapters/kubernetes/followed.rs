//! One object, watched by its name, for which a right to that one object is enough.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources>

use futures_util::StreamExt;

use apiserver::{Collection, Decoder, Look, Reach, Reading, Watches};
use purge::ports::{Flow, PortError};

/// The object. See the module's text.
pub(super) struct Followed<T> {
    looks: Flow<Look<T>>,
    attempt: String,
    not_found: String,
    /// Seen since the last listing began.
    is_there: bool,
    /// It was there at least once: trouble with its watch says nothing about what is in it.
    known: bool,
}

impl<T: Clone + Send + 'static> Followed<T> {
    pub(super) fn new(watches: &Watches, of: Collection, decode: Decoder<T>, not_found: String) -> Self {
        let attempt = of.attempt_one("read", of.name().unwrap_or_default()).to_string();
        Self { looks: watches.watch(of, decode, Reach::default()), attempt, not_found, is_there: false, known: false }
    }

    pub(super) async fn next(&mut self) -> Option<Result<T, PortError>> {
        loop {
            let missing = |this: &Self| Some(Err(PortError::lasting(this.attempt.as_str(), &this.not_found)));
            match self.looks.next().await? {
                Look::Restarted => self.is_there = false,
                Look::Seen(reading) => {
                    (self.is_there, self.known) = (true, true);
                    return Some(match reading {
                        Reading::Read(read) => Ok(read),
                        Reading::Unreadable(_, why) => Err(PortError::lasting(self.attempt.as_str(), why)),
                    });
                }
                Look::Gone(_) => {
                    (self.is_there, self.known) = (false, false);
                    return missing(self);
                }
                Look::Synced if !self.is_there => {
                    self.known = false;
                    return missing(self);
                }
                Look::Trouble(error) if !self.known => return Some(Err(error)),
                Look::Synced | Look::Trouble(_) => {}
            }
        }
    }
}
