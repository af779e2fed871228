//! Everything that is not a watch of workloads: single reads, pods, sites, scopes, connecting.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use allclear::adapters::kubernetes::{ConnectError, Options, Scope, connect};
use futures_util::StreamExt;
use purge::ports::{ClusterView, Flow, PodSight, Retry};
use purge::site::Age;
use purge::workloads::readiness::Pod;
use sandbox::http::{Action, Fault, When};
use serde_json::{Value, json};

use super::{Bench, PATIENCE, brisk, namespaces, web};

#[tokio::test]
async fn a_workload_is_read_afresh_and_may_be_missing() {
    let bench = Bench::start().await;
    let view = bench.view();
    assert_eq!(view.workload(&web()).await, Ok(None));
    bench.api.deploy("shop", "web", "shop/web:1", 2).unwrap();
    let workload = view.workload(&web()).await.unwrap().unwrap();
    assert_eq!((workload.id, workload.replicas.desired), (web(), 2));
    // A resourceVersion would allow the API server to answer from its cache (W5).
    assert!(bench.seen(|seen| seen.query.contains_key("resourceVersion")).is_empty());
}

/// A member of a group says *absent* of what it does not find.
#[tokio::test]
async fn of_a_workload_in_a_namespace_that_is_not_watched_nothing_is_said() {
    let bench = Bench::start().await;
    bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    let error = bench.cluster(namespaces(&["blog"]), brisk()).workload(&web()).await.unwrap_err();
    let words = "failed to get deployments.apps web in shop: this namespace is not watched (watch.namespaces)";
    assert_eq!((error.to_string().as_str(), error.retry), (words, Retry::Never));
}

#[tokio::test]
async fn a_read_that_fails_says_whether_trying_again_can_help() {
    let bench = Bench::start().await;
    let view = bench.view();
    for (status, retry) in [(503, Retry::Later), (500, Retry::Later), (403, Retry::Never), (401, Retry::Never)] {
        bench.refuse(status, 1, |_| true);
        let error = view.workload(&web()).await.unwrap_err();
        assert_eq!(error.retry, retry, "{status}");
        assert_eq!(error.attempted, "failed to get deployments.apps web in shop");
    }
    bench.server.inject(Fault::once(When::Before, Action::Cut));
    assert_eq!(view.workload(&web()).await.unwrap_err().retry, Retry::Later);
    let mut broken = bench.api.deploy("shop", "web", "shop/web:1", 1).unwrap();
    broken["spec"]["replicas"] = json!("two");
    bench.api.put(broken).unwrap();
    let error = view.workload(&web()).await.unwrap_err();
    assert!(error.cause.starts_with("it cannot be read: .spec.replicas is not a whole number"), "{error}");
}

/// Follows pods until `holds`.
async fn pods(flow: &mut Flow<PodSight>, holds: impl Fn(&BTreeMap<String, Pod>) -> bool) -> BTreeMap<String, Pod> {
    let mut pods = BTreeMap::new();
    let wait = async {
        while !holds(&pods) {
            match flow.next().await.expect("a watch never ends") {
                PodSight::Restarted => pods.clear(),
                PodSight::Seen(labels, pod) => {
                    assert_eq!(labels.get("app").map(String::as_str), Some("web"));
                    pods.insert(pod.name.clone(), pod);
                }
                PodSight::Gone(name) => drop(pods.remove(&name)),
                PodSight::Synced => {}
                PodSight::Trouble(error) => panic!("{error}"),
            }
        }
    };
    let ended = tokio::time::timeout(PATIENCE, wait).await;
    assert!(ended.is_ok(), "{pods:?}");
    pods
}

fn a_pod(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "shop", "name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "shop/web:1"}]},
        "status": status,
    })
}

