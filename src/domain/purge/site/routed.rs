//! Which paths of a host requests take to a workload, as far as Ingresses and routes say so for certain.
//!
//! A purge by these paths must never leave out one by which the workload was reached. So what a rule takes becomes what contains it, in the
//! form that CloudFront purges:
//!
//! | a rule | is purged as | because |
//! |---|---|---|
//! | a prefix `/shop` or `/shop/` | `/shop*` | a cached answer has its query string in its name, which `/shop` alone does not cover, and some controllers compare prefixes by character |
//! | exactly `/shop` | `/shop*` | the query string again |
//! | exactly `/` | `/`, `/?*` | `/*` would be everything |
//! | a character that can be written in several ways | the beginning before it | `/café` arrives as `/caf%C3%A9` or `/caf%c3%a9`, which are two names to CloudFront |
//! | a regular expression, or a rule of the controller's own | everything | what it takes is not known here |
//!
//! A condition on headers, on the method or on the query only takes less. Rewrites come after the path that CloudFront has seen.
//! Query strings: <https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/invalidation-specifying-objects.html>, *Forwarding
//! query strings*. Prefixes: <https://kubernetes.io/docs/concepts/services-networking/ingress/#path-types>. An Ingress for ingress-nginx with
//! an expression makes all paths of its host expressions, in whatever Ingress:
//! <https://kubernetes.github.io/ingress-nginx/user-guide/ingress-path-matching/>.
//!
//! Not for what a namespace may purge ([`super::own`]): that only ever takes away. Nor for distributions that change a path before they
//! ask for it; those are purged whole.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::Bulky;
use super::facts::{host_of, rest};
use super::names::Names;
use super::others::Known;
use super::way::Way;
use super::{Gathered, IngressFact, Reach, RouteClaim, Site, Source, leading};
use crate::bounds::tenants::PATHS_SENT_MAX;
use kernel::names::host::Host;
use kernel::names::paths::{Path, PathSet};
use kinds::pods::PodLabels;

/// The part of a host that leads to a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routed {
    /// These paths and no others.
    Only(PathSet),
    /// Possibly all of it, for this reason.
    All(String),
}

/// What is known of one host.
#[derive(Default)]
struct Share {
    paths: BTreeSet<Path>,
    /// The first reason why it may be everything.
    all: Option<String>,
}

impl Share {
    fn doubt(&mut self, why: impl FnOnce() -> String) {
        if self.all.is_none() {
            self.all = Some(why());
        }
    }

    fn take(&mut self, object: &impl Bulky, way: &Way) {
        match way.contained() {
            Ok(paths) => self.paths.extend(paths),
            Err(why) => self.doubt(|| format!("{} {why}", object.place())),
        }
    }

    fn join(&mut self, other: &Self) {
        self.paths.extend(other.paths.iter().cloned());
        if let Some(why) = &other.all {
            self.doubt(|| why.clone());
        }
    }
}

impl Gathered {
    /// Which part of each host of a site leads to these pods. `claims` are those of all namespaces, or why they are not known: an Ingress
    /// anywhere may change how a controller reads the paths of a host.
    #[must_use]
    pub fn routed(
        &self,
        pods: PodLabels<'_>,
        site: &Site,
        claims: Result<&[RouteClaim], &str>,
    ) -> BTreeMap<Host, Routed> {
        let unread = self.left_out().iter().map(|(place, why)| format!("{place}: {why}"));
        let unread = unread.chain(self.unread().iter().map(ToString::to_string)).next();
        let known = Known::new(self);
        let expressions = match (unread, claims) {
            (Some(why), _) => Err(format!("not all Ingresses and routes are read: {why}")),
            (None, Err(why)) => Err(format!("the Ingresses of all namespaces are not read: {why}")),
            (None, Ok(claims)) => match claims.iter().find(|claim| claim.expressions && claim.hosts.is_empty()) {
                Some(claim) => {
                    Err(format!("{} has more hosts than are read, and may change their paths", claim.object))
                }
                None => Ok(Expressions::of(claims, &known)),
            },
        };
        let led = Led::of(pods, self, &known);
        let part = |host: &Host, sources: &BTreeSet<Source>| match &expressions {
            Err(why) => Routed::All(why.clone()),
            Ok(expressions) => part(host, sources, &led, expressions),
        };
        site.hosts.iter().map(|(host, sources)| (host.clone(), part(host, sources))).collect()
    }
}

