//! The settings in force, for commands elsewhere, and the paths of the month: entries of the ledger's own object, so they need no right of
//! their own.

use super::pin::Meta;
use super::{KubernetesLedger, META_NAME};
use crate::config::InForce;
use purge::ports::{PinError, PortError};

const IN_FORCE_KEY: &str = "settings";
const BILL_KEY: &str = "bill";

impl KubernetesLedger {
    /// One small read; the ledger need not be open.
    pub(super) async fn read_in_force(&self) -> Result<Option<String>, PortError> {
        let map = self.maps.get(META_NAME).await?;
        Ok(map.and_then(|map| map.data?.remove(IN_FORCE_KEY)))
    }

    pub(super) async fn write_in_force(&self, text: &str) -> Result<(), PinError> {
        let replace = |map: &k8s_openapi::api::core::v1::ConfigMap| {
            let there = map.data.as_ref().and_then(|data| data.get(IN_FORCE_KEY));
            let due = there.is_none_or(|there| !InForce::say_the_same(there, text));
            Ok(Meta { answer: (), change: due.then(|| (IN_FORCE_KEY, text.to_owned())).into_iter().collect() })
        };
        self.change_meta(replace).await
    }

    pub(super) async fn read_bill(&self) -> Result<Option<String>, PortError> {
        let map = self.maps.get(META_NAME).await?;
        Ok(map.and_then(|map| map.data?.remove(BILL_KEY)))
    }

    pub(super) async fn write_bill(&self, text: &str) -> Result<(), PinError> {
        let replace = |map: &k8s_openapi::api::core::v1::ConfigMap| {
            let there = map.data.as_ref().and_then(|data| data.get(BILL_KEY));
            let due = there.is_none_or(|there| there != text);
            Ok(Meta { answer: (), change: due.then(|| (BILL_KEY, text.to_owned())).into_iter().collect() })
        };
        self.change_meta(replace).await
    }
}
