//! The four figures of DORA, as far as a history shows them (<https://dora.dev/guides/dora-metrics-four-keys/>).
//!
//! ```text
//! deployment   an environment got another revision, or was to get it and that failed; not what goes back
//! lead time    from when a revision came to the first environment, or a commit was seen, to when it was deployed; not if it was chosen
//! failure      an environment went back by itself, a person had it go back to what it had before, or the run failed. Once for each
//!              deployment
//! recovery     from the first failure since an environment was well, or from when a person had it go back, to when it is well again
//! ```
//!
//! What the history does not have is not guessed: then there is no figure.

use super::{ARRIVED, Entry, FAILED};

/// One figure of one environment; of a Repo there is no environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    pub environment: Option<String>,
    pub what: What,
}

/// What is counted, or how long it took in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Deployed,
    LeadTime(u64),
    Failed,
    Recovered(u64),
}

/// What the entries amount to for which this holds, among all of them, oldest first.
pub(super) fn figures(entries: &[Entry], is_news: impl Fn(&Entry) -> bool) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| is_news(entry)) {
        let before: Vec<&Entry> = entries.iter().take(place).collect();
        let here: Vec<&Entry> = before.iter().copied().filter(|one| one.environment == entry.environment).collect();
        let said = of(entry, &here, &before);
        figures.extend(said.into_iter().map(|what| Figure { environment: entry.environment.clone(), what }));
    }
    figures
}

/// What one entry amounts to after those `here`, in its environment, and those `before` it anywhere.
fn of(entry: &Entry, here: &[&Entry], before: &[&Entry]) -> Vec<What> {
    let mut told = here.iter().copied().filter(|one| one.is_well() || one.is_failure()).rev().peekable();
    let last = told.peek().map(|last| last.revision.clone());
    // Those about the last deployment: as long as they are about the same revision, and that did not come back.
    let same: Vec<&Entry> = told.take_while(|one| last.as_ref() == Some(&one.revision) && !one.is_back()).collect();
    let is_same = last.as_ref() == Some(&entry.revision) && !same.is_empty();
    let failed_before = same.iter().any(|one| one.is_failure());
    let mut figures = Vec::new();
    if entry.is_failure() {
        figures.extend((!is_same).then_some(What::Deployed));
        figures.extend((!is_same || !failed_before).then_some(What::Failed));
    } else if entry.is_well() {
        let is_return = !is_same && entry.chosen.is_some() && here.iter().any(|one| one.had(&entry.revision));
        if is_return && !entry.is_back() {
            figures.extend((!same.is_empty() && !failed_before).then_some(What::Failed));
        } else if !entry.is_back() {
            figures.extend((!is_same).then_some(What::Deployed));
            let is_first = !is_same || !same.iter().any(|one| one.is_well());
            let since = entry.seen_ms.or_else(|| came(entry, before));
            let since = since.filter(|_| is_first && entry.chosen.is_none());
            figures.extend(since.map(|since| What::LeadTime(span(since, entry.at_ms))));
        }
        let failures = here.iter().rev().take_while(|one| !one.is_well()).filter(|one| one.is_failure());
        let since = failures.last().map(|first| first.at_ms).or(entry.started_ms.filter(|_| is_return));
        figures.extend(since.map(|since| What::Recovered(span(since, entry.at_ms))));
    }
    figures
}

/// When what was promoted came to the first environment, the last time that it did.
fn came(entry: &Entry, before: &[&Entry]) -> Option<i64> {
    let arrived = before.iter().rev().find(|one| one.outcome == ARRIVED && one.revision == entry.revision);
    arrived.map(|arrived| arrived.at_ms)
}

/// Never less than nothing: two replicas may have two clocks.
fn span(from_ms: i64, to_ms: i64) -> u64 {
    u64::try_from(to_ms.saturating_sub(from_ms)).unwrap_or_default()
}

impl Entry {
    /// The environment is at the revision, and ready.
    pub fn is_well(&self) -> bool {
        matches!(self.outcome.as_str(), "Completed" | "Succeeded")
    }

    /// What it got, or was to get, did not hold.
    pub fn is_failure(&self) -> bool {
        matches!(self.outcome.as_str(), FAILED | "Lost")
    }

    /// The environment was well at this.
    fn had(&self, revision: &str) -> bool {
        self.is_well() && self.revision == revision
    }

    /// It went back by itself.
    fn is_back(&self) -> bool {
        self.cause.is_some() && !self.is_failure()
    }
}
