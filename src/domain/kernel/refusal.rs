//! Troubles that only a person can end: missing rights, credentials, a full part of the ledger. Reported when one
//! begins and again daily, with the remedy, and when it ends (decision 37); in between it is no news, however often it
//! is tried.
//!
//! One cause is met with at many places: a right to Events in each namespace, a shard of the ledger by each workload in it. It is
//! reported once for all of them, and is mended when a refused place works. One that is still refused then is reported
//! again.
//!
//! An API server that has just started refuses every request until it has read its RBAC, and one whose authentication
//! webhook is down accepts none. Neither needs a person, and both pass; so a refusal counts once it has lasted
//! ([`Refused::counts`]).
//!
//! Not for what passes by itself, nor for the watch of workloads, which has more to say (`watch::Troubles`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::machine::Timestamp;
use crate::names::distribution::DistributionId;

/// How often it is said again.
pub const SAID_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Most places kept for one cause, 100 bytes each. What is refused at further ones is no news; that they work is none either.
pub const PLACES_MAX: usize = 1_000;

/// How long a refusal of the cluster lasts before it counts: an API server serves within seconds of being ready.
const COUNTS_AFTER: Duration = Duration::from_secs(10);

/// How long a right has been missing before it counts although nothing else was asked for, or nothing else was answered either.
const ALONE_COUNTS_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// The caller: its credentials (401).
    Caller,
    /// The call: the caller is known and has no right to it (403).
    Right,
    /// The request, for every caller.
    Request,
}

impl Refused {
    /// Whether it counts, having lasted so long. `answered`: a request of another kind was answered meanwhile, so the API server knows
    /// us, and what we may do.
    pub fn counts(self, lasted: Duration, answered: bool) -> bool {
        match self {
            Self::Request => true,
            Self::Caller => lasted >= COUNTS_AFTER,
            Self::Right => lasted >= if answered { COUNTS_AFTER } else { ALONE_COUNTS_AFTER },
        }
    }

    /// The remedy of this cause, for a person.
    pub const fn remedy(self, cause: Cause) -> &'static str {
        match self {
            Self::Caller if cause.is_of_cluster() => CALLER_REMEDY,
            Self::Caller | Self::Right | Self::Request => cause.remedy(),
        }
    }
}

/// The remedy where the API server does not accept our credentials, for a person. No role would help.
pub const CALLER_REMEDY: &str = "in the cluster, restart the pod, which gives it another token of its ServiceAccount; elsewhere, renew what the \
     kubeconfig names";

/// The refused actions. Each is mended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The ledger cannot be opened: read as a whole, and made where there is none.
    OpenLedger,
    /// Records and deliveries cannot be read.
    ReadLedger,
    /// Records and deliveries cannot be written.
    WriteLedger,
    /// The ledger has no room for a record, or the API server takes it for too large.
    FullLedger,
    /// Events cannot be made.
    PublishEvents,
    /// There are no AWS credentials, or none that AWS takes.
    Credentials,
    /// The distributions cannot be listed.
    ListDistributions,
    /// Nothing can be purged.
    CreateInvalidation,
    /// It cannot be seen how far a purge is.
    GetInvalidation,
    /// Earlier purges cannot be looked for.
    ListInvalidations,
    /// It cannot be read whether a distribution has cache tags.
    ReadTags,
    /// The distribution tenants cannot be listed.
    ListDistributionTenants,
    /// A distribution tenant cannot be looked for by its domain.
    FindDistributionTenant,
    /// No distribution tenant can be purged.
    CreateForDistributionTenant,
    /// It cannot be seen how far the purge of a distribution tenant is.
    GetForDistributionTenant,
    /// Earlier purges of a distribution tenant cannot be looked for.
    ListForDistributionTenant,
}

/// Whether a refusal is said now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It has just begun, and may pass by itself.
    Begins,
    /// It counts, and is news, or has lasted for another day.
    Now,
    /// It was said before, or does not count yet.
    Before,
}

/// One cause, for as long as it lasts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lasting {
    since: Timestamp,
    /// Since when nothing of it has worked.
    unmended: Timestamp,
    /// Its beginning was said, and its end was not.
    open: bool,
    /// When it was last said that it counts; `None` once it was mended somewhere, and not everywhere.
    said: Option<Timestamp>,
    places: BTreeSet<String>,
}

