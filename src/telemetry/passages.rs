//! The ways of rollouts through their stages, with the time of each, from the notices that this process told.
//!
//! What an earlier process told has no time here: a stage whose begin or end is missing has no length. Not for decisions, and not for
//! metrics, which count each rollout once.

use std::collections::BTreeMap;

use super::chronicle::Moment;
use kernel::id::WorkloadId;
use notices::notice::Kind;

/// One rollout's way. Times are milliseconds since the Unix epoch, by this member's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub workload: WorkloadId,
    pub seq: u64,
    /// When each stage began, in the order of [`Stage`]; a stage lasts until the next one that is known begins.
    began: [Option<i64>; Stage::ALL.len()],
    /// The notice that ended it, and when; `None` while it goes on.
    pub ended: Option<(Kind, i64)>,
    /// When something was last told of it.
    pub last_ms: i64,
    /// What the edge has answered since the purge, where that was looked at.
    pub seen: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Pods are replaced.
    Roll,
    /// The members agree.
    Agree,
    /// The invalidation is on its way.
    Purge,
    /// The edge is looked at.
    Look,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Roll, Self::Agree, Self::Purge, Self::Look];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Roll => "roll",
            Self::Agree => "agree",
            Self::Purge => "purge",
            Self::Look => "fresh",
        }
    }

    /// The notice that tells that it began.
    const fn begins(self) -> Kind {
        match self {
            Self::Roll => Kind::RolloutStarted,
            Self::Agree => Kind::RolloutCompleted,
            Self::Purge => Kind::PurgeStarted,
            Self::Look => Kind::PurgeCompleted,
        }
    }
}

/// The notices that end a rollout, but for a look at the edge that follows.
const ENDS: [Kind; 5] =
    [Kind::RolloutFailed, Kind::RolloutSuperseded, Kind::PurgeSkipped, Kind::PurgeFailed, Kind::PurgeCompleted];

/// What shows that a rollout goes on: a purge that cannot be made as things are may be tried again.
const GOES_ON: [Kind; 7] = [
    Kind::RolloutCompleted,
    Kind::GroupStalled,
    Kind::GroupInDoubt,
    Kind::PurgeStarted,
    Kind::PurgeOwed,
    Kind::PurgeStalled,
    Kind::PurgeRepeated,
];

/// What a look at the edge has come to.
const SEEN: [Kind; 4] = [Kind::EdgeRenewed, Kind::EdgeFresh, Kind::EdgeUnknown, Kind::EdgeStale];

impl Passage {
    fn new(workload: WorkloadId, seq: u64) -> Self {
        Self { workload, seq, began: [None; Stage::ALL.len()], ended: None, last_ms: 0, seen: None }
    }

    fn note(&mut self, moment: &Moment) {
        self.last_ms = self.last_ms.max(moment.at_ms);
        for (began, stage) in self.began.iter_mut().zip(Stage::ALL) {
            if stage.begins() == moment.kind {
                *began = began.or(Some(moment.at_ms));
            }
        }
        if SEEN.contains(&moment.kind) {
            self.seen = Some(moment.kind);
        }
        if SEEN.contains(&moment.kind) || ENDS.contains(&moment.kind) {
            self.ended = Some((moment.kind, moment.at_ms));
        }
        if self.has_failed() && GOES_ON.contains(&moment.kind) {
            self.ended = None;
        }
    }

    /// Whether it ended in a purge that could not be made. In flight it may be tried again.
    pub fn has_failed(&self) -> bool {
        self.ended.is_some_and(|(kind, _)| kind == Kind::PurgeFailed)
    }

    pub fn began(&self, stage: Stage) -> Option<i64> {
        Stage::ALL.into_iter().zip(self.began).find_map(|(one, began)| began.filter(|_| one == stage))
    }

    /// When the last stage that it came to began.
    pub fn since(&self) -> Option<i64> {
        self.began.iter().flatten().next_back().copied()
    }

    /// The stages whose begin and end are known: when each began, and how long it took, in milliseconds. A look lasts until its answer.
    pub fn stages(&self) -> Vec<(Stage, i64, i64)> {
        let ends = |index: usize| match self.began.iter().skip(index + 1).flatten().next() {
            Some(next) => Some(*next),
            // What ended where it was, ended that stage.
            None => self.ended.map(|(_, at_ms)| at_ms),
        };
        let known = Stage::ALL.into_iter().zip(self.began).enumerate();
        known
            .filter(|(_, (stage, _))| *stage != Stage::Look || self.seen.is_some())
            .filter_map(|(index, (stage, began))| Some((stage, began?, ends(index)?)))
            .map(|(stage, began, ended)| (stage, began, ended.saturating_sub(began).max(0)))
            .collect()
    }

