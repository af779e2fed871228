//! The rules by example. `tests/property/site.rs` sends requests through generated clusters instead.

use super::*;
use kernel::id::Kind;
use kernel::names::selector::Labels;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A Service of namespace `shop` that selects `app=<app>`.
fn service(name: &str, app: &str) -> ServiceFact {
    let selector = labels(&[("app", app)]);
    ServiceFact { namespace: "shop".into(), name: name.into(), selector, ..Default::default() }
}

/// An Ingress of namespace `shop`; each rule leads a host to one Service.
fn ingress(name: &str, rules: &[(&str, &str)]) -> IngressFact {
    let rule = |(host, backend): &(&str, &str)| IngressRule {
        host: Some((*host).into()),
        backends: owned(&[backend]),
        ..IngressRule::default()
    };
    let rules = rules.iter().map(rule).collect();
    IngressFact { namespace: "shop".into(), name: name.into(), rules, ..Default::default() }
}

fn route(name: &str, hostnames: &[&str]) -> RouteFact {
    RouteFact {
        namespace: "shop".into(),
        name: name.into(),
        hostnames: owned(hostnames),
        backends: vec![("shop".into(), "web-svc".into())],
        whole: true,
        parents: vec![ParentFact {
            namespace: "infra".into(),
            name: "edge".into(),
            accepted: true,
            ..ParentFact::default()
        }],
        ..Default::default()
    }
}

/// The site of Deployment `shop/web`, whose pods are `app=web` and which Service `web-svc` selects.
fn of(mut facts: SiteFacts) -> Site {
    facts.services.extend([service("web-svc", "web"), service("api-svc", "api")]);
    let (of, template) = (WorkloadId::deployment("shop", "web"), labels(&[("app", "web"), ("pod-template-hash", "1")]));
    site(PodLabels { of: &of, template: &template }, None, &facts)
}

fn of_ingress(ingress: IngressFact) -> Site {
    of(SiteFacts { ingresses: vec![ingress], ..Default::default() })
}

fn of_route(route: RouteFact, gateway: GatewayFact) -> Site {
    of(SiteFacts { routes: vec![route], gateways: vec![gateway], ..Default::default() })
}

fn hosts(site: &Site) -> Vec<&str> {
    site.hosts.keys().map(Host::as_str).collect()
}

fn words(site: &Site) -> Vec<String> {
    let lines = site.hosts.iter().flat_map(|(host, why)| why.iter().map(move |source| format!("{host}: {source}")));
    lines.collect()
}

#[test]
fn an_ingress_of_another_name_is_found_through_the_service() {
    let site = of_ingress(ingress("public", &[("www.example.com", "web-svc")]));
    assert_eq!(words(&site), ["www.example.com: Ingress shop/public rule"]);
}

#[test]
fn all_hosts_of_a_workload_are_found_and_none_of_its_neighbours() {
    let rules = [("b.example.com", "web-svc"), ("a.example.com", "web-svc"), ("api.example.com", "api-svc")];
    assert_eq!(hosts(&of_ingress(ingress("shared", &rules))), ["a.example.com", "b.example.com"]);
    // The name of an Ingress that can be traced says nothing more.
    assert_eq!(hosts(&of_ingress(ingress("web", &rules))), ["a.example.com", "b.example.com"]);
}

#[test]
fn the_ingress_of_the_workloads_own_name_counts_when_nothing_leads_to_its_services() {
    let site = of_ingress(ingress("web", &[("www.example.com", "external")]));
    assert_eq!(words(&site), ["www.example.com: Ingress shop/web of the workload's own name"]);
    assert!(of_ingress(ingress("other", &[("www.example.com", "external")])).is_empty());
    assert!(
        of_ingress(ingress("web", &[("www.example.com", "api-svc")])).is_empty(),
        "it leads to pods of another one"
    );
    let elsewhere = IngressFact { namespace: "blog".into(), ..ingress("web", &[("www.example.com", "web-svc")]) };
    assert!(of_ingress(elsewhere).is_empty());
}

