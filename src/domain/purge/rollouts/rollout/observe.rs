//! The effect of a sight of the workload on its record: a new rollout, progress of the present one, or nothing.
//!
//! ```text
//! followed ── switched off ──▶ off, under a number of its own ── switched on ──▶ a rollout, under the next number
//! ```
//!
//! A workload that its owner has taken out by `enabled: "false"` (decision 53) is left out by the other members of a group while it
//! says that it is off. So being off has a number, as being absent has: no vote is cast for a number at or below it any more, what was
//! voted for with such a number and without us is dead, and a vector without us never has the number of one with us. A record that a
//! group asks for is made where there is none yet, so that there is one to publish. Alone no member waits: the clock of a rollout in
//! flight stands still, and it goes on where it was.

use std::time::Duration;

use crate::records::record::{CHANGE_WORDS_BYTES_MAX, Change, Edge, Failure, Outcome, Phase, Record, Times};
use crate::rollouts::rollout::clock::{ELAPSED_STORED_EVERY, Suspicion};
use crate::rollouts::rollout::close::End;
use crate::rollouts::rollout::news::{baseline, faults, is_another, is_tried_again, news, returns};
use crate::rollouts::rollout::regress::FORGOTTEN;
use crate::rollouts::rollout::served::Served;
use crate::rollouts::rollout::write::OwnRecord;
use crate::rollouts::rollout::{Arrival, Effect, Rollout, ballot, request, words};
use crate::workloads::readiness;
use crate::workloads::workload::Workload;
use kernel::machine::Timestamp;
use kernel::names::image::Version;
use kernel::text;
use kinds::reported::{GivenUp, Standing, Wait};
use notices::notice::Kind;

/// The meaning of a sight for a rollout in flight.
pub(super) enum Course {
    Waits,
    /// A fresh look is needed to judge it.
    Looks,
    /// All its pods are new and available, or were, and nothing that counts is missing.
    Stands,
    /// All its pods were new and available; now something is missing.
    Stood,
    /// It will not complete.
    Ends(End),
}

impl Rollout {
    /// The workload does not exist any more. Purges already voted for go on; then the record goes.
    pub(super) fn depart(&mut self, now: Timestamp) -> Option<End> {
        self.stop_clock(now);
        let record = self.record.draft.as_ref()?;
        if record.seq > record.closed && record.is_in_flight() {
            return Some(End::plainly(Kind::RolloutFailed, Outcome::Deleted));
        }
        if record.all_kept().next().is_none() && record.untold.is_empty() {
            // Its numbers are not used again even if the workload returns before the record is gone (decision 2).
            self.record.floor.seq = self.record.floor.seq.max(record.seq);
            self.record.draft = None;
        }
        None
    }

    /// Informs the other members, once, that the cluster does not have the workload: a fresh look and the ledger say
    /// so.
    pub(super) fn absent(&mut self) -> Option<Effect> {
        let gone = self.record.draft.is_none() && self.record.is_settled();
        if !gone || self.identity.is_alone() {
            return None;
        }
        self.ballot.absent(Record::above(self.record.floor.seq).0)
    }

    /// The workload has no record yet.
    pub(super) fn first_sight(&mut self, now: Timestamp, workload: &Workload, version: &Version) {
        if workload.deleting {
            return;
        }
        if self.sighting.arrival == Arrival::Open {
            self.sighting.arrival = Arrival::of(workload, false);
        }
        let message = match self.sighting.arrival {
            Arrival::Open | Arrival::Baseline => None,
            Arrival::UnderWay => Some("first seen in the middle of a rollout"),
            Arrival::New if std::mem::take(&mut self.record.forgotten) => Some(FORGOTTEN),
            Arrival::New => Some("a new workload was seen"),
        };
        let mut record = baseline(workload, version, self.record.floor.seq.max(self.record.spent));
        if message.is_some() {
            record.change = Change::Changed;
            record.phase = Phase::Rolling;
            record.edge = Edge::Unknown;
            record.closed = self.record.floor.seq.max(self.record.spent);
            record.times = Times::begun(self.identity.time_kept(now));
            self.stopwatch.start(now);
        }
        record.group_name = ballot::wanted_name(workload, &self.policy);
        record.raise(record.seq, &mut self.record.nonces);
        self.record.draft = Some(record);
        if let Some(message) = message {
            self.announce(now, Kind::RolloutStarted, message.to_owned());
        }
    }

