//! What only a person can end: rights that are missing, credentials, and a part of the ledger that is full. Said when it begins and again daily, with what to do,
//! and when it ends (decision 37); in between it is no news, however often it is tried.
//!
//! One cause is met with at many places: a right to Events in each namespace, a shard of the ledger by each workload in it. It is
//! said once for all of them, and is mended where a place that was refused works. One that is still refused then is said again.
//!
//! Not for what passes by itself, nor for the watch of workloads, which has more to say (`watch::Troubles`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::machine::Timestamp;
use crate::purge::CdnErrorClass;

/// How often it is said again.
pub const SAID_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Most places kept for one cause, 100 bytes each. What is refused at further ones is no news; that they work is none either.
pub const PLACES_MAX: usize = 1_000;

/// What is refused. Each is mended by itself.
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
}

/// Whether a refusal is said now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is news, or has lasted for another day.
    Now,
    /// It was said before.
    Before,
}

/// One cause, for as long as it lasts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lasting {
    since: Timestamp,
    /// When it was last said; `None` once it was mended somewhere, and not everywhere.
    said: Option<Timestamp>,
    places: BTreeSet<String>,
}

/// All that is refused at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Refusals {
    lasting: BTreeMap<Cause, Lasting>,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 11] = [
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
    ];

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
        }
    }

    /// What a person has to do.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::OpenLedger | Self::ReadLedger | Self::WriteLedger => {
                "apply deploy/base/ledger-role.yaml; where one namespace is watched, kubectl apply -k deploy/overlays/namespaced"
            }
            Self::FullLedger => {
                "delete Deployments of that namespace that are not needed, or choose fewer of their containers by the annotation allclear.dev/containers"
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
        }
    }

    /// What follows for as long as it lasts.
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
        }
    }

    /// Why CloudFront refused a call that would need `right`; `None` where no person has to do anything. The adapter repeats the
    /// code and the status of CloudFront's own answer: `AccessDenied` is its word for a caller who is known and may not. All
    /// other refusals are about who calls (*Common errors* of AWS's API references), and so is what the services say that
    /// hand out credentials, in which there is no such status.
    pub fn of_cdn(right: Self, class: CdnErrorClass, message: &str) -> Option<Self> {
        let codes = ["AccessDenied (HTTP ", "AccessDeniedException (HTTP ", "NotAuthorized (HTTP "];
        let known = codes.iter().any(|code| message.contains(code));
        (class == CdnErrorClass::Denied).then_some(if known { right } else { Self::Credentials })
    }
}

impl Refusals {
    /// Something was refused.
    pub fn refused(&mut self, now: Timestamp, cause: Cause, place: &str) -> Said {
        let begun = || Lasting { since: now, said: None, places: BTreeSet::new() };
        let lasting = self.lasting.entry(cause).or_insert_with(begun);
        if lasting.places.len() < PLACES_MAX {
            lasting.places.insert(place.to_owned());
        }
        if lasting.said.is_some_and(|said| now.since(said) < SAID_AGAIN_AFTER) {
            return Said::Before;
        }
        lasting.said = Some(now);
        Said::Now
    }

    /// Something worked. Returns for how long it did not, if that was said and this is the first place where it works again.
    pub fn worked(&mut self, now: Timestamp, cause: Cause, place: &str) -> Option<Duration> {
        let lasting = self.lasting.get_mut(&cause)?;
        if !lasting.places.remove(place) {
            return None;
        }
        let told = lasting.said.take().map(|_| now.since(lasting.since));
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

    #[test]
    fn a_cause_is_said_once_and_again_daily_wherever_it_is_met() {
        let mut refusals = Refusals::default();
        let day = SAID_AGAIN_AFTER.as_secs();
        assert_eq!(refusals.refused(at(1), CAUSE, SHOP), Said::Now);
        assert_eq!(refusals.refused(at(2), CAUSE, SHOP), Said::Before);
        assert_eq!(refusals.refused(at(3), CAUSE, BLOG), Said::Before);
        assert_eq!(refusals.refused(at(day), CAUSE, SHOP), Said::Before);
        assert_eq!(refusals.refused(at(day + 1), CAUSE, BLOG), Said::Now);
        assert_eq!(refusals.refused(at(day + 2), CAUSE, SHOP), Said::Before);
        assert_eq!(refusals.refused(at(day + 2), Cause::WriteLedger, SHOP), Said::Now, "another cause");
    }

    #[test]
    fn its_end_is_told_once_and_another_beginning_is_news() {
        let mut refusals = Refusals::default();
        refusals.refused(at(1), CAUSE, SHOP);
        refusals.refused(at(2), CAUSE, BLOG);
        assert_eq!(refusals.worked(at(5), CAUSE, "dock"), None, "what was never refused ends nothing");
        assert_eq!(refusals.worked(at(5), Cause::WriteLedger, SHOP), None, "nor does another cause");
        assert_eq!(refusals.worked(at(6), CAUSE, SHOP), Some(Duration::from_secs(5)));
        assert_eq!(refusals.worked(at(7), CAUSE, BLOG), None, "told before");
        assert_eq!(refusals, Refusals::default());
        assert_eq!(refusals.refused(at(8), CAUSE, SHOP), Said::Now);
    }

    #[test]
    fn what_is_still_refused_after_another_place_was_mended_is_said_again() {
        let mut refusals = Refusals::default();
        refusals.refused(at(1), CAUSE, SHOP);
        refusals.refused(at(2), CAUSE, BLOG);
        refusals.worked(at(3), CAUSE, SHOP);
        assert_eq!(refusals.refused(at(4), CAUSE, BLOG), Said::Now);
        assert_eq!(refusals.refused(at(5), CAUSE, BLOG), Said::Before);
        assert_eq!(refusals.worked(at(6), CAUSE, BLOG), Some(Duration::from_secs(5)));
    }

    #[test]
    fn places_are_bounded() {
        let mut refusals = Refusals::default();
        for place in 0..2 * PLACES_MAX {
            refusals.refused(at(1), CAUSE, &place.to_string());
        }
        assert_eq!(refusals.lasting[&CAUSE].places.len(), PLACES_MAX);
    }

    #[test]
    fn cloudfront_refuses_the_caller_or_the_call() {
        let right = Cause::CreateInvalidation;
        let denied = |message: &str| Cause::of_cdn(right, CdnErrorClass::Denied, message);
        let failed = |cause: &str| format!("failed to create an invalidation on EWEB: {cause}");
        assert_eq!(denied(&failed("AccessDenied (HTTP 403): User is not authorized")), Some(right));
        for cause in [
            "ExpiredToken (HTTP 403)",
            "InvalidClientTokenId (HTTP 403)",
            "SignatureDoesNotMatch (HTTP 403)",
            "an error occurred while loading credentials: AccessDenied: not authorized to perform: sts:AssumeRole",
            "the credential provider was not enabled: no providers in chain provided credentials",
        ] {
            assert_eq!(denied(&failed(cause)), Some(Cause::Credentials), "{cause}");
        }
        assert_eq!(Cause::of_cdn(right, CdnErrorClass::Throttled, "AccessDenied"), None);
        assert_eq!(Cause::of_cdn(right, CdnErrorClass::Ambiguous, &failed("no answer")), None);
    }

    #[test]
    fn every_cause_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Cause::ALL.into_iter().map(Cause::name).collect();
        assert_eq!(names.len(), Cause::ALL.len());
    }
}
