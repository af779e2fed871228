//! The ledger: that it can be written and read, that it is the only one, and who works on it.
//!
//! Not for what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use super::catalog::{API_SERVER, LEASE, LEDGER_NAMESPACE, LEDGER_READ, LEDGER_SECOND, LEDGER_WRITE};
use super::cluster::Who;
use super::report::Finding;
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::installation::Seen;
use crate::adapters::ledger::kubernetes::find::ledgers;
use crate::adapters::ledger::kubernetes::rehearse::rehearse;
use crate::app::by_hand::{PERHAPS_A_SECOND_LEDGER, SECOND_LEDGER};
use crate::config::{Config, LedgerBackend, Namespaces};
use crate::looking::page::count;
use crate::looking::replicas::Replicas;
use kernel::refusal::Cause;
use purge::ports::{Ledger, LedgerContents, PortError, SetBack};

/// What the API server says where a quota is full
/// (<https://kubernetes.io/docs/concepts/policy/resource-quotas/>).
const QUOTA: &str = "exceeded quota";

/// Whether the API server refused for want of a right. What a quota or an admission webhook refuses has the same status.
fn lacks_right(error: &PortError) -> bool {
    error.denied
        && ![QUOTA, "admission webhook", "violates PodSecurity"].iter().any(|other| error.cause.contains(other))
}

/// Nothing of it could be asked.
pub fn unreachable(config: &Config) -> Vec<Finding> {
    match config.ledger_backend() {
        LedgerBackend::Memory => Vec::new(),
        LedgerBackend::Kubernetes => {
            [LEDGER_NAMESPACE, LEDGER_WRITE, LEDGER_READ, LEDGER_SECOND, LEASE].map(|one| one.after(API_SERVER)).into()
        }
    }
}

/// Everything about a ledger in the cluster.
pub async fn in_cluster(
    config: &Config,
    options: &Options,
    clients: &Clients,
    who: &Who,
    namespace: &str,
) -> Vec<Finding> {
    let (mut written, second) =
        tokio::join!(write(clients, who, namespace, options.pre), second(config, clients, namespace));
    written.push(second);
    written
}

/// Whether it could be written, without writing it.
async fn write(clients: &Clients, who: &Who, namespace: &str, pre: bool) -> Vec<Finding> {
    match rehearse(&clients.request, namespace).await {
        Ok(()) => vec![
            LEDGER_NAMESPACE.good(namespace),
            LEDGER_WRITE.good("a ConfigMap would be made (dry run: nothing is stored)"),
        ],
        Err(error) if error.cause.contains("namespaces ") && error.cause.contains("not found") => {
            let missing = if pre {
                LEDGER_NAMESPACE.good(format!("{namespace} does not exist yet; the manifests make it"))
            } else {
                LEDGER_NAMESPACE
                    .failed(format!("namespace {namespace} does not exist"))
                    .hint("apply deploy/base, or name another one by ledger.namespace (ALLCLEAR__LEDGER__NAMESPACE)")
            };
            vec![missing, LEDGER_WRITE.after(LEDGER_NAMESPACE)]
        }
        // A quota and an admission webhook refuse with the status of a missing right, and refuse the controller as well.
        Err(error) if error.denied && !who.is_controller && lacks_right(&error) => {
            vec![
                LEDGER_NAMESPACE.good(namespace),
                LEDGER_WRITE.untried(format!("not tried: the caller has no right to it: {error}")),
            ]
        }
        Err(error) => {
            let refused = error.refused().filter(|_| lacks_right(&error));
            let hint = match refused {
                Some(refused) => refused.remedy(Cause::WriteLedger),
                None if error.cause.contains(QUOTA) => {
                    "raise the ResourceQuota of the namespace: the ledger takes up to 65 ConfigMaps, and one for each webhook under way"
                }
                None => "",
            };
            vec![LEDGER_NAMESPACE.good(namespace), LEDGER_WRITE.failed(error).hint(hint)]
        }
    }
}

