//! The outside, to look at only: for commands, and for the page of a workload, which answers as `allclear explain` does.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::StartError;
use crate::adapters::kubernetes::Clients;
use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::config::{Config, LedgerBackend};
use domain::agreement::roster::Trust;
use domain::kernel::id::Member;
use domain::ports::{Board, Cdn, ClusterView, Ledger, Ports};

/// Where the ledger is by default: the namespace of `deploy/base`.
pub const LEDGER_NAMESPACE: &str = "allclear";

/// Reads boards for commands. A member's name has no blank, so this is no member's name.
pub(super) const READER: &str = "allclear command";

/// The group as it is configured, to listen to.
pub struct Neighbours {
    pub name: String,
    /// Our own name in it, or why that is not known.
    pub member: Result<Member, StartError>,
    /// A group is configured.
    pub grouped: bool,
    /// None is, and the ledger has other members all the same.
    pub is_lost: bool,
    /// The members' names, where they are given.
    pub members: BTreeSet<Member>,
    /// Whether records are signed, or are not on purpose.
    pub trust: Trust,
    /// All boards, our own first, by a name that is no member's: so our own copies are read like those of others.
    pub boards: Vec<Arc<dyn Board>>,
}

/// The outside, to look at only: for commands that answer questions with the caller's own credentials (decision 21).
pub struct Views {
    pub cluster: Arc<dyn ClusterView>,
    /// The ledger; commands do not open it.
    pub ledger: Arc<dyn Ledger>,
    pub cdn: Arc<dyn Cdn>,
    /// The boards; `None` where no Redis is configured.
    pub group: Option<Neighbours>,
    /// The installation itself; `None` where no other can be meant.
    pub installation: Option<Installation>,
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
    pub(super) fn of(config: &Config, member: Result<Member, StartError>, boards: Vec<Arc<dyn Board>>) -> Self {
        Self {
            name: config.group.name.clone(),
            member,
            grouped: true,
            is_lost: false,
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
            installation: None,
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
    match config.ledger_backend() {
        LedgerBackend::Memory => "the memory of the running allclear".to_owned(),
        LedgerBackend::Kubernetes => format!("namespace {ledger_namespace}"),
    }
}
