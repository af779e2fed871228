//! What the commands that answer questions share: whom they ask, what they are asked, and how the ledger, all workloads and
//! the group are read. Everything is read with the caller's own credentials (decision 21), and nothing is changed.

pub(crate) mod group_lines;
pub(crate) mod listed;
pub(crate) mod listen;
pub(crate) mod pipeline_lines;
pub mod replicas;
pub(crate) mod repo_lines;
pub mod whose;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::adapters::kubernetes::desk::Desk;
use crate::adapters::kubernetes::installation::Installation;
use crate::adapters::kubernetes::objects::RepoKind;
use crate::app::{Neighbours, Views};
use crate::cli::page::Page;
use crate::cli::read::replicas::Replicas;
use crate::cli::read::whose::Whose;
use crate::config::Config;
use domain::bounds::policy::Policy;
use domain::kernel::id::{Kind, WorkloadId};
use domain::kernel::reported::Standing;
use domain::names::image::Version;
use domain::ports::{Cdn, ClusterView, Ledger, LedgerContents, PortError};
use domain::records::record::{Phase, Record};
use domain::workloads::readiness::{Pod, Pods, summarise};
use domain::workloads::serving::{OldPods, old_pods};
use domain::workloads::workload::Workload;

/// Where answers come from. Only read.
pub struct Sources {
    /// The cluster. Its scope should contain the namespaces of the question: it is used to list workloads.
    pub cluster: Arc<dyn ClusterView>,
    /// The ledger, which is not opened: a command that only looks must not create one.
    pub ledger: Arc<dyn Ledger>,
    pub cdn: Arc<dyn Cdn>,
    /// The group's boards; `None` where no Redis is configured.
    pub group: Option<Neighbours>,
    /// The installation itself; `None` where it is not looked at.
    pub installation: Option<Installation>,
    /// Pipelines; `None` where they are not looked at.
    pub desk: Option<Desk>,
    /// Repos; `None` where they are not looked at.
    pub repos: Option<Desk<RepoKind>>,
}

#[derive(Clone, Debug)]
pub struct Question {
    /// `-n`. Without it a name is looked for in `own_namespace`, and the list shows every namespace.
    pub namespace: Option<String>,
    /// The name, also as `deployment/web`, `shop/web` or `deployment/shop/web`; none for a list of all workloads.
    pub name: Option<String>,
    /// The namespace of the caller's credentials.
    pub own_namespace: String,
    /// What configuration says of rollouts and purges.
    pub policy: Policy,
    /// Where the ledger is looked for, in words: `namespace allclear`.
    pub ledger_place: String,
    /// Our identity where there is no Redis.
    pub us: Us,
    /// The source of `policy` and the like.
    pub whose: Whose,
}

/// A cluster without a Redis, as the controller calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Us {
    pub member: String,
    /// The name of its group.
    pub group: String,
}

impl Default for Us {
    fn default() -> Self {
        Self { member: "self".to_owned(), group: "default".to_owned() }
    }
}

