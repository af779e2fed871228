//! The conductor: what follows from the present facts, stage by stage, in the order of a rollout's life.
//!
//! ```text
//! observe ──▶ barrier ──▶ between ──▶ vote ──▶ execute, owed ──▶ close ──▶ tell ──▶ write
//!                                     └── group_timeout ──────────▲
//! ```
//!
//! No stage calls another. Each returns its result, and this file decides what follows.

use std::ops::ControlFlow::{Break, Continue};

use crate::agreement::group::{self, Decision, Fate, Naming};
use crate::bounds::plan::Plan;
use crate::records::record::{Change, Outcome, Phase, Vote};
use crate::rollouts::rollout::between::Cleared;
use crate::rollouts::rollout::close::{self, Parting, VectorEnd};
use crate::rollouts::rollout::observe::Course;
use crate::rollouts::rollout::sight::Sight;
use crate::rollouts::rollout::vote::Approach;
use crate::rollouts::rollout::{Effect, Rollout, ballot};
use crate::workloads::workload::Workload;
use kernel::id::Vector;
use kernel::machine::Timestamp;
use kernel::names::image::Version;
use notices::notice::Kind;

impl Rollout {
    /// Everything that follows from the present facts. Called after every event and tick; does nothing when nothing has changed.
    /// `fresh` means that the sight is a look made just now.
    pub(super) fn advance(&mut self, now: Timestamp, fresh: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.wake(now);
        effects.extend(self.ballot.publish(self.record.durable.as_ref()));
        self.recover(now);
        effects.extend(self.observe(now, fresh));
        effects.extend(self.judge_failure(now));
        effects.extend(self.agree(now));
        effects.extend(self.look_at_edge(now));
        effects.extend(self.tell(now));
        let more_follows = self.vote_follows();
        effects.extend(self.record.flush(now, more_follows));
        self.ended = self.is_over();
        if self.ended {
            effects.push(Effect::End);
        }
        effects
    }

    /// Updates the draft from the latest sight.
    fn observe(&mut self, now: Timestamp, fresh: bool) -> Option<Effect> {
        let effect = match self.sighting.sight.clone() {
            Sight::Unknown => None,
            Sight::Missing => self.sighting.look(now),
            Sight::Gone => {
                self.let_go(now, Kind::RolloutFailed, &Outcome::Deleted, |_| true);
                if let Some(end) = self.depart(now) {
                    self.close(now, end);
                }
                self.absent()
            }
            Sight::Seen(workload) => {
                let (followed, asks) = self.followed(now, workload);
                let Some(workload) = followed else { return asks };
                self.take_name(&workload);
                if workload.tuning.disabled {
                    self.let_go(now, Kind::PurgeSkipped, &Outcome::SwitchedOff, |_| true);
                    if let Some(end) = self.ends_by_switch() {
                        self.leave_to_the_edge();
                        self.close(now, end);
                    }
                    self.switch_off(&workload);
                }
                let effect = match &workload.version {
                    Ok(version) if !workload.tuning.disabled => self.follow(now, &workload, version, fresh),
                    // We cannot judge it, so its clock stands still.
                    unread => {
                        if unread.is_err() && !workload.tuning.disabled {
                            self.switch_on_unread(now, &workload);
                        }
                        self.stop_clock(now);
                        None
                    }
                };
                // Also into the record of a first sight, so that both are one write.
                self.note_faults(now, &workload);
                effect.or(asks)
            }
        };
        effect.or_else(|| self.sighting.look_into_doubt(now))
    }

    /// The workload is there, and runs this version.
    fn follow(&mut self, now: Timestamp, workload: &Workload, version: &Version, fresh: bool) -> Option<Effect> {
        self.record.recall();
        let Some(record) = &self.record.draft else {
            self.first_sight(now, workload, version);
            return None;
        };
        match self.news_of(record, workload) {
            Some(Change::Requested) if record.is_in_flight() => self.join(workload),
            Some(change) => {
                self.leave_to_the_edge();
                self.go_past(now, workload, version);
                if let Some(end) = self.replaced_by(version) {
                    self.close(now, end);
                }
                self.begin(now, workload, version, change);
            }
            None => {}
        }
        self.keep_current(workload, version);
        self.note_counts(workload);
        self.record.draft.as_ref().filter(|draft| draft.phase == Phase::Rolling)?;
        match self.supervise(now, workload, fresh) {
            Course::Waits => None,
            Course::Looks => self.sighting.look(now),
            Course::Stands => self.hold(now, workload, true),
            Course::Stood => self.hold(now, workload, false),
            Course::Ends(end) => {
                self.close(now, end);
                None
            }
        }
    }

