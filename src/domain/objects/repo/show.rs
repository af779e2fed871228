//! A Repo's status for people: the conditions, and the reason a run waits. A wait that is too long is announced once.

use std::time::Duration;

use crate::apps::ready::ONLY_PLANNED;
use crate::repo::Repo;
use crate::repo::concern::unchanged_words;
use crate::repo::remark::TAKEN;
use crate::repo::run::Stand;
use crate::repo::status::{Condition, ConditionKind, Phase, Question, Run};
use crate::status::Late;
use kernel::machine::{Timestamp, millis};
use kernel::text;
use notices::notice::Kind;

/// Bytes of a message. A cause, its cure and the command that shows the log fit.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Begins the command that shows a log.
const LOG: &str = "kubectl logs ";

/// The reason of a condition: the object does not keep what we write.
pub(super) const PRUNED: &str = "StatusPruned";

/// The same: it is not known yet whether the wanted commit concerns it.
pub(super) const COMPARING: &str = "Comparing";

/// The message while the object drops fields that we write.
const APPLY_CRD: &str = "the CRD drops what allclear must remember, so nothing is run: apply that of this version, which `allclear crds` \
                         prints";

impl Repo {
    /// Writes into the draft what people see.
    pub(super) fn show(&mut self, now: Timestamp) {
        self.own.status.draft.observed_generation = self.own.object.generation;
        let words = short(&self.words());
        if let Some(run) = self.own.status.draft.newest_mut().filter(|run| run.is_open()) {
            run.message.clone_from(&words);
        }
        let ready = self.ready(&words);
        self.watch_the_clock(now, &ready);
        self.watch_the_looks(now);
        let mut conditions = vec![ready];
        conditions.extend(self.stalled());
        conditions.extend(self.drifted().filter(|_| !self.is_leaving()));
        conditions.extend(self.reported_condition());
        let since_ms = self.own.wall_ms(now);
        let earlier = std::mem::take(&mut self.own.status.draft.conditions);
        for condition in &mut conditions {
            condition.since(&earlier, since_ms);
        }
        self.own.status.draft.conditions = conditions;
    }

    fn ready(&self, words: &str) -> Condition {
        let ready = |holds, reason: &str, message: &str| condition(ConditionKind::Ready, holds, reason, message);
        if let Err(why) = &self.own.object.spec {
            return ready(Some(false), "InvalidSpec", why);
        }
        if self.own.status.pruned {
            return ready(Some(false), PRUNED, APPLY_CRD);
        }
        if let Some(leaving) = self.leaving(words) {
            return leaving;
        }
        let run = self.own.status.draft.run.as_ref();
        let git = self.looking.trouble(self.own.status.draft.head.is_none()).filter(|_| !run.is_some_and(Run::is_open));
        if let Some((why, _)) = git {
            return ready(Some(false), "GitFailed", &format!("the wanted commit is not known: {why}"));
        }
        let ended = run.filter(|run| !run.is_open()).map(|run| (run.phase, run.message.as_str()));
        match (&self.stand, ended) {
            (Stand::Suspended(_), _) => ready(Some(false), "Suspended", words),
            (Stand::Done, Some((Phase::Succeeded, message))) => {
                let source = self.own.spec().map(|spec| &spec.source);
                let draft = &self.own.status.draft;
                match source.and_then(|source| Some(unchanged_words(source, draft.unchanged_head(source)?))) {
                    Some(words) => ready(Some(true), "Unchanged", &words),
                    None => ready(Some(true), "Applied", without_log(message)),
                }
            }
            (Stand::OnlyPlanned, _) => ready(Some(true), ONLY_PLANNED, without_log(words)),
            (Stand::Comparing(..), _) => ready(None, COMPARING, words),
            (Stand::Done | Stand::Asked(Question::Again), Some((Phase::Lost, message))) => {
                ready(Some(false), "RunLost", &before_log(message, words))
            }
            (Stand::Done | Stand::Asked(Question::Again), Some((_, message))) => {
                ready(Some(false), "RunFailed", &before_log(message, words))
            }
            (Stand::Asked(_), _) => ready(Some(false), "WaitingForApproval", words),
            (Stand::Gates(_), _) => ready(Some(false), "GateClosed", words),
            (Stand::Resting, _) if self.is_locked_out() => ready(Some(false), "StateLocked", words),
            (
                Stand::Resting
                | Stand::Taken(_)
                | Stand::Listing(Some(_))
                | Stand::Making(Some(_))
                | Stand::Starting(Some(_))
                | Stand::Withdrawing(Some(_)),
                _,
            ) => ready(Some(false), "RunFailed", words),
            (
                Stand::Looking
                | Stand::Done
                | Stand::Listing(None)
                | Stand::Behind(_)
                | Stand::Making(None)
                | Stand::Starting(None)
                | Stand::Running(_)
                | Stand::Withdrawing(None)
                | Stand::Ending
                | Stand::Held
                | Stand::Vanished
                | Stand::Stays(_)
                | Stand::Looks(_),
                _,
            ) => ready(None, "Running", words),
        }
    }

