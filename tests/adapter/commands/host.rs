//! From a host to what is behind it, asked of the stand-ins for the API server and CloudFront.

use sandbox::cloudfront::Distribution;

use super::*;

#[tokio::test]
async fn a_host_leads_to_its_workload_and_to_what_is_not_followed() {
    let mut world = World::start().await;
    world.sources.group = None;
    for (name, host) in [("web", "www.example.com"), ("api", "api.example.com")] {
        world.api.expose("shop", name, host).unwrap();
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "api-0", "labels": {"app": "api"}},
        "spec": {"containers": [{"name": "api", "image": "shop/api:1"}]},
    });
    world.api.apply(pod).unwrap();
    let account = Sandbox::new(Timings::IMMEDIATE, None).await.unwrap();
    let served = |id: &str, host: &str| Distribution::new(id).alias(host).origin("ingress.example.com");
    account.cloudfront.add_distribution(served("E1", "www.example.com"));
    account.cloudfront.add_distribution(served("E2", "*.example.com"));
    world.sources.cdn = Arc::new(adapter(&account.cdn.url(), "AKIDONE", Timeouts::default()).await);
    let ask = async |host| explain(&world.sources, &World::question(Some(host)), Output::Table).await;
    let [www, api] = [ask("www.example.com").await, ask("api.example.com").await];
    expect![[r#"
        www.example.com
          State         a rollout of shop/web purges E1

          Distributions E1 (e1.cloudfront.net): alias www.example.com
          Rules         Ingress shop/web: www.example.com to shop/web
          Workloads     shop/web 2: complete; not recorded; last purge: none on record
                        by www.example.com: Ingress shop/web rule
                        its purges reach E1
          More          allclear explain shop/web
    "#]]
    .assert_eq(&www.out);
    expect![[r#"
        api.example.com
          State         no followed workload is behind it, so no rollout purges E2

          Distributions E2 (e2.cloudfront.net): alias *.example.com covers host api.example.com
          Rules         Ingress shop/api: api.example.com to shop/api
          Not followed  Service shop/api: 1 pod of no workload that is followed: api-0
    "#]]
    .assert_eq(&api.out);
    assert_eq!((www.code, api.code, www.err + &api.err), (0, 1, String::new()));
}
