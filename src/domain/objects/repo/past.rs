//! What a Repo's history has of it: each run that ended.

use crate::history::Entry;
use crate::repo::status::{Ended, Status};

/// What the status still says of what has ended.
pub fn remembered(status: &Status) -> Vec<Entry> {
    status.history.iter().map(|ended| entry(ended, &[status])).collect()
}

/// What has ended since the status was `before`.
pub fn news(status: &Status, before: &Status) -> Vec<Entry> {
    let ended = status.history.iter().filter(|ended| !before.history.contains(ended));
    ended.map(|ended| entry(ended, &[status, before])).collect()
}

/// A run that ended. When it was started is known while it is the newest, and when its commit was seen while that one is wanted.
fn entry(ended: &Ended, statuses: &[&Status]) -> Entry {
    let Ended { seq, revision, outcome, by, skipped, work: _, at_ms } = ended.clone();
    let run = statuses.iter().filter_map(|status| status.run.as_ref()).find(|run| run.attempt.seq == seq);
    let head = statuses.iter().filter_map(|status| status.head.as_ref()).find(|head| head.revision == revision);
    Entry {
        environment: None,
        seq: seq.0,
        revision: revision.to_string(),
        outcome: outcome.name().to_owned(),
        at_ms,
        started_ms: run.and_then(|run| run.started_ms),
        seen_ms: head.map(|head| head.seen_ms),
        by,
        chosen: None,
        cause: None,
        skipped: skipped.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::status::{Head, Phase};
    use kernel::id::{CommitId, RunSeq};

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().expect("a commit's id")
    }

    fn ended(seq: u64, digit: &str, outcome: Phase) -> Ended {
        let skipped = vec![commit("e")];
        Ended {
            seq: RunSeq(seq),
            revision: commit(digit),
            outcome,
            by: Some("ada".to_owned()),
            skipped,
            work: String::new(),
            at_ms: 50,
        }
    }

    #[test]
    fn a_run_is_told_once_and_with_what_is_still_known_of_it() {
        let head = |digit: &str| Some(Head { revision: commit(digit), name: "main".to_owned(), seen_ms: 7 });
        let before = Status { head: head("b"), history: vec![ended(1, "a", Phase::Failed)], ..Status::default() };
        let history = vec![ended(1, "a", Phase::Failed), ended(2, "b", Phase::Succeeded)];
        // The next commit is wanted already.
        let after = Status { head: head("c"), history, ..Status::default() };
        let told = news(&after, &before);
        assert_eq!(told.iter().map(|one| (one.seq, one.seen_ms)).collect::<Vec<_>>(), [(2, Some(7))]);
        assert_eq!((told[0].outcome.as_str(), told[0].by.as_deref()), ("Succeeded", Some("ada")));
        assert_eq!(told[0].skipped, ["e".repeat(40)]);
        assert_eq!(news(&after, &after), []);
        let seen: Vec<_> = remembered(&after).iter().map(|one| (one.seq, one.seen_ms)).collect();
        assert_eq!(seen, [(1, None), (2, None)]);
    }
}