    /// Applies the group's records: a vote, a decided or dead vector, purges to continue, or the end of the
    /// wait.
    fn agree(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Naming::Refused(why) = self.ballot.view.naming.clone() {
            return self.yield_name(now, &why);
        }
        self.note_set_back();
        self.outnumber();
        if !self.view_is_current() {
            return effects;
        }
        if self.ballot.view.hold.is_none() {
            self.reconfigure();
            self.renew_for_fewer();
            self.recall_last();
            effects.extend(self.go_to_vote(now));
            effects.extend(self.match_ahead(now));
            effects.extend(self.pursue(now));
            for vector in self.owing() {
                if let Some(vote) = self.conclude_owed(&vector) {
                    self.close_owed(&vote);
                }
                self.tell_daily(now, &vector);
            }
            self.keep_few_owed(now);
            let votes: Vec<Vote> = self.record.durable.iter().flat_map(|record| record.all_kept().cloned()).collect();
            for vote in votes {
                effects.extend(self.carry_on(now, &vote));
            }
        } else {
            effects.extend(self.finish(now));
        }
        if let Some(end) = self.mind_group_timeout(now) {
            self.let_go(now, end.kind, &end.outcome, |_| true);
            self.close(now, end);
        }
        effects
    }

    /// Goes on towards a vote: the site, then the caches between, then the last look.
    fn go_to_vote(&mut self, now: Timestamp) -> Vec<Effect> {
        let vector = match self.approach_vote(now) {
            Approach::Waits => return Vec::new(),
            Approach::Finds(effect) => return vec![effect],
            Approach::Comes(vector) => vector,
        };
        match self.clear_caches(now, &vector) {
            Cleared::All => vec![self.look_once_more(vector)],
            Cleared::Waits(effects) => effects,
            Cleared::Outdated => match self.approach_vote(now) {
                Approach::Finds(effect) => vec![effect],
                Approach::Waits | Approach::Comes(_) => Vec::new(),
            },
        }
    }

    /// Goes on with a stored vote until its vector has ended, the end is announced, and the other members know it.
    fn carry_on(&mut self, now: Timestamp, vote: &Vote) -> Vec<Effect> {
        let vector = &vote.vector;
        if vote.closed.is_some() {
            self.see_told(now, vote);
            self.part(vector);
            return Vec::new();
        }
        match group::fate(&self.ballot.view, vector) {
            Fate::Open(_) => {}
            Fate::Dead(member, reason) => {
                self.end_vote(now, vector, (Outcome::Dead, format!("{member}: {reason}")));
                if ballot::keeps(&self.ballot.view, vector, &member) {
                    self.bump_seq(vote.seq);
                }
            }
            Fate::Mixed => {
                let why = "the members voted under different configurations";
                self.end_vote(now, vector, (Outcome::Dead, why.to_owned()));
                self.bump_seq(vote.seq);
            }
            Fate::Decided(Decision::Close(outcome)) => self.end_vote(now, vector, (outcome, String::new())),
            Fate::Decided(Decision::Execute(plan)) => return self.purge(now, vector, &plan),
        }
        Vec::new()
    }

    /// Under a hold nothing is decided or voted for; what was decided and made before is completed and announced
    /// (decision 54).
    fn finish(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        let votes: Vec<Vote> = self.record.durable.iter().flat_map(|record| record.all_kept().cloned()).collect();
        for vote in votes.iter().rev() {
            let vector = &vote.vector;
            if vote.closed.is_none() && vote.purges.are_known() {
                effects.extend(self.follow_made(now, vector));
                let made = self.record.open_vote(vector).filter(|vote| vote.purges.are_carried_out()).cloned();
                if let Some(made) = made {
                    let listed = self.awaits_comparison(&made, &Plan::of(&[&made])).then_some("before the hold");
                    self.close_vote(now, vector, (made.purges.outcome(), close::why(&made.purges, listed)));
                }
            } else if vote.closed.is_some() {
                effects.extend(self.order_owed(vector));
                if let Some(vote) = self.conclude_owed(vector) {
                    self.close_owed(&vote);
                }
                self.see_told(now, vote);
            }
        }
        effects
    }

    /// Another workload of this cluster has the name in the group. A vote that was cast at that moment was never
    /// published, and cannot be decided.
    fn yield_name(&mut self, now: Timestamp, why: &str) -> Vec<Effect> {
        let votes: Vec<Vote> = self.record.durable.iter().flat_map(|record| record.votes.iter().cloned()).collect();
        for vote in votes.iter().filter(|vote| !vote.purges.are_known()) {
            match vote.closed {
                None => self.end_vote(now, &vote.vector, (Outcome::Dead, why.to_owned())),
                Some(_) => self.part(&vote.vector),
            }
        }
        self.finish(now)
    }

    /// Goes on with a vector that is to be purged.
    fn purge(&mut self, now: Timestamp, vector: &Vector, plan: &Plan) -> Vec<Effect> {
        self.adopt(now, vector, plan);
        self.cover_older(vector, Some(&plan.paths));
        self.owe(now, vector, plan);
        match self.execute(now, vector, plan) {
            Continue(effects) => effects,
            Break(end) => {
                self.end_vote(now, vector, end);
                Vec::new()
            }
        }
    }

    /// The vector of an open vote has ended. The vote itself stays until the other members know.
    pub(super) fn end_vote(&mut self, now: Timestamp, vector: &Vector, end: VectorEnd) {
        if self.close_vote(now, vector, end) {
            self.part(vector);
        }
    }

    /// Parts with a closed vote, as far as that is possible.
    fn part(&mut self, vector: &Vector) {
        match self.parting(vector) {
            Parting::Stays => {}
            Parting::Owes => self.keep_owed(vector),
            Parting::Goes => self.drop_vote(vector),
        }
    }
}
