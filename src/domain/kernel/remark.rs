//! A remark on a change of an object's status: a short-lived Event that is neither stored nor waited for. News that
//! must arrive is a notice.

use crate::id::{Subject, digest};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Its reason, one word.
    pub reason: &'static str,
    /// Something is not as it should be.
    pub is_warning: bool,
    pub message: String,
    pub annotations: Vec<(&'static str, String)>,
}

impl Remark {
    /// Names it: `H(UID, serial, reason, message)`. The same change of status always makes the same remarks.
    pub fn id(&self, uid: &str, serial: u64) -> String {
        digest("remark", [uid, serial.to_string().as_str(), self.reason, self.message.as_str()])
    }
}

/// On what a remark is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remarked {
    pub subject: Subject,
    pub uid: String,
    /// How often its status was written.
    pub serial: u64,
}
