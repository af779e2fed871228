//! Drift: what was applied is planned again at times, to see whether anything has changed outside of git.
//!
//! ```text
//! applied ── its time ──▶ Starting ─▶ Started ── ended ──▶ nothing would change: in sync
//!                            │           │            ├──▶ something would: Drifted, one notice ── onDrift: Apply ──▶ the next run
//!                            │           │            └──▶ it could not be planned: missed, and tried again later
//!                            └───────────┴── something else is wanted, and nothing of it has run ──▶ given up
//! ```
//!
//! - A look is a run of a plan alone. Its Job goes the way of every other. It stands beside the run that applied the commit, never in its
//!   place: what was applied stays so, and `Ready`.
//! - It begins only while nothing else is to run. What is wanted meanwhile waits for its end, as behind a plan.
//! - What it finds is about one run and one set of settings, and is nothing after the next run or under others.
//! - Its times are made of the clock and the Repo's UID alone, so looks of many Repos are spread however often the process starts.
//!
//! Not for what a plan would change; that is `plan`.

use std::time::Duration;

use crate::form::{At, Form};
use crate::repo::job;
use crate::repo::outcome::doubled;
use crate::repo::run::Stand;
use crate::repo::show::condition;
use crate::repo::spec::{Approving, DriftLooks, OnDrift, Spec};
use crate::repo::status::{
    Action, Attempt, Condition, ConditionKind, Counts, Drift, Failing, JobRef, Missed, Phase, Plan, Run, Seen, Terms,
};
use crate::repo::{Effect, Repo};
use kernel::id::RunSeq;
use kernel::machine::{Timestamp, millis};
use kernel::retry::jitter;
use notices::notice::Kind;

/// The pause after a look that could not be made. It doubles, up to the time between two looks.
const MISSED_BASE: Duration = Duration::from_mins(5);

/// The longest one, where looks are further apart.
const MISSED_CAP: Duration = Duration::from_hours(6);

/// A look is later than its slot by up to this part of the time between two: what happens at one time of the day does not meet each.
const SHIFT_PART: i64 = 5;

/// The looks at drift, as this life knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Drifting {
    /// What is asked for, and whether it is stopped.
    asked: Option<(Option<DriftLooks>, bool)>,
    /// Since when, by the wall clock. A time before that was another's to use: else a start of the process would make all looks at once.
    since_ms: i64,
    /// When the next look is due, by the wall clock, while none is under way.
    due_ms: Option<i64>,
    /// Where the look stands that is under way or due.
    stand: Option<Stand>,
    /// The end of a suspension, by the wall clock; the end of time, while it lasts. What was found before says little after it.
    stopped_until_ms: Option<i64>,
    /// Why a run for drift does not begin: gates that are closed. It is not begun before, so the newest finding and the spec decide.
    pub(super) closed: Vec<String>,
    /// A person wants what could not be looked at to be looked at now.
    hurried: bool,
}

impl Drifting {
    /// Whether a look is due at this wall time.
    pub(super) fn is_due(&self, wall_ms: i64) -> bool {
        self.due_ms.is_some_and(|due| due <= wall_ms)
    }

    /// Whether the Job of a look was suspended by others.
    pub(super) fn held(&self) -> Option<&Stand> {
        self.stand.as_ref().filter(|stand| **stand == Stand::Held)
    }
}

/// The first slot of a Repo after a wall time.
fn slot_after(uid: &str, every: i64, from_ms: i64) -> i64 {
    let spread = |number: u32, over: i64| {
        let over = u64::try_from(over).unwrap_or_default().max(1);
        i64::try_from(jitter(uid, number) % over).unwrap_or_default()
    };
    let every = every.max(1);
    let phase = spread(0, every);
    let slot = |number: i64| {
        let named = u32::try_from(number.rem_euclid(i64::from(u32::MAX))).unwrap_or_default();
        number.saturating_mul(every).saturating_add(phase).saturating_add(spread(named, every / SHIFT_PART))
    };
    let before = from_ms.saturating_sub(phase).div_euclid(every).saturating_sub(1);
    (before..before.saturating_add(4)).map(slot).find(|at| *at > from_ms).unwrap_or(from_ms.saturating_add(every))
}

fn of(duration: Duration) -> i64 {
    i64::try_from(millis(duration)).unwrap_or(i64::MAX)
}

