//! The operator's choices a decision depends on, after configuration has been read and checked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::bounds::tenants::Tenants;
use crate::caches::Cache;
use crate::records::rules::Rules;
use crate::workloads::extent::Extent;
use crate::workloads::proving::Proving;
use crate::workloads::workload::Workload;
use kernel::id::Kind;
use kernel::names::image::VersionOf;
use kernel::names::paths::Path;
use proof::look::Again;
use proof::marker::Marker;

/// How rollouts are judged and purges planned. All of it but the durations, what only chooses the hosts of a member's own vote, and
/// what follows a purge, must be the same in all members of a group, and the group's configuration hash covers it (decision 11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// The kinds of workloads that are followed.
    pub kinds: BTreeSet<Kind>,
    /// How long a rollout may take before it is recorded as failed. A workload's annotation overrides it.
    pub rollout_timeout: Duration,
    pub barrier: AtBarrier,
    /// Whether a workload scaled to zero counts as complete. By default it neither completes nor fails (decision 20).
    pub zero_is_complete: bool,
    pub version: Versions,
    /// What to purge unless the workload says otherwise.
    pub paths: Extent,
    /// The rights of namespaces beyond the common bounds.
    pub tenants: Tenants,
    /// The reaction to a failed rollout that completes after all.
    pub on_recovered: Choice,
    /// The reaction to a version that returns although no other one completed in between.
    pub on_rollback: OnRollback,
    /// What becomes of a workload whose hosts are gone.
    pub missing: Missing,
    /// How the members of a group agree. Without effect while alone.
    pub group: Agreement,
    pub proof: Proof,
    /// Caches between the pods and the CDN, of this member's own cluster.
    pub caches: Vec<Arc<Cache>>,
}

/// Whether the edge is looked at after a purge, and what follows. Each member has its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// Whether workloads are looked at that do not say so themselves.
    pub enabled: bool,
    /// The paths of each host that are looked at where the workload names none; at most `proof::asked::PATHS_MAX`.
    pub paths: Vec<Path>,
    /// Further purges that may follow one.
    pub again: Again,
    pub from: LooksFrom,
}

/// Which members look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LooksFrom {
    /// The one that made the purge.
    #[default]
    Executor,
    /// Each from its own cluster: a content delivery network answers by where one asks. Only the executor purges once more.
    EveryMember,
}

impl Proof {
    /// Whether members look that did not make a purge. Where one more is made in any case, only its maker knows when that is complete.
    pub const fn each_member_looks(&self) -> bool {
        matches!(self.from, LooksFrom::EveryMember) && self.again.after_s.is_none()
    }
}

impl Default for Proof {
    fn default() -> Self {
        Self {
            enabled: false,
            paths: Path::parse("/").into_iter().collect(),
            again: Again::up_to(1),
            from: LooksFrom::Executor,
        }
    }
}

/// How the edge is looked at for one workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proven {
    /// Of each host.
    pub paths: Vec<Path>,
    /// Without one, answers are judged by their age.
    pub marker: Option<Marker>,
    pub again: Again,
}

impl Policy {
    /// What is purged for a workload where nobody asks for something else.
    pub fn extent_of<'a>(&'a self, workload: &'a Workload) -> &'a Extent {
        workload.tuning.paths.as_ref().unwrap_or(&self.paths)
    }

    /// Whether the edge is looked at after a purge of this workload, and how: as its annotations say, else as the configuration does.
    pub fn proof_of(&self, workload: &Workload) -> Option<Proven> {
        let Proof { enabled, paths, again, from: _ } = &self.proof;
        let Proving { enabled: said, paths: named, marker } = &workload.tuning.proof;
        let looks = said.unwrap_or(*enabled);
        let proven =
            || Proven { paths: named.as_ref().unwrap_or(paths).clone(), marker: marker.clone(), again: *again };
        looks.then(proven)
    }
}

/// How long a rollout waits for its old pods (decision 33).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtBarrier {
    /// After the last old pod has stopped serving: kube-proxies, Ingress controllers and load balancers hear of it a moment later.
    pub settle: Duration,
    /// For old pods at most; zero means not at all.
    pub drain_timeout: Duration,
}

impl Default for AtBarrier {
    fn default() -> Self {
        Self { settle: SETTLE_DEFAULT, drain_timeout: DRAIN_TIMEOUT_DEFAULT }
    }
}

/// What becomes of a workload that had hosts, and has none when its rollout completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Missing {
    /// How long they are looked for again.
    pub timeout: Duration,
    pub then: OnMissing,
}

/// How the members of a group agree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agreement {
    /// How long a rollout waits for the group before a notice says so, counted from its start in this cluster.
    pub timeout: Duration,
    /// The fate of a rollout without a vote by then.
    pub at_timeout: AtTimeout,
    /// Whether a member that does not have the workload is left out of the vector, instead of waited for.
    pub absent_left_out: bool,
    /// The lead a member of one rank has before the next one takes over.
    pub takeover: Duration,
    /// The rules to vote by. No setting: it is [`Rules::CURRENT`] in every program, and only the model has members of an earlier
    /// release beside it.
    pub rules: Rules,
}

