//! The site of a workload, over generated clusters: laws that hold whatever leads where. For that, see `site_requests`.

use std::collections::{BTreeMap, BTreeSet};

use kernel::id::WorkloadId;
use kernel::names::host::Host;
use kinds::pods::PodLabels;
use proptest::prelude::*;
use purge::site::{
    GatewayFact, GrantFact, IngressFact, IngressRule, ListenerFact, ParentFact, Reach, RouteFact, RouteKind,
    ServiceFact, Site, SiteFacts, Source, site,
};

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
            ServiceFact { namespace, name, selector, external_name: None, annotations }
        },
    )
}

fn ingress() -> impl Strategy<Value = IngressFact> {
    let reach = prop::sample::select(vec![Reach::Whole, Reach::Part, Reach::Default]);
    let rule = (prop::option::of(host()), prop::collection::vec(name(), 0..3), reach)
        .prop_map(|(host, backends, reach)| IngressRule { host, backends, reach, ..IngressRule::default() });
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
            expressions: false,
            annotations,
        },
    )
}

fn route() -> impl Strategy<Value = RouteFact> {
    let listener = prop::option::of(word(&["http", "https"]));
    let parent = (word(&["infra"]), word(&["edge", "inner"]), listener, prop::bool::weighted(0.8)).prop_map(
        |(namespace, name, listener, accepted)| ParentFact {
            namespace,
            name,
            listener,
            accepted,
            ..ParentFact::default()
        },
    );
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
        ..ListenerFact::default()
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
    let grant =
        GrantFact { namespace: NAMESPACE.to_owned(), from: vec![(RouteKind::Http, "blog".to_owned())], services: None };
    let grants = prop::collection::vec(Just(grant), 0..2);
    (services, ingresses, prop::collection::vec(route(), 0..3), gateways, grants).prop_map(
        |(services, ingresses, routes, gateways, grants)| SiteFacts { services, ingresses, routes, gateways, grants },
    )
}

/// The site of Deployment `shop/web`, whose pods are `app=web`.
fn web(facts: &SiteFacts) -> Site {
    let pods = PodLabels {
        of: &WorkloadId::deployment(NAMESPACE, "web"),
        template: &BTreeMap::from([("app".into(), "web".into())]),
    };
    site(pods, None, facts)
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

    // One object never takes a host from another workload's own by what is wrong with it: what all say together is what each
    // says alone, but for what the others take. That only ever takes away.
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
        for (host, sources) in &together.hosts {
            prop_assert!(hosts.get(host).is_some_and(|alone| sources.is_subset(alone)), "{}", host);
        }
        prop_assert!(together.origins.is_subset(&origins));
        // Of a load balancer that is shared, its name is not read.
        let mut wrong = rejected.iter().filter(|(place, _)| !place.starts_with("load balancer"));
        prop_assert!(wrong.all(|one| together.rejected.contains(one)));
        // What leads elsewhere is beneath something wide, and never a host of the workload.
        let wide = |name: &Host| together.hosts.keys().any(|host| host.covers(name)) || !together.origins.is_empty();
        prop_assert!(together.except.iter().all(|name| wide(name) && !together.hosts.contains_key(name)));
    }

    #[test]
    fn a_workload_no_service_selects_has_at_most_the_ingress_of_its_own_name(facts in facts()) {
        let nothing = SiteFacts { services: Vec::new(), ..facts };
        let own = nothing.ingresses.iter().filter(|one| one.name == "web" && one.namespace == NAMESPACE);
        let own: Vec<IngressFact> = own.cloned().collect();
        let found = web(&nothing);
        prop_assert!(!own.is_empty() || found.is_empty());
        let alone = web(&SiteFacts { ingresses: own, ..SiteFacts::default() });
        prop_assert_eq!(alone.hosts, found.hosts);
        // A load balancer is lost to an Ingress of another namespace that takes every name on it, and never won by one.
        prop_assert!(found.origins.is_subset(&alone.origins));
    }

    #[test]
    fn what_the_owner_wrote_down_is_all_there_is(facts in facts(), texts in hosts()) {
        let tuned: Vec<Host> = texts.iter().filter_map(|text| Host::parse(text).ok()).collect();
        let pods = PodLabels { of: &WorkloadId::deployment(NAMESPACE, "web"), template: &BTreeMap::new() };
        let site = site(pods, Some(&tuned), &facts);
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
        // What others take aside: they give nothing.
        let (near, all) = (web(&local), web(&facts));
        prop_assert!(all.origins.is_subset(&near.origins));
        prop_assert!(all.hosts.keys().all(|host| near.hosts.contains_key(host)));
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
