//! The changes of a plan, as one hash: a person approves it, and an apply's own plan must have the same one (RP-6).
//!
//! - `Terraform`: the JSON of `terraform show -json`, format 1.x ([format]). Decisive are each resource's address, mode, actions,
//!   `after`, `after_unknown` and `replace_paths`, what is imported, moved or invoked, and each output's change. Neither time, nor
//!   version, nor the order of keys and resources is. Of a value that is marked sensitive only counts whether it changes: the
//!   hash is written where others read it, and a short secret could be guessed from it.
//! - `Command`: the bytes. A plan without a word changes nothing.
//!
//! Nothing of a plan but its hash and its counts leaves this module, and addresses where they are asked for: plans hold secrets.
//!
//! Not for whether a plan is good, nor for what is done about one.
//!
//! [format]: https://developer.hashicorp.com/terraform/internals/json-format

mod changes;
mod json;
mod terraform;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::repo::spec::Preset;
use crate::repo::status::Counts;

pub use changes::{changes, listed, with_changes};

/// Bytes of a plan that are read. The plan of 10,000 resources of 5 KB has 50 MB.
pub const PLAN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Hexadecimal digits of a fingerprint: SHA-256.
pub const FINGERPRINT_DIGITS: usize = 64;

/// Bytes of a [`Message`]: what Kubernetes keeps of a [termination message].
///
/// [termination message]: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// The changes of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Planned {
    /// The hash, in [`FINGERPRINT_DIGITS`] lower-case digits.
    pub fingerprint: String,
    /// How much; `None` where the plan is any text.
    pub counts: Option<Counts>,
    /// There is nothing to apply.
    pub empty: bool,
}

/// Why a plan is not used: nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoPlan(&'static str);

/// Reads a plan as its preset writes it.
///
/// # Errors
/// It is too long, or none of the form that is understood.
pub fn fingerprint(preset: Preset, plan: &[u8]) -> Result<Planned, NoPlan> {
    if plan.len() > PLAN_BYTES_MAX {
        return Err(NoPlan("the plan has more than 64 MiB"));
    }
    match preset {
        Preset::Terraform => terraform::planned(plan),
        Preset::Command => Ok(Planned {
            fingerprint: digits(Sha256::digest(plan)),
            counts: None,
            empty: plan.iter().all(u8::is_ascii_whitespace),
        }),
    }
}

/// The message of `report` and `verify` to the controller, as their termination message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// This is what the plan would change.
    Planned(Planned),
    /// The plan is not the one that was said yes to: this is what it would change now.
    Differs(Planned),
}

/// Why there is no message: nothing of its text is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoMessage(&'static str);

/// The form of a message. Fields that are not known are left to later versions.
#[derive(Serialize, Deserialize)]
struct Written {
    result: Outcome,
    fingerprint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<WrittenCounts>,
    empty: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Planned,
    Differs,
}

#[derive(Serialize, Deserialize)]
struct WrittenCounts {
    add: u32,
    change: u32,
    destroy: u32,
}

impl Message {
    /// The message as one line of JSON, shorter than [`MESSAGE_BYTES_MAX`].
    ///
    /// # Errors
    /// It cannot be written, which would be a mistake of ours.
    pub fn to_json(&self) -> Result<String, NoMessage> {
        let (result, planned) = match self {
            Self::Planned(planned) => (Outcome::Planned, planned),
            Self::Differs(planned) => (Outcome::Differs, planned),
        };
        let Planned { fingerprint, counts, empty } = planned.clone();
        let counts = counts.map(|Counts { add, change, destroy }| WrittenCounts { add, change, destroy });
        serde_json::to_string(&Written { result, fingerprint, counts, empty })
            .map_err(|_| NoMessage("the message cannot be written"))
    }

    /// Reads what a container wrote. The user's own containers may write anything, so nothing is believed that is not whole.
    ///
    /// # Errors
    /// It is none of ours.
    pub fn parse(text: &str) -> Result<Self, NoMessage> {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(NoMessage("the message of the step is too long"));
        }
        let written: Written =
            serde_json::from_str(text).map_err(|_| NoMessage("the message of the step is not in our form"))?;
        let Written { result, fingerprint, counts, empty } = written;
        let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if fingerprint.len() != FINGERPRINT_DIGITS || !fingerprint.bytes().all(is_digit) {
            return Err(NoMessage("the message of the step has no fingerprint"));
        }
        let counts = counts.map(|WrittenCounts { add, change, destroy }| Counts { add, change, destroy });
        let planned = Planned { fingerprint, counts, empty };
        Ok(match result {
            Outcome::Planned => Self::Planned(planned),
            Outcome::Differs => Self::Differs(planned),
        })
    }
}

/// A hash in hexadecimal digits.
fn digits(hash: impl AsRef<[u8]>) -> String {
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
