//! A rollout in words: what it waits for and what comes next. The status page, `explain` and the logs say the same thing,
//! because they all ask here.

mod purging;

use std::time::Duration;

use serde::Serialize;

use crate::agreement::group::{self, Fate, Known};
use crate::agreement::tally;
use crate::bounds::policy::Policy;
use crate::records::record::{Closed, Outcome, Phase, Published, Record, Vote};
use crate::rollouts::rollout::Rollout;
use crate::rollouts::rollout::clock::Clock;
use crate::rollouts::rollout::news::returns;
use crate::rollouts::rollout::sight::Sight;
use crate::rollouts::versions::Versions;
use crate::workloads::readiness::{self, Pods};
use crate::workloads::serving::OldPods;
use crate::workloads::workload::Workload;
use kernel::answer::PortError;
use kernel::call::Call;
use kernel::id::{InvalidationId, Member, Seq, WorkloadId};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::image::{Version, brief, difference};
use kernel::text;
use kinds::reported::Standing;

pub(super) use purging::retried;
use purging::{complete, older, purge};

/// Most items that a sentence names: distributions, hosts. Most sites have fewer; the sentence counts the rest.
const ITEMS_NAMED_MAX: usize = 10;

/// How much of a reason is kept: two lines of a terminal. The log has all of it.
const WHY_CHARS_MAX: usize = 200;

/// A rollout at a glance, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub workload: WorkloadId,
    pub seq: u64,
    /// `rolling`, `complete`, `failed` or `withdrawn`; `unknown` while there is no record to say so.
    pub phase: &'static str,
    /// The versions in words.
    pub change: String,
    pub versions: Versions,
    /// Its wait, or its outcome.
    pub state: String,
    pub next: String,
    /// How it stands by itself, without other members; `None` if it waits only for them. This is what the others see of
    /// it (decision 36).
    #[serde(skip)]
    pub own: Option<String>,
    /// Where it is on its way.
    pub stage: Stage,
    /// The state of each member of the group, this one included. Empty where only one record is read.
    pub members: Vec<MemberSummary>,
    /// The purges of its open votes.
    pub purges: Vec<PurgeSummary>,
    /// The rollouts before it.
    #[serde(flatten)]
    pub past: Past,
    /// The unusable parts of the workload.
    pub conditions: Vec<String>,
}

/// The part of a notice about the rollouts before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Past {
    /// How each is whose purge is not over yet, with its number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<String>,
    /// How the last ones ended, newest first.
    pub history: Vec<String>,
}

/// The stations of a rollout's way, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Pods are being replaced.
    Rollout,
    /// Complete here; the members agree on the purge.
    Agreement,
    /// Invalidations are on their way.
    Purge,
    /// Notices are being handed to the webhooks.
    Webhooks,
    /// Nothing is on its way.
    Idle,
}

impl Stage {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::Agreement => "agreement",
            Self::Purge => "purge",
            Self::Webhooks => "webhooks",
            Self::Idle => "idle",
        }
    }
}

/// One member of the group, as far as it is known here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberSummary {
    pub member: String,
    /// `rolling`, `complete`, `failed`, `withdrawn` or `unknown`.
    pub phase: &'static str,
    /// Its version in words; empty while it is unknown.
    pub version: String,
}

/// One purge of an open vote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurgeSummary {
    pub reference: String,
    pub distribution: String,
    /// CloudFront's id, once there is one.
    pub invalidation: Option<String>,
    /// How far it is: `invalidation I2X of E1 in progress`.
    pub state: String,
}

/// A workload that was switched off at rest, and what comes next.
const OFF: (&str, &str) = (
    "switched off by its annotation allclear.dev/enabled: it is not followed, and other clusters of its group do not wait for it",
    "when it is switched on again, what it runs then is purged once it is complete",
);

/// A rollout that is complete by its counts.
pub(super) const NEW_AND_AVAILABLE: &str = "every pod is new and available";

