//! Reads what all Ingresses and routes of the cluster take, with their paths and when they were made: who is asked whose a host
//! is, where `tenants.default` is `own`.
//!
//! A host may only be judged by all who route it, so whatever cannot be read ends the reading: nothing is purged then, and that
//! is reported. Hosts that a route has from its Gateway alone are not its own; it has to name them.
//!
//! Not for deciding whose a host is; that is `purge::site::own`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::gateway::{
    GRPC_ROUTES, HTTP_ROUTES, MatchedPath, ParentStatus, RouteMatch, RouteRule, RouteSpec, RouteStatus,
};
use super::routing::{HttpPath, INGRESSES, IngressSpec, IngressStatus, Metadata, Object, may_make_expressions, read};
use apiserver::{Api, Collection, Decoder, Resource};
use kernel::names::host::Host;
use kernel::names::paths::Path;
use kernel::unreadable::Unreadable;
use purge::ports::PortError;
use purge::site::{PathMatch, RouteClaim, taken};

/// How long a reading is used again: a release of many workloads costs one.
const AGE_MAX: Duration = Duration::from_secs(15);

/// How long a reading may take.
const LIST_MAX: Duration = Duration::from_secs(20);

/// Hosts and paths of one namespace that are kept. Those beyond it are not the namespace's own.
const NAMESPACE_MAX: usize = 5_000;

/// The same of all namespaces, about 60 MB. With more, no namespace's claims are known.
const ALL_MAX: usize = 300_000;

/// Reads claims, once at a time.
pub(super) struct ClaimReader {
    api: Api,
    kept: Mutex<Option<(Instant, Arc<Vec<RouteClaim>>)>>,
}

impl ClaimReader {
    pub fn new(api: Api) -> Self {
        Self { api, kept: Mutex::default() }
    }

    /// All claims of the cluster, some seconds old at most.
    pub async fn claims(&self) -> Result<Arc<Vec<RouteClaim>>, PortError> {
        let mut kept = self.kept.lock().await;
        if let Some((_, claims)) = kept.as_ref().filter(|(at, _)| at.elapsed() < AGE_MAX) {
            return Ok(Arc::clone(claims));
        }
        *kept = None;
        let at = Instant::now();
        let failed = |why: String| PortError::passing("failed to read who routes which host", why);
        let late = || {
            failed(format!(
                "listing the Ingresses and routes of all namespaces took more than {} s",
                LIST_MAX.as_secs()
            ))
        };
        let read = tokio::time::timeout(LIST_MAX, self.read()).await.map_err(|_| late())??;
        if read.all > ALL_MAX {
            return Err(failed(format!(
                "Ingresses and routes of all namespaces have more than {ALL_MAX} hosts and paths"
            )));
        }
        if let Some((namespace, _)) = read.spaces.iter().find(|(_, count)| **count > NAMESPACE_MAX) {
            tracing::warn!(
                namespace,
                most = NAMESPACE_MAX,
                "more hosts and paths than are read of a namespace; the rest is not its own"
            );
        }
        let claims = Arc::new(read.claims);
        *kept = Some((at, Arc::clone(&claims)));
        Ok(claims)
    }

    async fn read(&self) -> Result<Read, PortError> {
        let mut read = Read::default();
        self.list(INGRESSES, ingress, &mut read).await?;
        self.list(HTTP_ROUTES, http_route, &mut read).await?;
        self.list(GRPC_ROUTES, grpc_route, &mut read).await?;
        Ok(read)
    }

    async fn list(&self, resource: Resource, decode: Decoder<RouteClaim>, read: &mut Read) -> Result<(), PortError> {
        let everywhere = Collection::everywhere(resource);
        match self.api.each(&everywhere, decode, |claim| read.add(claim)).await {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(PortError::passing(everywhere.attempt("list").to_string(), why)),
            // A kind that the API server does not know has no objects.
            Err(failed) if failed.status() == Some(404) => Ok(()),
            Err(failed) => Err(failed.error),
        }
    }
}

