//! The outside, to look at only: for commands, and for the page of a workload, which answers as `allclear explain` does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::running::installation;
use super::{StartError, addressed, alone, cloudfront_options, desk, ledger, member};
use crate::adapters::cloudfront::CloudFront;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::hand::Hand;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::adapters::kubernetes::{self, Clients, Cluster, Scope, Tempo};
use crate::adapters::ledger::unreachable::UnreachableLedger;
use crate::config::{Config, Enabled, LedgerBackend};
use domain::id::Member;
use domain::ports::{Board, Cdn, ClusterView, Ledger, Ports};
use domain::roster::Trust;

/// Reads boards for commands. A member's name has no blank, so this is no member's name.
pub(super) const READER: &str = "allclear command";

/// How long a command waits for the cluster to tell its name.
const NAMED_WITHIN: Duration = Duration::from_secs(10);

/// The group as it is configured, to listen to.
pub struct Neighbours {
    /// Its name.
    pub name: String,
    /// Our own name in it, or why that is not known.
    pub member: Result<Member, String>,
    /// Other members are configured.
    pub grouped: bool,
    /// The members' names, where they are given.
    pub members: BTreeSet<Member>,
    /// Whether records are signed, or are not on purpose.
    pub trust: Trust,
    /// All boards, our own first, by a name that is no member's: so our own copies are read like those of others.
    pub boards: Vec<Arc<dyn Board>>,
}

/// The outside, to look at only: for commands that answer questions with the caller's own credentials (decision 21).
pub struct Views {
    /// The cluster.
    pub cluster: Arc<dyn ClusterView>,
    /// The ledger; commands do not open it.
    pub ledger: Arc<dyn Ledger>,
    /// CloudFront.
    pub cdn: Arc<dyn Cdn>,
    /// The boards; `None` where no Redis is configured.
    pub group: Option<Neighbours>,
    /// Pipelines; `None` where `pipeline.enabled` is off.
    pub desk: Option<Desk>,
    /// Repos; `None` where `repo.enabled` is off.
    pub repos: Option<Desk<RepoKind>>,
    /// The namespace of the caller's credentials.
    pub own_namespace: String,
    /// Where the ledger is looked for, in words.
    pub ledger_place: String,
    /// The only member, where there is no group.
    pub alone: Member,
}

impl Neighbours {
    /// The other members of a group, read from these boards.
    pub(super) fn of(config: &Config, member: Result<Member, String>, boards: Vec<Arc<dyn Board>>) -> Self {
        Self {
            name: config.group.name.clone(),
            member,
            grouped: true,
            members: config.group.members.iter().cloned().map(Member).collect(),
            trust: config.group.trust(),
            boards,
        }
    }
}

impl Views {
    /// What a running process looks at.
    pub(super) fn of(
        config: &Config,
        clients: &Clients,
        ports: &Ports,
        group: Option<Neighbours>,
        alone: Member,
    ) -> Self {
        let ledger_namespace = config.ledger.namespace.as_deref().unwrap_or(&clients.namespace);
        Self {
            cluster: ports.cluster.clone(),
            ledger: ports.ledger.clone(),
            cdn: ports.cdn.clone(),
            group,
            desk: None,
            repos: None,
            own_namespace: clients.namespace.clone(),
            ledger_place: ledger_place(config, ledger_namespace),
            alone,
        }
    }
}

/// Where the ledger is, in words.
pub(super) fn ledger_place(config: &Config, ledger_namespace: &str) -> String {
    match (config.ledger_backend(), &config.redis.url) {
        (LedgerBackend::Memory, _) => "the memory of the running allclear".to_owned(),
        (LedgerBackend::Redis, Some(url)) => format!("Redis {url}"),
        (LedgerBackend::Redis | LedgerBackend::Kubernetes, _) => format!("namespace {ledger_namespace}"),
    }
}

/// Where the ledger is by default: the namespace of `deploy/base`.
pub const LEDGER_NAMESPACE: &str = "allclear";

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

/// The same, by what is connected to already.
pub(super) async fn views_of(config: &Config, clients: Clients, namespace: Option<&str>) -> Result<Views, StartError> {
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
