//! The kinds of workloads that are followed.
//!
//! Not for how each reports its rollout; that is `kinds`.

use std::fmt;

use super::custom::CustomKind;
use crate::parsed::parsed;

/// The kinds of watched workloads: those of `apps/v1`, Argo Rollouts' own, and those that the operator declares. Written as kubectl does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// `argoproj.io/v1alpha1`.
    Rollout,
    Custom(CustomKind),
}

/// A text that is no kind's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind that is followed")]
pub struct NotAKind(String);

parsed!(Kind, NotAKind);

impl Kind {
    /// Every kind that is built in.
    pub const ALL: [Self; 4] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::Rollout];

    /// The kind in the name of a workload: a Deployment and a Rollout of one name are one, so that a cluster can go from one to the
    /// other, and a group can have both.
    #[must_use]
    pub const fn identity(self) -> Self {
        match self {
            Self::Deployment | Self::Rollout => Self::Deployment,
            Self::StatefulSet | Self::DaemonSet | Self::Custom(_) => self,
        }
    }

    /// `deployment`; of a kind that is declared, `clonesets.apps.kruise.io`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::Rollout => "rollout",
            Self::Custom(kind) => kind.word(),
        }
    }

    /// As Kubernetes' objects write it: `Deployment`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Rollout => "Rollout",
            Self::Custom(kind) => kind.says().kind.as_str(),
        }
    }

    /// `apps/v1`.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet => "apps/v1",
            Self::Rollout => "argoproj.io/v1alpha1",
            Self::Custom(kind) => kind.says().api_version.as_str(),
        }
    }

    /// The kind that the operator declares, if it is one.
    pub const fn custom(self) -> Option<CustomKind> {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet | Self::Rollout => None,
            Self::Custom(kind) => Some(kind),
        }
    }

    /// Reads what [`fmt::Display`] writes.
    ///
    /// # Errors
    /// Everything else, and a kind that is not declared.
    pub fn parse(text: &str) -> Result<Self, NotAKind> {
        let built_in = Self::ALL.into_iter().find(|kind| kind.word() == text);
        let found = built_in.or_else(|| CustomKind::of_word(text).map(Self::Custom));
        found.ok_or_else(|| NotAKind(text.to_owned()))
    }

    /// By one of the names that kubectl takes.
    pub fn named(text: &str) -> Option<Self> {
        Some(match text {
            "deployment" | "deployments" | "deploy" => Self::Deployment,
            "statefulset" | "statefulsets" | "sts" => Self::StatefulSet,
            "daemonset" | "daemonsets" | "ds" => Self::DaemonSet,
            "rollout" | "rollouts" | "ro" => Self::Rollout,
            other => return CustomKind::named(other).map(Self::Custom),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