    /// For how long the edge may have served the version before while all pods here were new: from the end of the rollout here to the
    /// end of the purge.
    pub fn behind_ms(&self) -> Option<i64> {
        Some(self.began(Stage::Look)?.saturating_sub(self.began(Stage::Agree)?).max(0))
    }
}

/// The rollouts that these notices, oldest first, are about; those that something was told of last come first.
pub fn passages<'a>(moments: impl IntoIterator<Item = &'a Moment>) -> Vec<Passage> {
    let mut found: BTreeMap<(&WorkloadId, u64), Passage> = BTreeMap::new();
    for moment in moments {
        let key = (&moment.workload, moment.seq);
        found.entry(key).or_insert_with(|| Passage::new(moment.workload.clone(), moment.seq)).note(moment);
    }
    let mut all: Vec<Passage> = found.into_values().collect();
    all.sort_by(|a, b| b.last_ms.cmp(&a.last_ms).then_with(|| a.workload.cmp(&b.workload)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::chronicle::Chronicle;
    use kernel::id::Seq;
    use notices::notice::Notice;

    fn of(told: &[(&str, u64, Kind, i64)]) -> Vec<Passage> {
        let chronicle = Chronicle::default();
        for (name, seq, kind, at_ms) in told {
            let notice = Notice {
                id: Notice::id_of(name, *kind, &format!("{seq}/{at_ms}")),
                kind: *kind,
                at_ms: 0,
                about: WorkloadId::deployment("shop", *name).into(),
                seq: Seq(*seq),
                rollout: String::new(),
                change: String::new(),
                message: String::new(),
            };
            chronicle.note(&notice, *at_ms);
        }
        chronicle.read(|kept| passages(kept))
    }

    #[test]
    fn two_rollouts_of_two_workloads_have_stages_of_their_own_and_the_last_told_of_comes_first() {
        let seen = of(&[
            ("web", 3, Kind::RolloutStarted, 10_000),
            ("api", 3, Kind::RolloutStarted, 11_000),
            ("web", 3, Kind::RolloutCompleted, 47_000),
            ("web", 3, Kind::PurgeStarted, 49_000),
            ("web", 3, Kind::PurgeCompleted, 56_000),
            ("web", 3, Kind::EdgeFresh, 59_000),
            ("api", 3, Kind::RolloutFailed, 71_000),
            ("web", 4, Kind::RolloutStarted, 72_000),
        ]);
        let names: Vec<_> = seen.iter().map(|one| (one.workload.name.as_str(), one.seq)).collect();
        assert_eq!(names, [("web", 4), ("api", 3), ("web", 3)]);
        assert_eq!((seen[0].ended, seen[0].stages()), (None, Vec::new()), "it goes on");
        assert_eq!(seen[1].stages(), [(Stage::Roll, 11_000, 60_000)]);
        assert_eq!(seen[1].behind_ms(), None, "nothing was purged");
        let all = [
            (Stage::Roll, 10_000, 37_000),
            (Stage::Agree, 47_000, 2_000),
            (Stage::Purge, 49_000, 7_000),
            (Stage::Look, 56_000, 3_000),
        ];
        assert_eq!(seen[2].stages(), all);
        assert_eq!((seen[2].behind_ms(), seen[2].seen), (Some(9_000), Some(Kind::EdgeFresh)));
    }

    #[test]
    fn a_purge_that_could_not_be_made_is_an_end_unless_something_follows() {
        let mut told = vec![
            ("web", 3, Kind::RolloutStarted, 10_000),
            ("web", 3, Kind::RolloutCompleted, 20_000),
            ("web", 3, Kind::PurgeFailed, 30_000),
        ];
        assert_eq!(of(&told)[0].ended, Some((Kind::PurgeFailed, 30_000)));
        told.push(("web", 3, Kind::WorkloadFaulty, 31_000));
        assert!(of(&told)[0].has_failed(), "that is about something else");
        told.push(("web", 3, Kind::PurgeStarted, 40_000));
        assert_eq!((of(&told)[0].ended, of(&told)[0].has_failed()), (None, false));
        told.push(("web", 3, Kind::PurgeCompleted, 50_000));
        assert_eq!(of(&told)[0].ended, Some((Kind::PurgeCompleted, 50_000)));
    }

    #[test]
    fn what_this_process_has_not_seen_has_no_length() {
        let seen = of(&[("web", 3, Kind::PurgeStarted, 49_000), ("web", 3, Kind::PurgeCompleted, 56_000)]);
        assert_eq!(seen[0].stages(), [(Stage::Purge, 49_000, 7_000)], "nobody looks at the edge");
        assert_eq!(seen[0].behind_ms(), None);
        let back = of(&[("web", 3, Kind::RolloutStarted, 9_000), ("web", 3, Kind::RolloutCompleted, 4_000)]);
        assert_eq!(back[0].stages(), [(Stage::Roll, 9_000, 0)], "the clock went back");
    }
}
