//! Which paths of its hosts led to a workload at its last vote. Answers of before are kept under the paths that led to it then, so a purge by
//! routes is about those of now and those of the last one; where these are not known, it is about everything.
//!
//! Routes that came and went between two votes leave no trace here. Not for how they are found; that is `site`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::{VOTE_ROUTED_BYTES_MAX, those_that_fit};
use super::{Outcome, Record, is_default};
use kernel::id::Seq;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;

/// Paths by host. A host that is not among them may be reached by any path.
pub type ByHost = BTreeMap<Host, PathSet>;

/// What led to a workload at a vote by routes. Where an older program dropped this, the next purge is of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Routes {
    /// The rollout that was voted for.
    #[serde(rename = "s")]
    seq: Seq,
    /// What led to it then.
    #[serde(rename = "n")]
    now: ByHost,
    /// What was voted for, where that is more: it is to be purged until that is done.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    voted: Option<ByHost>,
    /// How many votes for the same rollout had been purged by then, or were still open: one is voted for again when others of its group change.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    earlier: usize,
}

impl Routes {
    /// The paths to vote for where these lead to the workload now, and what is remembered of it.
    pub fn vote(record: &Record, seq: Seq, now: &ByHost) -> (ByHost, Self) {
        let now = those_that_fit(now, VOTE_ROUTED_BYTES_MAX);
        let before = record.routes.as_deref().map(|routes| routes.left(record));
        let both = |(host, paths): (&Host, &PathSet)| Some((host.clone(), paths.union(before?.get(host)?)));
        let voted = those_that_fit(&now.iter().filter_map(both).collect(), VOTE_ROUTED_BYTES_MAX);
        let more = (voted != now).then(|| voted.clone());
        let open = record.votes.iter().filter(|vote| vote.seq == seq && vote.closed.is_none()).count();
        (voted, Self { seq, now, voted: more, earlier: purged(record, seq).saturating_add(open) })
    }

    /// By which answers may still be kept: those of the last vote, and, unless all of that is purged, those of the ones before. Where the
    /// history has forgotten a purge, that is taken for not done, which is wider.
    fn left(&self, record: &Record) -> &ByHost {
        let is_done = purged(record, self.seq) > self.earlier;
        self.voted.as_ref().filter(|_| !is_done).unwrap_or(&self.now)
    }
}

/// How many votes for this rollout the history has as purged.
fn purged(record: &Record, seq: Seq) -> usize {
    record.history.iter().filter(|closed| closed.seq == seq && closed.outcome == Outcome::Purged).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::Closed;

    fn by_host(all: &[(&str, &str)]) -> ByHost {
        let paths = |text: &str| text.split(' ').map(|path| path.parse().unwrap()).collect();
        all.iter().map(|(host, text)| (host.parse().unwrap(), paths(text))).collect()
    }

    fn words(of: &ByHost) -> Vec<String> {
        of.iter().map(|(host, paths)| format!("{host}: {paths}")).collect()
    }

    /// What leads to it at one time, and whether the vote for it is purged.
    type Time<'a> = (&'a [(&'a str, &'a str)], bool);

    /// The votes for what led to it each time, and whether each was purged; each for a rollout of its own.
    fn votes(times: &[Time<'_>]) -> Vec<Vec<String>> {
        votes_for(times, |at| Seq(at as u64 + 2))
    }

    fn votes_for(times: &[Time<'_>], seq: fn(usize) -> Seq) -> Vec<Vec<String>> {
        let mut record = Record::first(Seq(1));
        let vote = |(at, (now, purged)): (usize, &Time<'_>)| {
            let seq = seq(at);
            let (voted, routes) = Routes::vote(&record, seq, &by_host(now));
            record.routes = Some(Box::new(routes));
            let outcome = if *purged { Outcome::Purged } else { Outcome::Superseded };
            let (change, why, purges) = (String::new(), String::new(), Vec::new());
            record.history.push(Closed { seq, change, outcome, why, purges, more: 0, seen: None });
            // What is kept is what the next life reads.
            let text = serde_json::to_string(&record.routes).unwrap();
            record.routes = serde_json::from_str(&text).unwrap();
            words(&voted)
        };
        times.iter().enumerate().map(vote).collect()
    }

    #[test]
    fn a_vote_is_about_the_routes_of_now_and_of_the_last_one_and_the_first_about_everything() {
        let (shop, store) = ([("a.io", "/shop*")], [("a.io", "/store*")]);
        let seen = votes(&[(&shop, true), (&shop, true), (&store, true), (&store, true)]);
        assert_eq!(seen, [vec![], vec!["a.io: /shop*"], vec!["a.io: /shop* /store*"], vec!["a.io: /store*"]]);
    }

    #[test]
    fn what_was_not_purged_is_not_forgotten() {
        let (one, two, three) = ([("a.io", "/1*")], [("a.io", "/2*")], [("a.io", "/3*")]);
        let seen = votes(&[(&one, true), (&two, false), (&three, false), (&three, true)]);
        assert_eq!(seen[2..], [vec!["a.io: /1* /2* /3*"], vec!["a.io: /1* /2* /3*"]]);
        let seen = votes(&[(&one, false), (&two, true), (&two, true)]);
        assert_eq!(seen[1..], [vec![], vec!["a.io: /2*"]], "what the first vote was about was everything");
    }

    #[test]
    fn an_earlier_purge_of_the_same_rollout_is_not_that_of_its_last_vote() {
        let (one, two, three) = ([("a.io", "/1*")], [("a.io", "/2*")], [("a.io", "/3*")]);
        let seen = votes_for(&[(&one, true), (&two, false), (&three, true), (&three, true)], |_| Seq(2));
        let words = |paths: &str| vec![format!("a.io: {paths}")];
        assert_eq!(seen[1..], [words("/1* /2*"), words("/1* /2* /3*"), words("/3*")]);
    }

    #[test]
    fn a_host_that_is_new_or_was_reached_by_any_path_is_purged_whole_once() {
        let (one, both) = ([("a.io", "/1*")], [("a.io", "/1*"), ("b.io", "/2*")]);
        let seen = votes(&[(&one, true), (&both, true), (&both, true), (&[], true), (&both, true)]);
        assert_eq!(seen[1..3], [vec!["a.io: /1*"], vec!["a.io: /1*", "b.io: /2*"]]);
        assert_eq!(seen[3..], [Vec::<String>::new(), vec![]]);
    }
}
