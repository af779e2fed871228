//! The history of an object of ours, in an object of its own: what its status has forgotten is still there.
//!
//! ```text
//! something ended ─▶ the status keeps it among ten ─▶ what is new is owed (`keeping`) ─▶ read, add, write: one compare-and-set
//! ```
//!
//! Nothing is decided from it: it is for people, and for the figures that are made from it once, when an entry is added (`figures`).
//! An entry has a key of its own, so that adding it again is nothing: what a crash kept from being written is added from the ten of the
//! status with the next end.
//!
//! Not for which entries a kind has; that is its `past`.

pub mod figures;
pub mod keeping;

use serde::{Deserialize, Serialize};

use crate::form::{At, Count, In};
use figures::{Figure, figures};

#[cfg(feature = "schema")]
use schemars::JsonSchema;

/// Entries that a history has at most; the oldest go first. Half a year of a Pipeline that is promoted once a day.
pub const ENTRIES_MAX: usize = 200;

/// Bytes that the entries have at most as JSON; the oldest go first. A sixth of what etcd takes of one object
/// (<https://etcd.io/docs/v3.6/dev-guide/limit/>), and a quarter of what is read of one.
pub const BYTES_MAX: usize = 256 * 1024;

/// The outcome of a revision that came to the first environment: nothing is promoted into that one.
pub const ARRIVED: &str = "Arrived";

/// The outcome of a revision that did not hold in an environment, and of a run that failed.
pub const FAILED: &str = "Failed";

/// Something that has happened to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Entry {
    /// The environment of a Pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The number of the promotion in its environment, or of the run. Without one: it came there by other means.
    #[serde(default, skip_serializing_if = "is_zero", with = "In::<Count<u64>>")]
    pub seq: u64,
    /// What was promoted, or the commit.
    pub revision: String,
    /// As in the status; also Arrived, at the first environment, and Failed, which did not hold in its environment.
    pub outcome: String,
    /// When.
    #[serde(rename = "at", with = "In::<At>")]
    pub at_ms: i64,
    /// When it was started.
    #[serde(rename = "startedAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub started_ms: Option<i64>,
    /// When the commit was seen first.
    #[serde(rename = "seenAt", default, skip_serializing_if = "Option::is_none", with = "In::<Option<At>>")]
    pub seen_ms: Option<i64>,
    /// Who said yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// It was chosen, or went back by itself: how it related to what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// stalled or verdict: why it failed, or why the environment went back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Commits that were not run, because this one came after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 20)))]
    pub skipped: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(seq: &u64) -> bool {
    *seq == 0
}

impl Entry {
    /// Whether both say the same thing. The number of a promotion is given out once; what has none, or is a run, which a yes repeats under
    /// its number, is another one by its time.
    pub fn is(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.seq, Some(one.at_ms).filter(|_| one.seq == 0 || one.environment.is_none()));
        key(self) == key(other)
            && self.environment == other.environment
            && self.outcome == other.outcome
            && self.revision == other.revision
    }

    /// How much it takes in the list.
    fn bytes(&self) -> usize {
        // It has no form that JSON has not; and one that had none would have no room.
        serde_json::to_vec(self).map_or(BYTES_MAX, |json| json.len() + 1)
    }
}

/// A history with more in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// All of it, oldest first.
    pub entries: Vec<Entry>,
    /// What the news amount to.
    pub figures: Vec<Figure>,
}

/// What a history becomes that holds `kept`: `remembered` is what the status still has, `news` what was not owed before. `None` if it has
/// all of them, or had and forgot. Only news make figures: what happened in another life was counted there, or never.
pub fn grown(kept: &[Entry], remembered: &[Entry], news: &[Entry]) -> Option<Grown> {
    let entries = joined(kept, news.iter().chain(remembered));
    if entries == kept {
        return None;
    }
    let is_added = |entry: &Entry| news.iter().any(|one| one.is(entry)) && !kept.iter().any(|one| one.is(entry));
    let figures = figures(&entries, is_added);
    Some(Grown { entries, figures })
}

/// These and those that are not among them, oldest first and no more than there is room for. What is there stands: it may say more, as
/// when something was started, which the status forgets first.
pub fn joined<'a>(kept: &[Entry], more: impl IntoIterator<Item = &'a Entry>) -> Vec<Entry> {
    let mut entries = kept.to_vec();
    for entry in more {
        if !entries.iter().any(|known| known.is(entry)) {
            entries.push(entry.clone());
        }
    }
    // Of the same time those that are there come first.
    entries.sort_by_key(|entry| entry.at_ms);
    let mut room = BYTES_MAX;
    let fits = entries.iter().rev().take(ENTRIES_MAX).take_while(|entry| {
        let left = room.checked_sub(entry.bytes());
        room = left.unwrap_or_default();
        left.is_some()
    });
    let surplus = entries.len() - fits.count();
    entries.drain(..surplus);
    entries
}

#[cfg(test)]
mod tests;
