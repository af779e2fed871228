//! Two AWS accounts and the whole program: one whose role cannot be assumed delays no other, and loses nothing (fault row F10).

use std::sync::Arc;

use sandbox::cloudfront::accounts::{AccountsStandIn, Role};
use sandbox::cloudfront::{CloudFrontStandIn, Distribution, Invalidation, Options};
use sandbox::http::Server;

use crate::scene::{DISTRIBUTION, NAMESPACE, Scene, image};

const BLOG: &str = "blog.example.com";
const IN_BLOG: &str = "E2BLOG";
const ROLE: &str = "arn:aws:iam::222222222222:role/allclear";

fn of(invalidations: &[Invalidation]) -> Vec<&str> {
    invalidations.iter().map(|one| one.distribution.as_str()).collect()
}

// Faults: F10
#[tokio::test]
async fn an_account_that_is_down_delays_no_other_and_is_purged_once_it_works() {
    let mut scene = Scene::new().await;
    scene.world.add_site(NAMESPACE, "blog", &image("1.0"), BLOG, IN_BLOG).expect("the cluster takes it");
    scene.world.cloudfront.remove_distribution(IN_BLOG);
    scene.world.kubernetes.settle();
    let completes_after = Some(std::time::Duration::from_millis(150));
    let blog = Arc::new(CloudFrontStandIn::new(Options { completes_after, ..Options::default() }));
    blog.add_distribution(Distribution::new(IN_BLOG).alias(BLOG));
    let aws = Arc::new(AccountsStandIn::new(scene.world.cloudfront.clone()));
    aws.add(Role { arn: ROLE.to_owned(), external_id: Some("of-blog".to_owned()) }, blog.clone());
    let server = Server::start(aws.clone()).await.expect("loopback");
    scene.set("ALLCLEAR__CLOUDFRONT__ENDPOINT", &server.url());
    let config = scene.world.directory().join("config.toml");
    let account = format!("[[aws.account]]\nname = \"blog\"\nrole_arn = \"{ROLE}\"\nexternal_id = \"of-blog\"\n");
    std::fs::write(&config, account).expect("it can be written");

    aws.break_sts(true);
    scene.launch(&["run", "--config", config.to_str().expect("it is text")]);
    scene.wait_until_started().await;
    scene.wait_until("both are recorded", async |scene| scene.record_of("blog").is_some()).await;
    scene.set_image("blog", &image("1.1"));
    scene.roll_out("1.1");
    scene.wait_until_over(2).await;
    assert_eq!(scene.purged(), [DISTRIBUTION], "its own account is not held up");
    assert!(!scene.is_over("blog", 2) && blog.invalidations().is_empty(), "nobody says that it has no distribution");

    aws.break_sts(false);
    scene.wait_until("the blog is purged", async |scene| scene.is_over("blog", 2)).await;
    assert_eq!(of(&blog.invalidations()), [IN_BLOG]);
    assert_eq!(of(&scene.world.cloudfront.invalidations()), [DISTRIBUTION], "each in its own account, once");
}