/// A wall time for people, without parts of a second.
fn time(at_ms: i64) -> String {
    At::of(at_ms.div_euclid(1_000).saturating_mul(1_000)).to_string()
}

impl Repo {
    /// Carries the look on, or begins one that is due.
    pub(super) fn attend_look(&mut self, now: Timestamp, spec: Option<&Spec>, effects: &mut Vec<Effect>) {
        let asked = spec.map(|spec| (spec.drift, spec.suspended.is_some()));
        if self.drifting.asked != asked {
            let wall_ms = self.own.wall_ms(now);
            let known = std::mem::take(&mut self.drifting);
            let stopped_until_ms = match asked {
                Some((_, true)) => Some(i64::MAX),
                Some((_, false)) => known.stopped_until_ms.map(|until| until.min(wall_ms)),
                None => known.stopped_until_ms,
            };
            self.drifting =
                Drifting { asked, since_ms: wall_ms, stopped_until_ms, closed: known.closed, ..Drifting::default() };
        }
        self.drifting.due_ms = None;
        self.judge_gates_of_drift(now, spec, effects);
        let phase = self.own.status.draft.look().map(|look| look.phase);
        self.drifting.stand = match (phase, spec) {
            (Some(Phase::Started), _) => Some(self.started(now, effects)),
            (Some(_), Some(spec)) if self.is_look_wanted(spec) => Some(self.starting(now, spec, effects)),
            (Some(_), Some(_)) => {
                // Another worker may have started what a pending write makes durable.
                if self.own.status.is_free(now) {
                    self.give_up_look();
                }
                None
            }
            (Some(_) | None, None) => None,
            (None, Some(spec)) => self.begin_look(now, spec),
        };
        let words = self.drifting.stand.as_ref().map(Stand::to_string).unwrap_or_default();
        if let Some(look) = self.own.status.draft.drift.as_mut().and_then(|drift| drift.look.as_mut()) {
            look.message = words;
        }
    }

    /// Whether the question of a look is asked now, that of the one under way if there is one: what was applied is what is wanted.
    fn is_look_asked(&self, spec: &Spec) -> bool {
        let draft = &self.own.status.draft;
        let (Some(run), Some(head)) = (&draft.run, &draft.head) else { return false };
        let is_of = |look: &Run| look.attempt.seq == run.attempt.seq && look.terms.settings == spec.settings();
        spec.drift.is_some()
            // What the program before ours ran may never have ended.
            && run.phase == Phase::Succeeded
            && run.attempt.seq != RunSeq::default()
            && draft.look().is_none_or(is_of)
            // Where commits never rest, a look under way gives way only to one that is to be run.
            && (!self.is_news(spec, head) || (draft.look().is_some() && self.may_be_unchanged(spec, head)))
    }

    /// Whether a look may begin, or is to go on if nothing of it runs.
    fn is_look_wanted(&self, spec: &Spec) -> bool {
        let is_rerun = || self.own.status.draft.run.as_ref().is_some_and(|run| self.is_wanted_again(run));
        let is_there = !self.own.status.pruned && !self.own.object.deleting;
        self.is_look_asked(spec) && spec.suspended.is_none() && is_there && !is_rerun()
    }

    /// Whether the look under way is not wanted any more.
    pub(super) fn is_look_unwanted(&self) -> bool {
        self.own.spec().is_some_and(|spec| spec.suspended.is_none() && !self.is_look_wanted(spec))
    }

