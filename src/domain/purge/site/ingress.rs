//! Hosts from Ingresses (`networking.k8s.io/v1`).
//!
//! An Ingress may serve many workloads, so each host is asked for by itself: some request for it must lead here. By the
//! API's text a rule is chosen by its host first, a rule without `http` sends its host to the default backend, a rule
//! without host takes all hosts, and the default backend gets what no rule takes
//! (<https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-v1/>).
//!
//! Hosts no rule takes (of the TLS section or for external-dns) belong to the Service that gets the rest, or to the
//! only Service in the Ingress, if there is one only: controllers have annotations of their own for more hosts.

use std::collections::BTreeSet;

use super::facts::{IngressRule, host_of, rest, targets};
use super::names::Names;
use super::others::{Claim, Others};
use super::{Findings, IngressFact, Source, annotation};
use kernel::names::host::Host;

/// Adds what `ingress` says about the workload whose Services are `services`; `of_others` are those that select other pods.
pub(super) fn find<'a>(
    (ingress, hosts): &'a (&'a IngressFact, Vec<Option<Host>>),
    workload_name: &str,
    (services, of_others): (&BTreeSet<&str>, &BTreeSet<&str>),
    others: &Others<'a>,
    findings: &mut Findings<'a>,
) {
    let mut view = View::new(ingress, hosts, workload_name, services, others);
    view.by_name &= !backends(ingress).any(|service| of_others.contains(service.as_str()));
    if !view.leads_here && !view.by_name {
        return;
    }
    let name = format!("{}/{}", ingress.namespace, ingress.name);
    let claim = Claim::Class(ingress.class.as_deref());
    let rule_place = format!("Ingress {name} rule");
    for (rule, host) in ingress.rules.iter().zip(hosts) {
        let Some(text) = host_of(rule) else { continue };
        // A bad host's name does not show where it leads.
        if host.is_none() && (view.by_name || view.sends_here(rule)) {
            findings.read(text, &rule_place);
        }
        if let Some(host) = host.as_ref().filter(|host| view.by_name || view.leads(host)) {
            let source =
                if view.by_name { Source::OwnIngress(name.clone()) } else { Source::IngressRule(name.clone()) };
            findings.add(host.clone(), source, claim);
        }
    }
    let tls_place = format!("Ingress {name} TLS");
    for text in ingress.tls_hosts.iter().map(String::as_str).filter(|text| !text.trim().is_empty()) {
        // We cannot know whose host it is, so every workload on the Ingress is warned.
        if let Some(host) = findings.read(text, &tls_place).filter(|host| view.owns_certificate(host)) {
            findings.add(host, Source::IngressTls(name.clone()), claim);
        }
    }
    let place = format!("Ingress {name}");
    for host in annotation::hosts(&ingress.annotations, &place, findings) {
        if view.owns(&host) {
            findings.add(host, Source::ExternalDns(place.clone()), claim);
        }
    }
    if view.rest_leads_here || (view.by_name && view.names_no_host) {
        for text in &ingress.load_balancers {
            others.take_balancer(text, &format!("Ingress {name}"), &ingress.namespace, findings);
        }
    }
}

/// All Services that it leads to.
fn backends(ingress: &IngressFact) -> impl Iterator<Item = &String> + Clone {
    ingress.rules.iter().flat_map(|rule| &rule.backends).chain(&ingress.default_backend)
}

/// An Ingress as one workload sees it.
struct View<'a, 'b> {
    ingress: &'a IngressFact,
    services: &'b BTreeSet<&'b str>,
    others: &'b Others<'a>,
    /// Something in it leads to a Service of the workload.
    leads_here: bool,
    /// Nothing in it does, but it has the workload's name, and leads to no pods that we know of.
    by_name: bool,
    /// Requests that no rule with a host takes lead to the workload.
    rest_leads_here: bool,
    /// Nothing in it leads anywhere else.
    exclusive: bool,
    /// Neither rules nor the TLS section name a host.
    names_no_host: bool,
    /// The hosts of the rules, and whether a rule itself leads to the workload. Empty where nothing leads here at all.
    rules: Names<'a, bool>,
}

impl<'a, 'b> View<'a, 'b> {
    fn new(
        ingress: &'a IngressFact,
        hosts: &'a [Option<Host>],
        workload_name: &str,
        services: &'b BTreeSet<&'b str>,
        others: &'b Others<'a>,
    ) -> Self {
        let here = |service: &&str| services.contains(service);
        let mut all = backends(ingress);
        let leads_here = all.clone().any(|service| here(&service.as_str()));
        let mut view = Self {
            ingress,
            services,
            others,
            leads_here,
            by_name: !leads_here && ingress.name == workload_name,
            rest_leads_here: rest(ingress).iter().any(here),
            exclusive: all.all(|service| here(&service.as_str())),
            names_no_host: ingress.rules.iter().all(|rule| host_of(rule).is_none())
                && ingress.tls_hosts.iter().all(|host| host.trim().is_empty()),
            rules: Names::default(),
        };
        for (rule, host) in ingress.rules.iter().zip(hosts).filter(|_| view.leads_here || view.by_name) {
            if let Some(host) = host {
                let ours = view.sends_here(rule);
                view.rules.add(host, ours, |known, more| *known |= more);
            }
        }
        view
    }

    /// Whether a rule by itself leads to the workload.
    fn sends_here(&self, rule: &IngressRule) -> bool {
        targets(self.ingress, rule).any(|service| self.services.contains(service))
    }

    /// Whether some request for `host` leads to the workload: by the rules that take the host, or as part of what they leave.
    fn leads(&self, host: &Host) -> bool {
        self.decided(host) == Some(true) || (self.rest_leads_here && !self.others.is_taken(self.class(), host))
    }

    /// Whether one of the rules that take `host` leads to the workload: those of exactly this host, else the wildcards over
    /// it. `None` if no rule takes it.
    fn decided(&self, host: &Host) -> Option<bool> {
        let exact = self.rules.alike(host).copied().reduce(|one, other| one || other);
        exact.or_else(|| self.rules.covering(host).copied().reduce(|one, other| one || other))
    }

    /// Whether the workload gets requests for a host that stands outside the rules.
    fn owns(&self, host: &Host) -> bool {
        self.by_name || self.leads(host) || (self.exclusive && self.decided(host).is_none())
    }

    /// The same for a host of the TLS section. A wildcard there says which certificate is used: unless a rule has the
    /// same wildcard, it names hosts only if a default backend gets all the rest.
    fn owns_certificate(&self, host: &Host) -> bool {
        let explained = || self.rules.any_beneath(host);
        let named = self.rules.get(host).is_some();
        (named || !explained() || self.rest_leads_here) && self.owns(host)
    }

    fn class(&self) -> Option<&'a str> {
        self.ingress.class.as_deref()
    }
}