#[test]
fn an_ingress_with_only_a_default_backend_gives_its_load_balancer_as_origin() {
    let only_default = IngressFact {
        default_backend: Some("web-svc".into()),
        load_balancers: owned(&["K8S-1.elb.amazonaws.com"]),
        ..ingress("public", &[])
    };
    let site = of_ingress(only_default.clone());
    assert!(site.hosts.is_empty());
    assert_eq!(site.origins, BTreeSet::from(["k8s-1.elb.amazonaws.com".to_owned()]));
    let rule = IngressRule { host: Some(String::new()), backends: owned(&["web-svc"]), ..IngressRule::default() };
    let hostless = IngressFact { default_backend: None, rules: vec![rule], ..only_default.clone() };
    assert_eq!(of_ingress(hostless), site);
    let with_host = IngressFact { tls_hosts: owned(&["www.example.com"]), ..only_default };
    let site = of_ingress(with_host);
    assert_eq!(words(&site), ["www.example.com: Ingress shop/public TLS"]);
    assert_eq!(site.origins.len(), 1, "what no rule takes may be asked by any name");
}

#[test]
fn a_certificate_gives_hosts_only_where_they_lead_here() {
    let tls_hosts = owned(&["www.example.com", "shop.example.com", "*.example.com"]);
    let rules = [("www.example.com", "web-svc")];
    let exclusive = IngressFact { tls_hosts: tls_hosts.clone(), ..ingress("public", &rules) };
    assert_eq!(
        words(&of_ingress(exclusive)),
        [
            "shop.example.com: Ingress shop/public TLS",
            "www.example.com: Ingress shop/public rule",
            "www.example.com: Ingress shop/public TLS",
        ]
    );
    let shared = IngressFact { tls_hosts, ..ingress("public", &[rules[0], ("api.example.com", "api-svc")]) };
    assert_eq!(hosts(&of_ingress(shared)), ["www.example.com"]);
}

#[test]
fn a_workload_without_ingress_is_simply_not_a_site() {
    let site = of(SiteFacts::default());
    assert!(site.is_empty() && site.rejected.is_empty());
}

#[test]
fn a_service_without_selector_leads_nowhere() {
    let manual = ServiceFact { selector: Labels::new(), ..service("manual", "web") };
    let facts = SiteFacts {
        services: vec![manual],
        ingresses: vec![ingress("public", &[("www.example.com", "manual")])],
        ..Default::default()
    };
    assert!(of(facts).is_empty());
}

#[test]
fn a_route_gives_its_host_names_at_any_depth() {
    let site = of_route(route("web", &["www.example.com", "*.shop.example.com"]), GatewayFact::default());
    assert_eq!(words(&site), ["**.shop.example.com: HTTPRoute shop/web", "www.example.com: HTTPRoute shop/web"]);
    let elsewhere = RouteFact { backends: vec![("blog".into(), "web-svc".into())], ..route("web", &["a.io"]) };
    assert!(of_route(elsewhere, GatewayFact::default()).is_empty());
}

#[test]
fn a_route_without_host_names_has_those_of_its_listeners() {
    let listener = |name: &str, port, host: Option<&str>| ListenerFact {
        name: name.into(),
        port,
        hostname: host.map(str::to_owned),
        ..ListenerFact::default()
    };
    let gateway = GatewayFact {
        namespace: "infra".into(),
        name: "edge".into(),
        listeners: vec![listener("http", 80, None), listener("https", 443, Some("*.example.com"))],
        addresses: owned(&["lb.example.net"]),
    };
    let open = RouteFact { kind: RouteKind::Grpc, ..route("web", &[]) };
    let site = of_route(open.clone(), gateway.clone());
    assert_eq!(words(&site), ["**.example.com: listener of Gateway infra/edge for GRPCRoute shop/web"]);
    assert_eq!(site.origins.len(), 1, "the other listener takes all hosts");
    let mut to_http = open.clone();
    to_http.parents[0].listener = Some("http".into());
    let site = of_route(to_http, gateway);
    assert!(site.hosts.is_empty());
    assert_eq!(site.origins, BTreeSet::from(["lb.example.net".to_owned()]));
    let site = of_route(open, GatewayFact::default());
    assert!(site.is_empty() && site.rejected[0].1.contains("infra/edge, which could not be read"));
}

#[test]
fn external_dns_names_are_hosts_of_the_service_ingress_or_route_they_are_on() {
    let annotation = |host: &str| labels(&[("external-dns.alpha.kubernetes.io/hostname", host)]);
    let facts = SiteFacts {
        services: vec![ServiceFact { annotations: annotation("s.io, t.io."), ..service("web-lb", "web") }],
        ingresses: vec![IngressFact {
            annotations: labels(&[("external-dns.kubernetes.io/hostname", "*.i.io")]),
            ..ingress("public", &[("www.i.io", "web-svc")])
        }],
        routes: vec![RouteFact { annotations: annotation("r.io"), ..route("web", &["www.r.io"]) }],
        ..Default::default()
    };
    let site = of(facts);
    assert_eq!(hosts(&site), ["**.i.io", "r.io", "s.io", "t.io", "www.i.io", "www.r.io"]);
    assert!(words(&site).contains(&"s.io: external-dns annotation on Service shop/web-lb".to_owned()));
}