/// Decision 24.
impl Default for Agreement {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30 * 60),
            at_timeout: AtTimeout::Wait,
            absent_left_out: false,
            takeover: Duration::from_secs(5),
            rules: Rules::CURRENT,
        }
    }
}

/// The fate of a group rollout that is not decided within `group.timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtTimeout {
    /// It is reported as stalled, with the names of those that are missing, and waits on.
    Wait,
    /// A member that has not voted withdraws, for good.
    Skip,
}

/// The reaction to a workload that goes back to the version that the edge has, while the one in between never
/// completed (decision 31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnRollback {
    /// A purge, if the version that was left may have answered a request: the edge may have it.
    #[default]
    IfServed,
    /// A purge, in any case.
    Purge,
    /// None: nothing but what has completed counts.
    Close,
}

/// The reaction to a complete rollout whose workload lost all its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnMissing {
    /// They are purged by what is last known.
    #[default]
    LastKnown,
    /// No purge of them.
    Skip,
}

/// Whether a purge follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    Purge,
    /// It does not; the rollout is closed with the reason.
    Skip,
}

/// Kubernetes gives a rollout ten minutes before it reports a missed deadline; ours lies above it, so that the cluster's
/// own verdict, which names a reason, comes first (decision 24).
pub const ROLLOUT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// Load balancers take one or two seconds to hear that an endpoint does not serve any more (decision 33).
pub const SETTLE_DEFAULT: Duration = Duration::from_secs(3);

/// What makes the version of a workload, and when two are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Versions {
    /// What counts beside the images, unless the workload says otherwise.
    pub of: VersionOf,
    /// Whether one digest under two tags is one version (decision 12).
    pub same_digest_is_same: bool,
}

impl Default for Versions {
    fn default() -> Self {
        Self { of: VersionOf::Images, same_digest_is_same: true }
    }
}

/// Kubernetes gives a pod 30 s to end; twice that covers nearly all that ask for more (decision 33).
pub const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// An Ingress that a pipeline replaces is gone for seconds, a controller of routes that is upgraded for a minute or two.
pub const MISSING_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5 * 60);

impl Default for Policy {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.into(),
            rollout_timeout: ROLLOUT_TIMEOUT_DEFAULT,
            barrier: AtBarrier::default(),
            zero_is_complete: false,
            version: Versions::default(),
            paths: Extent::default(),
            tenants: Tenants::default(),
            on_recovered: Choice::Purge,
            on_rollback: OnRollback::IfServed,
            missing: Missing { timeout: MISSING_TIMEOUT_DEFAULT, then: OnMissing::LastKnown },
            group: Agreement::default(),
            proof: Proof::default(),
            caches: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settled, version};

    fn paths(of: &[&str]) -> Vec<Path> {
        of.iter().map(|path| path.parse().unwrap()).collect()
    }

    // Each pair of what the operator and the owner say about whether, and of the paths each of them names.
    #[test]
    fn an_annotation_goes_before_the_configuration_and_again_max_is_the_operators() {
        let looks = |enabled: bool, said: Option<bool>, named: Option<&[&str]>| {
            let again = Again::up_to(3);
            let proof = Proof { enabled, paths: paths(&["/", "/blog"]), again, ..Proof::default() };
            let policy = Policy { proof, ..Policy::default() };
            let mut workload = settled(version("a"), 1, 2);
            let marker = "etag".parse().ok();
            workload.tuning.proof = Proving { enabled: said, paths: named.map(paths), marker };
            let proven = policy.proof_of(&workload)?;
            assert_eq!(
                (proven.again.max, proven.marker.map(|marker| marker.to_string())),
                (3, Some("etag".to_owned()))
            );
            Some(proven.paths)
        };
        for (enabled, said, wanted) in [
            (false, None, false),
            (false, Some(false), false),
            (false, Some(true), true),
            (true, None, true),
            (true, Some(false), false),
            (true, Some(true), true),
        ] {
            assert_eq!(looks(enabled, said, None), wanted.then(|| paths(&["/", "/blog"])), "{enabled} {said:?}");
            assert_eq!(looks(enabled, said, Some(&["/shop"])), wanted.then(|| paths(&["/shop"])), "{enabled} {said:?}");
        }
    }

    #[test]
    fn nobody_looks_unless_somebody_says_so() {
        let policy = Policy::default();
        assert_eq!(policy.proof_of(&settled(version("a"), 1, 2)), None);
        let mut wanted = settled(version("a"), 1, 2);
        wanted.tuning.proof.enabled = Some(true);
        let proven = Proven { paths: paths(&["/"]), marker: None, again: Again::up_to(1) };
        assert_eq!(policy.proof_of(&wanted), Some(proven));
    }
}
