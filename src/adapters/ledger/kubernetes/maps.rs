//! The ConfigMaps of the ledger's namespace, one call each.
//!
//! Not for what is in them.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::ObjectList;

use apiserver::{Api, CallError, Collection, LIST_BYTES_MAX, Resource};
use purge::ports::{PinError, PortError, Retry};

pub(super) const CONFIG_MAPS: Resource = Resource::new("", "v1", "configmaps");

/// Longest a call may take. The API server itself gives up on a request after 60 s, but a ledger that takes 10 s is as
/// good as away: the caller's back-off and its report are worth more than the rest of the wait.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Marks everything we create, as `kubectl get configmap -l` and other tools expect it.
pub(super) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "allclear");

/// Tells the kinds of our ConfigMaps apart: `ledger`, `shard`, `delivery`.
pub(super) const PART_LABEL: &str = "allclear.dev/part";

/// Says to people what they are looking at.
const DESCRIPTION: &str = "allclear.dev/description";

/// Calls under way at once: eight are writes of shards at most (see `writer`), and as many read a record for a rollout that begins.
const CALLS_AT_ONCE: usize = 16;

/// Objects read in one page of a listing. Shards of 40 KB make pages of 640 KB, full ones of 16 MiB.
const PAGE: u32 = 16;

/// The ConfigMaps of one namespace.
pub(super) struct Maps {
    api: Api,
    of: Collection,
}

impl Maps {
    pub(super) fn new(client: kube::Client, namespace: &str) -> Self {
        let api = Api::new(client).within(ANSWER_MAX).up_to(LIST_BYTES_MAX).at_once(CALLS_AT_ONCE);
        Self { api, of: Collection::of(CONFIG_MAPS, namespace) }
    }

    /// What is attempted, for errors.
    pub(super) fn attempt(&self, verb: &'static str, name: &str) -> String {
        self.of.attempt_one(verb, name).to_string()
    }

    pub(super) async fn get(&self, name: &str) -> Result<Option<ConfigMap>, PortError> {
        let found = self.api.get(&self.of, name).await?;
        Ok(found.map(|map| map.json()).transpose()?)
    }

    pub(super) async fn create(&self, name: &str, map: &ConfigMap) -> Result<ConfigMap, CallError> {
        let created = self.api.create(&self.of, Some(name), map).await.map_err(|mut failed| {
            // The namespace is gone, or going. Only a lack of room may be lasting and no missing right to those who store.
            if matches!(failed.status(), Some(403 | 404)) && !failed.error.denied {
                failed.error.retry = Retry::Later;
            }
            failed
        });
        created?.json()
    }

    pub(super) async fn replace(&self, name: &str, map: &ConfigMap) -> Result<ConfigMap, CallError> {
        self.api.replace(&self.of, name, map).await?.json()
    }

    /// All ConfigMaps of one part. A listing that expires half-way is read again in one piece (fault W3).
    pub(super) async fn list(&self, part: &str) -> Result<Vec<ConfigMap>, PortError> {
        let (key, value) = MANAGED_BY;
        let all = ListParams::default().labels(&format!("{key}={value},{PART_LABEL}={part}"));
        let mut found = Vec::new();
        let mut page = all.clone().limit(PAGE);
        loop {
            match self.api.list(&self.of, &page).await {
                Ok(list) => {
                    let list: ObjectList<ConfigMap> = list.json()?;
                    found.extend(list.items);
                    match list.metadata.continue_.filter(|token| !token.is_empty()) {
                        Some(token) => page = page.continue_token(&token),
                        None => return Ok(found),
                    }
                }
                Err(failed) if failed.status() == Some(410) && page.limit.is_some() => {
                    found.clear();
                    page = all.clone();
                }
                Err(failed) => return Err(failed.error),
            }
        }
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), CallError> {
        self.api.delete(&self.of, name).await
    }
}

/// A ConfigMap of ours, without owner.
pub(super) fn config_map(name: &str, part: &str, about: &str, data: BTreeMap<String, String>) -> ConfigMap {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let (managed_by, us) = MANAGED_BY;
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([pair(managed_by, us), pair(PART_LABEL, part)])),
            annotations: Some(BTreeMap::from([pair(DESCRIPTION, about)])),
            ..ObjectMeta::default()
        },
        data: Some(data),
        ..ConfigMap::default()
    }
}

/// A write that did not succeed.
#[derive(Debug)]
pub(super) enum Failed {
    /// Another writer wrote, or created, first.
    Conflict(PortError),
    /// The ledger as a whole was deleted since it was opened.
    Lost(PortError),
    /// The API server takes the object for too large.
    NoRoom(PortError),
    Other(PortError),
}

impl From<CallError> for Failed {
    fn from(failed: CallError) -> Self {
        match failed.status() {
            Some(409) => Self::Conflict(failed.error),
            // The request as a whole is too long, or the ConfigMap: it may have 1 MiB.
            Some(413 | 422) => Self::NoRoom(failed.error),
            _ => Self::Other(failed.error),
        }
    }
}

impl From<PortError> for Failed {
    fn from(error: PortError) -> Self {
        Self::Other(error)
    }
}

impl From<PinError> for Failed {
    fn from(error: PinError) -> Self {
        match error {
            PinError::Lost(error) => Self::Lost(error),
            PinError::Unavailable(error) => Self::Other(error),
        }
    }
}