/// What reading it came to.
pub fn read(read: &Result<Option<LedgerContents>, PortError>, missing: &str, who: Option<&Who>, pre: bool) -> Finding {
    match read {
        Ok(Some(found)) if !found.set_back.is_empty() => set_back(&found.set_back),
        Ok(Some(found)) if found.unreadable.is_empty() => {
            LEDGER_READ.good(count(found.records.len(), "record", "records"))
        }
        Ok(Some(found)) => {
            let first = found.unreadable.first_key_value().map(|(id, why)| format!("{}: {why}", id.display_name()));
            let reason = format!(
                "cannot be read: {}; {}",
                count(found.unreadable.len(), "record", "records"),
                first.unwrap_or_default()
            );
            LEDGER_READ.failed(reason).hint("see allclear ledger show")
        }
        Ok(None) if pre => LEDGER_READ.good("there is none yet"),
        Ok(None) => LEDGER_READ.warning(missing).hint("the controller makes it at its first start: see its log"),
        Err(error) if error.denied && who.is_some_and(|who| !who.is_controller) => {
            LEDGER_READ.untried(format!("not tried: the caller has no right to it: {error}"))
        }
        Err(error) => LEDGER_READ
            .failed(error)
            .hint(error.refused().filter(|_| error.denied).map_or("", |refused| refused.remedy(Cause::ReadLedger))),
    }
}

/// A part of it is lost, or was.
fn set_back(SetBack { lost, records }: &SetBack) -> Finding {
    let behind = count(records.len(), "record that is left may be old", "records that are left may be old");
    let finding = match lost.len() {
        0 => LEDGER_READ.warning(format!("a part of it was lost: {behind}, and had no rollout since")),
        _ => {
            let lost = lost.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let behind = if records.is_empty() { String::new() } else { format!("; {behind}") };
            LEDGER_READ.failed(format!("a part of it is lost: {lost}{behind}"))
        }
    };
    finding.hint("alone, each workload concerned is purged once more; in a group, see allclear ledger show and allclear ledger adopt")
}

/// Reads it, without making one.
pub async fn peek(ledger: &Arc<dyn Ledger>) -> Result<Option<LedgerContents>, PortError> {
    ledger.peek().await
}

/// Whether the cluster has another one.
async fn second(config: &Config, clients: &Clients, namespace: &str) -> Finding {
    let mut likely = BTreeSet::from([namespace.to_owned(), clients.namespace.clone()]);
    let apart = match &config.watch.namespaces {
        Namespaces::Listed(names) => {
            likely.extend(names.iter().cloned());
            true
        }
        Namespaces::All | Namespaces::AllOrOwn => false,
    };
    let mut found = match ledgers(&clients.request, likely).await {
        Ok(found) => found,
        Err(error) => return LEDGER_SECOND.failed(error),
    };
    found.namespaces.remove(namespace);
    let others: Vec<&str> = found.namespaces.iter().map(String::as_str).collect();
    if others.is_empty() {
        return LEDGER_SECOND.good(if found.partial {
            PERHAPS_A_SECOND_LEDGER
        } else {
            "the only one in this cluster"
        });
    }
    let reason = format!("{SECOND_LEDGER} (namespace {})", others.join(", "));
    let hint = "keep one of the two installations, or have them watch different namespaces (watch.namespaces)";
    if apart { LEDGER_SECOND.warning(reason).hint(hint) } else { LEDGER_SECOND.failed(reason).hint(hint) }
}

/// Which replica works, as the Lease has it; `there`: its namespace exists, as far as that is seen.
pub fn lease(seen: &Seen, replicas: &Replicas, who: &Who, there: bool) -> Finding {
    match (replicas, &seen.lease) {
        _ if !there => LEASE.after(LEDGER_NAMESPACE),
        (Replicas::Idle(why), Ok(_)) => {
            LEASE.failed(why).hint("nothing is purged until one does; see the log of its pods, if there are any")
        }
        (Replicas::RunDry, Ok(_)) => LEASE.good("none is held in a dry run"),
        (_, Ok(Some(claim))) => LEASE.good(format!("{} works, since {}", claim.holder, claim.acquired)),
        (_, Ok(None)) => LEASE.failed("none holds it"),
        (_, Err(error)) if error.denied && !who.is_controller => {
            LEASE.untried(format!("not tried: the caller has no right to it: {error}"))
        }
        (_, Err(error)) => {
            LEASE.failed(error).hint("without this right all replicas work, which is safe and twice the work")
        }
    }
}
