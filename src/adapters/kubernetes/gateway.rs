//! Routes, Gateways and grants of the Gateway API, reduced to the facts a site is found from.
//!
//! The types are our own: a published crate for kube 5 does not exist, and a few fields are all that is used.
//! <https://gateway-api.sigs.k8s.io/reference/spec/>
//!
//! Not for finding the site; that is [`purge::site`].

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::parts::Condition;
use super::routing::{Counted, Object, read};
use apiserver::Resource;
use kernel::unreadable::Unreadable;
use purge::site::{GatewayFact, GrantFact, ListenerFact, ParentFact, ParentKind, RouteFact, RouteKind, Way};

/// The group of the Gateway API, in which everything used but `ReferenceGrant` is `v1` since its release 1.1.
const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The group of its experiments, in which sets of listeners were tried out first.
const EXPERIMENTS_GROUP: &str = "gateway.networking.x-k8s.io";

pub(super) const HTTP_ROUTES: Resource = Resource::new(GATEWAY_GROUP, "v1", "httproutes");

pub(super) const GRPC_ROUTES: Resource = Resource::new(GATEWAY_GROUP, "v1", "grpcroutes");

pub(super) const GATEWAYS: Resource = Resource::new(GATEWAY_GROUP, "v1", "gateways");

/// `ReferenceGrant`s as they are served since release 0.6.
pub(super) const GRANTS: Resource = Resource::new(GATEWAY_GROUP, "v1beta1", "referencegrants");

/// The same where only the newer version is served.
pub(super) const GRANTS_V1: Resource = Resource::new(GATEWAY_GROUP, "v1", "referencegrants");

pub(super) fn http_route(json: &str) -> Result<Counted<RouteFact>, Unreadable> {
    Ok((route(json, RouteKind::Http)?, 0))
}

pub(super) fn grpc_route(json: &str) -> Result<Counted<RouteFact>, Unreadable> {
    Ok((route(json, RouteKind::Grpc)?, 0))
}

fn route(json: &str, kind: RouteKind) -> Result<RouteFact, Unreadable> {
    let Object { metadata, spec, status } = read::<RouteSpec, RouteStatus>(json)?;
    let spec = spec.unwrap_or_default();
    let home = metadata.namespace.as_str();
    let rules = spec.rules.unwrap_or_default();
    let whole = rules.iter().any(RouteRule::is_whole);
    let (mut backends, mut ways) = (Vec::new(), Vec::new());
    for rule in rules {
        let taken = rule.ways(kind);
        // A weight of 0 gets no requests. <https://gateway-api.sigs.k8s.io/reference/spec/#backendref>
        let serves = |to: &Reference| to.is("", "Service") && to.weight != Some(0);
        for to in rule.backend_refs.unwrap_or_default().into_iter().filter(serves) {
            let to = (to.namespace_or(home), to.name);
            ways.extend(taken.iter().map(|way| (to.clone(), way.clone())));
            backends.push(to);
        }
    }
    // One entry for each reference and controller, the reference as the route has it.
    let said = status.and_then(|status| status.parents).unwrap_or_default();
    let accepted: Vec<ParentFact> =
        said.into_iter().filter(ParentStatus::is_accepted).filter_map(|said| said.parent_ref?.parent(home)).collect();
    let parents = spec.parent_refs.into_iter().flatten().filter_map(|to| to.parent(home));
    let parents = parents.map(|parent| ParentFact { accepted: accepted.contains(&parent), ..parent });
    Ok(RouteFact {
        kind,
        hostnames: spec.hostnames.unwrap_or_default(),
        backends,
        ways,
        whole,
        parents: parents.collect(),
        namespace: metadata.namespace,
        name: metadata.name,
        annotations: metadata.annotations,
    })
}

pub(super) fn gateway(json: &str) -> Result<GatewayFact, Unreadable> {
    let Object { metadata, spec, status } = read::<GatewaySpec, GatewayStatus>(json)?;
    let listeners = spec.and_then(|spec| spec.listeners).unwrap_or_default();
    let addresses = status.and_then(|status| status.addresses).unwrap_or_default();
    Ok(GatewayFact {
        namespace: metadata.namespace,
        name: metadata.name,
        listeners: listeners.into_iter().map(Listener::fact).collect(),
        addresses: addresses
            .into_iter()
            .filter(|address| address.kind.as_deref() == Some("Hostname"))
            .filter_map(|address| address.value)
            .collect(),
    })
}

