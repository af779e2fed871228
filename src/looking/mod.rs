//! What is known now of workloads, their rollouts, their group, the ledger, the replicas, Pipelines and Repos. It is asked of the API
//! server, the ledger, the boards and CloudFront, when a person asks, with that person's credentials (decision 21). So there is an answer
//! also when no allclear runs. The command line prints these answers; the page of a workload shows the explanation that it prints.
//!
//! What cannot be read says so in its own place and hides nothing else ([`Section`]). Nothing is changed, and no ledger is created.
//!
//! Not for what the actors of a running allclear know: that is `actors::observation`. Not for connecting: that is `app::sources`.

pub(crate) mod account;
pub mod explain;
pub(crate) mod group_lines;
pub mod host;
pub mod layout;
pub(crate) mod listen;
pub(crate) mod page;
pub mod replicas;
pub(crate) mod state;
#[cfg(test)]
pub(crate) mod tests;
pub mod whose;
pub(crate) mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::config::{Config, LedgerBackend};
use crate::looking::replicas::Replicas;
use crate::looking::whose::Whose;
use kernel::id::{Kind, WorkloadId};
use kernel::names::host::Host;
use kernel::names::image::Version;
use kinds::reported::Standing;
use purge::bounds::policy::Policy;
use purge::ports::{Cdn, ClusterView, Ledger, LedgerContents, PortError};
use purge::purges::accounts::Accounts;
use purge::records::record::{Phase, Record, Records};
use purge::rollouts::rollout::as_it_runs;
use purge::workloads::readiness::{Pod, Pods, summarise};
use purge::workloads::serving::{OldPods, old_pods};
use purge::workloads::workload::Workload;

pub use listen::Neighbours;

/// Where the ledger is by default: the namespace of `deploy/base`.
pub const LEDGER_NAMESPACE: &str = "allclear";

/// Where answers come from, and the configuration that they go by. Only read.
pub struct Sources {
    /// The cluster. Its scope should contain the namespaces of the question: it is used to list workloads.
    pub cluster: Arc<dyn ClusterView>,
    /// The ledger, which is not opened: a command that only looks must not create one.
    pub ledger: Arc<dyn Ledger>,
    pub cdn: Arc<dyn Cdn>,
    /// What each AWS account is asked for.
    pub accounts: Accounts,
    /// The boards; `None` where no Redis is configured.
    pub group: Option<Neighbours>,
    /// The installation itself; `None` where no other can be meant.
    pub installation: Option<Installation>,
    /// Pipelines; `None` where they are not looked at.
    pub desk: Option<Desk>,
    /// Repos; `None` where they are not looked at.
    pub repos: Option<Desk<RepoKind>>,
    /// The namespace of the caller's credentials.
    pub own_namespace: String,
    /// Where the ledger is looked for, in words: `namespace allclear`.
    pub ledger_place: String,
    /// The one that answers, where there is no Redis.
    pub us: About,
    /// What configuration says of rollouts and purges.
    pub policy: Policy,
    /// The source of `policy` and the like.
    pub whose: Whose,
}

/// The replica that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    pub member: String,
    pub group: String,
    /// Nothing is changed outside.
    pub dry_run: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Question {
    /// `-n`. Without it a name is looked for in the caller's own namespace, and lists show every namespace.
    pub namespace: Option<String>,
    /// The name, also as `statefulset/db`, `shop/web` or `statefulset/shop/db`, or a host; none for a list of all workloads.
    pub name: Option<String>,
}

impl Question {
    /// The host that may be meant: a name with a dot, and no namespace; or an address, as a browser shows it.
    pub(crate) fn host(&self) -> Option<Host> {
        let name = self.name.as_deref().filter(|name| self.namespace.is_none() && name.contains('.'))?;
        let address = ["https://", "http://"].into_iter().find_map(|scheme| name.strip_prefix(scheme));
        let host = address.map_or(name, |rest| rest.split(['/', ':', '?', '#']).next().unwrap_or_default());
        Host::parse(host).ok()
    }

    /// The workload that is meant: without a kind, the one of that name, or the Deployment where there is none.
    ///
    /// # Errors
    /// Why the name is none, or that there are several, in words.
    pub(crate) async fn workload(&self, sources: &Sources) -> Result<WorkloadId, String> {
        let (kind, id) = self.named(sources)?;
        if kind.is_some() {
            return Ok(id);
        }
        // A Rollout goes by the name of a Deployment.
        let declared = sources.policy.kinds.iter().copied().filter(|kind| kind.custom().is_some());
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.identity() == *kind).chain(declared);
        let of = |kind| WorkloadId { kind, ..id.clone() };
        let look =
            async |id: WorkloadId| sources.cluster.workload(&id).await.is_ok_and(|found| found.is_some()).then_some(id);
        let found: Vec<WorkloadId> =
            futures_util::future::join_all(kinds.map(of).map(look)).await.into_iter().flatten().collect();
        match found.as_slice() {
            [] => Ok(id),
            [only] => Ok(only.clone()),
            several => {
                let kinds: Vec<&str> = several.iter().map(|one| one.kind.name()).collect();
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(format!("{} is a {}; write {}", id.display_name(), kinds.join(" and a "), names.join(" or ")))
            }
        }
    }

    /// The name as it is written: its kind, if it says one, and what it means.
    fn named(&self, sources: &Sources) -> Result<(Option<Kind>, WorkloadId), String> {
        let own = self.namespace.as_deref().unwrap_or(&sources.own_namespace);
        let name = self.name.as_deref().unwrap_or_default();
        let parts: Vec<&str> = name.split('/').collect();
        let kind = parts.first().and_then(|part| Kind::named(part)).filter(|_| parts.len() > 1);
        let (namespace, name) = match (kind, parts.as_slice()) {
            (Some(_), [_, name]) | (None, [name]) => (own, *name),
            (Some(_), [_, namespace, name]) | (None, [namespace, name]) => (*namespace, *name),
            _ => return Err(format!("{name:?} is not a workload; write web, shop/web or statefulset/db")),
        };
        if let Some(wanted) = &self.namespace
            && wanted != namespace
        {
            return Err(format!("-n says namespace {wanted} and the name says {namespace}; leave one of them out"));
        }
        let usual = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
        };
        if !usual(namespace) || !usual(name) {
            return Err(format!(
                "{:?} is not a workload; names are lower-case letters, digits, '-' and '.'",
                parts.join("/")
            ));
        }
        Ok((kind, WorkloadId::new(kind.unwrap_or(Kind::Deployment), namespace, name)))
    }
}

