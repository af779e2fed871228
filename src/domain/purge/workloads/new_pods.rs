//! At which addresses the new pods of a workload can be asked, as its own Service would lead to them.
//!
//! A pod is asked that stays, is ready and is of the newest template. The way to it is a port of a Service that selects it. Where there are
//! several ways, one is chosen by what visitors are likely to come by, and always the same one:
//!
//! 1. A Service that an Ingress or a route leads to, before one that none does: others are for metrics or for operators.
//! 2. A port for HTTP, by its `appProtocol` or by its name; then port 80; then 8080; then any other. One that is for TLS, or for what is
//!    not HTTP/1.1, comes last, because pods are asked by that and without TLS.
//! 3. A way to two pods before a way to one.
//! 4. The name of the Service, then the number of the port.
//!
//! Not for asking them, nor for how many are asked.

use core::net::{IpAddr, SocketAddr}; // as values: `core` has no sockets
use std::collections::{BTreeMap, BTreeSet};

use crate::workloads::readiness::Pod;
use crate::workloads::serving::{has_version_of, newest, staying};
use crate::workloads::workload::Workload;
use kernel::names::selector::{Labels, is_subset};

/// What is around a workload, read afresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The workload's own pods, with their labels.
    pub pods: Vec<(Labels, Pod)>,
    /// Where they are, by their names.
    pub places: BTreeMap<String, Place>,
    /// All Services of the namespace.
    pub services: Vec<Service>,
}

/// Where a pod can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// One of each family at most, its first address first.
    pub addresses: Vec<IpAddr>,
    /// The TCP ports of its containers that have names.
    pub ports: BTreeMap<String, u16>,
}

/// A Service, as far as it leads to pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub name: String,
    /// Empty where it selects no pods by itself: an `ExternalName` does not, whatever it says.
    pub selector: Labels,
    /// The families of its addresses, the first one first; empty where it does not say.
    pub families: Vec<Family>,
    /// Its TCP ports.
    pub ports: Vec<Port>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub name: Option<String>,
    /// `appProtocol`: what its owner says of it, which no name contradicts.
    pub speaks: Option<String>,
    pub number: u16,
    pub target: Target,
}

/// The port of pods that a port of a Service leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Number(u16),
    /// By the name that containers give it.
    Named(String),
}

/// Why no new pod can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWay {
    #[error("{0} is gone")]
    Gone(String),
    #[error("it has no pods")]
    NoPods,
    #[error("its pods are of {0} templates, and nothing says which is the newest: an update is under way")]
    ManyTemplates(usize),
    #[error("no pod of its newest template is ready")]
    NoneReady,
    #[error("no Service of its namespace selects its new pods")]
    NoService,
    #[error(
        "no TCP port of Service {0} leads to a new pod: see spec.ports, the names of ports of its containers, and the addresses of its pods"
    )]
    NoPort(String),
}

/// What way is better; the smaller, the better. See the module's text.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    is_unrouted: bool,
    port: u8,
    is_to_one: bool,
    service: &'a str,
    number: u16,
}

/// The addresses of the new pods, in the order of their names. `fronts`: the Services that Ingresses or routes lead to.
///
/// # Errors
/// Where there is no way to any.
pub fn addresses(of: &Workload, around: &Around, fronts: &BTreeSet<String>) -> Result<Vec<SocketAddr>, NoWay> {
    let new = new_pods(&around.pods, of)?;
    let selects = |service: &&Service| new.iter().any(|(labels, _)| service.selects(labels));
    let selecting: Vec<&Service> = around.services.iter().filter(selects).collect();
    let first = selecting.iter().map(|service| &service.name).min().ok_or(NoWay::NoService)?;
    let ways = selecting.iter().flat_map(|service| service.ports.iter().map(move |port| (*service, port)));
    let ranked = ways.filter_map(|(service, port)| {
        let selected = new.iter().filter(|(labels, _)| service.selects(labels));
        let places = selected.filter_map(|(_, pod)| around.places.get(&pod.name));
        let addresses: Vec<SocketAddr> = places.filter_map(|place| service.address(port, place)).collect();
        let rank = Rank {
            is_unrouted: !fronts.contains(&service.name),
            port: port.rank(),
            is_to_one: addresses.len() == 1,
            service: &service.name,
            number: port.number,
        };
        (!addresses.is_empty()).then_some((rank, addresses))
    });
    let best = ranked.min_by(|(one, _), (other, _)| one.cmp(other));
    best.map(|(_, addresses)| addresses).ok_or_else(|| NoWay::NoPort(first.clone()))
}

