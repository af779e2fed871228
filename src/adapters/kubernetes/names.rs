//! Names alone, for completion on a command line: of namespaces, of objects, of a kubeconfig's contexts. Objects are listed by their
//! metadata, which takes a small part of the bytes.
//!
//! Not for anything that decides: what is listed here may be a part, and may be late.

use std::path::Path;

use kube::config::Kubeconfig;
use serde::Deserialize;

use super::objects::{PipelineKind, RepoKind, of};
use super::resource_of;
use apiserver::{Api, Clients, Collection, NAMESPACES};
use kernel::id::Kind;
use kernel::unreadable::Unreadable;
use purge::ports::PortError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    Namespaces,
    /// Workloads of a kind in a namespace.
    Workloads(Kind, &'a str),
    /// Pipelines of this API group.
    Pipelines(&'a str),
    /// Repos of this API group.
    Repos(&'a str),
}

/// Namespace and name of an object; the namespace is empty where the kind has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ObjectName {
    #[serde(default)]
    pub namespace: String,
    pub name: String,
}

/// Hands on each name as soon as it comes.
///
/// # Errors
/// In words; by then some may have been handed on.
pub async fn each(clients: &Clients, named: Named<'_>, keep: impl FnMut(ObjectName)) -> Result<(), PortError> {
    let collection = match named {
        Named::Namespaces => Collection::everywhere(NAMESPACES),
        Named::Workloads(kind, namespace) => Collection::of(resource_of(kind), namespace),
        Named::Pipelines(group) => of::<PipelineKind>(group, None),
        Named::Repos(group) => of::<RepoKind>(group, None),
    };
    Api::of_metadata(clients.request.clone()).each(&collection, name, keep).await?;
    Ok(())
}

/// The contexts of a kubeconfig, the usual one where none is named; none where it cannot be read.
pub fn contexts(path: Option<&Path>) -> Vec<String> {
    let read = path.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    read.map(|read| read.contexts.into_iter().map(|context| context.name).collect()).unwrap_or_default()
}

fn name(json: &str) -> Result<ObjectName, Unreadable> {
    #[derive(Deserialize)]
    struct Object {
        metadata: ObjectName,
    }
    let Object { metadata } = serde_json::from_str(json)?;
    Ok(metadata)
}