/// All that is refused at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Refusals {
    lasting: BTreeMap<Cause, Lasting>,
    /// When the API server last did what would be refused for another cause; `None`: what is never a cause.
    answered: BTreeMap<Option<Cause>, Timestamp>,
}

impl Cause {
    pub const ALL: [Self; 16] = [
        Self::OpenLedger,
        Self::ReadLedger,
        Self::WriteLedger,
        Self::FullLedger,
        Self::PublishEvents,
        Self::Credentials,
        Self::ListDistributions,
        Self::CreateInvalidation,
        Self::GetInvalidation,
        Self::ListInvalidations,
        Self::ReadTags,
        Self::ListDistributionTenants,
        Self::FindDistributionTenant,
        Self::CreateForDistributionTenant,
        Self::GetForDistributionTenant,
        Self::ListForDistributionTenant,
    ];

    /// The same action, as it is called where this is purged: distribution tenants have operations of their own, and a right for each.
    #[must_use]
    pub fn on(self, purged: &DistributionId) -> Self {
        match self {
            Self::CreateInvalidation if purged.is_of_distribution_tenant() => Self::CreateForDistributionTenant,
            Self::GetInvalidation if purged.is_of_distribution_tenant() => Self::GetForDistributionTenant,
            Self::ListInvalidations if purged.is_of_distribution_tenant() => Self::ListForDistributionTenant,
            other => other,
        }
    }

