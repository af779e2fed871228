//! The life of a Job that may have been started: it is started once and followed to its end; one that never ran is
//! taken back for something else; and what follows if it vanishes.
//!
//! Not for what an end comes to; that is `outcome`.

use std::time::Duration;

use crate::repo::job::{Job, Pod, StepState};
use crate::repo::run::Stand;
use crate::repo::status::{JobRef, Phase};
use crate::repo::witness::Ran;
use crate::repo::{Effect, Repo};
use kernel::machine::{Timestamp, millis};
use notices::notice::Kind;

/// How long after a Job was started it is said that no pod was made.
const WORDS_AFTER: Duration = Duration::from_secs(15);

impl Repo {
    /// A Job that may have been started: it is started, once, and followed to its end.
    pub(super) fn started(&mut self, now: Timestamp, effects: &mut Vec<Effect>) -> Stand {
        let is_durable = self.is_durable();
        let job = self.own.status.draft.present().and_then(|run| run.job.clone());
        let Some(JobRef { name, uid: Some(uid) }) = job else { return Stand::Done };
        self.jobs.witness.attend(&uid, false);
        if self.jobs.known().is_none() {
            return Stand::Listing(self.jobs.trouble().map(str::to_owned));
        }
        let (found, _) = self.jobs.focus(&name);
        let Some(found) = found.filter(|found| found.uid == uid) else {
            return self.vanished(now, &name, uid, effects);
        };
        if found.end.is_some() {
            return self.ending(now, &found, effects);
        }
        if found.suspended && found.withdrawn {
            return self.withdrawing(now, &found, effects);
        }
        if found.suspended && found.marked {
            return Stand::Held;
        }
        if found.suspended && (self.is_forbidden() || self.has_other_terms()) {
            return if is_durable { self.withdraw(now, found, effects) } else { Stand::Starting(None) };
        }
        if found.suspended {
            let (_, present) = self.jobs.focus(&name);
            if is_durable && present.begin_look_afresh(now) {
                effects.push(Effect::LookAtJob(name));
            } else if is_durable && !present.outdated && !found.deleting && present.start.is_due(now) {
                present.start.asked();
                effects.push(Effect::Start(Box::new(found)));
            }
            return Stand::Starting(present.start.last_reason().map(str::to_owned));
        }
        if is_durable && self.is_to_be_withdrawn() && self.jobs.witness.ran(&found) == Ran::NotYet {
            return self.withdraw(now, found, effects);
        }
        Stand::Running(self.words_of_job(now, &found))
    }

    /// A Job that has ended: once its pods have, too, that is recorded.
    fn ending(&mut self, now: Timestamp, found: &Job, effects: &mut Vec<Effect>) -> Stand {
        let is_decided = self.is_durable() && self.own.status.is_free(now);
        let ran = self.jobs.witness.ran(found);
        let (_, present) = self.jobs.focus(&found.name);
        match present.last_pods(&found.uid).map(<[Pod]>::to_vec) {
            None if present.begin_pods(now, &found.uid) => {
                effects.push(Effect::ReadPods(found.name.clone(), found.uid.clone()));
            }
            // Its pod is gone, and how it ended is on its way.
            Some(pods) if pods.is_empty() && ran == Ran::NotYet => {}
            Some(_) if found.is_over() && is_decided && found.withdrawn && ran == Ran::Never => {
                self.taken_back(now, found, false);
            }
            Some(pods) if found.is_over() && is_decided => self.conclude(now, found, &pods, ran),
            Some(_) | None => {}
        }
        Stand::Ending
    }

    /// Whether a Job that was made must not be started any more. A start that was sent may still arrive, so it is taken back like one
    /// that was started: whichever write comes first voids the other. While a person stops the Repo that is so, too: once it is
    /// resumed, the gates are judged before another Job is made.
    fn is_forbidden(&self) -> bool {
        if self.own.spec().is_some_and(|spec| spec.suspended.is_some()) {
            return true;
        }
        if self.is_leaving() {
            return self.is_destroy_unwanted();
        }
        // A look applies nothing.
        self.own.status.draft.look().is_none() && self.own.spec().is_some_and(|spec| self.may_not_apply(spec))
    }

    /// Whether something else is wanted than what its Job does: another commit, or other settings.
    fn is_to_be_withdrawn(&self) -> bool {
        if self.is_leaving() {
            return self.is_destroy_unwanted();
        }
        if self.own.status.draft.look().is_some() {
            return self.is_look_unwanted();
        }
        let (Some(spec), Some(head)) = (self.own.spec(), &self.own.status.draft.head) else { return false };
        spec.suspended.is_none()
            && self.own.status.draft.run.is_some()
            && (self.is_news(spec, head) || self.has_other_terms())
    }

    /// Whether its run was ordered under other settings than there are now, so that a yes, or none, was for something else.
    fn has_other_terms(&self) -> bool {
        let run = self.own.status.draft.run.as_ref().filter(|_| self.own.status.draft.look().is_none());
        run.zip(self.own.spec()).is_some_and(|(run, spec)| run.terms.settings != spec.settings())
    }

