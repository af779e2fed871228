//! The calls about distribution tenants: CloudFront has operations of its own for them, which answer as those for distributions do.
//!
//! Not for when they are made; that is `purge::purges::catalog` and `purge::purges::purge`.

use std::collections::BTreeSet;

use aws_sdk_cloudfront::config::Builder;
use aws_sdk_cloudfront::config::retry::RetryConfig;
use aws_sdk_cloudfront::types::{Invalidation, InvalidationBatch, InvalidationList};

use super::{CloudFront, FIND_MAX, LISTING_ATTEMPTS_MAX, NAMES_BYTES_MAX, PAGE_ITEMS_MAX, answer, failure, unusable};
use kernel::id::InvalidationId;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use purge::ports::{CdnError, CdnErrorClass};

/// Pages read of the listing of distribution tenants. An account may have 10,000 of them by default (service quota *Maximum number of
/// distribution tenants per AWS account*); how many are on a page is not documented. Those beyond are found by their domains.
const PAGES_MAX: usize = 200;

impl CloudFront {
    /// The distribution tenants of these distributions, as far as the bound allows.
    pub(super) async fn list_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        let attempted = || "failed to list distribution tenants".to_owned();
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut marker: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let retrying = RetryConfig::standard().with_max_attempts(LISTING_ATTEMPTS_MAX);
            let call = self.client.list_distribution_tenants().set_marker(marker.clone()).customize();
            let call = call.config_override(Builder::default().retry_config(retrying));
            let page = call.send().await.map_err(|error| failure(attempted(), &error))?;
            let items = page.distribution_tenant_list.unwrap_or_default();
            if items.len() > PAGE_ITEMS_MAX {
                return Err(unusable(attempted(), &format!("a page has more than {PAGE_ITEMS_MAX} of them")));
            }
            let ours = items.into_iter().filter(|one| of.iter().any(|id| id.as_str() == one.distribution_id));
            let read = ours.filter_map(|one| answer::distribution_tenant(&one.id, one.domains, one.enabled));
            let read: Vec<Distribution> = read.collect();
            bytes += read.iter().map(answer::names_bytes).sum::<usize>();
            found.extend(read);
            let Some(next) = page.next_marker.filter(|next| !next.is_empty()) else { return Ok(found) };
            let before = std::mem::replace(&mut marker, answer::marker(next));
            if marker.is_none() || marker == before {
                return Err(unusable(attempted(), "the service does not say where the next page begins"));
            }
            if bytes > NAMES_BYTES_MAX {
                break;
            }
        }
        tracing::warn!(
            listed = found.len(),
            "not all distribution tenants were listed: the others are found by their domains"
        );
        Ok(found)
    }

    /// The distribution tenant of a domain, of whichever distribution: the caller's listing does not say which ones this call may name. One
    /// whose distribution is disabled is found too, and its purge costs a call and purges nothing that is served.
    pub(super) async fn find_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        let attempted = || format!("failed to look for the distribution tenant of {domain}");
        let call = self.client.get_distribution_tenant_by_domain().domain(domain.as_str());
        let found = match call.send().await.map_err(|error| failure(attempted(), &error)) {
            Ok(answer) => answer.distribution_tenant,
            Err(error) if error.class == CdnErrorClass::Gone => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = found.and_then(|one| {
            answer::distribution_tenant(&one.id.unwrap_or_default(), one.domains.unwrap_or_default(), one.enabled)
        });
        read.map(Some).ok_or_else(|| unusable(attempted(), "the answer names none"))
    }

    pub(super) async fn create_for_tenant(
        &self,
        tenant: &DistributionId,
        batch: InvalidationBatch,
        attempted: impl Fn() -> String,
    ) -> Result<Option<Invalidation>, CdnError> {
        let call = self.client.create_invalidation_for_distribution_tenant();
        let answer = call.id(tenant.as_str()).invalidation_batch(batch).send().await;
        Ok(answer.map_err(|error| failure(attempted(), &error))?.invalidation)
    }

    pub(super) async fn get_for_tenant(
        &self,
        tenant: &DistributionId,
        id: &InvalidationId,
        attempted: impl Fn() -> String,
    ) -> Result<Option<Invalidation>, CdnError> {
        let call = self.client.get_invalidation_for_distribution_tenant();
        let answer = call.distribution_tenant_id(tenant.as_str()).id(&id.0).send().await;
        Ok(answer.map_err(|error| failure(attempted(), &error))?.invalidation)
    }

    /// The newest ones.
    pub(super) async fn list_for_tenant(
        &self,
        tenant: &DistributionId,
        attempted: impl Fn() -> String,
    ) -> Result<Option<InvalidationList>, CdnError> {
        let call = self.client.list_invalidations_for_distribution_tenant();
        let answer = call.id(tenant.as_str()).max_items(FIND_MAX.into()).send().await;
        Ok(answer.map_err(|error| failure(attempted(), &error))?.invalidation_list)
    }
}
