//! The AWS accounts: our identity in each, and each action that allclear uses, without purging anything.
//!
//! Not for which distribution serves which host.

use futures_util::future::join_all;

use super::catalog::{
    AWS_CREATE_INVALIDATION, AWS_CREDENTIALS, AWS_GET_DISTRIBUTION_CONFIG, AWS_GET_INVALIDATION, AWS_IDENTITY,
    AWS_LIST_DISTRIBUTIONS, AWS_LIST_INVALIDATIONS, AWS_REGION, Check,
};
use super::distribution_tenants::{self, distribution_tenants};
use super::report::Finding;
use super::tried::{hint, judged};
use crate::adapters::cloudfront::CloudFront;
use crate::adapters::cloudfront::probe::Identity;
use crate::app::checking::Cloud;
use crate::looking::page::count;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::refusal::Cause;
use purge::ports::{Cdn, CdnError};

/// Distributions on which each action is tried: rights may be given by tags, so one distribution says little of another.
const TRIED_MAX: usize = 10;

/// The actions on one distribution.
const ACTIONS: [(Check, Cause); 4] = [
    (AWS_GET_DISTRIBUTION_CONFIG, Cause::ReadTags),
    (AWS_LIST_INVALIDATIONS, Cause::ListInvalidations),
    (AWS_GET_INVALIDATION, Cause::GetInvalidation),
    (AWS_CREATE_INVALIDATION, Cause::CreateInvalidation),
];

/// How the regions of partitions begin that have no CloudFront: GovCloud and the isolated ones. The SDK's endpoint rules know CloudFront in
/// the partitions `aws`, `aws-cn` and `aws-eusc` only (`aws-sdk-cloudfront`, `endpoint_lib`).
const WITHOUT_CLOUDFRONT: [&str; 3] = ["us-gov-", "us-iso", "eu-isoe-"];

/// What is known of one account.
struct Account {
    /// All its distributions, if they can be listed, and its distribution tenants, if those can be.
    distributions: Option<Vec<Distribution>>,
    /// Its number, in words.
    name: String,
    findings: Vec<Finding>,
}

/// What is known of all accounts.
pub struct Accounts<'a> {
    clouds: &'a [Cloud],
    each: Vec<Account>,
}

/// Asks all of them, beside each other.
pub async fn accounts(clouds: &[Cloud]) -> Accounts<'_> {
    Accounts { clouds, each: join_all(clouds.iter().map(account)).await }
}

impl Accounts<'_> {
    pub fn findings(&self) -> Vec<Finding> {
        self.each.iter().flat_map(|account| account.findings.clone()).collect()
    }

    /// The distributions of the accounts that can be listed; `None` if none can.
    pub fn distributions(&self) -> Option<Vec<Distribution>> {
        let known = || self.each.iter().filter_map(|account| account.distributions.as_ref());
        known().next().is_some().then(|| known().flatten().cloned().collect())
    }

    /// Their numbers, in words.
    pub fn name(&self) -> String {
        self.each.iter().map(|account| account.name.as_str()).collect::<Vec<_>>().join(" and ")
    }

    /// The accounts that cannot be listed, in words, where others can.
    pub fn unlisted(&self) -> Vec<String> {
        let unlisted = self.each.iter().filter(|account| account.distributions.is_none());
        let words = unlisted.map(|account| format!("the distributions of {} could not be listed", account.name));
        if self.distributions().is_some() { words.collect() } else { Vec::new() }
    }

    /// The account that has a distribution; the first one where that is not known.
    pub fn home(&self, id: &DistributionId) -> Option<&CloudFront> {
        let has = |account: &&Account| account.distributions.iter().flatten().any(|one| one.id == *id);
        let at = self.each.iter().position(|account| has(&account)).unwrap_or_default();
        self.clouds.get(at).map(|cloud| &cloud.cdn)
    }

    /// Tries each action on these distributions, in the account of each. `after`: why there are none.
    pub async fn actions(&self, distributions: &[DistributionId], after: Check) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (cloud, account) in self.clouds.iter().zip(&self.each) {
            let Some(listed) = &account.distributions else { continue };
            let is_alone = self.clouds.len() == 1;
            let its = |id: &&DistributionId| is_alone || listed.iter().any(|one| one.id == **id);
            let its: Vec<DistributionId> = distributions.iter().filter(its).cloned().collect();
            findings.extend(actions(cloud, &its, after).await.into_iter().map(|finding| about(cloud, finding)));
        }
        findings
    }
}

/// The finding with the name of its account, where that has one.
fn about(cloud: &Cloud, finding: Finding) -> Finding {
    match &cloud.name {
        Some(name) if finding.about.is_none() => finding.of(name.as_str()),
        Some(_) | None => finding,
    }
}

/// Our identity there, and the account's distributions.
async fn account(cloud: &Cloud) -> Account {
    let cdn = &cloud.cdn;
    let (identity, listed) = tokio::join!(cdn.identity(), cdn.distributions());
    let account = known(cloud, identity, listed).await;
    let findings = account.findings.into_iter().map(|finding| about(cloud, finding)).collect();
    Account { findings, ..account }
}

