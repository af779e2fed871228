//! What takes requests for one host, and where it sends them: the way of somebody at a browser, who knows no workload.
//!
//! Not for whose a host is, nor for which names of a wildcard others take: those are asked for a workload, by `site`.

use std::collections::BTreeSet;

use super::bounds::Bulky;
use super::facts::{rest, targets};
use super::others::Known;
use super::{Gathered, IngressFact, cluster_name};
use kernel::names::host::Host;
use kernel::names::selector::Labels;

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
    use crate::site::{IngressRule, ServiceFact, SiteFacts};

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
}