    /// Begins a look, when that is due.
    fn begin_look(&mut self, now: Timestamp, spec: &Spec) -> Option<Stand> {
        let Some(looks) = spec.drift else {
            self.forget_drift();
            return None;
        };
        if let Some(until) = self.applied_until(now, looks).filter(|_| self.has_drifted(spec)) {
            self.own.wake_at(self.at_wall(now, until));
        }
        if !self.is_look_wanted(spec) || self.is_run_for_drift_next(now, spec) {
            return None;
        }
        let wall_ms = self.own.wall_ms(now);
        let due = self.due_ms(wall_ms, spec, looks);
        self.drifting.due_ms = Some(due);
        if due > wall_ms {
            self.own.wake_at(self.at_wall(now, due));
            return None;
        }
        if let Some(stand) = self.behind() {
            return Some(stand);
        }
        let known = self.jobs.known()?;
        // How the one before ended is durable first.
        if !self.own.status.is_free(now) || self.own.status.durable.look().is_some() {
            return Some(Stand::Making(None));
        }
        let (seq, revision) = self.own.status.draft.run.as_ref().map(|run| (run.attempt.seq, run.revision.clone()))?;
        let of_looks =
            known.values().map(|job| job.attempt).filter(|one| (one.seq, one.action) == (seq, Action::Drift));
        let drift = self.own.status.draft.drift.get_or_insert_default();
        let number = of_looks.map(|one| one.number).chain([drift.looks]).max().unwrap_or_default().saturating_add(1);
        let attempt = Attempt { seq, number, action: Action::Drift };
        drift.looks = number;
        drift.look = Some(Run {
            attempt,
            revision,
            terms: Terms { work: spec.work(), settings: spec.settings() },
            phase: Phase::Starting,
            job: Some(JobRef { name: job::name(&self.own.object.id, &self.own.object.uid, attempt), uid: None }),
            plan: None,
            approval: None,
            failing: Failing::default(),
            started_ms: Some(wall_ms),
            ended_ms: None,
            skipped: Vec::new(),
            message: String::new(),
        });
        (self.drifting.due_ms, self.drifting.hurried) = (None, false);
        Some(Stand::Making(None))
    }

    /// When the next look is due, by the wall clock.
    fn due_ms(&self, wall_ms: i64, spec: &Spec, looks: DriftLooks) -> i64 {
        let (draft, uid, since) = (&self.own.status.draft, &self.own.object.uid, self.drifting.since_ms);
        let (every, drift) = (of(looks.every), draft.drift.as_ref());
        // What lies ahead was written by another clock: this one was set back since.
        let is_past = |at: &i64| *at <= wall_ms;
        if let Some(missed) = drift.and_then(|drift| drift.missed.as_ref()).filter(|missed| is_past(&missed.at_ms)) {
            if self.drifting.hurried || missed.settings != spec.settings() {
                // A person wants it, or has changed what could not be looked at.
                return missed.at_ms;
            }
            let rest = doubled(MISSED_BASE, looks.every.min(MISSED_CAP), missed.count).max(1);
            let due = missed.at_ms.saturating_add(rest);
            let shift = i64::try_from(jitter(uid, missed.count) % u64::try_from(rest).unwrap_or(1));
            return if due > since { due } else { since.saturating_add(shift.unwrap_or_default()) };
        }
        let seen = drift.and_then(|drift| drift.seen.as_ref()).map(|seen| seen.at_ms);
        let applied = draft.run.as_ref().and_then(|run| run.ended_ms);
        let known = [seen, applied].into_iter().flatten().filter(is_past).max();
        let from = known.map_or(since, |at| since.max(at.saturating_add(every / 2)));
        slot_after(uid, every, from)
    }

    /// Nothing looks for drift any more: what was found says nothing.
    pub(super) fn forget_drift(&mut self) {
        if let Some(drift) = &mut self.own.status.draft.drift {
            (drift.seen, drift.missed, drift.late) = (None, None, None);
        }
    }

    /// The look is no more. What of it may run is not left: its Job has ended, or nothing of it was started.
    pub(super) fn give_up_look(&mut self) {
        if let Some(drift) = &mut self.own.status.draft.drift {
            drift.look = None;
        }
    }

    /// Makes room for the next run: a look of which nothing runs is given up, and one that may run ends first. Of what was applied
    /// before, nothing was seen that says anything of the next.
    pub(super) fn make_room(&mut self) -> Option<Stand> {
        let look = self.own.status.draft.look();
        if let Some(name) = look.filter(|look| look.phase == Phase::Started).and_then(|look| look.job.as_ref()) {
            return Some(Stand::Looks(name.name.clone()));
        }
        self.give_up_look();
        self.forget_drift();
        None
    }

