//! The distribution tenants of distributions that serve these only. They have a listing of their own, which follows that of the
//! distributions, and is not asked for where no distribution is for them: then everything is as if there were none.
//!
//! ```text
//! distributions listed ──▶ none is for distribution tenants ─────────────▶ that is the listing
//!      └──▶ some are ──▶ their distribution tenants listed ──────────────▶ that is the listing
//!                 ├──▶ our identity lacks the right ──▶ the listing, with those known before; it can be seen
//!                 └──▶ failed ──▶ the same, and what it does not know waits, as where the distributions could not be listed
//! a host that the listing does not have ──▶ asked for by domain, once for each listing ──▶ answered
//! ```
//!
//! An account may have more distribution tenants than its listing shows us (`CloudFront` bounds it), or one that was made after it. So a
//! host without a distribution is asked for by its name. Where that fails, the host waits: it is asked for again after the next listing. Where
//! it is not allowed, the listing holds, which is newer than the question.

use std::collections::{BTreeMap, BTreeSet};

use super::{Catalog, Effect, NotFound, Question, Token};
use crate::purges::purge::CdnErrorClass;
use kernel::machine::Timestamp;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::refusal::Cause;

/// Hosts of one plan that are asked for by domain after a listing, one call each. A workload has a few; of those beyond, the listing holds.
pub const DOMAINS_ASKED_MAX: usize = 10;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DistributionTenants {
    /// The distributions, while their distribution tenants are being listed.
    half: Option<Vec<Distribution>>,
    /// Why they could not be listed the last time, where that may pass.
    failed: bool,
    /// Why they may not be listed, or asked for by domain, while that is so.
    pub(super) denied: Option<String>,
    /// Hosts that were asked for since the last listing, and whether the answer is still to come.
    asked: BTreeMap<Host, bool>,
    /// Those of them whose answer failed, each with why.
    unheard: BTreeMap<Host, String>,
    /// Questions that wait for such answers.
    asking: BTreeMap<Token, Question>,
}

impl DistributionTenants {
    /// Whether all that is listed is known: otherwise a listing that is newer than a question is no answer to it.
    pub(super) const fn are_listed(&self) -> bool {
        !self.failed
    }
}

impl Catalog {
    /// Why we may not know the distribution tenants, if that is so.
    pub fn distribution_tenants_denied(&self) -> Option<&str> {
        self.distribution_tenants.denied.as_deref()
    }

    /// The distributions were listed.
    pub(super) fn distributions_listed(&mut self, now: Timestamp, listing: Vec<Distribution>) -> Vec<Effect> {
        let for_them = listing.iter().filter(|one| one.serves_distribution_tenants()).map(|one| one.id.clone());
        let for_them: BTreeSet<DistributionId> = for_them.collect();
        if for_them.is_empty() {
            let known = &mut self.distribution_tenants;
            (known.failed, known.denied) = (false, None);
            return self.listed(now, listing);
        }
        self.distribution_tenants.half = Some(listing);
        vec![Effect::ListDistributionTenants(for_them)]
    }

    /// Their distribution tenants were listed, or why they were not.
    pub(super) fn distribution_tenants_listed(
        &mut self,
        now: Timestamp,
        answer: Result<Vec<Distribution>, (CdnErrorClass, String)>,
    ) -> Vec<Effect> {
        // An answer to another life: it asks again by itself.
        let Some(mut listing) = self.distribution_tenants.half.take() else { return Vec::new() };
        let known = || self.index.iter().filter(|one| one.id.is_of_distribution_tenant()).cloned();
        match answer {
            Ok(tenants) => {
                listing.extend(tenants);
                (self.distribution_tenants.failed, self.distribution_tenants.denied) = (false, None);
                self.listed(now, listing)
            }
            // Asking again does not help, and others must not wait for a right.
            Err((class, why)) if lacks(class, Cause::ListDistributionTenants, &why) => {
                listing.extend(known());
                (self.distribution_tenants.failed, self.distribution_tenants.denied) = (false, Some(why));
                self.listed(now, listing)
            }
            // Credentials that are expired or wrong say nothing about rights.
            Err((_, why)) => {
                listing.extend(known());
                self.distribution_tenants.failed = true;
                self.take(now, listing);
                self.list_failed(now, why)
            }
        }
    }

