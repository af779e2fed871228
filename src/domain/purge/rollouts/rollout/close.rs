//! How a rollout ends, and its vote: what is remembered and announced, in which words, what we take the edge to have from then on,
//! and when a vote is no longer needed.
//!
//! Not for when its purges are done, nor for what their outcome is; that is [`VotePurges`].

use crate::agreement::group;
use crate::records::record::{
    Closed, Edge, NOTICE_LIST_BYTES_MAX, Outcome, Phase, Purge, Record, Vote, VotePurges, WORDS_BYTES_MAX, fitting,
};
use crate::rollouts::rollout::purges::Task;
use crate::rollouts::rollout::words::short;
use crate::rollouts::rollout::{Rollout, words};
use crate::workloads::beside::{BESIDE, BESIDE_CURE};
use kernel::id::{Member, NoticeId, Vector};
use kernel::machine::Timestamp;
use kernel::names::host::Host;
use kernel::text;
use notices::notice::Kind;

/// Distributions that are named with a reason: with 200 characters each they leave a sentence readable, and an Event holds 1 KiB.
const REASONS_NAMED_MAX: usize = 3;

/// Begins the words that say by which listing the distributions were found, where none was to be had that began after the votes.
const LISTED: &str = "distributions as listed ";

/// How a rollout ends before it was voted for.
pub(super) struct End {
    /// The kind of its notice.
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
    pub(super) message: String,
    /// The reason, if the outcome does not say it all.
    pub(super) why: String,
}

impl End {
    /// One whose outcome says it all.
    pub(super) fn plainly(kind: Kind, outcome: Outcome) -> Self {
        Self { kind, message: outcome.to_string(), outcome, why: String::new() }
    }
}

/// How a vector ends, and why where the outcome does not say it all.
pub(super) type VectorEnd = (Outcome, String);

/// The fate of a closed vote.
pub(super) enum Parting {
    /// Its end is not announced yet, or another member may need it.
    Stays,
    /// It is kept in brief for what it owes.
    Owes,
    /// Nothing follows from it any more.
    Goes,
}

impl Rollout {
    /// The present rollout ends before it was voted for.
    pub(super) fn close(&mut self, now: Timestamp, End { kind, outcome, message, why }: End) {
        self.announce(now, kind, message);
        if let Some(draft) = &mut self.record.draft {
            let change = text::cut(&words::change(draft.before(), &draft.version), WORDS_BYTES_MAX);
            let why = text::cut(&why, WORDS_BYTES_MAX);
            draft.close(Closed { seq: draft.seq, change, outcome, why, purges: Vec::new(), more: 0, seen: None });
        }
    }

    /// Closes an open vote: the vector has ended, for the reason given. Returns whether there was one.
    pub(super) fn close_vote(&mut self, now: Timestamp, vector: &Vector, (outcome, why): VectorEnd) -> bool {
        let (agreed_at, hosts) = self.ballot.agreed(vector);
        let beside = self.beside(vector).filter(|_| outcome == Outcome::Purged);
        let why = [why, beside.unwrap_or_default()].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
        let Some(vote) = self.record.open_vote(vector) else { return false };
        vote.closed = Some(outcome.clone());
        // The announcement of the end follows from all votes, and later lives may not see them all any more.
        vote.cast.at_ms = vote.cast.at_ms.max(agreed_at);
        let mentioned = fitting(&hosts, NOTICE_LIST_BYTES_MAX, |host: &Host| host.as_str().len());
        vote.plan.hosts.extend(mentioned.cloned());
        short(&why.join("; ")).clone_into(&mut vote.why);
        let vote = vote.clone();
        if !self.is_told_elsewhere(&vote) && self.is_turn(now, vector, Task::Tell) {
            self.announce_end(now, &vote);
        }
        let served = self.may_be_served();
        let Some(draft) = &mut self.record.draft else { return false };
        let change = words::changed_by(&vote, draft.before(), draft.seq);
        let (purges, more) = vote.purges.named();
        if outcome == Outcome::Purged {
            settle(draft, &vote, served, self.policy.version.same_digest_is_same);
        }
        draft.note_purged(&vote);
        let remark = (vote.seq == draft.seq && !vote.why.contains(&draft.remark)).then_some(draft.remark.as_str());
        let said = [vote.why.as_str()].into_iter().chain(remark);
        let why = said.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ");
        if outcome != Outcome::Dead {
            draft.passed.retain(|passed| passed.seq > vote.seq);
        }
        draft.close(Closed { seq: vote.seq, change, outcome, why, purges, more, seen: None });
        true
    }

