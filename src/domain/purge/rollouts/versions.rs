//! What the cluster runs and what the edge has, of one workload, in brief: two columns of the board, and whether they differ for want of
//! a person.
//!
//! It is said of a record alone. Not for gates: `edge` reads the workload afresh.

use serde::Serialize;

use crate::records::record::{Closed, Edge, Outcome, Phase, PurgeState, Record};
use crate::workloads::readiness::Pods;
use kernel::names::image::brief;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Versions {
    /// The version of the newest rollout.
    pub runs: String,
    /// The version that the edge was last made to agree with; `None` where nothing says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_has: Option<String>,
    pub at_edge: Has,
    /// The newest rollout ended with its purge. The edge may have the same without one, as after a return.
    #[serde(skip)]
    pub purged: bool,
    /// Why the edge is stale, or will be, until something outside changes: a purge is refused, or a look has shown what was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// The first troubled pod of a rollout that goes on, and its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<(String, String)>,
}

/// What the edge holds, compared with what the cluster runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Has {
    /// The same version.
    Same,
    /// Another version, which is all that it has.
    Another,
    /// Another version, and parts of newer ones.
    Mixed,
    /// There is no edge: no host leads to the workload, or no distribution serves its hosts.
    NoEdge,
    /// Nothing was ever purged for it here.
    #[default]
    Unknown,
}

impl Versions {
    pub fn of(record: &Record, pods: Option<&Pods>) -> Self {
        let rolls = record.phase == Phase::Rolling;
        Self {
            runs: brief(&record.version),
            edge_has: record.settled().map(brief),
            at_edge: held(record),
            purged: ended(record).is_some_and(|closed| closed.outcome == Outcome::Purged),
            stale: stale(record),
            pod: pods.filter(|_| rolls).and_then(|pods| pods.troubled.first().cloned()),
        }
    }
}

/// How the newest rollout ended, if it has.
fn ended(record: &Record) -> Option<&Closed> {
    record.history.iter().rev().find(|closed| closed.seq == record.seq)
}

fn held(record: &Record) -> Has {
    match (ended(record).map(|closed| &closed.outcome), record.edge) {
        (Some(Outcome::NoSite | Outcome::NoDistribution), _) => Has::NoEdge,
        (_, Edge::Unknown) => Has::Unknown,
        (_, Edge::Moved) => Has::Mixed,
        (_, Edge::Settled) if record.settled().is_some_and(|edge| *edge != record.version) => Has::Another,
        // While it rolls, or its purge is open, the version before may be served again at any time.
        (_, Edge::Settled) if record.phase != Phase::Complete || record.is_open() => Has::Mixed,
        (_, Edge::Settled) => Has::Same,
    }
}

