//! One member's part in a workload's newest rollout: a cell of the board that shows all clusters of a group.
//!
//! It is said of a copy of that member's record, and of what its beat says beside it. For people: nothing is decided by it. Not for who is
//! waited for; that is `agreement::tally`.

use serde::{Deserialize, Serialize};

use crate::agreement::roster::{PeerStatus, WORDS_CHARS_MAX};
use crate::records::record::{Published, Record};
use crate::rollouts::rollout::closed;
use crate::rollouts::versions::{Has, Versions};
use kernel::id::{Member, WorkloadId};
use kernel::names::image::brief;
use kernel::text::phrase;

/// Bytes of a version in a cell: some five containers with their tags. Others choose what stands there.
const VERSION_CHARS_MAX: usize = 256;

/// The parts of all members in one workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartsSeen {
    pub workload: WorkloadId,
    /// Ourselves included.
    pub members: Vec<PartSeen>,
}

/// One member's part, as far as it is known here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PartSeen {
    pub member: String,
    /// It is this one.
    pub is_self: bool,
    /// The number of its newest rollout; `None` while nothing of it is known here.
    pub seq: Option<u64>,
    /// `rolling`, `complete`, `failed`, `withdrawn`, `off`, `absent` or `unknown`.
    pub phase: String,
    /// Its version, in brief.
    pub version: String,
    /// How it stands, in its own words, about this rollout alone; `None`: it has said nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// For how many seconds it had stood in its stage when it said so, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
    /// What the edge has by its record: a version, `… or newer`, `no edge`; `None` where nothing says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<String>,
    /// Why the edge is stale until something outside changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How its newest rollout ended, and what a look at the edge has shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why this may be old: nothing was heard from it lately, or it is not believed. In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
}

impl PartSeen {
    /// Of a member of which nothing is known yet.
    pub fn of(member: &Member, is_self: bool) -> Self {
        Self { member: member.to_string(), is_self, phase: "unknown".to_owned(), ..Self::default() }
    }

    /// By a copy of its record.
    #[must_use]
    pub fn shown(self, published: &Published) -> Self {
        let part = Self {
            seq: Some(published.seq().0),
            phase: published.phase().to_owned(),
            version: published.version().map_or_else(String::new, |version| cut(&brief(version), VERSION_CHARS_MAX)),
            ..self
        };
        let Some(record) = published.record() else { return part };
        let versions = Versions::of(record, None);
        Self {
            edge: edge(&versions).map(|edge| cut(&edge, VERSION_CHARS_MAX)),
            stale: versions.stale.map(|why| cut(&why, WORDS_CHARS_MAX)),
            ended: ended(record).map(|how| cut(&how, WORDS_CHARS_MAX)),
            ..part
        }
    }

    /// With what its last beat says about that rollout. A word about another one is none.
    #[must_use]
    pub fn told(self, peer: &PeerStatus, workload: &WorkloadId) -> Self {
        let Some(seq) = self.seq.map(kernel::id::Seq) else { return self };
        let says = peer.beat.words_of(workload, seq).map(|words| cut(words, WORDS_CHARS_MAX));
        let for_s = peer.beat.stood_for(workload, seq).map(|time| time.as_secs());
        Self { says, for_s, ..self }
    }
}

/// How its newest rollout ended, without the versions, which stand beside it.
fn ended(record: &Record) -> Option<String> {
    let ended = record.history.iter().rev().find(|one| one.seq == record.seq)?;
    let words = closed(ended);
    let without = words.strip_prefix(&ended.change).and_then(|rest| rest.strip_prefix(": "));
    Some(without.unwrap_or(&words).to_owned())
}

/// What the edge has, in words.
fn edge(Versions { edge_has, at_edge, .. }: &Versions) -> Option<String> {
    match (at_edge, edge_has) {
        (Has::NoEdge, _) => Some("no edge".to_owned()),
        (Has::Unknown, _) | (_, None) => None,
        (Has::Same | Has::Another, Some(version)) => Some(version.clone()),
        (Has::Mixed, Some(version)) => Some(format!("{version} or newer")),
    }
}