    /// The record always holds what runs, even if only the names changed, or the choice of what counts.
    pub(super) fn keep_current(&mut self, workload: &Workload, version: &Version) {
        let digests = self.policy.version.same_digest_is_same;
        let Some(draft) = &mut self.record.draft else { return };
        draft.off = false;
        (draft.chosen, draft.volumes) = (workload.tuning.counts.containers.is_some(), true);
        draft.group_version.clone_from(&workload.tuning.group_version);
        if draft.uid != workload.uid {
            // A Rollout has taken the place of a Deployment, or the other way round.
            draft.uid.clone_from(&workload.uid);
            draft.generation = workload.generation;
        }
        draft.stand_in = workload.stand_in();
        draft.withdrawn.clone_from(&workload.withdrawn);
        if draft.version != *version {
            let settled = draft.settled.take().map(|settled| settled.limited_to(version));
            draft.settled = settled.filter(|settled| !settled.same_content(version, digests));
            draft.version = version.clone();
        }
    }

    /// The news of a sight. Traffic that moved here asks for a purge as an owner does.
    pub(super) fn news_of(&self, record: &Record, workload: &Workload) -> Option<Change> {
        match news(record, workload, &self.policy) {
            None | Some(Change::Recovered) if self.sighting.moved(record).is_some() => Some(Change::Requested),
            news => news,
        }
    }

    /// A purge requested while a rollout of the same version is in flight becomes that rollout's purge.
    pub(super) fn join(&mut self, workload: &Workload) {
        let Self { record: OwnRecord { draft: Some(draft), .. }, sighting, policy, .. } = self else { return };
        request::take(draft, workload, sighting.moved(draft).cloned(), policy);
    }

    /// A new rollout takes the place of the present one, whatever it was doing (GA-2).
    pub(super) fn begin(&mut self, now: Timestamp, workload: &Workload, version: &Version, change: Change) {
        let Some(previous) = self.record.draft.clone() else { return };
        let (digests, moved) = (self.policy.version.same_digest_is_same, self.sighting.moved(&previous).cloned());
        let by_traffic = moved.as_ref().map(|(moved, _)| moved.words.clone());
        let OwnRecord { draft: Some(draft), nonces, spent, floor, .. } = &mut self.record else { return };
        let settled = previous.settled().filter(|settled| !settled.same_content(version, digests)).cloned();
        let replaced = text::cut(&words::change(previous.before(), &previous.version), CHANGE_WORDS_BYTES_MAX);
        for vote in draft.votes.iter_mut().filter(|vote| vote.seq == previous.seq) {
            vote.change_words.clone_from(&replaced);
        }
        draft.uid.clone_from(&workload.uid);
        draft.stand_in = workload.stand_in();
        draft.remark.clear();
        draft.raise(previous.seq.max(*spent).max(floor.lost).next(), nonces);
        draft.version = version.clone();
        draft.withdrawn.clone_from(&workload.withdrawn);
        draft.generation = workload.generation;
        draft.change = change;
        draft.phase = Phase::Rolling;
        draft.elapsed_ms = 0;
        draft.times = Times::begun(self.identity.time_kept(now));
        draft.stalled = false;
        // In words, it replaces what ran before it, as people saw; if that is this version, what the edge has.
        let ran = Some(&previous.version).filter(|ran| *ran != version && settled.as_ref() != Some(*ran));
        draft.from = ran.cloned();
        draft.settled = settled;
        request::take(draft, workload, moved, &self.policy);
        if std::mem::take(&mut draft.off) {
            // We did not follow what completed meanwhile, so the edge may have it.
            draft.edge = draft.edge.max(Edge::Moved);
        }
        self.stopwatch.start(now);
        self.site.forget();
        self.served = Served::default();
        if workload.stable.is_some() {
            // It is over before it was seen.
            self.served.note_blindness();
        }
        let message = match change {
            Change::Changed if is_another(&previous, workload) => "the workload was re-created".to_owned(),
            Change::Changed if workload.withdrawn.is_some() => {
                "its update was aborted, and the edge may have what was withdrawn".to_owned()
            }
            Change::Changed if previous.version == *version && is_tried_again(&previous, workload) => {
                "it is tried again after an abort".to_owned()
            }
            Change::Changed if previous.off => "it was switched on again".to_owned(),
            Change::Changed | Change::Baseline => "a new version was seen".to_owned(),
            Change::Recovered => "it completed after it had been recorded as failed".to_owned(),
            Change::Requested => by_traffic.unwrap_or_else(|| "a purge was requested by annotation".to_owned()),
        };
        self.announce(now, Kind::RolloutStarted, message);
    }

