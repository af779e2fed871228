//! What the broker asks of the ledger. A ledger that no longer exists is reported to root, which opens the next one (fault A4).

use actix::Context;

use super::ClusterGroupActor;
use crate::actors::directory::report_lost;
use crate::actors::shell::Drives;
use kernel::id::WorkloadId;
use purge::agreement::roster::Pin;
use purge::broker::{Event, NoAnswer};
use purge::ports::PinError;

impl ClusterGroupActor {
    fn ask_ledger<T: 'static>(
        &mut self,
        asking: impl Future<Output = Result<T, PinError>> + 'static,
        event: impl FnOnce(Result<T, NoAnswer>) -> Event + 'static,
        ctx: &mut Context<Self>,
    ) {
        let (root, origin) = (self.root.clone(), self.origin.clone());
        self.ask(ctx, asking, move |answer| {
            if matches!(answer, Err(PinError::Lost(_))) {
                report_lost(&root, &origin);
            }
            event(answer.map_err(|(PinError::Unavailable(error) | PinError::Lost(error))| error.into()))
        });
    }

    pub(super) fn read_ledger(&mut self, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        self.ask(ctx, async move { ledger.peek().await }, move |read| {
            let read = read.map(|read| read.map(|ledgered| (ledgered.origin, ledgered.records)));
            Event::LedgerRead(read.map_err(NoAnswer::from))
        });
    }

    pub(super) fn load_record(&mut self, workload: WorkloadId, ctx: &mut Context<Self>) {
        let (ledger, id) = (self.env.ports.ledger.clone(), workload.clone());
        let name = self.shell.machine().name_in_group(&workload).clone();
        let read = async move {
            let record = ledger.load(&id).await?;
            // Other workloads may have gone by its name, and left their numbers there.
            let floor = ledger.floor(&id).await?.max(ledger.floor(&name).await?);
            // A deleted ledger has no records either, but it was not set back.
            ledger.pin().await?;
            Ok((record.map(Box::new), floor))
        };
        self.ask_ledger(read, |read| Event::RecordLoaded(workload, read), ctx);
    }

    pub(super) fn read_pin(&mut self, ctx: &mut Context<Self>) {
        let ledger = self.env.ports.ledger.clone();
        self.ask_ledger(async move { ledger.pin().await }, Event::PinRead, ctx);
    }

    pub(super) fn store_pin(&mut self, pin: Pin, over: Option<Pin>, ctx: &mut Context<Self>) {
        let (ledger, wanted) = (self.env.ports.ledger.clone(), pin.clone());
        let storing = async move { ledger.store_pin(&wanted, over.as_ref()).await };
        self.ask_ledger(storing, |stored| Event::PinStored(pin, stored), ctx);
    }
}
