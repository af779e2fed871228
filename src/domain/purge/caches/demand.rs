//! What one purge asks of each cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::caches::Cache;
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};

/// Requests of one purge to each endpoint of a cache at most: at a millisecond or two each, well within a second. Where a cache takes
/// stars, more paths become fewer and wider ones.
pub const REQUESTS_MAX: usize = 256;

/// What is left unasked that words name; the rest is counted.
const UNASKED_NAMED_MAX: usize = 5;

/// What a purge is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The paths of each host.
    pub hosts: BTreeMap<Host, PathSet>,
    /// Names that lead elsewhere, although one of the hosts covers them.
    pub except: BTreeSet<Host>,
    /// Of every name that leads to a load balancer, as of a rule without a host.
    pub of_any: Option<PathSet>,
}

impl Scope {
    /// The same paths of these hosts.
    pub fn of(hosts: impl IntoIterator<Item = Host>, paths: &PathSet) -> Self {
        Self { hosts: hosts.into_iter().map(|host| (host, paths.clone())).collect(), ..Self::default() }
    }
}

/// What is asked of one cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    pub cache: Arc<Cache>,
    pub requests: Arc<[Request]>,
    /// What it cannot be asked for, and why, in words.
    pub unasked: Option<String>,
}

/// One request, the same to each endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub host: Host,
    /// The path and perhaps a query.
    pub target: String,
    pub headers: Vec<(String, String)>,
}

/// What a purge asks of these caches. One that has no page of it is not among them.
pub fn demands(caches: &[Arc<Cache>], scope: &Scope) -> Vec<Demand> {
    caches.iter().filter_map(|cache| demand(cache, scope)).collect()
}

fn demand(cache: &Arc<Cache>, scope: &Scope) -> Option<Demand> {
    let mut unasked = Vec::new();
    let mut hosts: BTreeMap<&Host, PathSet> = BTreeMap::new();
    let mut add = |host, paths: &PathSet| {
        let all = hosts.entry(host).or_insert_with(|| paths.clone());
        *all = all.union(paths);
    };
    for (host, paths) in &scope.hosts {
        if cache.hosts.is_empty() {
            add(host, paths);
        }
        // Of two hosts that meet, one is within the other.
        let meeting = cache.hosts.iter().filter(|own| own.overlaps(host));
        meeting.for_each(|own| add(if host.covers(own) { own } else { host }, paths));
    }
    if let Some(paths) = &scope.of_any {
        cache.hosts.iter().for_each(|own| add(own, paths));
        if cache.hosts.is_empty() {
            unasked.push("names that lead to a load balancer (name those it has in hosts)".to_owned());
        }
    }
    hosts.retain(|host, _| !scope.except.iter().any(|except| except.covers(host)));
    hosts.retain(|host, _| {
        let is_name = !host.is_wildcard();
        if !is_name {
            unasked.push(format!("{host}, which is no single name (name those it has in hosts)"));
        }
        is_name
    });
    let share = (REQUESTS_MAX / hosts.len().max(1)).max(1);
    let mut requests = BTreeSet::new();
    for (host, paths) in hosts {
        for path in asked(cache, paths, share).iter() {
            if path.is_wildcard() && !cache.takes_stars() {
                unasked.push(format!("{host}{path}, because one {} names one page", cache.method.name()));
            } else if !is_sent_as_it_is(&cache.path.filled(host, path)) {
                unasked.push(format!("{host}{path}, because it would become another page on its way"));
            } else if requests.len() < REQUESTS_MAX {
                requests.insert(request(cache, host, path));
            } else {
                unasked.push(format!("{host}{path}, because {REQUESTS_MAX} requests are the most"));
            }
        }
    }
    let unasked = in_words(unasked);
    let is_concerned = !requests.is_empty() || unasked.is_some();
    is_concerned.then(|| Demand { cache: cache.clone(), requests: requests.into_iter().collect(), unasked })
}