#[test]
fn a_service_of_one_pod_of_a_stateful_set_leads_to_it() {
    let first = ("statefulset.kubernetes.io/pod-name", "db-0");
    let mut facts =
        SiteFacts { ingresses: vec![ingress("public", &[("www.example.com", "first")])], ..SiteFacts::default() };
    facts.services = vec![ServiceFact { selector: labels(&[first]), ..service("first", "") }];
    for (name, found) in [("db", vec!["www.example.com"]), ("cache", vec![])] {
        let pods =
            PodLabels { of: &WorkloadId::new(Kind::StatefulSet, "shop", name), template: &labels(&[("app", name)]) };
        assert_eq!(hosts(&site(pods, None, &facts)), found, "{name}");
    }
}

#[test]
fn an_annotation_on_the_workload_overrides_all() {
    let facts = SiteFacts { ingresses: vec![ingress("web", &[("www.example.com", "x")])], ..Default::default() };
    let tuned: Vec<Host> = vec!["shop.example.com".parse().unwrap(), "*.example.net".parse().unwrap()];
    let pods = PodLabels { of: &WorkloadId::deployment("shop", "web"), template: &Labels::new() };
    let site = site(pods, Some(&tuned), &facts);
    assert_eq!(
        words(&site),
        ["**.example.net: annotation on the workload", "shop.example.com: annotation on the workload"]
    );
}

#[test]
fn a_bad_host_is_rejected_with_its_place_and_costs_nothing_else() {
    let rules = [("10.0.0.1", "web-svc"), ("www.example.com", "web-svc"), ("bad host", "api-svc")];
    let site = of_ingress(ingress("public", &rules));
    assert_eq!(hosts(&site), ["www.example.com"]);
    assert_eq!(site.rejected.len(), 1);
    assert_eq!(site.rejected[0].0, "Ingress shop/public rule");
    assert!(site.rejected[0].1.contains("IP address"));
}

#[test]
fn a_site_is_bounded_and_says_so() {
    let many: Vec<String> = (0..HOSTS_MAX + 5).map(|number| format!("h{number}.example.com")).collect();
    let rules: Vec<(&str, &str)> = many.iter().map(|host| (host.as_str(), "web-svc")).collect();
    let site = of_ingress(ingress("public", &rules));
    assert_eq!(site.hosts.len(), HOSTS_MAX);
    assert!(site.rejected[0].1.contains("1005 hosts"));
}

/// A rule for a host that leads to one Service, by all paths or by some.
fn rule(host: Option<&str>, backend: &str, reach: Reach) -> IngressRule {
    IngressRule { host: host.map(str::to_owned), backends: owned(&[backend]), reach, ..IngressRule::default() }
}

fn with_rules(name: &str, rules: Vec<IngressRule>) -> IngressFact {
    IngressFact { rules, load_balancers: owned(&["LB.example.net"]), ..ingress(name, &[]) }
}

/// The same object in another namespace, of whose Services nothing is known.
fn of_others(ingress: IngressFact) -> IngressFact {
    IngressFact { namespace: "blog".into(), name: format!("blog-{}", ingress.name), ..ingress }
}

fn of_ingresses(ingresses: Vec<IngressFact>) -> Site {
    of(SiteFacts { ingresses, ..Default::default() })
}

fn except(site: &Site) -> Vec<&str> {
    site.except.iter().map(Host::as_str).collect()
}

fn edge(listeners: &[Option<&str>]) -> GatewayFact {
    let listener = |(number, host): (usize, &Option<&str>)| ListenerFact {
        name: format!("l{number}"),
        port: 443,
        hostname: host.map(str::to_owned),
        ..ListenerFact::default()
    };
    GatewayFact {
        namespace: "infra".into(),
        name: "edge".into(),
        listeners: listeners.iter().enumerate().map(listener).collect(),
        addresses: owned(&["gw.example.net"]),
    }
}

