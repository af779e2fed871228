//! The notices of a rollout: those that are durable and not announced yet, and the few that are announced without being
//! durable.
//!
//! This file builds the notices; the callers decide what they say, and when.

use crate::records::record::{NOTICE_LIST_BYTES_MAX, PURGES_NAMED_MAX, Purge, Record, Vote, fitting};
use crate::rollouts::rollout::{Effect, Identity, Rollout, words};
use kernel::id::{Member, NoticeId, Vector};
use kernel::machine::Timestamp;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::Path;
use notices::notice::{About, Kind, Mentions, Notice, PurgeFact};

impl Rollout {
    /// Sends the durable notices that were not sent yet, and the loose ones.
    pub(super) fn tell(&mut self, now: Timestamp) -> Vec<Effect> {
        let still = |notice: &&Notice| self.record.draft.as_ref().is_some_and(|draft| draft.untold.contains(notice));
        let durable = self.record.durable.iter().flat_map(|durable| &durable.untold).filter(still);
        self.telling.tell(now, durable).into_iter().map(|notice| Effect::Tell(Box::new(notice))).collect()
    }

    /// Writes a notice about the present rollout into the draft. It is sent once that is durable.
    pub(super) fn announce(&mut self, now: Timestamp, kind: Kind, message: String) {
        let Some(draft) = &mut self.record.draft else { return };
        let notice = notice_of(&self.identity, now, draft, kind, message);
        add(draft, notice);
    }

    /// The same about the rollout of this record.
    pub(super) fn announce_of(&mut self, now: Timestamp, of: &Record, kind: Kind, message: String) {
        let notice = notice_of(&self.identity, now, of, kind, message);
        self.record.draft.iter_mut().for_each(|draft| add(draft, notice.clone()));
    }

    /// Writes a notice about a vector into the draft. In a group, all of it follows from the votes, so each member's notice is
    /// the same (O5).
    pub(super) fn announce_vote(&mut self, now: Timestamp, vector: &Vector, kind: Kind, detail: &str, message: String) {
        let (rollout, at_ms) = (self.group_rollout(vector), self.identity.wall_ms(now));
        let id = self.notice_id(vector, kind, detail, &self.identity.member);
        let alone = self.identity.is_alone();
        let (agreed_at, mut hosts) = self.ballot.agreed(vector);
        if let Some(vote) = self.record.draft.as_ref().and_then(|draft| draft.kept(vector)).filter(|_| hosts.is_empty())
        {
            hosts.clone_from(&vote.plan.hosts);
        }
        let workload = self.identity.workload.clone();
        let Some(draft) = &mut self.record.draft else { return };
        let (before, stand_in) = (draft.before().cloned(), draft.stand_in);
        let present = draft.seq;
        let Some(vote) = draft.all_kept_mut().find(|vote| vote.vector == *vector) else { return };
        if !vote.purges.noticed.insert(id.clone()) {
            return;
        }
        let mentioned: Vec<Host> =
            fitting(&hosts, NOTICE_LIST_BYTES_MAX, |host: &Host| host.as_str().len()).cloned().collect();
        let purges = purge_facts(vote);
        let mentions = Mentions {
            cut: mentioned.len() < hosts.len() || is_cut(vote, &purges),
            hosts: mentioned,
            purges,
            // Hooks in the old form are called for owed purges, however late (decision 29).
            late: kind == Kind::PurgeCompleted && vote.purges.stalled && vote.purges.owed_ms == 0,
            stand_in,
        };
        let notice = Notice {
            id,
            kind,
            at_ms: Some(agreed_at.max(vote.cast.at_ms)).filter(|agreed| *agreed > 0 && !alone).unwrap_or(at_ms),
            about: About::Workload(workload, mentions),
            seq: vector.0.values().next().map_or(vote.seq, |first| first.seq),
            // What it replaces may differ from member to member.
            change: if alone {
                words::changed_by(vote, before.as_ref(), present)
            } else {
                words::change(None, &vote.version)
            },
            rollout,
            message,
        };
        draft.untold.push(notice);
    }

    /// A notice that follows from the votes has the same id and bytes, whichever member sends it. An event of one member on the
    /// way has a notice of its own.
    pub(super) fn notice_id(&self, vector: &Vector, kind: Kind, detail: &str, member: &Member) -> NoticeId {
        let shared = matches!(kind, Kind::PurgeStarted | Kind::PurgeCompleted | Kind::PurgeSkipped);
        let rollout = self.group_rollout(vector);
        if shared || self.identity.is_alone() {
            Notice::id_of(&rollout, kind, detail)
        } else {
            Notice::id_of(&rollout, kind, &format!("{detail}/{member}"))
        }
    }
}

/// A notice about the rollout of a record.
fn notice_of(identity: &Identity, now: Timestamp, of: &Record, kind: Kind, message: String) -> Notice {
    let rollout = identity.own_rollout(of);
    // A fault may go and come again within one rollout: each time is a notice of its own.
    let faulty = kind == Kind::WorkloadFaulty;
    let detail = if faulty { format!("{}/{message}", of.revision) } else { String::new() };
    Notice {
        id: Notice::id_of(&rollout, kind, &detail),
        kind,
        at_ms: identity.wall_ms(now),
        about: About::Workload(identity.workload.clone(), Mentions { stand_in: of.stand_in, ..Mentions::default() }),
        seq: of.seq,
        change: words::change(of.before(), &of.version),
        rollout,
        message,
    }
}

fn add(draft: &mut Record, notice: Notice) {
    if draft.untold.iter().all(|untold| untold.id != notice.id) {
        draft.untold.push(notice);
    }
}

/// The first purges of a vote, as a notice mentions them.
fn purge_facts(vote: &Vote) -> Vec<PurgeFact> {
    let each = NOTICE_LIST_BYTES_MAX / vote.purges.listed.len().clamp(1, PURGES_NAMED_MAX);
    let paths = |purge: &Purge| {
        let sent = purge.sent.as_ref().unwrap_or(&vote.plan.paths);
        fitting(sent.iter(), each, |path: &Path| path.as_str().len()).cloned().collect()
    };
    let fact = |(distribution, purge): (&DistributionId, &Purge)| PurgeFact {
        distribution: distribution.clone(),
        invalidation: purge.invalidation.clone(),
        paths: paths(purge),
    };
    vote.purges.listed.iter().take(PURGES_NAMED_MAX).map(fact).collect()
}

/// Whether a notice with these facts does not mention all purges and paths of the vote.
fn is_cut(vote: &Vote, facts: &[PurgeFact]) -> bool {
    facts.len() < vote.purges.count().all() || facts.iter().any(|fact| fact.paths.len() < vote.plan.paths.len())
}
