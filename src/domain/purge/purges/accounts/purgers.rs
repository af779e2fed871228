//! One purger for each account: each order goes to the account that has its distribution.
//!
//! Which one that is may not be known yet, after a start. Then the order waits here: sent to another account it would be refused as a
//! distribution that does not exist, and so be given up.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Accounts;
use crate::purges::purge::{self as one, Order, Pace, Progress, Purger, Rate};
use kernel::id::{Reference, Subject};
use kernel::machine::{Machine, Timestamp};
use kernel::names::account::AccountName;
use kernel::names::distribution::DistributionId;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A rollout wants a purge in this account; `None`: it is not known yet which one has the distribution.
    Ordered(Option<AccountName>, Order),
    /// It is known now which account has the distribution of an order that waits.
    Placed(Reference, AccountName),
    /// The owner of a workload wants what was refused to be tried now.
    Retried(Subject),
    /// Something happened in an account.
    Of(AccountName, one::Event),
}

/// Why an order waits that is in no account yet.
const UNPLACED: &str = "waits until it is known which AWS account has the distribution: not all could be listed yet";

/// An order that waits for its account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unplaced {
    since: Timestamp,
    order: Order,
    /// Who ordered it was told that it takes too long.
    is_told: bool,
}

/// Do this in that account.
pub type Effect = (AccountName, one::Effect);

/// The machine. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Purgers {
    each: BTreeMap<AccountName, Purger>,
    /// Orders of which it is not known which account has their distributions.
    unplaced: BTreeMap<Reference, Unplaced>,
    /// When one of them takes too long.
    timeout: Duration,
}

impl Purgers {
    /// One for each account, with nothing on its way.
    pub fn new(accounts: &Accounts, pace: &Pace) -> Self {
        let each = accounts.names().map(|name| (name.clone(), Purger::new(pace.clone()))).collect();
        Self { each, unplaced: BTreeMap::new(), timeout: pace.completion_timeout }
    }

    /// Purges on their way, each in words: what an operator reads while waiting.
    pub fn describe(&self, now: Timestamp) -> Vec<(Reference, DistributionId, String)> {
        let orders = self.unplaced.values().map(|waiting| &waiting.order);
        let unplaced = orders.map(|order| (order.reference.clone(), order.distribution.clone(), UNPLACED.to_owned()));
        self.each.values().flat_map(|purger| purger.describe(now)).chain(unplaced).collect()
    }

    /// The creations a second that CloudFront grants us in all accounts together, as far as we know.
    pub fn rate(&self, now: Timestamp) -> Rate {
        let rates = self.each.values().map(|purger| purger.rate(now).thousandths());
        Rate::from_thousandths(rates.fold(0, u32::saturating_add))
    }

    /// How many paths an order on its way has, of its own.
    pub fn paths_of(&self, account: &AccountName, reference: &Reference) -> Option<usize> {
        self.each.get(account)?.paths_of(reference)
    }

    /// The orders that wait for an account, each with its distribution, and since when.
    pub fn unplaced(&self) -> impl Iterator<Item = (&Reference, &DistributionId, Timestamp)> {
        self.unplaced.iter().map(|(reference, waiting)| (reference, &waiting.order.distribution, waiting.since))
    }

    /// An order that waits for an account.
    pub fn waiting(&self, reference: &Reference) -> Option<&Order> {
        self.unplaced.get(reference).map(|waiting| &waiting.order)
    }

    fn of_account(&mut self, now: Timestamp, name: AccountName, event: one::Event) -> Vec<Effect> {
        let Some(purger) = self.each.get_mut(&name) else { return Vec::new() };
        let effects = purger.step(now, event);
        effects.into_iter().map(|effect| (name.clone(), effect)).collect()
    }

    /// Tells each order that waits for too long, once. The account is that which repeats the report should nobody take it.
    fn tell_late(&mut self, now: Timestamp) -> Vec<Effect> {
        let Some(account) = self.each.keys().next() else { return Vec::new() };
        let mut effects = Vec::new();
        for Unplaced { since, order, is_told } in self.unplaced.values_mut() {
            if since.after(self.timeout) <= now && !std::mem::replace(is_told, true) {
                let overdue = Progress::Overdue(UNPLACED.to_owned());
                let report = one::Effect::Report(order.subject.clone(), order.reference.clone(), overdue);
                effects.push((account.clone(), report));
            }
        }
        effects
    }

    /// Does the same in each account.
    fn of_all(&mut self, mut step: impl FnMut(&mut Purger) -> Vec<one::Effect>) -> Vec<Effect> {
        let each = self.each.iter_mut();
        each.flat_map(|(name, purger)| step(purger).into_iter().map(|effect| (name.clone(), effect))).collect()
    }
}

impl Machine for Purgers {
    type Event = Event;
    type Effect = Effect;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Ordered(Some(name), order) => {
                self.unplaced.remove(&order.reference);
                self.of_account(now, name, one::Event::Ordered(order))
            }
            Event::Ordered(None, order) => {
                let since = self.unplaced.get(&order.reference).map_or(now, |waiting| waiting.since);
                // Who orders again may have forgotten what it was told.
                let waiting = Unplaced { since, order, is_told: false };
                self.unplaced.insert(waiting.order.reference.clone(), waiting);
                Vec::new()
            }
            Event::Placed(reference, name) => match self.unplaced.remove(&reference) {
                Some(Unplaced { order, .. }) => self.of_account(now, name, one::Event::Ordered(order)),
                None => Vec::new(),
            },
            Event::Retried(subject) => self.of_all(|purger| purger.step(now, one::Event::Retried(subject.clone()))),
            Event::Of(name, event) => self.of_account(now, name, event),
        }
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = self.of_all(|purger| purger.tick(now));
        effects.extend(self.tell_late(now));
        effects
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        let untold = self.unplaced.values().filter(|waiting| !waiting.is_told);
        let late = untold.map(|waiting| waiting.since.after(self.timeout));
        self.each.values().filter_map(Purger::next_deadline).chain(late).min()
    }
}
