//! The site of a workload, over generated clusters.

use std::collections::{BTreeMap, BTreeSet};

use allclear::domain::host::Host;
use allclear::domain::site::{
    GatewayFact, IngressFact, IngressRule, ListenerFact, ParentFact, RouteFact, ServiceFact, Site, SiteFacts, Source,
    site,
};
use proptest::prelude::*;

const NAMESPACE: &str = "shop";

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

fn namespace() -> impl Strategy<Value = String> {
    word(&[NAMESPACE, NAMESPACE, NAMESPACE, "blog"])
}

/// Names shared by workloads, Services and Ingresses, so that they meet.
fn name() -> impl Strategy<Value = String> {
    word(&["web", "api", "jobs"])
}

/// Hosts as written, some of them not hosts at all.
fn host() -> impl Strategy<Value = String> {
    word(&["a.io", "b.io", "www.a.io", "www.b.io", "*.a.io", "*.b.io", "A.io.", "", "10.0.0.1", "*"])
}

fn hosts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(host(), 0..3)
}

fn annotations() -> impl Strategy<Value = BTreeMap<String, String>> {
    let key =
        word(&["external-dns.alpha.kubernetes.io/hostname", "external-dns.kubernetes.io/hostname", "other/hostname"]);
    let value = hosts().prop_map(|hosts| hosts.join(","));
    prop_oneof![2 => Just(BTreeMap::new()), 1 => prop::collection::btree_map(key, value, 0..3)]
}

fn service() -> impl Strategy<Value = ServiceFact> {
    (namespace(), name(), prop::option::weighted(0.9, word(&["web", "web", "api"])), annotations()).prop_map(
        |(namespace, name, app, annotations)| {
            let selector = app.into_iter().map(|app| ("app".to_owned(), app)).collect();
            ServiceFact { namespace, name, selector, annotations }
        },
    )
}

fn ingress() -> impl Strategy<Value = IngressFact> {
    let rule = (prop::option::of(host()), prop::collection::vec(name(), 0..3))
        .prop_map(|(host, backends)| IngressRule { host, backends });
    let rules = prop::collection::vec(rule, 0..3);
    (namespace(), name(), rules, prop::option::weighted(0.2, name()), hosts(), hosts(), annotations()).prop_map(
        |(namespace, name, rules, default_backend, tls_hosts, load_balancers, annotations)| IngressFact {
            namespace,
            name,
            class: None,
            rules,
            default_backend,
            tls_hosts,
            load_balancers,
            annotations,
        },
    )
}

fn route() -> impl Strategy<Value = RouteFact> {
    let parent = (word(&["infra"]), word(&["edge", "inner"]), prop::option::of(word(&["http", "https"])))
        .prop_map(|(namespace, name, listener)| ParentFact { namespace, name, listener, port: None });
    let backends = prop::collection::vec((namespace(), name()), 1..4);
    let hostnames = prop_oneof![1 => hosts(), 2 => Just(Vec::new())];
    (namespace(), name(), hostnames, backends, prop::collection::vec(parent, 0..3), annotations()).prop_map(
        |(namespace, name, hostnames, backends, parents, annotations)| RouteFact {
            namespace,
            name,
            hostnames,
            backends,
            parents,
            annotations,
            ..RouteFact::default()
        },
    )
}

fn gateway() -> impl Strategy<Value = GatewayFact> {
    let listener = (word(&["http", "https"]), prop::option::of(host())).prop_map(|(name, hostname)| ListenerFact {
        name,
        port: 80,
        hostname,
    });
    (word(&["infra"]), word(&["edge", "inner"]), prop::collection::vec(listener, 0..3), hosts())
        .prop_map(|(namespace, name, listeners, addresses)| GatewayFact { namespace, name, listeners, addresses })
}

fn facts() -> impl Strategy<Value = SiteFacts> {
    let services = prop::collection::vec(service(), 0..6);
    // One Gateway of each name, as in a cluster.
    let gateways = prop::collection::vec(gateway(), 0..4).prop_map(|gateways| {
        let by_name: BTreeMap<_, _> =
            gateways.into_iter().map(|one| ((one.namespace.clone(), one.name.clone()), one)).collect();
        by_name.into_values().collect()
    });
    let ingresses = prop::collection::vec(ingress(), 0..4);
    (services, ingresses, prop::collection::vec(route(), 0..3), gateways)
        .prop_map(|(services, ingresses, routes, gateways)| SiteFacts { services, ingresses, routes, gateways })
}

/// The site of Deployment `shop/web`, whose pods are `app=web`.
fn web(facts: &SiteFacts) -> Site {
    site("web", NAMESPACE, &BTreeMap::from([("app".into(), "web".into())]), None, facts)
}

/// Names of the Services that select its pods.
fn services(facts: &SiteFacts) -> BTreeSet<&str> {
    let selecting = facts.services.iter().filter(|one| one.namespace == NAMESPACE);
    selecting
        .filter(|one| one.selector.get("app").is_some_and(|app| app == "web"))
        .map(|one| one.name.as_str())
        .collect()
}

