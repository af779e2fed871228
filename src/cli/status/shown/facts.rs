//! The state as facts, each about one thing: what a watcher in a pipe compares with what it said before.

use std::collections::BTreeMap;

use super::{Shown, Unwell, display_name};
use crate::cli::read::{pipeline_lines, repo_lines};
use kernel::id::ObjectId;

/// What is known of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub words: String,
    /// What is said once it is not there any more.
    pub end: &'static str,
}

impl Fact {
    pub fn new(words: impl Into<String>, end: &'static str) -> Self {
        Self { words: words.into(), end }
    }

    /// Whether another says the same, whatever time has passed in between.
    pub fn is_as(&self, other: &Self) -> bool {
        timeless(&self.words).eq(timeless(&other.words))
    }
}

/// Units of time as our sentences write them.
const UNITS: [&str; 5] = ["ms", "s", "m", "h", "d"];

/// The words of a sentence without those that count time: `30s`, and `30 s`.
fn timeless(words: &str) -> impl Iterator<Item = &str> {
    let bare = |word: &'_ str| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_owned();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = move |word: &str| {
        let word = bare(word);
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        unit.len() < word.len() && UNITS.contains(&unit)
    };
    let next = words.split_whitespace().skip(1).map(Some).chain([None]);
    words
        .split_whitespace()
        .zip(next)
        .filter(move |(word, next)| {
            let counts = is_number(word) && next.is_some_and(|next| UNITS.contains(&bare(next).as_str()));
            !counts && !is_time(word)
        })
        .map(|(word, _)| word)
}

impl Shown {
    /// Everything that is going on or wrong, by what it is about.
    pub fn facts(&self) -> BTreeMap<String, Fact> {
        let mut facts = BTreeMap::new();
        for rollout in &self.rollouts {
            let number =
                if rollout.seq == 0 { String::new() } else { format!("rollout {}, {}: ", rollout.seq, rollout.phase) };
            let words = format!("{number}{}: {}", rollout.change, rollout.state);
            facts.insert(display_name(&rollout.workload).to_owned(), Fact::new(words, "not in flight any more"));
        }
        for of in &self.pods {
            for pod in &of.pods {
                let about = format!("{} pod {}", display_name(&of.workload), pod.name);
                facts.insert(about, Fact::new(pod.words(), "not of a rollout in flight any more"));
            }
        }
        for Unwell { workload, state, .. } in &self.unwell {
            let about = format!("{} needs a look", display_name(workload));
            facts.insert(about, Fact::new(state, "not any more"));
        }
        for view in self.promoted().iter().flat_map(|seen| &seen.pipelines) {
            for environment in &view.environments {
                let about = format!("pipeline {} {}", view.id.display_name(), environment.name);
                let waits = environment.waits.as_ref().map_or_else(String::new, |waits| format!(": {waits}"));
                facts.insert(about, Fact::new(format!("{}{waits}", pipeline_lines::brief(environment)), "gone"));
            }
        }
        for view in self.run().iter().flat_map(|seen| &seen.repos) {
            let waits = view.waits.as_ref().map_or_else(String::new, |waits| format!(": {waits}"));
            let words = format!("{}{waits}", repo_lines::state(view));
            facts.insert(format!("repo {}", view.id.display_name()), Fact::new(words, "gone"));
        }
        let holds = self.agreement.iter().flat_map(|agreement| &agreement.holds);
        let holds = holds.map(|hold| format!("nothing is purged: {}", hold.words));
        // The others are shown beside what they are about.
        let shown = self.beside();
        let troubles = self.troubles.iter().filter(|trouble| !shown.contains(*trouble)).cloned();
        let boards = self.boards().filter_map(|board| board.trouble.clone());
        for trouble in holds.chain(troubles).chain(boards) {
            facts.insert(format!("trouble: {trouble}"), Fact::new("", "over"));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_only_counts_time_on_is_the_same() {
        let is_same = |one: &str, other: &str| Fact::new(one, "").is_as(&Fact::new(other, ""));
        assert!(is_same("at most 13m 30s of 15m left", "at most 1s of 15m left"));
        assert!(is_same("heard from in the last 40 s, allclear 0.1.0", "heard from in the last 2 s, allclear 0.1.0"));
        assert!(is_same("waits (4m)", "waits (59s)"));
        assert!(!is_same("2 of 5 pods ready", "3 of 5 pods ready"));
        assert!(!is_same("web: 1.2.3 → 1.2.4", "web: 1.2.3 → 1.2.5"));
        assert!(!is_same("2 sites", "3 sites"));
    }
}
