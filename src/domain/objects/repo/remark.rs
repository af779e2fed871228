//! The remarks on a change of status: the Events that the users of the program before ours know, with its reasons and
//! its texts (`controller.go` of di-terraform-repo-pull-controller). And which attempts have ended by it, for the
//! metrics.

use crate::repo::status::{Action, Condition, ConditionKind, Drift, Ended, Phase, Run, Status};
use kernel::remark::Remark;

/// The reason of the condition `Stalled`, and of the Event, where another's Job has a name of ours.
pub(super) const TAKEN: &str = "ErrResourceExists";

impl Status {
    /// The name of what its looks at drift have found, if it looks for drift.
    pub fn drift_state(&self) -> Option<&'static str> {
        let drifted = self.conditions.iter().find(|one| one.kind == ConditionKind::Drifted)?;
        Some(match drifted.holds {
            Some(true) => "drifted",
            Some(false) => "in_sync",
            None => "unknown",
        })
    }
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    pub action: Action,
    /// The outcome of its run.
    pub outcome: Phase,
    /// From the order of the Job to its end, in milliseconds; `None` where that is not known.
    pub took_ms: Option<u64>,
}

/// The remarks on a status that was `before`.
pub fn remarks(status: &Status, before: &Status) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(taken) = taken(status).filter(|_| taken(before).is_none()) {
        let message = taken.message.clone();
        remarks.push(Remark { reason: TAKEN, is_warning: true, message, annotations: Vec::new() });
    }
    // The next run may have begun with the same write, so the newest run does not say it.
    let succeeded = |ended: &&Ended| ended.outcome == Phase::Succeeded && !before.history.contains(ended);
    for _ in status.history.iter().filter(succeeded) {
        let message = "Repo synced successfully".to_owned();
        remarks.push(Remark { reason: "Synced", is_warning: false, message, annotations: Vec::new() });
    }
    remarks
}

fn taken(status: &Status) -> Option<&Condition> {
    status.conditions.iter().find(|one| one.kind == ConditionKind::Stalled && one.reason == TAKEN)
}

/// The attempt that has ended by this change, if one has.
pub fn ended(before: &Status, after: &Status) -> Option<EndedAttempt> {
    if let Some(look) = before.look().filter(|look| look.phase == Phase::Started) {
        return ended_look(look, before.drift.as_ref()?, after);
    }
    let was = before.newest().filter(|run| run.phase == Phase::Started)?;
    let (outcome, ended_ms) = match after.newest() {
        Some(Run { attempt, phase, ended_ms, .. }) if attempt.seq == was.attempt.seq => (*phase, *ended_ms),
        Some(_) | None => {
            let ended = after.history.iter().find(|ended| ended.seq == was.attempt.seq)?;
            (ended.outcome, Some(ended.at_ms))
        }
    };
    if outcome == Phase::Started {
        return None;
    }
    let took_ms = ended_ms.zip(was.started_ms).map(|(end, start)| u64::try_from(end - start).unwrap_or_default());
    Some(EndedAttempt { action: was.attempt.action, outcome, took_ms })
}

/// The same of a look at drift: `Planned` where something would be changed, `Waiting` where it is tried again.
fn ended_look(look: &Run, before: &Drift, after: &Status) -> Option<EndedAttempt> {
    let drift = after.drift.as_ref().filter(|_| after.look().is_none_or(|now| now.attempt != look.attempt))?;
    let missed = drift.missed.as_ref().filter(|missed| before.missed.as_ref() != Some(missed));
    let seen = drift.seen.as_ref().filter(|seen| before.seen.as_ref() != Some(seen));
    let (outcome, ended_ms) = match (missed, seen) {
        (Some(missed), _) => (Phase::Waiting, missed.at_ms),
        (None, Some(seen)) => (if seen.plan.is_some() { Phase::Planned } else { Phase::Succeeded }, seen.at_ms),
        // It was given up.
        (None, None) => return None,
    };
    let took_ms = look.started_ms.map(|start| u64::try_from(ended_ms.saturating_sub(start)).unwrap_or_default());
    Some(EndedAttempt { action: Action::Drift, outcome, took_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::status::{Attempt, Failing, Missed, Plan, Seen, Terms};
    use kernel::id::RunSeq;

    fn ended(seq: u64, outcome: Phase) -> Ended {
        let revision = "a".repeat(40).parse().expect("a commit's id");
        Ended { seq: RunSeq(seq), revision, outcome, by: None, skipped: Vec::new(), work: String::new(), at_ms: 1 }
    }

    /// The run of this number goes on, after others have ended.
    fn running(seq: u64, history: Vec<Ended>) -> Status {
        let run = Run {
            attempt: Attempt { seq: RunSeq(seq), number: 0, action: Action::Apply },
            revision: "b".repeat(40).parse().expect("a commit's id"),
            terms: Terms::default(),
            phase: Phase::Waiting,
            job: None,
            plan: None,
            approval: None,
            failing: Failing::default(),
            started_ms: None,
            ended_ms: None,
            skipped: Vec::new(),
            message: String::new(),
        };
        Status { run: Some(run), history, ..Status::default() }
    }

    /// A status with what is known of drift.
    fn with(drift: Drift) -> Status {
        Status { drift: Some(drift), ..Status::default() }
    }

    #[test]
    fn the_end_of_a_look_at_drift_is_counted_by_what_it_found_and_once() {
        let run = running(1, Vec::new()).run.expect("a run");
        let attempt = Attempt { seq: RunSeq(1), number: 2, action: Action::Drift };
        let look = Run { attempt, phase: Phase::Started, started_ms: Some(1_000), ..run };
        let before = with(Drift { look: Some(look.clone()), looks: 2, ..Drift::default() });
        let seen = |plan| Seen { seq: RunSeq(1), settings: String::new(), plan, since_ms: 2, at_ms: 4_000 };
        let plan = Plan { fingerprint: "f".to_owned(), counts: None, job: "j".to_owned() };
        let missed =
            Missed { count: 1, at_ms: 4_000, settings: String::new(), job: String::new(), message: String::new() };
        let ends = [
            (Drift { seen: Some(seen(Some(plan))), ..Drift::default() }, Some(Phase::Planned)),
            (Drift { seen: Some(seen(None)), ..Drift::default() }, Some(Phase::Succeeded)),
            (Drift { missed: Some(missed), ..Drift::default() }, Some(Phase::Waiting)),
            (Drift::default(), None),
            (Drift { look: Some(look), looks: 2, ..Drift::default() }, None),
        ];
        for (drift, outcome) in ends {
            let after = with(drift);
            let counted = super::ended(&before, &after).map(|ended| (ended.action, ended.outcome, ended.took_ms));
            assert_eq!(counted, outcome.map(|outcome| (Action::Drift, outcome, Some(3_000))), "{after:?}");
            assert_eq!(super::ended(&after, &after), None);
        }
    }

    #[test]
    fn a_run_that_succeeded_is_remarked_once_although_the_next_has_begun_already() {
        let reasons = |status: &Status, before: &Status| {
            remarks(status, before).into_iter().map(|remark| remark.reason).collect::<Vec<_>>()
        };
        let before = running(2, vec![ended(1, Phase::Succeeded)]);
        let after = running(3, vec![ended(1, Phase::Succeeded), ended(2, Phase::Succeeded)]);
        assert_eq!(reasons(&after, &before), ["Synced"]);
        assert_eq!(reasons(&after, &after), Vec::<&str>::new());
        let failed = running(3, vec![ended(1, Phase::Succeeded), ended(2, Phase::Failed)]);
        assert_eq!(reasons(&failed, &before), Vec::<&str>::new());
    }
}
