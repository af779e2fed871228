//! The site of a workload, held against requests: a host is the workload's exactly if some request for it reaches the
//! workload.
//!
//! The oracle knows nothing of hosts as sets. It takes one request (a host name and a path) through generated Ingresses and
//! Gateways, step by step by the text of the two APIs, and says which Services may answer it.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::WorkloadId;
use kernel::names::host::Host;
use kinds::pods::PodLabels;
use proptest::prelude::*;
use purge::site::{
    GatewayFact, GrantFact, IngressFact, IngressRule, ListenerFact, ParentFact, Reach, RouteFact, RouteKind,
    ServiceFact, Site, SiteFacts, site,
};

/// Every name a request may be for. One has a label more than others, one stands beneath no wildcard.
const NAMES: [&str; 7] = ["a.io", "www.a.io", "x.a.io", "y.x.a.io", "b.io", "www.b.io", "z.www.a.io"];

/// Every path a request may have; `/` stands for all that is not beneath `/api`.
const PATHS: [&str; 2] = ["/", "/api"];

/// A Service, by namespace and name.
type Service = (&'static str, &'static str);

/// What the workload's pods are selected by, and others of its namespace and of another.
const OURS: Service = ("shop", "web");
const SERVICES: [Service; 3] = [OURS, ("shop", "api"), ("blog", "cms")];

/// A rule of an Ingress as an owner writes it: no `http`, or paths with their Services.
#[derive(Clone, Debug)]
struct Rule {
    host: Option<&'static str>,
    http: Option<BTreeMap<&'static str, &'static str>>,
}

#[derive(Clone, Debug)]
struct Ingress {
    namespace: &'static str,
    class: &'static str,
    rules: Vec<Rule>,
    default: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Route {
    namespace: &'static str,
    hostnames: Vec<&'static str>,
    paths: BTreeMap<&'static str, Service>,
    section: Option<&'static str>,
    accepted: bool,
}

/// A listener: its name, its host, and whether it takes routes of its own namespace only.
type Listener = (&'static str, Option<&'static str>, bool);

#[derive(Clone, Debug, Default)]
struct World {
    ingresses: Vec<Ingress>,
    routes: Vec<Route>,
    listeners: Vec<Listener>,
    granted: bool,
}

const GATEWAY_NAMESPACE: &str = "shop";

fn one_of<T: Copy + std::fmt::Debug + 'static>(items: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(items)
}

fn host() -> impl Strategy<Value = &'static str> {
    one_of(&["a.io", "www.a.io", "x.a.io", "*.a.io", "*.a.io", "*.x.a.io", "b.io", "*.b.io"])
}

fn ingress() -> impl Strategy<Value = Ingress> {
    one_of(&["shop", "shop", "blog"]).prop_flat_map(|namespace| {
        let service = if namespace == "shop" { one_of(&["web", "api"]) } else { one_of(&["cms", "cms"]) };
        let service = service.boxed();
        let http = prop::collection::btree_map(one_of(&PATHS), service.clone(), 1..3);
        let rule = (prop::option::weighted(0.8, host()), prop::option::weighted(0.8, http))
            .prop_map(|(host, http)| Rule { host, http });
        let rules = prop::collection::vec(rule, 0..4);
        (rules, prop::option::weighted(0.3, service), one_of(&["one", "one", "two"])).prop_map(
            move |(rules, default, class)| {
                // The API server refuses an Ingress of neither, and hosts that occur twice say nothing new.
                let default = if rules.is_empty() { default.or(Some("web")) } else { default };
                Ingress { namespace, class, rules, default }
            },
        )
    })
}

fn route() -> impl Strategy<Value = Route> {
    let paths = prop::collection::btree_map(one_of(&PATHS), one_of(&SERVICES), 1..3);
    let section = prop::option::weighted(0.3, one_of(&["l0", "l1"]));
    let hostnames = prop::collection::vec(host(), 0..3);
    (one_of(&["shop", "shop", "blog"]), hostnames, paths, section, prop::bool::weighted(0.8)).prop_map(
        |(namespace, hostnames, paths, section, accepted)| Route { namespace, hostnames, paths, section, accepted },
    )
}

fn ingress_world() -> impl Strategy<Value = World> {
    prop::collection::vec(ingress(), 1..5).prop_map(|ingresses| World { ingresses, ..World::default() })
}

