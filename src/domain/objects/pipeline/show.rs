//! A Pipeline's status for people: the conditions, the targets, and the wait of each promotion. No decision reads it.

use crate::apps::app::{Present, Sight, TargetKey};
use crate::pipeline::Pipeline;
use crate::pipeline::judge::{self, NOT_LOOKED_AT, What};
use crate::pipeline::promote::Pending;
use crate::pipeline::spec::{EnvironmentSpec, Spec};
use crate::pipeline::status::{ClusterAppRef, Condition, ConditionKind, Question, TargetStatus};
use kernel::machine::Timestamp;
use kernel::text;

/// Bytes of a sentence about the Pipeline or one of its environments: a cause and its cure.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Bytes of what is wrong with a target: a status of 20 environments with 50 targets each stays below 400 KB.
const TARGET_BYTES_MAX: usize = 200;

/// The text for a notification that reaches no program.
pub(super) const UNHEARD: &str = "by notification, but no webhook has this Pipeline in workloads and promotion.started in events: only an \
                                  Event tells of it";

/// The reason of a condition: the object does not keep what we write.
pub(super) const PRUNED: &str = "StatusPruned";

impl Pipeline {
    /// Writes into the draft what people see.
    /// At a start what was written by an earlier life stands until every target was looked at.
    pub(super) fn show(&mut self, now: Timestamp, judged: &[Option<Pending>]) {
        if self.is_starting(now) {
            return;
        }
        self.own.status.draft.observed_generation = self.own.object.generation;
        if let Ok(spec) = self.own.object.spec.clone() {
            self.show_environments(&spec, judged);
        }
        let mut conditions = vec![self.ready()];
        conditions.extend(self.pending(judged));
        conditions.extend(self.stalled(judged));
        conditions.extend(self.unheard());
        let since_ms = self.own.wall_ms(now);
        let earlier = std::mem::take(&mut self.own.status.draft.conditions);
        for condition in &mut conditions {
            condition.since(&earlier, since_ms);
            condition.message = short(&condition.message);
        }
        self.own.status.draft.conditions = conditions;
    }

    fn show_environments(&mut self, spec: &Spec, judged: &[Option<Pending>]) {
        let first = spec.environments.first();
        let latest = first.and_then(|first| judge::settled(first, &self.sights).ok()).cloned();
        if latest.is_some() {
            self.own.status.draft.latest = latest;
        }
        for (environment, pending) in spec.environments.iter().zip(judged) {
            let targets = environment.members().map(|target| shown(target, self.sights.get(target))).collect();
            let known = self.own.status.draft.environments.entry(environment.name.clone()).or_default();
            known.targets = targets;
            let open = known.promotion.as_mut().filter(|promotion| promotion.phase.is_open());
            if let (Some(promotion), Some(pending)) = (open, pending) {
                promotion.message = short(&pending.to_string());
            }
        }
    }

    fn ready(&self) -> Condition {
        match &self.own.object.spec {
            Err(why) => condition(ConditionKind::Ready, false, "InvalidSpec", why),
            Ok(spec) => match judge::unseen_of(&spec.environments, &self.sights) {
                None => condition(ConditionKind::Ready, true, "ReconciliationSucceeded", "All clusters checked"),
                Some(obstacle) => {
                    let words = format!("One or more targets was not reachable or not present: {obstacle}");
                    condition(ConditionKind::Ready, false, "TargetNotReadable", &words)
                }
            },
        }
    }