    /// The name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenLedger => "open_ledger",
            Self::ReadLedger => "read_ledger",
            Self::WriteLedger => "write_ledger",
            Self::FullLedger => "full_ledger",
            Self::PublishEvents => "publish_events",
            Self::Credentials => "aws_credentials",
            Self::ListDistributions => "list_distributions",
            Self::CreateInvalidation => "create_invalidation",
            Self::GetInvalidation => "get_invalidation",
            Self::ListInvalidations => "list_invalidations",
            Self::ReadTags => "get_distribution_config",
            Self::ListDistributionTenants => "list_distribution_tenants",
            Self::FindDistributionTenant => "get_distribution_tenant_by_domain",
            Self::CreateForDistributionTenant => "create_invalidation_for_distribution_tenant",
            Self::GetForDistributionTenant => "get_invalidation_for_distribution_tenant",
            Self::ListForDistributionTenant => "list_invalidations_for_distribution_tenant",
        }
    }

    /// Whether it is the API server that refuses.
    pub const fn is_of_cluster(self) -> bool {
        matches!(self, Self::OpenLedger | Self::ReadLedger | Self::WriteLedger | Self::FullLedger | Self::PublishEvents)
    }

    /// The refused action in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OpenLedger => "the ledger cannot be opened",
            Self::ReadLedger => "records cannot be read from the ledger",
            Self::WriteLedger => "records cannot be written to the ledger",
            Self::FullLedger => "the ledger has no room for the records of a namespace",
            Self::PublishEvents => "Events cannot be made",
            Self::Credentials => "there are no AWS credentials that AWS accepts",
            Self::ListDistributions => "distributions cannot be listed",
            Self::CreateInvalidation => "invalidations cannot be created",
            Self::GetInvalidation => "invalidations cannot be read",
            Self::ListInvalidations => "invalidations cannot be listed",
            Self::ReadTags => "it cannot be read which distributions have cache tags",
            Self::ListDistributionTenants => "distribution tenants cannot be listed",
            Self::FindDistributionTenant => "distribution tenants cannot be looked for by domain",
            Self::CreateForDistributionTenant => "invalidations for distribution tenants cannot be created",
            Self::GetForDistributionTenant => "invalidations for distribution tenants cannot be read",
            Self::ListForDistributionTenant => "invalidations for distribution tenants cannot be listed",
        }
    }

    /// The same, with what was not accepted.
    pub fn sentence(self, refused: Refused) -> String {
        let why = match refused {
            Refused::Caller if self.is_of_cluster() => ": the API server does not accept our credentials",
            Refused::Right => ": a right is missing",
            Refused::Caller | Refused::Request => "",
        };
        format!("{}{why}", self.words())
    }

    /// The remedy where a right is missing, or the request is refused, for a person.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::OpenLedger | Self::ReadLedger | Self::WriteLedger => {
                "apply deploy/base/ledger-role.yaml; where one namespace is watched, kubectl apply -k deploy/overlays/namespaced"
            }
            Self::FullLedger => {
                "delete workloads of that namespace that are not needed, or choose fewer of their containers by the annotation allclear.dev/containers"
            }
            Self::PublishEvents => {
                "apply deploy/base/cluster-role.yaml; where one namespace is watched, kubectl apply -k deploy/overlays/namespaced"
            }
            Self::Credentials => "give the pod AWS credentials that are valid: docs/install.md, Credentials",
            Self::ListDistributions => "allow cloudfront:ListDistributions as deploy/iam-policy.json does",
            Self::CreateInvalidation => "allow cloudfront:CreateInvalidation as deploy/iam-policy.json does",
            Self::GetInvalidation => "allow cloudfront:GetInvalidation as deploy/iam-policy.json does",
            Self::ListInvalidations => {
                "allow cloudfront:ListInvalidations and cloudfront:GetInvalidation as deploy/iam-policy.json does"
            }
            Self::ReadTags => "allow cloudfront:GetDistributionConfig as deploy/iam-policy.json does",
            Self::ListDistributionTenants => "allow cloudfront:ListDistributionTenants as deploy/iam-policy.json does",
            Self::FindDistributionTenant => {
                "allow cloudfront:GetDistributionTenantByDomain as deploy/iam-policy.json does"
            }
            Self::CreateForDistributionTenant => {
                "allow cloudfront:CreateInvalidationForDistributionTenant as deploy/iam-policy.json does"
            }
            Self::GetForDistributionTenant => {
                "allow cloudfront:GetInvalidationForDistributionTenant as deploy/iam-policy.json does"
            }
            Self::ListForDistributionTenant => {
                "allow cloudfront:ListInvalidationsForDistributionTenant and cloudfront:GetInvalidationForDistributionTenant as \
                 deploy/iam-policy.json does"
            }
        }
    }

    /// The consequence for as long as it lasts.
    pub const fn cost(self) -> &'static str {
        match self {
            Self::OpenLedger => "nothing is done",
            Self::ReadLedger => "rollouts that are not known yet, or webhooks of an earlier life, wait",
            Self::WriteLedger => "nothing that is new is acted on: nothing is purged",
            Self::FullLedger => "nothing new of these workloads is acted on; other namespaces go on",
            Self::PublishEvents => "Events are lost; rollouts, purges and webhooks go on",
            Self::Credentials | Self::CreateInvalidation => "nothing is purged",
            Self::ListDistributions => "distributions are not found by host, or are those of the last listing",
            Self::GetInvalidation => "purges are made, and never seen to be complete",
            Self::ListInvalidations => "a purge whose answer was lost is not found again",
            Self::ReadTags => "cache tags count as switched off: paths are purged instead",
            Self::ListDistributionTenants => {
                "distribution tenants are not found by host, or are those of the last listing"
            }
            Self::FindDistributionTenant => "a distribution tenant that the listing lacks is not found",
            Self::CreateForDistributionTenant => "no distribution tenant is purged",
            Self::GetForDistributionTenant => "purges of distribution tenants are made, and never seen to be complete",
            Self::ListForDistributionTenant => {
                "a purge of a distribution tenant whose answer was lost is not found again"
            }
        }
    }
}

impl Refusals {
    pub fn refused(&mut self, now: Timestamp, cause: Cause, refused: Refused, place: &str) -> Said {
        let begins = !self.lasting.contains_key(&cause);
        let begun = || Lasting { since: now, unmended: now, open: true, said: None, places: BTreeSet::new() };
        let lasting = self.lasting.entry(cause).or_insert_with(begun);
        if lasting.places.len() < PLACES_MAX {
            lasting.places.insert(place.to_owned());
        }
        let since = lasting.unmended;
        let answered = self.answered.iter().any(|(other, at)| *other != Some(cause) && *at >= since);
        // What AWS says is said of the one caller and call, and it has no such start.
        if cause.is_of_cluster() && !refused.counts(now.since(since), answered) {
            return if begins { Said::Begins } else { Said::Before };
        }
        if lasting.said.is_some_and(|said| now.since(said) < SAID_AGAIN_AFTER) {
            return Said::Before;
        }
        (lasting.said, lasting.open) = (Some(now), true);
        Said::Now
    }