/// What follows an abort where the edge may have what was withdrawn.
pub(super) const PURGED_AFTER_ABORT: &str =
    "the edge may have it, so what runs is purged once the pods before serve alone";

/// What comes after the barrier, and after what it waits for then.
pub(super) const AFTER_THE_BARRIER: &str = "purges when no old pod serves any more";
pub(super) const AFTER_SETTLING: &str = "purges when that is over, if still no old pod serves";

impl Summary {
    /// Puts a record and what is known of its workload into words. The clock is the record's: the time that had passed when it was
    /// last written, and the bound.
    pub fn new(
        id: &WorkloadId,
        record: &Record,
        workload: Option<&Workload>,
        pods: Option<&Pods>,
        (elapsed, timeout): (Duration, Duration),
        policy: &Policy,
    ) -> Self {
        Self::at(id, record, workload, pods, Clock { elapsed, timeout, runs_here: false }, policy)
    }

    fn at(
        id: &WorkloadId,
        record: &Record,
        workload: Option<&Workload>,
        pods: Option<&Pods>,
        clock: Clock,
        policy: &Policy,
    ) -> Self {
        let (mut state, next) = state(record, workload, pods, clock, policy);
        if let Some(withdrawn) = &record.withdrawn {
            state = format!("{state}; the update to {} was aborted", brief(withdrawn));
        }
        Self {
            workload: id.clone(),
            seq: record.seq.0,
            phase: record.phase.name(),
            change: change(record.before(), &record.version),
            versions: Versions::of(record, pods),
            own: Some(state.clone()),
            state,
            next,
            stage: stage(record),
            members: Vec::new(),
            purges: record.all_kept().flat_map(|vote| &vote.purges.listed).map(purge).collect(),
            past: Past { older: older(record), history: record.history.iter().rev().map(closed).collect() },
            conditions: record.conditions.iter().cloned().collect(),
        }
    }

    /// The same of a workload that is not followed now, and why: what its record says is not about now.
    #[must_use]
    pub fn not_followed(self, why: String) -> Self {
        let versions = Versions { stale: None, pod: None, ..self.versions };
        Self { state: why, next: "nothing is purged for it".to_owned(), conditions: Vec::new(), versions, ..self }
    }

    /// The same of a rollout at the barrier, by one look at its old pods.
    #[must_use]
    pub fn beside(mut self, old: Option<&Result<OldPods, PortError>>, policy: &Policy) -> Self {
        if old.is_some() && self.state == from_outside(None, policy).0 {
            let (state, next) = from_outside(old, policy);
            (self.state, self.next) = (state, next.to_owned());
            self.own = Some(self.state.clone());
        }
        self
    }

    /// For a workload with an unknown record: only the reason.
    pub fn unknown(id: &WorkloadId, state: String) -> Self {
        Self {
            workload: id.clone(),
            seq: 0,
            phase: "unknown",
            change: String::new(),
            versions: Versions::default(),
            state,
            next: "goes on from its record".to_owned(),
            own: None,
            stage: Stage::Idle,
            members: Vec::new(),
            purges: Vec::new(),
            past: Past::default(),
            conditions: Vec::new(),
        }
    }
}

