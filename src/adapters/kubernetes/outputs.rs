//! Outputs that are written to a Secret of the Repo's namespace, as the account of the pod that has them: the step `publish`.
//!
//! The Secret was made by a person, whose annotation says which Repo may write to it. Of what is in it nothing is asked for, and no value is
//! in an error: what an API server, or a webhook of it, says about a write may repeat what was written, so it is left out.
//!
//! Not for which outputs there are; that is `objects::repo::outputs`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::secrets::SECRETS;
use apiserver::{Api, CallError, Collection, ConnectError, connect_in_pod};
use kernel::answer::Retry;
use kernel::unreadable::Unreadable;
use objects::repo::outputs::OUTPUTS_OF;

/// Attempts at all, where the API server is busy or others write the Secret, too.
const ATTEMPTS_MAX: u32 = 8;

/// The pause after the first attempt. It doubles, so all take about half a minute.
const PAUSE: Duration = Duration::from_millis(250);

/// How the API server says that a right is missing, before it looks at what is to be written.
const NO_RIGHT: &str = " cannot patch resource \"secrets\"";

/// Where outputs go, and as whom.
pub struct Place<'a> {
    /// The API server's address, and the folder with a token and its authority.
    pub server: &'a str,
    pub api: &'a Path,
    pub namespace: &'a str,
    pub repo: &'a str,
    pub secret: &'a str,
}

/// Why the outputs are not written.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("Secret {secret} cannot be read: {why}")]
    Unread { secret: String, why: String },
    #[error(
        "there is no Secret {secret}; make it: kubectl create secret generic {secret} -n {namespace}, and then \
         kubectl annotate secret {secret} -n {namespace} {OUTPUTS_OF}={repo}"
    )]
    Missing { secret: String, namespace: String, repo: String },
    #[error(
        "Secret {secret} does not say that Repo {repo} may write to it; if it may: \
         kubectl annotate secret {secret} -n {namespace} {OUTPUTS_OF}={repo}"
    )]
    Unasked { secret: String, namespace: String, repo: String },
    #[error("Secret {secret} cannot be written: {why}")]
    Refused { secret: String, why: String },
}

/// The outcome of one attempt that failed.
enum Failed {
    Passing(Unwritten),
    Lasting(Unwritten),
}

impl Failed {
    fn why(self) -> Unwritten {
        match self {
            Self::Passing(why) | Self::Lasting(why) => why,
        }
    }
}

/// Of a Secret no more than this is read.
#[derive(Deserialize)]
struct Known {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

/// Writes the values to the keys of their names. Other keys stay as they are.
///
/// # Errors
/// When the Secret is not there, is not meant for this Repo, or could not be written; then none of them is.
pub async fn publish(place: &Place<'_>, values: &BTreeMap<String, Vec<u8>>) -> Result<(), Unwritten> {
    let clients = connect_in_pod(place.server, place.api, place.namespace).await?;
    let (api, of) = (Api::of_metadata(clients.request), Collection::of(SECRETS, place.namespace));
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS_MAX {
        match attempt(&api, &of, place, values).await {
            Ok(()) => return Ok(()),
            Err(Failed::Lasting(why)) => return Err(why),
            Err(Failed::Passing(_)) => tokio::time::sleep(pause).await,
        }
        pause = pause.saturating_mul(2);
    }
    attempt(&api, &of, place, values).await.map_err(Failed::why)
}

/// Reads who may write the Secret, and writes it if it is still the same one.
async fn attempt(
    api: &Api,
    of: &Collection,
    place: &Place<'_>,
    values: &BTreeMap<String, Vec<u8>>,
) -> Result<(), Failed> {
    let Place { namespace, repo, secret, .. } = *place;
    let names = || (secret.to_owned(), namespace.to_owned(), repo.to_owned());
    let found = api.get(of, secret).await.map_err(|failed| {
        let is_lasting = failed.error.retry == Retry::Never;
        let why = Unwritten::Unread { secret: secret.to_owned(), why: failed.error.cause };
        if is_lasting { Failed::Lasting(why) } else { Failed::Passing(why) }
    })?;
    let Some(answer) = found else {
        let (secret, namespace, repo) = names();
        return Err(Failed::Lasting(Unwritten::Missing { secret, namespace, repo }));
    };
    let Known { metadata } = answer
        .object(known)
        .map_err(|why| Failed::Lasting(Unwritten::Unread { secret: secret.to_owned(), why: why.to_string() }))?;
    let Metadata { uid, resource_version, annotations } = metadata;
    if annotations.and_then(|mut all| all.remove(OUTPUTS_OF)).as_deref() != Some(repo) {
        let (secret, namespace, repo) = names();
        return Err(Failed::Lasting(Unwritten::Unasked { secret, namespace, repo }));
    }
    let data: Map<String, Value> =
        values.iter().map(|(name, value)| (name.clone(), json!(STANDARD.encode(value)))).collect();
    // It is still the Secret that allows it: with a version, another writer in between is a conflict.
    let change = json!({"metadata": {"uid": uid, "resourceVersion": resource_version}, "data": data});
    api.merge(of, secret, &change).await.map(drop).map_err(|failed| refused(&failed, secret))
}

/// Why it was not written, without the other side's words where those may repeat a value.
fn refused(failed: &CallError, secret: &str) -> Failed {
    let status = failed.status();
    let why = match status {
        Some(403) if failed.failure.message.contains(NO_RIGHT) && !failed.failure.is_by_policy() => {
            failed.error.cause.clone()
        }
        Some(409) => "others write it all the time (status 409)".to_owned(),
        Some(413 | 422) => {
            let code = status.unwrap_or_default();
            format!("the API server refuses it (status {code}): it may be immutable, or would have more than 1 MiB")
        }
        Some(code) => format!("the API server, or a policy of it, refuses it (status {code})"),
        None => "the API server did not answer".to_owned(),
    };
    let why = Unwritten::Refused { secret: secret.to_owned(), why };
    match status {
        None | Some(409 | 429 | 500..) => Failed::Passing(why),
        Some(_) => Failed::Lasting(why),
    }
}

/// Why it cannot be read repeats nothing of it.
fn known(json: &str) -> Result<Known, Unreadable> {
    serde_json::from_str(json).map_err(|_| Unreadable::because("it is not what a Secret is".to_owned()))
}
