//! The histories of Pipelines and Repos: one object of ours for each, which goes with its owner. None is watched or kept in memory: it
//! is read where something is added to it, or a person asks.
//!
//! Not for what is in one; that is `objects::history`'s.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::{GROUP, VERSION};
use apiserver::{Api, Clients, Collection, Resource};
use kernel::id::digest;
use kernel::unreadable::Unreadable;
use objects::history::figures::Figure;
use objects::history::{Entry, grown};
use objects::ports::{Histories, Owner};
use purge::ports::PortError;

/// What a cluster lacks that does not have the kind.
pub const ABSENT: &str = "this cluster does not have the kind History; `allclear crds | kubectl apply -f -` adds it";

/// The longest name of an object (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names>).
const NAME_CHARS_MAX: usize = 253;

/// Hexadecimal digits of the hash in a name that is cut.
const HASH_DIGITS: usize = 12;

const KIND: Resource = Resource::new(GROUP, VERSION, "histories");

/// How often a history is read and added to, where another writer is first each time: only a person writes to one beside us, or a replica
/// that does not know yet that it leads no more.
const WRITES_MAX: usize = 3;

/// A history as it is in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    version: String,
    /// The UIDs of the objects that it belongs to.
    owners: Vec<String>,
    /// Oldest first.
    pub entries: Vec<Entry>,
}

impl History {
    /// Whether it is of this object, and not of an earlier one of the name.
    pub fn is_of(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner == uid)
    }
}

/// Where histories are read and written.
pub struct KubernetesHistories {
    api: Api,
}

/// Writes none, as in a dry run.
pub struct NoHistories;

/// What came of one attempt to add to a history.
enum Attempted {
    Done(Vec<Figure>),
    /// Another writer was first.
    Outrun(PortError),
}

impl KubernetesHistories {
    /// Nothing is asked for yet.
    pub fn new(clients: &Clients) -> Self {
        Self { api: Api::new(clients.request.clone()) }
    }

    /// The history of this name; `None` if there is none, or the cluster does not have the kind.
    ///
    /// # Errors
    /// In words.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<Option<History>, PortError> {
        let of = Collection::of(KIND, namespace);
        match self.api.get(&of, name).await? {
            Some(answer) => answer.read(read).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the cluster has the kind, as every account may ask.
    ///
    /// # Errors
    /// In words.
    pub async fn are_served(&self) -> Result<bool, PortError> {
        let kinds = self.api.kinds(&KIND.group, &KIND.version).await?;
        Ok(kinds.is_some_and(|all| all.iter().any(|one| *one.plural == *KIND.plural)))
    }

    async fn add(&self, of: &Owner, remembered: &[Entry], news: &[Entry]) -> Result<Attempted, PortError> {
        let name = name(of.kind, &of.name);
        let there = self.read(&of.namespace, &name).await?;
        // Of an earlier object of the name: it is about to go, and says nothing of this one.
        let own = there.as_ref().filter(|there| there.is_of(&of.uid)).map(|own| own.entries.as_slice());
        let Some(grown) = grown(own.unwrap_or_default(), remembered, news) else {
            return Ok(Attempted::Done(Vec::new()));
        };
        let body = body(of, &name, there.as_ref().map(|there| there.version.as_str()), &grown.entries);
        let collection = Collection::of(KIND, &of.namespace);
        let written = match there {
            Some(_) => self.api.replace(&collection, &name, &body).await,
            None => self.api.create(&collection, Some(&name), &body).await,
        };
        match written {
            Ok(_) => Ok(Attempted::Done(grown.figures)),
            Err(failed) if failed.status() == Some(409) => Ok(Attempted::Outrun(failed.error)),
            // The kind is not there, or the history went meanwhile.
            Err(failed) if failed.status() == Some(404) => {
                if self.are_served().await? {
                    return Ok(Attempted::Outrun(failed.error));
                }
                Err(PortError::lasting(failed.error.attempted, ABSENT))
            }
            Err(failed) => Err(failed.error),
        }
    }
}

#[async_trait]
impl Histories for KubernetesHistories {
    async fn keep(&self, of: &Owner, remembered: &[Entry], news: &[Entry]) -> Result<Vec<Figure>, PortError> {
        let mut attempts = 1;
        loop {
            match self.add(of, remembered, news).await {
                Ok(Attempted::Done(figures)) => return Ok(figures),
                Ok(Attempted::Outrun(error)) if attempts >= WRITES_MAX => return Err(error),
                Ok(Attempted::Outrun(_)) => attempts += 1,
                // Rights are judged before it is looked whether there is such a kind.
                Err(error) if error.denied && !self.are_served().await? => {
                    return Err(PortError::lasting(error.attempted, ABSENT));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Histories for NoHistories {
    async fn keep(&self, _: &Owner, _: &[Entry], _: &[Entry]) -> Result<Vec<Figure>, PortError> {
        Ok(Vec::new())
    }
}

/// The name of the history of an object of this kind: `pipeline.web`.
///
/// One that would be too long is cut, with a hash of the whole.
pub fn name(kind: &str, name: &str) -> String {
    let whole = format!("{}.{name}", kind.to_ascii_lowercase());
    if whole.len() <= NAME_CHARS_MAX {
        return whole;
    }
    let hash: String = digest("history", [whole.as_str()]).chars().take(HASH_DIGITS).collect();
    let room = NAME_CHARS_MAX.saturating_sub(HASH_DIGITS + 1);
    let kept: String = whole.chars().take(room).collect();
    format!("{}-{hash}", kept.trim_end_matches(['.', '-']))
}

/// Without `controller`: nobody is asked before it goes with its owner.
fn body(of: &Owner, name: &str, version: Option<&str>, entries: &[Entry]) -> Value {
    let Owner { group, kind, namespace, name: owner, uid } = of;
    let owners = json!([{"apiVersion": format!("{group}/{VERSION}"), "kind": kind, "name": owner, "uid": uid}]);
    let mut metadata = json!({"namespace": namespace, "name": name, "ownerReferences": owners});
    if let (Some(version), Some(fields)) = (version, metadata.as_object_mut()) {
        fields.insert("resourceVersion".to_owned(), json!(version));
    }
    json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "History", "metadata": metadata, "entries": entries})
}

/// What cannot be read is not overwritten: somebody may still want it.
fn read(json: &str) -> Result<History, Unreadable> {
    #[derive(Deserialize)]
    struct Raw {
        metadata: Metadata,
        #[serde(default)]
        entries: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(default)]
        owner_references: Vec<Reference>,
    }
    #[derive(Deserialize)]
    struct Reference {
        uid: String,
    }
    let Raw { metadata, entries } = serde_json::from_str(json)?;
    let owners = metadata.owner_references.into_iter().map(|owner| owner.uid).collect();
    Ok(History { version: metadata.resource_version, owners, entries })
}
