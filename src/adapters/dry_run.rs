//! Ports that only say what they would have done. With a ledger in memory they make the dry run (decision 23): everything
//! is watched, judged and planned, nothing is purged, written or sent, and nothing counts as purged afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use kernel::id::{InvalidationId, Reference, Subject, WorkloadId};
use kernel::names::account::AccountName;
use kernel::names::distribution::{Distribution, DistributionId};
use kernel::names::host::Host;
use kernel::names::paths::PathSet;
use kernel::remark::{Remark, Remarked};
use notices::delivery::{Delivery, Reply};
use notices::notice::{Kind, Notice};
use purge::caches::asking::{Answers, Question};
use purge::ports::{
    Caches, Cdn, CdnError, EventSink, Found, Invalidation, InvalidationStatus, Notifier, PortError, Receiver,
};

/// Lists the real distributions and creates nothing.
pub struct DryCdn(pub Arc<dyn Cdn>);

#[async_trait]
impl Cdn for DryCdn {
    fn account(&self, name: &AccountName) -> Option<Arc<dyn Cdn>> {
        Some(Arc::new(Self(self.0.account(name)?)))
    }

    fn accounts(&self) -> Vec<AccountName> {
        self.0.accounts()
    }

    async fn distributions(&self) -> Result<Vec<Distribution>, CdnError> {
        self.0.distributions().await
    }

    async fn distribution_tenants(&self, of: &BTreeSet<DistributionId>) -> Result<Vec<Distribution>, CdnError> {
        self.0.distribution_tenants(of).await
    }

    async fn distribution_tenant(&self, domain: &Host) -> Result<Option<Distribution>, CdnError> {
        self.0.distribution_tenant(domain).await
    }

    async fn cache_tag_header(&self, distribution: &DistributionId) -> Result<Option<String>, CdnError> {
        self.0.cache_tag_header(distribution).await
    }

    async fn create(
        &self,
        distribution: &DistributionId,
        reference: &Reference,
        paths: &PathSet,
    ) -> Result<Invalidation, CdnError> {
        let paths: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        tracing::info!(%distribution, %reference, paths = paths.join(" "), "dry run: would create this invalidation");
        Ok(Invalidation { id: InvalidationId::of_dry_run(), status: InvalidationStatus::Completed, created_ms: None })
    }

    async fn status(&self, _: &DistributionId, _: &InvalidationId) -> Result<InvalidationStatus, CdnError> {
        Ok(InvalidationStatus::Completed)
    }

    async fn find(&self, _: &DistributionId, _: &Reference) -> Result<Option<Found>, CdnError> {
        Ok(None)
    }
}

/// Says which webhooks would be called, and calls none.
pub struct DryNotifier(pub Arc<dyn Notifier>);

#[async_trait]
impl Notifier for DryNotifier {
    fn hears(&self, subject: &Subject, kind: Kind) -> bool {
        self.0.hears(subject, kind)
    }

    fn deliveries(&self, notice: &Notice) -> Vec<Delivery> {
        for delivery in self.0.deliveries(notice) {
            let (hook, kind) = (delivery.hook, delivery.kind.name());
            tracing::info!(hook, kind, workload = %notice.about.subject().display_name(), "dry run: would call this webhook");
        }
        Vec::new()
    }

    async fn send(&self, _: &Delivery) -> Reply {
        Reply::UnknownHook
    }

    fn receivers(&self) -> Vec<Receiver> {
        self.0.receivers()
    }
}

pub struct DryEvents;

#[async_trait]
impl EventSink for DryEvents {
    async fn publish(&self, notice: &Notice, _: &str) -> Result<(), PortError> {
        tracing::debug!(kind = notice.kind.name(), "dry run: would publish an Event");
        Ok(())
    }

    async fn remark(&self, remark: &Remark, _: &Remarked, _: i64) -> Result<(), PortError> {
        tracing::debug!(reason = remark.reason, "dry run: would publish an Event");
        Ok(())
    }
}

/// Asks no cache, and takes each for one without pods.
pub struct DryCaches;

#[async_trait]
impl Caches for DryCaches {
    async fn ask(&self, _: &WorkloadId, _: &Question) -> Result<Answers, PortError> {
        Ok(Answers::default())
    }
}