#[tokio::test]
async fn pods_are_followed_with_what_is_wrong_with_them() {
    let bench = Bench::start().await;
    let waiting = json!({"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
    bench.api.put(a_pod("web-a", waiting)).unwrap();
    let mut flow = bench.view().watch_pods("shop");
    let seen = pods(&mut flow, |pods| pods.len() == 1).await;
    assert_eq!(seen["web-a"].trouble.as_deref(), Some("ImagePullBackOff"));
    assert!(!seen["web-a"].ready);

    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    bench.api.put(a_pod("web-b", ready)).unwrap();
    let seen = pods(&mut flow, |pods| pods.contains_key("web-b")).await;
    assert!(seen["web-b"].ready && seen["web-b"].trouble.is_none());
    assert_eq!(seen["web-b"].version.as_ref().map(ToString::to_string).as_deref(), Some("web shop/web:1"));

    bench.api.expire_watches();
    let seen = pods(&mut flow, |pods| pods.len() == 2).await;
    assert_eq!(seen.len(), 2);
}

fn a_route() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {
            "parentRefs": [{"name": "edge", "namespace": "infra"}, {"name": "missing", "namespace": "infra"}],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        },
        "status": {"parents": [{
            "controllerName": "example.com/gateway", "parentRef": {"name": "edge", "namespace": "infra"},
            "conditions": [{"type": "Accepted", "status": "True"}],
        }]},
    })
}

fn a_gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"namespace": "infra", "name": "edge"},
        "spec": {"gatewayClassName": "x", "listeners": [
            {"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "shop.example.com"},
        ]},
    })
}

#[tokio::test]
async fn a_site_is_read_from_services_ingresses_routes_and_gateways() {
    let bench = Bench::start().await;
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    bench.api.expose("blog", "cms", "blog.example.com").unwrap();
    bench.api.apply(a_route()).unwrap();
    bench.api.apply(a_gateway()).unwrap();
    let facts = bench.view().site_facts("shop", Age::Recent).await.unwrap();
    assert_eq!(facts.services.iter().map(|fact| fact.name.as_str()).collect::<Vec<_>>(), ["web"]);
    assert_eq!(facts.ingresses[0].rules[0].host.as_deref(), Some("www.example.com"));
    assert_eq!(facts.routes[0].backends, [("shop".to_owned(), "web".to_owned())]);
    assert_eq!(facts.gateways[0].listeners[0].hostname.as_deref(), Some("shop.example.com"));
    assert_eq!(facts.gateways.len(), 1);
    let accepted: Vec<bool> = facts.routes[0].parents.iter().map(|parent| parent.accepted).collect();
    assert_eq!(accepted, [true, false]);
}

/// A grant names the namespaces from which routes may lead here: those are read too, and no others.
#[tokio::test]
async fn routes_of_other_namespaces_are_read_where_a_grant_allows_them() {
    let bench = Bench::start().await;
    let mut route = a_route();
    route["metadata"]["namespace"] = json!("infra");
    route["spec"]["rules"][0]["backendRefs"][0]["namespace"] = json!("shop");
    bench.api.apply(route).unwrap();
    let view = bench.view();
    assert!(view.site_facts("shop", Age::Fresh).await.unwrap().routes.is_empty());
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
        "metadata": {"namespace": "shop", "name": "from-infra"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "infra"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    });
    bench.api.apply(grant).unwrap();
    let facts = view.site_facts("shop", Age::Fresh).await.unwrap();
    assert_eq!((facts.grants.len(), facts.routes.len()), (1, 1));
    assert_eq!(facts.routes[0].backends, [("shop".to_owned(), "web".to_owned())]);
    bench.refuse(403, u32::MAX, |request| request.path.contains("/referencegrants"));
    let facts = view.site_facts("shop", Age::Fresh).await.unwrap();
    assert_eq!((facts.grants.len(), facts.routes.len()), (0, 0), "a right that is missing costs nothing else");
    assert_eq!(facts.unread().len(), 1, "and is named");
}

