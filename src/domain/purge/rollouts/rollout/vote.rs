//! From complete to voted: the vector that all members have reached, the site, the last look, and the vote. Between the site and the last
//! look, caches are asked (`between`).

pub(super) mod routes;

use crate::agreement::group::{self, Fate, Verdict};
use crate::bounds::plan::Plan;
use crate::bounds::policy::{Choice, OnRollback, Policy};
use crate::records::record::{
    Brief, ByHost, Cast, Change, Edge, Outcome, Phase, RECORD_BYTES_MAX, Record, Times, VOTE_GROWTH_BYTES, VOTES_MAX,
    Vote, VotePurges,
};
use crate::records::record_codec;
use crate::rollouts::rollout::news::news;
use crate::rollouts::rollout::passed;
use crate::rollouts::rollout::sight::Sight;
use crate::rollouts::rollout::{Effect, FoundSite, Rollout, ballot, site};
use crate::workloads::workload::Workload;
use kernel::id::Vector;
use kernel::machine::Timestamp;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use notices::notice::Kind;

/// How far a vote is.
pub(super) enum Approach {
    Waits,
    /// Its site is searched for.
    Finds(Effect),
    /// Its site is found.
    Comes(Vector),
}

impl Rollout {
    /// Brings the record up to the group's configuration. A vote under another one stays as it is: we may not have seen all
    /// votes, so it may be decided. If the others vote under the new one, it is [`Fate::Mixed`].
    pub(super) fn reconfigure(&mut self) {
        if self.identity.is_alone() {
            // From a time with other members. No member needs them any more.
            self.record.draft.iter_mut().for_each(|draft| draft.passed.clear());
        }
        if let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.config != self.ballot.view.config) {
            draft.config.clone_from(&self.ballot.view.config);
        }
    }

    /// Never vote for fewer members after a vote for more: a member that saw the first vote takes the second vector for dead.
    /// If the new vector leaves out a member of the earlier vote, the rollout gets a new number, and so does the vector. We
    /// remember the omission like a vote, so an older copy does not undo it.
    pub(super) fn renew_for_fewer(&mut self) {
        let Some(draft) = self.record.draft.as_mut().filter(|draft| draft.phase == Phase::Complete) else { return };
        let Verdict::Candidate(vector) = group::judge(&self.ballot.view, &self.identity.member, &self.policy.group)
        else {
            return;
        };
        let seq = draft.seq;
        // Where it is left out itself, it has nothing to vote for.
        let is_ours = self.identity.is_of(draft, &vector);
        if !is_ours || draft.vote_for(seq).is_some() || !group::is_sought(&self.ballot.view, &vector) {
            return;
        }
        let fewer = |last: &&mut Brief| {
            last.contains(&Brief::of(&vector)) && last.precedes(&group::brief_of(&self.ballot.view, &vector))
        };
        if let Some(last) = draft.last.as_mut().filter(fewer) {
            group::leave_out(&self.ballot.view, &vector, last);
            self.bump_seq(seq);
        }
    }

    /// Remembers a vote that came before the one it remembers as its last: whoever waits to see that its end is known here would wait
    /// until the next rollout.
    pub(super) fn recall_last(&mut self) {
        let origin = &self.identity.origin;
        let Some(draft) = self.record.draft.as_mut().filter(|draft| !draft.is_unsettled()) else { return };
        let Some(last) = &draft.last else { return };
        let own = (&self.identity.member, &draft.component(origin));
        if let Some(vector) = group::closed_since(&self.ballot.view, own.0, own.1, last) {
            draft.remember_last(Some(group::brief_of(&self.ballot.view, &vector)));
        }
    }

    /// The vector to vote for now, if there is one that this member has neither voted for nor moved past. A member whose own
    /// workload is at rest votes as well, when another one asks for it.
    pub(super) fn candidate(&self) -> Option<Vector> {
        let draft = self.record.draft.as_ref().filter(|draft| self.may_vote_by_name(draft))?;
        let (view, own, agreement) = (self.outlook(), &self.identity.member, &self.policy.group);
        let origin = &self.identity.origin;
        let newest = draft.component(origin);
        let newest = (draft.phase == Phase::Complete).then(|| (newest, group::judge(&view, own, agreement)));
        // A later one first: its purge is one for those before.
        let passed = draft.passed.iter().rev();
        let passed =
            passed.map(|passed| (passed.component(origin), group::judge_passed(&view, own, passed, agreement)));
        let mut vectors = newest.into_iter().chain(passed).flat_map(|(component, verdict)| {
            let judged = match verdict {
                Verdict::Candidate(vector) => Some(vector),
                Verdict::Waiting(_) => None,
            };
            judged.into_iter().chain(group::voted_elsewhere(&view, own, &component, agreement))
        });
        let is_due = |vector: &Vector| {
            let follows = |last: &Brief| {
                let next = group::brief_of(&view, vector);
                last.precedes(&next) && !last.contains(&Brief::of(vector)) && !last.has_had(&draft.lives, &next)
            };
            let new = draft.vote(vector).is_none() && draft.last.as_ref().is_none_or(follows);
            let sought = if self.identity.is_alone() { draft.awaits_vote() } else { group::is_sought(&view, vector) };
            let is_held = self.identity.is_of(draft, vector) || self.passed_in(draft, vector).is_some();
            new && sought && is_held
        };
        vectors.find(is_due)
    }

    /// The first step before a vote: the site is found. The caches between come next.
    pub(super) fn approach_vote(&mut self, now: Timestamp) -> Approach {
        let Some(record) = self.record.durable.as_ref() else { return Approach::Waits };
        if self.workload().is_none_or(|workload| workload.tuning.disabled) {
            return Approach::Waits;
        }
        let Some(vector) = self.candidate().filter(|_| self.record.draft.as_ref().is_some_and(|d| d.seq == record.seq))
        else {
            self.site.forget();
            self.ballot.caches.put_off(now);
            return Approach::Waits;
        };
        let open = record.votes.iter().filter(|vote| vote.closed.is_none());
        if open.filter(|vote| matches!(group::fate(&self.ballot.view, &vote.vector), Fate::Open(_))).count()
            >= VOTES_MAX
        {
            let why =
                format!("{VOTES_MAX} earlier votes still wait for other members; it goes on when one of them ends");
            self.announce(now, Kind::PurgeFailed, format!("not voted for: {why}"));
            return Approach::Waits;
        }
        if !self.ballot.recheck.is_due(now) {
            return Approach::Waits;
        }
        if self.site.found().is_some() {
            return Approach::Comes(vector);
        }
        let Some(workload) = self.workload().cloned() else { return Approach::Waits };
        let (seq, had) = (record.seq, record.last_hosts());
        let find = self.site.find(now, seq, &workload, had, &self.policy.tenants);
        find.map_or(Approach::Waits, Approach::Finds)
    }

    /// The last step before a vote: our own workload is looked at once more (GA-4).
    pub(super) fn look_once_more(&mut self, vector: Vector) -> Effect {
        self.ballot.recheck.asked();
        Effect::Recheck(vector)
    }

    /// In a group of one a vote is decided once it is stored. What it purges is found before that, so that one write holds both.
    pub(super) fn match_ahead(&mut self, now: Timestamp) -> Option<Effect> {
        let is_unknown = |vote: &&Vote| vote.purges.want_match() && !self.purges.are_none(&vote.vector);
        let unstored = self.record.unstored_vote().filter(|_| self.identity.is_alone());
        let vector = unstored.filter(is_unknown)?.vector.clone();
        let plan = ballot::plan(&self.outlook(), &vector)?;
        self.purges.begins_match(now, &vector).then(|| Effect::Match(vector, Box::new(plan)))
    }

    /// Whether an answer is outstanding by which the draft of a group of one gets its vote, or the vote what it purges. No other
    /// member waits for what the draft says already, so all of it is one write. Where old pods were waited for in vain, completion is
    /// stored at once, so that no later life waits again.
    pub(super) fn vote_follows(&self) -> bool {
        let Some(draft) = self.record.draft.as_ref().filter(|_| self.identity.is_alone()) else { return false };
        let asks = self.site.call().is_asked() || self.ballot.recheck.is_asked() || self.ballot.caches.is_asked();
        if self.site.call().is_asked() && self.wants_site_of_failure() {
            return true;
        }
        let is_sought = |vote: &Vote| self.purges.is_matching(&vote.vector);
        self.barrier.was_quiet(draft.seq)
            && ((asks && self.candidate().is_some()) || self.record.unstored_vote().is_some_and(is_sought))
    }

    /// The fresh look before a vote came back. It counts only if the group still stands where it stood.
    pub(super) fn rechecked(&mut self, now: Timestamp, vector: &Vector, workload: Option<Box<Workload>>) {
        let again = self.again(now);
        if !self.ballot.recheck.is_asked() {
            // It was asked for in an earlier life.
            return;
        }
        if self.ballot.recheck.is_outdated() {
            self.ballot.recheck.repeat(again);
            return;
        }
        let Some(workload) = workload else {
            self.ballot.recheck.repeat(again);
            // To be confirmed by a look, as when the watch says so.
            self.sighting.sight = Sight::Missing;
            return;
        };
        let workload = self.read_afresh(now, workload);
        // Of what was gone past, nothing has to stand any more. What runs now is the draft's version, or there is news; and where
        // that ran before, the draft has not kept what came after.
        let then = self.record.draft.as_ref().and_then(|draft| self.passed_then(draft, vector));
        let stands = then.is_some() || self.still_stands(now, &workload);
        let still = self.ballot.view.hold.is_none() && self.candidate().as_ref() == Some(vector);
        let confirmed = stands && self.is_as_recorded(&workload);
        let at_ms = self.identity.wall_ms(now);
        let alone = self.identity.is_alone();
        match (&mut self.record.draft, self.site.found()) {
            (Some(draft), Some(found)) if still && confirmed => {
                let mut voted = draft.clone();
                let of = then.as_ref().unwrap_or(draft);
                let of_group = (&self.ballot.view, vector);
                let (paths, routed, routes) = routes::to_vote((draft, of), found, &workload, of_group, &self.policy);
                let (site, last) = site::to_vote(found, draft.last_site().as_ref(), &workload, &self.policy);
                let lost = site::lost(found, draft.last_site().as_ref(), &workload, &self.policy);
                let cast = vote(of, vector, &workload, (&*site, paths, routed), &self.policy, at_ms);
                let mut cast = then.iter().fold(cast, passed::overtaken);
                let seq = cast.seq;
                cast.plan.distributions.extend(last);
                voted.votes.push(cast);
                voted.site = Some(site::seen(found, draft, &workload, &self.policy.tenants));
                voted.leads = site::led(found, draft, &workload);
                voted.routes = routes;
                voted.remember_last((!alone).then(|| group::brief_of(&self.ballot.view, vector)));
                if !draft.votes.is_empty() && !has_room(voted.clone()) {
                    // No room beside the earlier votes; those close sooner or later.
                    self.site.forget();
                    let why = "its record has no room for another vote before an earlier one is closed";
                    self.ballot.recheck.failed(again, why);
                    self.announce(now, Kind::PurgeFailed, format!("not voted for: {why}"));
                    return;
                }
                *draft = voted;
                self.purges.voted(vector, now);
                self.ballot.voted();
                // Votes are a chain: none for an earlier number follows.
                self.let_go(now, Kind::RolloutSuperseded, &Outcome::Superseded, |passed| passed.seq < seq);
                self.mention_what_is_left_out(now, vector);
                lost.into_iter().for_each(|message| self.announce(now, Kind::SiteLost, message));
            }
            _ => {
                self.site.forget();
                self.ballot.recheck.repeat(again);
            }
        }
    }

    /// Whether the record has no news of this workload to take in.
    fn is_as_recorded(&self, workload: &Workload) -> bool {
        let policy = &self.policy;
        self.record.draft.as_ref().is_some_and(|draft| {
            !workload.tuning.disabled
                && workload.version.is_ok()
                && draft.group_version == workload.tuning.group_version
                && ballot::is_called(draft, workload, policy)
                && news(draft, workload, policy).is_none()
        })
    }

    /// A vote has room for about a thousand hosts. Only hosts in the votes are purged, so a notice must mention the
    /// others.
    fn mention_what_is_left_out(&mut self, now: Timestamp, vector: &Vector) {
        let (Some(site), Some(vote)) =
            (self.site.found(), self.record.draft.as_ref().and_then(|draft| draft.vote(vector)))
        else {
            return;
        };
        let has_place = |host: &&Host| vote.plan.hosts.contains(*host);
        let left_out = site.hosts.len() - site.hosts.iter().filter(has_place).count();
        let left_out = left_out + site.origins.len() - vote.plan.origins.len();
        let refused = site.refused.join("; ");
        if left_out > 0 {
            let message = format!(
                "{left_out} of its hosts are left out of the purge, because its record has no room for them; name its \
                 distributions by allclear.dev/distribution-ids, or fewer hosts by allclear.dev/hosts"
            );
            self.announce(now, Kind::WorkloadFaulty, message);
        }
        if !refused.is_empty() {
            let message =
                format!("not purged, because it is not the namespace's own (tenants.default is own): {refused}");
            self.announce(now, Kind::WorkloadFaulty, message);
        }
    }
}