    /// A look has ended, and an apply would change this; nothing, if there is no plan.
    pub(super) fn looked(&mut self, now: Timestamp, plan: Option<Plan>) {
        let at_ms = self.own.wall_ms(now);
        let spec = self.own.spec().filter(|spec| self.is_look_asked(spec) && !self.is_leaving()).cloned();
        let Some(drift) = &mut self.own.status.draft.drift else { return };
        let Some(look) = drift.look.take() else { return };
        // Its question is not asked any more, so its answer is none.
        let Some(spec) = spec else { return };
        let settings = look.terms.settings.clone();
        let seq = look.attempt.seq;
        let known = drift.seen.take().filter(|known| known.seq == seq);
        // What was found under other settings may be gone, too.
        let before = known.as_ref().and_then(|known| known.plan.clone());
        let known = known.filter(|known| known.settings == settings);
        let fingerprint = known.as_ref().map(|known| known.plan.as_ref().map(|plan| &plan.fingerprint));
        let is_known = fingerprint == Some(plan.as_ref().map(|plan| &plan.fingerprint));
        let since_ms = known.filter(|_| is_known).map_or(at_ms, |known| known.since_ms);
        (drift.missed, drift.late) = (None, None);
        drift.seen = Some(Seen { seq, settings, plan: plan.clone(), since_ms, at_ms });
        match plan {
            Some(_) if is_known => {}
            Some(plan) => {
                let message = format!("{}{}", self.words_of_drift(&look, &plan), self.remedy(now, &spec));
                self.announce_of(now, Kind::RepoDrifted, &Run { plan: Some(plan), ..look.clone() }, &message);
            }
            None if before.is_some() => {
                let message = format!("an apply of {} would change nothing any more", look.revision.short());
                self.announce_of(now, Kind::RepoInSync, &look, &message);
            }
            None => {}
        }
    }

    /// What an apply would change, with the command that shows it.
    fn words_of_drift(&self, look: &Run, plan: &Plan) -> String {
        let Plan { counts, job, .. } = plan;
        let changes = counts.map_or_else(|| "something".to_owned(), |counts: Counts| counts.to_string());
        let log = job::logs(&self.own.object.id.namespace, job, job::StepKind::Plan);
        format!("{} was applied, and an apply of it would change {changes} by now: {log}", look.revision.short())
    }

    /// What follows on drift, to follow other words.
    fn remedy(&self, now: Timestamp, spec: &Spec) -> String {
        let Some(looks) = spec.drift.filter(|looks| looks.then == OnDrift::Apply) else { return String::new() };
        if spec.suspended.is_some() {
            return "; nothing is run for it while it is suspended, and a look comes first after that".to_owned();
        }
        if let Some(until) = self.applied_until(now, looks) {
            let began = time(until.saturating_sub(of(looks.every)));
            return format!("; a run for drift began at {began}: not once more before {}", time(until));
        }
        let draft = &self.own.status.draft;
        let unchanged = draft.unchanged_head(&spec.source).map(|record| record.revision.short());
        let what = unchanged.map_or_else(|| "it".to_owned(), |head| format!("{head}, which changes nothing of it,"));
        format!("; {what} is run once more, as approval and gates say")
    }

    /// A look could not be made. `log`: the command that shows why.
    pub(super) fn missed_look(&mut self, now: Timestamp, why: &str, log: Option<String>) {
        let at_ms = self.own.wall_ms(now);
        let is_asked = self.own.spec().is_some_and(|spec| self.is_look_asked(spec));
        let Some(drift) = &mut self.own.status.draft.drift else { return };
        let Some(look) = drift.look.take().filter(|_| is_asked) else { return };
        let settings = look.terms.settings;
        let before = drift.missed.as_ref().filter(|missed| missed.settings == settings);
        let count = before.map_or(0, |missed| missed.count).saturating_add(1);
        let job = look.job.map(|job| job.name).unwrap_or_default();
        let message = format!("{why}{}", log.map(|log| format!("; {log}")).unwrap_or_default());
        drift.missed = Some(Missed { count, at_ms, settings, job, message });
    }

    /// What the looks at what is applied now have found, with the settings of now.
    fn seen(&self, spec: &Spec) -> Option<&Seen> {
        let draft = &self.own.status.draft;
        let run = draft.run.as_ref().filter(|run| run.phase == Phase::Succeeded)?;
        let seen = draft.drift.as_ref()?.seen.as_ref()?;
        (seen.seq == run.attempt.seq && seen.settings == spec.settings()).then_some(seen)
    }

    fn has_drifted(&self, spec: &Spec) -> bool {
        self.seen(spec).is_some_and(|seen| seen.plan.is_some())
    }

