//! `allclear wait NAME --for complete|purged|settled --timeout TIME`: for CI, right behind `kubectl apply`.
//!
//! The workload and its record are read afresh until the goal is reached, can no longer be reached, or the time is over; what is
//! waited for is said on standard error meanwhile. What a goal means is in `purge::rollouts::goal`. Nothing is changed anywhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::cli::answer::{Outcome, done, invalid, refused};
use crate::looking::listen::listen;
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources, awaited, no_replica, old_pods_at_the_barrier, peek, summarised};
use kernel::id::WorkloadId;
use kernel::names::image::{Version, brief};
use kernel::text::duration;
use purge::agreement::tally::Tally;
use purge::ports::{PortError, Retry};
use purge::records::record::Record;
use purge::rollouts::edge::{self, AtEdge};
use purge::rollouts::goal::{Goal, Way, way};
use purge::rollouts::rollout::{Summary, as_it_runs, preview, timeout};
use purge::workloads::beside::another_version;
use purge::workloads::workload::Workload;

/// Exit code of a wait whose time was over first: rolling back and looking again are different answers.
pub const EXIT_LATE: u8 = 3;

/// Time between two looks. Each is two small reads; a purge takes seconds.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long what the members of the group said is repeated before they are asked again: all boards and the whole ledger are read.
const MEMBERS_ASKED_EVERY: Duration = Duration::from_secs(15);

/// How long what was seen of the replicas is repeated before they are looked at again.
const REPLICAS_SOUGHT_EVERY: Duration = Duration::from_secs(15);

/// Time between two lines about one state: words that count seconds would fill the log of a CI job.
const SAID_EVERY: Duration = Duration::from_secs(30);

/// What is waited for, and how long at most.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub goal: Goal,
    pub at_most: Duration,
}

/// What one look found.
struct Look {
    workload: Option<Workload>,
    record: Option<Record>,
}

/// Waits. `say` gets each line about the way. Exit codes: 0 reached, 1 it will not be reached or cannot be read, 2 not a name,
/// 3 the time is over.
pub async fn wait(sources: &Sources, question: &Question, wait: Wait, say: &mut dyn FnMut(&str)) -> Outcome {
    let deadline = Instant::now() + wait.at_most;
    let id = match question.workload(sources).await {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    let mut waiting = Waiting { sources, id, goal: wait.goal, last: String::new(), members: None, idle: None };
    match timeout_at(deadline, waiting.end(say)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let last = if waiting.last.is_empty() { "nothing was read in that time" } else { &waiting.last };
            let words = format!(
                "{} is not {} after {}: {last}",
                waiting.id.display_name(),
                word(wait.goal),
                duration(wait.at_most)
            );
            Outcome { code: EXIT_LATE, ..refused(&words) }
        }
    }
}

/// The goal as it is asked for.
const fn word(goal: Goal) -> &'static str {
    match goal {
        Goal::Complete => "complete",
        Goal::Purged => "purged",
        Goal::Settled => "settled",
    }
}

struct Waiting<'a> {
    sources: &'a Sources,
    id: WorkloadId,
    goal: Goal,
    /// How it stood at the last look, in words.
    last: String,
    /// What the members of the group were waited for with, and when they were asked.
    members: Option<(Instant, Option<String>)>,
    /// Why no replica works, and when that was looked at.
    idle: Option<(Instant, Option<String>)>,
}

