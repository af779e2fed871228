//! What is looked at: connected to for a command, or what the running process has anyway.

use std::sync::Arc;
use std::time::Duration;

use super::naming::{self, alone, member};
use super::running::installation;
use super::{StartError, addressed, desk, ledger};
use crate::actors::ports::Ports;
use crate::adapters::cloudfront::accounts::Accounts;
use crate::adapters::cloudfront::{self, CloudFront, Role, StaticCredentials};
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::{self, Clients, Cluster, Scope, Tempo};
use crate::adapters::ledger::unreachable::UnreachableLedger;
use crate::config::{Config, Enabled, LedgerBackend};
use crate::looking::listen::READER;
use crate::looking::whose::Whose;
use crate::looking::{About, Neighbours, Sources, ledger_namespace, ledger_place};
use kernel::id::Member;
use kernel::names::account::AccountName;
use purge::ports::{Cdn, Ledger};

/// How long a command waits for the cluster to tell its name.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// Connects to everything, to look at `namespace` or at all namespaces by the configuration as it is given, and to the hand that marks
/// workloads. Nothing is sent yet.
///
/// # Errors
/// When there is no cluster, or the configuration cannot be used.
pub async fn connected(
    config: &Config,
    kubernetes: &kubernetes::Options,
    namespace: Option<&str>,
) -> Result<(Sources, Hand), StartError> {
    let clients = kubernetes::connect(kubernetes).await?;
    let hand = Hand::new(&clients);
    Ok((sources(config, clients, namespace, unasked()).await?, hand))
}

/// CloudFront: the account of our own credentials, or each that is configured. `aws`: instead of the default chain.
pub(super) async fn cdn(config: &Config, aws: Option<StaticCredentials>) -> Arc<dyn Cdn> {
    let accounts = of_accounts(config, aws.as_ref());
    if accounts.is_empty() {
        Arc::new(CloudFront::new(of_own(config, aws)).await)
    } else {
        Arc::new(Accounts::new(accounts).await)
    }
}

/// How to reach the account of our own credentials.
pub(super) fn of_own(config: &Config, credentials: Option<StaticCredentials>) -> cloudfront::Options {
    cloudfront::Options {
        endpoint_url: config.cloudfront.endpoint.as_ref().map(|url| url.expose().to_string()),
        region: config.cloudfront.region.clone(),
        credentials,
        ..cloudfront::Options::default()
    }
}

/// How to reach each account that is used; empty where none is configured.
pub(super) fn of_accounts(config: &Config, aws: Option<&StaticCredentials>) -> Vec<(AccountName, cloudfront::Options)> {
    let used = config.aws.used().into_iter();
    let options = used.map(|(name, account)| {
        let own = of_own(config, aws.cloned());
        let role = account.role_arn.map(|arn| Role { arn, external_id: account.external_id });
        (name, cloudfront::Options { role, region: account.region.or(own.region.clone()), ..own })
    });
    options.collect()
}

/// The settings in force were not asked for: they do not matter, or are shown by other means.
pub(super) fn unasked() -> Whose {
    Whose::Own("it did not ask for those".to_owned())
}

/// The same, by what is connected to already and by `whose` configuration.
///
/// # Errors
/// When the configuration cannot be used.
pub async fn sources(
    config: &Config,
    clients: Clients,
    namespace: Option<&str>,
    whose: Whose,
) -> Result<Sources, StartError> {
    let scope = namespace.map_or(Scope::All, |namespace| Scope::Namespaces([namespace.to_owned()].into()));
    let ledger_namespace = ledger_namespace(config);
    let ledger = match config.ledger_backend() {
        LedgerBackend::Memory => Arc::new(UnreachableLedger),
        LedgerBackend::Kubernetes => ledger(config, &clients, ledger_namespace)?,
    };
    let group = neighbours(config, &clients, ledger.as_ref()).await?;
    Ok(Sources {
        cluster: Arc::new(
            Cluster::new(&clients, scope, Tempo::default())
                .following(config.kinds.clone())
                .versions(config.version.of.clone()),
        ),
        ledger,
        cdn: cdn(config, None).await,
        accounts: config.aws.scopes(),
        group,
        desk: (config.pipeline.enabled != Enabled::Off).then(|| desk(config, &clients)),
        repos: (config.repo.enabled != Enabled::Off).then(|| Desk::of_repos(&clients, installation(config, &clients))),
        installation: (config.ledger_backend() != LedgerBackend::Memory)
            .then(|| Installation::new(&clients.request, ledger_namespace)),
        own_namespace: clients.namespace,
        ledger_place: ledger_place(config, ledger_namespace),
        us: us(config),
        policy: config.policy(),
        whose,
    })
}

/// What the running process looks at, to explain a workload.
pub(super) fn own(config: &Config, clients: &Clients, ports: &Ports, group: Option<Neighbours>) -> Sources {
    let ledger_namespace = config.ledger.namespace.as_deref().unwrap_or(&clients.namespace);
    Sources {
        cluster: ports.cluster.clone(),
        ledger: ports.ledger.clone(),
        cdn: ports.cdn.clone(),
        accounts: config.aws.scopes(),
        group,
        installation: None,
        desk: None,
        repos: None,
        own_namespace: clients.namespace.clone(),
        ledger_place: ledger_place(config, ledger_namespace),
        us: us(config),
        policy: config.policy(),
        whose: Whose::Itself,
    }
}

/// Who answers where there is no Redis.
fn us(config: &Config) -> About {
    About { member: alone(config), group: config.group.name.clone(), dry_run: false }
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
    let member = member.map_err(|error| error.to_string());
    let boards = addressed(config, &Member(READER.to_owned()), false)?;
    Ok(Some(Neighbours::new(config, member, grouped || is_lost, boards)))
}
