//! What a sight of the workload makes of its record: a new rollout, progress of the present one, or nothing.

use std::time::Duration;

use crate::domain::id::{Seq, group_rollout_id};
use crate::domain::image::Version;
use crate::domain::machine::Timestamp;
use crate::domain::notice::{Kind, Notice};
use crate::domain::policy::{OnRollback, Policy};
use crate::domain::readiness::{self, Standing, rollout_under_way, standing};
use crate::domain::record::{Change, Closed, Edge, Failure, Outcome, Phase, Record};
use crate::domain::rollout::clock::ELAPSED_STORED_EVERY;
use crate::domain::rollout::served::{Served, is_edge_elsewhere, is_proved_by_counts, move_edge};
use crate::domain::rollout::{Effect, Rollout, Sight, Suspicion};
use crate::domain::workload::Workload;
use crate::domain::{id::Vector, rollout::words};

/// A missed progress deadline must be seen twice, this far apart: a stale report can survive the first status write of a
/// new generation, and the controller corrects it within one sync.
const DEADLINE_CONFIRMED_AFTER: Duration = Duration::from_secs(2);

/// What a sight asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Nothing.
    Idle,
    /// It was never seen before and nothing is under way: a baseline record, and no more (decision 1).
    Baseline(Box<Record>),
    /// A rollout machine.
    Rollout,
}

/// Whether a workload needs a rollout machine: the question asked of every sight of every workload, so it is cheap.
pub fn attention(record: Option<&Record>, workload: &Workload, policy: &Policy) -> Attention {
    let Some(record) = record else {
        return match &workload.version {
            _ if workload.tuning.disabled || workload.deleting => Attention::Idle,
            Ok(version) if !rollout_under_way(workload) && workload.tuning.faults.is_empty() => {
                Attention::Baseline(Box::new(baseline(workload, version, Seq::default())))
            }
            Ok(_) => Attention::Rollout,
            // Nothing was recorded and nothing can be; see `unusable`.
            Err(_) => Attention::Idle,
        };
    };
    let quiet = workload.tuning.disabled
        || match &workload.version {
            Ok(version) => {
                let changed = news(record, workload, version, policy).is_some();
                !changed && !recovers(record, workload, policy) && !serves_after_all(record, workload, policy)
            }
            Err(_) => true,
        };
    if quiet && !record.is_open() && faults(workload).eq(record.conditions.iter().cloned()) {
        Attention::Idle
    } else {
        Attention::Rollout
    }
}

/// Why a workload without a record gets none, if its owner has to do something about it: no record can say so.
pub fn unusable(record: Option<&Record>, workload: &Workload) -> Option<String> {
    let wanted = record.is_none() && !workload.tuning.disabled && !workload.deleting;
    (wanted && workload.version.is_err()).then(|| faults(workload).collect::<Vec<_>>().join("; "))
}

/// The record of a workload at first sight: nothing has changed yet.
pub fn baseline(workload: &Workload, version: &Version, floor: Seq) -> Record {
    let (_, seq) = Record::above(floor);
    Record {
        revision: 1,
        uid: workload.uid.clone(),
        version: version.clone(),
        generation: workload.generation,
        phase: Phase::Complete,
        requested_at: workload.tuning.requested_at.clone(),
        ..Record::absent(seq)
    }
}

/// Why the workload is not what its record says, if it is not.
pub(super) fn news(record: &Record, workload: &Workload, version: &Version, policy: &Policy) -> Option<Change> {
    let same = version.same_content(&record.version, policy.same_digest_is_same);
    if record.uid != workload.uid || !same {
        Some(Change::Changed)
    } else if workload.tuning.requested_at.is_some() && workload.tuning.requested_at != record.requested_at {
        Some(Change::Requested)
    } else {
        None
    }
}

/// A rollout recorded as failed that completed after all.
fn recovers(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    matches!(record.phase, Phase::Failed(_)) && standing(workload, policy.zero_is_complete) == Standing::Complete
}

/// A rollout recorded as failed of which a pod is ready now: the edge may have it.
fn serves_after_all(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    policy.on_rollback == OnRollback::IfServed
        && matches!(record.phase, Phase::Failed(_))
        && is_edge_elsewhere(record)
        && is_proved_by_counts(workload)
}

