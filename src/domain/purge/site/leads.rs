//! What takes requests for one host, and where it sends them: the way of somebody at a browser, who knows no workload.
//!
//! Not for whose a host is, nor for which names of a wildcard others take: those are asked for a workload, by `site`.

use std::collections::BTreeSet;

use super::bounds::Bulky;
use super::facts::{rest, targets};
use super::others::Known;
use super::{Gathered, IngressFact, ServiceFact, cluster_name};
use kernel::names::host::Host;
use kernel::names::selector::Labels;
use kinds::pods::PodLabels;

/// An Ingress or a route that takes requests for a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lead {
    /// Which: `Ingress shop/web`.
    pub object: String,
    /// The host as its rule has it, perhaps a wildcard; `None` where it takes what no rule names.
    pub host: Option<Host>,
    /// Namespace and name of the Services that it sends them to.
    pub services: BTreeSet<(String, String)>,
}

/// What a Service sends requests to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind<'a> {
    /// There is no such Service.
    Nothing,
    /// Pods with these labels.
    Pods(&'a Labels),
    /// Endpoints that are not made by its selector: it has none.
    Endpoints,
    /// Another name in DNS, of type `ExternalName`, that is no Service with pods in its namespace.
    Name(&'a str),
}

impl Gathered {
    /// What Ingresses and routes of this namespace say of these hosts. What takes any host is there only if nothing of the
    /// namespace names one of them.
    #[must_use]
    pub fn leads(&self, namespace: &str, wanted: &BTreeSet<Host>) -> Vec<Lead> {
        let is_wanted = |named: &Host| wanted.iter().any(|host| named.covers(host));
        let known = Known::new(self);
        let mut leads = Vec::new();
        let of_here = |(ingress, _): &&(&IngressFact, _)| ingress.namespace == namespace;
        for (ingress, hosts) in known.ingresses.iter().filter(of_here) {
            let covering = |(_, named): &(_, &Option<Host>)| named.as_ref().is_some_and(is_wanted);
            for (rule, named) in ingress.rules.iter().zip(hosts).filter(covering) {
                leads.push(lead(ingress, named.clone(), targets(ingress, rule)));
            }
        }
        for (route, attached) in known.routes.iter().filter(|(route, _)| route.namespace == namespace) {
            let served = attached.iter().flat_map(|attachment| &attachment.served);
            let covering: BTreeSet<&Host> = served.map(|served| &served.host).filter(|one| is_wanted(one)).collect();
            leads.extend(covering.into_iter().map(|named| Lead {
                object: route.place(),
                host: Some(named.clone()),
                services: route.backends.iter().cloned().collect(),
            }));
        }
        if leads.is_empty() {
            let hostless = known.ingresses.iter().filter(of_here).map(|(ingress, _)| (*ingress, rest(ingress)));
            leads.extend(hostless.filter(|(_, rest)| !rest.is_empty()).map(|(one, rest)| lead(one, None, rest)));
        }
        // The plain name before wildcards, and of these the longer: a request goes to the most specific.
        leads.sort_by_cached_key(|lead| {
            let wide = lead.host.as_ref().map_or(usize::MAX, |one| usize::from(one.is_wildcard()));
            let length = lead.host.as_ref().map_or(0, |one| one.domain().len());
            (wide, std::cmp::Reverse(length), lead.clone())
        });
        leads.dedup();
        leads
    }

    /// The Services by which requests for a site get to these pods: those that select them and that an Ingress or a route leads to, and all
    /// that select them where there is none.
    #[must_use]
    pub fn fronts(&self, pods: PodLabels<'_>) -> Vec<&ServiceFact> {
        let namespace = pods.of.namespace.as_str();
        let here = || self.services.iter().filter(|one| one.namespace == namespace);
        let of_ingress = |one: &'_ IngressFact| {
            let backends = one.rules.iter().flat_map(|rule| &rule.backends).chain(&one.default_backend);
            backends.cloned().collect::<Vec<String>>()
        };
        let ingresses = self.ingresses.iter().filter(|one| one.namespace == namespace).flat_map(of_ingress);
        let routes = self.routes.iter().flat_map(|route| &route.backends);
        let routes = routes.filter(|(space, _)| space == namespace).map(|(_, name)| name.clone());
        let mut named: BTreeSet<String> = ingresses.chain(routes).collect();
        let stands_for =
            |one: &ServiceFact| one.external_name.as_deref().and_then(|name| cluster_name(name, namespace));
        let meant: Vec<String> = here().filter(|one| named.contains(&one.name)).filter_map(stands_for).collect();
        named.extend(meant);
        let mut selecting: Vec<&ServiceFact> = here().filter(|one| pods.may_match(&one.selector)).collect();
        if selecting.iter().any(|one| named.contains(&one.name)) {
            selecting.retain(|one| named.contains(&one.name));
        }
        selecting
    }

    /// What a Service of this namespace sends requests to. One step of an `ExternalName` is followed, as for a site.
    #[must_use]
    pub fn behind(&self, namespace: &str, service: &str) -> Behind<'_> {
        let named = |name: &str| self.services.iter().find(|one| one.namespace == namespace && one.name == name);
        let Some(service) = named(service) else { return Behind::Nothing };
        let Some(name) = service.external_name.as_deref() else {
            return if service.selector.is_empty() { Behind::Endpoints } else { Behind::Pods(&service.selector) };
        };
        let target = cluster_name(name, namespace).and_then(|target| named(&target));
        match target.filter(|target| target.external_name.is_none() && !target.selector.is_empty()) {
            Some(target) => Behind::Pods(&target.selector),
            None => Behind::Name(name),
        }
    }
}

