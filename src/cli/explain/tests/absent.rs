//! A ledger that is not writable.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::{Arc, Output, Sources, World, explain, question, web};
use domain::agreement::roster::Pin;
use domain::kernel::floor::Floor;
use domain::kernel::id::WorkloadId;
use domain::notices::delivery::Delivery;
use domain::ports::{Ledger, LedgerContents, PinError, PortError, StoreError};
use domain::records::record::{Record, Records};
use domain::watches::listed::Scope;
use domain::watches::lives::LifeNote;

/// A ledger that is not there: a command that only looks must not open it.
pub struct Absent;

#[async_trait]
impl Ledger for Absent {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        panic!("explain must not create a ledger")
    }
    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        Ok(None)
    }
    async fn load(&self, _: &WorkloadId) -> Result<Option<Record>, PortError> {
        Ok(None)
    }
    async fn store(&self, _: &WorkloadId, _: &Record) -> Result<(), StoreError> {
        panic!("explain only looks")
    }
    async fn store_all(&self, _: &Records) -> BTreeMap<WorkloadId, StoreError> {
        panic!("explain only looks")
    }
    async fn remove(&self, _: &WorkloadId, _: u64) -> Result<(), StoreError> {
        panic!("explain only looks")
    }
    async fn floor(&self, _: &WorkloadId) -> Result<Floor, PortError> {
        Ok(Floor::default())
    }
    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        Ok(None)
    }
    async fn store_pin(&self, _: &Pin, _: Option<&Pin>) -> Result<bool, PinError> {
        panic!("explain only looks")
    }
    async fn store_listed(&self, _: &BTreeSet<Scope>) -> Result<(), PinError> {
        panic!("explain only looks")
    }
    async fn store_life(&self, _: &LifeNote, _: Option<&LifeNote>) -> Result<(), PinError> {
        panic!("explain only looks")
    }
    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        Ok(Vec::new())
    }
    async fn store_delivery(&self, _: &Delivery) -> Result<(), PortError> {
        panic!("explain only looks")
    }
    async fn remove_delivery(&self, _: &str) -> Result<(), PortError> {
        panic!("explain only looks")
    }
}

#[tokio::test]
async fn a_missing_ledger_is_not_created_and_where_it_was_looked_for_is_said() {
    let World { cluster, account, .. } = World::new(web());
    let sources = Sources {
        cluster: Arc::new(cluster),
        ledger: Arc::new(Absent),
        cdn: Arc::new(account),
        group: None,
        desk: None,
        repos: None,
        installation: None,
    };
    let outcome = explain(&sources, &question(None, Some("web")), Output::Table).await;
    assert_eq!(outcome.code, 0);
    let words = "Record        missing: there is no ledger in namespace allclear; ledger.namespace";
    assert!(outcome.out.contains(words), "{}", outcome.out);
}