    /// Asks for the hosts of a question that no listed distribution serves by their domains; `None` where nothing is to be waited for.
    pub(super) fn ask_by_domain(&mut self, token: Token, question: &Question) -> Option<Vec<Effect>> {
        if !self.index.iter().any(Distribution::serves_distribution_tenants) {
            return None;
        }
        let unserved = self.index.matches_except(&question.plan.hosts, [""; 0], &question.plan.except).unmatched;
        let names: Vec<Host> =
            unserved.into_iter().filter(|host| !host.is_wildcard()).take(DOMAINS_ASKED_MAX).collect();
        let mut effects = Vec::new();
        for name in &names {
            if !self.distribution_tenants.asked.contains_key(name) {
                self.distribution_tenants.asked.insert(name.clone(), true);
                effects.push(Effect::FindDistributionTenant(name.clone()));
            }
        }
        let waits = names.iter().any(|name| self.distribution_tenants.asked.get(name) == Some(&true));
        waits.then(|| {
            self.distribution_tenants.asking.insert(token, question.clone());
            effects
        })
    }

    /// A host was asked for by its domain.
    pub(super) fn distribution_tenant_found(
        &mut self,
        now: Timestamp,
        host: Host,
        answer: Result<Option<Distribution>, (CdnErrorClass, String)>,
    ) -> Vec<Effect> {
        self.distribution_tenants.unheard.remove(&host);
        match answer {
            Ok(Some(tenant)) => self.index.add(tenant),
            Ok(None) => {}
            Err((class, why)) if lacks(class, Cause::FindDistributionTenant, &why) => {
                self.distribution_tenants.denied = Some(why);
            }
            // A domain that is none there: the listing holds.
            Err((CdnErrorClass::Refused, _)) => {}
            Err((_, why)) => drop(self.distribution_tenants.unheard.insert(host.clone(), why)),
        }
        self.distribution_tenants.asked.insert(host, false);
        let awaited = |question: &Question| {
            question.plan.hosts.iter().any(|host| self.distribution_tenants.asked.get(host) == Some(&true))
        };
        let asking = std::mem::take(&mut self.distribution_tenants.asking).into_iter();
        let (waiting, ready): (BTreeMap<_, _>, BTreeMap<_, _>) = asking.partition(|(_, question)| awaited(question));
        self.distribution_tenants.asking = waiting;
        let told = |(token, question): (Token, Question)| match self.unheard_of(&question) {
            Some(why) => self.answer(now, token, &question, Err(NotFound(why))),
            None => self.answer_by_listing(now, token, &question),
        };
        ready.into_iter().flat_map(told).collect()
    }

    /// Why it is not known whether something serves a host of this question, where asking for it failed.
    fn unheard_of(&self, question: &Question) -> Option<String> {
        let plan = &question.plan;
        let unserved = self.index.matches_except(&plan.hosts, [""; 0], &plan.except).unmatched;
        unserved.into_iter().find_map(|host| self.distribution_tenants.unheard.get(&host).cloned())
    }

    /// A new listing: hosts that it lacks may be asked for again. What waits for an answer by domain is answered by the listing, or asks anew.
    pub(super) fn forget_domains(&mut self) {
        self.distribution_tenants.asked.clear();
        self.distribution_tenants.unheard.clear();
        self.waiting.append(&mut self.distribution_tenants.asking);
    }
}

/// Whether our identity is known and lacks the right.
fn lacks(class: CdnErrorClass, right: Cause, why: &str) -> bool {
    class.cause(right, why) == Some(right)
}
