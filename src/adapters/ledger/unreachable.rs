//! The ledger of a dry run, as seen by another process: it is in the memory of the first one.
//!
//! For commands. An empty ledger of their own would look like one in which nothing is in flight.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use kernel::floor::Floor;
use kernel::id::WorkloadId;
use kernel::watches::listed::Scope;
use kernel::watches::lives::LifeNote;
use notices::delivery::Delivery;
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, LedgerContents, PinError, PortError, StoreError};
use purge::records::record::{Record, Records};

/// A ledger that answers every question with who can be asked.
#[derive(Clone, Copy, Debug)]
pub struct UnreachableLedger;

fn unreachable() -> PortError {
    PortError::lasting(
        "failed to read the ledger",
        "with dry_run, or ledger.backend = \"memory\", the records are in the memory of the running allclear; ask that one \
         with allclear status --server URL, the address of its status page",
    )
}

#[async_trait]
impl Ledger for UnreachableLedger {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        Err(unreachable())
    }

    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        Err(unreachable())
    }

    async fn load(&self, _: &WorkloadId) -> Result<Option<Record>, PortError> {
        Err(unreachable())
    }

    async fn store(&self, _: &WorkloadId, _: &Record) -> Result<(), StoreError> {
        Err(unreachable().into())
    }

    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError> {
        records.keys().map(|workload| (workload.clone(), unreachable().into())).collect()
    }

    async fn remove(&self, _: &WorkloadId, _: u64) -> Result<(), StoreError> {
        Err(unreachable().into())
    }

    async fn floor(&self, _: &WorkloadId) -> Result<Floor, PortError> {
        Err(unreachable())
    }

    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        Err(unreachable().into())
    }

    async fn store_pin(&self, _: &Pin, _: Option<&Pin>) -> Result<bool, PinError> {
        Err(unreachable().into())
    }

    async fn store_listed(&self, _: &BTreeSet<Scope>) -> Result<(), PinError> {
        Err(unreachable().into())
    }

    async fn store_life(&self, _: &LifeNote, _: Option<&LifeNote>) -> Result<(), PinError> {
        Err(unreachable().into())
    }

    async fn bill(&self) -> Result<Option<String>, PortError> {
        Err(unreachable())
    }

    async fn store_bill(&self, _: &str) -> Result<(), PinError> {
        Err(unreachable().into())
    }

    async fn in_force(&self) -> Result<Option<String>, PortError> {
        Err(unreachable())
    }

    async fn store_in_force(&self, _: &str) -> Result<(), PinError> {
        Err(unreachable().into())
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        Err(unreachable())
    }

    async fn store_delivery(&self, _: &Delivery) -> Result<(), PortError> {
        Err(unreachable())
    }

    async fn remove_delivery(&self, _: &str) -> Result<(), PortError> {
        Err(unreachable())
    }
}
