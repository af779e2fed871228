use super::*;
use crate::site::{GatewayFact, ListenerFact, ParentFact};
use crate::site::{IngressRule, RouteFact, RouteKind, ServiceFact, SiteFacts, site};
use kernel::id::WorkloadId;
use kernel::names::selector::Labels;

fn service(name: &str, app: &str) -> ServiceFact {
    let selector = Labels::from([("app".to_owned(), app.to_owned())]);
    ServiceFact { namespace: "shop".into(), name: name.into(), selector, ..ServiceFact::default() }
}

fn rule(host: Option<&str>, ways: &[(&str, Way)]) -> IngressRule {
    let ways: Vec<(String, Way)> = ways.iter().map(|(to, way)| ((*to).to_owned(), way.clone())).collect();
    let backends = ways.iter().map(|(to, _)| to.clone()).collect();
    IngressRule { host: host.map(str::to_owned), backends, ways, reach: Reach::Part }
}

fn ingress(name: &str, rules: Vec<IngressRule>) -> IngressFact {
    IngressFact { namespace: "shop".into(), name: name.into(), rules, ..IngressFact::default() }
}

fn prefix(path: &str) -> Way {
    Way::Prefix(path.to_owned())
}

fn facts(ingresses: Vec<IngressFact>) -> SiteFacts {
    SiteFacts { services: vec![service("web", "web"), service("api", "api")], ingresses, ..SiteFacts::default() }
}

/// What leads to the pods of `app=web`, a line for each host.
fn led(gathered: &Gathered, claims: Result<&[RouteClaim], &str>) -> Vec<String> {
    let id = WorkloadId::deployment("shop", "some-name");
    let template = Labels::from([("app".to_owned(), "web".to_owned())]);
    let pods = PodLabels { of: &id, template: &template };
    let line = |(host, part): (Host, Routed)| match part {
        Routed::Only(paths) => format!("{host}: {paths}"),
        Routed::All(why) => format!("{host} all: {why}"),
    };
    gathered.routed(pods, &site(pods, None, gathered), claims).into_iter().map(line).collect()
}

fn led_by(facts: SiteFacts) -> Vec<String> {
    led(&facts.into(), Ok(&[]))
}

#[test]
fn each_host_has_the_paths_that_its_rules_send_to_the_workload_and_no_others() {
    let a = rule(Some("a.io"), &[("web", prefix("/shop")), ("api", prefix("/api")), ("web", Way::Exact("/x".into()))]);
    let b = rule(Some("b.io"), &[("web", prefix("/blog")), ("api", prefix("/"))]);
    let more = rule(Some("a.io"), &[("web", prefix("/more"))]);
    let seen = led_by(facts(vec![ingress("one", vec![a, b]), ingress("two", vec![more])]));
    assert_eq!(seen, ["a.io: /more* /shop* /x*", "b.io: /blog*"]);
}

#[test]
fn a_wildcard_rule_counts_for_the_names_beneath_it_too() {
    let wide = rule(Some("*.a.io"), &[("web", prefix("/wide"))]);
    let named = rule(Some("x.a.io"), &[("web", prefix("/x"))]);
    let seen = led_by(facts(vec![ingress("one", vec![wide, named])]));
    assert_eq!(seen, ["*.a.io: /wide*", "x.a.io: /wide* /x*"]);
}

#[test]
fn whatever_may_send_more_makes_it_everything_and_says_why() {
    let shop = || rule(Some("a.io"), &[("web", prefix("/shop"))]);
    let only = |ingresses: Vec<IngressFact>| led_by(facts(ingresses)).remove(0);
    let default = IngressFact { default_backend: Some("web".into()), ..ingress("one", vec![shop()]) };
    assert!(only(vec![default]).contains("sends what no rule names"));
    let hostless = rule(None, &[("web", prefix("/deep"))]);
    assert!(only(vec![ingress("one", vec![shop(), hostless])]).contains("sends what no rule names"));
    let bare = IngressRule { host: Some("a.io".into()), reach: Reach::Default, ..IngressRule::default() };
    let bare = IngressFact { default_backend: Some("web".into()), ..ingress("two", vec![bare]) };
    assert!(only(vec![ingress("one", vec![shop()]), bare]).starts_with("a.io all"));
    let odd = rule(Some("a.io"), &[("web", Way::OfController)]);
    assert!(only(vec![ingress("one", vec![shop(), odd])]).contains("pathType is ImplementationSpecific"));
    let unsaid = IngressRule { backends: vec!["web".into()], ..rule(Some("a.io"), &[]) };
    assert!(only(vec![ingress("one", vec![shop(), unsaid])]).contains("does not say by which paths"));
    let mut dns = facts(vec![ingress("one", vec![shop()])]);
    let name = "external-dns.alpha.kubernetes.io/hostname".to_owned();
    dns.services[0].annotations.insert(name, "a.io".to_owned());
    assert!(led_by(dns).remove(0).contains("external-dns annotation on Service shop/web"));
}