#[test]
fn a_rule_without_http_sends_its_host_to_the_default_backend() {
    let unwritten = IngressRule { host: Some("www.example.com".into()), reach: Reach::Default, ..Default::default() };
    let to = |backend: &str| IngressFact {
        default_backend: Some(backend.into()),
        rules: vec![unwritten.clone(), rule(Some("api.example.com"), "api-svc", Reach::Whole)],
        ..ingress("public", &[])
    };
    assert_eq!(hosts(&of_ingress(to("web-svc"))), ["www.example.com"]);
    assert!(hosts(&of_ingress(to("api-svc"))).is_empty());
}

#[test]
fn a_rule_without_host_takes_the_load_balancer_beside_the_host_rule_of_another_service() {
    let beside =
        |reach| with_rules("public", vec![rule(Some("a.io"), "api-svc", reach), rule(None, "web-svc", Reach::Whole)]);
    let site = of_ingress(beside(Reach::Whole));
    assert_eq!(site.origins, BTreeSet::from(["lb.example.net".to_owned()]));
    assert_eq!((hosts(&site), except(&site)), (vec![], vec!["a.io"]), "the other rule takes all of a.io");
    assert_eq!(hosts(&of_ingress(beside(Reach::Part))), ["a.io"], "what the other rule leaves of a.io leads here");
}

#[test]
fn a_wildcard_leaves_out_what_a_rule_of_its_class_takes_exactly() {
    let wild = with_rules("public", vec![rule(Some("*.example.com"), "web-svc", Reach::Whole)]);
    let www = |reach| of_others(with_rules("site", vec![rule(Some("www.example.com"), "cms", reach)]));
    let site = of_ingresses(vec![wild.clone(), www(Reach::Whole)]);
    assert_eq!((hosts(&site), except(&site)), (vec!["*.example.com"], vec!["www.example.com"]));
    assert!(of_ingresses(vec![wild.clone(), www(Reach::Part)]).except.is_empty(), "other paths may still lead here");
    let other_class = IngressFact { class: Some("internal".into()), ..www(Reach::Whole) };
    assert!(of_ingresses(vec![wild.clone(), other_class]).except.is_empty(), "another controller serves other people");
    let both = with_rules("more", vec![rule(Some("www.example.com"), "web-svc", Reach::Part)]);
    let site = of_ingresses(vec![wild, www(Reach::Whole), both]);
    assert_eq!((hosts(&site), except(&site)), (vec!["*.example.com", "www.example.com"], vec![]));
}

#[test]
fn a_load_balancer_that_other_namespaces_get_too_is_nobodys() {
    let ours = with_rules("public", vec![rule(None, "web-svc", Reach::Part), rule(None, "api-svc", Reach::Whole)]);
    assert_eq!(of_ingress(ours.clone()).origins.len(), 1, "Services of one namespace are one site, path by path");
    let theirs = of_others(with_rules("site", vec![rule(None, "cms", Reach::Part)]));
    let site = of_ingresses(vec![ours.clone(), theirs.clone()]);
    assert!(site.is_empty());
    assert_eq!(site.rejected[0].0, "load balancer lb.example.net of Ingress shop/public");
    assert!(site.rejected[0].1.contains("Ingress blog/blog-site of another namespace"), "{:?}", site.rejected);
    let elsewhere = IngressFact { load_balancers: owned(&["other.example.net"]), ..theirs };
    assert_eq!(of_ingresses(vec![ours.clone(), elsewhere]).origins.len(), 1);
    // An Ingress with hosts there takes them, and leaves us the rest.
    let hosted = of_others(with_rules("site", vec![rule(Some("blog.example.com"), "cms", Reach::Whole)]));
    let site = of_ingresses(vec![ours, hosted]);
    assert_eq!((site.origins.len(), except(&site)), (1, vec!["blog.example.com"]));
}

#[test]
fn a_route_serves_what_its_listeners_have_too() {
    let many = route("web", &["www.example.com", "www.example.net", "*.example.com"]);
    let site = of_route(many.clone(), edge(&[Some("*.example.com"), Some("b.a.example.com")]));
    assert_eq!(hosts(&site), ["**.example.com", "b.a.example.com", "www.example.com"]);
    let unheard =
        ("HTTPRoute shop/web".to_owned(), "no listener of Gateway infra/edge takes www.example.net".to_owned());
    assert_eq!(site.rejected, [unheard]);
    let mut to_one = many;
    to_one.parents[0].listener = Some("l1".into());
    assert_eq!(hosts(&of_route(to_one, edge(&[None, Some("b.a.example.com")]))), ["b.a.example.com"]);
    let closed = GatewayFact {
        listeners: vec![ListenerFact { same_namespace: true, ..edge(&[None]).listeners[0].clone() }],
        ..edge(&[])
    };
    assert!(of_route(route("web", &["www.example.com"]), closed).is_empty(), "it takes routes of its namespace only");
}