fn gateway_world() -> impl Strategy<Value = World> {
    let listener = (prop::option::weighted(0.7, host()), prop::bool::weighted(0.3));
    let listeners = prop::collection::vec(listener, 1..3).prop_map(|listeners| {
        let named = listeners.into_iter().zip(["l0", "l1"]);
        named.map(|((host, same), name)| (name, host, same)).collect()
    });
    (prop::collection::vec(route(), 1..5), listeners, any::<bool>()).prop_map(|(routes, listeners, granted)| World {
        routes,
        listeners,
        granted,
        ..World::default()
    })
}

/// Whether a request's host matches one that is written, where a wildcard takes one label or any number.
fn is_for(name: &str, written: &str, any_depth: bool) -> bool {
    match written.strip_prefix("*.") {
        None => name == written,
        Some(domain) => name
            .strip_suffix(domain)
            .and_then(|front| front.strip_suffix('.'))
            .is_some_and(|front| !front.is_empty() && (any_depth || !front.contains('.'))),
    }
}

/// The Service that paths send a request to: the longest that is a prefix.
fn by_path<T: Copy>(paths: &BTreeMap<&'static str, T>, path: &str) -> Option<T> {
    let matching = paths.iter().filter(|(written, _)| path.starts_with(**written));
    matching.max_by_key(|(written, _)| written.len()).map(|(_, service)| *service)
}

/// The Services that may answer a request to an Ingress controller: of the rules for the host, those with the most specific
/// host that have the path; where several objects have the same, any of them.
fn by_ingress(world: &World, class: &str, name: &str, path: &str) -> BTreeSet<Service> {
    let served: Vec<&Ingress> = world.ingresses.iter().filter(|one| one.class == class).collect();
    let by_hosts = |wanted: fn(&str) -> bool| {
        let mut found = BTreeSet::new();
        for ingress in &served {
            let rules = ingress
                .rules
                .iter()
                .filter(|rule| rule.host.is_some_and(|host| wanted(host) && is_for(name, host, false)));
            for rule in rules {
                let service = match &rule.http {
                    None => ingress.default.map(|service| (Some(service), true)).or(Some((None, true))),
                    Some(paths) => by_path(paths, path).map(|service| (Some(service), true)),
                };
                found.extend(service.map(|(service, _)| service.map(|service| (ingress.namespace, service))));
            }
        }
        found
    };
    for wanted in [|host: &str| !host.starts_with('*'), |host: &str| host.starts_with('*')] {
        let found = by_hosts(wanted);
        if !found.is_empty() {
            return found.into_iter().flatten().collect();
        }
    }
    // Nobody has the path: an object that has the host sends it to its own rule without host, else to its default backend.
    let has =
        |ingress: &&&Ingress| ingress.rules.iter().any(|rule| rule.host.is_some_and(|host| is_for(name, host, false)));
    served.iter().filter(has).flat_map(|ingress| without_host(ingress, path)).collect()
}

/// The Services that answer a request to an Ingress for a host that none of its rules has.
fn without_host(ingress: &Ingress, path: &str) -> BTreeSet<Service> {
    let hostless = ingress.rules.iter().filter(|rule| rule.host.is_none());
    let by_rules: BTreeSet<Option<&'static str>> = hostless
        .filter_map(|rule| match &rule.http {
            None => Some(ingress.default),
            Some(paths) => by_path(paths, path).map(Some),
        })
        .collect();
    let by_rules = if by_rules.is_empty() { BTreeSet::from([ingress.default]) } else { by_rules };
    by_rules.into_iter().flatten().map(|service| (ingress.namespace, service)).collect()
}

/// The Services that may answer a request to the Gateway: of the routes whose listener has the host, those with the most
/// specific host that have the path. Without a host of its own, a route has that of its listener.
fn by_gateway(world: &World, name: &str, path: &str) -> BTreeSet<Service> {
    let listeners = world.listeners.iter().filter(|(_, host, _)| host.is_none_or(|host| is_for(name, host, true)));
    listeners.flat_map(|listener| by_listener(world, listener, name, path)).collect()
}