    /// What served another version beside a rollout of the vector when it was complete: here, or in the first other member that says so.
    fn beside(&self, vector: &Vector) -> Option<String> {
        let of = |record: &Record, member: &Member| {
            let is_meant = vector.0.get(member).is_some_and(|component| component.seq == record.seq);
            is_meant.then(|| said_beside(&record.remark).map(str::to_owned)).flatten()
        };
        let own = self.record.draft.as_ref().and_then(|draft| of(draft, &self.identity.member));
        own.or_else(|| {
            let mut others = self.ballot.others(&self.identity.member);
            others.find_map(|(member, theirs)| Some(format!("{} in {member}", of(theirs.record()?, member)?)))
        })
    }

    /// Goes on with a vote whose end is durable: we announce it when our turn comes, unless another member has.
    pub(super) fn see_told(&mut self, now: Timestamp, vote: &Vote) {
        let vector = &vote.vector;
        if let Some(id) = self.id_of_end(vote, vote, &self.identity.member)
            && !vote.purges.noticed.contains(&id)
        {
            if self.is_told_elsewhere(vote) {
                self.record.kept_mut(vector).into_iter().for_each(|vote| vote.purges.noticed.extend([id.clone()]));
            } else if self.is_turn(now, vector, Task::Tell) {
                self.announce_end(now, vote);
            }
        }
    }

    /// Whether another member has announced it, or is certain to.
    fn is_told_elsewhere(&self, vote: &Vote) -> bool {
        let dead = vote.closed == Some(Outcome::Dead);
        // Theirs may still be owed where ours is complete.
        let told = |member: &Member, record: &Record| match record.kept(&vote.vector) {
            Some(theirs) => self.id_of_end(vote, theirs, member).is_some_and(|id| {
                theirs.purges.noticed.contains(&id) && record.untold.iter().all(|notice| notice.id != id)
            }),
            // A member drops its vote only after the announcement; but for a dead vector it may never have voted.
            None => {
                !dead
                    && record
                        .last
                        .as_ref()
                        .is_some_and(|last| group::has_moved_on(&self.ballot.view, last, &vote.vector))
            }
        };
        let mut others = self.ballot.others(&self.identity.member);
        others.any(|(member, theirs)| theirs.record().is_some_and(|record| told(member, record)))
    }

    /// Whether the end of a closed vote is announced, and no other member needs the vote any more.
    pub(super) fn parting(&self, vector: &Vector) -> Parting {
        let Some(draft) = &self.record.draft else { return Parting::Stays };
        let Some(vote) = draft.kept(vector).filter(|vote| vote.closed.is_some()) else { return Parting::Stays };
        let told = |id: NoticeId| {
            let waits = !self.identity.is_alone() && draft.untold.iter().any(|notice| notice.id == id);
            vote.purges.noticed.contains(&id) && !waits
        };
        let dead = vote.closed == Some(Outcome::Dead);
        let known = group::all_have_closed(&self.ballot.view, vector, dead, &self.identity.member);
        match () {
            () if !known || !self.id_of_end(vote, vote, &self.identity.member).is_none_or(told) => Parting::Stays,
            () if vote.owes() => Parting::Owes,
            () if vote.purges.owed_ms == 0 || !self.ballot.others_owe(vector, &self.identity.member) => Parting::Goes,
            () => Parting::Stays,
        }
    }

    /// Nothing more follows from the vote.
    pub(super) fn drop_vote(&mut self, vector: &Vector) {
        self.record.draft.iter_mut().for_each(|draft| {
            draft.votes.retain(|vote| vote.vector != *vector);
            draft.owed.retain(|vote| vote.vector != *vector);
        });
        self.purges.release(vector);
    }