/// The pods that stay, are ready and are of the newest template, by name.
fn new_pods<'a>(pods: &'a [(Labels, Pod)], of: &'a Workload) -> Result<Vec<&'a (Labels, Pod)>, NoWay> {
    let label = kinds::template_label(of.object);
    let hash = |labels: &'a Labels| labels.get(label).map(String::as_str);
    let hashes = |is_meant: &dyn Fn(&Pod) -> bool| -> BTreeSet<Option<&'a str>> {
        staying(pods).filter(|(_, pod)| is_meant(pod)).map(|(labels, _)| hash(labels)).collect()
    };
    let said = match &of.stable {
        // The update was aborted: its pods are those before.
        Some(stable) => BTreeSet::from([Some(stable.hash.as_str())]),
        None => newest(pods, of),
    };
    let newest = if said.is_empty() {
        let all = hashes(&|_| true);
        // Where something writes other images into pods, none has its version.
        let newest = if all.len() > 1 { hashes(&|pod| has_version_of(pod, of)) } else { all.clone() };
        match newest.len() {
            0 if all.is_empty() => return Err(NoWay::NoPods),
            1 => newest,
            _ => return Err(NoWay::ManyTemplates(all.len())),
        }
    } else {
        said
    };
    let mut new: Vec<_> = staying(pods).filter(|(labels, pod)| pod.ready && newest.contains(&hash(labels))).collect();
    new.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    if new.is_empty() { Err(NoWay::NoneReady) } else { Ok(new) }
}

impl Service {
    fn selects(&self, labels: &Labels) -> bool {
        !self.selector.is_empty() && is_subset(&self.selector, labels)
    }

    /// Where a port of it leads to at this place.
    fn address(&self, port: &Port, place: &Place) -> Option<SocketAddr> {
        let of_family = |family: &Family| place.addresses.iter().find(|address| family.is_of(address));
        let address = match self.families.as_slice() {
            [] => place.addresses.first(),
            families => families.iter().find_map(of_family),
        };
        let number = match &port.target {
            Target::Number(number) => Some(number),
            Target::Named(name) => place.ports.get(name),
        };
        Some(SocketAddr::new(*address?, *number?))
    }
}