fn without_paths(facts: &SiteFacts) -> SiteFacts {
    SiteFacts { ingresses: Vec::new(), routes: Vec::new(), ..facts.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_order_of_facts_does_not_matter(facts in facts()) {
        let mut reversed = facts.clone();
        reversed.services.reverse();
        reversed.ingresses.reverse();
        reversed.routes.reverse();
        reversed.gateways.reverse();
        prop_assert_eq!(web(&facts), web(&reversed));
    }

    // One object never disturbs another: what all say together is what each says alone, good hosts and bad.
    #[test]
    fn each_object_speaks_for_itself(facts in facts()) {
        let mut hosts = BTreeMap::<Host, BTreeSet<Source>>::new();
        let mut origins = BTreeSet::new();
        let mut rejected = BTreeSet::new();
        let base = without_paths(&facts);
        let ingresses = facts.ingresses.iter().map(|one| SiteFacts { ingresses: vec![one.clone()], ..base.clone() });
        let routes = facts.routes.iter().map(|one| SiteFacts { routes: vec![one.clone()], ..base.clone() });
        let alone = ingresses.chain(routes).chain([base.clone()]);
        for one in alone.map(|facts| web(&facts)) {
            for (host, sources) in one.hosts {
                hosts.entry(host).or_default().extend(sources);
            }
            origins.extend(one.origins);
            rejected.extend(one.rejected);
        }
        let together = web(&facts);
        prop_assert_eq!(together.hosts, hosts);
        prop_assert_eq!(together.origins, origins);
        prop_assert_eq!(together.rejected, rejected.into_iter().collect::<Vec<_>>());
    }

    // Method: the rule written out once more, for rules of Ingresses and host names of routes.
    #[test]
    fn a_host_is_found_exactly_when_something_leads_from_it_to_the_workload(facts in facts()) {
        let services = services(&facts);
        let mut expected = BTreeSet::new();
        for ingress in facts.ingresses.iter().filter(|one| one.namespace == NAMESPACE) {
            for rule in &ingress.rules {
                if rule.backends.iter().any(|one| services.contains(one.as_str())) {
                    expected.extend(rule.host.as_deref().and_then(|text| Host::parse(text).ok()));
                }
            }
        }
        for route in &facts.routes {
            if route.backends.iter().any(|(space, one)| space == NAMESPACE && services.contains(one.as_str())) {
                let hosts = route.hostnames.iter().filter_map(|text| Host::parse(text).ok());
                expected.extend(hosts.map(Host::at_any_depth));
            }
        }
        let by_rule = |source: &Source| matches!(source, Source::IngressRule(_) | Source::Route(..));
        let found = web(&facts).hosts.into_iter().filter(|(_, sources)| sources.iter().any(by_rule));
        let found: BTreeSet<Host> = found.map(|(host, _)| host).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_workload_no_service_selects_has_at_most_the_ingress_of_its_own_name(facts in facts()) {
        let nothing = SiteFacts { services: Vec::new(), ..facts };
        let own = nothing.ingresses.iter().filter(|one| one.name == "web" && one.namespace == NAMESPACE);
        let own: Vec<IngressFact> = own.cloned().collect();
        let found = web(&nothing);
        prop_assert!(!own.is_empty() || found.is_empty());
        prop_assert_eq!(web(&SiteFacts { ingresses: own, ..SiteFacts::default() }), found);
    }

    #[test]
    fn what_the_owner_wrote_down_is_all_there_is(facts in facts(), texts in hosts()) {
        let tuned: Vec<Host> = texts.iter().filter_map(|text| Host::parse(text).ok()).collect();
        let site = site("web", NAMESPACE, &BTreeMap::from([("app".into(), "web".into())]), Some(&tuned), &facts);
        let expected: BTreeSet<Host> = tuned.into_iter().map(Host::at_any_depth).collect();
        prop_assert_eq!(site.hosts.keys().cloned().collect::<BTreeSet<_>>(), expected);
        prop_assert!(site.origins.is_empty() && site.rejected.is_empty());
        prop_assert!(site.hosts.values().all(|sources| sources.iter().eq([&Source::Annotation])));
    }

    #[test]
    fn other_namespaces_count_only_where_a_route_leads_over(facts in facts()) {
        let mut local = facts.clone();
        local.services.retain(|one| one.namespace == NAMESPACE);
        local.ingresses.retain(|one| one.namespace == NAMESPACE);
        prop_assert_eq!(web(&local), web(&facts));
    }

    #[test]
    fn a_site_survives_storage(facts in facts()) {
        let found = web(&facts);
        prop_assert_eq!(serde_json::from_str::<Site>(&serde_json::to_string(&found).unwrap()).unwrap(), found);
    }
}

/// Goal: the properties above are about something. Method: generated clusters must often have hosts of every source.
#[test]
fn generated_clusters_reach_every_source() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<&str, usize>::new();
    for _ in 0..1_000 {
        let found = web(&facts().new_tree(&mut runner).unwrap().current());
        for source in found.hosts.values().flatten() {
            let name = match source {
                Source::Annotation => "annotation",
                Source::IngressRule(_) => "rule",
                Source::IngressTls(_) => "tls",
                Source::OwnIngress(_) => "own",
                Source::Route(..) => "route",
                Source::Listener { .. } => "listener",
                Source::ExternalDns(_) => "external-dns",
            };
            *seen.entry(name).or_default() += 1;
        }
        *seen.entry("origin").or_default() += found.origins.len();
        *seen.entry("rejected").or_default() += found.rejected.len();
    }
    for name in ["rule", "tls", "own", "route", "listener", "external-dns", "origin", "rejected"] {
        assert!(seen.get(name).is_some_and(|count| *count >= 10), "{name}: {seen:?}");
    }
}