impl Waiting<'_> {
    /// Looks until it is over.
    async fn end(&mut self, say: &mut dyn FnMut(&str)) -> Outcome {
        if let Section::Missing { missing } = peek(self.sources).await {
            return refused(&missing);
        }
        if let Some(doubt) = self.sources.whose.doubt() {
            say(&doubt);
        }
        let mut since: Option<Version> = None;
        let mut said: Option<(Instant, &'static str, String)> = None;
        loop {
            let looked = match self.look().await {
                Ok(look) => self.judge(&look, &mut since).await,
                Err(error) if error.retry == Retry::Never || error.denied => return refused(&error.to_string()),
                Err(error) => Ok(("unread", format!("{error}; tried again"))),
            };
            let (stage, words) = match looked {
                Ok((stage, words)) => match self.idle().await {
                    // What is waited for comes only once one works.
                    Some(idle) => ("idle", format!("{idle}; {words}")),
                    None => (stage, words),
                },
                Err(outcome) => return outcome,
            };
            let due = said
                .as_ref()
                .is_none_or(|(at, before, text)| stage != *before || (words != *text && at.elapsed() >= SAID_EVERY));
            if due {
                say(&format!("{}: {words}", self.id.display_name()));
                said = Some((Instant::now(), stage, words.clone()));
            }
            self.last = words;
            sleep(LOOK_EVERY).await;
        }
    }

    /// Why nothing will happen, where no replica works.
    async fn idle(&mut self) -> Option<String> {
        if let Some((at, words)) = &self.idle
            && at.elapsed() < REPLICAS_SOUGHT_EVERY
        {
            return words.clone();
        }
        let words = no_replica(self.sources).await.and_then(|replicas| replicas.trouble());
        self.idle = Some((Instant::now(), words.clone()));
        words
    }

    async fn look(&self) -> Result<Look, PortError> {
        let (workload, record) =
            tokio::try_join!(self.sources.cluster.workload(&self.id), self.sources.ledger.load(&self.id))?;
        Ok(Look { workload, record })
    }

    /// What is waited for: the stage by a word that changes with it, and words.
    ///
    /// # Errors
    /// It is over, with this outcome.
    async fn judge(&mut self, look: &Look, since: &mut Option<Version>) -> Result<(&'static str, String), Outcome> {
        let Look { workload, record } = look;
        let (policy, name) = (&self.sources.policy, self.id.display_name());
        if workload.is_none() && since.is_none() {
            return Err(refused(&not_found(self.sources, &self.id).await));
        }
        if let (None, Some(Ok(version))) = (&since, workload.as_ref().map(|workload| &workload.version)) {
            *since = Some(version.clone());
        }
        let began = since.clone().unwrap_or_default();
        match way(self.goal, &began, record.as_ref(), workload.as_ref(), policy) {
            Way::Reached => {
                if let Some(words) = self.beside(look).await {
                    return Ok(("beside", words));
                }
                let state = match (record, workload) {
                    (Some(record), Some(workload)) => self.summary(record, workload).await.state,
                    (Some(_) | None, _) => String::new(),
                };
                let out = format!("{name} is {} at {}: {state}\n", word(self.goal), brief(&began));
                Err(done(out))
            }
            Way::Ended(why) => {
                let words = format!("{name} will not be {} at {}: {why}", word(self.goal), brief(&began));
                Err(refused(&words))
            }
            Way::Awaited(why) => Ok(match (record, workload) {
                (Some(record), Some(workload)) => match preview(record, workload, policy) {
                    Some(preview) => ("unseen", preview.state),
                    None => self.stands(record, workload).await,
                },
                (None, _) | (_, None) => ("unrecorded", why),
            }),
        }
    }

    /// What serves another version beside a workload whose edge is purged otherwise.
    async fn beside(&self, Look { workload, record }: &Look) -> Option<String> {
        let (workload, policy) = (workload.as_ref()?, &self.sources.policy);
        let at_edge = edge::at_edge(record.as_ref(), Some(workload), policy);
        if self.goal == Goal::Complete || at_edge != AtEdge::Purged {
            return None;
        }
        match self.sources.cluster.beside(workload).await {
            Ok(beside) => {
                at_edge.beside(another_version(&beside, workload, policy.version.same_digest_is_same)).stale()
            }
            Err(error) => Some(format!("cannot see whether another version serves beside it: {error}")),
        }
    }

    async fn summary(&self, record: &Record, workload: &Workload) -> Summary {
        let policy = &self.sources.policy;
        let workload = &*as_it_runs(record, workload, policy);
        let pods = match awaited(workload, policy) {
            Some(version) => {
                // Only words depend on it.
                let listed = self.sources.cluster.pods(&self.id.namespace).await.ok();
                listed.map(|listed| summarised(workload, version, &listed))
            }
            None => None,
        };
        let clock = (record.elapsed(), timeout(Some(workload), policy));
        let old = old_pods_at_the_barrier(self.sources, workload, record).await;
        Summary::new(&self.id, record, Some(workload), pods.as_ref(), clock, policy).beside(old.as_ref(), policy)
    }

    /// How it stands by its record, or what the other members are waited for with.
    async fn stands(&mut self, record: &Record, workload: &Workload) -> (&'static str, String) {
        let summary = self.summary(record, workload).await;
        let seeks = summary.phase == "complete" && record.seeks();
        match if seeks { self.awaits_members().await } else { None } {
            Some(words) => ("members", words),
            None => (summary.stage.name(), summary.state),
        }
    }

    async fn awaits_members(&mut self) -> Option<String> {
        let neighbours = self.sources.group.as_ref().filter(|neighbours| neighbours.is_group)?;
        let member = neighbours.member.as_ref().ok()?;
        if let Some((at, words)) = &self.members
            && at.elapsed() < MEMBERS_ASKED_EVERY
        {
            return words.clone();
        }
        let ledger = peek(self.sources).await;
        let mut heard = listen(neighbours, member, ledger.known(), &self.sources.policy).await;
        let record = ledger.known().and_then(|ledger| ledger.records.get(&self.id)).map(Arc::as_ref);
        let tally = heard.tally(&self.id, record);
        let words = tally.as_ref().and_then(Tally::awaits).map(|(state, _)| state);
        self.members = Some((Instant::now(), words.clone()));
        words
    }
}
