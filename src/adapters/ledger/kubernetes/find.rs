//! By what a ledger is found from outside: two labels and its name, and where in the cluster others are.
//!
//! For a person who starts the controller by hand: two ledgers in one cluster purge everything twice. Asked with that person's
//! credentials, for metadata alone, as far as they may look. Not for opening a ledger.

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::core::{ObjectList, PartialObjectMeta};

use super::maps::{ANSWER_MAX, CONFIG_MAPS, MANAGED_BY, PART_LABEL, config_map};
use super::{KubernetesLedger, META_NAME};
use apiserver::{Api, CallError, Collection, NAMESPACES, Resource};
use purge::ports::PortError;

/// Objects of one listing that are looked at. There is one ledger for each installation; a cluster with this many is full of them.
const LISTED_MAX: u32 = 500;

/// Namespaces we read one by one if we may not list all at once. At [`LOOKS_AT_ONCE`] and 10 ms each that is a quarter of a
/// second.
const NAMESPACES_MAX: usize = 200;

/// Namespaces looked into at a time.
const LOOKS_AT_ONCE: usize = 8;

/// What is read of an object.
type Object = PartialObjectMeta<ConfigMap>;

/// What a look around came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledgers {
    /// The namespaces with a ledger.
    pub namespaces: BTreeSet<String>,
    /// Not all of the cluster could be looked at.
    pub partial: bool,
}

/// The ledgers of the cluster. Where the credentials may not look into all namespaces at once, into each of those they may
/// list, and into those that `likely` names.
///
/// # Errors
/// When there is no answer. A refusal is none: it makes the look partial.
pub async fn ledgers(client: &kube::Client, likely: BTreeSet<String>) -> Result<Ledgers, PortError> {
    let api = Api::of_metadata(client.clone()).within(ANSWER_MAX);
    let (key, value) = MANAGED_BY;
    let by_label = ListParams::default().labels(&format!("{key}={value},{PART_LABEL}=ledger")).limit(LISTED_MAX);
    let by_name = ListParams::default().fields(&format!("metadata.name={META_NAME}")).limit(LISTED_MAX);
    let mut found = Ledgers::default();
    for wanted in [by_label, by_name] {
        let Some(maps) = list(&api, CONFIG_MAPS, &wanted).await? else { return one_by_one(&api, likely).await };
        found.namespaces.extend(maps.into_iter().filter_map(|map| map.metadata.namespace));
    }
    Ok(found)
}

async fn one_by_one(api: &Api, likely: BTreeSet<String>) -> Result<Ledgers, PortError> {
    let listed = list(api, NAMESPACES, &ListParams::default().limit(LISTED_MAX)).await?;
    let mut found = Ledgers { partial: listed.is_none(), ..Ledgers::default() };
    let mut namespaces: Vec<String> = likely.into_iter().collect();
    let listed = listed.into_iter().flatten().filter_map(|namespace| namespace.metadata.name);
    for name in listed {
        if !namespaces.contains(&name) {
            namespaces.push(name);
        }
    }
    found.partial |= namespaces.len() > NAMESPACES_MAX;
    let look = |namespace: String| async {
        (allowed(api.get(&Collection::of(CONFIG_MAPS, &namespace), META_NAME).await), namespace)
    };
    let mut looks = stream::iter(namespaces.into_iter().take(NAMESPACES_MAX).map(look)).buffer_unordered(LOOKS_AT_ONCE);
    while let Some((answer, namespace)) = looks.next().await {
        match answer? {
            Some(Some(_)) => drop(found.namespaces.insert(namespace)),
            Some(None) => {}
            None => found.partial = true,
        }
    }
    Ok(found)
}

/// The objects of a kind everywhere; `None` where they may not be listed.
async fn list(api: &Api, of: Resource, wanted: &ListParams) -> Result<Option<Vec<Object>>, PortError> {
    let Some(answer) = allowed(api.list(&Collection::everywhere(of), wanted).await)? else { return Ok(None) };
    let list: ObjectList<Object> = answer.json()?;
    Ok(Some(list.items))
}

/// The answer to one question; `None` where it may not be asked.
fn allowed<T>(answer: Result<T, CallError>) -> Result<Option<T>, PortError> {
    match answer {
        Err(failed) if failed.status() == Some(403) => Ok(None),
        answer => Ok(Some(answer?)),
    }
}

impl KubernetesLedger {
    /// Gives a ledger the labels it is found by, if it has lost them or never had them. It can be read and written without
    /// them, so what fails is left to the next opening.
    pub(super) async fn label(&self, meta: &ConfigMap) {
        let wanted = config_map(META_NAME, "ledger", "", Default::default()).metadata.labels.unwrap_or_default();
        let present = meta.metadata.labels.clone().unwrap_or_default();
        if wanted.iter().all(|(key, value)| present.get(key) == Some(value)) {
            return;
        }
        let mut labelled = meta.clone();
        labelled.metadata.labels = Some(present.into_iter().chain(wanted).collect());
        // With the resourceVersion that was read, so it overwrites no other change.
        match self.maps.replace(META_NAME, &labelled).await {
            Ok(_) => tracing::info!(namespace = %self.namespace, "gave the ledger its labels"),
            Err(failed) => {
                tracing::warn!(error = %failed.error, "the ledger has no labels yet; they are given at the next start");
            }
        }
    }
}
