//! Lives of the program that end abruptly: what is worked on is noted where `domain::lives` asks for it, and what may have ended
//! them rests.

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::{Aside, DeploymentWatcher};
use domain::id::WorkloadId;
use domain::lives::Leave;
use domain::ports::PinError;
use domain::refusal::Cause;
use domain::rollout::Arrival;
use domain::workload::Workload;

impl DeploymentWatcher {
    /// Starts a rollout actor, as soon as that may be.
    pub(super) fn start(
        &mut self,
        id: &WorkloadId,
        latest: Option<Box<Workload>>,
        arrival: Arrival,
        ctx: &mut Context<Self>,
    ) {
        if self.draining {
            return;
        }
        match self.lives.ask(id) {
            Leave::Now => self.start_now(id, latest, arrival, ctx),
            Leave::Noted => {
                self.aside.insert(id.clone(), Aside { latest, arrival, told: false });
                self.store_life(ctx);
            }
            Leave::Rests => {
                let why = self.lives.why_rests(id).unwrap_or_default();
                tracing::error!(workload = %id.spoken(), why, "the workload is left alone for a while; its record is unchanged");
                let message = format!("it is left alone for now: {why}. Its record is unchanged");
                self.put_aside(id, Aside { latest, arrival, told: true }, &why, message, ctx);
            }
        }
    }

    /// A workload that was put aside is tried again.
    pub(super) fn resume(&mut self, id: &WorkloadId, ctx: &mut Context<Self>) {
        if let Some(Aside { latest, arrival, .. }) = self.aside.remove(id) {
            self.troubles.attended(id);
            self.start(id, latest, arrival, ctx);
        }
    }

    /// Lets those that rest have their turn, and stores what is to be noted. Asked with every sweep.
    pub(super) fn look_after_lives(&mut self, ctx: &mut Context<Self>) {
        if let Some(id) = self.lives.tick(self.surroundings.ports.clock.now()) {
            tracing::warn!(workload = %id.spoken(), "a workload that may have ended allclear abruptly is tried again, alone");
            self.resume(&id, ctx);
        }
        // One such end may be a node that was lost: that is worth a line in the log.
        self.troubles.lives(self.lives.words().filter(|_| self.lives.abrupt() > 1));
        self.store_life(ctx);
    }

    fn store_life(&mut self, ctx: &mut Context<Self>) {
        let Some(note) = self.lives.to_store() else { return };
        let surroundings = self.surroundings.clone();
        let (directory, origin) = (self.directory.clone(), self.origin.clone());
        let storing = async move {
            let stored = surroundings.ports.ledger.store_life(&note, None).await;
            match &stored {
                Ok(()) => drop(surroundings.heard(Cause::WriteLedger, LIFE, None)),
                Err(PinError::Unavailable(error)) => drop(surroundings.heard(Cause::WriteLedger, LIFE, Some(error))),
                Err(PinError::Lost(_)) => directory.report_lost(&origin),
            }
            stored
        };
        ctx.spawn(storing.into_actor(self).map(|stored, actor, ctx| {
            if let Err(error) = &stored {
                actor.surroundings.metrics.failure("store_life");
                tracing::debug!(%error, "what is worked on could not be noted; it is worked on all the same");
            }
            for id in actor.lives.stored(stored.is_ok()) {
                if let Some(Aside { latest, arrival, .. }) = actor.aside.remove(&id) {
                    actor.start_now(&id, latest, arrival, ctx);
                }
            }
            // One that failed is tried again with the next sweep.
            if stored.is_ok() {
                actor.store_life(ctx);
            }
        }));
    }

    /// Says in the ledger that this life has ended in order.
    pub(super) fn close_life(&self) -> impl Future<Output = ()> + use<> {
        let (closed, ledger) = (self.lives.close(), self.surroundings.ports.ledger.clone());
        async move {
            let Some((life, over)) = closed else { return };
            if let Err(error) = ledger.store_life(&life, Some(&over)).await {
                tracing::warn!(%error, "could not note that this life ends in order; the next one takes it for an abrupt end");
            }
        }
    }
}

/// What a failed call says it was about.
const LIFE: &str = "what is worked on";