/// Whether votes have room to grow. Owed purges may use that room, but block no vote by themselves.
fn has_room(mut record: Record) -> bool {
    record_codec::shed(&mut record);
    let votes = Record { owed: Vec::new(), ..record.clone() };
    let fits = |text: String| text.len() <= RECORD_BYTES_MAX - VOTE_GROWTH_BYTES;
    record_codec::encode(&record).is_ok() && record_codec::encode(&votes).is_ok_and(fits)
}

/// The vote this member casts for `vector`: everything a purge of it depends on (GA-7).
fn vote(
    draft: &Record,
    vector: &Vector,
    workload: &Workload,
    (site, paths, routed): (&FoundSite, PathSet, ByHost),
    policy: &Policy,
    at_ms: i64,
) -> Vote {
    let edge_has_it = draft.edge == Edge::Settled && draft.settled.is_none();
    // A request is kept beside the change until something purged it.
    let requested = draft.request.is_some();
    let change = match draft.seq > draft.closed {
        true if requested => Change::Requested,
        true => draft.change,
        false => Change::Baseline,
    };
    let named = workload.tuning.distributions.iter().flatten();
    let named = named.filter(|id| policy.tenants.allows_distribution(&workload.id.namespace, id));
    let plan = Plan {
        hosts: site.hosts.clone(),
        except: site.except.clone(),
        narrow: site.narrow.clone(),
        routed,
        origins: site.origins.clone(),
        distributions: named.cloned().collect(),
        paths,
    };
    Vote {
        vector: vector.clone(),
        name: draft.group_name.as_ref().map(|alias| alias.name.clone()),
        seq: draft.seq,
        version: draft.version.clone(),
        cast: Cast {
            change,
            returned: change == Change::Changed && edge_has_it && policy.on_rollback != OnRollback::Purge,
            late: change == Change::Recovered && policy.on_recovered == Choice::Skip,
            rules: policy.group.rules,
            config: draft.config.clone(),
            at_ms,
        },
        plan: plan.for_a_vote(),
        purges: VotePurges::default(),
        change_words: String::new(),
        times: if change == Change::Baseline { Times::default() } else { draft.times },
        closed: None,
        why: String::new(),
    }
}