#[derive(Default)]
struct Read {
    claims: Vec<RouteClaim>,
    spaces: BTreeMap<String, usize>,
    all: usize,
}

impl Read {
    fn add(&mut self, mut claim: RouteClaim) {
        let of_space = self.spaces.entry(claim.namespace.clone()).or_default();
        let all = claim.hosts.len();
        claim.hosts.retain(|(_, paths)| {
            *of_space = of_space.saturating_add(1 + paths.len());
            *of_space <= NAMESPACE_MAX
        });
        if claim.expressions && claim.hosts.len() < all {
            // Without hosts it takes nothing from anybody; what it makes expressions of is not known then. One says enough.
            let known = self.claims.iter().any(|known| known.hosts.is_empty());
            let unknown = || RouteClaim { hosts: Vec::new(), ..claim.clone() };
            self.claims.extend((!known).then(unknown));
        }
        self.all += claim.hosts.iter().map(|(_, paths)| 1 + paths.len()).sum::<usize>();
        if !claim.hosts.is_empty() && self.all <= ALL_MAX {
            self.claims.push(claim);
        }
    }
}

fn claim(of: Metadata, kind: &str, accepted: bool, hosts: Vec<(Host, Vec<Path>)>) -> RouteClaim {
    let object = format!("{kind} {}/{}", of.namespace, of.name);
    // One without a time is taken to be the youngest: it takes no host from another.
    let created = of.creation_timestamp.unwrap_or_else(|| "9999".to_owned());
    let expressions = may_make_expressions(&of.annotations);
    RouteClaim { created, namespace: of.namespace, object, accepted, expressions, hosts }
}

fn ingress(json: &str) -> Result<RouteClaim, Unreadable> {
    let Object { metadata, spec, status } = read::<IngressSpec, IngressStatus>(json)?;
    let accepted = status.and_then(|status| status.load_balancer).is_some_and(|one| !one.ingress.items.is_empty());
    let hosts = spec.unwrap_or_default().rules.items.into_iter().filter_map(|rule| {
        let host = Host::parse(rule.host.as_deref()?).ok()?;
        let Some(http) = rule.http else { return Some((host, taken("/", PathMatch::Prefix))) };
        let paths = |one: &HttpPath| {
            let path_match = match one.path_type.as_deref() {
                Some("Exact") => PathMatch::Exact,
                Some("Prefix") => PathMatch::Prefix,
                _ => PathMatch::Other,
            };
            taken(one.path.as_deref().unwrap_or("/"), path_match)
        };
        Some((host, http.paths.items.iter().flat_map(paths).collect()))
    });
    let hosts = hosts.collect();
    Ok(claim(metadata, "Ingress", accepted, hosts))
}

fn http_route(json: &str) -> Result<RouteClaim, Unreadable> {
    route("HTTPRoute", json)
}

fn grpc_route(json: &str) -> Result<RouteClaim, Unreadable> {
    route("GRPCRoute", json)
}

fn route(kind: &str, json: &str) -> Result<RouteClaim, Unreadable> {
    let Object { metadata, spec, status } = read::<RouteSpec, RouteStatus>(json)?;
    let spec = spec.unwrap_or_default();
    let accepted = status.and_then(|status| status.parents).iter().flatten().any(ParentStatus::is_accepted);
    let rule = |rule: &RouteRule| match rule.matches.as_deref() {
        None | Some([]) => taken("/", PathMatch::Prefix),
        Some(matches) => matches.iter().flat_map(path).collect(),
    };
    let mut paths: Vec<Path> = spec.rules.iter().flatten().flat_map(rule).collect();
    paths.sort();
    paths.dedup();
    let hosts = spec.hostnames.iter().flatten().filter_map(|text| Host::parse(text).ok());
    let hosts = hosts.map(|host| (host.at_any_depth(), paths.clone())).collect();
    Ok(claim(metadata, kind, accepted, hosts))
}

