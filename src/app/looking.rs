//! Connecting to look only: for commands.

use std::sync::Arc;
use std::time::Duration;

use super::naming::{self, alone, member};
use super::running::installation;
use super::views::{LEDGER_NAMESPACE, Neighbours, READER, Views, ledger_place};
use super::{StartError, addressed, cloudfront_options, desk, ledger};
use crate::adapters::cloudfront::CloudFront;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::{self, Clients, Cluster, Scope, Tempo};
use crate::adapters::ledger::unreachable::UnreachableLedger;
use crate::config::{Config, Enabled, LedgerBackend};
use domain::kernel::id::Member;
use domain::ports::Ledger;

/// How long a command waits for the cluster to tell its name.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// Connects to everything, to look at `namespace` or at all namespaces, and to the hand that marks workloads. Nothing is sent yet.
///
/// # Errors
/// When there is no cluster, or the configuration cannot be used.
pub async fn views(
    config: &Config,
    kubernetes: &kubernetes::Options,
    namespace: Option<&str>,
) -> Result<(Views, Hand), StartError> {
    let clients = kubernetes::connect(kubernetes).await?;
    let hand = Hand::new(&clients);
    Ok((views_of(config, clients, namespace).await?, hand))
}

/// What the running controller left of its settings, beside the ledger that this configuration names.
///
/// # Errors
/// Why that cannot be read.
pub async fn in_force(config: &Config, clients: &Clients) -> Result<Option<String>, StartError> {
    let namespace = config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE);
    match config.ledger_backend() {
        LedgerBackend::Memory => Err(StartError::Unusable("a ledger in memory is with its process alone".to_owned())),
        LedgerBackend::Kubernetes => Ok(ledger(config, clients, namespace)?.in_force().await?),
    }
}

/// Where the ledger is looked for, in words.
pub fn place(config: &Config) -> String {
    ledger_place(config, config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE))
}

/// The same, by what is connected to already.
///
/// # Errors
/// When the configuration cannot be used.
pub async fn views_of(config: &Config, clients: Clients, namespace: Option<&str>) -> Result<Views, StartError> {
    let scope = namespace.map_or(Scope::All, |namespace| Scope::Namespaces([namespace.to_owned()].into()));
    let ledger_namespace = config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE);
    let ledger_place = ledger_place(config, ledger_namespace);
    let ledger = match config.ledger_backend() {
        LedgerBackend::Memory => Arc::new(UnreachableLedger),
        LedgerBackend::Kubernetes => ledger(config, &clients, ledger_namespace)?,
    };
    let group = neighbours(config, &clients, ledger.as_ref()).await?;
    Ok(Views {
        cluster: Arc::new(Cluster::new(&clients, scope, Tempo::default())),
        ledger,
        cdn: Arc::new(CloudFront::new(cloudfront_options(config, None)).await),
        group,
        desk: (config.pipeline.enabled != Enabled::Off).then(|| desk(config, &clients)),
        repos: (config.repo.enabled != Enabled::Off).then(|| Desk::of_repos(&clients, installation(config, &clients))),
        installation: (config.ledger_backend() != LedgerBackend::Memory)
            .then(|| Installation::new(&clients.request, ledger_namespace)),
        own_namespace: clients.namespace,
        ledger_place,
        alone: Member(alone(config)),
    })
}

async fn neighbours(config: &Config, clients: &Clients, ledger: &dyn Ledger) -> Result<Option<Neighbours>, StartError> {
    let grouped = config.is_grouped();
    // What the ledger has is asked for only where the configuration does not say it.
    let is_said = grouped && config.group.derived.is_none();
    let pinned = async { if is_said { None } else { naming::pinned(ledger).await.ok().flatten() } };
    let pin = tokio::time::timeout(NAMED_WITHIN, pinned).await.ok().flatten();
    let config = &naming::named(config, pin.as_ref()).0;
    let is_lost = !grouped && pin.is_some_and(|pin| pin.members.len() > 1);
    if config.redis.url.is_none() && !grouped && !is_lost {
        return Ok(None);
    }
    let is_named = config.means_others() || is_lost;
    let named = async { if is_named { member(config, clients).await } else { Ok(Member(alone(config))) } };
    let late = || Err(StartError::Unusable("the cluster does not tell its name; set group.member".to_owned()));
    let member = tokio::time::timeout(NAMED_WITHIN, named).await.unwrap_or_else(|_| late());
    Ok(Some(Neighbours {
        name: config.group.name.clone(),
        member,
        grouped,
        is_lost,
        members: config.group.members.iter().cloned().map(Member).collect(),
        trust: config.group.trust(),
        boards: addressed(config, &Member(READER.to_owned()), false)?,
    }))
}
