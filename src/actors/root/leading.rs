//! Root works only while it leads: it drives the election, builds its household when it is won, and ends it in order when
//! it is lost.

use std::time::Duration;

use actix::{ActorFutureExt, Context, WrapFuture};

use super::{Root, drain};
use crate::actors::observation::Observation;
use crate::actors::shell::{Drives, Shell};
use crate::domain::lease::{Claim, Effect, Election, Event};
use crate::ports::{PortError, Retry};

/// How long giving the lease back may take at the end; whoever takes over waits 15 s where it fails.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);

impl Drives<Election> for Root {
    fn shell(&mut self) -> Option<&mut Shell<Election>> {
        self.election.as_mut()
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        let Some(lease) = self.surroundings.ports.lease.clone() else { return };
        match effect {
            Effect::Look => self.ask(ctx, async move { lease.look().await }, |found| answered(found, Event::Looked)),
            Effect::Take(over) => {
                let taking = async move { lease.take(over.as_ref()).await };
                self.ask(ctx, taking, |taken| answered(taken, Event::Taken));
            }
            Effect::Release(claim) => self.to_release = Some(claim),
        }
    }

    fn perform_all(&mut self, effects: Vec<Effect>, ctx: &mut Context<Self>) {
        for effect in effects {
            self.perform(effect, ctx);
        }
        self.arm(ctx);
        self.follow(ctx);
    }
}

impl Root {
    /// Begins: with the election where there is one, else with the work.
    pub(super) fn begin(&mut self, ctx: &mut Context<Self>) {
        if self.election.is_some() {
            self.tick(ctx);
        } else {
            self.open(ctx);
        }
    }

    /// Does what the election came to, if that has changed.
    fn follow(&mut self, ctx: &mut Context<Self>) {
        self.tell_lease_trouble();
        let Some(election) = self.election.as_ref().map(Shell::machine).filter(|_| !self.draining) else { return };
        match (election.leads(), self.leading) {
            (true, false) => {
                tracing::info!("leading: this replica works");
                self.leading = true;
                // What ends the household in order opens the ledger when it is done.
                if !self.standing_down {
                    self.open(ctx);
                }
            }
            (false, true) => {
                tracing::warn!(
                    leader = election.leader(),
                    "another replica has taken over; ending all work, and standing by"
                );
                self.leading = false;
                self.stand_down(ctx);
            }
            (true, true) => {}
            (false, false) => {
                let leader = election.leader().map(str::to_owned);
                if leader.is_some() && leader != self.told_leader {
                    tracing::info!(leader, "standing by: another replica leads");
                }
                self.told_leader = leader;
            }
        }
    }

    /// Ends all work in order, and goes on with the election.
    fn stand_down(&mut self, ctx: &mut Context<Self>) {
        self.standing_down = true;
        let household = self.household.take();
        let leash = std::mem::take(&mut self.leash);
        let ending = async move {
            drain(household).await;
            leash.end().await;
        };
        let ended = ending.into_actor(self).map(|(), root: &mut Self, ctx| {
            root.opening = None;
            root.standing_down = false;
            if root.leading && !root.draining {
                root.open(ctx);
            }
        });
        self.open_by(ended, ctx);
    }

    /// Gives the lease back, if it is ours.
    pub(super) fn resign(&mut self, ctx: &mut Context<Self>) -> impl Future<Output = ()> + use<> {
        self.feed(Event::Resigned, ctx);
        let held: Option<Claim> = self.to_release.take();
        let lease = self.surroundings.ports.lease.clone();
        async move {
            let (Some(claim), Some(lease)) = (held, lease) else { return };
            match tokio::time::timeout(RELEASE_WITHIN, lease.release(&claim)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the lease is not given back; the next replica waits for its end");
                }
                Err(_) => tracing::warn!("the lease is not given back in time; the next replica waits for its end"),
            }
        }
    }

    /// What is shown while there is no household.
    pub(super) fn blank(&self) -> Observation {
        let election = self.election.as_ref().map(Shell::machine);
        let standing_by = election.and_then(Election::leader).map(str::to_owned);
        let mut troubles: Vec<String> = election.and_then(Election::trouble).into_iter().collect();
        match election {
            Some(election) if !election.leads() && standing_by.is_none() => {
                troubles.push("it is not known yet whether another replica leads".to_owned());
            }
            _ if standing_by.is_none() => troubles.push("the ledger has not been opened yet".to_owned()),
            _ => {}
        }
        Observation { troubles, standing_by, ..Observation::default() }
    }

    /// What is wrong with the lease, while there is a household.
    pub(super) fn lease_trouble(&self) -> Option<String> {
        self.election.as_ref().map(Shell::machine).and_then(Election::trouble)
    }

    fn tell_lease_trouble(&mut self) {
        let trouble = self.lease_trouble();
        if let Some(trouble) = trouble.as_ref().filter(|_| trouble != self.told_trouble) {
            self.surroundings.metrics.failure("lease");
            tracing::warn!("{trouble}");
        }
        self.told_trouble = trouble;
    }
}

fn answered(answer: Result<Option<Claim>, PortError>, event: impl Fn(Option<Claim>) -> Event) -> Event {
    match answer {
        Ok(claim) => event(claim),
        Err(error) => Event::Failed { why: error.to_string(), lasting: error.retry == Retry::Never },
    }
}
