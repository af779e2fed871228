//! When a run is reported to the forge of its repository: as soon as what is to be said is another thing than what was said last, and that
//! rests on what is durable.
//!
//! - What was said is remembered as a hash, so a restart does not repeat it, and what was not is still to be said. Between the two it may
//!   be said twice, which changes nothing there.
//! - A forge that refuses or is away stops no run: it is asked again later each time, and the condition `Reported` has its words. What
//!   only a person can mend is tried rarely, until something else is to be said: each try may add a state to the commit.
//! - A request may be opened after its commit was planned: while none was found, it is looked for again, less and less often for a day,
//!   and whenever a person or a webhook pokes the Repo.
//!
//! Not for what is said; that is `report`.

use std::time::Duration;

use crate::repo::head::Unresolved;
use crate::repo::job::{Job, Pod, StepKind, StepState};
use crate::repo::plan;
use crate::repo::report::{Saying, saying};
use crate::repo::reported::Said;
use crate::repo::show::condition;
use crate::repo::spec::{Detail, ReportTo, Spec};
use crate::repo::status::{Condition, ConditionKind};
use crate::repo::{Effect, Repo};
use kernel::call::Call;
use kernel::machine::{Timestamp, millis};
use kernel::retry::Backoff;

/// What could not be said is said again; a forge answers 5,000 requests an hour.
const FAILED: Backoff = Backoff { base: Duration::from_secs(30), cap: Duration::from_mins(15) };

/// What only a person can mend is tried again. GitHub takes 1,000 states of one name for a commit.
const LASTING: Duration = Duration::from_hours(6);

/// There was no place for it: nothing was asked.
const BUSY: Duration = Duration::from_secs(30);

/// After so long a request is looked for again where none was found. Each pause is twice the one before …
const LOOK_BASE: Duration = Duration::from_mins(1);

/// … up to this time after it was said first.
const LOOK_MAX: Duration = Duration::from_hours(24);

/// The report to the forge, as this life knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reporting {
    call: Call,
    /// Where it goes.
    to: Option<(String, ReportTo)>,
    /// When requests were looked for last, by the wall clock, or when this life began to.
    looked_ms: Option<i64>,
    /// A look was requested.
    hurried: bool,
    /// The hash of what cannot be said until a person does something about it.
    lasting: Option<String>,
}

impl Reporting {
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.call.deadline()
    }

    pub(super) fn wake(&mut self, now: Timestamp) {
        self.call.wake(now);
    }

    /// Requests may have come.
    pub(super) fn hurry(&mut self, now: Timestamp) {
        self.hurried = true;
        if self.lasting.is_none() {
            self.call.hurry(now);
        }
    }
}

impl Repo {
    /// Says what is to be said of the newest run, when that is due.
    pub(super) fn report(&mut self, now: Timestamp) -> Option<Effect> {
        let spec = self.own.spec()?;
        let to = spec.report.clone().map(|to| (spec.source.url.clone(), to));
        if self.reporting.to != to {
            let mut call = std::mem::take(&mut self.reporting.call);
            if call.is_asked() {
                call.outdate();
            } else {
                call = Call::default();
            }
            self.reporting = Reporting { to, call, ..Reporting::default() };
        }
        if self.reporting.to.is_none() {
            self.own.status.draft.report = None;
            return None;
        }
        let saying = self.saying().filter(|_| !self.own.status.pruned)?;
        let again = self.is_said(&saying);
        if self.reporting.lasting.take_if(|failed| *failed != saying.hash()).is_some() {
            self.reporting.call.hurry(now);
        }
        if (again && !self.is_looked_for_again(now, &saying)) || !self.reporting.call.is_due(now) {
            return None;
        }
        self.reporting.call.asked();
        self.reporting.hurried = false;
        Some(Effect::Report(Box::new(Saying { again, ..saying })))
    }

    /// What is to be said of the newest run, as far as that is durable.
    fn saying(&self) -> Option<Saying> {
        let (url, to) = self.reporting.to.as_ref()?;
        let durable = &self.own.status.durable;
        let changes = durable.report.as_ref().and_then(|report| report.changes.as_ref());
        let changes = changes.filter(|_| to.detail == Detail::Addresses);
        saying(&self.own.object.id, &self.own.object.uid, url, to, durable.run.as_ref()?, changes)
    }

    fn said(&self) -> Option<&Said> {
        self.own.status.draft.report.as_ref()?.said.as_ref()
    }

    fn is_said(&self, saying: &Saying) -> bool {
        self.said().is_some_and(|said| said.hash == saying.hash())
    }

