//! How a rollout begins: it reads its record, with retries until that works, and its machine goes on from there.

use std::cell::RefCell;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context, Recipient, WrapFuture};

use super::RolloutActor;
use crate::actors::message::TellNotice;
use crate::actors::shell::{Drives, Shell};
use crate::actors::telling::tell_at_once;
use crate::actors::traffic::TrafficMoved;
use crate::actors::{Env, LOAD};
use kernel::floor::Floor;
use kernel::id::{Nonces, Origin, WorkloadId};
use kernel::machine::millis;
use kernel::refusal::Cause;
use kernel::retry;
use purge::ports::PortError;
use purge::records::record::Record;
use purge::rollouts::rollout::{Attended, Event, Identity, Rollout, Unloaded};

/// What reading a record needs.
struct Loading {
    /// The outside, and where counts go.
    env: Env,
    /// The workload of the record.
    workload: WorkloadId,
    origin: Origin,
    /// The workload's Kubernetes UID, for Events on it; empty where it is gone.
    uid: String,
    /// Where its notices for webhooks go.
    tell_notice: Recipient<TellNotice>,
    /// Its progress, in words.
    progress: Rc<RefCell<String>>,
}

impl Loading {
    /// The record, if there is one, and the floor a new one starts above.
    async fn read(self) -> (Option<Record>, Floor) {
        let clock = self.env.ports.clock.clone();
        let mut unloaded = Unloaded::new(self.workload.clone(), self.origin.clone(), clock.now());
        loop {
            let error = match self.attempt().await {
                Ok(read) => {
                    self.env.heard(Cause::ReadLedger, LOAD, None);
                    return read;
                }
                Err(error) => error,
            };
            let (attempt, notice) = unloaded.failed(clock.now(), clock.wall_ms(), &error.to_string());
            let wait = retry::SERVICE.delay(attempt, LOAD);
            self.env.metrics.failure(LOAD);
            let said = self.env.heard(Cause::ReadLedger, LOAD, Some(&error));
            self.progress.replace(format!("reading its record from the ledger: {error}; being tried again"));
            if !said {
                tracing::warn!(%error, operation = LOAD, wait_ms = millis(wait), "waiting for the outside; trying again");
            }
            if let Some(notice) = notice {
                // Sent once: the log has it, and the notice is repeated daily.
                tell_at_once(&self.env, &self.tell_notice, notice, &self.uid).await;
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self) -> Result<(Option<Record>, Floor), PortError> {
        let ledger = &self.env.ports.ledger;
        Ok((ledger.load(&self.workload).await?, ledger.floor(&self.workload).await?))
    }
}

impl RolloutActor {
    pub(super) fn load(&self, ctx: &mut Context<Self>) {
        let loading = Loading {
            env: self.env.clone(),
            workload: self.start.workload.clone(),
            origin: self.start.origin.clone(),
            uid: self.start.sight.as_ref().map_or_else(String::new, |seen| seen.uid.clone()),
            tell_notice: self.directory.outbox.tell.clone(),
            progress: self.loading.clone(),
        };
        ctx.spawn(loading.read().into_actor(self).map(|(record, floor), actor, ctx| actor.begin(record, floor, ctx)));
    }

    fn begin(&mut self, record: Option<Record>, floor: Floor, ctx: &mut Context<Self>) {
        let settings = &self.env.settings;
        let clock = &self.env.ports.clock;
        let now = i64::try_from(clock.now().as_millis()).unwrap_or(i64::MAX);
        let identity = Identity {
            workload: self.start.workload.clone(),
            member: settings.member.clone(),
            group: settings.group.clone(),
            grouped: settings.grouping.is_some(),
            origin: self.start.origin.clone(),
            epoch_ms: clock.wall_ms().saturating_sub(now),
            keeps_times: self.env.metrics.traces.is_on(),
        };
        let machine = Rollout::resume(identity, settings.policy.clone(), floor, record).arriving(self.start.arrival);
        let machine = machine.drawing(Nonces::seeded(self.env.ports.random.bits()));
        let machine =
            machine.remembering(self.start.known.take().as_deref(), self.start.spent).bereft(self.start.forgotten);
        self.shell = Some(Shell::new(Attended::new(machine), &self.env));
        self.count();
        // A life that ended between the write and its line has not said so.
        self.log_votes_beside(&[]);
        self.number_told();
        if let Some(TrafficMoved(moved, leads)) = &self.moved {
            self.feed(Event::Moved(moved.clone(), leads.clone()), ctx);
        }
        let sight = self.start.sight.take().map_or(Event::Missed, Event::Seen);
        self.feed(sight, ctx);
        self.follow_pods(ctx);
    }
}