#[test]
fn a_route_counts_where_it_was_accepted_and_where_it_may_lead() {
    let mut refused = route("web", &["www.example.com"]);
    refused.parents[0].accepted = false;
    let site = of_route(refused, edge(&[None]));
    assert!(site.is_empty() && site.rejected[0].1.starts_with("Gateway infra/edge has not accepted it"), "{site:?}");

    let from_infra = RouteFact { namespace: "infra".into(), ..route("web", &["www.example.com"]) };
    let granted = |grants: Vec<GrantFact>| {
        of(SiteFacts { routes: vec![from_infra.clone()], gateways: vec![edge(&[None])], grants, ..Default::default() })
    };
    let grant = |services: Option<&str>| GrantFact {
        namespace: "shop".into(),
        from: vec![(RouteKind::Http, "infra".into())],
        services: services.map(|name| BTreeSet::from([name.to_owned()])),
    };
    assert_eq!(granted(vec![]).rejected[0].1, "no ReferenceGrant in shop allows it to lead there");
    assert!(granted(vec![grant(Some("api-svc"))]).is_empty());
    assert_eq!(hosts(&granted(vec![grant(Some("web-svc"))])), ["www.example.com"]);
    assert_eq!(hosts(&granted(vec![grant(None)])), ["www.example.com"]);
    let of_grpc = GrantFact { from: vec![(RouteKind::Grpc, "infra".into())], ..grant(None) };
    assert!(granted(vec![of_grpc]).is_empty());
}

#[test]
fn a_route_leaves_out_what_a_more_specific_route_of_its_listener_takes() {
    let wild = route("web", &["*.example.com"]);
    let other = RouteFact { backends: vec![("shop".into(), "api-svc".into())], ..route("api", &["www.example.com"]) };
    let both = |other: &RouteFact| {
        let routes = vec![wild.clone(), other.clone()];
        of(SiteFacts { routes, gateways: vec![edge(&[None])], ..Default::default() })
    };
    assert_eq!(except(&both(&other)), ["www.example.com"]);
    assert!(both(&RouteFact { whole: false, ..other.clone() }).except.is_empty());
    let mut refused = other;
    refused.parents[0].accepted = false;
    assert!(both(&refused).except.is_empty());
}

/// What people really have: each must go on working.
#[test]
fn honest_set_ups_are_found() {
    let www = || rule(Some("www.example.com"), "web-svc", Reach::Whole);
    // cert-manager adds an Ingress with one exact path while it proves a host.
    let solver = with_rules("cm-acme-http-solver", vec![rule(Some("www.example.com"), "solver", Reach::Part)]);
    assert_eq!(hosts(&of_ingresses(vec![with_rules("public", vec![www()]), solver])), ["www.example.com"]);
    // A canary is a second Ingress for the same host, which takes a part of the requests that no path tells.
    let canary = with_rules("canary", vec![rule(Some("www.example.com"), "api-svc", Reach::Whole)]);
    assert_eq!(hosts(&of_ingresses(vec![with_rules("public", vec![www()]), canary])), ["www.example.com"]);
    // Mergeable Ingresses: the master has the host and no paths, the minions have the paths.
    let bare = IngressRule { host: Some("www.example.com".into()), reach: Reach::Default, ..Default::default() };
    let minion = with_rules("minion", vec![rule(Some("www.example.com"), "web-svc", Reach::Part)]);
    assert_eq!(hosts(&of_ingresses(vec![with_rules("master", vec![bare]), minion])), ["www.example.com"]);
    // An application load balancer without hosts, split by paths over two Ingresses of one group.
    let split = |name, backend| with_rules(name, vec![rule(None, backend, Reach::Part)]);
    assert_eq!(of_ingresses(vec![split("web", "web-svc"), split("api", "api-svc")]).origins.len(), 1);
    // A Gateway that may not be read, or a set of listeners: what was accepted counts as the route has it.
    let mut listener_set = route("web", &["www.example.com"]);
    listener_set.parents[0].kind = ParentKind::ListenerSet;
    assert_eq!(hosts(&of_route(listener_set, edge(&[Some("other.example.com")]))), ["www.example.com"]);
    assert_eq!(hosts(&of_route(route("web", &["www.example.com"]), GatewayFact::default())), ["www.example.com"]);
    // Two Gateways, and one has not accepted the route: the other serves it.
    let mut twice = route("web", &["www.example.com"]);
    twice.parents.push(ParentFact { name: "inner".into(), accepted: false, ..twice.parents[0].clone() });
    assert_eq!(hosts(&of_route(twice, edge(&[Some("*.example.com")]))), ["www.example.com"]);
}