/// The part of one host.
fn part(host: &Host, sources: &BTreeSet<Source>, led: &Led<'_>, expressions: &Expressions<'_>) -> Routed {
    let by_rule =
        |source: &Source| matches!(source, Source::IngressRule(_) | Source::Route(..) | Source::Listener { .. });
    // A record in DNS that somebody asks for on a Service leads past all rules.
    let past_rules = |source: &&Source| match source {
        Source::Annotation | Source::OwnIngress(_) => true,
        Source::ExternalDns(object) => object.starts_with("Service "),
        Source::IngressRule(_) | Source::IngressTls(_) | Source::Route(..) | Source::Listener { .. } => false,
    };
    if let Some(source) = sources.iter().find(past_rules) {
        return Routed::All(format!("it is a host by the {source}, which names no path"));
    }
    if !sources.iter().any(by_rule) {
        return Routed::All("no rule of an Ingress or a route names it".to_owned());
    }
    if let Some(object) = expressions.over(host) {
        return Routed::All(format!("{object} may make its controller take other requests than paths of the host say"));
    }
    let mut share = Share::default();
    share.join(&led.anywhere);
    led.named.covering(host).chain(led.named.alike(host)).for_each(|known| share.join(known));
    match (share.all, PathSet::of(share.paths.into_iter().collect())) {
        (Some(why), _) => Routed::All(why),
        (None, Some(paths)) if !paths.is_everything() => Routed::Only(paths.at_most(PATHS_SENT_MAX)),
        (None, Some(_)) => Routed::All("a rule sends every path of it to the workload".to_owned()),
        (None, None) => Routed::All("no rule says by which paths it is reached".to_owned()),
    }
}

/// What rules send to a workload.
#[derive(Default)]
struct Led<'a> {
    named: Names<'a, Share>,
    /// By rules that name no host.
    anywhere: Share,
}

impl<'a> Led<'a> {
    fn of(pods: PodLabels<'_>, facts: &'a Gathered, known: &'a Known<'a>) -> Self {
        let services = leading(pods, facts);
        let namespace = pods.of.namespace.as_str();
        let mut led = Self::default();
        for (ingress, hosts) in known.ingresses.iter().filter(|(ingress, _)| ingress.namespace == namespace) {
            led.add_ingress(ingress, hosts, &services);
        }
        for (route, attached) in &known.routes {
            let is_ours = |(space, name): &(String, String)| space == namespace && services.contains(name.as_str());
            if !route.backends.iter().any(is_ours) {
                continue;
            }
            // Whether it is accepted and granted may change while answers of before are kept: it counts in any case.
            let mut share = Share::default();
            for backend in route.backends.iter().filter(|to| is_ours(to)) {
                let mut ways = route.ways.iter().filter(|(to, _)| to == backend).peekable();
                if ways.peek().is_none() {
                    share.doubt(|| format!("{} does not say by which paths", route.place()));
                }
                ways.for_each(|(_, way)| share.take(*route, way));
            }
            if route.hostnames.is_empty() || attached.iter().any(|one| one.hostless) {
                led.anywhere.join(&share);
            }
            for served in attached.iter().flat_map(|attachment| &attachment.served) {
                led.add(&served.host, &share);
                served.written.iter().for_each(|host| led.add(host, &share));
            }
        }
        led
    }

    fn add_ingress(&mut self, ingress: &'a IngressFact, hosts: &'a [Option<Host>], services: &BTreeSet<&str>) {
        if rest(ingress).iter().any(|service| services.contains(service)) {
            self.anywhere.doubt(|| format!("{} sends what no rule names to it", ingress.place()));
        }
        let default = ingress.default_backend.as_deref().is_some_and(|service| services.contains(service));
        for (rule, host) in ingress.rules.iter().zip(hosts).filter(|(rule, _)| host_of(rule).is_some()) {
            let Some(host) = host else { continue };
            let mut share = Share::default();
            if default && rule.reach == Reach::Default {
                share.doubt(|| format!("{} sends every path of it to its default backend", ingress.place()));
            }
            for backend in rule.backends.iter().filter(|name| services.contains(name.as_str())) {
                let mut ways = rule.ways.iter().filter(|(to, _)| to == backend).peekable();
                if ways.peek().is_none() {
                    share.doubt(|| format!("{} does not say by which paths", ingress.place()));
                }
                ways.for_each(|(_, way)| share.take(ingress, way));
            }
            self.add(host, &share);
        }
    }

    fn add(&mut self, host: &'a Host, share: &Share) {
        if share.all.is_some() || !share.paths.is_empty() {
            let mut own = Share::default();
            own.join(share);
            self.named.add(host, own, |known, more| known.join(&more));
        }
    }
}

/// The hosts with paths that a controller may read as expressions, each with the first Ingress that says so.
#[derive(Default)]
struct Expressions<'a>(Names<'a, String>);

impl<'a> Expressions<'a> {
    /// Claims may be older than what is known of this namespace, so both count.
    fn of(claims: &'a [RouteClaim], known: &'a Known<'a>) -> Self {
        let mut names = Names::default();
        for (ingress, hosts) in known.ingresses.iter().filter(|(ingress, _)| ingress.expressions) {
            hosts.iter().flatten().for_each(|host| names.add(host, ingress.place(), |_, _| {}));
        }
        for claim in claims.iter().filter(|claim| claim.expressions) {
            claim.hosts.iter().for_each(|(host, _)| names.add(host, claim.object.clone(), |_, _| {}));
        }
        Self(names)
    }

    /// The Ingress that makes expressions of the paths of a host, or of a part of it.
    fn over(&self, host: &Host) -> Option<&str> {
        let above = self.0.covering(host).chain(self.0.alike(host)).next().map(String::as_str);
        above.or_else(|| self.0.any_beneath(host).then_some("an Ingress of a name beneath it"))
    }
}

#[cfg(test)]
mod tests;