/// The question, and the sources that `views` give for it.
pub(crate) fn asking(
    views: Views,
    config: &Config,
    whose: Whose,
    (namespace, name): (Option<String>, Option<String>),
) -> (Sources, Question) {
    let Views { cluster, ledger, cdn, group, installation, desk, repos, own_namespace, ledger_place, alone } = views;
    let us = Us { member: alone.to_string(), group: config.group.name.clone() };
    let question = Question { namespace, name, own_namespace, policy: config.policy(), ledger_place, us, whose };
    (Sources { cluster, ledger, cdn, group, installation, desk, repos }, question)
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

impl Page<'_, '_> {
    /// A part of the page, or why it is missing.
    pub(crate) fn section<T>(
        &mut self,
        name: &str,
        section: &Section<T>,
        lines: impl FnOnce(&T) -> Vec<String>,
    ) -> fmt::Result {
        match section {
            Section::Known(part) => self.part(name, lines(part)),
            Section::Missing { missing } => self.part(name, [format!("missing: {missing}")]),
        }
    }
}

/// Reads the ledger without creating one.
pub(crate) async fn peek(sources: &Sources, question: &Question) -> Section<LedgerContents> {
    peeked(sources.ledger.peek().await, question)
}

/// What reading it came to.
pub(crate) fn peeked(
    ledgered: Result<Option<LedgerContents>, PortError>,
    question: &Question,
) -> Section<LedgerContents> {
    match ledgered {
        Ok(Some(ledgered)) => Section::Known(ledgered),
        Ok(None) => Section::missing(format!(
            "there is no ledger in {}; ledger.namespace (ALLCLEAR__LEDGER__NAMESPACE, --ledger-namespace) says where allclear keeps it, and \
             `kubectl get configmaps -A --field-selector metadata.name=allclear-ledger` finds it",
            question.ledger_place
        )),
        Err(error) => Section::missing(error),
    }
}

/// What there is to know of the replicas before anything else; `None` while one works, or where it is not looked.
pub(crate) async fn no_replica(sources: &Sources) -> Option<Replicas> {
    let replicas = replicas::replicas(sources.installation.as_ref()?).await;
    replicas.trouble().is_some().then_some(replicas)
}

/// That a namespace does not exist, in words, where that is seen.
pub(crate) async fn no_namespace(sources: &Sources, namespace: &str) -> Option<String> {
    let there = sources.installation.as_ref()?.has_namespace(namespace).await?;
    (!there).then(|| format!("there is no namespace {namespace}"))
}

/// Pods of a namespace, with their labels.
pub(crate) type LabelledPods = Vec<(BTreeMap<String, String>, Pod)>;

/// The version that a workload is on its way to; `None` where it is complete, so that its pods have nothing to explain.
pub(crate) fn awaited<'a>(workload: &'a Workload, policy: &Policy) -> Option<&'a Version> {
    let version = workload.version.as_ref().ok();
    version.filter(|_| workload.standing(policy.zero_is_complete) != Standing::Complete)
}

/// What the pods of a workload come to, of all those of its namespace.
pub(crate) fn summarised(workload: &Workload, version: &Version, listed: &LabelledPods) -> Pods {
    let own = listed.iter().filter(|(labels, _)| workload.selector.matches(labels)).map(|(_, pod)| pod);
    summarise(own, version)
}

/// Whether a rollout waits for its old pods alone, as far as can be seen from outside.
pub(crate) fn is_at_the_barrier(workload: &Workload, record: &Record, policy: &Policy) -> bool {
    record.phase == Phase::Rolling && workload.standing(policy.zero_is_complete) == Standing::Complete
}

/// What the old pods of a rollout at the barrier do, as the controller sees it; `None` where it is not there.
pub(crate) async fn old_pods_at_the_barrier(
    sources: &Sources,
    workload: &Workload,
    record: &Record,
    policy: &Policy,
) -> Option<Result<OldPods, PortError>> {
    if !is_at_the_barrier(workload, record, policy) {
        return None;
    }
    Some(sources.cluster.serving(workload).await.map(|seen| old_pods(&seen)))
}

/// The workload that is meant by a name as people write it.
pub(crate) fn named(name: &str, question: &Question) -> Result<WorkloadId, String> {
    let own = question.namespace.as_deref().unwrap_or(&question.own_namespace);
    let parts: Vec<&str> = name.split('/').collect();
    let (namespace, name) = match parts.as_slice() {
        [name] | ["deployment" | "deployments" | "deploy", name] => (own, *name),
        [namespace, name] | ["deployment" | "deployments" | "deploy", namespace, name] => (*namespace, *name),
        _ => return Err(format!("{name:?} is not a workload; write web, shop/web or deployment/web")),
    };
    if let Some(wanted) = &question.namespace
        && wanted != namespace
    {
        return Err(format!("-n says namespace {wanted} and the name says {namespace}; leave one of them out"));
    }
    let usual = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.')
    };
    if !usual(namespace) || !usual(name) {
        return Err(format!(
            "{:?} is not a workload; names are lower-case letters, digits, '-' and '.'",
            parts.join("/")
        ));
    }
    Ok(WorkloadId { kind: Kind::Deployment, namespace: namespace.to_owned(), name: name.to_owned() })
}
