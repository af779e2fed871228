//! The claims of other objects: names of a wildcard that a more specific rule takes, and load balancers that several
//! namespaces share.
//!
//! Rules are compared within what is served together: Ingresses of one class, routes of one listener, and, for requests
//! that no host leads here, everything behind one load balancer. A rule takes a name from a wider one only if it takes
//! every path of it: whether requests for the other paths go on to the wider rule is up to the controller.
//!
//! Services of one namespace never keep each other from a load balancer: path by path they are one site, as behind one
//! application load balancer. What is in another namespace serves other people.
//!
//! The losses of a wildcard are never written out for each wildcard: a few hundred of them over some thousand names
//! would fill the memory. A [`Claim`] says where to look, and each name is looked up once (T2).

use std::collections::{BTreeMap, BTreeSet};

use super::attachment::{Attachment, Rank, Served, attachments, by_name};
use super::facts::{IngressFact, Reach, RouteFact, host_of, rest};
use super::names::Names;
use super::{Findings, GatewayFact, SiteFacts};
use kernel::names::host::Host;

/// Facts with their hosts read, once for all who compare them.
pub(super) struct Known<'a> {
    /// Ingresses, each with the hosts of its rules; `None` where a rule has none, or one that cannot be read.
    pub ingresses: Vec<(&'a IngressFact, Vec<Option<Host>>)>,
    /// Routes, each with what it serves by its parents.
    pub routes: Vec<(&'a RouteFact, Vec<Attachment<'a>>)>,
}

impl<'a> Known<'a> {
    pub fn new(facts: &'a SiteFacts) -> Self {
        let hosts = |ingress: &IngressFact| {
            ingress.rules.iter().map(|rule| Host::parse(host_of(rule)?).ok()).collect::<Vec<_>>()
        };
        let gateways = by_name(&facts.gateways);
        Self {
            ingresses: facts.ingresses.iter().map(|ingress| (ingress, hosts(ingress))).collect(),
            routes: facts.routes.iter().map(|route| (route, attachments(route, &gateways))).collect(),
        }
    }
}

/// A scope that is served together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope<'a> {
    /// Ingresses of one class.
    Class(Option<&'a str>),
    /// Everything behind one load balancer; in lower case.
    Balancer(String),
}

/// A listener: the namespace and name of its Gateway, and its own name.
pub(super) type Listener<'a> = (&'a str, &'a str, &'a str);

/// Which names beneath a wildcard of the workload others take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim<'a> {
    /// None: it leads here by a record in DNS, or nothing is known of its listener.
    All,
    /// Those of rules of this class of Ingresses.
    Class(Option<&'a str>),
    /// Those of routes of this listener with a host more specific than this.
    Listener(Listener<'a>, Option<Rank>),
}

/// The names that Ingresses and routes take. Names of the workload itself are among them; [`Findings`] knows those.
pub(super) struct Others<'a> {
    taken: BTreeMap<Scope<'a>, Names<'a, ()>>,
    /// Names that routes take, each with how specific a host is that has it.
    routed: BTreeMap<Listener<'a>, Names<'a, Rank>>,
    /// The default backends, by load balancer: the namespace of the Service, and the first object.
    catch_alls: BTreeMap<String, BTreeMap<&'a str, String>>,
}

impl<'a> Others<'a> {
    pub fn new(known: &'a Known<'a>) -> Self {
        let mut others = Self { taken: BTreeMap::new(), routed: BTreeMap::new(), catch_alls: BTreeMap::new() };
        known.ingresses.iter().for_each(|(ingress, hosts)| others.add_ingress(ingress, hosts));
        for (route, attached) in &known.routes {
            attached.iter().for_each(|attachment| others.add_route(route, attachment));
        }
        others
    }

    fn add_ingress(&mut self, ingress: &'a IngressFact, hosts: &'a [Option<Host>]) {
        let balancers = || ingress.load_balancers.iter().map(|name| name.to_ascii_lowercase());
        for scope in balancers().map(Scope::Balancer).chain([Scope::Class(ingress.class.as_deref())]) {
            let whole = ingress.rules.iter().zip(hosts).filter(|(rule, _)| rule.reach != Reach::Part);
            self.take(scope, whole.filter_map(|(_, host)| host.as_ref()));
        }
        if !rest(ingress).is_empty() {
            let object = format!("Ingress {}/{}", ingress.namespace, ingress.name);
            balancers().for_each(|name| self.catch(name, &ingress.namespace, &object));
        }
    }

