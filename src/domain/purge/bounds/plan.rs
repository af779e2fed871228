//! The plan of a decided vector, as a function of its votes alone (GA-7), so that every executor plans the same.
//!
//! By the rules of number 2 it is the distributions that owners named, and those that serve the hosts of the votes that name
//! none. By number 1 a name in one vote made the hosts of all others count for nothing; votes of that number are still
//! planned so (decision 41).
//!
//! Not for: which distributions serve the hosts ([`kernel::names::distribution`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::tenants::Reached;
use crate::records::record::{VOTE_NARROW_BYTES_MAX, Vote};
use crate::records::rules::Rules;
use kernel::names::distribution::DistributionId;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;

/// The plan: the union over the votes (decisions 11 and 32).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    pub hosts: BTreeSet<Host>,
    /// Of these hosts, no more than these paths.
    pub narrow: BTreeMap<Host, PathSet>,
    /// By these load balancer names.
    pub origins: BTreeSet<String>,
    /// Names that wildcards among the hosts cover, or that are asked of the load balancers, and that lead elsewhere in every
    /// member.
    pub except: BTreeSet<Host>,
    /// These, beside what hosts and origins match: their owner named them.
    pub distributions: BTreeSet<DistributionId>,
    pub paths: PathSet,
}

impl Plan {
    /// The plan of a vector for which these are the votes, all of one number.
    pub fn of(votes: &[&Vote]) -> Self {
        let distributions: BTreeSet<_> = votes.iter().flat_map(|vote| vote.distributions.iter().cloned()).collect();
        let first = votes.iter().any(|vote| vote.rules == Rules::FIRST);
        let by_hosts = |vote: &&&Vote| if first { distributions.is_empty() } else { vote.distributions.is_empty() };
        let matched: Vec<&Vote> = votes.iter().filter(by_hosts).copied().collect();
        Self {
            hosts: matched.iter().flat_map(|vote| vote.hosts.iter().cloned()).collect(),
            narrow: narrow(&matched),
            origins: matched.iter().flat_map(|vote| vote.origins.iter().cloned()).collect(),
            except: except(&matched),
            paths: votes.iter().flat_map(|vote| vote.paths.iter().cloned()).collect(),
            distributions,
        }
    }

    /// The part of `paths` to purge on a distribution that the plan reaches in this way; `None` if there is none.
    pub fn paths_of(&self, reached: &Reached, paths: &PathSet) -> Option<PathSet> {
        let narrow: Vec<&PathSet> = reached.hosts.iter().filter_map(|host| self.narrow.get(host)).collect();
        if reached.otherwise || narrow.len() < reached.hosts.len() {
            return Some(paths.clone());
        }
        let own = narrow.into_iter().flat_map(PathSet::iter).cloned().collect();
        // Which paths a tag selects is not known, so tags cannot be narrowed.
        paths.without_tags().intersection(&own)
    }

    /// Whether nothing says what to purge.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.origins.is_empty() && self.distributions.is_empty()
    }
}

/// The hosts that are narrowed in every vote that has them, with all their paths. One vote with the whole host makes it
/// the workload's.
fn narrow(votes: &[&Vote]) -> BTreeMap<Host, PathSet> {
    let mut narrow: BTreeMap<Host, Option<PathSet>> = BTreeMap::new();
    for vote in votes {
        for host in &vote.hosts {
            let theirs = vote.narrow.get(host);
            let all = narrow.entry(host.clone()).or_insert_with(|| theirs.cloned());
            *all = all.take().zip(theirs).map(|(known, theirs)| known.union(theirs));
        }
    }
    narrow.into_iter().filter_map(|(host, paths)| Some((host, paths?))).collect()
}

