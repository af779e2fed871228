//! Several AWS accounts: which of them is asked for what, and which one has a distribution.
//!
//! ```text
//!            ┌─▶ Catalog, Purger  of default   (the pod's own credentials)
//! a plan ────┼─▶ Catalog, Purger  of shop      (a role that is assumed)
//! an order   └─▶ Catalog, Purger  of …
//! ```
//!
//! Each account has a listing, a governor and lanes of its own: the machines of `catalog` and `purge`, unchanged, one for each.
//! `catalogs` asks them and puts their answers together; `purgers` gives each order to the account that has its distribution. Nothing is
//! shared between accounts, so one that is down delays no other.
//!
//! With one account that is asked for everything, both pass everything on as it is.
//!
//! Not for credentials; the adapters have those.

mod catalogs;
mod purgers;

use std::collections::{BTreeMap, BTreeSet};

pub use self::catalogs::Catalogs;
pub use self::purgers::Purgers;
use kernel::names::account::AccountName;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;

/// Events and effects of [`Catalogs`].
pub mod listing {
    pub use super::catalogs::{Effect, Event};
}

/// Events and effects of [`Purgers`].
pub mod purging {
    pub use super::purgers::{Effect, Event};
}

/// The accounts, by name. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accounts(BTreeMap<AccountName, Scope>);

/// What an account is asked for. A list that is empty bounds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Only these hosts are looked for in it. Wildcards cover any depth, and the names themselves.
    pub hosts: BTreeSet<Host>,
    /// Only for workloads of these namespaces: names, or beginnings of names that end in a star.
    pub namespaces: BTreeSet<String>,
    /// Only these of its distributions, and distribution tenants, are purged.
    pub distributions: BTreeSet<DistributionId>,
}

impl Accounts {
    /// The one of the pod's own credentials where there are none.
    pub fn new(accounts: BTreeMap<AccountName, Scope>) -> Self {
        if accounts.is_empty() { Self::default() } else { Self(accounts) }
    }

    pub fn names(&self) -> impl Iterator<Item = &AccountName> {
        self.0.keys()
    }

    /// Whether there is nothing to tell apart.
    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Whether there is one, which is asked for everything.
    fn is_one_for_all(&self) -> bool {
        self.is_one() && self.0.values().all(|scope| *scope == Scope::default())
    }

    /// The account that gets what no account is known to have: that of the pod's own credentials, or else the first.
    fn fallback(&self) -> AccountName {
        let own = AccountName::default();
        if self.0.contains_key(&own) { own } else { self.names().next().cloned().unwrap_or_default() }
    }

    fn all(&self) -> impl Iterator<Item = (&AccountName, &Scope)> {
        self.0.iter()
    }

    /// Those that are asked for workloads of this namespace.
    fn of(&self, namespace: &str) -> impl Iterator<Item = (&AccountName, &Scope)> {
        self.all().filter(move |(_, scope)| scope.is_for(namespace))
    }

    /// The account that the operator gives a distribution to.
    fn named_for(&self, distribution: &DistributionId) -> Option<&AccountName> {
        self.all().find(|(_, scope)| scope.distributions.contains(distribution)).map(|(name, _)| name)
    }

    /// Whether an account is asked for workloads of this namespace.
    pub fn is_for(&self, name: &AccountName, namespace: &str) -> bool {
        self.scope(name).is_none_or(|scope| scope.is_for(namespace))
    }

    /// A distribution of an account with the aliases that are looked for there; `None` for one that is not purged.
    pub fn narrowed(&self, name: &AccountName, mut distribution: Distribution) -> Option<Distribution> {
        let Some(scope) = self.scope(name) else { return Some(distribution) };
        distribution.aliases.retain(|alias| Host::parse(alias).map_or(true, |alias| scope.takes(&alias)));
        scope.has(&distribution.id).then_some(distribution)
    }

    fn scope(&self, name: &AccountName) -> Option<&Scope> {
        self.0.get(name)
    }
}

/// The account of the pod's own credentials, for everything.
impl Default for Accounts {
    fn default() -> Self {
        Self(BTreeMap::from([(AccountName::default(), Scope::default())]))
    }
}

impl Scope {
    /// Whether it is asked for workloads of this namespace.
    pub fn is_for(&self, namespace: &str) -> bool {
        let names = |one: &String| match one.strip_suffix('*') {
            Some(beginning) => namespace.starts_with(beginning),
            None => one == namespace,
        };
        self.namespaces.is_empty() || self.namespaces.iter().any(names)
    }

    /// Whether a host is looked for in it.
    pub fn takes(&self, host: &Host) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|own| own.overlaps(host))
    }

    /// Whether a distribution of it may have distribution tenants that may be purged. It is not purged itself.
    fn has_tenant_of(&self, distribution: &Distribution) -> bool {
        let is_any =
            self.distributions.is_empty() || self.distributions.iter().any(DistributionId::is_of_distribution_tenant);
        is_any && distribution.serves_distribution_tenants()
    }

    /// Whether one of its distributions, or distribution tenants, may be purged.
    pub fn has(&self, distribution: &DistributionId) -> bool {
        self.distributions.is_empty() || self.distributions.contains(distribution)
    }
}

#[cfg(test)]
mod tests;
