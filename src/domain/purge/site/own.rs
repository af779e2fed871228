//! The part of a site that belongs to its namespace, where `tenants.default` is `own` (decision 39): hosts of the
//! namespace's routes that a controller has accepted, and of each host only the paths that they take.
//!
//! Where several namespaces route one host, the older object holds what it has taken: a younger one gets no path that is that
//! one, or contains it. So a path beneath an older `/` may be its own, and a `/` above an older path is refused. What the
//! operator has given by `tenants.allow` is the namespace's whole, no matter who routes it.
//!
//! The hosts of an annotation are looked for among the same routes: it may narrow them, and never widen.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::{REJECTED_MAX, Site};
use crate::bounds::tenants::{PATHS_SENT_MAX, Tenants};
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};

/// Domains whose names AWS gives out to all its customers: no route makes one of them a namespace's own. A shared load
/// balancer, or another owner's distribution, has its name there.
const OF_AWS: [&str; 4] = ["amazonaws.com", "amazonaws.com.cn", "cloudfront.net", "cloudfront.cn"];

/// The claim of one Ingress or route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteClaim {
    /// When it was created, as the API server wrote it: RFC 3339 in UTC, so that texts compare as times do.
    pub created: String,
    pub namespace: String,
    /// Which it is: `Ingress shop/web`.
    pub object: String,
    /// Whether a controller serves it: it has given the Ingress an address, or has accepted the route.
    pub accepted: bool,
    /// Whether an annotation of it may make its controller read paths as regular expressions, those of its hosts in other objects too, or
    /// may change in another way which requests they take.
    pub expressions: bool,
    /// Its hosts, and the paths it takes there, each by itself: one that is refused takes no other with it. None: of one with such an annotation
    /// not all are kept.
    pub hosts: Vec<(Host, Vec<Path>)>,
}

/// The part of a site that is a namespace's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    pub hosts: BTreeSet<Host>,
    /// Of these, no more than these paths.
    pub narrow: BTreeMap<Host, PathSet>,
    /// Names beneath its wildcards that other namespaces route.
    pub except: BTreeSet<Host>,
    /// The hosts that are not its own, with reasons.
    pub refused: Vec<(String, String)>,
}

/// Reads how an Ingress or a route writes a path into what is purged for it: the path, with any query; and all beneath it.
#[must_use]
pub fn taken(path: &str, match_: PathMatch) -> Vec<Path> {
    let plain = path.trim_end_matches('/');
    let texts = match match_ {
        _ if plain.is_empty() && match_ != PathMatch::Exact => vec!["/*".to_owned()],
        PathMatch::Exact => vec![path.to_owned(), format!("{path}?*")],
        PathMatch::Prefix => vec![plain.to_owned(), format!("{plain}?*"), format!("{plain}/*")],
        // What a controller makes of it is its own affair; up to the first character of an expression it is what it says.
        PathMatch::Other => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_');
            let end = path.find(|c| !is_plain(c)).unwrap_or(path.len());
            vec![format!("{}*", path.get(..end).filter(|text| !text.is_empty()).unwrap_or("/"))]
        }
    };
    texts.iter().filter_map(|text| Path::parse(text).ok()).collect()
}

/// How a path is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMatch {
    Exact,
    /// It, and all beneath it, label by label.
    Prefix,
    /// By a rule of the controller's, or an expression.
    Other,
}

/// Finds what of `site` belongs to `namespace`. `claims` are those of all namespaces, in any order.
#[must_use]
pub fn own(site: &Site, namespace: &str, claims: &[RouteClaim], tenants: &Tenants) -> Owned {
    let index = Index::new(claims);
    let mut owned = Owned::default();
    for host in site.hosts.keys() {
        if tenants.allows_host(namespace, host) {
            owned.hosts.insert(host.clone());
            continue;
        }
        match share(host, namespace, &index, &mut owned.except) {
            Ok(paths) => {
                owned.hosts.insert(host.clone());
                if !paths.is_everything() {
                    owned.narrow.insert(host.clone(), paths);
                }
            }
            Err(why) => owned.refused.push((host.as_str().to_owned(), why)),
        }
    }
    for origin in &site.origins {
        let why = "a rule without a host makes no load balancer a namespace's own; name the hosts in the rules, or ask the \
                   operator for tenants.allow";
        owned.refused.push((format!("load balancer {origin}"), why.to_owned()));
    }
    owned.except.extend(site.except.iter().cloned());
    owned.except.retain(|name| !owned.hosts.contains(name));
    owned.refused.truncate(REJECTED_MAX);
    owned
}

