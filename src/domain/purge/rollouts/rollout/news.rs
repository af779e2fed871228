//! The difference between a sight and the record: the question behind every rollout.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::bounds::policy::{OnRollback, Policy};
use crate::records::record::{Change, Edge, Failure, Phase, Record};
use crate::rollouts::rollout::Arrival;
use crate::rollouts::rollout::ballot::is_called;
use crate::rollouts::rollout::served::{is_edge_elsewhere, is_proved_by_counts};
use crate::workloads::workload::{FAULT_BYTES_MAX, Workload};
use kernel::id::Seq;
use kernel::names::image::{Beside, Version, difference};
use kernel::text::cut;
use kinds::reported::{GivenUp, Says, Standing};

/// Bytes of all conditions of a record: some seven faults in words. 10,000 workloads with as many take 160 KB of a shard.
pub const CONDITIONS_BYTES_MAX: usize = 1024;

/// Bytes reserved for the count of further faults.
const MORE_BYTES: usize = 40;

/// The reaction that a sight needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attention {
    Idle,
    /// A first listing found it at rest: a baseline record, and no more (decision 1).
    Baseline(Box<Record>),
    Rollout,
}

/// Whether a workload needs a rollout machine: the question asked of every sight of every workload, so it is cheap. `listed`:
/// all others of its scope are on record.
pub fn attention(record: Option<&Record>, workload: &Workload, listed: bool, policy: &Policy) -> Attention {
    let Some(record) = record else {
        let Ok(version) = workload.version.as_ref().map_err(|_| ()) else {
            // There is no record and there can be none; see `unusable`.
            return Attention::Idle;
        };
        return match Arrival::of(workload, listed) {
            _ if workload.tuning.disabled || workload.deleting => Attention::Idle,
            Arrival::Baseline if workload.tuning.faults.is_empty() && workload.tuning.group_name.is_none() => {
                Attention::Baseline(Box::new(baseline(workload, version, Seq::default())))
            }
            Arrival::Open | Arrival::Baseline | Arrival::UnderWay | Arrival::New => Attention::Rollout,
        };
    };
    let workload = &*as_it_runs(record, workload, policy);
    let quiet = if workload.tuning.disabled {
        record.off && is_called(record, workload, policy)
    } else {
        let usable = workload.version.is_ok();
        let unserved = !usable || !serves_after_all(record, workload, policy);
        unserved && is_exact(record, workload, policy) && news(record, workload, policy).is_none()
    };
    let quiet = quiet && !returns(record, workload, policy);
    if quiet && !record.is_open() && faults(workload, policy).eq(record.conditions.iter().cloned()) {
        Attention::Idle
    } else {
        Attention::Rollout
    }
}

/// Why a workload without a record gets none, if its owner has to do something about it. There is no record to say it.
pub fn unusable(record: Option<&Record>, workload: &Workload, policy: &Policy) -> Option<String> {
    let wanted = record.is_none() && !workload.tuning.disabled && !workload.deleting;
    (wanted && workload.version.is_err()).then(|| faults(workload, policy).collect::<Vec<_>>().join("; "))
}

/// The record of a workload at first sight: nothing has changed yet.
pub fn baseline(workload: &Workload, version: &Version, floor: Seq) -> Record {
    let (_, seq) = Record::above(floor);
    Record {
        uid: workload.uid.clone(),
        stand_in: workload.stand_in(),
        version: version.clone(),
        group_version: workload.tuning.group_version.clone(),
        generation: workload.generation,
        requested_at: workload.tuning.asks.requested_at.clone(),
        chosen: workload.tuning.counts.containers.is_some(),
        volumes: true,
        ..Record::first(seq)
    }
}

/// The change of the workload compared with its record, if any. The watcher, `explain` and `status` ask this.
pub fn news(record: &Record, workload: &Workload, policy: &Policy) -> Option<Change> {
    let workload = &*as_it_runs(record, workload, policy);
    let version = workload.version.as_ref().ok().filter(|_| !workload.tuning.disabled)?;
    // One in flight when it was switched off goes on.
    let was_off = record.off && !record.is_in_flight();
    if is_another(record, workload)
        || was_off
        || !is_same(record, workload, version, policy)
        || is_tried_again(record, workload)
    {
        Some(Change::Changed)
    } else if is_requested(record, workload) {
        Some(Change::Requested)
    } else {
        recovers(record, workload, policy).then_some(Change::Recovered)
    }
}

/// A sight as it is compared with a record that knows what runs while an update is aborted: of the pods before. Any other is as it was.
pub fn as_it_runs<'a>(record: &Record, workload: &'a Workload, policy: &Policy) -> Cow<'a, Workload> {
    let same = |withdrawn: &&Version| {
        workload
            .version
            .as_ref()
            .is_ok_and(|version| version.same_content(withdrawn, policy.version.same_digest_is_same))
    };
    let withdrawn = record.withdrawn.as_ref().filter(same);
    let returned = withdrawn.and_then(|_| workload.returned(record.version.clone()));
    returned.map_or(Cow::Borrowed(workload), Cow::Owned)
}

/// Whether an update that had failed by an abort goes on, or has gone on: a rollout of its own, though its spec is as it was.
pub(super) fn is_tried_again(record: &Record, workload: &Workload) -> bool {
    let is_aborted = matches!(workload.says, Says::GivenUp(GivenUp::Aborted(_)));
    record.phase == Phase::Failed(Failure::Aborted) && workload.withdrawn.is_none() && !is_aborted
}

