//! A tenant fills its namespace with Ingresses and rolls out (T2).

use std::time::Instant;

use serde_json::{Value, json};

use crate::scene::{DISTRIBUTION, NAME, Scene, image};

/// One of 25 Ingresses of one tenant, 840 KB each, which is what an API server takes. Each wildcard covers all names of all.
fn huge(number: usize) -> Value {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let http = json!({"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]});
    let names = (0..3_000).map(|at| format!("n{number}-{at}.zone.tenant.example"));
    let wildcards = (0..500).map(|_| "*.zone.tenant.example".to_owned());
    let rules: Vec<Value> = names.chain(wildcards).map(|host| json!({"host": host, "http": http})).collect();
    let tls: Vec<String> = (0..9_000).map(|at| format!("t{number}-{at}.zone.tenant.example")).collect();
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"namespace": "tenant", "name": format!("huge-{number}")},
        "spec": {"rules": rules, "tls": [{"hosts": tls}]},
    })
}

/// The most memory the program has had, in MiB.
fn peak_mib(scene: &Scene) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", scene.process().id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() / 1_024
}

#[tokio::test]
async fn a_tenant_with_huge_ingresses_ends_nothing_and_its_neighbour_is_purged_meanwhile() {
    let mut scene = Scene::new().await;
    scene.world.add_site("tenant", NAME, &image("1.0"), "web.tenant.example", "E2TENANT").unwrap();
    scene.world.kubernetes.settle();
    (0..25).for_each(|number| drop(scene.world.kubernetes.put(huge(number)).unwrap()));
    scene.start().await;
    let before = peak_mib(&scene);
    let began = Instant::now();
    scene.world.kubernetes.set_image("tenant", NAME, NAME, &image("1.1")).unwrap();
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    println!("T2: purge of the neighbour after {} ms (aim 15000 ms)", began.elapsed().as_millis());
    assert!(scene.purged().contains(&DISTRIBUTION.to_owned()), "{:?}", scene.purged());
    // The tenant's own rollout is told what of it is left out, and is over as well.
    let told = async |scene: &Scene| scene.process().said("left out some of what routes to workloads");
    scene.wait_until("what is left out is in the log", told).await;
    let idle = async |scene: &Scene| scene.process().state().await["rollouts"].as_array().is_some_and(Vec::is_empty);
    scene.wait_until("no rollout is under way", idle).await;
    let more = peak_mib(&scene) - before;
    println!("T2: memory of the program at its peak {more} MiB more than before (aim 64 MiB)");
    assert!(more <= 64, "{more} MiB more than {before}");
}
