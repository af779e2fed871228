//! `allclear explain [-n NAMESPACE] [NAME]`: why a workload was purged, or was not, and what happens next.
//!
//! Everything is recomputed from the API server, the ledger and CloudFront with the caller's own credentials (decision 21),
//! so it also answers when no allclear runs. What cannot be read says so in its own place and hides nothing else.
//!
//! [`gather`] asks, [`model`] holds the answer, [`text`] and [`list`] print it. Nothing is changed anywhere.

mod gather;
mod list;
pub mod model;
mod near;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use gather::peek;
pub(crate) use near::list as list_workloads;

use std::sync::Arc;

use crate::app::Neighbours;
use crate::cli::EXIT_FAILED;
use crate::cli::config::{EXIT_INVALID, Outcome, Output, answer};
use crate::domain::id::{Kind, WorkloadId};
use crate::domain::policy::Policy;
use crate::domain::text::visible;
use crate::ports::{Cdn, ClusterView, Ledger};

/// Where answers come from. Only read.
pub struct Sources {
    /// The cluster. Its scope should contain the namespaces of the question: it is used to list workloads.
    pub cluster: Arc<dyn ClusterView>,
    /// The ledger, which is not opened: a command that only looks must not create one.
    pub ledger: Arc<dyn Ledger>,
    /// CloudFront.
    pub cdn: Arc<dyn Cdn>,
    /// The group's boards; `None` where no Redis is configured.
    pub group: Option<Neighbours>,
}

/// What is asked.
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
    /// Who we are where there is no Redis.
    pub us: Us,
}

/// A cluster without a Redis, as the controller calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Us {
    /// The only member.
    pub member: String,
    /// The name of its group.
    pub group: String,
}

impl Default for Us {
    fn default() -> Self {
        Self { member: "self".to_owned(), group: "default".to_owned() }
    }
}

/// Answers. Exit codes: 0 found, 1 not found or unreadable, 2 not a name.
pub async fn explain(sources: &Sources, question: &Question, output: Output) -> Outcome {
    let Some(name) = &question.name else {
        let (listing, complete) = list::all(sources, question).await;
        return answer(&listing, output, if complete { 0 } else { EXIT_FAILED });
    };
    let id = match workload(name, question) {
        Ok(id) => id,
        Err(why) => {
            return Outcome { out: String::new(), err: format!("error: {}\n", visible(&why)), code: EXIT_INVALID };
        }
    };
    match gather::explanation(sources, question, &id).await {
        gather::Found::Yes(explanation) => answer(&*explanation, output, 0),
        gather::Found::Unknown(explanation) => answer(&*explanation, output, EXIT_FAILED),
        gather::Found::No => {
            let err = near::not_found(sources, &id).await;
            Outcome { out: String::new(), err: format!("error: {}\n", visible(&err)), code: EXIT_FAILED }
        }
    }
}

/// The workload that is meant by a name as people write it.
pub(crate) fn workload(name: &str, question: &Question) -> Result<WorkloadId, String> {
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
