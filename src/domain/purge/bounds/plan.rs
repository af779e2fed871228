//! The plan of a decided vector, as a function of its votes alone (GA-7), so that every executor plans the same.
//!
//! By the rules of number 2 it is the distributions that owners named, and those that serve the hosts of the votes that name
//! none. By number 1 a name in one vote made the hosts of all others count for nothing; votes of that number are still
//! planned so (decision 41).
//!
//! Not for: which distributions serve the hosts ([`kernel::names::distribution`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::tenants::Reached;
use crate::records::record::Vote;
use crate::records::rules::Rules;
use kernel::names::host::Host;
use kernel::names::paths::PathSet;

pub use crate::records::record::Plan;

impl Plan {
    /// The plan of a vector for which these are the votes, all of one number.
    pub fn of(votes: &[&Vote]) -> Self {
        let first = votes.iter().any(|vote| vote.cast.rules == Rules::FIRST);
        let plans = || votes.iter().map(|vote| &vote.plan);
        let distributions: BTreeSet<_> = plans().flat_map(|plan| plan.distributions.iter().cloned()).collect();
        let by_hosts = |plan: &&Self| if first { distributions.is_empty() } else { plan.distributions.is_empty() };
        let matched: Vec<&Self> = plans().filter(by_hosts).collect();
        Self {
            hosts: matched.iter().flat_map(|plan| plan.hosts.iter().cloned()).collect(),
            narrow: narrow(&matched, |plan| &plan.narrow),
            routed: narrow(&matched, |plan| &plan.routed),
            origins: matched.iter().flat_map(|plan| plan.origins.iter().cloned()).collect(),
            except: except(&matched),
            paths: plans().flat_map(|plan| plan.paths.iter().cloned()).collect(),
            distributions,
        }
    }

    /// The part of `paths` to purge on a distribution that the plan reaches in this way; `None` if there is none.
    pub fn paths_of(&self, reached: &Reached, paths: &PathSet) -> Option<PathSet> {
        let Some(own) = union(reached, &self.narrow) else { return Some(paths.clone()) };
        // Which paths a tag selects is not known, so tags cannot be narrowed.
        paths.without_tags().intersection(&own)
    }

    /// The paths that routes send to the workload on a distribution that the plan reaches in this way; `None` if it may be all of them.
    pub fn routed_of(&self, reached: &Reached) -> Option<PathSet> {
        union(reached, &self.routed)
    }

    /// Whether what follows from it purges all that follows from `other`, on each distribution that both reach.
    pub fn covers(&self, other: &Self) -> bool {
        let at_least =
            |(host, paths): (&Host, &PathSet)| other.routed.get(host).is_some_and(|theirs| paths.covers(theirs));
        // A host that this one does not have may share a distribution with one that it has by its routes alone.
        let has_hosts = self.routed.is_empty() || other.hosts.is_subset(&self.hosts);
        self.paths.covers(&other.paths) && has_hosts && self.routed.iter().all(at_least)
    }

    /// Whether nothing says what to purge.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.origins.is_empty() && self.distributions.is_empty()
    }
}

/// The paths by which all hosts together are reached, where each of them has some.
fn union(reached: &Reached, by_host: &BTreeMap<Host, PathSet>) -> Option<PathSet> {
    let known: Vec<&PathSet> = reached.hosts.iter().filter_map(|host| by_host.get(host)).collect();
    let all = !reached.otherwise && !known.is_empty() && known.len() == reached.hosts.len();
    all.then(|| known.into_iter().flat_map(PathSet::iter).cloned().collect())
}

/// The hosts that are narrowed in every vote that has them, with all their paths. One vote with the whole host makes it
/// the workload's.
fn narrow(plans: &[&Plan], of: fn(&Plan) -> &BTreeMap<Host, PathSet>) -> BTreeMap<Host, PathSet> {
    let mut narrow: BTreeMap<Host, Option<PathSet>> = BTreeMap::new();
    for plan in plans {
        for host in &plan.hosts {
            let theirs = of(plan).get(host);
            let all = narrow.entry(host.clone()).or_insert_with(|| theirs.cloned());
            *all = all.take().zip(theirs).map(|(known, theirs)| known.union(theirs));
        }
    }
    narrow.into_iter().filter_map(|(host, paths)| Some((host, paths?))).collect()
}