    /// Whether a person must act, and why.
    fn stalled(&self) -> Option<Condition> {
        let stalled = |reason: &str, words: &str| Some(condition(ConditionKind::Stalled, Some(true), reason, words));
        if let Err(why) = &self.own.object.spec {
            return stalled("InvalidSpec", why);
        }
        if self.own.status.pruned {
            return stalled(PRUNED, APPLY_CRD);
        }
        let looking = self.looking.trouble(self.own.status.draft.head.is_none()).filter(|_| !self.is_leaving());
        if let Some((why, true)) = looking {
            return stalled("GitFailed", why);
        }
        let words = self.words();
        match &self.stand {
            Stand::Asked(Question::Again) => {
                let lost = self.own.status.draft.run.as_ref().is_some_and(|run| run.phase == Phase::Lost);
                stalled(if lost { "RunLost" } else { "RunFailed" }, &words)
            }
            Stand::Asked(Question::DestroyAgain) => stalled("DestroyFailed", &words),
            Stand::Taken(_) => stalled(TAKEN, &words),
            Stand::Held => stalled("JobSuspended", &words),
            _ if let Some(held) = self.drifting.held() => stalled("JobSuspended", &held.to_string()),
            _ if self.own.status.draft.late.is_some_and(|late| late.told) => stalled("WaitingTooLong", &words),
            _ => self.unheld(),
        }
    }

    /// Tells, once, that the wanted commit has not been applied for longer than the spec allows.
    fn watch_the_clock(&mut self, now: Timestamp, ready: &Condition) {
        let is_waiting =
            ready.holds != Some(true) && !matches!(self.stand, Stand::Suspended(_)) && self.own.spec().is_some();
        if !is_waiting {
            self.own.status.draft.late = None;
            return;
        }
        let Some(bound) = self.own.spec().map(|spec| spec.stalled_after) else { return };
        let (late, minutes) = self.lasting(now, self.own.status.draft.late, bound);
        self.own.status.draft.late = Some(late);
        let Some(minutes) = minutes else { return };
        let message = format!("it has waited for {minutes} minutes: {}", ready.message);
        if self.own.status.draft.run.is_some() {
            self.announce(now, Kind::RunStalled, &late.since_ms.to_string(), &message);
        } else {
            self.own.tell_faulty(now, &message);
        }
    }

    /// Since when something lasts that does so now, and for how many minutes, if that is longer than this and no notice has said so yet.
    pub(super) fn lasting(&mut self, now: Timestamp, late: Option<Late>, bound: Duration) -> (Late, Option<i64>) {
        let wall_ms = self.own.wall_ms(now);
        let late = late.unwrap_or(Late { since_ms: wall_ms, told: false });
        if late.told {
            return (late, None);
        }
        let until = late.since_ms.saturating_add_unsigned(millis(bound));
        if until > wall_ms {
            self.own.wake_at(self.at_wall(now, until));
            return (late, None);
        }
        (Late { told: true, ..late }, Some((wall_ms - late.since_ms) / 60_000))
    }
}

/// A run's message without the command that shows its log, which would flood a table of Repos.
fn without_log(message: &str) -> &str {
    message.rsplit_once(LOG).map_or(message, |(said, _)| said.trim_end_matches("; "))
}

/// The same with more words. The command stays at the end, where it can be copied.
pub(super) fn before_log(message: &str, words: &str) -> String {
    match message.rsplit_once(LOG) {
        Some((said, log)) => format!("{said}{words}; {LOG}{log}"),
        None => format!("{message}; {words}"),
    }
}

pub(super) fn condition(kind: ConditionKind, holds: Option<bool>, reason: &str, message: &str) -> Condition {
    Condition::new(kind, holds, reason, &short(message))
}

fn short(message: &str) -> String {
    text::clean(message, MESSAGE_BYTES_MAX)
}