impl Rollout {
    /// This rollout in words.
    pub fn summary(&self, now: Timestamp) -> Option<Summary> {
        // While its removal is being written, the record is the one that is still there.
        let record = self.record.draft.as_ref().or(self.record.durable.as_ref())?;
        let view = self.outlook();
        let clock = self.clock(now);
        let id = &self.identity.workload;
        let mut summary = Summary::at(id, record, self.workload(), self.served.pods(), clock, &self.policy);
        summary.members = view.members.iter().map(member).collect();
        match self.sighting.sight {
            Sight::Missing if record.votes.is_empty() => {
                "the watch says that the workload is gone; to be confirmed by a look".clone_into(&mut summary.state);
            }
            Sight::Gone if self.record.draft.is_none() => {
                "the workload was deleted; its record goes too".clone_into(&mut summary.state);
            }
            Sight::Seen(_) if record.phase == Phase::Rolling => {
                if let Some((words, next)) = self.words_at_the_barrier(now) {
                    next.clone_into(&mut summary.next);
                    summary.own = Some(words.clone());
                    summary.state = words;
                }
            }
            Sight::Seen(_)
                if record.phase == Phase::Complete && (record.awaits_vote() || self.candidate().is_some()) =>
            {
                if let Some(waiting) = self.name_in_words(record).or_else(|| self.waits_for_others()) {
                    summary.state = waiting;
                    summary.next =
                        group::cure(&view).unwrap_or_else(|| "votes when all have completed one version".to_owned());
                    summary.own = None;
                } else if let Some(hindrance) = self.hindrance(now) {
                    summary.state.clone_from(&hindrance);
                    summary.own = Some(hindrance);
                }
            }
            Sight::Unknown | Sight::Missing | Sight::Gone | Sight::Seen(_) => {}
        }
        let newest = |vote: &&Vote| vote.closed.is_none() && vote.seq == record.seq;
        for vote in record.votes.iter().filter(newest) {
            if let Fate::Open(missing) = group::fate(&view, &vote.vector) {
                let said = |member: &Member| group::missing_vote(&view, &vote.vector, member);
                let missing: Vec<String> = missing.iter().map(|m| format!("{m}, which {}", said(m))).collect();
                summary.state = format!("waiting for {}", missing.join("; "));
                summary.next = group::cure(&view).unwrap_or_else(|| "purges when they have voted".to_owned());
                summary.own = None;
            }
        }
        let blocks = tally::blocks(&view, &self.identity.member, &self.policy.group);
        if let Some(blocks) = blocks.filter(|_| record.phase == Phase::Complete) {
            (summary.state, summary.next) = (blocks, tally::UNBLOCKED_BY.to_owned());
        }
        for trouble in self.troubles(now) {
            summary.state.push_str("; ");
            summary.state.push_str(&trouble);
            let own = summary.own.take().map_or_else(|| trouble.clone(), |own| format!("{own}; {trouble}"));
            summary.own = Some(own);
        }
        Some(summary)
    }

    /// The members a complete rollout waits for, unless it has something to mend itself first.
    fn waits_for_others(&self) -> Option<String> {
        self.workload().filter(|workload| unfollowed(workload).is_none()).and_then(|_| self.waiting_for())
    }

    /// Why a complete rollout is not voted for yet.
    fn hindrance(&self, now: Timestamp) -> Option<String> {
        let workload = self.workload()?;
        if let Some(why) = unfollowed(workload) {
            return Some(format!("complete, and not purged: {why}"));
        }
        if let Some(lost) = self.loss_in_words(now) {
            return Some(lost);
        }
        if let Some(words) = self.ballot.caches.words(now) {
            return Some(format!("complete; {words}"));
        }
        let calls = [("cannot find its hosts", self.site.call()), ("cannot vote for it yet", &self.ballot.recheck)];
        if let Some(trouble) = calls.into_iter().find_map(|(what, call)| trouble(what, call, now)) {
            return Some(format!("complete; {trouble}"));
        }
        match (workload.standing(self.policy.zero_is_complete), self.misses(now, workload)) {
            (Standing::GivenUp(why), _) => Some(format!("was complete; now {why}")),
            (_, Some(wait)) => Some(format!("was complete; now {wait}")),
            (_, None) => self.record.call().reason().map(|_| "complete".to_owned()),
        }
    }

    /// The failing calls that hold this rollout up, at any stage.
    fn troubles(&self, now: Timestamp) -> impl Iterator<Item = String> {
        let unseen = self.barrier.cannot_see().map(|why| format!("cannot see which version its pods are of: {why}"));
        let calls =
            [("cannot write the record", self.record.call()), ("cannot look at the workload", self.sighting.call())];
        let matching = self.purges.matching().map(|(_, call)| ("cannot find the distributions", call));
        let telling = self.telling.calls().find(|call| call.reason().is_some()).map(|call| ("cannot tell of it", call));
        calls
            .into_iter()
            .chain(matching)
            .chain(telling)
            .filter_map(move |(what, call)| trouble(what, call, now))
            .chain(unseen)
    }
}