/// What cannot be used about the workload, sorted.
pub fn faults(workload: &Workload) -> impl Iterator<Item = String> {
    let unreadable = workload.version.as_ref().err().map(|why| format!("image: {why}"));
    let faults: std::collections::BTreeSet<String> = workload.tuning.faults.iter().cloned().chain(unreadable).collect();
    faults.into_iter()
}

impl Rollout {
    /// Moves the draft by what is known of the workload. `fresh` means the sight is a look made just now.
    pub(super) fn observe(&mut self, now: Timestamp, fresh: bool) -> Option<Effect> {
        match self.sight.clone() {
            Sight::Unknown => None,
            Sight::Missing => self.ask_look(now),
            Sight::Gone => {
                self.depart(now);
                self.absent()
            }
            Sight::Seen(workload) => {
                self.note_faults(now, &workload);
                match &workload.version {
                    Ok(version) if !workload.tuning.disabled => self.follow(now, &workload, version, fresh),
                    // Nothing can be said of it, so no time is counted against it.
                    Ok(_) | Err(_) => {
                        self.stop_clock(now);
                        None
                    }
                }
            }
        }
    }

    fn stop_clock(&mut self, now: Timestamp) {
        self.suspicion = None;
        self.leave_barrier();
        if self.running_since.is_some() {
            self.keep_time(now, false);
        }
    }

    fn ask_look(&mut self, now: Timestamp) -> Option<Effect> {
        self.look.is_due(now).then(|| {
            self.look.asked();
            Effect::Look
        })
    }

    /// The workload does not exist any more. Purges already voted for go on; then the record goes.
    fn depart(&mut self, now: Timestamp) {
        self.stop_clock(now);
        let Some(record) = self.draft.clone() else { return };
        if record.seq > record.closed && (record.phase == Phase::Rolling || record.awaits_vote()) {
            self.announce(now, Kind::RolloutFailed, Outcome::Deleted.to_string());
            self.close_current(Outcome::Deleted, String::new());
        } else if record.votes.is_empty() && record.untold.is_empty() {
            // Its numbers are not used again even if the workload returns before the record is gone (decision 2).
            self.floor = self.floor.max(record.seq);
            self.draft = None;
        }
    }

    /// Tells the other members, once, that the cluster does not have the workload: a fresh look and the ledger say so.
    fn absent(&mut self) -> Option<Effect> {
        let gone = self.draft.is_none() && self.durable.is_none() && self.storing.is_none();
        (gone && !self.is_alone() && !std::mem::replace(&mut self.told_absent, true))
            .then_some(Effect::Absent(Record::above(self.floor).0))
    }

    fn follow(&mut self, now: Timestamp, workload: &Workload, version: &Version, fresh: bool) -> Option<Effect> {
        if self.draft.is_none() && self.storing != Some(None) {
            // It came back before its record was removed, so what the record knows of the edge still holds.
            self.draft = self.storing.clone().flatten().or_else(|| self.durable.clone());
        }
        let Some(record) = &self.draft else {
            self.first_sight(now, workload, version);
            return None;
        };
        let in_flight = record.phase == Phase::Rolling || record.awaits_vote();
        let change = news(record, workload, version, &self.policy);
        if change == Some(Change::Requested) && in_flight {
            self.join(workload);
        } else if let Some(change) = change {
            self.begin(now, workload, version, change);
        } else if recovers(record, workload, &self.policy) {
            self.begin(now, workload, version, Change::Recovered);
        }
        self.note_counts(workload);
        match self.draft.as_ref().map(|record| &record.phase) {
            Some(Phase::Rolling) => self.supervise(now, workload, fresh),
            Some(Phase::Complete | Phase::Failed(_) | Phase::Withdrawn | Phase::Absent) | None => None,
        }
    }

    fn first_sight(&mut self, now: Timestamp, workload: &Workload, version: &Version) {
        if workload.deleting {
            return;
        }
        let mut record = baseline(workload, version, self.floor);
        let under_way = rollout_under_way(workload);
        if under_way {
            record.change = Change::Changed;
            record.phase = Phase::Rolling;
            record.edge = Edge::Unknown;
            record.closed = self.floor;
            self.running_since = Some(now);
        }
        self.draft = Some(record);
        if under_way {
            self.announce(now, Kind::RolloutStarted, "first seen in the middle of a rollout".to_owned());
        }
    }

