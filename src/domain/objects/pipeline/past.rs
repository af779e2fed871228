//! What a Pipeline's history has of it: each promotion that ended, each revision that came to the first environment, and each that
//! did not hold where it was promoted to.
//!
//! ```text
//! the status has another latest revision     Arrived, in the first environment
//! a promotion back begins                    Failed, of what it goes back from
//! a promotion ends                           its outcome
//! ```

use crate::history::{ARRIVED, Entry, FAILED};
use crate::pipeline::remark::ended;
use crate::pipeline::spec::Object;
use crate::pipeline::status::{Ended, EnvironmentStatus, Promotion, Status};
use kernel::id::{Environment, PromotionSeq};

/// What the status still says of what has ended.
pub fn remembered(status: &Status) -> Vec<Entry> {
    status.history.iter().map(|ended| entry(ended, &[status])).collect()
}

/// What has happened since the status was `before`, and was written at this time.
pub fn news(written: &Object, before: &Status, at_ms: i64) -> Vec<Entry> {
    let status = &written.status;
    let mut news = Vec::new();
    // What was there when allclear first looked came at a time that is not known.
    let latest = before.latest.as_ref().zip(status.latest.as_ref()).filter(|(was, is)| was != is);
    if let Some((_, latest)) = latest {
        let first = written.spec.as_ref().ok().and_then(|spec| spec.environments.first());
        news.push(Entry {
            environment: first.map(|first| first.name.0.clone()),
            revision: latest.0.clone(),
            outcome: ARRIVED.to_owned(),
            at_ms,
            ..Entry::default()
        });
    }
    let both = status.environments.iter().map(|(name, is)| (name, before.environment(name), is));
    news.extend(both.filter_map(|(name, was, is)| failed(name, was, is, at_ms)));
    news.extend(ended(before, status).map(|ended| entry(ended, &[status, before])));
    news
}

/// What did not hold, where an environment begins to go back from it. One that cannot go back by itself is not watched for that: a
/// promotion may take long because nobody has deployed it.
fn failed(name: &Environment, was: Option<&EnvironmentStatus>, is: &EnvironmentStatus, at_ms: i64) -> Option<Entry> {
    let back = is.open().filter(|open| was.is_none_or(|was| was.seq != open.seq))?;
    let (cause, bad) = back.rollback.zip(back.from.as_ref())?;
    let watched = [Some(is), was].into_iter().flatten().find_map(|one| one.watch.as_ref());
    Some(Entry {
        environment: Some(name.0.clone()),
        seq: watched.filter(|watch| watch.revision == *bad).map(|watch| watch.seq.0).unwrap_or_default(),
        revision: bad.0.clone(),
        outcome: FAILED.to_owned(),
        at_ms,
        cause: Some(cause.name().to_owned()),
        ..Entry::default()
    })
}

/// A promotion that ended. When it was started is known while it is an environment's newest.
fn entry(ended: &Ended, statuses: &[&Status]) -> Entry {
    let Ended { environment, seq, revision, outcome, by, chosen, rollback, at_ms } = ended.clone();
    Entry {
        started_ms: newest(statuses, &environment, seq).and_then(|promotion| promotion.started_ms),
        environment: Some(environment.0),
        seq: seq.0,
        revision: revision.0,
        outcome: outcome.name().to_owned(),
        at_ms,
        seen_ms: None,
        by,
        chosen,
        cause: rollback.map(|cause| cause.name().to_owned()),
        skipped: Vec::new(),
    }
}

/// The promotion of this number, if it is the newest of its environment.
fn newest<'a>(statuses: &[&'a Status], name: &Environment, seq: PromotionSeq) -> Option<&'a Promotion> {
    let of = |status: &&'a Status| status.environment(name)?.promotion.as_ref();
    statuses.iter().filter_map(of).find(|promotion| promotion.seq == seq)
}
