//! The kinds of workloads that are followed.
//!
//! Not for how each reports its rollout; that is `kinds`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of watched workloads: those of `apps/v1`, and Argo Rollouts' own. Written as kubectl does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// `argoproj.io/v1alpha1`.
    Rollout,
}

impl Kind {
    /// Every kind there is.
    pub const ALL: [Self; 4] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::Rollout];

    /// The kind in the name of a workload: a Deployment and a Rollout of one name are one, so that a cluster can go from one to the
    /// other, and a group can have both.
    #[must_use]
    pub const fn identity(self) -> Self {
        match self {
            Self::Deployment | Self::Rollout => Self::Deployment,
            Self::StatefulSet | Self::DaemonSet => self,
        }
    }

    /// `deployment`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::Rollout => "rollout",
        }
    }

    /// As Kubernetes' objects write it: `Deployment`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Rollout => "Rollout",
        }
    }

    /// By one of the names that kubectl takes.
    pub fn named(text: &str) -> Option<Self> {
        Some(match text {
            "deployment" | "deployments" | "deploy" => Self::Deployment,
            "statefulset" | "statefulsets" | "sts" => Self::StatefulSet,
            "daemonset" | "daemonsets" | "ds" => Self::DaemonSet,
            "rollout" | "rollouts" | "ro" => Self::Rollout,
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