    /// How a rollout ends that another one replaces before it was voted for.
    pub(super) fn replaced_by(&self, next: &Version) -> Option<End> {
        let previous = self.record.draft.as_ref().filter(|previous| previous.seq > previous.closed)?;
        let same = |version: &Version| version.same_content(next, self.policy.version.same_digest_is_same);
        let returns = previous.settled().is_some_and(same) && !same(&previous.version);
        let outcome = match previous.phase {
            Phase::Rolling if returns => Outcome::RolledBack,
            Phase::Rolling => Outcome::Superseded,
            Phase::Complete if previous.awaits_vote() && !previous.is_passed() => Outcome::Superseded,
            Phase::Complete | Phase::Failed(_) | Phase::Withdrawn => return None,
        };
        Some(End::plainly(Kind::RolloutSuperseded, outcome))
    }

    /// Supervises a rollout in flight: complete, failed, or waiting with a reason. `fresh` means that the sight is a look made just
    /// now.
    pub(super) fn supervise(&mut self, now: Timestamp, workload: &Workload, fresh: bool) -> Course {
        let stood = self.record.draft.as_ref().is_some_and(|draft| self.barrier.has_stood(draft.seq));
        if let Standing::GivenUp(why) = workload.standing(self.policy.zero_is_complete) {
            self.barrier.leave();
            return self.suspect(now, workload, why, fresh);
        }
        let Some(wait) = self.misses(now, workload) else { return Course::Stands };
        self.stopwatch.suspicion = None;
        // Once all was as wanted, a writer that is faster than the controller costs a rollout none of its time.
        let counts = wait.counts() && !(stood && matches!(wait, Wait::NotObserved { .. }));
        if let Wait::Held(_) = wait {
            // A partition may hold pods for weeks, in which each of them is away for moments that must not add up.
            self.record.draft.iter_mut().for_each(|draft| draft.elapsed_ms = 0);
            self.stopwatch.clear();
        } else if counts != self.stopwatch.runs() {
            self.stopwatch.keep(now, counts, &mut self.record.draft);
        }
        if self.stopwatch.runs() && self.elapsed(now) >= self.timeout() {
            // Declared on a fresh look only: a watch that was cut may have hidden the completion.
            return if fresh { self.fail(now, workload, Failure::TimedOut) } else { Course::Looks };
        }
        if self.stopwatch.is_store_due(now) {
            self.stopwatch.keep(now, true, &mut self.record.draft);
        }
        match stood {
            // A sight may be older than the one before it, and no later one need come. So the last word is a fresh look.
            true if !fresh && self.barrier.gives_up(now, &self.policy) => Course::Looks,
            true => Course::Stood,
            false => Course::Waits,
        }
    }

    /// Its controller says that it has given up, for the first time or again.
    fn suspect(&mut self, now: Timestamp, workload: &Workload, why: GivenUp, fresh: bool) -> Course {
        let failure = match &why {
            GivenUp::DeadlineExceeded { .. } => Failure::ProgressDeadlineExceeded,
            GivenUp::Aborted(_) => Failure::Aborted,
            GivenUp::Degraded(_) => Failure::Degraded,
            GivenUp::Declared(_) => Failure::Declared,
        };
        match &self.stopwatch.suspicion {
            None => {
                self.stopwatch.suspicion = Some(Suspicion { since: now, why });
                Course::Waits
            }
            Some(suspicion) if suspicion.is_repeated(&why) => self.fail(now, workload, failure),
            Some(suspicion) if now < suspicion.is_confirmed_at() => Course::Waits,
            Some(_) if fresh => self.fail(now, workload, failure),
            Some(_) => Course::Looks,
        }
    }

    fn fail(&mut self, now: Timestamp, workload: &Workload, failure: Failure) -> Course {
        self.stopwatch.stop(now, &mut self.record.draft);
        let elapsed = text::duration(self.elapsed(now));
        let since = match failure {
            // Kubernetes' clock may have begun long before ours: the rollout was stuck when we came.
            Failure::ProgressDeadlineExceeded | Failure::Aborted | Failure::Degraded | Failure::Declared => {
                format!(", {elapsed} after allclear first saw this rollout")
            }
            Failure::TimedOut => format!(" after {elapsed}"),
        };
        let waited_for = match workload.standing(self.policy.zero_is_complete) {
            Standing::Waiting(wait) => readiness::words(&wait, self.served.pods()),
            Standing::GivenUp(GivenUp::Aborted(why) | GivenUp::Degraded(why) | GivenUp::Declared(why)) => why,
            Standing::GivenUp(GivenUp::DeadlineExceeded { .. }) | Standing::Complete => self.pods_in_words(workload),
        };
        self.leave_to_the_edge();
        self.record.draft.iter_mut().for_each(|draft| {
            draft.phase = Phase::Failed(failure);
            words::short(&waited_for).clone_into(&mut draft.remark);
        });
        let returns = self.record.draft.as_ref().is_some_and(|draft| returns(draft, workload, &self.policy));
        let then = if returns { words::PURGED_AFTER_ABORT } else { "nothing is purged" };
        Course::Ends(End {
            kind: Kind::RolloutFailed,
            outcome: Outcome::Failed(failure),
            message: format!("{failure}{since}: {waited_for}; {then}"),
            why: waited_for,
        })
    }

