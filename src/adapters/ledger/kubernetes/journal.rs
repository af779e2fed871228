//! The small object beside a large shard: its records in flight, so that a rollout that is written eight times does not write the
//! records of its whole shard eight times.
//!
//! ```text
//! a record in flight, shard above 4 KiB ──▶ (1) create allclear-ledger-07-<random>, the journal, with the record in it
//!                                           (2) the ledger's own object says layout 3, and which object that is
//!                                           (3) compare-and-set of the base: the entry `journal` names it
//! each further change ──▶ compare-and-set of the journal alone
//! enough records at rest in it ──▶ (4) compare-and-set of the base: with them
//!                                  (5) compare-and-set of the journal: without them
//! ```
//!
//! From (3) on what is true changes by a write of the journal and in no other way. Its entries hide those of the base; an empty one
//! hides a record that was removed. Folding, (4) and (5), only moves entries from where they hide to where they were hidden, so it
//! may end anywhere, and be repeated. A second worker, as there is one for a moment in an upgrade, that knows less than both
//! objects say is refused by the one it writes: it has missed a change, which is in the journal, or a folding, which is in the base.
//! Each folding has a number, in both objects. A reader that finds a higher one in the journal than in the base reads both again.
//!
//! Not for when a shard is written; that is `writer`.

use super::shard::{Entries, FLOOR_KEY, MOVED_PREFIX, REMOVED, SET_BACK_KEY, Shard, text_of, workload_of};
use purge::records::record_codec::decode;

/// The entry of the base that names its journal. Like all entries without two dots, it is no workload's.
pub(super) const JOURNAL_KEY: &str = "journal";

/// The entry, in both, that counts the foldings.
const FOLDS_KEY: &str = "folds";

/// From here on a base gets a journal. Below it is hardly more than a journal would be: some fifteen records, in an installation of
/// a thousand workloads.
const LARGE_BYTES: usize = 4 * 1024;

/// Makes the rule of [`Shard::is_due_to_fold`]. A rollout is written about eight times, each time with what rests in the journal, half
/// of the most in the mean; and it adds one record of about 260 bytes to that, so it pays for that share of the next folding, which
/// writes the base. The sum is the least where the most that rests is the root of 2 x 260 / 8 times the base.
const FOLD_FACTOR: usize = 64;

impl Shard {
    /// The name of its journal.
    pub(super) fn journal_name(&self) -> Option<&str> {
        self.base.get(JOURNAL_KEY).map(String::as_str)
    }

    /// Whether a record in flight is better written beside it.
    pub(super) fn wants_journal(&self) -> bool {
        self.journal.is_none() && size(&self.base) > LARGE_BYTES
    }

    /// Gives it a journal of this name.
    pub(super) fn begin_journal(&mut self, name: String) {
        self.base.insert(JOURNAL_KEY.to_owned(), name);
        let mut journal = Entries::new();
        // A shard that had a journal before goes on counting.
        journal.extend(self.base.get_key_value(FOLDS_KEY).map(|(key, value)| (key.clone(), value.clone())));
        self.journal = Some(journal);
        (self.unwritten.base, self.unwritten.journal) = (true, true);
        self.count();
    }

    /// Its journal is gone: what is left is the base.
    pub(super) fn lose_journal(&mut self) {
        self.journal = None;
        self.unwritten.base |= self.base.remove(JOURNAL_KEY).is_some();
        self.count();
    }

    /// Whether the journal was read after a folding, and the base before it.
    pub(super) fn is_torn(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| folds(journal) > folds(&self.base))
    }

    /// Whether the records at rest in the journal are so large that writing the base once is cheaper.
    pub(super) fn is_due_to_fold(&self) -> bool {
        let Some(journal) = &self.journal else { return false };
        let all = size(journal);
        let is_enough = |bytes: usize| bytes.saturating_mul(bytes) >= FOLD_FACTOR.saturating_mul(size(&self.base));
        // Reading them costs more than counting them.
        is_enough(all)
            && is_enough(
                journal
                    .iter()
                    .filter(|(key, value)| rests(key, value))
                    .map(|(key, value)| key.len() + value.len())
                    .sum(),
            )
    }

    /// Whether it is large and at rest, so that a copy of it is memory for nothing: who writes to it next begins a rollout, and reads
    /// its record first. One that is crowded is kept, because each reading of it is half of a MiB.
    pub(super) fn is_large_and_rests(&self) -> bool {
        let is_in_flight = |(key, value): (&String, &String)| key != FOLDS_KEY && !rests(key, value);
        size(&self.base) > LARGE_BYTES && !self.is_crowded() && !self.journal.iter().flatten().any(is_in_flight)
    }

    /// Moves what is at rest in the journal to the base. Nothing that the shard says changes by it.
    pub(super) fn fold(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let number = folds(&self.base).max(folds(journal)) + 1;
        let (resting, open): (Entries, Entries) =
            std::mem::take(journal).into_iter().partition(|(key, value)| rests(key, value));
        *journal = open;
        for (key, value) in resting {
            if let Some(namespace) = key.strip_prefix(MOVED_PREFIX) {
                self.base.retain(|key, value| workload_of(key, value).is_none_or(|id| id.namespace != namespace));
            }
            match value.as_str() {
                REMOVED => drop(self.base.remove(&key)),
                _ => drop(self.base.insert(key, value)),
            }
        }
        for entries in [&mut self.base, journal] {
            entries.insert(FOLDS_KEY.to_owned(), number.to_string());
        }
        (self.unwritten.base, self.unwritten.journal) = (true, true);
        self.count();
    }
}

/// Whether an entry of a journal is not likely to be written again soon. What cannot be read was written by another program, which
/// may know better.
fn rests(key: &str, value: &str) -> bool {
    match key {
        FOLDS_KEY => false,
        FLOOR_KEY | SET_BACK_KEY => true,
        _ if key.starts_with(MOVED_PREFIX) || value == REMOVED => true,
        _ => decode(text_of(key, value).as_bytes()).is_ok_and(|record| !record.is_open()),
    }
}

fn size(entries: &Entries) -> usize {
    entries.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn folds(entries: &Entries) -> u64 {
    entries.get(FOLDS_KEY).and_then(|text| text.parse().ok()).unwrap_or_default()
}