    /// Suspends a Job of which nothing has run. Only its pods say whether that came in time.
    fn withdraw(&mut self, now: Timestamp, found: Job, effects: &mut Vec<Effect>) -> Stand {
        let (_, present) = self.jobs.focus(&found.name);
        if present.begin_look_afresh(now) {
            effects.push(Effect::LookAtJob(found.name));
        } else if !present.outdated && present.withdraw.is_due(now) {
            present.withdraw.asked();
            effects.push(Effect::Withdraw(Box::new(found)));
        }
        Stand::Withdrawing(present.withdraw.last_reason().map(str::to_owned))
    }

    /// A Job that was taken back: once no pod of it is left, it is known whether it ran. It is removed when that is durable.
    fn withdrawing(&mut self, now: Timestamp, found: &Job, effects: &mut Vec<Effect>) -> Stand {
        let is_decided = self.is_durable() && self.own.status.is_free(now);
        let is_at_rest = found.pods.at_rest && found.pods.active == 0 && found.pods.terminating == 0;
        // One without our mark was never started, whatever of its pods was overlooked.
        let is_known = !found.marked && found.pods.ended == 0;
        let ran = if is_known { Ran::Never } else { self.jobs.witness.ran(found) };
        let (_, present) = self.jobs.focus(&found.name);
        if is_at_rest && present.last_pods(&found.uid).is_none() {
            if present.begin_pods(now, &found.uid) {
                effects.push(Effect::ReadPods(found.name.clone(), found.uid.clone()));
            }
        } else if is_at_rest && is_decided && ran != Ran::NotYet {
            self.taken_back(now, found, ran == Ran::Perhaps);
        }
        Stand::Withdrawing(None)
    }

    /// The Job is not among those that are there. Before that is believed, it is looked for afresh; before it counts as ended, its pods
    /// are.
    fn vanished(&mut self, now: Timestamp, name: &str, uid: String, effects: &mut Vec<Effect>) -> Stand {
        let is_decided = self.is_durable() && self.own.status.is_free(now);
        let (other, present) = self.jobs.focus(name);
        if other.is_none() && !present.absent {
            if present.look.is_due(now) {
                present.look.asked();
                effects.push(Effect::LookAtJob(name.to_owned()));
            }
        } else if present.last_pods(&uid).is_some() {
            // What is not known to be started is not lost: after a conflict the draft may stand without being durable.
            if is_decided {
                self.lost(now, name, &uid);
            }
        } else if present.begin_pods(now, &uid) {
            effects.push(Effect::ReadPods(name.to_owned(), uid));
        }
        Stand::Vanished
    }

    /// A Job that may have been started is gone, with all of its pods.
    fn lost(&mut self, now: Timestamp, name: &str, uid: &str) {
        match self.jobs.witness.ran_without_its_job(uid) {
            Ran::NotYet => {}
            // It applies nothing, so nobody has to look at anything.
            Ran::Perhaps if self.own.status.draft.look().is_some() => {
                self.failed_before(now, &format!("Job {name} is gone"), None);
            }
            Ran::Perhaps if self.own.status.draft.destroy.is_some() => self.destroy_lost(now, name),
            Ran::Never => self.failed_before(now, &format!("Job {name} is gone, and nothing of it had run"), None),
            Ran::Perhaps => {
                let message =
                    format!("Job {name} is gone, and what it did is not known; look at what it was to change");
                let number = self.own.status.draft.run.as_ref().map(|run| run.attempt.number.to_string());
                self.end(now, Phase::Lost, &message);
                self.announce(now, Kind::RunFailed, &number.unwrap_or_default(), &message);
            }
        }
    }

    /// The state of a started Job, in words.
    fn words_of_job(&mut self, now: Timestamp, found: &Job) -> String {
        let since = self.own.status.draft.present().and_then(|run| run.started_ms).unwrap_or_default();
        let late = self.at_wall(now, since.saturating_add_unsigned(millis(WORDS_AFTER)));
        let Some(pod) = self.jobs.witness.pod() else {
            if found.pods.active > 0 {
                return "its Job runs".to_owned();
            }
            if late > now {
                self.own.wake_at(late);
                return "its Job is started, and has no pod yet".to_owned();
            }
            return "its Job has no pod: a quota or an admission webhook may refuse it, or its account is missing (kubectl describe job \
                    says so)"
                .to_owned();
        };
        let running = pod.steps.iter().find(|step| step.state == StepState::Running);
        match (&pod.waits, running) {
            (Some(why), _) => format!("its Job waits: {why}"),
            (None, Some(step)) => format!("its Job runs: step {} runs", step.kind.name()),
            (None, None) => "its Job runs".to_owned(),
        }
    }
}

impl Job {
    /// Whether it has ended: terminal, and no pod active or terminating (RP-4).
    pub const fn is_over(&self) -> bool {
        self.end.is_some() && self.pods.active == 0 && self.pods.terminating == 0
    }
}
