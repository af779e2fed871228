//! Where a member keeps its records: one port, two backends, one contract (`tests/adapter/ledger.rs`).
//!
//! | backend | when | what a compare-and-set rests on |
//! |---|---|---|
//! | [`kubernetes`] | the default | the `resourceVersion` of a shard, and the revision inside |
//! | [`memory`] | demo, dry run, tests | a mutex |
//!
//! What is allowed is written once, in [`judge_store`] and [`judge_removal`], and the contract holds both to it. [`unreachable`] stands in
//! for the memory of another process, and only refuses.

pub mod kubernetes;
pub mod memory;
pub mod unreachable;

pub use kernel::watches::listed::{SHARDS, shard_of};

use kernel::floor::Floor;
use kernel::id::{Origin, WorkloadId};
use kernel::watches::lives::LifeNote;
use purge::agreement::roster::Pin;
use purge::ports::{PortError, StoreError};
use purge::records::record::Record;
use purge::records::record_codec::CodecError;

/// A name no ledger had before: 128 random bits, because an origin must never come twice (GA-2). If it did, the numbers
/// counted under it would repeat, and CloudFront would answer a new purge with the old one.
///
/// # Errors
/// When the operating system has no randomness.
pub fn fresh_origin() -> Result<Origin, PortError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| PortError::passing("failed to name a new ledger", format!("no randomness: {error}")))?;
    Ok(Origin(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// What a compare-and-set does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ruling {
    /// It is carried out.
    Apply,
    /// It was carried out before.
    Done,
    /// Another writer was first.
    Refuse,
}

/// Whether `record` may be stored where `current` is. A new record starts above the floor (decision 2): a number that was
/// counted before the last removal would repeat a vector, and with it the reference of a purge that is long over. For the same reason
/// no number goes down, and none changes its nonce: after a removal and a return, or a set-back, revisions begin anew, and one who
/// knows neither may have the next one in hand.
fn judge_store(current: Option<&Record>, floor: Floor, record: &Record) -> Ruling {
    match current {
        Some(current) if current == record => Ruling::Done,
        _ if floor.follows(Record::state_of(current), record.seq).checked_add(1) != Some(record.revision) => {
            Ruling::Refuse
        }
        Some(current) if record.seq > current.seq => Ruling::Apply,
        Some(current) if record.seq == current.seq && record.nonce == current.nonce => Ruling::Apply,
        None if record.seq > floor.seq => Ruling::Apply,
        Some(_) | None => Ruling::Refuse,
    }
}

/// Whether the record of `revision` may be removed where `current` is.
fn judge_removal(current: Option<&Record>, revision: u64) -> Ruling {
    match current {
        None => Ruling::Done,
        Some(current) if current.revision == revision => Ruling::Apply,
        Some(_) => Ruling::Refuse,
    }
}

/// A record that cannot be read or written as it is; trying again does not help.
fn unusable(workload: &WorkloadId, error: &CodecError) -> PortError {
    PortError::lasting(format!("failed to use the record of {workload}"), error)
}

/// A record that cannot be written, because it is longer than any ledger has room for.
fn unwritable(workload: &WorkloadId, error: &CodecError) -> StoreError {
    let failed = unusable(workload, error);
    match error {
        CodecError::TooLong { .. } => StoreError::NoRoom(failed),
        CodecError::Newer { .. } | CodecError::Malformed(_) | CodecError::Unwritable(_) => failed.into(),
    }
}

/// The text of a pin. Two of the same members are the same text.
fn pin_text(pin: &Pin) -> Result<String, PortError> {
    serde_json::to_string(pin).map_err(|error| PortError::lasting("failed to write the members of the group", error))
}

/// The pin a text stands for.
fn pin_of(text: &str) -> Result<Pin, PortError> {
    serde_json::from_str(text).map_err(|error| PortError::lasting("failed to read the members of the group", error))
}

/// The text of a life's note. Two of the same content are the same text.
fn life_text(life: &LifeNote) -> Result<String, PortError> {
    serde_json::to_string(life).map_err(|error| PortError::lasting("failed to write the note of this life", error))
}

/// The note a text stands for. One that cannot be read, by another program's hand, says nothing.
fn life_of(text: &str) -> Option<LifeNote> {
    serde_json::from_str(text).ok()
}