fn by_listener(
    world: &World,
    (listener, listened, same_namespace): &Listener,
    name: &str,
    path: &str,
) -> BTreeSet<Service> {
    let mut found: BTreeMap<(bool, usize), BTreeSet<Service>> = BTreeMap::new();
    let is_attached = |route: &&Route| {
        route.accepted
            && route.section.is_none_or(|section| section == *listener)
            && (!same_namespace || route.namespace == GATEWAY_NAMESPACE)
    };
    for route in world.routes.iter().filter(is_attached) {
        let Some(service) = by_path(&route.paths, path) else { continue };
        // A reference that is not allowed answers with an error, and still takes the request.
        let is_allowed =
            service.0 == route.namespace || (world.granted && route.namespace == "blog" && service == OURS);
        // Characters in a matching host without star, then in any matching host; a route without hosts has none.
        let rank = |host: &str| (!host.starts_with('*'), host.trim_start_matches('*').len());
        let ranks = route.hostnames.iter().filter(|host| is_for(name, host, true)).map(|host| rank(host));
        for rank in ranks.chain(route.hostnames.is_empty().then_some((false, 0))) {
            found.entry(rank).or_default().extend(is_allowed.then_some(service));
        }
    }
    // What neither a route nor the listener names is asked of the address, not of a host.
    let named = |(_, length): &(bool, usize)| *length > 0 || listened.is_some();
    found.into_iter().next_back().filter(|(rank, _)| named(rank)).map(|(_, services)| services).unwrap_or_default()
}

/// The same world without what is found too widely on purpose. Whatever has a wide host sends all its paths to one Service:
/// a host that is taken in part is found though its other paths may lead nowhere. And with several controllers nothing goes
/// without a host: which of them a request for a load balancer meets is not known.
fn plain(mut world: World) -> World {
    let is_wide = |host: &str| host.starts_with('*');
    let classes: BTreeSet<&str> = world.ingresses.iter().map(|one| one.class).collect();
    for ingress in world.ingresses.iter_mut().filter(|_| classes.len() > 1) {
        ingress.default = None;
        ingress.rules.retain(|rule| rule.host.is_some());
    }
    for rule in world.ingresses.iter_mut().flat_map(|one| &mut one.rules).filter(|rule| rule.host.is_none_or(is_wide)) {
        let first = rule.http.as_ref().and_then(|paths| paths.values().next().copied());
        rule.http = first.map(|service| BTreeMap::from([("/", service)]));
    }
    let wide = |route: &&mut Route| route.hostnames.is_empty() || route.hostnames.iter().any(|host| is_wide(host));
    for route in world.routes.iter_mut().filter(wide) {
        let first = route.paths.values().next().copied();
        route.paths = first.map(|service| BTreeMap::from([("/", service)])).unwrap_or_default();
    }
    world
}

/// Whether some request for `name` reaches the workload.
fn reaches(world: &World, name: &str) -> bool {
    let answers = |path: &&str| {
        ["one", "two"].iter().any(|class| by_ingress(world, class, name, path).contains(&OURS))
            || by_gateway(world, name, path).contains(&OURS)
    };
    PATHS.iter().any(answers)
}

