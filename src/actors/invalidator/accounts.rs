//! Which account is called, and to whom its refusals are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::Context;

use super::Invalidator;
use crate::actors::Env;
use crate::actors::complaints::Complaints;
use crate::actors::shell::Drives;
use ::purge::ports::{Cdn, CdnError};
use ::purge::purges::accounts::{Catalogs, Purgers, listing, purging};
use ::purge::purges::purge::Order;
use kernel::names::account::AccountName;
use kernel::refusal::Cause;

/// What is refused in each account: one is told beside another, and is mended by itself. Where there is one account, its refusals are
/// among the others of the process.
pub(super) struct Complained(BTreeMap<AccountName, Arc<Complaints>>);

impl Complained {
    pub fn new(env: &Env) -> Self {
        let accounts = &env.settings.accounts;
        let of_one = || if accounts.is_one() { env.complaints.clone() } else { Arc::default() };
        Self(accounts.names().map(|name| (name.clone(), of_one())).collect())
    }
}

impl Invalidator {
    /// The account of this name.
    pub(super) fn cdn(&self, name: &AccountName) -> Arc<dyn Cdn> {
        self.env.ports.cdn.account(name).unwrap_or_else(|| self.env.ports.cdn.clone())
    }

    /// The environment of calls to an account.
    fn env_of(&self, name: &AccountName) -> Env {
        let complaints = self.complained.0.get(name).unwrap_or(&self.env.complaints).clone();
        Env { complaints, ..self.env.clone() }
    }

    /// How a call to an account ended; see [`Env::heard_of_cdn`].
    pub(super) fn heard_of_cdn(&self, name: &AccountName, right: Cause, place: &str, error: Option<&CdnError>) -> bool {
        self.env_of(name).heard_of_cdn(right, place, error)
    }

    /// Gives an order to the account that has its distribution, or has that one looked for.
    pub(super) fn order(&mut self, order: Order, ctx: &mut Context<Self>) {
        let (distribution, now) = (order.distribution.clone(), self.catalog.now());
        let account = self.catalog.machine().account_of(&distribution, now);
        let is_sought = account.is_none();
        if let Some(account) = &account {
            self.resumed(account, &order, ctx);
        }
        Drives::<Purgers>::feed(self, purging::Event::Ordered(account, order), ctx);
        if is_sought {
            Drives::<Catalogs>::feed(self, listing::Event::Sought(distribution), ctx);
        }
    }

    /// Gives orders that wait to the accounts that are known now.
    pub(super) fn place(&mut self, ctx: &mut Context<Self>) {
        let catalog = self.catalog.machine();
        let known = self.purges.machine().unplaced().filter_map(|(reference, distribution, since)| {
            Some((reference.clone(), catalog.account_of(distribution, since)?))
        });
        for (reference, account) in known.collect::<Vec<_>>() {
            if let Some(order) = self.purges.machine().waiting(&reference).cloned() {
                self.resumed(&account, &order, ctx);
            }
            Drives::<Purgers>::feed(self, purging::Event::Placed(reference, account), ctx);
        }
    }
}