fn stale(record: &Record) -> Option<String> {
    let open = record.votes.iter().filter(|vote| vote.closed.is_none()).chain(&record.owed);
    let refused = open.flat_map(|vote| vote.purges.listed.values()).find_map(|purge| {
        let why = match &purge.state {
            PurgeState::Wanted if !purge.refused.is_empty() => &purge.refused,
            PurgeState::Owed(why) | PurgeState::Impossible(why) | PurgeState::Beyond(why) => why,
            PurgeState::Wanted
            | PurgeState::Created
            | PurgeState::Covered(_)
            | PurgeState::Completed
            | PurgeState::DoneByOther => return None,
        };
        Some(why.clone())
    });
    let seen = || {
        let ended = ended(record)?;
        ended.seen.as_ref().filter(|seen| seen.is_stale()).map(|seen| seen.words.clone())
    };
    refused.or_else(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::{Purge, Seen, Vote};
    use kernel::id::{Reference, Seq, Vector};
    use kernel::names::image::{Container, Image, Version};
    use proof::tally::Found;

    fn version(tag: &str) -> Version {
        [(Container::Main("web".into()), Image::parse(&format!("shop/web:{tag}")).unwrap())].into_iter().collect()
    }

    fn at_rest(outcome: Outcome) -> Record {
        let ended = Closed {
            seq: Seq(4),
            change: String::new(),
            outcome,
            why: String::new(),
            purges: Vec::new(),
            more: 0,
            seen: None,
        };
        Record {
            version: version("2"),
            phase: Phase::Complete,
            closed: Seq(4),
            history: vec![ended],
            ..Record::first(Seq(4))
        }
    }

    fn vote(purge: Purge) -> Vote {
        let json = serde_json::json!({"v": Vector::default(), "s": 4, "i": {}, "p": ["/*"]});
        let mut vote: Vote = serde_json::from_value(json).unwrap();
        vote.purges.listed.insert("E1".parse().unwrap(), purge);
        vote
    }

    #[test]
    fn the_edge_has_the_same_only_once_the_purge_is_over() {
        let settled = at_rest(Outcome::Purged);
        let of = |record: &Record| Versions::of(record, None);
        assert_eq!((of(&settled).at_edge, of(&settled).edge_has.as_deref()), (Has::Same, Some("web: 2")));
        let rolling = Record { phase: Phase::Rolling, settled: Some(version("1")), ..settled.clone() };
        assert_eq!((of(&rolling).at_edge, of(&rolling).edge_has.as_deref()), (Has::Another, Some("web: 1")));
        assert_eq!(of(&rolling).runs, "web: 2");
        let moved = Record { edge: Edge::Moved, settled: Some(version("1")), ..settled.clone() };
        assert_eq!((of(&moved).at_edge, of(&moved).edge_has.as_deref()), (Has::Mixed, Some("web: 1")));
        let unknown = Record { edge: Edge::Unknown, ..settled.clone() };
        assert_eq!((of(&unknown).at_edge, of(&unknown).edge_has), (Has::Unknown, None));
        let back = Record { phase: Phase::Rolling, ..settled.clone() };
        assert_eq!(of(&back).at_edge, Has::Mixed, "it rolls back to what the edge has");
        assert!(of(&settled).purged);
        for outcome in [Outcome::Returned, Outcome::NothingNew] {
            let same = of(&at_rest(outcome));
            assert_eq!((same.at_edge, same.purged), (Has::Same, false), "the edge had it before");
        }
        let baseline = Record { history: Vec::new(), ..settled.clone() };
        assert_eq!((of(&baseline).at_edge, of(&baseline).purged), (Has::Same, false));
        for outcome in [Outcome::NoSite, Outcome::NoDistribution] {
            assert_eq!(of(&at_rest(outcome)).at_edge, Has::NoEdge);
        }
    }

    #[test]
    fn a_refused_purge_and_a_look_that_showed_the_old_version_are_stale_and_a_purge_under_way_is_not() {
        let of = |record: &Record| Versions::of(record, None).stale;
        let with = |purge: Purge| Record { votes: vec![vote(purge)], ..at_rest(Outcome::Purged) };
        let wanted = Purge::wanted(Reference::from("r"));
        assert_eq!(of(&with(wanted.clone())), None);
        assert_eq!(of(&with(Purge { state: PurgeState::Created, ..wanted.clone() })), None);
        let denied = || "AccessDenied".to_owned();
        let refused = [
            Purge { refused: denied(), ..wanted.clone() },
            Purge { state: PurgeState::Owed(denied()), ..wanted.clone() },
            Purge { state: PurgeState::Impossible(denied()), ..wanted.clone() },
        ];
        for purge in refused {
            assert_eq!(of(&with(purge.clone())).as_deref(), Some("AccessDenied"), "{purge:?}");
            let kept = Record { owed: vec![vote(purge)], ..at_rest(Outcome::Purged) };
            assert_eq!(of(&kept).as_deref(), Some("AccessDenied"));
        }
        let looked = |found| {
            let mut record = at_rest(Outcome::Purged);
            record.history[0].seen = Some(Seen::new(found, "/ is of before"));
            of(&record)
        };
        assert_eq!(looked(Found::Stale).as_deref(), Some("/ is of before"));
        assert_eq!(looked(Found::Unknown), None, "nobody knows");
    }
}
