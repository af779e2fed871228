//! Secrets of this cluster as [`Secrets`]: read by name on each use, never cached.
//!
//! Rights to them are given one by one, so a refusal says where the Role for that is. What is in a Secret is in no error, and goes
//! nowhere that the Secret's annotation or the operator does not name (decision 57).
//!
//! Not for kubeconfigs, whose content is followed; that is `leaf_config`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::unfold;
use serde::{Deserialize, Deserializer};

use super::followed::Followed;
use apiserver::{Api, Clients, Collection, Resource, Tempo, Watches, is_object_name};
use kernel::names::destination::{Destination, Purpose, SEND_TO, Unsendable, judge};
use kernel::unreadable::Unreadable;
use objects::ports::Secrets;
use objects::ports::pipeline::Renewals;
use purge::ports::{Flow, PortError};

pub(super) const SECRETS: Resource = Resource::new("", "v1", "secrets");

/// Where the operator allows a Secret to be sent, by `namespace/name`.
pub type Allowed = BTreeMap<String, BTreeSet<Destination>>;

/// The Secrets of one cluster.
pub struct KubernetesSecrets {
    api: Api,
    allowed: Allowed,
}

impl KubernetesSecrets {
    /// Those of the cluster that these clients talk to. Nothing is asked for yet.
    pub fn new(clients: &Clients, allowed: Allowed) -> Self {
        Self { api: Api::new(clients.request.clone()), allowed }
    }
}

#[async_trait]
impl Secrets for KubernetesSecrets {
    async fn read(
        &self,
        namespace: &str,
        name: &str,
        purpose: Purpose,
    ) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        let of = Collection::of(SECRETS, namespace);
        let attempted = of.attempt_one("get", name).to_string();
        // People wrote it into a Pipeline, and it becomes a part of a path.
        if !is_object_name(name) {
            return Err(PortError::lasting(attempted, "no Secret can have that name"));
        }
        let found = self.api.get(&of, name).await.map_err(|failed| advised(failed.error))?;
        let answer = found.ok_or_else(|| {
            let why = format!("there is none of that name; create Secret {name} in namespace {namespace}");
            PortError::lasting(attempted.as_str(), why)
        })?;
        let none = BTreeSet::new();
        let allowed = self.allowed.get(&format!("{namespace}/{name}")).unwrap_or(&none);
        let unreadable = |why: Unreadable| PortError::lasting(attempted.as_str(), why);
        let Content { metadata, data } = answer.object(content).map_err(unreadable)?;
        let listed = metadata.annotations.get(SEND_TO).map(String::as_str);
        let refused = |why: Unsendable| PortError::lasting(attempted.as_str(), why);
        judge((namespace, name), &purpose, listed, allowed).map_err(refused)?;
        data.iter().map(|(key, value)| Ok((key.clone(), decoded(key, value).map_err(unreadable)?))).collect()
    }
}

/// The Secrets of one cluster, as they change.
pub struct SecretChanges(Watches);

impl SecretChanges {
    /// Those of the cluster that these clients talk to. Nothing is watched yet.
    pub fn new(clients: &Clients, tempo: Tempo) -> Self {
        Self(Watches::new(clients.watch.clone(), tempo))
    }
}

impl Renewals for SecretChanges {
    fn changes(&self, namespace: &str, name: &str) -> Flow<()> {
        if !is_object_name(name) {
            return Box::pin(futures_util::stream::pending());
        }
        let of = Collection::of(SECRETS, namespace).only(name);
        let followed = Followed::new(&self.0, of, fingerprint, String::new());
        Box::pin(unfold((followed, None), |(mut followed, said)| async move {
            loop {
                let found = followed.next().await?.ok();
                if said != Some(found) {
                    return Some(((), (followed, Some(found))));
                }
            }
        }))
    }
}

/// Tells two contents of a Secret apart, for this process alone.
fn fingerprint(json: &str) -> Result<u64, Unreadable> {
    let mut hasher = DefaultHasher::new();
    data(json)?.hash(&mut hasher);
    Ok(hasher.finish())
}

/// Says where the Role is, if a right is missing.
pub(super) fn advised(error: PortError) -> PortError {
    if !error.denied {
        return error;
    }
    let cause = format!(
        "{}; a Role names it: add the name in deploy/components/secrets, or for a Repo in its namespace's copy of \
                 deploy/components/repo-namespace, and apply it",
        error.cause
    );
    PortError { cause, ..error }
}

/// The values of a Secret by their keys, still in base64.
type Data = BTreeMap<String, String>;

/// What of a Secret matters.
#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn content(json: &str) -> Result<Content, Unreadable> {
    serde_json::from_str(json).map_err(|_| Unreadable::because("it is not what a Secret is"))
}

/// What is in a Secret. Why it cannot be read never repeats any of it.
pub(super) fn data(json: &str) -> Result<Data, Unreadable> {
    content(json).map(|secret| secret.data)
}

/// The value of a key.
pub(super) fn decoded(key: &str, value: &str) -> Result<Vec<u8>, Unreadable> {
    STANDARD.decode(value).map_err(|_| Unreadable::because(format!("its key {key} is not base64")))
}