    /// A purge requested while a rollout of the same version is in flight is that rollout's purge, come what may.
    fn join(&mut self, workload: &Workload) {
        if let Some(draft) = &mut self.draft {
            draft.change = Change::Requested;
            draft.requested_at.clone_from(&workload.tuning.requested_at);
        }
    }

    /// A new rollout takes the place of the present one, whatever it was doing (GA-2).
    fn begin(&mut self, now: Timestamp, workload: &Workload, version: &Version, change: Change) {
        self.leave_to_the_edge();
        let Some(previous) = self.draft.clone() else { return };
        self.conclude(now, &previous, version);
        let Some(draft) = &mut self.draft else { return };
        let settled = previous.settled().cloned();
        draft.uid.clone_from(&workload.uid);
        draft.seq = previous.seq.next();
        draft.version = version.clone();
        draft.generation = workload.generation;
        draft.change = change;
        draft.phase = Phase::Rolling;
        draft.elapsed_ms = 0;
        draft.stalled = false;
        draft.settled = settled.filter(|settled| settled != version);
        draft.requested_at.clone_from(&workload.tuning.requested_at);
        self.running_since = Some(now);
        self.suspicion = None;
        self.site = None;
        self.pods = None;
        self.served = Served::default();
        let message = match change {
            Change::Changed if workload.uid != previous.uid => "the workload was re-created".to_owned(),
            Change::Changed | Change::Baseline => "a new version was seen".to_owned(),
            Change::Recovered => "it completed after it had been recorded as failed".to_owned(),
            Change::Requested => "a purge was requested by annotation".to_owned(),
        };
        self.announce(now, Kind::RolloutStarted, message);
    }

    /// Closes a rollout that another one replaces before it was voted for.
    fn conclude(&mut self, now: Timestamp, previous: &Record, next: &Version) {
        if previous.seq <= previous.closed {
            return;
        }
        let returns = previous.settled() == Some(next) && previous.version != *next;
        let outcome = match previous.phase {
            Phase::Rolling if returns => Outcome::RolledBack,
            Phase::Rolling => Outcome::Superseded,
            Phase::Complete if previous.awaits_vote() => Outcome::Superseded,
            Phase::Complete | Phase::Failed(_) | Phase::Withdrawn | Phase::Absent => return,
        };
        self.announce(now, Kind::RolloutFailed, outcome.to_string());
        self.close_current(outcome, String::new());
    }

    /// Supervises a rollout in flight: complete, failed, or waiting with a reason.
    fn supervise(&mut self, now: Timestamp, workload: &Workload, fresh: bool) -> Option<Effect> {
        match standing(workload, self.policy.zero_is_complete) {
            Standing::Complete => return self.hold(now, workload),
            Standing::DeadlineExceeded { last_update } => {
                self.leave_barrier();
                return self.suspect(now, workload, last_update, fresh);
            }
            Standing::Waiting(wait) => {
                self.leave_barrier();
                self.suspicion = None;
                if wait.counts() != self.running_since.is_some() {
                    self.keep_time(now, wait.counts());
                }
            }
        }
        if self.running_since.is_some() && self.elapsed(now) >= self.timeout() {
            // Declared on a fresh look only: a watch that was cut may have hidden the completion.
            if !fresh {
                return self.ask_look(now);
            }
            self.fail(now, workload, Failure::TimedOut);
        } else if self.running_since.is_some_and(|since| now.since(since) >= ELAPSED_STORED_EVERY) {
            self.keep_time(now, true);
        }
        None
    }

    /// All that was to be waited for is over; `remark` says what was not.
    pub(super) fn complete(&mut self, now: Timestamp, remark: &str) {
        self.stop_clock(now);
        let elapsed = self.elapsed(now);
        // A life that began just now has not watched it take any time.
        let after = if elapsed.as_secs() == 0 { String::new() } else { format!(" after {}", words::duration(elapsed)) };
        let pods = self.workload().map_or(0, |workload| workload.replicas.updated);
        let Some(draft) = &mut self.draft else { return };
        draft.phase = Phase::Complete;
        move_edge(draft);
        self.announce(now, Kind::RolloutCompleted, format!("all {pods} pods available{after}{remark}"));
    }

