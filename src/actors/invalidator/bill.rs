//! Counts what is purged, and keeps it beside the ledger. Decides nothing; see `purge::purges::bill`.

use actix::Context;

use super::Invalidator;
use crate::actors::shell::{Drives, Shell};
use ::purge::purges::bill::{Bill, Book, Effect, Event, Month, Purge};
use ::purge::purges::purge::Order;
use kernel::id::{InvalidationId, Reference};
use kernel::names::account::AccountName;

impl Drives<Bill> for Invalidator {
    fn shell(&mut self) -> Option<&mut Shell<Bill>> {
        Some(&mut self.bill)
    }

    fn perform(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        self.env.metrics.effect("bill", effect.name());
        match effect {
            Effect::Read => self.read_bill(ctx),
            Effect::Store(book) => self.store_bill(&book, ctx),
            Effect::Tell(account, paths) => {
                let budget = self.env.settings.budget;
                tracing::warn!(%account, paths, budget, "the budget of paths of this month is used up; nothing is held back");
            }
        }
        self.show_bill();
    }
}

impl Invalidator {
    fn read_bill(&mut self, ctx: &mut Context<Self>) {
        let (ledger, clock) = (self.env.ports.ledger.clone(), self.env.ports.clock.clone());
        let is_news = self.bill.machine().failure().is_none();
        Drives::<Bill>::ask(self, ctx, async move { ledger.bill().await }, move |kept| match kept {
            Ok(None) => Event::Read(None, clock.wall_ms()),
            // Of a newer release, perhaps: it is neither taken for nothing nor overwritten.
            Ok(Some(text)) => match Book::parse(&text) {
                Some(book) => Event::Read(Some(Box::new(book)), clock.wall_ms()),
                None => {
                    Event::ReadFailed(logged(is_news, "they were left in a form that is not known here".to_owned()))
                }
            },
            Err(error) => Event::ReadFailed(logged(is_news, error.to_string())),
        });
    }

    fn store_bill(&mut self, book: &Book, ctx: &mut Context<Self>) {
        let (ledger, text) = (self.env.ports.ledger.clone(), book.text());
        let is_news = self.bill.machine().failure().is_none();
        Drives::<Bill>::ask(self, ctx, async move { ledger.store_bill(&text).await }, move |stored| match stored {
            Ok(()) => Event::Stored,
            Err(error) => Event::StoreFailed(logged(is_news, error.to_string())),
        });
    }

    /// CloudFront has made this invalidation for so many paths, at that time by its clock where it says so.
    pub(super) fn accepted(
        &mut self,
        account: &AccountName,
        (id, paths, created_ms): (&InvalidationId, usize, Option<i64>),
        ctx: &mut Context<Self>,
    ) {
        if !id.is_of_dry_run() {
            self.count(account, id.0.clone(), (paths, created_ms, false), ctx);
        }
    }

    /// An order that an earlier life, or another member, has made.
    pub(super) fn resumed(&mut self, account: &AccountName, order: &Order, ctx: &mut Context<Self>) {
        if let Some(id) = &order.invalidation {
            self.accepted(account, (id, order.paths.len(), None), ctx);
        }
    }

    /// This purge was not sent: another one covers it.
    pub(super) fn saved(&mut self, account: &AccountName, reference: &Reference, ctx: &mut Context<Self>) {
        if let Some(paths) = self.purges.machine().paths_of(account, reference) {
            self.count(account, reference.0.clone(), (paths, None, true), ctx);
        }
    }

    fn count(
        &mut self,
        account: &AccountName,
        key: String,
        (paths, at_ms, is_saved): (usize, Option<i64>, bool),
        ctx: &mut Context<Self>,
    ) {
        let now_ms = self.env.ports.clock.wall_ms();
        let (paths, month) = (u64::try_from(paths).unwrap_or(u64::MAX), Month::of_invalidation(at_ms, now_ms));
        let purge = Purge { account: account.clone(), key, paths, month, is_saved };
        Drives::<Bill>::feed(self, Event::Counted(purge, now_ms), ctx);
        self.show_bill();
    }

    /// Lets the metrics know the sums.
    fn show_bill(&self) {
        if let Some(book) = self.bill.machine().book() {
            self.env.metrics.edge.billed(book, self.env.settings.accounts.names(), self.env.settings.budget);
        }
    }
}

/// Logs once why the sums are not known, or not kept. It is tried again.
fn logged(is_news: bool, why: String) -> String {
    if is_news {
        tracing::warn!(error = %why, "the paths of this month cannot be read, or not be kept; trying again");
    }
    why
}
