//! Deliveries: a ConfigMap each. They come and go one at a time and may be large (64 KiB), so they share nothing with the
//! shards; and they are not owned by the ledger, because a webhook is owed even if the ledger is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;

use super::KubernetesLedger;
use super::maps::config_map;
use apiserver::CallError;
use notices::delivery::Delivery;
use purge::ports::PortError;

/// The entry that holds the delivery.
const KEY: &str = "delivery";

impl KubernetesLedger {
    pub(super) async fn list_deliveries(&self) -> Result<Vec<Delivery>, PortError> {
        let mut found = Vec::new();
        for map in self.maps.list("delivery").await? {
            let text = map.data.as_ref().and_then(|data| data.get(KEY)).map_or("", String::as_str);
            match serde_json::from_str::<Delivery>(text) {
                Ok(delivery) => {
                    self.stored().insert(delivery.id.clone());
                    found.push(delivery);
                }
                // One that cannot be read (a newer program's) must not hold up the others.
                Err(error) => tracing::warn!(
                    configmap = map.metadata.name.unwrap_or_default(),
                    %error,
                    "left a delivery alone that cannot be read"
                ),
            }
        }
        Ok(found)
    }

    /// Creates or replaces, whichever is likely first. There is nothing to compare: a delivery has one sender.
    pub(super) async fn put_delivery(&self, delivery: &Delivery) -> Result<(), PortError> {
        let name = name_of(&delivery.id)?;
        let map = encode(&name, delivery)?;
        let known = self.stored().contains(&delivery.id);
        let mut written = self.write(known, &name, &map).await;
        if written.as_ref().is_err_and(|failed| matches!(failed.status(), Some(404 | 409))) {
            written = self.write(!known, &name, &map).await;
        }
        written?;
        self.stored().insert(delivery.id.clone());
        Ok(())
    }

    pub(super) async fn delete_delivery(&self, id: &str) -> Result<(), PortError> {
        let name = name_of(id)?;
        self.maps.delete(&name).await?;
        self.stored().remove(id);
        Ok(())
    }

    async fn write(&self, replaces: bool, name: &str, map: &ConfigMap) -> Result<ConfigMap, CallError> {
        if replaces { self.maps.replace(name, map).await } else { self.maps.create(name, map).await }
    }

    /// The ids that have an object, as far as we know.
    fn stored(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn encode(name: &str, delivery: &Delivery) -> Result<ConfigMap, PortError> {
    let text = serde_json::to_string(delivery)
        .map_err(|error| PortError::lasting(format!("failed to write the delivery {}", delivery.id), error))?;
    let about = format!("A webhook of allclear that is not delivered yet: {} for {}.", delivery.hook, delivery.subject);
    Ok(config_map(name, "delivery", &about, BTreeMap::from([(KEY.to_owned(), text)])))
}

/// Delivery ids are hexadecimal; anything else did not come from us and is no name for an object.
fn name_of(id: &str) -> Result<String, PortError> {
    if !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()) {
        return Ok(format!("allclear-outbox-{id}"));
    }
    Err(PortError::lasting("failed to find a delivery", format!("{id:?} is not the id of one")))
}
