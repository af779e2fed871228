//! Answers to the question what is behind a host.

use super::*;
use crate::looking::tests::{Labels, distribution, labels};
use kernel::names::distribution::Distribution;
use kernel::names::host::Host;
use purge::site::{IngressFact, IngressRule, RouteClaim, ServiceFact};
use purge::workloads::readiness::Pod;

async fn about(world: World, name: &str) -> (u8, String) {
    let host = Host::parse(name).unwrap();
    let outcome = about_host(&world.sources().await, &host, Output::Table).await;
    assert_eq!(outcome.err, "");
    (outcome.code, outcome.out)
}

fn service(name: &str, app: &str) -> ServiceFact {
    let selector = if app.is_empty() { Labels::new() } else { Labels::from([("app".to_owned(), app.to_owned())]) };
    ServiceFact { namespace: "shop".into(), name: name.into(), selector, ..ServiceFact::default() }
}

fn ingress(name: &str, host: Option<&str>, services: &[&str]) -> IngressFact {
    let backends = services.iter().map(|name| (*name).to_owned()).collect();
    let rule = IngressRule { host: host.map(str::to_owned), backends, ..IngressRule::default() };
    IngressFact { namespace: "shop".into(), name: name.into(), rules: vec![rule], ..IngressFact::default() }
}

fn pod(name: &str) -> Pod {
    Pod {
        name: name.into(),
        version: None,
        ready: true,
        terminating: false,
        started: true,
        finished: false,
        trouble: None,
    }
}