    /// The final end of a rollout that had ended with owed purges.
    pub(super) fn close_owed(&mut self, vote: &Vote) {
        let served = self.may_be_served();
        let (Some(draft), Some(ended)) = (&mut self.record.draft, &vote.closed) else { return };
        if let Some(closed) = draft.history.iter_mut().find(|closed| closed.seq == vote.seq) {
            closed.outcome = ended.clone();
            (closed.purges, closed.more) = vote.purges.named();
            short(&missing(&vote.purges)).clone_into(&mut closed.why);
        }
        if *ended == Outcome::Purged {
            settle(draft, vote, served, self.policy.version.same_digest_is_same);
        }
    }

    /// The notice by which `member`, whose vote of the vector is `theirs`, announces that it ended as `vote` did.
    fn id_of_end(&self, vote: &Vote, theirs: &Vote, member: &Member) -> Option<NoticeId> {
        let kind = vote.closed.as_ref().and_then(kind_of_end)?;
        Some(self.notice_id(&vote.vector, kind, &detail_of_end(theirs, member), member))
    }

    fn announce_end(&mut self, now: Timestamp, vote: &Vote) {
        let Some((outcome, kind)) = vote.closed.as_ref().and_then(|outcome| Some((outcome, kind_of_end(outcome)?)))
        else {
            return;
        };
        let message = match outcome {
            Outcome::Purged | Outcome::Partly | Outcome::PartlyOwed | Outcome::Owed => told(vote, outcome),
            _ if vote.why.is_empty() => outcome.to_string(),
            _ => format!("{outcome} ({})", vote.why),
        };
        let detail = detail_of_end(vote, &self.identity.member);
        self.announce_vote(now, &vote.vector, kind, &detail, message);
    }
}

/// By which listing its distributions were found is what one member knows, and what serves beside a workload may be; it says so in a notice
/// of its own.
fn detail_of_end(vote: &Vote, member: &Member) -> String {
    match (listed(vote), said_beside(&vote.why)) {
        (Some(_), _) => format!("listed/{member}"),
        (None, Some(_)) => format!("beside/{member}"),
        (None, None) => String::new(),
    }
}

/// The part of these words that says what serves beside a workload.
fn said_beside(words: &str) -> Option<&str> {
    words.split("; ").find(|part| part.starts_with(BESIDE))
}

/// The announcement of an end, if there is one.
const fn kind_of_end(outcome: &Outcome) -> Option<Kind> {
    match outcome {
        Outcome::Purged => Some(Kind::PurgeCompleted),
        Outcome::Returned | Outcome::RecoveredSkipped => Some(Kind::PurgeSkipped),
        Outcome::NoDistribution | Outcome::Dead => Some(Kind::PurgeFailed),
        Outcome::Partly => Some(Kind::PurgeFailed),
        Outcome::Owed | Outcome::PartlyOwed => Some(Kind::PurgeOwed),
        // An impossible purge was announced when it failed; the other outcomes are not announced.
        Outcome::Impossible | Outcome::NothingNew | Outcome::NoSite | Outcome::SetBack => None,
        // These close a rollout before its vote.
        Outcome::Failed(_)
        | Outcome::Superseded
        | Outcome::RolledBack
        | Outcome::Deleted
        | Outcome::Withdrawn
        | Outcome::SwitchedOff => None,
    }
}

/// All was purged: the edge now has what was voted for, unless another version completed meanwhile or may have been
/// `served`.
fn settle(draft: &mut Record, vote: &Vote, served: bool, same_digest_is_same: bool) {
    // A request made since then still stands.
    draft.request = draft.request.filter(|asked| *asked > vote.seq);
    draft.asked = draft.asked.take().filter(|_| draft.request.is_some());
    // The purge of a later version found that one on the edge, whichever of the two completes first.
    if draft.history.iter().any(|closed| closed.seq > vote.seq && closed.outcome == Outcome::Purged) {
        return;
    }
    // What counts as the version may have been chosen anew since: the rollout is the same.
    let same = draft.seq == vote.seq || draft.version.same_content(&vote.version, same_digest_is_same);
    draft.settled = (!same).then(|| vote.version.clone());
    let moved = vote.purges.overtaken || (!same && (served || draft.phase == Phase::Complete));
    draft.edge = if moved { Edge::Moved } else { Edge::Settled };
}