pub(super) fn grant(json: &str) -> Result<Counted<GrantFact>, Unreadable> {
    let Object { metadata, spec, .. } = read::<GrantSpec, IgnoredAny>(json)?;
    let spec = spec.unwrap_or_default();
    let routes = spec.from.into_iter().flatten().filter(|from| from.group.as_deref() == Some(GATEWAY_GROUP));
    let from = routes.filter_map(|from| Some((route_kind(from.kind.as_deref()?)?, from.namespace?)));
    let is_service =
        |to: &Granted| to.group.as_deref().unwrap_or_default().is_empty() && to.kind.as_deref() == Some("Service");
    let to: Vec<Granted> = spec.to.into_iter().flatten().filter(is_service).collect();
    let all = to.iter().any(|to| to.name.is_none());
    let fact = GrantFact {
        namespace: metadata.namespace,
        from: from.collect(),
        services: (!all).then(|| to.into_iter().filter_map(|to| to.name).collect()),
    };
    Ok((fact, 0))
}

fn route_kind(kind: &str) -> Option<RouteKind> {
    match kind {
        "HTTPRoute" => Some(RouteKind::Http),
        "GRPCRoute" => Some(RouteKind::Grpc),
        _ => None,
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RouteSpec {
    pub hostnames: Option<Vec<String>>,
    parent_refs: Option<Vec<Reference>>,
    pub rules: Option<Vec<RouteRule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RouteRule {
    backend_refs: Option<Vec<Reference>>,
    pub matches: Option<Vec<RouteMatch>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RouteMatch {
    pub path: Option<MatchedPath>,
    method: Option<IgnoredAny>,
    #[serde(default)]
    headers: Option<Vec<IgnoredAny>>,
    #[serde(default)]
    query_params: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
pub(super) struct MatchedPath {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub value: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RouteStatus {
    pub parents: Option<Vec<ParentStatus>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentStatus {
    parent_ref: Option<Reference>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GrantSpec {
    from: Option<Vec<Granted>>,
    to: Option<Vec<Granted>>,
}

#[derive(Deserialize)]
struct Granted {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

/// A reference of the Gateway API; what an absent group or kind means depends on where it stands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    group: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: String,
    section_name: Option<String>,
    port: Option<u16>,
    /// Of a backend alone.
    weight: Option<i64>,
}

#[derive(Deserialize)]
struct GatewaySpec {
    listeners: Option<Vec<Listener>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listener {
    name: String,
    port: u16,
    hostname: Option<String>,
    protocol: Option<String>,
    allowed_routes: Option<AllowedRoutes>,
}

#[derive(Deserialize)]
struct AllowedRoutes {
    namespaces: Option<AllowedNamespaces>,
    kinds: Option<Vec<AllowedKind>>,
}

#[derive(Deserialize)]
struct AllowedNamespaces {
    from: Option<String>,
}

#[derive(Deserialize)]
struct AllowedKind {
    group: Option<String>,
    kind: String,
}

#[derive(Deserialize)]
struct GatewayStatus {
    addresses: Option<Vec<Address>>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: Option<String>,
    value: Option<String>,
}

impl RouteRule {
    /// Whether it takes every request. A rule without matches does.
    fn is_whole(&self) -> bool {
        self.matches.as_ref().is_none_or(|matches| matches.is_empty() || matches.iter().any(RouteMatch::is_every))
    }
}

impl RouteRule {
    /// The requests it takes, by their paths; conditions beside those only take less. What a `GRPCRoute` takes is a POST, which no cache keeps:
    /// its paths are not told apart.
    fn ways(&self, kind: RouteKind) -> Vec<Way> {
        let matches = self.matches.as_deref().filter(|matches| !matches.is_empty() && kind == RouteKind::Http);
        matches.map_or_else(|| vec![Way::Prefix("/".to_owned())], |all| all.iter().map(RouteMatch::way).collect())
    }
}

impl RouteMatch {
    /// A match without a path is for every path. <https://gateway-api.sigs.k8s.io/reference/spec/#httproutematch>
    fn way(&self) -> Way {
        let Some(MatchedPath { kind, value }) = &self.path else { return Way::Prefix("/".to_owned()) };
        let path = value.clone().unwrap_or_else(|| "/".to_owned());
        match kind.as_deref() {
            None | Some("PathPrefix") => Way::Prefix(path),
            Some("Exact") => Way::Exact(path),
            Some(_) => Way::Expression,
        }
    }

    fn is_every(&self) -> bool {
        let some = |list: &Option<Vec<IgnoredAny>>| list.as_ref().is_some_and(|list| !list.is_empty());
        let is_root = |path: &MatchedPath| {
            path.kind.as_deref().is_none_or(|kind| kind == "PathPrefix")
                && path.value.as_deref().is_none_or(|value| value == "/")
        };
        self.method.is_none()
            && !some(&self.headers)
            && !some(&self.query_params)
            && self.path.as_ref().is_none_or(is_root)
    }
}

impl ParentStatus {
    /// Whether the parent has accepted the route.
    pub fn is_accepted(&self) -> bool {
        let accepted = |condition: &Condition| condition.kind == "Accepted" && condition.holds();
        self.conditions.iter().flatten().any(accepted)
    }
}

impl Listener {
    /// A listener without `allowedRoutes` takes those of its own namespace, of the kinds its protocol has.
    fn fact(self) -> ListenerFact {
        let Self { name, port, hostname, protocol, allowed_routes } = self;
        let (namespaces, kinds) = allowed_routes.map_or((None, None), |allowed| (allowed.namespaces, allowed.kinds));
        let from = namespaces.and_then(|namespaces| namespaces.from);
        let named = kinds.filter(|kinds| !kinds.is_empty()).map(|kinds| {
            let ours = kinds.iter().filter(|one| one.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP);
            ours.filter_map(|one| route_kind(&one.kind)).collect::<BTreeSet<_>>()
        });
        let speaks_http = !matches!(protocol.as_deref(), Some("TLS" | "TCP" | "UDP"));
        let is_open = speaks_http && from.as_deref() != Some("None");
        ListenerFact {
            name,
            port,
            hostname,
            kinds: if is_open { named } else { Some(BTreeSet::new()) },
            same_namespace: from.as_deref().is_none_or(|from| from == "Same"),
        }
    }
}

impl Reference {
    /// Whether it refers to this kind, which is what it does when it names none.
    fn is(&self, group: &str, kind: &str) -> bool {
        self.group.as_deref().unwrap_or(group) == group && self.kind.as_deref().unwrap_or(kind) == kind
    }

    /// The parent it means, if that serves people outside. A parent is a Gateway where it names no kind.
    fn parent(self, home: &str) -> Option<ParentFact> {
        let group = self.group.as_deref().unwrap_or(GATEWAY_GROUP);
        let kind = match (group, self.kind.as_deref().unwrap_or("Gateway")) {
            (GATEWAY_GROUP, "Gateway") => ParentKind::Gateway,
            (GATEWAY_GROUP, "ListenerSet") | (EXPERIMENTS_GROUP, "XListenerSet") => ParentKind::ListenerSet,
            _ => return None,
        };
        Some(ParentFact {
            kind,
            namespace: self.namespace_or(home),
            name: self.name,
            listener: self.section_name,
            port: self.port,
            accepted: false,
        })
    }

    fn namespace_or(&self, home: &str) -> String {
        self.namespace.as_deref().unwrap_or(home).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_route_keeps_only_services_and_gateways_and_completes_their_namespaces() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {
                "hostnames": ["www.example.com"],
                "parentRefs": [
                    {"name": "edge", "namespace": "infra", "sectionName": "https", "port": 443},
                    {"name": "mesh", "kind": "Service", "group": ""},
                    {"name": "edge", "namespace": "infra"},
                    {"name": "more", "kind": "ListenerSet"},
                ],
                "rules": [
                    {"backendRefs": [{"name": "web", "port": 80}, {"name": "api", "namespace": "back"}]},
                    {"backendRefs": [{"name": "bucket", "kind": "Bucket", "group": "example.com"}]},
                    {},
                ],
            },
            "status": {"parents": [
                {
                    "parentRef": {"group": GATEWAY_GROUP, "kind": "Gateway", "name": "edge", "namespace": "infra",
                        "sectionName": "https", "port": 443},
                    "conditions": [
                        {"type": "ResolvedRefs", "status": "False"}, {"type": "Accepted", "status": "True"},
                    ],
                },
                {
                    "parentRef": {"name": "edge", "namespace": "infra"},
                    "conditions": [{"type": "Accepted", "status": "False"}],
                },
                {"parentRef": {"name": "more", "kind": "ListenerSet"}, "conditions": [{"type": "Accepted", "status": "True"}]},
            ]},
        });
        let (fact, _) = http_route(&object.to_string()).unwrap();
        assert!(fact.whole, "a rule without matches takes all paths");
        assert_eq!(fact.backends, [("shop".into(), "web".into()), ("back".into(), "api".into())]);
        let listener = Some("https".to_owned());
        let kind = ParentKind::Gateway;
        let (namespace, name) = ("infra".to_owned(), "edge".to_owned());
        let edge = ParentFact { kind, namespace, name, listener, port: Some(443), accepted: true };
        let refused = ParentFact { listener: None, port: None, accepted: false, ..edge.clone() };
        let more = ParentFact {
            kind: ParentKind::ListenerSet,
            namespace: "shop".into(),
            name: "more".into(),
            accepted: true,
            ..ParentFact::default()
        };
        assert_eq!(fact.parents, [edge, refused, more]);
    }

    #[test]
    fn a_route_takes_a_whole_host_only_if_one_match_asks_for_nothing() {
        let whole = |matches: serde_json::Value| {
            let spec = json!({"rules": [{"matches": matches}]});
            let object = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec});
            http_route(&object.to_string()).unwrap().0.whole
        };
        for every in [json!([]), json!([{}]), json!([{"path": {"type": "PathPrefix", "value": "/"}}])] {
            assert!(whole(every.clone()), "{every}");
        }
        for part in [
            json!([{"path": {"type": "Exact", "value": "/"}}]),
            json!([{"path": {"value": "/api"}}]),
            json!([{"headers": [{"name": "canary", "value": "1"}]}]),
            json!([{"method": "GET"}, {"queryParams": [{"name": "v", "value": "2"}]}]),
        ] {
            assert!(!whole(part.clone()), "{part}");
        }
    }

    #[test]
    fn each_backend_of_a_route_gets_the_paths_of_its_rules() {
        let rules = json!([
            {"matches": [{"path": {"value": "/api"}, "headers": [{"name": "canary", "value": "1"}]}, {"method": "GET"}],
                "backendRefs": [{"name": "api"}, {"name": "off", "weight": 0}]},
            {"matches": [{"path": {"type": "Exact", "value": "/x"}}, {"path": {"type": "RegularExpression", "value": "/v[12]"}}],
                "backendRefs": [{"name": "web"}, {"name": "api"}]},
        ]);
        let object = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"rules": rules}});
        let words = |fact: RouteFact| {
            fact.ways.into_iter().map(|((_, name), way)| format!("{name} {way:?}")).collect::<Vec<_>>()
        };
        let read = words(http_route(&object.to_string()).unwrap().0);
        let expected = [
            r#"api Prefix("/api")"#,
            r#"api Prefix("/")"#,
            r#"web Exact("/x")"#,
            "web Expression",
            r#"api Exact("/x")"#,
            "api Expression",
        ];
        assert_eq!(read, expected);
        let all = words(grpc_route(&object.to_string()).unwrap().0);
        assert!(all.iter().all(|line| line.ends_with(r#"Prefix("/")"#)), "{all:?}");
    }

    #[test]
    fn a_grant_tells_who_may_lead_to_which_services() {
        let object = |to: serde_json::Value| {
            json!({
                "metadata": {"namespace": "shop", "name": "from-infra"},
                "spec": {
                    "from": [
                        {"group": GATEWAY_GROUP, "kind": "HTTPRoute", "namespace": "infra"},
                        {"group": GATEWAY_GROUP, "kind": "Gateway", "namespace": "infra"},
                    ],
                    "to": to,
                },
            })
        };
        let fact = |to| grant(&object(to).to_string()).unwrap().0;
        let named = fact(json!([{"group": "", "kind": "Service", "name": "web"}, {"group": "", "kind": "Secret"}]));
        assert_eq!(named.from, [(RouteKind::Http, "infra".to_owned())]);
        assert_eq!(named.services, Some(BTreeSet::from(["web".to_owned()])));
        assert_eq!(fact(json!([{"group": "", "kind": "Service"}])).services, None);
    }

    #[test]
    fn a_gateway_tells_its_listeners_and_the_host_names_among_its_addresses() {
        let object = json!({
            "metadata": {"namespace": "infra", "name": "edge"},
            "spec": {"listeners": [
                {"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "*.example.com"},
                {"name": "all", "port": 80, "protocol": "HTTP", "allowedRoutes": {
                    "namespaces": {"from": "All"}, "kinds": [{"kind": "GRPCRoute"}],
                }},
                {"name": "tls", "port": 8443, "protocol": "TLS"},
            ]},
            "status": {"addresses": [
                {"type": "Hostname", "value": "lb.example.net"}, {"type": "IPAddress", "value": "192.0.2.1"},
            ]},
        });
        let fact = gateway(&object.to_string()).unwrap();
        assert_eq!(fact.addresses, ["lb.example.net"]);
        let [https, all, tls] = fact.listeners.as_slice() else { panic!("{:?}", fact.listeners) };
        assert_eq!(
            (https.hostname.as_deref(), &https.kinds, https.same_namespace),
            (Some("*.example.com"), &None, true)
        );
        assert_eq!((&all.kinds, all.same_namespace), (&Some(BTreeSet::from([RouteKind::Grpc])), false));
        assert_eq!(tls.kinds, Some(BTreeSet::new()));
    }
}
