//! What other objects take: names of a wildcard that a more specific rule takes, and load balancers that several namespaces
//! share.
//!
//! Rules are compared within what is served together: Ingresses of one class, routes of one listener, and, for requests
//! that no host leads here, everything behind one load balancer. A rule takes a name from a wider one only if it takes
//! every path of it: whether requests for the other paths go on to the wider rule is up to the controller.
//!
//! Services of one namespace never keep each other from a load balancer: path by path they are one site, as behind one
//! application load balancer. Whoever is in another namespace serves other people.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Reach;
use super::ingress::{host_of, rest};
use super::route::{Attachment, Served, attachments};
use super::{Findings, GatewayFact, SiteFacts};
use crate::domain::host::Host;

/// What is served together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope<'a> {
    /// Ingresses of one class.
    Class(Option<&'a str>),
    /// Everything behind one load balancer; in lower case.
    Balancer(String),
}

/// A listener: the namespace and name of its Gateway, and its own name.
type Listener<'a> = (&'a str, &'a str, &'a str);

/// Who takes what. Names of the workload itself are among them; [`Findings`] knows which those are.
pub(super) struct Others<'a> {
    taken: BTreeMap<Scope<'a>, BTreeSet<Host>>,
    /// Names that routes take, each with the host as its route has it.
    routed: BTreeMap<Listener<'a>, BTreeSet<(Host, Host)>>,
    /// Who gets requests that no host decides, by load balancer: the namespace of the Service, and the object.
    catch_alls: BTreeMap<String, BTreeSet<(&'a str, String)>>,
}

impl<'a> Others<'a> {
    pub fn new(facts: &'a SiteFacts) -> Self {
        let mut others = Self { taken: BTreeMap::new(), routed: BTreeMap::new(), catch_alls: BTreeMap::new() };
        for ingress in &facts.ingresses {
            let class = Scope::Class(ingress.class.as_deref());
            let balancers = ingress.load_balancers.iter().map(|name| name.to_ascii_lowercase());
            let scopes: Vec<Scope<'a>> = balancers.clone().map(Scope::Balancer).chain([class]).collect();
            for rule in ingress.rules.iter().filter(|rule| rule.reach != Reach::Part) {
                if let Some(host) = host_of(rule).and_then(|text| Host::parse(text).ok()) {
                    others.take(&scopes, &host);
                }
            }
            if !rest(ingress).is_empty() {
                let object = format!("Ingress {}/{}", ingress.namespace, ingress.name);
                for name in balancers {
                    others.catch_alls.entry(name).or_default().insert((ingress.namespace.as_str(), object.clone()));
                }
            }
        }
        for route in &facts.routes {
            for Attachment { gateway, served, hostless, .. } in attachments(route, &facts.gateways) {
                let Some(gateway) = gateway else { continue };
                let balancers = gateway.addresses.iter().map(|name| name.to_ascii_lowercase());
                let scopes: Vec<Scope<'a>> = balancers.clone().map(Scope::Balancer).collect();
                for Served { host, written, listener } in served.into_iter().filter(|_| route.whole) {
                    // One that has its host from the listener alone takes nothing from one that names it.
                    let (Some(written), Some(listener)) = (written, listener) else { continue };
                    others.take(&scopes, &host);
                    let key = (gateway.namespace.as_str(), gateway.name.as_str(), listener);
                    others.routed.entry(key).or_default().insert((host, written));
                }
                for name in balancers.filter(|_| hostless) {
                    let object = format!("{} {}/{}", route.kind, route.namespace, route.name);
                    let spaces = route.backends.iter().map(|(space, _)| (space.as_str(), object.clone()));
                    others.catch_alls.entry(name).or_default().extend(spaces);
                }
            }
        }
        others
    }

    fn take(&mut self, scopes: &[Scope<'a>], host: &Host) {
        for scope in scopes {
            self.taken.entry(scope.clone()).or_default().insert(host.clone());
        }
    }

    /// Whether a rule takes every request for `host`.
    pub fn is_taken(&self, scope: &Scope<'a>, host: &Host) -> bool {
        self.taken.get(scope).is_some_and(|taken| taken.iter().any(|one| one.covers(host)))
    }

    /// The names beneath the wildcard `host` that more specific rules take.
    pub fn beneath(&self, scope: &Scope<'a>, host: &Host) -> BTreeSet<Host> {
        let taken = self.taken.get(scope).filter(|_| host.is_wildcard());
        let beneath = |one: &&Host| host.covers(one) && host.domain() != one.domain();
        taken.into_iter().flatten().filter(beneath).cloned().collect()
    }

    /// The names of what a route serves by a listener that routes with a more specific host take; `None` if they take all.
    pub fn left_to(&self, gateway: Option<&GatewayFact>, served: &Served<'_>) -> Option<BTreeSet<Host>> {
        let key = gateway.zip(served.listener);
        let key = key.map(|(gateway, listener)| (gateway.namespace.as_str(), gateway.name.as_str(), listener));
        let routed = key.and_then(|key| self.routed.get(&key)).into_iter().flatten();
        let before: Vec<&Host> =
            routed.filter(|(_, written)| served.yields_to(Some(written))).map(|(host, _)| host).collect();
        let all = before.iter().any(|host| host.covers(&served.host));
        (!all).then(|| before.into_iter().filter(|host| served.host.covers(host)).cloned().collect())
    }

    /// Adds a load balancer that sends requests without a host of their own to the workload, unless it does so to other
    /// namespaces too.
    pub fn take_balancer(&self, text: &str, object: &str, namespace: &str, findings: &mut Findings) {
        let name = text.to_ascii_lowercase();
        let sharing = self.catch_alls.get(&name).into_iter().flatten().find(|(space, _)| *space != namespace);
        if let Some((_, other)) = sharing {
            let why = format!(
                "{other} of another namespace takes all hosts there too; the annotation allclear.dev/hosts can name ours"
            );
            findings.reject(&format!("load balancer {name} of {object}"), why);
            return;
        }
        let taken = self.taken.get(&Scope::Balancer(name)).cloned().unwrap_or_default();
        findings.add_origin(text, &format!("load balancer of {object}"), taken);
    }
}