fn trouble(what: &str, call: &Call, now: Timestamp) -> Option<String> {
    let again = match call.deadline().map(|until| until.since(now)) {
        Some(rest) if !rest.is_zero() => format!("tried again in {}", text::duration(rest)),
        Some(_) | None => "being tried again".to_owned(),
    };
    call.reason().map(|reason| format!("{what}: {reason}; {again}"))
}

fn state(
    record: &Record,
    workload: Option<&Workload>,
    pods: Option<&Pods>,
    clock: Clock,
    policy: &Policy,
) -> (String, String) {
    match &record.phase {
        Phase::Rolling => {
            let next = "purges when every pod is of the new version and available".to_owned();
            if let Some(why) = workload.and_then(unfollowed) {
                return (format!("{why}; {}", clock.stopped()), next);
            }
            let waits = match workload.map(|workload| workload.standing(policy.zero_is_complete)) {
                None => "the workload has not been seen yet".to_owned(),
                // The clock stands still.
                Some(Standing::Complete) => {
                    let (waits, next) = from_outside(None, policy);
                    return (waits, next.to_owned());
                }
                Some(Standing::GivenUp(why)) => format!("{why}; being confirmed by a second look"),
                Some(Standing::Waiting(wait)) if !wait.counts() => {
                    return (format!("{}; {}", readiness::words(&wait, pods), clock.stopped()), next);
                }
                Some(Standing::Waiting(wait)) => readiness::words(&wait, pods),
            };
            (format!("{waits}, {}", clock.left()), next)
        }
        Phase::Failed(failure) if workload.is_some_and(|workload| returns(record, workload, policy)) => {
            (format!("failed: {failure}{}", then(&record.remark)), PURGED_AFTER_ABORT.to_owned())
        }
        Phase::Failed(failure) => (
            format!("failed: {failure}; nothing was purged{}", then(&record.remark)),
            "purges if it completes after all, or with the next version".to_owned(),
        ),
        Phase::Withdrawn => ("withdrawn; nothing was purged".to_owned(), "waits for the next version".to_owned()),
        // Also after the annotation went: `begin` follows at once.
        Phase::Complete if record.off => (OFF.0.to_owned(), OFF.1.to_owned()),
        Phase::Complete => complete(record),
    }
}

/// No old pod serves, and it waits on.
pub(super) fn settling(policy: &Policy) -> String {
    format!("no old pod serves any more; settling for {}", text::duration(policy.barrier.settle))
}

/// A rollout at the barrier in words, and what comes next, for who does not know how long it has waited: by one look at its old pods,
/// if there was one.
pub(super) fn from_outside(old: Option<&Result<OldPods, PortError>>, policy: &Policy) -> (String, &'static str) {
    let waits = match old {
        None => "waiting until no old pod serves any more".to_owned(),
        Some(Ok(old)) if old.is_none() => {
            return (format!("{NEW_AND_AVAILABLE}; {}", settling(policy)), AFTER_SETTLING);
        }
        Some(Ok(old)) => old.to_string(),
        Some(Err(why)) => format!("cannot see whether old pods still serve: {why}"),
    };
    (
        format!("{NEW_AND_AVAILABLE}; {waits}, {} at most", text::duration(policy.barrier.drain_timeout)),
        AFTER_THE_BARRIER,
    )
}

/// Why a workload's rollout cannot be judged now.
fn unfollowed(workload: &Workload) -> Option<String> {
    match &workload.version {
        _ if workload.tuning.disabled => Some("disabled by its annotation".to_owned()),
        Err(why) => Some(format!("its image cannot be read: {why}")),
        Ok(_) => None,
    }
}

