//! The facts that were read for a search, and the omissions.

use std::ops::Deref;

use super::attachment::{by_name, compared};
use super::bounds::{Bulky, NAMESPACE_NAMES_MAX, OBJECT_NAMES_MAX, OTHERS_NAMES_MAX};
use super::names::Names;
use super::{IngressFact, REJECTED_MAX, Site, SiteFacts, annotation, site};
use kernel::answer::PortError;
use kernel::names::host::Host;
use kinds::pods::PodLabels;

/// Facts as they were read, with what was left out of them. It is read as the facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    facts: SiteFacts,
    left_out: Vec<(String, String)>,
    unread: Vec<PortError>,
}

impl From<SiteFacts> for Gathered {
    fn from(facts: SiteFacts) -> Self {
        Self { facts, ..Self::default() }
    }
}

impl Deref for Gathered {
    type Target = SiteFacts;

    fn deref(&self) -> &SiteFacts {
        &self.facts
    }
}

/// The relevant Ingresses of other namespaces: all where something here has no host, and else those that wildcards
/// here cover. Most namespaces have one or two wildcards, a cluster may have thousands of hosts.
pub fn beside<'a>(facts: &SiteFacts, takers: impl Iterator<Item = &'a IngressFact>) -> Vec<IngressFact> {
    let is_hostless = |text: Option<&str>| text.is_none_or(|text| text.trim().is_empty());
    let hostless = |one: &IngressFact| {
        one.default_backend.is_some() || one.rules.iter().any(|rule| is_hostless(rule.host.as_deref()))
    };
    let all = facts.ingresses.iter().any(hostless) || facts.routes.iter().any(|route| route.hostnames.is_empty());
    let texts = facts.ingresses.iter().flat_map(|one| {
        let rules = one.rules.iter().filter_map(|rule| rule.host.as_deref());
        rules.chain(one.tls_hosts.iter().map(String::as_str)).chain(annotation::texts(&one.annotations))
    });
    // Deeper than an Ingress means it: too much is compared later, too little never.
    let wide: Vec<Host> = texts.filter(|text| text.contains('*')).filter_map(|text| Host::parse(text).ok()).collect();
    let wide: Vec<Host> = wide.into_iter().map(Host::at_any_depth).collect();
    let mut names = Names::default();
    wide.iter().for_each(|host| names.add(host, (), |(), ()| {}));
    let matters = |text: &str| Host::parse(text).is_ok_and(|host| names.cover(&host));
    let mut beside = Vec::new();
    for taker in takers {
        let is_kept = |text: Option<&str>| all || is_hostless(text) || text.is_some_and(matters);
        let rules: Vec<_> = taker.rules.iter().filter(|rule| is_kept(rule.host.as_deref())).cloned().collect();
        if !rules.is_empty() || taker.default_backend.is_some() {
            let IngressFact { namespace, name, class, default_backend, load_balancers, .. } = taker;
            beside.push(IngressFact {
                namespace: namespace.clone(),
                name: name.clone(),
                class: class.clone(),
                rules,
                default_backend: default_backend.clone(),
                load_balancers: load_balancers.clone(),
                ..IngressFact::default()
            });
        }
    }
    beside
}

impl Gathered {
    /// Facts that something may be missing from: where, and why. Routes whose names are to be compared with those of too many
    /// listeners are left out here, because only Gateways tell how many those are.
    #[must_use]
    pub fn new(namespace: &str, mut facts: SiteFacts, left_out: Vec<(String, String)>) -> Self {
        let mut notes = left_out;
        let (mut own, mut others) = (NAMESPACE_NAMES_MAX, OTHERS_NAMES_MAX);
        let SiteFacts { routes, gateways, .. } = &mut facts;
        let gateways = by_name(gateways);
        routes.retain(|route| {
            let names = compared(route, &gateways);
            let left = if route.namespace == namespace { &mut own } else { &mut others };
            let fits = names <= OBJECT_NAMES_MAX.min(*left);
            if fits {
                *left -= names;
            } else if notes.len() < REJECTED_MAX {
                let why = format!(
                    "it is left out: {names} pairs of its names and of listeners, {OBJECT_NAMES_MAX} for a route and \
                     {NAMESPACE_NAMES_MAX} in all are compared; attach it to fewer listeners"
                );
                notes.push((route.place(), why));
            }
            fits
        });
        Self { facts, left_out: notes, unread: Vec::new() }
    }

    /// The same without what could not be read, and why that is. A purge rests on it only where it does without those kinds.
    #[must_use]
    pub fn without(self, unread: Vec<PortError>) -> Self {
        Self { unread, ..self }
    }

    /// What could not be read, mostly for want of a right. Where there is any, a host that is not here may exist all the same,
    /// and another may be that of somebody else.
    #[must_use]
    pub fn unread(&self) -> &[PortError] {
        &self.unread
    }

    /// About how many names a search has to look at.
    #[must_use]
    pub fn names(&self) -> usize {
        let services = self.services.iter().map(|one| annotation::count(&one.annotations));
        let ingresses = self.ingresses.iter().map(|one| {
            let paths = one.rules.iter().map(|rule| 1 + rule.backends.len()).sum::<usize>();
            paths + one.tls_hosts.len() + one.load_balancers.len() + annotation::count(&one.annotations)
        });
        let gateways = by_name(&self.gateways);
        let routes = self.routes.iter().map(|route| compared(route, &gateways) + route.backends.len());
        services.chain(ingresses).chain(routes).sum()
    }

    /// The omissions, with reasons.
    #[must_use]
    pub fn left_out(&self) -> &[(String, String)] {
        &self.left_out
    }

    /// Finds the site of a workload as [`site`] does. Omissions are listed among the rejections in any case, unless
    /// the owner has named the hosts.
    #[must_use]
    pub fn site(&self, pods: PodLabels<'_>, tuning_hosts: Option<&[Host]>) -> Site {
        let mut found = site(pods, tuning_hosts, &self.facts);
        if tuning_hosts.is_none() && !self.left_out.is_empty() {
            found.rejected.truncate(REJECTED_MAX.saturating_sub(self.left_out.len()));
            found.rejected.extend(self.left_out.iter().cloned());
            found.rejected.sort();
        }
        found
    }
}