    /// The wait of the first environment that waits; `None` if none does.
    fn pending(&self, judged: &[Option<Pending>]) -> Option<Condition> {
        let pending = judged.iter().flatten().next()?;
        let words = pending.to_string();
        let (reason, words) = match pending {
            Pending::Before(obstacle) => match obstacle.what {
                What::Unknown(..) | What::EdgeUnseen => ("TargetUnknown", words),
                What::Differs(..) | What::Behind(..) | What::Back(..) | What::Moved(..) => {
                    ("EnvironmentNotReady", format!("Waiting for all targets to have the same revision: {words}"))
                }
                What::Absent(_) | What::Unready(..) | What::Unnamed(..) | What::EdgeStale(_) => {
                    ("EnvironmentNotReady", format!("Waiting for all targets to be ready: {words}"))
                }
            },
            Pending::Unseen(_) => ("TargetUnknown", words),
            Pending::Gates(closed) if closed.iter().any(|gate| matches!(gate, super::gates::Gate::Suspended(_))) => {
                ("Suspended", words)
            }
            Pending::Gates(closed) if closed == &[super::gates::Gate::Approval] => ("WaitingForApproval", words),
            Pending::Gates(_) | Pending::Recheck(_) => ("GateClosed", words),
            Pending::Person(_) | Pending::Held(_) => ("WaitingForApproval", words),
            Pending::Proposing(_) => ("PullRequestNotMade", words),
            Pending::Proposed(..) => ("PullRequestOpen", words),
            Pending::Telling | Pending::Deploying(..) | Pending::Arriving(_) => ("RollingOut", words),
        };
        Some(condition(ConditionKind::PromotionPending, true, reason, &words))
    }

    /// Whether nothing but an Event carries promotions by notification.
    fn unheard(&self) -> Option<Condition> {
        let mut environments =
            self.own.spec().filter(|_| !self.heard)?.environments.iter().filter(|own| !own.is_first());
        let told = |own: &EnvironmentSpec| own.promotion.as_ref().is_some_and(|how| how.repository().is_none());
        environments.any(told).then(|| condition(ConditionKind::Unheard, true, "NoWebhook", UNHEARD))
    }

    /// Whether a person must act, and why.
    fn stalled(&self, judged: &[Option<Pending>]) -> Option<Condition> {
        let stalled = |reason, words: &str| Some(condition(ConditionKind::Stalled, true, reason, words));
        if let Err(why) = &self.own.object.spec {
            return stalled("InvalidSpec", why);
        }
        if self.own.status.pruned {
            return stalled(
                PRUNED,
                "the CRD drops what allclear must remember, so nothing is promoted: apply that of this version, which \
                 `allclear crds` prints (for pipelines.weave.works `allclear crds --weave`)",
            );
        }
        for pending in judged.iter().flatten() {
            match pending {
                Pending::Person(question @ Question::Left) => return stalled("Left", question.words()),
                Pending::Person(question @ (Question::Again | Question::Overwrite)) => {
                    return stalled("Abandoned", question.words());
                }
                Pending::Proposing(Some(why)) => return stalled("PromotionFailed", why),
                _ => {}
            }
        }
        let late =
            self.own.status.draft.environments.iter().find(|(_, known)| known.behind.is_some_and(|behind| behind.told));
        late.and_then(|(name, known)| {
            let message = known.promotion.as_ref().filter(|promotion| promotion.phase.is_open());
            let message = message.map_or("it waits for the environments before it", |open| open.message.as_str());
            stalled("WaitingTooLong", &format!("{name}: {message}"))
        })
    }
}

fn condition(kind: ConditionKind, holds: bool, reason: &str, message: &str) -> Condition {
    Condition::new(kind, Some(holds), reason, message)
}

fn short(message: &str) -> String {
    text::clean_ends(message, MESSAGE_BYTES_MAX)
}
/// The text for a missing target.
pub(super) fn not_found(target: &TargetKey) -> String {
    format!("{} {:?} not found", target.app.kind, target.name)
}

/// A target, for people.
pub(super) fn shown(target: &TargetKey, sight: Option<&Sight>) -> TargetStatus {
    let wrong = |why: &str| text::clean_ends(why, TARGET_BYTES_MAX);
    let said = match sight {
        None => TargetStatus { error: Some(NOT_LOOKED_AT.to_owned()), ..TargetStatus::default() },
        Some(Sight::Unknown(why)) => TargetStatus { error: Some(wrong(why)), ..TargetStatus::default() },
        Some(Sight::Absent) => TargetStatus { error: Some(not_found(target)), ..TargetStatus::default() },
        Some(Sight::Present(Present { uid, unready, revision })) => TargetStatus {
            uid: Some(uid.clone()),
            ready: unready.is_none(),
            revision: revision.as_ref().ok().cloned(),
            error: revision.as_ref().err().map(|why| wrong(&why.to_string())),
            message: unready.as_ref().map(|why| wrong(why)),
            ..TargetStatus::default()
        },
    };
    TargetStatus { cluster_app_ref: ClusterAppRef::of(target), ..said }
}
