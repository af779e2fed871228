//! Hosts, distributions and tags that do not fit together.

use super::*;
use crate::served;
use allclear::cli::check::Finding;
use sandbox::kubernetes::Kind;

#[tokio::test]
async fn a_host_that_no_distribution_serves_is_known_beside_those_that_are() {
    let world = World::start().await;
    world.api.seed("shop", "internal", "shop/internal:1", 1).unwrap();
    world.api.expose("shop", "internal", "internal.example.com").unwrap();
    world.warns("host-served", "internal.example.com no distribution serves this host of").await;
}

#[tokio::test]
async fn a_host_whose_pods_belong_to_nothing_that_is_followed_is_named() {
    let world = World::start().await;
    said(&world.report().await, "host-followed", "a followed workload is behind each of 1 host with a distribution");
    let bare = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "blog", "name": "blog-0", "labels": {"app": "blog"}},
        "spec": {"containers": [{"name": "blog", "image": "shop/blog:1"}]},
    });
    world.api.apply(bare).unwrap();
    world.api.expose("blog", "blog", "blog.example.com").unwrap();
    // No distribution serves this one, so nothing would be purged for it anyway.
    world.api.expose("blog", "inner", "inner.example.com").unwrap();
    world.cloudfront.add_distribution(Distribution::new("EBLOG").alias("blog.example.com"));
    let about = "blog.example.com Service blog/blog selects pods of no workload that is followed";
    world.warns("host-followed", about).await;
    assert!(!world.report().await.to_string().contains("inner.example.com Service"));
}

#[tokio::test]
async fn of_a_namespace_that_cannot_be_read_nothing_good_is_said() {
    let world = World::start().await;
    served::forbid(&world.api_server, "not for you", |request| request.path.ends_with("/namespaces/shop/services"));
    let report = world.report().await;
    for check in ["host-served", "host-followed"] {
        said(&report, check, "not all was looked at: failed to list services in shop");
        let is_good = |found: &&Finding| found.check.id == check && found.mark == Mark::Good;
        assert_eq!(report.findings.iter().find(is_good), None, "{report}");
    }
}

#[tokio::test]
async fn a_service_of_one_pod_of_a_stateful_set_leads_to_what_is_followed() {
    let world = World::start().await;
    let labels = json!({"app": "db"});
    let stateful_set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "blog", "name": "db"},
        "spec": {
            "replicas": 1, "serviceName": "db", "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "shop/db:1"}]},
            },
        },
    });
    world.api.apply(stateful_set).unwrap();
    world.api.expose("blog", "db", "db.example.com").unwrap();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "blog", "name": "db"},
        "spec": {"selector": {"statefulset.kubernetes.io/pod-name": "db-0"}, "ports": [{"port": 80}]},
    });
    world.api.apply(service).unwrap();
    world.cloudfront.add_distribution(Distribution::new("EDB").alias("db.example.com"));
    let followed = "a followed workload is behind each of 2 hosts with a distribution";
    said(&world.report().await, "host-followed", followed);
}

#[tokio::test]
async fn a_distribution_that_is_not_enabled_is_named() {
    let world = World::start().await;
    let disabled = Distribution { enabled: false, ..Distribution::new("EWEB").alias("shop.example.com") };
    world.cloudfront.add_distribution(disabled);
    world.fails("distribution-usable", "EWEB it is not purged, because it is disabled").await;
}

#[tokio::test]
async fn tags_that_are_asked_for_and_not_switched_on_are_known() {
    let mut world = World::start().await;
    world.sections.insert("purge", "paths = [\"/index.html\", \"#web\"]".to_owned());
    for member in ["eu-1", "eu-2"] {
        let origin = if member == "eu-1" { Some(world.origin().await) } else { None };
        world.beat(member, |beat| beat.origin = origin.unwrap_or_else(|| "o-2".into())).await;
    }
    world.warns("cache-tags", "not switched on in EWEB").await;
    let with_tags = Distribution { cache_tags: true, ..Distribution::new("EWEB").alias("shop.example.com") };
    world.cloudfront.add_distribution(with_tags);
    let report = world.report().await;
    said(&report, "cache-tags", "purged by tags: 1 distribution");
}

#[tokio::test]
async fn that_nobody_looks_at_the_edge_is_known_until_somebody_asks_for_it() {
    let mut world = World::start().await;
    said(&world.report().await, "proof", "looked at after each purge: 1 workload");
    world.sections.remove("proof");
    let report = world.warns("proof", "nobody looks at the edge after a purge").await;
    said(&report, "proof", "set proof.enabled = true");
    let change = json!({"metadata": {"annotations": {"allclear.dev/proof": "true"}}});
    world.api.patch(Kind::Deployment, "shop", "web", &change).unwrap();
    let report = world.report().await;
    assert_eq!(marked(&report, Mark::Warning), [""; 0], "{report}");
    said(&report, "proof", "looked at after each purge: 1 workload");
}

impl World {
    pub(super) async fn origin(&self) -> kernel::id::Origin {
        let clients = connect(&self.kubernetes()).await.unwrap();
        let ledger = KubernetesLedger::new(clients.request, "allclear");
        ledger.peek().await.unwrap().unwrap().origin
    }
}