    /// Whether requests are looked for that have come since it was said.
    fn is_looked_for_again(&mut self, now: Timestamp, saying: &Saying) -> bool {
        let wall_ms = self.own.wall_ms(now);
        let Some(said) = self.said().filter(|_| saying.comment.is_some()) else { return false };
        let (at_ms, requests) = (said.at_ms, said.requests);
        if self.reporting.hurried {
            return true;
        }
        // A start of the process makes no looks of its own.
        let looked_ms = *self.reporting.looked_ms.get_or_insert(wall_ms);
        let Some(due) = next_look(at_ms, looked_ms).filter(|_| requests == 0) else { return false };
        if due > wall_ms {
            self.own.wake_at(self.at_wall(now, due));
        }
        due <= wall_ms
    }

    /// It was said, and stands on so many requests; or it was not.
    pub(super) fn reported(&mut self, now: Timestamp, saying: &Saying, answer: Result<u32, Unresolved>) {
        let wall_ms = self.own.wall_ms(now);
        if self.reporting.call.is_outdated() {
            self.reporting.call = Call::default();
            return;
        }
        match answer {
            Ok(requests) => {
                self.reporting.call.answered();
                self.reporting.lasting = None;
                self.reporting.looked_ms = Some(wall_ms);
                let hash = saying.hash();
                let report = self.own.status.draft.report.get_or_insert_default();
                let known = report.said.take().filter(|said| said.hash == hash);
                let at_ms = known.map_or(wall_ms, |said| said.at_ms);
                report.said = Some(Said { revision: saying.revision.clone(), hash, requests, at_ms });
            }
            Err(unresolved) => self.not_reported(now, saying, unresolved),
        }
    }

    fn not_reported(&mut self, now: Timestamp, saying: &Saying, unresolved: Unresolved) {
        let Unresolved { why, lasting, busy, rest } = unresolved;
        let reporting = &mut self.reporting;
        // A look that failed is still to be made.
        reporting.hurried |= saying.again;
        if busy {
            return reporting.call.answered_until(now.after(BUSY.max(rest)));
        }
        reporting.lasting = lasting.then(|| saying.hash());
        let again = FAILED.from(now, &self.own.object.uid);
        let least = if lasting { LASTING } else { rest };
        reporting.call.failed(|failures| again(failures).max(now.after(least)), why);
    }

    /// Keeps the addresses that the plan of a Job lists, where they are asked for.
    pub(super) fn keep_changes(&mut self, job: &Job, pods: &[Pod]) {
        if !self.own.spec().is_some_and(Spec::wants_addresses) {
            return;
        }
        let steps = pods.iter().flat_map(|pod| &pod.steps);
        let mut said = steps.filter_map(|step| match (&step.state, step.kind) {
            (StepState::Ended(_, _, message), StepKind::Report | StepKind::Verify) => Some(message),
            _ => None,
        });
        if let Some(message) = said.next_back() {
            self.own.status.draft.report.get_or_insert_default().changes = Some(plan::listed(message, &job.name));
        }
    }

    /// Whether the forge has the report.
    pub(super) fn reported_condition(&self) -> Option<Condition> {
        self.own.spec().filter(|spec| spec.report.is_some())?;
        let condition = |holds, reason, words: &str| Some(condition(ConditionKind::Reported, holds, reason, words));
        let Some(saying) = self.saying() else {
            return condition(None, "NothingToReport", "no run of ours is there to be reported");
        };
        let revision = saying.revision.short();
        if let Some(why) = self.reporting.call.last_reason() {
            return condition(Some(false), "ReportFailed", &format!("the report of {revision} is tried again: {why}"));
        }
        if !self.is_said(&saying) {
            return condition(None, "Reporting", &format!("{revision} is being reported"));
        }
        let requests = match (self.said().map_or(0, |said| said.requests), saying.comment) {
            (_, None) => String::new(),
            (0, Some(_)) => "; no open request has it at its head".to_owned(),
            (1, Some(_)) => " and of the request that has it at its head".to_owned(),
            (many, Some(_)) => format!(" and of {many} requests that have it at their heads"),
        };
        condition(Some(true), "Reported", &format!("the forge has the report of {revision}{requests}"))
    }
}

/// When requests are looked for again, for something that was said at a time, after the last look.
fn next_look(at_ms: i64, looked_ms: i64) -> Option<i64> {
    let of = |duration| i64::try_from(millis(duration)).unwrap_or(i64::MAX);
    let pauses = std::iter::successors(Some(of(LOOK_BASE)), |pause| pause.checked_mul(2));
    let mut looks = pauses.take_while(|pause| *pause <= of(LOOK_MAX)).map(|pause| at_ms.saturating_add(pause));
    looks.find(|at| *at > looked_ms)
}