/// Why it ended so: from when the listing is, where it is old, and what is missing.
pub(super) fn why(purges: &VotePurges, listed: Option<&str>) -> String {
    let listed = listed.map(|from| format!("{LISTED}{from}"));
    let missing = Some(missing(purges)).filter(|words| !words.is_empty());
    listed.into_iter().chain(missing).collect::<Vec<_>>().join("; ")
}

/// By which listing, if [`why`] said so.
pub(super) fn listed(vote: &Vote) -> Option<&str> {
    vote.why.split("; ").next().filter(|words| words.starts_with(LISTED))
}

/// The announcement of an end by its purges.
fn told(vote: &Vote, outcome: &Outcome) -> String {
    let purges = &vote.purges;
    let unknown = purges.count().unknown > 0;
    let stale = listed(vote);
    let listed = stale.map_or_else(String::new, |stale| format!("; {stale}"));
    let beside = said_beside(&vote.why).map_or_else(String::new, |words| format!("; {words}; {BESIDE_CURE}"));
    match outcome {
        Outcome::Purged if purges.are_of_dry_run() => format!("would be purged now: {}", made(purges)),
        Outcome::Partly | Outcome::PartlyOwed if purges.are_of_dry_run() => {
            format!("would be partly purged: {}; {}", made(purges), missing(purges))
        }
        Outcome::Purged if unknown => {
            format!("purged, but it is not known whether it is complete everywhere{listed}: {}{beside}", made(purges))
        }
        Outcome::Purged if stale.is_some() || !beside.is_empty() => {
            format!("purged{listed}: {}{beside}", made(purges))
        }
        Outcome::Purged if purges.owed_ms != 0 => {
            format!("CloudFront reports the purge completed, late, for it was owed: {}", made(purges))
        }
        Outcome::Purged => format!("CloudFront reports the purge completed: {}", made(purges)),
        Outcome::Partly | Outcome::PartlyOwed => {
            format!("partly purged{listed}: {}; {}", made(purges), missing(purges))
        }
        _ => format!("not purged: {}", missing(purges)),
    }
}

/// Which distributions are purged, or would be: `E1 by invalidation I1, E2 by another member`.
fn made(purges: &VotePurges) -> String {
    let named = purges.made().map(|(distribution, invalidation)| match invalidation {
        Some(id) if id.is_of_dry_run() => distribution.words(),
        Some(id) => format!("{} by invalidation {id}", distribution.words()),
        None => format!("{} by another member", distribution.words()),
    });
    let count = purges.count();
    words::some(named, count.completed + count.unknown)
}

/// Which are not, and why: `E3 cannot be purged (NoSuchDistribution); E4 is owed and tried again (AccessDenied)`.
fn missing(purges: &VotePurges) -> String {
    let count = purges.count();
    let reasons = |reason: fn(&Purge) -> Option<&str>| {
        let listed = purges.listed.iter();
        let named = listed.filter_map(move |(id, purge)| reason(purge).map(|why| format!("{id} ({why})")));
        named.take(REASONS_NAMED_MAX)
    };
    let mut parts = Vec::new();
    if count.impossible > 0 {
        let reasons = reasons(|purge| purge.state.impossible());
        parts.push(format!("cannot be purged: {}", words::some(reasons, count.impossible)));
    }
    if count.owed > 0 {
        let reasons = reasons(|purge| purge.state.owed());
        parts.push(format!("owed, and tried again: {}", words::some(reasons, count.owed)));
    }
    if count.open > 0 {
        parts.push(format!("{} more distributions wait until some of these are purged", count.open));
    }
    parts.join("; ")
}
