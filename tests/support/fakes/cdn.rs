//! CloudFront, as the world has it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use kernel::id::{InvalidationId, Reference};
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use purge::ports::{Cdn, CdnError, Found, Invalidation, InvalidationStatus};
use purge::purges::purge::CdnErrorClass;

use super::ports::wall;
use super::{Created, World};

#[async_trait]
impl Cdn for World {
    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        self.cdn("cdn.distributions", "").await?;
        let state = self.state();
        let distributions = state.distributions.iter().filter(|one| !one.id.is_of_distribution_tenant());
        Ok(distributions.cloned().collect())
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        let of: Vec<&str> = of.iter().map(DistributionId::as_str).collect();
        self.cdn("cdn.distribution_tenants", &of.join(",")).await?;
        let state = self.state();
        let tenants = state.distributions.iter().filter(|one| one.id.is_of_distribution_tenant());
        Ok(tenants.cloned().collect())
    }

    /// The listing has them all.
    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        self.cdn("cdn.distribution_tenant", domain.as_str()).await?;
        Ok(None)
    }

    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError> {
        self.cdn("cdn.cache_tag_header", &distribution.to_string()).await?;
        let state = self.state();
        let has_tags = state.distributions.iter().any(|known| known.id == *distribution && known.cache_tags);
        Ok(has_tags.then(|| "cache-tag".to_owned()))
    }

    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError> {
        let lost = self.cdn("cdn.create", &distribution.to_string()).await?;
        let account = self.account();
        let mut state = account.state();
        let at = state.now();
        let id = InvalidationId(format!("I{}", state.created.len() + 1));
        let known = state.created.entry(reference.clone()).or_insert_with(|| Created {
            at,
            distribution: distribution.clone(),
            reference: reference.clone(),
            paths: paths.clone(),
            id,
            calls: 0,
        });
        known.calls += 1;
        if known.paths != *paths || known.distribution != *distribution {
            let message = format!("{reference} was used with other paths");
            return Err(CdnError { class: CdnErrorClass::ReferenceReused, message });
        }
        let (id, created_ms) = (known.id.clone(), Some(wall(known.at)));
        if lost {
            return Err(CdnError { class: CdnErrorClass::Ambiguous, message: "the answer was lost".to_owned() });
        }
        Ok(Invalidation { id, status: InvalidationStatus::InProgress, created_ms })
    }

    async fn status(&self, distribution: &DistributionId, id: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        let lost = self.cdn("cdn.status", &distribution.to_string()).await?;
        let account = self.account();
        let state = account.state();
        let known = state.created.values().find(|created| created.id == *id && created.distribution == *distribution);
        match known {
            _ if lost => Err(CdnError { class: CdnErrorClass::Ambiguous, message: "the answer was lost".to_owned() }),
            None => Err(CdnError { class: CdnErrorClass::NoSuchInvalidation, message: format!("{id} is not known") }),
            Some(created) if state.now() < created.at + state.purge_takes => Ok(InvalidationStatus::InProgress),
            Some(_) => Ok(InvalidationStatus::Completed),
        }
    }

    async fn find(&self, distribution: &DistributionId, reference: &Reference) -> Result<Option<Found>, CdnError> {
        self.cdn("cdn.find", &distribution.to_string()).await?;
        let account = self.account();
        let state = account.state();
        let known = state.created.get(reference).filter(|created| created.distribution == *distribution);
        Ok(known.map(|created| Found {
            invalidation: created.id.clone(),
            sent: created.paths.clone(),
            created_ms: Some(wall(created.at)),
        }))
    }
}
