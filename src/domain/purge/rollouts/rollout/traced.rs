//! Which stages ended with a write, as spans of a trace: from the record before it, the record after it, and the votes of the group.
//!
//! Every start is one that the record keeps ([`Times`]), so a life that began in the middle of a rollout tells all of it. Nothing
//! here decides anything.

use crate::records::record::{Closed, Outcome, Purge, Record, Times, Vote};
use crate::rollouts::rollout::Rollout;
use kernel::id::Vector;
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::trace::{Fact, Fault, Span, Stage};

/// Hosts that a span names.
const HOSTS_MAX: usize = 10;

impl Rollout {
    /// The stages that have ended since the ledger held `before`. The whole rollout is reported by the first member of
    /// its vector, what happened in one cluster by that one, and a purge by who made it.
    pub fn spans_since(&self, before: &Record, now: Timestamp) -> Vec<Span> {
        let Some(after) = self.record.durable.as_ref().filter(|_| self.identity.keeps_times) else { return Vec::new() };
        let mut spans = Vec::new();
        for vote in before.all_kept() {
            let later = after.kept(&vote.vector);
            let closed = closed_since(before, after, vote, later);
            let known = later.unwrap_or(vote);
            spans.extend(self.purges_of((vote, known), closed, later.is_some(), now));
            if let Some(closed) = closed {
                spans.extend(self.voted(known, closed, now));
            }
        }
        spans.extend(self.unvoted(before, after, now));
        spans
    }

    /// The stages of a rollout that ended with a vote.
    fn voted(&self, vote: &Vote, closed: &Closed, now: Timestamp) -> Vec<Span> {
        let Times { began_ms, completed_ms, purge_ms } = vote.times;
        let now_ms = self.identity.wall_ms(now);
        let rollout = self.rollout_under(vote.name.as_ref(), &vote.vector);
        let dead = closed.outcome == Outcome::Dead;
        // Alone, the vote is cast in the write that begins its purges.
        let voted_ms = if self.identity.is_alone() { 0 } else { vote.cast.at_ms };
        let decided_ms = [voted_ms, purge_ms].into_iter().find(|time_ms| *time_ms > 0 && !dead).unwrap_or(now_ms);
        let pods = (began_ms > 0 && completed_ms > 0)
            .then(|| self.span(&rollout, (Stage::Pods, ""), (began_ms, completed_ms), closed))
            .flatten();
        let agreement = (completed_ms > 0)
            .then(|| self.span(&rollout, (Stage::Agreement, ""), (completed_ms, decided_ms), closed))
            .flatten()
            .map(|span| span.failed(fault(&closed.outcome, &closed.why).filter(|_| dead)));
        let is_first = vote.vector.0.keys().next() == Some(&self.identity.member);
        let root = is_first.then(|| {
            let begun = [self.earliest(&vote.vector), began_ms, voted_ms];
            let start_ms = begun.into_iter().find(|time_ms| *time_ms > 0).unwrap_or(now_ms);
            let span = self.span(&rollout, (Stage::Rollout, ""), (start_ms, now_ms), closed)?;
            let hosts = vote.plan.hosts.iter().take(HOSTS_MAX).map(ToString::to_string).collect();
            Some(whole(span.with("allclear.hosts", Fact::Texts(hosts)), closed))
        });
        [pods, agreement, root.flatten()].into_iter().flatten().collect()
    }

    /// The stages of a rollout that ended without one. It has its own trace: the group never agreed on another.
    fn unvoted(&self, before: &Record, after: &Record, now: Timestamp) -> Vec<Span> {
        let known = |closed: &&Closed| closed.seq == before.seq && closed.outcome != Outcome::Dead;
        let voted = before.all_kept().any(|vote| vote.seq == before.seq);
        let closed = after.history.iter().rev().find(known);
        let news = closed.filter(|_| !voted && before.times.began_ms > 0 && !before.history.iter().any(|c| known(&c)));
        let Some(closed) = news else { return Vec::new() };
        let Times { began_ms, completed_ms, .. } = before.times;
        let now_ms = self.identity.wall_ms(now);
        let rollout = self.identity.own_rollout(before);
        let ready_ms = if completed_ms > 0 { completed_ms } else { now_ms };
        let failed = fault(&closed.outcome, &closed.why);
        let pods = self.span(&rollout, (Stage::Pods, ""), (began_ms, ready_ms), closed);
        let pods = pods.map(|span| span.failed(failed.filter(|_| completed_ms == 0)));
        let agreement = (completed_ms > 0)
            .then(|| self.span(&rollout, (Stage::Agreement, ""), (completed_ms, now_ms), closed))
            .flatten();
        let root = self.span(&rollout, (Stage::Rollout, ""), (began_ms, now_ms), closed);
        [pods, agreement, root.map(|span| whole(span, closed))].into_iter().flatten().collect()
    }