fn member((member, known): (&Member, &Option<Known>)) -> MemberSummary {
    let published = known.as_ref().map(|known| &known.published);
    MemberSummary {
        member: member.to_string(),
        phase: published.map_or("unknown", Published::phase),
        version: published.and_then(Published::version).map_or(String::new(), ToString::to_string),
    }
}

fn stage(record: &Record) -> Stage {
    let open = |vote: &Vote| vote.closed.is_none() && (vote.purges.listed.is_empty() || vote.purges.count().open > 0);
    match record.votes.iter().find(|vote| open(vote)) {
        _ if record.phase == Phase::Rolling => Stage::Rollout,
        Some(vote) if !vote.purges.listed.is_empty() => Stage::Purge,
        Some(_) => Stage::Agreement,
        None if record.awaits_vote() => Stage::Agreement,
        None if !record.votes.is_empty() || !record.untold.is_empty() => Stage::Webhooks,
        None => Stage::Idle,
    }
}

/// How a rollout ended, in one line.
pub fn closed(closed: &Closed) -> String {
    let is_partly = matches!(closed.outcome, Outcome::Partly | Outcome::PartlyOwed);
    let purge = |(distribution, id): &(DistributionId, Option<InvalidationId>)| match id {
        Some(id) if id.is_of_dry_run() => distribution.words(),
        Some(id) => format!("{} by {id}", distribution.words()),
        None if is_partly => format!("not {}", distribution.words()),
        None => distribution.words(),
    };
    let purges: Vec<String> = closed.purges.iter().map(purge).collect();
    let all = purges.len() + closed.more;
    let what = if purges.is_empty() { String::new() } else { format!(" ({})", some(purges, all)) };
    let about = match closed.outcome {
        Outcome::Failed(_) => then(&closed.why),
        Outcome::Purged if !closed.why.is_empty() => format!("; {}", closed.why),
        _ => String::new(),
    };
    let seen = closed.seen.as_ref().map_or_else(String::new, |seen| format!("; {}", seen.words));
    let rehearsed = closed.purges.iter().filter_map(|(_, id)| id.as_ref()).any(InvalidationId::is_of_dry_run);
    let outcome = match &closed.outcome {
        Outcome::Purged if rehearsed => "would be purged".to_owned(),
        Outcome::Partly | Outcome::PartlyOwed if rehearsed => "would be partly purged".to_owned(),
        outcome => outcome.to_string(),
    };
    format!("{}: {outcome}{what}{about}{seen}", closed.change)
}

/// The last words about the pods of a rollout that has ended, to follow how it ended.
pub(super) fn then(pods: &str) -> String {
    if pods.is_empty() { String::new() } else { format!("; its pods at that time: {pods}") }
}

/// As much of a reason as is kept.
pub(super) fn short(why: &str) -> &str {
    text::phrase(why, WHY_CHARS_MAX)
}

/// The first items of a list by name, and the rest by number: `E1, E2, … and 398 more`. `all` counts those too that are not at
/// hand.
pub(super) fn some(items: impl IntoIterator<Item = String>, all: usize) -> String {
    let mut named: Vec<String> = items.into_iter().take(ITEMS_NAMED_MAX).collect();
    let more = all.saturating_sub(named.len());
    if more > 0 {
        named.push(format!("… and {more} more"));
    }
    named.join(", ")
}

/// The versions in words: `web: 1.2.3 → 1.2.4`.
pub(super) fn change(from: Option<&Version>, to: &Version) -> String {
    match from {
        Some(from) if from != to => difference(from, to),
        Some(_) | None => brief(to),
    }
}

/// The change of a vote, in words. `before` is the version that the rollout `present` replaces.
pub(super) fn changed_by(vote: &Vote, before: Option<&Version>, present: Seq) -> String {
    if vote.seq != present && !vote.change_words.is_empty() {
        return vote.change_words.clone();
    }
    change(before.filter(|_| vote.seq == present), &vote.version)
}