/// Whether an aborted update is to be followed by a purge of what runs: the edge may have something else.
pub(super) fn returns(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    matches!(record.phase, Phase::Failed(_))
        && record.withdrawn.is_none()
        && workload.stable.is_some()
        && !workload.tuning.disabled
        && (record.edge != Edge::Settled || policy.on_rollback == OnRollback::Purge)
}

/// Whether it is another object than that of the record, which was deleted. A Rollout that takes the place of a Deployment is the same
/// workload, and so is a Deployment that takes the place of a Rollout.
pub(super) fn is_another(record: &Record, workload: &Workload) -> bool {
    record.uid != workload.uid && record.stand_in == workload.stand_in()
}

/// The view of a workload whose news is not on record yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The news, for a table.
    pub brief: String,
    pub state: String,
    pub next: String,
}

/// The view to show instead of the record's; `None` where nothing is new.
pub fn preview(record: &Record, workload: &Workload, policy: &Policy) -> Option<Preview> {
    let news = in_words(record, workload, policy)?;
    Some(Preview {
        brief: format!("{news}; not recorded yet"),
        state: format!("{news}; allclear has not recorded this yet"),
        next: format!("allclear records it at once, if it runs and watches namespace {}", workload.id.namespace),
    })
}

fn in_words(record: &Record, workload: &Workload, policy: &Policy) -> Option<String> {
    let words = |version: &Version| match news(record, workload, policy)? {
        Change::Changed if is_another(record, workload) => {
            Some("the workload was deleted and created again".to_owned())
        }
        Change::Changed if record.version == *version && is_tried_again(record, workload) => {
            Some("it is tried again".to_owned())
        }
        Change::Changed if is_same(record, workload, version, policy) => Some("it was switched on again".to_owned()),
        Change::Changed | Change::Baseline => Some(difference(&record.version, version)),
        Change::Requested => Some("a purge was requested by annotation".to_owned()),
        Change::Recovered => Some("it completed after it had been recorded as failed".to_owned()),
    };
    workload.version.as_ref().ok().and_then(words)
}

/// Whether the workload runs what its record says (decision 12). What only one of them says is not compared: if its owner has chosen
/// other containers since, or something else that counts beside the images, or if an older program wrote the record, nothing that
/// runs has changed by that. A pod template cannot have changed under the same generation, whatever a new API server adds to it.
fn is_same(record: &Record, workload: &Workload, version: &Version, policy: &Policy) -> bool {
    if *version == record.version {
        return true;
    }
    let (mut before, mut now) = (record.version.compared_with(version), version.compared_with(&record.version));
    if matches!(now.beside(), Some(Beside::Template(_)))
        && (&record.uid, record.generation) == (&workload.uid, workload.generation)
    {
        (before, now) = (before.with(None), now.with(None));
    }
    if !record.volumes {
        (before, now) = (before.without_volumes(), now.without_volumes());
    }
    if record.chosen || workload.tuning.counts.containers.is_some() {
        (before, now) = (before.limited_to(version), now.limited_to(&record.version));
    }
    now.same_content(&before, policy.version.same_digest_is_same)
}

/// Whether `requested-at` has another value than the one that was last acted on.
pub(super) fn is_requested(record: &Record, workload: &Workload) -> bool {
    workload.tuning.asks.requested_at.is_some() && workload.tuning.asks.requested_at != record.requested_at
}

/// Whether the record names exactly the images that run, not only images with the same content, and what their owner calls them.
fn is_exact(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    let chosen = workload.tuning.counts.containers.is_some();
    let called = record.group_version == workload.tuning.group_version && is_called(record, workload, policy);
    let is_its_object = record.uid == workload.uid && record.stand_in == workload.stand_in();
    let is_named = |version: &Version| {
        record.version == *version
            && record.withdrawn == workload.withdrawn
            && record.chosen == chosen
            && called
            && is_its_object
    };
    workload.version.as_ref().map_or(true, is_named)
}

/// A rollout recorded as failed that completed after all.
fn recovers(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    matches!(record.phase, Phase::Failed(_)) && workload.standing(policy.zero_is_complete) == Standing::Complete
}

/// A rollout recorded as failed, with a pod of it ready now: the edge may have it.
fn serves_after_all(record: &Record, workload: &Workload, policy: &Policy) -> bool {
    policy.on_rollback == OnRollback::IfServed
        && matches!(record.phase, Phase::Failed(_))
        && is_edge_elsewhere(record)
        && is_proved_by_counts(workload)
}

/// The faults of the workload, sorted and bounded as in a record: each is cut to [`FAULT_BYTES_MAX`], the first that fit into
/// [`CONDITIONS_BYTES_MAX`] are named, and the rest is counted. This form is compared with the record and written into it.
pub fn faults(workload: &Workload, policy: &Policy) -> impl Iterator<Item = String> + use<> {
    let unreadable = workload.version.as_ref().err().map(|why| cut(&format!("image: {why}"), FAULT_BYTES_MAX));
    let (mut named, mut bytes, mut more) = (BTreeSet::new(), 0, workload.tuning.more_faults);
    let refused = policy.tenants.group_name(workload).err().map(|why| why.to_string());
    for fault in unreadable.iter().chain(&refused).chain(&workload.tuning.faults) {
        if bytes + fault.len() > CONDITIONS_BYTES_MAX - MORE_BYTES {
            more += 1;
        } else if named.insert(cut(fault, FAULT_BYTES_MAX)) {
            bytes += fault.len();
        }
    }
    if more > 0 {
        // Sorted behind whatever begins with a letter.
        named.insert(format!("… and {more} more"));
    }
    named.into_iter()
}