#[test]
fn a_service_that_is_another_name_for_one_of_ours_is_followed_one_step_within_the_namespace() {
    let named = |name: &str, target: &str| ServiceFact {
        selector: Labels::new(),
        external_name: Some(target.to_owned()),
        ..service(name, "")
    };
    let led = |services: Vec<ServiceFact>| {
        let ingresses = vec![ingress("public", &[("www.example.com", "front")])];
        !of(SiteFacts { services, ingresses, ..Default::default() }).is_empty()
    };
    for target in ["web-svc.shop.svc.cluster.local", "web-svc.shop.svc.", "Web-Svc.shop.svc"] {
        assert!(led(vec![named("front", target)]), "{target}");
    }
    for target in ["web-svc.blog.svc.cluster.local", "api-svc.shop.svc", "web-svc", "web-svc.shop.example.com", ""] {
        assert!(!led(vec![named("front", target)]), "{target}");
    }
    assert!(!led(vec![named("front", "next.shop.svc"), named("next", "web-svc.shop.svc")]), "two steps");
}

/// What became of hosts of `shop/web`.
fn lost_of(had: &[&str], rules: &[(&str, &str)], claims: &[(&str, &str)]) -> Lost {
    let facts = SiteFacts {
        services: vec![service("web-svc", "web"), service("api-svc", "api")],
        ingresses: vec![ingress("public", rules)],
        ..Default::default()
    };
    let pods = PodLabels { of: &WorkloadId::deployment("shop", "web"), template: &labels(&[("app", "web")]) };
    let found: BTreeSet<Host> = site(pods, None, &facts).hosts.into_keys().collect();
    let had: BTreeSet<Host> = had.iter().map(|host| host.parse().unwrap()).collect();
    let claim = |(namespace, host): &(&str, &str)| RouteClaim {
        created: "2026".to_owned(),
        namespace: (*namespace).to_owned(),
        object: format!("Ingress {namespace}/other"),
        accepted: false,
        expressions: false,
        hosts: vec![(host.parse().unwrap(), Vec::new())],
    };
    let claims: Vec<RouteClaim> = claims.iter().map(claim).collect();
    lost(missing(&had, &found), pods, &facts, &claims)
}

#[test]
fn a_host_is_lost_only_while_nothing_else_serves_it() {
    let www = "www.example.com";
    let lost = |rules: &[(&str, &str)], claims: &[(&str, &str)]| {
        let lost = lost_of(&[www], rules, claims);
        (lost.hosts.len(), lost.elsewhere.into_values().collect::<Vec<_>>())
    };
    let elsewhere = |by: &str| (0, vec![by.to_owned()]);
    assert_eq!(lost(&[], &[]), (1, vec![]));
    assert_eq!(lost(&[(www, "web-svc")], &[]), (0, vec![]), "it is there");
    assert_eq!(lost(&[("*.example.com", "web-svc")], &[]), (0, vec![]), "by a wildcard");
    assert_eq!(lost(&[(www, "gone-svc")], &[]), (1, vec![]), "a backend that does not exist serves nobody");
    assert_eq!(lost(&[(www, "api-svc")], &[]), elsewhere("Ingress shop/public rule"));
    assert_eq!(lost(&[("*.example.com", "api-svc")], &[]), elsewhere("Ingress shop/public rule"));
    assert_eq!(lost(&[("api.example.com", "api-svc")], &[]), (1, vec![]));
    assert_eq!(lost(&[], &[("shop", www)]), (1, vec![]), "of our namespace, and it leads nowhere");
    assert_eq!(lost(&[], &[("blog", www)]), elsewhere("Ingress blog/other"));
    assert_eq!(lost(&[], &[("blog", "*.example.com")]), elsewhere("Ingress blog/other"));
}

#[test]
fn of_a_lost_wildcard_what_others_serve_beneath_it_is_left_out() {
    let lost = lost_of(&["*.example.com"], &[("api.example.com", "api-svc")], &[("blog", "blog.example.com")]);
    let names: Vec<String> = lost.except.iter().map(ToString::to_string).collect();
    assert_eq!((lost.hosts.len(), names), (1, vec!["api.example.com".to_owned(), "blog.example.com".to_owned()]));
}
