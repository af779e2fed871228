//! What a life of the program leaves for the next: an entry of the ledger's own object, beside the members.

use k8s_openapi::api::core::v1::ConfigMap;

use super::KubernetesLedger;
use super::pin::Meta;
use crate::adapters::ledger::{life_of, life_text};
use kernel::watches::lives::LifeNote;
use purge::ports::PinError;

const LIFE_KEY: &str = "life";

/// The note in the ledger's object, if there is one that can be read.
pub(super) fn of(map: &ConfigMap) -> Option<LifeNote> {
    life_of(map.data.as_ref()?.get(LIFE_KEY)?)
}

impl KubernetesLedger {
    pub(super) async fn write_life(&self, life: &LifeNote, over: Option<&LifeNote>) -> Result<(), PinError> {
        let text = life_text(life)?;
        let replace = |map: &ConfigMap| {
            let there = of(map);
            let due = there.as_ref() != Some(life) && (over.is_none() || there.as_ref() == over);
            Ok(Meta { answer: (), change: due.then(|| (LIFE_KEY, text.clone())).into_iter().collect() })
        };
        self.change_meta(replace).await
    }
}
