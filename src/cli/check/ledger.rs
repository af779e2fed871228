//! The ledger: that it can be written and read, that it is the only one, and who works on it.
//!
//! Not for what is in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use super::catalog::{API_SERVER, LEASE, LEDGER_NAMESPACE, LEDGER_READ, LEDGER_SECOND, LEDGER_WRITE};
use super::cluster::Who;
use super::report::Finding;
use crate::adapters::clock::SystemClock;
use crate::adapters::kubernetes::{Clients, KubernetesLease};
use crate::adapters::ledger::kubernetes::find::ledgers;
use crate::adapters::ledger::kubernetes::rehearse::rehearse;
use crate::app::by_hand::{PERHAPS_A_SECOND_LEDGER, SECOND_LEDGER};
use crate::cli::page::count;
use crate::config::{Config, LedgerBackend, Namespaces};
use domain::lease::Replica;
use domain::ports::{Lease as _, Ledger, LedgerContents, PortError};
use domain::refusal::Cause;

/// Nothing of it could be asked.
pub fn unreachable(config: &Config) -> Vec<Finding> {
    match config.ledger_backend() {
        LedgerBackend::Memory | LedgerBackend::Redis => Vec::new(),
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
    let (mut written, second, lease) = tokio::join!(
        write(clients, who, namespace, options.pre),
        second(config, clients, namespace),
        lease(config, options, clients, who, namespace),
    );
    written.push(second);
    written.extend(lease);
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
        Err(error) if error.denied && !who.is_controller => {
            vec![
                LEDGER_NAMESPACE.good(namespace),
                LEDGER_WRITE.untried(format!("not tried: the caller has no right to it: {error}")),
            ]
        }
        Err(error) => {
            let hint =
                error.refused().filter(|_| error.denied).map_or("", |refused| refused.remedy(Cause::WriteLedger));
            vec![LEDGER_NAMESPACE.good(namespace), LEDGER_WRITE.failed(error).hint(hint)]
        }
    }
}

/// What reading it came to.
pub fn read(read: &Result<Option<LedgerContents>, PortError>, missing: &str, who: Option<&Who>, pre: bool) -> Finding {
    match read {
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

/// Which replica works. Nothing where none is chosen.
async fn lease(config: &Config, options: &Options, clients: &Clients, who: &Who, namespace: &str) -> Option<Finding> {
    if !config.leader.lease || options.pre {
        return None;
    }
    let us = Replica { pod: "allclear-check".to_owned(), boot: String::new() };
    let lease = KubernetesLease::new(clients.request.clone(), namespace, us, Arc::new(SystemClock::default()));
    Some(match lease.look().await {
        Ok(Some(claim)) if !claim.holder.is_empty() => {
            LEASE.good(format!("{} works, since {}", claim.holder, claim.acquired))
        }
        Ok(Some(_) | None) => {
            LEASE.warning("no replica works: none holds the lease").hint("see the log of the pods, if there are any")
        }
        Err(error) if error.denied && !who.is_controller => {
            LEASE.untried(format!("not tried: the caller has no right to it: {error}"))
        }
        Err(error) => {
            LEASE.failed(error).hint("without this right all replicas work, which is safe and twice the work")
        }
    })
}