fn path(one: &RouteMatch) -> Vec<Path> {
    let Some(MatchedPath { kind, value }) = &one.path else { return taken("/", PathMatch::Prefix) };
    let path_match = match kind.as_deref() {
        Some("Exact") => PathMatch::Exact,
        Some("RegularExpression") => PathMatch::Other,
        _ => PathMatch::Prefix,
    };
    taken(value.as_deref().unwrap_or("/"), path_match)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(claim: &RouteClaim) -> Vec<String> {
        let words = |(host, paths): &(Host, Vec<Path>)| {
            let paths: Vec<&str> = paths.iter().map(Path::as_str).collect();
            format!("{} {}", host.as_str(), paths.join(" "))
        };
        claim.hosts.iter().map(words).collect()
    }

    #[test]
    fn an_expression_whose_hosts_are_not_kept_is_kept_without_them() {
        let path = taken("/", PathMatch::Prefix);
        let host = |n: usize| (Host::parse(&format!("h{n}.io")).unwrap(), path.clone());
        let one = |expressions: bool, count: usize| RouteClaim {
            created: String::new(),
            namespace: "shop".into(),
            object: "Ingress shop/web".into(),
            accepted: true,
            expressions,
            hosts: (0..count).map(host).collect(),
        };
        let unknown = |all: &[RouteClaim]| {
            let mut read = Read::default();
            all.iter().cloned().for_each(|claim| read.add(claim));
            read.claims.iter().filter(|claim| claim.hosts.is_empty()).count()
        };
        let much = NAMESPACE_MAX;
        assert_eq!(unknown(&[one(true, 1), one(false, much)]), 0);
        assert_eq!(unknown(&[one(false, much), one(true, 1), one(true, 1)]), 1);
    }

    #[test]
    fn an_ingress_takes_the_paths_of_its_rules_once_it_has_an_address() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"rules": [
                {"host": "www.example.com", "http": {"paths": [{"path": "/shop", "pathType": "Prefix"}, {"path": "/x", "pathType": "Exact"}]}},
                {"host": "all.example.com"}, {"http": null}, {"host": "not a host"},
            ]},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        let claim = ingress(&object.to_string()).unwrap();
        assert_eq!(words(&claim), ["www.example.com /shop /shop?* /shop/* /x /x?*", "all.example.com /*"]);
        assert_eq!(
            (claim.created.as_str(), claim.object.as_str(), claim.accepted),
            ("2026-01-02T03:04:05Z", "Ingress shop/web", true)
        );
        let mut pending = object;
        pending["status"] = json!({"loadBalancer": {}});
        assert!(!ingress(&pending.to_string()).unwrap().accepted);
    }

    #[test]
    fn a_route_takes_its_paths_on_all_its_hosts_once_a_parent_has_accepted_it() {
        let object = json!({
            "metadata": {"namespace": "shop", "name": "web", "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"hostnames": ["a.example.com", "*.b.example.com"], "rules": [
                {"matches": [{"path": {"type": "PathPrefix", "value": "/api"}}, {"path": {"type": "RegularExpression", "value": "/v[12]/.*"}}]},
            ]},
            "status": {"parents": [
                {"conditions": [{"type": "Accepted", "status": "False"}]}, {"conditions": [{"type": "Accepted", "status": "True"}]},
            ]},
        });
        let claim = http_route(&object.to_string()).unwrap();
        assert_eq!(words(&claim), ["a.example.com /api /api/* /api?* /v*", "**.b.example.com /api /api/* /api?* /v*"]);
        assert!(claim.accepted);
        let mut whole = object;
        whole["spec"]["rules"] = json!([{"backendRefs": []}]);
        assert_eq!(words(&http_route(&whole.to_string()).unwrap())[0], "a.example.com /*");
    }
}