/// The paths to ask for. No cache knows CloudFront's tags, and what they select is not known here: all that there may be.
fn asked(cache: &Cache, paths: PathSet, most: usize) -> PathSet {
    if paths.has_tags() {
        return PathSet::default();
    }
    if cache.takes_stars() { paths.at_most(most) } else { paths }
}

fn request(cache: &Cache, host: &Host, path: &Path) -> Request {
    let headers = cache.headers.iter().map(|(name, form)| (name.clone(), form.filled(host, path)));
    Request { host: host.clone(), target: cache.path.filled(host, path), headers: headers.collect() }
}

/// Whether a client sends this target unchanged. In others it resolves steps and escapes what may not stand there, and the cache would let go
/// of another page; who sends them refuses that each time, so it is no reason to wait. <https://url.spec.whatwg.org/#path-state>
fn is_sent_as_it_is(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_step = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    let is_changed =
        |character: char| matches!(character, ' ' | '"' | '#' | '<' | '>') || !character.is_ascii_graphic();
    let is_path = !path.split('/').any(is_step) && !path.contains(['`', '{', '}', '\\']);
    is_path && !query.contains('\'') && !target.contains(is_changed)
}

fn in_words(unasked: Vec<String>) -> Option<String> {
    let more = unasked.len().saturating_sub(UNASKED_NAMED_MAX);
    let more = (more > 0).then(|| format!("and {more} more"));
    let named: Vec<String> = unasked.into_iter().take(UNASKED_NAMED_MAX).chain(more).collect();
    (!named.is_empty()).then(|| named.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Method;
    use crate::testing;

    fn paths(text: &str) -> PathSet {
        text.split_whitespace().map(|path| path.parse().unwrap()).collect()
    }

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    fn cache(method: Method, wildcard: bool, hosts: &str) -> Arc<Cache> {
        let hosts = hosts.split_whitespace().map(host).collect();
        Arc::new(Cache { method, wildcard, hosts, ..testing::cache("inner") })
    }

    fn scope(hosts: &str, of: &str) -> Scope {
        Scope::of(hosts.split_whitespace().map(host), &paths(of))
    }

    /// What is asked, as host and target, and what is not.
    fn asked_of(cache: &Arc<Cache>, scope: &Scope) -> Option<(Vec<String>, String)> {
        let demand = demands(std::slice::from_ref(cache), scope).pop()?;
        let requests = demand.requests.iter().map(|request| format!("{}{}", request.host, request.target));
        Some((requests.collect(), demand.unasked.unwrap_or_default()))
    }

    fn only(requests: &[&str]) -> Option<(Vec<String>, String)> {
        Some((requests.iter().map(|request| (*request).to_owned()).collect(), String::new()))
    }

    #[test]
    fn one_request_for_each_host_and_path() {
        let cache = cache(Method::Ban, false, "");
        let asked = asked_of(&cache, &scope("a.io b.io", "/x /y/*"));
        assert_eq!(asked, only(&["a.io/x", "a.io/y/*", "b.io/x", "b.io/y/*"]));
    }

    #[test]
    fn a_cache_is_asked_for_its_own_hosts_alone() {
        let own = cache(Method::Ban, false, "www.a.io *.b.io");
        assert_eq!(asked_of(&own, &scope("a.io c.io", "/*")), None);
        assert_eq!(asked_of(&own, &scope("www.a.io x.b.io c.io", "/*")), only(&["www.a.io/*", "x.b.io/*"]));
        assert_eq!(asked_of(&own, &scope("*.a.io", "/*")), only(&["www.a.io/*"]), "the name that it has of a wildcard");
        let except = Scope { except: BTreeSet::from([host("www.a.io")]), ..scope("*.a.io", "/*") };
        assert_eq!(asked_of(&own, &except), None, "another workload serves that");
    }

    #[test]
    fn a_rule_without_a_host_is_about_every_name_that_a_cache_has() {
        let any = Scope { of_any: Some(paths("/x")), ..Scope::default() };
        assert_eq!(asked_of(&cache(Method::Ban, false, "a.io b.io"), &any), only(&["a.io/x", "b.io/x"]));
        let unasked = "names that lead to a load balancer (name those it has in hosts)";
        assert_eq!(asked_of(&cache(Method::Ban, false, ""), &any), Some((Vec::new(), unasked.to_owned())));
    }

    #[test]
    fn what_would_become_another_page_on_its_way_is_said_at_once() {
        for target in ["/./a", "/a/..", "/a/%2E%2e/b", "/a?b='c'", "/a b", "/a`"] {
            assert!(!is_sent_as_it_is(target), "{target}");
        }
        for target in ["/", "/a..b", "/*", "/a'b?c=/../d", "/%C3%A9?x=%22"] {
            assert!(is_sent_as_it_is(target), "{target}");
        }
        let (asked, unasked) = asked_of(&cache(Method::Purge, false, ""), &scope("a.io", "/x /a/../b")).unwrap();
        assert_eq!(asked, ["a.io/x"]);
        assert_eq!(unasked, "a.io/a/../b, because it would become another page on its way");
    }

    #[test]
    fn a_star_is_for_those_that_take_it() {
        let scope = scope("a.io", "/x /y/*");
        let (asked, unasked) = asked_of(&cache(Method::Purge, false, ""), &scope).unwrap();
        assert_eq!(
            (asked, unasked.as_str()),
            (vec!["a.io/x".to_owned()], "a.io/y/*, because one PURGE names one page")
        );
        assert_eq!(asked_of(&cache(Method::Get, true, ""), &scope), only(&["a.io/x", "a.io/y/*"]));
    }

    #[test]
    fn a_wildcard_host_that_no_name_is_known_of_is_said() {
        for own in ["", "**.a.io"] {
            let (asked, unasked) = asked_of(&cache(Method::Ban, false, own), &scope("*.a.io b.a.io", "/*")).unwrap();
            assert_eq!(asked, ["b.a.io/*"]);
            assert_eq!(unasked, "*.a.io, which is no single name (name those it has in hosts)");
        }
    }

    #[test]
    fn a_tag_is_everything() {
        assert_eq!(asked_of(&cache(Method::Ban, false, ""), &scope("a.io", "#t /x")), only(&["a.io/*"]));
    }

    #[test]
    fn what_is_too_much_becomes_wider_or_is_said() {
        let many: String = (0..300).map(|n| format!("/{n} ")).collect();
        let (asked, unasked) = asked_of(&cache(Method::Ban, false, ""), &scope("a.io", &many)).unwrap();
        assert!(asked.len() <= REQUESTS_MAX && asked.iter().any(|one| one.ends_with('*')) && unasked.is_empty());
        let (asked, unasked) = asked_of(&cache(Method::Purge, false, ""), &scope("a.io", &many)).unwrap();
        assert_eq!(asked.len(), REQUESTS_MAX);
        assert!(unasked.ends_with("and 39 more"), "{unasked}");
        let hosts: String = (0..300).map(|n| format!("{n}.io ")).collect();
        let (asked, unasked) = asked_of(&cache(Method::Ban, false, ""), &scope(&hosts, "/*")).unwrap();
        assert_eq!((asked.len(), unasked.ends_with("and 39 more")), (REQUESTS_MAX, true), "{unasked}");
    }

    #[test]
    fn headers_say_what_the_form_says() {
        let expression = crate::caches::form::Form::parse("{regex}").unwrap();
        let cache = Cache { headers: vec![("x-ban".to_owned(), expression)], ..testing::cache("inner") };
        let demand = demands(&[Arc::new(cache)], &scope("a.io", "/y/*")).pop().unwrap();
        assert_eq!(demand.requests[0].headers, [("x-ban".to_owned(), "^/y/".to_owned())]);
    }
}
