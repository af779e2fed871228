//! Connecting to look only: for commands.

use std::sync::Arc;
use std::time::Duration;

use super::running::installation;
use super::views::{LEDGER_NAMESPACE, Neighbours, READER, Views, ledger_place};
use super::{StartError, addressed, alone, cloudfront_options, desk, ledger, member};
use crate::adapters::cloudfront::CloudFront;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::{self, Clients, Cluster, Scope, Tempo};
use crate::adapters::ledger::unreachable::UnreachableLedger;
use crate::config::{Config, Enabled, LedgerBackend};
use domain::id::Member;

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
/// Why that cannot be read, in words.
pub async fn in_force(config: &Config, clients: &Clients) -> Result<Option<String>, String> {
    let namespace = config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE);
    let ledger = match config.ledger_backend() {
        LedgerBackend::Memory => return Err("a ledger in memory is with its process alone".to_owned()),
        LedgerBackend::Redis | LedgerBackend::Kubernetes => ledger(config, clients, namespace),
    };
    ledger.map_err(|error| error.to_string())?.in_force().await.map_err(|error| error.to_string())
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
        LedgerBackend::Redis | LedgerBackend::Kubernetes => ledger(config, &clients, ledger_namespace)?,
    };
    Ok(Views {
        cluster: Arc::new(Cluster::new(&clients, scope, Tempo::default())),
        ledger,
        cdn: Arc::new(CloudFront::new(cloudfront_options(config, None)).await),
        group: neighbours(config, &clients).await?,
        desk: (config.pipeline.enabled != Enabled::Off).then(|| desk(config, &clients)),
        repos: (config.repo.enabled != Enabled::Off).then(|| Desk::of_repos(&clients, installation(config, &clients))),
        installation: (config.ledger_backend() != LedgerBackend::Memory)
            .then(|| Installation::new(&clients.request, ledger_namespace)),
        own_namespace: clients.namespace,
        ledger_place,
        alone: Member(alone(config)),
    })
}

async fn neighbours(config: &Config, clients: &Clients) -> Result<Option<Neighbours>, StartError> {
    if config.redis.url.is_none() {
        return Ok(None);
    }
    let named = async { if config.is_grouped() { member(config, clients).await } else { Ok(Member(alone(config))) } };
    let late = || Err(StartError::Unusable("the cluster does not tell its name; set group.member".to_owned()));
    let member = tokio::time::timeout(NAMED_WITHIN, named).await.unwrap_or_else(|_| late());
    Ok(Some(Neighbours {
        name: config.group.name.clone(),
        member: member.map_err(|error| error.to_string()),
        grouped: config.is_grouped(),
        members: config.group.members.iter().cloned().map(Member).collect(),
        trust: config.group.trust(),
        boards: addressed(config, &Member(READER.to_owned()))?,
    }))
}
