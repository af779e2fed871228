//! The rollouts that follow a workload: they get its views, and say how they stand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix::Context;
use futures_util::future::join_all;

use super::ClusterGroupActor;
use crate::actors::message::{Follower, Observe, ViewReported};
use crate::actors::shell::Drives;
use crate::telemetry::passages::{Passage, passages};
use kernel::id::{Seq, WorkloadId};
use kernel::shares;
use purge::agreement::group::NumberedView;
use purge::agreement::roster::{Saying, WORDS_CHARS_MAX};
use purge::broker::Event;
use purge::rollouts::rollout::Summary;

/// How often we check for rollouts that have ended, and repeat views to full mailboxes.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Rollouts whose words go into a beat. A beat is read by every member every 5 s; the status page has all of them.
const WORDS_MAX: usize = 50;

/// How long a rollout may take to say how it stands, before the beat goes without it.
const WORDS_WITHIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Followers {
    by_workload: BTreeMap<WorkloadId, Follower>,
    /// Those whose mailbox was full.
    untold: BTreeSet<WorkloadId>,
    /// Views given out so far.
    views: u64,
}

impl Followers {
    /// A rollout follows this workload from now on; it gets the view as an answer.
    pub(super) fn begin(&mut self, workload: WorkloadId, follower: Follower) {
        self.untold.remove(&workload);
        self.by_workload.insert(workload, follower);
    }

    /// The workloads that are followed.
    pub(super) fn workloads(&self) -> impl Iterator<Item = &WorkloadId> {
        self.by_workload.keys()
    }

    /// Forgets those that have ended; returns their workloads.
    fn forget_ended(&mut self) -> Vec<WorkloadId> {
        let ended = self.by_workload.extract_if(.., |_, follower| !follower.view_reported.connected());
        ended.map(|(workload, _)| workload).collect()
    }
}

impl ClusterGroupActor {
    /// The next view of a workload. Answers and reports may overtake each other, so they are numbered.
    pub(super) fn view(&mut self, workload: &WorkloadId) -> NumberedView {
        self.followers.views = self.followers.views.saturating_add(1);
        NumberedView { number: self.followers.views, view: self.shell.machine().view(self.shell.now(), workload) }
    }

    pub(super) fn tell(&mut self, workload: &WorkloadId) {
        let follower = self.followers.by_workload.get(workload);
        let Some(view_reported) = follower.map(|follower| follower.view_reported.clone()) else { return };
        let view = self.view(workload);
        if view_reported.try_send(ViewReported(view)).is_err() && view_reported.connected() {
            self.env.metrics.overflow("rollout");
            self.followers.untold.insert(workload.clone());
        }
    }

    /// Asks some rollouts how they stand.
    pub(super) fn gather_words(&mut self, ctx: &mut Context<Self>) {
        let all = self.followers.by_workload.keys().map(|workload| (workload.namespace.as_str(), workload));
        let chosen = shares::in_turn(WORDS_MAX, all, |_| false);
        let asked = chosen.into_iter().filter_map(|workload| self.followers.by_workload.get(workload));
        let asked: Vec<_> = asked.map(|follower| follower.observe.send(Observe).timeout(WORDS_WITHIN)).collect();
        let (clock, metrics) = (self.env.ports.clock.clone(), self.env.metrics.clone());
        self.ask(ctx, async move { (join_all(asked).await, clock.wall_ms()) }, move |(seen, at_ms)| {
            let passages = metrics.chronicle.read(|moments| passages(moments));
            let rollouts = seen.into_iter().flatten().flat_map(|seen| seen.rollouts);
            let sayings = rollouts.filter_map(|Summary { workload, seq, own, .. }| {
                let passage = passages.iter().find(|one| one.workload == workload && one.seq == seq);
                let since_ms = passage.and_then(Passage::since);
                let words = own?.chars().take(WORDS_CHARS_MAX).collect();
                Some((workload, Saying { seq: Seq(seq), words, since_ms }))
            });
            Event::WordsGathered(sayings.collect(), at_ms)
        });
    }

    pub(super) fn sweep(&mut self, ctx: &mut Context<Self>) {
        for workload in std::mem::take(&mut self.followers.untold) {
            self.tell(&workload);
        }
        for workload in self.followers.forget_ended() {
            self.feed(Event::Left(workload), ctx);
        }
    }
}