/// The paths of a host that are the namespace's, or why none is.
fn share(host: &Host, namespace: &str, index: &Index<'_>, except: &mut BTreeSet<Host>) -> Result<PathSet, String> {
    if OF_AWS.iter().any(|domain| is_within(host.domain(), domain)) {
        return Err(
            "names that AWS gives out belong to no namespace by its routes; ask the operator for tenants.allow"
                .to_owned(),
        );
    }
    let (mine, others): (Vec<Taken<'_>>, Vec<Taken<'_>>) =
        index.overlapping(host).partition(|taken| taken.claim.namespace == namespace);
    let covering: Vec<&Taken<'_>> = mine.iter().filter(|taken| covers(taken.host, host)).collect();
    if covering.is_empty() {
        return Err(format!("no Ingress or route of {namespace} names it"));
    }
    if let Some(taken) = covering.iter().find(|_| covering.iter().all(|taken| !taken.claim.accepted)) {
        return Err(format!("no controller has accepted {} yet", taken.claim.object));
    }
    // Names beneath a wildcard that others route are theirs; the wildcard keeps the rest.
    let (beneath, others): (Vec<Taken<'_>>, Vec<Taken<'_>>) = others
        .into_iter()
        .partition(|taken| host.is_wildcard() && taken.host.domain() != host.domain() && !covers(taken.host, host));
    except.extend(beneath.iter().map(|taken| taken.host.clone().at_any_depth()));
    let mut paths = Vec::new();
    let mut held = None;
    for taken in covering.iter().filter(|taken| taken.claim.accepted) {
        for path in taken.paths {
            let before = others.iter().filter(|other| order(other.claim) < order(taken.claim));
            let holder = before.clone().find(|other| other.paths.iter().any(|theirs| path.covers(theirs)));
            match holder {
                Some(other) => held = Some(other.claim.object.as_str()),
                None => paths.push(path.clone()),
            }
        }
    }
    match (PathSet::of(paths), held) {
        (Some(paths), _) => Ok(paths.at_most(PATHS_SENT_MAX)),
        (None, Some(object)) => Err(format!(
            "{object} is older and has its paths; ask the operator for tenants.allow if it is {namespace}'s"
        )),
        (None, None) => Err("its routes take no path there that can be purged".to_owned()),
    }
}

/// Which of two came first; of one moment, the first by name, so that all agree.
fn order(claim: &RouteClaim) -> (&str, &str, &str) {
    (&claim.created, &claim.namespace, &claim.object)
}

/// A wildcard of one label and one of any depth over the same domain are the same here: routes write the same star.
fn covers(one: &Host, other: &Host) -> bool {
    one.clone().at_any_depth().covers(&other.clone().at_any_depth())
}

fn is_within(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// One host of a claim.
#[derive(Clone, Copy)]
struct Taken<'a> {
    claim: &'a RouteClaim,
    host: &'a Host,
    paths: &'a [Path],
}

/// All hosts of all claims, by their domain with its labels reversed, so that what is beneath one lies side by side.
struct Index<'a>(BTreeMap<String, Vec<Taken<'a>>>);

impl<'a> Index<'a> {
    fn new(claims: &'a [RouteClaim]) -> Self {
        let mut all: BTreeMap<String, Vec<Taken<'a>>> = BTreeMap::new();
        for claim in claims {
            for (host, paths) in &claim.hosts {
                all.entry(reversed(host.domain())).or_default().push(Taken { claim, host, paths });
            }
        }
        Self(all)
    }

    /// All that share a name with `host`.
    fn overlapping<'b>(&'b self, host: &'b Host) -> impl Iterator<Item = Taken<'a>> + use<'a, 'b> {
        let name = reversed(host.domain());
        let above: Vec<&Vec<Taken<'a>>> = name
            .match_indices('.')
            .map(|(at, _)| at)
            .chain([name.len()])
            .filter_map(|at| self.0.get(name.get(..at)?))
            .collect();
        let start = format!("{name}.");
        let from = Bound::Included(start.clone());
        let beneath = self.0.range((from, Bound::Unbounded)).take_while(move |(name, _)| name.starts_with(&start));
        let beneath = beneath.map(|(_, taken)| taken).filter(|_| host.is_wildcard());
        let all = above.into_iter().chain(beneath).flatten().copied();
        all.filter(|taken| covers(taken.host, host) || covers(host, taken.host))
    }
}

