//! The Secrets that Pipelines and Repos name: whether each may be sent to the host that they name beside it (decision 57).
//!
//! Not for what is in them: that is read where it is judged, and dropped there.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, stream};

use super::catalog::SECRET_HOSTS;
use super::report::Finding;
use crate::app::Views;
use crate::cli::page::count;
use domain::kernel::id::ObjectId;
use domain::names::destination::Purpose;
use domain::ports::PortError;
use domain::ports::pipeline::Secrets;

/// Secrets looked at most; a cluster has some hundred namespaces with Pipelines.
const SECRETS_MAX: usize = 200;

/// Read at a time.
const AT_A_TIME: usize = 8;

/// A Secret by namespace and name, and the address that it is named for.
type Sent = (String, String, String);

/// Every Secret that is sent somewhere, in one line if all may go where they are named for.
pub async fn secrets(views: &Views, secrets: &dyn Secrets) -> Vec<Finding> {
    let named = match named(views).await {
        Ok(named) if named.is_empty() => return Vec::new(),
        Ok(named) => named,
        Err(error) => return vec![SECRET_HOSTS.untried(format!("not tried: {error}"))],
    };
    let all = named.len();
    let asked = named.into_iter().take(SECRETS_MAX).map(|((namespace, name, address), by)| async move {
        let read = secrets.read(&namespace, &name, Purpose::sent_to(&address)).await;
        read.err().map(|error| (format!("{namespace}/{name}"), by, error))
    });
    let refused: Vec<_> = stream::iter(asked).buffered(AT_A_TIME).filter_map(async |refused| refused).collect().await;
    let mut findings: Vec<Finding> =
        refused.into_iter().map(|(secret, by, error)| judged(&by, &error).of(secret)).collect();
    if findings.is_empty() {
        findings.push(SECRET_HOSTS.good(count(all.min(SECRETS_MAX), "Secret goes", "Secrets go") + " where it may"));
    }
    if let Some(left_out) = all.checked_sub(SECRETS_MAX).filter(|left_out| *left_out > 0) {
        findings.push(SECRET_HOSTS.untried(format!("not tried: {left_out} further Secrets")));
    }
    findings
}

/// With who names it. What the caller may not read says nothing of what allclear may.
fn judged(by: &str, error: &PortError) -> Finding {
    let why = format!("named by {by}: {}", error.cause);
    if error.denied { SECRET_HOSTS.untried(format!("not tried: {error}")) } else { SECRET_HOSTS.failed(why) }
}

/// Those of all Pipelines and Repos, each with one that names it.
async fn named(views: &Views) -> Result<BTreeMap<Sent, String>, PortError> {
    let mut named = BTreeMap::new();
    if let Some(desk) = &views.desk {
        for found in desk.all(None).await?.unwrap_or_default().found {
            let Ok(spec) = &found.object.spec else { continue };
            put(&mut named, "Pipeline", &found.object.id, spec.sent());
        }
    }
    if let Some(desk) = &views.repos {
        for found in desk.all(None).await?.unwrap_or_default().found {
            let Ok(spec) = &found.object.spec else { continue };
            put(&mut named, "Repo", &found.object.id, spec.sent());
        }
    }
    Ok(named)
}

fn put(named: &mut BTreeMap<Sent, String>, kind: &str, id: &impl ObjectId, sent: BTreeSet<(String, String)>) {
    for (secret, address) in sent {
        let key = (id.namespace().to_owned(), secret, address);
        named.entry(key).or_insert_with(|| format!("{kind} {}", id.display_name()));
    }
}
