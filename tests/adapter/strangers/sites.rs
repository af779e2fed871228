//! A tenant writes objects that lead to workloads: huge ones, and ones that name what is not there (T2, T15).

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use allclear::adapters::kubernetes::{Cluster, Options, Scope, Tempo, connect};
use kernel::id::WorkloadId;
use kinds::pods::PodLabels;
use purge::ports::{ClusterView, Retry};
use purge::site::{Age, Gathered, Site};
use sandbox::kubernetes::{KubernetesStandIn, Options as StandInOptions};
use serde_json::{Value, json};

use crate::served::clients;

/// Where the search in a process of its own finds the cluster, and where the peak of its memory is told.
const KUBECONFIG: &str = "ALLCLEAR_TEST_SITES_KUBECONFIG";

/// What a search in a process of its own may take. It stands for a hang.
const SEARCH_MAX: Duration = Duration::from_secs(120);

fn path_to(service: &str) -> Value {
    json!({"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": service, "port": {"number": 80}}}}]})
}

/// One of 25 Ingresses of one tenant, 840 KB each: what an API server takes. Each wildcard covers all names of all of them.
fn huge(number: usize) -> Value {
    let names = (0..3_000).map(|at| format!("n{number}-{at}.zone.tenant.example"));
    let wildcards = (0..500).map(|_| "*.zone.tenant.example".to_owned());
    let rules: Vec<Value> = names.chain(wildcards).map(|host| json!({"host": host, "http": path_to("web")})).collect();
    let tls: Vec<String> = (0..9_000).map(|at| format!("t{number}-{at}.zone.tenant.example")).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"namespace": "tenant", "name": format!("huge-{number}")},
        "spec": {"rules": rules, "tls": [{"hosts": tls}]},
    })
}

fn web(namespace: &str, facts: &Gathered) -> Site {
    let template = BTreeMap::from([("app".into(), "web".into())]);
    facts.site(PodLabels { of: &WorkloadId::deployment(namespace, "web"), template: &template }, None)
}

/// A line of this process' memory, in MiB.
fn memory_mib(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1_024
}

/// Searches in this process, which was started for it alone, and says what it took.
#[tokio::test]
#[ignore = "started by twenty_five_huge_ingresses_cost_their_tenant_names_and_no_memory"]
async fn a_search_in_a_process_of_its_own() {
    let Ok(kubeconfig) = std::env::var(KUBECONFIG) else { return };
    let clients = connect(&Options { kubeconfig: Some(kubeconfig.into()), ..Options::default() }).await.unwrap();
    let view = Cluster::new(&clients, Scope::All, Tempo::default());
    let before = memory_mib("VmRSS");
    let tenant = async {
        // As the program does: a machine that is busy may take longer than an answer is waited for.
        let facts = loop {
            match view.site_facts("tenant", Age::Fresh).await {
                Err(error) if error.retry == Retry::Later => {}
                facts => break facts.unwrap(),
            }
        };
        let began = Instant::now();
        let found = tokio::task::spawn_blocking(move || web("tenant", &facts)).await.unwrap();
        (found, began.elapsed().as_millis())
    };
    let victim = async {
        let began = Instant::now();
        let facts = view.site_facts("victim", Age::Fresh).await.unwrap();
        (web("victim", &facts), began.elapsed().as_millis())
    };
    let ((found, took), (victim, other)) = tokio::join!(tenant, victim);
    assert!(victim.hosts.keys().any(|host| host.as_str() == "*.victim.example"), "{victim:?}");
    let peak = memory_mib("VmHWM").saturating_sub(before);
    println!("figures {took} {peak} {other} {} {}", found.hosts.len(), found.rejected.len());
}

// Faults: T2
#[tokio::test]
async fn twenty_five_huge_ingresses_cost_their_tenant_names_and_no_memory() {
    let api = KubernetesStandIn::new(StandInOptions::default());
    let server = api.start().await.unwrap();
    let mut bytes = 0;
    for number in 0..25 {
        let object = huge(number);
        bytes += object.to_string().len();
        api.put(object).unwrap();
    }
    api.expose("tenant", "web", "www.tenant.example").unwrap();
    api.expose("victim", "web", "*.victim.example").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), api.kubeconfig(&server)).unwrap();
    let search = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "strangers::sites::a_search_in_a_process_of_its_own", "--include-ignored", "--nocapture"])
        .env(KUBECONFIG, file.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ended = tokio::time::timeout(SEARCH_MAX, search).await.expect("the search ends").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let figures = said.lines().find_map(|line| line.split_once("figures ")).unwrap().1;
    let figures: Vec<u64> = figures.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let [took, peak, other, hosts, rejected] = figures[..] else { panic!("{said}") };
    println!("T2: search for hosts among 25 Ingresses of {} MB {took} ms (aim 1000 ms)", bytes / 1_000_000);
    println!("T2: memory at its peak {peak} MiB (aim 64 MiB)");
    println!("T2: reading and search of another namespace meanwhile {other} ms (aim 15000 ms)");
    assert_eq!(hosts, 1_000, "as many as a site has room for");
    assert!(rejected >= 2, "what is left out is told");
    assert!(took <= 1_000 && peak <= 64 && other <= 15_000, "{took} ms, {peak} MiB, {other} ms");
}