    fn add_route(&mut self, route: &'a RouteFact, attachment: &'a Attachment<'a>) {
        let Some(gateway) = attachment.gateway else { return };
        let balancers = || gateway.addresses.iter().map(|name| name.to_ascii_lowercase());
        // One that has its host from the listener alone takes nothing from one that names it.
        let named = |served: &'a Served<'a>| Some((&served.host, served.rank()?, served.listener?));
        let named = || attachment.served.iter().filter(|_| route.whole).filter_map(named);
        for scope in balancers().map(Scope::Balancer) {
            self.take(scope, named().map(|(host, ..)| host));
        }
        for (host, rank, listener) in named() {
            let key = (gateway.namespace.as_str(), gateway.name.as_str(), listener);
            self.routed.entry(key).or_default().add(host, rank, |known, more| *known = (*known).max(more));
        }
        for name in balancers().filter(|_| attachment.hostless) {
            let object = format!("{} {}/{}", route.kind, route.namespace, route.name);
            let spaces: BTreeSet<&str> = route.backends.iter().map(|(space, _)| space.as_str()).collect();
            spaces.into_iter().for_each(|space| self.catch(name.clone(), space, &object));
        }
    }

    fn take(&mut self, scope: Scope<'a>, hosts: impl Iterator<Item = &'a Host>) {
        let taken = self.taken.entry(scope).or_default();
        hosts.for_each(|host| taken.add(host, (), |(), ()| {}));
    }

    fn catch(&mut self, balancer: String, namespace: &'a str, object: &str) {
        let first = self.catch_alls.entry(balancer).or_default().entry(namespace).or_insert_with(|| object.to_owned());
        if object < first.as_str() {
            object.clone_into(first);
        }
    }

    /// Whether a rule of this class of Ingresses takes every request for `host`.
    pub fn is_taken(&self, class: Option<&'a str>, host: &Host) -> bool {
        self.taken.get(&Scope::Class(class)).is_some_and(|taken| taken.cover(host))
    }

    /// The part of a route's names that routes of the same listener with a more specific host leave to it; `None` if
    /// none.
    pub fn left_to(&self, gateway: Option<&'a GatewayFact>, served: &Served<'a>) -> Option<Claim<'a>> {
        let Some((gateway, listener)) = gateway.zip(served.listener) else { return Some(Claim::All) };
        let key = (gateway.namespace.as_str(), gateway.name.as_str(), listener);
        let rank = served.rank();
        let mut over = self.routed.get(&key).into_iter().flat_map(|routed| routed.covering(&served.host));
        let all = over.any(|other| rank < Some(*other));
        (!all).then_some(Claim::Listener(key, rank))
    }

    /// The names that lead elsewhere by every claim that covers them and behind every load balancer, and that are no hosts of
    /// the workload.
    pub fn elsewhere(
        &self,
        hosts: &BTreeSet<Host>,
        claims: &BTreeSet<(Host, Claim<'a>)>,
        balancers: &BTreeSet<String>,
    ) -> BTreeSet<Host> {
        if claims.is_empty() && balancers.is_empty() {
            return BTreeSet::new();
        }
        let mut wide: Names<'_, Vec<(&Host, &Claim<'a>)>> = Names::default();
        for (host, claim) in claims {
            wide.add(host, vec![(host, claim)], |known, more| known.extend(more));
        }
        let behind = balancers.iter().map(|name| self.taken.get(&Scope::Balancer(name.clone())));
        let behind: Vec<_> = behind.collect();
        let is_elsewhere = |name: &&Host| {
            // A wildcard beneath it claims some of its names, and nothing takes it from itself.
            !hosts.contains(*name)
                && !wide.any_beneath(name)
                && (!behind.is_empty() || wide.cover(name))
                && behind.iter().all(|taken| taken.is_some_and(|taken| taken.get(name).is_some()))
                && wide.covering(name).flatten().all(|(wildcard, claim)| self.leaves(wildcard, claim, name))
        };
        let routed = self.routed.values().flat_map(Names::hosts);
        self.taken.values().flat_map(Names::hosts).chain(routed).filter(is_elsewhere).cloned().collect()
    }

    /// Whether others take all of `name` from the wildcard above it.
    fn leaves(&self, wildcard: &Host, claim: &Claim<'a>, name: &Host) -> bool {
        match claim {
            Claim::All => false,
            Claim::Class(class) => {
                let taken = self.taken.get(&Scope::Class(*class));
                wildcard.domain() != name.domain() && taken.is_some_and(|taken| taken.get(name).is_some())
            }
            Claim::Listener(key, rank) => {
                let other = self.routed.get(key).and_then(|routed| routed.get(name));
                *rank < other.copied()
            }
        }
    }

    /// Adds a load balancer that sends requests without a host of their own to the workload, unless it does so to other
    /// namespaces too.
    pub fn take_balancer(&self, text: &str, object: &str, namespace: &str, findings: &mut Findings<'_>) {
        let name = text.to_ascii_lowercase();
        let sharing = self.catch_alls.get(&name).into_iter().flatten().find(|(space, _)| **space != namespace);
        if let Some((_, other)) = sharing {
            let why = format!(
                "{other} of another namespace takes all hosts there too; the annotation allclear.dev/hosts can name ours"
            );
            findings.reject(&format!("load balancer {name} of {object}"), why);
            return;
        }
        findings.add_origin(text, &format!("load balancer of {object}"), name);
    }
}