/// A part of the answer, or why it is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Section<T> {
    Known(T),
    /// It could not be read; the others are not affected.
    Missing {
        missing: String,
    },
}

impl<T> Section<T> {
    /// The part, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(part) => Some(part),
            Self::Missing { .. } => None,
        }
    }

    pub fn missing(why: impl ToString) -> Self {
        Self::Missing { missing: why.to_string() }
    }
}

/// Reads the ledger without creating one.
pub(crate) async fn peek(sources: &Sources) -> Section<LedgerContents> {
    peeked(sources.ledger.peek().await, &sources.ledger_place)
}

fn peeked(ledgered: Result<Option<LedgerContents>, PortError>, place: &str) -> Section<LedgerContents> {
    match ledgered {
        Ok(Some(ledgered)) => Section::Known(ledgered),
        Ok(None) => Section::missing(no_ledger(place)),
        Err(error) => Section::missing(error),
    }
}

/// The namespace of the ledger, for a person outside the cluster.
pub(crate) fn ledger_namespace(config: &Config) -> &str {
    config.ledger.namespace.as_deref().unwrap_or(LEDGER_NAMESPACE)
}

/// Where the ledger is, in words.
pub(crate) fn ledger_place(config: &Config, namespace: &str) -> String {
    match config.ledger_backend() {
        LedgerBackend::Memory => "the memory of the running allclear".to_owned(),
        LedgerBackend::Kubernetes => format!("namespace {namespace}"),
    }
}

/// That there is no ledger where it was looked for, and how to find one.
pub(crate) fn no_ledger(place: &str) -> String {
    format!(
        "there is no ledger in {place}; ledger.namespace (ALLCLEAR__LEDGER__NAMESPACE, --ledger-namespace) says where allclear keeps it, and \
         `kubectl get configmaps -A --field-selector metadata.name=allclear-ledger` finds it"
    )
}

/// What there is to know of the replicas before anything else; `None` while one works, or where it is not looked.
pub(crate) async fn no_replica(sources: &Sources) -> Option<Replicas> {
    let replicas = replicas::look(sources.installation.as_ref()?).await.1;
    replicas.trouble().is_some().then_some(replicas)
}

/// That a namespace does not exist, in words, where that is seen.
async fn no_namespace(sources: &Sources, namespace: &str) -> Option<String> {
    let there = sources.installation.as_ref()?.has_namespace(namespace).await?;
    (!there).then(|| format!("there is no namespace {namespace}"))
}

/// Pods of a namespace, with their labels.
type LabelledPods = Vec<(BTreeMap<String, String>, Pod)>;

/// The version that a workload is on its way to; `None` where it is complete, so that its pods have nothing to explain.
pub(crate) fn awaited<'a>(workload: &'a Workload, policy: &Policy) -> Option<&'a Version> {
    let version = workload.version.as_ref().ok();
    version.filter(|_| workload.standing(policy.zero_is_complete) != Standing::Complete)
}

/// Takes workloads whose update was aborted for what runs, where their records know it.
fn as_they_run(workloads: &mut BTreeMap<WorkloadId, Workload>, records: &Records, policy: &Policy) {
    for (id, workload) in workloads {
        if let Some(record) = records.get(id).filter(|record| record.withdrawn.is_some()) {
            *workload = as_it_runs(record, workload, policy).into_owned();
        }
    }
}

/// What the pods of a workload come to, of all those of its namespace.
pub(crate) fn summarised(workload: &Workload, version: &Version, listed: &LabelledPods) -> Pods {
    let own = listed.iter().filter(|(labels, _)| workload.selector.matches(labels)).map(|(_, pod)| pod);
    summarise(own, version)
}

/// Whether a rollout waits for its old pods alone, as far as can be seen from outside.
fn is_at_the_barrier(workload: &Workload, record: &Record, policy: &Policy) -> bool {
    record.phase == Phase::Rolling && workload.standing(policy.zero_is_complete) == Standing::Complete
}

/// What the old pods of a rollout at the barrier do, as the controller sees it; `None` where it is not there.
pub(crate) async fn old_pods_at_the_barrier(
    sources: &Sources,
    workload: &Workload,
    record: &Record,
) -> Option<Result<OldPods, PortError>> {
    if !is_at_the_barrier(workload, record, &sources.policy) {
        return None;
    }
    Some(sources.cluster.serving(workload).await.map(|seen| old_pods(&seen, workload)))
}
