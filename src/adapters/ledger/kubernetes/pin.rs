//! The members of the group, as they were agreed on: an entry of the ledger's own object, so they live as long as it does.

use k8s_openapi::api::core::v1::ConfigMap;

use super::{KubernetesLedger, META_NAME};
use crate::adapters::ledger::{pin_of, pin_text};
use purge::agreement::roster::Pin;
use purge::ports::{PinError, PortError};

const PIN_KEY: &str = "members";

/// How often we repeat a write because another client changed the object (a label, for example) at the same moment.
const ATTEMPTS_MAX: usize = 3;

/// The text of the pin in the ledger's object.
pub(super) fn of(map: &ConfigMap) -> Option<&String> {
    map.data.as_ref()?.get(PIN_KEY)
}

impl KubernetesLedger {
    /// Works before the ledger is opened as well; then there may be no pin.
    pub(super) async fn read_pin(&self) -> Result<Option<Pin>, PinError> {
        let map = self.maps.get(META_NAME).await?;
        let uid = map.as_ref().and_then(|map| map.metadata.uid.as_ref());
        if self.known_meta().is_some_and(|opened| uid != Some(&opened.uid)) {
            return Err(PinError::Lost(self.lost("get", META_NAME)));
        }
        Ok(map.as_ref().and_then(of).map(|text| pin_of(text)).transpose()?)
    }

    pub(super) async fn write_pin(&self, pin: &Pin, over: Option<&Pin>) -> Result<bool, PinError> {
        let text = pin_text(pin)?;
        let replace = |map: &ConfigMap| {
            let there = of(map).map(|text| pin_of(text)).transpose()?;
            let done = there.as_ref() == Some(pin);
            let replaces = there.as_ref() == over && !done;
            let change = replaces.then(|| (PIN_KEY, text.clone())).into_iter().collect();
            Ok(Meta { answer: done || replaces, change })
        };
        self.change_meta(replace).await
    }

    /// Changes entries of the ledger's own object as `change` says, which sees the object as it is now.
    pub(super) async fn change_meta<T>(
        &self,
        change: impl Fn(&ConfigMap) -> Result<Meta<T>, PortError> + Send,
    ) -> Result<T, PinError> {
        let opened = self.meta().await?;
        let _changing = self.changing_meta.lock().await;
        let mut left = ATTEMPTS_MAX;
        loop {
            left -= 1;
            let Some(mut map) =
                self.maps.get(META_NAME).await?.filter(|map| map.metadata.uid.as_ref() == Some(&opened.uid))
            else {
                return Err(PinError::Lost(self.lost("update", META_NAME)));
            };
            let Meta { answer, change } = change(&map)?;
            if change.is_empty() {
                return Ok(answer);
            }
            let entries = change.into_iter().map(|(key, text)| (key.to_owned(), text));
            map.data.get_or_insert_default().extend(entries);
            // With the resourceVersion that was read, so it overwrites no other change.
            match self.maps.replace(META_NAME, &map).await {
                Ok(_) => return Ok(answer),
                Err(failed) if failed.status() == Some(409) && left > 0 => {}
                // Deleted since it was read just above.
                Err(failed) if failed.status() == Some(404) => {
                    return Err(PinError::Lost(self.lost("update", META_NAME)));
                }
                Err(failed) => return Err(failed.error.into()),
            }
        }
    }
}

/// What to do to the ledger's own object, and what to answer once that is done.
pub(super) struct Meta<T> {
    pub(super) answer: T,
    /// The entries to write, if any.
    pub(super) change: Vec<(&'static str, String)>,
}