#[test]
fn a_host_by_its_certificate_alone_is_reached_by_any_path_and_beside_a_rule_by_its_paths() {
    let shop = rule(Some("a.io"), &[("web", prefix("/shop"))]);
    let tls = IngressFact { tls_hosts: vec!["a.io".into(), "c.io".into()], ..ingress("one", vec![shop]) };
    let seen = led_by(facts(vec![tls]));
    assert_eq!(seen[0], "a.io: /shop*");
    assert!(seen[1].starts_with("c.io all: no rule"), "{seen:?}");
}

fn claim(host: &str, expressions: bool) -> RouteClaim {
    RouteClaim {
        created: String::new(),
        namespace: "other".into(),
        object: "Ingress other/regex".into(),
        accepted: true,
        expressions,
        hosts: vec![(host.parse().unwrap(), Vec::new())],
    }
}

#[test]
fn an_expression_anywhere_on_the_host_makes_it_everything() {
    let hosts = [rule(Some("a.io"), &[("web", prefix("/a"))]), rule(Some("x.b.io"), &[("web", prefix("/b"))])];
    let gathered: Gathered = facts(vec![ingress("one", hosts.to_vec())]).into();
    let by = |claims: &[RouteClaim]| led(&gathered, Ok(claims));
    assert_eq!(by(&[claim("a.io", false)]), ["a.io: /a*", "x.b.io: /b*"]);
    let seen = by(&[claim("a.io", true)]);
    assert!(seen[0].contains("Ingress other/regex") && seen[1] == "x.b.io: /b*", "{seen:?}");
    let own = IngressFact { expressions: true, ..ingress("one", hosts.to_vec()) };
    assert!(led_by(facts(vec![own])).iter().all(|line| line.contains("Ingress shop/one may make")), "known here first");
    let seen = by(&[claim("*.b.io", true)]);
    assert!(seen[0] == "a.io: /a*" && seen[1].contains("Ingress other/regex"), "{seen:?}");
    let unknown = RouteClaim { hosts: Vec::new(), ..claim("c.io", true) };
    let seen = by(&[unknown]);
    assert!(seen.iter().all(|line| line.contains("more hosts than are read")), "{seen:?}");
}

#[test]
fn what_is_not_read_is_everything() {
    let shop = || facts(vec![ingress("one", vec![rule(Some("a.io"), &[("web", prefix("/shop"))])])]);
    assert!(led(&shop().into(), Err("denied"))[0].contains("of all namespaces are not read: denied"));
    let cut = Gathered::new("shop", shop(), vec![("Ingress shop/big".into(), "it is left out".into())]);
    assert!(led(&cut, Ok(&[]))[0].contains("Ingress shop/big"));
    let unread = Gathered::from(shop()).without(vec![kernel::answer::PortError::passing("list", "no right")]);
    assert!(led(&unread, Ok(&[]))[0].contains("not all Ingresses and routes are read"));
}

#[test]
fn routes_count_on_all_their_hosts_and_accepted_or_not() {
    let to = |name: &str| ("shop".to_owned(), name.to_owned());
    let route = |name: &str, hosts: &[&str], ways: Vec<((String, String), Way)>, accepted: bool| RouteFact {
        kind: RouteKind::Http,
        namespace: "shop".into(),
        name: name.into(),
        hostnames: hosts.iter().map(|host| (*host).to_owned()).collect(),
        backends: ways.iter().map(|(to, _)| to.clone()).collect(),
        ways,
        parents: vec![ParentFact { namespace: "infra".into(), name: "edge".into(), accepted, ..ParentFact::default() }],
        ..RouteFact::default()
    };
    let gateways = || {
        let listener =
            ListenerFact { name: "l".into(), port: 80, hostname: Some("*.io".into()), ..ListenerFact::default() };
        vec![GatewayFact {
            namespace: "infra".into(),
            name: "edge".into(),
            listeners: vec![listener],
            addresses: Vec::new(),
        }]
    };
    let routed = |routes: Vec<RouteFact>| led_by(SiteFacts { routes, gateways: gateways(), ..facts(Vec::new()) });
    let named = route("one", &["a.io", "b.io"], vec![(to("web"), prefix("/shop")), (to("api"), prefix("/api"))], true);
    assert_eq!(routed(vec![named.clone()]), ["a.io: /shop*", "b.io: /shop*"]);
    let before = route("two", &["a.io"], vec![(to("web"), prefix("/before"))], false);
    let seen = routed(vec![named.clone(), before]);
    assert!(seen[0].contains("/shop*"), "{seen:?}");
    let expression = route("three", &["a.io"], vec![(to("web"), Way::Expression)], true);
    assert!(routed(vec![named, expression])[0].contains("HTTPRoute shop/three has a regular expression"));
}