fn reversed(name: &str) -> String {
    name.rsplit('.').collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::tenants::{Allowance, Tenancy};
    use crate::site::Source;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    /// An accepted Ingress, created in this year, of one host with these paths.
    fn claim(year: u32, namespace: &str, name: &str, paths: &[&str]) -> RouteClaim {
        let paths = paths.iter().map(|path| path.parse().unwrap()).collect();
        RouteClaim {
            created: format!("{year}-01-01T00:00:00Z"),
            namespace: namespace.to_owned(),
            object: format!("Ingress {namespace}/{year}"),
            accepted: true,
            expressions: false,
            hosts: vec![(host(name), paths)],
        }
    }

    fn site(hosts: &[&str]) -> Site {
        let hosts = hosts.iter().map(|text| (host(text).at_any_depth(), BTreeSet::from([Source::Annotation])));
        Site { hosts: hosts.collect(), ..Site::default() }
    }

    fn tenants(namespace: &str, hosts: &[&str]) -> Tenants {
        let namespaces = BTreeSet::from([namespace.to_owned()]);
        let hosts = hosts.iter().map(|text| host(text)).collect();
        Tenants { default: Tenancy::Own, allowed: vec![Allowance { namespaces, hosts, ..Allowance::default() }] }
    }

    /// The kept hosts, as `host` or `host: paths`, and the number of refused ones.
    fn owned(namespace: &str, hosts: &[&str], claims: &[RouteClaim]) -> (Vec<String>, usize) {
        let owned = own(&site(hosts), namespace, claims, &tenants("nobody", &[]));
        let words = |host: &Host| match owned.narrow.get(host) {
            Some(paths) => format!("{}: {paths}", host.as_str()),
            None => host.as_str().to_owned(),
        };
        (owned.hosts.iter().map(words).collect(), owned.refused.len())
    }

    #[test]
    fn two_teams_that_share_a_host_by_path_purge_their_own_paths() {
        let claims = [
            claim(2024, "shop", "www.example.com", &["/*"]),
            claim(2025, "blog", "www.example.com", &["/blog", "/blog/*"]),
        ];
        assert_eq!(owned("shop", &["www.example.com"], &claims), (vec!["www.example.com".to_owned()], 0));
        assert_eq!(
            owned("blog", &["www.example.com"], &claims),
            (vec!["www.example.com: /blog /blog/*".to_owned()], 0)
        );
    }

    // Faults: T4
    #[test]
    fn the_older_object_keeps_a_path_and_all_that_contains_it() {
        let claims = [
            claim(2024, "shop", "www.example.com", &["/shop/*"]),
            claim(2025, "thief", "www.example.com", &["/*", "/shop/*", "/shop*", "/thief/*"]),
        ];
        assert_eq!(owned("thief", &["www.example.com"], &claims), (vec!["www.example.com: /thief/*".to_owned()], 0));
        let only = [claims[0].clone(), claim(2025, "thief", "www.example.com", &["/*"])];
        assert_eq!(owned("thief", &["www.example.com"], &only), (Vec::new(), 1));
        assert_eq!(owned("shop", &["www.example.com"], &only), (vec!["www.example.com: /shop/*".to_owned()], 0));
        let same_second = [claim(2024, "a", "x.example.com", &["/*"]), claim(2024, "b", "x.example.com", &["/*"])];
        assert_eq!(owned("b", &["x.example.com"], &same_second), (Vec::new(), 1));
    }

    #[test]
    fn what_nobody_routes_in_the_namespace_is_not_its_own() {
        let claims = [claim(2024, "shop", "www.example.com", &["/*"])];
        for stolen in ["www.example.com", "*.example.com", "other.example.com", "*.com"] {
            assert_eq!(owned("thief", &[stolen], &claims), (Vec::new(), 1), "{stolen}");
        }
        let pending = [RouteClaim { accepted: false, ..claim(2024, "shop", "www.example.com", &["/*"]) }];
        assert_eq!(owned("shop", &["www.example.com"], &pending), (Vec::new(), 1));
    }

    #[test]
    fn a_younger_wildcard_leaves_the_names_of_others_and_a_younger_name_is_not_taken_out_of_a_wildcard() {
        let claims = [
            claim(2024, "shop", "www.example.com", &["/*"]),
            claim(2025, "wide", "*.example.com", &["/*"]),
            claim(2026, "late", "late.example.com", &["/*"]),
        ];
        let wide = own(&site(&["*.example.com"]), "wide", &claims, &tenants("nobody", &[]));
        assert_eq!(wide.hosts.len(), 1);
        assert_eq!(wide.except, [host("www.example.com"), host("late.example.com")].into());
        assert_eq!(owned("shop", &["www.example.com"], &claims).1, 0);
        assert_eq!(owned("late", &["late.example.com"], &claims), (Vec::new(), 1));
    }

    #[test]
    fn names_that_aws_gives_out_are_nobodys_by_route_and_anybodys_by_the_operator() {
        let name = "d111111abcdef8.cloudfront.net";
        let claims =
            [claim(2024, "thief", name, &["/*"]), claim(2024, "thief", "lb.eu-west-1.elb.amazonaws.com", &["/*"])];
        assert_eq!(owned("thief", &[name, "lb.eu-west-1.elb.amazonaws.com"], &claims), (Vec::new(), 2));
        let given = own(&site(&[name]), "shop", &claims, &tenants("shop", &[name]));
        assert_eq!((given.hosts.len(), given.refused.len()), (1, 0));
    }

    #[test]
    fn paths_are_read_as_ingresses_and_routes_mean_them() {
        for (path, match_, expected) in [
            ("/", PathMatch::Prefix, "/*"),
            ("", PathMatch::Other, "/*"),
            ("/shop", PathMatch::Prefix, "/shop /shop/* /shop?*"),
            ("/shop/", PathMatch::Prefix, "/shop /shop/* /shop?*"),
            ("/", PathMatch::Exact, "/ /?*"),
            ("/a.html", PathMatch::Exact, "/a.html /a.html?*"),
            ("/api/(.*)", PathMatch::Other, "/api/*"),
            ("/(en|de)/x", PathMatch::Other, "/*"),
        ] {
            assert_eq!(PathSet::from_iter(taken(path, match_)).to_string(), expected, "{path}");
        }
        assert_eq!(taken("/~user", PathMatch::Prefix), Vec::new());
    }
}