    /// Until when nothing is run for drift, because something was: what comes back at once is not run over and over.
    fn applied_until(&self, now: Timestamp, looks: DriftLooks) -> Option<i64> {
        let wall_ms = self.own.wall_ms(now);
        let applied = self.own.status.draft.drift.as_ref()?.applied_ms.filter(|at| *at <= wall_ms)?;
        Some(applied.saturating_add(of(looks.every))).filter(|until| *until > wall_ms)
    }

    /// Whether the commit is run once more now, because something has drifted.
    fn is_to_apply_drift(&self, now: Timestamp, spec: &Spec) -> bool {
        let looks = spec.drift.filter(|looks| looks.then == OnDrift::Apply && spec.suspended.is_none());
        looks.is_some_and(|looks| {
            self.has_drifted(spec) && self.applied_until(now, looks).is_none() && self.is_fresh(now, spec, looks)
        })
    }

    /// Whether what was found last may still be so: a look after that would be due already, or a person stopped it meanwhile.
    fn is_fresh(&self, now: Timestamp, spec: &Spec, looks: DriftLooks) -> bool {
        let every = of(looks.every);
        let oldest = self.own.wall_ms(now).saturating_sub(every.saturating_add(every / SHIFT_PART));
        let oldest = self.drifting.stopped_until_ms.map_or(oldest, |until| until.max(oldest));
        self.seen(spec).is_some_and(|seen| seen.at_ms >= oldest)
    }

    /// The same, and its gates are open.
    pub(super) fn is_run_for_drift_next(&self, now: Timestamp, spec: &Spec) -> bool {
        self.is_to_apply_drift(now, spec) && self.drifting.closed.is_empty()
    }

    /// Whether it begins: what was found is durable, so it is counted and published whatever follows.
    pub(super) fn begins_for_drift(&self, now: Timestamp, spec: &Spec) -> bool {
        let seen = |drift: &Option<Drift>| drift.as_ref().and_then(|drift| drift.seen.clone());
        let (draft, durable) = (&self.own.status.draft.drift, &self.own.status.durable.drift);
        self.is_run_for_drift_next(now, spec) && seen(draft) == seen(durable)
    }

    /// Judges the gates of a run for drift before it begins. Where a person is asked, the run waits for that, and they say what becomes
    /// of it.
    fn judge_gates_of_drift(&mut self, now: Timestamp, spec: Option<&Spec>, effects: &mut Vec<Effect>) {
        let is_wanted = |spec: &&Spec| spec.approval == Approving::Auto && self.is_to_apply_drift(now, spec);
        let draft = &self.own.status.draft;
        let next = draft.run.clone().zip(draft.head.as_ref()).map(|(run, head)| Run {
            attempt: Attempt { seq: draft.seq.next(), number: 0, action: Action::Apply },
            revision: head.revision.clone(),
            approval: None,
            ..run
        });
        if let Some((spec, next)) = spec.filter(is_wanted).zip(next) {
            self.drifting.closed = self.closed_gates(now, spec, &next, effects);
        } else if !std::mem::take(&mut self.drifting.closed).is_empty() {
            self.keeper.restart();
        }
    }

    /// What could not be looked at is looked at now.
    pub(super) fn hurry_look(&mut self) {
        self.drifting.hurried = self.own.status.draft.drift.as_ref().is_some_and(|drift| drift.missed.is_some());
    }

    /// A run was begun for drift, which this look has found: it is shown until something is applied.
    pub(super) fn applies_drift(&mut self, now: Timestamp, seen: Option<Seen>) {
        let wall_ms = self.own.wall_ms(now);
        let drift = self.own.status.draft.drift.get_or_insert_default();
        (drift.applied_ms, drift.seen) = (Some(wall_ms), seen);
    }

    /// What has drifted, and is about to be put back by the newest run.
    fn awaited(&self, spec: &Spec) -> Option<&Seen> {
        let draft = &self.own.status.draft;
        let is_before =
            |run: &&Run| run.is_open() && (run.phase, run.attempt.action) != (Phase::Started, Action::Apply);
        let run = draft.run.as_ref().filter(is_before)?;
        let seen = draft.drift.as_ref()?.seen.as_ref()?;
        (seen.seq < run.attempt.seq && seen.settings == spec.settings()).then_some(seen)
    }

