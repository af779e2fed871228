//! Our finalizer on Repos, as [`Holds`]. It is one entry of a list that others write to as well, so a write rests on the list that
//! was read, and on nothing else of the object: other writers of a Repo do not keep it from being let go.
//!
//! Not for when a Repo is held or let go; that is `objects::repo`'s.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::crd::metadata::FINALIZER;
use super::objects::{GROUP, Kind, RepoKind, of};
use apiserver::{Api, Clients};
use kernel::id::RepoId;
use objects::ports::repo::Holds;
use purge::ports::PortError;

/// What gives the right to it.
const COMPONENT: &str = "deploy/components/repo-destroy gives the right to it";

/// Writes the finalizer.
pub struct KubernetesHolds {
    api: Api,
}

#[derive(Deserialize)]
struct Held {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

impl KubernetesHolds {
    /// Nothing is asked for yet.
    pub fn new(clients: &Clients) -> Self {
        Self { api: Api::new(clients.request.clone()) }
    }
}

/// The change that holds an object or lets it go; `None` if nothing is to be changed.
fn change(Metadata { uid, resource_version, finalizers }: Metadata, held: bool) -> Option<Value> {
    let known = finalizers.unwrap_or_default();
    if known.iter().any(|one| one == FINALIZER) == held {
        return None;
    }
    let wanted: Vec<&str> = known.iter().map(String::as_str).filter(|one| *one != FINALIZER).collect();
    let wanted = [wanted, held.then_some(FINALIZER).into_iter().collect()].concat();
    // Where there is no list, there is none to test.
    let is_same = if known.is_empty() {
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": resource_version})
    } else {
        json!({"op": "test", "path": "/metadata/finalizers", "value": known})
    };
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        is_same,
        {"op": "add", "path": "/metadata/finalizers", "value": wanted},
    ]))
}

#[async_trait]
impl Holds for KubernetesHolds {
    async fn hold(&self, repo: &RepoId, uid: &str, held: bool) -> Result<(), PortError> {
        let (of, name) = (of::<RepoKind>(GROUP, Some(&repo.namespace)), RepoKind::name(repo));
        let Some(answer) = self.api.get(&of, name).await? else { return Ok(()) };
        let Held { metadata } = answer.json()?;
        if metadata.uid != uid {
            return Ok(());
        }
        let Some(change) = change(metadata, held) else { return Ok(()) };
        match self.api.operate(&of, name, &change).await {
            Ok(_) => Ok(()),
            Err(failed) if failed.status() == Some(404) => Ok(()),
            // Where a test did not hold, it is read again.
            Err(failed) if failed.status() == Some(422) => {
                Err(PortError::passing(of.attempt_one("patch", name).to_string(), failed.error.cause))
            }
            Err(failed) if failed.error.denied => {
                let cause = format!("{}; {COMPONENT}", failed.error.cause);
                Err(PortError { cause, ..failed.error })
            }
            Err(failed) => Err(failed.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(finalizers: Option<&[&str]>) -> Metadata {
        Metadata {
            uid: "uid-1".to_owned(),
            resource_version: "7".to_owned(),
            finalizers: finalizers.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
        }
    }

    #[test]
    fn a_finalizer_is_written_beside_those_of_others_and_only_over_the_list_that_was_read() {
        let theirs = "example.com/theirs";
        let last = |change: Option<Value>| change.map(|change| change[2]["value"].clone());
        assert_eq!(last(change(metadata(None), true)), Some(json!([FINALIZER])));
        assert_eq!(last(change(metadata(Some(&[theirs])), true)), Some(json!([theirs, FINALIZER])));
        assert_eq!(last(change(metadata(Some(&[FINALIZER, theirs])), false)), Some(json!([theirs])));
        for (finalizers, held) in [(None, false), (Some(&[theirs][..]), false), (Some(&[FINALIZER][..]), true)] {
            assert_eq!(change(metadata(finalizers), held), None, "nothing is to be changed");
        }
        let tests = |change: Option<Value>| {
            let change = change.expect("a change");
            [change[0].clone(), change[1].clone()]
        };
        let same = json!({"op": "test", "path": "/metadata/uid", "value": "uid-1"});
        let list = json!({"op": "test", "path": "/metadata/finalizers", "value": [theirs]});
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(tests(change(metadata(Some(&[theirs])), true)), [same.clone(), list]);
        assert_eq!(tests(change(metadata(None), true)), [same, version]);
    }
}