    fn suspect(&mut self, now: Timestamp, workload: &Workload, last_update: String, fresh: bool) -> Option<Effect> {
        match &self.suspicion {
            None => self.suspicion = Some(Suspicion { since: now, last_update }),
            Some(suspicion) if suspicion.last_update != last_update => {
                self.fail(now, workload, Failure::ProgressDeadlineExceeded);
            }
            Some(suspicion) if now.since(suspicion.since) >= DEADLINE_CONFIRMED_AFTER => {
                if !fresh {
                    return self.ask_look(now);
                }
                self.fail(now, workload, Failure::ProgressDeadlineExceeded);
            }
            Some(_) => {}
        }
        None
    }

    fn fail(&mut self, now: Timestamp, workload: &Workload, failure: Failure) {
        self.keep_time(now, false);
        let elapsed = words::duration(self.elapsed(now));
        let waited_for = match standing(workload, self.policy.zero_is_complete) {
            Standing::Waiting(wait) => readiness::words(&wait, self.pods.as_ref()),
            Standing::DeadlineExceeded { .. } | Standing::Complete => self.pods_in_words(workload),
        };
        self.leave_to_the_edge();
        let Some(draft) = &mut self.draft else { return };
        draft.phase = Phase::Failed(failure);
        self.suspicion = None;
        self.announce(now, Kind::RolloutFailed, format!("{failure} after {elapsed}: {waited_for}; nothing is purged"));
        self.close_current(Outcome::Failed(failure), waited_for);
    }

    fn pods_in_words(&self, workload: &Workload) -> String {
        readiness::words(&readiness::pods_wanting(workload), self.pods.as_ref())
    }

    fn note_faults(&mut self, now: Timestamp, workload: &Workload) {
        let Some(draft) = &mut self.draft else { return };
        let faults: std::collections::BTreeSet<String> = faults(workload).collect();
        if draft.conditions == faults {
            return;
        }
        let fresh: Vec<String> = faults.difference(&draft.conditions).cloned().collect();
        draft.conditions = faults;
        for fault in fresh {
            self.announce(now, Kind::WorkloadFaulty, fault);
        }
    }

    /// Remembers how the present rollout ended.
    pub(super) fn close_current(&mut self, outcome: Outcome, why: String) {
        if let Some(draft) = &mut self.draft {
            let change = words::change(draft.settled(), &draft.version);
            draft.close(Closed { seq: draft.seq, change, outcome, why, purges: Vec::new(), more: 0 });
        }
    }

    /// Writes a notice about the present rollout into the draft, to be told once that is durable.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, message: String) {
        let Some(draft) = &mut self.draft else { return };
        let identity = &self.identity;
        let vector = Vector::of_one(identity.member.clone(), identity.origin.clone(), draft.seq);
        let rollout = group_rollout_id(&identity.group, &identity.workload, &vector);
        // A fault may go and come again within one rollout: each time is a notice of its own.
        let faulty = kind == Kind::WorkloadFaulty;
        let detail = if faulty { format!("{}/{message}", draft.revision) } else { String::new() };
        let id = Notice::id_of(&rollout, kind, &detail);
        if draft.untold.iter().any(|notice| notice.id == id) {
            return;
        }
        draft.untold.push(Notice {
            id,
            kind,
            at_ms: identity.epoch_ms.saturating_add_unsigned(now.as_millis()),
            workload: identity.workload.clone(),
            seq: draft.seq,
            change: words::change(draft.settled(), &draft.version),
            rollout,
            message,
            hosts: Vec::new(),
            purges: Vec::new(),
            cut: false,
            late: false,
        });
    }

    /// When a rollout in flight next needs attention without any event.
    pub(super) fn rolling_deadlines(&self) -> impl Iterator<Item = Timestamp> {
        // While a look is under way or rests after a failure, its answer or its own deadline comes first; while a missed
        // progress deadline is to be confirmed, nothing else fails the rollout.
        let confirm = self.suspicion.as_ref().map(|suspicion| suspicion.since.after(DEADLINE_CONFIRMED_AFTER));
        let stored = self.draft.as_ref().map_or(Duration::ZERO, Record::elapsed);
        let rolling = self.draft.as_ref().is_some_and(|draft| draft.phase == Phase::Rolling);
        let since = self.running_since.filter(|_| rolling && self.suspicion.is_none());
        let timeout = since.map(|since| since.after(self.timeout().saturating_sub(stored)));
        let keep = since.map(|since| since.after(ELAPSED_STORED_EVERY));
        let seen = self.look.is_idle() && self.workload().is_some();
        [timeout, keep, confirm].into_iter().flatten().filter(move |_| seen)
    }
}
