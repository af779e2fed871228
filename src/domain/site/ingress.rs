//! Hosts from Ingresses (`networking.k8s.io/v1`).
//!
//! An Ingress may serve many workloads, so each host is asked for by itself: the rule that takes it must lead here.
//! Hosts no rule takes (of the TLS section or for external-dns) belong to the Service that gets the rest, or, if
//! nobody else is in the Ingress, to the only one there is.

use std::collections::BTreeSet;

use super::facts::IngressRule;
use super::{Findings, IngressFact, Source, annotation};
use crate::domain::host::Host;

/// Adds what `ingress` says about the workload whose Services are `services`.
pub(super) fn find(ingress: &IngressFact, workload_name: &str, services: &BTreeSet<&str>, findings: &mut Findings) {
    let view = View::new(ingress, workload_name, services);
    if !view.leads_here && !view.by_name {
        return;
    }
    let name = format!("{}/{}", ingress.namespace, ingress.name);
    let rule_place = format!("Ingress {name} rule");
    for text in ingress.rules.iter().filter(|rule| view.takes(rule)).filter_map(host_of) {
        if let Some(host) = findings.read(text, &rule_place) {
            let source =
                if view.by_name { Source::OwnIngress(name.clone()) } else { Source::IngressRule(name.clone()) };
            findings.add(host, source);
        }
    }
    let tls_place = format!("Ingress {name} TLS");
    for text in ingress.tls_hosts.iter().map(String::as_str).filter(|text| !text.trim().is_empty()) {
        // What a bad host of a shared Ingress belongs to cannot be told, so everybody there hears of it.
        if let Some(host) = findings.read(text, &tls_place).filter(|host| view.owns_certificate(host)) {
            findings.add(host, Source::IngressTls(name.clone()));
        }
    }
    let place = format!("Ingress {name}");
    for host in annotation::hosts(&ingress.annotations, &place, findings) {
        if view.owns(&host) {
            findings.add(host, Source::ExternalDns(place.clone()));
        }
    }
    if view.names_no_host {
        for text in &ingress.load_balancers {
            findings.add_origin(text, &format!("load balancer of Ingress {name}"));
        }
    }
}

/// An Ingress as one workload sees it.
struct View<'a> {
    services: &'a BTreeSet<&'a str>,
    /// Something in it leads to a Service of the workload.
    leads_here: bool,
    /// Nothing in it does, but it has the workload's name.
    by_name: bool,
    /// What no rule takes leads to the workload.
    rest_leads_here: bool,
    /// Nothing in it leads anywhere else.
    exclusive: bool,
    /// Neither rules nor the TLS section name a host.
    names_no_host: bool,
    /// The hosts of the rules, and whether the workload gets them.
    rules: Vec<(Host, bool)>,
}

impl<'a> View<'a> {
    fn new(ingress: &IngressFact, workload_name: &str, services: &'a BTreeSet<&'a str>) -> Self {
        let here = |service: &String| services.contains(service.as_str());
        let rest_leads_here = ingress.default_backend.iter().any(here)
            || ingress.rules.iter().any(|rule| host_of(rule).is_none() && rule.backends.iter().any(here));
        let leads_here = rest_leads_here || ingress.rules.iter().any(|rule| rule.backends.iter().any(here));
        let by_name = !leads_here && ingress.name == workload_name;
        let mut view = Self {
            services,
            leads_here,
            by_name,
            rest_leads_here,
            exclusive: ingress.default_backend.iter().all(here)
                && ingress.rules.iter().all(|rule| rule.backends.iter().all(here)),
            names_no_host: ingress.rules.iter().all(|rule| host_of(rule).is_none())
                && ingress.tls_hosts.iter().all(|host| host.trim().is_empty()),
            rules: Vec::new(),
        };
        let read = |rule: &IngressRule| Some((Host::parse(host_of(rule)?).ok()?, view.takes(rule)));
        view.rules = ingress.rules.iter().filter_map(read).collect();
        view
    }

    /// Whether a rule leads to the workload.
    fn takes(&self, rule: &IngressRule) -> bool {
        self.by_name || rule.backends.iter().any(|service| self.services.contains(service.as_str()))
    }

    /// Whether the workload gets requests for a host that stands outside the rules. The rule for exactly this host
    /// decides, else the wildcard rule over it, else who gets the rest.
    fn owns(&self, host: &Host) -> bool {
        let exact = self.rules.iter().filter(|(rule, _)| rule.domain() == host.domain() && same_kind(rule, host));
        let covering = self.rules.iter().filter(|(rule, _)| rule.covers(host));
        let deciding: Vec<bool> = exact.map(|(_, ours)| *ours).collect();
        let deciding = if deciding.is_empty() { covering.map(|(_, ours)| *ours).collect() } else { deciding };
        if deciding.is_empty() {
            self.by_name || self.rest_leads_here || self.exclusive
        } else {
            deciding.contains(&true)
        }
    }

    /// The same for a host of the TLS section. A wildcard there says which certificate is used: unless a rule has the
    /// same wildcard, it names hosts only where somebody gets all the rest.
    fn owns_certificate(&self, host: &Host) -> bool {
        let explained = host.is_wildcard() && self.rules.iter().any(|(rule, _)| rule != host && host.covers(rule));
        let named = self.rules.iter().any(|(rule, _)| rule == host);
        (named || !explained || self.rest_leads_here) && self.owns(host)
    }
}

/// Whether both are wildcards or neither is. Depth does not count: external-dns and Ingress write the same text for
/// different depths.
fn same_kind(one: &Host, other: &Host) -> bool {
    one.is_wildcard() == other.is_wildcard()
}

/// The host of a rule; an empty one means every host, like none.
fn host_of(rule: &IngressRule) -> Option<&str> {
    rule.host.as_deref().map(str::trim).filter(|host| !host.is_empty())
}
