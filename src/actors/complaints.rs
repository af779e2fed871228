//! Logs what only a person can end: as an error once, and again daily, with the remedy (decision 37). There is one for the whole
//! process, because a cause does not belong to the actor that meets it. `kernel::refusal` decides what to log, and when.
//!
//! Not for what passes by itself: the actor that met it logs that.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::machine::Timestamp;
use kernel::refusal::{Cause, Refusals, Refused, Said};
use purge::ports::{CdnError, PortError, StoreError};

/// Refusals that still last.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<Refusals>);

impl Complaints {
    /// Takes in how a call to a port ended. Returns whether it was refused, and so is already logged.
    pub fn heard(&self, now: Timestamp, cause: Cause, place: &str, error: Option<&PortError>) -> bool {
        match error {
            None => self.worked(now, cause, place),
            Some(error) if error.denied => {
                self.refused(now, cause, error.refused().unwrap_or(Refused::Right), place, error);
            }
            Some(_) => {}
        }
        error.is_some_and(|error| error.denied)
    }

    /// Takes in how storing a record ended. Returns whether it was refused, and so is already logged.
    pub fn heard_of_store(&self, now: Timestamp, place: &str, error: Option<&StoreError>) -> bool {
        match error {
            None => {
                self.worked(now, Cause::FullLedger, place);
                self.heard(now, Cause::WriteLedger, place, None)
            }
            Some(StoreError::NoRoom(error)) => {
                self.refused(now, Cause::FullLedger, Refused::Request, place, error);
                true
            }
            Some(StoreError::Unavailable(error)) => self.heard(now, Cause::WriteLedger, place, Some(error)),
            Some(StoreError::Conflict(_) | StoreError::Lost(_)) => false,
        }
    }

    /// Takes in how a call to the CDN that needs `right` ended. Returns whether it was refused, and so is already
    /// logged.
    pub fn heard_of_cdn(&self, now: Timestamp, right: Cause, place: &str, error: Option<&CdnError>) -> bool {
        let Some(error) = error else {
            self.worked(now, Cause::Credentials, "");
            self.worked(now, right, place);
            return false;
        };
        match error.class.cause(right, &error.message) {
            None => return false,
            Some(Cause::Credentials) => self.refused(now, Cause::Credentials, Refused::Caller, "", error),
            Some(right) => {
                // CloudFront knows us, so our credentials are valid.
                self.worked(now, Cause::Credentials, "");
                self.refused(now, right, Refused::Right, place, error);
            }
        }
        true
    }

    /// The API server answered what is no part of any cause: it knows us, and what we may do.
    pub fn answered(&self, now: Timestamp) {
        self.kept().answered(now);
    }

    /// When the API server last answered anything.
    pub fn last_answer(&self) -> Option<Timestamp> {
        self.kept().last_answer()
    }

    /// Whether this cause lasts, and counts.
    pub fn is_said(&self, cause: Cause) -> bool {
        self.kept().is_said(cause)
    }

    fn kept(&self) -> MutexGuard<'_, Refusals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self, now: Timestamp, cause: Cause, refused: Refused, place: &str, error: &dyn fmt::Display) {
        let said = self.kept().refused(now, cause, refused, place);
        let (name, remedy, cost) = (cause.name(), refused.remedy(cause), cause.cost());
        match said {
            Said::Begins => {
                tracing::warn!(cause = name, %error, "something was refused; it is tried again, and may pass");
            }
            Said::Now => {
                let message = cause.sentence(refused);
                tracing::error!(cause = name, %error, remedy, cost, %message);
            }
            Said::Before => tracing::debug!(cause = name, place, %error, "it is still refused"),
        }
    }

    fn worked(&self, now: Timestamp, cause: Cause, place: &str) {
        let ended = self.kept().worked(now, cause, place);
        if let Some(lasted) = ended {
            tracing::info!(cause = cause.name(), place, for_s = lasted.as_secs(), "what was refused works again");
        }
    }
}