/// The world as it is read from a cluster.
fn facts(world: &World) -> SiteFacts {
    let owned = |text: &&'static str| (*text).to_owned();
    let reach = |paths: &BTreeMap<&str, &str>| if paths.contains_key("/") { Reach::Whole } else { Reach::Part };
    let rule = |rule: &Rule| IngressRule {
        host: rule.host.as_ref().map(owned),
        backends: rule.http.iter().flat_map(|paths| paths.values()).map(owned).collect(),
        reach: rule.http.as_ref().map_or(Reach::Default, reach),
        ..IngressRule::default()
    };
    let ingress = |(number, one): (usize, &Ingress)| IngressFact {
        namespace: one.namespace.to_owned(),
        name: format!("i{number}"),
        class: Some(one.class.to_owned()),
        rules: one.rules.iter().map(rule).collect(),
        default_backend: one.default.as_ref().map(owned),
        load_balancers: vec![format!("{}.lb.net", one.class)],
        ..IngressFact::default()
    };
    let route = |(number, one): (usize, &Route)| RouteFact {
        namespace: one.namespace.to_owned(),
        name: format!("r{number}"),
        hostnames: one.hostnames.iter().map(owned).collect(),
        backends: one.paths.values().map(|(space, name)| ((*space).to_owned(), (*name).to_owned())).collect(),
        whole: one.paths.contains_key("/"),
        parents: vec![ParentFact {
            namespace: GATEWAY_NAMESPACE.to_owned(),
            name: "edge".to_owned(),
            listener: one.section.as_ref().map(owned),
            accepted: one.accepted,
            ..ParentFact::default()
        }],
        ..RouteFact::default()
    };
    let listener = |(name, host, same): &Listener| ListenerFact {
        name: (*name).to_owned(),
        port: 80,
        hostname: host.as_ref().map(owned),
        same_namespace: *same,
        ..ListenerFact::default()
    };
    let selector = |(_, name): &Service| BTreeMap::from([("app".to_owned(), (*name).to_owned())]);
    let service = |one: &Service| ServiceFact {
        namespace: one.0.to_owned(),
        name: one.1.to_owned(),
        selector: selector(one),
        ..ServiceFact::default()
    };
    let grant = GrantFact {
        namespace: "shop".to_owned(),
        from: vec![(RouteKind::Http, "blog".to_owned())],
        services: Some(BTreeSet::from(["web".to_owned()])),
    };
    SiteFacts {
        services: SERVICES.iter().map(service).collect(),
        ingresses: world.ingresses.iter().enumerate().map(ingress).collect(),
        routes: world.routes.iter().enumerate().map(route).collect(),
        gateways: vec![GatewayFact {
            namespace: GATEWAY_NAMESPACE.to_owned(),
            name: "edge".to_owned(),
            listeners: world.listeners.iter().map(listener).collect(),
            addresses: vec!["gateway.lb.net".to_owned()],
        }],
        grants: world.granted.then_some(grant).into_iter().collect(),
    }
}

/// The site of Deployment `shop/other-name`, whose pods are `app=web`: no Ingress has its name.
fn found(world: &World) -> Site {
    let pods = PodLabels {
        of: &WorkloadId::deployment("shop", "other-name"),
        template: &BTreeMap::from([("app".into(), "web".into())]),
    };
    site(pods, None, &facts(world))
}

/// Whether the site has `name` among its hosts.
fn serves(site: &Site, name: &str) -> bool {
    let name: Host = name.parse().unwrap();
    let covers =
        |host: &Host| *host == name || (host.covers(&name) && !site.except.iter().any(|except| except.covers(&name)));
    site.hosts.keys().any(covers)
}

fn exactly(world: &World) -> Result<(), TestCaseError> {
    let site = found(world);
    for name in NAMES {
        prop_assert_eq!(serves(&site, name), reaches(world, name), "{} in {:#?} of {:#?}", name, site, world);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn behind_ingresses_a_host_is_found_exactly_if_a_request_for_it_reaches_the_workload(world in ingress_world()) {
        exactly(&plain(world))?;
    }

    #[test]
    fn behind_a_gateway_a_host_is_found_exactly_if_a_request_for_it_reaches_the_workload(world in gateway_world()) {
        exactly(&plain(world))?;
    }

    // Where several doors lead in, or paths are split, a name that is taken from us may still be found: too much, never too
    // little.
    #[test]
    fn no_host_is_missed(ingresses in ingress_world(), gateways in gateway_world()) {
        for world in [World { ingresses: ingresses.ingresses.clone(), ..gateways.clone() }, ingresses, gateways] {
            let site = found(&world);
            for name in NAMES {
                prop_assert!(serves(&site, name) || !reaches(&world, name), "{} in {:#?} of {:#?}", name, site, world);
            }
        }
    }

    #[test]
    fn a_load_balancer_is_found_exactly_if_it_sends_requests_without_host_here_and_to_no_other_namespace(
        world in ingress_world(),
    ) {
        let site = found(&world);
        for class in ["one", "two"] {
            let served = world.ingresses.iter().filter(|one| one.class == class);
            let answering: BTreeSet<Service> =
                served.flat_map(|one| PATHS.iter().flat_map(move |path| without_host(one, path))).collect();
            let ours = answering.contains(&OURS) && answering.iter().all(|(space, _)| *space == OURS.0);
            prop_assert_eq!(site.origins.contains(&format!("{class}.lb.net")), ours, "{} of {:#?}", class, site);
        }
    }
}
