//! What is to be purged: by one member's vote, and for a decided vector by all of them. A record has room for so much of it.
//!
//! Not for how the votes make one plan; that is `bounds`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::NOTICE_LIST_BYTES_MAX;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};

/// Bytes of host names in one vote: about a thousand hosts, far above CloudFront's quota of 100 aliases a distribution.
pub const VOTE_HOST_BYTES_MAX: usize = 24 * 1024;

/// Bytes of names in one vote that lead elsewhere: about 200 names. Those beyond it are left out, which purges too much rather
/// than too little.
pub const VOTE_EXCEPT_BYTES_MAX: usize = 4 * 1024;

/// Bytes of paths in one vote. With [`VOTE_HOST_BYTES_MAX`] and what else is in a vote it stays below
/// [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX), so the first vote of a record can always be written; configuration and annotations are held to it.
pub const VOTE_PATH_BYTES_MAX: usize = 16 * 1024;

/// Bytes of hosts and paths in one vote, for hosts where only some paths are the namespace's own. Hosts beyond it are left out.
pub const VOTE_NARROW_BYTES_MAX: usize = 4 * 1024;

/// Bytes of hosts and paths in one vote, for hosts of which only what routes send to the workload is purged. Of hosts beyond it all is.
/// A vote that has some has no other paths, so it is no larger than one with [`VOTE_PATH_BYTES_MAX`].
pub const VOTE_ROUTED_BYTES_MAX: usize = 4 * 1024;

/// Bytes of load balancer names in one vote. A workload has one or two, of about 70 bytes each.
pub const VOTE_ORIGIN_BYTES_MAX: usize = 2 * 1024;

/// The plan of a vote; and of a vector, the union over its votes (decisions 11 and 32).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// The hosts that serve the workload.
    #[serde(rename = "h", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hosts: BTreeSet<Host>,
    /// Names that lead elsewhere, in every member, though a wildcard among the hosts covers them, or the load balancers are asked
    /// for them.
    #[serde(rename = "e", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub except: BTreeSet<Host>,
    /// Of these of the hosts, no more than these paths: the others are routed by other namespaces (decision 39).
    #[serde(rename = "r", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub narrow: BTreeMap<Host, PathSet>,
    /// Of these of the hosts, no more than these paths lead to the workload. It may purge the others; where an older program passes over
    /// this, it does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub routed: BTreeMap<Host, PathSet>,
    /// Load balancer host names, for rules that name no host.
    #[serde(rename = "o", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<String>,
    /// Distributions the owners named. In a vote they take the place of what its hosts match.
    #[serde(rename = "d", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub distributions: BTreeSet<DistributionId>,
    #[serde(rename = "p")]
    pub paths: PathSet,
}

impl Plan {
    /// As much of it as a vote has room for. A host that would be purged whole for lack of room is left out.
    #[must_use]
    pub fn for_a_vote(self) -> Self {
        let Self { mut hosts, except, narrow: all, routed, origins, distributions, paths } = self;
        let narrow = those_that_fit(&all, VOTE_NARROW_BYTES_MAX);
        hosts.retain(|host| narrow.contains_key(host) || !all.contains_key(host));
        Self {
            hosts: hosts_of(&hosts, VOTE_HOST_BYTES_MAX),
            except: hosts_of(&except, VOTE_EXCEPT_BYTES_MAX),
            narrow,
            routed: those_that_fit(&routed, VOTE_ROUTED_BYTES_MAX),
            origins: fitting(&origins, VOTE_ORIGIN_BYTES_MAX, String::len).cloned().collect(),
            distributions,
            paths,
        }
    }

    /// As much of it as notices mention.
    #[must_use]
    pub fn for_notices(&self) -> Self {
        let paths = fitting(self.paths.iter(), NOTICE_LIST_BYTES_MAX, |path: &Path| path.as_str().len());
        let paths = PathSet::of(paths.cloned().collect::<Vec<_>>()).unwrap_or_else(|| self.paths.clone());
        Self { hosts: hosts_of(&self.hosts, NOTICE_LIST_BYTES_MAX), paths, ..Self::default() }
    }
}

fn hosts_of(hosts: &BTreeSet<Host>, bytes_max: usize) -> BTreeSet<Host> {
    fitting(hosts, bytes_max, |host| host.as_str().len()).cloned().collect()
}

/// As many of the hosts with paths of their own as a vote has room for, from the first on.
pub(super) fn those_that_fit(narrow: &BTreeMap<Host, PathSet>, bytes_max: usize) -> BTreeMap<Host, PathSet> {
    let mut left = bytes_max;
    let fits = |(host, paths): &(&Host, &PathSet)| {
        let bytes = host.as_str().len() + paths.iter().map(|path| path.as_str().len()).sum::<usize>();
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    narrow.iter().take_while(fits).map(|(host, paths)| (host.clone(), paths.clone())).collect()
}

/// As many items as fit into so many bytes, from the first on.
pub fn fitting<'a, T: 'a>(
    items: impl IntoIterator<Item = &'a T>,
    bytes_max: usize,
    bytes: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &'a T> {
    let mut left = bytes_max;
    items.into_iter().take_while(move |item| {
        let fits = bytes(item) <= left;
        left = left.saturating_sub(bytes(item));
        fits
    })
}
