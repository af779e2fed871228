//! A workload's name in its group, where its name differs from cluster to cluster (decision 55).
//!
//! Members know each other's workloads by kind, namespace and name. Where one cluster says `prod/web-eu` and another `shop/web`, their
//! owner writes `allclear.dev/group-name: shop/web` on the one. The annotation is what is asked for (`GroupName`); the record says
//! what the workload goes by ([`Alias`]), and each vote the name under which it was cast.
//!
//! Not for which of two workloads under one name stays: that is `broker::names`.

use serde::{Deserialize, Serialize};

use crate::id::WorkloadId;

/// Longest name of a namespace (RFC 1123 label).
const NAMESPACE_CHARS_MAX: usize = 63;

/// Longest name of a workload (RFC 1123 subdomain).
const NAME_CHARS_MAX: usize = 253;

/// The value of the annotation `group-name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupName {
    /// The namespace; `None`: the workload's own.
    pub namespace: Option<String>,
    pub name: String,
}

/// A text that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a workload's name; write namespace/name, or a name alone for one in its own namespace")]
pub struct Invalid;

impl GroupName {
    /// Reads `namespace/name`, or a name alone.
    ///
    /// # Errors
    /// Everything else.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        let is_namespace = |text: &str| text.len() <= NAMESPACE_CHARS_MAX && is_label(text);
        if namespace.is_none_or(is_namespace) && name.len() <= NAME_CHARS_MAX && name.split('.').all(is_label) {
            Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
        } else {
            Err(Invalid)
        }
    }

    /// The name in full, for this workload. It keeps the kind.
    pub fn of(&self, own: &WorkloadId) -> WorkloadId {
        let namespace = self.namespace.clone().unwrap_or_else(|| own.namespace.clone());
        WorkloadId { kind: own.kind, namespace, name: self.name.clone() }
    }
}

fn is_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Another name than its own, by which a workload goes in its group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Alias {
    #[serde(rename = "w")]
    pub name: WorkloadId,
    /// When the workload was created, as Kubernetes writes it: of two under one name the older one stays.
    #[serde(rename = "c")]
    pub created: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_one_of_its_own_namespace_and_it_keeps_the_kind() {
        let own = WorkloadId::deployment("prod", "web-eu");
        let full = |text| GroupName::parse(text).unwrap().of(&own).to_string();
        assert_eq!(full("shop/web"), "deployment/shop/web");
        assert_eq!(full("web.v2"), "deployment/prod/web.v2");
    }

    #[test]
    fn what_no_workload_can_be_called_is_refused() {
        let long = "a".repeat(254);
        let namespace = format!("{}/web", "a".repeat(64));
        for bad in
            ["", "/web", "shop/", "deployment/shop/web", "Shop/web", "shop/-web", "sh.op/web", "a b", &long, &namespace]
        {
            assert!(GroupName::parse(bad).is_err(), "{bad}");
        }
    }
}
