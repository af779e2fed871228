//! Two accounts: `a` has a distribution, `b` one for distribution tenants only.

use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::looking::explain::distributions::serving;
use crate::looking::explain::text::distribution_lines;
use crate::looking::tests::{Account, distribution, only_looks};
use kernel::id::{InvalidationId, Reference};
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use purge::ports::{CdnErrorClass, Found, Invalidation, InvalidationStatus};
use purge::purges::accounts::Scope;

struct Two([Arc<Account>; 2]);

#[async_trait]
impl Cdn for Two {
    fn account(&self, name: &AccountName) -> Option<Arc<dyn Cdn>> {
        let [a, b] = self.0.clone();
        Some(if name.as_str() == "a" { a } else { b })
    }

    fn accounts(&self) -> Vec<AccountName> {
        ["a", "b"].map(|name| name.parse().unwrap()).into()
    }

    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        only_looks()
    }

    async fn distribution_tenants(&self, _: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        only_looks()
    }

    async fn distribution_tenant(&self, _: &Host) -> Result<Option<Distribution>, CdnError> {
        only_looks()
    }

    async fn cache_tag_header(&self, _: &DistributionId) -> Result<Option<String>, CdnError> {
        only_looks()
    }

    async fn create(&self, _: &DistributionId, _: &Reference, _: &PathSet) -> Result<Invalidation, CdnError> {
        only_looks()
    }

    async fn status(&self, _: &DistributionId, _: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        only_looks()
    }

    async fn find(&self, _: &DistributionId, _: &Reference) -> Result<Option<Found>, CdnError> {
        only_looks()
    }
}

/// What is listed where `b` has these distribution tenants, for a workload of the namespace `shop`.
async fn listed(a: Result<Vec<Distribution>, CdnError>, tenants: &[(&str, &str)], of_b: Scope) -> Listing {
    let tenant =
        |(id, domain): &(&str, &str)| Distribution { domain_name: String::new(), ..distribution(id, domain, true) };
    let shared = Distribution { tenant_only: true, aliases: Vec::new(), ..distribution("E9", "", true) };
    let b = Ok(tenants.iter().map(tenant).chain([shared]).collect());
    let scopes = [("a", Scope::default()), ("b", of_b)].map(|(name, scope)| (name.parse().unwrap(), scope));
    let two = Two([Arc::new(Account(a)), Arc::new(Account(b))]);
    listing(&two, &Accounts::new(scopes.into()), Some("shop")).await
}

fn of_a() -> Result<Vec<Distribution>, CdnError> {
    Ok(vec![distribution("E1", "www.example.com", true)])
}

fn lines(listing: &Listing, host: &str) -> Vec<String> {
    serving(&Host::parse(host).unwrap(), listing).known().map(distribution_lines).unwrap_or_default()
}

#[tokio::test]
async fn each_is_said_to_be_in_its_account() {
    let listing = listed(of_a(), &[("dt_b", "www.example.com")], Scope::default()).await;
    assert_eq!(
        lines(&listing, "www.example.com"),
        [
            "E1 (e1.cloudfront.net) in AWS account a: alias www.example.com",
            "distribution tenant dt_b in AWS account b: alias www.example.com"
        ]
    );
    assert!(!listing.may_lack(&"dt_none".parse().unwrap()));
}

#[tokio::test]
async fn what_could_not_be_listed_is_said_of_each_account() {
    let down = || Err(CdnError { class: CdnErrorClass::Ambiguous, message: "AWS account a: down".to_owned() });
    let half = listed(of_a(), &[], Scope::default()).await;
    let words = ["none serves new.example.com (2 looked at)", "missing: AccessDenied for distribution tenants"];
    assert_eq!(lines(&half, "new.example.com"), words);
    let [tenant, distribution]: [DistributionId; 2] = ["dt_none", "ENONE"].map(|id| id.parse().unwrap());
    assert!(half.may_lack(&tenant) && !half.may_lack(&distribution));
    let both = listed(down(), &[], Scope::default()).await;
    let words = [
        "none serves new.example.com (1 looked at)",
        "there may be more: AWS account a: down",
        "missing: AccessDenied for distribution tenants",
    ];
    assert_eq!(lines(&both, "new.example.com"), words);
    assert!(both.may_lack(&distribution));
}

#[tokio::test]
async fn an_account_that_is_not_asked_for_a_namespace_may_have_what_its_owner_names() {
    let other = Scope { namespaces: ["blog".to_owned()].into(), ..Scope::default() };
    let listing = listed(of_a(), &[("dt_b", "www.example.com")], other).await;
    assert_eq!(lines(&listing, "www.example.com").len(), 1);
    assert!(listing.may_lack(&"dt_b".parse().unwrap()));
}
