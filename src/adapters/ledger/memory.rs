//! A ledger that lasts as long as the process: for the demo, for dry runs, and for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Ruling, judge_removal, judge_store, shard_of, unwritable};
use kernel::floor::Floor;
use kernel::id::{Origin, Seq, WorkloadId};
use kernel::watches::listed::{Listed, Scope};
use kernel::watches::lives::LifeNote;
use notices::delivery::Delivery;
use purge::agreement::roster::Pin;
use purge::ports::{Ledger, LedgerContents, PinError, PortError, StoreError};
use purge::records::record::{Record, Records};
use purge::records::record_codec;

/// Records in memory. A clone is another handle to the same ledger, the way a restarted process would open it.
#[derive(Clone, Debug)]
pub struct MemoryLedger {
    origin: Origin,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    records: BTreeMap<WorkloadId, Record>,
    floors: BTreeMap<usize, Seq>,
    deliveries: BTreeMap<String, Delivery>,
    pin: Option<Pin>,
    listed: Listed,
    life: Option<LifeNote>,
    in_force: Option<String>,
    bill: Option<String>,
}

impl MemoryLedger {
    /// An empty ledger of this origin. An origin must not be used twice (GA-2): a process takes a
    /// [`fresh_origin`](super::fresh_origin), a simulation counts them.
    pub fn new(origin: Origin) -> Self {
        Self { origin, state: Arc::default() }
    }

    /// What is in it now, as a ledger of the same origin: a backup.
    #[must_use]
    pub fn backup(&self) -> Self {
        Self { origin: self.origin.clone(), state: Arc::new(Mutex::new(self.state().clone())) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave the maps half-changed: every change is one insertion or removal.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn store(&mut self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        // Refuses what the durable ledgers would refuse, so that the demo and the tests meet it too.
        record_codec::encode(record).map_err(|error| unwritable(workload, &error))?;
        let current = self.records.get(workload);
        let floor = self.floors.get(&shard_of(workload)).copied().unwrap_or_default();
        match judge_store(current, floor.into(), record) {
            Ruling::Apply => drop(self.records.insert(workload.clone(), record.clone())),
            Ruling::Done => {}
            Ruling::Refuse => return Err(StoreError::Conflict(current.cloned().map(Box::new))),
        }
        Ok(())
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn open(&self) -> Result<LedgerContents, PortError> {
        let State { records, pin, listed, life, .. } = &*self.state();
        Ok(LedgerContents {
            origin: self.origin.clone(),
            records: records.iter().map(|(id, record)| (id.clone(), Arc::new(record.clone()))).collect(),
            pin: pin.clone(),
            listed: listed.clone(),
            life: life.clone(),
            ..LedgerContents::default()
        })
    }

    async fn peek(&self) -> Result<Option<LedgerContents>, PortError> {
        self.open().await.map(Some)
    }

    async fn load(&self, workload: &WorkloadId) -> Result<Option<Record>, PortError> {
        Ok(self.state().records.get(workload).cloned())
    }

    async fn store(&self, workload: &WorkloadId, record: &Record) -> Result<(), StoreError> {
        self.state().store(workload, record)
    }

    async fn store_all(&self, records: &Records) -> BTreeMap<WorkloadId, StoreError> {
        let mut state = self.state();
        let failed = |(workload, record): (&WorkloadId, &Arc<Record>)| {
            Some((Clone::clone(workload), state.store(workload, record).err()?))
        };
        records.iter().filter_map(failed).collect()
    }

    async fn remove(&self, workload: &WorkloadId, revision: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let current = state.records.get(workload);
        match judge_removal(current, revision) {
            Ruling::Apply => {
                let removed = state.records.remove(workload).map(|record| record.seq).unwrap_or_default();
                let floor = state.floors.entry(shard_of(workload)).or_default();
                *floor = removed.max(*floor);
            }
            Ruling::Done => {}
            Ruling::Refuse => return Err(StoreError::Conflict(current.cloned().map(Box::new))),
        }
        Ok(())
    }

    async fn floor(&self, workload: &WorkloadId) -> Result<Floor, PortError> {
        Ok(self.state().floors.get(&shard_of(workload)).copied().unwrap_or_default().into())
    }

    async fn pin(&self) -> Result<Option<Pin>, PinError> {
        Ok(self.state().pin.clone())
    }

    async fn store_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError> {
        let mut state = self.state();
        if state.pin.as_ref() == over {
            state.pin = Some(pin.clone());
        }
        Ok(state.pin.as_ref() == Some(pin))
    }

    async fn store_listed(&self, scopes: &BTreeSet<Scope>) -> Result<(), PinError> {
        let mut state = self.state();
        scopes.iter().for_each(|scope| state.listed.add(scope.clone()));
        Ok(())
    }

    async fn store_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError> {
        let mut state = self.state();
        if over.is_none() || state.life.as_ref() == over {
            state.life = Some(life.clone());
        }
        Ok(())
    }

    async fn bill(&self) -> Result<Option<String>, PortError> {
        Ok(self.state().bill.clone())
    }

    async fn store_bill(&self, text: &str) -> Result<(), PinError> {
        self.state().bill = Some(text.to_owned());
        Ok(())
    }

    async fn in_force(&self) -> Result<Option<String>, PortError> {
        Ok(self.state().in_force.clone())
    }

    async fn store_in_force(&self, text: &str) -> Result<(), PinError> {
        self.state().in_force = Some(text.to_owned());
        Ok(())
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        Ok(self.state().deliveries.values().cloned().collect())
    }

    async fn store_delivery(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.state().deliveries.insert(delivery.id.clone(), delivery.clone());
        Ok(())
    }

    async fn remove_delivery(&self, id: &str) -> Result<(), PortError> {
        self.state().deliveries.remove(id);
        Ok(())
    }
}