#[tokio::test]
async fn from_a_host_to_its_distributions_rules_and_workloads() {
    expect![[r#"
        www.example.com
          State         a rollout of shop/web purges E1

          Distributions E1 (e1.cloudfront.net): alias www.example.com
                        not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host www.example.com
          Rules         Ingress shop/public: www.example.com to shop/web-svc
          Workloads     shop/web 1.2.4: 2 of 5 pods available, at most 13m 30s of 15m left; last purge: web: 1.2.2 → 1.2.3
                        by www.example.com: Ingress shop/public rule
                        its purges reach E1
          More          allclear explain shop/web
    "#]]
    .assert_eq(&about(World::new(rolling()), "www.example.com").await.1);
}

/// The account has a distribution for distribution tenants only, and these.
fn shared(tenants: &[(&str, &str)]) -> World {
    let mut world = World::new(rolling());
    let tenant =
        |(id, domain): &(&str, &str)| Distribution { domain_name: String::new(), ..distribution(id, domain, true) };
    let shared = Distribution { tenant_only: true, aliases: Vec::new(), ..distribution("E9", "", true) };
    world.account = Account(Ok(tenants.iter().map(tenant).chain([shared]).collect()));
    world
}

#[tokio::test]
async fn a_distribution_tenant_is_found_by_its_domain_and_said_to_be_one() {
    let two = [("dt_a", "www.example.com"), ("dt_b", "other.example.com")];
    let (code, said) = about(shared(&two), "www.example.com").await;
    for words in [
        "State         a rollout of shop/web purges distribution tenant dt_a\n",
        "Distributions distribution tenant dt_a: alias www.example.com\n",
        "its purges reach distribution tenant dt_a\n",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    assert!(code == 0 && !said.contains("dt_b"), "{said}");
    let text = shared(&two).text().await;
    assert!(text.contains("Would purge   /* of distribution tenant dt_a\n"), "{text}");
    assert!(text.contains("Distributions distribution tenant dt_a: alias www.example.com\n"), "{text}");
}

#[tokio::test]
async fn where_distribution_tenants_may_not_be_listed_nobody_says_that_nothing_serves_a_host() {
    let (_, said) = about(shared(&[]), "www.example.com").await;
    assert!(said.contains("whether a distribution tenant serves it is not known"), "{said}");
    assert!(said.contains("missing: AccessDenied for distribution tenants"), "{said}");
}

#[tokio::test]
async fn what_serves_a_host_and_is_not_followed_is_named() {
    let mut world = World::new(web());
    let facts = world.cluster.facts.as_mut().unwrap();
    facts.services.extend([service("db", "db"), service("hand", ""), service("idle", "idle")]);
    facts.services.push(ServiceFact { external_name: Some("old.example.net".into()), ..service("moved", "") });
    facts.ingresses = vec![ingress("all", Some("www.example.com"), &["db", "gone", "hand", "idle", "moved"])];
    let db = Labels::from([("app".to_owned(), "db".to_owned())]);
    world.cluster.pods = Ok([("db-0", &db), ("db-1", &db), ("db-2", &db), ("web-1", &labels())]
        .map(|(name, labels)| (labels.clone(), pod(name)))
        .into());
    expect![[r#"
        www.example.com
          State         no followed workload is behind it, so no rollout purges E1

          Distributions E1 (e1.cloudfront.net): alias www.example.com
                        not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host www.example.com
          Rules         Ingress shop/all: www.example.com to shop/db, shop/gone, shop/hand, shop/idle, shop/moved
          Not followed  Service shop/db: 3 pods of no workload that is followed: db-0, db-1, …
                        Service shop/gone: does not exist
                        Service shop/hand: has no selector, so what its endpoints are is not followed
                        Service shop/idle: selects no pod
                        Service shop/moved: stands for old.example.net (ExternalName)
    "#]]
    .assert_eq(&about(world, "www.example.com").await.1);
}

#[tokio::test]
async fn a_host_that_reaches_the_cluster_under_the_name_of_an_origin_is_found() {
    let mut world = World::new(web());
    let mut served = distribution("E1", "www.example.com", true);
    served.origins = vec!["origin.example.com".into(), "bucket.s3.amazonaws.com".into()];
    world.account = Account(Ok(vec![served]));
    world.cluster.facts.as_mut().unwrap().ingresses = vec![ingress("origin", Some("origin.example.com"), &["web-svc"])];
    let (code, text) = about(world, "www.example.com").await;
    expect![[r#"
        www.example.com
          State         a rollout of shop/web purges E1

          Distributions E1 (e1.cloudfront.net): alias www.example.com
          Rules         Ingress shop/origin: origin.example.com to shop/web-svc
          Workloads     shop/web 1.2.4: every pod is new and available; waiting until no old pod serves any more, 1m at most; last purge: web: 1.2.2 → 1.2.3
                        by origin.example.com: Ingress shop/origin rule
                        its purges reach E1
          More          allclear explain shop/web
    "#]]
    .assert_eq(&text);
    assert_eq!(code, 0);
}

#[tokio::test]
async fn a_name_with_a_dot_is_a_host_where_no_workload_has_it() {
    let outcome = World::new(web()).ask(Some("api.example.com"), Output::Table).await;
    expect![[r#"
        api.example.com
          State         no distribution that is purged serves it, so nothing is purged for it

          Distributions not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host api.example.com
                        none serves api.example.com (2 looked at)
          Rules         Ingress shop/public: api.example.com to shop/web-svc
          Workloads     shop/web 1.2.4: every pod is new and available; waiting until no old pod serves any more, 1m at most; last purge: web: 1.2.2 → 1.2.3
                        by api.example.com: Ingress shop/public rule
                        its purges reach no distribution of this host
          More          allclear explain shop/web
    "#]]
    .assert_eq(&outcome.out);
    assert_eq!(outcome.code, 0);
    let named = World::new(Workload { id: WorkloadId::deployment("shop", "web.v1"), ..web() });
    let outcome = named.ask(Some("web.v1"), Output::Table).await;
    assert!(outcome.out.starts_with("shop/web.v1\n"), "{}", outcome.out);
    for address in ["https://www.example.com/shop?item=7#top", "http://www.example.com:8080"] {
        let outcome = World::new(web()).ask(Some(address), Output::Table).await;
        assert!(outcome.code == 0 && outcome.out.starts_with("www.example.com\n"), "{}", outcome.out);
    }
    let outcome = World::new(web()).ask(Some("*.example.com"), Output::Json).await;
    let seen: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!((outcome.code, &seen["host"]), (0, &"*.example.com".into()));
}

#[tokio::test]
async fn a_host_that_belongs_to_another_namespace_is_not_purged_for_this_one() {
    let mut world = World::new(web());
    world.cluster.claims = vec![RouteClaim {
        created: "2026-01-01T00:00:00Z".into(),
        namespace: "bank".into(),
        object: "Ingress bank/web".into(),
        accepted: true,
        expressions: false,
        hosts: vec![("www.example.com".parse().unwrap(), vec!["/*".parse().unwrap()])],
    }];
    let mut sources = world.sources().await;
    sources.policy.tenants.default = purge::bounds::tenants::Tenancy::Own;
    let outcome = about_host(&sources, &"www.example.com".parse().unwrap(), Output::Table).await;
    expect![[r#"
        State         no purge of the workloads behind it reaches E1
        Workloads     shop/web 1.2.4: every pod is new and available; waiting until no old pod serves any more, 1m at most; last purge: web: 1.2.2 → 1.2.3
                      by www.example.com, which is not its namespace's own: tenants.default is own
                      its purges reach no distribution of this host
    "#]].assert_eq(&rows(&outcome.out, &["State", "Workloads"]));
}

#[tokio::test]
async fn a_workload_that_its_owner_took_out_purges_nothing_for_its_host() {
    let tuning = Tuning { disabled: true, ..Tuning::default() };
    let (_, text) = about(World::new(Workload { tuning, ..web() }), "www.example.com").await;
    expect![[r#"
        State         no purge of the workloads behind it reaches E1
        Workloads     shop/web 1.2.4: taken out by its owner; last purge: web: 1.2.2 → 1.2.3
                      by www.example.com: Ingress shop/public rule
                      its purges reach no distribution of this host
    "#]]
    .assert_eq(&rows(&text, &["State", "Workloads"]));
}

#[tokio::test]
async fn what_cannot_be_read_makes_no_sentence_of_certainty() {
    let mut world = World::new(web());
    world.cluster.facts = Err(forbidden("failed to list ingresses in shop"));
    let (code, text) = about(world, "www.example.com").await;
    expect![[r#"
        www.example.com
          State         no followed workload is behind it, so no rollout purges E1, as far as could be read

          Distributions E1 (e1.cloudfront.net): alias www.example.com
                        not E2 (e2.cloudfront.net): disabled; otherwise by alias *.example.com covers host www.example.com
          Missing       failed to list ingresses in shop: forbidden
    "#]]
    .assert_eq(&text);
    assert_eq!(code, 1);
}