    fn pods_in_words(&self, workload: &Workload) -> String {
        readiness::words(&workload.reported().pods_wanting(), self.served.pods())
    }

    pub(super) fn note_faults(&mut self, now: Timestamp, workload: &Workload) {
        let faults: std::collections::BTreeSet<String> = faults(workload, &self.policy).collect();
        let Some(draft) = &mut self.record.draft else { return };
        if draft.conditions == faults {
            return;
        }
        if !self.sighting.notes_faults(now) {
            // If an owner changes them all the time, notices and writes are still no more frequent.
            return;
        }
        let fresh: Vec<String> = faults.difference(&draft.conditions).cloned().collect();
        draft.conditions = faults;
        if !fresh.is_empty() {
            self.announce(now, Kind::WorkloadFaulty, fresh.join("; "));
        }
    }

    /// When a rollout in flight next needs attention without any event.
    pub(super) fn rolling_deadlines(&self) -> impl Iterator<Item = Timestamp> {
        // While a look is under way or is paused after a failure, its answer or its own deadline comes first; while a
        // report of the controller that it has given up is to be confirmed, nothing else fails the rollout.
        let confirm = self.stopwatch.suspicion.as_ref().map(Suspicion::is_confirmed_at);
        let stored = self.record.draft.as_ref().map_or(Duration::ZERO, Record::elapsed);
        let rolling = self.record.draft.as_ref().is_some_and(|draft| draft.phase == Phase::Rolling);
        let since = self.stopwatch.since().filter(|_| rolling && self.stopwatch.suspicion.is_none());
        let timeout = since.map(|since| since.after(self.timeout().saturating_sub(stored)));
        let keep = since.map(|since| since.after(ELAPSED_STORED_EVERY));
        let seen = self.sighting.call().is_idle() && self.workload().is_some();
        [timeout, keep, confirm].into_iter().flatten().filter(move |_| seen)
    }

    /// How a rollout ends that is switched off before it was voted for.
    pub(super) fn ends_by_switch(&self) -> Option<End> {
        let draft = self.record.draft.as_ref().filter(|draft| !self.identity.is_alone() && !is_off(draft))?;
        let in_flight = draft.seq > draft.closed && draft.is_in_flight();
        in_flight.then(|| End::plainly(Kind::PurgeSkipped, Outcome::SwitchedOff))
    }

    /// Its owner has switched it off.
    pub(super) fn switch_off(&mut self, workload: &Workload) {
        let (alone, spent) =
            (self.identity.is_alone(), self.record.floor.seq.max(self.record.spent).max(self.record.floor.lost));
        let Some(draft) = &mut self.record.draft else {
            if !alone && !workload.deleting {
                let version = workload.version.clone().unwrap_or_default();
                let group_name = ballot::wanted_name(workload, &self.policy);
                self.record.draft = Some(Record { off: true, group_name, ..baseline(workload, &version, spent) });
            }
            return;
        };
        if alone || is_off(draft) {
            draft.off = true;
            return;
        }
        draft.seq = draft.seq.max(spent).next();
        draft.off = true;
        (draft.change, draft.phase) = (Change::Baseline, Phase::Complete);
        draft.closed = draft.seq;
        (draft.elapsed_ms, draft.stalled) = (0, false);
        draft.times = Times::default();
        self.stopwatch.clear();
        self.site.forget();
        self.served = Served::default();
    }

    /// Its owner has switched it on again, and its version cannot be read: the group waits for it from now on.
    pub(super) fn switch_on_unread(&mut self, now: Timestamp, workload: &Workload) {
        let off = self.record.draft.as_ref().filter(|draft| !self.identity.is_alone() && is_off(draft));
        if let Some(version) = off.map(|draft| draft.version.clone()) {
            self.begin(now, workload, &version, Change::Changed);
        }
    }
}

/// Whether the record has the number of being off.
fn is_off(record: &Record) -> bool {
    record.off && record.change == Change::Baseline && record.closed >= record.seq
}