/// What others take matters to whoever has a wildcard or no host, and is not read for anybody else.
#[tokio::test]
async fn other_namespaces_are_read_only_for_a_namespace_with_wide_hosts() {
    let bench = Bench::start().await;
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    bench.api.expose("blog", "cms", "*.example.com").unwrap();
    let view = bench.view();
    let everywhere = || bench.seen(|seen| seen.path.ends_with("networking.k8s.io/v1/ingresses")).len();
    assert_eq!(view.site_facts("shop", Age::Recent).await.unwrap().ingresses.len(), 1);
    assert_eq!(everywhere(), 0);
    assert_eq!(view.site_facts("blog", Age::Recent).await.unwrap().ingresses.len(), 2);
    assert_eq!(everywhere(), 1);
    bench.refuse(403, u32::MAX, |request| request.path.ends_with("networking.k8s.io/v1/ingresses"));
    let facts = bench.view().site_facts("blog", Age::Recent).await.unwrap();
    assert_eq!((facts.ingresses.len(), facts.unread().len()), (1, 1));
}

/// A cluster that lacked the Gateway API minutes ago may have it now.
#[tokio::test]
async fn a_fresh_look_asks_again_for_kinds_that_were_missing() {
    let bench = Bench::start().await;
    bench.api.set_gateway_api(false);
    let view = bench.view();
    assert!(view.site_facts("shop", Age::Recent).await.unwrap().routes.is_empty());
    bench.api.set_gateway_api(true);
    bench.api.apply(a_route()).unwrap();
    assert!(view.site_facts("shop", Age::Recent).await.unwrap().routes.is_empty(), "it was not there a moment ago");
    assert_eq!(view.site_facts("shop", Age::Fresh).await.unwrap().routes.len(), 1);
    let asked = futures_util::future::join_all((0..10).map(|_| view.site_facts("shop", Age::Fresh))).await;
    assert!(asked.iter().all(|facts| facts.as_ref().is_ok_and(|facts| facts.routes.len() == 1)));
    let lists = bench.seen(|seen| seen.path.ends_with("/namespaces/shop/services")).len();
    assert!(lists <= 4, "ten who ask at once share a reading or two, not {lists}");
}

#[tokio::test]
async fn a_gateway_we_may_not_read_is_left_out() {
    let bench = Bench::start().await;
    bench.api.apply(a_route()).unwrap();
    bench.api.apply(a_gateway()).unwrap();
    bench.refuse(403, u32::MAX, |request| request.path.contains("/gateways/"));
    let facts = bench.view().site_facts("shop", Age::Recent).await.unwrap();
    assert_eq!((facts.routes.len(), facts.gateways.len()), (1, 0));
    assert_eq!(facts.unread().len(), 1);
}

/// Many rollouts of one release ask at once; and a cluster without the Gateway API is not asked for it each time.
#[tokio::test]
async fn a_site_is_read_once_for_all_who_ask_and_unknown_kinds_are_remembered() {
    let bench = Bench::start().await;
    bench.api.set_gateway_api(false);
    bench.api.expose("shop", "web", "www.example.com").unwrap();
    let view = bench.view();
    let asked = futures_util::future::join_all((0..10).map(|_| view.site_facts("shop", Age::Recent))).await;
    assert!(asked.iter().all(|facts| facts.as_ref().is_ok_and(|facts| facts.services.len() == 1)));
    let lists = |plural: &str| bench.seen(|seen| seen.path.ends_with(plural)).len();
    assert_eq!((lists("/services"), lists("/httproutes"), lists("/grpcroutes")), (1, 1, 1));
    view.site_facts("blog", Age::Recent).await.unwrap();
    assert_eq!((lists("/services"), lists("/httproutes"), lists("/grpcroutes")), (2, 1, 1));
}

#[tokio::test]
async fn a_site_that_cannot_be_read_names_the_missing_right() {
    let bench = Bench::start().await;
    bench.refuse(403, u32::MAX, |request| request.path.ends_with("/ingresses"));
    let error = bench.view().site_facts("shop", Age::Recent).await.unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(
        error.to_string().ends_with("allow the owner of these credentials to list ingresses.networking.k8s.io in shop"),
        "{error}"
    );
}

