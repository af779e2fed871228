//! `allclear history NAME`: how the last rollouts of a workload ended, and when they were purged.
//!
//! The ledger keeps the last [`HISTORY_MAX`]; the time of a purge is that of its invalidation, asked of CloudFront with the
//! caller's own credentials. Nothing is changed anywhere.

use std::fmt;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, invalid, refused};
use crate::looking::layout::Tone;
use crate::looking::page::{Page, age};
use crate::looking::workloads::not_found;
use crate::looking::{Question, Section, Sources, peek};
use kernel::id::{InvalidationId, WorkloadId};
use kernel::names::distribution::DistributionId;
use purge::records::record::{Closed, HISTORY_MAX, Outcome as End};
use purge::rollouts::rollout::closed;

/// The last rollouts of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct History {
    pub workload: WorkloadId,
    /// How they ended, newest first.
    pub rollouts: Vec<Ended>,
    /// The ledger may have forgotten earlier ones.
    pub more_forgotten: bool,
    /// The time, where a person looks at it now.
    #[serde(skip)]
    pub now_ms: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    pub rollout: u64,
    /// The versions, the end and its purges, in words.
    pub words: String,
    #[serde(skip)]
    pub tone: Tone,
    /// Why, where the words do not say it all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its purges, with their times.
    pub purges: Vec<Made>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    pub distribution: String,
    /// CloudFront's id; `None` where another purge covered it.
    pub invalidation: Option<String>,
    /// When it was created, as RFC 3339 has it; or why that is not known.
    pub at: Section<String>,
}

/// Answers. Exit codes: 0 found, 1 not found or unreadable, 2 not a name.
pub async fn history(sources: &Sources, question: &Question, output: Output) -> Outcome {
    let id = match question.workload(sources).await {
        Ok(id) => id,
        Err(why) => return invalid(&why),
    };
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    if let Some(why) = ledgered.unreadable.get(&id) {
        return refused(&format!("the record of {} cannot be read: {why}", id.display_name()));
    }
    let Some(record) = ledgered.records.get(&id) else {
        return match sources.cluster.workload(&id).await {
            Ok(None) => refused(&not_found(sources, &id).await),
            Ok(Some(_)) => refused(&format!("{} is not recorded in the ledger yet", id.display_name())),
            Err(error) => refused(&error.to_string()),
        };
    };
    let rollouts = join_all(record.history.iter().rev().map(|closed| ended(sources, closed))).await;
    let read = rollouts.iter().flat_map(|ended| &ended.purges).all(|made| made.at.known().is_some());
    let more_forgotten = record.history.len() >= HISTORY_MAX;
    let history = History { workload: id, rollouts, more_forgotten, now_ms: output.now_ms() };
    answer(&history, output, if read { 0 } else { EXIT_FAILED })
}

async fn ended(sources: &Sources, end: &Closed) -> Ended {
    let purges = end.purges.iter().map(|(distribution, id)| made(sources, distribution, id.as_ref()));
    Ended {
        rollout: end.seq.0,
        words: closed(end),
        tone: tone(&end.outcome),
        why: end.why.clone(),
        purges: join_all(purges).await,
    }
}

/// What an end says at a glance.
const fn tone(outcome: &End) -> Tone {
    match outcome {
        End::Purged => Tone::Good,
        End::Impossible | End::Owed | End::Partly | End::PartlyOwed => Tone::Bad,
        End::Failed(_) | End::Withdrawn | End::Dead => Tone::Look,
        End::NothingNew
        | End::Returned
        | End::RecoveredSkipped
        | End::NoSite
        | End::NoDistribution
        | End::Superseded
        | End::RolledBack
        | End::Deleted
        | End::SwitchedOff
        | End::SetBack => Tone::Plain,
    }
}

async fn made(sources: &Sources, distribution: &DistributionId, id: Option<&InvalidationId>) -> Made {
    let at = match id {
        None => Section::Known("with another purge".to_owned()),
        Some(id) => match sources.cdn.created_ms(distribution, id).await {
            Ok(Some(at_ms)) => match Timestamp::from_millisecond(at_ms) {
                // Whole seconds: CloudFront gives fractions, and not always as many digits.
                Ok(at) => Section::Known(format!("{at:.0}")),
                Err(error) => Section::missing(error),
            },
            Ok(None) => Section::missing("CloudFront does not say"),
            Err(error) => Section::missing(error),
        },
    };
    Made { distribution: distribution.to_string(), invalidation: id.map(ToString::to_string), at }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut page = Page { f };
        page.title(&self.workload.display_name())?;
        if self.rollouts.is_empty() {
            page.part("Rollouts", ["none has ended since allclear first saw it".to_owned()])?;
        }
        for ended in &self.rollouts {
            // Its end comes first, and has the colour.
            let tones = [ended.tone].into_iter().chain(std::iter::repeat(Tone::Plain));
            page.entries(&format!("Rollout {}", ended.rollout), tones.zip(lines(ended, self.now_ms)))?;
        }
        if self.more_forgotten {
            let words =
                format!("the ledger keeps the last {HISTORY_MAX}; earlier ones are in the log and at the webhooks");
            page.part("Earlier", [words])?;
        }
        Ok(())
    }
}

fn lines(ended: &Ended, now_ms: Option<i64>) -> Vec<String> {
    let why = Some(&ended.why).filter(|why| !why.is_empty() && !ended.words.contains(why.as_str()));
    let line = |made: &Made| match &made.at {
        Section::Known(at) => {
            // One that went with another purge has no time.
            let at_ms = at.parse::<Timestamp>().ok().map(Timestamp::as_millisecond);
            let ago = at_ms.zip(now_ms).map_or_else(String::new, |(at, now)| format!(" ({})", age(now - at)));
            format!("{}: {at}{ago}", made.distribution)
        }
        Section::Missing { missing } => format!("{}: time not known: {missing}", made.distribution),
    };
    let mut lines = vec![ended.words.clone()];
    lines.extend(why.map(|why| format!("because {why}")));
    lines.extend(ended.purges.iter().map(line));
    lines
}
