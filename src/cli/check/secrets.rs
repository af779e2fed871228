//! The Secrets that Pipelines and Repos name: whether each may be sent to the host that they name beside it (decision 57).
//!
//! Not for what is in them: that is read where it is judged, and dropped there.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};

use super::catalog::SECRET_HOSTS;
use super::report::Finding;
use crate::looking::Sources;
use crate::looking::page::count;
use kernel::id::ObjectId;
use kernel::names::destination::Purpose;
use objects::ports::Secrets;
use purge::ports::PortError;

/// Secrets looked at most; a cluster has some hundred namespaces with Pipelines.
const SECRETS_MAX: usize = 200;

/// Read at a time.
const AT_A_TIME: usize = 8;

/// A Secret by namespace and name, and the address that it is named for.
type Sent = (String, String, String);

/// Every Secret that is sent somewhere, in one line if all may go where they are named for. `watched`: the namespaces of the Pipelines and
/// Repos; `None` is all.
pub async fn secrets(sources: &Sources, secrets: &dyn Secrets, watched: &BTreeSet<Option<String>>) -> Vec<Finding> {
    let (named, unlisted) = named(sources, watched).await;
    let mut findings: Vec<Finding> = unlisted.iter().map(untried).collect();
    let all = named.len();
    let asked = named.into_iter().take(SECRETS_MAX).map(|((namespace, name, address), by)| async move {
        let read = secrets.read(&namespace, &name, Purpose::sent_to(&address)).await;
        read.err().map(|error| (format!("{namespace}/{name}"), by, error))
    });
    let refused: Vec<_> = stream::iter(asked).buffered(AT_A_TIME).filter_map(async |refused| refused).collect().await;
    // What the caller may not read says nothing of what allclear may.
    let (unread, refused): (Vec<_>, Vec<_>) = refused.into_iter().partition(|(.., error)| error.denied);
    findings.extend(
        refused
            .into_iter()
            .map(|(secret, by, error)| SECRET_HOSTS.failed(format!("named by {by}: {}", error.cause)).of(secret)),
    );
    if let Some((.., error)) = unread.first() {
        let secrets = count(unread.len(), "Secret", "Secrets");
        findings.push(SECRET_HOSTS.untried(format!("not tried for {secrets}: {error}")));
    }
    if findings.is_empty() && all > 0 {
        findings.push(SECRET_HOSTS.good(count(all.min(SECRETS_MAX), "Secret goes", "Secrets go") + " where it may"));
    }
    if let Some(left_out) = all.checked_sub(SECRETS_MAX).filter(|left_out| *left_out > 0) {
        findings.push(SECRET_HOSTS.untried(format!("not tried: {left_out} further Secrets")));
    }
    findings
}

fn untried(error: &PortError) -> Finding {
    SECRET_HOSTS.untried(format!("not tried: {error}"))
}

/// Those of all Pipelines and Repos, each with one that names it, and what could not be listed.
async fn named(sources: &Sources, watched: &BTreeSet<Option<String>>) -> (BTreeMap<Sent, String>, Vec<PortError>) {
    let (mut named, mut unlisted) = (BTreeMap::new(), Vec::new());
    for namespace in watched {
        if let Some(desk) = &sources.desk {
            let listed = desk.all(namespace.as_deref()).await.map_err(|error| unlisted.push(error));
            for found in listed.ok().flatten().unwrap_or_default().found {
                let Ok(spec) = &found.object.spec else { continue };
                put(&mut named, "Pipeline", &found.object.id, spec.sent());
            }
        }
        if let Some(desk) = &sources.repos {
            let listed = desk.all(namespace.as_deref()).await.map_err(|error| unlisted.push(error));
            for found in listed.ok().flatten().unwrap_or_default().found {
                let Ok(spec) = &found.object.spec else { continue };
                put(&mut named, "Repo", &found.object.id, spec.sent());
            }
        }
    }
    (named, unlisted)
}

fn put(named: &mut BTreeMap<Sent, String>, kind: &str, id: &impl ObjectId, sent: BTreeSet<(String, String)>) {
    for (secret, address) in sent {
        let key = (id.namespace().to_owned(), secret, address);
        named.entry(key).or_insert_with(|| format!("{kind} {}", id.display_name()));
    }
}
