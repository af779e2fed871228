//! The rollout actors: started where a workload needs attention or another member waits for it, buried when they end, and
//! rebuilt when they crash, within a budget.

use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};

use super::{Aside, Child, DeploymentWatcher};
use crate::actors::lifecycle::Obituary;
use crate::actors::message::{Died, End, Wanted, Who};
use crate::actors::rollout::{RolloutActor, Start};
use domain::id::{Seq, WorkloadId};
use domain::notice::Kind;
use domain::record::Record;
use domain::rollout::{Arrival, Summary, timeout};
use domain::workload::Workload;

/// How long a workload is left alone whose actor crashed too often, or wrote too often, before it is tried again (decision 16).
const QUARANTINE: Duration = Duration::from_secs(300);

/// Rollouts that ended and are still shown.
const RECENT_MAX: usize = 50;

impl DeploymentWatcher {
    /// Starts a rollout actor. `arrival` is what the workload is taken for if it has no record: a life that follows a crash is
    /// given what the first one was.
    pub(super) fn start_now(
        &mut self,
        id: &WorkloadId,
        sight: Option<Box<Workload>>,
        arrival: Arrival,
        ctx: &mut Context<Self>,
    ) {
        if self.draining {
            return;
        }
        let known = self.records.get(id).cloned().map(Box::new);
        let spent = if known.is_some() { Seq::default() } else { self.spent };
        let (workload, origin) = (id.clone(), self.origin.clone());
        let start = Start { workload, origin, sight: sight.clone(), arrival, known, spent };
        let pods = ctx.address().recipient();
        let obituary = Obituary::new(ctx.address().recipient(), Who::Rollout(id.clone()));
        let child = RolloutActor::new(
            start,
            self.surroundings.clone(),
            self.directory.clone(),
            pods,
            self.leash.collar(),
            obituary,
        );
        let child = Child { addr: child.start(), latest: sight, arrival, lagging: false, astray: false };
        self.children.insert(id.clone(), child);
        self.count();
    }

    /// A child is dead. What it leaves is looked at again in the light of the newest sight.
    pub(super) fn bury(&mut self, id: &WorkloadId, end: End, ctx: &mut Context<Self>) {
        let Some(child) = self.children.get(id).filter(|child| !child.addr.connected()) else { return };
        let (latest, arrival) = (child.latest.clone(), child.arrival);
        self.children.remove(id);
        self.lives.ended(id);
        match end {
            End::Finished(record) => {
                self.remember(id, record.as_deref(), latest.as_deref());
                match record {
                    Some(record) => drop(self.records.insert(id.clone(), *record)),
                    None => self.removed = self.removed.max(self.records.remove(id).map(|record| record.seq)),
                }
                self.budgets.remove(id);
                if latest.is_some() {
                    self.attend(id, latest, ctx);
                }
            }
            End::Drained => {}
            End::Crashed => self.rebuild(id, latest, arrival, ctx),
            End::Overdrawn => {
                let why = "its record was written over and over while nothing happened, which is a mistake of allclear: please \
                           report it";
                self.quarantine(id, latest, arrival, why, ctx);
            }
        }
        self.count();
    }

    fn rebuild(&mut self, id: &WorkloadId, latest: Option<Box<Workload>>, arrival: Arrival, ctx: &mut Context<Self>) {
        let now = self.surroundings.ports.clock.now();
        self.surroundings.metrics.restart("rollout");
        if self.budgets.entry(id.clone()).or_default().spend(now) {
            tracing::error!(workload = %id.spoken(), "the rollout's actor crashed; it is rebuilt from the ledger");
            return self.start(id, latest, arrival, ctx);
        }
        self.quarantine(id, latest, arrival, "its actor crashed too often; the log says why", ctx);
    }

    /// Leaves a workload alone for a while, its record unchanged (decision 16).
    fn quarantine(
        &mut self,
        id: &WorkloadId,
        latest: Option<Box<Workload>>,
        arrival: Arrival,
        why: &str,
        ctx: &mut Context<Self>,
    ) {
        tracing::error!(
            workload = %id.spoken(),
            retry_s = QUARANTINE.as_secs(),
            why,
            "the workload is left alone for a while; its record is unchanged"
        );
        let message = format!("it is left alone for {} s: {why}. Its record is unchanged", QUARANTINE.as_secs());
        self.put_aside(id, Aside { latest, arrival, told: true }, why, message, ctx);
        let id = id.clone();
        ctx.run_later(QUARANTINE, move |actor, ctx| actor.resume(&id, ctx));
    }

    /// Puts a workload aside, and tells why.
    pub(super) fn put_aside(
        &mut self,
        id: &WorkloadId,
        aside: Aside,
        why: &str,
        message: String,
        ctx: &mut Context<Self>,
    ) {
        let uid = self.records.get(id).map_or_else(String::new, |record| record.uid.clone());
        let notice = self.notice(id, Kind::RolloutStuck, message);
        ctx.spawn(self.tell(notice, uid).into_actor(self));
        self.troubles.left_alone(id, why);
        self.aside.insert(id.clone(), aside);
    }

    fn remember(&mut self, id: &WorkloadId, record: Option<&Record>, latest: Option<&Workload>) {
        let Some(record) = record.filter(|record| !record.history.is_empty()) else { return };
        let policy = &self.surroundings.settings.policy;
        let clock = (record.elapsed(), timeout(latest, policy));
        self.recent.retain(|summary| summary.workload != *id);
        self.recent.insert(0, Summary::new(id, record, latest, None, clock, policy));
        self.recent.truncate(RECENT_MAX);
    }
}

impl Handler<Died> for DeploymentWatcher {
    type Result = ();

    fn handle(&mut self, Died { who, end }: Died, ctx: &mut Self::Context) {
        match who {
            Who::Rollout(id) => self.bury(&id, end, ctx),
            Who::Singleton(_) => {}
        }
    }
}

impl Handler<Wanted> for DeploymentWatcher {
    type Result = ();

    /// Starts a rollout without a sight: it looks for itself. If one cannot be started now, it is wanted again.
    fn handle(&mut self, Wanted(id): Wanted, ctx: &mut Self::Context) {
        let is_seen_to = self.children.contains_key(&id) || self.aside.contains_key(&id);
        let is_being_written = self.baselines.contains_key(&id) || self.writing.contains(&id);
        // Before everything was listed a workload may have no record yet and be about to get one.
        if self.synced && !is_seen_to && !is_being_written && !self.barred.contains_key(&id) {
            let arrival = if self.listed.covers(&id) { Arrival::New } else { Arrival::Open };
            self.start(&id, None, arrival, ctx);
        }
    }
}