#[tokio::test]
async fn everything_is_watched_if_that_is_allowed_and_else_our_own_namespace() {
    let bench = Bench::start().await;
    let (scope, why) = Scope::all_or_own(&bench.clients).await.unwrap();
    assert_eq!(scope, Scope::All);
    assert!(why.contains("may list deployments in all namespaces"), "{why}");
    bench.refuse(403, 1, |_| true);
    let (scope, why) = Scope::all_or_own(&bench.clients).await.unwrap();
    assert_eq!(scope, Scope::Namespaces(BTreeSet::from(["default".to_owned()])));
    assert!(why.contains("refused by the test"), "{why}");
    bench.refuse(500, 1, |_| true);
    assert_eq!(Scope::all_or_own(&bench.clients).await.unwrap_err().retry, Retry::Later);
}

#[tokio::test]
async fn requests_name_the_program_and_are_not_repeated_by_the_client() {
    let bench = Bench::start().await;
    let named = |request: &sandbox::http::Request| {
        request.header("user-agent").is_some_and(|agent| agent.starts_with("allclear/"))
    };
    bench.refuse(429, 1, named);
    assert!(bench.view().workload(&web()).await.is_err());
    assert_eq!(bench.server.seen().len(), 1);
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_named() {
    let options = Options { kubeconfig: Some(PathBuf::from("/no/such/kubeconfig")), ..Options::default() };
    let error = connect(&options).await.err().unwrap();
    assert!(matches!(error, ConnectError::Kubeconfig { .. }));
    assert!(error.to_string().starts_with("failed to use the kubeconfig /no/such/kubeconfig"), "{error}");
}

// Faults: W6
/// A server that accepts and never answers: the request client gives up by itself.
#[tokio::test]
async fn a_server_that_never_answers_is_not_waited_for_longer_than_promised() {
    let bench = Bench::start().await;
    bench.server.inject(Fault::once(When::Before, Action::Hold));
    let view = bench.view();
    let answer = tokio::time::timeout(Duration::from_secs(17), view.workload(&web())).await;
    assert_eq!(answer.unwrap().unwrap_err().retry, Retry::Later);
}

/// A tunnel as proxies of http give it: it says where it was asked to lead.
async fn tunnel() -> (std::net::SocketAddr, tokio::task::JoinHandle<Vec<u8>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut inner, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(inner.read_u8().await.unwrap());
        }
        let to = std::str::from_utf8(&asked).unwrap().split(' ').nth(1).unwrap().to_owned();
        let mut outer = tokio::net::TcpStream::connect(to).await.unwrap();
        inner.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let _ = copy_bidirectional(&mut inner, &mut outer).await;
        asked
    });
    (address, serving)
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_is_used_with_its_password_and_named_without() {
    let bench = Bench::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let through = |proxy: &str| {
        let mut kubeconfig: Value = serde_json::from_str(&bench.api.kubeconfig(&bench.server)).unwrap();
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = proxy.into();
        std::fs::write(file.path(), kubeconfig.to_string()).unwrap();
        Options { kubeconfig: Some(file.path().to_owned()), ..Options::default() }
    };
    let (address, serving) = tunnel().await;
    let clients = connect(&through(&format!("http://us:word@{address}"))).await.unwrap();
    let scope = Scope::all_or_own(&clients).await.unwrap();
    drop(clients);
    assert!(matches!(scope.0, Scope::All));
    let asked = String::from_utf8(serving.await.unwrap()).unwrap();
    assert!(asked.starts_with(&format!("CONNECT {}", bench.server.address())), "{asked}");
    // us:word
    assert!(asked.to_lowercase().contains("proxy-authorization: basic dxm6d29yza=="), "{asked}");
    let refused = connect(&through("socks5://us:word@127.0.0.1:9")).await.err().unwrap().to_string();
    assert!(refused.contains("is neither http nor https") && !refused.contains("word"), "{refused}");
}