async fn known(
    cloud: &Cloud,
    identity: Result<Identity, CdnError>,
    listed: Result<Vec<Distribution>, CdnError>,
) -> Account {
    let mut findings = vec![region(&cloud.cdn.region())];
    let number = identity.as_ref().ok().map(|found| found.account.as_str());
    let name = match (&cloud.name, number) {
        (None, Some(number)) => format!("account {number}"),
        (None, None) => "this account".to_owned(),
        (Some(name), Some(number)) => format!("account {name} ({number})"),
        (Some(name), None) => format!("account {name}"),
    };
    let refusal = listed.as_ref().err().map(|error| error.class.cause(Cause::ListDistributions, &error.message));
    if let (Some(Some(Cause::Credentials)), Err(error)) = (refusal, &listed) {
        let hint = hint(cloud, error, (Cause::Credentials, None));
        findings.push(AWS_CREDENTIALS.failed(error).hint(hint));
        findings.push(AWS_IDENTITY.after(AWS_CREDENTIALS));
        findings.push(AWS_LIST_DISTRIBUTIONS.after(AWS_CREDENTIALS));
        findings.extend(distribution_tenants::after(AWS_CREDENTIALS));
        findings.extend(ACTIONS.map(|(check, _)| check.after(AWS_CREDENTIALS)));
        return Account { distributions: None, name, findings };
    }
    findings.push(match &identity {
        Ok(found) => AWS_IDENTITY.good(&found.arn),
        Err(error) => {
            AWS_IDENTITY.warning(error).hint("nothing but this line depends on STS, unless credentials come from there")
        }
    });
    match listed {
        Ok(mut distributions) => {
            findings.push(AWS_CREDENTIALS.good("CloudFront takes them"));
            findings.push(AWS_LIST_DISTRIBUTIONS.good(count(distributions.len(), "distribution", "distributions")));
            let (listed, found) = distribution_tenants(cloud, &distributions).await;
            distributions.extend(listed);
            findings.extend(found);
            Account { distributions: Some(distributions), name, findings }
        }
        Err(error) => {
            findings.push(match refusal {
                Some(Some(_)) => AWS_CREDENTIALS.good("CloudFront knows us"),
                Some(None) | None => AWS_CREDENTIALS.after(AWS_LIST_DISTRIBUTIONS),
            });
            let hint = if refusal == Some(Some(Cause::ListDistributions)) {
                hint(cloud, &error, (Cause::ListDistributions, None))
            } else {
                String::new()
            };
            findings.push(AWS_LIST_DISTRIBUTIONS.failed(error).hint(hint));
            findings.extend(distribution_tenants::after(AWS_LIST_DISTRIBUTIONS));
            findings.extend(ACTIONS.map(|(check, _)| check.after(AWS_LIST_DISTRIBUTIONS)));
            Account { distributions: None, name, findings }
        }
    }
}

/// Whether there is a CloudFront where this region is.
fn region(region: &str) -> Finding {
    if WITHOUT_CLOUDFRONT.iter().any(|begin| region.starts_with(begin)) {
        return AWS_REGION.warning(format!("the partition of {region} has no CloudFront")).hint(
            "set cloudfront.region to us-east-1, and give credentials of the account that has the distributions",
        );
    }
    AWS_REGION.good(region)
}

/// Tries each action on these distributions of one account. `after`: why there are none.
async fn actions(cloud: &Cloud, distributions: &[DistributionId], after: Check) -> Vec<Finding> {
    if distributions.is_empty() {
        return ACTIONS.map(|(check, _)| check.after(after)).into();
    }
    let mut findings = Vec::new();
    for (check, cause) in ACTIONS {
        // The rights of distribution tenants are others.
        let tenants = distributions.iter().filter(|id| id.is_of_distribution_tenant()).take(TRIED_MAX);
        let tenants = tenants.filter(|_| cause != Cause::ReadTags);
        let tried = distributions.iter().filter(|id| !id.is_of_distribution_tenant()).take(TRIED_MAX).chain(tenants);
        let tried: Vec<&DistributionId> = tried.collect();
        let mut refused = None;
        for distribution in &tried {
            if let Err(error) = attempt(&cloud.cdn, cause, distribution).await {
                refused = refused.or(Some((*distribution, error)));
            }
        }
        let names: Vec<String> = tried.into_iter().map(DistributionId::words).collect();
        findings.push(match refused {
            None if names.is_empty() => check.good("not needed: distribution tenants are purged by paths"),
            None => judged(cloud, check, (cause, None), None, &names.join(", ")),
            Some((of, error)) => judged(cloud, check, (cause.on(of), Some(of)), Some(error), &names.join(", ")),
        });
    }
    findings
}

async fn attempt(cdn: &CloudFront, cause: Cause, distribution: &DistributionId) -> Result<(), CdnError> {
    match cause {
        Cause::ReadTags => cdn.cache_tag_header(distribution).await.map(drop),
        Cause::ListInvalidations => cdn.try_list(distribution).await,
        Cause::GetInvalidation => cdn.try_get(distribution).await,
        Cause::CreateInvalidation => cdn.try_create(distribution).await,
        Cause::OpenLedger
        | Cause::ReadLedger
        | Cause::WriteLedger
        | Cause::FullLedger
        | Cause::PublishEvents
        | Cause::Credentials
        | Cause::ListDistributions
        | Cause::ListDistributionTenants
        | Cause::FindDistributionTenant
        | Cause::CreateForDistributionTenant
        | Cause::GetForDistributionTenant
        | Cause::ListForDistributionTenant => Ok(()),
    }
}
