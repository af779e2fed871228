//! The AWS account: our identity there, and each action that allclear uses, without purging anything.
//!
//! Not for which distribution serves which host.

use super::catalog::{
    AWS_CREATE_INVALIDATION, AWS_CREDENTIALS, AWS_GET_DISTRIBUTION_CONFIG, AWS_GET_INVALIDATION, AWS_IDENTITY,
    AWS_LIST_DISTRIBUTIONS, AWS_LIST_INVALIDATIONS, AWS_REGION, Check,
};
use super::distribution_tenants::{self, distribution_tenants};
use super::report::Finding;
use super::tried::judged;
use crate::adapters::cloudfront::CloudFront;
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

/// What is known of the account.
pub struct Account {
    /// All its distributions, if they can be listed, and its distribution tenants, if those can be.
    pub distributions: Option<Vec<Distribution>>,
    /// Its number, in words.
    pub name: String,
    pub findings: Vec<Finding>,
}

/// Our identity there, and the account's distributions.
pub async fn account(cdn: &CloudFront) -> Account {
    let (identity, listed) = tokio::join!(cdn.identity(), cdn.distributions());
    let mut findings = vec![region(&cdn.region())];
    let name =
        identity.as_ref().map_or_else(|_| "this account".to_owned(), |found| format!("account {}", found.account));
    let refusal = listed.as_ref().err().map(|error| error.class.cause(Cause::ListDistributions, &error.message));
    if refusal == Some(Some(Cause::Credentials)) {
        let error = listed.as_ref().err().map(ToString::to_string).unwrap_or_default();
        findings.push(AWS_CREDENTIALS.failed(error).hint(Cause::Credentials.remedy()));
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
            let (listed, found) = distribution_tenants(cdn, &distributions).await;
            distributions.extend(listed);
            findings.extend(found);
            Account { distributions: Some(distributions), name, findings }
        }
        Err(error) => {
            findings.push(match refusal {
                Some(Some(_)) => AWS_CREDENTIALS.good("CloudFront knows us"),
                Some(None) | None => AWS_CREDENTIALS.after(AWS_LIST_DISTRIBUTIONS),
            });
            let hint =
                if refusal == Some(Some(Cause::ListDistributions)) { Cause::ListDistributions.remedy() } else { "" };
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

/// Tries each action on these distributions. `after`: why there are none.
pub async fn actions(cdn: &CloudFront, distributions: &[DistributionId], after: Check) -> Vec<Finding> {
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
            if let Err(error) = attempt(cdn, cause, distribution).await {
                refused = refused.or(Some((cause.on(distribution), error)));
            }
        }
        let names: Vec<String> = tried.into_iter().map(DistributionId::words).collect();
        findings.push(match refused {
            None if names.is_empty() => check.good("not needed: distribution tenants are purged by paths"),
            None => judged(check, cause, None, &names.join(", ")),
            Some((cause, error)) => judged(check, cause, Some(error), &names.join(", ")),
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
