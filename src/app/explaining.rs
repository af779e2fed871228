//! What the page of a workload needs to answer as `allclear explain` does: the outside of the running process, as commands see it.

use crate::adapters::kubernetes::Clients;
use crate::app::{Neighbours, READER, StartError, Views, addressed, alone};
use crate::config::{Config, LedgerBackend};
use domain::id::Member;
use domain::ports::Ports;

/// The ports of this process, to look at only; `member` is our name in the group, if there is one.
pub(super) fn views(
    config: &Config,
    clients: &Clients,
    ports: &Ports,
    member: Option<&Member>,
) -> Result<Views, StartError> {
    let ledger_namespace = config.ledger.namespace.as_deref().unwrap_or(&clients.namespace);
    let group = match member {
        Some(member) => Some(Neighbours {
            name: config.group.name.clone(),
            member: Ok(member.clone()),
            grouped: true,
            members: config.group.members.iter().cloned().map(Member).collect(),
            trust: config.group.trust(),
            // Those of the demo are in memory, and no others can be had.
            boards: if config.redis.url.is_some() {
                addressed(config, &Member(READER.to_owned()))?
            } else {
                ports.boards.clone()
            },
        }),
        None => None,
    };
    Ok(Views {
        cluster: ports.cluster.clone(),
        ledger: ports.ledger.clone(),
        cdn: ports.cdn.clone(),
        group,
        desk: None,
        repos: None,
        own_namespace: clients.namespace.clone(),
        ledger_place: ledger_place(config, ledger_namespace),
        alone: Member(alone(config)),
    })
}

/// Where the ledger is, in words.
pub(super) fn ledger_place(config: &Config, ledger_namespace: &str) -> String {
    match (config.ledger_backend(), &config.redis.url) {
        (LedgerBackend::Memory, _) => "the memory of the running allclear".to_owned(),
        (LedgerBackend::Redis, Some(url)) => format!("Redis {url}"),
        (LedgerBackend::Redis | LedgerBackend::Kubernetes, _) => format!("namespace {ledger_namespace}"),
    }
}