    /// The API server answered what is never a cause.
    pub fn answered(&mut self, now: Timestamp) {
        self.answered.insert(None, now);
    }

    /// When the API server last answered anything.
    pub fn last_answer(&self) -> Option<Timestamp> {
        self.answered.values().max().copied()
    }

    /// Whether this cause lasts, and counts.
    pub fn is_said(&self, cause: Cause) -> bool {
        self.lasting.get(&cause).is_some_and(|lasting| lasting.said.is_some())
    }

    /// Something worked. Returns for how long it did not, if that was said and this is the first place where it works again.
    pub fn worked(&mut self, now: Timestamp, cause: Cause, place: &str) -> Option<Duration> {
        if cause.is_of_cluster() {
            self.answered.insert(Some(cause), now);
        }
        let lasting = self.lasting.get_mut(&cause)?;
        if !lasting.places.remove(place) {
            return None;
        }
        let told = std::mem::take(&mut lasting.open).then(|| now.since(lasting.since));
        (lasting.said, lasting.unmended) = (None, now);
        if lasting.places.is_empty() {
            self.lasting.remove(&cause);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: &str = "shop";
    const BLOG: &str = "blog";
    const CAUSE: Cause = Cause::PublishEvents;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn refused(refusals: &mut Refusals, seconds: u64, cause: Cause, place: &str) -> Said {
        refusals.refused(at(seconds), cause, Refused::Right, place)
    }

    #[test]
    fn a_cause_is_said_once_and_again_daily_wherever_it_is_met() {
        let mut refusals = Refusals::default();
        let day = SAID_AGAIN_AFTER.as_secs();
        assert_eq!(refused(&mut refusals, 1, CAUSE, SHOP), Said::Begins);
        assert_eq!(refused(&mut refusals, 60, CAUSE, SHOP), Said::Before, "it may pass");
        assert_eq!(refused(&mut refusals, 61, CAUSE, BLOG), Said::Now);
        assert_eq!(refused(&mut refusals, 62, CAUSE, SHOP), Said::Before);
        assert_eq!(refused(&mut refusals, 60 + day, CAUSE, SHOP), Said::Before);
        assert_eq!(refused(&mut refusals, 61 + day, CAUSE, BLOG), Said::Now);
        assert_eq!(refused(&mut refusals, 62 + day, CAUSE, SHOP), Said::Before);
        assert_eq!(refused(&mut refusals, 63 + day, Cause::WriteLedger, SHOP), Said::Begins, "another cause");
    }

    /// An API server that has just started refuses all for a moment.
    #[test]
    fn a_right_is_missing_once_another_kind_of_request_was_answered_or_a_minute_has_passed() {
        for (answer, counts) in [(None, 60), (Some(CAUSE), 60), (Some(Cause::ReadLedger), 10)] {
            let mut refusals = Refusals::default();
            refusals.worked(at(0), Cause::ReadLedger, SHOP);
            assert_eq!(refused(&mut refusals, 1, CAUSE, SHOP), Said::Begins);
            answer.map(|answered| refusals.worked(at(2), answered, BLOG));
            assert_eq!(refused(&mut refusals, counts, CAUSE, SHOP), Said::Before, "{answer:?}");
            assert!(!refusals.is_said(CAUSE));
            assert_eq!(refused(&mut refusals, 1 + counts, CAUSE, SHOP), Said::Now, "{answer:?}");
            assert!(refusals.is_said(CAUSE));
        }
        let mut refusals = Refusals::default();
        refused(&mut refusals, 1, CAUSE, SHOP);
        refusals.answered(at(2));
        assert_eq!(refused(&mut refusals, 11, CAUSE, SHOP), Said::Now, "the lease was renewed, say");
    }

    #[test]
    fn credentials_are_refused_once_that_lasts_and_what_aws_or_a_full_ledger_refuses_is_said_at_once() {
        let mut refusals = Refusals::default();
        let caller = |refusals: &mut Refusals, seconds| refusals.refused(at(seconds), CAUSE, Refused::Caller, SHOP);
        assert_eq!(caller(&mut refusals, 1), Said::Begins);
        assert_eq!(caller(&mut refusals, 10), Said::Before);
        assert_eq!(caller(&mut refusals, 11), Said::Now);
        assert_eq!(refused(&mut refusals, 1, Cause::CreateInvalidation, ""), Said::Now);
        assert_eq!(refusals.refused(at(1), Cause::FullLedger, Refused::Request, SHOP), Said::Now);
    }

    #[test]
    fn the_remedy_fits_what_was_not_accepted() {
        for cause in Cause::ALL {
            let (caller, right) = (Refused::Caller.remedy(cause), Refused::Right.remedy(cause));
            assert_eq!(caller == right, !cause.is_of_cluster(), "{}", cause.name());
            assert_eq!(caller.contains("apply"), right.contains("apply") && !cause.is_of_cluster(), "{caller}");
            assert!(cause.sentence(Refused::Right).starts_with(cause.words()));
        }
        let said = Cause::WriteLedger.sentence(Refused::Caller);
        assert_eq!(said, "records cannot be written to the ledger: the API server does not accept our credentials");
    }

    #[test]
    fn its_end_is_told_once_and_another_beginning_is_news() {
        let mut refusals = Refusals::default();
        refused(&mut refusals, 1, CAUSE, SHOP);
        refused(&mut refusals, 2, CAUSE, BLOG);
        assert_eq!(refusals.worked(at(5), CAUSE, "dock"), None, "what was never refused ends nothing");
        assert_eq!(refusals.worked(at(5), Cause::WriteLedger, SHOP), None, "nor does another cause");
        assert_eq!(refusals.worked(at(6), CAUSE, SHOP), Some(Duration::from_secs(5)));
        assert_eq!(refusals.worked(at(7), CAUSE, BLOG), None, "told before");
        assert_eq!(refused(&mut refusals, 8, CAUSE, SHOP), Said::Begins);
    }

    #[test]
    fn what_is_still_refused_after_another_place_was_mended_is_said_again() {
        let mut refusals = Refusals::default();
        refused(&mut refusals, 1, CAUSE, SHOP);
        refused(&mut refusals, 2, CAUSE, BLOG);
        assert_eq!(refused(&mut refusals, 61, CAUSE, BLOG), Said::Now);
        refusals.worked(at(62), CAUSE, SHOP);
        assert_eq!(refused(&mut refusals, 63, CAUSE, BLOG), Said::Before, "it may be mended there in a moment too");
        assert_eq!(refused(&mut refusals, 122, CAUSE, BLOG), Said::Now);
        assert_eq!(refused(&mut refusals, 123, CAUSE, BLOG), Said::Before);
        assert_eq!(refusals.worked(at(126), CAUSE, BLOG), Some(Duration::from_secs(125)));
    }

    #[test]
    fn places_are_bounded() {
        let mut refusals = Refusals::default();
        for place in 0..2 * PLACES_MAX {
            refused(&mut refusals, 1, CAUSE, &place.to_string());
        }
        assert_eq!(refusals.lasting[&CAUSE].places.len(), PLACES_MAX);
    }

    #[test]
    fn a_distribution_tenant_has_rights_of_its_own_for_what_is_done_to_it() {
        let [distribution, tenant] = ["E1", "dt_a"].map(|id| DistributionId::parse(id).unwrap());
        let purges = [Cause::CreateInvalidation, Cause::GetInvalidation, Cause::ListInvalidations];
        for cause in Cause::ALL {
            assert_eq!(cause.on(&distribution), cause);
            assert_eq!(cause.on(&tenant) != cause, purges.contains(&cause), "{}", cause.name());
            let right = cause.on(&tenant).remedy();
            assert!(!purges.contains(&cause) || right.contains("ForDistributionTenant"), "{right}");
        }
    }

    #[test]
    fn every_cause_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Cause::ALL.into_iter().map(Cause::name).collect();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