    /// The purges of a vote that have ended since: `was`, and as it is `known` now.
    fn purges_of(
        &self,
        (was, known): (&Vote, &Vote),
        closed: Option<&Closed>,
        is_kept: bool,
        now: Timestamp,
    ) -> Vec<Span> {
        // Only who made it knows when; while alone, that is always us.
        if known.times.purge_ms == 0 && !self.identity.is_alone() {
            return Vec::new();
        }
        let now_ms = self.identity.wall_ms(now);
        let begun = [known.times.purge_ms, known.times.completed_ms];
        let start_ms = begun.into_iter().find(|time_ms| *time_ms > 0).unwrap_or(now_ms);
        let rollout = self.rollout_under(was.name.as_ref(), &was.vector);
        let purged = closed.is_some_and(|closed| closed.outcome == Outcome::Purged);
        let ended = was.purges.open().filter_map(|(id, purge)| {
            let (purge, fault) = match known.purges.listed.get(id).filter(|_| is_kept) {
                Some(later) if later.state.is_final() => {
                    (later, later.state.fault().map(|(kind, why)| Fault { kind, message: why.to_owned() }))
                }
                Some(_) => return None,
                // Its vote is gone, and says nothing more of it.
                None if purged => (purge, None),
                None => return None,
            };
            let times = (start_ms, now_ms);
            let span = Span::new(
                &rollout,
                &self.identity.workload,
                (Stage::Purge, &self.identity.member, id.as_str()),
                times,
            )?;
            Some(described(span, id, purge).with("allclear.seq", seq(was.seq.0)).failed(fault))
        });
        ended.collect()
    }

    fn span(&self, rollout: &str, (stage, detail): (Stage, &str), times: (i64, i64), closed: &Closed) -> Option<Span> {
        let span = Span::new(rollout, &self.identity.workload, (stage, &self.identity.member, detail), times)?;
        Some(span.with("allclear.seq", seq(closed.seq.0)).with("allclear.change", Fact::Text(closed.change.clone())))
    }

    /// When the first member that knows it began with the rollout of a vector; 0 if none does.
    fn earliest(&self, vector: &Vector) -> i64 {
        let members = self.ballot.view.members.values();
        let votes = members.filter_map(|known| known.as_ref()?.published.kept(vector));
        votes.map(|vote| vote.times.began_ms).filter(|time_ms| *time_ms > 0).min().unwrap_or_default()
    }
}

/// How an open vote was closed by this write, if it was.
fn closed_since<'a>(before: &Record, after: &'a Record, vote: &Vote, later: Option<&Vote>) -> Option<&'a Closed> {
    let ended = vote.closed.is_none() && later.is_none_or(|later| later.closed.is_some());
    let closed = after.history.iter().rev().find(|closed| closed.seq == vote.seq).filter(|_| ended)?;
    (!before.history.contains(closed)).then_some(closed)
}

/// The whole rollout, with how it ended.
fn whole(span: Span, closed: &Closed) -> Span {
    let distributions = closed.purges.iter().map(|(id, _)| id.to_string()).collect();
    let invalidations = closed.purges.iter().filter_map(|(_, id)| Some(id.as_ref()?.to_string())).collect();
    span.with("allclear.outcome", Fact::Text(name(&closed.outcome).to_owned()))
        .with("allclear.distributions", Fact::Texts(distributions))
        .with("allclear.invalidations", Fact::Texts(invalidations))
        .failed(fault(&closed.outcome, &closed.why))
}

fn described(span: Span, id: &DistributionId, purge: &Purge) -> Span {
    let invalidation = purge.invalidation.as_ref().map(ToString::to_string).unwrap_or_default();
    span.with("allclear.distribution", Fact::Text(id.to_string()))
        .with("allclear.invalidation", Fact::Text(invalidation))
}

fn seq(seq: u64) -> Fact {
    Fact::Number(i64::try_from(seq).unwrap_or(i64::MAX))
}

/// Why a rollout did not end well, by one word and a sentence.
fn fault(outcome: &Outcome, why: &str) -> Option<Fault> {
    let is_fault = match outcome {
        Outcome::NoDistribution
        | Outcome::Impossible
        | Outcome::Owed
        | Outcome::Partly
        | Outcome::PartlyOwed
        | Outcome::Failed(_)
        | Outcome::Dead => true,
        Outcome::Purged
        | Outcome::NothingNew
        | Outcome::Returned
        | Outcome::RecoveredSkipped
        | Outcome::NoSite
        | Outcome::Superseded
        | Outcome::RolledBack
        | Outcome::Deleted
        | Outcome::Withdrawn
        | Outcome::SwitchedOff
        | Outcome::SetBack => false,
    };
    let message = if why.is_empty() { outcome.to_string() } else { format!("{outcome} ({why})") };
    is_fault.then(|| Fault { kind: name(outcome), message })
}

/// One word for an end.
pub(super) const fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Purged => "purged",
        Outcome::NothingNew => "nothing-new",
        Outcome::Returned => "returned",
        Outcome::RecoveredSkipped => "recovered-skipped",
        Outcome::NoSite => "no-site",
        Outcome::NoDistribution => "no-distribution",
        Outcome::Impossible => "impossible",
        Outcome::Owed => "owed",
        Outcome::Partly => "partly",
        Outcome::PartlyOwed => "partly-owed",
        Outcome::Failed(_) => "failed",
        Outcome::Superseded => "superseded",
        Outcome::RolledBack => "rolled-back",
        Outcome::Deleted => "deleted",
        Outcome::Withdrawn => "withdrawn",
        Outcome::SwitchedOff => "switched-off",
        Outcome::Dead => "dead",
        Outcome::SetBack => "set-back",
    }
}