/// A route with many parents, as a tenant writes it; the Gateway controller has accepted all of them.
fn crowded(number: usize) -> Value {
    let parent = |at: usize| json!({"name": format!("g{}", number * 32 + at), "namespace": "infra"});
    let parents: Vec<Value> = (0..32).map(parent).collect();
    let said: Vec<Value> = parents
        .iter()
        .map(|parent| {
            json!({"controllerName": "example.com/gateway", "parentRef": parent,
                   "conditions": [{"type": "Accepted", "status": "True"}]})
        })
        .collect();
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": "tenant", "name": format!("crowded-{number}")},
        "spec": {"parentRefs": parents, "hostnames": ["www.tenant.example"], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]},
        "status": {"parents": said},
    })
}

// Faults: T15
#[tokio::test]
async fn three_thousand_parents_cost_a_bounded_number_of_reads_and_are_told() {
    let api = KubernetesStandIn::new(StandInOptions::default());
    let server = api.start().await.unwrap();
    let clients = clients(&api, &server).await;
    api.expose("tenant", "web", "web.tenant.example").unwrap();
    (0..100).for_each(|number| drop(api.put(crowded(number)).unwrap()));
    let view = Cluster::new(&clients, Scope::All, Tempo::default());
    let began = Instant::now();
    let facts = view.site_facts("tenant", Age::Fresh).await.unwrap();
    let took = began.elapsed().as_millis();
    let reads = server.seen().iter().filter(|seen| seen.path.contains("/gateways/")).count();
    println!("T15: Gateways read for 3,200 parents {reads} (aim 64), in {took} ms (aim 2000 ms)");
    let found = web("tenant", &facts);
    assert!(found.hosts.keys().any(|host| host.as_str() == "www.tenant.example"), "{found:?}");
    assert!(reads <= 64 && took <= 2_000, "{reads} reads, {took} ms");
    assert!(found.rejected.iter().any(|(_, why)| why.contains("not looked at")), "{:?}", found.rejected);
}

// Faults: T15
#[tokio::test]
async fn a_name_that_is_none_costs_its_own_reference_only() {
    let api = KubernetesStandIn::new(StandInOptions::default());
    let server = api.start().await.unwrap();
    let clients = clients(&api, &server).await;
    let bad = ["../../../../api/v1/namespaces/kube-system/secrets/x", "a b", "A", "x?watch=1", "", "%2e%2e"];
    for (at, name) in bad.iter().enumerate() {
        let mut route = crowded(at);
        for parents in ["/spec/parentRefs", "/status/parents"] {
            *route.pointer_mut(parents).unwrap() = json!([]);
        }
        route["spec"]["parentRefs"] =
            json!([{"name": name, "namespace": "infra"}, {"name": "edge", "namespace": name}]);
        route["status"]["parents"] = route["spec"]["parentRefs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parent| json!({"parentRef": parent, "conditions": [{"type": "Accepted", "status": "True"}]}))
            .collect();
        api.put(route).unwrap();
    }
    api.expose("tenant", "web", "web.tenant.example").unwrap();
    let view = Cluster::new(&clients, Scope::All, Tempo::default());
    let found = web("tenant", &view.site_facts("tenant", Age::Fresh).await.unwrap());
    assert!(found.hosts.keys().any(|host| host.as_str() == "web.tenant.example"), "{found:?}");
    let gets = server.seen().into_iter().filter(|seen| seen.path.contains("/gateways/")).map(|seen| seen.path);
    let gets: Vec<String> = gets.collect();
    assert!(gets.is_empty(), "nothing is asked for under such a name: {gets:?}");
    assert!(server.seen().iter().all(|seen| !seen.path.contains("secrets")));
    assert!(found.rejected.iter().any(|(_, why)| why.contains("no name")), "{:?}", found.rejected);
    println!("T15: requests under names that are none {} (aim 0)", gets.len());
}
