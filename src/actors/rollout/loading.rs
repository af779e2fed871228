//! Reading a rollout's record, again and again until it can be read, and telling where it cannot.

use std::cell::RefCell;
use std::rc::Rc;

use actix::Recipient;

use crate::actors::message::TellNotice;
use crate::actors::{LOAD, Surroundings, tell_at_once};
use domain::id::{Origin, Seq, WorkloadId};
use domain::machine::millis;
use domain::ports::PortError;
use domain::record::Record;
use domain::refusal::Cause;
use domain::retry;
use domain::rollout::Unloaded;

/// What reading a record needs.
pub struct Loading {
    /// The outside, and where counts go.
    pub surroundings: Surroundings,
    /// Whose record.
    pub workload: WorkloadId,
    /// In this ledger.
    pub origin: Origin,
    /// The workload's Kubernetes UID, for Events on it; empty where it is gone.
    pub uid: String,
    /// Where its notices for webhooks go.
    pub tell_notice: Recipient<TellNotice>,
    /// How it goes, in words.
    pub progress: Rc<RefCell<String>>,
}

impl Loading {
    /// The record, if there is one, and the floor a new one starts above.
    pub async fn read(self) -> (Option<Record>, Seq) {
        let clock = self.surroundings.ports.clock.clone();
        let mut unloaded = Unloaded::new(self.workload.clone(), self.origin.clone(), clock.now());
        loop {
            let error = match self.attempt().await {
                Ok(read) => {
                    self.surroundings.heard(Cause::ReadLedger, LOAD, None);
                    return read;
                }
                Err(error) => error,
            };
            let (attempt, notice) = unloaded.failed(clock.now(), clock.wall_ms(), &error.to_string());
            let wait = retry::SERVICE.delay(attempt, LOAD);
            self.surroundings.metrics.failure(LOAD);
            let said = self.surroundings.heard(Cause::ReadLedger, LOAD, Some(&error));
            self.progress.replace(format!("reading its record from the ledger: {error}; being tried again"));
            if !said {
                tracing::warn!(%error, operation = LOAD, wait_ms = millis(wait), "waiting for the outside; trying again");
            }
            if let Some(notice) = notice {
                // Once: the log has it, and it is told again daily.
                tell_at_once(&self.surroundings, &self.tell_notice, notice, &self.uid).await;
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self) -> Result<(Option<Record>, Seq), PortError> {
        let ledger = &self.surroundings.ports.ledger;
        Ok((ledger.load(&self.workload).await?, ledger.seq_floor(&self.workload).await?))
    }
}
