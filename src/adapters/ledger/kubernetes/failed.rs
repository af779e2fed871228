//! A write that did not succeed, as far as those who write tell failures apart.

use crate::adapters::kubernetes::api::CallError;
use crate::ports::{PinError, PortError};

/// A write that did not succeed.
#[derive(Debug)]
pub(super) enum Failed {
    /// Somebody else wrote, or created, first.
    Conflict(PortError),
    /// The ledger as a whole was deleted since it was opened.
    Lost(PortError),
    /// Anything else.
    Other(PortError),
}

impl From<CallError> for Failed {
    fn from(failed: CallError) -> Self {
        if failed.status() == Some(409) { Self::Conflict(failed.error) } else { Self::Other(failed.error) }
    }
}

impl From<PortError> for Failed {
    fn from(error: PortError) -> Self {
        Self::Other(error)
    }
}

impl From<PinError> for Failed {
    fn from(error: PinError) -> Self {
        match error {
            PinError::Lost(error) => Self::Lost(error),
            PinError::Unavailable(error) => Self::Other(error),
        }
    }
}