impl Family {
    const fn is_of(self, address: &IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

impl Port {
    /// By the names of protocols that Kubernetes knows for `appProtocol`
    /// (https://kubernetes.io/docs/concepts/services-networking/service/#application-protocol), and by those that begin the names of
    /// ports where a mesh reads them: `http-web`.
    fn rank(&self) -> u8 {
        let named = || self.name.as_deref().and_then(|name| name.split('-').next());
        match (self.speaks.as_deref().or_else(named), self.number) {
            (Some("http" | "kubernetes.io/ws"), _) => 0,
            (Some("https" | "tls" | "kubernetes.io/wss" | "kubernetes.io/h2c" | "grpc"), _) | (_, 443 | 8443) => 4,
            (_, 80) => 1,
            (_, 8080) => 2,
            _ => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settled, version};
    use kinds::Newest;
    use kinds::reported::{Replicas, Says};

    const HASH: &str = "pod-template-hash";

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// A ready pod of `web`: its name, the hash of its template, the tag of its image, its addresses.
    fn pod(name: &str, hash: &str, tag: &str, addresses: &[&str]) -> ((Labels, Pod), (String, Place)) {
        let pod = Pod {
            name: name.to_owned(),
            version: Some(version(tag)),
            ready: true,
            terminating: false,
            started: true,
            finished: false,
            trouble: None,
        };
        let addresses = addresses.iter().map(|address| address.parse().expect("an address")).collect();
        let place = Place { addresses, ports: BTreeMap::from([("web".to_owned(), 3000)]) };
        ((labels(&[("app", "web"), (HASH, hash)]), pod), (name.to_owned(), place))
    }

    fn port(name: &str, number: u16, target: Target) -> Port {
        Port { name: (!name.is_empty()).then(|| name.to_owned()), speaks: None, number, target }
    }

    fn service(name: &str, ports: Vec<Port>) -> Service {
        Service { name: name.to_owned(), selector: labels(&[("app", "web")]), families: Vec::new(), ports }
    }

    fn http(name: &str) -> Service {
        service(name, vec![port("http", 80, Target::Number(8080))])
    }

    fn around(pods: Vec<((Labels, Pod), (String, Place))>, services: Vec<Service>) -> Around {
        let (pods, places): (Vec<_>, BTreeMap<_, _>) = pods.into_iter().unzip();
        Around { pods, places, services }
    }

    fn two() -> Vec<((Labels, Pod), (String, Place))> {
        vec![pod("web-2", "b", "2", &["10.0.0.2"]), pod("web-1", "b", "2", &["10.0.0.1"])]
    }

    /// The addresses, or why there are none, in words. Of these Services, `front` is routed to.
    fn found(around: &Around, front: &str) -> String {
        let workload = settled(version("2"), 1, 2);
        found_of(&workload, around, front)
    }

    fn found_of(workload: &Workload, around: &Around, front: &str) -> String {
        match addresses(workload, around, &BTreeSet::from([front.to_owned()])) {
            Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_port_leads_to_a_number_or_to_what_containers_call_so() {
        let numbered = around(two(), vec![http("web")]);
        assert_eq!(found(&numbered, "web"), "10.0.0.1:8080 10.0.0.2:8080", "in the order of their names");
        let named = |name: &str| service("web", vec![port("", 80, Target::Named(name.to_owned()))]);
        assert_eq!(found(&around(two(), vec![named("web")]), "web"), "10.0.0.1:3000 10.0.0.2:3000");
        let mut other = around(two(), vec![named("web")]);
        other.places.get_mut("web-2").expect("a place").ports = BTreeMap::from([("web".to_owned(), 3001)]);
        assert_eq!(found(&other, "web"), "10.0.0.1:3000 10.0.0.2:3001", "each pod by its own containers");
        let unknown = found(&around(two(), vec![named("http")]), "web");
        assert!(unknown.starts_with("no TCP port of Service web leads to a new pod"), "{unknown}");
        let portless = found(&around(two(), vec![service("web", Vec::new())]), "web");
        assert!(portless.starts_with("no TCP port of Service web"), "{portless}");
    }

    #[test]
    fn of_several_ways_the_one_that_visitors_come_by_is_taken() {
        let ported = |name: &str, of: &str, number| service(name, vec![port(of, number, Target::Number(number))]);
        let said = |name: &str, of: &str, number, speaks: &str| {
            let port = Port { speaks: Some(speaks.to_owned()), ..port(of, number, Target::Number(number)) };
            service(name, vec![port])
        };
        for (services, front, expected, why) in [
            (vec![ported("a", "http", 80), ported("b", "", 9000)], "b", 9000, "a route leads to it"),
            (vec![ported("a", "", 80), ported("b", "http", 9000)], "", 9000, "its port is called http"),
            (vec![ported("a", "", 8080), ported("b", "", 80)], "", 80, "80 before 8080"),
            (vec![ported("a", "", 81), ported("b", "", 8080)], "", 8080, "8080 before any other"),
            (vec![ported("a", "", 80), ported("b", "http-web", 9000)], "", 9000, "its name begins with http"),
            (vec![ported("a", "grpc-web", 80), ported("b", "", 9000)], "", 9000, "pods are not asked by that"),
            (
                vec![said("a", "http", 80, "https"), ported("b", "", 9000)],
                "",
                9000,
                "its owner says that it is for TLS",
            ),
            (vec![ported("a", "", 80), said("b", "tls", 9000, "http")], "", 9000, "its owner says that it is for HTTP"),
            (vec![said("a", "", 80, "kubernetes.io/h2c"), ported("b", "", 9000)], "", 9000, "nor by HTTP/2 alone"),
            (vec![ported("a", "https", 80), ported("b", "metrics", 9000)], "", 9000, "TLS last"),
            (vec![ported("a", "", 443), ported("b", "metrics", 9000)], "", 9000, "TLS last, by its number"),
            (vec![ported("b", "", 82), ported("a", "", 83)], "", 83, "by name"),
            (vec![ported("a", "", 443)], "", 443, "there is no other"),
        ] {
            let expected = format!("10.0.0.1:{expected} 10.0.0.2:{expected}");
            assert_eq!(found(&around(two(), services), front), expected, "{why}");
        }
        let two_ports = service("a", vec![port("", 90, Target::Number(90)), port("", 82, Target::Number(82))]);
        assert_eq!(found(&around(two(), vec![two_ports]), ""), "10.0.0.1:82 10.0.0.2:82", "by number");
        let mut one = ported("a", "", 90);
        one.selector.insert("statefulset.kubernetes.io/pod-name".to_owned(), "web-1".to_owned());
        let mut pods = two();
        pods[1].0.0.extend(one.selector.clone());
        assert_eq!(found(&around(pods, vec![one, ported("b", "", 90)]), ""), "10.0.0.1:90 10.0.0.2:90", "to two");
    }

    #[test]
    fn a_service_leads_only_to_what_it_selects() {
        let none = "no Service of its namespace selects its new pods";
        assert_eq!(found(&around(two(), Vec::new()), ""), none);
        let selecting = |selector| Service { selector, ..http("web") };
        assert_eq!(found(&around(two(), vec![selecting(Labels::new())]), "web"), none, "as an ExternalName");
        assert_eq!(found(&around(two(), vec![selecting(labels(&[("app", "blog")]))]), "web"), none);
        let active = labels(&[("app", "web"), (HASH, "a")]);
        assert_eq!(found(&around(two(), vec![selecting(active)]), "web"), none, "it still leads to the pods before");
    }

    #[test]
    fn only_pods_that_stay_and_are_ready_are_asked() {
        let with = |change: &dyn Fn(&mut Pod)| {
            let mut pods = two();
            change(&mut pods[0].0.1);
            found(&around(pods, vec![http("web")]), "web")
        };
        assert_eq!(with(&|pod| pod.ready = false), "10.0.0.1:8080");
        assert_eq!(with(&|pod| pod.terminating = true), "10.0.0.1:8080");
        assert_eq!(with(&|pod| pod.finished = true), "10.0.0.1:8080");
        let mut none = two();
        none.iter_mut().for_each(|((_, pod), _)| pod.ready = false);
        assert_eq!(found(&around(none, vec![http("web")]), "web"), "no pod of its newest template is ready");
        assert_eq!(found(&around(Vec::new(), vec![http("web")]), "web"), "it has no pods");
        let unplaced = found(&around(vec![pod("web-1", "b", "2", &[])], vec![http("web")]), "web");
        assert!(unplaced.starts_with("no TCP port of Service web leads to a new pod"), "{unplaced}");
    }

    #[test]
    fn a_pod_of_an_earlier_template_is_not_asked() {
        let old = pod("old", "a", "1", &["10.0.0.9"]);
        let mixed = |old| around([two(), vec![old]].concat(), vec![http("web")]);
        assert_eq!(found(&mixed(old.clone()), "web"), "10.0.0.1:8080 10.0.0.2:8080", "by its version");
        let undecided = "its pods are of 2 templates, and nothing says which is the newest: an update is under way";
        assert_eq!(found(&mixed(pod("old", "a", "2", &["10.0.0.9"])), "web"), undecided);
        let rewritten = around(vec![pod("web-1", "b", "mirror", &["10.0.0.1"])], vec![http("web")]);
        assert_eq!(found(&rewritten, "web"), "10.0.0.1:8080", "all that stay are of one template");
        let labelled = Workload { newest: Newest::Labelled("a".to_owned()), ..settled(version("2"), 1, 2) };
        assert_eq!(found_of(&labelled, &mixed(old.clone()), "web"), "10.0.0.9:8080", "by what the workload says");
        let stable = kinds::Stable { hash: "a".to_owned(), replicas: Replicas::default(), says: Says::default() };
        let aborted = Workload {
            newest: Newest::Labelled("b".to_owned()),
            stable: Some(Box::new(stable)),
            ..settled(version("2"), 1, 2)
        };
        assert_eq!(found_of(&aborted, &mixed(old), "web"), "10.0.0.9:8080", "the update was aborted");
    }

    #[test]
    fn a_pod_is_asked_at_an_address_of_a_family_of_the_service() {
        let both = || vec![pod("web-1", "b", "2", &["10.0.0.1", "fd00::1"])];
        let of = |families: &[Family]| Service { families: families.to_vec(), ..http("web") };
        let found = |pods, families| found(&around(pods, vec![of(families)]), "web");
        assert_eq!(found(both(), &[]), "10.0.0.1:8080");
        assert_eq!(found(both(), &[Family::V6]), "[fd00::1]:8080");
        assert_eq!(found(both(), &[Family::V6, Family::V4]), "[fd00::1]:8080");
        let v4 = || vec![pod("web-1", "b", "2", &["10.0.0.1"])];
        assert_eq!(found(v4(), &[Family::V6, Family::V4]), "10.0.0.1:8080");
        assert!(found(v4(), &[Family::V6]).starts_with("no TCP port"), "it is no endpoint of it");
    }
}