    /// Why no look can be made.
    fn look_trouble(&self) -> Option<String> {
        let stand = self.drifting.stand.as_ref().filter(|stand| stand.is_trouble()).map(Stand::to_string);
        let settings = self.own.spec().map(Spec::settings);
        let missed = self.own.status.draft.drift.as_ref().and_then(|drift| drift.missed.as_ref());
        let missed = missed.filter(|missed| settings.as_ref() == Some(&missed.settings));
        stand.or_else(|| missed.map(|missed| missed.message.clone()))
    }

    /// Tells, once, that no look was made for longer than the spec allows a wait to last.
    pub(super) fn watch_the_looks(&mut self, now: Timestamp) {
        // What a person stopped is not late.
        let is_looking = |spec: &&Spec| spec.drift.is_some() && spec.suspended.is_none() && !self.is_leaving();
        let bound = self.own.spec().filter(is_looking).map(|spec| spec.stalled_after);
        let late = self.own.status.draft.drift.as_ref().and_then(|drift| drift.late);
        let (Some(bound), Some(why)) = (bound, self.look_trouble()) else {
            self.own.status.draft.drift.iter_mut().for_each(|drift| drift.late = None);
            return;
        };
        let (late, minutes) = self.lasting(now, late, bound);
        self.own.status.draft.drift.get_or_insert_default().late = Some(late);
        if let Some(minutes) = minutes {
            let message = format!("nothing could be looked at for drift for {minutes} minutes: {why}");
            self.announce(now, Kind::RunStalled, &format!("drift/{}", late.since_ms), &message);
        }
    }

    /// Whether what was applied is what is there.
    pub(super) fn drifted(&self) -> Option<Condition> {
        let spec = self.own.spec().filter(|spec| spec.drift.is_some())?;
        let (run, awaited) = (self.own.status.draft.run.as_ref(), self.awaited(spec));
        let run = run.filter(|run| run.phase == Phase::Succeeded || awaited.is_some());
        let Some(revision) = run.map(|run| run.revision.short().to_owned()) else {
            let words = "it is looked at when a commit is applied";
            return Some(condition(ConditionKind::Drifted, None, "NotLooked", words));
        };
        let trouble = self.look_trouble();
        let next = match (self.own.status.draft.look(), self.drifting.due_ms) {
            (Some(_), _) => "; a look is under way".to_owned(),
            (None, Some(due)) => format!("; the next look is due at {}", time(due)),
            (None, None) => String::new(),
        };
        let (holds, reason, words) = match (self.seen(spec).or(awaited), trouble) {
            (Some(Seen { plan: Some(plan), since_ms, .. }), trouble) => {
                let changes = plan.counts.map_or_else(|| "something".to_owned(), |counts| counts.to_string());
                let log = job::logs(&self.own.object.id.namespace, &plan.job, job::StepKind::Plan);
                let trouble =
                    trouble.map(|why| format!("; since then no look could be made: {why}")).unwrap_or_default();
                let closed = match self.drifting.closed.join("; ") {
                    closed if closed.is_empty() => closed,
                    closed => format!("; no run begins for it yet: {closed}"),
                };
                let since = time(*since_ms);
                let words = format!("an apply of {revision} would change {changes}, since {since}{trouble}{closed}");
                (Some(true), "Drifted", format!("{words}{next}; {log}"))
            }
            (Some(Seen { plan: None, at_ms, .. }), None) => (
                Some(false),
                "InSync",
                format!("an apply of {revision} would change nothing, at {}{next}", time(*at_ms)),
            ),
            (Some(Seen { plan: None, .. }) | None, Some(why)) => {
                (None, "LookFailed", format!("no look could be made: {why}{next}"))
            }
            (None, None) => (None, "NotLooked", format!("{revision} was not looked at since it was applied{next}")),
        };
        Some(condition(ConditionKind::Drifted, holds, reason, &words))
    }
}

impl Drift {
    /// Whether a notice sends people to the log of this Job.
    pub(super) fn names(&self, job: &str) -> bool {
        let seen = self.seen.as_ref().and_then(|seen| seen.plan.as_ref()).map(|plan| plan.job.as_str());
        let missed = self.missed.as_ref().map(|missed| missed.job.as_str());
        seen == Some(job) || missed == Some(job)
    }
}