fn cut(words: &str, chars_max: usize) -> String {
    phrase(words, chars_max).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::roster::{Heartbeat, Roster, Said, Saying};
    use crate::records::record::{Closed, Edge, Outcome, Phase, Seen};
    use kernel::id::Seq;
    use kernel::machine::Timestamp;
    use kernel::names::image::{Container, Image, Version};
    use proof::tally::Found;
    use std::collections::{BTreeMap, BTreeSet};

    fn version(tag: &str) -> Version {
        [(Container::Main("web".into()), Image::parse(&format!("shop/web:{tag}")).unwrap())].into_iter().collect()
    }

    fn web() -> WorkloadId {
        WorkloadId::deployment("shop", "web")
    }

    fn rolling() -> Record {
        Record {
            version: version("2"),
            phase: Phase::Rolling,
            settled: Some(version("1")),
            closed: Seq(3),
            ..Record::first(Seq(4))
        }
    }

    fn part(record: Record) -> PartSeen {
        PartSeen::of(&"us-1".into(), false).shown(&record.into())
    }

    fn told(seq: u64, words: &str) -> PartSeen {
        let saying = Saying { seq: Seq(seq), words: words.to_owned(), since_ms: Some(1_000) };
        let said = Said::of([(web(), saying)].into());
        let mut roster = Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), BTreeMap::new(), None);
        let beat =
            Heartbeat { member: "us-1".into(), origin: "o2".into(), said, at_ms: 66_000, ..Heartbeat::default() };
        roster.hear(Timestamp::default(), 0, beat);
        part(rolling()).told(roster.peer(&"us-1".into()).unwrap(), &web())
    }

    #[test]
    fn a_reason_stands_beside_the_rollout_that_it_is_about_and_no_other() {
        let said = told(4, "0 of 2 pods ready; web-1: ImagePullBackOff");
        assert_eq!(said.says.as_deref(), Some("0 of 2 pods ready; web-1: ImagePullBackOff"));
        assert_eq!((said.for_s, said.phase.as_str(), said.version.as_str()), (Some(65), "rolling", "web: 2"));
        for other in [3, 5] {
            let said = told(other, "0 of 2 pods ready");
            assert_eq!((said.says, said.for_s, said.seq), (None, None, Some(4)), "rollout {other}");
        }
        let unknown = PartSeen::of(&"us-1".into(), false);
        assert_eq!((unknown.phase.as_str(), unknown.seq, unknown.edge), ("unknown", None, None));
    }

    #[test]
    fn what_others_write_is_cut() {
        let said = told(4, &"x".repeat(60_000));
        assert_eq!(said.says.map(|says| says.len()), Some(WORDS_CHARS_MAX));
        let large = Record { version: version(&"9".repeat(120)), ..rolling() };
        assert!(part(large).version.len() <= VERSION_CHARS_MAX);
    }

    #[test]
    fn the_edge_is_what_that_member_knows_of_it() {
        assert_eq!(part(rolling()).edge.as_deref(), Some("web: 1"));
        let mixed = Record { edge: Edge::Moved, ..rolling() };
        assert_eq!(part(mixed).edge.as_deref(), Some("web: 1 or newer"));
        let unknown = Record { edge: Edge::Unknown, ..rolling() };
        assert_eq!(part(unknown).edge, None);
    }

    #[test]
    fn the_end_of_the_newest_rollout_is_said_with_what_a_look_has_shown() {
        let end = |seq, outcome, seen| Closed {
            seq: Seq(seq),
            change: "web: 1 → 2".to_owned(),
            outcome,
            why: String::new(),
            purges: Vec::new(),
            more: 0,
            seen,
        };
        let at_rest = |history| Record { phase: Phase::Complete, settled: None, closed: Seq(4), history, ..rolling() };
        let stale = Some(Seen::new(Found::Stale, "/ is of before"));
        let seen = part(at_rest(vec![end(4, Outcome::Purged, stale)]));
        let ended = seen.ended.expect("an end");
        assert!(ended.starts_with("purged") && ended.contains("/ is of before"), "{ended}");
        assert_eq!(seen.stale.as_deref(), Some("/ is of before"));
        let before = part(at_rest(vec![end(3, Outcome::Purged, None)]));
        assert_eq!(before.ended, None, "that was the rollout before");
        let none = part(at_rest(vec![end(4, Outcome::NoSite, None)]));
        assert_eq!(none.edge.as_deref(), Some("no edge"));
    }
}
