//! What leads to a workload: Services, Ingresses, routes, Gateways and grants of every namespace, which tenants write.

use std::sync::Arc;

use allclear::adapters::kubernetes::{Cluster, Scope};
use bytes::Bytes;
use purge::ports::ClusterView;
use purge::site::{Age, Gathered, RouteClaim};

use crate::api::{self, Answer};
use crate::{Target, target};

pub const TARGETS: &[Target] = &[
    target("services", |bytes| routes("services", bytes)),
    target("ingresses", |bytes| routes("ingresses", bytes)),
    target("http_routes", |bytes| routes("httproutes", bytes)),
    target("grants", |bytes| routes("referencegrants", bytes)),
    target("gateway", |bytes| routes("gateways", bytes)),
];

/// A Service, an Ingress and a route that lead to it, so that what is read beside them matters.
const SERVICES: &str = r#"{"items":[{"metadata":{"name":"web","namespace":"shop"},"spec":{"selector":{"app":"web"},"ports":
    [{"name":"http","port":80}]}}]}"#;
const ROUTES: &str = r#"{"items":[{"metadata":{"name":"web","namespace":"shop"},"spec":{"parentRefs":[{"name":"edge"}],
    "hostnames":["shop.example.com"],"rules":[{"backendRefs":[{"name":"web","port":80}]}]},"status":{"parents":[{"parentRef":
    {"name":"edge"},"conditions":[{"type":"Accepted","status":"True"}]}]}}]}"#;

/// Lists of one kind, or a Gateway, beside good ones of the others.
fn routes(plural: &'static str, bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let length = bytes.len();
    let (one, claims) = read(plural, bytes.clone());
    let (other, _) = read(plural, bytes);
    let is_read = match (one, other) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one, other);
            assert!(one.names() <= 64 + length, "{} names from {length} bytes", one.names());
            assert!(one.left_out().iter().all(|(place, why)| !why.is_empty() && place.len() + why.len() <= 4_096));
            one.left_out().is_empty()
        }
        (Err(one), Err(other)) => {
            assert_eq!(one, other);
            assert!(one.len() <= 8 * 1024);
            false
        }
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("the same lists are read and are not: {error}"),
    };
    if let Ok(claims) = claims {
        assert!(claims.len() <= 64 + length, "{} claims from {length} bytes", claims.len());
    }
    is_read
}

type Read = (Result<Arc<Gathered>, String>, Result<Arc<Vec<RouteClaim>>, String>);

fn read(plural: &'static str, bytes: Bytes) -> Read {
    api::run(async move {
        let clients = api::clients(move |uri| {
            let path = uri.path();
            if path.ends_with(&format!("/{plural}")) || path.contains(&format!("/{plural}/")) {
                return Answer::whole(bytes.clone());
            }
            match path.rsplit('/').next() {
                Some("services") => Answer::whole(SERVICES),
                Some("httproutes") => Answer::whole(ROUTES),
                Some("ingresses" | "grpcroutes" | "referencegrants") => Answer::empty(),
                Some(_) | None => Answer::missing(),
            }
        });
        let cluster = Cluster::new(&clients, Scope::All, api::tempo());
        let facts = cluster.site_facts("shop", Age::Fresh).await.map_err(|error| error.to_string());
        (facts, cluster.route_claims().await.map_err(|error| error.to_string()))
    })
}