/// As many of the hosts with paths of their own as a vote has room for, from the first on.
pub fn narrow_that_fits(narrow: &BTreeMap<Host, PathSet>) -> BTreeMap<Host, PathSet> {
    let mut left = VOTE_NARROW_BYTES_MAX;
    let fits = |(host, paths): &(&Host, &PathSet)| {
        let bytes = host.as_str().len() + paths.iter().map(|path| path.as_str().len()).sum::<usize>();
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    narrow.iter().take_while(fits).map(|(host, paths)| (host.clone(), paths.clone())).collect()
}

/// The names that lead elsewhere in every member: a name that one of them serves is the workload's.
fn except(votes: &[&Vote]) -> BTreeSet<Host> {
    let names = votes.iter().flat_map(|vote| &vote.except);
    names.filter(|name| votes.iter().all(|vote| leaves(vote, name))).cloned().collect()
}

/// Whether a vote does not ask for `name`: it says that it leads elsewhere, or nothing in it covers that name at all.
fn leaves(vote: &Vote, name: &Host) -> bool {
    let excepted = vote.except.iter().any(|one| one.covers(name));
    excepted || (vote.origins.is_empty() && !vote.hosts.iter().any(|host| host.overlaps(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vote with these hosts, names that lead elsewhere, and named distributions, each a list with blanks.
    fn vote(hosts: &str, except: &str, distributions: &str) -> Vote {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let json = serde_json::json!({
            "v": {}, "s": 1, "i": {}, "p": ["/*"], "j": 2,
            "h": list(hosts), "e": list(except), "d": list(distributions),
        });
        serde_json::from_value(json).expect("a vote")
    }

    /// Hosts, names that lead elsewhere and named distributions of a plan, each a list with blanks.
    fn plan(votes: &[Vote]) -> [String; 3] {
        let plan = Plan::of(&votes.iter().collect::<Vec<_>>());
        let hosts = |hosts: &BTreeSet<Host>| hosts.iter().map(Host::as_str).collect::<Vec<_>>().join(" ");
        let distributions: Vec<&str> = plan.distributions.iter().map(DistributionId::as_str).collect();
        [hosts(&plan.hosts), hosts(&plan.except), distributions.join(" ")]
    }

    #[test]
    fn named_distributions_stand_beside_the_hosts_of_the_votes_that_name_none() {
        let votes = [vote("a.io", "", "E1"), vote("b.io", "", ""), vote("c.io d.io", "", "E2 E3")];
        assert_eq!(plan(&votes), ["b.io", "", "E1 E2 E3"]);
        assert_eq!(plan(&votes[..1]), ["", "", "E1"]);
        assert_eq!(plan(&votes[1..2]), ["b.io", "", ""]);
    }

    #[test]
    fn votes_of_the_first_rules_are_planned_as_they_were() {
        let first = |vote: Vote| Vote { rules: Rules::FIRST, ..vote };
        let votes = [first(vote("a.io", "", "E1")), first(vote("b.io", "", ""))];
        assert_eq!(plan(&votes), ["", "", "E1"]);
        let votes = [first(vote("a.io", "", "")), first(vote("b.io", "", ""))];
        assert_eq!(plan(&votes), ["a.io b.io", "", ""]);
    }

    #[test]
    fn a_name_leads_elsewhere_only_if_it_does_in_every_member() {
        let wild = |except: &str| vote("*.io", except, "");
        assert_eq!(plan(&[wild("a.io b.io"), wild("b.io c.io")])[1], "b.io");
        assert_eq!(plan(&[wild("a.io b.io"), vote("a.io x.y.io", "", "")])[1], "b.io");
        assert_eq!(plan(&[wild("a.io"), vote("a.io", "", "E1")])[1], "a.io", "who names distributions has no say");
        assert_eq!(plan(&[vote("**.io", "**.a.io", ""), vote("*.a.io", "", "")])[1], "");
        let balancer = Vote { origins: ["lb.example.net".to_owned()].into(), ..vote("", "", "") };
        assert_eq!(plan(&[wild("a.io b.io"), Vote { except: wild("a.io").except, ..balancer }])[1], "a.io");
    }
}