fn lead<'a>(ingress: &IngressFact, host: Option<Host>, services: impl IntoIterator<Item = &'a str>) -> Lead {
    let services = services.into_iter().map(|name| (ingress.namespace.clone(), name.to_owned())).collect();
    Lead { object: ingress.place(), host, services }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{IngressRule, SiteFacts};

    fn rule(host: Option<&str>, service: &str) -> IngressRule {
        IngressRule { host: host.map(str::to_owned), backends: vec![service.to_owned()], ..IngressRule::default() }
    }

    fn service(name: &str, selector: &[(&str, &str)], external: Option<&str>) -> ServiceFact {
        let selector = selector.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let external_name = external.map(str::to_owned);
        ServiceFact { namespace: "shop".into(), name: name.into(), selector, external_name, ..ServiceFact::default() }
    }

    fn world() -> Gathered {
        let ingress = |namespace: &str, name: &str, rules: Vec<IngressRule>, default_backend: Option<&str>| {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            let default_backend = default_backend.map(str::to_owned);
            IngressFact { namespace, name, rules, default_backend, ..IngressFact::default() }
        };
        SiteFacts {
            services: vec![
                service("web", &[("app", "web")], None),
                service("alias", &[], Some("web.shop.svc.cluster.local")),
                service("away", &[], Some("web.other.svc")),
                service("twice", &[], Some("alias.shop.svc")),
                service("by-hand", &[], None),
            ],
            ingresses: vec![
                ingress("shop", "rest", vec![rule(None, "alias")], Some("web")),
                ingress("shop", "wide", vec![rule(Some("*.example.com"), "by-hand")], None),
                ingress("shop", "public", vec![rule(Some("www.example.com"), "web"), rule(Some("a_b!"), "web")], None),
                ingress("other", "public", vec![rule(Some("www.example.com"), "other")], None),
            ],
            ..SiteFacts::default()
        }
        .into()
    }

    fn leads(host: &str) -> Vec<String> {
        let line = |lead: Lead| {
            let host = lead.host.map_or("any".to_owned(), |host| host.to_string());
            let services: Vec<String> = lead.services.into_iter().map(|(_, name)| name).collect();
            format!("{} {host}: {}", lead.object, services.join(" "))
        };
        world().leads("shop", &BTreeSet::from([host.parse().unwrap()])).into_iter().map(line).collect()
    }

    #[test]
    fn the_most_specific_is_first_and_what_takes_any_host_only_where_nothing_names_it() {
        let named = ["Ingress shop/public www.example.com: web", "Ingress shop/wide *.example.com: by-hand"];
        assert_eq!(leads("www.example.com"), named);
        assert_eq!(leads("api.example.com"), [named[1]]);
        assert_eq!(leads("a.b.example.com"), ["Ingress shop/rest any: alias"], "a star of an Ingress is one label");
    }

    #[test]
    fn one_step_of_another_name_is_followed_within_the_namespace() {
        let world = world();
        let behind = |name| world.behind("shop", name);
        assert!(matches!(behind("web"), Behind::Pods(labels) if labels.contains_key("app")));
        assert_eq!(behind("alias"), behind("web"));
        assert_eq!(behind("twice"), Behind::Name("alias.shop.svc"));
        assert_eq!(behind("away"), Behind::Name("web.other.svc"));
        assert_eq!((behind("by-hand"), behind("gone")), (Behind::Endpoints, Behind::Nothing));
    }

    #[test]
    fn requests_get_to_pods_by_the_services_of_its_routes_and_without_any_by_all_that_select_them() {
        let pods_of = |facts: SiteFacts| {
            let id = kernel::id::WorkloadId::deployment("shop", "web");
            let labels = Labels::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "front".to_owned())]);
            let facts = Gathered::from(facts);
            let fronts = facts.fronts(PodLabels { of: &id, template: &labels });
            fronts.into_iter().map(|front| front.name.clone()).collect::<Vec<_>>()
        };
        let services = || {
            vec![
                service("web", &[("app", "web")], None),
                service("metrics", &[("tier", "front")], None),
                service("other", &[("app", "api")], None),
                service("alias", &[], Some("metrics.shop.svc.cluster.local")),
            ]
        };
        assert_eq!(pods_of(SiteFacts { services: services(), ..SiteFacts::default() }), ["web", "metrics"]);
        let led = |backend: &str| {
            let (namespace, name, rules) =
                ("shop".to_owned(), "web".to_owned(), vec![rule(Some("www.example.com"), backend)]);
            let ingresses = vec![IngressFact { namespace, name, rules, ..IngressFact::default() }];
            pods_of(SiteFacts { services: services(), ingresses, ..SiteFacts::default() })
        };
        assert_eq!(led("web"), ["web"]);
        assert_eq!(led("alias"), ["metrics"], "by another name");
        assert_eq!(led("other"), ["web", "metrics"], "none of its own");
    }
}