/// The names that lead elsewhere in every member: a name that one of them serves is the workload's.
fn except(plans: &[&Plan]) -> BTreeSet<Host> {
    let names = plans.iter().flat_map(|plan| &plan.except);
    names.filter(|name| plans.iter().all(|plan| leaves(plan, name))).cloned().collect()
}

/// Whether a vote's plan does not ask for `name`: it says that it leads elsewhere, or nothing in it covers that name at all.
fn leaves(plan: &Plan, name: &Host) -> bool {
    let excepted = plan.except.iter().any(|one| one.covers(name));
    excepted || (plan.origins.is_empty() && !plan.hosts.iter().any(|host| host.overlaps(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::names::distribution::DistributionId;

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
        let first = |mut vote: Vote| {
            vote.cast.rules = Rules::FIRST;
            vote
        };
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
        let mut balancer = vote("", "a.io", "");
        balancer.plan.origins.insert("lb.example.net".to_owned());
        assert_eq!(plan(&[wild("a.io b.io"), balancer])[1], "a.io");
    }

    fn routed(hosts: &[(&str, &str)]) -> Vote {
        let mut vote = vote("", "", "");
        for (host, text) in hosts {
            let host: Host = host.parse().unwrap();
            vote.plan.hosts.insert(host.clone());
            if let Some(paths) = PathSet::of(text.split_whitespace().map(|path| path.parse().unwrap()).collect()) {
                vote.plan.routed.insert(host, paths);
            }
        }
        vote
    }

    #[test]
    fn the_paths_of_routes_are_those_of_all_members_and_one_that_has_none_makes_it_everything() {
        let words = |votes: &[Vote]| {
            let plan = Plan::of(&votes.iter().collect::<Vec<_>>());
            plan.routed.iter().map(|(host, paths)| format!("{host}: {paths}")).collect::<Vec<_>>()
        };
        let (one, other) = (routed(&[("a.io", "/1*"), ("b.io", "/b*")]), routed(&[("a.io", "/2*")]));
        assert_eq!(words(&[one.clone(), other]), ["a.io: /1* /2*", "b.io: /b*"]);
        // As a member of the release before votes, and one whose routes are not known.
        assert_eq!(words(&[one.clone(), routed(&[("a.io", "")])]), ["b.io: /b*"]);
        assert_eq!(words(&[one, vote("a.io b.io", "", "")]), Vec::<String>::new());
    }

    #[test]
    fn a_distribution_gets_the_paths_of_routes_only_where_each_of_its_hosts_has_some() {
        let plan = Plan::of(&[&routed(&[("a.io", "/1*"), ("b.io", "/2*"), ("c.io", "")])]);
        let of = |hosts: &[&str], otherwise: bool| {
            let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
            plan.routed_of(&Reached { hosts, otherwise }).map(|paths| paths.to_string())
        };
        assert_eq!(of(&["a.io", "b.io"], false).as_deref(), Some("/1* /2*"));
        assert_eq!(of(&["a.io", "c.io"], false), None);
        assert_eq!(of(&["a.io"], true), None, "by name or by a load balancer");
        assert_eq!(of(&[], false), None);
    }

    #[test]
    fn a_plan_covers_another_only_if_it_leaves_out_none_of_its_paths() {
        let plan = |hosts: &[(&str, &str)]| Plan::of(&[&routed(hosts)]);
        let (all, one, two) = (plan(&[("a.io", "")]), plan(&[("a.io", "/1*")]), plan(&[("a.io", "/1* /2*")]));
        assert!(all.covers(&one) && all.covers(&all) && two.covers(&one) && two.covers(&two));
        assert!(!one.covers(&all) && !one.covers(&two) && !two.covers(&all));
        let beside = plan(&[("a.io", "/1*"), ("b.io", "/b*")]);
        assert!(!one.covers(&beside) && !beside.covers(&one), "a host that only one of them has");
    }
}
